"""What is known of kernels, and the rules that schedule them."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir, tirx
from relaxide.s_tir import dlight
from relaxide.script import tirx as T
from relaxide.target import Target


@T.prim_func
def softmax(A: T.Buffer((32, 64), "float32"), C: T.Buffer((32, 64), "float32")):
    M = T.sblock_alloc_buffer((32,), "float32")
    S = T.sblock_alloc_buffer((32,), "float32")
    for i, k in T.grid(32, 64):
        with T.sblock("largest"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                M[vi] = T.float32(-3e38)
            M[vi] = T.max(M[vi], A[vi, vk])
    for i, k in T.grid(32, 64):
        with T.sblock("sum"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                S[vi] = T.float32(0)
            S[vi] = S[vi] + T.exp(A[vi, vk] - M[vi])
    for i, j in T.grid(32, 64):
        with T.sblock("share"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj] - M[vi]) / S[vi]


@T.prim_func
def exchange(A: T.Buffer((100, 70), "float32"), B: T.Buffer((70, 100), "float32")):
    for i, j in T.grid(70, 100):
        with T.sblock("exchange"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vj, vi]


@T.prim_func
def product(A: T.Buffer((200, 96), "float32"), x: T.Buffer((96,), "float32"), y: T.Buffer((200,), "float32")):
    for i, k in T.grid(200, 96):
        with T.sblock("product"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                y[vi] = T.float32(0)
            y[vi] = y[vi] + A[vi, vk] * x[vk]


def _scheduled(func, target, *rules):
    with Target(target):
        return dlight.ApplyDefaultSchedule(*rules)(tvm.IRModule({"main": func}))["main"]


def _threads(func):
    return {stmt.thread_binding for stmt in _loops(func) if stmt.thread_binding}


def _loops(func):
    from relaxide.tirx._walk import walk

    return [stmt for stmt in walk(func.body) if isinstance(stmt, tirx.For)]


def _without_threads(func):
    """The kernel with plain loops in the place of those that threads execute, each over the whole of its block."""
    text = func.with_attr("global_symbol", "main").script()
    for name in ("blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"):
        text = text.replace(f', thread="{name}")', ")")
    return tvm.script.from_source(text.replace("T.thread_binding(", "T.serial(").replace("tirx.is_scheduled", "scheduled"))


def _run(func, *arrays):
    given = [tvm.runtime.tensor(array) for array in arrays]
    tvm.compile(tvm.IRModule({"main": func}), "llvm")["main"](*given)
    return given[-1].numpy()


def test_rules_for_gpus_keep_what_a_kernel_computes():
    data = np.random.default_rng(3).standard_normal((32, 64), "float32")
    wanted = _run(softmax, data, np.zeros((32, 64), "float32"))
    for rule in (dlight.gpu.GeneralReduction(), dlight.gpu.Fallback()):
        made = _scheduled(softmax, "cuda", rule)
        assert _threads(made) == {"blockIdx.x", "threadIdx.x"} and made.attrs["tirx.is_scheduled"]
        found = _run(_without_threads(made), data, np.zeros((32, 64), "float32"))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    matrix = np.random.default_rng(4).standard_normal((100, 70), "float32")
    made = _scheduled(exchange, "cuda", dlight.gpu.GeneralReduction(), dlight.gpu.Transpose())
    assert _threads(made) == {"blockIdx.x", "blockIdx.y", "threadIdx.x", "threadIdx.y"}
    assert (_run(_without_threads(made), matrix, np.zeros((70, 100), "float32")) == matrix.T).all()


def test_the_rule_for_processors_makes_threads_and_vectors():
    made = _scheduled(product, "llvm", dlight.cpu.GEMV())
    kinds = {loop.kind for loop in _loops(made)}
    assert {tirx.ForKind.PARALLEL, tirx.ForKind.VECTORIZED} <= kinds
    rng = np.random.default_rng(5)
    matrix, vector = rng.standard_normal((200, 96), "float32"), rng.standard_normal(96, "float32")
    np.testing.assert_allclose(_run(made, matrix, vector, np.zeros(200, "float32")), matrix @ vector, rtol=1e-4, atol=1e-4)


def test_a_rule_is_about_its_own_kernels_and_targets():
    plain = tvm.IRModule({"main": product})["main"]
    assert tvm.ir.structural_equal(_scheduled(product, "llvm", dlight.gpu.Fallback()), plain)
    assert tvm.ir.structural_equal(_scheduled(product, "cuda", dlight.gpu.Transpose()), plain)

    @dlight.ScheduleRule.from_callable("Own")
    def own(func, target, tunable):
        sch = s_tir.Schedule(func)
        sch.parallel(sch.get_loops(sch.get_sblock("product"))[0])
        return sch

    assert _loops(_scheduled(product, "llvm", own))[0].kind is tirx.ForKind.PARALLEL
    with pytest.raises(ValueError, match="no target is set"):
        dlight.ApplyDefaultSchedule(own)(tvm.IRModule({"main": product}))


def test_regions_costs_and_places():
    blocks = {info.name: info for info in dlight.normalize_prim_func(s_tir.Schedule(softmax))}
    assert [blocks[name].dom_kind() for name in ("largest", "sum", "share")] == ["SR", "SR", "SS"]
    sch = s_tir.Schedule(softmax)
    buffers = [*softmax.buffers, *softmax.body.block.alloc_buffers]
    block = sch.get(sch.get_sblock("sum"))
    reads, writes = s_tir.analysis.get_sblock_read_write_region(block, {buffer.data: buffer for buffer in buffers if buffer is not None})
    assert s_tir.analysis.get_sblock_read_write_region(block, {}) == [[], []], "buffers that are not asked for do not count"
    assert [region.buffer.name for region in reads] == ["A", "M"] and [region.buffer.name for region in writes] == ["S"]
    assert s_tir.analysis.estimate_tir_flops(tvm.IRModule({"main": product})) == 2 * 200 * 96
    assert s_tir.analysis.calculate_allocated_bytes(softmax) == {"main": {"global": 256}}
    assert s_tir.analysis.find_anchor_sblock(tvm.IRModule({"main": softmax})).name == "sum"
    lca = {buffer.name: place for buffer, place in s_tir.analysis.detect_buffer_access_lca(product).items()}
    assert isinstance(lca["y"], s_tir.SBlock)
    assert not s_tir.analysis.is_pure_function(product)
    assert s_tir.analysis.verify_gpu_code(_scheduled(exchange, "cuda", dlight.gpu.Transpose()), {"max_threads_per_block": 128})
    assert not s_tir.analysis.verify_gpu_code(_scheduled(exchange, "cuda", dlight.gpu.Fallback()), {"max_threads_per_block": 128})


@pytest.mark.parametrize("by", ["itself", "address"])
def test_buffers_whose_address_is_handed_on_are_opaque(by):
    @T.prim_func
    def handed_on(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            with T.sblock("touch"):
                vi = T.axis.spatial(8, i)
                T.evaluate(T.call_extern("int32", "touch", A.data, vi))
                B[vi] = T.float32(1)

    block = handed_on.body.block.body.body.block
    known = {buffer if by == "itself" else buffer.data: buffer for buffer in handed_on.buffers}
    reads, writes, opaque = s_tir.analysis.get_sblock_access_region(block, known)
    assert [list(map(str, regions)) for regions in (reads, writes, opaque)] == [[], ["B[vi]"], ["A[0:8]"]]
    assert [str(region) for region in s_tir.analysis.get_sblock_read_write_region(block, known)[1]] == ["B[vi]", "A[0:8]"]


def test_accesses_outside_of_a_buffer_are_found():
    @T.prim_func
    def outside(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i + 1]

    with pytest.raises(s_tir.ScheduleError, match="buffer A has 4 elements"):
        s_tir.analysis.OOBChecker()(tvm.IRModule({"main": outside}))
    s_tir.analysis.OOBChecker()(tvm.IRModule({"main": product}))


def test_definitions_of_variables():
    i, n = tirx.Var("i", "int32"), tirx.Var("n", "int32")
    twice = tirx.SeqStmt([tirx.Bind(i, 1), tirx.Bind(i, 2), tirx.Evaluate(i + n)])
    assert not tirx.analysis.verify_ssa(tirx.PrimFunc([n], twice)) and tirx.analysis.verify_ssa(product)
    with pytest.raises(ValueError, match="variable i"):
        tirx.analysis.verify_well_formed(tirx.PrimFunc([n], twice))
    assert tirx.analysis.undefined_vars(twice) == [n] and tirx.analysis.undefined_vars(twice, [n]) == []
    assert tirx.analysis.expr_deep_equal(i + 1, i + 1) and not tirx.analysis.expr_deep_equal(i + 1, n + 1)
    assert tirx.analysis.verify_memory(product)
    assert not tirx.analysis.verify_memory(product.with_attr("target", "cuda"))
    assert tirx.analysis.verify_memory(_scheduled(exchange, "cuda", dlight.gpu.Fallback()).with_attr("target", "cuda"))


def test_scalars_are_written_with_what_they_use():
    i = tirx.Var("i", "int32")
    A = tirx.decl_buffer((4,), "int8", name="A")
    text = tirx.Evaluate(A[i] + tirx.const(1, "int8")).script(verbose_expr=True)
    assert text.split("\n")[:2] == ["i = T.int32()", 'A = T.Buffer((4,), "int8")']
    assert "\n  T.func_attr" in product.with_attr("k", 1).script(indent_spaces=2)
    assert int(tirx.const(127, "int8") + tirx.const(1, "int8")) == -128
    with pytest.raises(ValueError, match="128 is no int8"):
        tirx.const(128, "int8")


@pytest.mark.parametrize("inner, index, says", [("axes", "i", "the counter i of a loop around"), ("axes", "vi", None), ("none", "i", None)])
def test_a_block_with_axes_uses_no_counter_around_it(inner, index, says):
    text = f"""
