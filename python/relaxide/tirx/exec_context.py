"""Which threads of a GPU execute a place of a kernel, and how a scope divides them.

Threads are counted along three axes: lanes of a warp, warps of a block, blocks of a cluster. What executes a place is a box of
these, each side of which is a progression (:class:`AxisRange`). Filters make the box smaller. A scope divides it into what
one unit of the scope has inside (``intra``) and what counts its units (``inter``); four warps that begin at a multiple of
four are a warp group. Nothing here generates code.
"""

from dataclasses import dataclass, replace

__all__ = ["ActiveSet", "AxisRange", "ExecContext", "ExecContextError", "LaneBinding", "Split", "filter_modulo", "filter_narrow"]
__all__ += ["initial_A", "scope_switch"]

#: Warps of a warp group, and lanes of a warp.
WG_SIZE = 4
_LANES = 32

KERNEL, CLUSTER, CTA = "kernel", "cluster", "cta"
WARPGROUP, WARP, THREAD = "warpgroup", "warp", "thread"
SCOPE_KINDS = (KERNEL, CLUSTER, CTA, WARPGROUP, WARP, THREAD)

#: What a variable of a kernel counts: an axis, the warp groups, the warps within one, the threads of a block or of a warp group.
LANE_FLAT = "flat"
LANE_WG_OUTER = "wg_outer"
LANE_W_INNER = "w_inner"
LANE_CTA_THREAD = "cta_thread"
LANE_WG_THREAD = "wg_thread"


class ExecContextError(Exception):
    """A set of threads that is empty, or no box."""


