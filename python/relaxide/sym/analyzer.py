"""The analyzer: bounds, simpler forms and proofs for expressions over integer variables.

It is the compiler's own. ``canonical_simplify`` brings expressions to one canonical form, ``rewrite_simplify`` follows rules that keep
more of what was written, and ``simplify`` gives the shorter of the two.
"""

from copy import copy
from enum import IntEnum, IntFlag

from .. import _core
from ..error import InternalError
from ..ffi import structural_equal
from ..ir.expr import Var
from ..ir.prim import EQ, LE, LT, BinaryOpExpr, Broadcast, Div, FloorDiv, FloorMod, IntImm, Mod, Mul, const
from ..tirx import Range


class ProofStrength(IntEnum):
    """How hard a proof is searched: along the analyzer's rules, or by cases too."""

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


class RewriteSimplifierStats:
    """How much work ``rewrite_simplify`` did: nodes that it visited, conditions that it took to hold, rules that it tried and applied."""

    def __init__(self, nodes_visited=0, constraints_entered=0, rewrites_attempted=0, rewrites_performed=0):
        self.nodes_visited, self.constraints_entered = nodes_visited, constraints_entered
        self.rewrites_attempted, self.rewrites_performed = rewrites_attempted, rewrites_performed
        #: Rules are applied to what is new of a result, without starting anew.
        self.max_recursive_depth = self.num_recursive_rewrites = 0

    def __repr__(self):
        return f"RewriteSimplifierStats({', '.join(f'{name}={value}' for name, value in vars(self).items())})"


class ConstraintScope:
    """While it is open, a condition holds."""

    def __init__(self, enter):
        self._enter, self._exit = enter, None

    def __enter__(self):
        self._exit = self._enter()

    def __exit__(self, kind, value, traceback):
        self._exit()


class Z3ContextScope:
    """A scope without effect, for programs that open one around an analyzer."""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        return None


#: What is kept here, since the compiler's analyzer has no place for it.
_KEPT_HERE = ("_note", "_modulo", "_set")


def _expr(value):
    if isinstance(value, bool):
        return IntImm("bool", value)
    # `a == b` of two expressions is a node only where one is asked for.
    return value.asobject() if hasattr(value, "asobject") else value


def _is_identity(condition):
    """Whether a condition says that something is itself, whatever its type."""
    return isinstance(condition, EQ) and structural_equal(condition.a, condition.b)


def _has_product(expr):
    """Whether two variables are multiplied."""
    if isinstance(expr, Mul) and not isinstance(expr.a, IntImm) and not isinstance(expr.b, IntImm):
        return True
    return isinstance(expr, BinaryOpExpr) and (_has_product(expr.a) or _has_product(expr.b))


def _refuse_zero_divisors(expr):
    if not isinstance(expr, BinaryOpExpr):
        return
    divisor = expr.b.value if isinstance(expr.b, Broadcast) else expr.b
    if isinstance(expr, (Div, Mod, FloorDiv, FloorMod)) and isinstance(divisor, IntImm) and divisor.value == 0:
        raise InternalError(f"division by zero: {expr}")
    _refuse_zero_divisors(expr.a)
    _refuse_zero_divisors(expr.b)


def _has_lanes(expr):
    return hasattr(expr, "dtype") and "x" in str(expr.dtype)


def _is_said_of(about, var, kind):
    return about is not None and about[1] == kind and about[0].same_as(var)


