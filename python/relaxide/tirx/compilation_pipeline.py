"""What lowers kernels, by name: a pass, and what makes the passes behind it for the host and for devices.

Code generation lowers what it is given itself. A pipeline of the user's own runs in front of that, on the kernels as they are then::

    tirx.register_tir_pipeline("marked", lambda: (mark, finalize_host_passes, finalize_device_passes))
    tvm.compile(mod, "llvm", tir_pipeline="marked")
"""

from .. import _core
from ..ir.transform import Pass, Sequential


def default_tir_pipeline():
    """The passes that every kernel is lowered by, and what makes those behind them."""
    passes = [Pass(_core.make_pass(name, {})) for name in _core.lowering_pass_names()]
    return Sequential(passes, name="default_tir_pipeline"), finalize_host_passes, finalize_device_passes


def tirx_pipeline():
    """The same: kernels without blocks need no passes of their own."""
    return default_tir_pipeline()


def finalize_host_passes():
    """What comes behind, for the host: nothing, since code generation does the rest."""
    return Sequential([], name="finalize_host_passes")


def finalize_device_passes():
    """What comes behind, for devices: nothing, since code generation does the rest."""
    return Sequential([], name="finalize_device_passes")


def finalize_device_passes_tirx():
    """The same, for kernels without blocks."""
    return finalize_device_passes()


#: What makes each pipeline.
PIPELINE_MAP = {"default": default_tir_pipeline, "s_tir": default_tir_pipeline, "tirx": tirx_pipeline}


def register_tir_pipeline(name, pipeline_factory):
    """Give a pipeline a name.

    Parameters
    ----------
    name : str
        The name.
    pipeline_factory : function
        Gives the pass, what makes the passes for the host, and what makes those for devices.
    """
    PIPELINE_MAP[name] = pipeline_factory


def get_tir_pipeline(name=None, **kwargs):
    """``(pass, finalize_host_passes, finalize_device_passes)`` of a pipeline; ``kwargs`` are what its factory takes.

    Raises
    ------
    ValueError
        There is no such pipeline.
    """
    name = "default" if name is None else name
    if name not in PIPELINE_MAP:
        raise ValueError(f"there is no pipeline {name!r}; there are {', '.join(PIPELINE_MAP)}")
    return PIPELINE_MAP[name](**kwargs)


def get_default_tir_pipeline(target):
    """The pipeline of a target, which is one for all."""
    return get_tir_pipeline("default")


__all__ = ["default_tir_pipeline", "finalize_device_passes", "finalize_device_passes_tirx", "finalize_host_passes"]
__all__ += ["get_default_tir_pipeline", "get_tir_pipeline", "register_tir_pipeline", "tirx_pipeline"]
