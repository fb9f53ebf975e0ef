"""Kernels that overwrite what they read, under the schedule rules."""

import numpy as np
import pytest

import relaxide

PRODUCT = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, B: T.Buffer((200, 200), "float32"), c: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 200), "float32")
        C = T.match_buffer(c, (n, 200), "float32")
        P = T.alloc_buffer((n, 200), "float32")
        for i, j, k in T.grid(n, 200, 200):
            with T.sblock("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    P[vi, vj] = T.float32(0)
                P[vi, vj] = P[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(n, 200):
            with T.sblock("last"):
                vi, vj = T.axis.remap("SS", [i, j])
                {last}
"""

SOFTMAX = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(x: T.handle):
        n, m = T.int64(), T.int64()
        X = T.match_buffer(x, (n, m), "float32")
        S = T.alloc_buffer((n,), "float32")
        for i, k in T.grid(n, m):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + T.exp(X[vi, vk])
        for i, j in T.grid(n, m):
            with T.sblock("divide"):
                vi, vj = T.axis.remap("SS", [i, j])
                X[vi, vj] = T.exp(X[vi, vj]) / S[vi]
"""


def run(text, *arrays):
    tensors = [relaxide.runtime.tensor(array.copy()) for array in arrays]
    relaxide.build(relaxide.script.from_source(text))["main"](*tensors)
    return [tensor.numpy() for tensor in tensors]


@pytest.mark.parametrize("rows", [1, 5, 13, 17, 101])
def test_a_product_that_overwrites_a_tensor_that_is_read(rows):
    random = np.random.default_rng(rows)
    a, b, c = (random.standard_normal(shape, "float32") for shape in ((rows, 200), (200, 200), (rows, 200)))
    for last, expected in {
        "C[vi, vj] = C[vi, vj] + P[vi, vj]": (a, b, c + a @ b),
        "A[vi, vj] = C[vi, vj] + P[vi, vj]": (c + a @ b, b, c),
        "C[vi, vj] = T.max(P[vi, vj], T.float32(0))": (a, b, np.maximum(a @ b, 0)),
        "A[vi, vj] = T.max(P[vi, vj], T.float32(0))": (np.maximum(a @ b, 0), b, c),
    }.items():
        for found, wanted in zip(run(PRODUCT.format(last=last), a, b, c), expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4, err_msg=last)


@pytest.mark.parametrize("columns", [1, 7, 16, 77, 300])
def test_rows_that_are_overwritten(columns):
    x = np.random.default_rng(columns).standard_normal((9, columns), "float32")
    (found,) = run(SOFTMAX, x)
    np.testing.assert_allclose(found, np.exp(x) / np.exp(x).sum(1, keepdims=True), rtol=1e-5)
