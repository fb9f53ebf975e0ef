"""Pooling, and operators that choose and arrange elements, in NumPy."""

import itertools
import math

import numpy as np


def _channels_second(data, layout):
    """The array as ``(batch, channel, …)``, and what brings it back."""
    if layout is None or layout.startswith("NC"):
        return data, lambda out: out
    return np.moveaxis(data, layout.index("C"), 1), lambda out: np.moveaxis(out, 1, layout.index("C"))


def poolnd_python(
    np_data, kernel, strides, dilation, padding_before, padding_after, pool_type, count_include_pad=True, ceil_mode=False, dtype="float32",
    layout=None,
):  # fmt: skip
    """The largest (``pool_type`` ``max``) or the mean (``avg``) of windows, in any number of dimensions."""
    data, back = _channels_second(np_data, layout)
    sizes = [(size, k, s, d, p, q) for size, k, s, d, p, q in zip(data.shape[2:], kernel, strides, dilation, padding_before, padding_after)]
    rounded = math.ceil if ceil_mode else math.floor
    counts = [rounded((size - (k - 1) * d - 1 + p + q) / s) + 1 for size, k, s, d, p, q in sizes]
    out = np.zeros((*data.shape[:2], *counts), dtype)
    for at in itertools.product(*map(range, counts)):
        places, padded = [], 1
        for index, (size, k, s, d, p, q) in zip(at, sizes):
            begin = index * s - p
            reach = range(begin, begin + (k - 1) * d + 1, d)
            places.append([one for one in reach if 0 <= one < size])
            padded *= sum(-p <= one < size + q for one in reach)
        window = data[(slice(None), slice(None), *np.ix_(*places))] if all(places) else np.zeros((*data.shape[:2], 0))
        window = window.reshape(*data.shape[:2], -1)
        divisor = padded if count_include_pad else window.shape[-1]
        if pool_type == "max":
            lowest = 0 if count_include_pad and window.shape[-1] < padded else None
            value = window.max(-1) if window.shape[-1] else np.zeros(data.shape[:2])
            value = value if lowest is None else np.maximum(value, lowest)
        else:
            value = window.sum(-1) / divisor if divisor else 0
        out[(slice(None), slice(None), *at)] = value
    return back(out)


