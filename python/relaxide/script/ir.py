"""The names of TVMScript's ``I``."""

from ._namespace import Inert

_names = Inert("I")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


def ir_module(cls=None, **options):
    """Make the functions of a class a module."""
    from .entry import ir_module as make

    return make(cls, **options)
