"""How sums of iterators are divided into those of some variables and those of the others."""

from ..ir import prim
from ..ir.expr import Var
from ..tirx import const
from ..tirx._walk import walk_scalar
from ._iter_map import _classes, _conjuncts, _is, plain
from ._iter_padding import Unmapped


class Division:
    """Takes sums apart into those of some variables and those of the others."""

    def __init__(self, detection, sub_iters):
        self.detection, self.sub = detection, list(sub_iters)

    def divide(self, sums, predicate):
        """``[[outer, inner], …, conditions]``, or an empty list."""
        mark = _classes()[0]
        made = []
        try:
            for one in sums:
                made.append(self._one(one))
            made.append([mark(part, 0) for part in self._conditions(predicate)])
        except Unmapped:
            return []
        return made

    def _side(self, expr):
        """``"inner"`` where all variables are among the chosen ones, ``"outer"`` where none is, ``None`` else."""
        used = {var for var in (part for part in walk_scalar(plain(expr)) if isinstance(part, Var)) if var in self.detection.domain}
        inner = [var for var in used if any(var.same_as(one) for one in self.sub)]
        return "outer" if not inner else "inner" if len(inner) == len(used) else None

    def _one(self, made):
        mark, split, total = _classes()
        zero, one = const(0, str(made.base.dtype)), const(1, str(made.base.dtype))
        if not made.args:
            return [mark(total([], zero), one), mark(made, one)]
        (arg,) = made.args
        side = self._side(arg)
        if side == "inner":
            return [mark(total([], zero), one), mark(made, arg.extent)]
        if side == "outer":
            return [mark(made, arg.extent), mark(total([], zero), one)]
        source = arg.source.source
        if not hasattr(source, "args") or not _is(arg.lower_factor, 1) and not self._whole(arg):
            raise Unmapped("a part of an iterator is of both kinds of variables")
        if not self._whole(arg):
            raise Unmapped("a part of an iterator is of both kinds of variables")
        outer, inner, extent, size = [], [], one, one
        for part in reversed(list(source.args)):
            kind = self._side(part)
            if kind is None:
                sub_outer, sub_inner = self._one(total([split(part.source, part.lower_factor, part.extent, one)], zero))
                if outer:
                    raise Unmapped("an inner variable stands above an outer one")
                inner += [split(a.source, a.lower_factor, a.extent, self._simple(a.scale * part.scale)) for a in sub_inner.source.args]
                size = self._simple(size * sub_inner.extent)
                outer += [split(a.source, a.lower_factor, a.extent, a.scale) for a in sub_outer.source.args]
                extent = self._simple(extent * sub_outer.extent)
            elif kind == "inner":
                if outer:
                    raise Unmapped("an inner variable stands above an outer one")
                inner.append(part)
                size = self._simple(size * part.extent)
            else:
                outer.append(split(part.source, part.lower_factor, part.extent, self._simple(prim.FloorDiv(part.scale, size))))
                extent = self._simple(extent * part.extent)
        scaled = [split(a.source, a.lower_factor, a.extent, self._simple(a.scale * arg.scale)) for a in reversed(inner)]
        return [mark(total(outer[::-1], zero), extent), mark(total(scaled, made.base), size)]

    def _whole(self, arg):
        return self.detection._equal(arg.lower_factor, const(1, str(arg.extent.dtype))) and self.detection._equal(arg.extent, arg.source.extent)

    def _simple(self, value):
        return self.detection.analyzer.simplify(value)

    def _conditions(self, predicate):
        true = prim.IntImm("bool", 1)
        sides = {"outer": true, "inner": true}
        if predicate is True or _is(predicate, 1):
            return true, true
        for one in _conjuncts(predicate):
            side = self._side(one)
            if side is None:
                raise Unmapped("a condition is about both kinds of variables")
            sides[side] = one if sides[side] is true else prim.And(sides[side], one)
        return sides["outer"], sides["inner"]


__all__ = ["Division"]
