"""Operators as callees."""

from .. import _core
from ..ffi import register_object
from . import _api
from .expr import Expr


@register_object("ir.Op")
class Op(Expr):
    """An operator. Two of one name are the same."""

    def __init__(self):
        raise RuntimeError("operators are found by name: Op.get(\"relax.add\")")

    @staticmethod
    def get(op_name):
        """The operator of a name."""
        return _api.ir.Op(op_name)

    @staticmethod
    def list_op_names():
        """The names of all operators."""
        return [f"relax.{name}" for name in _core.op_names()]

    @property
    def name(self):
        """The name."""
        return f"relax.{self._field('name')}"

    def _definition(self):
        return _core.op_definition(self.name)

    @property
    def description(self):
        """What it computes."""
        return self._definition()[0]

    def get_attr(self, attr_name):
        """What is known of the operator: ``FPurity`` says whether a call has no visible effect."""
        return self._definition()[3] if attr_name == "FPurity" else None

    def has_attr(self, attr_name):
        """Whether something is known of the operator under a name."""
        return self.get_attr(attr_name) is not None

    def __call__(self, *args, attrs=None):
        from .expr import Call

        return Call(self, args, attrs)

    def __eq__(self, other):
        return isinstance(other, Op) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f'Op("{self.name}")'
