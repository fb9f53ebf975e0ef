"""From program to executable."""

import os

from . import _core
from .ir import _api
from .ir.transform import ModulePass, Pass, PassContext, Sequential, module_pass
from .relax.executable import VMExecutable
from .relax.pipeline import _REGISTERED, get_pipeline
from .target import Target


def compile(mod, target=None, *, relax_pipeline="default", tir_pipeline="default", exec_mode="bytecode", params=None):
    """Compile a program, or a single function of one.

    Parameters
    ----------
    mod : IRModule or relax.Function or tirx.PrimFunc
        The program. A class made by ``script.ir_module`` is one.
    target : Target or str, or a list of them, optional
        What to compile for; where it is left out, that of the ``with`` block around, or the processor of this machine. With a list of
        processors, ``["x86-64-v2", "llvm -mcpu=x86-64-v3"]``, the library has kernels for each, and takes the best that fits where it is
        loaded.
    relax_pipeline : str or Pass
        ``"default"`` (with fusion), ``"default_build"`` (the passes of TVM's default build), a pipeline that was
        registered, or a pass that takes its place.
    tir_pipeline : str or Pass
        ``"default"``, a pipeline that was registered (:func:`relaxide.tirx.register_tir_pipeline`), or a pass: it runs on the kernels that
        the program's operators have become, in front of what lowers them.
    exec_mode : str
        ``"bytecode"``, or ``"compiled"``: the program's own functions become native code too. Their recursion then uses the
        native stack.
    params : dict of str to Tensor, optional
        Values bound to parameters by name before compilation.

    Returns
    -------
    VMExecutable
    """
    if not isinstance(mod, _core.IRModule):
        mod = _module_of(mod)
    if isinstance(target, (list, tuple)):
        target = [said if isinstance(said, Target) else Target(said) for said in _spelled_out(target)]
        if not target:
            raise ValueError("target is an empty list: name a processor, or leave it out for this machine's")
    elif target is None:
        target = Target.current()
    elif not isinstance(target, Target):
        target = Target(target)
    passes = None
    if relax_pipeline in _REGISTERED if isinstance(relax_pipeline, str) else False:
        relax_pipeline = get_pipeline(relax_pipeline)
    if relax_pipeline is None:
        relax_pipeline = module_pass(lambda mod, ctx: mod, opt_level=0, name="nothing")
    if not isinstance(relax_pipeline, str):
        passes, relax_pipeline = relax_pipeline, "default"
        if not isinstance(passes, Pass):
            passes = ModulePass(module_pass(passes, opt_level=0, name="pipeline")._handle)
    if tir_pipeline not in (None, "default"):
        from .tirx.compilation_pipeline import get_tir_pipeline

        of_kernels = get_tir_pipeline(tir_pipeline)[0] if isinstance(tir_pipeline, str) else tir_pipeline
        before = get_pipeline(relax_pipeline) if passes is None else passes
        passes, relax_pipeline = Sequential([before, of_kernels], name="pipeline"), "default"
    if passes is not None:
        passes = passes._handle
    mod = _with_targets_as_text(mod)
    options = {"target": target, "pipeline": relax_pipeline, "exec_mode": exec_mode, "params": dict(params or {})}
    prefix = (mod.attrs or {}).get("system_lib_prefix")
    compiled = _core.compile(mod, {**options, "passes": passes, "context": PassContext.current()})
    return VMExecutable(compiled, target[0] if isinstance(target, list) else target, prefix)


def _spelled_out(targets):
    """Targets of a list, with those that are names of processors in full."""
    for said in targets:
        yield from _api.target.in_list(said) if isinstance(said, str) else [said]


def _with_targets_as_text(mod):
    """A module whose functions say their targets in the compiler's own way: an object of Python means nothing to it."""
    for var, func in list(mod.functions.items()):
        said = (func.attrs or {}).get("target")
        if isinstance(said, Target):
            mod = mod.clone()
            mod[var] = func.with_attr("target", str(said))
    return mod


def _module_of(mod):
    """The module of a single function."""
    kind = type(mod).__name__
    if kind == "ModuleFactory":
        return mod.ir_module
    if kind == "ModelProto":
        raise TypeError("compile takes a Module, and got an ONNX ModelProto: import it by relax.frontend.onnx.from_onnx")
    if isinstance(mod, (str, os.PathLike)):
        raise TypeError(
            f"compile takes a Module, and got {mod!r}: read the model first, an ONNX file by "
            "relax.frontend.onnx.from_onnx, TVMScript by script.from_source"
        )
    try:
        return _core.IRModule.from_expr(mod)
    except (AttributeError, TypeError) as error:
        raise TypeError(f"compile takes a Module, or a function of one, and got {kind}") from error


def build(mod, target=None, pipeline="default"):
    """Compile a kernel, or a module of kernels; see :func:`compile`. ``build(mod)["name"]`` is a kernel to call."""
    return compile(mod, target, tir_pipeline=pipeline)
