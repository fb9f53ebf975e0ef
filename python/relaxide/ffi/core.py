"""The classes that values of other languages are instances of, under the names of ``tvm_ffi.core``."""

from .._core import DataType, Device, Function, Object, Tensor
from ._tensor import DLDeviceType

#: Text and bytes cross as Python's own.
String, Bytes = str, bytes


class ObjectConvertible:
    """A base of classes whose ``asobject()`` gives the object that crosses in their place."""

    def asobject(self):
        """The object that crosses in the place of this one."""
        raise NotImplementedError(f"{type(self).__name__} does not say which object it stands for")


__all__ = ["Bytes", "DLDeviceType", "DataType", "Device", "Function", "Object", "ObjectConvertible", "String", "Tensor"]
