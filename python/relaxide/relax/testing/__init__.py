"""Functions and programs that tests of Relax use."""

from . import ast_printer, attention, lib_comparator, matmul, nn, runtime_builtin, transform, vm
from .ast_printer import dump_ast
from .attention import get_relax_attention_module, get_relax_stacked_attention_module
from .matmul import get_relax_matmul_module

__all__ = ["ast_printer", "attention", "dump_ast", "get_relax_attention_module", "get_relax_matmul_module"]
__all__ += ["get_relax_stacked_attention_module", "lib_comparator", "matmul", "nn", "runtime_builtin", "transform", "vm"]


def __getattr__(name):
    # The small models, as TVM offers them here too.
    if name in nn.__all__:
        return getattr(nn, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
