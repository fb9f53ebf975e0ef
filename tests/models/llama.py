"""A LLaMA-shaped decoder as an ONNX file with random weights, in the operators that exporters write.

Rotary positions, keys and values shared by groups of heads, gated layers, and a cache of keys and values: inputs are tokens and, for each
layer, the cache; outputs are the logits of all tokens and the longer caches. Batch, the number of tokens and the cache's length are
symbolic; places and the mask are computed in the graph.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, WIDTH, HIDDEN, LAYERS, HEADS, KV_HEADS, LONGEST = 256, 128, 352, 3, 8, 2, 256
HEAD = WIDTH // HEADS


class Decoder:
    """Nodes and weights as they come."""

    def __init__(self, seed):
        self.rng, self.nodes, self.weights = np.random.default_rng(seed), [], []

    def constant(self, value, dtype="int64"):
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(np.asarray(value, dtype)), name))
        return name

    def matrix(self, rows, columns):
        return self.constant(self.rng.standard_normal((rows, columns)) / np.sqrt(rows), "float32")

    def add(self, op, *inputs, outputs=None, **attributes):
        outputs = outputs or [f"{op.lower()}{len(self.nodes)}"]
        self.nodes.append(helper.make_node(op, inputs, outputs, **attributes))
        return outputs[0]

    def length(self, x, axis):
        return self.add("Squeeze", self.add("Shape", x, start=axis, end=axis + 1), self.constant([0]))

    def norm(self, x):
        squares = self.add("ReduceMean", self.add("Mul", x, x), self.constant([-1]), keepdims=1)
        root = self.add("Sqrt", self.add("Add", squares, self.constant(1e-5, "float32")))
        return self.add("Mul", self.add("Div", x, root), self.constant(self.rng.uniform(0.5, 1.5, WIDTH), "float32"))

    def project(self, x, columns):
        return self.add("MatMul", x, self.matrix(WIDTH, columns))

    def split(self, x, heads):
        """Batch × tokens × (heads · size) to batch × heads × tokens × size."""
        return self.add("Transpose", self.add("Reshape", x, self.constant([0, 0, heads, HEAD])), perm=[0, 2, 1, 3])

    def rotate(self, x, turn):
        half, zero, last = (self.constant([n]) for n in (HEAD // 2, 0, HEAD))
        axis = self.constant([3])
        first, second = self.add("Slice", x, zero, half, axis), self.add("Slice", x, half, last, axis)
        turned = self.add("Concat", self.add("Neg", second), first, axis=3)
        return self.add("Add", self.add("Mul", x, turn[0]), self.add("Mul", turned, turn[1]))

    def repeat(self, x):
        """Each head of keys or values for all heads of its group."""
        group, axis = HEADS // KV_HEADS, self.constant([2])
        wide = self.add("Unsqueeze", x, axis)
        batch, total = self.add("Shape", x, start=0, end=1), self.add("Shape", x, start=2, end=3)
        shape = self.add("Concat", batch, self.constant([KV_HEADS, group]), total, self.constant([HEAD]), axis=0)
        wide = self.add("Expand", wide, shape)
        return self.add("Reshape", wide, self.add("Concat", batch, self.constant([HEADS]), total, self.constant([HEAD]), axis=0))

    def attend(self, x, layer, mask, turn):
        query = self.rotate(self.split(self.project(x, WIDTH), HEADS), turn)
        key = self.rotate(self.split(self.project(x, KV_HEADS * HEAD), KV_HEADS), turn)
        value = self.split(self.project(x, KV_HEADS * HEAD), KV_HEADS)
        keys = self.add("Concat", f"past_key{layer}", key, outputs=[f"key{layer}"], axis=2)
        values = self.add("Concat", f"past_value{layer}", value, outputs=[f"value{layer}"], axis=2)
        scores = self.add("MatMul", query, self.add("Transpose", self.repeat(keys), perm=[0, 1, 3, 2]))
        scores = self.add("Mul", scores, self.constant(HEAD**-0.5, "float32"))
        shares = self.add("Softmax", self.add("Where", mask, scores, self.constant(-1e30, "float32")), axis=-1)
        context = self.add("Transpose", self.add("MatMul", shares, self.repeat(values)), perm=[0, 2, 1, 3])
        return self.project(self.add("Reshape", context, self.constant([0, 0, WIDTH])), WIDTH)

    def feed(self, x):
        gate, up = self.project(x, HIDDEN), self.project(x, HIDDEN)
        gated = self.add("Mul", self.add("Mul", gate, self.add("Sigmoid", gate)), up)
        return self.add("MatMul", gated, self.matrix(HIDDEN, WIDTH))


def build(seed=4):
    """The model."""
    d = Decoder(seed)
    angles = np.outer(np.arange(LONGEST), 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD))
    angles = np.concatenate([angles, angles], axis=1)
    past = d.length("past_key0", 2)
    total, one = d.add("Add", past, d.length("tokens", 1)), d.constant(1)
    places = d.add("Range", past, total, one)
    turn = [d.add("Gather", d.constant(table(angles), "float32"), places) for table in (np.cos, np.sin)]
    before = d.add("Range", d.constant(0), total, one)
    mask = d.add("LessOrEqual", before, d.add("Unsqueeze", places, d.constant([1])))
    x = d.add("Gather", d.matrix(VOCABULARY, WIDTH), "tokens")
    for layer in range(LAYERS):
        x = d.add("Add", x, d.attend(d.norm(x), layer, mask, turn))
        x = d.add("Add", x, d.feed(d.norm(x)))
    d.add("MatMul", d.norm(x), d.matrix(WIDTH, VOCABULARY), outputs=["logits"])
    caches = [f"{part}{layer}" for layer in range(LAYERS) for part in ("key", "value")]
    info, real = helper.make_tensor_value_info, TensorProto.FLOAT
    inputs = [info("tokens", TensorProto.INT64, ["n", "tokens"])]
    inputs += [info(f"past_{name}", real, ["n", KV_HEADS, "past", HEAD]) for name in caches]
    outputs = [info("logits", real, ["n", "tokens", VOCABULARY])]
    outputs += [info(name, real, ["n", KV_HEADS, "total", HEAD]) for name in caches]
    graph = helper.make_graph(d.nodes, "llama", inputs, outputs, d.weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], producer_name="relaxide-tests", ir_version=8)
    onnx.checker.check_model(model)
    return model


def feeds():
    """A prompt, one more token, and tokens of several texts behind long caches."""
    rng, made = np.random.default_rng(0), []
    for batch, tokens, past in ((1, 12, 0), (1, 1, 12), (3, 5, 40)):
        cache = (batch, KV_HEADS, past, HEAD)
        feed = {"tokens": rng.integers(0, VOCABULARY, (batch, tokens))}
        for layer in range(LAYERS):
            feed |= {f"past_{part}{layer}": rng.standard_normal(cache).astype("float32") for part in ("key", "value")}
        made.append(feed)
    return made
