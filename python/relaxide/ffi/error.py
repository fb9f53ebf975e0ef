"""Kinds of errors that other languages raise, and the exceptions that they become."""

from .. import _core


def register_error(name_or_cls=None, cls=None):
    """Make an exception class stand for errors of a kind; usable as a decorator, with or without the kind."""
    if isinstance(name_or_cls, type):
        name_or_cls, cls = name_or_cls.__name__, name_or_cls
    if cls is None:
        return lambda later: register_error(name_or_cls, later)
    _core.register_error_class(name_or_cls or cls.__name__, cls)
    return cls


__all__ = ["register_error"]
