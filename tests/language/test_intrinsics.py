"""What ``T.`` offers of scalars and vectors: read alike, and the values that TVM computes, with LLVM and in C.

All expressions of one element type are one kernel, so that each side compiles once.
"""

import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

import relaxide

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

#: Expressions over ``A``, floats, and ``I``, integers from -6 on, at ``i`` below sixteen.
FLOATS = """
T.abs(A[i])
T.atan2(A[i], A[15 - i])
T.copysign(A[i], A[15 - i])
T.fma(A[i], A[15 - i], A[i])
T.hypot(A[i], A[15 - i])
T.ldexp(A[i], 3)
T.ldexp(A[i], I[i])
T.nextafter(A[i], A[15 - i])
T.infinity("float32")
T.f32(2.5)
T.float32(I[i])
T.likely(A[i] > 0.0)
T.Select(T.likely(A[i] > 0.0), A[i], 0.0)
T.reinterpret("float32", I[i] & 255)
T.call_extern("float32", "sqrtf", A[i] * A[i])
T.call_pure_extern("float32", "fabsf", A[i])
T.max_value("float32")
T.min_value("float32")
T.trunc(A[i])
T.nearbyint(A[i])
T.round(A[i])
T.isnan(A[i])
T.if_then_else(A[i] > 0.0, A[i], 1.0)
A[i] if I[i] > 0 else A[15 - i]
A.vload([i])
T.FloatImm("float32", 2.5)
T.sigmoid(A[i])
-A[i]
""".strip().splitlines()

INTEGERS = """
T.abs(I[i])
T.BitwiseAnd(I[i], 6)
T.bitwise_or(I[i], 6)
T.bitwise_xor(I[i], 6)
T.BitwiseNot(I[i])
T.LShift(I[i], 1)
T.RShift(I[i], 1)
T.shift_left(I[i], 2)
T.shift_right(I[i], 2)
T.clz(I[i])
T.popcount(I[i])
T.truncdiv(I[i], 4)
T.truncmod(I[i], 4)
T.floordiv(I[i], 4)
T.floormod(I[i], 4)
T.ceildiv(I[i], 4)
T.q_multiply_shift(I[i] * 1000 + i, 1073741824, 31, 2)
T.q_multiply_shift(I[i] * 1000 + i, 1518500250, 31, -3)
T.q_multiply_shift_per_axis(I[i] * 1000, 1073741824, 1, 2, 31, False, True)
T.q_multiply_shift_per_axis(I[i] * 1000, 1073741824, 1, 2, 31, True, True)
T.reinterpret("int32", A[i])
T.i32(4)
T.u8(I[i])
T.max_value("int32")
T.min_value("int32")
T.isnullptr(A.data)
T.IntImm("int32", 5)
T.Not(I[i] > 0)
T.ignore_loop_partition(I[i] > 0)
""".strip().splitlines()

#: Statements, each on its own.
STATEMENTS = [
    'A[0:4] = T.vectorlow("float32x4", A[T.Ramp(0, 1, 8)])',
    'A[0:4] = T.vectorhigh("float32x4", A[T.Ramp(0, 1, 8)])',
    'A[8:16] = T.vectorcombine("float32x8", A[T.Ramp(0, 1, 4)], A[T.Ramp(4, 1, 4)])',
    "A[0:4] = T.Shuffle([A[T.Ramp(4, 1, 4)]], [3, 2, 1, 0])",
    "A[0:4] = T.Shuffle([A[T.Ramp(4, 1, 2)], A[T.Ramp(8, 1, 2)]], [3, 2, 1, 0])",
    "A[0] = T.Shuffle([A[T.Ramp(4, 1, 4)]], [2])",
    "A[0:2] = T.Shuffle([A[4], A[9]], [0, 1])",
    "A[0:4] = T.broadcast(T.float32(2), 4)",
    "A[T.ramp(0, 2, 4)] = T.Broadcast(T.float32(2), 4)",
    'A[0:4] = A.vload([4], "float32x4")',
    "T.assume(A[0] > -100.0)\nA[1] = 3.0",
    'p: T.let[T.handle("float32")] = T.tvm_access_ptr(T.type_annotation("float32"), A.data, 3, 4, 2)\n'
    "B = T.decl_buffer((4,), data=p)\nB[0] = 100.0",
]

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


