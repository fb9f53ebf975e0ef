"""What is known of expressions modulo a number: ``4 * i + 3`` is 3 modulo 4, whatever ``i`` is."""

from math import gcd

from ..ir import prim
from .analyzer import ModularSet

_ALL = ModularSet(1, 0)


def modular_set(expr, values=None):
    """The remainders that an integer expression can have; ``values`` are those of variables that stand for others."""
    if isinstance(expr, int):
        return ModularSet(0, expr)
    if isinstance(expr, prim.IntImm):
        return ModularSet(0, expr.value)
    of = _RULES.get(type(expr))
    if of is not None:
        return of(*(modular_set(part, values) for part in (expr.a, expr.b)))
    if isinstance(expr, prim.Cast):
        return modular_set(expr.value, values)
    if isinstance(expr, prim.Select):
        return _joined(modular_set(expr.true_value, values), modular_set(expr.false_value, values))
    if isinstance(expr, prim.Let):
        return modular_set(expr.body, {**(values or {}), expr.var: expr.value})
    if values and expr in values:
        return modular_set(values[expr], values)
    return _ALL


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
        common = gcd(a.coeff, b.base)
        # Where the steps are whole multiples of the divisor, the remainder is one number.
        return ModularSet(0, a.base % b.base) if a.coeff % b.base == 0 else ModularSet(common, a.base)
    return _ALL


_RULES = {prim.Add: _sum, prim.Sub: _difference, prim.Mul: _product, prim.FloorDiv: _quotient, prim.FloorMod: _remainder}
_RULES |= {prim.Div: _truncated, prim.Min: _joined, prim.Max: _joined, prim.LShift: _shifted, prim.RShift: _shifted_down}
_RULES |= {prim.BitwiseAnd: _masked}

__all__ = ["modular_set"]
