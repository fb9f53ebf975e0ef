"""Kernels that call each other: as text, as nodes, run, inlined, and under names of their own."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@I.ir_module
class Rows:
    @T.prim_func
    def main(A: T.Buffer((80, 16), "float32"), B: T.Buffer((64, 16), "float32")):
        for i in range(64):
            Rows.row(T.address_of(A[i, 0]), T.address_of(B[i, 0]), i, T.float32(0.5))

    @T.prim_func(private=True)
    def row(a: T.handle("float32"), b: T.handle("float32"), n: T.int32, s: T.float32):
        A = T.decl_buffer((16, 16), "float32", data=a)
        B = T.decl_buffer((16,), "float32", data=b)
        for i in range(16):
            B[i] = T.Cast("float32", n) * s
            for j in range(16):
                B[i] = B[i] + A[i, j]


def _rows_by_numpy(a):
    return np.stack([a[i : i + 16].sum(1) + i * np.float32(0.5) for i in range(64)])


def _run_rows(mod, target):
    a, b = np.random.default_rng(0).random((80, 16), "float32"), tvm.runtime.tensor(np.zeros((64, 16), "float32"))
    tvm.compile(mod, target=target)["main"](tvm.runtime.tensor(a), b)
    np.testing.assert_allclose(b.numpy(), _rows_by_numpy(a), rtol=1e-5)


def test_text_reads_back():
    assert "Module.row(T.address_of(A[i, 0]), T.address_of(B[i, 0]), i, T.float32(0.5))" in Rows.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(Rows.script()), Rows)


def test_callee_is_the_modules_function():
    call = Rows["main"].body.body.value
    assert isinstance(call.op, tvm.ir.GlobalVar)
    assert call.op == Rows.get_global_var("row")
    assert len(call.args) == 4


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_private_kernels_are_called(target):
    _run_rows(Rows, target)


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_results_and_buffers_are_handed_over(target):
    @I.ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
            for i in range(16):
                A[i] = Mod.twice(i) + T.float32(1)
            Mod.total(A, B)

        @T.prim_func(private=True)
        def twice(i: T.int32) -> T.float32:
            return T.Cast("float32", i) * T.float32(2)

        @T.prim_func(private=True)
        def total(A: T.Buffer((16,), "float32"), B: T.Buffer((1,), "float32")):
            B[0] = T.float32(0)
            for i in range(16):
                B[0] = B[0] + A[i]

    a, b = tvm.runtime.tensor(np.zeros(16, "float32")), tvm.runtime.tensor(np.zeros(1, "float32"))
    tvm.compile(Mod, target=target)["main"](a, b)
    np.testing.assert_array_equal(a.numpy(), np.arange(16, dtype="float32") * 2 + 1)
    assert b.numpy()[0] == a.numpy().sum()


def test_callee_that_is_exported_under_another_name():
    @I.ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            for i in range(4):
                A[i] = Mod.next(i)

        @T.prim_func
        def next(i: T.int32) -> T.int32:
            T.func_attr({"global_symbol": "successor"})
            return i + 1

    a = tvm.runtime.tensor(np.zeros(4, "int32"))
    tvm.compile(Mod, target="llvm")["main"](a)
    assert a.numpy().tolist() == [1, 2, 3, 4]


def test_kernels_call_no_relax_functions():
    with pytest.raises(tvm.error.ScriptError, match="kernels call kernels only"):

        @I.ir_module
        class Mod:
            @R.function
            def f(x: R.Tensor((4,), "float32")):
                return x

            @T.prim_func
            def main(A: T.Buffer((4,), "float32")):
                Mod.f(A)


def test_a_called_kernel_is_no_dead_code():
    kept = tvm.relax.transform.DeadCodeElimination()(Rows)
    assert {var.name_hint for var in kept.functions} == {"main", "row"}
    dropped = tvm.relax.transform.DeadCodeElimination()(tvm.IRModule({"main": Rows["row"].with_attr("global_symbol", "main"), "row": Rows["row"]}))
    assert {var.name_hint for var in dropped.functions} == {"main"}


def test_inlined_body_stands_at_its_call():
    @I.ir_module
    class Expected:
        @T.prim_func
        def main(A: T.Buffer((80, 16), "float32"), B: T.Buffer((64, 16), "float32")):
            for i in range(64):
                A_1 = T.decl_buffer((16, 16), "float32", data=T.address_of(A[i, 0]))
                B_1 = T.decl_buffer((16,), "float32", data=T.address_of(B[i, 0]))
                for j in range(16):
                    B_1[j] = T.Cast("float32", i) * T.float32(0.5)
                    for k in range(16):
                        B_1[j] = B_1[j] + A_1[j, k]

    inlined = tvm.tirx.transform.InlinePrivateFunctions()(Rows)
    tvm.ir.assert_structural_equal(inlined, Expected)
    _run_rows(inlined, "llvm")


def test_an_argument_that_the_body_changes_is_read_once_before_it():
    @I.ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((4,), "int32")):
            Mod.fill(T.address_of(A[0]), A[0])

        @T.prim_func(private=True)
        def fill(a: T.handle("int32"), value: T.int32):
            A = T.decl_buffer((4,), "int32", data=a)
            for i in range(4):
                A[i] = value + 1

    inlined = tvm.tirx.transform.InlinePrivateFunctions()(Mod)
    assert len(inlined.functions) == 1
    a = tvm.runtime.tensor(np.array([5, 0, 0, 0], "int32"))
    tvm.compile(inlined, target="llvm")["main"](a)
    assert a.numpy().tolist() == [6, 6, 6, 6]


def test_what_calls_itself_or_is_for_another_target_stays():
    @I.ir_module
    class Mod:
        @T.prim_func
        def main(A: T.Buffer((16,), "float32")):
            Mod.shift(T.address_of(A[0]), 16)
            Mod.other(T.address_of(A[0]))

        @T.prim_func(private=True)
        def shift(a: T.handle("float32"), n: T.int32):
            A = T.decl_buffer((n,), "float32", data=a)
            A[0] = A[0] + T.float32(1)
            if n > 1:
                Mod.shift(T.address_of(A[1]), n - 1)

        @T.prim_func(private=True)
        def other(a: T.handle("float32")):
            T.func_attr({"target": T.target("cuda")})
            A = T.decl_buffer((1,), "float32", data=a)
            A[0] = T.float32(0)

    tvm.ir.assert_structural_equal(tvm.tirx.transform.InlinePrivateFunctions()(Mod), Mod)
