"""Linear forms, and conditions that say between which numbers variables lie."""

from ..ir import prim
from ..ir.expr import Var
from ..tirx import const
from ..tirx._walk import walk_scalar
from .analyzer import Analyzer


def _has(expr, var):
    return any(isinstance(part, Var) and part.same_as(var) for part in walk_scalar(expr))


def linear_in(expr, var):
    """``(coefficient, rest)`` of a variable; ``None`` where the expression is not linear in it."""
    zero = const(0, str(expr.dtype))
    if isinstance(expr, Var) and expr.same_as(var):
        return const(1, str(expr.dtype)), zero
    if not _has(expr, var):
        return zero, expr
    if isinstance(expr, (prim.Add, prim.Sub)):
        a, b = linear_in(expr.a, var), linear_in(expr.b, var)
        if a is None or b is None:
            return None
        kind = type(expr)
        return kind(a[0], b[0]), kind(a[1], b[1])
    if isinstance(expr, prim.Mul):
        a, b = linear_in(expr.a, var), linear_in(expr.b, var)
        if a is None or b is None:
            return None
        if _has(expr.a, var) and _has(expr.b, var):
            return None
        if _has(expr.a, var):
            return a[0] * expr.b, a[1] * expr.b
        return expr.a * b[0], expr.a * b[1]
    return None


def detect_linear_equation(expr, var_list):
    """The coefficients of variables in an expression, and what is left: ``[4, 6, 7]`` of ``4 * a + 6 * b + 7``; an empty list where it is not
    linear in them."""
    analyzer, found, rest = Analyzer(), [], expr
    for index, var in enumerate(var_list):
        parts = linear_in(rest, var)
        if parts is None:
            return []
        coefficient, rest = parts
        if any(_has(coefficient, other) for other in var_list):
            return []
        found.append(analyzer.simplify(_signed(coefficient)))
    return [*found, analyzer.simplify(rest) if found else rest]


def _signed(coefficient):
    """A coefficient as a signed number: one of an unsigned variable can be below zero."""
    from ..tirx._walk import operands

    if not str(coefficient.dtype).startswith("uint"):
        return coefficient

    def value(one):
        if isinstance(one, prim.IntImm):
            return one.value
        parts = [value(part) for part in operands(one)]
        if None in parts or not isinstance(one, (prim.Add, prim.Sub, prim.Mul)):
            return None
        return {prim.Add: lambda a, b: a + b, prim.Sub: lambda a, b: a - b, prim.Mul: lambda a, b: a * b}[type(one)](*parts)

    number = value(coefficient)
    return coefficient if number is None else const(number, str(coefficient.dtype).replace("uint", "int"))


def _conditions(expr):
    if isinstance(expr, prim.And):
        return _conditions(expr.a) + _conditions(expr.b)
    if isinstance(expr, prim.Not) and type(expr.a) in _OPPOSITE:
        return [_OPPOSITE[type(expr.a)](expr.a.a, expr.a.b)]
    low, high = (prim.GT, prim.GE), (prim.LT, prim.LE)
    # The smaller of two is above a number where both are.
    for kinds, extreme in ((low, prim.Min), (high, prim.Max)):
        if isinstance(expr, kinds) and isinstance(expr.a, extreme):
            return [one for part in (expr.a.a, expr.a.b) for one in _conditions(type(expr)(part, expr.b))]
    return [expr]


_OPPOSITE = {prim.LT: prim.GE, prim.LE: prim.GT, prim.GT: prim.LE, prim.GE: prim.LT, prim.EQ: prim.NE, prim.NE: prim.EQ}


def detect_clip_bound(expr, var_list):
    """``[least, greatest]`` of each variable that a condition allows, with ``None`` where it sets no limit; an empty list where it is about
    something else."""
    analyzer = Analyzer()
    limits = [[None, None] for _ in var_list]
    for one in _conditions(expr):
        if not _take(analyzer, one, var_list, limits):
            return []
    return [analyzer.simplify(end) if end is not None else None for pair in limits for end in pair]


def _take(analyzer, condition, var_list, limits):
    kind = type(condition)
    if kind not in (prim.LT, prim.LE, prim.GT, prim.GE, prim.EQ):
        return False
    used = [index for index, var in enumerate(var_list) if _has(condition, var)]
    if len(used) != 1:
        return False
    index, var = used[0], var_list[used[0]]
    parts = linear_in(condition.a - condition.b, var)
    scale = None if parts is None else getattr(analyzer.simplify(parts[0]), "value", None)
    if scale not in (1, -1):
        return False
    # scale * var + rest OP 0 is var OP -rest / scale.
    limit = -parts[1] if scale == 1 else parts[1]
    if scale == -1:
        kind = {prim.LT: prim.GT, prim.LE: prim.GE, prim.GT: prim.LT, prim.GE: prim.LE}.get(kind, kind)
    if kind in (prim.GT, prim.GE, prim.EQ):
        least = limit + 1 if kind is prim.GT else limit
        limits[index][0] = least if limits[index][0] is None else prim.Max(limits[index][0], least)
    if kind in (prim.LT, prim.LE, prim.EQ):
        most = limit - 1 if kind is prim.LT else limit
        limits[index][1] = most if limits[index][1] is None else prim.Min(limits[index][1], most)
    return True


__all__ = ["detect_clip_bound", "detect_linear_equation"]
