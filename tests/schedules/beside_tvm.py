"""A module of ours held against TVM's: the same program, up to how indices are written."""

import pytest

tvm = pytest.importorskip("tvm", reason="apache-tvm is not installed; it is the other side of these tests")

from tvm import tirx  # noqa: E402

ANALYZER = tvm.sym.Analyzer()


def simple(e):
    return ANALYZER.canonical_simplify(e)


def box(region):
    ranges = [tvm.ir.Range.from_min_extent(simple(r.min), simple(r.extent)) for r in region.region]
    return tirx.BufferRegion(region.source, ranges)


def with_domain(axis, *domain):
    return tirx.IterVar(tvm.ir.Range.from_min_extent(*domain), axis.var, axis.iter_type)


def tidied(stmt, with_regions=True):
    """A statement of TVM with indices, the values of axes and predicates in one form."""
    if isinstance(stmt, tirx.BufferStore):
        return tirx.BufferStore(stmt.buffer, stmt.value, [simple(index) for index in stmt.indices])
    if isinstance(stmt, tirx.For):
        extent = simple(stmt.extent)
        # Where it is known, the counter of a loop of one iteration would go.
        if not isinstance(extent, tirx.IntImm) or extent.value != 1:
            ANALYZER.bind(stmt.loop_var, tvm.ir.Range.from_min_extent(stmt.min, extent))
        body = tidied(stmt.body, with_regions)
        return tirx.For(stmt.loop_var, stmt.min, extent, stmt.kind, body, stmt.thread_binding, stmt.annotations)
    if isinstance(stmt, tirx.SeqStmt):
        return tirx.SeqStmt([tidied(part, with_regions) for part in stmt.seq])
    if isinstance(stmt, tvm.s_tir.SBlockRealize):
        b = stmt.block
        parts = (b.init, b.alloc_buffers, b.match_buffers, b.annotations)
        boxes = ([box(region) for region in regions if with_regions] for regions in (b.reads, b.writes))
        axes = b.iter_vars if with_regions else [with_domain(axis, 0, 1) for axis in b.iter_vars]
        block = tvm.s_tir.SBlock(axes, *boxes, b.name_hint, tidied(b.body, with_regions), *parts)
        values = [simple(value) for value in stmt.iter_values]
        return tvm.s_tir.SBlockRealize(values, simple(stmt.predicate), block)
    return stmt


def tidy(module, with_regions=True):
    kernels = {var.name_hint: func.with_body(tidied(func.body, with_regions)) for var, func in module.functions.items()}
    return tvm.IRModule(kernels)


def reread(module):
    """Our module, read by TVM from our print."""
    lines = [line for line in module.script().splitlines() if not line.startswith(("from tvm", "# from tvm"))]
    return tvm.script.from_source("\n".join(lines) + "\n")


def assert_same_program(ours, theirs, with_regions=True):
    if not with_regions:
        # Buffers of indices have one stride in TVM, whatever their rank.
        theirs = tvm.script.from_source(theirs.script().replace(", strides=(1,)", ""))
    left, right = tidy(reread(ours), with_regions), tidy(theirs, with_regions)
    try:
        tvm.ir.assert_structural_equal(left, right, map_free_vars=True)
    except ValueError as error:
        pytest.fail(f"{str(error)[-400:]}\nours:\n{left.script()}\nTVM's:\n{right.script()}", pytrace=False)
