"""Random ONNX graphs: nodes of many kinds behind and beside each other, with values that several of them use.

:class:`Graph` draws one from a seed. Each kind of node knows which of the values so far it can take, and the shape and the type of
what it gives; numbers are small multiples of a quarter where they can be, so that functions with steps do not depend on rounding.
Dimensions of inputs are fixed or named; equal ones share a name half of the time.
"""

import math

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOATS = {"f4": TensorProto.FLOAT, "f8": TensorProto.DOUBLE, "f2": TensorProto.FLOAT16}
INTEGERS = {"i8": TensorProto.INT64, "i4": TensorProto.INT32, "u1": TensorProto.UINT8, "i1": TensorProto.INT8}
TYPES = {**FLOATS, **INTEGERS, "b1": TensorProto.BOOL}
MOST_ELEMENTS = 4096


class Tensor:
    """A value of the graph. `exact` says that its numbers are few bits long, `small` that they are of moderate size."""

    def __init__(self, name, dtype, shape, exact=False, small=False):
        self.name, self.dtype, self.shape = name, dtype, tuple(shape)
        self.exact, self.small = exact, small

    @property
    def rank(self):
        return len(self.shape)

    @property
    def size(self):
        return math.prod(self.shape)


class Graph:
    """A random graph with what it is called with."""

    def __init__(self, seed, nodes=10, named=None, kinds=None):
        self.random = np.random.default_rng(seed)
        self.nodes, self.values, self.weights, self.inputs, self.feeds = [], [], [], [], {}
        self.named = self.random.random() < 0.5 if named is None else named
        self.names = {}
        for _ in range(self.pick([1, 2, 2, 3])):
            self.input()
        kinds = [kind for kind in KINDS if kinds is None or kind.__name__ in kinds]
        tries = 0
        while len(self.nodes) < nodes and tries < 60 * nodes:
            tries += 1
            kind = self.pick(kinds)
            kind(self)

    # Draws.
    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def chance(self, part):
        return self.random.random() < part

    def below(self, n):
        return int(self.random.integers(n))

    def numbers(self, dtype, shape):
        """Numbers of few bits."""
        if dtype == "b1":
            drawn = self.random.integers(0, 2, shape)
        elif dtype in FLOATS:
            drawn = self.random.integers(-12, 13, shape) / 4
        else:
            drawn = self.random.integers(0 if dtype == "u1" else -9, 10, shape)
        return np.asarray(drawn).astype("?" if dtype == "b1" else dtype)

    def shape(self):
        rank = self.pick([0, 1, 2, 2, 3, 3, 4, 4])
        lengths = [0] if self.chance(0.02) else [1, 1, 2, 3, 4, 5, 7, 8, 16]
        return tuple(self.pick([1, 2, 3, 4, 5, 7, 8, 16] if self.chance(0.9) else lengths) for _ in range(rank))

    # Values.
    def input(self, dtype=None, shape=None):
        dtype = dtype or self.pick(["f4", "f4", "f4", "f4", "f8", "f2", "i8", "i4", "u1", "i1", "b1"])
        shape = self.shape() if shape is None else shape
        name = f"x{len(self.inputs)}"
        dims = [self.dim(name, axis, n) for axis, n in enumerate(shape)]
        self.inputs.append(helper.make_tensor_value_info(name, TYPES[dtype], dims))
        self.feeds[name] = self.numbers(dtype, shape)
        return self.add(Tensor(name, dtype, shape, True, True))

    def dim(self, name, axis, length):
        if not self.named:
            return length
        if length not in self.names or self.chance(0.5):
            self.names[length] = f"{name}_{axis}"
        return self.names[length]

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def operand(self, dtype, shape, values=None):
        """A weight, or an input where that is drawn."""
        array = self.numbers(dtype, shape) if values is None else np.asarray(values)
        if self.chance(0.7):
            return self.weight(array)
        name = f"x{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.feeds[name] = array
        return name

    def add(self, value):
        self.values.append(value)
        return value

    def node(self, op, inputs, outs, **attrs):
        """Adds a node; `outs` are (type, shape, exact, small) of what it gives. `None` where that is too large, or an input is."""
        if any(i is None for i in inputs) or any(math.prod(shape) > MOST_ELEMENTS for _, shape, *_ in outs):
            return None
        names = [f"v{len(self.nodes)}_{i}" for i in range(len(outs))]
        inputs = [i.name if isinstance(i, Tensor) else i for i in inputs]
        self.nodes.append(helper.make_node(op, inputs, names, **attrs))
        made = [self.add(Tensor(name, *out)) for name, out in zip(names, outs)]
        return made[0]

    def value(self, types=None, least=0, most=9, accept=lambda v: True):
        """A value so far, later ones more often; `None` where none fits."""
        fits = [v for v in self.values if (types is None or v.dtype in types) and least <= v.rank <= most and accept(v)]
        if not fits:
            return None
        return fits[max(self.below(len(fits)), self.below(len(fits)))]

    def model(self):
        used = {name for node in self.nodes for name in node.input}
        ends = [v for v in self.values if v.name not in used or self.chance(0.2)]
        ends = [v for v in ends if v.name.startswith("v")] or self.values[-1:]
        outputs = [helper.make_tensor_value_info(v.name, TYPES[v.dtype], [None] * v.rank) for v in ends]
        graph = helper.make_graph(self.nodes, "random", self.inputs, outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        return model


KINDS = []


def kind(weight=1):
    """Notes a kind of node, which is drawn `weight` times as often as others."""

    def note(function):
        KINDS.extend([function] * weight)
        return function

    return note


def broadcast(a, b):
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


@kind(4)
def unary(g):
    x = g.value(FLOATS, accept=lambda v: v.small)
    if x is None:
        return
    steps = ["Floor", "Ceil", "Round", "Sign"] if x.exact else []
    op = g.pick(["Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Sin", "Cos", "Erf", "LeakyRelu", "Elu", "HardSigmoid", "Softplus",
                 "Softsign", "Selu", "HardSwish", "Identity", *steps])
    if x.dtype != "f4" and op not in {"Abs", "Neg", "Relu", "Tanh", "Sigmoid", "Identity", "Floor", "Ceil", "Round", "Sign"}:
        return
    keeps = op in {"Abs", "Neg", "Relu", "Identity", *steps}
    g.node(op, [x], [(x.dtype, x.shape, x.exact and keeps, True)])


@kind()
def whole_unary(g):
    x = g.value({"i8", "i4", "i1"})
    if x is not None:
        g.node(g.pick(["Abs", "Neg", "Sign"]), [x], [(x.dtype, x.shape, True, x.small)])


@kind(4)
def binary(g):
    x = g.value({"f4", "f8", "f2", "i8", "i4"}, accept=lambda v: v.small)
    if x is None:
        return
    y = g.value({x.dtype}, accept=lambda v: v.small and broadcast(v.shape, x.shape) is not None)
    y = y if y is not None and g.chance(0.7) else Tensor(g.operand(x.dtype, x.shape[g.below(x.rank + 1):]), x.dtype, ())
    shape = broadcast(x.shape, y.shape) if y.name.startswith(("v", "x")) and y in g.values else x.shape
    op = g.pick(["Add", "Sub", "Mul", "Max", "Min"])
    exact = x.exact and (op in {"Max", "Min"}) and y.exact
    pair = [x, y] if g.chance(0.5) else [y, x]
    g.node(op, pair, [(x.dtype, shape, exact, op in {"Max", "Min"} or x.dtype in FLOATS and op != "Mul" or len(g.nodes) < 5)])


@kind()
def divide(g):
    x = g.value({"f4", "f8"}, accept=lambda v: v.small)
    if x is not None:
        by = g.operand(x.dtype, (), np.array(g.pick([0.5, 2, -4, 3]), x.dtype))
        g.node("Div", [x, by], [(x.dtype, x.shape, False, True)])


@kind()
def whole_divide(g):
    x = g.value({"i8", "i4"})
    if x is not None:
        by = g.operand(x.dtype, (), np.array(g.pick([1, 2, -3, 5]), x.dtype))
        attrs = {"fmod": int(g.chance(0.3))} if (op := g.pick(["Div", "Mod"])) == "Mod" else {}
        g.node(op, [x, by], [(x.dtype, x.shape, True, True)], **attrs)


@kind(2)
def compare(g):
    x = g.value({"f4", "f8", "i8", "i4"}, accept=lambda v: v.exact)
    if x is not None:
        op = g.pick(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])
        g.node(op, [x, g.operand(x.dtype, x.shape[g.below(x.rank + 1):])], [("b1", x.shape, True, True)])