class Analyzer:
    """Knows ranges and values of variables, and conditions that hold::

        analyzer = Analyzer()
        analyzer.bind(i, Range(0, 16))
        analyzer.can_prove(i // 4 < 4)
    """

    def __init__(self):
        # What was said, in order, and of which variable: a scope that ends is forgotten by saying the rest anew.
        self._said = []
        self._known = _core.SymbolicAnalyzer()
        self._stats, self._most_rewrites = RewriteSimplifierStats(), 0

    def _say(self, what, *values, about=None):
        self._said.append((what, values, about))
        if what not in _KEPT_HERE:
            getattr(self._known, what)(*values)

    def _restore(self, kept):
        self._said, self._known = [], _core.SymbolicAnalyzer()
        for what, values, about in kept:
            self._say(what, *values, about=about)

    def _make_way(self, var, kind, what, values, override):
        """Forget what was said of a variable, or refuse to be told another thing; whether it is new."""
        before = [said for said in self._said if _is_said_of(said[2], var, kind)]
        if not before:
            return True
        if override:
            self._restore([said for said in self._said if not _is_said_of(said[2], var, kind)])
            return True
        old = before[0]
        if old[0] == what and len(old[1]) == len(values) and all(self.can_prove_equal(a, b) for a, b in zip(old[1][1:], values[1:])):
            return False
        name = "const bound" if kind == "bound" else kind
        told = [", ".join(map(str, one[1:])) for one in (old[1], values)]
        raise InternalError(
            f"Trying to update var '{var.name}' with a different {name}: it was ({told[0]}), now ({told[1]}); pass allow_override=True "
            "(bind) or override=True (update) to replace it"
        )

    def clone(self):
        """An analyzer that knows the same."""
        other = Analyzer()
        other.enabled_extensions = self.enabled_extensions
        for what, values, about in self._said:
            other._say(what, *values, about=about)
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

        Raises
        ------
        InternalError
            Another thing was said of the variable before.
        """
        if isinstance(expr, Range):
            what, values = "_bind_range", (var, expr.min, expr.extent)
        else:
            what, values = "_bind_value", (var, expr)
        about = (var, "bound") if isinstance(var, Var) else None
        if about is None or self._make_way(var, "bound", what, values, allow_override):
            self._say(what, *values, about=about)

    def update(self, var, info, override=False):
        """Say what is known of a variable.

        Parameters
        ----------
        var : Var
            An integer variable.
        info : ConstIntBound, ModularSet or IntervalSet
            The constants between which it lies, its remainder, or the set in which :meth:`int_set` finds it.
        override : bool
            Take back what of this kind was said of it before.

        Raises
        ------
        TypeError
            ``info`` is something else.
        InternalError
            Another thing was said of the variable before.
        """
        from .int_set import IntervalSet

        if isinstance(info, ConstIntBound):
            kind, what, values = "bound", "_note", (var, info.min_value, info.max_value)
        elif isinstance(info, ModularSet):
            kind, what, values = "modular set", "_modulo", (var, info.coeff, info.base)
        elif isinstance(info, IntervalSet):
            kind, what, values = "interval", "_set", (var, info.min_value, info.max_value)
        else:
            raise TypeError(
                f"an analyzer learns of a variable by ConstIntBound, ModularSet or IntervalSet, got {type(info).__name__}; "
                "ranges and values are for `bind`, conditions for `constraint_scope`"
            )
        if not self._make_way(var, kind, what, values, override):
            return
        about = (var, kind)
        self._say(what, *values, about=about)
        if kind == "modular set" and info.coeff > 1:
            self._say("_assume", var % const(info.coeff, var.dtype) == const(info.base, var.dtype), about=about)
        if kind == "bound":
            self._say_bounds(var, info, about)

    def _say_bounds(self, var, info, about):
        if info.min_value > ConstIntBound.NEG_INF and info.max_value < ConstIntBound.POS_INF:
            self._say("_bind_range", var, info.min_value, info.max_value - info.min_value + 1, about=about)
            return
        if info.min_value > ConstIntBound.NEG_INF:
            self._say("_assume", var >= info.min_value, about=about)
        if info.max_value < ConstIntBound.POS_INF:
            self._say("_assume", var <= info.max_value, about=about)

    def constraint_scope(self, constraint):
        """A scope in which a condition holds: ``with analyzer.constraint_scope(n > 0): ...``."""

        def enter():
            count = len(self._said)
            self._say("_assume", _expr(constraint))
            return lambda: self._restore(self._said[:count])

        return ConstraintScope(enter)

    def simplify(self, expr, steps=2):
        """An expression of the same value in simpler form."""
        expr = _expr(expr)
        if _is_identity(expr):
            return IntImm("bool", 1)
        # The canonical form is one of scalars.
        return self._known._simplify(self._rewritten(expr) if _has_lanes(expr) else expr)

    def rewrite_simplify(self, expr):
        """An expression of the same value in a form that keeps more of its shape than :meth:`simplify`.

        Sums are not expanded, vectors become one vector, comparisons ``<``, ``<=`` and ``==``.

        Parameters
        ----------
        expr : expression
            Of integers, conditions or vectors of them.

        Raises
        ------
        InternalError
            It divides by a literal zero, or more rules were applied than :meth:`set_maximum_rewrite_steps` allows.
        """
        expr = _expr(expr)
        if _is_identity(expr):
            return IntImm("bool", 1)
        form = self._rewritten(expr)
        # What is said of the factors of a product is no rule's: the solver tells by cases.
        asked = isinstance(form, (LT, LE)) and (_has_product(form.a) or _has_product(form.b))
        return IntImm("bool", 1) if asked and (known := self._conditions()) and _core._follows(known, form) else form

    def _rewritten(self, expr):
        _refuse_zero_divisors(expr)
        form, (nodes, tried, applied, assumed) = self._known._rewrite(expr)
        stats = self._stats
        stats.nodes_visited += nodes
        stats.constraints_entered += assumed
        stats.rewrites_attempted += tried
        stats.rewrites_performed += applied
        if 0 < self._most_rewrites < stats.rewrites_performed:
            raise InternalError(
                f"{stats.rewrites_performed} rules were applied, more than the {self._most_rewrites} that set_maximum_rewrite_steps allows"
            )
        return form

    @property
    def rewrite_simplify_stats(self):
        """How much work was done since the last reset (:class:`RewriteSimplifierStats`)."""
        return copy(self._stats)

    def reset_rewrite_simplify_stats(self):
        """Count the work anew."""
        self._stats = RewriteSimplifierStats()

    def set_maximum_rewrite_steps(self, maximum):
        """Raise ``InternalError`` where more rules than this were applied since the last reset; 0 or less for no limit.

        Parameters
        ----------
        maximum : int
            How many rules.
        """
        self._most_rewrites = int(maximum)

    def canonical_simplify(self, expr):
        """The canonical form of an expression: sums of products of variables, in one order, whatever order they were written in."""
        expr = _expr(expr)
        if _is_identity(expr):
            return IntImm("bool", 1)
        return self._known._canonical(self._rewritten(expr) if _has_lanes(expr) else expr)

    def can_prove(self, expr, strength=ProofStrength.DEFAULT):
        """Whether a condition is known to hold always.

        With ``ProofStrength.SYMBOLIC_BOUND`` a proof is searched by cases where the rules do not suffice: over products of variables,
        quotients and remainders of them, and, where variables have few values, over bits.
        """
        condition = _expr(expr)
        if _is_identity(condition) or bool(self._known._can_prove(condition)):
            return True
        return strength >= ProofStrength.SYMBOLIC_BOUND and _core._follows(self._conditions(), condition)

    def _conditions(self):
        """All that was said, as conditions."""
        from ..tirx import all as every

        def of(what, values):
            var, *rest = values
            if what == "_assume":
                return var
            if what == "_bind_range":
                return every(var >= rest[0], var < rest[0] + rest[1])
            if what == "_bind_value":
                return _expr(var == rest[0])
            if what == "_modulo" and rest[0] > 1:
                return _expr(var % const(rest[0], var.dtype) == const(rest[1], var.dtype))
            return None

        said = (of(what, values) for what, values, _ in self._said)
        return [condition for condition in said if condition is not None]

    def can_prove_equal(self, lhs, rhs):
        """Whether two expressions are known to be equal always."""
        if hasattr(lhs, "dtype") and hasattr(rhs, "dtype") and structural_equal(lhs, rhs):
            return True
        return self._known._can_prove_equal(lhs, rhs)

    def const_int_bound(self, expr):
        """The constants between which an expression lies."""
        from .const_bounds import ConstBounds

        # What is said of a variable counts instead of what its type can hold.
        said = {values[0] for what, values, _ in self._said if what == "_note"}
        return ConstIntBound(*ConstBounds(self._bounds_of, self._values(), said, self._moduli()).of(expr))

    def _bounds_of(self, expr):
        """What was said of an expression itself, and what the compiler's analyzer knows of it."""
        from .const_bounds import said_of

        low, high = self._known._bounds(expr)
        for what, values, _ in self._said:
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
            ranges = {values[0]: values[1:] for what, values, _ in self._said if what == "_bind_range"}
            dom_map = {var: IntervalSet(low, self.simplify(low + extent - 1)) for var, (low, extent) in ranges.items()}
            dom_map |= {values[0]: IntervalSet(*values[1:]) for what, values, _ in self._said if what == "_set"}
        return Evaluator(self, dict(dom_map)).of(expr)

    enabled_extensions = Extension.NoExtensions

    @property
    def is_z3_enabled(self):
        """Whether proofs of ``ProofStrength.SYMBOLIC_BOUND`` have a solver behind them: always, and it is one of this package's own."""
        return True

    def set_z3_timeout_ms(self, timeout_ms):
        """Has no effect: the solver stops after a number of cases, not of milliseconds, so that it answers the same each time."""

    def set_z3_rlimit(self, rlimit):
        """Has no effect, as :meth:`set_z3_timeout_ms`."""

    def get_smtlib2(self, expr=None):
        """What the solver is asked, in the language of SMT-LIB: all that was said, and the contrary of a condition.

        Parameters
        ----------
        expr : expression, optional
            The condition.

        Returns
        -------
        str
            Declarations and assertions, which are satisfiable unless the condition follows.
        """
        from ._smtlib import script_of

        return script_of(self._conditions(), None if expr is None else _expr(expr))

    def get_z3_stats(self):
        """How much the solver has been told."""
        return f"(:conditions {len(self._said)})"

    def const_int_bound_is_bound(self, var):
        """Whether something was said of a variable."""
        return any(_is_said_of(about, var, "bound") for _, _, about in self._said)

    def modular_set(self, expr):
        """The remainders that an expression can have: what is known of it modulo a number (:class:`ModularSet`)."""
        from .modular import modular_set

        return modular_set(expr, {**self._values(), **self._moduli()}, lambda part: self.const_int_bound(part).min_value >= 0)

    def _values(self):
        """What variables were said to be."""
        return {values[0]: values[1] for what, values, _ in self._said if what == "_bind_value"}

    def _moduli(self):
        """What variables were said to be modulo a number."""
        from .modular import assumed_of, met

        found = {}
        for what, values, _ in self._said:
            told = {values[0]: ModularSet(*values[1:])} if what == "_modulo" else assumed_of(values[0]) if what == "_assume" else {}
            found = met(found, told)
        return found

    def try_compare(self, lhs, rhs, propagate_inequalities=True):
        """How two expressions compare, as far as it is known."""
        if self.can_prove_equal(lhs, rhs):
            return CompareResult.EQ
        if not propagate_inequalities:
            return self._compared_directly(lhs, rhs)
        return self._compared(lhs, rhs)

    def _compared_directly(self, lhs, rhs):
        """How two expressions compare by their bounds and by single conditions, which are not combined."""
        found = self._bare(None)._compared(lhs, rhs)
        for said in self._said:
            if found == CompareResult.UNKNOWN and said[0] == "_assume":
                found = self._bare(said)._compared(lhs, rhs)
        return found

    def _bare(self, condition):
        """An analyzer that knows one condition only, beside ranges and values."""
        other = Analyzer()
        for said in self._said:
            if said[0] != "_assume" or said is condition:
                other._say(said[0], *said[1], about=said[2])
        return other

    def _compared(self, lhs, rhs):
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
__all__ += ["Z3ContextScope"]
