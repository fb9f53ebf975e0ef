"""Operators as callees."""

from typing import NamedTuple

from .. import _core
from ..ffi import register_object
from . import _api
from .expr import Expr


#: What was noted of operators: value and level, by the names of both.
_ATTRS = {}


#: What was said of operators beside their attributes, by the names of both.
_SAID = {}


#: The names of operators that programs added, as they said them.
_ADDED = set()


#: What the compiler asks of operators that programs added, and how it is told.
_ASKED = {
    "FInferType": lambda name, value: _core.note_type_rule_of(name, value),
    "FPurity": lambda name, value: _core.note_purity_of(name, bool(value)),
}


class ArgumentInfo(NamedTuple):
    """What is known of an argument of an operator, as text."""

    name: str
    type_info: str
    description: str


def _type_of(call, ctx):
    """The type of a call, as the compiler's rule of its operator says."""
    from .expr import Call

    return Call(call.op, call.args, call.attrs, call.ty_args).ty


def _gradients(orig_var, orig_call, output_grad, ctx):
    """The gradients of a call's arguments, as the compiler's rule of the operator makes them."""
    return ctx._gradients(orig_var, orig_call, output_grad)


@register_object("ir.Op")
class Op(Expr):
    """An operator. Two of one name are the same."""

    def __init__(self):
        raise RuntimeError("operators are found by name: Op.get(\"relax.add\")")

    @staticmethod
    def get(op_name):
        """The operator of a name; of a name that begins with ``tirx.`` the function of scalar calls."""
        from .prim import Intrinsic

        return Intrinsic(op_name) if op_name.startswith("tirx.") else _api.ir.Op(op_name)

    @staticmethod
    def list_op_names():
        """The names of all operators."""
        return [f"relax.{name}" for name in _core.op_names()]

    @property
    def name(self):
        """The name."""
        name = self._field("name")
        return name if name in _ADDED else f"relax.{name}"

    def _definition(self):
        return _core.op_definition(self.name)

    @property
    def description(self):
        """What it computes."""
        return self._definition()[0]

    @property
    def arguments(self):
        """Its arguments, those of the compiler's table and those that were added (:class:`ArgumentInfo`)."""
        own = [ArgumentInfo(name, kind, doc) for name, kind, _, doc in self._definition()[1]]
        return own + _SAID.get((self.name, "arguments"), [])

    @property
    def num_inputs(self):
        """How many arguments it takes; -1 where their number is not fixed."""
        kinds = [arity for _, _, arity, _ in self._definition()[1]]
        return _SAID.get((self.name, "num_inputs"), len(kinds) if set(kinds) <= {"required"} else -1)

    @property
    def support_level(self):
        """How well it is supported, where that was said; 10."""
        return _SAID.get((self.name, "support_level"), 10)

    @property
    def attrs_type_key(self):
        """The type of its attributes, where that was said."""
        return _SAID.get((self.name, "attrs_type_key"), "")

    def add_argument(self, name, type, description):
        """Describe a further argument, by its name, its type and what it is, as text."""
        _SAID.setdefault((self.name, "arguments"), []).append(ArgumentInfo(name, type, description))

    def set_num_inputs(self, n):
        """Say how many arguments it takes."""
        _SAID[self.name, "num_inputs"] = int(n)

    def set_support_level(self, level):
        """Say how well it is supported: the less the better."""
        _SAID[self.name, "support_level"] = int(level)

    def set_attrs_type_key(self, key):
        """Say the type of its attributes, by its key."""
        _SAID[self.name, "attrs_type_key"] = str(key)

    def get_attr(self, attr_name):
        """What is known of the operator: ``FPurity`` says whether a call has no visible effect, ``TCallEffectKind`` says the same as a
        number of :class:`~relaxide.tirx.CallEffectKind`; else what :meth:`set_attr` gave.

        ``FPrimalGradient`` is a function of the variable of a call's result, the call, the variable of the result's gradient and a
        block builder. It gives the gradients of the arguments; ``None`` where the operator has no derivative.
        """
        said = _ATTRS.get((self.name, attr_name))
        if said is not None:
            return said[0]
        if attr_name == "FPrimalGradient" and self._definition()[4]:
            return _gradients
        if attr_name == "FInferType" and self.name not in _ADDED:
            return _type_of
        if attr_name == "TCallEffectKind":
            from ..tirx.expr import CallEffectKind

            return CallEffectKind.Pure.asobject() if self._definition()[3] else CallEffectKind.Opaque.asobject()
        return self._definition()[3] if attr_name == "FPurity" else None

    def set_attr(self, attr_name, value, plevel=10):
        """Note something of the operator under a name. A note of a higher level takes the place of one of a lower; one of the same level is
        a ValueError. Of what is noted, ``LegalizeOps`` asks ``FLegalize`` and ``Gradient`` asks ``FPrimalGradient``; of operators that the
        program added (:func:`register_op_attr`) calls ask ``FInferType``, a function of a call and a block builder, and ``FPurity``. Mutators
        and well-formedness ask ``FNormalize``, a function of a block builder and a call that gives the call in its normal form."""
        known = _ATTRS.get((self.name, attr_name))
        if known is not None and known[1] == plevel:
            raise ValueError(f"attribute {attr_name} of {self.name} is already noted with the level {plevel}")
        if known is None or known[1] < plevel:
            _ATTRS[self.name, attr_name] = (value, plevel)
            if attr_name == "FLegalize":
                _core.note_lowering_of(self.name, value)
            elif attr_name in _ASKED:
                _ASKED[attr_name](self.name, value)

    def reset_attr(self, attr_name):
        """Forget what was noted under a name."""
        noted = _ATTRS.pop((self.name, attr_name), None)
        if noted is not None and attr_name == "FLegalize":
            _core.note_lowering_of(self.name, None)
        elif noted is not None and attr_name in _ASKED:
            _ASKED[attr_name](self.name, None)

    @property
    def has_own_gradient(self):
        """Whether the compiler has a derivative of it."""
        return bool(self._definition()[4])

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


def noted_of_operators(attr_key):
    """What was noted under a name, by the operators' names."""
    return {name: value for (name, key), (value, _) in _ATTRS.items() if key == attr_key}


def register_op_attr(op_name, attr_key, value=None, level=10):
    """Note something of an operator (:meth:`Op.set_attr`); without a value, a decorator of the function that is noted.

    An operator of a name that is not known is added. It takes any arguments; ``FInferType`` says the type of its calls, and ``FLegalize``
    what becomes of them.
    """
    if not op_name.startswith("tirx.") and not _core.op_definition(op_name):
        _core.register_op(op_name)
        if not op_name.startswith("relax."):
            _ADDED.add(op_name)

    def register(noted):
        Op.get(op_name).set_attr(attr_key, noted, level)
        return noted

    return register if value is None else register(value)
