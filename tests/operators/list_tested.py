"""Writes ``tested.txt``: for each operator the element types that its cases use, and what they are compared with.

Run ``python list_tested.py`` in this folder when cases come or go, then ``cargo xtask operators``.
"""

import re
from pathlib import Path

import random_calls as calls
import numpy as np
import value_cases as values

HERE = Path(__file__).parent
#: How many cases of an operator are looked at.
SAMPLE = 40
#: What stands for another operator's case, or for a special one.
ALIASES = {"negative zero": "negative", "sort nan": "sort", "unique unsorted": "unique", "narrow panels": "matmul",
           "nothing reduced": "prod", "nothing transposed": "permute_dims"}


def table():
    rows = {}

    def note(name, dtypes, against):
        own = rows.setdefault(name, (set(), set()))
        own[0].update(dtypes)
        own[1].add(against)

    for name in calls.CALLS:
        note(name, [], "types: TVM" if not name.startswith("inspect.") else "types: by hand")
    with np.errstate(all="ignore"):
        for name in values.NARROW:
            note(name, ["bfloat16"], "values: NumPy")
        for name, case in values.CASES.items():
            if name.startswith("bfloat16"):
                continue
            for seed in range(SAMPLE):
                for x in case(values.Random([sum(name.encode()), seed])).inputs:
                    note(ALIASES.get(name, name), [str(x.dtype)], "values: NumPy")
            note(ALIASES.get(name, name), [], "values: NumPy")
    images = (HERE / "test_image_operators.py").read_text()
    for name in set(re.findall(r"R\.((?:image|vision|inspect)\.\w+)\(", images)):
        runtime = name.startswith("image.") or name in {"vision.roi_align", "vision.roi_pool", "vision.all_class_non_max_suppression"}
        note(name, ["float32"], "values: ONNX Runtime" if runtime else "values: a loop in Python")
    for name in re.findall(r'"(\w+)": [\d]+', images.split("def test_inspection")[1].splitlines()[2]):
        note(f"inspect.tensor_{name}", ["float32"], "values: a loop in Python")
    lines = [f"{name} | {' '.join(sorted(dtypes))} | {', '.join(sorted(against))}" for name, (dtypes, against) in sorted(rows.items())]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "tested.txt").write_text(table())
