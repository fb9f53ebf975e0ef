"""The passes of Relax as functions of their parameters: ``transform.FuseOps()(mod)``; ``transform.names()`` lists them.

The functions come from the compiler's table of passes: ``help(transform.ToMixedPrecision)`` shows what it says.
"""

from .. import _core
from ..ffi import dtype as _dtype
from ..ir.transform import DataflowBlockPass, FunctionPass, Pass, Sequential
from ..ir.transform import _dataflowblock_pass as dataflowblock_pass
from ..ir.transform import _function_pass as function_pass


def names():
    """The names of all passes."""
    return _core.pass_names()


def signature(name):
    """``(parameters, documentation)`` of a pass; parameters are ``(text, type)``."""
    doc, params = _core.pass_definition(name)
    parameters, lines = [], []
    for param, kind, default, param_doc in params:
        parameters.append((param if default is None else f"{param}={default}", kind))
        lines += [f"{param} : {kind}" + ("" if default is None else f", default {default}"), f"    {param_doc}"]
    optional = next((at for at, (text, _) in enumerate(parameters) if "=" in text), len(parameters))
    if any("=" not in text for text, _ in parameters[optional:]):
        parameters.insert(optional, ("*", ""))
    text = doc + ("\n\nParameters\n----------\n" + "\n".join(lines) if lines else "")
    return parameters, text + "\n\nReturns\n-------\nPass"


def _make(name):
    parameters, doc = signature(name)
    given = ", ".join(f"{param!r}: _value({param})" for param, *_ in _core.pass_definition(name)[1])
    source = (
        f"def {name}({', '.join(text for text, _ in parameters)}):\n"
        f"    return _pass(_make({name!r}, _given({{{given}}})), {doc!r})\n"
    )
    scope = {"_pass": Pass, "_make": _core.make_pass, "_value": _value, "_given": _given}
    exec(compile(source, f"<relax.transform.{name}>", "exec"), scope)
    function = scope[name]
    function.__doc__, function.__module__ = doc, __name__
    return function


def _given(parameters):
    return {name: value for name, value in parameters.items() if value is not None}


def _value(value):
    """A parameter as the compiler takes it: arrays become tensors, names of variables keys."""
    if isinstance(value, dict):
        return {getattr(key, "name_hint", key): _value(item) for key, item in value.items()}
    if isinstance(value, type) and value.__module__ == "numpy":
        return _dtype(value.__name__)
    return value


def VMBuiltinLower():
    """The old name of ``LowerRuntimeBuiltin``."""
    return _make("LowerRuntimeBuiltin")()


def __getattr__(name):
    if name in _core.pass_names():
        function = globals()[name] = _make(name)
        return function
    raise AttributeError(f"there is no pass {name!r}; transform.names() lists the passes")


def __dir__():
    return sorted([*_core.pass_names(), *globals()])


__all__ = ["DataflowBlockPass", "FunctionPass", "Pass", "Sequential", "dataflowblock_pass", "function_pass", "names"]
