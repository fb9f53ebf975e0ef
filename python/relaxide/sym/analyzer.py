"""The analyzer: bounds, simpler forms and proofs for expressions over integer variables.

It is the compiler's own; expressions are brought to one canonical form, so that the three ways to simplify are one.
"""

from enum import IntEnum, IntFlag

from .. import _core
from ..ir.prim import IntImm
from ..tirx import Range


class ProofStrength(IntEnum):
    """How hard a proof is searched; one search serves both."""

    DEFAULT = 0
    SYMBOLIC_BOUND = 1


class CompareResult(IntEnum):
    """How two expressions compare: a set of what is possible."""

    INCONSISTENT = 0
    EQ = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    NE = 6
    UNKNOWN = 7


class Extension(IntFlag):
    """Rewriting of conditions beyond the default. The analyzer here knows one way to simplify, so that they change nothing."""

    NoExtensions = 0
    TransitivelyProveInequalities = 1 << 0
    ConvertBooleanToAndOfOrs = 1 << 1
    ApplyConstraintsToBooleanBranches = 1 << 2
    ComparisonOfProductAndSum = 1 << 3


class ConstIntBound:
    """The constants between which an expression lies."""

    #: No bound above.
    POS_INF = (1 << 63) - 1
    #: No bound below.
    NEG_INF = -POS_INF

    def __init__(self, min_value, max_value):
        self.min_value, self.max_value = min_value, max_value

    def __repr__(self):
        return f"ConstIntBound(min_value={self.min_value}, max_value={self.max_value})"


class ModularSet:
    """The integers ``base + k * coeff`` for all ``k``; a coefficient of zero means ``base`` alone, one means all."""

    def __init__(self, coeff, base):
        self.coeff, self.base = coeff, base % coeff if coeff else base

    def __repr__(self):
        return f"ModularSet(coeff={self.coeff}, base={self.base})"


class ConstraintScope:
    """While it is open, a condition holds."""

    def __init__(self, enter):
        self._enter, self._exit = enter, None

    def __enter__(self):
        self._exit = self._enter()

    def __exit__(self, kind, value, traceback):
        self._exit()


def _expr(value):
    return IntImm("bool", value) if isinstance(value, bool) else value


