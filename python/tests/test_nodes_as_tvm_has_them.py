"""Parameters that are buffers, axes of threads, and edits of programs, in the forms that scripts for TVM use."""

import pytest
import relaxide as tvm
from relaxide import relax, s_tir, tirx
from relaxide.relax import dpl
from relaxide.script import ir as I
from relaxide.script import relax as R
from relaxide.script import tirx as T


@T.prim_func
def double(a: T.handle, b: T.handle, m: T.int32):
    n = T.int32()
    A = T.match_buffer(a, (n, 4), "float32")
    B = T.match_buffer(b, (n, 4), "float32")
    for i, j in T.grid(n, 4):
        B[i, j] = A[i, j] * 2.0


def test_a_buffer_is_a_parameter():
    first, second, scalar = double.params
    assert tirx.is_buffer_var(first) and first.name == "A" and not tirx.is_buffer_var(scalar)
    assert first.ty.shape[1] == 4 and first.ty.dtype == tvm.ir.PrimType("float32") and first.ty.storage_scope == "global"
    assert first.ty == second.ty and isinstance(first.ty, tirx.BufferType)
    assert double.buffer_map[first].same_as(first) and first in double.buffer_map and scalar not in double.buffer_map
    assert double.with_body(tirx.Evaluate(0)).params[0].same_as(first)


def test_a_parameter_is_specialized_by_its_buffer():
    first, second, _ = double.params
    small = double.specialize({first: tirx.decl_buffer((3, 4))})
    assert [int(dim) for dim in small.params[1].shape] == [3, 4]
    half = double.specialize({second: tirx.decl_buffer((5, second.ty.shape[1]))})
    assert int(half.params[0].shape[0]) == 5


def test_an_axis_of_threads_launches_a_loop():
    axis = tirx.IterVar((0, 8), "t", tirx.IterVar.ThreadIndex, "threadIdx.x")
    loop = tirx.AttrStmt(axis, "thread_extent", 8, tirx.Evaluate(axis.var))
    assert isinstance(loop, tirx.For) and loop.kind == tirx.ForKind.THREAD_BINDING and loop.body.value.same_as(axis.var)
    assert loop.thread_binding.thread_tag == "threadIdx.x" and loop.thread_binding == "threadIdx.x"
    assert loop.thread_binding.var.same_as(loop.loop_var) and int(loop.thread_binding.dom.extent) == 8
    assert isinstance(tirx.AttrStmt(None, "note", 1, loop), tirx.AttrStmt)
    with pytest.raises(NotImplementedError, match="kind of the For"):
        tirx.IterVar((0, 8), "t", tirx.IterVar.Vectorized)


def test_kernels_of_a_module_share_no_variable():
    mod = tvm.IRModule({name: double.with_attr("global_symbol", name) for name in ("first", "second")})
    once = tirx.transform.ConvertSSA()(mod)
    tvm.ir.assert_structural_equal(once["first"], mod["first"])
    ours, theirs = once["first"], once["second"]
    assert ours.params[0].same_as(double.params[0]) and not theirs.params[0].same_as(double.params[0])
    assert not ours.params[0].shape[0].same_as(theirs.params[0].shape[0])
    assert theirs.params[0].shape[0].same_as(theirs.params[1].shape[0]), "one dimension stays one"
    tvm.ir.assert_structural_equal(theirs.with_attr("global_symbol", "first"), ours)


