"""Modules that are the same because their heaviest blocks are."""

import math

from ...ffi import structural_equal
from ...tirx import IterVar, PrimFunc
from ...tirx._walk import walk
from ..stmt import SBlock


def anchor_of(mod):
    """The block that reduces over most elements; ``None`` where none reduces."""
    found, most = None, 0
    for func in mod.functions.values():
        for stmt in walk(func.body) if isinstance(func, PrimFunc) else ():
            if isinstance(stmt, SBlock) and any(axis.iter_type == IterVar.CommReduce for axis in stmt.iter_vars):
                size = math.prod(getattr(axis.extent, "value", 1) for axis in stmt.iter_vars)
                if size > most:
                    found, most = stmt, size
    return found


def equal_by_anchor(a, b):
    """Whether the heaviest blocks of two modules are equal; without any, whether the modules are."""
    first, second = anchor_of(a), anchor_of(b)
    if first is None or second is None:
        return structural_equal(a, b)
    return structural_equal(first, second, map_free_vars=True)


__all__ = ["anchor_of", "equal_by_anchor"]
