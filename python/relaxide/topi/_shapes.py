"""Shapes, reductions, order and data: operators on tensors of the compute language."""

from .. import te as _te
from ..tirx import IntImm
from ._operator import call, one


def identity(x):
    """A copy."""
    return _te.compute(x.shape, lambda *i: x(*i), name="T_identity")


def cast(x, dtype, span=None):
    """The elements converted to ``dtype``."""
    return x.astype(dtype) if not isinstance(x, _te.Tensor) else one("astype", x, dtype=dtype)


def clip(x, a_min, a_max):
    """The elements between two bounds."""
    return one("clip", x, a_min, a_max)


def full(shape, dtype, fill_value):
    """A tensor of one value."""
    return _te.compute(shape, lambda *i: _te.const(fill_value, dtype) if isinstance(fill_value, (int, float)) else fill_value, "T_full")


def full_like(x, fill_value):
    """A tensor of one value, of the shape and type of another."""
    return full(x.shape, str(x.dtype), fill_value)


def arange(start, stop=None, step=1, dtype="float32"):
    """Numbers from ``start`` up to ``stop``, which is left out."""
    start, stop = (0, start) if stop is None else (start, stop)
    return one("arange", start, stop, step, dtype=dtype)


def eye(n, m=None, k=0, dtype="float32"):
    """Ones on a diagonal, zeros elsewhere."""
    return one("eye", n, n if m is None else m, k, dtype=dtype)


def broadcast_to(data, shape):
    """The tensor repeated along dimensions of one until it has ``shape``."""
    return one("broadcast_to", data, shape)


def sum(data, axis=None, keepdims=False):
    """The sum over ``axis``, an int or several; over all where nothing is said."""
    return one("sum", data, axis=axis, keepdims=keepdims)


def prod(data, axis=None, keepdims=False):
    """The product over ``axis``."""
    return one("prod", data, axis=axis, keepdims=keepdims)


def max(data, axis=None, keepdims=False):
    """The largest element over ``axis``."""
    return one("max", data, axis=axis, keepdims=keepdims)


def min(data, axis=None, keepdims=False):
    """The smallest element over ``axis``."""
    return one("min", data, axis=axis, keepdims=keepdims)


def all(data, axis=None, keepdims=False):
    """Whether all elements over ``axis`` hold."""
    return one("min", data, axis=axis, keepdims=keepdims)


def any(data, axis=None, keepdims=False):
    """Whether an element over ``axis`` holds."""
    return one("max", data, axis=axis, keepdims=keepdims)


def argmax(data, axis=None, keepdims=False, select_last_index=False):
    """The position of the largest element along ``axis``, the first of equals, as int32."""
    return _place("argmax", data, axis, keepdims, select_last_index)


def argmin(data, axis=None, keepdims=False, select_last_index=False):
    """The position of the smallest element along ``axis``, the first of equals, as int32."""
    return _place("argmin", data, axis, keepdims, select_last_index)


def _place(name, data, axis, keepdims, last):
    if last:
        raise NotImplementedError(f"topi.{name} gives the first of equal elements: select_last_index is not supported")
    return cast(one(name, data, axis=axis, keepdims=keepdims), "int32")


def reshape(a, newshape):
    """The elements in another shape."""
    return one("reshape", a, newshape)


def transpose(a, axes=None):
    """The dimensions in the order ``axes``, reversed where nothing is said."""
    return one("permute_dims", a, axes=axes)


def expand_dims(a, axis, num_newaxis=1):
    """Dimensions of one at ``axis``."""
    axis = axis + len(a.shape) + 1 if axis < 0 else axis
    return one("expand_dims", a, axis=list(range(axis, axis + num_newaxis)))


def squeeze(a, axis=None):
    """Without dimensions of one."""
    if axis is None:
        # A dimension with a name stays: nobody knows that it is one.
        axis = [i for i, dim in enumerate(a.shape) if _is_one(dim)]
    return one("squeeze", a, axis=[axis] if isinstance(axis, int) else axis)


def _is_one(dim):
    return int(getattr(dim, "value", dim)) == 1 if isinstance(dim, (int, IntImm)) else False


def flip(a, axis=0):
    """The elements in reverse along ``axis``."""
    return one("flip", a, axis=axis)


def concatenate(a_tuple, axis=0):
    """Tensors one behind the other along ``axis``."""
    return one("concat", list(a_tuple), axis=axis)


def stack(tensors, axis=0):
    """Tensors along a new dimension."""
    return one("stack", list(tensors), axis=axis)


def split(ary, indices_or_sections, axis=0):
    """Equal parts, or the parts between positions, along ``axis``."""
    return call("split", ary, indices_or_sections=indices_or_sections, axis=axis)


def repeat(a, repeats, axis):
    """Each element ``repeats`` times along ``axis``."""
    return one("repeat", a, repeats=repeats, axis=axis)


def tile(a, reps):
    """The whole tensor several times along each dimension."""
    return one("tile", a, repeats=reps)


def take(a, indices, axis=None, batch_dims=0, mode="fast"):
    """The parts at ``indices`` along ``axis``."""
    if batch_dims:
        raise NotImplementedError("topi.take with batch_dims is not supported: use gather_nd")
    return one("take", a, indices, axis=axis, mode=mode)


def gather(data, axis, indices):
    """The elements whose position along ``axis`` is in ``indices``, which has the shape of the result."""
    return one("gather_elements", data, indices, axis=axis)


