"""Expressions of Relay.

A node that stands in two places is computed once. Operators of Python make calls of Relay's operators; a number in front of
or behind them is written as a constant: ``x + relay.const(1.0)``.
"""

from collections.abc import Mapping

from ..ffi import Object, register_object
from ..ir.base import Node
from ..ir.expr import GlobalVar
from ..relax.expr import const as _constant
from . import _api
from .ty import Type, dims_of, TensorType


class RelayExpr(Node):
    """The base of expressions."""

    @property
    def checked_type(self):
        """The type: inferred when it is asked for, with the prelude at hand. In a module, see ``IRModule.type_of``."""
        return _api.ir.TypeOf(self, None)

    def astype(self, dtype):
        """The tensor in another element type."""
        return _op("cast")(self, dtype)

    def astext(self, show_meta_data=True, annotate=None):
        """The text that :func:`relaxide.relay.parse_expr` reads."""
        return _api.ir.Text(self, False)

    def __repr__(self):
        return _api.ir.Text(self, False)

    __str__ = __repr__

    def __neg__(self):
        return _op("negative")(self)

    def __call__(self, *args):
        return Call(self, args)


def _op(name):
    from . import op

    return getattr(op, name)


def _operand(value):
    if isinstance(value, TupleWrapper):
        return value.astuple()
    if isinstance(value, RelayExpr):
        return value
    if isinstance(value, (int, float, bool)):
        raise TypeError(f'convert "{value!s}" with `const` first')
    raise TypeError(f"a Relay expression is expected, not {type(value).__name__}")


def _binary(name, swapped=False):
    def operate(a, b):
        a, b = _operand(a), _operand(b)
        return _op(name)(b, a) if swapped else _op(name)(a, b)

    return operate


for _name, _python in {
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "truediv",
    "floor_divide": "floordiv",
    "mod": "mod",
    "power": "pow",
}.items():
    setattr(RelayExpr, f"__{_python}__", _binary(_name))
    setattr(RelayExpr, f"__r{_python}__", _binary(_name, swapped=True))
for _name, _python in {"less": "lt", "less_equal": "le", "greater": "gt", "greater_equal": "ge"}.items():
    setattr(RelayExpr, f"__{_python}__", _binary(_name))

ExprWithOp = RelayExpr


def _typed(annotation):
    """A type that an element type may stand for."""
    return TensorType((), annotation) if isinstance(annotation, str) else annotation


@register_object("relay.Constant")
class Constant(RelayExpr):
    """A tensor that is known."""

    def __init__(self, data):
        self.__init_handle_by_constructor__(_api.ir.Constant, data)


@register_object("relay.Var")
class Var(RelayExpr):
    """A variable. Two are the same if they are one object."""

    def __init__(self, name_hint, type_annotation=None):
        self.__init_handle_by_constructor__(_api.ir.Var, name_hint, _typed(type_annotation))

    @property
    def name_hint(self):
        """The name that it prints by."""
        return self.name

    @property
    def type_annotation(self):
        """The type that was written."""
        return self.annotation


@register_object("relay.Tuple")
class Tuple(RelayExpr):
    """A tuple."""

    def __init__(self, fields):
        self.__init_handle_by_constructor__(_api.ir.Tuple, [_operand(field) for field in fields])

    def __getitem__(self, index):
        return self.fields[index]

    def __len__(self):
        return len(self.fields)


@register_object("relay.TupleGetItem")
class TupleGetItem(RelayExpr):
    """A field of a tuple."""

    def __init__(self, tuple_value, index):
        self.__init_handle_by_constructor__(_api.ir.TupleGetItem, _operand(tuple_value), int(index))

    @property
    def tuple_value(self):
        """The tuple."""
        return self.tuple


@register_object("relay.Call")
class Call(RelayExpr):
    """A call. Attributes of an operator are checked, and its defaults filled in."""

    def __init__(self, op, args, attrs=None, type_args=None):
        args = [_operand(arg) for arg in args]
        self.__init_handle_by_constructor__(_api.ir.Call, op, args, dict(attrs) if attrs else None, type_args)


    def __getattribute__(self, name):
        # Fields come before what a class has of the name.
        value = super().__getattribute__(name)
        return CallAttrs(value) if name == "attrs" else value


class CallAttrs(Mapping):
    """The attributes of a call: ``call.attrs["strides"]`` or ``call.attrs.strides``."""

    __slots__ = ("_map",)

    def __init__(self, entries):
        self._map = entries

    def __getitem__(self, name):
        return self._map[name]

    def __len__(self):
        return len(self._map)

    def __iter__(self):
        return iter(self._map)

    def __getattr__(self, name):
        if name in self._map:
            return self._map[name]
        raise AttributeError(f"there is no attribute {name!r}; there are {', '.join(self._map) or 'none'}")

    def __dir__(self):
        return [*super().__dir__(), *self._map]

    def __repr__(self):
        return repr(self._map)

    __str__ = __repr__


