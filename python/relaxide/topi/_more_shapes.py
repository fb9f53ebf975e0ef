"""Operators that move, choose and write elements, as computes."""

import math

from .. import te
from ..te import Tensor
from ._operator import call, one
from ._shapes import reshape, transpose

pi = math.pi

_max, _min = max, min


def _const(value, dtype):
    from ..tirx import const

    return const(value, str(dtype))


def const_vector(vector, name="const_vector"):
    """A tensor of one dimension with the values of an array."""
    return _const_tensor(vector, name)


def _const_tensor(values, name):
    import numpy

    values = numpy.asarray(values)
    dtype = str(values.dtype)

    def element(*indices):
        result = _const(values.dtype.type(0).item(), dtype)
        for place in numpy.ndindex(*values.shape):
            same = te.all(*(index == at for index, at in zip(indices, place))) if len(place) > 1 else indices[0] == place[0]
            result = te.Select(same, _const(values[place].item(), dtype), result)
        return result

    return te.compute(values.shape, element, name=name)


def tensor_size(array, dtype="int32"):
    """The number of elements, as a tensor without dimensions."""
    size = _const(1, dtype)
    for dim in array.shape:
        size = size * (dim.astype(dtype) if hasattr(dim, "astype") else dim)
    return te.compute((), lambda: size, name="T_size")


def reinterpret(x, dtype):
    """The bits of each element as another type of the same width."""
    from ..tirx import reinterpret as bits

    if not isinstance(x, Tensor):
        return bits(dtype, x)
    return te.compute(x.shape, lambda *indices: bits(dtype, x(*indices)), name="T_reinterpret")


def fixed_point_multiply(x, multiplier, shift):
    """``x * multiplier / 2**(31 - shift)`` of 32-bit integers, rounded to the nearest."""
    from ..tirx import q_multiply_shift

    if not isinstance(x, Tensor):
        return q_multiply_shift(x, _const(multiplier, "int32"), _const(31, "int32"), _const(shift, "int32"))
    how = [_const(value, "int32") for value in (multiplier, 31, shift)]
    return te.compute(x.shape, lambda *indices: q_multiply_shift(x(*indices), *how), name="T_fixed_point_multiply")


def fixed_point_multiply_per_axis(x, y, lshift, rshift, is_lshift_required, is_rshift_required, axes):
    """The same with a multiplier ``y`` and shifts for each place along some axes."""
    from ..tirx import q_multiply_shift_per_axis

    needs = [_const(1 if flag else 0, "bool") for flag in (is_lshift_required, is_rshift_required)]

    def element(*indices):
        place = tuple(indices[axis] for axis in axes)
        how = (y(*place), lshift(*place), rshift(*place))
        return q_multiply_shift_per_axis(x(*indices), *how, _const(31, "int32"), *needs)

    return te.compute(x.shape, element, name="T_fixed_point_multiply_per_axis")


def adv_index(data, indices):
    """The elements that tensors of indices name, which are broadcast together: NumPy's ``data[i, j]``."""
    return one("index_tensor", data, tuple(indices))


def dyn_tile(a, new_shape, rdim):
    """Copies of a tensor side by side that fill a shape of ``rdim`` dimensions."""
    shape = [1] * (rdim - len(a.shape)) + list(a.shape)
    a = reshape(a, shape)
    return te.compute(list(new_shape), lambda *indices: a(*(te.indexmod(i, dim) for i, dim in zip(indices, shape))), name="T_tile")


def dynamic_strided_slice(a, begin, end, strides, output_shape):
    """Every so many elements from places that are tensors, as a result of a shape that is given."""

    def element(*indices):
        return a(*(begin(axis).astype(i.dtype) + i * strides(axis).astype(i.dtype) for axis, i in enumerate(indices)))

    return te.compute(list(output_shape), element, name="T_strided_slice_dynamic")


