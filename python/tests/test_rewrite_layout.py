"""Buffers whose layout is free are laid out as the loops of a schedule read them."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide.s_tir import Schedule
from relaxide.s_tir import meta_schedule as ms
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def matmul(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), C: T.Buffer((16, 16), "float32")):
    T.func_attr({"layout_free_buffers": [1]})
    for i0, j, k0, i1, k1 in T.grid(4, 16, 4, 4, 4):
        with T.sblock("matmul"):
            vi = T.axis.spatial(16, i0 * 4 + i1)
            vj = T.axis.spatial(16, j)
            vk = T.axis.reduce(16, k0 * 4 + k1)
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]


def rewritten(sch):
    sch.enter_postproc()
    assert ms.postproc.RewriteLayout().apply(sch)
    return sch


def check_product(mod):
    compiled = tvm.compile(mod, "llvm")
    a, b = (np.random.default_rng(seed).standard_normal((16, 16)).astype("float32") for seed in (1, 2))
    out = tvm.runtime.tensor(np.zeros((16, 16), "float32"))
    compiled(tvm.runtime.tensor(a), tvm.runtime.tensor(b), out)
    np.testing.assert_allclose(out.numpy(), a @ b, rtol=1e-4, atol=1e-5)


def test_a_weight_is_copied_into_the_order_of_the_loops():
    sch = rewritten(Schedule(matmul))
    copy = sch.get(sch.get_sblock("B_global"))
    assert copy.annotations["meta_schedule.layout_rewrite_preproc"]
    assert [int(dim) for dim in copy.writes[0].buffer.shape] == [16, 4, 4]
    check_product(sch.mod)


def test_copies_of_the_weight_get_the_layout_too():
    sch = Schedule(matmul)
    sch.cache_read(sch.get_sblock("matmul"), 1, "global")
    sch = rewritten(sch)
    made = [sch.get(sch.get_sblock(name)) for name in ("B_global", "B_global_1")]
    assert all([int(dim) for dim in block.writes[0].buffer.shape] == [16, 4, 4] for block in made)
    assert sum("meta_schedule.layout_rewrite_preproc" in (block.annotations or {}) for block in made) == 1
    check_product(sch.mod)


def test_what_no_block_reads_has_no_layout():
    @T.prim_func(s_tir=True)
    def loose(A: T.Buffer((16, 16), "float32")):
        T.func_attr({"layout_free_buffers": [0]})
        for i, j in T.grid(16, 16):
            T.evaluate(A[i, j])

    assert not ms.postproc.RewriteLayout().apply(Schedule(loose))


@pytest.mark.parametrize("attrs", [{}, {"layout_free_buffers": []}])
def test_kernels_without_such_buffers_stay(attrs):
    before = tvm.IRModule({"main": matmul.without_attr("layout_free_buffers").with_attrs(attrs)})
    sch = Schedule(before)
    assert ms.postproc.RewriteLayout().apply(sch)
    tvm.ir.assert_structural_equal(sch.mod, before)
