"""Rewriting rules of the dataflow pattern language."""

from .. import _core
from ..ir.base import structural_equal
from ..ir.transform import ModulePass
from .expr import Function


class PatternMatchingRewriter(ModulePass):
    """Rewriting rules. A call with a module or a function gives it rewritten until nothing matches; ``a | b`` are the rules
    of both, of which the first that matches takes a value.

    ::

        @R.rewriter
        class Square:
            @R.function
            def pattern(x: R.Tensor):
                return R.multiply(x, x)

            @R.function
            def replacement(x: R.Tensor):
                return R.square(x)

        module = Square(module)
    """

    def __init__(self, rules):
        self._rules = rules
        super().__init__(_core.python_pass("module", lambda mod, ctx: rules._apply(mod), "PatternMatchingRewriter", 0, []))

    @staticmethod
    def from_pattern(pattern, func):
        """The rule of a pattern and of a function, as :func:`rewrite_call` takes them."""
        return ExprPatternRewriter(pattern, func)

    @staticmethod
    def from_module(mod):
        """The rule of a module with two functions ``pattern`` and ``replacement`` of one signature.

        Raises
        ------
        KeyError
            One of the two is missing.
        TypeError
            One of the two is no Relax function.
        ValueError
            They do not have the same signature, or another function of the module is public.
        """
        named = {var.name_hint: func for var, func in mod.functions.items()}
        for name in ("pattern", "replacement"):
            if name not in named:
                raise KeyError(f"a rule needs a Relax function {name!r}; the module's functions are {', '.join(named) or 'none'}")
            if not isinstance(named[name], Function):
                raise TypeError(f"a rule needs a Relax function {name!r}, but the module's is a {type(named[name]).__name__}")
        _check_rule(named)
        return PatternMatchingRewriter(_core.PatternRewriter._from_module(mod))

    def __call__(self, obj):
        return self._rules._apply(obj)

    def __or__(self, other):
        return OrRewriter(self, other)


class ExprPatternRewriter(PatternMatchingRewriter):
    """The rule of a pattern and of a function that makes what takes its place."""

    def __init__(self, pattern, func):
        super().__init__(_core.PatternRewriter._from_pattern(pattern, func))


class OrRewriter(PatternMatchingRewriter):
    """The rules of two rewriters."""

    def __init__(self, lhs, rhs):
        super().__init__(lhs._rules._or(rhs._rules))


def _check_rule(named):
    """Refuse functions that make no rule."""
    pattern, replacement = (named[name].ty for name in ("pattern", "replacement"))
    if not structural_equal(pattern, replacement, map_free_vars=True):
        raise ValueError(f"the pattern and its replacement must have the same signature, but they have {pattern} and {replacement}")
    for name, func in named.items():
        symbol = (func.attrs or {}).get("global_symbol")
        if symbol is not None and name not in ("pattern", "replacement"):
            raise ValueError(f"the function {name!r} is publicly exposed, as {symbol!r}: what a rule brings along must be private")


def rewrite_call(pattern, rewriter, func):
    """The function with every match replaced by ``rewriter(expression, parts)``, until nothing changes."""
    return _core.dpl_rewrite_call(pattern, rewriter, func)


def rewrite_bindings(ctx, rewriter, func):
    """The function with what a context matches replaced: ``rewriter(variables, values)`` gives new values by variable."""
    return _core.dpl_rewrite_bindings(*ctx._parts(), rewriter, func)


__all__ = ["ExprPatternRewriter", "OrRewriter", "PatternMatchingRewriter", "rewrite_bindings", "rewrite_call"]
