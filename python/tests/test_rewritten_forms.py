"""Forms that keep the shape of what was written (``Analyzer.rewrite_simplify``)."""

import pytest

from relaxide import sym, tirx
from relaxide.error import InternalError
from relaxide.ffi import structural_equal

X, Y, Z = (tirx.Var(name, "int32") for name in "xyz")


def vector(base, stride=1, lanes=4):
    return tirx.Ramp(base, stride, lanes)


CASES = [
    (X * Y + X * 10, (Y + 10) * X),
    (tirx.min(X + 2, Y + 3) + -2, tirx.min(X, Y + 1)),
    (X - tirx.min(X + Y, Z), tirx.max(0 - Y, X - Z)),
    (X * 360 - X, X * 359),
    (tirx.floordiv(vector(X * 8 + 1), 8), tirx.Broadcast(X, 4)),
    (tirx.floormod(vector(X * 8 + 7), 4), tirx.floormod(vector(3), 4)),
    (vector(X) + vector(Y, 2), vector(X + Y, 3)),
    (vector(X) + vector(Y, 2, 4) - tirx.Broadcast(Y, 4), vector(X, 3)),
    (X - 3 < Y - 2, X <= Y),
    (tirx.all(X // 10 == 5, X % 10 < 7), tirx.all(tirx.LE(tirx.const(50, "int32"), X), X < 57)),
    (tirx.Select(X < 0, Y, 0) + tirx.Select(X < 0, 1, Z), tirx.Select(X < 0, Y + 1, Z)),
    (tirx.min(X * tirx.vscale(), X * tirx.vscale() + 1), X * tirx.vscale()),
]


@pytest.mark.parametrize("before, expected", CASES, ids=lambda e: str(e))
def test_forms(before, expected):
    form = sym.Analyzer().rewrite_simplify(before)
    assert structural_equal(form, expected), f"{before} became {form}"


def test_vectors_are_simplified_too():
    """The canonical form is one of scalars; what is in its lanes has it all the same."""
    assert structural_equal(sym.Analyzer().simplify(vector(X + Y - X) + tirx.Broadcast(X - Y, 4)), vector(X))


def test_one_value_becomes_a_vector_by_repetition():
    wide = X.astype("int32x4")
    assert isinstance(wide, tirx.Broadcast) and wide.lanes == 4
    assert structural_equal(X.astype("float32x2"), tirx.Broadcast(X.astype("float32"), 2))
    assert isinstance(vector(X).astype("float32x4"), tirx.Cast)


def test_what_is_said_of_factors_decides_products():
    analyzer = sym.Analyzer()
    with analyzer.constraint_scope(tirx.all(X >= 0, Y <= 0)):
        assert str(analyzer.rewrite_simplify(X * Y <= 0)) == "T.bool(True)"
    assert not isinstance(analyzer.rewrite_simplify(X * Y <= 0), tirx.IntImm)


def test_divisors_are_not_zero():
    with pytest.raises(InternalError, match="division by zero"):
        sym.Analyzer().rewrite_simplify(Y + tirx.FloorDiv(vector(X), tirx.Broadcast(0, 4)))


def test_work_is_counted_and_limited():
    analyzer = sym.Analyzer()
    assert analyzer.rewrite_simplify_stats.nodes_visited == 0
    analyzer.rewrite_simplify((X + Y) * 2 - X * 2)
    stats = analyzer.rewrite_simplify_stats
    assert stats.nodes_visited > 0 and 0 < stats.rewrites_performed <= stats.rewrites_attempted
    assert analyzer.clone().rewrite_simplify_stats.nodes_visited == 0
    analyzer.reset_rewrite_simplify_stats()
    assert analyzer.rewrite_simplify_stats.nodes_visited == 0
    analyzer.set_maximum_rewrite_steps(1)
    with pytest.raises(InternalError, match="set_maximum_rewrite_steps"):
        analyzer.rewrite_simplify((X + 1) * 2 - X * 2 + tirx.max(X, 3) - X)
    analyzer.set_maximum_rewrite_steps(0)
    analyzer.rewrite_simplify((X + 1) * 2 - X * 2 + tirx.max(X, 3) - X)


def test_single_conditions_are_not_combined_unless_asked():
    analyzer = sym.Analyzer()
    with analyzer.constraint_scope(X < Y), analyzer.constraint_scope(Y < Z):
        assert analyzer.try_compare(X, Z) == sym.CompareResult.LT
        assert analyzer.try_compare(X, Z, propagate_inequalities=False) == sym.CompareResult.UNKNOWN
        assert analyzer.try_compare(X, Y, propagate_inequalities=False) == sym.CompareResult.LT
