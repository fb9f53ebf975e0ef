"""Random calls of ONNX operators whose indices or lengths are hostile.

A *template* is a model of one operator and a way to draw its inputs. Indices are drawn inside of what they index, just outside,
far outside and at the ends of their type; lengths fit or do not; floats that become integers are NaN, infinite, tiny or
of the wrong sign. What must come out is known from numpy where the operator's text is short enough to be written down again:
the values, or an error. Elsewhere the answer is anything but a fault.

Inputs lie at pages that fault (:mod:`guarded`).
"""

import numpy as np
from onnx import TensorProto as T
from onnx import helper as h

#: The run must be an error.
ERROR = object()
#: The run may be an error or give anything of its own.
ANYTHING = object()

_TYPES = {np.dtype("f4"): T.FLOAT, np.dtype("i8"): T.INT64, np.dtype("i4"): T.INT32, np.dtype("bool"): T.BOOL,
          np.dtype("u1"): T.UINT8, np.dtype("f8"): T.DOUBLE}


class Template:
    """A model of one operator, and its inputs' shapes as far as they are fixed."""

    def __init__(self, op, shapes, dtypes, named, opset=18, domain="", outputs=1, **attributes):
        names = [f"x{i}" for i in range(len(shapes))]
        dims = [[f"d{i}_{a}" if named else n for a, n in enumerate(shape)] for i, shape in enumerate(shapes)]
        inputs = [h.make_tensor_value_info(n, _TYPES[np.dtype(t)], d) for n, t, d in zip(names, dtypes, dims)]
        ys = [f"y{i}" for i in range(outputs)]
        node = h.make_node(op, names, ys, domain=domain, **attributes)
        graph = h.make_graph([node], "g", inputs, [h.make_tensor_value_info(y, T.UNDEFINED, None) for y in ys])
        imports = [h.make_opsetid("", opset)] + ([h.make_opsetid(domain, 1)] if domain else [])
        self.model = h.make_model(graph, opset_imports=imports, ir_version=8)
        for value, dtype in zip(self.model.graph.output, _output_types(op, dtypes, outputs)):
            value.type.tensor_type.elem_type = dtype
        self.name = f"{op}{'(named)' if named else ''} {shapes} {attributes or ''}"
        self.op, self.shapes, self.dtypes = op, shapes, dtypes


def _output_types(op, dtypes, outputs):
    first = {"NonMaxSuppression": T.INT64, "ArgMax": T.INT64, "QuantizeLinear": T.UINT8, "DequantizeLinear": T.FLOAT}
    return [first.get(op, _TYPES[np.dtype(dtypes[0])])] * outputs


def index(rng, n, shape, dtype="i8", clean=None):
    """Indices into `n` elements, and whether all are inside as operators count from both ends."""
    limit = np.iinfo(dtype)
    good = rng.integers(-n, n, shape) if n else np.zeros(shape, np.int64)
    out = good.astype(dtype)
    if out.size and not (rng.random() < 0.4 if clean is None else clean):
        bad = [n, n + 1, -n - 1, -n - 2, 2 * n, 1000, -1000, 2**31 - 1, -(2**31), limit.max, limit.min, limit.max - n, limit.min + n]
        for _ in range(rng.integers(1, 4)):
            out.flat[rng.integers(out.size)] = np.clip(bad[rng.integers(len(bad))], limit.min, limit.max)
    wide = out.astype(object)
    return out, bool(np.all((wide >= -n) & (wide < n)))


def data(rng, shape, dtype="f4"):
    return rng.integers(-9, 9, shape).astype(dtype)


def _shape(rng, rank, most=5):
    return [int(v) for v in rng.integers(1, most, rank)]


# Each of these draws a template and a function that draws inputs and what must come out.


def gather(rng, named):
    rank = int(rng.integers(1, 4))
    shape, places, axis = _shape(rng, rank, 20), _shape(rng, int(rng.integers(0, 3))), int(rng.integers(rank))
    dtype = rng.choice(["i8", "i4"])

    def draw(rng):
        x = data(rng, shape)
        i, inside = index(rng, shape[axis], places, dtype)
        return [x, i], np.take(x, i, axis) if inside else ERROR

    return Template("Gather", [shape, places], ["f4", dtype], named, axis=axis), draw