@kind()
def logic(g):
    x = g.value({"b1"})
    if x is None:
        return
    y = g.value({"b1"}, accept=lambda v: broadcast(v.shape, x.shape) is not None)
    if g.chance(0.3):
        g.node("Not", [x], [("b1", x.shape, True, True)])
    else:
        g.node(g.pick(["And", "Or", "Xor"]), [x, y], [("b1", broadcast(x.shape, y.shape), True, True)])


@kind(2)
def where(g):
    c, x = g.value({"b1"}), g.value({"f4", "f8", "i8", "i4", "u1", "f2"})
    if c is None or x is None or (shape := broadcast(c.shape, x.shape)) is None:
        return
    y = g.value({x.dtype}, accept=lambda v: broadcast(v.shape, shape) is not None)
    g.node("Where", [c, x, y], [(x.dtype, broadcast(shape, y.shape), x.exact and y.exact, x.small and y.small)])


@kind(3)
def reduce(g):
    x = g.value({"f4", "f8", "i8", "i4"}, least=1, accept=lambda v: v.small and v.size)
    if x is None:
        return
    op = g.pick(["Sum", "Mean", "Max", "Min", "Max", "Sum"] + (["L1", "L2", "SumSquare", "LogSumExp", "Prod"] if x.dtype == "f4" else []))
    if op == "Mean" and x.dtype in INTEGERS:
        return
    axes = sorted(set(g.below(x.rank) for _ in range(1 + g.below(x.rank))))
    keep = g.chance(0.5)
    shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
    if g.chance(0.3):
        axes = [a - x.rank for a in axes]
    exact = x.exact and op in {"Max", "Min"}
    out = (x.dtype, shape, exact, op in {"Max", "Min", "Mean", "LogSumExp"})
    g.node(f"Reduce{op}", [x, g.weight(np.array(axes))], [out], keepdims=int(keep))


