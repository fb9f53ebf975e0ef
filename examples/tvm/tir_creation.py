"""Ways to write a kernel: as text in full and in short, with Python's numbers, with lengths that the call brings, as formulas."""

import numpy as np
import tvm
import tvm_ffi
from tvm import te
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Full:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
        for i in range(16):
            for j in range(16):
                for k in range(16):
                    with T.sblock("C"):
                        vi = T.axis.spatial(16, i)
                        vj = T.axis.spatial(16, j)
                        vk = T.axis.reduce(16, k)
                        T.reads(A[vi, vk], B[vk, vj])
                        T.writes(C[vi, vj])
                        with T.init():
                            C[vi, vj] = T.float32(0)
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


size, dtype = 16, "float32"


@I.ir_module
class Short:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((size, size), dtype), B: T.Buffer((size, size), dtype), C: T.Buffer((size, size), dtype)):
        for i, j, k in T.grid(size, size, size):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


print(tvm_ffi.structural_equal(Full, Short))


@I.ir_module
class AnyLength:
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, c: T.handle):
        M = T.int32()
        N = T.int32()
        K = T.int32()
        A = T.match_buffer(a, [M, K], dtype)
        B = T.match_buffer(b, [K, N], dtype)
        C = T.match_buffer(c, [M, N], dtype)
        for i, j, k in T.grid(M, N, K):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


A = te.placeholder((size, size), dtype, name="A")
B = te.placeholder((size, size), dtype, name="B")
k = te.reduce_axis((0, size), "k")
C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
formula = tvm.IRModule({"main": te.create_prim_func([A, B, C]).with_attr({"global_symbol": "main"})})


def check(module, m, n, k):
    draw = np.random.default_rng(1)
    a, b = draw.random((m, k), "float32"), draw.random((k, n), "float32")
    c = tvm.runtime.tensor(np.zeros((m, n), dtype=dtype))
    tvm.compile(module, target="llvm")(tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
    np.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
    print(np.round(c.numpy().sum(), 1))


for module in (Full, Short, formula):
    check(module, 16, 16, 16)
check(AnyLength, 4, 5, 6)
check(AnyLength, 7, 3, 9)
