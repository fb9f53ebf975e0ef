"""Operators on tensors of modules: arithmetic, comparisons, reductions, shapes, order."""

from ... import op as _op
from ...expr import DataflowVar, ShapeExpr, const
from ._values import Tensor, wrap_nested


def add(a, b, name="add"):
    """``a + b``, with broadcasting."""
    return wrap_nested(_op.add(a._expr, b._expr), name)


def subtract(a, b, name="subtract"):
    """``a - b``, with broadcasting."""
    return wrap_nested(_op.subtract(a._expr, b._expr), name)


def multiply(a, b, name="mul"):
    """``a * b``, with broadcasting."""
    return wrap_nested(_op.multiply(a._expr, b._expr), name)


def divide(a, b, name="divide"):
    """``a / b``, with broadcasting."""
    return wrap_nested(_op.divide(a._expr, b._expr), name)


def maximum(x1, x2, name="maximum"):
    """The larger of two elements, with broadcasting."""
    return wrap_nested(_op.maximum(x1._expr, x2._expr), name)


def minimum(x1, x2, name="minimum"):
    """The smaller of two elements, with broadcasting."""
    return wrap_nested(_op.minimum(x1._expr, x2._expr), name)


def less(a, b, name="less"):
    """``a < b``, as bool."""
    return wrap_nested(_op.less(a._expr, b._expr), name)


def less_equal(a, b, name="less_equal"):
    """``a <= b``, as bool."""
    return wrap_nested(_op.less_equal(a._expr, b._expr), name)


def greater(a, b, name="greater"):
    """``a > b``, as bool."""
    return wrap_nested(_op.greater(a._expr, b._expr), name)


def greater_equal(a, b, name="greater_equal"):
    """``a >= b``, as bool."""
    return wrap_nested(_op.greater_equal(a._expr, b._expr), name)


def equal(a, b, name="equal"):
    """``a == b``, as bool."""
    return wrap_nested(_op.equal(a._expr, b._expr), name)


def not_equal(a, b, name="not_equal"):
    """``a != b``, as bool."""
    return wrap_nested(_op.not_equal(a._expr, b._expr), name)


def where(condition, x1, x2, name="where"):
    """``x1`` where ``condition`` holds, ``x2`` elsewhere, with broadcasting; a condition of numbers holds where it is not zero."""
    condition = condition if condition.dtype == "bool" else astype(condition, "bool")
    return wrap_nested(_op.where(condition._expr, x1._expr, x2._expr), name)


def negative(x, name="neg"):
    """``-x``."""
    return wrap_nested(_op.negative(x._expr), name)


def exp(x, name="exp"):
    """``e`` to the power of each element."""
    return wrap_nested(_op.exp(x._expr), name)


def log(x, name="log"):
    """The natural logarithm."""
    return wrap_nested(_op.log(x._expr), name)


def floor(x, name="floor"):
    """The largest integer that is not larger."""
    return wrap_nested(_op.floor(x._expr), name)


def square(x, name="square"):
    """``x * x``."""
    return wrap_nested(_op.square(x._expr), name)


def sqrt(x, name="sqrt"):
    """The square root."""
    return wrap_nested(_op.sqrt(x._expr), name)


def tanh(x, name="tanh"):
    """The hyperbolic tangent."""
    return wrap_nested(_op.tanh(x._expr), name)


def sigmoid(x, name="sigmoid"):
    """``1 / (1 + exp(-x))``."""
    return wrap_nested(_op.sigmoid(x._expr), name)


def astype(x, dtype, name="astype"):
    """The elements converted to ``dtype``; the tensor itself where it has that type already."""
    if x.dtype == str(dtype):
        return x
    return wrap_nested(_op.astype(x._expr, dtype), name)


def sum(x, axis=None, keepdims=False, name="sum"):
    """The sum over ``axis``, an int or several; over all where nothing is said."""
    return wrap_nested(_op.sum(x._expr, axis, keepdims), name)


def max(x, axis=None, keepdims=False, name="max"):
    """The largest element over ``axis``, an int or several; over all where nothing is said."""
    return wrap_nested(_op.max(x._expr, axis, keepdims), name)


def min(x, axis=None, keepdims=False, name="min"):
    """The smallest element over ``axis``, an int or several; over all where nothing is said."""
    return wrap_nested(_op.min(x._expr, axis, keepdims), name)


def cumsum(data, axis=None, dtype=None, exclusive=None, name="cumsum"):
    """Running sums along ``axis``, or of the flat tensor; ``exclusive`` leaves out the element itself."""
    return wrap_nested(_op.cumsum(data._expr, axis, dtype, bool(exclusive)), name)


def matmul(a, b, out_dtype=None, name="matmul"):
    """The product of matrices, broadcast over the leading dimensions."""
    return wrap_nested(_op.matmul(a._expr, b._expr, out_dtype=out_dtype), name)


def unsqueeze(x, dim, name="unsqueeze"):
    """A dimension of one in front of ``dim``."""
    return wrap_nested(_op.expand_dims(x._expr, dim), name)


def squeeze(x, axis=-1, name="squeeze"):
    """Without the dimension ``axis``, whose length is one."""
    return wrap_nested(_op.squeeze(x._expr, axis), name)


