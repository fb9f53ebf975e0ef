"""Sets of integers: intervals whose ends are expressions, and what expressions over variables in such sets can be."""

from ..ffi import Object
from ..ffi.dataclasses import py_class
from ..ir import prim
from ..ir.expr import Var, is_prim_expr
from ..tirx import const

_POS_INF, _NEG_INF = Var("pos_inf", "handle"), Var("neg_inf", "handle")


def pos_inf():
    """The end of sets without a largest number."""
    return _POS_INF


def neg_inf():
    """The end of sets without a smallest number."""
    return _NEG_INF


def is_infinite(value):
    """Whether an end is none."""
    return isinstance(value, Var) and (value.same_as(_POS_INF) or value.same_as(_NEG_INF))


class IntSet(Object):
    """A set of integers."""

    def is_nothing(self):
        """Whether no number is in it."""
        return self.min_value.same_as(_POS_INF) and self.max_value.same_as(_NEG_INF)

    def is_everything(self):
        """Whether all are."""
        return self.min_value.same_as(_NEG_INF) and self.max_value.same_as(_POS_INF)

    @staticmethod
    def vector(vec):
        """The set of the lanes of a vector: a :class:`~relaxide.tirx.Ramp` or one value in every lane."""
        if isinstance(vec, prim.Broadcast):
            return IntSet.vector(vec.value)
        if not isinstance(vec, prim.Ramp):
            return IntSet.single_point(vec)
        lanes, stride = getattr(vec.lanes, "value", vec.lanes), getattr(vec.stride, "value", None)
        if not isinstance(lanes, int) or lanes < 0 or stride is None:
            # Of a vector whose length is not known one end is.
            ends = (vec.base, _POS_INF) if stride is not None and stride > 0 else (_NEG_INF, vec.base) if stride is not None else (_NEG_INF, _POS_INF)
            return IntervalSet(*ends)
        ends = (vec.base, _simple(vec.base + stride * (lanes - 1)))
        return IntervalSet(*(ends if stride >= 0 else ends[::-1]))

    @staticmethod
    def single_point(point):
        """The set of one number."""
        return IntervalSet(point, point)


@py_class("sym.IntervalSet", structural_eq="tree", init=False)
class IntervalSet(IntSet):
    """The numbers from ``min_value`` to ``max_value``, both included."""

    min_value: object
    max_value: object

    def __init__(self, min_value, max_value):
        self.__ffi_init__(_scalar(min_value), _scalar(max_value))

    def __repr__(self):
        return f"IntervalSet[{self.min_value}, {self.max_value}]"


def _scalar(value):
    return const(value, "int32") if isinstance(value, int) else value


def everything():
    """All integers."""
    return IntervalSet(_NEG_INF, _POS_INF)


def nothing():
    """No integer."""
    return IntervalSet(_POS_INF, _NEG_INF)


def _simple(value):
    from .analyzer import Analyzer

    return value if is_infinite(value) or not is_prim_expr(value) else Analyzer().simplify(value)


