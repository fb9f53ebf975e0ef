"""Calls of operators that change shapes, take and put elements."""

from .elementwise import unary
from .reductions import with_axis


def reshape(g):
    shape = g.shape()
    rest = list(shape)
    g.rng.shuffle(rest)
    if g.chance(0.4) and len(rest) > 1:
        rest = rest[2:] + [f"{rest[0]} * {rest[1]}" if isinstance(rest[0], str) or isinstance(rest[1], str) else rest[0] * rest[1]]
    if g.chance(0.1):
        rest.append(3)
    return f"R.reshape({g.tensor(shape)}, {g.shape_arg(rest)})"


def broadcast_to(g):
    target = g.shape()
    return f"R.broadcast_to({g.tensor(g.like(target))}, {g.shape_arg(target)})"


def collapse_sum_to(g):
    shape = g.shape()
    return f"R.collapse_sum_to({g.tensor(shape)}, {g.shape_arg(g.like(shape))})"


def collapse_sum_like(g):
    shape = g.shape()
    return f"R.collapse_sum_like({g.tensor(shape)}, {g.tensor(g.like(shape))})"


def expand_dims(g):
    shape = g.shape()
    count = g.int(1, 2)
    axes = g.rng.sample(range(len(shape) + count), count)
    if g.chance(0.1):
        axes = [axes[0], axes[0]]
    return f"R.expand_dims({g.tensor(shape)}, axis={axes})"


def squeeze(g):
    shape = [1 if g.chance(0.5) else d for d in g.shape(g.int(1, 4))]
    ones = [i for i, d in enumerate(shape) if d == 1]
    axis = "None" if g.chance(0.3) else repr(ones[:2] if ones and g.chance(0.8) else g.axes(len(shape)))
    return f"R.squeeze({g.tensor(shape)}, axis={axis})"


def permute_dims(g):
    shape = g.shape()
    axes = list(range(len(shape)))
    g.rng.shuffle(axes)
    if g.chance(0.1) and axes:
        axes[0] = axes[-1]
    return f"R.permute_dims({g.tensor(shape)}, axes={'None' if g.chance(0.3) else axes})"


def joined(name):
    def call(g):
        shape = g.shape(g.int(1, 3))
        axis = g.axis(len(shape) + (name == "stack"))
        tensors = []
        dtype = g.dtype("f")
        for _ in range(g.int(1, 3)):
            own = list(shape)
            if name == "concat" and -len(shape) <= axis < len(shape):
                own[axis] = g.dim()
            if g.chance(0.05):
                own[0] = g.dim()
            tensors.append(g.tensor(own, dtype, known=0.93))
        return f"R.{name}(({', '.join(tensors)},), axis={axis})"

    return call


def split(g):
    shape = g.shape(g.int(1, 3))
    axis = g.axis(len(shape))
    if -len(shape) <= axis < len(shape):
        shape[axis] = g.pick(4, 6, 8)
    how = g.pick(1, 2, 3, [1], [1, 3], [2, 2], [3, 5])
    return f"R.split({g.tensor(shape, known=1)}, indices_or_sections={how}, axis={axis})"


def tile(g):
    shape = g.shape()
    return f"R.tile({g.tensor(shape)}, repeats={[g.int(1, 3) for _ in range(g.int(1, 4))]})"


def repeat(g):
    shape = g.shape(g.int(1, 3))
    return f"R.repeat({g.tensor(shape)}, repeats={g.int(1, 3)}, axis={g.pick('None', g.axis(len(shape)))})"


def gather_elements(g):
    shape = g.shape(g.int(1, 3))
    indices = [g.dim() for _ in shape] if g.chance(0.9) else g.shape()
    return f"R.gather_elements({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'int32', 'float32'))}, axis={g.axis(len(shape))})"


def gather_nd(g):
    shape = g.shape(g.int(1, 4))
    batch = g.pick(0, 0, 1)
    indices = shape[:batch] + g.shape(g.int(0, 2)) + [g.int(1, len(shape))]
    return f"R.gather_nd({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'int32', 'float32'))}, batch_dims={batch})"


def take(g):
    shape = g.shape(g.int(1, 3))
    indices = g.tensor(g.shape(g.int(0, 2)), g.pick("int64", "int32", "int32", "float32"))
    if g.chance(0.15):
        indices = f"R.prim_value({g.int(0, 2)})"
    axis = "None" if g.chance(0.2) else g.axis(len(shape))
    if axis == "None":
        shape = [g.dim()]
    return f"R.take({g.tensor(shape)}, {indices}, axis={axis}, mode=\"{g.pick('fast', 'clip', 'wrap', 'nan')}\")"


def strided_slice(g):
    shape = g.shape(g.int(1, 4))
    axes = g.rng.sample(range(len(shape)), g.int(1, len(shape)))
    begin = [g.int(-2, 3) for _ in axes]
    end = [b + g.int(1, 4) if b >= 0 else g.pick(-1, 8) for b in begin]
    strides = [g.pick(1, 1, 1, 2) for _ in axes]
    tup = lambda v: "(" + "".join(f"{x}, " for x in v) + ")"
    return f"R.strided_slice({g.tensor(shape)}, {tup(axes)}, {tup(begin)}, {tup(end)}, {tup(strides)}, assume_inbound=False)"


def dynamic_strided_slice(g):
    ndim = g.int(1, 3)
    bound = lambda: g.tensor([ndim if g.chance(0.95) else ndim + 1], "int64" if g.chance(0.95) else "int32", known=1)
    return f"R.dynamic_strided_slice({g.tensor(g.shape(ndim))}, {bound()}, {bound()}, {bound()})"


