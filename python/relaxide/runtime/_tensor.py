"""Tensors: data on a device, to and from numpy.

numpy is imported when the first array is met: a program that never makes one starts in a third of the time.
"""

from .._core import Device, Tensor, array_of_tensor
from .._extend import methods_of
from ..ffi import Shape, device as _device, dtype as _dtype, get_global_func
from ..ffi import from_dlpack as _from_dlpack

#: Types that numpy has under the same name.
_NUMPY = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)
#: Devices from this number on are those of remote sessions.
_REMOTE = 128
#: Alignment that compiled code counts on.
_ALIGNMENT = 64


def array_type(dtype):
    """numpy's type for the elements: its own, or one of the package `ml_dtypes`."""
    import numpy as np

    name = str(dtype.with_lanes(1)) if dtype.lanes > 1 else str(dtype)
    if name in _NUMPY:
        return np.dtype(name)
    try:
        import ml_dtypes
    except ImportError:
        raise RuntimeError(f"ml_dtypes is not installed, cannot convert {name} array to numpy.") from None
    try:
        return np.dtype(getattr(ml_dtypes, name))
    except AttributeError:
        raise RuntimeError(f"ml_dtypes has no attribute '{name}', cannot convert array.") from None


@methods_of(Tensor)
class _Methods:
    def numpy(self):
        """A copy as a numpy array; vector elements become a last dimension."""
        array = array_of_tensor(self)
        if array is not None:
            return array
        import numpy as np

        if self.device.dlpack_device_type() != Device.CPU:
            return self.copyto(cpu()).numpy()
        if self.dtype in _NUMPY:
            return np.from_dlpack(self).copy()
        dtype, kind = self.dtype, array_type(self.dtype)
        if dtype.bits < 8:
            return _unpacked(np.frombuffer(self._bytes(), "uint8"), dtype, self.shape, kind)
        shape = self.shape if dtype.lanes == 1 else (*self.shape, dtype.lanes)
        return np.frombuffer(self._bytes(), kind).reshape(shape).copy()

    def copyfrom(self, source_array):
        """Copy the data of an array or tensor of the same shape into this one; returns this one."""
        if isinstance(source_array, Tensor):
            return source_array.copyto(self)
        import numpy as np

        if self.device.dlpack_device_type() != Device.CPU:
            empty(self.shape, self.dtype).copyfrom(source_array).copyto(self)
            return self
        kind = array_type(self.dtype)
        try:
            array = np.asarray(source_array)
        except Exception:
            raise TypeError(
                f"array must be an array_like data, type {type(source_array)} is not supported"
            ) from None
        shape = self.shape if self.dtype.lanes == 1 else (*self.shape, self.dtype.lanes)
        if array.shape != shape:
            raise ValueError(f"array shape do not match the shape of Tensor {array.shape} vs {shape}")
        array = np.ascontiguousarray(array, kind)
        if self.dtype.bits < 8:
            array = _packed(array.view("uint8").reshape(-1), self.dtype)
        bytes = array.reshape(-1).view("uint8")
        try:
            self._fill(_from_dlpack(bytes))
        except BufferError:  # numpy before 2.1 does not lend what is read-only
            self._fill(_from_dlpack(bytes.copy()))
        return self

    def copyto(self, target, mem_scope=None):
        """Copy to a tensor of the same shape, or to a fresh one on a device; returns that tensor."""
        if isinstance(target, Device):
            target = empty(self.shape, self.dtype, target, mem_scope)
        elif not isinstance(target, Tensor):
            raise ValueError(f"Unsupported target type {type(target)}")
        target._copy_from(self)
        return target

    def __setitem__(self, in_slice, value):
        if in_slice != slice(None):
            raise ValueError("Array only support set from numpy array")
        if value is not self:
            self.copyfrom(value)

    def __repr__(self):
        return f"<relaxide.runtime.Tensor shape={self.shape}, {self.device}>\n{self.numpy()!r}"

    def __str__(self):
        return str(self.numpy())


def _packed(bytes, dtype):
    """Elements of less than a byte without gaps, the first in the upper bits."""
    import numpy as np

    bits = np.unpackbits(bytes.reshape(-1, 1), axis=1)
    return np.packbits(bits[:, 8 - dtype.bits :])


def _unpacked(bytes, dtype, shape, kind):
    import numpy as np

    shape = tuple(shape) if dtype.lanes == 1 else (*shape, dtype.lanes)
    count = int(np.prod(shape, dtype="int64"))
    bits = np.unpackbits(bytes)[: count * dtype.bits].reshape(-1, dtype.bits)
    elements = np.packbits(bits, axis=1).reshape(-1) >> (8 - dtype.bits)
    return elements.view(kind).reshape(shape)


def empty(shape, dtype="float32", device=None, mem_scope=None):
    """A tensor of a shape; its content is undefined."""
    if device is not None and device.dlpack_device_type() >= _REMOTE:
        shape = tuple(int(dim) for dim in shape)
        return get_global_func("rpc.EmptyTensor")(Shape(shape), _dtype(dtype), device, mem_scope or None)
    if mem_scope not in (None, "", "global"):
        raise ValueError(f"memory scope {mem_scope!r} does not exist on {device or cpu()}; expected 'global'")
    return Tensor._empty([int(dim) for dim in shape], _dtype(dtype), device or cpu())


def tensor(arr, device=None, mem_scope=None):
    """A tensor with a copy of the data of an array, of a tensor, or of whatever numpy makes an array of.

    Of texts it is a :class:`TextTensor`.
    """
    if not isinstance(arr, Tensor):
        import numpy as np
        from ._text import TextTensor, is_text

        arr = np.asarray(arr)
        if is_text(arr) and arr.size:
            return TextTensor(arr)
    return empty(arr.shape, arr.dtype, device, mem_scope).copyfrom(arr)


def from_dlpack(ext_tensor):
    """A tensor that shares the memory of another library's array, which compiled code can take."""
    return _from_dlpack(ext_tensor, require_alignment=_ALIGNMENT, require_contiguous=True)


def device(dev, dev_id=None):
    """The device of a name (``"cpu"``, ``"cuda:1"``) or type number."""
    return _device(dev, dev_id)


def _of_type(name):
    def make(dev_id=0):
        return _device(name, dev_id)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"The {name} device of a number."
    return make


cpu, cuda, opencl, vulkan, metal = map(_of_type, ("cpu", "cuda", "opencl", "vulkan", "metal"))
vpi, rocm, ext_dev = map(_of_type, ("vpi", "rocm", "ext_dev"))


def device_from_target(target, index=None):
    """The device that programs for a target run on.

    Parameters
    ----------
    target : Target, str or dict
        The target.
    index : int, optional
        Which device of the kind.
    """
    from ..target import Target

    target = Target(target)
    kind = str(target.kind)
    said = target.attrs.get("target_device_type")
    if said is not None:
        return _device(int(said), index or 0)
    names = {"llvm": "cpu", "c": "cpu", "composite": "cpu"}
    return _device(names.get(kind, kind), index or 0)


__all__ = ["Shape", "Tensor", "cpu", "cuda", "device", "device_from_target", "empty", "ext_dev", "from_dlpack", "metal", "opencl", "rocm"]
__all__ += ["tensor", "vpi", "vulkan"]
