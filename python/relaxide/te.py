"""The compute language: tensors described by an expression for each element.

::

    A = te.placeholder((128, n), "float32", name="A")
    k = te.reduce_axis((0, n), name="k")
    B = te.compute((128,), lambda i: te.sum(A[i, k], axis=k), name="B")
"""

import builtins
from contextlib import contextmanager
from contextvars import ContextVar

from . import _core
from ._core import TeTensor as Tensor
from ._te_tensor import BaseComputeOp, ComputeOp, ExternOp, Operation, PlaceholderOp, ScanOp, TensorOpBase, TensorSlice
from .tirx import *  # noqa: F403
from .tirx import Evaluate, IterVar, Range, Stmt, Var
from .tirx import const as _const
from .ir import _api

#: The type of sizes that are given as plain numbers.
_SIZES = ContextVar("sizes", default="int32")


@contextmanager
def _sizes_are(dtype):
    token = _SIZES.set(dtype)
    try:
        yield
    finally:
        _SIZES.reset(token)


def _size(value):
    if not isinstance(value, int):
        return value
    return _const(value, _SIZES.get() if -(2**31) <= value < 2**31 else "int64")


def _is_sequence(value):
    """Whether it is several dimensions, which are expressions or numbers themselves."""
    return isinstance(value, (tuple, list)) or hasattr(value, "__len__") and not isinstance(value, Expr)


def _dims(shape):
    """Dimensions, of which one may come without a list."""
    return [_size(dim) for dim in (shape if _is_sequence(shape) else (shape,))]


def _as_its_variable(name):
    def operate(self, *others):
        return getattr(self.asobject(), name)(*others)

    operate.__name__ = operate.__qualname__ = name
    return operate


#: Operators that an axis has because its variable has them.
_OPERATORS = "add sub mul truediv floordiv mod".split()
_OPERATORS = [f"__{side}{name}__" for name in _OPERATORS for side in ("", "r")] + "__lt__ __le__ __gt__ __ge__".split()
for _axis in (_core.ReduceAxis, IterVar):
    for _name in _OPERATORS:
        setattr(_axis, _name, _as_its_variable(_name))


def placeholder(shape, dtype="float32", name="placeholder"):
    """An input of a kernel."""
    return _core.te_placeholder(_dims(shape), dtype or "float32", name)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at some indices is what a function of them returns.

    A function that returns several values at once, as a tuple or as a reduction of several, makes as many tensors. ``tag`` says
    what kind of compute it is, by default that of the :class:`TagScope` around. ``attrs`` become annotations of its block; tensors
    in lists among them become the kernel's buffers, and those of ``"layout_free_placeholders"`` that are arguments are listed by
    their places as the kernel's ``"layout_free_buffers"``.
    """
    import inspect

    shape = _dims(shape)
    parameters = list(inspect.signature(fcompute).parameters.values())
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if builtins.any(p.kind == p.VAR_POSITIONAL for p in parameters):
        names = varargs_names or [f"ax{axis}" for axis in range(len(shape))]
    if len(names) != len(shape):
        raise ValueError(f"fcompute does not match dimension, ndim={len(shape)}, but it takes {len(names)} indices")
    started = []

    def body(*axes):
        value = fcompute(*axes)
        started.append(isinstance(value, _Started))
        return value.reduction if started[-1] else value

    if not tag and TagScope.get_current() is not None:
        tag = TagScope.get_current().tag
    about = (tag, {key: _with_buffers(value) for key, value in (attrs or {}).items()})
    made = _core.te_compute(shape, names, body, name, *about)
    if not made:
        raise ValueError("a compute has at least one value")
    if builtins.any(started):
        parts = _core.te_compute(shape, names, body, f"{name}_parts", "", {})
        whole = lambda *axes: fcompute(*axes).onto([part(*axes) for part in parts])  # noqa: E731
        made = _core.te_compute(shape, names, whole, name, *about)
    return made[0] if len(made) == 1 else made


def _with_buffers(value):
    """The value of an attribute, with tensors in lists named by their buffers."""
    if isinstance(value, (list, tuple)):
        return [_with_buffers(item) for item in value]
    return value._buffer if isinstance(value, Tensor) else value


def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis for a reduction, over a range or ``(begin, end)``."""
    if not hasattr(dom, "extent"):
        begin, end = map(_size, dom)
        return _core.te_reduce_axis(begin, _api.prim.binary("Sub", end, begin), name)
    return _core.te_reduce_axis(dom.min, dom.extent, name)


def thread_axis(dom=None, tag="", name="", span=None):
    """An axis of threads: ``tag`` names them, such as ``"threadIdx.x"``, and is given as the only argument where ``dom`` is not known."""
    dom, tag = (None, dom) if isinstance(dom, str) else (dom, tag)
    if not tag:
        raise ValueError("tag must say which threads the axis is of, such as 'threadIdx.x'")
    return IterVar(dom, (name or tag).replace(".", "_"), IterVar.ThreadIndex, tag)


