"""A compiled module that is linked when its functions are first asked for."""

import tempfile

from .module import Module, load_module


class Executable:
    """A compiled module, to be run or exported.

    Parameters
    ----------
    mod : Module
        What a build made.
    """

    def __init__(self, mod):
        self.mod = mod
        self._loaded = None

    def __getitem__(self, name):
        return self.jit()[name]

    def __call__(self, *args, **kwargs):
        return self.jit()["main"](*args, **kwargs)

    def jit(self, *, fcompile=None, addons=None, force_recompile=False, **kwargs):
        """The module in a form whose functions can be called. What is compiled here can be as it is, and is compiled once; with
        ``fcompile`` or ``addons`` it goes through a library that is written and loaded."""
        if self._loaded is None or force_recompile:
            if fcompile is None and not addons:
                self._loaded = self.mod
            else:
                folder = tempfile.mkdtemp(prefix="relaxide-")
                path = f"{folder}/lib.so"
                self.export_library(path, fcompile=fcompile, addons=addons, **kwargs)
                self._loaded = load_module(path)
        return self._loaded

    def export_library(self, file_name, *, fcompile=None, addons=None, workspace_dir=None, **kwargs):
        """Write the module as a library that ``load_module`` loads."""
        options = {"fcompile": fcompile, "addons": addons, "workspace_dir": workspace_dir, **kwargs}
        return self.mod.export_library(file_name, **{name: value for name, value in options.items() if value is not None})


__all__ = ["Executable"]
