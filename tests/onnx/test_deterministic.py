"""The same bits on every processor, where a target asks for them (`deterministic`).

Sums of random lengths (:mod:`sums`), and one call of each operator that :mod:`ways` makes, are compiled for processors with vectors of 16, 32 and, where this
one has them, 64 bytes. `RELAXIDE_DEEP` makes thirty times as many.
"""

import os
import platform
from pathlib import Path

import numpy as np
import pytest
import sums
import ways
import ways_further
import ways_more
import ways_rest

from relaxide import compiler, cpu
from relaxide.relax.frontend.onnx import from_onnx
from relaxide.relax.vm import VirtualMachine
from relaxide.runtime import tensor

if platform.machine() != "x86_64":
    pytest.skip("names processors of x86-64", allow_module_level=True)

HAS = Path("/proc/cpuinfo").read_text().split("flags", 1)[-1].split("\n", 1)[0].split()
if "avx2" not in HAS:
    pytest.skip("runs kernels for x86-64-v3", allow_module_level=True)

SEEDS = 30 if os.environ.get("RELAXIDE_DEEP") else 1
TARGETS = [
    {"kind": "llvm", "mcpu": "x86-64-v3", "deterministic": True},
    {"kind": "llvm", "mcpu": "x86-64-v3", "mattr": ["-avx2"], "deterministic": True},
]
if {"avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512cd"} <= set(HAS):
    TARGETS.append({"kind": "llvm", "mcpu": "x86-64-v4", "deterministic": True})


OTHERS = ways.MAKERS + ways_more.MAKERS + ways_rest.MAKERS + ways_further.MAKERS


def bits(results):
    """Results as bytes; what is no number counts as one, whatever its payload."""
    return [(np.where(np.isnan(y), np.array(np.nan, y.dtype), y) if y.dtype.kind == "f" else y).tobytes() for y in results]


def results(call, way, target):
    model, feeds = call.model(way)
    machine = VirtualMachine(compiler.compile(from_onnx(model), target=target), cpu())["main"]
    got = machine(*(tensor(x) for x in feeds.values()))
    return bits([y.numpy() for y in (got if call.outputs > 1 else [got])])


def differing(call, ways_of_it):
    for way in ways_of_it:
        first, *others = [results(call, way, target) for target in TARGETS]
        if any(other != first for other in others):
            yield f"{way}: {call}"[:300]


@pytest.mark.parametrize("make", sums.MAKERS, ids=lambda f: f.__name__)
def test_sums_have_the_same_bits(make):
    calls = [make(np.random.default_rng([seed, sums.MAKERS.index(make)])) for seed in range((4 if SEEDS > 1 else 2) * SEEDS)]
    problems = [problem for call in calls for problem in differing(call, ["fixed", "named"])]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("make", OTHERS, ids=lambda f: f.__name__)
def test_operators_have_the_same_bits(make):
    problems = []
    for seed in range(SEEDS):
        call = make(np.random.default_rng([seed, OTHERS.index(make)]))
        if ways.oracle(call)(call.model("fixed")[1]) is not None:
            problems += differing(call, ["fixed", "named"] if SEEDS > 1 else ["fixed"])
    assert not problems, "\n".join(problems)


def test_a_processor_that_rounds_products_is_refused():
    call = sums.softmax(np.random.default_rng(0))
    with pytest.raises(ValueError, match="without rounding it first, and `x86-64-v2` does not; name one that does"):
        results(call, "fixed", {"kind": "llvm", "mcpu": "x86-64-v2", "deterministic": True})
