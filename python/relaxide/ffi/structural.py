"""Values by their structure: comparison, hashes, visits and rewriting.

A value is its type and its fields, down to the leaves. With ``map_free_vars`` two values are also equal if they differ in
the identity of variables that they do not define.
"""

from enum import IntEnum

from .. import _core
from .._core import Object
from . import _ffi_api
from .registry import register_object

_64_BITS = (1 << 64) - 1


class WalkOrder(IntEnum):
    """Whether a walk comes to a value before or after its parts."""

    PREORDER = 0
    POSTORDER = 1


class WalkResult(IntEnum):
    """What a callback says of the parts of a value: go on to them, or leave them out."""

    ADVANCE = 0
    SKIP = 1


class InplaceMode(IntEnum):
    """Whether a callback may change the value that it is given."""

    DISALLOW = 0
    ALLOW = 1


class DefRegionKind(IntEnum):
    """Where variables are defined: nowhere, in a pattern, or one by one."""

    NONE = 0
    DEF_PATTERN = 1
    DEF_SIMPLE = 2


def structural_equal(lhs, rhs, map_free_vars=False, skip_tensor_content=False):
    """Whether two values have the same structure."""
    return _ffi_api.StructuralEqual(lhs, rhs, map_free_vars, skip_tensor_content)


def structural_hash(value, map_free_vars=False, skip_tensor_content=False):
    """A number that is the same for values of the same structure."""
    return _ffi_api.StructuralHash(value, map_free_vars, skip_tensor_content) & _64_BITS


def get_first_structural_mismatch(lhs, rhs, map_free_vars=False, skip_tensor_content=False):
    """The paths to the first difference, in either value; ``None`` where there is none."""
    return _ffi_api.GetFirstStructuralMismatch(lhs, rhs, map_free_vars, skip_tensor_content)


@register_object("ffi.StructuralKey")
class StructuralKey(Object):
    """A value as a key: the same for values of the same structure."""

    def __init__(self, key):
        self.__init_handle_by_constructor__(_ffi_api.StructuralKey, key)

    def __hash__(self):
        return self.hash_i64 & _64_BITS

    def __eq__(self, other):
        return isinstance(other, StructuralKey) and _ffi_api.StructuralKeyEqual(self, other)


@register_object("ffi.VisitInterrupt")
class VisitInterrupt(Object):
    """Ends a visit when a callback returns it; carries a value out."""

    def __init__(self, value=None):
        self.__init_handle_by_constructor__(_ffi_api.VisitInterrupt, value)


class _Regions:
    """What visitors and mutators share; the type's name is in the functions' names."""

    def def_region_kind(self):
        """Whether variables are being defined here."""
        return DefRegionKind(_of(self, "DefRegionKind")(self))

    def with_def_region_kind(self, kind, callback):
        """Call a function as if variables were, or were not, being defined."""
        return _of(self, "WithDefRegionKind")(self, kind, callback)


def _of(driver, name):
    kind = "StructuralVisitor" if isinstance(driver, StructuralVisitor) else "StructuralMutator"
    return getattr(_ffi_api, kind + name)


@register_object("ffi.StructuralVisitor")
class StructuralVisitor(_Regions, Object):
    """Goes on with a visit, on behalf of a callback."""

    def visit(self, value):
        """Visit a value with all callbacks."""
        return _ffi_api.StructuralVisitorVisit(self, value)

    def default_visit(self, value):
        """Visit the parts of a value."""
        return _ffi_api.StructuralVisitorDefaultVisit(self, value)


@register_object("ffi.StructuralMutator")
class StructuralMutator(_Regions, Object):
    """Goes on with a rewriting, on behalf of a callback."""

    def mutate(self, value):
        """The value that all callbacks make of a value."""
        return _ffi_api.StructuralMutatorMutate(self, value)

    def default_mutate(self, value):
        """The value with its parts rewritten."""
        return _ffi_api.StructuralMutatorDefaultMutate(self, value)

    def var_remap_get(self, var):
        """What a variable was replaced by, if it was."""
        return _ffi_api.StructuralMutatorVarRemapGet(self, var)

    def var_remap_set(self, var, mapped_value):
        """Replace a variable wherever it is used."""
        _ffi_api.StructuralMutatorVarRemapSet(self, var, mapped_value)


