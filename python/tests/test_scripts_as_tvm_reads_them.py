"""Kernels, scalars and targets in the forms that TVM's own programs use."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import relax, sym, te, tirx
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T
from relaxide.target import Target, codegen


def _run(module, *args):
    vm = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    return vm["main"](*args).numpy()


# Kernels.


def test_a_variable_of_te_is_one_of_the_kernel():
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle):
        length = te.var("length")
        offset = te.size_var("offset", "int64")
        A = T.match_buffer(a, (length,), "float32", elem_offset=offset, offset_factor=1)
        B = T.match_buffer(b, (length,), "float32")
        for i in range(length):
            with T.sblock("B"):
                vi = T.axis.spatial(length, i)
                B[vi] = A[vi]

    a, b = main.buffers
    assert a.shape[0].same_as(b.shape[0]) and str(a.shape[0].dtype) == "int32"
    assert str(a.elem_offset.dtype) == "int64"


def test_an_external_function_takes_its_name_first_or_its_dtype():
    @T.prim_func(s_tir=True)
    def behind():
        T.evaluate(T.call_pure_extern("f", 1, dtype="int32"))

    @T.prim_func(s_tir=True)
    def in_front():
        T.evaluate(T.call_pure_extern("int32", "f", 1))

    tvm.ir.assert_structural_equal(behind.body, in_front.body)


def test_a_macro_stands_for_its_statements():
    @T.macro
    def twice(buffer, at):
        buffer[at] = buffer[at] * T.float32(2)

    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32")):
        for i in range(4):
            twice(A, i)

    data = tvm.runtime.tensor(np.arange(4, dtype="float32"))
    tvm.compile(main, "llvm")(data)
    assert data.numpy().tolist() == [0, 2, 4, 6]


def test_buffers_may_be_annotations_of_a_block():
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.sblock("B"):
                vi = T.axis.spatial(4, i)
                T.sblock_attr({"layout_free_placeholders": [A]})
                B[vi] = A[vi]

    assert '"layout_free_placeholders": [A]' in main.script()
    tvm.ir.assert_structural_equal(main, tvm.script.from_source(main.script()))


class _Undecorated:
    @T.prim_func(s_tir=True)
    def kernel(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)


def test_a_function_in_a_plain_class_is_read_where_it_stands():
    assert isinstance(_Undecorated.kernel, tirx.PrimFunc)


def test_a_block_says_each_thing_once():
    with pytest.raises(tvm.error.DiagnosticError, match="has an axis `vi` already"):

        @T.prim_func(s_tir=True)
        def twice_an_axis(A: T.Buffer((4, 4), "float32")):
            for i, j in T.grid(4, 4):
                with T.sblock("B"):
                    vi = T.axis.spatial(4, i)
                    vi = T.axis.spatial(4, j)  # noqa: PLW0127
                    A[vi, vi] = T.float32(0)

    with pytest.raises(tvm.error.DiagnosticError, match="T.reads stands twice in a block"):

        @T.prim_func(s_tir=True)
        def twice_the_reads(A: T.Buffer((4,), "float32")):
            for i in range(4):
                with T.sblock("B"):
                    vi = T.axis.spatial(4, i)
                    T.reads(A[0:2])
                    T.reads(A[0:4])
                    A[vi] = A[vi] + T.float32(1)


# Scalars.


def test_literals_are_computed_with():
    one, four = tirx.FloatImm("float32", 1.0), tirx.FloatImm("float32", 4.0)
    assert (one / four).value == 0.25 and (one + 0.5).value == 1.5
    assert bool(one < four) and not bool(one > four)
    assert (tirx.const(6, "int32") & 3).value == 2 and (tirx.const(6, "int32") << 3).value == 48
    assert tirx.ceil(tirx.const(1.5, "float32")).value == 2.0
    assert not bool(tirx.isnan(one))
    # What single precision cannot hold is rounded, or infinite.
    assert (tirx.const(16777216.0, "float32") + 1.0).value == 16777216.0
    assert (tirx.const(3e38, "float32") * 10.0).value == float("inf")


@pytest.mark.parametrize(
    "make",
    [
        lambda: tirx.floordiv(tirx.const(5, "int32"), tirx.const(0, "int32")),
        lambda: tirx.Var("x", "int32") << 32,
        lambda: tirx.Var("x", "int32") >> -1,
        lambda: tirx.const(1.5, "float32") & 1.0,
        lambda: ~tirx.const(1.5, "float32"),
        lambda: tirx.Ramp(0, 1, tirx.vscale()),
    ],
)
def test_operands_that_cannot_be_are_refused(make):
    with pytest.raises(RuntimeError):
        make()


def test_vectors_tell_their_lanes():
    assert tirx.Ramp(0, 1, 4).lanes == 4 and str(tirx.Ramp(0, 1, 4).dtype) == "int32x4"
    lanes = tirx.Broadcast(0, 4 * tirx.vscale()).lanes
    assert lanes.a.op.name == "tirx.vscale" and lanes.b == 4


def test_the_function_of_a_scalar_call_has_a_name():
    call = tirx.exp(tirx.Var("x", "float32"))
    assert call.op == "tirx.exp" and call.op.name == "tirx.exp"
    assert call.op.same_as(tvm.ir.Op.get("tirx.exp")) and not call.op.same_as(tvm.ir.Op.get("tirx.log"))


def test_sets_of_several_variables_are_told_apart():
    # An object of Python may get the address of one that is gone.
    for _ in range(50):
        x, y = tirx.Var("x", "int32"), tirx.Var("y", "int32")
        found = sym.Analyzer().int_set(x - y, {x: sym.IntervalSet(0, 10), y: sym.IntervalSet(1, 11)})
        assert (int(found.min_value), int(found.max_value)) == (-11, 9)


# Targets.


def test_targets_tell_numbers_lists_and_what_is_known_of_devices():
    assert Target({"kind": "cuda", "libs": ["cublas", "cudnn"]}).attrs["libs"] == ["cublas", "cudnn"]
    assert Target("cuda").attrs["thread_warp_size"] == 32
    assert Target("nvidia/nvidia-a100").attrs["max_shared_memory_per_block"] == 49152
    assert Target("nvidia/nvidia-a100").with_host("llvm").attrs["max_shared_memory_per_block"] == 49152


def test_a_triple_without_a_system_is_of_linux():
    target = Target({"kind": "llvm", "mtriple": "x86_64--", "mcpu": "haswell"})
    assert codegen.llvm_cpu_has_features(["avx2", "fma"], target)
    assert not codegen.llvm_cpu_has_features("avx512f", target)


@pytest.mark.parametrize("kind", [ValueError, RuntimeError])
def test_a_missing_target_is_an_error_of_both_kinds(kind):
    with pytest.raises(kind, match="no target is set"):
        Target.current(allow_none=False)


# Operators.


def test_a_scalar_fills_a_tensor_without_dimensions():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((), "float32"), v: R.Prim("float32")):
            return R.full_like(x, v)

    assert _run(Module, tvm.runtime.tensor(np.float32(2)), 7.0) == 7


def test_what_a_kernel_does_not_read_it_is_not_given():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor(("n", 3), "float32")):
            return R.full_like(x, R.const(3.5, "float32"), dtype="int32")

    lowered = relax.transform.LegalizeOps()(Module)
    assert len(lowered["full"].buffers) == 1
    data = tvm.runtime.tensor(np.zeros((2, 3), "float32"))
    assert _run(Module, data).tolist() == [[3] * 3] * 2


def test_large_steps_of_half_precision_do_not_overflow_on_the_way():
    @I.ir_module
    class Module:
        @R.function
        def main(x: R.Tensor((2,), "int16")):
            return R.dequantize(x, R.const(0.5, "float16"), R.const(-32768, "int16"), out_dtype="float16")

    data = tvm.runtime.tensor(np.array([32767, 0], "int16"))
    assert np.allclose(_run(Module, data), [32767.5, 16384], rtol=1e-3)


# What is refused.


def test_a_result_in_place_has_the_type_of_its_argument():
    @I.ir_module(check_well_formed=False)
    class Module:
        @R.function
        def main(x: R.Tensor((16,), "float16")):
            y = R.call_tir_inplace(Module.add_one, x, inplace_indices=[0], out_ty=R.Tensor((32,), "float16"))
            return y

        @T.prim_func(s_tir=True)
        def add_one(A: T.Buffer((16,), "float16")):
            for i in range(16):
                with T.sblock("A"):
                    vi = T.axis.spatial(16, i)
                    A[vi] = A[vi] + T.float16(1)

    assert not relax.analysis.check_well_formed(Module)


def test_dimensions_are_integers():
    for dtype in ("float32", "int32"):
        length = tirx.Var("length", dtype)
        for make in (lambda: relax.TensorType([length], "float32"), lambda: relax.ShapeType([length]), lambda: relax.ShapeExpr([length, 3])):
            with pytest.raises(tvm.error.InternalError, match="can only have dtype of int64"):
                make()


def test_annotations_of_a_block_are_joined():
    @T.prim_func
    def kernel():
        with T.sblock():
            T.sblock_attr({"key": {"one": 1}})
            T.sblock_attr({"key": {"two": 2}, "other": 3})
            T.evaluate(0)

    assert kernel.body.block.annotations == {"key": {"one": 1, "two": 2}, "other": 3}
    with pytest.raises(tvm.error.DiagnosticError, match='two values of "key"'):

        @T.prim_func
        def wrong():
            with T.sblock():
                T.sblock_attr({"key": 1})
                T.sblock_attr({"key": 2})
                T.evaluate(0)


def test_pointers_and_addresses():
    @T.prim_func(check_well_formed=False, private=True)
    def from_elsewhere(flag: T.boolean):
        pointer = T.handle("float32")
        A = T.decl_buffer((4, 4), "float32", data=pointer)
        T.evaluate(T.address_of(A))
        T.evaluate(A.access_ptr("r"))

    body = from_elsewhere.body
    assert str(from_elsewhere.params[0].dtype) == "bool" and str(body.seq[1].value) == "T.address_of(A[0, 0])"
    assert "tvm_access_ptr" in str(body.seq[2].value)


def test_an_attribute_of_an_axis_launches_its_variable():
    thread = tirx.Var("tx", "int32")

    @T.prim_func(s_tir=True)
    def said(A: T.Buffer((64,), "float32")):
        T.attr(T.iter_var(thread, T.Range(0, 64), "ThreadIndex", "threadIdx.x"), "thread_extent", 64)
        A[thread] = A[thread] + T.float32(1)

    @T.prim_func(s_tir=True)
    def launched(A: T.Buffer((64,), "float32")):
        with T.launch_thread("threadIdx.x", 64) as tx:
            A[tx] = A[tx] + T.float32(1)

    assert said.body.loop_var.same_as(thread)
    tvm.ir.assert_structural_equal(said.with_attr("global_symbol", "k"), launched.with_attr("global_symbol", "k"))
    with pytest.raises(tvm.error.ScriptError, match="virtual_thread"):

        @T.prim_func(s_tir=True)
        def virtual(A: T.Buffer((64,), "float32")):
            T.attr(T.iter_var(thread, T.Range(0, 4), "ThreadIndex", "vthread.x"), "virtual_thread", 4)
            A[thread] = T.float32(1)
