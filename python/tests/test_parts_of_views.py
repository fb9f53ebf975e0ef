"""Views by indices that are known to lie outside of a buffer."""

import pytest

from relaxide import sym, tirx


@pytest.mark.parametrize(
    "part, why",
    [
        (10, "out of range"),
        (-1, "out of range"),
        (slice(8, 12), "exceeds"),
        (slice(-2, 2), "must be non-negative"),
        (slice(5, 3), "must be positive"),
        (slice(-1, None, 2), r"in \[0, 2\)"),
    ],
)
def test_parts_outside_of_a_buffer_are_refused(part, why):
    buffer = tirx.decl_buffer((10,), "float16", name="A")
    with pytest.raises(ValueError, match=why):
        buffer.sub[part]


def test_parts_that_may_lie_inside_are_views():
    n = tirx.Var("n", "int32")
    buffer = tirx.decl_buffer((10, n), "float16", name="A")
    analyzer = sym.Analyzer()
    assert [str(analyzer.simplify(dim)) for dim in buffer.sub[2:6, n - 4 : n].shape] == ["4", "4"]
    assert len(buffer.sub[9].shape) == 1


def test_bounds_of_loops_that_a_counter_does_not_hold_are_refused():
    counter = tirx.Var("i", "uint32")
    with pytest.raises(TypeError, match="not representable as uint32"):
        tirx.For(counter, -1, 128, tirx.ForKind.SERIAL, tirx.Evaluate(0))
