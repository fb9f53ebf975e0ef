"""Passes over kernels that are bound to threads, and over the layouts of their weights."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir, tirx


def module(text):
    return tvm.IRModule.from_expr(tvm.script.from_source(text))


TWICE = """
@T.prim_func
def main(A: T.Buffer((8, 64), "float32"), B: T.Buffer((8, 64), "float32")):
    for b in T.thread_binding(8, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            A[b, i] = T.float32(1)
        for j in T.thread_binding({length}, thread="threadIdx.x"):
            B[b, j] = A[b, j] + T.float32(1)
"""


def test_loops_over_one_axis_become_one():
    body = s_tir.transform.UnifyThreadBinding()(module(TWICE.format(length=64)))["main"].body
    loops = []
    while isinstance(body, tirx.For):
        loops.append(body.thread_binding.thread_tag)
        body = body.body
    assert loops == ["blockIdx.x", "threadIdx.x"] and len(body) == 2
    with pytest.raises(ValueError, match="one length"):
        s_tir.transform.UnifyThreadBinding()(module(TWICE.format(length=32)))


def test_threads_wait_for_what_they_share():
    text = """
@T.prim_func
def main(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for b in T.thread_binding(1, thread="blockIdx.x"):
        for i in T.thread_binding(64, thread="threadIdx.x"):
            s = T.alloc_buffer((64,), scope="shared")
            s[i] = A[i]
            B[i] = s[63 - i]
"""
    made = s_tir.transform.ThreadSync("shared")(module(text)).script()
    assert made.count("tvm_storage_sync") == 1
    with pytest.raises(ValueError, match="shared"):
        s_tir.transform.ThreadSync("warp")(module(text))


PACKED = """
@T.prim_func
def main(W: T.Buffer((16, 4), "float32"), C: T.Buffer((16, 4), "float32")):
    with T.sblock("root"):
        P = T.sblock_alloc_buffer((4, 16), "float32")
        for i, j in T.grid(16, 4):
            with T.sblock("pack"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.sblock_attr({{"meta_schedule.layout_rewrite_preproc": 1}})
                P[vj, vi] = {value}
        for i, j in T.grid(16, 4):
            with T.sblock("use"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = P[vj, vi] * T.float32(2)
"""


def test_weights_come_as_a_kernel_wants_them():
    made = s_tir.transform.RemoveWeightLayoutRewriteBlock()(module(PACKED.format(value="W[vi, vj]")))
    func = made["main"]
    assert [int(dim) for dim in func.buffer_map[func.params[0]].shape] == [4, 16]
    packed = np.random.rand(4, 16).astype("float32")
    out = tvm.runtime.tensor(np.zeros((16, 4), "float32"))
    tvm.build(made, "llvm")["main"](tvm.runtime.tensor(packed), out)
    np.testing.assert_allclose(out.numpy(), packed.T * 2)


def test_a_block_that_only_says_that_it_packs_is_refused():
    with pytest.raises(ValueError, match="block `pack`"):
        s_tir.transform.RemoveWeightLayoutRewriteBlock()(module(PACKED.format(value="W[vi, vj] + T.float32(1)")))
