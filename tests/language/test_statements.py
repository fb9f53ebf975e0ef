"""Early ends, declared buffers and offsets: each side reads what the other prints, and computes the same, with LLVM and in C."""

import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

import relaxide
from relaxide import tirx

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

#: Bodies of kernels over ``A``, sixteen floats from -4.875 on.
BODIES = {
    "break": """
for i in range(16):
    if A[i] > T.float32(1.0):
        break
    A[i] = T.float32(9.0)
""",
    "continue": """
for i, j in T.grid(4, 4):
    if A[i * 4 + j] > T.float32(1.0):
        continue
    A[i * 4 + j] = A[i * 4 + j] * T.float32(2.0)
""",
    "break of the inner loop": """
for i in range(4):
    for j in range(4):
        if A[i * 4 + j] > T.float32(0.0):
            break
        A[i * 4 + j] = T.float32(9.0)
    A[i * 4 + 3] = A[i * 4 + 3] + T.float32(100.0)
""",
    "while": """
n: T.int32 = 0
while n < 16:
    n = n + 1
    if n % 3 == 0:
        continue
    if n > 11:
        break
    A[n] = T.float32(50.0)
""",
    "what follows is not reached": """
for i in range(4):
    A[i] = T.float32(1.0)
    break
    A[i] = T.float32(2.0)
""",
    "memory of an iteration": """
for i in range(4):
    s = T.alloc_buffer((4,))
    for j in range(4):
        s[j] = A[i * 4 + j]
    if s[0] > T.float32(0.0):
        continue
    A[i * 4] = s[3]
""",
    "return": """
for i in range(16):
    if A[i] > T.float32(2.0):
        return i
    A[i] = T.float32(9.0)
return -1
""",
    "return of an unrolled loop": """
for i in T.unroll(8):
    if A[i] > T.float32(-2.0):
        return i
    A[i] = T.float32(9.0)
return -1
""",
    "views": """
B = A.view(4, 4)
B[1, 1] = B[2, 3]
C = A.view("int32")
C[2] = C[2] + 1
D = T.decl_buffer((4,), data=A.data, elem_offset=4)
D[1] = T.float32(70.0)
E = T.decl_buffer((2, 2), data=A.data, strides=(8, 2))
E[1, 1] = T.float32(80.0)
""",
    "views that move": """
for i in range(5):
    B = T.decl_buffer((2,), data=A.data, elem_offset=i * 3)
    B[1] = B[0]
for i in T.unroll(3):
    C = T.decl_buffer((2,), data=T.address_of(A[i * 5]))
    C[0] = C[1]
p: T.let[T.handle("float32")] = T.address_of(A[2])
D = T.decl_buffer((4,), data=p)
D[1] = T.float32(60.0)
""",
}

TARGETS = ["llvm"] + (["c"] if shutil.which("cc") else [])


