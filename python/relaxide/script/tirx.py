"""The names of TVMScript's ``T``. Kernels are read, not run; what helpers build of scalars has a meaning here."""

from .. import tirx as _tirx
from ._namespace import Inert
from .entry import prim_func, script_macro as macro

_inert = Inert("T")
_DTYPES = ("int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 bool").split()


def _element(name):
    def make(value=None):
        if value is None:
            return _tirx.Var("", name)
        return _tirx.Cast(name, value) if isinstance(value, _tirx.ExprWithOp) else _tirx.const(value, name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A scalar of type {name}: a literal, a conversion, or a fresh variable."
    return make


globals().update({name: _element(name) for name in _DTYPES})
inline = macro
prim_func.__tvmscript__ = "T.prim_func"

#: Functions of scalars that helpers may call.
_SCALAR = frozenset(
    "acos acosh asin asinh atan atanh ceil cos cosh erf exp exp2 exp10 floor log log2 log10 log1p nearbyint round rsqrt "
    "sigmoid sin sinh sqrt tan tanh trunc floordiv floormod truncdiv truncmod ceildiv max min if_then_else abs pow "
    "min_value max_value all any".split()
)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name in _SCALAR:
        return getattr(_tirx, name)
    return getattr(_inert, name)