class Evaluator:
    """What an expression can be, of variables that lie in sets. Each end is as simple as an analyzer makes it."""

    def __init__(self, analyzer, dom_map):
        self.analyzer, self.dom_map, self.memo = analyzer, dom_map, {}

    def of(self, expr):
        """The set of an expression."""
        if isinstance(expr, int):
            return IntSet.single_point(const(expr, "int32"))
        if isinstance(expr, Var):
            return self._of_var(expr)
        if isinstance(expr, (prim.Ramp, prim.Broadcast)):
            return self.of(expr.value) if isinstance(expr, prim.Broadcast) else self._of_ramp(expr)
        rule = _RULES.get(type(expr))
        if rule is not None:
            return rule(self, self.of(expr.a), self.of(expr.b))
        if isinstance(expr, prim.Select):
            return self.joined(self.of(expr.true_value), self.of(expr.false_value))
        if isinstance(expr, prim.Cast):
            inner = self.of(expr.value)
            ends = (end if is_infinite(end) else end.astype(expr.dtype) for end in (inner.min_value, inner.max_value))
            return IntervalSet(*ends)
        return IntSet.single_point(expr) if not self._moves(expr) else everything()

    def _of_ramp(self, expr):
        lanes = IntSet.vector(expr)
        return self.joined(self.of(lanes.min_value), self.of(lanes.max_value)) if not is_infinite(lanes.max_value) else everything()

    def _of_var(self, var):
        # A variable is known by its place among the sets: what reads it out of an expression is another Python object each time.
        known = enumerate(self.dom_map.items())
        key, found = next(((place, value) for place, (key, value) in known if key.same_as(var)), (None, None))
        if found is None:
            return IntSet.single_point(var)
        if key not in self.memo:
            # Ends may be made of other variables, which lie in sets themselves; while they are looked at, this one stands for itself.
            self.memo[key] = IntSet.single_point(var)
            low = found.min_value if is_infinite(found.min_value) else self.of(found.min_value).min_value
            high = found.max_value if is_infinite(found.max_value) else self.of(found.max_value).max_value
            self.memo[key] = IntervalSet(low, high)
        return self.memo[key]

    def _moves(self, expr):
        from ..tirx._walk import walk_scalar

        return any(isinstance(part, Var) and any(part.same_as(var) for var in self.dom_map) for part in walk_scalar(expr))

    def simple(self, value):
        """An end in its simplest form."""
        return value if is_infinite(value) else self.analyzer.simplify(value)

    def sign(self, value):
        """1 where a number is never below zero, -1 where it is never above, else 0."""
        if is_infinite(value):
            return 0
        if self.analyzer.can_prove(value >= 0):
            return 1
        return -1 if self.analyzer.can_prove(value <= 0) else 0

    def is_point(self, value):
        """Whether a set has one number."""
        low, high = value.min_value, value.max_value
        return not is_infinite(low) and not is_infinite(high) and (low.same_as(high) or self.analyzer.can_prove_equal(low, high))

    def joined(self, a, b):
        """A set that has the numbers of both."""
        if a.is_nothing() or b.is_nothing():
            return b if a.is_nothing() else a
        low = _NEG_INF if is_infinite(a.min_value) or is_infinite(b.min_value) else self._extreme(a.min_value, b.min_value, prim.Min)
        high = _POS_INF if is_infinite(a.max_value) or is_infinite(b.max_value) else self._extreme(a.max_value, b.max_value, prim.Max)
        return IntervalSet(low, high)

    def _extreme(self, a, b, kind):
        return a if a.same_as(b) else self.simple(kind(a, b))

    def _sum(self, a, b):
        low = _NEG_INF if is_infinite(a.min_value) or is_infinite(b.min_value) else self.simple(a.min_value + b.min_value)
        high = _POS_INF if is_infinite(a.max_value) or is_infinite(b.max_value) else self.simple(a.max_value + b.max_value)
        return IntervalSet(low, high)

    def _difference(self, a, b):
        low = _NEG_INF if is_infinite(a.min_value) or is_infinite(b.max_value) else self.simple(a.min_value - b.max_value)
        high = _POS_INF if is_infinite(a.max_value) or is_infinite(b.min_value) else self.simple(a.max_value - b.min_value)
        return IntervalSet(low, high)

    def _product(self, a, b):
        if not self.is_point(b):
            a, b = b, a
        if not self.is_point(b):
            return everything()
        factor = b.min_value
        if self.is_point(a):
            return IntSet.single_point(self.simple(a.min_value * factor))
        return self._by_sign(a, factor, lambda end: self.simple(end * factor))

    def _by_sign(self, a, factor, step):
        sign = self.sign(factor)
        if not sign:
            return everything()
        low = a.min_value if is_infinite(a.min_value) else step(a.min_value)
        high = a.max_value if is_infinite(a.max_value) else step(a.max_value)
        if sign > 0:
            return IntervalSet(low, high)
        return IntervalSet(_NEG_INF if is_infinite(high) else high, _POS_INF if is_infinite(low) else low)

    def _quotient(self, a, b, kind):
        if not self.is_point(b):
            return everything()
        if self.is_point(a):
            return IntSet.single_point(self.simple(kind(a.min_value, b.min_value)))
        return self._by_sign(a, b.min_value, lambda end: self.simple(kind(end, b.min_value)))

    def _floor_div(self, a, b):
        return self._quotient(a, b, prim.FloorDiv)

    def _trunc_div(self, a, b):
        return self._quotient(a, b, prim.Div)

    def _floor_mod(self, a, b):
        if not self.is_point(b):
            return everything()
        if self.is_point(a):
            return IntSet.single_point(self.simple(prim.FloorMod(a.min_value, b.min_value)))
        divisor = b.min_value
        if self.sign(divisor) <= 0:
            return everything()
        if not is_infinite(a.min_value) and not is_infinite(a.max_value):
            first, last = prim.FloorDiv(a.min_value, divisor), prim.FloorDiv(a.max_value, divisor)
            if self.analyzer.can_prove_equal(first, last):
                return IntervalSet(self.simple(a.min_value - divisor * first), self.simple(a.max_value - divisor * first))
        return IntervalSet(const(0, str(divisor.dtype)), self.simple(divisor - 1))

    def _trunc_mod(self, a, b):
        if not self.is_point(b) or self.sign(b.min_value) <= 0:
            return everything()
        if self.is_point(a):
            return IntSet.single_point(self.simple(prim.Mod(a.min_value, b.min_value)))
        zero, most = const(0, str(b.min_value.dtype)), self.simple(b.min_value - 1)
        return IntervalSet(zero if self.sign(a.min_value) > 0 else self.simple(-most), most)

    def _min(self, a, b):
        low = _NEG_INF if is_infinite(a.min_value) or is_infinite(b.min_value) else self._extreme(a.min_value, b.min_value, prim.Min)
        ends = [end for end in (a.max_value, b.max_value) if not is_infinite(end)]
        high = _POS_INF if not ends else ends[0] if len(ends) == 1 else self._extreme(*ends, prim.Min)
        return IntervalSet(low, high)

    def _max(self, a, b):
        high = _POS_INF if is_infinite(a.max_value) or is_infinite(b.max_value) else self._extreme(a.max_value, b.max_value, prim.Max)
        ends = [end for end in (a.min_value, b.min_value) if not is_infinite(end)]
        low = _NEG_INF if not ends else ends[0] if len(ends) == 1 else self._extreme(*ends, prim.Max)
        return IntervalSet(low, high)