def structural_walk(root, callbacks=(), with_def_region_kind=(), order="post"):
    """Call ``callback(value)`` with every part of a value; a callback is given alone or as ``(type, callback)``."""
    return _ffi_api.StructuralWalk(root, *_walk_callbacks(callbacks, with_def_region_kind, order, "structural_walk"))


def structural_map(root, callbacks=(), with_def_region_kind=(), order="post"):
    """The value with every part replaced by what ``callback(part)`` returns for it."""
    return _ffi_api.StructuralMap(root, *_walk_callbacks(callbacks, with_def_region_kind, order, "structural_map"))


def structural_visit(root, callbacks=()):
    """Visit a value with callbacks ``callback(value, visitor)`` that decide themselves how to go on."""
    return _ffi_api.StructuralVisit(root, _entries(callbacks, "structural_visit"))


def structural_mutate(root, callbacks=()):
    """Rewrite a value with callbacks ``callback(value, mutator)`` that decide themselves how to go on."""
    entries = _entries(callbacks, "structural_mutate")
    return _ffi_api.StructuralMutate(root, [(kind, call, _takes_inplace_mode(call)) for kind, call in entries])


def _walk_callbacks(callbacks, with_kind, order, name):
    orders = {"pre": WalkOrder.PREORDER, "post": WalkOrder.POSTORDER}
    order = orders.get(order, order)
    if not isinstance(order, WalkOrder):
        raise ValueError(f"Unknown structural {name.split('_')[1]} order: {order!r}")

    def named(call):
        return lambda value, kind: call(value, DefRegionKind(kind))

    plain, regional = _entries(callbacks, name), _entries(with_kind, name)
    return plain, [(kind, named(call)) for kind, call in regional], int(order)


def _entries(callbacks, name):
    """Pairs of a type's index and a callback."""
    if callable(callbacks):
        callbacks = [(object, callbacks)]
    elif isinstance(callbacks, tuple) and len(callbacks) == 2 and callable(callbacks[1]):
        callbacks = [callbacks]
    entries = []
    for entry in callbacks:
        if not isinstance(entry, tuple) or len(entry) != 2 or not callable(entry[1]):
            raise TypeError(f"{name} callbacks within a sequence must be (type, callback) tuples")
        kinds = entry[0] if isinstance(entry[0], tuple) else (entry[0],)
        entries += [(_index_of(kind, name), entry[1]) for kind in kinds]
    return entries


def _index_of(kind, name):
    """The index of a type; -1 stands for all."""
    from typing import Any, Callable

    if kind in (object, Any):
        return -1
    keys = {type(None): "None", int: "int", bool: "bool", float: "float", str: "ffi.String", bytes: "ffi.Bytes"}
    keys |= {list: "ffi.List", dict: "ffi.Dict", Callable: "ffi.Function", _core.Device: "Device"}
    for key in ("Function", "Module", "Tensor", "Object"):
        keys[getattr(_core, key)] = f"ffi.{key}"
    key = keys.get(kind) or getattr(kind, "__tvm_ffi_type_key__", None)
    if key is None:
        raise TypeError(
            f"{name} callback type must be a supported builtin, typing.Any/object, or an FFI-registered object class"
        )
    return _core.type_index(key)


def _takes_inplace_mode(call):
    import inspect

    try:
        signature = inspect.signature(call)
    except (TypeError, ValueError):
        return False
    for count in (3, 2):
        try:
            signature.bind(*(None,) * count)
        except TypeError:
            continue
        return count == 3
    raise TypeError("structural_mutate callback must accept (value, mutator) or (value, mutator, inplace_mode)")


__all__ = [
    "DefRegionKind",
    "InplaceMode",
    "StructuralKey",
    "StructuralMutator",
    "StructuralVisitor",
    "VisitInterrupt",
    "WalkOrder",
    "WalkResult",
    "get_first_structural_mismatch",
    "structural_equal",
    "structural_hash",
    "structural_map",
    "structural_mutate",
    "structural_visit",
    "structural_walk",
]
