"""What kernels of quantized values are made of."""

from .. import te
from ..tirx import FloatImm, IntImm, max_value, min_value


def clip_cast(val, dtype):
    """A scalar as the nearest value of an element type."""
    return te.max(te.min(val, max_value(dtype)), min_value(dtype)).astype(dtype)


def is_const_scalar(x):
    """Whether a value is a literal number."""
    return isinstance(x, (IntImm, FloatImm))


__all__ = ["clip_cast", "is_const_scalar"]
