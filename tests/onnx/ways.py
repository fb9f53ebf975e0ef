"""One call of an operator, compiled in different ways: all must give the same numbers.

The *ways*: arguments as constants of the model (folded by the compiler), with fixed lengths, with all lengths named, in the
branch of an `If`, and behind and in front of products with one, with which it is fused. The oracles are ONNX Runtime and
ONNX's reference evaluator.
"""

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

TYPES = {np.dtype("f4"): T.FLOAT, np.dtype("f8"): T.DOUBLE, np.dtype("i8"): T.INT64, np.dtype("i4"): T.INT32,
         np.dtype("u1"): T.UINT8, np.dtype("i1"): T.INT8, np.dtype("u8"): T.UINT64, np.dtype("bool"): T.BOOL,
         np.dtype("i2"): T.INT16, np.dtype("u2"): T.UINT16, np.dtype("u4"): T.UINT32, np.dtype("f2"): T.FLOAT16}
WAYS = ["folded", "fixed", "named", "branch", "fused"]


#: Inputs whose lengths decide what a program is: the rank of what a list of bounds or places makes, the steps of an
#: elimination, the parts of a number, the size of a head.
FIXED = {"Slice": (1, 2, 3, 4), "GatherND": (1,), "ScatterND": (1,), "Det": (0,), "DFT": (0,),
         "STFT": (0,), "Attention": (0, 1, 2, 3)}


class Call:
    """An operator with attributes; its inputs, `None` where one is left out; those that stay constants of the model (shapes, axes) by
    position; how many outputs it has."""

    def __init__(self, op, inputs, constants=(), opset=18, outputs=1, **attributes):
        self.op, self.attributes, self.opset, self.outputs = op, attributes, opset, outputs
        self.inputs = [None if x is None else np.asarray(x) for x in inputs]
        self.constants = set(constants)

    def __str__(self):
        inputs = ", ".join("-" if x is None else f"{x.dtype}{list(x.shape)}{x.tolist() if x.size <= 12 else ''}" for x in self.inputs)
        return f"{self.op}({inputs}; {self.attributes})"

    def model(self, way, lists=False):
        """The model of the call made in one way, and the inputs that it takes. With `lists`, lengths of lists of bounds have names too."""
        names = ["" if x is None else f"x{i}" for i, x in enumerate(self.inputs)]
        present = [i for i, name in enumerate(names) if name]
        fixed = present if way == "folded" else self.constants
        weights = [nh.from_array(self.inputs[i], names[i]) for i in fixed]
        given = [i for i in present if i not in fixed]

        def dims(i):
            named = way == "named" and (lists or i not in FIXED.get(self.op, ()))
            return [f"d{i}_{a}" for a in range(self.inputs[i].ndim)] if named else self.inputs[i].shape

        infos = [h.make_tensor_value_info(names[i], TYPES[self.inputs[i].dtype], dims(i)) for i in given]
        nodes, args = [], list(names)
        outs = [f"y{i}" for i in range(self.outputs)]
        inner = [f"core{i}" for i in range(self.outputs)] if way in ("branch", "fused") else outs
        untyped = lambda names: [h.make_tensor_value_info(name, T.UNDEFINED, None) for name in names]  # noqa: E731
        if way == "fused":
            for i in given:
                if self.inputs[i].dtype.kind in "fiu":
                    weights.append(nh.from_array(np.ones((), self.inputs[i].dtype), f"one{i}"))
                    nodes.append(h.make_node("Mul", [names[i], f"one{i}"], [f"m{i}"]))
                    args[i] = f"m{i}"
        node = h.make_node(self.op, args, inner, **self.attributes)
        if way == "branch":
            infos.append(h.make_tensor_value_info("c", T.BOOL, []))
            branch = h.make_graph([node], "then", [], untyped(inner))
            others = [f"other{i}" for i in range(self.outputs)]
            other = h.make_graph([h.make_node(self.op, args, others, **self.attributes)], "else", [], untyped(others))
            nodes.append(h.make_node("If", ["c"], outs, then_branch=branch, else_branch=other))
        else:
            nodes.append(node)
            if way == "fused":
                nodes += [h.make_node("Identity", [core], [out]) for core, out in zip(inner, outs)]
        graph = h.make_graph(nodes, "g", infos, untyped(outs), weights)
        model = h.make_model(graph, opset_imports=[h.make_opsetid("", self.opset)], ir_version=8)
        feeds = {names[i]: self.inputs[i] for i in given}
        if way == "branch":
            feeds["c"] = np.array(True)
        return model, feeds


SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 3e38, -1.0, 1.0, 0.5]
INTEGERS = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1, -1, 7]


def values(rng, shape, dtype="f4", special=True):
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        x = rng.standard_normal(shape).astype(dtype)
        pool = SPECIAL
    elif dtype.kind == "b":
        return rng.random(shape) < 0.5
    else:
        x = rng.integers(-9 if dtype.kind == "i" else 0, 10, shape).astype(dtype)
        limits = np.iinfo(dtype)
        pool = [v for v in INTEGERS if limits.min <= v <= limits.max] + [limits.max, limits.min]
    if special and x.size and rng.random() < 0.6:
        for _ in range(rng.integers(1, 4)):
            x.flat[rng.integers(x.size)] = pool[rng.integers(len(pool))]
    return x


def _shape(rng, rank, least=0):
    return [int(v) for v in rng.choice([least, 1, 1, 2, 3, 5, 9], rank)]


def _pair(rng):
    """Two shapes that broadcast."""
    rank = int(rng.integers(0, 4))
    a = _shape(rng, rank, 1)
    b = [n if rng.random() < 0.6 else 1 for n in a][int(rng.integers(0, rank + 1)):]
    a = [n if rng.random() < 0.8 else 1 for n in a]
    return (a, b) if rng.random() < 0.5 else (b, a)


def unary(rng):
    op = str(rng.choice(["Relu", "Sign", "Abs", "Neg", "Elu", "Selu", "Celu", "HardSigmoid", "LeakyRelu", "Identity", "Floor", "Round"]))
    return Call(op, [values(rng, _shape(rng, int(rng.integers(0, 4))))])


def extremes(rng):
    dtype = str(rng.choice(["f4", "f8", "i8", "i4", "u8"]))
    a, b = _pair(rng)
    return Call(str(rng.choice(["Max", "Min"])), [values(rng, a, dtype), values(rng, b, dtype)])


def clip(rng):
    dtype = str(rng.choice(["f4", "i8", "u8", "i4"]))
    x = values(rng, _shape(rng, 2), dtype)
    low, high = np.sort(values(rng, [2], dtype, special=dtype != "f4"))
    return Call("Clip", [x, low, high], [1, 2] if rng.random() < 0.5 else [])


def arithmetic(rng):
    dtype = str(rng.choice(["i8", "i4", "u1", "i1", "f4", "u8"]))
    a, b = _pair(rng)
    return Call(str(rng.choice(["Add", "Sub", "Mul"])), [values(rng, a, dtype), values(rng, b, dtype)],
                [1] if rng.random() < 0.3 else [])


def power(rng):
    dtype = str(rng.choice(["i8", "i4"]))
    exponent = str(rng.choice(["i8", "i4", "f4"]))
    a, b = _pair(rng)
    e = rng.integers(0, 6, b).astype(exponent) if exponent != "f4" else rng.choice([0.5, 1.5, 2, 3], b).astype("f4")
    return Call("Pow", [rng.integers(0, 9, a).astype(dtype), e])


def reduction(rng):
    op = str(rng.choice(["ReduceMax", "ReduceMin", "ReduceSum"]))
    rank = int(rng.integers(1, 4))
    axes = np.unique(rng.integers(0, rank, int(rng.integers(1, rank + 1))))
    x = values(rng, _shape(rng, rank, 1))
    if op == "ReduceSum":
        x = rng.integers(-5, 6, x.shape).astype("f4")
    return Call(op, [x, axes], [1], keepdims=int(rng.integers(0, 2)))


def arg(rng):
    x = values(rng, _shape(rng, 2, 1), "f4")
    return Call(str(rng.choice(["ArgMax", "ArgMin"])), [np.where(np.isnan(x), np.float32(3), x)], axis=int(rng.integers(0, 2)))


def slices(rng):
    shape = _shape(rng, 2)
    bound = lambda: rng.integers(-11, 12, 2)  # noqa: E731
    steps = rng.choice([1, 1, 2, 3, -1, -2], 2)
    constants = [1, 2, 3, 4] if rng.random() < 0.7 else [3]
    return Call("Slice", [values(rng, shape), bound(), bound(), np.array([0, 1]), steps], constants)


def concat(rng):
    shape, axis = _shape(rng, 2), int(rng.integers(0, 2))
    dtype = str(rng.choice(["f4", "i8"]))
    parts = []
    for _ in range(int(rng.integers(1, 4))):
        shape[axis] = int(rng.integers(0, 5))
        parts.append(values(rng, shape, dtype))
    return Call("Concat", parts, axis=axis)


