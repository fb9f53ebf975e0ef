"""A shared library written in C against tvm-ffi's headers: it runs the same on the original and on Relaxide."""

import pathlib
import subprocess
import sys

import pytest

tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed; its headers are what is compiled against")

USE = pathlib.Path(__file__).with_name("use_c_library.py")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("c") / "kernels.so"
    command = ["cc", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-Wl,-z,lazy"]
    command += [f"-I{folder}" for folder in tvm_ffi.libinfo.include_paths()]
    subprocess.run([*command, str(USE.with_name("kernels.c")), "-o", str(path)], check=True)
    return path


def use(runtime, library):
    result = subprocess.run([sys.executable, USE, runtime, library], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stderr[-3000:]
    return result.stdout


def test_a_c_library_does_the_same_in_both(library):
    theirs = use("tvm_ffi", library)
    assert use("relaxide", library) == theirs
    assert theirs.splitlines() == [
        "add_one [2.0, 3.0, 4.0]",
        "add_one ValueError: the vectors differ in length",
        "add_one TypeError: add_one takes tensors",
        "greet hello, Ada",
        "greet hello, Augusta Ada King",
        "greet TypeError: greet takes a string",
        "apply 42",
        "apply ValueError: from Python",
        "call_global 9",
        "counter 1 2 3",
        "counter 1",
    ]
