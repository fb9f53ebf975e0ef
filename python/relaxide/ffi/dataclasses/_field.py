"""Fields of classes: what is known of each, and how values are brought to its type."""

import collections.abc
import types
import typing

from ... import _core


class _Missing:
    def __repr__(self):
        return "MISSING"

    def __bool__(self):
        return False


#: Stands for a default that is not there.
MISSING = _Missing()


class KW_ONLY:
    """As an annotation: the fields behind it are arguments by name only."""


# Bits of a field's flags in the interface.
_WRITABLE, _HAS_DEFAULT, _IGNORED, _DEFINES, _FACTORY = 1, 1 << 1, 1 << 3, 1 << 4, 1 << 5
_REPR_OFF, _COMPARE_OFF, _HASH_OFF, _INIT_OFF, _KW_ONLY = 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10
_DEFINES_SIMPLE = 1 << 12
_STRUCTURAL = {None: 0, "ignore": _IGNORED, "def": _DEFINES, "def-recursive": _DEFINES, "def-simple": _DEFINES_SIMPLE}


class Field:
    """One field of a class."""

    __slots__ = (
        "name type default default_factory frozen init repr hash compare kw_only metadata structural_eq doc".split()
    )

    def __init__(self, **known):
        for name in Field.__slots__:
            setattr(self, name, known.get(name))

    def __repr__(self):
        return f"Field(name={self.name!r}, type={self.type!r}, default={self.default!r})"

    def flags(self):
        """The field's flags in the interface."""
        hashed = self.compare if self.hash is None else self.hash
        bits = {
            _WRITABLE: not self.frozen,
            _HAS_DEFAULT: self.default is not MISSING or self.default_factory is not MISSING,
            _FACTORY: self.default_factory is not MISSING,
            _REPR_OFF: not self.repr,
            _COMPARE_OFF: not self.compare,
            _HASH_OFF: not hashed,
            _INIT_OFF: not self.init,
            _KW_ONLY: bool(self.kw_only),
        }
        return sum(bit for bit, is_set in bits.items() if is_set) | _STRUCTURAL[self.structural_eq]


def field(
    *,
    default=MISSING,
    default_factory=MISSING,
    frozen=False,
    init=True,
    repr=True,
    hash=None,
    compare=True,
    kw_only=None,
    metadata=None,
    structural_eq=None,
    doc=None,
):
    """What is special about a field.

    Parameters
    ----------
    default, default_factory : object, callable
        Its value, or what makes its value, where none is given.
    frozen : bool
        It cannot be set once the object is made.
    init, kw_only : bool
        Whether it is an argument of the constructor, and by name only.
    repr, compare, hash : bool
        Whether it takes part in printing, comparison and hashes.
    structural_eq : str, optional
        ``"ignore"`` leaves it out of structural comparison; ``"def"`` says that it defines the variables in it.
    """
    if default is not MISSING and default_factory is not MISSING:
        raise ValueError("cannot specify both default and default_factory")
    if default_factory is not MISSING and not callable(default_factory):
        raise TypeError(f"default_factory must be a callable, got {type(default_factory).__name__}")
    if structural_eq not in _STRUCTURAL:
        raise ValueError(f"structural_eq is {structural_eq!r}; expected one of {list(_STRUCTURAL)}")
    return Field(**{name: value for name, value in locals().items() if name in Field.__slots__})


def storage(annotation):
    """How values of a type lie in an object."""
    return {int: "int", float: "float", bool: "bool"}.get(annotation, "any")


def converter(annotation, owner, name):
    """A function that brings a value to an annotated type, or refuses it."""
    convert = _converter(annotation)

    def checked(value):
        try:
            return convert(value)
        except TypeError as wrong:
            raise TypeError(f"{owner}.{name}: {wrong}") from None

    return checked


def _refuse(expected, value):
    raise TypeError(f"expected {expected}, got {type(value).__name__}")


