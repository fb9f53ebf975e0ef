"""Printing TVMScript in colours."""

from ..ir._highlight import show


def cprint(printable, style=None, black_format=False):
    """Print a node, or a text of TVMScript: in colours on a terminal and in a notebook, plain elsewhere.

    ``style`` and ``black_format`` are TVM's options about the look, which is one here. A TypeError for what has no text.
    """
    if hasattr(printable, "script"):
        printable = printable.script()
    if not isinstance(printable, str):
        raise TypeError(f"a text or a node is printed, not a {type(printable).__name__}")
    show(printable)


__all__ = ["cprint"]