def where(g):
    shape = g.shape()
    dtype = g.dtype("f")
    other = dtype if g.chance(0.93) else "int32"
    condition = "bool" if g.chance(0.93) else "float32"
    return f"R.where({g.tensor(g.like(shape), condition)}, {g.tensor(shape, dtype)}, {g.tensor(g.like(shape), other)})"


def one_hot(g):
    shape = g.shape(g.int(0, 3))
    return f"R.one_hot({g.tensor(shape, g.pick('int32', 'int64', 'int64', 'float32'))}, R.prim_value(T.float32(1.0)), R.prim_value(T.float32(0.0)), depth={g.int(1, 5)}, axis={g.axis(len(shape) + 1)})"


def scatter_elements(g):
    shape = g.shape(g.int(1, 3))
    indices = [g.dim() for _ in shape]
    updates = indices if g.chance(0.9) else g.shape(len(shape))
    return (
        f"R.scatter_elements({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'float32'))}, {g.tensor(updates)}, "
        f"axis={g.axis(len(shape))}, reduction=\"{g.pick('update', 'add', 'mul', 'min', 'max')}\")"
    )


def scatter_nd(g):
    shape = g.shape(g.int(1, 3))
    lead = g.shape(g.int(1, 2))
    k = g.int(1, len(shape))
    updates = lead + shape[k:]
    if g.chance(0.1):
        updates = g.shape()
    return f"R.scatter_nd({g.tensor(shape)}, {g.tensor(lead + [k], g.pick('int64', 'int64', 'float32'))}, {g.tensor(updates)}, reduction=\"update\")"


def slice_scatter(g):
    shape = [8] + g.shape(g.int(0, 2))
    start, end, step = g.pick((1, 7, 2), (0, 3, 1), (-5, -1, 1), (2, 8, 3))
    count = (end - start + step - 1) // step
    source = [count if g.chance(0.9) else count + 1] + shape[1:]
    return f"R.slice_scatter({g.tensor(shape)}, {g.tensor(source)}, R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), axis={g.pick(0, -len(shape))})"


def index_tensor(g):
    shape = g.shape(g.int(1, 4))
    front = g.shape(g.int(1, 2))
    k = g.int(1, len(shape) + g.chance(0.1))
    indices = [g.tensor(g.like(front) or [1], g.pick("int64", "int32", "int64", "int64", "float32" if g.chance(0.2) else "int32")) for _ in range(k)]
    return f"R.index_tensor({g.tensor(shape)}, ({''.join(i + ', ' for i in indices)}))"


def index_put(g):
    shape = g.shape(g.int(1, 3))
    front = [g.pick(2, 3, "n")]
    k = len(shape) if g.chance(0.9) else g.int(1, 3)
    indices = [g.tensor(front, g.pick("int64", "int32"), known=1) for _ in range(k)]
    dtype = g.dtype("f")
    values = g.tensor(front, dtype if g.chance(0.9) else "int32", known=1)
    return f"R.index_put({g.tensor(shape, dtype)}, ({''.join(i + ', ' for i in indices)}), {values}, accumulate={g.chance(0.5)})"


def reverse_sequence(g):
    shape = g.shape(g.int(2, 3))
    batch = g.axis(len(shape))
    count = shape[batch] if -len(shape) <= batch < len(shape) and g.chance(0.9) else 5
    return f"R.reverse_sequence({g.tensor(shape)}, {g.tensor([count], g.pick('int32', 'int64', 'float32'))}, seq_axis={g.axis(len(shape))}, batch_axis={batch})"


def meshgrid(g):
    dtype = g.dtype("f")
    vectors = [g.tensor(g.shape(1 if g.chance(0.95) else 2), dtype if g.chance(0.95) else "int32", known=0.95) for _ in range(g.int(1, 3))]
    return f"R.meshgrid(({''.join(v + ', ' for v in vectors)}), indexing=\"ij\")"


def unique(g):
    shape = g.shape(g.int(0, 3))
    flags = ", ".join(f"R.prim_value({g.chance(0.5)})" for _ in range(4))
    axis = f", R.prim_value({g.axis(len(shape))})" if shape and g.chance(0.5) else ""
    return f"R.unique({g.tensor(shape, g.dtype('*'))}, {flags}{axis})"


def multinomial_from_uniform(g):
    n = g.dim()
    other = n if g.chance(0.9) else g.dim()
    return (
        f"R.multinomial_from_uniform({g.tensor(g.shape(2), g.pick('float32', 'float32', 'int32'))}, {g.tensor([n, 1], 'float32', known=1)}, "
        f"{g.tensor([other, 1], 'int64', known=1)}, dtype=\"{g.pick('int64', 'int32')}\")"
    )


CALLS = {
    "reshape": reshape, "broadcast_to": broadcast_to, "collapse_sum_to": collapse_sum_to, "collapse_sum_like": collapse_sum_like,
    "expand_dims": expand_dims, "squeeze": squeeze, "permute_dims": permute_dims, "concat": joined("concat"), "stack": joined("stack"),
    "split": split, "tile": tile, "repeat": repeat, "flip": with_axis("flip"), "flatten": unary("flatten"),
    "nn.batch_flatten": unary("nn.batch_flatten"), "gather_elements": gather_elements, "gather_nd": gather_nd, "take": take,
    "strided_slice": strided_slice, "dynamic_strided_slice": dynamic_strided_slice, "where": where, "one_hot": one_hot,
    "scatter_elements": scatter_elements, "scatter_nd": scatter_nd, "slice_scatter": slice_scatter, "index_tensor": index_tensor,
    "index_put": index_put, "reverse_sequence": reverse_sequence, "meshgrid": meshgrid, "unique": unique, "nonzero": unary("nonzero"),
    "multinomial_from_uniform": multinomial_from_uniform,
}
