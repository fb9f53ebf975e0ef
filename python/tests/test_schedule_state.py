"""The state of a schedule: blocks and loops in the place of others, and nodes as text in pickles."""

import pickle

import pytest

import relaxide
from relaxide import s_tir, tirx
from relaxide.script import tirx as T


@T.prim_func(s_tir=True)
def two_steps(A: T.Buffer((8, 8), "float32"), C: T.Buffer((8, 8), "float32")):
    B = T.sblock_alloc_buffer((8, 8), "float32")
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * 2.0
    for i, j in T.grid(8, 8):
        with T.sblock("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = B[vi, vj] + 1.0


def state_and_block(name="new"):
    state = s_tir.ScheduleState(two_steps)
    second = state.mod["main"].body.block.body[1]
    return state, s_tir.SBlock([], [], [], name, second)


def test_a_block_takes_the_place_of_a_loop():
    state, block = state_and_block()
    before = state.mod
    first, second = state.mod["main"].body.block.body
    gone, stays = state.get_sref(first), state.get_sref(second)
    realized = s_tir.SBlockRealize([], True, block)
    state.replace(gone, realized)
    relaxide.ir.assert_structural_equal(state.mod["main"].body.block.body[0], realized)
    assert gone.stmt is None and stays.stmt is not None
    relaxide.ir.assert_structural_equal(before["main"].body, two_steps.body, map_free_vars=True)


def test_a_reference_follows_a_block_that_is_said_to_take_its_place():
    state, _ = state_and_block()
    old = state.mod["main"].body.block.body[0].body.body.block
    new = s_tir.SBlock(old.iter_vars, old.reads, old.writes, "other", old.body)
    followed, lost = state.get_sref(old), state.get_sref(state.mod["main"].body.block.body[1].body.body.block)
    state.replace(followed, new, {old: new})
    assert followed.stmt.same_as(new) and lost.stmt is not None
    third = s_tir.SBlock(old.iter_vars, old.reads, old.writes, "third", old.body)
    state.replace(followed, third)
    assert followed.stmt is None and state.get_sref(third) is not None


def test_what_is_no_loop_and_no_block_takes_no_place():
    state, block = state_and_block()
    root = state.get_sref(state.mod["main"].body.block)
    loop = state.get_sref(state.mod["main"].body.block.body[0])
    with pytest.raises(s_tir.ScheduleError, match="a block takes the place of a block"):
        state.replace(root, state.mod["main"].body.block.body[0])
    with pytest.raises(s_tir.ScheduleError, match="takes the place of a loop"):
        state.replace(loop, block)
    with pytest.raises(TypeError, match="what takes the place"):
        state.replace(loop, tirx.Evaluate(0))
    state.replace(root, block)
    with pytest.raises(s_tir.ScheduleError, match="no longer there"):
        state.replace(root, block)


@pytest.mark.parametrize("node", [tirx.Var("i", "int32") + 1, two_steps, two_steps.body, relaxide.relax.TensorType((2, 3), "float16")])
def test_a_node_is_pickled(node):
    relaxide.ir.assert_structural_equal(pickle.loads(pickle.dumps(node)), node, map_free_vars=True)
    node.__setstate__(node.__getstate__())


def test_a_node_does_not_become_another():
    with pytest.raises(TypeError, match="does not change"):
        tirx.Var("i", "int32").__setstate__((tirx.Var("i", "int32") + 1).__getstate__())