def gather_nd(a, indices, batch_dims=0):
    """The parts at whole positions, which the first dimension of ``indices`` holds."""
    rank = len(indices.shape)
    return one("gather_nd", a, transpose(indices, [*range(1, rank), 0]), batch_dims=batch_dims)


def where(condition, x, y):
    """``x`` where ``condition`` holds, ``y`` elsewhere."""
    condition = condition if str(condition.dtype) == "bool" else cast(condition, "bool")
    return one("where", condition, x, y)


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """Ones (``on_value``) at the positions of ``indices`` along a new dimension, zeros elsewhere."""
    on, off = (_te.const(value, dtype) if isinstance(value, (int, float)) else value for value in (on_value, off_value))
    return one("one_hot", indices, on, off, depth=depth, axis=axis)


def strided_slice(a, begin, end, strides=None, axes=None, slice_mode="end", assume_inbound=True):
    """From ``begin`` to ``end`` by ``strides`` along ``axes``, the first ones where nothing is said."""
    axes = list(range(len(begin))) if axes is None else list(axes)
    strides = [1] * len(begin) if strides is None else list(strides)
    if slice_mode == "size":
        sizes = list(end)
        end = [b + size if not isinstance(size, int) or size >= 0 else a.shape[axis] for b, size, axis in zip(begin, sizes, axes)]
    return one("strided_slice", a, axes, list(begin), list(end), strides, assume_inbound=False)


def trilu(data, k, upper):
    """The upper or lower triangle, zero elsewhere."""
    return one("triu" if upper else "tril", data, k)


def cumsum(data, axis=None, dtype=None, exclusive=None):
    """Running sums along ``axis``, or of the flat tensor."""
    return one("cumsum", data, axis=axis, dtype=dtype or str(data.dtype), exclusive=bool(exclusive))


def cumprod(data, axis=None, dtype=None, exclusive=None):
    """Running products along ``axis``, or of the flat tensor."""
    return one("cumprod", data, axis=axis, dtype=dtype or str(data.dtype), exclusive=bool(exclusive))


def sort(data, axis=-1, is_ascend=1):
    """The elements in order along ``axis``."""
    return one("sort", data, axis=axis, descending=not is_ascend)


def argsort(data, valid_count=None, axis=-1, is_ascend=1, dtype="float32"):
    """The positions of the elements in order along ``axis``."""
    if valid_count is not None:
        raise NotImplementedError("topi.argsort of a part (valid_count) is not supported")
    counts = dtype if dtype in ("int32", "int64") else "int64"
    order = one("argsort", data, axis=axis, descending=not is_ascend, dtype=counts)
    return order if counts == dtype else cast(order, dtype)


def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int64"):
    """The ``k`` largest (smallest) elements along ``axis``: values, positions (``"indices"``) or both."""
    made = call("topk", data, k=k, axis=axis, ret_type=ret_type, largest=not is_ascend, dtype=dtype)
    return made if ret_type == "both" else made[0]


def matmul(a, b, transp_a=False, transp_b=False):
    """The product of matrices."""
    return one("matmul", _turned(a, transp_a), _turned(b, transp_b))


def _turned(x, turn):
    rank = len(x.shape)
    return transpose(x, [*range(rank - 2), rank - 1, rank - 2]) if turn else x


def einsum(subscripts, *operand):
    """Sums of products by Einstein's notation."""
    return one("einsum", list(operand), subscripts=subscripts)


def meshgrid(a_tuple, indexing):
    """Coordinates of a grid."""
    return call("meshgrid", list(a_tuple), indexing=indexing)


def elemwise_sum(xs):
    """The sum of several tensors of one shape."""
    total, *rest = xs
    for x in rest:
        total = one("add", total, x)
    return total


def layout_transform(array, src_layout, dst_layout, schedule_rule="None"):
    """The dimensions in another order; ``"NCHW"`` to ``"NHWC"``."""
    if sorted(src_layout) != sorted(dst_layout) or not src_layout.isupper():
        raise NotImplementedError(f"topi.layout_transform permutes dimensions only, got {src_layout} to {dst_layout}")
    return transpose(array, [src_layout.index(axis) for axis in dst_layout])


def scatter_elements(data, indices, updates, axis=0, reduction="update"):
    """The tensor with elements at positions along ``axis`` replaced by, or combined with, ``updates``."""
    return one("scatter_elements", data, indices, updates, axis=axis, reduction=reduction)


def scatter_nd(data, indices, updates, mode):
    """The tensor with parts at whole positions replaced by, or combined with, ``updates``."""
    rank = len(indices.shape)
    return one("scatter_nd", data, transpose(indices, [*range(1, rank), 0]), updates, reduction=mode)


def index_tensor(data, indices):
    """Elements at positions that several tensors give."""
    return one("index_tensor", data, list(indices))


def searchsorted(sorted_sequence, values, right=False, out_dtype="int64"):
    """Where values belong in a sequence that is in order."""
    made = one("bucketize", values, sorted_sequence, right=right, out_int32=out_dtype == "int32")
    return cast(made, out_dtype)


def shape(array, dtype="int32"):
    """The dimensions as a tensor."""
    dims = list(array.shape)

    def dim(i):
        value = _te.const(0, dtype)
        for at, extent in enumerate(dims):
            number = _te.const(extent, dtype) if isinstance(extent, int) else extent.astype(dtype)
            value = _te.if_then_else(i == at, number, value)
        return value

    return _te.compute([len(dims)], dim, name="T_shape")


__all__ = [
    name for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__ and name[0] != "_"
]
