"""Cases of operators that change shapes, take and put elements."""

import itertools
import math

import numpy as np

from .case import Case


def reshape(r):
    x = r.data(r.shape(1, 4), r.numbers())
    target = list(r.rng.permutation(x.shape))
    if len(target) > 1 and r.chance(0.6):
        target = [target[0] * target[1]] + target[2:]
    dims = [int(d) for d in target]
    return Case(f"R.reshape({{0}}, R.shape({dims}))", [x], x.reshape(dims), fixed=x.shape)


def plain(name, f, low=0, high=4, kinds=None):
    def case(r):
        x = r.data(r.shape(low, high), r.numbers())
        return Case(f"R.{name}({{0}})", [x], f(x))

    return case


def expand_dims(r):
    x = r.data(r.shape(0, 3))
    axes = sorted(r.rng.permutation(x.ndim + 2)[:2].tolist())
    return Case(f"R.expand_dims({{0}}, axis={axes})", [x], np.expand_dims(x, tuple(axes)))


def squeeze(r):
    shape = list(r.shape(1, 3))
    at = r.int(0, len(shape) - 1)
    shape[at] = 1
    x = r.data(tuple(shape))
    return Case(f"R.squeeze({{0}}, axis=[{at}])", [x], x.squeeze(at))


def permute_dims(r):
    x = r.data(r.shape())
    axes = r.rng.permutation(x.ndim).tolist()
    return Case(f"R.permute_dims({{0}}, axes={axes})", [x], x.transpose(axes))


def broadcast_to(r):
    shape = r.shape(1, 4)
    x = r.data(r.broadcast(shape))
    return Case(f"R.broadcast_to({{0}}, R.shape({list(shape)}))", [x], np.broadcast_to(x, shape), fixed=shape)


def collapse(r):
    shape = r.shape(1, 4)
    target = r.broadcast(shape)
    x = r.data(shape)
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(i + lead for i, d in enumerate(target) if d == 1)
    expect = x.sum(axis=axes, keepdims=True).reshape(target)
    if r.chance(0.5):
        return Case("R.collapse_sum_like({0}, {1})", [x, np.zeros(target, "float32")], expect, 1e-4)
    return Case(f"R.collapse_sum_to({{0}}, R.shape({list(target)}))", [x], expect, 1e-4, fixed=shape)


def joined(name, f):
    def case(r):
        shape, dtype = list(r.shape(1, 3)), r.numbers()
        axis = r.int(0, len(shape) - (name == "concat"))
        parts = []
        for _ in range(r.int(1, 4)):
            own = list(shape)
            if name == "concat":
                own[axis] = r.int(0, 4)
            parts.append(r.data(tuple(own), dtype))
        names = "".join(f"{{{i}}}, " for i in range(len(parts)))
        return Case(f"R.{name}(({names}), axis={axis})", parts, f(parts, axis))

    return case


def split(r):
    shape = list(r.shape(1, 3))
    axis = r.int(0, len(shape) - 1)
    shape[axis] = 6
    x = r.data(tuple(shape))
    how = r.pick(2, 3, [1, 4], [0, 2, 2])
    return Case(f"R.split({{0}}, indices_or_sections={how}, axis={axis})", [x], np.split(x, how, axis), fixed=(6,))


def tile(r):
    x, repeats = r.data(r.shape(0, 3)), [r.int(1, 3) for _ in range(r.int(1, 4))]
    return Case(f"R.tile({{0}}, repeats={repeats})", [x], np.tile(x, repeats))


def repeat(r):
    x = r.data(r.shape(1, 3))
    axis, n = r.pick(None, r.int(0, x.ndim - 1)), r.int(1, 3)
    return Case(f"R.repeat({{0}}, repeats={n}, axis={axis})", [x], np.repeat(x, n, axis))


def flip(r):
    x = r.data(r.shape(1, 4))
    axis = r.int(-x.ndim, x.ndim - 1)
    return Case(f"R.flip({{0}}, axis={axis})", [x], np.flip(x, axis))


