"""Whether tensors lie in the same memory."""

from .._core import Tensor
from ..ffi import register_global_func


@register_global_func("runtime.TVMTensorIsStorageShared", override=True)
def is_storage_shared(lhs: Tensor, rhs: Tensor) -> bool:
    """Whether two tensors of one device have bytes in common."""
    if lhs.device != rhs.device:
        return False
    (first, end), (other, other_end) = (_bytes(tensor) for tensor in (lhs, rhs))
    return first < other_end and other < end


def _bytes(tensor):
    """The addresses of a tensor's first byte, and of what is behind its last."""
    first = last = tensor.data_ptr()
    width = (tensor.dtype.bits * tensor.dtype.lanes + 7) // 8
    for length, stride in zip(tensor.shape, tensor.strides):
        if length == 0:
            return first, first
        reach = (length - 1) * stride * width
        first, last = (first + reach, last) if reach < 0 else (first, last + reach)
    return first, last + width


__all__ = ["is_storage_shared"]