def gather_elements(rng, named):
    rank = int(rng.integers(1, 4))
    shape, axis = _shape(rng, rank, 9), int(rng.integers(rank))
    places = [int(rng.integers(1, n + 1)) for n in shape]
    wrong = named and rng.random() < 0.3 and rank > 1
    if wrong:
        other = (axis + 1) % rank
        places[other] = shape[other] + int(rng.integers(1, 600))

    def draw(rng):
        x = data(rng, shape)
        i, inside = index(rng, shape[axis], places)
        if wrong or not inside:
            return [x, i], ERROR
        part = x[tuple(slice(None) if a == axis else slice(n) for a, n in enumerate(places))]
        return [x, i], np.take_along_axis(part, i % shape[axis], axis)

    return Template("GatherElements", [shape, places], ["f4", "i8"], named, axis=axis), draw


def gather_nd(rng, named):
    shape = _shape(rng, 3, 7)
    depth = int(rng.integers(1, 4))
    count = int(rng.integers(1, 9))

    def draw(rng):
        x = data(rng, shape)
        columns = [index(rng, shape[a], [count]) for a in range(depth)]
        i = np.stack([c for c, _ in columns], -1)
        return [x, i], x[tuple(i[:, a] for a in range(depth))] if all(ok for _, ok in columns) else ERROR

    template = Template("GatherND", [shape, [count, depth]], ["f4", "i8"], False)
    return template, draw


def scatter_elements(rng, named):
    rank = int(rng.integers(1, 3))
    shape, axis = _shape(rng, rank, 9), int(rng.integers(rank))
    places = [int(rng.integers(1, n + 1)) for n in shape]
    how = str(rng.choice(["none", "add", "max"]))
    wrong = rank > 1 and named and rng.random() < 0.3
    if wrong:
        places[1 - axis] = shape[1 - axis] + int(rng.integers(1, 600))

    def draw(rng):
        x, u = data(rng, shape), data(rng, places)
        i, inside = index(rng, shape[axis], places)
        if wrong or not inside:
            return [x, i, u], ERROR
        y = x.copy()
        for at in np.ndindex(*places):
            to = list(at)
            to[axis] = i[at]
            to = tuple(to)
            y[to] = {"none": u[at], "add": y[to] + u[at], "max": max(y[to], u[at])}[how]
        return [x, i, u], y

    return Template("ScatterElements", [shape, places, places], ["f4", "i8", "f4"], named, axis=axis, reduction=how), draw


def scatter_nd(rng, named):
    shape = _shape(rng, 2, 8)
    count, depth = int(rng.integers(1, 6)), int(rng.integers(1, 3))
    given = [count] + shape[depth:]

    def draw(rng):
        x, u = data(rng, shape), data(rng, given)
        columns = [index(rng, shape[a], [count]) for a in range(depth)]
        i = np.stack([c for c, _ in columns], -1)
        if not all(ok for _, ok in columns):
            return [x, i, u], ERROR
        y = x.copy()
        for row, new in zip(i, u):
            y[tuple(row)] = new
        return [x, i, u], y

    return Template("ScatterND", [shape, [count, depth], given], ["f4", "i8", "f4"], False), draw


def max_unpool(rng, named):
    n = int(rng.integers(1, 5))

    def draw(rng):
        x = data(rng, [1, 1, n, n])
        i, _ = index(rng, 4 * n * n, [1, 1, n, n])
        return [x, i], ANYTHING

    return Template("MaxUnpool", [[1, 1, n, n]] * 2, ["f4", "i8"], named, kernel_shape=[2, 2], strides=[2, 2]), draw


def reverse_sequence(rng, named):
    time, batch = int(rng.integers(1, 8)), int(rng.integers(1, 6))

    def draw(rng):
        x = data(rng, [time, batch])
        lengths, _ = index(rng, time + 1, [batch])
        return [x, lengths], ANYTHING

    return Template("ReverseSequence", [[time, batch], [batch]], ["f4", "i8"], named), draw


def hostile_floats(rng, shape):
    values = [0, -0.0, 1, -1, 0.5, 1e-40, -1e-40, np.nan, np.inf, -np.inf, 1e6, -1e6, 1e18, 1e30, 3e38, -3e38]
    x = rng.uniform(-4, 12, shape).astype("f4")
    for _ in range(rng.integers(0, 4)):
        x.flat[rng.integers(x.size)] = values[rng.integers(len(values))]
    return x


