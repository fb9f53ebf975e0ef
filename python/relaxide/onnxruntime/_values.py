"""Values that sessions take and give, and where they are."""

import numpy as np

from .. import _onnx_values
from .._core import Tensor, tensor_over_array
from ..ffi import from_dlpack as _from_dlpack
from ..runtime import DataType
from ..runtime import empty as _empty
from ..runtime import tensor as _tensor
from ..runtime._tensor import array_type
from ._typed import Numbered, taken_number, taken_text

#: Element types by the names that operator definitions give them: their number, and numpy's name (or that of `ml_dtypes`).
ELEMENTS = {
    "float": (1, "float32"),
    "uint8": (2, "uint8"),
    "int8": (3, "int8"),
    "uint16": (4, "uint16"),
    "int16": (5, "int16"),
    "int32": (6, "int32"),
    "int64": (7, "int64"),
    "string": (8, "str"),
    "bool": (9, "bool"),
    "float16": (10, "float16"),
    "double": (11, "float64"),
    "uint32": (12, "uint32"),
    "uint64": (13, "uint64"),
    "bfloat16": (16, "bfloat16"),
    "float8e4m3fn": (17, "float8_e4m3fn"),
    "float8e4m3fnuz": (18, "float8_e4m3fnuz"),
    "float8e5m2": (19, "float8_e5m2"),
    "float8e5m2fnuz": (20, "float8_e5m2fnuz"),
    "uint4": (21, "uint4"),
    "int4": (22, "int4"),
    "float4e2m1": (23, "float4_e2m1fn"),
}
_NAMES = {numpy: name for name, (_, numpy) in ELEMENTS.items()}
_NUMBERS = {number: name for name, (number, _) in ELEMENTS.items()}


class OrtMemType(Numbered):
    """Which memory of a device."""

    CPU_INPUT = -2
    CPU_OUTPUT = -1
    CPU = -1
    DEFAULT = 0


class OrtAllocatorType(Numbered):
    """Which allocator."""

    INVALID = -1
    ORT_DEVICE_ALLOCATOR = 0
    ORT_ARENA_ALLOCATOR = 1


#: Kinds of devices by their names, with their number and who makes them. The first is here; the others are described, and have no values.
_DEVICES = {"cpu": (0, 0), "cuda": (1, 4318), "dml": (1, 5140), "npu": (3, 0), "webgpu": (1, 0), "cann": (3, 6629), "gpu": (1, 0)}


class OrtDevice:
    """A device. Values are on the processor; others are described alone."""

    def __init__(self, device_type="cpu", device_id=0):
        self._kind, self._id = taken_device(device_type, device_id)

    @staticmethod
    def make(device_type, device_id, vendor_id=-1):
        """The device of a kind and number."""
        return OrtDevice(device_type, device_id)

    @staticmethod
    def cpu():
        """The number of the kind."""
        return 0

    def device_id(self):
        """Its number."""
        return self._id

    def device_type(self):
        """The number of its kind."""
        return _DEVICES[self._kind][0]

    def device_mem_type(self):
        """The number of its kind of memory."""
        return 0

    def device_vendor_id(self):
        """The number of who made it, which nobody asks for a processor."""
        return _DEVICES[self._kind][1]


#: Memory by its names, of which the first is here.
_MEMORY = (
    "Cpu Cuda CudaPinned Hip HipPinned DML OpenVINO_CPU OpenVINO_GPU OpenVINO_RT OpenVINO_RT_NPU QnnHtpShared WebGPU_Buf WebNN_Ten Cann CannPinned"
).split()


class OrtMemoryInfo:
    """Where memory is and who allocates it."""

    device_mem_type = device_vendor_id = 0

    def __init__(self, name, allocator_type, device_id, mem_type):
        if not isinstance(allocator_type, OrtAllocatorType) or not isinstance(mem_type, OrtMemType):
            raise TypeError("memory is described by a name, an OrtAllocatorType, a number and an OrtMemType")
        self.name, self.device_id = taken_text(name, "the name of memory"), taken_number(device_id, "the number of a device")
        self.allocator_type, self.mem_type = allocator_type, mem_type
        if self.name not in _MEMORY:
            raise RuntimeError(f"there is no memory {self.name!r}; there are: {', '.join(_MEMORY)}")

    @staticmethod
    def of_host():
        """The processor's memory."""
        return OrtMemoryInfo("Cpu", OrtAllocatorType.ORT_ARENA_ALLOCATOR, 0, OrtMemType.DEFAULT)


def taken_device(device_type, device_id):
    """The name of a kind of device, and a number."""
    kind = taken_text(device_type, "the type of a device").lower()
    number = taken_number(device_id, "the number of a device")
    if kind not in _DEVICES:
        raise RuntimeError(f"there is no kind of device {kind!r}; there are: {', '.join(_DEVICES)}")
    return kind, number


