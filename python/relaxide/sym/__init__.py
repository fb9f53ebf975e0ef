"""Symbolic arithmetic over integers: what is known of variables, and what follows for expressions."""

from . import analyzer, bound, int_set, iter_affine_map, pattern  # noqa: F401
from .analyzer import Analyzer, CompareResult, ConstIntBound, ConstraintScope, Extension, ModularSet, ProofStrength, Z3ContextScope
from .bound import deduce_bound
from .int_set import (
    IntervalSet,
    IntSet,
    estimate_region_lower_bound,
    estimate_region_strict_bound,
    estimate_region_upper_bound,
)
from .iter_affine_map import (
    IterMapExpr,
    IterMapLevel,
    IterMapResult,
    IterMark,
    IterSplitExpr,
    IterSumExpr,
    detect_iter_map,
    inverse_affine_iter_map,
    iter_map_simplify,
    normalize_iter_map_to_expr,
    normalize_to_iter_sum,
    subspace_divide,
)
from .pattern import detect_clip_bound, detect_linear_equation

__all__ = ["Analyzer", "CompareResult", "ConstIntBound", "ConstraintScope", "Extension", "IntSet", "IntervalSet", "IterMapExpr"]
__all__ += ["IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "ModularSet", "ProofStrength", "Z3ContextScope", "deduce_bound"]
__all__ += ["detect_clip_bound", "detect_iter_map", "detect_linear_equation", "estimate_region_lower_bound"]
__all__ += ["estimate_region_strict_bound", "estimate_region_upper_bound", "inverse_affine_iter_map", "iter_map_simplify"]
__all__ += ["normalize_iter_map_to_expr", "normalize_to_iter_sum", "subspace_divide"]
