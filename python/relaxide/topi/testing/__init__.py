"""What operators compute, in NumPy: references to test kernels against."""

from . import _arrays, _convolution, _detection, _normalization
from ._arrays import *  # noqa: F403
from ._convolution import *  # noqa: F403
from ._detection import *  # noqa: F403
from ._normalization import *  # noqa: F403

__all__ = [*_arrays.__all__, *_convolution.__all__, *_detection.__all__, *_normalization.__all__]


def __getattr__(name):
    raise AttributeError(f"topi.testing has no reference {name!r}; there are {', '.join(__all__)}")