def checked_device(device_type, device_id):
    """A device that is here, or an error that says which are."""
    kind, number = taken_device(device_type, device_id)
    if kind != "cpu":
        raise RuntimeError(f"there is no device {kind}:{number}: sessions run on the processor (cpu)")
    return kind, number


def element_of(type_or_dtype):
    """The name of an element type from a numpy type, a number of ONNX, or a name."""
    if isinstance(type_or_dtype, int) and not isinstance(type_or_dtype, bool):
        if type_or_dtype in _NUMBERS:
            return _NUMBERS[type_or_dtype]
        raise RuntimeError(f"{type_or_dtype} is no element type; expected one of ONNX's numbers: {sorted(_NUMBERS)}")
    try:
        dtype = np.dtype(type_or_dtype)
    except TypeError as error:
        raise RuntimeError(f"{type_or_dtype!r} is no element type: {error}") from error
    if dtype.kind in "OUST":
        return "string"
    if dtype.name not in _NAMES:
        raise RuntimeError(f"elements of type {dtype} are not supported; expected one of {', '.join(sorted(ELEMENTS))}")
    return _NAMES[dtype.name]


def element_of_tensor(value):
    """The name of a tensor's element type."""
    if not isinstance(value, Tensor):
        return "string"
    return _NAMES.get(str(value.dtype), str(value.dtype))


class OrtValue:
    """A value in memory that sessions share: a tensor, a sequence, or nothing."""

    def __init__(self, value, numpy_obj=None, kind=None):
        self._value = value
        self._numpy_obj = numpy_obj
        # The type that the model says, of what is no tensor.
        self._kind = kind

    @staticmethod
    def ortvalue_from_numpy(numpy_obj, device_type="cpu", device_id=0, vendor_id=-1):
        """A value over the memory of an array, or over a copy where the array has gaps."""
        checked_device(device_type, device_id)
        if not isinstance(numpy_obj, np.ndarray):
            raise RuntimeError(f"a value is made of an array of numpy, not of {type(numpy_obj).__name__}")
        array = numpy_obj if numpy_obj.dtype.isnative else numpy_obj.astype(numpy_obj.dtype.newbyteorder("="))
        if element_of(array.dtype) == "string" and array.dtype.kind == "O" and not all(isinstance(text, str) for text in array.flat):
            raise RuntimeError("elements of a tensor of texts are texts")
        shared = tensor_over_array(array)
        return OrtValue(_onnx_values.to_runtime(array, share=True) if shared is None else shared, array)

    @staticmethod
    def ortvalue_from_numpy_with_onnx_type(data, onnx_element_type):
        """A value whose elements are the array's bits, read as a type of ONNX that numpy lacks."""
        number = taken_number(onnx_element_type, "onnx_element_type")
        if not isinstance(data, np.ndarray):
            raise TypeError(f"data is an array of numpy, not {type(data).__name__}")
        element = element_of(number)
        if element == "string":
            return OrtValue.ortvalue_from_numpy(data)
        kind = dtype_of(element)
        if data.dtype.itemsize != np.dtype(kind).itemsize:
            raise RuntimeError(f"elements of {data.dtype} have another size than those of {element}")
        return OrtValue(_tensor(data.view(kind)), data)

    @staticmethod
    def ortvalue_from_shape_and_type(shape, element_type, device_type="cpu", device_id=0, vendor_id=-1):
        """A tensor whose content is undefined."""
        checked_device(device_type, device_id)
        dims = taken_dims(shape)
        element = element_of(element_type)
        if element == "string":
            raise RuntimeError("a tensor of texts is made from an array of them: OrtValue.ortvalue_from_numpy")
        return OrtValue(_empty(dims, ELEMENTS[element][1]))

    @classmethod
    def from_dlpack(cls, data):
        """A value that shares the memory of another library's tensor where kernels can use it as it is."""
        if not hasattr(data, "__dlpack__"):
            raise TypeError(f"a tensor of another library has __dlpack__, and {type(data).__name__} has not")
        shared = tensor_over_array(data)
        if shared is not None:
            return cls(shared, data)
        try:
            return cls(_from_dlpack(data))
        except (RuntimeError, ValueError):
            return cls(_onnx_values.shared(data))  # It has gaps.

    @property
    def _ortvalue(self):
        """The value itself: programs ask the extension module's for what this one has."""
        return self

    def _get_c_value(self):
        return self

    def to_dlpack(self):
        """A capsule that another library takes."""
        return self.__dlpack__()

    def __dlpack__(self, **options):
        return self._tensor("__dlpack__").__dlpack__(**options)

    def __dlpack_device__(self):
        return self._tensor("__dlpack_device__").__dlpack_device__()

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        if not isinstance(array, np.ndarray):
            raise RuntimeError(f"a value that is {self.data_type()} is no array: use numpy()")
        return array if dtype is None else array.astype(dtype)

    def _tensor(self, what):
        """The tensor, compact, since whoever asks for its memory reads that."""
        if not isinstance(self._value, Tensor):
            raise RuntimeError(f"{what} is for tensors, and this value is {self.data_type()}")
        if not self._value.is_contiguous():
            self._value = self._value.copyto(self._value.device)
        return self._value

    def data_ptr(self):
        """The address of the first element."""
        tensor = self._tensor("data_ptr")
        return tensor.data_ptr() if tensor.numel() else 0

    def device_name(self):
        """The kind of the device that it is on."""
        return "cpu"

    def shape(self):
        """The lengths of a tensor."""
        if not self.is_tensor():
            raise RuntimeError(f"shape is for tensors, and this value is {self.data_type()}")
        return [int(dim) for dim in self._value.shape]

    def data_type(self):
        """The type as operator definitions write it: ``tensor(float)``."""
        if self.is_tensor():
            return f"tensor({element_of_tensor(self._value)})"
        if self._value is None:
            return "optional"
        if self._kind is not None:
            return self._kind
        return "seq" if self.is_tensor_sequence() else "map"

    def element_type(self):
        """The number of the element type in ONNX."""
        if self.is_tensor():
            return ELEMENTS[element_of_tensor(self._value)][0]
        element = self.data_type().rpartition("tensor(")[2].rstrip(")")
        if element not in ELEMENTS:
            raise RuntimeError(f"a value that is {self.data_type()} has no type of elements")
        return ELEMENTS[element][0]

    def has_value(self):
        """Whether there is a value: optional ones may have none."""
        return self._value is not None

    def is_tensor(self):
        """Whether it is a tensor."""
        return _onnx_values.is_tensor(self._value)

    def is_sparse_tensor(self):
        """Whether it is a sparse tensor."""
        return False

    def as_sparse_tensor(self):
        """Refused: this one is dense."""
        raise RuntimeError(f"the value is no sparse tensor but {self.data_type()}: use numpy()")

    @staticmethod
    def ort_value_from_sparse_tensor(sparse_tensor):
        """A value of a sparse tensor."""
        from ._sparse import SparseValue

        return SparseValue(sparse_tensor)

    def is_tensor_sequence(self):
        """Whether it is a sequence."""
        return self._value is not None and not self.is_tensor() and not hasattr(self._value, "items")

    def tensor_size_in_bytes(self):
        """How many bytes the elements take."""
        tensor = self._tensor("tensor_size_in_bytes")
        bits = 8 if str(tensor.dtype) == "bool" else tensor.dtype.bits
        return (tensor.numel() * bits + 7) // 8

    def numpy(self):
        """A copy as an array, or as what else it is: a list, a dictionary, nothing."""
        return _onnx_values.to_numpy(self._value)

    def update_inplace(self, np_arr):
        """Copy the elements of an array or of another value of the same shape into this tensor."""
        source = np_arr.numpy() if isinstance(np_arr, OrtValue) else np_arr
        tensor = self._tensor("update_inplace")
        if not isinstance(source, np.ndarray):
            raise TypeError(f"an array of numpy or a value is expected, not {type(np_arr).__name__}")
        if list(source.shape) != self.shape():
            raise RuntimeError(f"the shape is {list(source.shape)}, and the value's {self.shape()}")
        tensor.copyfrom(source)


