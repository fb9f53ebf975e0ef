"""Programs that are built by `with` blocks are those that are read from text."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import relax, tirx
from relaxide.error import DiagnosticError, ScriptError
from relaxide.ir import assert_structural_equal
from relaxide.script import from_source
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T
from relaxide.script.ir_builder import IRBuilder
from relaxide.script.ir_builder import ir as IB
from relaxide.script.ir_builder import relax as RB
from relaxide.script.ir_builder import tirx as TB


def test_a_kernel_of_blocks():
    with IRBuilder() as builder:
        with TB.prim_func():
            TB.func_name("scale")
            A, B = TB.arg("A", TB.Buffer((8, 4), "float32")), TB.arg("B", TB.Buffer((8,), "float32"))
            with TB.grid(8, 4) as (i, k):
                with TB.sblock("sum"):
                    vi, vk = TB.axis.remap("SR", [i, k])
                    with TB.init():
                        TB.buffer_store(B, 0.0, [vi])
                    TB.buffer_store(B, B[vi] + A[vi, vk], [vi])

    @T.prim_func
    def scale(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 4):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                B[vi] = B[vi] + A[vi, vk]

    assert_structural_equal(builder.get(), scale)


def test_statements_of_a_kernel():
    with IRBuilder() as builder:
        with TB.prim_func():
            n = TB.arg("n", TB.int32())
            A = TB.arg("A", TB.Buffer((16,), "int32"))
            with TB.If(n > 3):
                with TB.Then():
                    with TB.parallel(16) as i:
                        TB.buffer_store(A, i, [IRBuilder.name("place", i)])
                with TB.Else():
                    TB.evaluate(0)
            with TB.While(A[0] < n):
                x = TB.bind(A[0] + 1)
                TB.buffer_store(A, x, [0])
    func = builder.get()
    assert "for place in T.parallel(16):" in func.script() and "while A[0] < n:" in func.script()
    assert tirx.analysis.verify_well_formed(func)


def test_a_module_of_relax_functions():
    with IRBuilder() as builder:
        with IB.ir_module():
            with RB.function():
                RB.func_name("main")
                x = RB.arg("x", R.Tensor((4, 4), "float32"))
                with RB.dataflow() as block:
                    y = RB.emit(RB.add(x, x))
                    RB.output(RB.emit(RB.nn.relu(IRBuilder.name("twice", y))))
                (z,) = block.output_vars
                RB.func_ret_value(z)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 4), "float32")):
            with R.dataflow():
                twice = R.add(x, x)
                z = R.nn.relu(twice)
                R.output(z)
            return z

    assert_structural_equal(builder.get(), Module)
    assert "twice" in builder.get().script()


def test_the_names_of_the_script_write_while_a_builder_is_open():
    with IRBuilder() as builder:
        with RB.function():
            R.func_name("main")
            condition = R.arg("c", R.Tensor((), "bool"))
            x = R.arg("x", R.Tensor((2,), "float32"))
            with RB.If(condition) as choice:
                with RB.Then():
                    R.emit(R.add(x, x))
                with RB.Else():
                    R.emit(R.multiply(x, x))
            R.func_ret_value(choice.var)
    vm = relax.VirtualMachine(tvm.compile(tvm.IRModule({"main": builder.get()})), tvm.cpu())
    given = [tvm.runtime.tensor(np.array(True)), tvm.runtime.tensor(np.array([1.0, 3.0], "float32"))]
    assert vm["main"](*given).numpy().tolist() == [2.0, 6.0]


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="no IRBuilder is open"):
        IRBuilder.current()
    with IRBuilder() as builder:
        with pytest.raises(ValueError, match="T.arg stands in no PrimFuncFrame"):
            TB.arg("n", TB.int32())
        with pytest.raises(ValueError, match="nothing has been built"):
            builder.get()
        with pytest.raises(ValueError, match="the function has no result"):
            with RB.function():
                RB.arg("x", R.Tensor((2,), "float32"))
        with pytest.raises(ValueError, match="R.output names x"):
            with RB.function():
                x = RB.arg("x", R.Tensor((2,), "float32"))
                with RB.dataflow():
                    RB.output(x)
        assert builder.frames == []


def test_what_the_reader_refuses_is_a_diagnostic():
    with pytest.raises(DiagnosticError) as refused:
        from_source("@T.prim_func\ndef f(a: T.int32):\n    T.evaluate(b)\n")
    assert isinstance(refused.value, ScriptError) and isinstance(refused.value, SyntaxError) and ":3:" in str(refused.value)


def test_programs_with_threads_maps_and_kernels_of_te():
    @T.prim_func
    def launched(A: T.Buffer((8,), "float32")):
        bx = T.launch_thread("blockIdx.x", 2)
        tx = T.env_thread("threadIdx.x")
        with T.launch_thread(tx, 4):
            A[bx * 4 + tx] = 1.0

    @T.prim_func
    def bound(A: T.Buffer((8,), "float32")):
        for bx in T.thread_binding(2, "blockIdx.x"):
            for tx in T.thread_binding(4, thread="threadIdx.x"):
                A[bx * 4 + tx] = 1.0

    assert_structural_equal(launched.with_attr("global_symbol", "bound"), bound)

    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((4, 6), "float32")):
            with R.dataflow():
                y = R.layout_transform(x, index_map=lambda i, j: (j, i))
                z = R.emit_te(tvm.topi.add, y, y)
                R.output(z)
            return z

    assert [str(dim) for dim in Module["main"].ret_ty.shape] == ["T.int64(6)", "T.int64(4)"]
    assert any(isinstance(func, tirx.PrimFunc) for func in Module.functions.values())
    x = relax.Var("x", R.Tensor((4, 6), "float32"))
    assert [str(dim) for dim in relax.op.layout_transform(x, index_map=lambda i, j: (j, i)).ty.shape] == ["T.int64(6)", "T.int64(4)"]


def test_statements_alone_have_the_names_that_were_given():
    with IRBuilder() as ib:
        with TB.grid(4, 8) as (i, j):
            IRBuilder.name_many(["row", "column"], [i, j])
            TB.evaluate(i + j)
    assert ib.get().script().strip() == "for row, column in T.grid(4, 8):\n    T.evaluate(row + column)"
    with IRBuilder() as ib:
        with TB.Assert(True, "never"):
            TB.evaluate(1)
    assert [type(part).__name__ for part in ib.get()] == ["AssertStmt", "Evaluate"]


@pytest.mark.parametrize("said", range(4))
def test_a_block_outside_of_a_kernel_says_which_regions_are_to_be_found(said):
    with IRBuilder() as builder:
        A, v = TB.Buffer((8,), "float32"), TB.int32()
        with TB.sblock("block"):
            if said & 1:
                TB.reads(A[0:4])
            if said & 2:
                TB.writes(A[4:8])
            TB.where(v > 1)
            TB.buffer_store(A, 1.0, [v])
    realized = builder.get()
    block = realized.block
    assert (len(block.reads), len(block.writes)) == (said & 1, said >> 1)
    found = {name: int(value) for name, value in block.annotations.items()}
    assert found == ({} if said == 3 else {"tirx.script_parsing_detect_access": 3 - said})
    assert str(realized.predicate) == "v > 1"


def test_a_store_may_be_of_some_lanes():
    buffer, lanes = TB.Buffer((16,), "float32"), TB.broadcast(TB.bool(True), 4)
    with IRBuilder() as builder:
        TB.buffer_store(buffer, TB.broadcast(TB.float32(1), 4), [TB.ramp(0, 1, 4)], lanes)
    tvm.ir.assert_structural_equal(builder.get().predicate, lanes)


def test_the_condition_of_a_check_may_come_first():
    x, kind = tirx.Var("x", "int32"), tvm.ir.StringImm("ValueError")
    first, second = tirx.AssertStmt(x > 0, kind, ["too small"]), tirx.AssertStmt(kind, x > 0, ["too small"])
    tvm.ir.assert_structural_equal(first, second, map_free_vars=True)
    assert str(first.condition) == "x > 0" and first.error_kind == "ValueError"
