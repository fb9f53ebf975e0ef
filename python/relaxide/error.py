"""Exceptions of errors that have kinds of their own."""

from .ffi import register_error


@register_error
class RPCError(RuntimeError):
    """An error of a remote call whose far side says no kind, or of the session itself."""


@register_error
class RPCSessionTimeoutError(RPCError, TimeoutError):
    """A session that took longer than it may."""


@register_error
class CancelledError(RPCError):
    """A remote call that was cancelled, or whose session was closed while it ran."""


@register_error
class InternalError(RuntimeError):
    """A defect of the library."""


@register_error
class DiagnosticError(RuntimeError):
    """A program that was refused, whose reasons were told before."""


class ScriptError(SyntaxError, DiagnosticError):
    """TVMScript that cannot be read: its text names the place, what was expected, and what to try."""


@register_error
class OpError(RuntimeError):
    """The base of errors about operators of a front end."""


@register_error
class OpNotImplemented(OpError, NotImplementedError):
    """An operator that a front end does not know."""


@register_error
class OpAttributeRequired(OpError, AttributeError):
    """An attribute that an operator must have is missing."""


@register_error
class OpAttributeInvalid(OpError, AttributeError):
    """An attribute of an operator has a value that it cannot have."""


@register_error
class OpAttributeUnImplemented(OpError, NotImplementedError):
    """An attribute of an operator is not supported."""


@register_error
class OperatorError(ValueError, InternalError):
    """Arguments of an operator's call that do not fit each other. TVM finds most of these by its own checks, which raise
    :class:`InternalError`."""


@register_error
class PassError(ValueError, InternalError):
    """A program that a pass cannot work on, or options of it that do not fit the program. TVM finds most of these by its own checks,
    which raise :class:`InternalError`."""


@register_error
class LayoutError(ValueError, InternalError):
    """A layout that is none, or an operation on layouts that do not fit each other. TVM finds these by its own checks, which raise
    :class:`InternalError`."""


@register_error
class ExecutableError(ValueError, InternalError):
    """A program of the virtual machine that it would refuse to run."""


@register_error
class ArityError(ValueError, InternalError):
    """A call of a program's function with another number of arguments than it takes."""


@register_error
class OperatorTypeError(TypeError, ValueError):
    """An argument of an operator's call that is of another kind or element type than the operator takes."""


@register_error
class OperatorAttributeError(OperatorTypeError, InternalError):
    """An attribute of an operator's call that is missing, unknown, or no value that it can have."""


# Kinds of Python's own that the core does not know otherwise.
register_error("PermissionError", PermissionError)

__all__ = [
    "ArityError",
    "CancelledError",
    "DiagnosticError",
    "ExecutableError",
    "InternalError",
    "LayoutError",
    "OpAttributeInvalid",
    "OpAttributeRequired",
    "OpAttributeUnImplemented",
    "OpError",
    "OpNotImplemented",
    "OperatorAttributeError",
    "OperatorError",
    "OperatorTypeError",
    "PassError",
    "RPCError",
    "RPCSessionTimeoutError",
    "ScriptError",
]


def __getattr__(name):
    from ._old_names import find

    return find(__name__, name)
