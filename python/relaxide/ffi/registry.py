"""Functions and classes under names that every language knows."""

import sys

from .. import _core
from .._core import get_global_func, list_global_func_names, remove_global_func


def register_global_func(func_name, f=None, override=False):
    """Register a Python function under a name that every language can call; usable as a decorator."""
    if not isinstance(func_name, str):
        f, func_name = func_name, func_name.__name__
    if f is None:
        return lambda func: register_global_func(func_name, func, override)
    _core.register_global_func(func_name, f, override)
    return get_global_func(func_name)


def get_global_func_metadata(name):
    """What is known of a global function, its type schema among it."""
    import json

    metadata = _core.describe_global_func(name)[1]
    return json.loads(metadata) if metadata else {}


def register_object(type_key=None, *, init=True):
    """Make a class the Python face of an object type; its reflected fields become attributes.

    ::

        @register_object("test.Pair")
        class Pair(Object):
            first: int
    """
    if isinstance(type_key, type):
        return register_object(type_key.__name__)(type_key)

    def register(cls):
        key = type_key or cls.__name__
        _core.set_object_class(key, cls)
        cls.__tvm_ffi_type_key__ = key
        for name, function in _core.type_static_methods(key):
            if not hasattr(cls, name):
                setattr(cls, name, staticmethod(function))
        if init and "__init__" not in vars(cls) and issubclass(cls, _core.Object):
            cls.__init__ = _constructor(cls)
        return cls

    return register


def _constructor(cls):
    if _core.has_constructor(cls.__tvm_ffi_type_key__):

        def __init__(self, *args, **kwargs):
            self.__ffi_init__(*args, **kwargs)

    else:
        name = cls.__name__

        def __init__(self, *args, **kwargs):
            raise TypeError(
                f"`{name}` cannot be constructed directly. Define a custom __init__ or use a factory method."
            )

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    return __init__


def get_registered_type_keys():
    """The keys of all object types."""
    return get_global_func("ffi.GetRegisteredTypeKeys")()


def init_ffi_api(namespace, target_module_name=None):
    """Make the global functions ``namespace.NAME`` attributes of a Python module."""
    module = sys.modules[target_module_name or namespace]
    prefix = namespace.removeprefix("tvm.") + "."
    for name in list_global_func_names():
        if name.startswith(prefix) and "." not in name[len(prefix) :]:
            setattr(module, name[len(prefix) :], get_global_func(name))


__all__ = [
    "get_global_func",
    "get_global_func_metadata",
    "get_registered_type_keys",
    "init_ffi_api",
    "list_global_func_names",
    "register_global_func",
    "register_object",
    "remove_global_func",
]
