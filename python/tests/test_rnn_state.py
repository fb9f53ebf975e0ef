"""States of a fixed size with a history, by kernels that a program hands over; what comes out is what TVM 0.27 gives."""

import numpy as np
import pytest

import relaxide as tvm

ROWS, HISTORY = 3, 4


def _get(storage, rows, newest, out):
    kept = storage.numpy()
    out.copyfrom(np.stack([kept[row, at] for row, at in zip(rows.numpy(), newest.numpy())]))


def _set(storage, rows, newest, data):
    kept, new = storage.numpy().copy(), data.numpy()
    for i, (row, at) in enumerate(zip(rows.numpy(), newest.numpy())):
        kept[row, (at + 1) % HISTORY] = new[i]
    storage.copyfrom(kept)


class States:
    """A state of two numbers, in one layer."""

    def __init__(self, rows=ROWS):
        first = tvm.runtime.tensor(np.zeros(2, "float32"))
        kernels = [tvm.runtime.convert(kernel) for kernel in (_get, _set)]
        self.state = tvm.get_global_func("vm.builtin.rnn_state_create")(1, rows, HISTORY, [kernels[0]], [kernels[1]], [first])

    def __getattr__(self, name):
        return lambda *args: tvm.get_global_func(f"vm.builtin.kv_state_{name}")(self.state, *args)

    def step(self, ids, value, length=1):
        """A pass that reads the states and makes them ``value``."""
        self.begin_forward(tvm.runtime.ShapeTuple(ids), tvm.runtime.ShapeTuple([length] * len(ids)))
        out = tvm.runtime.tensor(np.zeros((len(ids), 2), "float32"))
        tvm.get_global_func("vm.builtin.rnn_state_get")(self.state, 0, 0, out)
        new = tvm.runtime.tensor(np.full((len(ids), 2), value, "float32"))
        tvm.get_global_func("vm.builtin.rnn_state_set")(self.state, 0, 0, new)
        self.end_forward()
        return out.numpy()[:, 0].tolist()

    def newest(self, seq_id):
        return float(tvm.get_global_func("vm.builtin.rnn_state_debug_get")(self.state, 0, 0, seq_id).numpy()[0])


@pytest.fixture
def states():
    made = States()
    made.add_sequence(5)
    made.add_sequence(7)
    return made


def test_each_sequence_has_a_state_of_its_own(states):
    read = [states.step([5] if step % 2 else [5, 7], step + 1) for step in range(6)]
    assert read == [[0, 0], [1], [2, 1], [3], [4, 3], [5]]
    assert (states.newest(5), states.newest(7)) == (6, 5)


def test_as_many_states_are_taken_back_as_are_kept(states):
    for step in range(6):
        states.step([5], step + 1)
    states.popn(5, 1)
    assert states.newest(5) == 5
    states.popn(5, 2)
    assert states.newest(5) == 3
    with pytest.raises(RuntimeError, match="sequence 5 has 0 earlier states, and 1 are taken back"):
        states.popn(5, 1)
    states.step([7], 1, length=3)
    with pytest.raises(RuntimeError, match="0 earlier states"):
        states.popn(7, 1)


def test_forks_have_the_history_up_to_a_position(states):
    for step in range(3):
        states.step([7], step + 1)
    states.fork_sequence(7, 9, 2)
    assert (states.newest(7), states.newest(9)) == (3, 2)
    states.popn(9, 1)
    states.step([9], 8)
    assert (states.newest(7), states.newest(9)) == (3, 8)
    states.remove_sequence(9)
    with pytest.raises(ValueError, match="sequence 9 cannot be found"):
        states.newest(9)


def test_what_does_not_fit_is_refused(states):
    states.add_sequence(1)
    for call, message in [
        (lambda: states.add_sequence(2), "for 3 sequences"),
        (lambda: states.add_sequence(7), "already"),
        (lambda: states.remove_sequence(55), "cannot be found"),
        (lambda: states.begin_forward(tvm.runtime.ShapeTuple([5]), tvm.runtime.ShapeTuple([1, 1])), "a length for each"),
        (lambda: tvm.get_global_func("vm.builtin.rnn_state_get")(states.state, 0, 0, None), "between begin_forward"),
        (lambda: tvm.get_global_func("vm.builtin.rnn_state_debug_get")(states.state, 3, 0, 5), "no state 0 of layer 3"),
        (lambda: States(rows=0), "to be positive"),
    ]:
        with pytest.raises((ValueError, RuntimeError), match=message):
            call()
    states.clear()
    with pytest.raises(ValueError, match="cannot be found"):
        states.newest(5)
