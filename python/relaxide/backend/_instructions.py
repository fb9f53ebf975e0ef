"""Functions that make calls of single instructions of devices, one for each that TVMScript has a name for.

The calls are for passes of a program's own, which read and print them; no code is made of them.
"""

import inspect

from .. import _core
from ..ir.prim import StringImm
from ..ir.prim import const as _const
from ..tirx.op import call_intrin

_LITERALS = {"True": True, "False": False}


def _name(path):
    """The name of the Python function of what is called ``T.path``; nothing if there is none."""
    space, _, rest = path.partition(".")
    last = path.rsplit(".", 1)[-1]
    if space == "metal" or last.startswith("mma_"):
        return last
    if last.startswith("timer_"):
        return f"{last}_cuda"
    return None if space == "s_tir" or last.startswith("__") else path.replace(".", "_")


def _usual(text):
    """What an argument is that is left out, from its text."""
    if text in _LITERALS:
        return _LITERALS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def _parameters(result, params):
    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = [inspect.Parameter("dtype", keyword)] if result == "dtype" else []
    for param in filter(None, params.split(" ")):
        name, usual, value = param.partition("=")
        if name.startswith("*"):
            found.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
        else:
            found.append(inspect.Parameter(name, keyword, default=_usual(value) if usual else inspect.Parameter.empty))
    return found


def _argument(value):
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, (bool, int, float)):
        return _const(value)
    return value


def _function(path, op, result, params):
    signature = inspect.Signature(_parameters(result, params))

    def call(*args, **kwargs):
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        dtype = given.pop("dtype") if result == "dtype" else result
        several = [given.pop(p.name) for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
        if dtype.startswith("="):
            dtype = str(_argument(given[dtype[1:]]).dtype)
        return call_intrin(dtype or "void", op, *map(_argument, [*given.values(), *(several[0] if several else ())]))

    call.__signature__ = signature
    call.__doc__ = f"A call that TVMScript writes as ``T.{path}``."
    return call


def functions(*spaces):
    """The functions of some namespaces of ``T``, by name."""
    made = {}
    for path, op, result, params in _core.device_intrinsics():
        name = _name(path) if path.partition(".")[0] in spaces else None
        if name is not None:
            function = made[name] = _function(path, op, result, params)
            function.__name__ = function.__qualname__ = name
    return made
