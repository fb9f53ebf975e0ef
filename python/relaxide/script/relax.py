"""The names of TVMScript's ``R``: types, operators, constants.

Programs are read, not run, so that most of what stands in them needs no meaning in Python. Annotations are evaluated by
Python, and helper functions that a program calls build expressions with these names: those are the functions below and
every operator of :mod:`relaxide.relax.op`.
"""

import builtins
import sys

from ..ir.expr import Tuple as _Tuple
from ..ir.expr import TupleGetItem
from ..ir.global_info import VDevice
from ..ir.type import AnyType, FuncType, PrimType, ShapeType, StringType, TensorType, TupleType
from ._namespace import Inert
from .entry import function, script_macro as macro
from ._proxies import AnyProxy, CallableProxy, ObjectProxy, PackedCallableProxy, PrimProxy, ShapeProxy, TensorProxy, TupleProxy, TypeProxy

_inert = Inert("R")
#: Functions that make devices, for ``R.hint_on_device``.
_DEVICES = frozenset("cpu cuda device ext_dev metal opencl rocm vpi vulkan".split())


def _dims(shape):
    """Dimensions, where text stands for a symbolic one."""
    from ..tirx import Var

    if shape is None:
        return None
    values = getattr(shape, "values", shape)
    values = values if not callable(values) else shape
    return [Var(dim, "int64") if isinstance(dim, builtins.str) and dim.isidentifier() else dim for dim in values]


def Tensor(shape=None, dtype=None, vdevice=None, ndim=-1):
    """The type of tensors."""
    if isinstance(shape, builtins.str) and dtype is None:
        shape, dtype = None, shape
    try:
        return TensorType(_dims(shape), dtype, vdevice if isinstance(vdevice, VDevice) else None, ndim=ndim)
    except (TypeError, ValueError):
        # A dimension such as "n * 2", or one that only the program knows: the parser reads the text.
        return _inert.Tensor(shape, dtype)


def Shape(values=None, ndim=-1):
    """The type of shapes."""
    try:
        return ShapeType(_dims(values), ndim)
    except (TypeError, ValueError):
        return _inert.Shape(values)


def Tuple(*fields):
    """The type of tuples."""
    if len(fields) == 1 and isinstance(fields[0], (builtins.tuple, list)):
        fields = fields[0]
    try:
        return TupleType([field() if callable(field) and not isinstance(field, Inert) else field for field in fields])
    except (TypeError, ValueError):
        return _inert.Tuple(*fields)


def Callable(params=None, ret=None, purity=None, derive_func=None):
    """The type of functions."""
    try:
        # A kind of types without more said of it: `R.Tuple`.
        ret = ret() if callable(ret) and not isinstance(ret, Inert) else ret
        if params is None:
            return FuncType.opaque_func(ret=ret, derive_func=derive_func, purity=bool(purity))
        ret = AnyType() if ret is None else ret
        return FuncType(params, ret, purity is not False)
    except (TypeError, ValueError):
        return _inert.Callable(params, ret)


def Prim(dtype):
    """The type of scalars."""
    return PrimType(dtype)


def Any():
    """The type of any value."""
    return AnyType()


Object = Any


def str(value=None):
    """Text as a value; without a value, its type."""
    from ..ir.prim import StringImm

    return StringType() if value is None else StringImm(value)


def const(value, dtype=None):
    """A tensor constant."""
    from ..relax.expr import const

    return const(value, dtype)


def prim_value(value):
    """A scalar as a value."""
    from ..relax.expr import prim_value

    return prim_value(value)


def shape(value):
    """A shape as a value."""
    from ..relax.expr import ShapeExpr

    return ShapeExpr(value)


def tuple(*fields):
    """A tuple as a value."""
    return _Tuple(list(fields))


def dtype(value):
    """An element type as a value."""
    from ..relax.expr import DataTypeImm

    return DataTypeImm(value)


def ExternFunc(name):
    """A function outside the module."""
    from ..relax.expr import ExternFunc

    return ExternFunc(name)


def emit_te(func, *args, **kwargs):
    """The call of a kernel that a function of :mod:`relaxide.te` describes; the kernel joins the module that is being written."""
    from ..relax.te_call import describe
    from .ir_builder.base import IRBuilder

    if IRBuilder.is_in_scope():
        from ..relax.script.builder import ir as writing

        return writing.emit_te(func, *args, **kwargs)
    name = kwargs.pop("primfunc_name_hint", None) or getattr(func, "__name__", "te_func")
    kernel, tensors, types, scalars = describe(func, args, kwargs)
    return [kernel, "te_func" if name == "<lambda>" else name, list(tensors), list(types), list(scalars or ())]


def rewriter(cls):
    """Make the functions ``pattern`` and ``replacement`` of a class a rewriting rule; see
    :class:`relaxide.relax.dpl.PatternMatchingRewriter`."""
    from ..relax.dpl import PatternMatchingRewriter
    from .entry import _module

    module = _module(cls, sys._getframe(1)) if isinstance(cls, type) else cls
    return PatternMatchingRewriter.from_module(module)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    from ..relax import op
    from .ir_builder.base import IRBuilder

    # While a program is built by `with` blocks, names that write into it mean that.
    if IRBuilder.is_in_scope():
        from ..relax.script.builder import ir as writing

        if name in writing.__all__:
            return getattr(writing, name)
    if name in _DEVICES:
        from .. import runtime

        return getattr(runtime, name)
    try:
        return getattr(op, name)
    except AttributeError:
        return getattr(_inert, name)


function.__tvmscript__ = "R.function"

__all__ = ["Any", "Callable", "ExternFunc", "Object", "Prim", "Shape", "Tensor", "Tuple", "TupleGetItem", "const", "dtype"]
__all__ += ["AnyProxy", "CallableProxy", "ObjectProxy", "PackedCallableProxy", "PrimProxy", "ShapeProxy", "TensorProxy", "TupleProxy"]
__all__ += ["TypeProxy", "emit_te"]
__all__ += ["function", "macro", "prim_value", "shape", "str", "tuple"]
