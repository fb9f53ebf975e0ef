"""The names of TVMScript's ``T``."""

from ._namespace import Inert

_names = Inert("T")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)
