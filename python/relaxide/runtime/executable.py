"""A compiled module that is linked when its functions are first asked for."""


class Executable:
    """A compiled module, to be run or exported.

    Parameters
    ----------
    mod : Module
        What a build made.
    """

    def __init__(self, mod):
        self.mod = mod
        self._jitted_mod = None

    def __getitem__(self, name):
        return self.jit()[name]

    def __call__(self, *args, **kwargs):
        return self.jit()["main"](*args, **kwargs)

    def jit(self, *, fcompile=None, addons=None, force_recompile=False, **kwargs):
        """The module in a form whose functions can be called: what it is, or another of the same where ``force_recompile`` asks for it."""
        without_compiler(fcompile, addons)
        if self._jitted_mod is None:
            self._jitted_mod = self.mod
        elif force_recompile and isinstance(self.mod, Executable):
            self._jitted_mod = type(self.mod)(self.mod.mod)
        return self._jitted_mod

    def export_library(self, file_name, *, fcompile=None, addons=None, workspace_dir=None, **kwargs):
        """Write the module as a library that ``load_module`` loads. ``workspace_dir`` is for programs that give it: there are no files on
        the way."""
        without_compiler(fcompile, addons)
        return self.mod.export_library(file_name)


def without_compiler(fcompile, addons):
    """Refuse what would need one: libraries are written by Relaxide itself."""
    if fcompile is not None or addons:
        raise NotImplementedError(
            "libraries are written without a compiler, so fcompile and addons have no place: leave them out, or export an object"
            " (`.o`) or archive (`.a`) and link that"
        )


__all__ = ["Executable"]
