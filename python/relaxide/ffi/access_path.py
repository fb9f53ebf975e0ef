"""Places inside of values: how to come from a root to a part of it."""

from enum import IntEnum

from .._core import Object
from .registry import register_object


class AccessKind(IntEnum):
    """Kinds of steps."""

    ATTR = 0
    ARRAY_ITEM = 1
    MAP_ITEM = 2
    ATTR_MISSING = 3
    ARRAY_ITEM_MISSING = 4
    MAP_ITEM_MISSING = 5


@register_object("ffi.reflection.AccessStep")
class AccessStep(Object):
    """One step: its kind, and the name, position or key."""


@register_object("ffi.reflection.AccessPath")
class AccessPath(Object):
    """Steps from a root. Paths are made longer by methods; the original stays."""

    def __init__(self):
        raise ValueError("AccessPath can't be initialized directly. Use AccessPath.root() to create a path to the root object")

    @staticmethod
    def root():
        """The path that goes nowhere."""
        return AccessPath._root()

    def __eq__(self, other):
        return isinstance(other, AccessPath) and self._path_equal(other)

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return hash(str(self))

    def is_prefix_of(self, other):
        """Whether the other path begins with this one."""
        return self._is_prefix_of(other)

    def attr(self, attr_key):
        """On to a field."""
        return self._attr(attr_key)

    def attr_missing(self, attr_key):
        """On to a field that is not there."""
        return self._attr_missing(attr_key)

    def array_item(self, index):
        """On to an item of a sequence."""
        return self._array_item(index)

    def array_item_missing(self, index):
        """On to an item behind the end of a sequence."""
        return self._array_item_missing(index)

    def map_item(self, key):
        """On to the value of a key."""
        return self._map_item(key)

    def map_item_missing(self, key):
        """On to a key that is not there."""
        return self._map_item_missing(key)

    def to_steps(self):
        """The steps, the first first."""
        return self._to_steps()


__all__ = ["AccessKind", "AccessPath", "AccessStep"]
