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
    "Execution*(number)(value: *)": "a number that an enumeration lacks is refused, where there it is a member without a name",
    "ortvalue_from_numpy(array: texts)": "values of texts are made",
    "ortvalue_from_numpy(array: bytes)": "values of texts are made",
    "ortvalue_from_numpy(array: objects that are texts)": "values of texts are made",
    "*big-endian*": "arrays in the other order of bytes keep their numbers",
    "*kind: 'C??', *": "names of devices are read in upper case too",
    "ortvalue_from_numpy_with_onnx_type(*kind: 8)": "numbers stay numbers where texts are asked for",
    "OrtValue.device_name(value: a sequence)": "a sequence is on the processor",
    "OrtValue.numpy(value: a *": "sequences and bfloat16 (with ml_dtypes) become arrays",
    "np.asarray(OrtValue)(value: a bfloat16, *": "bfloat16 becomes an array, with ml_dtypes",
    "OrtValue.update_inplace(value: a sequence, *": "what is no tensor is refused first",
    "OrtValue.update_inplace(value: a bfloat16, *": "what is no array is refused first",
    "OrtValue.update_inplace(*": "elements are converted, where there the bytes are copied as they are",
    "OrtValue.from_dlpack(array: complex64)": "complex numbers are no elements, which is said as a ValueError",
    "OrtValue.from_dlpack(array: columns)": "what has gaps is copied",
    "OrtValue.from_dlpack(array: read-only)": "what is read-only is read",
    "run(*lengths that differ*": "a kernel that fails is a RuntimeException, whichever it is; there the class is the kernel's",
    "run(*None within*": "a kernel that fails is a RuntimeException, whichever it is; there the class is the kernel's",
    "run of kinds(feed: ? given None)": "a kernel that fails is a RuntimeException, whichever it is; there the class is the kernel's",
    "run of kinds(feed: ? given tuple)": "a tuple is a list",
    "run of kinds(feed: t given range)": "texts are made of what has them",
    "fixed dimensions(dim: 'n', length: -1)": "a negative length leaves a dimension open and its name, where there the number is shown",
    "run of nothing(feed: *": "a name that is wrong is told before the value",
    "set_tuning_results(*": "what is said of kernels that are not here is not looked at",
    "InferenceSession(model: bytearray*": "bytes of any kind are a model",
    "InferenceSession(model: memoryview*": "bytes of any kind are a model",
    "InferenceSession(model: a folder*": "a folder is told as what it is",
    "InferenceSession(model: *format of its own*": "the format is told as what it is, where there these few bytes are damaged",
    "InferenceSession(model: a file of that*": "the format is told as what it is, where there these few bytes are damaged",
    "InferenceSession with options(*options: {}, more: {'providers': None})": "a dictionary is no SessionOptions",
    "copy_tensors(*": "the processor copies",
    "bind_input(*kind: None, *": "a shape that is wrong is told before the device",
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
    return theirs == "raises AttributeError" and ours.startswith("raises")


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
