"""The global functions ``ffi.NAME`` as attributes of this module, each looked up when it is first used."""

from .._core import get_global_func


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    function = globals()[name] = get_global_func(f"ffi.{name}")
    return function
