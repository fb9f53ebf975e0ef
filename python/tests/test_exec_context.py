"""Which threads execute a place of a kernel, and how scopes divide them."""

import itertools

import pytest

from relaxide.tirx import exec_context as ec
from relaxide.tirx.exec_context import AxisRange, ExecContext, LaneBinding

WARPS = LaneBinding("warpid", ec.LANE_FLAT, 16)
GROUPS = LaneBinding("warpid", ec.LANE_WG_OUTER, 4)
WITHIN = LaneBinding("warpid", ec.LANE_W_INNER, 4)
THREADS = LaneBinding("thread", ec.LANE_CTA_THREAD, 256)
OF_GROUP = LaneBinding("thread", ec.LANE_WG_THREAD, 128)


def threads(A):
    return {(warp, lane) for warp in A.warpid._places for lane in A.laneid._places}


@pytest.mark.parametrize("lo, hi", [(0, 128), (34, 40), (32, 96), (64, 256), (0, 256), (20, 50), (300, 400)])
def test_a_range_of_threads_is_a_box_or_refused(lo, hi):
    A = ec.initial_A(warp_ext=8)
    expected = {(thread // 32, thread % 32) for thread in range(lo, min(hi, 256))}
    warps, lanes = {warp for warp, _ in expected}, {lane for _, lane in expected}
    if not expected or expected != set(itertools.product(warps, lanes)):
        with pytest.raises(ec.ExecContextError):
            ec.filter_narrow(A, THREADS, lo, hi)
    else:
        assert threads(ec.filter_narrow(A, THREADS, lo, hi)) == expected


@pytest.mark.parametrize("modulus, residue", [(2, 0), (2, 1), (3, 2), (4, 3), (5, 0)])
def test_remainders(modulus, residue):
    A = ec.filter_modulo(ec.initial_A(warp_ext=1, cta_ext=12), "cta_id", 2, 0)
    expected = [at for at in range(0, 12, 2) if at % modulus == residue]
    if not expected:
        with pytest.raises(ec.ExecContextError, match="empty"):
            ec.filter_modulo(A, "cta_id", modulus, residue)
    else:
        assert list(ec.filter_modulo(A, "cta_id", modulus, residue).cta_id._places) == expected


def test_scopes_divide_threads():
    whole = ExecContext.at_kernel_entry(warp_ext=16, cta_ext=2)
    group = whole.with_filter(GROUPS, 1, 3).with_scope_switch(ec.WARPGROUP)
    assert group.inter == {"wgid": AxisRange(2, 1), "cta_id": AxisRange(2)}
    assert group.intra == {"laneid": AxisRange(32), "wid_in_wg": AxisRange(4)}
    part = group.with_filter(GROUPS, 2, 3).with_filter(WITHIN, 1, 3)
    assert part.A.warpid == AxisRange(2, 9) and part.intra["wid_in_wg"] == AxisRange(2, 1)
    assert part.with_filter(OF_GROUP, 32, 64).A.warpid == AxisRange(1, 9)
    assert set(part.with_scope_switch(ec.CLUSTER).intra) == {"laneid", "warpid", "cta_id"}
    assert whole.A.warpid == AxisRange(16)


def test_what_is_no_box_of_groups_is_refused():
    A = ec.filter_narrow(ec.initial_A(warp_ext=16), WARPS, 2, 6)
    with pytest.raises(ec.ExecContextError, match="warpgroup"):
        ec.scope_switch(A, ec.WARPGROUP)
    with pytest.raises(ec.ExecContextError, match="aligned"):
        ec.filter_narrow(A, GROUPS, 0, 1)
    with pytest.raises(ec.ExecContextError, match="multiple"):
        ec.filter_narrow(ec.initial_A(warp_ext=8), OF_GROUP, 0, 64)
    with pytest.raises(ValueError, match="unknown scope"):
        ec.scope_switch(A, "grid")
