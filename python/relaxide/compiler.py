"""From program to executable."""

from . import _core
from .relax.executable import VMExecutable
from .target import Target


def compile(mod, target=None, *, relax_pipeline="default", exec_mode="bytecode", params=None):
    """Compile a program.

    Parameters
    ----------
    mod : IRModule
        The program. A class made by ``script.ir_module`` is one.
    target : Target or str, optional
        What to compile for; the processor of this machine where it is left out.
    relax_pipeline : str
        ``"default"`` (with fusion), ``"default_build"`` (the passes of TVM's default build) or ``"zero"``.
    exec_mode : str
        ``"bytecode"``. Functions compiled to native code (``"compiled"``) are refused with an error for now.
    params : dict of str to Tensor, optional
        Values bound to parameters by name before compilation.

    Returns
    -------
    VMExecutable
    """
    if exec_mode not in ("bytecode", "compiled"):
        raise ValueError(f"exec_mode is {exec_mode!r}; expected 'bytecode' or 'compiled'")
    if target is not None and not isinstance(target, Target):
        target = Target(target)
    return VMExecutable(_core.compile(mod, target, relax_pipeline, exec_mode, params or {}))
