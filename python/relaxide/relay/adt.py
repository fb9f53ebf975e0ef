"""Data types and matching."""

from ..ffi import register_object
from ..ir.base import Node
from . import _api
from .expr import Call, RelayExpr, _operand
from .ty import GlobalTypeVar


@register_object("relay.Constructor")
class Constructor(RelayExpr):
    """What makes a value of a data type: called with the fields."""

    def __init__(self, name_hint, inputs, belong_to=None):
        raise TypeError(f"the constructor {name_hint} is made by the TypeData that lists it: (name, types of its fields)")

    @property
    def name_hint(self):
        """The name."""
        return self.name

    def __call__(self, *args):
        return Call(self, args)


@register_object("relay.TypeData")
class TypeData(Node):
    """A data type: name, type parameters, and constructors as ``(name, types of the fields)``."""

    def __init__(self, header, type_vars, constructors):
        name = getattr(header, "name_hint", header)
        listed = [(ctor, list(inputs)) for ctor, inputs in constructors]
        self.__init_handle_by_constructor__(_api.ir.TypeData, name, list(type_vars), listed)

    @property
    def header(self):
        """The name as a type function."""
        return GlobalTypeVar(self.name)


class Pattern(Node):
    """The base of patterns."""


@register_object("relay.PatternWildcard")
class PatternWildcard(Pattern):
    """Anything."""

    def __init__(self):
        self.__init_handle_by_constructor__(_api.ir.PatternWildcard)


@register_object("relay.PatternVar")
class PatternVar(Pattern):
    """Anything, with a name."""

    def __init__(self, var):
        self.__init_handle_by_constructor__(_api.ir.PatternVar, var)


@register_object("relay.PatternConstructor")
class PatternConstructor(Pattern):
    """What a constructor made, with patterns for its fields."""

    def __init__(self, constructor, patterns=None):
        self.__init_handle_by_constructor__(_api.ir.PatternConstructor, constructor, list(patterns or []))


@register_object("relay.PatternTuple")
class PatternTuple(Pattern):
    """A tuple, with patterns for its fields."""

    def __init__(self, patterns=None):
        self.__init_handle_by_constructor__(_api.ir.PatternTuple, list(patterns or []))


@register_object("relay.Clause")
class Clause(Node):
    """A pattern, and what is computed where it fits."""

    def __init__(self, lhs, rhs):
        self.__init_handle_by_constructor__(_api.ir.Clause, lhs, _operand(rhs))


@register_object("relay.Match")
class Match(RelayExpr):
    """A choice by the form of a value. Every form has a clause unless ``complete`` is false."""

    def __init__(self, data, clauses, complete=True):
        self.__init_handle_by_constructor__(_api.ir.Match, _operand(data), list(clauses), bool(complete))


__all__ = ["Clause", "Constructor", "Match", "Pattern", "PatternConstructor", "PatternTuple", "PatternVar"]
__all__ += ["PatternWildcard", "TypeData"]