def adaptive_pool(np_data, out_size, pool_type, layout):
    """The largest or the mean of windows that share the dimensions out: as many as ``out_size`` says."""
    data, back = _channels_second(np_data, layout)
    sizes = (out_size,) * (data.ndim - 2) if isinstance(out_size, int) else tuple(out_size)
    reduce = {"max": np.max, "avg": np.mean}[pool_type]
    out = np.zeros((*data.shape[:2], *sizes), data.dtype)
    for at in itertools.product(*map(range, sizes)):
        window = tuple(
            slice(index * size // count, -(-(index + 1) * size // count)) for index, size, count in zip(at, data.shape[2:], sizes)
        )
        out[(slice(None), slice(None), *at)] = reduce(data[(slice(None), slice(None), *window)], axis=tuple(range(2, data.ndim)))
    return back(out)


def gather_python(data, axis, indices):
    """Elements along a dimension, by an index for each element of the result."""
    return np.take_along_axis(data, indices, axis)


def gather_nd_python(a_np, indices_np):
    """Elements or parts by indices whose first dimension has the index of each dimension."""
    return a_np[tuple(indices_np.astype("int64"))].astype("float64")


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """One value where an index is, and another elsewhere, along a new dimension."""
    axis = indices.ndim if axis == -1 else axis
    chosen = np.expand_dims(indices, axis) == np.arange(depth).reshape([depth if at == axis else 1 for at in range(indices.ndim + 1)])
    return np.where(chosen, on_value, off_value).astype(dtype)


def sequence_mask(data, valid_length, mask_value, axis):
    """A value for what lies behind the length of each sequence; lengths are along the other of the first two dimensions."""
    places = np.arange(data.shape[axis]).reshape([-1 if at == axis else 1 for at in range(data.ndim)])
    lengths = np.asarray(valid_length).reshape([-1 if at == 1 - axis else 1 for at in range(data.ndim)])
    behind = np.broadcast_to(places >= lengths, data.shape)
    return data * (1 - behind) + mask_value * behind


def searchsorted_ref(sorted_sequence, values, right, out_dtype):
    """Where values belong in sorted sequences: one for all, or one for each row."""
    rows = values.reshape(-1, values.shape[-1])
    sequences = np.broadcast_to(sorted_sequence.reshape(-1, sorted_sequence.shape[-1]), (len(rows), sorted_sequence.shape[-1]))
    found = [np.searchsorted(*pair, side="right" if right else "left") for pair in zip(sequences, rows)]
    return np.array(found, out_dtype).reshape(values.shape)


def slice_axis_python(data, axis, begin, end=None):
    """A range of one dimension; negative ends, and an end of 0, count from behind."""
    axis, size = axis % data.ndim, data.shape[axis]
    end = size if end is None else end + size if end <= 0 else end
    return data[(slice(None),) * axis + (slice(begin + size if begin < 0 else begin, end),)]


def _slices(rank, begin, end, strides, slice_mode="end", axes=None):
    strides = strides or []
    places = range(rank) if axes is None else [axis % rank for axis in axes]
    slices = [slice(None)] * rank
    for at, axis in enumerate(places):
        first = begin[at] if at < len(begin) else None
        last = end[at] if at < len(end) else None
        if slice_mode == "size" and last is not None:
            last = None if last < 0 else first + last
        slices[axis] = slice(first, last, strides[at] if slice_mode == "end" and at < len(strides) else None)
    return tuple(slices)


def strided_slice_python(data, begin, end, strides, slice_mode="end", axes=None):
    """Ranges of dimensions, by their ends, or (``slice_mode`` ``size``) by how many elements they have, -1 for all that follow."""
    return data[_slices(data.ndim, begin, end, strides, slice_mode, axes)]


def strided_set_python(data, v, begin, end, strides):
    """A copy of the array with other values in ranges."""
    out = data.copy()
    out[_slices(data.ndim, begin, end, strides)] = v
    return out


def depth_to_space_python(data, block_size, mode="DCR"):
    """Channels as blocks of height and width; ``mode`` (``DCR``, ``CDR``) says whether blocks or channels change faster."""
    batch, channels, height, width = data.shape
    kept = channels // block_size**2
    if mode == "DCR":
        parted = data.reshape(batch, block_size, block_size, kept, height, width).transpose(0, 3, 4, 1, 5, 2)
    else:
        parted = data.reshape(batch, kept, block_size, block_size, height, width).transpose(0, 1, 4, 2, 5, 3)
    return parted.reshape(batch, kept, height * block_size, width * block_size)


def space_to_depth_python(data, block_size):
    """Blocks of height and width as channels."""
    batch, channels, height, width = data.shape
    parted = data.reshape(batch, channels, height // block_size, block_size, width // block_size, block_size)
    return parted.transpose(0, 3, 5, 1, 2, 4).reshape(batch, channels * block_size**2, height // block_size, width // block_size)


def space_to_batch_nd_python(data, block_shape, pad_before, pad_after, pad_value=0):
    """Blocks of dimensions as a longer batch, of a padded array."""
    count = len(block_shape)
    pads = [(0, 0), *zip(pad_before, pad_after)] + [(0, 0)] * (data.ndim - 1 - count)
    data = np.pad(data, pads, constant_values=pad_value)
    outer = [size // block for size, block in zip(data.shape[1 : 1 + count], block_shape)]
    parted = data.reshape(data.shape[0], *itertools.chain(*zip(outer, block_shape)), *data.shape[1 + count :])
    order = [*range(2, 2 * count + 1, 2), 0, *range(1, 2 * count + 1, 2), *range(2 * count + 1, parted.ndim)]
    return parted.transpose(order).reshape(-1, *outer, *data.shape[1 + count :])


def batch_to_space_nd_python(data, block_shape, crop_begin_list, crop_end_list):
    """A batch as blocks of dimensions, whose ends are cut."""
    count, outer = len(block_shape), data.shape[1 : 1 + len(block_shape)]
    batch = data.shape[0] // math.prod(block_shape)
    parted = data.reshape(*block_shape, batch, *data.shape[1:])
    order = [count, *itertools.chain(*((count + 1 + at, at) for at in range(count))), *range(2 * count + 1, parted.ndim)]
    whole = parted.transpose(order).reshape(batch, *(size * block for size, block in zip(outer, block_shape)), *data.shape[1 + count :])
    ends = [slice(first, size - last) for first, last, size in zip(crop_begin_list, crop_end_list, whole.shape[1:])]
    return whole[(slice(None), *ends)]


def matrix_set_diag(input_np, diagonal, k=0, align="RIGHT_LEFT"):
    """Matrices with other diagonals: number ``k``, or those of a range of numbers, as rows that ``align`` puts to the left or right."""
    out = input_np.copy()
    rows, columns = out.shape[-2:]
    first, last = (k, k) if isinstance(k, (int, np.integer)) else (k[0], k[-1])
    above, below = align.split("_")
    many = diagonal.ndim == out.ndim and not isinstance(k, (int, np.integer)) and last > first
    for number in range(first, last + 1):
        length = min(columns - max(number, 0), rows + min(number, 0))
        row = diagonal[..., last - number, :] if many else diagonal
        shift = row.shape[-1] - length if (above if number >= 0 else below) == "RIGHT" and many else 0
        at = np.arange(length)
        out[..., at - min(number, 0), at + max(number, 0)] = row[..., shift : shift + length]
    return out


__all__ = ["adaptive_pool", "batch_to_space_nd_python", "depth_to_space_python", "gather_nd_python", "gather_python", "matrix_set_diag", "one_hot"]
__all__ += ["poolnd_python", "searchsorted_ref", "sequence_mask", "slice_axis_python", "space_to_batch_nd_python", "space_to_depth_python"]
__all__ += ["strided_set_python", "strided_slice_python"]
