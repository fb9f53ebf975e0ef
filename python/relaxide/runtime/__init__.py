"""Values, devices and modules: what a compiled model needs."""

from .._core import num_threads, set_num_threads
from ..ffi import Device, Function, Object, Shape as ShapeTuple, convert, dtype as DataType
from ..ffi import get_global_func, register_global_func
from ..ffi._dtype import DataTypeCode
from ._tensor import Tensor, cpu, cuda, device, empty, ext_dev, from_dlpack, metal, opencl, rocm, tensor, vpi, vulkan
from . import profiling
from .module import BenchmarkResult, Module, load_module, system_lib

#: Text crosses as Python's own.
String = str

__all__ = [
    "BenchmarkResult",
    "DataType",
    "DataTypeCode",
    "Device",
    "Function",
    "Module",
    "Object",
    "ShapeTuple",
    "String",
    "Tensor",
    "convert",
    "cpu",
    "cuda",
    "device",
    "empty",
    "ext_dev",
    "from_dlpack",
    "get_global_func",
    "load_module",
    "metal",
    "num_threads",
    "opencl",
    "profiling",
    "register_global_func",
    "rocm",
    "set_num_threads",
    "system_lib",
    "tensor",
    "vpi",
    "vulkan",
]
