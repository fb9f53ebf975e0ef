"""Loops that count by another number than one: nodes, their texts, and what is made of them."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, s_tir, tirx
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T
from relaxide.script.ir_builder import IRBuilder
from relaxide.script.ir_builder import tirx as TB


@T.prim_func
def thirds(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
    for i in range(1, n, 3):
        B[i] = A[i] + i
    for i in T.unroll(0, 16, step=5):
        for j in T.parallel(i, 16, step=8):
            B[j] = B[j] * 2


def expected(a, n):
    b = np.zeros(16, "int32")
    for i in range(1, n, 3):
        b[i] = a[i] + i
    for i in range(0, 16, 5):
        for j in range(i, 16, 8):
            b[j] *= 2
    return b


@pytest.mark.parametrize("target", ["llvm", "c"])
@pytest.mark.parametrize("n", [0, 1, 2, 16])
def test_compiled_kernels_count_by_steps(target, n):
    compiled = tvm.compile(thirds, target=target)
    a, b = np.arange(16, dtype="int32"), tvm.runtime.tensor(np.zeros(16, "int32"))
    compiled(tvm.runtime.tensor(a), b, n)
    np.testing.assert_array_equal(b.numpy(), expected(a, n))


def test_a_step_is_part_of_the_node_and_of_its_text():
    loop = thirds.body.seq[0]
    assert (int(loop.step), str(loop.extent)) == (3, "n - 1")
    assert "range(1, 1 + (n - 1), 3)" in thirds.script() and "step=8" in thirds.script()
    tvm.ir.assert_structural_equal(tvm.script.from_source(thirds.script()), thirds)
    i = tirx.Var("i", "int32")
    made = [tirx.For(i, 0, 9, tirx.ForKind.SERIAL, tirx.Evaluate(i), step=step) for step in (None, 1, 2, 3)]
    assert made[0].step is None and tvm.ir.structural_equal(made[0], made[1])
    assert not tvm.ir.structural_equal(made[2], made[3])
    assert int(tvm.ir.load_json(tvm.ir.save_json(made[2])).step) == 2


def test_builders_take_steps():
    with IRBuilder() as builder, TB.prim_func():
        TB.func_name("f")
        A = TB.arg("A", TB.Buffer((16,), "int32"))
        with TB.serial(0, 16, step=4) as i:
            TB.buffer_store(A, i, [i])
    assert "range(0, 16, 4)" in builder.get().script()


def test_a_loop_without_an_end_is_refused():
    i = tirx.Var("i", "int32")
    with pytest.raises(ValueError, match="counts by zero"):
        tirx.For(i, 0, 9, tirx.ForKind.SERIAL, tirx.Evaluate(i), step=0)
    with pytest.raises(tvm.error.DiagnosticError, match="counts by zero"):
        tvm.script.from_source("@T.prim_func\ndef f(A: T.Buffer((4,))):\n    for i in range(0, 4, 0):\n        A[i] = 0.0")


@pytest.mark.parametrize("step", ["-2", "n"])
def test_a_step_that_may_not_be_positive_is_refused_where_it_matters(step):
    text = f"""
@T.prim_func
def f(A: T.Buffer((16,), "int32"), n: T.int32):
    for i in T.serial(0, 16, step={step}):
        A[i] = 1
"""
    func = tvm.script.from_source(text)
    tvm.ir.assert_structural_equal(tvm.script.from_source(func.script()), func)
    module = tvm.IRModule({"f": func})
    for use in (s_tir.transform.CanonicalizeLoop(), tirx.transform.UnrollLoop(), s_tir.Schedule, tvm.compile):
        with pytest.raises(Exception, match="may not be positive"):
            use(module)


def test_schedules_work_on_the_iterations():
    @T.prim_func(s_tir=True)
    def evens(A: T.Buffer((16,), "int32")):
        for i in range(0, 16, 2):
            with T.sblock("B"):
                vi = T.axis.opaque(16, i)
                A[vi] = 7

    schedule = s_tir.Schedule(evens)
    (loop,) = schedule.get_loops(schedule.get_sblock("B"))
    assert int(schedule.get(loop).extent) == 8
    schedule.split(loop, [2, 4])
    result = tvm.runtime.tensor(np.zeros(16, "int32"))
    tvm.compile(schedule.mod, target="llvm")["main"](result)
    assert result.numpy().tolist() == [7, 0] * 8


def test_programs_fuse_kernels_with_steps():
    @I.ir_module
    class Module:
        @T.prim_func(private=True, s_tir=True)
        def twice(A: T.Buffer((T.int64(8),), "float32"), B: T.Buffer((T.int64(8),), "float32")):
            for i in range(0, 8, 4):
                for j in range(4):
                    with T.sblock("B"):
                        v = T.axis.spatial(T.int64(8), T.Cast("int64", i + j))
                        B[v] = A[v] * T.float32(2.0)

        @R.function
        def main(x: R.Tensor((8,), "float32")):
            cls = Module
            with R.dataflow():
                y = R.call_tir(cls.twice, (x,), out_ty=R.Tensor((8,), "float32"))
                z = R.add(y, y)
                R.output(z)
            return z

    x = np.arange(8, dtype="float32")
    vm = relax.VirtualMachine(tvm.compile(Module, target="llvm"), tvm.cpu())
    np.testing.assert_array_equal(vm["main"](tvm.runtime.tensor(x)).numpy(), 4 * x)
