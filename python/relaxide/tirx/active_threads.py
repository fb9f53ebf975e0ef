"""Which threads execute a place of a kernel of tiles, by the conditions around it.

A condition narrows them where it compares a number of a scope with constants (``warp_id == 0``, ``32 <= tid``), asks for a
remainder (``cbx % 2 == 0``), or has an instruction choose a lane (``T.cuda.elect_sync()``). Others narrow nothing: what is told
is what may be executing. Numbers of blocks of the whole grid are no part of it, since a place knows those of its cluster only.
"""

from dataclasses import dataclass, replace

from ..ir import prim
from .exec_context import (
    LANE_CTA_THREAD,
    LANE_FLAT,
    LANE_W_INNER,
    LANE_WG_OUTER,
    LANE_WG_THREAD,
    ActiveSet,
    AxisRange,
    ExecContextError,
    LaneBinding,
    filter_narrow,
    scope_switch,
)
from .op import call_intrin

#: What the variables of each binding of scope ids count, where there is one: the axis, and how.
_COUNTED = {
    3: ("warpid", LANE_WG_OUTER),
    4: ("warpid", LANE_FLAT),
    5: ("warpid", LANE_W_INNER),
    6: ("laneid", LANE_FLAT),
    7: ("warpid", LANE_CTA_THREAD),
    8: ("warpid", LANE_WG_THREAD),
}
_IN_CLUSTER, _LANE, _PAIR = 2, 6, 9
_CLUSTER_AXES = ("cbx", "cby", "cbz")
_ELECT = "tirx.cuda.elect_sync"


@dataclass(frozen=True)
class ActiveThreads:
    """The lanes and warps, the blocks of the cluster by axis, and the choice of a lane."""

    box: ActiveSet
    blocks: dict
    chosen: object = None

    def sides(self, scope_kind):
        """``(inter, intra)``: what counts the units of a scope, and what one has inside, as lists of numbers by axis."""
        split = scope_switch(self.box, scope_kind)
        parts = [self._with_blocks(part) for part in (split.inter, split.intra)]
        if self.chosen is not None and "laneid" in parts[0]:
            parts[0]["laneid"] = [1, self.chosen]
        return parts

    def _with_blocks(self, part):
        listed = {}
        for name, side in part.items():
            listed.update({n: _listed(s) for n, s in self.blocks.items()} if name == "cta_id" else {name: _listed(side)})
        return listed


def _listed(side):
    return [side.extent, side.offset] if side.stride == 1 else [side.extent, side.offset, side.stride]