def test_scheduled_copies_are_reshapes():
    @T.prim_func(s_tir=True)
    def reshape(A: T.Buffer((T.int64(2), T.int64(3), T.int64(4)), "float32"), B: T.Buffer((T.int64(8), T.int64(3)), "float32")):
        for f in T.thread_binding(T.int64(24), thread="threadIdx.x"):
            with T.sblock("B"):
                i = T.axis.spatial(T.int64(8), f // T.int64(3))
                j = T.axis.spatial(T.int64(3), f % T.int64(3))
                B[i, j] = A[(i * 3 + j) // 12, (i * 3 + j) % 12 // 4, (i * 3 + j) % 4]

    @T.prim_func(s_tir=True)
    def turned(A: T.Buffer((4, 2), "float32"), B: T.Buffer((2, 4), "float32")):
        for i, j in T.grid(2, 4):
            with T.sblock("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    assert relax.analysis.has_reshape_pattern(reshape) and not relax.analysis.has_reshape_pattern(turned)


def test_parts_of_a_reduction_are_computed_one_iteration_after_another():
    @T.prim_func(s_tir=True)
    def total(A: T.Buffer((8, 16), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            for k in T.parallel(16):
                with T.sblock("B"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 0.0
                    B[vi] = B[vi] + A[vi, vk]

    schedule = s_tir.Schedule(total)
    with pytest.raises(s_tir.ScheduleError, match="at once"):
        schedule.rfactor(schedule.get_loops(schedule.get_sblock("B"))[1], 0)


@I.ir_module
class Chain:
    @R.function
    def main(x: R.Tensor((4, 8), "float32"), y: R.Tensor((8, 2), "float32"), z: R.Tensor((2, 3), "float32")):
        with R.dataflow():
            a = R.call_dps_packed("product", (x, y), R.Tensor((4, 2), "float32"))
            b = R.call_dps_packed("product", (a, z), R.Tensor((4, 3), "float32"))
            c = R.call_dps_packed("sum", (b, b), R.Tensor((4, 3), "float32"))
            R.output(c)
        return c


BLOCK = Chain["main"].body.blocks[0]


def test_a_condition_narrows_what_a_context_knows():
    with dpl.PatternContext() as context:
        dpl.is_call_dps_packed("product").has_shape([4, 2]) >> dpl.is_call_dps_packed("product").has_shape([4, 3])
        assert context.match_dfb(BLOCK)
    with dpl.PatternContext() as context:
        dpl.is_call_dps_packed("product").has_shape([4, 3]) >> dpl.is_call_dps_packed("product").has_shape([4, 2])
        assert not context.match_dfb(BLOCK)


def test_arguments_of_what_is_called_by_name_are_counted():
    with dpl.PatternContext() as context:
        product, total = dpl.is_call_dps_packed("product"), dpl.is_call_dps_packed("sum")
        product.only_used_by(total, index=0)
        product.only_used_by(total, index=1)
        assert context.match_dfb(BLOCK)[product].name == "b"
    with dpl.PatternContext() as context:
        dpl.is_call_dps_packed("product").used_by(dpl.is_call_dps_packed("product"), index=1)
        assert not context.match_dfb(BLOCK)


def test_a_block_without_bindings_goes_and_strangers_are_refused():
    @R.function
    def idle(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.exp(x)
            R.output(y)
        return x

    rewrite = relax.DataflowBlockRewrite(idle.body.blocks[0], idle)
    with pytest.raises(RuntimeError, match="Cannot find variable stranger"):
        rewrite.replace_all_uses(relax.Var("stranger", R.Tensor((4,), "float32")), idle.params[0])
    rewrite.remove_unused(idle.body.blocks[0].bindings[0].var)
    assert len(rewrite.mutated_root_fn().body.blocks) == 0
    rewrite.add(relax.op.exp(idle.params[0]), name="z")
    assert [block.bindings[0].var.name for block in rewrite.mutated_root_fn().body.blocks] == ["z"]


def test_a_function_alone_may_call_functions_of_its_module():
    @I.ir_module
    class Caller:
        @R.function
        def main(x: R.Tensor((4,), "float32")):
            return Caller.part(x)

        @R.function(private=True)
        def part(x: R.Tensor((4,), "float32")):
            return R.exp(x)

    relax.analysis.well_formed(Caller["main"])
    assert not relax.analysis.check_well_formed(tvm.IRModule({"main": Caller["main"]}))


def test_only_pure_functions_are_forced_to_be_pure():
    @R.function(pure=False)
    def effects(x: R.Tensor((4,), "float32")):
        return x

    assert relax.analysis.check_well_formed(effects)
    assert not relax.analysis.check_well_formed(effects.with_attr("relax.force_pure", True))
