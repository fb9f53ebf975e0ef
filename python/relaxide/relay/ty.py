"""Types of Relay: what an expression evaluates to."""

from ..ffi import dtype as _dtype
from ..ffi import register_object, structural_equal, structural_hash
from ..ir.base import Node
from . import _api


class Any:
    """A dimension that is known when the program runs, written ``?``."""

    _only = None

    def __new__(cls):
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __repr__(self):
        return "?"


def dims_of(shape):
    """Dimensions as nodes hold them: :class:`Any` is -1."""
    if isinstance(shape, (int, Any)):
        shape = (shape,)
    return [-1 if isinstance(dim, Any) or dim is None else int(dim) for dim in shape]


class Type(Node):
    """The base of types. Two types are equal if they have the same structure."""

    def __eq__(self, other):
        return isinstance(other, Type) and bool(structural_equal(self, other))

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return structural_hash(self, True)

    def __repr__(self):
        return _api.ir.Text(self, False)

    __str__ = __repr__


@register_object("relay.TensorType")
class TensorType(Type):
    """The type of a tensor; a scalar is one without dimensions."""

    def __init__(self, shape, dtype="float32"):
        self.__init_handle_by_constructor__(_api.ir.TensorType, dims_of(shape), _dtype(dtype))

    @property
    def shape(self):
        """The dimensions: numbers, and :class:`Any` where unknown."""
        return tuple(Any() if dim == -1 else dim for dim in self._field("shape"))

    @property
    def concrete_shape(self):
        """The dimensions as numbers."""
        if any(dim == -1 for dim in self._field("shape")):
            raise TypeError(f"the shape of {self} is not known before the program runs")
        return self.shape

    __hash__ = Type.__hash__


@register_object("relay.TupleType")
class TupleType(Type):
    """The type of a tuple."""

    def __init__(self, fields):
        self.__init_handle_by_constructor__(_api.ir.TupleType, list(fields))

    __hash__ = Type.__hash__


@register_object("relay.FuncType")
class FuncType(Type):
    """The type of a function."""

    def __init__(self, arg_types, ret_type, type_params=None, type_constraints=None):
        if type_constraints:
            raise ValueError("type constraints are found by inference; they cannot be given")
        self.__init_handle_by_constructor__(_api.ir.FuncType, list(arg_types), ret_type, list(type_params or []))

    @property
    def arg_types(self):
        """Types of the parameters."""
        return self.args

    @property
    def ret_type(self):
        """Type of the result."""
        return self.ret

    __hash__ = Type.__hash__


@register_object("relay.TypeVar")
class TypeVar(Type):
    """A type parameter. Two are the same if they are one object."""

    def __init__(self, name_hint, kind=None):
        self.__init_handle_by_constructor__(_api.ir.TypeVar, name_hint)

    @property
    def name_hint(self):
        """The name that it prints by."""
        return self.name

    def __eq__(self, other):
        return self.same_as(other)

    def __hash__(self):
        return Node.__hash__(self)


class GlobalTypeVar:
    """The name of a data type; called with types, the type of its values."""

    def __init__(self, name_hint, kind=None):
        self.name_hint = name_hint

    def __call__(self, *args):
        return TypeCall(self, args)

    def __eq__(self, other):
        return isinstance(other, GlobalTypeVar) and self.name_hint == other.name_hint

    def __hash__(self):
        return hash(self.name_hint)

    def __repr__(self):
        return self.name_hint


@register_object("relay.TypeCall")
class TypeCall(Type):
    """A data type with its arguments."""

    def __init__(self, func, args):
        self.__init_handle_by_constructor__(_api.ir.TypeCall, getattr(func, "name_hint", func), list(args))

    @property
    def func(self):
        """The data type."""
        return GlobalTypeVar(self.name)

    __hash__ = Type.__hash__


@register_object("relay.RefType")
class RefType(Type):
    """The type of a reference."""

    def __init__(self, value):
        self.__init_handle_by_constructor__(_api.ir.RefType, value)

    __hash__ = Type.__hash__


@register_object("relay.IncompleteType")
class IncompleteType(Type):
    """A type that inference is to find."""

    def __init__(self, kind=None):
        self.__init_handle_by_constructor__(_api.ir.IncompleteType)

    __hash__ = Type.__hash__


def scalar_type(dtype):
    """The type of a tensor without dimensions."""
    return TensorType((), dtype)


RelayRefType = RefType

__all__ = ["Any", "FuncType", "GlobalTypeVar", "IncompleteType", "RefType", "RelayRefType", "TensorType", "TupleType"]
__all__ += ["Type", "TypeCall", "TypeVar", "scalar_type"]
