"""The same numbers, whichever way a program is compiled (:mod:`ways`).

Each call is compiled in five ways, and four of those run on its inputs in several orders too. `RELAXIDE_DEEP` makes thirty times as many calls.
"""

import os

import numpy as np
import pytest
import ways
import ways_further
import ways_more
import ways_rest

from relaxide import compiler, cpu
from relaxide.relax.frontend.onnx import from_onnx
from relaxide.relax.vm import VirtualMachine
from relaxide.runtime import tensor

DEEP = bool(os.environ.get("RELAXIDE_DEEP"))
CALLS = 240 if DEEP else 6
#: The same for the makers of `ways_more`.
FURTHER = 60 if DEEP else 2
#: And of `ways_rest` and `ways_further`.
REST = 60 if DEEP else 2
#: How many orders of its inputs a compiled call is given, besides the first.
ORDERS = 12


def machine_of(model):
    return VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), cpu())["main"]


MAKERS = ways.MAKERS + ways_more.MAKERS + ways_rest.MAKERS + ways_further.MAKERS


@pytest.mark.parametrize("make", MAKERS, ids=lambda f: f.__name__)
def test_every_way_gives_the_same_numbers(make):
    problems = []
    for seed in range(CALLS if make in ways.MAKERS else FURTHER if make in ways_more.MAKERS else REST):
        rng = np.random.default_rng([seed, MAKERS.index(make)])
        call = make(rng)
        oracle = ways.oracle(call)
        first = call.model("fixed")[1]
        orders = [first, *(ways.mixed(rng, first) for _ in range(ORDERS))]
        wants = [oracle(feeds) for feeds in orders]
        if wants[0] is None:
            continue
        for way in ways.WAYS:
            try:
                model, own = call.model(way)
                machine = machine_of(model)
                for feeds, want in zip(orders if own else orders[:1], wants):
                    if want is None:
                        continue
                    got = machine(*(tensor(feeds.get(name, x)) for name, x in own.items()))
                    got = [y.numpy() for y in (got if call.outputs > 1 else [got])]
                    differ = next((pair for pair in zip(got, want, strict=True) if not ways.close(*pair)), None)
                    if differ:
                        one, other = differ
                        what = f"{one.dtype}{one.shape} {one.tolist()} instead of {other.tolist()} for {feeds}"
                        problems.append(f"{way}, seed {seed}: {call}: {what}"[:600])
                        break
            except Exception as error:  # noqa: BLE001 (any error is a finding here)
                problems.append(f"{way}, seed {seed}: {call}: {' '.join(str(error).split())[:200]}")
    assert not problems, "\n".join(problems)


def test_the_guide_has_the_table_of_what_is_tried():
    import ways_table

    assert ways_table.current() == ways_table.table(), "run tests/onnx/ways_table.py --write"
