"""Values, devices and modules: what a compiled model needs."""

import numpy as np

from .._core import (
    DataType,
    Device,
    Function,
    Module,
    ShapeTuple,
    Tensor,
    get_global_func,
    load_module,
    num_threads,
    register_global_func as _register_global_func,
    set_num_threads,
)

__all__ = [
    "DataType",
    "Device",
    "Function",
    "Module",
    "ShapeTuple",
    "Tensor",
    "cpu",
    "device",
    "empty",
    "from_dlpack",
    "get_global_func",
    "load_module",
    "num_threads",
    "register_global_func",
    "set_num_threads",
    "tensor",
]


def cpu(dev_id=0):
    """The CPU."""
    return Device(1, dev_id)


def device(dev, dev_id=0):
    """The device of a name (``"cpu"``, ``"cuda:1"``) or type number."""
    return Device(dev, dev_id)


def tensor(arr, device=None, mem_scope=None):
    """A tensor with a copy of the data of an array (or whatever numpy makes one of)."""
    if mem_scope not in (None, "", "global"):
        raise ValueError(f"memory scope {mem_scope!r} does not exist on {device or cpu()}; expected 'global'")
    if isinstance(arr, Tensor):
        arr = arr.numpy()
    return Tensor._from_numpy(np.asarray(arr), device or cpu())


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """A tensor of a shape; its content is undefined."""
    if mem_scope not in (None, "", "global"):
        raise ValueError(f"memory scope {mem_scope!r} does not exist on {device or cpu()}; expected 'global'")
    return Tensor._empty(list(shape), dtype, device or cpu())


def from_dlpack(ext_tensor):
    """A tensor that shares the data of another library's."""
    return Tensor._from_dlpack(ext_tensor)


def register_global_func(name, f=None, override=False):
    """Register a Python function under a name that every language can call; usable as a decorator."""
    if callable(name):
        return register_global_func(name.__name__, name, override)
    if f is None:
        return lambda func: register_global_func(name, func, override)
    _register_global_func(name, f, override)
    return f