def _axes(axis):
    return list(axis) if isinstance(axis, (tuple, list)) else [axis]


def _is_reduction(axis):
    return isinstance(axis[0] if isinstance(axis, (tuple, list)) and axis else axis, _core.ReduceAxis)


class _Started:
    """A reduction, and values that count once beside those of its axes."""

    def __init__(self, reduction, start, combine):
        self.reduction, self.start, self.combine = reduction, start, combine

    def onto(self, parts):
        """The start combined with what the axes gave."""
        return tuple(self.combine(self.start, parts))


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reduction of one's own.

    ``fcombine(x, y)`` combines two values, in any order; ``fidentity(dtype)`` is what changes nothing. For several values at
    once both take and give tuples. The result is called as ``reducer(value, axis=k)`` for the whole element of a compute, or
    as ``reducer(a, b, …)`` for the combination of scalars.

    ::

        largest = te.comm_reducer(lambda x, y: te.max(x, y), lambda dtype: tvm.tirx.min_value(dtype), name="largest")
        B = te.compute((n,), lambda i: largest(A[i, k], axis=k))
    """

    def over_axes(values, axis, where, init):
        several = isinstance(values, (tuple, list)) or hasattr(values, "_items")
        values = list(values) if several else [values]
        dtypes = [_core.te_dtype(value) for value in values]
        identities = fidentity(*dtypes)
        identities = list(identities) if several else [identities]
        if where is not None:
            values = [_api.prim.if_then_else(where, value, other) for value, other in zip(values, identities)]
        combine = fcombine if several else lambda x, y: (fcombine(x[0], y[0]),)
        made = _core.te_combine(values, identities, _axes(axis), combine)
        return made if init is None else _Started(made, list(init) if several else [init], combine)

    def reducer(expr, axis, where=None, init=None, *args):
        if _is_reduction(axis):
            return over_axes(expr, axis, where, init)
        result = expr
        for value in (axis, where, init, *args):
            if value is not None:
                result = fcombine(result, value)
        return result

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = f"``{name}`` over axes, as the whole element of a compute, or of scalars."
    return reducer


def _reduction(kind, doc, operator=None):
    of_scalars = operator and (lambda a, b: _api.prim.binary(operator, a, b))

    def reduce(expr, axis, where=None, init=None, *args):
        if not _is_reduction(axis):
            result = expr
            for value in (axis, where, init, *args):
                result = result if value is None else of_scalars(result, value)
            return result
        if where is not None:
            expr = _api.prim.if_then_else(where, expr, _core.te_identity(kind, expr))
        made = _core.te_reduce(kind, expr, _axes(axis))
        return made if init is None else _Started(made, [init], lambda a, b: [of_scalars(a[0], b[0])])

    reduce.__name__ = reduce.__qualname__ = kind
    reduce.__doc__ = doc
    return reduce


_DOC = """{} over axes: the whole element of a compute. Of scalars, that of all of them.

    ``where`` is a condition of the values that count. ``init`` is a value that counts once beside them.
    """
sum = _reduction("sum", _DOC.format("The sum"), "Add")
prod = _reduction("prod", _DOC.format("The product"), "Mul")
max = _reduction("max", _DOC.format("The largest value"), "Max")
min = _reduction("min", _DOC.format("The smallest value"), "Min")


def _as_list(value):
    return [value] if isinstance(value, Tensor) else list(value or ())


def _one_or_all(made):
    return made[0] if len(made) == 1 else made


def scan(init, update, state_placeholder, inputs=None, name="scan", tag="", attrs=None):
    """Tensors whose elements follow from those before them, along the first dimension.

    ``init`` gives the first elements, ``update`` every later one, over ``state_placeholder``, which stands for the result so
    far. All three are tensors or lists of as many tensors; ``update`` is a compute that reads the placeholder itself.

    ::

        state = te.placeholder((m, n))
        first = te.compute((1, n), lambda _, i: X[0, i])
        update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i])
        sums = te.scan(first, update, state)
    """
    parts = map(_as_list, (init, update, state_placeholder))
    return _one_or_all(_core.te_scan(name, *parts))


def extern(
    shape, inputs, fcompute, name="extern", dtype=None, in_buffers=None, out_buffers=None, tag="", attrs=None
):
    """Tensors that a statement fills.

    ``shape`` is the shape of the output, or a list of shapes; ``dtype`` its element type, or a list of them, by default the
    inputs'. ``fcompute(ins, outs)`` gets a buffer for each input and output and returns a statement, or an expression that
    is evaluated for what it does. ``in_buffers`` and ``out_buffers`` are buffers that the statement uses instead.
    """
    shapes = shape if _is_sequence(shape) else (shape,)
    if not len(shapes) or not _is_sequence(shapes[0]):
        shapes = [shapes]
    inputs = _as_list(inputs)
    if not builtins.all(isinstance(tensor, Tensor) for tensor in inputs):
        raise ValueError("expect inputs to be tensor")
    out_buffers = [out_buffers] if out_buffers is not None and not isinstance(out_buffers, (tuple, list)) else out_buffers
    in_buffers = [in_buffers] if in_buffers is not None and not isinstance(in_buffers, (tuple, list)) else in_buffers
    if out_buffers is not None:
        dtypes = [buffer.dtype for buffer in out_buffers]
    elif dtype is None:
        known = {str(tensor.dtype) for tensor in inputs}
        if len(known) != 1:
            raise ValueError("Cannot infer output type, please provide dtype argument")
        dtypes = [known.pop()] * len(shapes)
    else:
        dtypes = [dtype] if isinstance(dtype, str) else list(dtype)
    for what, given, count in (("inputs", in_buffers, len(inputs)), ("outputs", out_buffers, len(shapes))):
        if given is not None and len(given) != count:
            raise RuntimeError(f"Number of {what} and buffers mismatch: {count} vs {len(given)}.")

    def body(ins, outs):
        made = fcompute(in_buffers or ins, out_buffers or outs)
        made = made if isinstance(made, Stmt) else Evaluate(made)
        mine = [*(in_buffers or ()), *(out_buffers or ())]
        theirs = [*(ins if in_buffers else ()), *(outs if out_buffers else ())]
        return _api.tirx.OverBuffers(made, mine, theirs) if mine else made

    outputs = [(name, _dims(shape), dtype) for shape, dtype in zip(shapes, dtypes)]
    given = tuple(None if buffers is None else list(buffers) for buffers in (in_buffers, out_buffers))
    return _one_or_all(_core.te_extern(name, inputs, outputs, given, body))


def extern_primfunc(input_tensors, primfunc, **kwargs):
    """The tensors that a kernel makes of tensors: its buffers that it writes and does not read are the outputs.

    Of a kernel that reads all that it writes, the last buffer that it writes is the output.
    """
    reads, writes = _api.tirx.BufferAccesses(primfunc.body)
    buffers = [buffer for buffer in primfunc.buffers if buffer is not None]
    inputs = [buffer for buffer in buffers if builtins.any(buffer.same_as(other) for other in reads)]
    outputs = [buffer for buffer in buffers if builtins.any(buffer.same_as(other) for other in writes)]
    fresh = [buffer for buffer in outputs if not builtins.any(buffer.same_as(other) for other in inputs)]
    if not fresh and outputs:
        fresh = outputs[-1:]
        inputs = [buffer for buffer in inputs if not buffer.same_as(fresh[0])]
    if not fresh or len(inputs) != len(input_tensors):
        raise ValueError(f"the kernel has {len(inputs)} inputs and {len(fresh)} outputs of their own")
    values = {}
    for tensor, buffer in zip(input_tensors, inputs):
        if len(tensor.shape) != len(buffer.shape) or str(tensor.dtype) != str(buffer.dtype):
            raise ValueError(f"{tensor} does not fit the kernel's {buffer.name}")
        values.update((dim, given) for dim, given in zip(buffer.shape, tensor.shape) if isinstance(dim, Var))
    if values:
        return extern_primfunc(input_tensors, primfunc.specialize(values), **kwargs)
    shapes = [list(buffer.shape) for buffer in fresh]
    buffers = {"in_buffers": inputs, "out_buffers": fresh}
    return extern(shapes, input_tensors, lambda ins, outs: primfunc.body, **buffers, **kwargs)


def var(name="tindex", dtype="int32", span=None):
    """A scalar variable."""
    return Var(name, dtype)


def size_var(name="size", dtype="int32", span=None):
    """A scalar variable that is a size."""
    return Var(name, dtype)


def create_prim_func(ops, index_dtype_override=None):
    """The kernel of tensors: inputs first, then outputs. It is called ``main``. Variables among them are scalar parameters there.

    With ``index_dtype_override="int64"`` it counts in that type, whatever the types of its dimensions are.
    """
    return _core.te_create_prim_func(list(ops), index_dtype_override).with_attr("global_symbol", "main")


class TagScope:
    """While it is open, computes are made under a tag; as a decorator, those of a function."""

    _current = None

    @classmethod
    def get_current(cls):
        """The scope that is open, which it is asked for once; ``None`` where there is none."""
        if cls._current:
            cls._current.accessed = True
        return cls._current

    def __init__(self, tag):
        self._old, self.tag, self.accessed = None, tag, False

    def __enter__(self):
        if TagScope._current is not None:
            raise ValueError("nested op_tag is not allowed for now")
        self._old, TagScope._current = TagScope._current, self
        return self

    def __exit__(self, kind, value, traceback):
        TagScope._current = self._old

    def __call__(self, fdecl):
        import functools

        @functools.wraps(fdecl)
        def tagged(*args, **kwargs):
            with self:
                return fdecl(*args, **kwargs)

        return tagged


def tag_scope(tag):
    """A :class:`TagScope`. Tags are hints about kinds of computes, which ``tensor.op.tag`` tells; here nothing is decided by them."""
    return TagScope(tag)