def roi_align(rng, named):
    n, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    mode, ratio = str(rng.choice(["avg", "max"])), int(rng.integers(0, 3))

    def draw(rng):
        i, _ = index(rng, n, [count])
        return [data(rng, [n, 2, 6, 7]), hostile_floats(rng, [count, 4]), i], ANYTHING

    shapes = [[n, 2, 6, 7], [count, 4], [count]]
    return Template("RoiAlign", shapes, ["f4", "f4", "i8"], named, mode=mode, output_height=2, output_width=3,
                    sampling_ratio=ratio, spatial_scale=0.5), draw


def max_roi_pool(rng, named):
    n, count = int(rng.integers(1, 4)), int(rng.integers(1, 4))

    def draw(rng):
        return [data(rng, [n, 2, 6, 7]), hostile_floats(rng, [count, 5])], ANYTHING

    return Template("MaxRoiPool", [[n, 2, 6, 7], [count, 5]], ["f4", "f4"], named, pooled_shape=[2, 2]), draw


def grid_sample(rng, named):
    n, other = int(rng.integers(1, 4)), int(rng.integers(1, 4))
    mode = str(rng.choice(["linear", "nearest", "cubic"]))
    padding = str(rng.choice(["zeros", "border", "reflection"]))
    wrong = named and n != other

    def draw(rng):
        grid = hostile_floats(rng, [other if wrong else n, 3, 2, 2])
        return [data(rng, [n, 1, 4, 5]), grid], ERROR if wrong else ANYTHING

    shapes = [[n, 1, 4, 5], [other if wrong else n, 3, 2, 2]]
    return Template("GridSample", shapes, ["f4", "f4"], named, opset=20, mode=mode, padding_mode=padding), draw


def slice_computed(rng, named):
    n = int(rng.integers(1, 9))

    def draw(rng):
        x = data(rng, [n, 3])
        bounds = [int(v) for v in index(rng, n, [2])[0]]
        step = int(rng.choice([1, 2, -1, -2, 7]))
        args = [np.array([v], "i8") for v in (bounds[0], bounds[1], 0, step)]
        # As ONNX says, which is not as numpy does it where a start in front of the axis goes back.
        low, high, last = (0, n, n) if step > 0 else (0, n - 1, n - 1)
        front = [b + n if b < 0 else b for b in bounds]
        start, end = min(max(front[0], low), high), min(max(front[1], 0 if step > 0 else -1), last)
        return [x, *args], x[list(range(start, end, step))]

    return Template("Slice", [[n, 3], [1], [1], [1], [1]], ["f4"] + ["i8"] * 4, False), draw


def pad_reflect(rng, named):
    n = int(rng.integers(1, 6))
    mode = str(rng.choice(["reflect", "edge", "wrap", "constant"]))

    def draw(rng):
        pads = rng.integers(-2, 3 * n + 3, 2)
        return [data(rng, [n]), pads], ANYTHING

    return Template("Pad", [[n], [2]], ["f4", "i8"], False, opset=19, mode=mode), draw


def arg_max(rng, named):
    shape = [int(v) for v in rng.integers(0, 4, 2)]

    def draw(rng):
        x = data(rng, shape)
        if 0 in shape:
            return [x], ERROR if shape[1] == 0 and shape[0] else ANYTHING
        if rng.random() < 0.3:
            x.flat[rng.integers(x.size)] = np.nan
        return [x], np.argmax(x, 1)[:, None]

    return Template("ArgMax", [shape], ["f4"], True, axis=1), draw


def quantize(rng, named):
    rows, columns = _shape(rng, 2, 9)
    other = columns + int(rng.integers(1, 900)) if rng.random() < 0.5 else int(rng.integers(1, columns + 1))
    op = str(rng.choice(["QuantizeLinear", "DequantizeLinear"]))
    first = "f4" if op == "QuantizeLinear" else "u1"
    fits = other in (1, columns)

    def draw(rng):
        x = np.abs(data(rng, [rows, columns])).astype(first)
        return [x, np.ones(other, "f4"), np.zeros(other, "u1")], ANYTHING if fits else ERROR

    return Template(op, [[rows, columns], [other], [other]], [first, "f4", "u1"], True, axis=1), draw


