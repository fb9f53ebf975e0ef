"""The graph-level language and its virtual machine."""

from . import analysis, block_builder, dpl, expr, expr_functor, frontend, op, pipeline, transform, type
from .base_py_module import BasePyModule
from .binding_rewrite import DataflowBlockRewrite
from .block_builder import BlockBuilder
from .builder import ExecBuilder
from .executable import VMExecutable
from .expr import *  # noqa: F403
from .expr import __all__ as _nodes
from .expr_functor import ExprFunctor, PyExprMutator, PyExprVisitor
from .pipeline import get_default_pipeline, get_pipeline, register_pipeline
from .op import call_dps_packed, call_pure_packed, call_tir, call_tir_inplace, call_tir_with_grad
from .utils import convert_to_expr
from .type import AnyType, FuncType, ObjectType, PackedFuncType, ShapeType, TensorType, TupleType, Type
from .vm import VirtualMachine, VMInstrumentReturnKind
from ..ir.global_info import DummyGlobalInfo, VDevice
from . import backend


def __getattr__(name):
    # What needs NumPy, or builds on the compiler, is not loaded by a program that only runs models.
    if name in ("exec_builder", "training", "vm_build", "testing"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    from .._old_names import find

    return find(__name__, name)


def build(mod, target=None, params=None, relax_pipeline="default", tir_pipeline="default", exec_mode="bytecode"):
    """Compile a program; see :func:`relaxide.compile`."""
    from ..compiler import compile

    options = {"relax_pipeline": relax_pipeline, "tir_pipeline": tir_pipeline, "exec_mode": exec_mode, "params": params}
    return compile(mod, target, **options)


__all__ = [
    *_nodes,
    "AnyType",
    "BasePyModule",
    "BlockBuilder",
    "DataflowBlockRewrite",
    "ExecBuilder",
    "ExprFunctor",
    "FuncType",
    "ObjectType",
    "PackedFuncType",
    "PyExprMutator",
    "PyExprVisitor",
    "ShapeType",
    "TensorType",
    "TupleType",
    "Type",
    "DummyGlobalInfo",
    "VDevice",
    "VMExecutable",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "analysis",
    "block_builder",
    "build",
    "convert_to_expr",
    "call_dps_packed",
    "call_pure_packed",
    "call_tir",
    "call_tir_inplace",
    "call_tir_with_grad",
    "dpl",
    "expr",
    "expr_functor",
    "frontend",
    "get_default_pipeline",
    "get_pipeline",
    "op",
    "register_pipeline",
    "transform",
    "type",
]
