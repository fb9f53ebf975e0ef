"""Values, devices and modules: what a compiled model needs."""

from .._core import num_threads, release_cached_memory, set_num_threads
from ..ffi import Device, Function, Object, Shape as ShapeTuple, convert, dtype as DataType
from ..ffi import get_global_func, register_global_func
from ..ffi._dtype import DataTypeCode
from ._tensor import Tensor, cpu, cuda, device, device_from_target, empty, ext_dev, from_dlpack, metal, opencl, rocm, tensor, vpi, vulkan
from ._text import TextTensor
from . import _device_queries, _storage, profiling
from ._device_queries import RPC_SESS_MASK  # noqa: F401 where TVM's file has it
from .constant import const
from .executable import Executable
from .module import BenchmarkResult, Module, enabled, load_module, load_static_library, system_lib
from .params import load_param_dict, load_param_dict_from_file, load_weights, save_param_dict, save_param_dict_to_file

#: Text crosses as Python's own.
String = str


def __getattr__(name):
    # The Relay VM brings its language with it: loaded where a program asks for it.
    if name in ("script_printer", "vm"):
        import importlib

        return importlib.import_module(f".{name}", __name__)
    if name == "Scriptable":
        from ..ir.base import Scriptable

        return Scriptable
    from .._old_names import find

    return find(__name__, name)


__all__ = [
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "Executable",
    "Function",
    "Module",
    "Object",
    "ShapeTuple",
    "String",
    "Tensor",
    "TextTensor",
    "const",
    "convert",
    "cpu",
    "cuda",
    "device", "device_from_target",
    "empty",
    "enabled",
    "ext_dev",
    "from_dlpack",
    "get_global_func",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "load_static_library",
    "load_weights",
    "metal",
    "num_threads",
    "opencl",
    "profiling",
    "register_global_func",
    "release_cached_memory",
    "rocm",
    "save_param_dict",
    "save_param_dict_to_file",
    "set_num_threads",
    "system_lib",
    "tensor",
    "vpi",
    "vulkan",
]
