"""Exceptions of errors that have kinds of their own."""

from .ffi import register_error


@register_error
class RPCError(RuntimeError):
    """An error of a remote call whose far side says no kind, or of the session itself."""


@register_error
class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A session that took longer than it may."""


# Kinds of Python's own that the core does not know otherwise.
register_error("PermissionError", PermissionError)

__all__ = ["RPCError", "RPCSessionTimeoutError"]
