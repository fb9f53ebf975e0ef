"""Passes over what the threads of a block combine and share."""

import pytest

import relaxide
from relaxide.s_tir import transform
from relaxide.script import ir as I
from relaxide.script import tirx as T


def sums(threads, target):
    source = f"""
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((2, {threads}), "float32"), B: T.Buffer((2,), "float32")):
        for ty in T.thread_binding(2, thread="threadIdx.y"):
            part = T.alloc_buffer((1,), scope="local")
            for tx in T.thread_binding({threads}, thread="threadIdx.x"):
                view = T.decl_buffer((1,), data=part.data, scope="local")
                with T.attr(T.comm_reducer(lambda x, y: T.max(x, y), [T.min_value("float32")]), "reduce_scope", 0):
                    T.tvm_thread_allreduce(T.uint32(1), A[ty, tx], T.bool(True), part[0], tx)
                if tx == 0:
                    B[ty] = view[0]
"""
    mod = relaxide.script.from_source(source)
    mod["main"] = mod["main"].with_attr("target", relaxide.target.Target(target))
    return mod


def test_a_reducer_is_read_as_it_is_printed():
    mod = sums(32, "cuda")
    text = mod.script()
    assert "T.comm_reducer(lambda x, y: T.max(x, y), [" in text
    relaxide.ir.assert_structural_equal(relaxide.script.from_source(text), mod)


@pytest.mark.parametrize(
    "threads, target, exchanges, barriers",
    [
        (32, "cuda", 5, 0),
        (8, "cuda", 3, 0),
        (128, "cuda", 5 + 2, 2),
        (512, "cuda", 5 + 4, 2),
        (12, "cuda", 0, 6),
        (32, "opencl", 0, 7),
        (64, {"kind": "metal", "thread_warp_size": 32}, 5 + 1, 2),
        (32, {"kind": "webgpu", "supports_subgroups": True}, 5, 0),
    ],
)
def test_threads_exchange_what_they_combine(threads, target, exchanges, barriers):
    after = transform.LowerThreadAllreduce()(sums(threads, target))
    text = after.script()
    assert relaxide.tirx.analysis.verify_well_formed(after["main"])
    assert (text.count("tvm_warp_shuffle_down("), text.count("tvm_storage_sync(")) == (exchanges, barriers)
    assert "allreduce" not in text and "view" not in text and "part" not in text
    # Barriers for several warps make one element of each group the result.
    assert ("B[ty] = red_result[ty]" in text) == bool(exchanges and barriers)


@pytest.mark.parametrize(
    "reducer, problem",
    [
        ("T.comm_reducer(lambda x: x, [T.float32(0)])", "has 1 names"),
        ("T.comm_reducer(lambda x, y: (x, y), [T.float32(0)])", "the lambda gives 2"),
        ("T.comm_reducer(max, [T.float32(0)])", "written as a lambda"),
    ],
)
def test_a_reducer_that_does_not_fit_is_refused(reducer, problem):
    text = sums(32, "cuda").script()
    begin = text.index("T.comm_reducer")
    end = text.index(', "reduce_scope"')
    with pytest.raises(relaxide.error.DiagnosticError, match=problem):
        relaxide.script.from_source(text[:begin] + reducer + text[end:])


@I.ir_module
class Shared:
    @T.prim_func
    def main(B: T.Buffer((64,), "float32")):
        for tx in T.thread_binding(64, thread="threadIdx.x"):
            a = T.alloc_buffer((64,), "float32", scope="shared.dyn")
            b = T.alloc_buffer((64,), "float32", scope="shared.dyn")
            c = T.alloc_buffer((64,), "float32", scope="shared.dyn")
            a[tx] = B[tx]
            T.tvm_storage_sync("shared")
            b[tx] = a[63 - tx]
            T.tvm_storage_sync("shared")
            c[tx] = b[63 - tx]
            T.tvm_storage_sync("shared")
            B[tx] = c[63 - tx]


def test_shared_buffers_have_one_memory_and_share_places():
    after = transform.MergeSharedMemoryAllocations()(Shared)
    text = after.script()
    assert text.count("alloc_buffer") == 1 and 'T.alloc_buffer((512,), "uint8", scope="shared.dyn")' in text
    assert "b[tx + 64]" in text and "c[tx] = b[" in text
    relaxide.ir.assert_structural_equal(relaxide.script.from_source(text), after)
