"""Integer sets, iterators, linear forms and bounds."""

import itertools
import math
import random

import pytest

import relaxide as tvm
from relaxide import sym
from relaxide.ir import Range
from relaxide.sym import IntervalSet
from relaxide.tirx import Var, const
from relaxide.tirx import floordiv as div
from relaxide.tirx import floormod as mod

x, y, z, n = (Var(name, "int32") for name in "xyzn")


def _at(expr, values):
    """The value of a scalar for numbers."""
    analyzer = sym.Analyzer()
    for var, value in values.items():
        analyzer.bind(var, const(value, "int32"))
    return analyzer.simplify(const(expr, "int32") if isinstance(expr, int) else expr).value


def _points(domain):
    names = list(domain)
    for values in itertools.product(*(range(size) for size in domain.values())):
        yield dict(zip(names, values))


def _detect(indices, domain, **options):
    return sym.detect_iter_map(indices, {var: Range(0, size) for var, size in domain.items()}, **options)


def test_a_map_that_is_found_is_the_indices_and_is_onto():
    rng = random.Random(5)
    domain = {x: 4, y: 3, z: 2}
    found = 0
    for _ in range(10):
        flat = rng.choice([x * 6 + y * 2 + z, y * 8 + x * 2 + z, z * 12 + x * 3 + y])
        a, b = rng.choice([(2, 12), (4, 6), (6, 4), (3, 8)])
        indices = rng.choice([[div(flat, a), mod(flat, a)], [div(flat, b) * 2 + 1, mod(flat, b)], [flat + 5], [mod(div(flat, 2), a), mod(flat, 2)]])
        result = _detect(indices, domain)
        assert result.indices or result.errors
        if not result.indices:
            continue
        found += 1
        plain = [sym.normalize_iter_map_to_expr(index) for index in result.indices]
        seen = set()
        for values in _points(domain):
            here = tuple(_at(index, values) for index in indices)
            assert here == tuple(_at(index, values) for index in plain)
            seen.add(here)
        count = 1
        for index in result.indices:
            count *= index.args[0].extent.value if index.args else 1
        assert len(seen) == count, "each step of the iterators is met"
    assert found > 2


def test_iterators_that_begin_within_a_step_are_padded():
    rng = random.Random(11)
    found = 0
    for _ in range(40):
        size, offset, a, b = rng.randint(3, 40), rng.randint(1, 30), rng.choice([2, 3, 4]), rng.choice([2, 3, 5])
        moved, other = x + offset, x + offset + rng.choice([0, 0, 1])
        low, high = mod(moved, a), mod(div(other, a), b)
        indices = rng.choice([[div(moved, a * b)], [high, low], [high], [div(moved, a), low], [div(other, a), mod(x, 2)], [low, mod(x, b)]])
        result = _detect(indices, {x: size})
        assert result.indices or result.errors
        if not result.indices:
            continue
        found += 1
        seen = set()
        for values in _points({x: size}):
            point = tuple(_at(index, values) for index in indices)
            assert point == tuple(_at(sym.normalize_iter_map_to_expr(index), values) for index in result.indices)
            seen.add(point)
        extents = [arg.extent.value for index in result.indices for arg in index.args]
        assert len(seen) == math.prod(extents), (size, [str(index) for index in indices])
        assert not _detect(indices, {x: size}, check_level="bijective").indices or len(seen) == size
    assert found > 10


def test_parts_of_an_iterator_begin_at_one_step():
    assert not _detect([mod(x, 4), mod(div(x + 10, 2), 16)], {x: 240}).indices
    assert not _detect([div(x + 16, 32), mod(x + 16, 32)], {x: 176}).indices
    (index,) = _detect([div(x + 80, 32)], {x: 176}).indices
    assert (index.base.value, index.args[0].extent.value) == (2, 6)


def test_what_overlaps_or_leaves_gaps_is_no_iterator():
    for indices in ([x * 3 + y, y], [x * 5 + y], [x, x], [x * y]):
        result = _detect(indices, {x: 4, y: 3}, check_level="bijective")
        assert not result.indices and result.errors
    with pytest.raises(ValueError, match="Unknown check level"):
        _detect([x], {x: 4}, check_level="sometimes")