@kind()
def arg(g):
    x = g.value({"f4", "i4", "f8"}, least=1, accept=lambda v: v.exact and v.size)
    if x is None:
        return
    axis, keep = g.below(x.rank), g.chance(0.5)
    shape = [1 if i == axis else n for i, n in enumerate(x.shape) if keep or i != axis]
    g.node(g.pick(["ArgMax", "ArgMin"]), [x], [("i8", shape, True, True)], axis=axis, keepdims=int(keep),
           select_last_index=int(g.chance(0.3)))


@kind(2)
def softmax(g):
    x = g.value({"f4", "f8"}, least=1, accept=lambda v: v.small)
    if x is not None:
        g.node(g.pick(["Softmax", "LogSoftmax"]), [x], [(x.dtype, x.shape, False, True)], axis=g.below(x.rank))


@kind()
def layer_norm(g):
    x = g.value({"f4"}, least=1, accept=lambda v: v.small and v.shape[-1] > 2)
    if x is not None:
        axis = g.below(x.rank)
        scale = g.weight(g.numbers("f4", x.shape[axis:]))
        g.node("LayerNormalization", [x, scale], [(x.dtype, x.shape, False, True)], axis=axis, epsilon=0.1)


@kind(3)
def transpose(g):
    x = g.value(least=2)
    if x is not None:
        order = [int(i) for i in g.random.permutation(x.rank)]
        g.node("Transpose", [x], [(x.dtype, [x.shape[i] for i in order], x.exact, x.small)], perm=order)


@kind(3)
def reshape(g):
    x = g.value(accept=lambda v: v.size > 0)
    if x is None:
        return
    rest, shape = x.size, []
    while rest > 1 and len(shape) < 4:
        factors = [d for d in range(1, rest + 1) if rest % d == 0]
        shape.append(g.pick(factors) if len(shape) < 3 else rest)
        rest //= shape[-1]
    shape = shape + ([rest] if rest > 1 else []) or [1]
    given = list(shape)
    if g.chance(0.5):
        given[g.below(len(given))] = -1
    g.node("Reshape", [x, g.weight(np.array(given))], [(x.dtype, shape, x.exact, x.small)])


@kind()
def unsqueeze(g):
    x = g.value(most=3)
    if x is not None:
        at = g.below(x.rank + 1)
        axis = at if g.chance(0.5) else at - x.rank - 1
        g.node("Unsqueeze", [x, g.weight(np.array([axis]))], [(x.dtype, x.shape[:at] + (1,) + x.shape[at:], x.exact, x.small)])


@kind()
def squeeze(g):
    x = g.value(accept=lambda v: 1 in v.shape)
    if x is not None:
        at = g.pick([i for i, n in enumerate(x.shape) if n == 1])
        g.node("Squeeze", [x, g.weight(np.array([at]))], [(x.dtype, x.shape[:at] + x.shape[at + 1:], x.exact, x.small)])


