"""Decorators that make classes object types."""

import sys
import typing

from ... import _core
from .. import _ffi_api
from ..registry import register_object
from ._field import KW_ONLY, MISSING, Field, converter, field, object_parent, schema, storage

#: Kinds of structural comparison, with the interface's numbers.
_KINDS = {None: 0, "tree": 1, "var": 2, "dag": 3, "const-tree": 4, "singleton": 5}


def py_class(
    cls_or_type_key=None,
    /,
    *,
    type_key=None,
    frozen=False,
    init=True,
    repr=True,
    eq=False,
    order=False,
    unsafe_hash=False,
    match_args=True,
    kw_only=False,
    structural_eq="tree",
    slots=True,
):
    """Make a class a type of object; annotations are its fields.

    Parameters
    ----------
    cls_or_type_key : type or str, optional
        The class, or the type's key; the key is the class's module and name where it is not given.
    frozen : bool
        No field can be set once an object is made.
    init, repr, eq, order, unsafe_hash, match_args : bool
        Which methods the class gets; a method that the class defines stays. Without ``eq`` objects are equal if they are
        the same.
    kw_only : bool
        All fields are arguments by name only.
    structural_eq : str, optional
        How structural comparison treats objects: ``"tree"``, ``"var"``, ``"dag"``, ``"const-tree"``, ``"singleton"``;
        ``None`` refuses it.
    """
    if order and not eq:
        raise ValueError("order=True requires eq=True")
    if structural_eq not in _KINDS:
        raise ValueError(f"structural_eq must be one of {[k for k in _KINDS if k]} or None, got {structural_eq!r}")
    if isinstance(cls_or_type_key, str):
        type_key = cls_or_type_key
    options = {"frozen": frozen, "kw_only": kw_only, "structural_eq": structural_eq}
    methods = {"init": init, "repr": repr, "eq": eq, "order": order, "hash": unsafe_hash, "match": match_args}

    def make(cls):
        key = type_key or f"{cls.__module__}.{cls.__qualname__}"
        declared = _declared_fields(cls, options)
        specs = [_spec(cls, one) for one in declared]
        _core.declare_type(key, object_parent(cls), specs, _KINDS[structural_eq], cls.__doc__ or "")
        _core.set_object_class(key, cls)
        cls.__tvm_ffi_type_key__ = key
        inherited = [one for base in reversed(cls.__mro__[1:]) for one in vars(base).get("_ffi_own_fields", ())]
        cls._ffi_own_fields = tuple(declared)
        cls.__dataclass_fields__ = {one.name: one for one in (*inherited, *declared)}
        _give_methods(cls, methods)
        return cls

    return make(cls_or_type_key) if isinstance(cls_or_type_key, type) else make


def _declared_fields(cls, options):
    """The fields that a class's own annotations declare."""
    names = sys.modules[cls.__module__].__dict__ if cls.__module__ in sys.modules else {}
    local = {cls.__name__: cls}
    annotations = cls.__dict__.get("__annotations__", {})
    try:
        hints = typing.get_type_hints(cls, names, local, include_extras=True)
    except NameError as unknown:
        raise TypeError(f"{cls.__name__}: an annotation cannot be evaluated: {unknown}") from None
    fields, by_name = [], options["kw_only"]
    for name in annotations:
        hint = hints[name]
        if hint is KW_ONLY:
            by_name = True
            continue
        if typing.get_origin(hint) is typing.ClassVar or hint is typing.ClassVar:
            continue
        given = cls.__dict__.get(name, MISSING)
        one = given if isinstance(given, Field) else field(default=given)
        one.name, one.type = name, hint
        one.frozen = one.frozen or options["frozen"]
        one.kw_only = by_name if one.kw_only is None else one.kw_only
        # The value would hide the field.
        if name in cls.__dict__:
            delattr(cls, name)
        fields.append(one)
    return fields


