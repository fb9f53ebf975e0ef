"""Where steps of a schedule put copies and loops, and that kernels compute the same behind them."""

import numpy as np
import pytest
import relaxide as tvm
from relaxide import s_tir
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def two_readers(A: T.Buffer((32,), "float32"), C: T.Buffer((32,), "float32"), D: T.Buffer((32,), "float32")):
    B = T.sblock_alloc_buffer((32,), "float32")
    for i in range(4):
        for j in range(8):
            with T.sblock("B"):
                v = T.axis.spatial(32, i * 8 + j)
                B[v] = A[v] + 1.0
        for j in range(8):
            with T.sblock("C"):
                v = T.axis.spatial(32, i * 8 + j)
                C[v] = B[v] * 2.0
    for i in range(32):
        with T.sblock("D"):
            v = T.axis.spatial(32, i)
            D[v] = B[v] * 3.0


@T.prim_func(s_tir=True)
def in_place(A: T.Buffer((8,), "float32")):
    B = T.sblock_alloc_buffer((8,), "float32")
    for i in range(8):
        with T.sblock("in"):
            v = T.axis.spatial(8, i)
            B[v] = A[7 - v]
    for i in range(8):
        with T.sblock("out"):
            v = T.axis.spatial(8, i)
            A[v] = B[v] + 1.0


@T.prim_func(s_tir=True)
def looked_up(A: T.Buffer((7, 4), "float32"), B: T.Buffer((2,), "int32"), C: T.Buffer((2, 4), "float32")):
    for i, j in T.grid(2, 4):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = A[B[vi], vj]


@T.prim_func(s_tir=True)
def overlapping(A: T.Buffer((14, 4), "float32"), B: T.Buffer((14, 4), "float32")):
    for a, b, c in T.grid(6, 4, 4):
        with T.sblock("B"):
            i = T.axis.spatial(14, a * 2 + b)
            j = T.axis.spatial(4, c)
            B[i, j] = A[i, j] + 1.0


def results(kernel):
    """What a kernel makes of numbers that are always the same."""
    rng = np.random.default_rng(7)
    tensors = []
    for buffer in kernel.params:
        dims = [int(dim) for dim in buffer.shape]
        values = rng.integers(0, 7, dims) if "int" in str(buffer.dtype) else rng.standard_normal(dims)
        tensors.append(tvm.runtime.tensor(values.astype(str(buffer.dtype))))
    tvm.compile(kernel, target="llvm")(*tensors)
    return [tensor.numpy() for tensor in tensors]


def same_results(schedule, kernel):
    for ours, theirs in zip(results(schedule.mod["main"]), results(kernel)):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("step", ["cache_read", "cache_write"])
def test_a_copy_in_a_loop_is_read_behind_the_loop_too(step):
    schedule = s_tir.Schedule(two_readers)
    copy = schedule.cache_read("C", 0, "local") if step == "cache_read" else schedule.cache_write("B", 0, "local")
    assert len(schedule.get_loops(copy)) == 2, "the copy stands in the loop of the block that writes"
    same_results(schedule, two_readers)


def test_what_is_read_before_it_is_written_is_copied_first():
    schedule = s_tir.Schedule(in_place)
    copy = schedule.cache_read("in", 0, "local")
    assert schedule.get(schedule.get_child_blocks(schedule.get_sblock("root"))[0]).same_as(schedule.get(copy))
    same_results(schedule, in_place)


def test_indices_that_are_elements_are_read_from_the_copy():
    schedule = s_tir.Schedule(looked_up)
    at = [region.buffer.name for region in schedule.get(schedule.get_sblock("C")).reads].index("B")
    schedule.cache_read("C", at, "local")
    text = schedule.get(schedule.get_sblock("C")).reads[0].script()
    assert "B_local" in text, text
    same_results(schedule, looked_up)


def test_loops_that_an_axis_is_a_sum_of_change_places():
    schedule = s_tir.Schedule(overlapping)
    a, b, c = schedule.get_loops("B")
    schedule.reorder(c, a, b)
    assert [schedule.get(loop).loop_var.name for loop in schedule.get_loops("B")] == ["c", "a", "b"]
    same_results(schedule, overlapping)


def test_a_joined_loop_is_taken_apart_in_digits():
    schedule = s_tir.Schedule(looked_up)
    schedule.fuse(*schedule.get_loops("C"))
    fused = schedule.get(schedule.get_loops("C")[0])
    assert [str(value) for value in fused.body.iter_values] == ["i_j_fused // 4", "i_j_fused % 4"]
    same_results(schedule, looked_up)