class Conditions:
    """Narrows threads by conditions over the scope ids of one kernel.

    ``definitions`` are the scope ids, ``threads`` how many threads a block has.
    """

    def __init__(self, definitions, threads):
        self.bindings, self.axes, self.pairs, self.lane = {}, {}, [], None
        blocks = {"cta_id": AxisRange(1)}
        for one in definitions:
            ids, counts = list(one.def_ids), [_number(extent) for extent in one.extents or ()]
            if one.scope in _COUNTED and len(ids) == 1:
                axis, kind = _COUNTED[one.scope]
                self.bindings[ids[0]] = LaneBinding(axis, kind, counts[0] if counts and counts[0] else 0)
            if one.scope == _LANE:
                self.lane = self.lane or ids[0]
            if one.scope == _PAIR:
                self.pairs += ids
            if one.scope == _IN_CLUSTER and counts and all(counts):
                names = ("cta_id",) if len(ids) == 1 else _CLUSTER_AXES
                self.axes.update(dict(zip(ids, names)))
                blocks = {name: AxisRange(count) for name, count in zip(names, counts)}
        self.strides, step = {}, 1
        for name, side in blocks.items():
            self.strides[name] = step
            step *= side.extent
        box = ActiveSet(AxisRange(min(threads, 32)), AxisRange(max(-(-threads // 32), 1)), AxisRange(step))
        self.all = ActiveThreads(box, blocks)

    def where(self, threads, condition):
        """The threads for which a condition may hold.

        Raises
        ------
        ExecContextError
            There are none, or they are no box.
        """
        bounds, filters = {}, []
        for atom in _conjuncts(condition):
            self._read(atom, bounds, filters)
        filters += [lambda t, v=var, b=bound: self._within(t, v, *b) for var, bound in bounds.items()]
        # One filter may make a box of what another needs as one.
        while filters:
            left, problem = [], None
            for narrow in filters:
                try:
                    threads = narrow(threads)
                except ExecContextError as error:
                    left, problem = [*left, narrow], error
            if len(left) == len(filters):
                raise problem
            filters = left
        return threads

    def _read(self, atom, bounds, filters):
        if _is_elected(atom):
            if self.lane is not None:
                filters.append(lambda t: replace(t, chosen=call_intrin("int32", "tirx.selector", self.lane, atom)))
            return
        remainder = _remainder(atom)
        if remainder is not None and remainder[0] in self.axes:
            filters.append(lambda t, r=remainder: self._modulo(t, self.axes[r[0]], r[1], r[2]))
            return
        bound = _bound(atom)
        if bound is None:
            return
        var, low, end = bound
        if var in self.pairs and end - low == 1:
            filters.append(lambda t, parity=low: self._parity(t, parity))
        elif var in self.bindings or var in self.axes:
            known = bounds.get(var, (0, 1 << 31))
            bounds[var] = (max(known[0], low), min(known[1], end))

    def _within(self, threads, var, low, end):
        if var in self.axes:
            name = self.axes[var]
            return replace(threads, blocks={**threads.blocks, name: threads.blocks[name].intersect(low, end)})
        return replace(threads, box=filter_narrow(threads.box, self.bindings[var], low, end))

    def _modulo(self, threads, name, modulus, residue):
        return replace(threads, blocks={**threads.blocks, name: threads.blocks[name].modulo(modulus, residue)})

    def _parity(self, threads, parity):
        """The blocks whose number in the cluster, counted through, is even or odd."""
        odd = {name: side for name, side in threads.blocks.items() if self.strides[name] * side.stride % 2}
        moving = [name for name, side in odd.items() if side.extent > 1]
        if len(moving) > 1:
            raise ExecContextError("the blocks of a pair are told apart along several axes at once")
        if not moving:
            return threads
        fixed = sum(self.strides[name] * side.offset for name, side in threads.blocks.items() if name not in moving)
        return self._modulo(threads, moving[0], 2, (parity - fixed) % 2)


def _number(value):
    return getattr(value, "value", value if isinstance(value, int) else None)


def _op(value):
    op = getattr(value, "op", None)
    return getattr(op, "name", op)


def _conjuncts(condition):
    both = isinstance(condition, prim.And) or (_op(condition) == "tirx.bitwise_and" and len(condition.args) == 2)
    if not both:
        return [condition]
    a, b = (condition.a, condition.b) if isinstance(condition, prim.And) else condition.args
    return [*_conjuncts(a), *_conjuncts(b)]


def _is_elected(atom):
    """Whether a condition is that an instruction chooses the lane, as such or as a number that is not zero."""
    if isinstance(atom, prim.Cast):
        return _is_elected(atom.value)
    if isinstance(atom, prim.NE):
        return _op(atom.a) == _ELECT and _number(atom.b) == 0
    return _op(atom) == _ELECT


def _remainder(atom):
    """``(variable, modulus, remainder)`` of ``variable % modulus == remainder``."""
    if not isinstance(atom, prim.EQ) or not isinstance(atom.a, (prim.FloorMod, prim.Mod)):
        return None
    modulus, residue = _number(atom.a.b), _number(atom.b)
    return None if not modulus or residue is None else (atom.a.a, modulus, residue)


def _bound(atom):
    """``(variable, first, end)`` of a comparison with a constant."""
    if isinstance(atom, prim.Cast):
        return _bound(atom.value)
    if not isinstance(atom, (prim.EQ, prim.LT, prim.LE, prim.GT, prim.GE)):
        return None
    a, b = atom.a, atom.b
    kind, turned = type(atom), {prim.LT: prim.GT, prim.LE: prim.GE, prim.GT: prim.LT, prim.GE: prim.LE}
    if _number(a) is not None:
        a, b, kind = b, a, turned.get(kind, kind)
    value, most = _number(b), 1 << 31
    if value is None:
        return None
    ranges = {prim.EQ: (value, value + 1), prim.LT: (0, value), prim.LE: (0, value + 1), prim.GT: (value + 1, most), prim.GE: (value, most)}
    return (a, *ranges[kind])


__all__ = ["ActiveThreads", "Conditions"]