class Analyzer:
    """Knows ranges and values of variables, and conditions that hold::

        analyzer = Analyzer()
        analyzer.bind(i, Range(0, 16))
        analyzer.can_prove(i // 4 < 4)
    """

    def __init__(self):
        # What was said, in order: a scope that ends is forgotten by saying the rest anew.
        self._said = []
        self._known = _core.SymbolicAnalyzer()

    def _say(self, what, *values):
        self._said.append((what, values))
        if what != "_note":
            getattr(self._known, what)(*values)

    def _restore(self, count):
        self._said, kept = [], self._said[:count]
        self._known = _core.SymbolicAnalyzer()
        for what, values in kept:
            self._say(what, *values)

    def clone(self):
        """An analyzer that knows the same."""
        other = Analyzer()
        for what, values in self._said:
            other._say(what, *values)
        return other

    def bind(self, var, expr, allow_override=False):
        """Say that a variable lies in a range, or is an expression.

        Parameters
        ----------
        var : Var
            An integer variable.
        expr : Range or expression
            Its values, or its value.
        allow_override : bool
            Take back what was said of it before.
        """
        if allow_override:
            self._said = [(what, values) for what, values in self._said if not (values and values[0] is var)]
            self._restore(len(self._said))
        if isinstance(expr, Range):
            self._say("_bind_range", var, expr.min, expr.extent)
        else:
            self._say("_bind_value", var, expr)

    def update(self, var, info, override=False):
        """Say between which constants a variable lies (:class:`ConstIntBound`)."""
        if not isinstance(info, ConstIntBound):
            raise NotImplementedError(f"an analyzer learns of a variable by its bounds (ConstIntBound), got {type(info).__name__}")
        if override:
            self._said = [(what, values) for what, values in self._said if not (values and values[0] is var)]
            self._restore(len(self._said))
        self._say("_note", var, info.min_value, info.max_value)
        if info.min_value > ConstIntBound.NEG_INF and info.max_value < ConstIntBound.POS_INF:
            self._say("_bind_range", var, info.min_value, info.max_value - info.min_value + 1)
            return
        if info.min_value > ConstIntBound.NEG_INF:
            self._say("_assume", var >= info.min_value)
        if info.max_value < ConstIntBound.POS_INF:
            self._say("_assume", var <= info.max_value)

    def constraint_scope(self, constraint):
        """A scope in which a condition holds: ``with analyzer.constraint_scope(n > 0): ...``."""

        def enter():
            count = len(self._said)
            self._say("_assume", _expr(constraint))
            return lambda: self._restore(count)

        return ConstraintScope(enter)

    def simplify(self, expr, steps=2):
        """An expression of the same value in simpler form."""
        return self._known._simplify(expr)

    def rewrite_simplify(self, expr):
        """The same as :meth:`simplify`."""
        return self._known._simplify(expr)

    def canonical_simplify(self, expr):
        """The same as :meth:`simplify`."""
        return self._known._simplify(expr)

    def can_prove(self, expr, strength=ProofStrength.DEFAULT):
        """Whether a condition is known to hold always."""
        return bool(self._known._can_prove(_expr(expr)))

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are known to be equal always."""
        return self._known._can_prove_equal(lhs, rhs)

    def const_int_bound(self, expr):
        """The constants between which an expression lies."""
        from .const_bounds import ConstBounds

        # What is said of a variable counts instead of what its type can hold.
        said = {values[0] for what, values in self._said if what == "_note"}
        return ConstIntBound(*ConstBounds(self._bounds_of, self._values(), said).of(expr))

    def _bounds_of(self, expr):
        """What was said of an expression itself, and what the compiler's analyzer knows of it."""
        from .const_bounds import said_of

        low, high = self._known._bounds(expr)
        for what, values in self._said:
            least, most = said_of(expr, what, values)
            low = least if low is None else low if least is None else max(low, least)
            high = most if high is None else high if most is None else min(high, most)
        return low, high

    def int_set(self, expr, dom_map=None):
        """The set of the values of an expression (:class:`~relaxide.sym.IntSet`).

        ``dom_map`` has sets of variables; without it those are taken that the analyzer knows.
        """
        from .int_set import Evaluator, IntervalSet

        if dom_map is None:
            ranges = {values[0]: values[1:] for what, values in self._said if what == "_bind_range"}
            dom_map = {var: IntervalSet(low, self.simplify(low + extent - 1)) for var, (low, extent) in ranges.items()}
        return Evaluator(self, dict(dom_map)).of(expr)

    enabled_extensions = Extension.NoExtensions

    @property
    def is_z3_enabled(self):
        """Whether proofs are also searched by the solver Z3, which is not part of this package."""
        return False

    def const_int_bound_is_bound(self, var):
        """Whether something was said of a variable."""
        return any(values and getattr(values[0], "same_as", None) and values[0].same_as(var) for _, values in self._said)

    def modular_set(self, expr):
        """The remainders that an expression can have: what is known of it modulo a number (:class:`ModularSet`)."""
        from .modular import modular_set

        return modular_set(expr, self._values())

    def _values(self):
        """What variables were said to be."""
        return {values[0]: values[1] for what, values in self._said if what == "_bind_value"}

    def try_compare(self, lhs, rhs, propagate_inequalities=True):
        """How two expressions compare, as far as it is known."""
        if self.can_prove_equal(lhs, rhs):
            return CompareResult.EQ
        for condition, result in (
            (lhs < rhs, CompareResult.LT),
            (lhs > rhs, CompareResult.GT),
            (lhs <= rhs, CompareResult.LE),
            (lhs >= rhs, CompareResult.GE),
        ):
            if self.can_prove(condition):
                return result
        low, high = self._known._bounds(lhs - rhs)
        return CompareResult.NE if low is not None and high is not None and low * high > 0 else CompareResult.UNKNOWN


__all__ = ["Analyzer", "CompareResult", "ConstIntBound", "ConstraintScope", "Extension", "ModularSet", "ProofStrength"]
