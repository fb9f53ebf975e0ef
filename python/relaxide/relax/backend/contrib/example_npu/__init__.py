"""A processor for networks that does not exist, to show how one is told what to take of a program: importing this makes its patterns known.

No code is made for it: a backend of one's own registers a function ``relax.ext.NAME`` for that.
"""

from . import patterns

__all__ = ["patterns"]
