"""What a condition says of one of its variables."""

from ..ir import prim
from ..tirx import const
from .analyzer import Analyzer
from .int_set import Evaluator, IntervalSet, everything, is_infinite, neg_inf, nothing, pos_inf
from .pattern import _has, linear_in

_MIRROR = {prim.LT: prim.GT, prim.LE: prim.GE, prim.GT: prim.LT, prim.GE: prim.LE, prim.EQ: prim.EQ}


def deduce_bound(var, cond, hint_map, relax_map):
    """The values of a variable for which a condition holds.

    Parameters
    ----------
    var : Var
        The variable; it stands once, on one side.
    cond : expression
        A comparison.
    hint_map : dict of Var to IntSet
        What is known of the others.
    relax_map : dict of Var to IntSet
        Variables for all of whose values the condition is to hold.

    Returns
    -------
    IntSet
        Everything where nothing can be told, nothing where no value will do.
    """
    if type(cond) not in _MIRROR:
        return everything()
    kind, left, right = type(cond), cond.a, cond.b
    if _has(right, var):
        kind, left, right = _MIRROR[kind], right, left
    if _has(right, var):
        # It stands on both sides: all of it is brought to one.
        left, right = left - right, const(0, str(left.dtype))
    analyzer = Analyzer()
    for one, known in hint_map.items():
        _say(analyzer, one, known)
    relaxed = {one: known for one, known in relax_map.items() if not one.same_as(var)}
    parts = linear_in(left, var)
    if parts is None:
        return _of_other(var, kind, left, right, hint_map, relax_map, analyzer)
    scale, rest = parts
    limit = right - rest
    scale = analyzer.simplify(scale)
    return _solved(analyzer, kind, scale, limit, hint_map, relaxed)


def _say(analyzer, var, known):
    if not is_infinite(known.min_value):
        analyzer._say("_assume", var >= known.min_value)
    if not is_infinite(known.max_value):
        analyzer._say("_assume", var <= known.max_value)


def _of_other(var, kind, left, right, hint_map, relax_map, analyzer):
    """A condition on more than a linear form: one that can never hold leaves nothing."""
    known = Evaluator(analyzer, {**hint_map, **relax_map, var: everything()}).of(left)
    low, high = known.min_value, known.max_value
    if kind in (prim.LT, prim.LE) and not is_infinite(low) and analyzer.can_prove(low >= right if kind is prim.LT else low > right):
        return nothing()
    if kind in (prim.GT, prim.GE) and not is_infinite(high) and analyzer.can_prove(high <= right if kind is prim.GT else high < right):
        return nothing()
    # A side that is above any number holds always, and says nothing of the variable.
    if kind in (prim.GT, prim.GE) and not is_infinite(low) and analyzer.can_prove(low > right):
        return nothing() if isinstance(left, (prim.Max, prim.Min)) else everything()
    return everything()


def _solved(analyzer, kind, scale, limit, hint_map, relaxed):
    """The set of ``scale * var KIND limit``."""
    positive, negative = analyzer.can_prove(scale > 0), analyzer.can_prove(scale < 0)
    if not positive and not negative:
        return everything()
    if kind is prim.EQ:
        value = prim.FloorDiv(limit, scale)
        if analyzer.can_prove_equal(value * scale, limit):
            return IntervalSet(analyzer.simplify(value), analyzer.simplify(value))
        return nothing()
    upper = kind in (prim.LT, prim.LE)
    if kind is prim.LT:
        limit = limit - 1
    elif kind is prim.GT:
        limit = limit + 1
    limit = _strictest(analyzer, limit, relaxed, upper)
    if limit is None:
        return nothing()
    limit = analyzer.simplify(limit)
    if negative:
        upper = not upper
    if upper:
        return IntervalSet(neg_inf(), analyzer.simplify(prim.FloorDiv(limit, scale)))
    # Rounded up: the largest value below, and one more unless it is exact.
    down = prim.FloorDiv(limit, scale)
    exact = analyzer.can_prove_equal(prim.FloorMod(limit, scale), const(0, str(limit.dtype)))
    return IntervalSet(analyzer.simplify(down if exact else down + 1), pos_inf())


def _strictest(analyzer, limit, relaxed, upper):
    if not relaxed:
        return limit
    found = Evaluator(analyzer, relaxed).of(limit)
    end = found.min_value if upper else found.max_value
    return None if is_infinite(end) else end


__all__ = ["deduce_bound"]