class OrtValueVector(list):
    """Values in order, as the extension module holds them."""

    def push_back(self, value):
        """Append a value, or what another library's tensor holds."""
        self.append(value if isinstance(value, OrtValue) else OrtValue.from_dlpack(value))

    def element_type_at(self, idx):
        """The number of the element type of one of them."""
        return self[idx].element_type()

    def dlpack_at(self, idx):
        """One of them as a capsule that another library takes."""
        return self[idx].to_dlpack()

    def to_dlpacks(self, to_tensor):
        """All of them, each by a function of its capsule where there is one."""
        capsules = [value.to_dlpack() for value in self]
        return capsules if to_tensor is None else [to_tensor(capsule) for capsule in capsules]

    def reserve(self, count):
        """Kept for its name: a list grows by itself."""

    def shrink_to_fit(self):
        """Kept for its name: a list shrinks by itself."""


def taken_dims(shape):
    """The lengths of a shape."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise TypeError(f"a shape is a list of whole numbers, not {type(shape).__name__}")
    dims = [taken_number(dim, "a length of a shape") for dim in shape]
    if any(dim < 0 for dim in dims):
        raise RuntimeError(f"lengths of a shape are not negative: {dims}")
    return dims


def dtype_of(element):
    """What numpy calls an element type."""
    return array_type(DataType(ELEMENTS[element][1]))


__all__ = ["OrtAllocatorType", "OrtDevice", "OrtMemType", "OrtMemoryInfo", "OrtValue", "OrtValueVector"]
