"""Functions for operators, made of the operator table: a function is made when it is first asked for."""

import inspect

from ..._on_demand import OnDemand
from .. import _api
from ..expr import Call, Op, RelayExpr, Tuple, TupleWrapper
from ._signatures import RESULTS, SIGNATURES


def names():
    """The names of all operators."""
    return [str(name) for name in _api.ir.OpNames()]


def call(name, args, attrs=None):
    """A call of an operator, or its results where it has several."""
    args = [Tuple(list(arg)) if isinstance(arg, (list, tuple)) else arg for arg in args]
    made = Call(Op(name), args, attrs)
    return TupleWrapper(made, RESULTS[name]) if name in RESULTS else made


def _own_signature(args, attrs):
    parameters = list(args)
    required = [attr for attr, _, default in attrs if "value" not in default]
    for attr in required:
        parameters.append(attr)
    for attr, _, default in attrs:
        if attr not in required:
            value = default["value"]
            parameters.append(f"{attr}={_plain(value)!r}")
    return ", ".join(parameters)


def _plain(value):
    if isinstance(value, (str, int, float, bool)) or value is None:
        return str(value) if isinstance(value, str) else value
    return tuple(_plain(item) for item in value)


def make(name):
    """The function of an operator; ``None`` where there is no such operator."""
    definition = _api.ir.OpDefinition(name)
    if definition is None:
        return None
    level, args, attrs, how = definition
    args = [str(arg) for arg in args]
    attrs = [(str(attr), str(kind), default) for attr, kind, default in attrs]
    # An attribute that is called as an argument is that argument, once more.
    attrs = [attr for attr in attrs if attr[0] not in args]
    signature = SIGNATURES.get(name) or _own_signature(args, attrs)
    named = _parameters(signature)
    operands = [arg for arg in args if arg in named] if not name.startswith("qnn.") else _qnn_order(args, named)
    if name == "unravel_index":
        operands = named
    given = ", ".join(f"{attr!r}: {attr}" for attr, *_ in attrs if attr in named)
    short = name.rpartition(".")[2]
    source = f"def {short}({signature}):\n    return _call({name!r}, [{', '.join(operands)}], {{{given}}})\n"
    scope = {"_call": call}
    exec(compile(source, f"<relay.op.{name}>", "exec"), scope)
    function = scope[short]
    function.__doc__ = f"``{name}``, an operator of level {level}." + (
        "" if how == "kernels" else " It cannot be compiled yet." if how == "missing" else " The machine executes it."
    )
    return function


def _qnn_order(args, named):
    """Products take zero points in front of scales, whatever their documentation names first."""
    return [parameter for parameter in named if parameter in args]


def _parameters(signature):
    """The names of a signature's parameters."""
    scope = {}
    exec(f"def f({signature}): pass", scope)
    return list(inspect.signature(scope["f"]).parameters)


class Namespace(OnDemand):
    """Operators under a prefix."""

    def __init__(self, prefix, package):
        super().__init__(package, prefix, make)
        self._names = [name[len(prefix) + 1 :] for name in names() if name.startswith(prefix + ".")]

    def __dir__(self):
        return sorted({*self._names, *(name for name in vars(self) if not name.startswith("_"))})


def is_expr(value):
    """Whether a value is known only when the program runs."""
    return isinstance(value, RelayExpr)