def strided_set(a, v, begin, end, strides=None):
    """A copy of ``a`` with the elements of ``v`` at the places of a slice, whose ends are tensors."""
    rank = len(a.shape)
    if len(begin.shape) != 1 or len(end.shape) != 1 or strides is not None and len(strides.shape) != 1:
        raise ValueError("begin, end and strides are tensors of one dimension")

    def at(tensor, axis, default):
        known = tensor is not None and axis < int(getattr(tensor.shape[0], "value", rank))
        return tensor(axis) if known else default

    def element(*indices):
        inside, places = [], []
        for axis, i in enumerate(indices):
            length = a.shape[axis]
            step = at(strides, axis, _const(1, "int64")).astype(i.dtype)
            first = at(begin, axis, _const(0, "int64")).astype(i.dtype)
            last = at(end, axis, length).astype(i.dtype)
            first = te.Select(first < 0, first + length, first)
            last = te.Select(last < 0, last + length, last)
            inside.append(within_index(first, last, step, i))
            places.append(make_idx(first, last, step, v.shape[axis], i))
        return te.if_then_else(te.all(*inside) if len(inside) > 1 else inside[0], v(*places).astype(a.dtype), a(*indices))

    return te.compute(a.shape, element, name="strided_set")


def within_index(b, e, s, i):
    """Whether an index is one of a slice from ``b`` to ``e`` by ``s``."""
    up = te.all(s > 0, i >= b, i < e, te.indexmod(i - b, te.Select(s > 0, s, s * 0 + 1)) == 0)
    down = te.all(s < 0, i <= b, i > e, te.indexmod(b - i, te.Select(s < 0, -s, s * 0 + 1)) == 0)
    return te.any(up, down)


def make_idx(b, e, s, z, i):
    """The place of an index within a slice from ``b`` to ``e`` by ``s``; ``z - 1`` at most."""
    place = te.Select(s > 0, te.indexdiv(i - b, te.Select(s > 0, s, s * 0 + 1)), te.indexdiv(b - i, te.Select(s < 0, -s, s * 0 + 1)))
    return te.Select(place < 0, place * 0, te.Select(place >= z, place * 0 + z - 1, place))


def sequence_mask(data, valid_length, mask_value=0, axis=0):
    """The data with a value behind the length of each row; ``axis`` is the one of the rows, 0 or 1, the other that of the batch."""
    if axis not in (0, 1) or len(data.shape) < 2:
        raise ValueError(f"axis is 0 or 1 of data of two dimensions or more, got {axis} of {len(data.shape)}")

    def element(*indices):
        length = valid_length(indices[1 - axis])
        return te.Select(indices[axis].astype(length.dtype) >= length, _const(mask_value, data.dtype), data(*indices))

    return te.compute(data.shape, element, name="T_sequence_mask")


def reverse_sequence(a, seq_lengths, seq_axis=1, batch_axis=0):
    """The first ``seq_lengths[b]`` elements of each row of a batch in reverse."""

    def element(*indices):
        length = seq_lengths(indices[batch_axis]).astype(indices[seq_axis].dtype)
        place = indices[seq_axis]
        places = list(indices)
        places[seq_axis] = te.Select(te.any(length <= 1, place >= length), place, length - 1 - place)
        return a(*places)

    return te.compute(a.shape, element, name="T_reverse_sequence")


