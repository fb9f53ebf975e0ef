"""The names of TVMScript's ``R``."""

from ._namespace import Inert

_names = Inert("R")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)