def _spec(cls, one):
    class Spec:
        name, doc, flags = one.name, one.doc or "", one.flags()

    convert = converter(one.type, cls.__name__, one.name)
    spec = Spec()
    spec.schema, spec.storage, spec.converter = schema(one.type), storage(one.type), convert
    spec.default = None
    if one.default_factory is not MISSING:
        spec.default = one.default_factory
    elif one.default is not MISSING:
        spec.default = one.default if one.default is None else convert(one.default)
    return spec


def _give_methods(cls, methods):
    own = cls.__dict__
    if methods["init"] and "__init__" not in own:

        def __init__(self, *args, **kwargs):
            self.__ffi_init__(*args, **kwargs)
            post = getattr(self, "__post_init__", None)
            if post is not None:
                post()

        __init__.__qualname__ = f"{cls.__qualname__}.__init__"
        __init__.__signature__ = _signature(cls)
        cls.__init__ = __init__
    if methods["eq"] and "__eq__" not in own and "__ne__" not in own:
        same = lambda a, b: _ffi_api.RecursiveEq(a, b) if type(b) is type(a) else NotImplemented  # noqa: E731
        cls.__eq__ = lambda self, other: same(self, other)

        def __ne__(self, other):
            equal = same(self, other)
            return equal if equal is NotImplemented else not equal

        cls.__ne__ = __ne__
        if "__hash__" not in own:
            cls.__hash__ = _core.Object.__hash__
    if methods["hash"] and ("__hash__" not in own or methods["eq"]):
        cls.__hash__ = lambda self: _ffi_api.RecursiveHash(self) & ((1 << 64) - 1)
    if methods["order"]:
        for name, function in (("lt", "Lt"), ("le", "Le"), ("gt", "Gt"), ("ge", "Ge")):
            if f"__{name}__" not in own:
                setattr(cls, f"__{name}__", _ordered(f"Recursive{function}"))
    if not methods["repr"] and "__repr__" not in own:
        cls.__repr__ = object.__repr__
    if methods["match"] and "__match_args__" not in own:
        named = cls.__dataclass_fields__.values()
        cls.__match_args__ = tuple(one.name for one in named if one.init and not one.kw_only)


def _ordered(name):
    def compare(self, other):
        return getattr(_ffi_api, name)(self, other) if type(other) is type(self) else NotImplemented

    return compare


def _signature(cls):
    """What the constructor takes: by position those without a default first, then by name."""
    from inspect import Parameter, Signature

    taken = [one for one in cls.__dataclass_fields__.values() if one.init]
    optional = lambda one: one.default is not MISSING or one.default_factory is not MISSING  # noqa: E731
    by_position = sorted((one for one in taken if not one.kw_only), key=optional)
    parameters = [Parameter("self", Parameter.POSITIONAL_OR_KEYWORD)]
    for one in [*by_position, *(one for one in taken if one.kw_only)]:
        kind = Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD
        default = Parameter.empty if not optional(one) else one.default if one.default is not MISSING else ...
        parameters.append(Parameter(one.name, kind, default=default, annotation=one.type))
    return Signature(parameters)


def c_class(
    type_key, *, init=True, repr=True, eq=False, order=False, unsafe_hash=False, match_args=True, structural_eq=None
):
    """Make a class the face of a type that another language declares; its fields become attributes."""
    if order and not eq:
        raise ValueError("order=True requires eq=True")

    def make(cls):
        cls = register_object(type_key, init=init)(cls)
        fields = {}
        for name, writable in _core.type_fields(type_key):
            fields[name] = one = field(frozen=not writable)
            one.name, one.type = name, cls.__dict__.get("__annotations__", {}).get(name, typing.Any)
        cls.__dataclass_fields__ = fields
        wanted = {"init": False, "repr": repr, "eq": eq, "order": order, "hash": unsafe_hash, "match": match_args}
        _give_methods(cls, wanted)
        return cls

    return make
