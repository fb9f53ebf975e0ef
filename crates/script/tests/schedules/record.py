"""Records what TVM's schedules make of kernels: ``python record.py > recorded.json``, with TVM 0.27.

A case is a kernel, steps, and the kernel that TVM makes by them. A step is the names of its results, its method, and its
operands; an operand ``"$x"`` is the result that an earlier step named ``x``.
"""

import json

from tvm import s_tir
from tvm.script import tirx as T

F = "float32"


@T.prim_func(s_tir=True)
def product(A: T.Buffer((16, 8), F), B: T.Buffer((8, 24), F), C: T.Buffer((16, 24), F)):
    for i, j, k in T.grid(16, 24, 8):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


@T.prim_func(s_tir=True)
def product_relu(A: T.Buffer((16, 8), F), B: T.Buffer((24, 8), F), D: T.Buffer((16, 24), F)):
    C = T.sblock_alloc_buffer((16, 24), F)
    for i, j, k in T.grid(16, 24, 8):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vj, vk]
    for i, j in T.grid(16, 24):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = T.max(C[vi, vj], T.float32(0))


@T.prim_func(s_tir=True)
def chain(A: T.Buffer((16, 24), F), D: T.Buffer((16, 24), F)):
    B = T.sblock_alloc_buffer((16, 24), F)
    C = T.sblock_alloc_buffer((16, 24), F)
    for i, j in T.grid(16, 24):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 24):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + T.float32(1)
    for i, j in T.grid(16, 24):
        with T.sblock("D"):
            vi, vj = T.axis.remap("SS", [i, j])
            D[vi, vj] = C[vi, vj] * B[vi, vj]


@T.prim_func(s_tir=True)
def stencil(A: T.Buffer((18, 24), F), C: T.Buffer((16, 24), F)):
    B = T.sblock_alloc_buffer((18, 24), F)
    for i, j in T.grid(18, 24):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
    for i, j in T.grid(16, 24):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + B[vi + 1, vj] + B[vi + 2, vj]


