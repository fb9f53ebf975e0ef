"""Relay's operators as functions: each builds a call, with attributes checked and defaults filled in.

They come from the compiler's operator table, with TVM's signatures: ``help(relay.nn.conv2d)`` shows one.
"""

import sys as _sys

from ..expr import Op as _Op
from . import _generate
from ._special import SPECIAL as _SPECIAL

_prefixes = sorted({name.rpartition(".")[0] for name in [*_generate.names(), *_SPECIAL] if "." in name})
for _prefix in _prefixes:
    _space = _generate.Namespace(_prefix, __name__)
    _sys.modules[f"{__name__}.{_prefix}"] = _space
    if "." not in _prefix:
        globals()[_prefix] = _space
for _prefix in _prefixes:
    _outer, _, _inner = _prefix.rpartition(".")
    if _outer and f"{__name__}.{_outer}" in _sys.modules:
        setattr(_sys.modules[f"{__name__}.{_outer}"], _inner, _sys.modules[f"{__name__}.{_prefix}"])
for _name, _function in _SPECIAL.items():
    _outer, _, _inner = _name.rpartition(".")
    setattr(_sys.modules[f"{__name__}.{_outer}"] if _outer else _sys.modules[__name__], _inner, _function)


def get(name):
    """The operator of a name, as a function of Relay."""
    return _Op(name)


def __getattr__(name):
    function = None if name.startswith("__") else _generate.make(name)
    if function is None:
        raise AttributeError(f"there is no operator {name!r} in relay.op")
    globals()[name] = function
    return function


def __dir__():
    return sorted({*(name for name in _generate.names() if "." not in name), *_SPECIAL, *_prefixes})
