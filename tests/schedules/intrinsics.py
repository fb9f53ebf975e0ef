"""Intrinsics that schedules are tried with, known to TVM and to Relaxide by the same names."""

import relaxide

_SOURCE = """
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def desc(a: T.handle, b: T.handle, c: T.handle):
        A = T.match_buffer(a, (8, 4), "float32", offset_factor=1)
        B = T.match_buffer(b, (4, 8), "float32", offset_factor=1)
        C = T.match_buffer(c, (8, 8), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:8, 0:8], A[0:8, 0:4], B[0:4, 0:8])
            T.writes(C[0:8, 0:8])
            for i, j, k in T.grid(8, 8, 4):
                with T.sblock("step"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func(s_tir=True)
    def impl(a: T.handle, b: T.handle, c: T.handle):
        a0, a1, b0, b1, c0, c1 = T.int32(), T.int32(), T.int32(), T.int32(), T.int32(), T.int32()
        A = T.match_buffer(a, (8, 4), "float32", strides=[a0, a1], offset_factor=1)
        B = T.match_buffer(b, (4, 8), "float32", strides=[b0, b1], offset_factor=1)
        C = T.match_buffer(c, (8, 8), "float32", strides=[c0, c1], offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:8, 0:8], A[0:8, 0:4], B[0:4, 0:8])
            T.writes(C[0:8, 0:8])
            for k, i in T.grid(4, 8):
                for j in T.vectorized(8):
                    with T.sblock("tile"):
                        vk, vi, vj = T.axis.remap("RSS", [k, i, j])
                        C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]

    @T.prim_func(s_tir=True)
    def copy_desc(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (16,), "float32", offset_factor=1)
        B = T.match_buffer(b, (16,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(A[0:16])
            T.writes(B[0:16])
            for i in range(16):
                with T.sblock("one"):
                    vi = T.axis.remap("S", [i])
                    B[vi] = T.exp(A[vi])

    @T.prim_func(s_tir=True)
    def copy_impl(a: T.handle, b: T.handle):
        A = T.match_buffer(a, (16,), "float32", offset_factor=1)
        B = T.match_buffer(b, (16,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(A[0:16])
            T.writes(B[0:16])
            for i in T.unroll(16):
                B[i] = T.exp(A[i])
"""

PAIRS = {"test.product_8x8x4": ("desc", "impl"), "test.exp_16": ("copy_desc", "copy_impl")}


def register(package):
    """Makes the intrinsics known to TVM or to Relaxide."""
    module = package.script.from_source(_SOURCE)
    for name, functions in PAIRS.items():
        package.s_tir.TensorIntrin.register(name, *(module[function] for function in functions), override=True)


register(relaxide)
try:
    import tvm
except ImportError:
    pass
else:
    register(tvm)
