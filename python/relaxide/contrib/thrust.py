"""Whether sorts and scans of a GPU are to be those of the Thrust library, which this package does not contain."""

import logging

from ..runtime import get_global_func


def _libraries(target):
    """The libraries that a target names, whose option is text."""
    libraries = target.attrs.get("libs", [])
    return libraries.split(",") if isinstance(libraries, str) else list(libraries)


def maybe_warn(target, func_name):
    """Warn where a target asks for the library and the function is not there."""
    if "thrust" in _libraries(target) and get_global_func(func_name, allow_missing=True) is None:
        logging.warning("the target asks for thrust, but there is no function %s", func_name)


def can_use_thrust(target, func_name):
    """Whether a target asks for the library and the function is there; the function if it is."""
    maybe_warn(target, func_name)
    asks = target.kind.name in ("cuda", "nvptx") and "thrust" in _libraries(target)
    return asks and get_global_func(func_name, allow_missing=True)


__all__ = ["can_use_thrust", "maybe_warn"]
