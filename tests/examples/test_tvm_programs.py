"""Programs that import ``tvm`` print the same with Relaxide in its place."""

import os
import pathlib
import subprocess
import sys

import pytest

PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "tvm"


def printed(package):
    command = [sys.executable, PROGRAMS / "run.py", package]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=os.environ, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_programs_for_tvm_print_the_same():
    pytest.importorskip("tvm")
    assert printed("relaxide") == printed("tvm")
