"""Patterns of subgraphs that backends take, by name."""

from ..transform import FusionPattern

#: In the order of registration: what comes later is tried first.
_PATTERNS = {}


def register_patterns(patterns):
    """Make patterns known.

    Parameters
    ----------
    patterns : list
        Each a :class:`~relaxide.relax.transform.FusionPattern`, or a tuple of what makes one: the name, the pattern, the patterns of
        parts by name, and a function that says whether a match may be taken. Names begin with their backend's.
    """
    made = []
    for pattern in patterns:
        if isinstance(pattern, tuple):
            pattern = FusionPattern(*pattern)
        if not isinstance(pattern, FusionPattern):
            raise TypeError(f"a pattern is a FusionPattern or a tuple of what makes one, not {type(pattern).__name__}")
        made.append(pattern)
    for pattern in made:
        _PATTERNS.pop(pattern.name, None)
        _PATTERNS[pattern.name] = pattern


def get_patterns_with_prefix(prefix):
    """The patterns whose names begin so, those that were registered last first."""
    return [pattern for name, pattern in reversed(_PATTERNS.items()) if name.startswith(prefix)]


def get_pattern(name):
    """The pattern of a name, ``None`` where there is none."""
    return _PATTERNS.get(name)


__all__ = ["get_pattern", "get_patterns_with_prefix", "register_patterns"]
