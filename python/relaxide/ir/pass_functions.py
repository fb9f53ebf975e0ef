"""Functions of the rows of the compiler's tables of passes: a pass's parameters are the function's, with its documentation."""

from .. import _core
from ..ffi import dtype as _dtype
from .transform import Pass


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


def function(name, module):
    """A function of a pass's parameters, for the module of that name in Python."""
    short = name.rsplit(".", 1)[-1]
    parameters, doc = signature(name)
    rows = _core.pass_definition(name)[1]
    given = ", ".join(f"{param!r}: _value({param})" for param, *_ in rows)
    says_none = {param for param, kind, *_ in rows if kind.endswith("| None")}
    source = (
        f"def {short}({', '.join(text for text, _ in parameters)}):\n"
        f"    return _pass(_make({name!r}, _given({{{given}}}, {says_none!r})), {doc!r})\n"
    )
    scope = {"_pass": Pass, "_make": _core.make_pass, "_value": _value, "_given": _given}
    exec(compile(source, f"<{module}.{short}>", "exec"), scope)
    made = scope[short]
    made.__doc__, made.__module__ = doc, module
    return made


def _given(parameters, says_none):
    return {name: value for name, value in parameters.items() if value is not None or name in says_none}


def _value(value):
    """A parameter as the compiler takes it: arrays become tensors, names of variables keys."""
    if isinstance(value, dict):
        return {getattr(key, "name_hint", key): _value(item) for key, item in value.items()}
    if isinstance(value, type) and value.__module__ == "numpy":
        return _dtype(value.__name__)
    return value


class KernelPasses:
    """The passes over kernels whose names begin alike, for the ``__getattr__`` and ``__dir__`` of a module."""

    def __init__(self, space):
        #: What the names begin with, such as ``tirx.transform``.
        self.space = space

    def names(self):
        """The names without what they begin with."""
        return [name.rsplit(".", 1)[1] for name in _core.kernel_pass_names() if name.startswith(self.space + ".")]

    def function(self, name):
        """The function of a pass, or an error that says what there is instead."""
        if name in self.names():
            return function(f"{self.space}.{name}", f"relaxide.{self.space}")
        why = _core.absent_pass(name)
        if why is not None:
            raise AttributeError(f"{self.space}.{name} of TVM is not here: {why}")
        elsewhere = [full for full in _core.kernel_pass_names() if full.endswith(f".{name}")]
        key = name.lower()
        near = elsewhere or [n for n in self.names() if key in n.lower() or n.lower() in key]
        hint = f"did you mean {', '.join(near)}?" if near else "names() lists the passes"
        raise AttributeError(f"there is no pass {self.space}.{name}; {hint}")
