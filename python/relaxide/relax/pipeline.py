"""Pipelines: the passes from a program to what the virtual machine's code is made of."""

from .. import _core
from ..ir.transform import Pass

_REGISTERED = {}


def get_pipeline(name="zero", **options):
    """The passes of a name, as one: ``"zero"``, ``"default"``, ``"default_build"``, or what was registered."""
    if name in _REGISTERED:
        return _REGISTERED[name](**options)
    if options:
        raise TypeError(f"the pipeline {name!r} has no option {next(iter(options))!r}")
    return Pass(_core.pipeline_pass(name))


def register_pipeline(name):
    """Register a function that returns a pass as a pipeline."""
    if name in _REGISTERED:
        raise ValueError(f"Pipeline {name} has already been registered")

    def register(func):
        _REGISTERED[name] = func
        return func

    return register


def get_default_pipeline(target=None):
    """The passes of :func:`relaxide.compile`, as one."""
    return get_pipeline("default")


__all__ = ["get_default_pipeline", "get_pipeline", "register_pipeline"]
