"""Between which numbers an expression lies: numbers are followed through its operators, from what is known of its variables and types."""

import re
from math import gcd

from ..ffi import structural_equal
from ..ir import prim
from ..ir.expr import Var
from .modular import modular_set

INF = (1 << 63) - 1
_TYPE = re.compile(r"(u?int|bool)(\d*)")


def of_type(dtype):
    """What a type can hold."""
    match = _TYPE.fullmatch(str(dtype))
    if match is None or match[1] == "int" and int(match[2] or 0) >= 64:
        return -INF, INF
    if match[1] == "bool":
        return 0, 1
    bits = int(match[2])
    if match[1] == "uint":
        return 0, min(INF, (1 << bits) - 1)
    return -(1 << bits - 1), (1 << bits - 1) - 1


def _clip(value):
    return max(-INF, min(INF, value))


class ConstBounds:
    """``known(expr)`` gives ``(low, high)`` that are known of an expression otherwise; ``None`` is no bound."""

    def __init__(self, known, values=None, said=(), moduli=None):
        self._known, self._values, self._said, self._moduli = known, values or {}, said, moduli or {}

    def of(self, expr):
        """``(low, high)`` of an expression."""
        if isinstance(expr, int):
            return expr, expr
        if isinstance(expr, prim.IntImm):
            return expr.value, expr.value
        low, high = self._by_rule(expr)
        known_low, known_high = self._known(expr)
        low = low if known_low is None else max(low, known_low)
        high = high if known_high is None else min(high, known_high)
        return (low, high) if low <= high else self._by_rule(expr)

    def _by_rule(self, expr):
        whole = of_type(expr.dtype)
        if isinstance(expr, Var):
            if expr in self._said:
                return -INF, INF
            return self.of(self._values[expr]) if expr in self._values else whole
        if isinstance(expr, prim.Let):
            return ConstBounds(self._known, {**self._values, expr.var: expr.value}, self._said, self._moduli).of(expr.body)
        rule = _RULES.get(type(expr))
        if rule is not None:
            found = rule(self, expr)
            # Numbers with a sign do not overflow in a program that means anything.
            return found if whole[0] < 0 else _within(found, whole, isinstance(expr, (prim.Add, prim.Sub, prim.Mul)))
        if isinstance(expr, prim.Cast):
            inner = self.of(expr.value)
            return inner if whole[0] <= inner[0] and inner[1] <= whole[1] else _cut(inner, whole)
        if isinstance(expr, prim.Select):
            return _both(self.of(expr.true_value), self.of(expr.false_value))
        if isinstance(expr, prim.Ramp):
            lanes = getattr(expr.lanes, "value", expr.lanes)
            if isinstance(lanes, int) and lanes > 0:
                base, stride = self.of(expr.base), self.of(expr.stride)
                return _both(base, _sum(base, _times(stride, (lanes - 1, lanes - 1))))
        if isinstance(expr, prim.Broadcast):
            return self.of(expr.value)
        return whole

    def _add(self, expr):
        return _sum(self.of(expr.a), self.of(expr.b))

    def _sub(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        return _sum((a, b), (-d, -c))

    def _mul(self, expr):
        return _times(self.of(expr.a), self.of(expr.b))

    def _floor_div(self, expr):
        return self._quotient(expr, lambda a, b: a // b)

    def _trunc_div(self, expr):
        return self._quotient(expr, lambda a, b: abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))

    def _quotient(self, expr, divide):
        (a, b), divisor = self.of(expr.a), self.of(expr.b)
        found = []
        # Divisors below and above zero; zero itself is no divisor.
        for c, d in ((divisor[0], min(divisor[1], -1)), (max(divisor[0], 1), divisor[1])):
            if c <= d:
                found += [_divided(one, other, divide) for one in (a, b) for other in (c, d)]
        return (min(found), max(found)) if found else (-INF, INF)

    def _floor_mod(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        # Zero is no divisor.
        c = c or min(1, d)
        if c > 0:
            if a >= 0 and b < c:
                return a, b
            if c == d:
                return self._stepped(expr, a, b, c)
            return 0, min(d - 1, b) if a >= 0 else d - 1
        # A remainder has the sign of its divisor.
        return min(c + 1, 0), max(d - 1, 0)

    def _step(self, expr, divisor):
        """``(step, first)``: the remainders that are met are ``first``, ``first + step`` and so on."""
        known = modular_set(expr.a, {**self._values, **self._moduli})
        step = gcd(known.coeff, divisor)
        return (step, known.base % step) if step > 1 else (1, 0)

    def _stepped(self, expr, a, b, divisor):
        """Of a number that is known modulo another, only some remainders are met."""
        if a // divisor == b // divisor and abs(a) < INF and abs(b) < INF:
            return a % divisor, b % divisor
        step, first = self._step(expr, divisor)
        return first, divisor - step + first

    def _trunc_mod(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        limit = max(abs(c), abs(d), 1) - 1
        if c > 0 and -c < a and b < c:
            return a, b
        if c == d and c > 0:
            step, first = self._step(expr, c)
            # Below zero the same steps are met from the other end.
            low = max(a, (first or step) - c) if a < 0 else first
            return low, min(b, c - step + first) if b > 0 else first - step if first else 0
        return max(-limit, a) if a < 0 else 0, min(limit, b) if b > 0 else 0

    def _min(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        return min(a, c), min(b, d)

    def _max(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        return max(a, c), max(b, d)

    def _shift_right(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        if c < 0:
            return of_type(expr.dtype)
        d = min(d, 64)
        found = [value >> by for value in (a, b) for by in (min(c, 64), d)]
        return min(found), max(found)

    def _shift_left(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        if a < 0 or c < 0 or d > 63:
            return of_type(expr.dtype)
        return _clip(a << c), _clip(b << d)

    def _bit_and(self, expr):
        (a, b), (c, d) = self.of(expr.a), self.of(expr.b)
        if c >= 0 and a >= 0:
            return 0, min(b, d)
        if c >= 0:
            return 0, d
        return (0, b) if a >= 0 else of_type(expr.dtype)


def said_of(expr, what, values):
    """The bounds that something that was said sets to an expression: ``None`` for none."""
    if what == "_note" and _same(values[0], expr):
        return (None if values[1] <= -INF else values[1]), (None if values[2] >= INF else values[2])
    if what != "_assume":
        return None, None
    low = high = None
    for condition in _conjuncts(values[0]):
        kind, a, b = type(condition), getattr(condition, "a", None), getattr(condition, "b", None)
        if isinstance(a, prim.IntImm):
            kind, a, b = _MIRROR.get(kind, kind), b, a
        if not isinstance(b, prim.IntImm) or not _same(a, expr):
            continue
        least = {prim.GT: b.value + 1, prim.GE: b.value, prim.EQ: b.value}.get(kind)
        most = {prim.LT: b.value - 1, prim.LE: b.value, prim.EQ: b.value}.get(kind)
        low = least if low is None else low if least is None else max(low, least)
        high = most if high is None else high if most is None else min(high, most)
    return low, high


_MIRROR = {prim.LT: prim.GT, prim.LE: prim.GE, prim.GT: prim.LT, prim.GE: prim.LE}


def _conjuncts(condition):
    return [*_conjuncts(condition.a), *_conjuncts(condition.b)] if isinstance(condition, prim.And) else [condition]


def _same(a, b):
    if isinstance(a, Var) or isinstance(b, Var):
        return isinstance(a, Var) and isinstance(b, Var) and a.same_as(b)
    return type(a) is type(b) and structural_equal(a, b)


def _within(found, whole, wraps):
    low, high = found
    # What does not fit the type comes out as another number, so that nothing is known of it.
    if wraps and (low < whole[0] or high > whole[1]):
        return max(low, whole[0]) if low > -INF else whole[0], min(high, whole[1]) if high < INF else whole[1]
    return max(low, whole[0]), min(high, whole[1])


def _cut(inner, whole):
    return (whole[0], whole[1]) if inner[0] < whole[0] or inner[1] > whole[1] else inner


def _both(a, b):
    return min(a[0], b[0]), max(a[1], b[1])


def _sum(a, b):
    low = -INF if -INF in (a[0], b[0]) else _clip(a[0] + b[0])
    return low, INF if INF in (a[1], b[1]) else _clip(a[1] + b[1])


def _product(a, b):
    if not a or not b:
        return 0
    return (INF if (a > 0) == (b > 0) else -INF) if INF in (abs(a), abs(b)) else _clip(a * b)


def _times(a, b):
    found = [_product(one, other) for one in a for other in b]
    return min(found), max(found)


def _divided(a, b, divide):
    if abs(a) == INF:
        return a if b > 0 else -a
    if abs(b) == INF:
        return 0 if (a < 0) == (b < 0) or not a else min(0, divide(-1, 2))
    return divide(a, b)


_RULES = {prim.Add: ConstBounds._add, prim.Sub: ConstBounds._sub, prim.Mul: ConstBounds._mul, prim.FloorDiv: ConstBounds._floor_div}
_RULES |= {prim.FloorMod: ConstBounds._floor_mod, prim.Div: ConstBounds._trunc_div, prim.Mod: ConstBounds._trunc_mod}
_RULES |= {prim.Min: ConstBounds._min, prim.Max: ConstBounds._max, prim.RShift: ConstBounds._shift_right}
_RULES |= {prim.LShift: ConstBounds._shift_left, prim.BitwiseAnd: ConstBounds._bit_and}

__all__ = ["ConstBounds", "of_type"]
