"""What can be asked of programs."""

from . import _api
from .module import module_of


def well_formed(expr):
    """Whether every variable is bound once, and stands only where it is bound."""
    return not _api.ir.WellFormed(module_of(expr)._node)


def check_well_formed(expr):
    """Raise a ValueError that says what is not well formed."""
    found = [str(text) for text in _api.ir.WellFormed(module_of(expr)._node)]
    if found:
        raise ValueError("\n".join(found))


def free_vars(expr):
    """The variables that an expression mentions and does not bind."""
    return list(_api.ir.FreeVars(expr))


__all__ = ["check_well_formed", "free_vars", "well_formed"]
