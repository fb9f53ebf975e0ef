"""What is known of expressions modulo a number: ``4 * i + 3`` is 3 modulo 4, whatever ``i`` is."""

from math import gcd

from ..ir import prim
from ..ir.expr import Var
from .analyzer import ModularSet

_ALL = ModularSet(1, 0)


def modular_set(expr, values=None, is_natural=None):
    """The remainders that an integer expression can have.

    ``values`` are what variables stand for: others, or remainders. ``is_natural`` says whether an expression is never negative.
    """
    if isinstance(expr, int):
        return ModularSet(0, expr)
    if isinstance(expr, prim.IntImm):
        return ModularSet(0, expr.value)
    of = _RULES.get(type(expr))
    if of is not None:
        if is_natural is not None and type(expr) in _ROUNDED_DOWN and is_natural(expr.a):
            of = _ROUNDED_DOWN[type(expr)]
        return of(*(modular_set(part, values, is_natural) for part in (expr.a, expr.b)))
    if isinstance(expr, prim.Cast):
        return modular_set(expr.value, values, is_natural)
    if isinstance(expr, prim.Select):
        return _joined(*(modular_set(part, values, is_natural) for part in (expr.true_value, expr.false_value)))
    if isinstance(expr, prim.Let):
        return modular_set(expr.body, {**(values or {}), expr.var: expr.value}, is_natural)
    if values and expr in values:
        told = values[expr]
        return told if isinstance(told, ModularSet) else modular_set(told, values, is_natural)
    return _ALL


def met(known, more):
    """What is known of variables, and more of them. What contradicts what is known is left out: nothing is reached there."""
    both = {var: intersection(known[var], one) or known[var] for var, one in more.items() if var in known}
    return {**known, **more, **both}


def assumed_of(condition):
    """What a condition says of variables modulo a number: ``i % 4 == 1``, or several that are joined by "and"."""
    if isinstance(condition, prim.And):
        return met(assumed_of(condition.a), assumed_of(condition.b))
    if not isinstance(condition, prim.EQ):
        return {}
    for remainder, value in ((condition.a, condition.b), (condition.b, condition.a)):
        if not isinstance(remainder, (prim.FloorMod, prim.Mod)) or not isinstance(value, prim.IntImm):
            continue
        var, divisor = remainder.a, remainder.b
        if isinstance(var, Var) and isinstance(divisor, prim.IntImm) and 0 <= value.value < divisor.value:
            return {var: ModularSet(divisor.value, value.value)}
    return {}


def intersection(a, b):
    """The integers that are in both sets; ``None`` where there are none."""
    if 0 in (a.coeff, b.coeff):
        one, other = (a, b) if a.coeff == 0 else (b, a)
        is_in = one.base == other.base if other.coeff == 0 else (one.base - other.base) % other.coeff == 0
        return one if is_in else None
    common = gcd(a.coeff, b.coeff)
    if (b.base - a.base) % common:
        return None
    steps = (b.base - a.base) // common * pow(a.coeff // common, -1, b.coeff // common) if b.coeff > common else 0
    return ModularSet(a.coeff // common * b.coeff, a.base + steps * a.coeff)


def _joined(a, b):
    """What holds of both."""
    return ModularSet(gcd(a.coeff, b.coeff, abs(a.base - b.base)), a.base)


def _sum(a, b):
    return ModularSet(gcd(a.coeff, b.coeff), a.base + b.base)


def _difference(a, b):
    return ModularSet(gcd(a.coeff, b.coeff), a.base - b.base)


def _product(a, b):
    return ModularSet(gcd(a.coeff * b.coeff, a.coeff * b.base, a.base * b.coeff), a.base * b.base)


def _quotient(a, b):
    # Of a number that is known the quotient goes up by whole steps.
    if b.coeff == 0 and b.base > 0 and a.coeff % b.base == 0:
        return ModularSet(a.coeff // b.base, a.base // b.base)
    return _ALL


def _shifted(a, b):
    return _product(a, ModularSet(0, 1 << b.base)) if b.coeff == 0 and 0 <= b.base < 63 else _ALL


def _shifted_down(a, b):
    return _quotient(a, ModularSet(0, 1 << b.base)) if b.coeff == 0 and 0 <= b.base < 63 else _ALL


def _masked(a, b):
    # Of a power of two less one, the bits are a remainder.
    mask = b.base + 1
    return _remainder(a, ModularSet(0, mask)) if b.coeff == 0 and b.base > 0 and mask & b.base == 0 else _ALL


def _truncated(a, b):
    # Rounded towards zero and down are one where nothing is rounded.
    return _quotient(a, b) if b.base and a.base % b.base == 0 else _ALL


def _remainder(a, b):
    if b.coeff == 0 and b.base > 0:
        return ModularSet(gcd(a.coeff, b.base), a.base) if a.coeff else ModularSet(0, a.base % b.base)
    return _ALL


def _truncated_remainder(a, b):
    # Below zero a remainder is another one, unless it is none at all.
    found = _remainder(a, b)
    return found if found.coeff and found.base == 0 else _ALL


_RULES = {prim.Add: _sum, prim.Sub: _difference, prim.Mul: _product, prim.FloorDiv: _quotient, prim.FloorMod: _remainder}
_RULES |= {prim.Div: _truncated, prim.Min: _joined, prim.Max: _joined, prim.LShift: _shifted, prim.RShift: _shifted_down}
_RULES |= {prim.BitwiseAnd: _masked, prim.Mod: _truncated_remainder}
#: What rounds towards zero rounds down where nothing is negative.
_ROUNDED_DOWN = {prim.Div: _quotient, prim.Mod: _remainder}

__all__ = ["assumed_of", "intersection", "modular_set"]
