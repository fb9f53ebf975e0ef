"""No tensor value and no length makes a kernel touch memory that is not its own: an error or a right answer, never a fault.

Every template of :mod:`hostile` runs in a child process with inputs at faulting pages. `RELAXIDE_DEEP` runs eighty times as many.
"""

import os
import pathlib
import sys

import numpy as np
import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "operators"))

import guarded  # noqa: E402
import hostile  # noqa: E402

from relaxide import compiler, cpu  # noqa: E402
from relaxide.relax.frontend.onnx import from_onnx  # noqa: E402
from relaxide.relax.vm import VirtualMachine  # noqa: E402
from relaxide.runtime import from_dlpack  # noqa: E402

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
#: Models of each template, and inputs of each model: 20 templates make 12,000 runs.
MODELS, RUNS = (50, 1000) if DEEP else (6, 100)


def _problem(template, draw, rng, runs):
    """What is wrong with a template's runs; `None` where all are right. A fault ends the process."""
    try:
        machine = VirtualMachine(compiler.compile(from_onnx(template.model), target="llvm"), cpu())["main"]
    except Exception as error:
        # Lengths that are known not to fit are refused early.
        return None if draw(rng)[1] is hostile.ERROR else f"cannot be compiled: {error}"
    pages = guarded.Guarded()
    for run in range(runs):
        feeds, wanted = draw(rng)
        args = [from_dlpack(pages.copy(i, feed, run % 2 == 0)) for i, feed in enumerate(feeds)]
        try:
            got = machine(*args)
        except Exception as error:
            if wanted is not hostile.ERROR and wanted is not hostile.ANYTHING:
                return f"{error} for {feeds}"
            continue
        if wanted is hostile.ERROR:
            return f"no error for {feeds}"
        if wanted is not hostile.ANYTHING:
            got = got.numpy()
            if got.shape != wanted.shape or not np.array_equal(got, wanted, equal_nan=got.dtype.kind == "f"):
                return f"{got.tolist()} instead of {wanted.tolist()} for {feeds}"
    return None


@pytest.mark.parametrize("draw_template", hostile.TEMPLATES, ids=lambda f: f.__name__)
def test_hostile_inputs_are_errors_or_answers(draw_template):
    os.environ["RELAXIDE_NUM_THREADS"] = "1"
    problems = []
    for seed in range(MODELS):
        rng = np.random.default_rng([seed, hostile.TEMPLATES.index(draw_template), DEEP])
        template, draw = draw_template(rng, seed % 2 == 1)
        problem = guarded.in_child(lambda: _problem(template, draw, rng, RUNS))
        if problem:
            problems.append(f"{template.name}, seed {seed}: {problem}")
    assert not problems, "\n".join(problems)
