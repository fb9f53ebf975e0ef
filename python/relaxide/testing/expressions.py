"""Comparisons of scalars."""

import itertools

from ..sym import Analyzer


def assert_prim_expr_equal(lhs, rhs):
    """Fail unless two scalars are proved to be equal always, or numbers agree."""
    if not hasattr(lhs, "dtype") and not hasattr(rhs, "dtype"):
        assert lhs == rhs, f"{lhs} and {rhs} are not equal"
        return
    analyzer = Analyzer()
    if hasattr(lhs, "dtype") and hasattr(rhs, "dtype") and str(lhs.dtype) != str(rhs.dtype):
        rhs = rhs.astype(lhs.dtype)
    assert analyzer.can_prove_equal(lhs, rhs), f"{lhs} and {rhs} are not proved to be equal"


def check_bool_expr_is_true(bool_expr, vranges, cond=None):
    """Fail unless a condition holds for all values of variables, which are tried out.

    ``vranges`` are constant ranges by variable; ``cond`` is a condition under which it is to hold.
    """
    analyzer = Analyzer()
    if cond is not None:
        bool_expr = _any(bool_expr, cond)
    names = list(vranges)
    ranges = [range(int(dom.min), int(dom.min) + int(dom.extent)) for dom in vranges.values()]
    for values in itertools.product(*ranges):
        tried = analyzer.clone()
        for name, value in zip(names, values):
            tried.bind(name, value)
        if not tried.can_prove(bool_expr):
            said = ", ".join(f"{name} = {value}" for name, value in zip(names, values))
            raise AssertionError(f"Expected expression {bool_expr} to be true, but it is not for {said}")


def _any(bool_expr, cond):
    from ..tirx import Not, Or

    return Or(Not(cond), bool_expr)


__all__ = ["assert_prim_expr_equal", "check_bool_expr_is_true"]
