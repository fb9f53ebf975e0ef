"""Values, functions, objects and modules that cross between languages; the names are those of the package ``tvm_ffi``."""

from .._core import Function, Object, convert, convert_func
from . import _dtype, container, error, module, registry
from ._dtype import dtype
from ._tensor import Device, DLDeviceType, Shape, Tensor, device, from_dlpack
from .container import Array, Dict, List, Map
from .error import register_error
from .module import Module, load_module, system_lib
from .registry import (
    get_global_func,
    get_global_func_metadata,
    init_ffi_api,
    list_global_func_names,
    register_global_func,
    register_object,
    remove_global_func,
)

__all__ = [
    "Array",
    "DLDeviceType",
    "Device",
    "Dict",
    "Function",
    "List",
    "Map",
    "Module",
    "Object",
    "Shape",
    "Tensor",
    "convert",
    "convert_func",
    "device",
    "dtype",
    "from_dlpack",
    "get_global_func",
    "get_global_func_metadata",
    "init_ffi_api",
    "load_module",
    "register_error",
    "register_global_func",
    "register_object",
    "remove_global_func",
    "system_lib",
]


def __getattr__(name):
    # Element types are attributes of the package: `ffi.float32`.
    if name in _dtype.NAMES:
        return dtype(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
