"""The table of `docs/onnx.md` that says which operators the generators try, and in which ways.

usage: ways_table.py [--write]
"""

import pathlib
import sys

import hostile
import numpy as np
import ways

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "onnx.md"
BEGIN, END = "<!-- ways: begin -->", "<!-- ways: end -->"

#: What is refused, and why.
REFUSED = {
    "ArgMax": "of no elements: an error when the program runs, as in NumPy",
    "Gather": "indices outside: an error, also of constants",
    "GatherElements": "indices longer than the input along another axis",
    "NegativeLogLikelihoodLoss": "classes below 0, but `ignore_index`",
    "Slice": "lists of bounds whose length is named: the rank would depend on it",
}


def operators():
    """For each operator whether it is compared in all ways, and whether with hostile inputs."""
    found = {}
    for seed in range(60):
        for make in ways.MAKERS:
            found.setdefault(make(np.random.default_rng(seed)).op, set()).add("ways")
        for make in hostile.TEMPLATES:
            found.setdefault(make(np.random.default_rng(seed), False)[0].op, set()).add("hostile")
    return found


def table():
    lines = ["| operator | " + " | ".join(ways.WAYS) + " | hostile | refused |", "| --- " * (len(ways.WAYS) + 3) + "|"]
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
