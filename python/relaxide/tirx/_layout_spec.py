"""How layouts are written: ``S[extents : strides] + R[extents : strides] + offsets``."""

from ..ir.expr import Expr
from ..ir.prim import IntImm


class Terms:
    """What is added to each axis; what is without an axis is for ``m``."""

    def __init__(self, terms):
        self.terms = terms

    def __add__(self, other):
        if not _is_offset(other):
            return NotImplemented
        terms = dict(self.terms)
        for axis, value in offset_terms(other).items():
            terms[axis] = terms[axis] + value if axis in terms else value
        return Terms(terms)

    __radd__ = __add__


class OnAxis(Terms):
    """A step along an axis: ``4 @ laneid``."""

    def __init__(self, value, axis):
        super().__init__({axis: value})
        self.value = value
        self.axis = axis


def _is_offset(value):
    return isinstance(value, (Terms, Expr, int))


def offset_terms(offset):
    """Offsets by axis."""
    if offset is None:
        return {}
    if isinstance(offset, Terms):
        return offset.terms
    from .layout import Axis

    return {Axis.get("m"): offset}


def _sum(a, b):
    if a is None or b is None:
        return b if a is None else a
    return Terms(offset_terms(a)) + b


class Spec:
    """A layout's parts: pairs of extents and strides, and what is added."""

    def __init__(self, shard=None, replica=None, offset=None):
        self.shard = shard
        self.replica = replica
        self.offset = offset

    def __add__(self, other):
        if isinstance(other, Spec):
            return Spec(self.shard or other.shard, other.replica or self.replica, _sum(self.offset, other.offset))
        return Spec(self.shard, self.replica, _sum(self.offset, other)) if _is_offset(other) else NotImplemented

    __radd__ = __add__


class _Builder:
    """``S[8 : 4 @ laneid]``, ``S[(8, 4) : (4, 1)]``, ``S[8, 4]``."""

    def __init__(self, part):
        self._part = part

    def __getitem__(self, key):
        pair = (_several(key.start), _several(key.stop)) if isinstance(key, slice) else (_several(key), None)
        return Spec(**{self._part: pair})


def _several(value):
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


S = _Builder("shard")
R = _Builder("replica")


def row_major(extents):
    """Strides of elements that lie one behind another, of the type of the extents."""
    stride = next((IntImm(str(one.dtype), 1) for one in extents if isinstance(one, Expr) and str(one.dtype) != "int32"), 1)
    strides = []
    for extent in reversed(extents):
        strides.append(stride)
        stride = extent * stride
    return strides[::-1]


def iterators(pair):
    """``(extent, step, axis)`` of each iterator; an axis may be a name."""
    if pair is None:
        return []
    extents, strides = pair
    strides = row_major(extents) if strides is None else strides
    if len(extents) != len(strides):
        raise ValueError(f"a layout has a stride for each extent: {len(extents)} extents, {len(strides)} strides")
    return [(extent, *_step(stride)) for extent, stride in zip(extents, strides)]


def _step(stride):
    if isinstance(stride, OnAxis):
        return stride.value, stride.axis
    if isinstance(stride, str):
        return 1, stride
    return tuple(stride) if isinstance(stride, tuple) else (stride, "m")
