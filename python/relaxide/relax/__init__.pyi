from collections.abc import Mapping
from typing import Any, Literal

from . import analysis as analysis, backend as backend, block_builder as block_builder, dpl as dpl, expr as expr
from . import expr_functor as expr_functor, frontend as frontend, op as op, pipeline as pipeline, testing as testing
from . import training as training, transform as transform, type as type
from .base_py_module import BasePyModule as BasePyModule
from .binding_rewrite import DataflowBlockRewrite as DataflowBlockRewrite
from .block_builder import BlockBuilder as BlockBuilder
from .builder import ExecBuilder as ExecBuilder
from .executable import VMExecutable as VMExecutable
from .expr import *
from .expr_functor import ExprFunctor as ExprFunctor, PyExprMutator as PyExprMutator, PyExprVisitor as PyExprVisitor
from .op import call_dps_packed as call_dps_packed, call_pure_packed as call_pure_packed, call_tir as call_tir
from .op import call_tir_inplace as call_tir_inplace
from .op._calls import call_tir_with_grad as call_tir_with_grad
from .pipeline import get_default_pipeline as get_default_pipeline, get_pipeline as get_pipeline, register_pipeline as register_pipeline
from .type import AnyType as AnyType, FuncType as FuncType, ObjectType as ObjectType, PackedFuncType as PackedFuncType
from .type import ShapeType as ShapeType, TensorType as TensorType, TupleType as TupleType, Type as Type
from .utils import convert_to_expr as convert_to_expr
from .vm import VirtualMachine as VirtualMachine, VMInstrumentReturnKind as VMInstrumentReturnKind
from ..ir.global_info import VDevice as VDevice
from ..ir.module import IRModule
from ..ir.transform import Pass
from ..runtime import Tensor
from ..target import Target

def build(
    mod: IRModule,
    target: str | Mapping[str, Any] | Target | None = None,
    params: Mapping[str, list[Tensor]] | None = None,
    relax_pipeline: str | Pass | None = "default",
    tir_pipeline: str | Pass | None = "default",
    exec_mode: Literal["bytecode", "compiled"] = "bytecode",
) -> VMExecutable: ...
def __getattr__(name: str) -> Any: ...
