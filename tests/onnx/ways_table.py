"""The table of `docs/onnx.md` that says which operators the generators try, and in which ways.

usage: ways_table.py [--write]
"""

import pathlib
import re
import sys

import hostile
import numpy as np
import ways
import ways_further
import ways_more
import ways_rest

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- ways: begin -->", "<!-- ways: end -->"
HERE = pathlib.Path(__file__).resolve().parent

#: Runs of the Rust generator (`crates/testkit/tests/hostile.rs`), in `make test` and in `make test-deep`.
RUST = ("20_000", "1_000_000")

#: Hostile inputs of each template whose errors are collected, and calls of each maker with all lengths named.
DRAWS, NAMED = 60, 3


def operators():
    """For each operator whether it is compared in all ways, and whether with hostile inputs."""
    found = {}
    for seed in range(60):
        for make in ways.MAKERS + ways_more.MAKERS + ways_rest.MAKERS + ways_further.MAKERS:
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
    made, further, rest, orders = numbers("test_ways.py", "CALLS", "FURTHER", "REST", "ORDERS")
    programs_of = [len(ways.MAKERS) * made[i] + len(ways_more.MAKERS) * further[i] + len(ways_rest.MAKERS + ways_further.MAKERS) * rest[i] for i in (0, 1)]
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


#: What errors of the run say, and what that is in the table.
LENGTHS = "at the run: lengths that differ"
RUNS = {"is outside of the extent": "at the run: an index outside", "must be the same as": LENGTHS}


def said(error):
    """What an error says, without what is of one call: numbers, and the names of nodes, kernels and dimensions."""
    text = str(error)
    if type(error).__name__ == "ShapeError":
        return LENGTHS
    for part, kind in RUNS.items():
        if part in text:
            return kind
    reason = re.search(r"\(node .*?\): (.*)", text)
    text = "at the import: " + reason[1] if reason else "at the run: " + text.strip().splitlines()[0]
    return re.sub(r"-?\d+(\.\d+)?", "N", re.sub(r" \(in .*", "", text)).replace("|", "/")


def refused():
    """For each operator what the generators' calls of it are refused with."""
    from relaxide import compiler, cpu
    from relaxide.relax.frontend.onnx import from_onnx
    from relaxide.relax.vm import VirtualMachine
    from relaxide.runtime import tensor

    found = {}

    def attempt(op, make):
        try:
            return make()
        except Exception as error:  # noqa: BLE001 (each is what is looked for)
            found.setdefault(op, {}).setdefault(said(error), None)

    def machine_of(model):
        return VirtualMachine(compiler.compile(from_onnx(model), target="llvm"), cpu())["main"]

    for number, make in enumerate(hostile.TEMPLATES):
        for named in (False, True):
            rng = np.random.default_rng([number, named])
            template, draw = make(rng, named)
            machine = attempt(template.op, lambda: machine_of(template.model))
            for _ in range(DRAWS if machine else 0):
                feeds, _ = draw(rng)
                attempt(template.op, lambda: machine(*map(tensor, feeds)))
    for number, make in enumerate(ways.MAKERS + ways_more.MAKERS + ways_rest.MAKERS + ways_further.MAKERS):
        for seed in range(NAMED):
            call = make(np.random.default_rng([seed, number]))
            attempt(call.op, lambda: from_onnx(call.model("named", lists=True)[0]))
    return {op: "; ".join(sorted(texts)) for op, texts in found.items()}


def table():
    lines = counts() + ["| operator | " + " | ".join(ways.WAYS) + " | hostile | refused |", "| --- " * (len(ways.WAYS) + 3) + "|"]
    texts = refused()
    for op, how in sorted(operators().items()):
        marks = ["yes" if "ways" in how else ""] * len(ways.WAYS) + ["yes" if "hostile" in how else "", texts.get(op, "")]
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
