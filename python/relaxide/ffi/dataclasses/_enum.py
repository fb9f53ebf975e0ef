"""Enumerations that every language knows: singletons that a number and a text name.

::

    class Shape(Enum, type_key="example.Shape"):
        sides: int
        TRIANGLE = entry(sides=3)
        SQUARE = entry(sides=4)

    class Level(IntEnum, type_key="example.Level"):
        LOW = 1
        HIGH = 10

    Level(10) == Level.HIGH == 10

The members of a class are kept by the runtime, so that a class of a type that another language declares has its members.
"""

import typing

from ... import _core
from ..._core import Object
from ..container import Dict
from ._class import c_class, py_class
from ._field import MISSING


@c_class("ffi.EnumState")
class EnumState(Object):
    """The members of a class: ``entries`` in order, ``indexes`` by number and by text, and ``attrs`` of theirs by name."""


class _Entry:
    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    def __repr__(self):
        values = [*map(repr, self.args), *(f"{name}={value!r}" for name, value in self.kwargs.items())]
        return f"entry({', '.join(values)})"


def entry(*args, **kwargs):
    """A member with values for its fields."""
    return _Entry(*args, **kwargs)


def auto():
    """A member without fields; its number is its place."""
    return _Entry()


def _state(cls, create=False):
    key = cls.__dict__.get("__tvm_ffi_type_key__")
    if key is None:
        return None
    state = _core.enum_state(key)
    if state is None and create:
        _core.set_enum_state(key, EnumState())
        state = _core.enum_state(key)
    return state


def _members(cls):
    state = _state(cls)
    return [] if state is None else list(state.entries)


class _EnumMeta(type(Object)):
    def __iter__(cls):
        return iter(_members(cls))

    def __len__(cls):
        return len(_members(cls))

    def __bool__(cls):
        return True

    def __call__(cls, *args, **kwargs):
        if len(args) == 1 and not kwargs:
            (value,) = args
            if isinstance(value, cls):
                return value
            if isinstance(value, (int, str)):
                try:
                    return cls.get(value)
                except KeyError:
                    raise ValueError(f"{value!r} is not a valid {cls.__name__}") from None
        return super().__call__(*args, **kwargs)

    @property
    def attr_dict(cls):
        """What :meth:`Enum.def_attr` keeps: values by member, by name."""
        state = _state(cls)
        return Dict({}) if state is None else state.attrs


@c_class("ffi.Enum", init=False)
class Enum(Object, metaclass=_EnumMeta):
    """The base of enumerations, which say their ``type_key``; ``Class(index)`` is the member of a number or of a text.

    Members are ``NAME = auto()`` or ``NAME = entry(field=value)``; ``NAME: ClassVar`` is a member that a class of another
    language has. A declaration that is no member's is a TypeError, an index that two members have a ValueError.
    """

    def __init_subclass__(cls, *, type_key=None, frozen=True, init=True, repr=True, **kwargs):
        if issubclass(cls, _PAYLOADS) and ("value" in cls.__dict__ or "value" in cls.__dict__.get("__annotations__", {})):
            if type_key is not None:
                base = next(base for base in _PAYLOADS if issubclass(cls, base))
                raise TypeError(f"{base.__name__} reserves `value` as its canonical index alias")
        super().__init_subclass__(**kwargs)
        if type_key is None:
            return
        payload = next((payload for base, payload in zip(_PAYLOADS, (int, str)) if issubclass(cls, base)), None)
        own_text = "__repr__" in cls.__dict__
        names, entries = _declared(cls, payload)
        foreign = _is_declared(type_key)
        if foreign:
            c_class(type_key, init=init, repr=repr)(cls)
        else:
            py_class(type_key, frozen=frozen, structural_eq="singleton")(cls)
        if payload is not None:
            _behave_as(cls, payload, own_text)
        _Members(cls, foreign, payload).add(names, entries)

    @classmethod
    def get(cls, index):
        """The member of a number or of a text; a KeyError where there is none."""
        if isinstance(index, bool):
            index = int(index)
        if isinstance(index, int) and not -(1 << 63) <= index < 1 << 63:
            raise OverflowError(f"enum integer index {index} is outside int64")
        if not isinstance(index, (int, str)):
            raise TypeError(f"enum index must be int or str, got {type(index).__name__}")
        state = _state(cls)
        if state is None or index not in state.indexes:
            raise KeyError(index)
        return state.indexes[index]

    @classmethod
    def all_entries(cls):
        """The members in order."""
        return iter(_members(cls))

    @classmethod
    def def_attr(cls, name, *, default=MISSING):
        """A value for each member, kept under a name: a mapping."""
        return EnumAttrMap(cls, name, default=default)


_PAYLOADS = ()


@c_class("ffi.IntEnum", init=False)
class IntEnum(Enum):
    """Members whose ``value`` is their number, which they equal."""


@c_class("ffi.StrEnum", init=False)
class StrEnum(Enum):
    """Members whose ``value`` is their text, which they equal."""


_PAYLOADS = (IntEnum, StrEnum)


