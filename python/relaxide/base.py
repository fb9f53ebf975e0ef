"""Where the library of this package lies: what ``tvm.base`` hands on."""

from . import libinfo

__all__ = ["libinfo"]
