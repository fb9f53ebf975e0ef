"""The tensor operator inventory: operators as functions of tensors of :mod:`relaxide.te`.

Each is what the operator of Relax computes, on its own, as a part of a kernel that is written by hand::

    A = te.placeholder((n, 128), "float32", name="A")
    B = topi.nn.softmax(topi.multiply(A, 2.0))
    func = te.create_prim_func([A, B])
"""

from . import _approximate, _more_shapes, _shapes, image, nn, signal, tag, utils, vision
from ._approximate import *  # noqa: F403
from ._operator import elementwise
from ._more_shapes import *  # noqa: F403
from ._shapes import *  # noqa: F403
from .tag import is_broadcast, is_injective
from .utils import InvalidShapeError, get_const_tuple

_made = elementwise()
globals().update(_made)

__all__ = [*_made, *_approximate.__all__, *_more_shapes.__all__, *_shapes.__all__, "InvalidShapeError", "get_const_tuple", "image", "nn"]
__all__ += ["signal", "utils", "vision"]
