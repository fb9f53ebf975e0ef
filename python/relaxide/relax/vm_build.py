"""Compilation to executables, under the name of TVM's module."""

from ..compiler import compile as _compile
from . import build
from ._machine_kernels import as_kernels
from .executable import VMExecutable


def _vmcodegen(builder, mod, exec_mode="bytecode"):
    """Take a module that is lowered for the machine into a builder. Its kernels are compiled by :func:`_vmlink`. What comes
    back are the module's kernels; with ``exec_mode="compiled"``, a kernel stands for each function of Relax, too."""
    if exec_mode not in ("bytecode", "compiled"):
        raise ValueError(f"Unknown exec_mode {exec_mode}: expected 'bytecode' or 'compiled'")
    builder._lowered = mod, exec_mode
    return as_kernels(mod) if exec_mode == "compiled" else mod


def _vmlink(builder, target, tir_mod=None, tir_pipeline="default", ext_libs=(), params=None, *, system_lib=None):
    """The executable of what :func:`_vmcodegen` took, with its kernels compiled for a target."""
    mod, exec_mode = builder._lowered
    if ext_libs:
        raise NotImplementedError("modules of backends come out of RunCodegen, as the module's attribute external_mods")
    return _compile(mod, target, relax_pipeline=None, tir_pipeline=tir_pipeline, exec_mode=exec_mode, params=params)


__all__ = ["VMExecutable", "build"]
