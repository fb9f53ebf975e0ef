"""Containers that every language shares: what one side puts in, the other finds.

:class:`Array` and :class:`Map` never change; :class:`List` and :class:`Dict` do, for all who hold them.
"""

from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

from .. import _core

_MISSING = object()


def _same(a, b):
    """Equality by content, where a list of Python's equals a container with the same items."""
    if isinstance(a, _Items) and isinstance(b, Sequence) and not isinstance(b, (str, bytes)):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return len(a) == len(b) and all(_same(value, b.get(key, _MISSING)) for key, value in a.items())
    if isinstance(b, (_Items, Mapping)) and not isinstance(a, (_Items, Mapping)):
        return isinstance(a, Sequence) and _same(b, a)
    return a == b


class _Items:
    """What the two sequences share."""

    __slots__ = ()

    def __getitem__(self, idx):
        if isinstance(idx, slice):
            return list(self._items()[idx])
        return self._get(idx)

    def __iter__(self):
        return iter(self._items())

    def __bool__(self):
        return len(self) > 0

    def __contains__(self, value):
        return any(_same(item, value) for item in self._items())

    def __eq__(self, other):
        if self is other:
            return True
        if isinstance(other, Sequence) and not isinstance(other, (str, bytes)):
            return _same(self, other)
        return NotImplemented

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash(self._items())

    def __add__(self, other):
        return type(self)([*self, *other])

    def __radd__(self, other):
        return type(self)([*other, *self])


class Array(_Items, _core.Array, Sequence):
    """A sequence that never changes. :func:`relaxide.ffi.convert` makes lists and tuples this."""


class List(_Items, _core.List, MutableSequence):
    """A sequence that can change."""

    def __setitem__(self, idx, value):
        if not isinstance(idx, slice):
            self._set(idx, value)
            return
        items = list(self._items())
        items[idx] = value
        self._replace(items)

    def __delitem__(self, idx):
        if not isinstance(idx, slice):
            self._remove(idx)
            return
        items = list(self._items())
        del items[idx]
        self._replace(items)

    def _replace(self, items):
        self.clear()
        self.extend(items)

    insert, append, clear = _core.List.insert, _core.List.append, _core.List.clear

    def pop(self, index=-1):
        """Remove and return the item at a position."""
        return self._remove(index)


class _Entries:
    """What the two mappings share."""

    __slots__ = ()

    def __iter__(self):
        return iter(self._keys())

    def __bool__(self):
        return len(self) > 0

    def __eq__(self, other):
        return _same(self, other) if isinstance(other, Mapping) else NotImplemented

    def __ne__(self, other):
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __hash__(self):
        return hash(frozenset(self.items()))

    def get(self, key, default=None):
        """The value of a key, or ``default``."""
        return self[key] if key in self else default


class Map(_Entries, _core.Map, Mapping):
    """A mapping that never changes. :func:`relaxide.ffi.convert` makes dictionaries this."""

    __len__, __getitem__, __contains__ = _core.Map.__len__, _core.Map.__getitem__, _core.Map.__contains__


class Dict(_Entries, _core.Dict, MutableMapping):
    """A mapping that can change."""

    __len__, __getitem__, __contains__ = _core.Dict.__len__, _core.Dict.__getitem__, _core.Dict.__contains__
    __setitem__, __delitem__ = _core.Dict.__setitem__, _core.Dict.__delitem__


for _class in (Array, List, Map, Dict):
    _class.__tvm_ffi_type_key__ = f"ffi.{_class.__name__}"
    _core.set_object_class(_class.__tvm_ffi_type_key__, _class)

__all__ = ["Array", "Dict", "List", "Map"]
