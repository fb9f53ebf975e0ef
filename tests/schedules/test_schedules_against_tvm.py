"""Schedules by hand beside TVM's: the same steps give the same program and the same trace, and what TVM refuses is refused."""

import pytest
from kernels import KERNELS
from sequences import REFUSALS, SEQUENCES

import relaxide
from relaxide import s_tir

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from tvm import s_tir as their_s_tir  # noqa: E402
from tvm import tirx  # noqa: E402

ANALYZER = tvm.sym.Analyzer()


def ids(table):
    return [f"{kernel}-{name}" for kernel, name, _ in table]


def their_schedule(kernel):
    return their_s_tir.Schedule(tvm.script.from_source(KERNELS[kernel]), seed=1)


def our_schedule(kernel):
    return s_tir.Schedule(relaxide.script.from_source(KERNELS[kernel]), seed=1)


def simple(e):
    return ANALYZER.canonical_simplify(e)


def box(region):
    ranges = [tvm.ir.Range.from_min_extent(simple(r.min), simple(r.extent)) for r in region.region]
    return tirx.BufferRegion(region.source, ranges)


def tidied(stmt):
    """A statement of TVM with indices, the values of axes and predicates in one form."""
    if isinstance(stmt, tirx.BufferStore):
        return tirx.BufferStore(stmt.buffer, stmt.value, [simple(index) for index in stmt.indices])
    if isinstance(stmt, tirx.For):
        extent = simple(stmt.extent)
        # Where it is known, the counter of a loop of one iteration would go.
        if not isinstance(extent, tirx.IntImm) or extent.value != 1:
            ANALYZER.bind(stmt.loop_var, tvm.ir.Range.from_min_extent(stmt.min, extent))
        body = tidied(stmt.body)
        return tirx.For(stmt.loop_var, stmt.min, extent, stmt.kind, body, stmt.thread_binding, stmt.annotations)
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([tidied(part) for part in stmt.seq])
    if isinstance(stmt, tvm.s_tir.SBlockRealize):
        b = stmt.block
        parts = (b.init, b.alloc_buffers, b.match_buffers, b.annotations)
        boxes = ([box(region) for region in regions] for regions in (b.reads, b.writes))
        block = tvm.s_tir.SBlock(b.iter_vars, *boxes, b.name_hint, tidied(b.body), *parts)
        values = [simple(value) for value in stmt.iter_values]
        return tvm.s_tir.SBlockRealize(values, simple(stmt.predicate), block)
    return stmt


def tidy(module):
    func = module["main"]
    return tvm.IRModule({"main": func.with_body(tidied(func.body))})


def reread(module):
    """Our module, read by TVM from our print."""
    lines = [line for line in module.script().splitlines() if not line.startswith(("from tvm", "# from tvm"))]
    return tvm.script.from_source("\n".join(lines) + "\n")


def assert_same_program(ours, theirs):
    left, right = tidy(reread(ours)), tidy(theirs)
    try:
        tvm.ir.assert_structural_equal(left, right, map_free_vars=True)
    except ValueError as error:
        pytest.fail(f"{str(error)[-400:]}\nours:\n{left.script()}\nTVM's:\n{right.script()}", pytrace=False)


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_the_same_steps_give_the_same_program_and_trace(kernel, name, steps):
    ours, theirs = our_schedule(kernel), their_schedule(kernel)
    steps(theirs)
    steps(ours)
    assert str(ours.trace) == str(theirs.trace)
    assert_same_program(ours.mod, theirs.mod)


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_a_trace_leads_to_the_same_program_again(kernel, name, steps):
    first = our_schedule(kernel)
    steps(first)
    replayed, simplified, printed, theirs = (our_schedule(kernel) for _ in range(4))
    first.trace.apply_to_schedule(replayed, remove_postproc=False)
    first.trace.simplified(remove_postproc=False).apply_to_schedule(simplified, remove_postproc=False)
    for again in (replayed, simplified):
        assert again.mod.script() == first.mod.script()
    assert str(replayed.trace) == str(first.trace)
    # The text is Python, and TVM's text for its own schedule is too.
    other = their_schedule(kernel)
    steps(other)
    for text, schedule in ((str(first.trace), printed), (str(other.trace), theirs)):
        scope = {"s_tir": s_tir}
        exec(text, scope)
        scope["apply_trace"](schedule)
        assert schedule.mod.script() == first.mod.script()


@pytest.mark.parametrize(("kernel", "name", "steps"), SEQUENCES, ids=ids(SEQUENCES))
def test_simplified_traces_are_alike(kernel, name, steps):
    ours, theirs = our_schedule(kernel), their_schedule(kernel)
    steps(theirs)
    steps(ours)
    assert str(ours.trace.simplified(True)) == str(theirs.trace.simplified(True))


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
