"""Layouts of tensors by letters: capital letters are dimensions, small ones with a number are blocks of them: ``NCHW16c``."""

import re

from ..error import InternalError
from ..sym import Analyzer
from ..tirx import IterVar, Var, const

_TOKEN = re.compile(r"([A-Z])|(\d+)([a-z])|\[((?:\d+[a-z])+)\]")


class SLayout:
    """A layout: its ``name``, and its ``axes``, an axis for each place. Small letters in brackets are blocks that share a place.

    ``layout[i]`` is the text of a place, ``"c" in layout`` says whether a letter stands in it.
    """

    def __init__(self, name, axes):
        self.name, self.axes = name, list(axes)
        self._places = _parsed(name) if name not in ("", "__undef__") else []

    def index_of(self, axis):
        """The place of a letter or a block; -1 where it is none."""
        texts = [_text(place) for place in self._places]
        if axis in texts:
            return texts.index(axis)
        alone = [place[0][0] if len(place) == 1 else None for place in self._places]
        return alone.index(axis) if axis in alone else -1

    def factor_of(self, axis):
        """The size of the blocks of a dimension; -1 where it has none."""
        sizes = [size for place in self._places for letter, size in place if letter.upper() == axis.upper() and size]
        product = 1
        for size in sizes:
            product *= size
        return product if sizes else -1

    def __len__(self):
        return len(self._places)

    def __getitem__(self, index):
        if not -len(self._places) <= index < len(self._places):
            raise IndexError("Layout index out of range")
        return _text(self._places[index])

    def __contains__(self, axis):
        # Blocks in brackets are found by their text as well.
        return any(axis == _text(place) or any(axis == letter for letter, _ in place) for place in self._places)

    def __eq__(self, other):
        return isinstance(other, SLayout) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    def __repr__(self):
        return f"SLayout({self.name})"


def _text(place):
    return "".join(f"{size or ''}{letter}" for letter, size in place)


def _parsed(name):
    """The places of a layout, each a list of ``(letter, size)``."""
    places, at, seen = [], 0, set()
    while at < len(name):
        match = _TOKEN.match(name, at)
        if match is None:
            raise InternalError(f"{name!r} is no layout: {name[at:]!r} is no capital letter, no block such as 16c and no [4o4i]")
        at = match.end()
        if match[1]:
            place = [(match[1], 0)]
        elif match[2]:
            place = [(match[3], int(match[2]))]
        else:
            place = [(letter, int(size)) for size, letter in re.findall(r"(\d+)([a-z])", match[4])]
        for letter, _ in place:
            if letter in seen:
                raise InternalError(f"{name!r} is no layout: {letter} stands twice")
            seen.add(letter)
        places.append(place)
    missing = [letter for place in places for letter, size in place if size and letter.upper() not in seen]
    if missing:
        raise InternalError(f"{name!r} is no layout: {missing[0]} is a block of no dimension, {missing[0].upper()} is missing")
    return places


def slayout(layout_str, dtype="int32"):
    """The layout of a text, whose axes are integers of a type. An InternalError where it is none."""
    if not isinstance(dtype, str) or not dtype.startswith("int"):
        raise TypeError(f"the axes of a layout are integers, got {dtype!r}")
    if layout_str in ("", "__undef__"):
        return SLayout(layout_str, [])
    axes = []
    for place in _parsed(layout_str):
        size = 1
        for _, own in place:
            size *= own
        extent = const(size, dtype) if size else Var(_text(place), dtype)
        from ..tirx import Range

        axes.append(IterVar(Range.from_min_extent(const(0, dtype), extent), Var(_text(place), dtype), IterVar.DataPar))
    return SLayout(layout_str, axes)


class SBijectiveLayout:
    """Two layouts of the same dimensions, and the way between: of indices and of shapes."""

    def __init__(self, src_layout, dst_layout, index_forward_rule, index_backward_rule, shape_forward_rule, shape_backward_rule):
        self.src_layout, self.dst_layout = src_layout, dst_layout
        self.index_forward_rule, self.index_backward_rule = index_forward_rule, index_backward_rule
        self.shape_forward_rule, self.shape_backward_rule = shape_forward_rule, shape_backward_rule

    def forward_index(self, index):
        """An index of the first layout as one of the second."""
        return _indices(self.src_layout, self.dst_layout, index)

    def backward_index(self, index):
        """An index of the second layout as one of the first."""
        return _indices(self.dst_layout, self.src_layout, index)

    def forward_shape(self, shape):
        """A shape of the first layout as one of the second."""
        return _shape(self.src_layout, self.dst_layout, shape)

    def backward_shape(self, shape):
        """A shape of the second layout as one of the first."""
        return _shape(self.dst_layout, self.src_layout, shape)


def _simple(values):
    analyzer = Analyzer()
    return [analyzer.simplify(const(value, "int32") if isinstance(value, int) else value) for value in values]


def _whole(layout, values, of_shape):
    """The dimensions that places stand for: places themselves, or lengths."""
    parts = {}
    for place, value in zip(layout._places, values):
        for position, (letter, size) in enumerate(place):
            inner = 1
            for _, own in place[position + 1 :]:
                inner *= own
            if size:
                parts[letter] = size if of_shape else value // inner % size
            else:
                parts[letter] = value
    found = {}
    for letter in parts:
        if letter.isupper():
            block = layout.factor_of(letter)
            if block == -1:
                found[letter] = parts[letter]
            else:
                found[letter] = parts[letter] * block if of_shape else parts[letter] * block + parts[letter.lower()]
    return found


def _indices(source, target, index):
    if len(index) != len(source):
        raise ValueError(f"{len(index)} indices for the {len(source)} places of {source.name}")
    whole, made = _whole(source, index, False), []
    for place in target._places:
        value = None
        for letter, size in place:
            block = target.factor_of(letter)
            one = whole[letter.upper()]
            one = one if block == -1 else one // block if not size else one % size
            value = one if value is None else value * size + one
        made.append(value)
    return _simple(made)


def _shape(source, target, shape):
    if len(shape) != len(source):
        raise ValueError(f"{len(shape)} lengths for the {len(source)} places of {source.name}")
    whole, made = _whole(source, shape, True), []
    for place in target._places:
        length = 1
        for letter, size in place:
            block = target.factor_of(letter)
            length = length * (size or (whole[letter] if block == -1 else (whole[letter] + block - 1) // block))
        made.append(length)
    return _simple(made)


def sbijective_layout(src_layout, dst_layout):
    """The way between two layouts; ``None`` where they are not of the same dimensions."""
    src, dst = (slayout(one) if isinstance(one, str) else one for one in (src_layout, dst_layout))
    dims = [sorted(letter for place in one._places for letter, size in place if not size) for one in (src, dst)]
    if not dims[0] or dims[0] != dims[1]:
        return None
    forward, backward = ([axis.var for axis in one.axes] for one in (src, dst))
    rules = (_indices(src, dst, forward), _indices(dst, src, backward), _shape(src, dst, forward), _shape(dst, src, backward))
    return SBijectiveLayout(src, dst, *rules)


__all__ = ["SBijectiveLayout", "SLayout", "sbijective_layout", "slayout"]
