"""The names of TVMScript's ``T``. Kernels are read, not run; what helpers build of scalars has a meaning here."""

import re

from .. import tirx as _tirx
from ..tirx.layout import R, S, Axis, ComposeLayout, Iter, TileLayout
from . import tile
from ._namespace import Inert, Signature
from ._specialize import Optional, constexpr, jit
from .entry import prim_func, script_macro as macro
from .ir import meta_var

_inert = Inert("T")
_DTYPE = re.compile(r"(int|uint|float|bfloat)\d+(_\w+)?(x\d+|xvscalex\d+)?")
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

#: Names that TVMScript has in small letters for what makes a node.
_SMALL = {"ramp": "Ramp", "broadcast": "Broadcast", "Range": "Range", "buffer_load": "BufferLoad"}
#: What makes scalars, and so has a meaning in the helpers of a program: functions, and the classes of nodes.
_SCALAR = {name for name in vars(_tirx.op) if not name.startswith("_") and callable(getattr(_tirx.op, name))}
_SCALAR |= set(_tirx.intrinsic.__all__)
_SCALAR |= {name for name, value in vars(_tirx).items() if isinstance(value, type) and issubclass(value, _tirx.ExprWithOp)}


def cast(value, dtype, span=None):
    """A scalar as another element type."""
    return value.astype(dtype) if isinstance(value, _tirx.ExprWithOp) else _tirx.const(value, dtype)


def target(target_config, host=None):
    """The text of a target, which is what attributes hold: of text, of a dictionary, or of a target."""
    from ..target import Target

    made = target_config if isinstance(target_config, Target) else Target(target_config)
    return str(made if host is None else made.with_host(host))


def _loop(start, stop=None, *, annotations=None, step=None, unroll=None, dtype=None):
    if dtype is not None and str(dtype) not in ("int32", "uint32"):
        raise ValueError(f'the dtype of a loop\'s counter must be "int32" or "uint32", got "{dtype}"')


def _threads(start, stop=None, thread=None, *, annotations=None):
    pass


def _memory(
    shape, dtype="float32", data=None, strides=None, elem_offset=None, byte_offset=None, scope="global", align=-1,
    offset_factor=0, layout="default", allocated_addr=None, annotations=None,
):  # fmt: skip
    pass


def _scalar_memory(dtype="float32"):
    pass


#: What is written in kernels and takes known arguments: calls in Python are checked.
_SIGNATURES = dict.fromkeys(("serial", "parallel", "vectorized", "unroll"), _loop)
_SIGNATURES |= {"thread_binding": _threads, "local_scalar": _scalar_memory}
_SIGNATURES |= dict.fromkeys(("alloc_buffer", "alloc_local", "alloc_shared"), _memory)


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "SMEMPool":
        from ..tirx.cuda.lang.alloc_pool import SMEMPool

        return SMEMPool
    if name in _SIGNATURES:
        return Signature(f"T.{name}", _SIGNATURES[name])
    if _DTYPE.fullmatch(name):
        return _element(name)
    name = _SMALL.get(name, name)
    if name in _SCALAR or name in _SMALL.values():
        return getattr(_tirx, name)
    return getattr(_inert, name)
