"""How indices are taken apart into iterators."""

from ..ir import prim
from ..ir.base import structural_equal
from ..ir.expr import Var
from ..tirx import const
from ..tirx._walk import walk_scalar
from ._iter_padding import Padding, Unmapped, number as _number
from .analyzer import Analyzer


def _classes():
    from .iter_affine_map import IterMark, IterSplitExpr, IterSumExpr

    return IterMark, IterSplitExpr, IterSumExpr


def plain(expr):
    """The plain expression of a mark, a split or a sum."""
    mark, split, _ = _classes()
    if isinstance(expr, mark):
        return plain(expr.source)
    if isinstance(expr, split):
        source = plain(expr.source)
        value = source
        if not _is(expr.lower_factor, 1):
            value = prim.FloorDiv(source, expr.lower_factor)
        # A part that begins at the lowest step and goes to the end is the whole.
        if not Analyzer().can_prove_equal(expr.source.extent, expr.lower_factor * expr.extent):
            last = _is_last(expr)
            value = value if last else prim.FloorMod(value, expr.extent) if _is(expr.lower_factor, 1) else _cut(source, expr)
        return value if _is(expr.scale, 1) else value * expr.scale
    if hasattr(expr, "args") and hasattr(expr, "base"):
        value = None
        for arg in expr.args:
            value = plain(arg) if value is None else value + plain(arg)
        if value is None:
            return expr.base
        return value if _is(expr.base, 0) else value + expr.base
    return expr


def _is_last(split):
    """Whether no steps lie above a part, though the last is not whole."""
    return Analyzer().can_prove(split.lower_factor * split.extent >= split.source.extent)


def _cut(source, split):
    """A part in the middle: its steps are cut off above first."""
    return prim.FloorDiv(prim.FloorMod(source, Analyzer().simplify(split.lower_factor * split.extent)), split.lower_factor)


def _is(value, number):
    return getattr(value, "value", None) == number


