"""Design spaces are compared by what their schedules make with given decisions."""

import pytest
import relaxide as tvm
from relaxide.s_tir import Schedule
from relaxide.s_tir.meta_schedule.testing.space_generation import check_sketches
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def matrix(A: T.Buffer((16, 32), "float32"), B: T.Buffer((16, 32), "float32")):
    for i, j in T.grid(16, 32):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)


def tiled(rows, columns, unroll):
    sch = Schedule(tvm.IRModule({"main": matrix}))
    block = sch.get_sblock("B")
    i, j = sch.get_loops(block)
    for loop, decision in ((i, rows), (j, columns)):
        sch.split(loop, sch.sample_perfect_tile(loop, 2, decision=decision))
    step = sch.sample_categorical([0, 16, 64], [0.5, 0.25, 0.25], decision=unroll)
    sch.annotate(block, "meta_schedule.unroll_explicit", step)
    return sch


def decisions(rows, columns, unroll):
    return [("SamplePerfectTile", rows), ("SamplePerfectTile", columns), ("SampleCategorical", unroll)]


def test_every_decision_is_applied():
    want = tiled([4, 4], [8, 4], 2)
    check_sketches(matrix, [tiled([1, 16], [2, 16], 0)], [want.mod], [decisions([4, 4], [8, 4], 2)])
    with pytest.raises(AssertionError, match="no schedule makes the module 0"):
        check_sketches(matrix, [tiled([1, 16], [2, 16], 0)], [want.mod], [decisions([4, 4], [8, 4], 1)])
