"""Relaxide: a tensor compiler and virtual machine.

The names are those of Apache TVM 0.27, so that ``import relaxide as tvm`` serves a script that was written for it::

    import onnx
    import relaxide as tvm
    from relaxide import relax

    mod = relax.frontend.onnx.from_onnx(onnx.load("model.onnx"))
    tvm.compile(mod, target="llvm").export_library("model.so")

    vm = relax.VirtualMachine(tvm.runtime.load_module("model.so"), tvm.cpu())
    print(vm["main"](tvm.runtime.tensor(image)))
"""

from . import arith, error, ffi, ir, relax, rpc, runtime, s_tir, script, sym, target, te, tirx, topi
from ._core import __version__
from .compiler import build, compile
from .ffi import register_object
from .ir import IRModule
from .ir import instrument, transform
from .runtime import DataType, DataTypeCode, Device, Tensor, cpu, cuda, device, device_from_target, ext_dev, get_global_func, load_module, metal, opencl
from .runtime import register_global_func, rocm, vpi, vulkan
from .target import Target
from ._parts import open_parts as _open_parts

_open_parts(__name__)


def __getattr__(name):
    # Relay and what came with it, and what programs seldom use: loaded where a program asks for them.
    if name in ("relay", "contrib", "driver", "exec", "libinfo", "parser", "support", "testing"):
        import importlib

        return importlib.import_module(f".{'relay.parser' if name == 'parser' else name}", __name__)
    from ._old_names import find

    return find(__name__, name)


__all__ = [
    "DataType",
    "DataTypeCode",
    "Device",
    "IRModule",
    "Target",
    "Tensor",
    "__version__",
    "build",
    "compile",
    "cpu",
    "cuda",
    "device",
    "device_from_target",
    "error",
    "ext_dev",
    "ffi",
    "get_global_func",
    "instrument",
    "ir",
    "load_module",
    "metal",
    "opencl",
    "register_global_func",
    "register_object",
    "relax",
    "rpc",
    "rocm",
    "runtime",
    "s_tir",
    "script",
    "target",
    "te",
    "tirx",
    "transform",
    "vpi",
    "vulkan",
]
