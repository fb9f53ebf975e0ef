"""How a program of this folder's families is written: its text, its calls and their arguments."""

import dataclasses
import textwrap


@dataclasses.dataclass
class Program:
    """A module's text, and calls: ``(function, arguments)``; see ``values.py`` for what arguments are."""

    name: str
    text: str
    calls: list


FAMILIES = []


def family(function):
    FAMILIES.append(function)
    return function


def module(*functions):
    """The text of a module of those functions."""
    return "@I.ir_module\nclass Module:\n" + "\n".join(
        textwrap.indent(textwrap.dedent(f).strip("\n"), "    ") + "\n" for f in functions
    )


def tensor(values, dtype="float32"):
    return {"tensor": values, "dtype": dtype}


def shape(*dims):
    return {"shape": list(dims)}


def ramp(*dims, dtype="float32", step=0.5, start=-1.0):
    """A tensor of those dimensions that counts."""
    return {"ramp": list(dims), "dtype": dtype, "step": step, "start": start}
