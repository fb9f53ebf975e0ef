"""Both packages in one process: each keeps to its own library, though the names of the C functions are the same."""

import subprocess
import sys

import pytest

pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

PROGRAM = """
import {first}, {second}
import numpy as np
import relaxide, tvm
from relaxide import ffi

assert ffi.access_path.AccessPath.root() == ffi.access_path.AccessPath.root()
assert len({{ffi.StructuralKey([1, 2]), ffi.StructuralKey([1, 2]), ffi.StructuralKey([1, 3])}}) == 2
for package in (relaxide, tvm):
    tensor = package.runtime.tensor(np.ones(3, "float32"))
    assert tensor.numpy().sum() == 3, package
    with_error = package.get_global_func
    try:
        with_error("no.such.function")
    except ValueError as error:
        assert "no.such.function" in str(error), package
    else:
        raise AssertionError(package)
"""


@pytest.mark.parametrize("order", [("tvm", "relaxide"), ("relaxide", "tvm")], ids=" before ".join)
def test_the_packages_do_not_mix(order):
    first, second = order
    program = PROGRAM.format(first=first, second=second)
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