def test_conditions_narrow_an_iterator():
    (index,) = _detect([x * 10 + y], {x: 13, y: 10}, predicate=tvm.tirx.all(x * 10 + y >= 6, x * 10 + y < 128)).indices
    assert index.args[0].extent.value == 122 and index.base.value == 6


def test_the_inverse_gives_the_variables_back():
    domain = {x: 8, y: 6}
    flat = x * 6 + y
    indices = [div(flat, 12), mod(div(flat, 4), 3), mod(flat, 4)]
    result = _detect(indices, domain, check_level="bijective")
    outputs = [Var(f"o{i}", "int32") for i in range(3)]
    back = sym.inverse_affine_iter_map(result.indices, outputs)
    for values in _points(domain):
        given = {output: _at(index, values) for output, index in zip(outputs, indices)}
        assert {var: _at(expr, given) for var, expr in back.items()} == values


def test_a_space_is_divided_in_two():
    ranges = {x: Range(0, 3), y: Range(0, 4), z: Range(0, 5)}
    (outer, inner), conditions = sym.subspace_divide([z * 12 + y * 3 + x], ranges, [x])
    assert inner.extent.value == 3 and len(conditions) == 2
    whole = sym.normalize_iter_map_to_expr(outer) * inner.extent + sym.normalize_iter_map_to_expr(inner)
    assert sym.Analyzer().can_prove_equal(whole, z * 12 + y * 3 + x)
    assert sym.subspace_divide([div(x * 4 + y, 2)], ranges, [y]) == []


def test_a_set_holds_all_that_an_expression_can_be():
    domain = {x: IntervalSet(-3, 4), y: IntervalSet(1, 3)}
    for expr in (x + y, x - y, x * -2, div(x, 2), mod(x, 3), tvm.tirx.max(x, y), tvm.tirx.min(x * 2, y), div(x * 4 + y, 4), tvm.tirx.Select(x > 0, x, y)):
        found = sym.Analyzer().int_set(expr, domain)
        for a, b in itertools.product(range(-3, 5), range(1, 4)):
            value = _at(expr, {x: a, y: b})
            assert found.min_value.value <= value <= found.max_value.value


def test_bounds_of_numbers_hold_and_are_those_of_types():
    analyzer = sym.Analyzer()
    analyzer.update(x, sym.ConstIntBound(0, 9))
    analyzer.update(y, sym.ConstIntBound(-4, 3))
    for expr in (x + y, x * y, div(y, 3), mod(y, 4), tvm.tirx.truncdiv(y, 2), tvm.tirx.truncmod(y, 3)):
        bound = analyzer.const_int_bound(expr)
        for a, b in itertools.product(range(10), range(-4, 4)):
            assert bound.min_value <= _at(expr, {x: a, y: b}) <= bound.max_value
    byte = sym.Analyzer().const_int_bound(Var("b", "uint8"))
    assert (byte.min_value, byte.max_value) == (0, 255)


def test_conditions_are_solved_for_a_variable():
    low = sym.deduce_bound(x, x * 4 + y < 17, {y: IntervalSet(1, 1)}, {})
    assert sym.Analyzer().can_prove_equal(low.max_value, div(16 - y, 4))
    assert sym.detect_linear_equation(x * 4 + y * 6 + 7, [x])[0].value == 4
    assert sym.detect_linear_equation(x * x, [x]) == []
    assert [end.value for end in sym.detect_clip_bound(tvm.tirx.all(x > 1, x * 1 <= 7), [x])] == [2, 7]
    assert sym.detect_clip_bound(x + y > 1, [x, y]) == []


def test_regions_below_and_above_what_is_touched():
    region = [Range.from_min_extent(x * 4, const(2, "int32"))]
    assert sym.estimate_region_lower_bound(region, {x: Range(0, 16)}, True) is None, "there are gaps"
    (above,) = sym.estimate_region_upper_bound(region, {x: Range(0, 16)}, True)
    assert (above.min_value.value, above.max_value.value) == (0, 61)
