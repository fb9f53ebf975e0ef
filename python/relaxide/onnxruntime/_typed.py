"""Attributes that take values of one type, as those of a class in C++ do: what else is given is a ``TypeError`` there and then."""

import enum
import operator


class _Typed:
    """An attribute with a default; what is given is converted by a function, or refused."""

    def __init__(self, default, taken):
        self._default, self._taken = default, taken

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, object, owner=None):
        return self if object is None else object._values.get(self._name, self._default)

    def __set__(self, object, value):
        object._values[self._name] = self._taken(value, self._name)


class Typed:
    """What has such attributes, and no others."""

    __slots__ = ("_values",)

    def __init__(self):
        self._values = {}


def flag(default):
    """A truth: of a bool, of a number, of nothing."""
    return _Typed(default, taken_flag)


def number(default):
    """A whole number."""
    return _Typed(default, taken_number)


def text(default):
    """A text."""
    return _Typed(default, taken_text)


def member(default):
    """A member of the enumeration that the default is of."""

    def taken(value, name):
        if not isinstance(value, type(default)):
            raise _refused(value, name, f"a {type(default).__name__}")
        return value

    return _Typed(default, taken)


def taken_flag(value, name):
    if value is None or hasattr(type(value), "__bool__"):
        return bool(value)
    raise _refused(value, name, "a bool")


def taken_number(value, name):
    try:
        return operator.index(value)
    except TypeError:
        raise _refused(value, name, "a whole number") from None


def taken_text(value, name):
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise _refused(value, name, "a text")
    return value


def _refused(value, name, expected):
    return TypeError(f"{name} is {expected}, not {type(value).__name__}")


class Numbered(enum.IntEnum):
    """An enumeration for which a number that it lacks is of the wrong type."""

    @classmethod
    def _missing_(cls, value):
        known = ", ".join(f"{member.name} = {int(member)}" for member in cls)
        raise TypeError(f"{value!r} is no {cls.__name__}: {known}")


__all__ = ["Numbered", "Typed", "flag", "member", "number", "taken_flag", "taken_number", "taken_text", "text"]
