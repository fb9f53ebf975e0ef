"""Programs: functions by name."""

from ._core import IRModule, structural_equal

__all__ = ["IRModule", "assert_structural_equal", "structural_equal"]


def assert_structural_equal(lhs, rhs, map_free_vars=False):
    """Raise a ValueError that names the first difference unless the two programs are the same up to names."""
    structural_equal(lhs, rhs, map_free_vars, True)
