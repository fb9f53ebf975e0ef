"""Programs that import ``tvm`` print the same with Relaxide in its place.

What TVM prints is in `printed_by_tvm.txt`, since it takes most of a minute and its version is pinned; the deep tests hold TVM itself to
that file. To write it anew: ``python examples/tvm/run.py tvm NAME... > tests/examples/printed_by_tvm.txt``.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parents[1] / "examples" / "tvm"


def by_program(text):
    """What each program printed."""
    parts = re.split("^== ", text, flags=re.MULTILINE)[1:]
    return {name: lines for name, _, lines in (part.partition("\n") for part in parts)}


def printed(package, *programs):
    command = [sys.executable, PROGRAMS / "run.py", package, *(PROGRAMS / f"{name}.py" for name in programs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return by_program(done.stdout)


RECORDED = by_program((HERE / "printed_by_tvm.txt").read_text())


def test_programs_for_tvm_print_the_same():
    ours = printed("relaxide")
    assert RECORDED.keys() <= ours.keys()
    # Those that begin with a network of PyTorch, where it is installed.
    others = ours.keys() - RECORDED.keys()
    assert ours == RECORDED | (printed("tvm", *sorted(others)) if others else {})


@pytest.mark.skipif(not os.environ.get("RELAXIDE_DEEP"), reason="runs in make test-deep")
def test_tvm_prints_what_is_recorded():
    pytest.importorskip("tvm")
    assert printed("tvm", *RECORDED) == RECORDED
