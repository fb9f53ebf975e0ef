"""The names of TVMScript's ``I``."""

from ..ir.global_info import DummyGlobalInfo, VDevice
from ._namespace import Inert
from .entry import ir_module

_names = Inert("I")
ir_module.__tvmscript__ = "I.ir_module"


def vdevice(target="", vdevice_id=0, memory_scope="global"):
    """A device that tensors may live on."""
    return VDevice(target, vdevice_id, memory_scope)


def dummy_global_info():
    """Something that functions share of which nothing is known."""
    return DummyGlobalInfo()


def pyfunc(func):
    """Mark a method of a module's class as Python's: it is run, not read.

    The class derives from :class:`relaxide.relax.BasePyModule`; programs call the method with ``R.call_py_func``.
    """
    func.dispatch_token = "pyfunc"
    return func


def meta_var(value):
    """A value that keeps its name while the program is read, instead of being bound in it."""
    return value


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)