_RULES = {prim.Add: Evaluator._sum, prim.Sub: Evaluator._difference, prim.Mul: Evaluator._product, prim.FloorDiv: Evaluator._floor_div}
_RULES |= {prim.FloorMod: Evaluator._floor_mod, prim.Div: Evaluator._trunc_div, prim.Mod: Evaluator._trunc_mod}
_RULES |= {prim.Min: Evaluator._min, prim.Max: Evaluator._max}


def union_lower_bound(sets):
    """A set whose numbers are all in one of several sets: those that cannot be told to touch are left out."""
    from .analyzer import Analyzer

    analyzer, made = Analyzer(), None
    for one in sets:
        if one.is_nothing():
            continue
        if made is None:
            made = one
            continue
        if _touch(analyzer, made, one):
            made = Evaluator(analyzer, {}).joined(made, one)
        elif _touch(analyzer, one, made):
            made = Evaluator(analyzer, {}).joined(one, made)
    return nothing() if made is None else made


def _touch(analyzer, a, b):
    """Whether the second begins at most one behind the end of the first, and not in front of it."""
    if is_infinite(a.max_value) or is_infinite(b.min_value):
        return True
    return analyzer.can_prove(a.max_value + 1 >= b.min_value) and (
        is_infinite(b.max_value) or is_infinite(a.min_value) or analyzer.can_prove(b.max_value + 1 >= a.min_value)
    )


def _prepared(analyzer, var_dom):
    from .analyzer import Analyzer

    analyzer = Analyzer() if analyzer is None else analyzer.clone()
    for var, dom in var_dom.items():
        analyzer.bind(var, dom, allow_override=True)
    return analyzer


