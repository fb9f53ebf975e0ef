"""Kernels that schedules are tried on, as TVMScript that TVM and Relaxide read alike."""

import textwrap


def _module(params, body):
    lines = textwrap.dedent(body).strip("\n")
    return (
        "@I.ir_module\nclass Module:\n    @T.prim_func(s_tir=True)\n"
        f"    def main({params}):\n        T.func_attr({{'tirx.noalias': True}})\n" + textwrap.indent(lines, "        ") + "\n"
    )


def _buffers(**shapes):
    return ", ".join(f'{name}: T.Buffer({shape}, "float32")' for name, shape in shapes.items())


KERNELS = {
    "elementwise": _module(
        _buffers(A="(16, 32)", D="(16, 32)"),
        """
        B = T.sblock_alloc_buffer((16, 32))
        C = T.sblock_alloc_buffer((16, 32))
        for i, j in T.grid(16, 32):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(2)
        for i, j in T.grid(16, 32):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.exp(B[vi, vj])
        for i, j in T.grid(16, 32):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] + B[vi, vj]
        """,
    ),
    "matmul": _module(
        _buffers(A="(64, 48)", B="(48, 40)", D="(64, 40)"),
        """
        C = T.sblock_alloc_buffer((64, 40))
        for i, j, k in T.grid(64, 40, 48):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 40):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], T.float32(0))
        """,
    ),
    "conv": _module(
        _buffers(X="(1, 8, 14, 14)", W="(16, 8, 3, 3)", Y="(1, 16, 14, 14)"),
        """
        P = T.sblock_alloc_buffer((1, 8, 16, 16))
        C = T.sblock_alloc_buffer((1, 16, 14, 14))
        for n, c, h, w in T.grid(1, 8, 16, 16):
            with T.sblock("pad"):
                vn, vc, vh, vw = T.axis.remap("SSSS", [n, c, h, w])
                P[vn, vc, vh, vw] = T.if_then_else(
                    1 <= vh and vh < 15 and 1 <= vw and vw < 15, X[vn, vc, vh - 1, vw - 1], T.float32(0)
                )
        for n, o, h, w, c, kh, kw in T.grid(1, 16, 14, 14, 8, 3, 3):
            with T.sblock("conv"):
                vn, vo, vh, vw, vc, vkh, vkw = T.axis.remap("SSSSRRR", [n, o, h, w, c, kh, kw])
                with T.init():
                    C[vn, vo, vh, vw] = T.float32(0)
                C[vn, vo, vh, vw] = C[vn, vo, vh, vw] + P[vn, vc, vh + vkh, vw + vkw] * W[vo, vc, vkh, vkw]
        for n, o, h, w in T.grid(1, 16, 14, 14):
            with T.sblock("relu"):
                vn, vo, vh, vw = T.axis.remap("SSSS", [n, o, h, w])
                Y[vn, vo, vh, vw] = T.max(C[vn, vo, vh, vw], T.float32(0))
        """,
    ),
    "softmax": _module(
        _buffers(A="(8, 40)", S="(8, 40)"),
        """
        M = T.sblock_alloc_buffer((8,))
        E = T.sblock_alloc_buffer((8, 40))
        Z = T.sblock_alloc_buffer((8,))
        for i, k in T.grid(8, 40):
            with T.sblock("max"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    M[vi] = T.min_value("float32")
                M[vi] = T.max(M[vi], A[vi, vk])
        for i, j in T.grid(8, 40):
            with T.sblock("exp"):
                vi, vj = T.axis.remap("SS", [i, j])
                E[vi, vj] = T.exp(A[vi, vj] - M[vi])
        for i, k in T.grid(8, 40):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    Z[vi] = T.float32(0)
                Z[vi] = Z[vi] + E[vi, vk]
        for i, j in T.grid(8, 40):
            with T.sblock("norm"):
                vi, vj = T.axis.remap("SS", [i, j])
                S[vi, vj] = E[vi, vj] / Z[vi]
        """,
    ),
    "flatten": _module(
        _buffers(A="(8, 16)", D="(128,)"),
        """
        B = T.sblock_alloc_buffer((8, 16))
        for i, j in T.grid(8, 16):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i in range(128):
            with T.sblock("D"):
                vi = T.axis.remap("S", [i])
                D[vi] = B[vi // 16, vi % 16] * T.float32(3)
        """,
    ),
    "dynamic": _module(
        "a: T.handle, b: T.handle",
        """
        n = T.int64()
        A = T.match_buffer(a, (n, T.int64(16)))
        B = T.match_buffer(b, (n, T.int64(16)))
        for i, j in T.grid(n, T.int64(16)):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        """,
    ),
    "in_place": _module(
        _buffers(A="(16, 16)", B="(16,)"),
        """
        for k in range(1):
            with T.sblock("A"):
                T.reads(A[0:16, 0:16], B[0:16])
                T.writes(A[0:16, 0:16])
                for i, j in T.grid(16, 16):
                    A[i, j] = A[i, j] * B[i]
        """,
    ),
    "pools": _module(
        _buffers(A="(12, 12)", C="(8, 8)"),
        """
        B = T.sblock_alloc_buffer((10, 10))
        for i, j, k, l in T.grid(10, 10, 3, 3):
            with T.sblock("B"):
                vi, vj, vk, vl = T.axis.remap("SSRR", [i, j, k, l])
                with T.init():
                    B[vi, vj] = T.min_value("float32")
                B[vi, vj] = T.max(B[vi, vj], A[vi + vk, vj + vl])
        for i, j, k, l in T.grid(8, 8, 3, 3):
            with T.sblock("C"):
                vi, vj, vk, vl = T.axis.remap("SSRR", [i, j, k, l])
                with T.init():
                    C[vi, vj] = T.min_value("float32")
                C[vi, vj] = T.max(C[vi, vj], B[vi + vk, vj + vl])
        """,
    ),
    "linear": _module(
        _buffers(A="(16, 32)", W="(32, 24)", b="(24,)", D="(16, 24)"),
        """
        C = T.sblock_alloc_buffer((16, 24))
        for i, j, k in T.grid(16, 24, 32):
            with T.sblock("C"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * W[vk, vj]
        for i, j in T.grid(16, 24):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = C[vi, vj] + b[vj]
        """,
    ),
    "apart": _module(
        _buffers(A="(16, 16)", E="(16,)", B="(16, 16)", D="(16,)"),
        """
        for i, j in T.grid(16, 16):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] + T.float32(1)
        for i in range(16):
            with T.sblock("D"):
                vi = T.axis.remap("S", [i])
                D[vi] = E[vi] * T.float32(2)
        """,
    ),
    "flat_sums": _module(
        _buffers(A="(64,)", D="(8, 8)"),
        """
        B = T.sblock_alloc_buffer((64,))
        for i, j in T.grid(8, 8):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi * 8 + vj] = A[vi * 8 + vj] * T.float32(2)
        for i, j in T.grid(8, 8):
            with T.sblock("D"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = B[vi * 8 + vj] + T.float32(1)
        """,
    ),
    "padded": _module(
        _buffers(A="(16, 16)", P="(20, 20)"),
        """
        for i, j in T.grid(20, 20):
            with T.sblock("P"):
                vi, vj = T.axis.remap("SS", [i, j])
                P[vi, vj] = T.if_then_else(
                    2 <= vi and vi * 2 < 36 and vj // 2 < 9 and 2 <= vj, A[vi - 2, vj - 2], T.float32(0)
                )
        """,
    ),
    "again": _module(
        _buffers(A="(16, 16)", B="(16, 16)"),
        """
        for i, j in T.grid(16, 16):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * T.float32(3)
        for i, j in T.grid(16, 16):
            with T.sblock("A"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = B[vi, vj] + T.float32(1)
        """,
    ),
    "odd": _module(
        _buffers(A="(15, 17)", B="(17, 19)", D="(15, 19)", S="(15,)"),
        """
        for i, j, k in T.grid(15, 19, 17):
            with T.sblock("D"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    D[vi, vj] = T.float32(0)
                D[vi, vj] = D[vi, vj] + (A[vi, vk] * B[vk, vj] + A[vi, vk]) * T.float32(2)
        for i, k in T.grid(15, 17):
            with T.sblock("S"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    S[vi] = T.float32(0)
                S[vi] = S[vi] + T.exp(A[vi, vk])
        """,
    ),
}