class EnumAttrMap:
    """A value for each member of an enumeration, which other languages read by the name."""

    def __init__(self, enum_cls, name, *, default=MISSING):
        self._class, self.name, self._default = enum_cls, name, default

    def _values(self, create=False):
        state = _state(self._class, create)
        if state is None:
            return None
        if self.name not in state.attrs and create:
            state.attrs[self.name] = Dict({})
        return state.attrs.get(self.name)

    def _check(self, member):
        if not isinstance(member, self._class):
            raise TypeError(f"expected {self._class.__name__}, got {type(member).__name__}")

    def __setitem__(self, member, value):
        self._check(member)
        self._values(create=True)[member] = value

    def __getitem__(self, member):
        self._check(member)
        if member in self:
            return self._values()[member]
        if self._default is not MISSING:
            return self._default
        raise KeyError(f"{member!r} has no extensible attribute {self.name!r}")

    def __contains__(self, member):
        values = self._values()
        return isinstance(member, self._class) and values is not None and member in values

    def get(self, member, default=None):
        """The value of a member, where it has one."""
        return self[member] if member in self else default


def _is_declared(key):
    try:
        _core.type_index(key)
    except ValueError:
        return False
    return True


def _declared(cls, payload):
    """The members that a class's body declares: names alone, and names with values."""
    annotations = cls.__dict__.get("__annotations__", {})
    names = [name for name, hint in annotations.items() if _is_class_var(hint) and name not in cls.__dict__]
    names = [name for name in names if not name.startswith("_")]
    entries = {}
    for name, value in list(cls.__dict__.items()):
        if name.startswith("_") or name in annotations and not _is_class_var(annotations[name]):
            continue
        is_method = isinstance(value, (staticmethod, classmethod, property)) or callable(value)
        if not isinstance(value, _Entry) and (payload is None or is_method):
            continue
        entries[name] = value if isinstance(value, _Entry) else _Entry(value=value)
        delattr(cls, name)
    return names, entries


def _is_class_var(hint):
    if isinstance(hint, str):
        return hint.replace(" ", "").startswith(("ClassVar", "typing.ClassVar"))
    return hint is typing.ClassVar or typing.get_origin(hint) is typing.ClassVar


class _Members:
    """Gives a class its members."""

    def __init__(self, cls, foreign, payload):
        self.cls, self.foreign, self.payload = cls, foreign, payload
        self.state = _state(cls, create=True)

    def add(self, names, entries):
        indexes = self.state.indexes
        for name in names:
            if name not in indexes:
                if self.foreign:
                    raise RuntimeError(f"{self.cls.__tvm_ffi_type_key__!r} has no enum at string index {name!r}")
                if self.payload is int:
                    raise TypeError(f"{self.cls.__name__}.{name} requires an integer value")
                self._make(len(self.state.entries), name, _Entry())
            setattr(self.cls, name, indexes[name])
        for name, declared in entries.items():
            number, text, fields = self._indices(name, declared)
            index = number if self.payload is int else text
            if index not in indexes:
                if number in indexes or text in indexes:
                    raise ValueError(f"duplicate enum index in {self.cls.__name__}.{name}")
                self._make(number, text, fields)
            setattr(self.cls, name, indexes[index])

    def _indices(self, name, declared):
        where, fields = f"{self.cls.__name__}.{name}", dict(declared.kwargs)
        if "_int_index" in fields or "_str_index" in fields:
            raise TypeError(f"{where}: enum indices are inferred")
        place = len(self.state.entries)
        if self.payload is None:
            return place, name, declared
        if "value" not in fields:
            raise TypeError(f"{where} requires a {self.payload.__name__} value")
        value = fields.pop("value")
        if type(value) is not self.payload:
            raise TypeError(f"{where} value must be {self.payload.__name__}")
        if self.payload is int and not -(1 << 63) <= value < 1 << 63:
            raise OverflowError(f"enum integer index {value} is outside int64")
        number, text = (value, name) if self.payload is int else (place, value)
        return number, text, _Entry(*declared.args, **fields)

    def _make(self, number, text, declared):
        try:
            # By name: the base's fields come first.
            member = self.cls(*declared.args, _int_index=number, _str_index=text, **declared.kwargs)
        except Exception as error:
            raise TypeError(f"{self.cls.__name__}.{text}: invalid enum entry: {error}") from None
        self.state.entries.append(member)
        self.state.indexes[number] = member
        self.state.indexes[text] = member


def _behave_as(cls, payload, own_text):
    """Members of a class equal, hash and print as their values do."""

    def equal(self, other):
        if isinstance(other, type(self)):
            return self.value == other.value
        return self.value == other if isinstance(other, payload) else NotImplemented

    def unequal(self, other):
        same = equal(self, other)
        return same if same is NotImplemented else not same

    methods = {
        "__eq__": equal,
        "__ne__": unequal,
        "__str__": lambda self: str(self.value),
        "__hash__": lambda self: hash(self.value),
        "name": property(lambda self: str(self._str_index), doc="The text."),
    }
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)
    if not own_text:
        cls.__repr__ = lambda self: f"{type(self).__name__}.{self.name}"


__all__ = ["Enum", "EnumAttrMap", "EnumState", "IntEnum", "StrEnum", "auto", "entry"]
