"""The compute language: tensors described by an expression for each element.

::

    A = te.placeholder((128, n), "float32", name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((128,), lambda i: te.sum(A[i, k], axis=k), name="B")
"""

from . import _core
from ._core import TeTensor as Tensor
from ._extend import methods_of
from .tirx import *  # noqa: F403
from .tirx import Var


@methods_of(Tensor)
class _Methods:
    def __getitem__(self, indices):
        return _Slice(self, indices if isinstance(indices, tuple) else (indices,))._done()


class _Slice:
    """A tensor with some of its indices: ``A[i][j]`` is ``A[i, j]``."""

    def __init__(self, tensor, indices):
        self.tensor, self.indices = tensor, indices

    def _done(self):
        return self.tensor(*self.indices) if len(self.indices) == self.tensor.ndim else self

    def __getitem__(self, indices):
        return _Slice(self.tensor, self.indices + (indices if isinstance(indices, tuple) else (indices,)))._done()


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input of a kernel."""
    shape = shape if isinstance(shape, (tuple, list)) or hasattr(shape, "__len__") else (shape,)
    return _core.te_placeholder(list(shape), dtype or "float32", name)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at some indices is what a function of them returns."""
    import inspect

    shape = list(shape) if isinstance(shape, (tuple, list)) or hasattr(shape, "__len__") else [shape]
    parameters = list(inspect.signature(fcompute).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.kind == p.VAR_POSITIONAL for p in parameters):
        names = varargs_names or [f"ax{axis}" for axis in range(len(shape))]
    if len(names) != len(shape):
        raise ValueError(f"fcompute does not match dimension, ndim={len(shape)}, but it takes {len(names)} indices")
    return _core.te_compute(shape, names, fcompute, name)


def reduce_axis(dom, name="k", thread_tag="", span=None):
    """An axis for a reduction, over ``(0, extent)``."""
    begin, extent = (dom.min, dom.extent) if hasattr(dom, "extent") else dom
    if not (isinstance(begin, int) and begin == 0) and getattr(begin, "value", None) != 0:
        raise ValueError("a reduction runs over (0, extent): add the first value to the index")
    return _core.te_reduce_axis(extent, name)


def _reduction(kind, doc):
    def reduce(expr, axis, where=None, init=None, *args):
        if where is not None or init is not None:
            raise NotImplementedError("conditions and start values of reductions are written in the element itself")
        return _core.te_reduce(kind, expr, list(axis) if isinstance(axis, (tuple, list)) else [axis])

    reduce.__name__ = reduce.__qualname__ = kind
    reduce.__doc__ = doc
    return reduce


sum = _reduction("sum", "The sum over axes: the whole element of a compute.")
prod = _reduction("prod", "The product over axes: the whole element of a compute.")
_largest = _reduction("max", "The largest value over axes: the whole element of a compute.")
_smallest = _reduction("min", "The smallest value over axes: the whole element of a compute.")


def max(expr, axis, *rest):
    """The largest value over axes, or the larger of two scalars."""
    return _of_two_or_axes(expr, axis, "Max", _largest)


def min(expr, axis, *rest):
    """The smallest value over axes, or the smaller of two scalars."""
    return _of_two_or_axes(expr, axis, "Min", _smallest)


def _of_two_or_axes(expr, axis, op, reduce):
    from .ir import _api

    first = axis[0] if isinstance(axis, (tuple, list)) else axis
    if isinstance(first, _core.ReduceAxis):
        return reduce(expr, axis)
    return _api.prim.binary(op, expr, axis)


def var(name="tindex", dtype="int32", span=None):
    """A scalar variable."""
    return Var(name, dtype)


def size_var(name="size", dtype="int32", span=None):
    """A scalar variable that is a size."""
    return Var(name, dtype)


def create_prim_func(ops, index_dtype_override=None):
    """The kernel of tensors: inputs first, then outputs."""
    return _core.te_create_prim_func(list(ops))
