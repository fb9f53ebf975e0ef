"""The list of cases that do not pass, with reasons: `case: reason`, one a line, sorted."""

import pathlib

PATH = pathlib.Path(__file__).with_name("exceptions.txt")


def read_exceptions():
    """Reasons by case."""
    lines = (line for line in PATH.read_text().splitlines() if line and not line.startswith("#"))
    return dict(line.split(": ", 1) for line in lines)


def write_exceptions(reasons):
    """Replaces the list."""
    text = "# Cases of ONNX's backend test suite that do not pass, and why. `run.py --bless` writes the list anew.\n"
    PATH.write_text(text + "".join(f"{name}: {reasons[name]}\n" for name in sorted(reasons)))
