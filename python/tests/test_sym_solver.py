"""Proofs by cases: what `ProofStrength.SYMBOLIC_BOUND` finds, and what it must not."""

import itertools
import random

import pytest

from relaxide import sym, tirx
from relaxide.tirx import Range, all as every

HARD = sym.ProofStrength.SYMBOLIC_BOUND
a, b, c, d = (tirx.Var(name, "int32") for name in "abcd")


def implies(x, y):
    return tirx.Or(tirx.Not(x), y)


@pytest.mark.parametrize(
    "condition",
    [
        implies(every(a > 0, b > 0, c > 0), (b - a) // c * c + a <= b),
        implies(every(a < b, b < c, a * d < b * d), b * d < c * d),
        implies(every(0 <= a, a <= b), a * a <= b * b),
        implies(every(a <= b, c > 0), a // c <= b // c),
        implies(every(0 <= a, a < c, 0 <= b, b < d), a * d + b < c * d),
        implies(every(a % 6 == 0, b % 6 == 0), (a + b) % 2 == 0),
        implies(b != 0, tirx.truncdiv(a, b) * b + tirx.truncmod(a, b) == a),
        implies(every(a >= 0, a < 64), tirx.bitwise_and(a, tirx.const(7, "int32")) == a % 8),
        tirx.max(a, b) + tirx.min(a, b) == a + b,
        tirx.Select(a >= 0, a, -a) >= 0,
        a % -2 % 2 - a % 2 == 0,
        tirx.Let(d, a * 2, d) == a * 2,
        tirx.Cast("int32", tirx.Var("s", "int8")) < 128,
    ],
    ids=str,
)
def test_what_follows_is_found(condition):
    assert sym.Analyzer().can_prove(condition, HARD)


@pytest.mark.parametrize(
    "condition",
    [
        a < b,
        a * a > a,
        tirx.truncmod(a, 4) >= 0,
        a % 2 % -2 - a % 2 == 0,
        tirx.shift_left(a, b) >= 0,
        implies(every(a >= 1, b >= 0, b < 8), tirx.shift_left(a, b) >= a),
        implies(a <= b, a // c <= b // c),
        a // b * b <= a,
    ],
    ids=str,
)
def test_what_does_not_follow_is_not(condition):
    assert not sym.Analyzer().can_prove(condition, HARD)


def test_what_was_said_counts_within_its_scope():
    analyzer = sym.Analyzer()
    analyzer.bind(b, Range(1, 1000))
    with analyzer.constraint_scope(a >= b):
        assert analyzer.can_prove(a * b >= b * b, HARD)
    assert not analyzer.can_prove(a * b >= b * b, HARD)
    opaque = tirx.call_extern("int32", "f", a)
    with analyzer.constraint_scope(opaque > b):
        assert analyzer.can_prove(opaque * b > b, HARD) and analyzer.clone().can_prove(opaque > 0, HARD)
    assert not analyzer.can_prove(opaque > 0, HARD)


def test_no_proof_of_what_a_point_contradicts():
    """Random conditions over small ranges: whatever is proved holds at each point."""
    choice = random.Random(33)

    def term(depth):
        if depth == 0:
            return choice.choice([a, b, tirx.const(choice.randint(-3, 4), "int32")])
        kind = choice.choice([tirx.Add, tirx.Sub, tirx.Mul, tirx.Min, tirx.Max, tirx.FloorDiv, tirx.FloorMod, tirx.Mod])
        right = tirx.const(choice.choice([-3, -2, 2, 3, 5]), "int32") if "Div" in kind.__name__ or "Mod" in kind.__name__ else term(depth - 1)
        return kind(term(depth - 1), right)

    proved = 0
    for _ in range(150):
        condition = choice.choice([tirx.LT, tirx.LE, tirx.EQ, tirx.NE])(term(2), term(1))
        analyzer = sym.Analyzer()
        analyzer.bind(a, Range(-4, 5))
        with analyzer.constraint_scope(every(b >= a - 2, b < 6)):
            found = analyzer.can_prove(condition, HARD)
        if found:
            proved += 1
            for x, y in itertools.product(range(-4, 5), range(-6, 6)):
                if y >= x - 2:
                    point = sym.Analyzer()
                    point.bind(a, tirx.const(x, "int32"))
                    point.bind(b, tirx.const(y, "int32"))
                    assert not point.can_prove(tirx.Not(condition)), (condition, x, y)
    assert proved > 10


def test_the_question_as_a_script():
    analyzer = sym.Analyzer()
    analyzer.bind(a, Range(0, 16))
    text = analyzer.get_smtlib2(a // 4 < 4)
    assert "(declare-const |a| Int)" in text and text.rstrip().endswith("(check-sat)") and "(not (<" in text
    assert analyzer.is_z3_enabled and "conditions 1" in analyzer.get_z3_stats()
    with sym.Z3ContextScope():
        assert analyzer.can_prove(a < 16)
