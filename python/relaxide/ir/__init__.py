"""What programs of all languages are made of: modules, types, expressions, attributes.

Nodes are objects of the compiler. Their classes add nothing but names: fields are read from the object itself, and every
class has the constructor that its name in TVM has.
"""

from . import instrument, prim, transform
from .attrs import Attrs, DictAttrs, make_node
from .base import Node, SequentialSpan, SourceName, Span, assert_structural_equal, load_json, save_json, structural_equal, structural_hash
from .env_func import EnvFunc
from .expr import Call, Constant, Expr, ExprOperand, ExprWithOp, GenericConst, GlobalVar, Range, Tuple, TupleGetItem, Var
from .expr import is_prim_expr, is_prim_var
from .function import BaseFunc, CallingConv
from .global_info import DummyGlobalInfo, GlobalInfo, VDevice
from .module import IRModule
from .supply import UniqueNameSupply
from .op import Op, register_op_attr
from .prim import BufferLoad as TensorLoad
from .prim import FloatImm, IntImm, StringImm
from .type import FuncType, MissingType, PointerType, PrimType, StringType, TupleType, Type
from ..ffi import Array, Map

__all__ = [
    "Array",
    "Attrs",
    "BaseFunc",
    "CallingConv",
    "Call",
    "Constant",
    "DictAttrs",
    "EnvFunc",
    "Expr",
    "ExprOperand",
    "ExprWithOp",
    "FloatImm",
    "FuncType",
    "GenericConst",
    "GlobalInfo",
    "GlobalVar",
    "IRModule",
    "IntImm",
    "Map",
    "MissingType",
    "Node",
    "Op",
    "PointerType",
    "PrimType",
    "Range",
    "SequentialSpan",
    "SourceName",
    "Span",
    "StringImm",
    "StringType",
    "TensorLoad",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "UniqueNameSupply",
    "VDevice",
    "Var",
    "assert_structural_equal",
    "instrument",
    "is_prim_expr",
    "is_prim_var",
    "load_json",
    "make_node",
    "register_op_attr",
    "prim",
    "save_json",
    "structural_equal",
    "structural_hash",
    "transform",
]


def __getattr__(name):
    if name == "TensorRegion":
        from ..tirx import BufferRegion

        return BufferRegion
    if name == "utils":
        import importlib

        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
