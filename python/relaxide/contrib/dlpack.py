"""Functions of this runtime for tensors of other packages."""

from ..runtime import from_dlpack


def convert_func(tvm_func, tensor_type, to_dlpack_func):
    """A function that takes tensors of another package.

    Parameters
    ----------
    tvm_func : Function
        What is called.
    tensor_type : type
        The other package's class of tensors.
    to_dlpack_func : callable
        Makes what ``from_dlpack`` takes of one.
    """

    def convert(value):
        return from_dlpack(to_dlpack_func(value)) if isinstance(value, tensor_type) else value

    def converted(*args):
        return tvm_func(*map(convert, args))

    return converted


def to_pytorch_func(tvm_func):
    """A function that takes tensors of PyTorch, which it shares memory with."""
    try:
        import torch
    except ImportError as error:
        raise ImportError("to_pytorch_func needs PyTorch: install torch") from error

    return convert_func(tvm_func, torch.Tensor, torch.utils.dlpack.to_dlpack)


__all__ = ["convert_func", "to_pytorch_func"]
