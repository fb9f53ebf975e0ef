"""What kernels are compiled for."""

import threading

from ._core import Target
from ._extend import methods_of

__all__ = ["Target"]

_entered = threading.local()


@methods_of(Target)
class _Methods:
    def __enter__(self):
        """Compile for this target where no other is given, until the ``with`` block ends."""
        _entered.__dict__.setdefault("stack", []).append(self)
        return self

    def __exit__(self, *_):
        _entered.stack.pop()

    @staticmethod
    def current(allow_none=True):
        """The target of the innermost ``with`` block around."""
        stack = getattr(_entered, "stack", None)
        if stack:
            return stack[-1]
        if allow_none:
            return None
        raise ValueError("no target is set: write `with Target(...):` around, or pass one")