from tvm.script import tirx as T
@T.prim_func(s_tir=True)
def main(A: T.Buffer((8, 8), "float32")):
    for i in range(8):
        with T.sblock("outer"):
            {"vi = T.axis.spatial(8, i)" if inner == "axes" else "T.reads()"}
            for j in range(8):
                with T.sblock("inner"):
                    T.writes(A[{index}, j])
                    A[{index}, j] = T.float32(1)
"""
    kernel = tvm.script.from_source(text, check_well_formed=False)
    assert tirx.analysis.verify_well_formed(kernel, assert_mode=False) == (says is None)
    if says:
        with pytest.raises(ValueError, match=says):
            tirx.analysis.verify_well_formed(kernel)


def test_a_variable_whose_scope_has_ended_is_named_with_its_place():
    i = tirx.Var("i", "int32")
    loop = tirx.For(tirx.Var("j", "int32"), 0, 1, tirx.ForKind.SERIAL, tirx.SeqStmt([tirx.Bind(i, 42), tirx.Evaluate(i)]))
    with pytest.raises(ValueError, match="undefined variable i at .*it was defined at `i = 42`, and is no longer in-scope"):
        tirx.analysis.verify_well_formed(tirx.PrimFunc([], tirx.SeqStmt([loop, tirx.Evaluate(i)])))
    with pytest.raises(ValueError, match="`i` is used where it is not defined"):
        tirx.analysis.verify_well_formed(tirx.PrimFunc([], tirx.Evaluate(i)))
