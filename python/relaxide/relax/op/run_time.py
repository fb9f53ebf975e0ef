"""What compiled programs call for operators that look at values: to print, to check, to find unique and non-zero elements."""

import numpy as np

from ... import runtime
from ...ffi import Array, register_global_func

_print = print


def render_object(val):
    """A value as text: tensors by their elements, tuples in parentheses."""
    if isinstance(val, (Array, tuple, list)):
        return f"({', '.join(render_object(item) for item in val)})"
    return str(val)


def _formatted(format_str, args, empty):
    texts = [render_object(arg) for arg in args]
    return format_str.format(*texts) if format_str else empty(texts)


def relax_print(format_str, *format_args):
    """Print values, by Python's format string where it is not empty."""
    _print(_formatted(format_str, format_args, " ".join))


def relax_assert_op(condition, format_str, *format_args):
    """An AssertionError with the values in its text where the condition, a boolean scalar, is false.

    Raises
    ------
    ValueError
        The condition is no boolean scalar, or the format is no text.
    AssertionError
        The condition is false.
    """
    if not isinstance(format_str, str):
        raise ValueError(f"the format of an assertion is text, not {type(format_str).__name__}")
    if isinstance(condition, runtime.Tensor):
        if tuple(condition.shape) or str(condition.dtype) != "bool":
            raise ValueError(f"the condition of an assertion is a boolean scalar, not {condition.dtype} of shape {tuple(condition.shape)}")
        condition = bool(condition.numpy())
    elif not isinstance(condition, (bool, int)):
        raise ValueError(f"the condition of an assertion is a boolean scalar, not {type(condition).__name__}")
    if not condition:
        said = _formatted(format_str, format_args, ", ".join)
        raise AssertionError(said or "Assertion Failed")


def relax_shape_to_tensor(shape_tuple):
    """The lengths of a shape as a tensor of ``int64``."""
    return runtime.tensor(np.array([int(length) for length in shape_tuple], "int64"))


def numpy_unique(x, sorted, return_index, return_inverse, return_counts, axis=None):
    """The elements of a tensor without repetition, or its parts along ``axis``: in order, or as they come first where ``sorted`` is 0.

    With a flag, also a tensor of ``int64`` each: where each comes first, which of them each element is, and how many there are.
    """
    values, first, inverse, counts = np.unique(x.numpy(), return_index=True, return_inverse=True, return_counts=True, axis=axis)
    # NumPy's versions differ in the shape of the inverse.
    inverse = inverse.reshape(-1)
    if not sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=0 if axis is None else axis)
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        first, inverse, counts = first[order], place[inverse], counts[order]
    wanted = [(return_index, first), (return_inverse, inverse), (return_counts, counts)]
    found = [runtime.tensor(np.ascontiguousarray(values)), *(runtime.tensor(more.astype("int64")) for flag, more in wanted if flag)]
    return found[0] if len(found) == 1 else found


def numpy_nonzero(x):
    """Where elements are not zero: a row for each dimension."""
    return runtime.tensor(np.stack(np.atleast_1d(x.numpy()).nonzero(), axis=0))


register_global_func("relax.run.shape_to_tensor", relax_shape_to_tensor, override=True)

__all__ = ["numpy_nonzero", "numpy_unique", "relax_assert_op", "relax_print", "relax_shape_to_tensor", "render_object"]
