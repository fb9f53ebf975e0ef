"""The same numbers, whichever way a program is compiled (:mod:`ways`). `RELAXIDE_DEEP` makes twenty times as many calls."""

import os

import numpy as np
import pytest
import ways

from relaxide import compiler, cpu
from relaxide.relax.frontend.onnx import from_onnx
from relaxide.relax.vm import VirtualMachine
from relaxide.runtime import tensor

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
CALLS = 240 if DEEP else 12


def run(model, feeds):
    machine = VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), cpu())["main"]
    return machine(*(tensor(x) for x in feeds.values())).numpy()


@pytest.mark.parametrize("make", ways.MAKERS, ids=lambda f: f.__name__)
def test_every_way_gives_the_same_numbers(make):
    problems = []
    for seed in range(CALLS):
        rng = np.random.default_rng([seed, ways.MAKERS.index(make)])
        call = make(rng)
        want = ways.reference(call)
        if want is None:
            continue
        for way in ways.WAYS:
            try:
                got = run(*call.model(way))
            except Exception as error:  # noqa: BLE001 (any error is a finding here)
                problems.append(f"{way}, seed {seed}: {call}: {' '.join(str(error).split())[:200]}")
                continue
            if not ways.close(got, want):
                problems.append(f"{way}, seed {seed}: {call}: {got.dtype}{got.shape} {got.tolist()} instead of {want.tolist()}"[:600])
    assert not problems, "\n".join(problems)


def test_the_guide_has_the_table_of_what_is_tried():
    import ways_table

    assert ways_table.current() == ways_table.table(), "run tests/onnx/ways_table.py --write"