@kind()
def flatten(g):
    x = g.value(least=1)
    if x is not None:
        axis = g.below(x.rank + 1)
        g.node("Flatten", [x], [(x.dtype, [math.prod(x.shape[:axis]), math.prod(x.shape[axis:])], x.exact, x.small)], axis=axis)


@kind(3)
def concat(g):
    x = g.value(least=1)
    if x is None:
        return
    axis = g.below(x.rank)
    alike = lambda v: v.rank == x.rank and all(i == axis or a == b for i, (a, b) in enumerate(zip(v.shape, x.shape)))
    parts = [x] + [g.value({x.dtype}, accept=alike) for _ in range(1 + g.below(3))]
    shape = list(x.shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    g.node("Concat", parts, [(x.dtype, shape, all(p.exact for p in parts), all(p.small for p in parts))],
           axis=axis if g.chance(0.5) else axis - x.rank)


@kind(2)
def split(g):
    x = g.value(least=1, accept=lambda v: max(v.shape) > 1)
    if x is None:
        return
    axis = g.pick([i for i, n in enumerate(x.shape) if n > 1])
    first = 1 + g.below(x.shape[axis] - 1)
    parts = [first, x.shape[axis] - first]
    outs = [(x.dtype, [n if i != axis else part for i, n in enumerate(x.shape)], x.exact, x.small) for part in parts]
    g.node("Split", [x, g.weight(np.array(parts))], outs, axis=axis)


@kind(3)
def slice_(g):
    x = g.value(least=1, accept=lambda v: v.size)
    if x is None:
        return
    axes = sorted(set(g.below(x.rank) for _ in range(1 + g.below(2))))
    shape, starts, ends, steps = list(x.shape), [], [], []
    for axis in axes:
        n = x.shape[axis]
        step = g.pick([1, 1, 1, 2, 3, -1, -2])
        start, end = g.below(2 * n + 2) - n - 1, g.pick([g.below(2 * n + 2) - n - 1, 2**31 - 1 if step > 0 else -(2**31)])
        shape[axis] = len(range(n)[slice(start, end, step)])
        if not shape[axis] and g.chance(0.9):
            return
        starts.append(start), ends.append(end), steps.append(step)
    give = g.operand if g.chance(0.3) else lambda dtype, shape, values: g.weight(values)
    arrays = [np.array(a) for a in (starts, ends, axes, steps)]
    names = [give("i8", a.shape, a) for a in arrays[:2]] + [g.weight(a) for a in arrays[2:]]
    g.node("Slice", [x, *names], [(x.dtype, shape, x.exact, x.small)])


@kind(2)
def pad(g):
    x = g.value({"f4", "f8", "i8", "i4", "f2"}, least=1, accept=lambda v: v.size)
    if x is None:
        return
    mode = g.pick(["constant", "constant", "edge", "reflect"])
    most = min(x.shape) - 1 if mode == "reflect" else 2
    low = -min(1, (min(x.shape) - 1) // 2) if mode == "constant" else 0
    if most < low or most < 0:
        return
    widths = g.random.integers(low, most + 1, 2 * x.rank)
    shape = [n + int(widths[i]) + int(widths[i + x.rank]) for i, n in enumerate(x.shape)]
    inputs = [x, g.weight(widths)] + ([g.weight(np.array(1.5).astype(x.dtype))] if g.chance(0.5) else [])
    g.node("Pad", inputs, [(x.dtype, shape, x.exact, x.small)], mode=mode)


@kind()
def expand(g):
    x = g.value(most=3, accept=lambda v: v.size)
    if x is not None:
        shape = [g.pick([1, 2, 3])] * g.below(2) + [n if n != 1 else g.pick([1, 2, 5]) for n in x.shape]
        g.node("Expand", [x, g.weight(np.array(shape, "i8"))], [(x.dtype, shape, x.exact, x.small)])


@kind()
def tile(g):
    x = g.value({"f4", "i8", "b1", "f8"}, least=1)
    if x is not None:
        times = [g.pick([1, 1, 2, 3]) for _ in x.shape]
        g.node("Tile", [x, g.weight(np.array(times))], [(x.dtype, [n * t for n, t in zip(x.shape, times)], x.exact, x.small)])


@kind(2)
def gather(g):
    x = g.value(least=1, accept=lambda v: v.size)
    if x is None:
        return
    axis = g.below(x.rank)
    own = g.shape()[:2]
    index = g.random.integers(-x.shape[axis], x.shape[axis], own)
    g.node("Gather", [x, g.operand("i8", own, index)], [(x.dtype, x.shape[:axis] + own + x.shape[axis + 1:], x.exact, x.small)], axis=axis)


@kind()
def gather_elements(g):
    x = g.value({"f4", "i8", "i4", "f8"}, least=1, accept=lambda v: v.size)
    if x is None:
        return
    axis = g.below(x.rank)
    own = tuple(n if i != axis else 1 + g.below(4) for i, n in enumerate(x.shape))
    index = g.random.integers(-x.shape[axis], x.shape[axis], own)
    g.node("GatherElements", [x, g.operand("i8", own, index)], [(x.dtype, own, x.exact, x.small)], axis=axis)


@kind()
def scatter_elements(g):
    x = g.value({"f4", "i8", "i4"}, least=1, accept=lambda v: v.size)
    if x is None:
        return
    axis = g.below(x.rank)
    own = tuple(1 + g.below(n) for n in x.shape)
    order = np.argsort(g.random.random(own[:axis] + (x.shape[axis],) + own[axis + 1:]), axis)
    index = np.take(order, range(own[axis]), axis)
    g.node("ScatterElements", [x, g.operand("i8", own, index), g.operand(x.dtype, own)], [(x.dtype, x.shape, x.exact, x.small)], axis=axis)


@kind()
def trilu(g):
    x = g.value({"f4", "i8", "b1", "f8"}, least=2)
    if x is not None:
        g.node("Trilu", [x, g.weight(np.array(g.below(5) - 2))], [(x.dtype, x.shape, x.exact, x.small)], upper=g.below(2))


@kind(2)
def cast(g):
    x = g.value(accept=lambda v: v.exact and v.small)
    if x is not None:
        to = g.pick(list(TYPES)) if x.dtype not in FLOATS else g.pick(["f4", "f8", "f2", "i8", "i4", "b1"])
        g.node("Cast", [x], [(to, x.shape, True, True)], to=TYPES[to])


@kind()
def clip(g):
    x = g.value({"f4", "f8", "i8", "i4", "f2"})
    if x is not None:
        bounds = [g.operand(x.dtype, (), np.array(v).astype(x.dtype)) for v in (-2, 2)]
        g.node("Clip", [x, *bounds], [(x.dtype, x.shape, x.exact, True)])


@kind()
def cumsum(g):
    x = g.value({"f4", "f8", "i8", "i4"}, least=1, accept=lambda v: v.small)
    if x is not None:
        g.node("CumSum", [x, g.weight(np.array(g.below(x.rank)))], [(x.dtype, x.shape, False, False)],
               exclusive=g.below(2), reverse=g.below(2))


@kind()
def top_k(g):
    x = g.value({"f4", "i8", "f8"}, least=1, accept=lambda v: v.exact and v.size)
    if x is None:
        return
    axis = g.below(x.rank)
    k = 1 + g.below(x.shape[axis])
    shape = [n if i != axis else k for i, n in enumerate(x.shape)]
    g.node("TopK", [x, g.weight(np.array([k]))], [(x.dtype, shape, True, x.small), ("i8", shape, True, True)], axis=axis, largest=g.below(2))


@kind(4)
def matmul(g):
    x = g.value({"f4", "f4", "f8"}, least=1, accept=lambda v: v.small and v.shape[-1] > 0)
    if x is None:
        return
    fits = lambda v: v.rank >= 2 and v.shape[-2] == x.shape[-1] and broadcast(v.shape[:-2], x.shape[:-2]) is not None and v.small
    y = g.value({x.dtype}, accept=fits)
    if y is None or g.chance(0.5):
        own = (x.shape[-1], g.pick([1, 3, 8, 16, 17]))
        name = g.operand(x.dtype, own)
        y = Tensor(name, x.dtype, own)
    shape = broadcast(x.shape[:-2], y.shape[:-2]) + x.shape[-2:-1] + y.shape[-1:]
    g.node("MatMul", [x, y], [(x.dtype, shape, False, len(g.nodes) < 6)])


@kind(2)
def gemm(g):
    x = g.value({"f4"}, least=2, most=2, accept=lambda v: v.small and v.size)
    if x is None:
        return
    a, b = g.below(2), g.below(2)
    rows, inner = x.shape[::-1] if a else x.shape
    columns = g.pick([1, 4, 9, 16])
    w = g.operand("f4", (columns, inner) if b else (inner, columns))
    bias = [g.operand("f4", g.pick([(columns,), (1,), (rows, 1), ()]))] if g.chance(0.6) else []
    g.node("Gemm", [x, w, *bias], [("f4", (rows, columns), False, len(g.nodes) < 6)], transA=a, transB=b, alpha=0.5)


@kind(3)
def conv(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.small and v.size)
    if x is None:
        return
    spatial, channels = x.shape[2:], x.shape[1]
    kernel = [g.pick([k for k in (1, 2, 3) if k <= n + 2]) for n in spatial]
    stride, pads = [g.pick([1, 1, 2]) for _ in spatial], [g.pick([0, 1]) for _ in 2 * spatial]
    out = [(n + pads[i] + pads[i + len(spatial)] - kernel[i]) // stride[i] + 1 for i, n in enumerate(spatial)]
    if any(n + pads[i] + pads[i + len(spatial)] < kernel[i] for i, n in enumerate(spatial)):
        return
    group = g.pick([d for d in range(1, channels + 1) if channels % d == 0])
    features = group * g.pick([1, 2, 4])
    w = g.operand("f4", (features, channels // group, *kernel))
    bias = [g.operand("f4", (features,))] if g.chance(0.5) else []
    g.node("Conv", [x, w, *bias], [("f4", (x.shape[0], features, *out), False, len(g.nodes) < 6)], strides=stride, pads=pads, group=group)


@kind(2)
def pool(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.size)
    if x is None:
        return
    spatial = x.shape[2:]
    if g.chance(0.3):
        g.node(g.pick(["GlobalAveragePool", "GlobalMaxPool"]), [x], [("f4", (*x.shape[:2], *[1] * len(spatial)), False, x.small)])
        return
    kernel = [g.pick([k for k in (1, 2, 3) if k <= n] or [1]) for n in spatial]
    stride = [g.pick([1, 2]) for _ in spatial]
    out = [(n - kernel[i]) // stride[i] + 1 for i, n in enumerate(spatial)]
    op = g.pick(["MaxPool", "AveragePool"])
    g.node(op, [x], [("f4", (*x.shape[:2], *out), x.exact and op == "MaxPool", x.small)], kernel_shape=kernel, strides=stride)


@kind()
def norm(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.small and v.size and math.prod(v.shape[2:]) > 2)
    if x is not None:
        c = (x.shape[1],)
        if g.chance(0.5):
            g.node("InstanceNormalization", [x, g.weight(g.numbers("f4", c)), g.weight(g.numbers("f4", c))],
                   [("f4", x.shape, False, True)], epsilon=0.1)
        else:
            scale = [g.weight(g.numbers("f4", c)) for _ in range(3)] + [g.weight(np.full(c, 2.0, "f4"))]
            g.node("BatchNormalization", [x, *scale], [("f4", x.shape, False, True)])


@kind()
def resize(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.size)
    if x is not None:
        scales = [1, 1] + [g.pick([1, 2, 3]) for _ in x.shape[2:]]
        mode = g.pick(["nearest", "linear"])
        g.node("Resize", [x, "", g.weight(np.array(scales, "f4"))],
               [("f4", [int(n * s) for n, s in zip(x.shape, scales)], x.exact and mode == "nearest", x.small)], mode=mode,
               coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@kind()
def lengths(g):
    """A reshape to what the lengths of a value say."""
    x = g.value(least=2, accept=lambda v: v.size)
    if x is None:
        return
    shape = g.node("Shape", [x], [("i8", (x.rank,), True, True)])
    g.values.pop()
    picked = g.node("Gather", [shape, g.weight(np.array([0]))], [("i8", (1,), True, True)])
    g.values.pop()
    joined = g.node("Concat", [picked, g.weight(np.array([-1]))], [("i8", (2,), True, True)], axis=0)
    g.values.pop()
    g.node("Reshape", [x, joined], [(x.dtype, (x.shape[0], x.size // x.shape[0]), x.exact, x.small)])


@kind()
def last_place(g):
    """What stands at the end of an axis, as decoders take it."""
    x = g.value({"f4", "i8"}, least=2, accept=lambda v: v.size)
    if x is not None:
        g.node("Gather", [x, g.weight(np.array(-1))], [(x.dtype, x.shape[:1] + x.shape[2:], x.exact, x.small)], axis=1)