def _int(value):
    if isinstance(value, bool) or hasattr(value, "__index__"):
        return int(value)
    return _refuse("int", value)


def _float(value):
    if isinstance(value, (int, float)) or hasattr(value, "__float__"):
        return float(value)
    return _refuse("float", value)


def _bool(value):
    return bool(value) if isinstance(value, (bool, int)) else _refuse("bool", value)


def _instance(kind, label):
    return lambda value: value if isinstance(value, kind) else _refuse(label, value)


def _converter(annotation):
    from ..container import Array, Dict, List, Map

    plain = {
        int: _int,
        float: _float,
        bool: _bool,
        str: _instance(str, "str"),
        bytes: _instance((bytes, bytearray), "bytes"),
        type(None): lambda value: value if value is None else _refuse("None", value),
    }
    if annotation in (typing.Any, object) or isinstance(annotation, typing.TypeVar):
        return lambda value: value
    if annotation in plain:
        return plain[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        return _any_of([_converter(arg) for arg in args], annotation)
    if origin is typing.Annotated:
        return _converter(args[0])
    kind = origin or annotation
    if kind in (list, collections.abc.MutableSequence, List):
        return _sequence(List, args)
    if kind in (tuple, collections.abc.Sequence, Array):
        return _sequence(Array, args[:1])
    if kind in (dict, collections.abc.MutableMapping, Dict):
        return _mapping(Dict, args)
    if kind in (collections.abc.Mapping, Map):
        return _mapping(Map, args)
    if kind is collections.abc.Callable or kind is typing.Callable:
        return lambda value: value if callable(value) else _refuse("a callable", value)
    if isinstance(kind, type):
        if issubclass(kind, str):
            return lambda value: kind(value)
        return _instance(kind, kind.__name__)
    raise TypeError(f"fields of type {annotation!r} are not supported")


def _any_of(converters, annotation):
    def convert(value):
        for one in converters:
            try:
                return one(value)
            except TypeError:
                continue
        return _refuse(str(annotation), value)

    return convert


def _sequence(kind, args):
    item = _converter(args[0]) if args else lambda value: value

    def convert(value):
        if isinstance(value, (str, bytes)) or not isinstance(value, collections.abc.Iterable):
            _refuse("a sequence", value)
        # A list that both sides change stays that list.
        if isinstance(value, kind):
            for one in value:
                item(one)
            return value
        return kind([item(one) for one in value])

    return convert


def _mapping(kind, args):
    key, item = ([_converter(arg) for arg in args] or [lambda value: value] * 2)[:2]

    def convert(value):
        if not isinstance(value, collections.abc.Mapping):
            _refuse("a mapping", value)
        if isinstance(value, kind):
            return value
        return kind({key(one): item(other) for one, other in value.items()})

    return convert


def schema(annotation):
    """The type as the interface's tools read it."""
    import json

    names = {int: "int", float: "float", bool: "bool", str: "ffi.String", bytes: "ffi.Bytes", type(None): "None"}

    def of(annotation):
        if annotation in names:
            return {"type": names[annotation]}
        args = [of(arg) for arg in typing.get_args(annotation)]
        origin = typing.get_origin(annotation) or annotation
        kinds = {list: "ffi.List", tuple: "ffi.Array", dict: "ffi.Dict", typing.Union: "Union", types.UnionType: "Union"}
        name = kinds.get(origin) or getattr(origin, "__tvm_ffi_type_key__", "Any")
        return {"type": name, **({"args": args} if args else {})}

    return json.dumps({"type_schema": json.dumps(of(annotation))})


def object_parent(cls):
    """The key of the nearest base of a class that is an object type."""
    for base in cls.__mro__[1:]:
        key = vars(base).get("__tvm_ffi_type_key__")
        if key is not None:
            return key
        if base is _core.Object:
            return "ffi.Object"
    raise TypeError(f"{cls.__name__} does not derive from Object")
