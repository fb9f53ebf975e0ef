"""Further kinds of nodes of random graphs: control flow, what lengths say, places that data say, and operators over images."""

import math

import numpy as np
from onnx import TensorProto, helper
from random_graphs import TYPES, broadcast, kind


@kind(2)
def branch(g):
    """A choice between two nodes, by a number of the graph."""
    x, c = g.value({"f4", "f8", "i8"}, accept=lambda v: v.small), g.value({"b1"}, accept=lambda v: v.size > 0)
    if x is None or c is None:
        return
    whole = g.node("Cast", [c], [("i8", c.shape, True, True)], to=TensorProto.INT64)
    most = g.node("ReduceMax", [whole], [("i8", (), True, True)], keepdims=0)
    truth = g.node("Cast", [most], [("b1", (), True, True)], to=TensorProto.BOOL)

    def side(op):
        name = f"side{len(g.nodes)}_{op}"
        out = helper.make_tensor_value_info(name, TYPES[x.dtype], [None] * x.rank)
        return helper.make_graph([helper.make_node(op, [x.name], [name])], name, [], [out])

    g.node("If", [truth], [(x.dtype, x.shape, x.exact, x.small)], then_branch=side("Neg"), else_branch=side("Abs"))


@kind()
def loop(g):
    """A value that some turns double or add up, with the rows of the turns."""
    x = g.value({"f4", "i8"}, accept=lambda v: v.small)
    if x is None:
        return
    # Where there is no turn, the rows of the turns have a shape that nobody knows.
    turns, tag = g.pick([1, 2, 3]), f"l{len(g.nodes)}"
    info = lambda name, dtype, rank: helper.make_tensor_value_info(f"{tag}{name}", dtype, [None] * rank)
    body = helper.make_graph(
        [helper.make_node("Sub", [f"{tag}v", x.name], [f"{tag}o"]), helper.make_node("Identity", [f"{tag}c"], [f"{tag}d"]),
         helper.make_node("Neg", [f"{tag}o"], [f"{tag}r"])],
        tag, [info("i", TensorProto.INT64, 0), info("c", TensorProto.BOOL, 0), info("v", TYPES[x.dtype], x.rank)],
        [info("d", TensorProto.BOOL, 0), info("o", TYPES[x.dtype], x.rank), info("r", TYPES[x.dtype], x.rank)],
    )
    count = g.operand("i8", (), np.array(turns))
    g.node("Loop", [count, "", x], [(x.dtype, x.shape, x.exact, False), (x.dtype, (turns, *x.shape), x.exact, False)], body=body)


@kind()
def one_hot(g):
    x = g.value({"i8", "i4"}, most=3, accept=lambda v: v.small)
    if x is not None:
        depth, axis = g.pick([3, 5]), g.below(x.rank + 1)
        values = g.weight(np.array([0.5, 2], "f4"))
        shape = (*x.shape[:axis], depth, *x.shape[axis:])
        g.node("OneHot", [x, g.weight(np.array(depth)), values], [("f4", shape, True, True)], axis=axis)


@kind()
def einsum(g):
    x = g.value({"f4", "f8"}, least=2, most=3, accept=lambda v: v.small and v.size)
    if x is None:
        return
    own = "abc"[: x.rank]
    w = g.operand(x.dtype, (x.shape[-1], 3))
    shape = (3, *x.shape[:-1])
    g.node("Einsum", [x, w], [(x.dtype, shape, False, False)], equation=f"{own},{own[-1]}z->z{own[:-1]}")


@kind()
def conv_transpose(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.small and v.size)
    if x is None:
        return
    spatial, features = x.shape[2:], g.pick([1, 2, 5])
    kernel, stride = [g.pick([1, 2, 3]) for _ in spatial], [g.pick([1, 2]) for _ in spatial]
    shape = [(n - 1) * s + k for n, s, k in zip(spatial, stride, kernel)]
    w = g.operand("f4", (x.shape[1], features, *kernel))
    g.node("ConvTranspose", [x, w], [("f4", (x.shape[0], features, *shape), False, False)], strides=stride)


@kind()
def compress(g):
    x = g.value({"f4", "i8", "u1"}, least=1, accept=lambda v: v.size)
    if x is not None:
        axis = g.below(x.rank)
        taken = g.random.integers(0, 2, x.shape[axis]).astype(bool)
        taken[g.below(len(taken))] = True
        shape = [n if i != axis else int(taken.sum()) for i, n in enumerate(x.shape)]
        g.node("Compress", [x, g.operand("b1", taken.shape, taken)], [(x.dtype, shape, x.exact, x.small)], axis=axis)


@kind()
def non_zero_rows(g):
    """Rows at the places where a vector is not zero."""
    x = g.value({"f4", "i8"}, least=1, accept=lambda v: v.exact and v.size)
    if x is None:
        return
    flat = g.node("Reshape", [x, g.weight(np.array([-1]))], [(x.dtype, (x.size,), True, x.small)])
    marks = g.random.integers(0, 2, x.size).astype("f4")
    places = g.node("NonZero", [g.operand("f4", marks.shape, marks)], [("i8", (1, int(marks.sum())), True, True)])
    rows = g.node("Transpose", [places], [("i8", (int(marks.sum()), 1), True, True)])
    g.node("GatherND", [flat, rows], [(x.dtype, (int(marks.sum()),), True, x.small)])


@kind()
def scatter_nd(g):
    x = g.value({"f4", "i8"}, least=1, accept=lambda v: v.size and v.shape[0] > 1)
    if x is not None:
        rows = np.array([[i] for i in g.random.permutation(x.shape[0])[: 1 + g.below(2)]])
        updates = g.operand(x.dtype, (len(rows), *x.shape[1:]))
        g.node("ScatterND", [x, g.operand("i8", rows.shape, rows), updates], [(x.dtype, x.shape, x.exact, x.small)])


