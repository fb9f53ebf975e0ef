"""The graph-level language and its virtual machine."""

from . import frontend, transform
from .builder import ExecBuilder
from .executable import VMExecutable
from .vm import VirtualMachine, VMInstrumentReturnKind
from ..compiler import compile as _compile


def build(mod, target=None, params=None, relax_pipeline="default", exec_mode="bytecode"):
    """Compile a program; see :func:`relaxide.compile`."""
    return _compile(mod, target, relax_pipeline=relax_pipeline, exec_mode=exec_mode, params=params)


__all__ = [
    "ExecBuilder",
    "VMExecutable",
    "VMInstrumentReturnKind",
    "VirtualMachine",
    "build",
    "frontend",
    "transform",
]