@register_object("relay.Function")
class Function(RelayExpr):
    """A function."""

    def __init__(self, params, body, ret_type=None, type_params=None, attrs=None):
        made = (list(params), _operand(body), ret_type, list(type_params or []), dict(attrs) if attrs else None)
        self.__init_handle_by_constructor__(_api.ir.Function, *made)

    def with_attr(self, attr_key_or_dict, attr_value=None):
        """The function with more attributes."""
        given = attr_key_or_dict if isinstance(attr_key_or_dict, dict) else {attr_key_or_dict: attr_value}
        return _api.ir.WithAttr(self, given)

    def astext(self, show_meta_data=True, annotate=None):
        """The text."""
        return _api.ir.Text(self, False)


@register_object("relay.Let")
class Let(RelayExpr):
    """A value with a name, and what is computed with it."""

    def __init__(self, variable, value, body):
        self.__init_handle_by_constructor__(_api.ir.Let, variable, _operand(value), _operand(body))


@register_object("relay.If")
class If(RelayExpr):
    """A choice by a condition."""

    def __init__(self, cond, true_branch, false_branch):
        made = (_operand(cond), _operand(true_branch), _operand(false_branch))
        self.__init_handle_by_constructor__(_api.ir.If, *made)

    @property
    def true_branch(self):
        """Where the condition holds."""
        return self.then

    @property
    def false_branch(self):
        """Where it does not."""
        return self.other


@register_object("relay.RefCreate")
class RefCreate(RelayExpr):
    """A new reference."""

    def __init__(self, value):
        self.__init_handle_by_constructor__(_api.ir.RefCreate, _operand(value))


@register_object("relay.RefRead")
class RefRead(RelayExpr):
    """What a reference holds."""

    def __init__(self, ref):
        self.__init_handle_by_constructor__(_api.ir.RefRead, _operand(ref))


@register_object("relay.RefWrite")
class RefWrite(RelayExpr):
    """Has a reference hold something else; its value is the empty tuple."""

    def __init__(self, ref, value):
        self.__init_handle_by_constructor__(_api.ir.RefWrite, _operand(ref), _operand(value))


@register_object("relay.Op")
class Op(RelayExpr):
    """An operator as a function."""

    def __init__(self, name):
        self.__init_handle_by_constructor__(_api.ir.Op, name)

    @staticmethod
    def get(name):
        """The operator of a name."""
        return Op(name)


class TupleWrapper:
    """The results of an operator that gives several: an indexable call."""

    def __init__(self, tuple_value, size):
        self.tuple_value, self.size = tuple_value, size

    def astuple(self):
        """The call itself."""
        return self.tuple_value

    def astext(self):
        """The text of the call."""
        return self.tuple_value.astext()

    def __getitem__(self, index):
        if not -self.size <= index < self.size:
            raise IndexError("Tuple index out of range")
        return TupleGetItem(self.tuple_value, index % self.size)

    def __len__(self):
        return self.size

    def __iter__(self):
        return (self[index] for index in range(self.size))


def var(name_hint, type_annotation=None, shape=None, dtype="float32"):
    """A variable, with a type or with shape and element type."""
    if type_annotation is not None and shape is not None:
        raise ValueError("Can only specify either type_annotation or shape.")
    if shape is not None:
        type_annotation = TensorType(dims_of(shape), dtype)
    return Var(name_hint, type_annotation)


def const(value, dtype=None):
    """A constant: of a number, nested lists, an array or a tensor. Numbers of Python are int32 and float32."""
    return Constant(_constant(value, dtype).data)


def bind(expr, binds):
    """A function or expression with values in the place of variables, given by variable or name; constants may be arrays."""
    values = {}
    for key, value in binds.items():
        data = value.data if isinstance(value, Constant) else value
        if isinstance(value, RelayExpr) and not isinstance(value, Constant):
            raise TypeError("variables are bound to constants; write a Let for other expressions")
        values[getattr(key, "name_hint", key)] = data if isinstance(data, Object) else const(data).data
    return _api.ir.BindParams(expr, values)


def make_tuple(fields):
    """A tuple of expressions, nested tuples included."""
    return Tuple([make_tuple(field) if isinstance(field, (tuple, list)) else field for field in fields])


Expr = RelayExpr

__all__ = ["Call", "Constant", "Expr", "ExprWithOp", "Function", "GlobalVar", "If", "Let", "Op", "RefCreate", "RefRead"]
__all__ += ["RefWrite", "RelayExpr", "Tuple", "TupleGetItem", "TupleWrapper", "Type", "Var", "bind", "const", "var"]
