"""Modules: functions by name, from libraries and from memory."""

from enum import IntEnum

from .. import _core
from .._core import Module
from .._extend import methods_of


class ModulePropertyMask(IntEnum):
    """What can be done with a module."""

    BINARY_SERIALIZABLE = 1
    RUNNABLE = 2
    COMPILATION_EXPORTABLE = 4


@methods_of(Module)
class _Methods:
    entry_name = "main"

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"'Module' object has no attribute '{name}'")
        return self.get_function(name)

    def __call__(self, *args):
        return self.get_function(self.entry_name)(*args)

    def get_function_metadata(self, name, query_imports=False):
        """What is known of a function, its type schema among it; ``None`` if nothing is."""
        import json

        metadata = self._function_metadata(name, query_imports)
        return None if metadata is None else json.loads(metadata)

    def is_binary_serializable(self):
        """Whether the module can be saved as bytes."""
        return bool(self.get_property_mask() & ModulePropertyMask.BINARY_SERIALIZABLE)

    def is_runnable(self):
        """Whether its functions can be called."""
        return bool(self.get_property_mask() & ModulePropertyMask.RUNNABLE)

    def is_compilation_exportable(self):
        """Whether it is written to a file as code."""
        return bool(self.get_property_mask() & ModulePropertyMask.COMPILATION_EXPORTABLE)


def load_module(path, keep_module_alive=True):
    """The module in a shared library. Code stays loaded while a module or function of it is held, whatever is said."""
    return _core.load_module(path)


def system_lib(symbol_prefix=""):
    """The module of the functions that are linked into this process under a prefix."""
    return _core.get_global_func("ffi.SystemLib")(symbol_prefix)


__all__ = ["Module", "ModulePropertyMask", "load_module", "system_lib"]