@T.prim_func(s_tir=True)
def row_sums(A: T.Buffer((8, 32), F), B: T.Buffer((8,), F)):
    for i, k in T.grid(8, 32):
        with T.sblock("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]


@T.prim_func(s_tir=True)
def argmax(A: T.Buffer((8, 32), F), I: T.Buffer((8,), "int64"), V: T.Buffer((8,), F)):
    for i, k in T.grid(8, 32):
        with T.sblock("argmax"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                I[vi] = T.int64(-1)
                V[vi] = T.min_value("float32")
            index: T.let[T.int64] = T.Select(V[vi] >= A[vi, vk], I[vi], T.Cast("int64", vk))
            value: T.let[T.float32] = T.Select(V[vi] >= A[vi, vk], V[vi], A[vi, vk])
            I[vi] = index
            V[vi] = value


@T.prim_func(s_tir=True)
def conv(A: T.Buffer((30,), F), W: T.Buffer((3, 16), F), C: T.Buffer((30, 16), F)):
    P = T.sblock_alloc_buffer((32,), F)
    for i in T.grid(32):
        with T.sblock("P"):
            vi = T.axis.spatial(32, i)
            P[vi] = T.if_then_else(vi >= 1 and vi < 31, A[vi - 1], T.float32(0))
    for i, o, k in T.grid(30, 16, 3):
        with T.sblock("C"):
            vi, vo, vk = T.axis.remap("SSR", [i, o, k])
            with T.init():
                C[vi, vo] = T.float32(0)
            C[vi, vo] = C[vi, vo] + P[vi + vk] * W[vk, vo]


PROGRAMS = [product, product_relu, chain, stencil, row_sums, argmax, conv]

MAPS = {
    "swap": lambda i, j: (j, i),
    "tiles": lambda i, j: (i // 4, j // 8, i % 4, j % 8),
    "rows": lambda i, j: (i // 8, j, i % 8),
    "flat": lambda i, j: i * 24 + j,
    "split_3": lambda i, j, k: (i // 8, j, i % 8, k),
    "turn_3": lambda i, j, k: (j, i, k),
    "split_reduction": lambda i, k: (i, k // 8, k % 8),
}


def loops(block, *names):
    return [list(names), "get_loops", [block]]


def block(name):
    return [[name], "get_sblock", [name]]


def split(loop, factors):
    return [[f"{loop}{n}" for n in range(len(factors))], "split", ["$" + loop, factors]]


def reorder(*names):
    return [[], "reorder", ["$" + name for name in names]]


TILED = [
    block("C"), loops("$C", "i", "j", "k"), split("i", [None, 8]), split("j", [None, 8]), split("k", [None, 4]),
    reorder("i0", "j0", "k0", "i1", "j1", "k1"),
]

CASES = [
    # decompose_reduction
    ("product", [block("C"), loops("$C", "i", "j", "k"), [["init"], "decompose_reduction", ["$C", "$k"]]]),
    ("product", [*TILED, [["init"], "decompose_reduction", ["$C", "$k0"]]]),
    ("product", [block("C"), loops("$C", "i", "j", "k"), split("i", [None, 5]), [["init"], "decompose_reduction", ["$C", "$i1"]]]),
    ("row_sums", [block("B"), loops("$B", "i", "k"), [["init"], "decompose_reduction", ["$B", "$i"]]]),
    ("argmax", [block("argmax"), loops("$argmax", "i", "k"), [["init"], "decompose_reduction", ["$argmax", "$k"]]]),
    # compute_at
    ("chain", [block("B"), block("C"), loops("$C", "i", "j"), block("D"), loops("$D", "x", "y"), [[], "compute_at", ["$C", "$x"]]]),
    ("chain", [block("C"), block("D"), loops("$D", "x", "y"), [[], "compute_at", ["$C", "$y"]]]),
    ("chain", [block("C"), block("D"), loops("$D", "x", "y"), split("y", [None, 8]), [[], "compute_at", ["$C", "$y0"]]]),
    ("stencil", [block("B"), block("C"), loops("$C", "i", "j"), split("i", [None, 8]), [[], "compute_at", ["$B", "$i0"]]]),
    ("stencil", [block("B"), block("C"), loops("$C", "i", "j"), [[], "compute_at", ["$B", "$i"]]]),
    ("product_relu", [block("C"), block("D"), loops("$D", "x", "y"), split("x", [None, 4]), [[], "compute_at", ["$C", "$x0"]]]),
    ("conv", [block("P"), block("C"), loops("$C", "i", "o", "k"), split("i", [None, 6]), [[], "compute_at", ["$P", "$i0"]]]),
    # reverse_compute_at
    ("chain", [block("C"), block("B"), loops("$B", "x", "y"), [[], "reverse_compute_at", ["$C", "$x"]]]),
    ("chain", [block("C"), block("B"), loops("$B", "x", "y"), split("y", [None, 8]), [[], "reverse_compute_at", ["$C", "$y0"]]]),
    ("product_relu", [*TILED, block("D"), [[], "reverse_compute_at", ["$D", "$j0"]]]),
    ("product_relu", [block("C"), loops("$C", "i", "j", "k"), block("D"), [[], "reverse_compute_at", ["$D", "$j"]]]),
    # cache_read and cache_write
    ("product", [block("C"), [["a"], "cache_read", ["$C", 0, "shared"]]]),
    ("product", [*TILED, [["a"], "cache_read", ["$C", 0, "shared"]], [[], "compute_at", ["$a", "$k0"]]]),
    ("product", [*TILED, [["b"], "cache_read", ["$C", 1, "local"]], [[], "compute_at", ["$b", "$i1"]]]),
    ("chain", [block("D"), [["c"], "cache_read", ["$D", 0, "shared"]]]),
    ("chain", [block("D"), [["b"], "cache_read", ["$D", 1, "shared"]]]),
    ("stencil", [block("C"), [["b"], "cache_read", ["$C", 0, "local"]]]),
    ("product", [block("C"), [["w"], "cache_write", ["$C", 0, "local"]]]),
    ("product", [*TILED, [["w"], "cache_write", ["$C", 0, "local"]], [[], "reverse_compute_at", ["$w", "$j0"]], [["n"], "decompose_reduction", ["$C", "$k0"]]]),
    ("chain", [block("B"), [["w"], "cache_write", ["$B", 0, "local"]]]),
    ("argmax", [block("argmax"), [["w"], "cache_write", ["$argmax", 0, "local"]]]),
    # reindex
    ("product", [block("C"), [["r"], "reindex", ["$C", "read", 0]]]),
    ("product", [block("C"), [["r"], "reindex", ["$C", "read", 1]]]),
    ("product", [block("C"), [["r"], "reindex", ["$C", "write", 0]]]),
    ("conv", [block("C"), [["r"], "reindex", ["$C", "read", 0]]]),
    # rfactor
    ("row_sums", [block("B"), loops("$B", "i", "k"), split("k", [None, 8]), [["f"], "rfactor", ["$k0", 0]]]),
    ("row_sums", [block("B"), loops("$B", "i", "k"), split("k", [None, 8]), [["f"], "rfactor", ["$k1", 1]]]),
    ("row_sums", [block("B"), loops("$B", "i", "k"), [["f"], "rfactor", ["$k", -1]]]),
    ("product", [block("C"), loops("$C", "i", "j", "k"), split("k", [None, 2]), [["f"], "rfactor", ["$k0", 2]]]),
    ("argmax", [block("argmax"), loops("$argmax", "i", "k"), split("k", [None, 8]), [["f"], "rfactor", ["$k0", 1]]]),
    # blockize
    ("product", [*TILED, [["o"], "blockize", ["$i1"]]]),
    ("product", [block("C"), loops("$C", "i", "j", "k"), [["o"], "blockize", ["$j"]]]),
    ("product", [*TILED, [["n"], "decompose_reduction", ["$C", "$k0"]], [["o"], "blockize", ["$i1"]]]),
    ("chain", [block("C"), loops("$C", "i", "j"), split("i", [None, 8]), [["o"], "blockize", ["$i1"]]]),
    ("chain", [block("C"), loops("$C", "i", "j"), [["o"], "blockize", ["$i"]]]),
    # transform_layout and transform_block_layout
    ("product", [block("C"), [[], "transform_layout", ["$C", "write", 0, "tiles"]]]),
    ("product", [block("C"), [[], "transform_layout", ["$C", "read", 1, "swap"]]]),
    ("chain", [block("B"), [[], "transform_layout", ["$B", "write", 0, "rows"]]]),
    ("chain", [block("C"), [[], "transform_layout", ["$C", "write", 0, "flat"]]]),
    ("product", [block("C"), [[], "transform_block_layout", ["$C", "split_3"]]]),
    ("product", [block("C"), [[], "transform_block_layout", ["$C", "turn_3"]]]),
    ("chain", [block("C"), [[], "transform_block_layout", ["$C", "tiles"]]]),
    ("row_sums", [block("B"), [[], "transform_block_layout", ["$B", "split_reduction"]]]),
    # pad_einsum
    ("product", [block("C"), [[], "pad_einsum", ["$C", [5, 7, 6]]]]),
    ("product", [block("C"), [[], "pad_einsum", ["$C", [16, 24, 5]]]]),
    ("product_relu", [block("C"), [[], "pad_einsum", ["$C", [5, 1, 6]]]]),
    # set_scope, storage_align, unsafe_set_dtype
    ("chain", [block("B"), [[], "set_scope", ["$B", 0, "shared"]]]),
    ("chain", [block("C"), [[], "set_scope", ["$C", 0, "local"]]]),
    ("product_relu", [block("C"), [[], "set_scope", ["$C", 0, "shared.dyn"]]]),
    ("chain", [block("B"), [[], "storage_align", ["$B", 0, 0, 16, 4]]]),
    ("chain", [block("C"), [[], "storage_align", ["$C", 0, -2, 8, 1]], [[], "storage_align", ["$C", 0, 0, 16, 2]]]),
    ("product_relu", [block("C"), [[], "storage_align", ["$C", 0, 1, 32, 0]]]),
    ("chain", [block("B"), [[], "unsafe_set_dtype", ["$B", 0, "float16"]]]),
    ("product_relu", [block("C"), [[], "unsafe_set_dtype", ["$C", 0, "float16"]]]),
    ("stencil", [block("B"), [[], "unsafe_set_dtype", ["$B", 0, "float64"]]]),
]


def operands(method, values, known):
    values = [known[v[1:]] if isinstance(v, str) and v.startswith("$") else v for v in values]
    if method == "reindex":
        values[1:3] = [tuple(values[1:3])]
    if method == "transform_layout":
        values = [values[0], tuple(values[1:3]), MAPS[values[3]]]
    if method == "transform_block_layout":
        values = [values[0], MAPS[values[1]]]
    return values


def run(func, steps):
    sch, known = s_tir.Schedule(func), {}
    for names, method, values in steps:
        made = getattr(sch, method)(*operands(method, values, known))
        made = [] if made is None else list(made) if isinstance(made, list) else [made]
        known.update(zip(names, made))
    return sch.mod["main"].with_attr("global_symbol", "main").script()


if __name__ == "__main__":
    funcs = {f.__name__ if hasattr(f, "__name__") else str(f.attrs["global_symbol"]): f for f in PROGRAMS}
    programs = {name: f.with_attr("global_symbol", "main").script() for name, f in funcs.items()}
    cases = []
    for program, steps in CASES:
        try:
            after = run(funcs[program], steps)
        except Exception as error:
            raise SystemExit(f"{program} {steps[-1]}: {str(error)[-600:]}")
        cases.append({"program": program, "steps": steps, "after": after})
    print(json.dumps({"programs": programs, "cases": cases}, indent=1))
