"""Relax programs give TVM's answers, as bytecode and as native code, before and after they are written to a file.

``expected.json`` holds TVM's answers (``record.py`` writes it). With ``RELAXIDE_DEEP=1``, TVM is asked again, in both of its
modes, and all generated programs are executed.
"""

import json
import os
import pathlib
import subprocess
import sys

import pytest

import relaxide
from relaxide import relax

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import corpus  # noqa: E402
import functions  # noqa: E402
import values  # noqa: E402
from source import load  # noqa: E402

ALL = corpus.programs()
PROGRAMS = corpus.usual()
EXPECTED = json.loads((HERE / "expected.json").read_text())


@pytest.fixture(autouse=True, scope="module")
def outside():
    functions.register(relaxide)


def run(module, program):
    """The answers of the calls, each on a machine of its own."""
    answers = []
    for function, args in program.calls:
        vm = relax.VirtualMachine(module, relaxide.cpu())
        try:
            answers.append(values.describe(vm[function](*[values.make(arg, relaxide) for arg in args])))
        except Exception as error:
            answers.append({"error": True, "text": str(error)})
    return answers


def check(found, program, way):
    expected = EXPECTED[program.name]
    assert len(found) == len(expected) == len(program.calls)
    for i, (answer, wanted) in enumerate(zip(found, expected)):
        if "error" in (wanted if isinstance(wanted, dict) else {}):
            assert isinstance(answer, dict) and "error" in answer, f"{way}, call {i}: {answer}, expected an error"
            continue
        problem = values.differences(answer, wanted)
        assert problem is None, f"{way}, call {i}: {problem}"


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_answers_are_tvms(program, tmp_path):
    module = load(program, "relaxide", tmp_path)
    for mode in ("bytecode", "compiled"):
        executable = relaxide.compile(module, "llvm", exec_mode=mode)
        check(run(executable, program), program, mode)
        path = tmp_path / f"{mode}.so"
        executable.export_library(str(path))
        check(run(relaxide.runtime.load_module(str(path)), program), program, f"{mode}, from a file")


def test_there_are_two_hundred():
    assert len(ALL) >= 200 and set(EXPECTED) == {program.name for program in ALL}


@pytest.mark.skipif(os.environ.get("RELAXIDE_DEEP") != "1", reason="asks TVM again, which takes minutes")
def test_what_is_written_down_is_what_tvm_says():
    subprocess.run([sys.executable, HERE / "record.py", "--check"], check=True)