def matrix_set_diag(data, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with other values on diagonals ``k``, or from ``k[0]`` to ``k[1]``, which ``diagonal`` has aligned so."""
    low, high = (k, k) if isinstance(k, int) else (k[0], k[-1])
    rows, columns = data.shape[-2:]
    several = low != high
    right_above, right_below = align.split("_")[0] == "RIGHT", align.split("_")[1] == "RIGHT"

    def element(*indices):
        *batch, i, j = indices
        offset = j - i
        place = te.min(i, j)
        if several:
            longest = diagonal.shape[-1]
            length = te.Select(offset >= 0, te.min(columns - offset, rows), te.min(rows + offset, columns))
            above = longest - length if right_above else place * 0
            below = longest - length if right_below else place * 0
            place = place + te.Select(offset >= 0, above, below)
            value = diagonal(*batch, high - offset, place)
        else:
            value = diagonal(*batch, place)
        return te.if_then_else(te.all(offset >= low, offset <= high), value, data(*indices))

    return te.compute(data.shape, element, name="matrix_set_diag")


def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """A tensor with values at places, and a default elsewhere. Of places that are named twice the last counts."""
    count = len(sparse_indices.shape)
    shape = list(output_shape)
    if count > 2:
        raise ValueError("sparse_indices has at most two dimensions")
    if count == 0:
        default = _const(default_value, _dtype(sparse_values))
        return te.compute(shape, lambda i: te.if_then_else(i == sparse_indices(), _value(sparse_values, 0), default), name="sparse_to_dense")

    def element(*indices):
        result = _const(default_value, _dtype(sparse_values)) if isinstance(default_value, (int, float)) else default_value
        for row in range(int(sparse_indices.shape[0])):
            own = [sparse_indices(row)] if count == 1 else [sparse_indices(row, axis) for axis in range(len(shape))]
            same = [i.astype(place.dtype) == place for i, place in zip(indices, own)]
            result = te.if_then_else(te.all(*same) if len(same) > 1 else same[0], _value(sparse_values, row), result)
        return result

    return te.compute(shape, element, name="sparse_to_dense")


def _dtype(values):
    return str(values.dtype)


def _value(values, row):
    return values(row) if len(values.shape) else values()


def unravel_index(indices, shape):
    """The places along each dimension of flat indices into a shape, which is a tensor: a row for each dimension."""
    rank = int(shape.shape[0])

    def element(axis, *place):
        flat = indices(*place)
        result = flat
        left = flat
        for dim in reversed(range(rank)):
            length = shape(dim).astype(flat.dtype)
            result = te.Select(axis == dim, te.indexmod(left, length), result)
            left = te.indexdiv(left, length)
        return result

    return te.compute([rank, *indices.shape], element, name="T_unravel_index")


def sliding_window(data, axis, window_shape, strides):
    """All windows of a shape over the dimensions from ``axis`` on: their places first, then what is in them."""
    axis = axis + len(data.shape) if axis < 0 else axis
    window, strides = list(window_shape), list(strides)
    counts = [te.indexdiv(dim - size, step) + 1 for dim, size, step in zip(data.shape[axis:], window, strides)]
    shape = [*data.shape[:axis], *counts, *window]

    def element(*indices):
        inner = len(window)
        places = indices[axis : axis + inner]
        return data(*indices[:axis], *(p * s + w for p, s, w in zip(places, strides, indices[axis + inner :])))

    return te.compute(shape, element, name="T_sliding_window")


def tensordot(a, b, axes):
    """Sums of products over pairs of dimensions: the last ``axes`` of ``a`` and the first of ``b``, or two lists of them."""
    if isinstance(axes, int):
        first, second = list(range(len(a.shape) - axes, len(a.shape))), list(range(axes))
    else:
        first, second = ([one] if isinstance(one, int) else list(one) for one in axes)
    kept_a = [i for i in range(len(a.shape)) if i not in first]
    kept_b = [i for i in range(len(b.shape)) if i not in second]
    reduced = [te.reduce_axis((0, a.shape[i]), name=f"k{n}") for n, i in enumerate(first)]

    def element(*indices):
        of_a, of_b = indices[: len(kept_a)], indices[len(kept_a) :]
        at_a = {**dict(zip(kept_a, of_a)), **dict(zip(first, reduced))}
        at_b = {**dict(zip(kept_b, of_b)), **dict(zip(second, reduced))}
        value = a(*(at_a[i] for i in range(len(a.shape)))) * b(*(at_b[i] for i in range(len(b.shape))))
        return te.sum(value, axis=reduced) if reduced else value

    shape = [a.shape[i] for i in kept_a] + [b.shape[i] for i in kept_b]
    return te.compute(shape, element, name="T_tensordot")


def hamming_window(window_size, periodic, alpha, beta, dtype):
    """``alpha - beta * cos(2 pi n / N)`` for so many ``n``; ``N`` is the size where it repeats, else one less."""
    steps = window_size if periodic else _max(window_size - 1, 1)
    turn = 2.0 * pi / steps
    return te.compute((window_size,), lambda n: _const(alpha, dtype) - _const(beta, dtype) * te.cos(n.astype(dtype) * _const(turn, dtype)))


def slice_scatter(input_tensor, src, start, end, step, axis):
    """A copy of a tensor with another in the place of a slice of one dimension."""
    return one("slice_scatter", input_tensor, src, _dim(start), _dim(end), _dim(step), axis=axis)


def _dim(value):
    return _const(value, "int64") if isinstance(value, int) else value


def index_put(data, indices, values, accumulate=False):
    """A copy of a tensor with values at the places that tensors of indices name; ``accumulate`` adds them."""
    return one("index_put", data, tuple(indices), values, accumulate=accumulate)


def scanop(data, binop, identity_value, op_name, axis=None, dtype=None, exclusive=None):
    """What an operator makes of the elements up to each place along an axis, ``axis=None`` of all in a row.

    ``binop`` combines two values, ``identity_value`` changes nothing, ``exclusive`` leaves out the element itself.
    """
    if axis is None:
        size = 1
        for dim in data.shape:
            size = size * dim
        data, axis = reshape(data, [size]), 0
    axis = axis + len(data.shape) if axis < 0 else axis
    dtype = str(data.dtype) if not dtype else dtype
    order = [axis, *(i for i in range(len(data.shape)) if i != axis)]
    first = transpose(data, order) if axis else data
    shape = first.shape
    state = te.placeholder(shape, dtype, name=f"{op_name}_state")

    def value(*indices):
        return first(*indices).astype(dtype)

    identity = identity_value.astype(dtype) if hasattr(identity_value, "astype") else _const(identity_value, dtype)
    if exclusive:
        init = te.compute([1, *shape[1:]], lambda _, *rest: identity, name=f"{op_name}_first")
        update = te.compute(shape, lambda t, *rest: binop(state(t - 1, *rest), value(t - 1, *rest)), name=f"{op_name}_next")
    else:
        init = te.compute([1, *shape[1:]], lambda _, *rest: value(0, *rest), name=f"{op_name}_first")
        update = te.compute(shape, lambda t, *rest: binop(state(t - 1, *rest), value(t, *rest)), name=f"{op_name}_next")
    made = te.scan(init, update, state, name=op_name)
    if not axis:
        return made
    back = [order.index(i) for i in range(len(order))]
    return transpose(made, back)


def binary_search(sequence_offset, search_range, sorted_sequence, value, right, out_dtype):
    """The place of a value among the ``search_range`` elements from an offset of a sorted sequence, as an expression: by ``right`` behind
    equal elements, else in front of them."""
    place = _const(0, out_dtype)
    flat = sorted_sequence if len(sorted_sequence.shape) == 1 else reshape(sorted_sequence, [_product(sorted_sequence.shape)])
    for index in range(int(search_range)):
        own = flat(sequence_offset + index)
        place = place + te.Select(own <= value if right else own < value, _const(1, out_dtype), _const(0, out_dtype))
    return place


def _product(dims):
    size = 1
    for dim in dims:
        size = size * dim
    return size


def sparse_reshape(sparse_indices, prev_shape, new_shape, new_sparse_indices_shape, new_shape_shape):
    """The indices of a sparse tensor in another shape, and that shape, of which one length may be -1."""
    rows, columns = sparse_indices.shape
    before, after = int(prev_shape.shape[0]), int(new_shape.shape[0])

    def length(axis):
        known, size = _const(1, str(new_shape.dtype)), _const(1, str(new_shape.dtype))
        for i in range(after):
            known = known * te.Select(new_shape(i) == -1, _const(1, str(new_shape.dtype)), new_shape(i))
        for i in range(before):
            size = size * prev_shape(i).astype(new_shape.dtype)
        return te.Select(new_shape(axis) == -1, te.indexdiv(size, known), new_shape(axis))

    shape = te.compute([after], lambda i: length(i), name="new_shape")

    def element(row, axis):
        flat = _const(0, str(sparse_indices.dtype))
        for i in range(int(columns)):
            flat = flat * prev_shape(i).astype(flat.dtype) + sparse_indices(row, i)
        result = flat
        for i in reversed(range(after)):
            result = te.Select(axis == i, te.indexmod(flat, shape(i).astype(flat.dtype)), result)
            flat = te.indexdiv(flat, shape(i).astype(flat.dtype))
        return result

    return [te.compute([rows, after], element, name="new_sparse_indices"), shape]


def unique(data, is_sorted=True, return_counts=False):
    """The values of a tensor, each once, in order; see the operator ``relax.unique``."""
    return call("unique", data, sorted=is_sorted, return_counts=return_counts)


def dft(re_data, im_data, inverse):
    """The discrete Fourier transform along the last dimension, of real and imaginary parts; ``inverse`` turns back."""
    count = re_data.shape[-1]
    turn = (2.0 if int(getattr(inverse, "value", inverse)) else -2.0) * pi
    scale = bool(int(getattr(inverse, "value", inverse)))
    dtype = str(re_data.dtype)

    def part(real):
        k = te.reduce_axis((0, count), name="k")

        def element(*indices):
            *batch, n = indices
            angle = _const(turn, dtype) * (te.indexmod(n * k, count)).astype(dtype) / _as(count, dtype)
            re, im = re_data(*batch, k), im_data(*batch, k)
            value = re * te.cos(angle) - im * te.sin(angle) if real else re * te.sin(angle) + im * te.cos(angle)
            return te.sum(value / _as(count, dtype) if scale else value, axis=k)

        return te.compute(re_data.shape, element, name="dft_re" if real else "dft_im")

    return [part(True), part(False)]


def _as(value, dtype):
    return value.astype(dtype) if hasattr(value, "astype") else _const(value, dtype)


def stft(data, n_fft, hop_length, win_length, window, normalized, onesided, output_shape):
    """The Fourier transforms of windows of signals ``(batch, n)``: ``(batch, frequency, window, 2)`` with real and imaginary parts."""
    dtype = str(data.dtype)
    k = te.reduce_axis((0, n_fft), name="k")
    before = (n_fft - win_length) // 2

    def element(batch, frequency, frame, part):
        inside = te.all(k >= before, k < before + win_length)
        weight = te.if_then_else(inside, window(k - before), _const(0.0, dtype))
        angle = _const(2.0 * pi / n_fft, dtype) * te.indexmod(frequency * k, n_fft).astype(dtype)
        value = data(batch, frame * hop_length + k) * weight
        turned = te.Select(part == 0, te.cos(angle), -te.sin(angle))
        value = value * turned
        return te.sum(value / _const(math.sqrt(n_fft), dtype) if normalized else value, axis=k)

    return te.compute(list(output_shape), element, name="stft")


__all__ = ["adv_index", "binary_search", "const_vector", "dft", "dyn_tile", "dynamic_strided_slice", "fixed_point_multiply"]
__all__ += ["fixed_point_multiply_per_axis", "hamming_window", "index_put", "make_idx", "matrix_set_diag", "pi", "reinterpret"]
__all__ += ["reverse_sequence", "scanop", "sequence_mask", "slice_scatter", "sliding_window", "sparse_reshape", "sparse_to_dense", "stft"]
__all__ += ["strided_set", "tensor_size", "tensordot", "unique", "unravel_index", "within_index"]
