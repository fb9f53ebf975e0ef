"""Relax programs whose answers are compared: what each is, and what it is called with.

A program is TVMScript text that TVM and Relaxide read alike. ``programs()`` gives them all: written families, each a pattern
with variations, and programs that a generator with fixed seeds makes.
"""

import os

import control_programs  # noqa: F401 (adds its families)
import generated
import value_programs  # noqa: F401 (behind the others: the order is that of the programs)
from program_text import FAMILIES, Program, module


def programs():
    """All programs. Names are unique."""
    found = [Program(f"{make.__name__}_{name}", text, calls) for make in FAMILIES for name, text, calls in make()]
    found += [Program(name, module(*functions), calls) for name, functions, calls in generated.programs()]
    assert len({p.name for p in found}) == len(found)
    return found


def usual():
    """All that are written, and of the generated ones every second; `programs` under RELAXIDE_DEEP."""
    found = programs()
    if os.environ.get("RELAXIDE_DEEP"):
        return found
    made = [program for program in found if program.name.startswith("generated_")]
    left_out = {program.name for program in made[1::2]}
    return [program for program in found if program.name not in left_out]