def _by_map(region, var_dom, predicate, analyzer, level):
    """The interval of each dimension whose first index is a fused and split iterator; ``None`` where one is not."""
    from .iter_affine_map import detect_iter_map

    found = detect_iter_map([dim.min for dim in region], var_dom, predicate, level, True, analyzer)
    if not found.indices:
        return None
    own, sets = _prepared(analyzer, {}), []
    for dim, index in zip(region, found.indices):
        if not index.args:
            sets.append(IntervalSet(index.base, own.simplify(index.base + dim.extent - 1)))
            continue
        if len(index.args) > 1:
            return None
        (split,) = index.args
        if not own.can_prove(prim.Max(split.scale, -split.scale) <= dim.extent):
            # Steps that are wider than what is touched at each leave gaps.
            return None
        last = own.simplify(index.base + (split.extent - 1) * split.scale)
        low, high = (index.base, last) if own.can_prove(split.scale >= 0) else (last, index.base)
        sets.append(IntervalSet(low, own.simplify(high + dim.extent - 1)))
    return sets


def estimate_region_lower_bound(region, var_dom, predicate, analyzer=None):
    """For each dimension numbers that are surely touched, of a region whose ends are made of variables; ``None`` where it cannot be told.

    Parameters
    ----------
    region : list of Range
        What is touched for each value of the variables.
    var_dom : dict of Var to Range
        The ranges of the variables.
    predicate : expression
        A condition under which it is touched.
    analyzer : Analyzer, optional
        What else is known.

    Returns
    -------
    list of IntSet, or None
    """
    from .iter_affine_map import IterMapLevel

    return _by_map(region, var_dom, predicate, analyzer, IterMapLevel.Surjective)


def estimate_region_strict_bound(region, var_dom, predicate, analyzer=None):
    """For each dimension the numbers that are touched, neither fewer nor more; ``None`` where it cannot be told. The parameters are those
    of :func:`estimate_region_lower_bound`."""
    from .iter_affine_map import IterMapLevel

    return _by_map(region, var_dom, predicate, analyzer, IterMapLevel.Bijective)


def estimate_region_upper_bound(region, var_dom, predicate, analyzer=None):
    """For each dimension numbers among which all that are touched lie. The parameters are those of :func:`estimate_region_lower_bound`."""
    from .iter_affine_map import IterMapLevel

    exact = _by_map(region, var_dom, predicate, analyzer, IterMapLevel.Surjective)
    if exact is not None:
        return exact
    own, sets = _prepared(analyzer, var_dom), []
    domain = {var: IntervalSet(dom.min, dom.min + dom.extent - 1) for var, dom in var_dom.items()}
    plain = _prepared(analyzer, {})
    for dim in region:
        alone = _by_map([dim], var_dom, predicate, analyzer, IterMapLevel.Surjective)
        if alone is not None:
            sets += alone
            continue
        lone = _fused_ends(dim, var_dom, predicate, plain)
        if lone is not None:
            sets.append(lone)
            continue
        low = Evaluator(own, domain).of(dim.min)
        width = Evaluator(own, domain).of(dim.extent)
        last = low.max_value if is_infinite(low.max_value) else own.simplify(low.max_value + width.max_value - 1)
        sets.append(IntervalSet(low.min_value, last))
    return sets


def _fused_ends(dim, var_dom, predicate, analyzer):
    """The ends of an index that is one iterator of several, though with gaps between its steps."""
    from .iter_affine_map import detect_iter_map

    found = detect_iter_map([dim.min], var_dom, predicate, "nocheck", True, analyzer)
    if not found.indices or len(found.indices[0].args) != 1:
        return None
    (split,), base = found.indices[0].args, found.indices[0].base
    if not analyzer.can_prove(split.scale >= 0):
        return None
    return IntervalSet(base, analyzer.simplify(base + (split.extent - 1) * split.scale + dim.extent - 1))


__all__ = ["IntSet", "IntervalSet", "estimate_region_lower_bound", "estimate_region_strict_bound", "estimate_region_upper_bound"]
__all__ += ["neg_inf", "pos_inf", "union_lower_bound"]
