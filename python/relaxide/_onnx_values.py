"""Values of ONNX models between numpy and the runtime: tensors, texts, sequences, maps, optional values."""

import numpy as np

from ._core import Tensor, argument_of_array
from .ffi import Map
from .runtime import TextTensor, from_dlpack, tensor


def to_runtime(value, device=None, *, share=False):
    """A value as programs take it; with ``share`` over the array's own memory, where kernels can use that as it is."""
    if value is None or isinstance(value, (Tensor, TextTensor)):
        return value
    if isinstance(value, (list, tuple)):
        return [to_runtime(part, device, share=share) for part in value]
    if isinstance(value, dict):
        return {key: part.item() if isinstance(part, np.generic) else part for key, part in value.items()}
    array = np.asarray(value)
    if array.dtype.kind in "OUST":
        return TextTensor(array)
    return shared(array) if share else tensor(array, device)


def shared(array):
    """A tensor over the memory of an array, or a copy where that has gaps or begins at an odd place."""
    argument = argument_of_array(array)
    if argument is not None:
        return argument
    try:
        return from_dlpack(array)
    except (BufferError, TypeError, ValueError, RuntimeError):
        return tensor(array)


def is_tensor(value):
    """Whether a value of the runtime is a tensor, of numbers or of texts."""
    return isinstance(value, (Tensor, TextTensor))


def to_numpy(value):
    """A value of the runtime as numpy arrays, lists of them, dictionaries, or nothing."""
    if value is None:
        return None
    if is_tensor(value):
        return value.numpy()
    if isinstance(value, Map):
        return {str(key) if isinstance(key, str) else key: number for key, number in value.items()}
    if isinstance(value, (int, float, bool)):
        return np.asarray(value)
    return [to_numpy(part) for part in value]
