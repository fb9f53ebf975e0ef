"""The stub file of the operators, ``python -m relaxide.relax.op._stub``: what the functions that are made when they are asked
for look like to tools that do not run them."""

from pathlib import Path

from ... import _core
from ._generate import signature

_HEAD = '''# Made by `python -m relaxide.relax.op._stub` of the compiler's registry of operators.
from collections.abc import Sequence
from typing import Any

from ...ir.expr import Call, Expr, ExprWithOp as PrimExpr
from ...ir.type import Type
'''

#: Calls with a form of their own, which are written in Python.
_OWN = '''from ._calls import assert_op as assert_op
from ._calls import call_builtin_with_ctx as call_builtin_with_ctx
from ._calls import call_dps_packed as call_dps_packed
from ._calls import call_inplace_packed as call_inplace_packed
from ._calls import call_packed as call_packed
from ._calls import call_pure_packed as call_pure_packed
from ._calls import call_tir as call_tir
from ._calls import call_tir_inplace as call_tir_inplace
from ._calls import hint_on_device as hint_on_device
from ._calls import invoke_closure as invoke_closure
from ._calls import invoke_pure_closure as invoke_pure_closure
from ._calls import linear as linear
from ._calls import make_closure as make_closure
from ._calls import masked_fill as masked_fill
from ._calls import to_vdevice as to_vdevice
from ._gradients import register_gradient as register_gradient
'''


def _function(name, indent):
    parameters, doc = signature(name)
    parts = []
    for text, kind in parameters:
        head, _, default = text.partition("=")
        # What is given as a list may be a tuple, as many defaults are.
        kind = "Any" if kind == "object" else kind.replace("list[", "Sequence[")
        optional = " | None" if default == "None" else ""
        parts.append(head if not kind else f"{head}: {kind}{optional}" + (f" = {default}" if default else ""))
    short = name.rpartition(".")[2]
    short = {"print": "print_"}.get(short, short)
    pad = " " * indent
    lines = [f"{pad}def {short}({', '.join(parts)}) -> Call:", f'{pad}    """{doc.splitlines()[0]}"""']
    return "\n".join(lines)


def text():
    """The stub."""
    own = {line.split()[-1] for line in _OWN.splitlines()}
    names = sorted(_core.op_names())
    flat = [_function(name, 0) for name in names if "." not in name and name not in own]
    spaces = sorted({name.rpartition(".")[0] for name in names if "." in name})
    nested = []
    for space in spaces:
        members = [_function(name, 4).replace("def ", "def ", 1) for name in names if name.rpartition(".")[0] == space]
        body = "\n".join(f"    @staticmethod\n{member}" for member in members)
        nested.append(f"class {space.replace('.', '_')}:\n{body}")
    return "\n".join([_HEAD + _OWN, *flat, *nested]) + "\n"


def path():
    """Where the stub lies."""
    return Path(__file__).with_name("__init__.pyi")


if __name__ == "__main__":
    path().write_text(text())
