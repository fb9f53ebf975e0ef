"""Runs models that `relaxide compile` has made, without a compiler: `load("model.so").run(x=array)`.

Arrays are NumPy's. They are copied into memory of the runtime's, which is aligned for its kernels; results are views of its memory, and
copies of nothing. `bfloat16` has no type in NumPy: such tensors are arrays of their bits (`uint16`).
"""

import ctypes
import math
import os

import numpy as np

from ._library import LIBRARY, DType, FunctionInfo, Handle, Owned, ParamInfo, RuntimeFailure, TensorInfo, call, result

__all__ = ["Model", "Parameter", "RuntimeFailure", "load", "release_cached_memory", "set_num_threads"]
__version__ = LIBRARY.relaxide_version().decode()

_NONE, _INT, _FLOAT, _STR, _SHAPE, _TENSOR, _TUPLE = range(7)


def set_num_threads(count):
    """How many threads kernels use."""
    call("set_num_threads", count)


def release_cached_memory():
    """Gives memory that was kept for later calls to the system."""
    LIBRARY.relaxide_release_cached_memory()


def _dtype_name(dtype):
    room = ctypes.create_string_buffer(32)
    call("dtype_name", dtype, room, len(room))
    return room.value.decode()


class Parameter:
    """A parameter of a function: `name`, `annotation` (as TVMScript), `dtype` and `shape`, in which None is any length."""

    def __init__(self, info):
        self.name, self.annotation = info.name.decode(), info.annotation.decode()
        self.dtype = _dtype_name(info.dtype) if info.dtype.bits else None
        self.shape = tuple(None if dim < 0 else dim for dim in info.dims[: info.ndim]) if info.ndim >= 0 else None

    def __repr__(self):
        return f"{self.name}: {self.annotation or 'unknown'}"


class _Memory:
    """What keeps a tensor's memory while an array is a view of it."""

    def __init__(self, tensor, info):
        self._tensor = tensor
        name = _dtype_name(info.dtype)
        bits = {"bfloat16": "uint16"}
        dtype = np.dtype(bits.get(name, name))
        self.__array_interface__ = {
            "version": 3,
            "shape": tuple(info.shape[: info.ndim]),
            "typestr": dtype.str,
            "data": (info.data or 0, False),
            "strides": None,
        }


def _tensor(array, wanted):
    """A tensor of the runtime's with what an array holds."""
    is_bits = wanted == "bfloat16" and array.dtype == np.uint16
    dtype = result("dtype_parse", DType, (wanted if is_bits else array.dtype.name).encode())
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    tensor = Owned("tensor", result("tensor_new", Handle, shape, array.ndim, dtype))
    if array.size:
        info = result("tensor_describe", TensorInfo, tensor.handle)
        ctypes.memmove(info.data, array.ctypes.data, math.prod(array.shape) * array.itemsize)
    return tensor


def _value(arg, wanted):
    if isinstance(arg, (bool, int, np.integer)) and wanted is None:
        return Owned("value", result("value_int", Handle, int(arg)))
    if isinstance(arg, (float, np.floating)) and wanted is None:
        return Owned("value", result("value_float", Handle, float(arg)))
    if isinstance(arg, str):
        return Owned("value", result("value_str", Handle, arg.encode()))
    if isinstance(arg, tuple):
        fields = [_value(field, None) for field in arg]
        list_ = (Handle * len(fields))(*(field.handle for field in fields))
        return Owned("value", result("value_tuple", Handle, list_, len(fields)))
    array = np.ascontiguousarray(arg)
    # What NumPy makes of a scalar has no dimension, and ascontiguousarray gives it one.
    tensor = _tensor(array.reshape(np.shape(arg)), wanted)
    return Owned("value", result("value_tensor", Handle, tensor.handle))