def compiled(package, func, target="llvm"):
    """A kernel to call. C goes by way of its compiler."""
    built = package.compile(func, target=target)
    if target != "c":
        return built["main"]
    folder = pathlib.Path(tempfile.mkdtemp())
    built.export_library(str(folder / "kernel.c"))
    command = ["cc", "-O0", "-DRELAXIDE_SHARED_LIBRARY", "-shared", "-fPIC", "-o", "kernel.so", "kernel.c", "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    return package.runtime.load_module(str(folder / "kernel.so")).get_function("main", True)


def kernel(package, text):
    if package is tvm:
        from tvm.script import tirx as T

        return tvm.script.from_source(text, extra_vars={"T": T})
    read = relaxide.script.from_source(text)
    return read["main"] if isinstance(read, relaxide.IRModule) else read


def printed(func):
    """A kernel as text, without what stands above it."""
    text = func.script()
    return text[text.index("@T.") :].rstrip()


def source(body, parameter='A: T.Buffer((16,), "float32")'):
    lines = "\n".join("    " + line for line in body.strip().splitlines())
    return f"@T.prim_func\ndef main({parameter}):\n{lines}\n"


def values(package, func, target="llvm"):
    tensor = package.runtime.tensor((np.arange(16, dtype="float32") - 6.5) * 0.75)
    result = compiled(package, func, target)(tensor)
    return result, tensor.numpy()


@pytest.mark.parametrize("name", BODIES)
def test_kernels_are_read_and_computed_alike(name):
    ours, theirs = (kernel(package, source(BODIES[name])) for package in (relaxide, tvm))
    assert printed(ours) == printed(theirs)
    relaxide.ir.assert_structural_equal(kernel(relaxide, printed(theirs)), ours)
    expected = values(tvm, theirs)
    for target in TARGETS:
        result, found = values(relaxide, ours, target)
        assert result == expected[0], target
        np.testing.assert_array_equal(found, expected[1], err_msg=target)


def test_loops_that_count_by_more_than_one():
    text = source("""
for i in range(1, 15, 3):
    A[i] = A[i] + T.float32(10.0)
for i in T.serial(0, 16, step=5):
    for j in T.parallel(0, 16, step=4):
        A[j] = A[j] * T.float32(2.0)
""")
    theirs = kernel(tvm, text)
    _, expected = values(tvm, theirs)
    for read in (text, printed(theirs)):
        np.testing.assert_array_equal(values(relaxide, kernel(relaxide, read))[1], expected)


def nodes(package):
    tir = package.tirx
    A, i = tir.decl_buffer((16,), "float32", name="A"), tir.Var("i", "int32")
    one = tir.BufferStore(A, tir.const(1.0, "float32"), [i])
    ends = [tir.IfThenElse(A[i] > tir.const(bound, "float32"), end, None) for bound, end in
            ((3.0, tir.Return(tir.const(5, "int32"))), (2.0, tir.Break()), (1.0, tir.Continue()))]
    loop = tir.For(i, 0, 16, tir.ForKind.SERIAL, tir.SeqStmt([*ends, one]))
    B = tir.decl_buffer((4, 4), "float32", name="B")
    return tir.PrimFunc([A], tir.SeqStmt([tir.DeclBuffer(B, data=A.data), loop, tir.Return(tir.const(7, "int32"))]))


def test_nodes_print_as_words():
    func = nodes(relaxide).with_attr("global_symbol", "main")
    assert printed(func) == printed(nodes(tvm).with_attr("global_symbol", "main"))
    assert values(relaxide, func)[0] == 7
    with pytest.raises(TypeError, match="physical data binding"):
        tirx.DeclBuffer(tirx.decl_buffer((4,), "float32"))
    kinds = [type(stmt).__name__ for stmt in func.body.seq]
    assert kinds == ["DeclBuffer", "For", "Return"]


def moved(package, elements):
    base = package.runtime.tensor(np.arange(24, dtype="float32"))
    return base._create_view((16,), dtype="float32", relative_byte_offset=4 * elements)


@pytest.mark.parametrize("options", ["", ", offset_factor=1", ", offset_factor=4", ", elem_offset=2", ", strides=(2,)",
                                     ", align=16, offset_factor=2"])
def test_offsets_are_held_against_the_callers(options):
    text = source(f'B = T.match_buffer(A, (16,), "float32"{options})\nfor i in range(8):\n    B[i] = T.float32(1)', "A: T.handle")
    funcs = [kernel(package, text) for package in (relaxide, tvm)]
    assert printed(funcs[0]) == printed(funcs[1])
    compiled = [package.compile(func, target="llvm")["main"] for package, func in zip((relaxide, tvm), funcs)]
    # With the strides wrong too, TVM complains of those first, Relaxide of the offset.
    for elements in (0,) if "strides" in options else (0, 1, 2, 4):
        found = []
        for package, main in zip((relaxide, tvm), compiled):
            tensor = moved(package, elements)
            try:
                main(tensor)
                found.append(tensor.numpy().tolist())
            except Exception as error:
                found.append(f"{type(error).__name__}: {error}")
        assert found[0] == found[1], elements
