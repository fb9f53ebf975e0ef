"""Shapes, devices and tensors of other libraries."""

from enum import IntEnum
from operator import index as as_int

from .. import _core
from .._core import Device, Tensor


class DLDeviceType(IntEnum):
    """Kinds of devices, with DLPack's numbers."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17
    kDLTrn = 18


class Shape(tuple):
    """A shape: a tuple of integers that crosses to other languages as one value."""

    def __new__(cls, content):
        try:
            return tuple.__new__(cls, [as_int(dim) for dim in content])
        except TypeError as wrong:
            raise ValueError("Shape must be a tuple of integers") from wrong


_core.set_shape_class(Shape)


def device(device_type, index=None):
    """The device of a name (``"cpu"``, ``"cuda:1"``) or type number."""
    return Device(device_type, index)


def from_dlpack(ext_tensor, *, require_alignment=0, require_contiguous=False):
    """A tensor that shares the memory of another library's array, or of a DLPack capsule."""
    return Tensor._from_dlpack(ext_tensor, require_alignment, require_contiguous)


__all__ = ["DLDeviceType", "Device", "Shape", "Tensor", "device", "from_dlpack"]