class Detection:
    """Takes indices over variables apart."""

    def __init__(self, input_iters, level, simplify_trivial, analyzer):
        self.level, self.domain = level, dict(input_iters)
        self.analyzer = Analyzer() if analyzer is None else analyzer.clone()
        self.marks, self.fused, self.errors = [], [], []
        self.values = {}
        self.constrained = []
        self.padding = Padding()
        mark, split, total = _classes()
        for var, dom in self.domain.items():
            zero, one = const(0, str(var.dtype)), const(1, str(var.dtype))
            if simplify_trivial and self._equal(dom.extent, one):
                self.values[var] = total([], dom.min)
                continue
            source = var if self._equal(dom.min, zero) else self.analyzer.simplify(var - dom.min)
            made = mark(source, dom.extent)
            self.marks.append((made, var))
            self.values[var] = total([split(made, one, dom.extent, one)], dom.min)
        for var, dom in self.domain.items():
            if analyzer is None or not self.analyzer.const_int_bound_is_bound(var):
                self.analyzer.bind(var, dom)

    def _equal(self, a, b):
        return a is b or self.analyzer.can_prove_equal(a, b)

    def _simple(self, value):
        return self.analyzer.simplify(value)

    def detect(self, indices, predicate):
        """The result for all indices."""
        from .iter_affine_map import IterMapLevel, IterMapResult

        try:
            self._constrain(predicate)
            sums = [self._single(self.rewrite(index)) for index in indices]
            # What an iterator is padded to follows from all indices: once they are known, they are rewritten.
            while self.padding.grew():
                sums = [self._single(self.rewrite(index)) for index in indices]
            if self.level != IterMapLevel.NoCheck:
                self._check(sums)
        except Unmapped as error:
            return IterMapResult([], [str(error)])
        return IterMapResult(sums)

    def sum_of(self, index):
        """An index as a sum, in the order of its scales; nothing is fused."""
        total = _classes()[2]
        try:
            made = self.rewrite(index, keep=True)
        except Unmapped:
            return total([], index)
        return total(sorted(made.args, key=_by_scale), self._simple(made.base))

    # Rewriting an index.

    def rewrite(self, expr, keep=False):
        """The sum of an index. ``keep`` leaves what is no iterator in the base."""
        total = _classes()[2]
        if isinstance(expr, int):
            return total([], const(expr, "int32"))
        if isinstance(expr, Var) and expr in self.values:
            return self.values[expr]
        if not self._has_inputs(expr):
            return total([], expr)
        if isinstance(expr, (prim.Add, prim.Sub)):
            sign = 1 if isinstance(expr, prim.Add) else -1
            return self._added(self.rewrite(expr.a, keep), self.rewrite(expr.b, keep), sign)
        if isinstance(expr, prim.Mul):
            a, b = self.rewrite(expr.a, keep), self.rewrite(expr.b, keep)
            if a.args and b.args:
                return self._opaque(expr, keep)
            return self._scaled(a, b.base) if not b.args else self._scaled(b, a.base)
        if isinstance(expr, (prim.FloorDiv, prim.FloorMod)):
            divisor = self.rewrite(expr.b, keep)
            if divisor.args:
                return self._opaque(expr, keep)
            try:
                return self._divided(self.rewrite(expr.a, keep), divisor.base, isinstance(expr, prim.FloorDiv), expr)
            except Unmapped:
                return self._opaque(expr, keep)
        return self._opaque(expr, keep)

    def _opaque(self, expr, keep):
        if keep:
            return _classes()[2]([], expr)
        raise Unmapped(f"{expr} is not made of iterators by sums, products with constants, and divisions")

    def _has_inputs(self, expr):
        return any(isinstance(part, Var) and part in self.values and self.values[part].args for part in walk_scalar(expr)) or any(
            isinstance(part, Var) and part in self.values for part in walk_scalar(expr)
        )

    def _added(self, a, b, sign):
        split, total = _classes()[1:]
        args = list(a.args)
        for other in b.args:
            scale = other.scale if sign == 1 else self._simple(-other.scale)
            for index, own in enumerate(args):
                if own.source.same_as(other.source) and self._equal(own.lower_factor, other.lower_factor) and self._equal(own.extent, other.extent):
                    args[index] = split(own.source, own.lower_factor, own.extent, self._simple(own.scale + scale))
                    break
            else:
                args.append(split(other.source, other.lower_factor, other.extent, scale))
        args = [arg for arg in args if not _is(arg.scale, 0)]
        base = a.base + b.base if sign == 1 else a.base - b.base
        return self._merged(total(args, self._simple(base)))

    def _merged(self, made):
        """Neighbouring parts of one iterator as one part: ``i // 4 * 4 + i % 4`` is ``i``."""
        split, total = _classes()[1:]
        args = list(made.args)
        changed = True
        while changed:
            changed = False
            for i, low in enumerate(args):
                for j, high in enumerate(args):
                    if i == j or not low.source.same_as(high.source):
                        continue
                    above = self._equal(low.lower_factor * low.extent, high.lower_factor)
                    if above and self._equal(low.scale * low.extent, high.scale):
                        whole = split(low.source, low.lower_factor, self._simple(low.extent * high.extent), low.scale)
                        if self.analyzer.can_prove(whole.lower_factor * whole.extent >= low.source.extent) and _is(whole.lower_factor, 1):
                            whole = split(low.source, low.lower_factor, low.source.extent, low.scale)
                        args = [arg for k, arg in enumerate(args) if k not in (i, j)]
                        args.insert(min(i, j), whole)
                        changed = True
                        break
                if changed:
                    break
        return total(args, made.base)

    def _scaled(self, made, factor):
        split, total = _classes()[1:]
        if _is(factor, 0):
            return total([], const(0, str(factor.dtype)))
        args = [split(arg.source, arg.lower_factor, arg.extent, self._simple(arg.scale * factor)) for arg in made.args]
        return total(args, self._simple(made.base * factor))

    def _divided(self, made, divisor, is_quotient, expr):
        split, total = _classes()[1:]
        kind = prim.FloorDiv if is_quotient else prim.FloorMod
        if not made.args:
            return total([], self._simple(kind(made.base, divisor)))
        if self._equal(divisor, const(1, str(divisor.dtype))):
            return made if is_quotient else total([], const(0, str(divisor.dtype)))
        # Parts whose scale the divisor divides leave a quotient by themselves, and no remainder.
        whole = [arg for arg in made.args if self._divides(divisor, arg.scale)]
        rest = [arg for arg in made.args if arg not in whole]
        base_whole = self._divides(divisor, made.base)
        if whole and (base_whole or not rest) and self._is_small(rest, const(0, str(divisor.dtype)) if base_whole else made.base, divisor):
            if not is_quotient:
                return total(rest, const(0, str(divisor.dtype)) if base_whole else made.base)
            args = [split(arg.source, arg.lower_factor, arg.extent, self._simple(prim.FloorDiv(arg.scale, divisor))) for arg in whole]
            return total(args, self._simple(prim.FloorDiv(made.base, divisor)))
        if whole and not is_quotient and base_whole:
            made = total(rest, const(0, str(divisor.dtype)))
        if base_whole and not _is(made.base, 0) and self._is_padded(made):
            base_whole = False
        if base_whole and not _is(made.base, 0):
            inner = self._divided(total(made.args, const(0, str(divisor.dtype))), divisor, is_quotient, expr)
            return inner if not is_quotient else total(inner.args, self._simple(inner.base + prim.FloorDiv(made.base, divisor)))
        if self._is_small(made.args, made.base, divisor):
            return total([], const(0, str(divisor.dtype))) if is_quotient else made
        if not _is(made.base, 0):
            made = self._padded(made, divisor)
            inner = self._split(total(made.args, const(0, str(divisor.dtype))), divisor, is_quotient)
            return total(inner.args, self._simple(inner.base + kind(made.base, divisor)))
        return self._split(self._fuse(made), divisor, is_quotient)

    def _divides(self, divisor, value):
        return self._equal(prim.FloorMod(value, divisor), const(0, str(divisor.dtype)))

    def _is_small(self, args, base, divisor):
        """Whether a sum is never below zero and always below a number."""
        most = base
        for arg in args:
            if not self.analyzer.can_prove(arg.scale >= 0):
                return False
            most = most + (arg.extent - 1) * arg.scale
        return self.analyzer.can_prove(base >= 0) and self.analyzer.can_prove(self._simple(most) < divisor)

    def _is_padded(self, made):
        """Whether another index has padded the one iterator of a sum."""
        scale, base = (_number(made.args[0].scale), _number(made.base)) if len(made.args) == 1 else (None, None)
        return None not in (scale, base) and not base % scale and self.padding.has(made.args[0], base // scale)

    def _padded(self, made, divisor):
        """The sum with steps in front of its one iterator, so that what is left of its base are whole divisors."""
        split, total = _classes()[1:]
        fused = self._fuse(total(made.args, const(0, str(made.base.dtype))))
        (arg,) = fused.args
        scale, base, by = _number(arg.scale), _number(made.base), _number(divisor)
        if None in (scale, base, by) or by % scale or base % scale or self.level.name == "Bijective":
            raise Unmapped(f"{plain(made)} begins at {made.base}, which no part of its steps does")
        found = self.padding.of(arg, base // scale, by // scale)
        if found is None:
            raise Unmapped(f"{plain(made)} begins at {made.base}, and a part of an iterator is not padded")
        part, left = found
        return total([split(part.source, part.lower_factor, part.extent, arg.scale)], const(left * scale, str(made.base.dtype)))

    def _split(self, made, divisor, is_quotient):
        """The quotient or remainder of one part."""
        split, total = _classes()[1:]
        (arg,) = made.args
        self.padding.note(arg, divisor)
        zero, one = const(0, str(divisor.dtype)), const(1, str(divisor.dtype))
        if not self._divides(divisor, arg.scale):
            if not self._divides(arg.scale, divisor):
                raise Unmapped(f"steps of {arg.scale} are not divided by {divisor}")
            factor = self._simple(prim.FloorDiv(divisor, arg.scale))
        else:
            if not is_quotient:
                return total([], zero)
            return total([split(arg.source, arg.lower_factor, arg.extent, self._simple(prim.FloorDiv(arg.scale, divisor)))], zero)
        if not self._divides(factor, arg.extent):
            if self.analyzer.can_prove(arg.extent <= factor):
                return total([], zero) if is_quotient else made
            if not _is(arg.lower_factor, 1) and not self._is_top(arg):
                raise Unmapped(f"{arg.extent} steps are not divided by {factor}")
            count = self._simple(prim.FloorDiv(arg.extent + factor - 1, factor))
        else:
            count = self._simple(prim.FloorDiv(arg.extent, factor))
        if is_quotient:
            made = split(arg.source, self._simple(arg.lower_factor * factor), count, one)
            return total([made] if not _is(count, 1) else [], zero)
        return total([split(arg.source, arg.lower_factor, factor, arg.scale)], zero)

    def _is_top(self, arg):
        return self.analyzer.can_prove(arg.lower_factor * arg.extent >= arg.source.extent)

    # Fusing the parts of a sum.

    def _single(self, made):
        """A sum of at most one part."""
        return made if len(made.args) < 1 else self._fuse(made)

    def _fuse(self, made):
        mark, split, total = _classes()
        if len(made.args) == 1 and not self.constrained:
            (arg,) = made.args
            if _number(arg.scale) is not None and _number(arg.scale) < 0:
                return self._mirrored(made)
            return made
        known = self._known(made)
        if known is not None:
            return known
        args, scale, extent = self._in_order(list(made.args))
        if len(args) == 1:
            return total(args, made.base)
        inner = self._in_steps(args, scale)
        found = next((one for one in self.fused if structural_equal(one.source, inner)), None)
        if found is None:
            found = mark(inner, extent)
            self.fused.append(found)
        return total([split(found, const(1, str(scale.dtype)), extent, scale)], made.base)

    def _in_steps(self, args, scale):
        """The sum of parts with their scales in steps of one."""
        split, total = _classes()[1:]
        steps = [split(arg.source, arg.lower_factor, arg.extent, self._simple(prim.FloorDiv(arg.scale, scale))) for arg in args]
        return total(steps, const(0, str(scale.dtype)))

    def _mirrored(self, made):
        """One part with a negative scale, which does not run upwards."""
        raise Unmapped(f"{plain(made)} runs downwards")

    def _in_order(self, args):
        """The parts from the largest scale down, the smallest scale, and the number of steps."""
        numbers = [_number(arg.scale) for arg in args]
        if any(number is not None and number < 0 for number in numbers):
            raise Unmapped("a part runs downwards")
        scale = self._smallest(args)
        left, ordered, expected = list(args), [], scale
        overlapping = False
        while left:
            units = [arg for arg in left if _is(arg.extent, 1) and self._equal(arg.scale, expected)]
            match = next(iter(units), None) or next((arg for arg in left if self._equal(arg.scale, expected)), None)
            if match is None:
                match = self._overlapping(left, expected, scale)
                overlapping = True
                expected = self._simple((match.extent - 1) * match.scale + expected)
            else:
                expected = self._simple(match.extent * match.scale) if not overlapping else self._simple((match.extent - 1) * match.scale + expected)
            left.remove(match)
            ordered.append(match)
        return ordered[::-1], scale, self._simple(prim.FloorDiv(expected, scale))

    def _smallest(self, args):
        numbers = [(_number(arg.scale), index) for index, arg in enumerate(args) if _number(arg.scale) is not None]
        if numbers:
            return args[min(numbers)[1]].scale
        # Of symbolic scales the one that divides all others.
        for arg in args:
            if all(self._divides(arg.scale, other.scale) for other in args):
                return arg.scale
        raise Unmapped("no part has the smallest scale")

    def _overlapping(self, left, expected, scale):
        """A part whose steps go into the range of those below it: each index still comes of some."""
        from .iter_affine_map import IterMapLevel

        if self.level != IterMapLevel.Bijective and _is(scale, 1):
            fitting = [arg for arg in left if self.analyzer.can_prove(arg.scale <= expected)]
            if fitting:
                return max(fitting, key=lambda arg: _number(arg.scale) or 0)
        raise Unmapped(f"the parts leave gaps or overlap: a scale of {expected} is missing")

    # Conditions.

    def _constrain(self, predicate):
        if predicate is True or _is(predicate, 1):
            return
        bounds = []
        for one in _conjuncts(predicate):
            found = self._bound(one)
            if found is not None:
                bounds.append(found)
        joined = []
        for made, low, high in bounds:
            for row in joined:
                if structural_equal(row[0], made):
                    row[1] = low if row[1] is None else row[1] if low is None else self._simple(prim.Max(row[1], low))
                    row[2] = high if row[2] is None else row[2] if high is None else self._simple(prim.Min(row[2], high))
                    break
            else:
                joined.append([made, low, high])
        for made, low, high in sorted(joined, key=lambda row: len(row[0].args)):
            self._limit(made, low, high)

    def _bound(self, condition):
        """``(sum without base, least, one above the greatest)``."""
        kinds = (prim.LT, prim.LE, prim.GT, prim.GE, prim.EQ)
        if not isinstance(condition, kinds):
            raise Unmapped(f"the condition {condition} is no comparison")
        if not self._has_inputs(condition):
            return None
        made = self.rewrite(self._simple(condition.a - condition.b))
        if not made.args:
            return None
        kind, zero = type(condition), -made.base
        if all(self.analyzer.can_prove(arg.scale < 0) for arg in made.args):
            made = self._scaled(made, const(-1, str(made.base.dtype)))
            kind, zero = {prim.LT: prim.GT, prim.LE: prim.GE, prim.GT: prim.LT, prim.GE: prim.LE}.get(kind, kind), made.base * -1
        low = {prim.GT: zero + 1, prim.GE: zero, prim.EQ: zero}.get(kind)
        high = {prim.LT: zero, prim.LE: zero + 1, prim.EQ: zero + 1}.get(kind)
        made = _classes()[2](made.args, const(0, str(made.base.dtype)))
        return made, None if low is None else self._simple(low), None if high is None else self._simple(high)

    def _limit(self, made, low, high):
        """Let a sum run from ``low`` to ``high`` only."""
        mark, split, total = _classes()
        fused = self._fuse(made)
        (arg,) = fused.args
        scale = arg.scale
        least = const(0, str(scale.dtype)) if low is None else self._simple(prim.FloorDiv(low + scale - 1, scale))
        most = arg.extent if high is None else self._simple(prim.FloorDiv(high + scale - 1, scale))
        least = self._simple(prim.Max(least, 0))
        most = self._simple(prim.Min(most, arg.extent))
        if self._equal(least, const(0, str(scale.dtype))) and self._equal(most, arg.extent):
            return
        extent = self._simple(most - least)
        inner = [split(a.source, a.lower_factor, a.extent, self._simple(prim.FloorDiv(a.scale, scale))) for a in made.args]
        source = total(inner, self._simple(-least))
        new = mark(source, extent)
        self.constrained.append((made, scale, new, least))

    def _known(self, made):
        """The iterator of a sum under conditions: the largest that is in it is taken out, and the rest is fused with it."""
        split, total = _classes()[1:]
        for limited, scale, mark, least in sorted(self.constrained, key=lambda row: -len(row[0].args)):
            for factor in self._factors(made, limited):
                left = list(made.args)
                for part in limited.args:
                    match = next((arg for arg in left if self._is_scaled(arg, part, factor)), None)
                    if match is None:
                        break
                    left.remove(match)
                else:
                    one = const(1, str(scale.dtype))
                    step = self._simple(scale * factor)
                    whole = split(mark, one, mark.extent, step)
                    return self._fused_with(whole, left, self._simple(made.base + least * step))
        if self.constrained and self._touches(made):
            raise Unmapped("a condition is about parts of an index only")
        return None

    def _is_scaled(self, arg, part, factor):
        """Whether a part is another times a number."""
        same = arg.source.same_as(part.source) and self._equal(arg.lower_factor, part.lower_factor) and self._equal(arg.extent, part.extent)
        return same and self._equal(arg.scale, part.scale * factor)

    def _factors(self, made, limited):
        first = limited.args[0]
        for arg in made.args:
            if arg.source.same_as(first.source) and self._divides(first.scale, arg.scale):
                yield self._simple(prim.FloorDiv(arg.scale, first.scale))

    def _touches(self, made):
        for limited, _, _, _ in self.constrained:
            for arg in made.args:
                if any(arg.source.same_as(part.source) for part in limited.args) and len(limited.args) > len(made.args):
                    return True
        return False

    def _fused_with(self, whole, left, base):
        mark, split, total = _classes()
        if not left:
            return total([whole], base)
        args, scale, extent = self._in_order([whole, *left])
        inner = self._in_steps(args, scale)
        found = next((one for one in self.fused if structural_equal(one.source, inner)), None) or mark(inner, extent)
        self.fused.append(found)
        return total([split(found, const(1, str(scale.dtype)), extent, scale)], base)

    # Whether the parts of each iterator are used once.

    def _check(self, sums):
        from .iter_affine_map import IterMapLevel

        pending, seen = [arg for made in sums for arg in made.args], []
        used = []
        while pending:
            arg = pending.pop()
            row = next((row for row in used if row[0].same_as(arg.source)), None)
            if row is None:
                used.append((arg.source, [arg]))
            else:
                row[1].append(arg)
            if hasattr(arg.source.source, "args") and hasattr(arg.source.source, "base") and not any(arg.source.same_as(one) for one in seen):
                seen.append(arg.source)
                pending += list(arg.source.source.args)
        for mark, parts in used:
            self._check_parts(mark, parts)
        self.padding.check(used)
        if self.level == IterMapLevel.Bijective:
            for mark, var in self.marks:
                if not _is(mark.extent, 1) and not any(mark.same_as(one) for one, _ in used):
                    raise Unmapped(f"{var} is not used")

    def _check_parts(self, mark, parts):
        from .iter_affine_map import IterMapLevel

        left, expected = list(parts), const(1, str(mark.extent.dtype))
        while left:
            match = next((arg for arg in left if self._equal(arg.lower_factor, expected)), None)
            if match is None:
                if self.level == IterMapLevel.Bijective:
                    raise Unmapped("some steps of an iterator are used by no index")
                match = next((arg for arg in left if self._divides(expected, arg.lower_factor)), None)
                if match is None or any(other is not match and not self.analyzer.can_prove(other.lower_factor >= match.lower_factor) for other in left):
                    raise Unmapped("parts of an iterator overlap")
            left.remove(match)
            expected = self._simple(match.lower_factor * match.extent)
        if self.level == IterMapLevel.Bijective and not self._equal(expected, mark.extent):
            raise Unmapped("the parts of an iterator are not all of it")
        if not self.analyzer.can_prove(expected <= mark.extent) and len(parts) > 1:
            raise Unmapped("parts of an iterator go beyond it")


def _by_scale(arg):
    number = _number(arg.scale)
    parts, constant = 0, 1
    for one in _factors_of(arg.scale):
        if _number(one) is None:
            parts += 1
        else:
            constant *= _number(one)
    return (-constant if number is None else -number, -parts) if parts == 0 else (-constant, -parts)


def _factors_of(value):
    return [*_factors_of(value.a), *_factors_of(value.b)] if isinstance(value, prim.Mul) else [value]


def _conjuncts(predicate):
    if isinstance(predicate, prim.And):
        return _conjuncts(predicate.a) + _conjuncts(predicate.b)
    return [predicate]


def inverse(iter_map, outputs):
    """The variables of a mapping as expressions of its results."""
    found, analyzer = {}, Analyzer()
    pending = []

    def give(mark, value):
        row = next((row for row in pending if row[0].same_as(mark)), None)
        if row is None:
            pending.append([mark, value])
        else:
            row[1] = row[1] + value

    order = []

    def visit(mark):
        if any(mark.same_as(one) for one in order):
            return
        if hasattr(mark.source, "args") and hasattr(mark.source, "base"):
            for arg in mark.source.args:
                visit(arg.source)
        order.append(mark)

    for made in iter_map:
        if len(made.args) > 1:
            raise ValueError("each index must be one iterator: detect_iter_map gives such")
        for arg in made.args:
            visit(arg.source)
    for made, output in zip(iter_map, outputs):
        for arg in made.args:
            # Of `(source // lower_factor % extent) * scale + base` the part of the source.
            value = output if _is(made.base, 0) else output - made.base
            value = value if _is(arg.scale, 1) else prim.FloorDiv(value, arg.scale)
            give(arg.source, value if _is(arg.lower_factor, 1) else value * arg.lower_factor)
    for mark in reversed(order):
        value = next((row[1] for row in pending if row[0].same_as(mark)), None)
        if value is None:
            continue
        value = analyzer.simplify(value)
        source = mark.source
        if hasattr(source, "args") and hasattr(source, "base"):
            value = value if _is(source.base, 0) else value - source.base
            for arg in source.args:
                part = value if _is(arg.scale, 1) else prim.FloorDiv(value, arg.scale)
                if arg is not source.args[0] and not arg.same_as(source.args[0]):
                    part = prim.FloorMod(part, arg.extent)
                give(arg.source, part if _is(arg.lower_factor, 1) else part * arg.lower_factor)
        elif isinstance(source, Var):
            found[source] = value
        else:
            # `var - min` runs from zero.
            found[source.a] = analyzer.simplify(value + source.b)
    return found


__all__ = ["Detection", "Unmapped", "inverse", "plain"]
