"""Functions for operators, made of the registry: signature, defaults and documentation are what the definition says.

A function is made when it is first asked for. Namespaces (``nn``, ``image`` …) are modules of their own.
"""

import sys
from types import FunctionType

from ... import _core
from ..._on_demand import OnDemand
from ...ffi import dtype as _dtype


def signature(name):
    """``(parameters, documentation)`` of an operator; parameters are ``(text, type)``."""
    doc, arguments, attributes, pure, *_ = _core.op_definition(name)
    parameters, lines = [], []
    variadic = False
    for arg, kind, arity, arg_doc in arguments:
        text = {"required": arg, "optional": f"{arg}=None", "variadic": f"*{arg}"}.get(arity, f"{arg}={arity}")
        variadic |= arity == "variadic"
        optional_first = parameters and "=" in parameters[-1][0] and arity == "required"
        parameters.append((f"{text}=None" if optional_first else text, kind))
        lines += [f"{arg} : {kind}{', optional' if arity == 'optional' else ''}", f"    {arg_doc}"]
    required = [attr for attr in attributes if attr[2] is None]
    # Behind an optional argument nothing can be required by position.
    by_name = bool(required) and any("=" in text for text, _ in parameters) and not variadic
    if by_name:
        parameters.append(("*", ""))
    for attr, kind, default, attr_doc in attributes:
        parameters.append((attr if default is None else f"{attr}={default}", kind))
        lines += [f"{attr} : {kind}" + ("" if default is None else f", default {default}"), f"    {attr_doc}"]
    if not by_name and not variadic:
        parameters = _required_first(parameters)
    text = doc
    if lines:
        text += "\n\nParameters\n----------\n" + "\n".join(lines)
    text += "\n\nReturns\n-------\nExpr\n    The call." + ("" if pure else " It has effects beyond its result.")
    return parameters, text


def _required_first(parameters):
    """A default in front of a parameter without one is not Python: such parameters become named ones."""
    seen = False
    for at, (text, _) in enumerate(parameters):
        if "=" in text:
            seen = True
        elif seen:
            first = next(i for i, (t, _) in enumerate(parameters) if "=" in t)
            return [*parameters[:first], ("*", ""), *parameters[first:]]
    return parameters


def make(name):
    """The function of an operator; ``None`` where there is no such operator."""
    definition = _core.op_definition(name)
    if definition is None:
        return None
    _, arguments, attributes, *_ = definition
    parameters, doc = signature(name)
    short = name.rpartition(".")[2]
    given = "".join(f"*{arg}, " if arity == "variadic" else f"{arg}, " for arg, _, arity, _ in arguments)
    attrs = ", ".join(f"{attr!r}: _attr({attr})" for attr, *_ in attributes)
    source = (
        f"def {_safe(short)}({', '.join(text for text, _ in parameters)}):\n"
        f"    return _call({name!r}, ({given}), {{{attrs}}}, None)\n"
    )
    scope = {"_call": _core.op_call, "_attr": _attr}
    exec(compile(source, f"<relax.op.{name}>", "exec"), scope)
    function = scope[_safe(short)]
    function.__doc__ = doc
    function.__module__ = "relaxide.relax.op" + (f".{name.rpartition('.')[0]}" if "." in name else "")
    return function


def _safe(name):
    return {"print": "print_"}.get(name, name)


def _attr(value):
    """What an attribute is given as: element types may be named, sizes may be literals of the program, a function is a map of indices."""
    if isinstance(value, FunctionType):
        from ...tirx import IndexMap

        return IndexMap.from_func(value)
    if isinstance(value, (tuple, list)):
        return [_attr(item) for item in value]
    if type(value).__name__ == "type":
        return _dtype(value)
    return value


class Namespace(OnDemand):
    """A module of operators under a prefix."""

    def __init__(self, prefix):
        super().__init__("relaxide.relax.op", prefix, make)
        self.__path__ = []
        self.__all__ = [name[len(prefix) + 1 :] for name in _core.op_names() if name.rpartition(".")[0] == prefix]

    def __dir__(self):
        return sorted(self.__all__)


def namespaces():
    """The namespaces that operators are in, by prefix."""
    found = {}
    for name in _core.op_names():
        prefix = name.rpartition(".")[0]
        if prefix and prefix not in found:
            found[prefix] = sys.modules[f"relaxide.relax.op.{prefix}"] = Namespace(prefix)
    return found
