"""Schedule primitives beside TVM's: the same steps give the same program and the same trace, and what TVM refuses is refused."""

import pytest
from kernels import KERNELS
import sequences_of_copies  # noqa: F401  (enters more)
import sequences_of_regions  # noqa: F401  (enters more)
from sequences import REFUSALS, SEQUENCES

import relaxide
from relaxide import s_tir

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from beside_tvm import assert_same_program  # noqa: E402
from tvm import s_tir as their_s_tir  # noqa: E402


def ids(table):
    return [f"{kernel}-{name}" for kernel, name, _ in table]


def their_schedule(kernel):
    return their_s_tir.Schedule(tvm.script.from_source(KERNELS[kernel]), seed=1)


def our_schedule(kernel):
    return s_tir.Schedule(relaxide.script.from_source(KERNELS[kernel]), seed=1)


def printed(theirs, ours):
    """The text of TVM's trace; of ours where it has none.

    TVM 0.27 prints no trace with ``decompose_padding``, nor a simplified one whose steps take lists of blocks.
    """
    text = str(theirs)
    return text if text.startswith("# from tvm") else str(ours)


def kinds(schedule):
    return {step.kind.name for step in schedule.trace.insts}


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_the_same_steps_give_the_same_program_and_trace(kernel, name, steps):
    ours, theirs = our_schedule(kernel), their_schedule(kernel)
    steps(theirs)
    steps(ours)
    assert str(ours.trace) == printed(theirs.trace, ours.trace)
    # Of several blocks that become one, TVM lists the regions in the order of their buffers' addresses.
    if "two_blocks" not in name:
        # TVM says of partitions that they touch nothing, and cuts the axes' domains, so that a reduction would be set in each;
        # of blocks with looked up indices it says that they do not read them.
        loose = bool(kinds(ours) & {"LoopPartition", "CacheIndex"})
        assert_same_program(ours.mod, theirs.mod, with_regions=not loose)


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_a_trace_leads_to_the_same_program_again(kernel, name, steps):
    first = our_schedule(kernel)
    steps(first)
    replayed, simplified, ours, theirs = (our_schedule(kernel) for _ in range(4))
    first.trace.apply_to_schedule(replayed, remove_postproc=False)
    first.trace.simplified(remove_postproc=False).apply_to_schedule(simplified, remove_postproc=False)
    for again in (replayed, simplified):
        assert again.mod.script() == first.mod.script()
    assert str(replayed.trace) == str(first.trace)
    # The text is Python, and TVM's text for its own schedule is too.
    other = their_schedule(kernel)
    steps(other)
    for text, schedule in ((str(first.trace), ours), (printed(other.trace, first.trace), theirs)):
        scope = {"s_tir": s_tir, "T": relaxide.script.tirx}
        exec(text, scope)
        scope["apply_trace"](schedule)
        assert schedule.mod.script() == first.mod.script()


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_simplified_traces_are_alike(kernel, name, steps):
    ours, theirs = our_schedule(kernel), their_schedule(kernel)
    steps(theirs)
    steps(ours)
    mine = ours.trace.simplified(True)
    assert str(mine) == printed(theirs.trace.simplified(True), mine)


@pytest.mark.parametrize(("kernel", "name", "steps"), REFUSALS, ids=ids(REFUSALS))
def test_what_tvm_refuses_is_refused(kernel, name, steps):
    theirs = steps(their_schedule(kernel))
    with pytest.raises(Exception):
        theirs()
    schedule = our_schedule(kernel)
    ours = steps(schedule)
    before = schedule.mod.script(), str(schedule.trace)
    with pytest.raises(s_tir.ScheduleError, match="E0306"):
        ours()
    assert (schedule.mod.script(), str(schedule.trace)) == before
