"""Iterators: expressions that run through a range, made of others by fusing and splitting.

``x * 4 + y`` of ``x < 3`` and ``y < 4`` is one iterator of 12 steps, ``i // 8`` and ``i % 8`` are two of one. An :class:`IterMark` is what
runs, an :class:`IterSplitExpr` a part of its steps, an :class:`IterSumExpr` parts with their scales and a base.
"""

from enum import IntEnum

from ..ffi import Object
from ..ffi.dataclasses import py_class
from ..ir import prim
from ..tirx import const


class IterMapExpr(Object):
    """The base of what is made of iterators."""


@py_class("sym.IterMark", structural_eq="tree", init=False)
class IterMark(Object):
    """``source``, an expression or a sum, as an iterator over ``extent`` steps from zero."""

    source: object
    extent: object

    def __init__(self, source, extent):
        self.__ffi_init__(source, _scalar(extent, source))


@py_class("sym.IterSplitExpr", structural_eq="tree", init=False)
class IterSplitExpr(IterMapExpr):
    """``source // lower_factor % extent * scale``."""

    source: object
    lower_factor: object
    extent: object
    scale: object

    def __init__(self, source, lower_factor, extent, scale):
        self.__ffi_init__(source, *(_scalar(value, source.extent) for value in (lower_factor, extent, scale)))


@py_class("sym.IterSumExpr", structural_eq="tree", init=False)
class IterSumExpr(IterMapExpr):
    """The sum of splits, ``args``, and of a ``base``."""

    args: object
    base: object

    def __init__(self, args, base):
        args = list(args)
        self.__ffi_init__(args, _scalar(base, args[0].extent if args else None))


def _scalar(value, like):
    return const(value, str(getattr(like, "dtype", "int32"))) if isinstance(value, int) else value


class IterMapLevel(IntEnum):
    """What is asked of a mapping."""

    Bijective = 0
    Surjective = 1
    NoCheck = 3

    @staticmethod
    def from_str(name):
        """The level of a name: ``"bijective"``, ``"surjective"``, ``"nocheck"``; ``None`` is surjective."""
        if name is None:
            return IterMapLevel.Surjective
        names = {level.name.lower(): level for level in IterMapLevel}
        if name.lower() not in names:
            raise ValueError(f"Unknown check level {name}; there are {', '.join(names)}")
        return names[name.lower()]


class IterMapResult:
    """What was found: an :class:`IterSumExpr` for each index, none where it failed; ``errors`` say why. ``padding_predicate`` is false:
    steps that are no values of the inputs are not among the results."""

    def __init__(self, indices=(), errors=(), padding_predicate=None):
        self.indices, self.errors = list(indices), list(errors)
        self.padding_predicate = prim.IntImm("bool", 0) if padding_predicate is None else padding_predicate


def _level(given):
    return IterMapLevel.from_str(given) if isinstance(given, str) or given is None else IterMapLevel(given)


def _map(indices, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer):
    from ._iter_map import Detection

    found = Detection(input_iters, _level(check_level), simplify_trivial_iterators, analyzer)
    return found, found.detect([_scalar(index, next(iter(input_iters), None)) for index in indices], predicate)


def detect_iter_map(
    indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True, analyzer=None
):
    """Whether indices are iterators that are made of others, and how.

    Parameters
    ----------
    indices : list of expression
        The indices.
    input_iters : dict of Var to Range
        The variables and their ranges.
    predicate : expression
        Conditions on the variables.
    check_level : IterMapLevel or str
        Bijective: each value of the variables gives other indices, and each index comes of one. Surjective: each index comes of one.
    simplify_trivial_iterators : bool
        Whether variables of one value are that value.
    analyzer : Analyzer, optional
        What else is known.

    Returns
    -------
    IterMapResult
        Without indices where they are not.
    """
    return _map(indices, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer)[1]


def normalize_to_iter_sum(index, input_iters, analyzer=None):
    """An index as a sum of iterators, largest scale first; what is none goes to the base. Nothing is checked."""
    from ._iter_map import Detection

    return Detection(input_iters, IterMapLevel.NoCheck, True, analyzer).sum_of(index)


def normalize_iter_map_to_expr(expr):
    """The plain expression of an :class:`IterMapExpr`."""
    from ._iter_map import plain

    return plain(expr)


def iter_map_simplify(
    indices, input_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True, analyzer=None
):
    """Indices in simpler form, by the iterators that they are; those of which nothing was found stay. The parameters are those of
    :func:`detect_iter_map`."""
    found, result = _map(indices, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer)
    if result.indices:
        return [found.analyzer.simplify(normalize_iter_map_to_expr(index)) for index in result.indices]
    return [found.analyzer.simplify(index) if not isinstance(index, int) else index for index in indices]


def subspace_divide(
    bindings, input_iters, sub_iters, predicate=True, check_level=IterMapLevel.Surjective, simplify_trivial_iterators=True, analyzer=None
):
    """Indices in two parts: of the variables that are not ``sub_iters``, and of those that are.

    Gives ``[outer, inner]`` for each index, with ``index = outer * inner.extent + inner``, and last the conditions of both as
    ``[outer, inner]``; each part is an :class:`IterMark`. An empty list where it cannot be done. The other parameters are those of
    :func:`detect_iter_map`.
    """
    from ._iter_division import Division

    found, result = _map(bindings, input_iters, predicate, check_level, simplify_trivial_iterators, analyzer)
    if not result.indices:
        return []
    return Division(found, sub_iters).divide(result.indices, predicate)


def inverse_affine_iter_map(iter_map, outputs):
    """The variables as expressions of the indices: ``{i: out0 * 8 + out1}`` of ``[i // 8, i % 8]``. The mapping must be bijective.

    Parameters
    ----------
    iter_map : list of IterSumExpr
        What :func:`detect_iter_map` found.
    outputs : list of expression
        The values of the indices.
    """
    from ._iter_map import inverse

    return inverse(list(iter_map), list(outputs))


__all__ = ["IterMapExpr", "IterMapLevel", "IterMapResult", "IterMark", "IterSplitExpr", "IterSumExpr", "detect_iter_map"]
__all__ += ["inverse_affine_iter_map", "iter_map_simplify", "normalize_iter_map_to_expr", "normalize_to_iter_sum", "subspace_divide"]
