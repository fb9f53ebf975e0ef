"""What is measured in Node and in browsers: networks as ONNX files, with an input each and what ONNX Runtime makes of it here.

The networks for text come with ``rapidocr-onnxruntime``, the voice detector with ``silero-vad``. MobileNetV2 and an encoder of MiniLM's
form have random weights: neither engine's time depends on what they are.
"""

import json
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/models"), str(ROOT / "examples/sentence_embedding")]

import minilm  # noqa: E402
import mobilenetv2  # noqa: E402
import silero  # noqa: E402
import zoo  # noqa: E402

#: Of MiniLM-L6.
ENCODER = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "layer_norm_eps": 1e-12}
WORDS, PLACES, WIDE = 30522, 512, 1536


class RandomWeights:
    """A weight of the right shape for every name that an encoder asks for."""

    def __init__(self):
        self.rng = np.random.default_rng(6)

    def __getitem__(self, name):
        hidden = ENCODER["hidden_size"]
        tables = {"word_embeddings": WORDS, "position_embeddings": PLACES, "token_type_embeddings": 2}
        if "LayerNorm.weight" in name:
            return np.ones(hidden, "float32")
        rows = next((rows for table, rows in tables.items() if table in name), None)
        if "intermediate" in name:
            rows, columns = WIDE, hidden
        elif "output.dense" in name and "attention" not in name:
            rows, columns = hidden, WIDE
        else:
            rows, columns = rows or hidden, hidden
        shape = (rows, columns) if name.endswith("weight") else (rows,)
        return (self.rng.standard_normal(shape) * 0.05).astype("float32")


def encoder():
    """MiniLM's graph with random weights."""
    graph = minilm.Graph(RandomWeights())
    x, mask = graph.embeddings(ENCODER["layer_norm_eps"]), graph.mask()
    for number in range(ENCODER["num_hidden_layers"]):
        x = graph.layer(x, mask, number, ENCODER)
    graph.nodes.append(helper.make_node("Identity", [graph.pooled(x)], ["embedding"]))
    names = ("input_ids", "token_type_ids", "attention_mask")
    ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
    output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", ENCODER["hidden_size"]])
    graph = helper.make_graph(graph.nodes, "encoder", ids, [output], list(graph.initializers.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def sentence():
    """One sentence of 32 tokens."""
    ids = np.random.default_rng(0).integers(1000, WORDS, (1, 32))
    return {"input_ids": ids, "token_type_ids": np.zeros_like(ids), "attention_mask": np.ones_like(ids)}


def _text(name, shape):
    return lambda: (zoo.MODELS[name].path.read_bytes(), {"x": zoo.text_image(shape)})


def _voice():
    rng = np.random.default_rng(0)
    call = {"input": 0.1 * rng.standard_normal((1, 576), "float32"), "state": np.zeros((2, 1, 128), "float32"), "sr": np.array(16000)}
    return silero.path("silero_vad").read_bytes(), call


#: Each network's file and input.
NETWORKS = {
    "encoder": lambda: (encoder().SerializeToString(), sentence()),
    "det": _text("det", (1, 3, 480, 640)),
    "rec": _text("rec", (1, 3, 48, 320)),
    "cls": _text("cls", (1, 3, 48, 192)),
    "silero_vad": _voice,
    "mobilenetv2": lambda: (mobilenetv2.build().SerializeToString(), {"x": zoo.text_image((1, 3, 224, 224))}),
}


def write(name, folder):
    """Writes a network and its input; what describes them."""
    file, call = NETWORKS[name]()
    (folder / f"{name}.onnx").write_bytes(file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    results = dict(zip(names, session.run(names, call)))
    described = {"name": name, "inputs": {}, "outputs": {}}
    for which, arrays in (("inputs", call), ("outputs", results)):
        for number, (of, array) in enumerate(arrays.items()):
            file = f"{name}.{which}{number}.bin"
            (folder / file).write_bytes(np.ascontiguousarray(array).tobytes())
            described[which][of] = {"file": file, "dtype": str(array.dtype), "shape": list(array.shape)}
    (folder / f"{name}.json").write_text(json.dumps(described))
    return described