def _taken(handle):
    value = Owned("value", handle)
    if not value.handle:
        return None
    kind = result("value_kind", ctypes.c_int, value.handle)
    if kind == _NONE:
        return None
    if kind == _INT:
        return result("value_as_int", ctypes.c_int64, value.handle)
    if kind == _FLOAT:
        return result("value_as_float", ctypes.c_double, value.handle)
    if kind == _STR:
        return result("value_as_str", ctypes.c_char_p, value.handle).decode()
    if kind == _SHAPE:
        dims, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_size_t()
        call("value_as_shape", value.handle, ctypes.byref(dims), ctypes.byref(count))
        return tuple(dims[: count.value])
    if kind == _TENSOR:
        tensor = Owned("tensor", result("value_as_tensor", Handle, value.handle))
        info = result("tensor_describe", TensorInfo, tensor.handle)
        if not info.size:
            return np.empty(tuple(info.shape[: info.ndim]), _dtype_name(info.dtype).replace("bfloat16", "uint16"))
        return np.asarray(_Memory(tensor, info))
    if kind == _TUPLE:
        size = result("value_tuple_size", ctypes.c_size_t, value.handle)
        return tuple(_taken(result("value_field", Handle, value.handle, i)) for i in range(size))
    raise TypeError("the model returns a value that has no form in Python")


def _flat(value):
    return [part for field in value for part in _flat(field)] if isinstance(value, tuple) else [value]


class Model:
    """A model, ready to run. It may be called from several threads."""

    def __init__(self, handle):
        self._model = Owned("model", handle)
        #: The parameters of each function.
        self.functions = {}
        for i in range(result("model_num_functions", ctypes.c_size_t, handle)):
            info = result("model_function", FunctionInfo, handle, i)
            params = [Parameter(result("model_param", ParamInfo, handle, info.name, k)) for k in range(info.num_params)]
            self.functions[info.name.decode()] = params

    def _function(self, name):
        if name not in self.functions:
            raise ValueError(f"the model has no function {name!r}: it has {', '.join(self.functions)}")
        return self.functions[name]

    @property
    def inputs(self):
        """The parameters of `main`."""
        return self._function("main")

    def outputs(self, function="main"):
        """The names of a function's results, as far as the file says them."""
        self._function(function)
        handle, name = self._model.handle, function.encode()
        count = result("model_num_output_names", ctypes.c_size_t, handle, name)
        return [result("model_output_name", ctypes.c_char_p, handle, name, i).decode() for i in range(count)]

    def call(self, function, *args):
        """Calls a function: arrays (or what NumPy makes arrays of), numbers, texts, and tuples of these. The result is an array, a tuple
        of results, a number, a text, a shape, or None."""
        params = self._function(function)
        dtypes = [param.dtype for param in params] + [None] * len(args)
        values = [_value(arg, dtype) for arg, dtype in zip(args, dtypes)]
        list_ = (Handle * len(values))(*(value.handle for value in values))
        return _taken(result("model_call", Handle, self._model.handle, function.encode(), list_, len(values)))

    def __call__(self, *args):
        """Calls `main`."""
        return self.call("main", *args)

    def run(self, **inputs):
        """Runs `main` on inputs by their names, and gives its results by theirs."""
        params = self.inputs
        known = ", ".join(param.name for param in params)
        unknown = next((name for name in inputs if all(name != param.name for param in params)), None)
        if unknown is not None:
            raise ValueError(f"unknown input {unknown!r}: main has {known}")
        missing = next((param.name for param in params if param.name not in inputs), None)
        if missing is not None:
            raise ValueError(f"the input {missing!r} is missing: main has {known}")
        results, names = _flat(self(*(inputs[param.name] for param in params))), self.outputs()
        if len(names) != len(results):
            names = [f"output{i}" for i in range(len(results))]
        return dict(zip(names, results))


def load(path, weights=None):
    """Loads a compiled model. `weights` is the file of its weights where that is not beside it. Its code runs with all rights of the
    process."""
    name = os.fsencode(path)
    if weights is None:
        return Model(result("model_load", Handle, name))
    return Model(result("model_load_with_weights", Handle, name, os.fsencode(weights)))
