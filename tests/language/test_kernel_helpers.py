"""Helper functions that kernels call while they are read: the same source is the same kernel in both packages."""

import pytest

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

SOURCE = '''
from {package}.script import tirx as T


def smooth(A, i):
    return T.Select(A[i] > T.float32(0), A[i], T.exp(A[i])) + T.Cast("float32", i)


def bits(x, i):
    return T.bitwise_and(T.shift_right(x, T.int32(1)), T.int32(3)) + T.cast(i, "int32") + T.max(x, T.min(i, 2))


def chosen(A, i):
    return T.if_then_else(T.And(i > 0, i < 4), A[i - 1], T.float32(0))


@T.prim_func
def kernel(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "int32")):
    for i in range(8):
        B[i] = smooth(A, i) + chosen(A, i)
        C[i] = bits(C[i], i)
'''


def kernel_of(package, tmp_path):
    path = tmp_path / f"of_{package}.py"
    path.write_text(SOURCE.format(package=package))
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["kernel"].script().split("@")[-1].strip()


def test_helpers_make_what_they_make_in_tvm(tmp_path):
    assert kernel_of("relaxide", tmp_path) == kernel_of("tvm", tmp_path)