def concat(x, dim, name="concat"):
    """Tensors one behind the other along ``dim``."""
    return wrap_nested(_op.concat([item._expr for item in x], dim), name)


def chunk(x, chunks, dim=0, name="chunk"):
    """``chunks`` equal parts along ``dim``."""
    return wrap_nested(_op.split(x._expr, chunks, dim), name)


def split(ary, indices_or_sections, axis=0, name="split"):
    """Equal parts, where a number is given, or the parts between positions, along ``axis``."""
    return wrap_nested(_op.split(ary._expr, indices_or_sections, axis), name)


def broadcast_to(x, shape, name="broadcast_to"):
    """The tensor repeated along dimensions of one and new leading ones until it has ``shape``."""
    return wrap_nested(_op.broadcast_to(x._expr, shape), name)


def _sequence(values):
    """One sequence, where the only value is one."""
    if isinstance(values, (list, tuple)) and len(values) == 1 and isinstance(values[0], (list, tuple)):
        return list(values[0])
    return values if values is None else list(values)


def permute_dims(x, axes=None, name=None):
    """The dimensions in the order ``axes``, reversed where nothing is said."""
    if name is None:
        # The turned weight of a layer is called after the product that it is for.
        name = x._expr.name_hint.replace("linear", "matmul") if isinstance(x._expr, DataflowVar) else "permute_dims"
    return wrap_nested(_op.permute_dims(x._expr, _sequence(axes)), name)


def permute(x, axes, name="permute"):
    """The dimensions in the order ``axes``."""
    return wrap_nested(_op.permute_dims(x._expr, _sequence(axes)), name)


def reshape(x, shape, name="reshape"):
    """The elements in another shape, in which -1 stands for what is left."""
    return wrap_nested(_op.reshape(x._expr, _sequence(shape)), name)


def repeat(x, repeats, axis=None, name="repeat"):
    """Each element ``repeats`` times along ``axis``, or of the flat tensor."""
    return wrap_nested(_op.repeat(x._expr, repeats, axis), name)


def take(x, indices, axis=None, name="take"):
    """The parts at ``indices`` along ``axis``."""
    return wrap_nested(_op.take(x._expr, indices._expr, axis), name)


def triu(x, diagonal=0, name="triu"):
    """The upper triangle, zero elsewhere; ``diagonal`` says how far above the main diagonal it begins."""
    return wrap_nested(_op.triu(x._expr, diagonal), name)


def pad(x, pad, mode="constant", value=0.0, name="pad"):
    """Elements added at both ends of dimensions: ``pad`` holds two numbers for each dimension, from the first."""
    return wrap_nested(_op.nn.pad(x._expr, pad_width=pad, pad_mode=mode, pad_value=value), name)


def full(shape, fill_value, dtype="float32", name="full"):
    """A tensor of one value, a number or a tensor without dimensions."""
    if isinstance(fill_value, Tensor):
        value = fill_value._expr
    else:
        value = const(getattr(fill_value, "value", fill_value), dtype)
    return wrap_nested(_op.full(shape, value, dtype), name)


def zeros(shape, dtype="float32", name="zeros"):
    """A tensor of zeros."""
    return wrap_nested(_op.zeros(shape, dtype), name)


def ones(shape, dtype="float32", name="ones"):
    """A tensor of ones."""
    return wrap_nested(_op.ones(shape, dtype), name)


def empty(shape, dtype="float32", name="empty"):
    """A tensor whose elements are not set."""
    return wrap_nested(_op.builtin.alloc_tensor(ShapeExpr(list(shape)), dtype, 0, "global"), name)


def arange(start, end=None, step=1, dtype="float32", name="arange"):
    """Numbers from ``start`` up to ``end``, which is left out, by ``step``; from zero where only one number is given."""
    start, end = (0, start) if end is None else (start, end)
    return wrap_nested(_op.arange(start, end, step, dtype), name)


def sort(x, axis=-1, descending=False, name="sort"):
    """The elements in order along ``axis``."""
    return wrap_nested(_op.sort(x._expr, axis, descending), name)


def argsort(data, axis=-1, descending=False, dtype="int32", name="argsort"):
    """The positions of the elements in order along ``axis``."""
    return wrap_nested(_op.argsort(data._expr, axis, descending, dtype), name)


def topk(data, k=1, axis=-1, ret_type="both", largest=True, dtype="int32", name="topk"):
    """The ``k`` largest or smallest elements along ``axis``: values, positions (``ret_type="indices"``) or both."""
    return wrap_nested(_op.topk(data._expr, k, axis, ret_type, largest, dtype), name)


def ccl_allreduce(x, op_type="sum", in_group=True, name="ccl_allreduce"):
    """The sum (product, maximum, minimum, average) of the tensors of all workers."""
    return wrap_nested(_op.ccl.allreduce(x._expr, op_type, in_group), name)


def ccl_allgather(x, num_workers, name="ccl_allgather"):
    """The tensors of all workers one behind the other."""
    return wrap_nested(_op.ccl.allgather(x._expr, num_workers), name)


def ccl_broadcast_from_worker0(x, name="broadcast_from_worker"):
    """The tensor of the first worker."""
    return wrap_nested(_op.ccl.broadcast_from_worker0(x._expr), name)


__all__ = [
    name for name, value in list(globals().items()) if callable(value) and value.__module__ == __name__ and name[0] != "_"
]
