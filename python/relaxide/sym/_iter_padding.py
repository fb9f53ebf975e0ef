"""Iterators with steps in front of them and behind."""

import math

from ..tirx import const


class Unmapped(Exception):
    """An index that is no iterator."""


def number(value):
    """The number that a literal is; nothing of another value."""
    return getattr(value, "value", None)


class Padding:
    """Steps in front of iterators and behind them, which make an index that begins within a step begin with one.

    Of ``(y + 80) // 32`` with ``y`` in ``[0, 176)`` the iterator is ``p = y + 16`` in ``[0, 192)``, whose quotient begins at 2. All
    indices over one iterator and offset share ``p``: it is padded to a multiple of all their steps.
    """

    def __init__(self):
        self.steps = {}  # the common multiple of steps, by the iterator's identity and the offset
        self.marks = {}  # the padded iterator by the same and the steps
        self.known = {}  # of padded iterators, by identity: the plain one, its offset, how far it is in them, and its extent
        self.settled = {}
        self._seen = []  # iterators, whose places here are what their identity is called above

    def _place(self, mark):
        place = next((place for place, one in enumerate(self._seen) if one.same_as(mark)), len(self._seen))
        if place == len(self._seen):
            self._seen.append(mark)
        return place

    def grew(self):
        """Whether indices were seen that ask for more than what the last ones were rewritten with."""
        grown, self.settled = self.settled != self.steps, dict(self.steps)
        return grown

    def of(self, arg, offset, steps):
        """An iterator behind an offset as the padded one, and what of the offset is left; nothing where it is none as a whole."""
        from .iter_affine_map import IterMark, IterSplitExpr, IterSumExpr

        found = self._behind(arg, offset)
        if found is None:
            return None
        (source, offset), lower = found, number(arg.lower_factor)
        key, steps = (self._place(source), offset), steps * lower
        self.steps[key] = math.lcm(self.steps.get(key, 1), steps)
        steps = self.steps[key]
        left, extent, dtype = offset % steps, number(source.extent), str(source.extent.dtype)
        if (key, steps) not in self.marks:
            inside = source.source if hasattr(source.source, "args") else IterSumExpr([IterSplitExpr(source, *_whole(source))], const(0, dtype))
            padded = IterMark(IterSumExpr(inside.args, const(left + number(inside.base), dtype)), const(-(-(left + extent) // steps) * steps, dtype))
            self.marks[key, steps] = padded
            self.known[self._place(padded)] = (source, offset, left, extent)
        padded = self.marks[key, steps]
        whole = IterSplitExpr(padded, const(lower, dtype), const(number(padded.extent) // lower, dtype), const(1, dtype))
        return whole, (offset - left) // lower

    def _behind(self, arg, offset):
        """The plain iterator of a part that goes to its end, and the offset in its steps."""
        source, lower = arg.source, number(arg.lower_factor)
        if self._place(source) in self.known:
            source, _, left, _ = self.known[self._place(source)]
            return source, left + lower * offset
        if None in (lower, number(source.extent), number(arg.extent)) or lower * number(arg.extent) < number(source.extent):
            return None
        return source, lower * offset

    def has(self, arg, offset):
        """Whether an iterator behind an offset is padded already."""
        found = self._behind(arg, offset)
        return found is not None and (self._place(found[0]), found[1]) in self.steps

    def note(self, arg, divisor):
        """A padded iterator is divided once more."""
        if self._place(arg.source) in self.known and None not in (number(arg.scale), number(divisor)) and not number(divisor) % number(arg.scale):
            source, offset, _, _ = self.known[self._place(arg.source)]
            steps = number(arg.lower_factor) * number(divisor) // number(arg.scale)
            self.steps[self._place(source), offset] = math.lcm(self.steps[self._place(source), offset], steps)

    def check(self, used):
        """Refuses parts that do not take all their values together: some are those of padding, or they begin elsewhere than others."""
        families = set()
        padded = [self._place(self.known[self._place(mark)][0]) for mark, _ in used if self._place(mark) in self.known]
        for mark, parts in used:
            place = self._place(mark)
            if place not in self.known:
                # A padded iterator is made of the plain one, once.
                if len(parts) > padded.count(place) or place not in padded:
                    families.add((place, None))
                continue
            source, offset, _, extent = self.known[place]
            families.add((self._place(source), offset))
            together = math.prod(number(part.extent) for part in parts)
            alone = len(parts) == 1 and number(parts[0].lower_factor) * number(parts[0].extent) >= number(mark.extent)
            if not alone and together * min(number(part.lower_factor) for part in parts) > extent:
                raise Unmapped("parts of a padded iterator do not take all their values together")
        if len({place for place, _ in families}) < len(families):
            raise Unmapped("parts of an iterator begin at different steps")


def _whole(mark):
    """What a part says that is all of an iterator."""
    one = const(1, str(mark.extent.dtype))
    return one, mark.extent, one
