"""Tensors under the names that they had in older releases of TVM: see :func:`relaxide.runtime.tensor`."""

from .runtime import Device, cpu, cuda, device, empty, ext_dev, from_dlpack, metal, opencl, rocm, vpi, vulkan
from .runtime import Tensor as NDArray
from .runtime import tensor as array

gpu = cuda

__all__ = ["Device", "NDArray", "array", "cpu", "cuda", "device", "empty", "ext_dev", "from_dlpack", "gpu", "metal", "opencl", "rocm", "vpi", "vulkan"]
