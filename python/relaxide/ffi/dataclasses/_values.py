"""Objects of such classes as dictionaries and tuples, and changed copies."""

import copy

from ..container import Array, Dict, List, Map


def is_dataclass(obj):
    """Whether a class, or the class of an object, has declared fields."""
    cls = obj if isinstance(obj, type) else type(obj)
    return hasattr(cls, "__tvm_ffi_type_key__") and hasattr(cls, "__dataclass_fields__")


def fields(obj_or_cls):
    """The fields of a class, in order."""
    if not is_dataclass(obj_or_cls):
        raise TypeError("must be called with a dataclass type or instance")
    return tuple(obj_or_cls.__dataclass_fields__.values())


def asdict(obj, *, dict_factory=dict):
    """The fields by name, down to the leaves."""
    _instance(obj, "asdict")
    inner = lambda value: asdict(value, dict_factory=dict_factory)  # noqa: E731
    return dict_factory([(one.name, _walk(getattr(obj, one.name), inner)) for one in fields(obj)])


def astuple(obj, *, tuple_factory=tuple):
    """The fields in order, down to the leaves."""
    _instance(obj, "astuple")
    inner = lambda value: astuple(value, tuple_factory=tuple_factory)  # noqa: E731
    return tuple_factory([_walk(getattr(obj, one.name), inner) for one in fields(obj)])


def replace(obj, /, **changes):
    """A copy with other values for some fields."""
    _instance(obj, "replace")
    given = {}
    for one in fields(obj):
        if not one.init:
            if one.name in changes:
                raise ValueError(f"field {one.name} is declared with init=False, it cannot be specified with replace()")
            continue
        given[one.name] = changes.pop(one.name) if one.name in changes else getattr(obj, one.name)
    if changes:
        raise TypeError(f"{type(obj).__name__} has no field {next(iter(changes))!r}")
    return type(obj)(**given)


def _instance(obj, name):
    if isinstance(obj, type) or not is_dataclass(obj):
        raise TypeError(f"{name}() should be called on dataclass instances")


def _walk(value, inner):
    if is_dataclass(value) and not isinstance(value, type):
        return inner(value)
    if isinstance(value, (Array, List)):
        return [_walk(item, inner) for item in value]
    if isinstance(value, (Map, Dict)):
        return {key: _walk(item, inner) for key, item in value.items()}
    return copy.copy(value) if isinstance(value, (list, dict)) else value
