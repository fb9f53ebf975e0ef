"""Every call of the interface, with right and wrong arguments, does the same on ONNX Runtime and on the door: the same result, or an
exception of the same class. What differs on purpose is listed here with its reason, and nothing is listed that does not differ."""

import fnmatch
import json
import subprocess
import sys
from pathlib import Path

import pytest

#: Differences by the names of calls: what the door does instead, and why.
DIFFERENCES = {
}

FOLDER = Path(__file__).parent


def outcomes(package, folder):
    """What every call gives, in processes of their own: ONNX Runtime ends some."""
    folder.mkdir()
    found = folder / "outcomes"
    found.touch()
    while True:
        done = found.read_text().splitlines()
        ran = subprocess.run(
            [sys.executable, str(FOLDER / "door_calls.py"), package, str(folder), str(len(done))], capture_output=True, text=True, timeout=900
        )
        if ran.returncode == 0:
            return dict(json.loads(line) for line in found.read_text().splitlines())
        lines = found.read_text().splitlines()
        assert len(lines) > len(done) or lines[-1:] != done[-1:], ran.stderr
        assert not lines[-1].endswith("]"), ran.stderr
        with found.open("a") as file:
            file.write(', "crashes"]\n')


def agree(theirs, ours):
    """Whether a program sees no difference that it could count on."""
    if ours == "crashes":
        return False
    # What ends the process is nobody's promise; a bare exception is any; an attribute that something of a wrong type lacks is an accident.
    if theirs in ("crashes", ours) or (theirs == "raises Exception" and ours.startswith("raises")):
        return True
    return theirs == "raises AttributeError" and ours == "raises TypeError"


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calls")
    return outcomes("onnxruntime", folder / "theirs"), outcomes("relaxide.onnxruntime", folder / "ours")


def test_a_call_does_the_same(both):
    theirs, ours = both
    assert theirs.keys() == ours.keys() and len(theirs) > 1500
    differing = {name: (theirs[name], ours[name]) for name in theirs if not agree(theirs[name], ours[name])}
    listed = {name for name in differing if any(fnmatch.fnmatchcase(name, pattern) for pattern in DIFFERENCES)}
    shown = "\n".join(f"{name}\n    {differing[name][0]}\n    {differing[name][1]}" for name in differing if name not in listed)
    assert not shown, shown
    stale = [pattern for pattern in DIFFERENCES if not any(fnmatch.fnmatchcase(name, pattern) for name in differing)]
    assert not stale, stale