def rows(expressions, dtype):
    stores = "\n        ".join(f"O[{row}, i] = {e}" for row, e in enumerate(expressions))
    return f"""@T.prim_func
def main(A: T.Buffer((16,), "float32"), I: T.Buffer((16,), "int32"), O: T.Buffer(({len(expressions)}, 16), "{dtype}")):
    for i in range(16):
        {stores}
"""


def results(package, func, dtype, count, target="llvm"):
    floats = package.runtime.tensor((np.arange(16, dtype="float32") - 6.5) * 0.75)
    integers = package.runtime.tensor(np.arange(16, dtype="int32") - 6)
    out = package.runtime.tensor(np.zeros((count, 16), dtype))
    compiled(package, func, target)(floats, integers, out)
    return out.numpy()


@pytest.mark.parametrize("expressions, dtype", [(FLOATS, "float32"), (INTEGERS, "int32")], ids=["floats", "integers"])
def test_scalars_have_the_values_of_tvm(expressions, dtype):
    ours, theirs = (kernel(package, rows(expressions, dtype)) for package in (relaxide, tvm))
    assert printed(ours).splitlines() == printed(theirs).splitlines()
    expected = results(tvm, theirs, dtype, len(expressions))
    for target in TARGETS:
        found = results(relaxide, ours, dtype, len(expressions), target)
        different = [e for e, a, b in zip(expressions, found, expected) if not np.allclose(a, b, rtol=2e-6, equal_nan=True)]
        assert not different, target


@pytest.mark.parametrize("body", STATEMENTS)
def test_lanes_and_addresses_are_those_of_tvm(body):
    lines = "\n".join("    " + line for line in body.splitlines())
    text = f'@T.prim_func\ndef main(A: T.Buffer((16,), "float32")):\n{lines}\n'
    ours, theirs = (kernel(package, text) for package in (relaxide, tvm))
    assert printed(ours) == printed(theirs)
    values = []
    for package, func, target in [(tvm, theirs, "llvm"), *((relaxide, ours, target) for target in TARGETS)]:
        tensor = package.runtime.tensor((np.arange(16, dtype="float32") - 6.5) * 0.75)
        compiled(package, func, target)(tensor)
        values.append(tensor.numpy())
    for found in values[1:]:
        np.testing.assert_array_equal(found, values[0])


def test_functions_of_llvm_are_called_by_name():
    text = rows(['T.call_llvm_intrin("float32", "llvm.sqrt", A[i] * A[i])',
                 'T.call_llvm_pure_intrin("float32", "llvm.fma", A[i], A[i], A[i])'], "float32")
    ours, theirs = (kernel(package, text) for package in (relaxide, tvm))
    assert printed(ours) == printed(theirs)
    np.testing.assert_array_equal(results(relaxide, ours, "float32", 2), results(tvm, theirs, "float32", 2))
    with pytest.raises(Exception, match="a call of LLVM's `llvm.sqrt` is not supported by the C back end"):
        relaxide.compile(ours, target="c")


def test_what_no_code_is_made_for_is_named():
    func = kernel(relaxide, rows(['T.call_intrin("float32", "tirx.lookup_param", A[i])'], "float32"))
    with pytest.raises(Exception, match="intrinsic `tirx.lookup_param` is not supported by the LLVM back end"):
        relaxide.compile(func, target="llvm")


def test_only_functions_of_llvm_are_called_as_such():
    func = kernel(relaxide, rows(['T.call_llvm_pure_intrin("float32", "exit", A[i])'], "float32"))
    with pytest.raises(Exception, match="`exit` is no name of a function of LLVM"):
        relaxide.compile(func, target="llvm")
