"""Blocks that a jump leaves, and attributes that are about something else than their statement."""

import numpy as np
import pytest

import relaxide as tvm
from relaxide import s_tir, tirx
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def until_negative(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        with T.sblock("b"):
            vi = T.axis.spatial(8, i)
            if A[vi] < 0:
                break
            if A[vi] == 3:
                continue
            B[vi] = A[vi]


@pytest.mark.parametrize("target", ["llvm", "c"])
def test_a_jump_out_of_a_block_is_one_of_the_loop_around_it(target):
    a, b = np.array([1, 2, 3, 4, 5, -1, 6, 7], "int32"), tvm.runtime.tensor(np.zeros(8, "int32"))
    tvm.compile(until_negative, target=target)(tvm.runtime.tensor(a), b)
    assert b.numpy().tolist() == [1, 2, 0, 4, 5, 0, 0, 0]


def test_loops_that_a_block_leaves_are_not_scheduled():
    schedule = s_tir.Schedule(until_negative)
    (loop,) = schedule.get_loops(schedule.get_sblock("b"))
    with pytest.raises(s_tir.ScheduleError, match="there is a `break` in the nest"):
        schedule.split(loop, [2, 4])


def test_attributes_keep_what_they_are_about():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32"), n: T.int32):
        with T.attr(A.data, "storage_alignment", 16):
            A[0] = 1.0
        with T.attr(A, "of_buffer", n + 1):
            A[1] = 1.0
        with T.attr("name", "of_text", 2):
            A[2] = 1.0
        with T.attr(n + 2, "of_scalar", "said"):
            A[3] = 1.0
        with T.attr(0, "of_statement", 3):
            A[3] = 2.0

    text = func.script()
    for said in ('T.attr(A.data, "storage_alignment", 16)', 'T.attr(A, "of_buffer", n + 1)', 'T.attr("name", "of_text", 2)'):
        assert f"with {said}:" in text
    tvm.ir.assert_structural_equal(tvm.script.from_source(text), func)
    tvm.ir.assert_structural_equal(tvm.ir.load_json(tvm.ir.save_json(func)), func)
    pointer, buffer, name, scalar, statement = (stmt.node for stmt in func.body.seq)
    assert buffer.same_as(func.buffers[0]) and pointer.same_as(buffer.data)
    assert (name, str(scalar), statement) == ("name", "n + 2", None)
    # Passes that rename what an attribute is about rename it there, too.
    special = func.specialize({func.params[1]: 5})
    assert str(special.body.seq[3].node) == "7"


def test_attributes_are_made_of_nodes():
    n, body = tirx.Var("n", "int32"), tirx.Evaluate(0)
    made = tirx.AttrStmt(n, "key", 1, body)
    assert made.node.same_as(n) and tirx.AttrStmt(None, "key", 1, body).node is None
    assert not tvm.ir.structural_equal(made, tirx.AttrStmt(None, "key", 1, body))