def expand(rng):
    a, b = _pair(rng)
    return Call("Expand", [values(rng, a), np.array(b, "i8")], [1])


def matmul(rng):
    a, b = _pair(rng)
    n, k, m = (int(v) for v in rng.integers(1, 5, 3))
    whole = lambda shape: rng.integers(-4, 5, shape).astype("f4")  # noqa: E731
    return Call("MatMul", [whole(a + [n, k]), whole(b + [k, m])])


def einsum(rng):
    n, k, m, b = (int(v) for v in rng.choice([1, 2, 3], 4))
    whole = lambda *shape: rng.integers(-4, 5, shape).astype("f4")  # noqa: E731
    return [lambda: Call("Einsum", [whole(n, k), whole(k, m)], equation="ij,jk->ik"),
            lambda: Call("Einsum", [whole(b, n, k), whole(b, k, m)], equation="bij,bjk->bik"),
            lambda: Call("Einsum", [whole(b, n), whole(b, n)], equation="bj,bj->b"),
            lambda: Call("Einsum", [whole(b, 1, n, k), whole(b, m, k, n)], equation="...ij,...jk->...ik")][int(rng.integers(4))]()


def gather(rng):
    shape, axis = _shape(rng, 2, 1), int(rng.integers(0, 2))
    i = rng.integers(-shape[axis], shape[axis], _shape(rng, int(rng.integers(0, 3))))
    return Call("Gather", [values(rng, shape), i], axis=axis)


def prelu(rng):
    shape = _shape(rng, 2, 1)
    slope = [n if rng.random() < 0.6 else 1 for n in shape][int(rng.integers(0, 2)):]
    return Call("PRelu", [values(rng, shape), values(rng, slope, special=False)])


def pad(rng):
    shape = _shape(rng, 2, 1)
    dtype = str(rng.choice(["f4", "i8"]))
    return Call("Pad", [values(rng, shape, dtype), rng.integers(0, 4, 4), values(rng, [], dtype)], [1, 2])


def range_(rng):
    start, limit, step = (int(v) for v in (rng.integers(-5, 6), rng.integers(-5, 20), rng.choice([1, 2, -1, -3, 5])))
    big = 2**53 if rng.random() < 0.3 else 0
    return Call("Range", [np.array(start + big), np.array(limit + big), np.array(step)])


def where(rng):
    a, b = _pair(rng)
    return Call("Where", [values(rng, a, "bool"), values(rng, b, "i8"), values(rng, a, "i8")])


def resize(rng):
    shape = [1, *_shape(rng, 2, 1), int(rng.integers(1, 4))]
    sizes = [1, *(int(v) for v in rng.integers(1, 9, 2)), shape[3]]
    return Call("Resize", [values(rng, shape, special=False), np.zeros(0, "f4"), np.zeros(0, "f4"), np.array(sizes)], [1, 2, 3],
                mode=str(rng.choice(["linear", "nearest"])))


MAKERS = [unary, extremes, clip, arithmetic, power, reduction, arg, slices, concat, expand, matmul, einsum, gather, prelu, pad,
          range_, where, resize]


def oracle(call):
    """What says the answer to inputs by name, a list of arrays: ONNX Runtime, else ONNX's reference evaluator; it gives `None` where both refuse."""
    import onnxruntime
    from onnx.reference import ReferenceEvaluator

    model = call.model("fixed")[0]
    try:
        evaluator = ReferenceEvaluator(model)
    except Exception:
        # It has no rule for the operator.
        evaluator = None
    untyped = onnx.ModelProto()
    untyped.CopyFrom(model)
    for output in untyped.graph.output:
        output.ClearField("type")
    try:
        inferred = onnx.shape_inference.infer_shapes(untyped)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        # Its optimizer rewrites some of what is compared.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(inferred.SerializeToString(), options)
    except Exception:
        session = None

    def answer(feeds):
        try:
            if session is not None:
                return session.run(None, feeds)
        except Exception:
            pass
        try:
            with np.errstate(all="ignore"):
                return [np.asarray(output) for output in evaluator.run(None, feeds)]
        except Exception:
            return None

    return answer


def mixed(rng, feeds):
    """The same inputs with their elements in another order."""
    return {name: rng.permutation(x.ravel()).reshape(x.shape) for name, x in feeds.items()}


def close(got, want):
    """Whether two results are equal: bit for bit but for floats, of which the last digits may differ and one zero is the other."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return False
    if got.dtype.kind != "f":
        return np.array_equal(got, want)
    with np.errstate(all="ignore"):
        return np.allclose(got, want, rtol=1e-5, atol=1e-6, equal_nan=True)
