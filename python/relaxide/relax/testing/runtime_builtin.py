"""Codes of the builtins that make and match shapes."""

from enum import IntEnum


class MatchShapeCode(IntEnum):
    """What is done with a dimension that is matched."""

    ASSERT_EQUAL_TO_IMM = 0
    STORE_TO_HEAP = 1
    NO_OP = 2
    ASSERT_EQUAL_TO_LOAD = 3


class MakeShapeCode(IntEnum):
    """Where a dimension that is made comes from."""

    USE_IMM = 0
    LOAD_SHAPE = 1
