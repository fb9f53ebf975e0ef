# Types of the package's own names; see `python/tests/test_types.py`.
from typing import Any

from . import arith as arith, contrib as contrib, error as error, ffi as ffi, ir as ir, relax as relax
from . import rpc as rpc, runtime as runtime, s_tir as s_tir, script as script, support as support, sym as sym, target as target
from . import te as te, testing as testing, tirx as tirx, topi as topi
from .compiler import build as build, compile as compile
from .ffi import register_object as register_object
from .ir import IRModule as IRModule, instrument as instrument, transform as transform
from .runtime import DataType as DataType, DataTypeCode as DataTypeCode, Device as Device, Tensor as Tensor
from .runtime import cpu as cpu, cuda as cuda, device as device, device_from_target as device_from_target, ext_dev as ext_dev
from .runtime import get_global_func as get_global_func, load_module as load_module, metal as metal, opencl as opencl
from .runtime import register_global_func as register_global_func, rocm as rocm, vpi as vpi, vulkan as vulkan
from .target import Target as Target

__version__: str

def __getattr__(name: str) -> Any: ...
