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
    with pytest.raises(NotImplementedError, match="ConstIntBound"):
        analyzer.update(n, 3)
    with pytest.raises(TypeError, match="expected a variable"):
        analyzer.bind(n + 1, Range(0, 2))
