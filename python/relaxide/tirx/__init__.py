"""Kernels and what they compute with: scalar expressions, their functions, statements, buffers, and kernels themselves.

A kernel can be written node by node::

    A = tirx.decl_buffer((16,), "float32", name="A")
    i = tirx.Var("i", "int32")
    body = tirx.For(i, 0, 16, tirx.ForKind.SERIAL, tirx.BufferStore(A, A[i] + 1.0, [i]))
    kernel = tirx.PrimFunc([A], body)
"""

from . import analysis, buffer, device_intrinsic, exec_scope, expr, function, index_map, intrinsic, layout, op, stmt, tile_primitive, transform
from .buffer import Buffer, BufferRegion, decl_buffer, is_buffer_var
from .buffer_type import BufferType
from .buffer_members import BufferAccessKind, buffer_data, buffer_data_pointer_type
from .exec_scope import ExecScope, ScopeIdDef
from .expr import CallEffectKind, IterVar
from .function import PrimFunc
from .index_map import IndexMap
from .layout import ComposeLayout, Iter, Layout, TileLayout
from .device_intrinsic import *  # noqa: F403
from .intrinsic import *  # noqa: F403
from .op import *  # noqa: F403
from .op import abs, all, any, max, min, pow, round
from .stmt import AllocBuffer, AssertStmt, AttrStmt, Bind, Break, BufferStore, CommReducer, Continue, DeclBuffer, Evaluate, For, ForKind
from .stmt import IfThenElse, LetStmt, Return, SeqStmt, Stmt, While, stmt_list, stmt_seq
from .tile_primitive import LambdaExpr, ScopeIdDefStmt, TilePrimitiveCall
from ..ir.expr import Call, Expr, ExprWithOp, Range, Var
from ..ir.prim import EQ, GE, GT, LE, LT, NE, Add, And, BitwiseAnd, BitwiseNot, BitwiseOr, BitwiseXor, Broadcast, BufferLoad
from ..ir.prim import Cast, Div, FloatImm, FloorDiv, FloorMod, IntImm, Let, LShift, Max, Min, Mod, Mul, Not, Or, Ramp, RShift
from ..ir.prim import Select, StringImm, Sub, const

PrimExpr = ExprWithOp

#: What compiles kernels, which comes behind the compiler, by the files that it is in.
_OF_BUILDS = {name: ".host_device" for name in ("codegen_build", "split_host_device_mods", "tir_to_runtime")}
_OF_BUILDS |= {name: ".compilation_pipeline" for name in ("get_default_tir_pipeline", "get_tir_pipeline", "register_tir_pipeline")}


def __getattr__(name):
    # Reductions are the compute language's, which builds on this module, as the compiler does.
    if name == "comm_reducer":
        from .. import te

        return getattr(te, name)
    if name == "build":
        from ..compiler import build

        return build
    if name in _OF_BUILDS:
        import importlib

        return getattr(importlib.import_module(_OF_BUILDS[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