def loss(rng, named):
    n, classes = int(rng.integers(1, 5)), int(rng.integers(1, 6))

    def draw(rng):
        x = data(rng, [n, classes])
        i, inside = index(rng, classes, [n])
        return [x, i], -x[np.arange(n), i] if inside and np.all(i >= 0) else ERROR

    return Template("NegativeLogLikelihoodLoss", [[n, classes], [n]], ["f4", "i8"], named, reduction="none"), draw


def suppression(rng, named):
    boxes, classes = int(rng.integers(1, 6)), int(rng.integers(1, 3))

    def draw(rng):
        most = index(rng, 4, [1])[0]
        return [hostile_floats(rng, [1, boxes, 4]), hostile_floats(rng, [1, classes, boxes]), most,
                hostile_floats(rng, [1]), hostile_floats(rng, [1])], ANYTHING

    shapes = [[1, boxes, 4], [1, classes, boxes], [1], [1], [1]]
    return Template("NonMaxSuppression", shapes, ["f4", "f4", "i8", "f4", "f4"], False), draw


def one_hot(rng, named):
    n, depth = int(rng.integers(1, 5)), int(rng.integers(1, 5))

    def draw(rng):
        i, _ = index(rng, depth, [n])
        wide = np.where(i < 0, i.astype(object) + depth, i)
        y = np.zeros([n, depth], "f4")
        for row, at in enumerate(wide):
            if 0 <= at < depth:
                y[row, int(at)] = 1
        return [i, np.array(depth), np.array([0, 1], "f4")], y

    template = Template("OneHot", [[n], [], [2]], ["i8", "i8", "f4"], False)
    template.model.graph.output[0].type.tensor_type.elem_type = T.FLOAT
    return template, draw


def add_lengths(rng, named):
    n, m = int(rng.integers(1, 6)), int(rng.integers(1, 600))
    op = str(rng.choice(["MatMul", "Gemm", "Concat"]))
    shapes = {"MatMul": [[2, n], [m, 3]], "Gemm": [[2, n], [m, 3]], "Concat": [[2, n], [3, m]]}[op]

    def draw(rng):
        a, b = data(rng, shapes[0]), data(rng, shapes[1])
        if n != m:
            return [a, b], ERROR
        return [a, b], np.concatenate([a, b]) if op == "Concat" else a @ b

    return Template(op, shapes, ["f4", "f4"], True, **({"axis": 0} if op == "Concat" else {})), draw


def tensor_scatter(rng, named):
    n, new = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    mode = str(rng.choice(["linear", "circular"]))

    def draw(rng):
        i, _ = index(rng, n, [2])
        return [data(rng, [2, n, 3]), data(rng, [2, new, 3]), i], ANYTHING

    shapes = [[2, n, 3], [2, new, 3], [2]]
    return Template("TensorScatter", shapes, ["f4", "f4", "i8"], named, opset=24, mode=mode), draw


def embed(rng, named):
    words, length = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    positions = length + int(rng.integers(-1, 3))

    def draw(rng):
        i, inside = index(rng, words, [1, length], "i4")
        feeds = [i, np.zeros([1, length], "i4"), data(rng, [words, 4]), data(rng, [max(positions, 1), 4]), data(rng, [2, 4]),
                 np.ones(4, "f4"), np.zeros(4, "f4")]
        return feeds, ANYTHING if inside and max(positions, 1) >= length else ERROR

    shapes = [[1, length], [1, length], [words, 4], [max(positions, 1), 4], [2, 4], [4], [4]]
    template = Template("EmbedLayerNormalization", shapes, ["i4", "i4"] + ["f4"] * 5, False, domain="com.microsoft", outputs=2)
    template.model.graph.output[0].type.tensor_type.elem_type = T.FLOAT
    return template, draw


TEMPLATES = [gather, gather_elements, gather_nd, scatter_elements, scatter_nd, max_unpool, reverse_sequence, roi_align,
             max_roi_pool, grid_sample, slice_computed, pad_reflect, arg_max, quantize, loss, suppression, one_hot,
             add_lengths, tensor_scatter, embed]
