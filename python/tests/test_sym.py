"""Symbolic arithmetic: bounds, simpler forms, proofs."""

import pytest

import relaxide as rx
from relaxide import sym, te
from relaxide.tirx import Range


def test_ranges_and_values():
    i, n = te.var("i"), te.var("n", "int64")
    analyzer = sym.Analyzer()
    assert not analyzer.can_prove(i < 16)
    analyzer.bind(i, Range(0, 16))
    bound = analyzer.const_int_bound(i * 2 + 1)
    assert (bound.min_value, bound.max_value) == (1, 31)
    assert analyzer.can_prove(i // 4 < 4) and analyzer.can_prove_equal(i // 4 * 4 + i % 4, i)
    assert str(analyzer.simplify((i + 3) - 3)) == "i"
    analyzer.bind(n, te.const(7, "int64"))
    assert analyzer.can_prove(n == 7)
    unknown = analyzer.const_int_bound(te.var("k"))
    assert unknown.max_value >= 2**31 - 1


def test_conditions_hold_within_their_scope():
    n = te.var("n")
    analyzer = sym.Analyzer()
    with analyzer.constraint_scope(n > 3):
        assert analyzer.can_prove(n >= 4)
        with analyzer.constraint_scope(n < 6):
            assert analyzer.can_prove(n <= 5)
        assert not analyzer.can_prove(n <= 5)
        copy = analyzer.clone()
    assert not analyzer.can_prove(n >= 4) and copy.can_prove(n >= 4)


def test_comparison_and_update():
    n = te.var("n")
    analyzer = rx.arith.Analyzer()
    assert analyzer.try_compare(n + 1, n) == sym.CompareResult.GT
    assert analyzer.try_compare(n, n) == sym.CompareResult.EQ
    assert analyzer.try_compare(n, 0 * n) == sym.CompareResult.UNKNOWN
    analyzer.update(n, sym.ConstIntBound(2, 9))
    assert analyzer.can_prove(n >= 2) and analyzer.can_prove(n < 10)
    with pytest.raises(TypeError, match="ConstIntBound"):
        analyzer.update(n, 3)
    with pytest.raises(TypeError, match="expected a variable"):
        analyzer.bind(n + 1, Range(0, 2))


def test_what_is_known_of_a_variable_is_told_once_or_replaced():
    x = te.var("x")
    analyzer = sym.Analyzer()
    analyzer.bind(x, Range(0, 8))
    analyzer.bind(x, Range(0, 8))
    with pytest.raises(RuntimeError, match="different const bound"):
        analyzer.bind(x, Range(0, 4))
    analyzer.bind(x, Range(0, 4), allow_override=True)
    assert analyzer.const_int_bound(x).max_value == 3
    analyzer.update(x, sym.ModularSet(2, 1))
    assert analyzer.modular_set(x * 4 + 1).coeff == 8 and analyzer.modular_set(x * 4 + 1).base == 5
    with pytest.raises(RuntimeError, match="different modular set"):
        analyzer.update(x, sym.ModularSet(4, 1))
    copy = analyzer.clone()
    copy.update(x, sym.ModularSet(4, 1), override=True)
    assert (copy.modular_set(x).coeff, analyzer.modular_set(x).coeff) == (4, 2) and copy.can_prove(x < 4)
    analyzer.update(x, sym.IntervalSet(0, 9))
    found = analyzer.int_set(x + 1)
    assert (int(found.min_value), int(found.max_value)) == (1, 10)
    # Sets of intervals are asked for, and prove nothing.
    assert analyzer.const_int_bound(x).max_value == 3


def test_remainders_that_conditions_say():
    from relaxide import tirx

    x = te.var("x")
    analyzer = sym.Analyzer()
    with analyzer.constraint_scope(tirx.all(x % 4 == 1, x > 0)):
        known = analyzer.modular_set(x * 2 + 3)
        assert (known.coeff, known.base) == (8, 5)
        bound = analyzer.const_int_bound(tirx.truncmod(x, 16))
        assert (bound.min_value, bound.max_value) == (1, 13)
        with analyzer.constraint_scope(tirx.all(x % 6 == 3, x % 35 == 18)):
            known = analyzer.modular_set(x)
            assert known.coeff == 420 and [n for n in range(420) if (n % 4, n % 6, n % 35) == (1, 3, 18)] == [known.base]
    assert analyzer.modular_set(x).coeff == 1
    # Below zero the steps of a truncated remainder mirror those above.
    values = [int(n * 64 + 3 - 256 * int((n * 64 + 3) / 256)) for n in range(-9, 9)]
    bound = analyzer.const_int_bound(tirx.truncmod(x * 64 + 3, 256))
    assert (bound.min_value, bound.max_value) == (min(values), max(values))


def test_remainders_of_what_is_never_negative_and_of_unknown_divisors():
    from relaxide import tirx

    x, y = te.var("x"), te.var("y")
    analyzer = sym.Analyzer()
    assert analyzer.modular_set(tirx.truncmod(x * 4 + 3, 2)).coeff == 1
    known = analyzer.modular_set(tirx.truncmod(x * 4, 4))
    assert (known.coeff, known.base) == (4, 0)
    analyzer.update(x, sym.ConstIntBound(0, 6))
    known = analyzer.modular_set(tirx.truncmod(x * 4 + 3, 2))
    assert (known.coeff, known.base) == (2, 1)
    analyzer.update(y, sym.ConstIntBound(-5, 7))
    bound = analyzer.const_int_bound(x % y)
    assert (bound.min_value, bound.max_value) == (-4, 6)
    analyzer.update(y, sym.ConstIntBound(0, sym.ConstIntBound.POS_INF), override=True)
    bound = analyzer.const_int_bound(x % y)
    assert (bound.min_value, bound.max_value) == (0, 6)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float32", "bool"])
def test_a_value_is_itself_whatever_its_type(dtype):
    a, b = te.var("a", dtype), te.var("b", dtype)
    analyzer = sym.Analyzer()
    assert analyzer.can_prove(a == a) and analyzer.can_prove_equal(a, a) and not analyzer.can_prove(a == b)
    assert str(analyzer.simplify(a == a)) == "T.bool(True)"


def test_remainders_hold_for_all_values():
    """Every value that an expression takes is in what is said of it."""
    import itertools
    import random

    from relaxide import tirx
    from relaxide.sym import Analyzer

    i, j = tirx.Var("i", "int32"), tirx.Var("j", "int32")
    draw = random.Random(7)

    def some(depth):
        if depth == 0 or draw.random() < 0.2:
            numbers = [(str(n), lambda a, b, n=n: n, n) for n in (1, 3, 4, 6, 12)]
            return draw.choice([("i", lambda a, b: a, i), ("j", lambda a, b: b, j), *numbers])
        (_, f, e), (_, g, h) = some(depth - 1), some(depth - 1)
        kind = draw.choice("+-*m")
        if kind == "m":
            number = draw.choice([2, 3, 4, 6])
            floor = draw.random() < 0.5
            e = e if not isinstance(e, int) else tirx.const(e)
            made = tirx.FloorDiv(e, number) if floor else tirx.FloorMod(e, number)
            return ("m", (lambda a, b: f(a, b) // number) if floor else (lambda a, b: f(a, b) % number), made)
        if isinstance(e, int) and isinstance(h, int):
            e = tirx.const(e)
        return {
            "+": ("+", lambda a, b: f(a, b) + g(a, b), e + h),
            "-": ("-", lambda a, b: f(a, b) - g(a, b), e - h),
            "*": ("*", lambda a, b: f(a, b) * g(a, b), e * h),
        }[kind]

    for _ in range(400):
        _, value, expr = some(3)
        found = Analyzer().modular_set(expr)
        for a, b in itertools.product(range(-7, 8), repeat=2):
            rest = value(a, b) - found.base
            assert rest == 0 if found.coeff == 0 else rest % found.coeff == 0, (str(expr), found, a, b)
    analyzer = Analyzer()
    analyzer.bind(i, j * 8 + 5)
    found = analyzer.modular_set(i * 2 + 1)
    assert (found.coeff, found.base) == (16, 11)
    assert analyzer.const_int_bound_is_bound(i) and not analyzer.const_int_bound_is_bound(j)


@pytest.mark.parametrize("quotient_first", [False, True])
@pytest.mark.parametrize("shape, digits", [((8, 3), (1, 2, 3, 4)), ((6, 4), (2, 3, 2, 2)), ((5, 6), (3, 10)), ((4, 9), (2, 2, 3, 3)), ((7, 10), (7, 2, 5))])
def test_an_index_that_is_taken_apart_into_digits_is_itself(shape, digits, quotient_first):
    from relaxide import tirx

    i, j = tirx.Var("i", "int64"), tirx.Var("j", "int64")
    analyzer = sym.Analyzer()
    analyzer.bind(i, Range(0, shape[0]))
    analyzer.bind(j, Range(0, shape[1]))
    flat, whole, place = i * shape[1] + j, tirx.const(0, "int64"), 1
    for digit in reversed(digits):
        part = flat // place % digit if quotient_first else flat % (place * digit) // place
        whole, place = whole + part * place, place * digit
    assert analyzer.can_prove_equal(whole, flat) and not analyzer.can_prove_equal(whole, flat + 1)


def test_division_towards_zero_that_leaves_nothing_is_exact():
    from relaxide.tirx import truncdiv, truncmod

    x, y = te.var("x"), te.var("y")
    analyzer = sym.Analyzer()
    for given, expected in (
        (truncdiv(x * 48 + 16, 16), "x * 3 + 1"),
        (truncdiv(x + y + x + y * 3, 2), "y * 2 + x"),
        (truncmod(x * 6 - 4, 2), "0"),
        (truncdiv(x, 3) * 3 + truncmod(x, 3), "x"),
        (truncdiv(x * 4 + y, 2) * 2 + truncmod(x * 4 + y, 2), "x * 4 + y"),
        (truncdiv(x * 48 + 17, 16), "T.Div(x * 48 + 17, 16)"),
    ):
        assert str(analyzer.simplify(given)) == expected
