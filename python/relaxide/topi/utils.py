"""Helpers of those who write computes."""

from ..ir.prim import IntImm


class InvalidShapeError(ValueError):
    """A shape that an operator cannot have."""


def get_const_int(expr):
    """The value of an expression that is a number."""
    value = expr if isinstance(expr, int) else getattr(_simplified(expr), "value", None)
    if not isinstance(value, int):
        raise ValueError(f"expected a number that is known, got {expr}")
    return value


def get_const_tuple(in_tuple):
    """Dimensions as ints where they are known; others as they are."""
    return tuple(dim.value if isinstance(dim, IntImm) else dim for dim in in_tuple)


def get_const_float(expr):
    """The value of an expression that is a number."""
    return expr if isinstance(expr, float) else float(expr.value)


def equal_const_int(expr, value):
    """Whether an expression is this number."""
    return expr == value if isinstance(expr, int) else isinstance(expr, IntImm) and expr.value == value


def prod(x):
    """The product of numbers or expressions; one where there are none."""
    result = 1
    for factor in x:
        result = result * factor
    return result


def simplify(expr):
    """An expression of dimensions in simple form."""
    return expr if isinstance(expr, int) else _simplified(expr)


def ceil_div(a, b):
    """The quotient, rounded up."""
    return (a + b - 1) // b


def swap(arr, axis):
    """A copy of a sequence whose last item has changed places with the one at ``axis``."""
    out = list(arr)
    out[axis], out[-1] = out[-1], out[axis]
    return out


def get_float_tuple(in_tuple):
    """Expressions that are numbers as Python's floats."""
    return tuple(map(get_const_float, in_tuple))


def get_max_power2_factor(n, max_value=None):
    """The largest power of two that divides ``n``, at most ``max_value``."""
    factor = 1
    while n % (2 * factor) == 0 and (max_value is None or 2 * factor <= max_value):
        factor *= 2
    return factor


def is_empty_shape(shape):
    """Whether a tensor of a shape has no element."""
    return any(equal_const_int(dim, 0) for dim in shape)


def is_dynamic_shape(shape):
    """Whether a dimension is not known."""
    return any(not isinstance(dim, (int, IntImm)) for dim in shape)


def ravel_index(indices, shape):
    """The place of an element in memory that holds a tensor of a shape row by row."""
    place = 0
    for index, dim in zip(indices, shape):
        place = place * dim + index
    return place


def unravel_index(idx, shape):
    """The indices of the element at a place of memory that holds a tensor of a shape row by row."""
    indices = []
    for dim in reversed(list(shape)):
        indices.append(idx % dim)
        idx = idx // dim
    return indices[::-1]


def within_index(b, e, s, i):
    """Whether an index is one of the slice from ``b`` to below ``e`` by steps of ``s``, which may be negative."""
    from .. import tirx

    up = tirx.all(i >= b, i < e, tirx.floormod(i - b, s).equal(0))
    down = tirx.all(i <= b, i > e, tirx.floormod(b - i, -s).equal(0))
    if isinstance(s, int):
        return up if s > 0 else down
    return tirx.Select(s > 0, up, down)


def _simplified(expr):
    from ..sym import Analyzer

    return Analyzer().simplify(expr)


__all__ = ["InvalidShapeError", "ceil_div", "equal_const_int", "get_const_float", "get_const_int", "get_const_tuple", "get_float_tuple"]
__all__ += ["get_max_power2_factor", "is_dynamic_shape", "is_empty_shape", "prod", "ravel_index", "simplify", "swap", "unravel_index"]
__all__ += ["within_index"]


def const_matrix(matrix, name="const_matrix", attrs=None):
    """A tensor of two dimensions with the values of an array."""
    from ._more_shapes import _const_tensor

    return _const_tensor(matrix, name)


def const_vector(vector, name="const_vector"):
    """A tensor of one dimension with the values of an array."""
    from ._more_shapes import const_vector as make

    return make(vector, name)


def make_idx(b, e, s, z, i):
    """The place of an index within a slice; see :func:`relaxide.topi.make_idx`."""
    from ._more_shapes import make_idx as make

    return make(b, e, s, z, i)


def _packed(layout_info, letter):
    """The size of the blocks of channels of a layout such as ``NCHW16c``; ``None`` where there are none."""
    import re

    match = re.fullmatch(rf"NC{letter}(\d+)c", layout_info)
    return None if match is None else int(match[1])


def nchw_pack_layout(layout_info):
    """Whether a layout has blocks of batches and of channels: ``NCHW4n8c``."""
    import re

    return re.fullmatch(r"NCHW\d+n\d+c", layout_info) is not None


def nchw_xc_layout(layout_info):
    """Whether a layout has blocks of channels: ``NCHW16c``."""
    return _packed(layout_info, "HW") is not None


def ncw_pack_layout(layout_info):
    """Whether a layout of rows has blocks of batches and of channels: ``NCW4n8c``."""
    import re

    return re.fullmatch(r"NCW\d+n\d+c", layout_info) is not None


def ncw_xc_layout(layout_info):
    """Whether a layout of rows has blocks of channels: ``NCW16c``."""
    return _packed(layout_info, "W") is not None


def get_shape(src_shape, src_layout, dst_layout):
    """A shape in another layout of the same letters."""
    if src_layout == dst_layout:
        return get_const_tuple(src_shape)
    if sorted(src_layout) != sorted(dst_layout):
        raise ValueError(f"the layouts {src_layout} and {dst_layout} are not of the same dimensions")
    lengths = dict(zip(src_layout, src_shape))
    return get_const_tuple(lengths[letter] for letter in dst_layout)


def is_target(names):
    """Whether the target whose ``with`` is open has one of some names among its keys."""
    from ..target import Target

    names = [names] if isinstance(names, str) else names
    target = Target.current(allow_none=True)
    return target is not None and any(name in target.keys for name in names)

