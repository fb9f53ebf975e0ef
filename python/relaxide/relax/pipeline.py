"""Pipelines: the passes from a program to what the virtual machine's code is made of."""

from .. import _core
from ..ir.transform import Pass

_REGISTERED = {}


def get_pipeline(name="zero", **options):
    """The passes of a name, as one: ``"zero"``, ``"default"``, ``"default_build"``, those of devices (``"cpu_generic"``,
    ``"gpu_generic"``, ``"cuda"``, ``"rocm"``), or what was registered."""
    if name == "static_shape_tuning":
        return static_shape_tuning_pipeline(**options)
    if name == "zero":
        options.pop("enable_warning", None)
    if name in _REGISTERED:
        return _REGISTERED[name](**options)
    if options:
        raise TypeError(f"the pipeline {name!r} has no option {next(iter(options))!r}")
    return Pass(_core.pipeline_pass(name))


def zero_pipeline(*, enable_warning=False):
    """The passes that make kernels of operators, and join them."""
    return get_pipeline("zero")


def default_build_pipeline():
    """The passes from a program to what the virtual machine's code is made of."""
    return get_pipeline("default_build")


def static_shape_tuning_pipeline(total_trials, target, work_dir="tuning_logs", cpu_weight_prepack=False, max_trials_per_task=None):
    """The passes of :func:`zero_pipeline`, and then tuning: ``total_trials`` schedules of kernels are measured for a target, kept in
    ``work_dir``, and the best are used. Without trials those are used that are there. Lengths must be known.

    ``max_trials_per_task`` limits the schedules that are measured of one kernel; by default ``total_trials``.

    ``cpu_weight_prepack`` would lay out weights anew, which is not here: an error where it is asked for.
    """
    from ..ir.transform import Sequential
    from ..target import Target
    from . import transform

    if cpu_weight_prepack:
        raise NotImplementedError("weights are not laid out anew by tuning: leave cpu_weight_prepack out")
    target = target if isinstance(target, Target) else Target(target)
    passes = [get_pipeline("zero")]
    if total_trials > 0:
        passes.append(transform.MetaScheduleTuneIRMod({}, work_dir, total_trials, max_trials_per_task))
    passes.append(transform.MetaScheduleApplyDatabase(work_dir))
    joined = Sequential(passes)

    def tune(mod, _):
        with target:
            return joined(mod)

    return transform._module_pass(tune, opt_level=0, name="static_shape_tuning_pipeline")


def register_pipeline(name):
    """Register a function that returns a pass as a pipeline."""
    if name in _REGISTERED:
        raise ValueError(f"Pipeline {name} has already been registered")

    def register(func):
        _REGISTERED[name] = func
        return func

    return register


def _pipeline_of(target):
    """The name of a target's pipeline."""
    try:
        return _core.default_pipeline_name(_text(target))
    except ValueError as error:
        kind = _text(target).partition(" ")[0]
        raise ValueError(f"programs for the target {kind} have no passes of their own, which is not yet supported: {error}") from None


def _text(target):
    """A target as text: its kind first."""
    if isinstance(target, dict):
        return str(target.get("kind", ""))
    return str(target)


def get_default_pipeline(target=None):
    """The passes of TVM's build for a target, as one; without a target, those of :func:`relaxide.compile`."""
    return get_pipeline("default" if target is None else _pipeline_of(target))


def _stage(target, stage):
    return [Pass(one) for one in _core.pipeline_stage(_pipeline_of(target), stage)]


def library_dispatch_passes(target):
    """Passes that make kernels of operators whose kernels depend on the target."""
    return _stage(target, "library_dispatch")


def legalize_passes(target):
    """Passes that make kernels of operators, and fuse them."""
    return _stage(target, "legalize")


def dataflow_lower_passes(target):
    """Passes that make statements of graphs."""
    return _stage(target, "dataflow_lower")


def finalize_passes(target):
    """Passes that plan memory and make computations of shapes."""
    return _stage(target, "finalize")


__all__ = ["dataflow_lower_passes", "finalize_passes", "get_default_pipeline", "get_pipeline", "legalize_passes"]
__all__ += ["library_dispatch_passes", "register_pipeline"]