@kind()
def filled(g):
    """A tensor as long as another, of one number."""
    x = g.value(least=1)
    if x is not None:
        shape = g.node("Shape", [x], [("i8", (x.rank,), True, True)])
        value = helper.make_tensor("value", TensorProto.FLOAT, [1], [1.5])
        g.node("ConstantOfShape", [shape], [("f4", x.shape, True, True)], value=value)


@kind()
def expanded(g):
    """A value spread over the lengths of another."""
    x, y = g.value({"f4", "i8", "b1"}), g.value(least=1)
    if x is None or y is None or (shape := broadcast(x.shape, y.shape)) is None:
        return
    lengths = g.node("Shape", [y], [("i8", (y.rank,), True, True)])
    g.node("Expand", [x, lengths], [(x.dtype, shape, x.exact, x.small)])


@kind()
def counted(g):
    """The numbers up to a length, added to what is that long."""
    x = g.value({"i8", "f4"}, least=1, accept=lambda v: v.size and v.small)
    if x is None:
        return
    shape = g.node("Shape", [x], [("i8", (x.rank,), True, True)])
    length = g.node("Gather", [shape, g.weight(np.array(x.rank - 1))], [("i8", (), True, True)])
    row = g.node("Range", [g.weight(np.array(0)), length, g.weight(np.array(1))], [("i8", x.shape[-1:], True, True)])
    row = g.node("Cast", [row], [(x.dtype, x.shape[-1:], True, True)], to=TYPES[x.dtype])
    g.node("Add", [x, row], [(x.dtype, x.shape, x.exact, True)])


@kind()
def quantized(g):
    x = g.value({"f4"}, accept=lambda v: v.exact and v.small)
    if x is not None:
        scale, zero = g.weight(np.array(0.25, "f4")), g.weight(np.array(3, g.pick(["u1", "i1"])))
        q = g.node("QuantizeLinear", [x, scale, zero], [("u1", x.shape, True, True)])
        g.values.pop()
        g.node("DequantizeLinear", [q, scale, zero], [("f4", x.shape, True, True)])


@kind()
def several(g):
    x = g.value({"f4"}, accept=lambda v: v.small)
    if x is None:
        return
    parts = [x] + [v for _ in range(2) if (v := g.value({"f4"}, accept=lambda v: v.small and broadcast(v.shape, x.shape) == x.shape))]
    g.node(g.pick(["Sum", "Mean", "Max", "Min"]), parts, [("f4", x.shape, False, True)])


@kind()
def slopes(g):
    x = g.value({"f4"}, accept=lambda v: v.small)
    if x is None:
        return
    op = g.pick(["Celu", "ThresholdedRelu", "PRelu", "Mish"])
    if op == "PRelu":
        g.node(op, [x, g.operand("f4", x.shape[g.below(x.rank + 1):])], [("f4", x.shape, False, True)])
    elif op != "ThresholdedRelu" or x.exact:
        g.node(op, [x], [("f4", x.shape, False, True)], **({"alpha": 0.5} if op != "Mish" else {}))


@kind()
def blocks(g):
    x = g.value({"f4"}, least=4, most=4, accept=lambda v: v.size)
    if x is None:
        return
    n, c, h, w = x.shape
    if h % 2 == w % 2 == 0:
        g.node("SpaceToDepth", [x], [("f4", (n, c * 4, h // 2, w // 2), x.exact, x.small)], blocksize=2)
    elif c % 4 == 0:
        g.node("DepthToSpace", [x], [("f4", (n, c // 4, h * 2, w * 2), x.exact, x.small)], blocksize=2, mode=g.pick(["DCR", "CRD"]))


@kind()
def padded_pool(g):
    x = g.value({"f4"}, least=3, most=4, accept=lambda v: v.size)
    if x is None:
        return
    spatial = x.shape[2:]
    kernel = [g.pick([2, 3]) for _ in spatial]
    pads = [g.below(2) for _ in 2 * spatial]
    stride, ceil = [g.pick([1, 2]) for _ in spatial], g.below(2)
    whole = [n + pads[i] + pads[i + len(spatial)] - kernel[i] for i, n in enumerate(spatial)]
    if any(n < 0 for n in whole):
        return
    if ceil and any(n % s for n, s in zip(whole, stride)):
        return
    shape = [n // s + 1 for n, s in zip(whole, stride)]
    op = g.pick(["MaxPool", "AveragePool", "AveragePool"])
    attrs = {"count_include_pad": g.below(2)} if op == "AveragePool" else {}
    g.node(op, [x], [("f4", (*x.shape[:2], *shape), False, x.small)], kernel_shape=kernel, pads=pads, strides=stride, ceil_mode=ceil, **attrs)


@kind()
def shifted(g):
    x = g.value({"u1"})
    if x is not None:
        g.node("BitShift", [x, g.weight(np.array(g.below(4), "u1"))], [("u1", x.shape, True, True)], direction=g.pick(["LEFT", "RIGHT"]))


@kind()
def group_norm(g):
    x = g.value({"f4"}, least=3, accept=lambda v: v.small and v.size and math.prod(v.shape[2:]) > 2)
    if x is not None:
        own = (1, *x.shape[1:2], *[1] * (x.rank - 2))
        mean = g.node("ReduceMean", [x, g.weight(np.arange(2, x.rank))], [("f4", x.shape[:2] + (1,) * (x.rank - 2), False, True)])
        less = g.node("Sub", [x, mean], [("f4", x.shape, False, True)])
        if less is not None:
            g.node("Mul", [less, g.operand("f4", own)], [("f4", x.shape, False, True)])
