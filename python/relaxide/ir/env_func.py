"""Registered functions as values that are saved by their names."""

from ..ffi import Object, get_global_func
from ..ffi.dataclasses import py_class


@py_class("ir.EnvFunc", structural_eq="tree", init=False)
class EnvFunc(Object):
    """A function of the registry, which is looked up by its name: what is saved of it is the name."""

    name: str

    def __init__(self, name):
        self.__ffi_init__(name)

    @staticmethod
    def get(name):
        """The function of a name.

        Raises
        ------
        ValueError
            No function is registered by it.
        """
        get_global_func(name)
        return EnvFunc(name)

    @property
    def func(self):
        """The function itself."""
        return get_global_func(self.name)

    def __call__(self, *args):
        return self.func(*args)


__all__ = ["EnvFunc"]
