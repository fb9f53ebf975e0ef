"""Instructions of Apple's devices, one by one, as calls that are read and printed; no code is made of them."""

from .._instructions import functions as _functions

_made = _functions("metal")
globals().update(_made)

__all__ = sorted(_made)