def gather_elements(r):
    x = r.data(r.shape(1, 3, empty=0))
    axis = r.int(0, x.ndim - 1)
    shape = list(x.shape)
    shape[axis] = r.int(0, 4)
    index = r.data(tuple(shape), r.pick("int64", "int32"), -x.shape[axis], x.shape[axis] - 1)
    return Case(f"R.gather_elements({{0}}, {{1}}, axis={axis})", [x, index], np.take_along_axis(x, index.astype("int64") % x.shape[axis], axis))


def gather_nd(r):
    x = r.data(r.shape(1, 3, empty=0))
    k = r.int(1, x.ndim)
    lead = r.shape(1, 2)
    index = np.stack([r.data(lead, "int64", 0, x.shape[i] - 1) for i in range(k)], -1)
    return Case("R.gather_nd({0}, {1}, batch_dims=0)", [x, index], x[tuple(np.moveaxis(index, -1, 0))], fixed=(k,))


def take(r):
    x = r.data(r.shape(1, 3, empty=0))
    axis, mode = r.int(0, x.ndim - 1), r.pick("fast", "clip", "wrap")
    size = x.shape[axis]
    index = r.data(r.shape(0, 2), r.pick("int32", "int64"), 0 if mode == "fast" else -2, size - 1 if mode == "fast" else size + 2)
    if mode == "clip":
        index = np.asarray(np.maximum(index, 0), index.dtype)
    expect = np.take(x, index % size if mode == "wrap" else index, axis, mode="clip")
    return Case(f'R.take({{0}}, {{1}}, axis={axis}, mode="{mode}")', [x, index], expect)


def strided_slice(r):
    x = r.data(r.shape(1, 3))
    axis = r.int(0, x.ndim - 1)
    begin, end, step = r.int(-4, 4), r.int(-5, 6), r.pick(1, 2, -1)
    at = [slice(None)] * x.ndim
    at[axis] = slice(begin, end, step)
    return Case(f"R.strided_slice({{0}}, ({axis},), ({begin},), ({end},), ({step},), assume_inbound=False)", [x], x[tuple(at)])


def dynamic_strided_slice(r):
    x = r.data(r.shape(1, 3))
    bounds = [(r.int(-4, 4), r.int(-5, 6), r.pick(1, 2, -1)) for _ in range(x.ndim)]
    begin, end, step = (np.array(v, "int64") for v in zip(*bounds))
    return Case("R.dynamic_strided_slice({0}, {1}, {2}, {3})", [x, begin, end, step], x[tuple(slice(*b) for b in bounds)], symbolic=False)


def scatter_elements(r):
    x = r.data(r.shape(1, 3, empty=0), r.pick("float32", "int64"))
    axis, how = r.int(0, x.ndim - 1), r.pick("update", "add", "mul", "min", "max")
    shape = [r.int(1, d) for d in x.shape]
    index, updates = r.data(tuple(shape), "int64", 0, x.shape[axis] - 1), r.data(tuple(shape), str(x.dtype))
    expect = x.copy()
    combine = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[how]
    for at in itertools.product(*map(range, shape)):
        to = list(at)
        to[axis] = index[at]
        expect[tuple(to)] = combine(expect[tuple(to)], updates[at])
    return Case(f'R.scatter_elements({{0}}, {{1}}, {{2}}, axis={axis}, reduction="{how}")', [x, index, updates], expect, 1e-4)


def scatter_nd(r):
    x = r.data(r.shape(1, 3, empty=0))
    k, n = r.int(1, x.ndim), r.int(1, 4)
    index = np.stack([r.data((n,), "int64", 0, x.shape[i] - 1) for i in range(k)], -1)
    updates, how = r.data((n, *x.shape[k:])), r.pick("update", "add")
    expect = x.copy()
    for row, value in zip(index, updates):
        expect[tuple(row)] = value if how == "update" else expect[tuple(row)] + value
    return Case(f'R.scatter_nd({{0}}, {{1}}, {{2}}, reduction="{how}")', [x, index, updates], expect, 1e-4, fixed=(k,))


def slice_scatter(r):
    x = r.data((8, *r.shape(0, 2)))
    start, end, step = r.pick((1, 7, 2), (0, 3, 1), (-5, -1, 1), (2, 8, 3))
    expect = x.copy()
    source = r.data(x[start:end:step].shape)
    expect[start:end:step] = source
    return Case(f"R.slice_scatter({{0}}, {{1}}, R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), axis=0)", [x, source], expect, fixed=(8, *source.shape[:1]))


