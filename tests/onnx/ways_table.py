"""The table of `docs/onnx.md` that says which operators the generators try, and in which ways.

usage: ways_table.py [--write]
"""

import pathlib
import re
import sys

import hostile
import numpy as np
import ways
import ways_more

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- ways: begin -->", "<!-- ways: end -->"
HERE = pathlib.Path(__file__).resolve().parent

#: Runs of the Rust generator (`crates/testkit/tests/hostile.rs`), in `make test` and in `make test-deep`.
RUST = ("20_000", "1_000_000")

#: What is refused, and why.
REFUSED = {
    "ArgMax": "of no elements: an error when the program runs, as in NumPy",
    "Gather": "indices outside: an error, also of constants",
    "GatherND": "places whose number of coordinates is named: the rank would depend on it",
    "GatherElements": "indices longer than the input along another axis",
    "NegativeLogLikelihoodLoss": "classes below 0, but `ignore_index`",
    "Slice": "lists of bounds whose length is named: the rank would depend on it",
}


def operators():
    """For each operator whether it is compared in all ways, and whether with hostile inputs."""
    found = {}
    for seed in range(60):
        for make in ways.MAKERS + ways_more.MAKERS:
            found.setdefault(make(np.random.default_rng(seed)).op, set()).add("ways")
        for make in hostile.TEMPLATES:
            found.setdefault(make(np.random.default_rng(seed), False)[0].op, set()).add("hostile")
    return found


def numbers(path, *names):
    """Pairs of numbers that a test assigns to names as `DEEP` has it: (usual, deep) for each."""
    text = (HERE / path).read_text()
    found = []
    for name in names:
        row = re.search(rf"^.*\b{name}\b.*= (.*)$", text, re.M)[1]
        deep, usual = row.split(" if DEEP else ") if " if DEEP else " in row else (row, row)
        place = [part.strip() for part in re.search(rf"^(.*\b{name}\b.*?) = ", text, re.M)[1].split(",")].index(name)
        one = lambda part: int(part.strip("() ").split(",")[place])  # noqa: E731
        found.append((one(usual), one(deep)))
    return found


def counts():
    """How many inputs each generator tries: in the usual tests, and in the deep ones."""
    models, runs = numbers("test_hostile.py", "MODELS", "RUNS")
    programs, calls = numbers("../operators/test_hostile_calls.py", "PROGRAMS", "RUNS")
    made, further, orders = numbers("test_ways.py", "CALLS", "FURTHER", "ORDERS")
    programs_of = [len(ways.MAKERS) * made[i] + len(ways_more.MAKERS) * further[i] for i in (0, 1)]
    templates = len(re.findall(r"\w+", re.search(r"^TEMPLATES = \[(.*?)\]", (HERE / "../operators/hostile_calls.py").read_text(), re.M | re.S)[1]))
    rust = (HERE / "../../crates/testkit/tests/hostile.rs").read_text()
    assert all(number in rust for number in RUST), "RUST says what the test does"
    each = [
        ("`tests/onnx/test_hostile.py`", *(len(hostile.TEMPLATES) * models[i] * runs[i] for i in (0, 1))),
        ("`tests/operators/test_hostile_calls.py`", *(templates * programs[i] * calls[i] for i in (0, 1))),
        ("`crates/testkit/tests/hostile.rs`, `fuzz/fuzz_targets/hostile.rs`", *(int(number) for number in RUST)),
        ("`tests/onnx/test_ways.py`", *(programs_of[i] * (1 + (len(ways.WAYS) - 1) * (1 + orders[i])) for i in (0, 1))),
    ]
    lines = ["| generator | inputs in `make test` | in `make test-deep` |", "| --- | --- | --- |"]
    return lines + [f"| {name} | {usual:,} | {deep:,} |" for name, usual, deep in each] + [""]


def table():
    lines = counts() + ["| operator | " + " | ".join(ways.WAYS) + " | hostile | refused |", "| --- " * (len(ways.WAYS) + 3) + "|"]
    for op, how in sorted(operators().items()):
        marks = ["yes" if "ways" in how else ""] * len(ways.WAYS) + ["yes" if "hostile" in how else "", REFUSED.get(op, "")]
        lines.append(f"| {op} | " + " | ".join(marks) + " |")
    return "\n".join(lines)


def current():
    text = GUIDE.read_text()
    return text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()


if __name__ == "__main__":
    if "--write" in sys.argv:
        text = GUIDE.read_text()
        start, end = text.index(BEGIN) + len(BEGIN), text.index(END)
        GUIDE.write_text(text[:start] + "\n" + table() + "\n" + text[end:])
    else:
        print(table())
