"""Relax functions as functions of Python, to check a program at any stage of its compilation."""

from .base_py_module import BasePyModule
from .expr import Function


class RelaxToPyFuncConverter:
    """Makes functions of Python of a module's Relax functions.

    They take torch tensors or numpy arrays and return the same kind. What the function says is executed as it stands, by code
    that is compiled when one of them is called first; kernels that it calls (``call_tir``) are the module's.

    Parameters
    ----------
    ir_module : IRModule
        The module. It is not changed.
    """

    def __init__(self, ir_module):
        self.ir_module = ir_module
        self._compiled = None

    def convert(self, relax_function_names):
        """A module whose attribute ``pyfuncs`` has the functions of these names (or of one name).

        Raises
        ------
        ValueError
            The module has no Relax function of a name.
        """
        names = [relax_function_names] if isinstance(relax_function_names, str) else list(relax_function_names)
        known = [var.name_hint for var, func in self.ir_module.functions_items() if isinstance(func, Function)]
        for name in names:
            if name not in known:
                raise ValueError(f"Relax function '{name}' not found in IRModule: there are {', '.join(known) or 'none'}")
        converted = self.ir_module.clone()
        converted.pyfuncs = {**(getattr(converted, "pyfuncs", None) or {}), **{name: self._function(name) for name in names}}
        return converted

    def _function(self, name):
        def call(*args):
            if self._compiled is None:
                from ..runtime import cpu

                self._compiled = BasePyModule(self.ir_module, cpu(0))
            return getattr(self._compiled, name)(*args)

        call.__name__ = call.__qualname__ = name
        call.__doc__ = f"The Relax function {name}."
        return call


__all__ = ["RelaxToPyFuncConverter"]
