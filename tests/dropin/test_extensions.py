"""Extension modules that are linked with `libtvm_ffi.so` run on Relaxide's library in its place. xgrammar is one, where it is installed."""

import os
import pathlib
import subprocess
import sys

import pytest
import tvm_ffi_suite as suite

for needed in ("tvm_ffi", "torch", "xgrammar"):
    pytest.importorskip(needed, reason=f"{needed} is not installed")

PROGRAM = pathlib.Path(__file__).with_name("use_xgrammar.py")


def said(site):
    path = os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, PROGRAM], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_xgrammar_does_the_same_on_ours(tmp_path):
    theirs = said(suite.copy_package(tmp_path / "theirs"))
    ours = said(suite.copy_package(tmp_path / "ours", suite.build_library()))
    assert ours == theirs
    assert "schema '{\"name\": \"Ada\", \"age\": 36}' 26" in theirs