def index_tensor(r):
    x = r.data(r.shape(1, 4, empty=0))
    k, front = r.int(1, x.ndim), r.shape(1, 2, empty=0)
    index = [r.data(r.broadcast(front) or (1,), r.pick("int64", "int32"), -x.shape[i], x.shape[i] - 1) for i in range(k)]
    names = "".join(f"{{{i + 1}}}, " for i in range(k))
    return Case(f"R.index_tensor({{0}}, ({names}))", [x, *index], x[tuple(index)])


def index_put(r):
    x = r.data(r.shape(1, 3, empty=0))
    n, add = r.int(1, 5), r.chance(0.5)
    index = [r.data((n,), "int64", -d, d - 1) for d in x.shape]
    values, expect = r.data((n,)), x.copy()
    if add:
        np.add.at(expect, tuple(index), values)
    else:
        for i in range(n):
            expect[tuple(a[i] for a in index)] = values[i]
    names = "".join(f"{{{i + 1}}}, " for i in range(x.ndim))
    return Case(f"R.index_put({{0}}, ({names}), {{{x.ndim + 1}}}, accumulate={add})", [x, *index, values], expect, 1e-4)


def one_hot(r):
    depth = r.int(1, 5)
    index = r.data(r.shape(0, 2), r.pick("int32", "int64"), 0, depth - 1)
    axis = r.int(0, index.ndim)
    expect = np.moveaxis(np.where(np.arange(depth) == index[..., None], 2.0, -1.0).astype("float32"), -1, axis)
    return Case(f"R.one_hot({{0}}, R.prim_value(T.float32(2.0)), R.prim_value(T.float32(-1.0)), depth={depth}, axis={axis})", [index], expect)


def reverse_sequence(r):
    x = r.data(r.shape(2, 3))
    seq, batch = r.pick((0, 1), (1, 0))
    lengths = r.data((x.shape[batch],), r.pick("int32", "int64"), 0, x.shape[seq])
    expect = np.moveaxis(x.copy(), (batch, seq), (0, 1))
    for i, n in enumerate(lengths):
        expect[i, :n] = expect[i, :n][::-1].copy()
    return Case(f"R.reverse_sequence({{0}}, {{1}}, seq_axis={seq}, batch_axis={batch})", [x, lengths], np.moveaxis(expect, (0, 1), (batch, seq)))


def meshgrid(r):
    vectors = [r.data(r.shape(1, 1)) for _ in range(r.int(2, 3))]
    kind = r.pick("ij", "xy")
    names = "".join(f"{{{i}}}, " for i in range(len(vectors)))
    return Case(f'R.meshgrid(({names}), indexing="{kind}")', vectors, [np.ascontiguousarray(v) for v in np.meshgrid(*vectors, indexing=kind)])


def nothing_transposed(r):
    x = r.data((3, 0), r.pick("float32", "float64", "int64"))
    return Case("R.permute_dims({0}, axes=[1, 0])", [x], x.T)


CASES = {
    "nothing transposed": nothing_transposed, "reshape": reshape, "flatten": plain("flatten", lambda x: x.reshape(-1)),
    "nn.batch_flatten": plain("nn.batch_flatten", lambda x: x.reshape(x.shape[0], math.prod(x.shape[1:])), 2), "expand_dims": expand_dims,
    "squeeze": squeeze, "permute_dims": permute_dims, "broadcast_to": broadcast_to, "collapse_sum_to": collapse,
    "collapse_sum_like": collapse, "concat": joined("concat", np.concatenate), "stack": joined("stack", np.stack), "split": split,
    "tile": tile, "repeat": repeat, "flip": flip, "gather_elements": gather_elements, "gather_nd": gather_nd, "take": take,
    "strided_slice": strided_slice, "dynamic_strided_slice": dynamic_strided_slice, "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd, "slice_scatter": slice_scatter, "index_tensor": index_tensor, "index_put": index_put, "one_hot": one_hot,
    "reverse_sequence": reverse_sequence, "meshgrid": meshgrid,
}