@dataclass(frozen=True)
class AxisRange:
    """The places ``offset + stride * i`` of an axis, for ``i`` below ``extent``."""

    extent: int
    offset: int = 0
    stride: int = 1

    @property
    def _places(self):
        return range(self.offset, self.offset + self.stride * self.extent, self.stride)

    @property
    def _end(self):
        return self._places[-1] + 1

    def _from(self, first, count, step, what):
        """Every ``step``th of the places from one of them on."""
        if count <= 0:
            raise ExecContextError(f"{what} leaves an empty range of {self.extent} places from {self.offset} by {self.stride}")
        return AxisRange(count, self.offset + self.stride * first, self.stride * step)

    def intersect(self, lo, hi):
        """Those of ``[lo, hi)``."""
        first = max(0, -((self.offset - lo) // self.stride))
        end = min(self.extent, -((self.offset - hi) // self.stride))
        return self._from(first, end - first, 1, f"the filter [{lo}, {hi})")

    def modulo(self, modulus, residue):
        """Those whose remainder by ``modulus`` is ``residue``."""
        # Remainders of a progression repeat after at most as many places as the modulus counts.
        hits = [at for at in range(min(self.extent, 2 * modulus)) if (self._places[at] - residue) % modulus == 0]
        what = f"the remainder {residue} by {modulus}"
        if not hits:
            return self._from(0, 0, 1, what)
        step = _period(self.stride, modulus)
        return self._from(hits[0], (self.extent - 1 - hits[0]) // step + 1, step, what)


def _period(stride, modulus):
    """After how many places of a progression a remainder comes again."""
    return next(count for count in range(1, modulus + 1) if stride * count % modulus == 0)


@dataclass(frozen=True)
class ActiveSet:
    """A box of threads, by its sides."""

    laneid: AxisRange
    warpid: AxisRange
    cta_id: AxisRange

    @property
    def size(self):
        """How many threads it has."""
        return self.laneid.extent * self.warpid.extent * self.cta_id.extent

    @property
    def axis_names(self):
        """The names of its axes."""
        return ["laneid", "warpid", "cta_id"]

    def axis(self, name):
        """Its side along an axis."""
        if name not in self.axis_names:
            raise ValueError(f"there is no axis {name!r}; there are {', '.join(self.axis_names)}")
        return getattr(self, name)

    def replace_axis(self, axis, axis_range):
        """The box with another side along an axis."""
        self.axis(axis)
        return replace(self, **{axis: axis_range})


@dataclass(frozen=True)
class LaneBinding:
    """What a variable of a kernel counts: along which axis, in which way (``LANE_FLAT`` and so on), and how many there are."""

    axis: str
    kind: str
    declared_extent: int


def initial_A(*, lane_ext=_LANES, warp_ext, cta_ext=1):
    """All threads of a kernel."""
    return ActiveSet(AxisRange(lane_ext), AxisRange(warp_ext), AxisRange(cta_ext))


def filter_narrow(A, binding, lo, hi):
    """The threads for which a variable is within ``[lo, hi)``.

    Raises
    ------
    ExecContextError
        There are none, or they are no box.
    """
    if lo >= hi:
        raise ExecContextError(f"the range [{lo}, {hi}) is empty or inverted")
    if binding.kind == LANE_FLAT:
        return A.replace_axis(binding.axis, A.axis(binding.axis).intersect(lo, hi))
    if binding.kind == LANE_CTA_THREAD:
        warps, lanes = _of_threads(A.warpid, A.laneid, lo, hi)
        return replace(A, warpid=warps, laneid=lanes)
    if binding.kind == LANE_WG_THREAD:
        return _of_group_threads(A, lo, hi)
    if binding.kind not in (LANE_WG_OUTER, LANE_W_INNER):
        raise ValueError(f"unknown kind of variable: {binding.kind!r}")
    if binding.axis != "warpid" or A.warpid.stride != 1:
        raise ExecContextError(f"{binding.kind} counts warps in a row, not {binding.axis} by {A.axis(binding.axis).stride}")
    group, within = divmod(A.warpid.offset, WG_SIZE)
    if binding.kind == LANE_WG_OUTER:
        if within or A.warpid.extent % WG_SIZE:
            raise ExecContextError(
                f"warp groups are counted where warps are aligned to WG_SIZE={WG_SIZE}, not from {A.warpid.offset} on, {A.warpid.extent} of them"
            )
        groups = AxisRange(A.warpid.extent // WG_SIZE, group).intersect(lo, hi)
        return replace(A, warpid=AxisRange(groups.extent * WG_SIZE, groups.offset * WG_SIZE))
    if within + A.warpid.extent > WG_SIZE:
        raise ExecContextError(
            f"the warps of one group are counted here, but the range spans multiple warpgroups: {A.warpid.extent} warps from {A.warpid.offset} on"
        )
    inner = AxisRange(A.warpid.extent, within).intersect(lo, hi)
    return replace(A, warpid=AxisRange(inner.extent, group * WG_SIZE + inner.offset))


def _of_group_threads(A, lo, hi):
    parts = _warp_groups(A.warpid)
    if parts is None:
        raise ExecContextError("the threads of a warp group are counted where warps begin and end with groups, or are of one")
    within, groups = parts
    warps, lanes = _of_threads(within, A.laneid, lo, hi)
    if (warps, lanes) == (within, A.laneid):
        return A
    if groups.extent != 1:
        raise ExecContextError(f"[{lo}, {hi}) of each of multiple warpgroups is no box of threads")
    return replace(A, warpid=AxisRange(warps.extent, groups.offset * WG_SIZE + warps.offset), laneid=lanes)


def _of_threads(warps, lanes, lo, hi):
    """The box of warps and lanes whose threads, counted through, are within a range."""
    if lo <= warps.offset * _LANES + lanes.offset and (warps._end - 1) * _LANES + lanes._end <= hi:
        return warps, lanes
    if warps.stride != 1 or lanes.stride != 1:
        raise ExecContextError("threads are counted through where warps and lanes are in a row")
    inside = {}
    for warp in warps._places:
        first, end = max(lanes.offset, lo - warp * _LANES), min(lanes._end, hi - warp * _LANES)
        if first < end:
            inside[warp] = AxisRange(end - first, first)
    if not inside:
        raise ExecContextError(f"the threads [{lo}, {hi}) are an empty set here")
    if len(set(inside.values())) != 1:
        raise ExecContextError(f"the threads [{lo}, {hi}) are a non-rectangular set of warps and lanes")
    return AxisRange(len(inside), min(inside)), inside[min(inside)]


def filter_modulo(A, axis, modulus, residue):
    """The threads whose place along an axis has a remainder."""
    if modulus <= 0:
        raise ExecContextError(f"a modulus is positive, got {modulus}")
    return A.replace_axis(axis, A.axis(axis).modulo(modulus, residue))


@dataclass(frozen=True)
class Split:
    """How a scope divides threads: what counts its units, and what one has inside."""

    inter: dict
    intra: dict


def _warp_groups(warps):
    """``(warps of a group, groups)`` of warps; ``None`` where they are no such product."""
    group, within = divmod(warps.offset, WG_SIZE)
    if warps.stride != 1:
        return None
    if within == 0 and warps.extent % WG_SIZE == 0:
        return AxisRange(WG_SIZE), AxisRange(warps.extent // WG_SIZE, group)
    if within + warps.extent <= WG_SIZE:
        return AxisRange(warps.extent, within), AxisRange(1, group)
    return None


#: The axes inside of one unit of a scope.
_INSIDE = {
    KERNEL: (),
    THREAD: (),
    WARP: ("laneid",),
    CTA: ("laneid", "warpid"),
    CLUSTER: ("laneid", "warpid", "cta_id"),
}


def scope_switch(A, scope_kind):
    """How a scope divides threads.

    Raises
    ------
    ExecContextError
        The scope is a warp group, and the warps are neither whole groups nor of one.
    """
    if scope_kind == WARPGROUP:
        parts = _warp_groups(A.warpid)
        if parts is None:
            raise ExecContextError(f"{A.warpid} crosses warpgroup boundary: warps are whole groups, or of one")
        within, groups = parts
        return Split({"wgid": groups, "cta_id": A.cta_id}, {"laneid": A.laneid, "wid_in_wg": within})
    if scope_kind not in _INSIDE:
        raise ValueError(f"unknown scope {scope_kind!r}; there are {', '.join(SCOPE_KINDS)}")
    inside = _INSIDE[scope_kind]
    sides = {name: A.axis(name) for name in A.axis_names}
    return Split(
        {name: side for name, side in sides.items() if name not in inside},
        {name: side for name, side in sides.items() if name in inside},
    )


@dataclass(frozen=True)
class ExecContext:
    """The threads at a place, the scope that it is in, and how that divides them."""

    A: ActiveSet
    scope_kind: str
    inter: dict
    intra: dict

    @staticmethod
    def _of(A, scope_kind):
        split = scope_switch(A, scope_kind)
        return ExecContext(A, scope_kind, split.inter, split.intra)

    @staticmethod
    def at_kernel_entry(*, lane_ext=_LANES, warp_ext, cta_ext=1):
        """Where a kernel begins."""
        return ExecContext._of(initial_A(lane_ext=lane_ext, warp_ext=warp_ext, cta_ext=cta_ext), KERNEL)

    def with_filter(self, binding, lo, hi):
        """Where a variable is within ``[lo, hi)``."""
        return ExecContext._of(filter_narrow(self.A, binding, lo, hi), self.scope_kind)

    def with_cta_axis_modulo(self, axis, modulus, residue):
        """Where the place along an axis has a remainder."""
        return ExecContext._of(filter_modulo(self.A, axis, modulus, residue), self.scope_kind)

    def with_scope_switch(self, scope_kind):
        """Within a scope."""
        return ExecContext._of(self.A, scope_kind)
