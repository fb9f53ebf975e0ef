"""Relax's operators touch no memory that is not theirs, whatever indices they are given: an error or an answer, never a fault.

Every template of :mod:`hostile_calls` runs in a child process with inputs at faulting pages. `RELAXIDE_DEEP` runs eighty times as many.
"""

import os
import sys

import numpy as np
import pytest

sys.path.insert(0, os.path.dirname(__file__))

import guarded  # noqa: E402
import hostile_calls  # noqa: E402

import relaxide  # noqa: E402
from relaxide.runtime import from_dlpack  # noqa: E402

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
#: Programs of each template, and inputs of each program: 12 templates make 9,600 runs.
PROGRAMS, RUNS = (40, 1000) if DEEP else (5, 100)


def problem_of(text, draw, rng, runs):
    """What is wrong with a program's runs; `None` where all are right. A fault ends the process."""
    machine = relaxide.relax.VirtualMachine(relaxide.compile(relaxide.script.from_source(text), target="llvm"), relaxide.cpu())["main"]
    pages = guarded.Guarded()
    for run in range(runs):
        feeds, wanted = draw(rng)
        args = [from_dlpack(pages.copy(i, feed, run % 2 == 0)) for i, feed in enumerate(feeds)]
        try:
            got = machine(*args).numpy()
        except Exception as error:
            if wanted is not hostile_calls.ANYTHING:
                return f"{error} for {feeds}"
            continue
        if wanted is not hostile_calls.ANYTHING:
            wanted = np.asarray(wanted)
            if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-5, atol=1e-5):
                return f"{got.tolist()} instead of {wanted.tolist()} for {feeds}"
    return None


@pytest.mark.parametrize("template", hostile_calls.TEMPLATES, ids=lambda f: f.__name__)
def test_hostile_indices_are_errors_or_answers(template):
    os.environ["RELAXIDE_NUM_THREADS"] = "1"
    problems = []
    for seed in range(PROGRAMS):
        rng = np.random.default_rng([seed, hostile_calls.TEMPLATES.index(template), DEEP])
        text, draw = template(rng, seed % 2 == 1)
        problem = guarded.in_child(lambda: problem_of(text, draw, rng, RUNS))
        if problem:
            problems.append(f"{text}seed {seed}: {problem}")
    assert not problems, "\n".join(problems)
