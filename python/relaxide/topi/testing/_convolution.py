"""Convolutions in NumPy, in any number of dimensions: arrays are ``(batch, channel, …)`` inside, and other layouts are transposed."""

import numpy as np


def _each(value, count):
    return (value,) * count if isinstance(value, (int, np.integer)) else tuple(value)


def _pads(padding, kernel):
    """``(in front, behind)`` for each dimension: of a number, of one or two a dimension, or of TensorFlow's words."""
    count = len(kernel)
    if isinstance(padding, str):
        total = [size - 1 if padding == "SAME" else 0 for size in kernel]
        return [((one + 1) // 2, one // 2) for one in total]
    padding = _each(padding, count)
    if len(padding) == 2 * count:
        return list(zip(padding[:count], padding[count:]))
    return [(one, one) for one in padding]


def _padded(x, pads):
    return np.pad(x, [(0, 0)] * (x.ndim - len(pads)) + list(pads))


def _convolve(x, w, stride, padding, dilation=1, groups=1):
    """The convolution of ``(batch, channel, …)`` with ``(outputs, channels / groups, …)``; sums are of 64 bits where elements are floats."""
    count = x.ndim - 2
    stride, dilation = _each(stride, count), _each(dilation, count)
    reach = [(size - 1) * step + 1 for size, step in zip(w.shape[2:], dilation)]
    x = _padded(x, _pads(padding, reach))
    windows = np.lib.stride_tricks.sliding_window_view(x, reach, axis=tuple(range(2, x.ndim)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, step) for step in stride))]
    windows = windows[(..., *(slice(None, None, step) for step in dilation))]
    wide = np.float64 if np.issubdtype(x.dtype, np.floating) else np.result_type(x, w)
    each, parts = w.shape[0] // groups, []
    for group in range(groups):
        part = windows[:, group * w.shape[1] : (group + 1) * w.shape[1]].astype(wide)
        kernel = w[group * each : (group + 1) * each].astype(wide)
        axes = [1, *range(2 + count, 2 + 2 * count)]
        parts.append(np.moveaxis(np.tensordot(part, kernel, (axes, list(range(1, w.ndim)))), -1, 1))
    return np.concatenate(parts, axis=1).astype(np.result_type(x, w))


def _transposed(x, w, stride, padding, output_padding, groups):
    """The transposed convolution of ``(batch, channel, …)`` with ``(channels, outputs / groups, …)``."""
    count = x.ndim - 2
    stride, extra = _each(stride, count), _each(output_padding, count)
    spread = dilate_python(x, (1, 1, *stride))
    pads = [
        (size - 1 - front, size - 1 - behind + more) for size, (front, behind), more in zip(w.shape[2:], _pads(padding, w.shape[2:]), extra)
    ]
    flipped = w[(slice(None), slice(None), *([slice(None, None, -1)] * count))]
    each, parts = w.shape[0] // groups, []
    for group in range(groups):
        part = _padded(spread[:, group * each : (group + 1) * each], [(max(front, 0), max(behind, 0)) for front, behind in pads])
        cut = [slice(max(-front, 0), size - max(-behind, 0)) for (front, behind), size in zip(pads, part.shape[2:])]
        kernel = np.swapaxes(flipped[group * each : (group + 1) * each], 0, 1)
        parts.append(_convolve(part[(slice(None), slice(None), *cut)], kernel, 1, 0))
    return np.concatenate(parts, axis=1)


def dilate_python(input_np, strides, dilation_value=0.0, out_dtype=None):
    """The array with elements apart: ``strides`` for each dimension, and a value in between."""
    if len(strides) != input_np.ndim:
        raise ValueError(f"the array has {input_np.ndim} dimensions, but {len(strides)} strides are given")
    shape = [(size - 1) * step + 1 for size, step in zip(input_np.shape, strides)]
    spread = np.full(shape, dilation_value, out_dtype or input_np.dtype)
    spread[tuple(slice(None, None, step) for step in strides)] = input_np
    return spread


def conv1d_ncw_python(a_np, w_np, stride, padding, dilation):
    """A convolution in one dimension; weights are ``(outputs, channels, width)``."""
    return _convolve(a_np, w_np, stride, padding, dilation)


def group_conv1d_ncw_python(a_np, w_np, stride, padding, dilation, groups):
    """As :func:`conv1d_ncw_python`, of groups of channels."""
    return _convolve(a_np, w_np, stride, padding, dilation, groups)


def conv2d_nchw_python(a_np, w_np, stride, padding, groups=1):
    """A convolution in two dimensions; weights are ``(outputs, channels / groups, height, width)``."""
    return _convolve(a_np, w_np, stride, padding, 1, groups)


def conv2d_nhwc_python(a_np, w_np, stride, padding, groups=1):
    """As :func:`conv2d_nchw_python` with channels last; weights are ``(height, width, channels / groups, outputs)``."""
    out = _convolve(np.moveaxis(a_np, -1, 1), np.transpose(w_np, (3, 2, 0, 1)), stride, padding, 1, groups)
    return np.moveaxis(out, 1, -1)


def conv2d_hwcn_python(a_np, w_np, stride, padding):
    """As :func:`conv2d_nchw_python` of ``(height, width, channel, batch)``; weights are ``(height, width, channels, outputs)``."""
    out = _convolve(np.transpose(a_np, (3, 2, 0, 1)), np.transpose(w_np, (3, 2, 0, 1)), stride, padding)
    return np.transpose(out, (2, 3, 1, 0))


def conv3d_ncdhw_python(a_np, w_np, stride, padding, groups=1):
    """A convolution in three dimensions; weights are ``(outputs, channels / groups, depth, height, width)``."""
    return _convolve(a_np, w_np, stride, padding, 1, groups)


def conv3d_ndhwc_python(a_np, w_np, stride, padding, groups=1):
    """As :func:`conv3d_ncdhw_python` with channels last; weights are ``(depth, height, width, channels / groups, outputs)``."""
    out = _convolve(np.moveaxis(a_np, -1, 1), np.transpose(w_np, (4, 3, 0, 1, 2)), stride, padding, 1, groups)
    return np.moveaxis(out, 1, -1)


def conv1d_transpose_ncw_python(a_np, w_np, stride, padding, output_padding):
    """A transposed convolution in one dimension; weights are ``(channels, outputs, width)``."""
    return _transposed(a_np, w_np, stride, padding, output_padding, 1)


def group_conv1d_transpose_ncw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """As :func:`conv1d_transpose_ncw_python`, of groups of channels."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nchw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """A transposed convolution in two dimensions; weights are ``(channels, outputs / groups, height, width)``."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def conv2d_transpose_nhwc_python(a_nhwc, weight, weight_format, stride, padding, output_padding=(0, 0)):
    """As :func:`conv2d_transpose_nchw_python` with channels last; ``weight_format`` names the weights' dimensions, such as ``"HWIO"``."""
    if sorted(weight_format) != sorted("HWIO"):
        raise ValueError(f"weight_format is made of H, W, I and O, and {weight_format!r} is not")
    kernel = np.transpose(weight, [weight_format.index(dim) for dim in "IOHW"])
    return np.moveaxis(_transposed(np.moveaxis(a_nhwc, -1, 1), kernel, stride, padding, output_padding, 1), 1, -1)


def conv3d_transpose_ncdhw_python(a_np, w_np, stride, padding, output_padding, groups=1):
    """A transposed convolution in three dimensions; weights are ``(channels, outputs / groups, depth, height, width)``."""
    return _transposed(a_np, w_np, stride, padding, output_padding, groups)


def depthwise_conv2d_python_nchw(input_np, filter_np, stride, padding):
    """A convolution of each channel by itself; weights are ``(channels, outputs of each, height, width)``."""
    channels, each, *size = filter_np.shape
    return _convolve(input_np, filter_np.reshape(channels * each, 1, *size), stride, padding, 1, channels)


def depthwise_conv2d_python_nhwc(input_np, filter_np, stride, padding):
    """As :func:`depthwise_conv2d_python_nchw` with channels last; weights are ``(height, width, channels, outputs of each)``."""
    out = depthwise_conv2d_python_nchw(np.moveaxis(input_np, -1, 1), np.transpose(filter_np, (2, 3, 0, 1)), stride, padding)
    return np.moveaxis(out, 1, -1)


def depthwise_conv2d_python_nchwc(input_np, filter_np, stride, padding):
    """As :func:`depthwise_conv2d_python_nchw` of channels in blocks: ``(batch, blocks, height, width, block)``, and weights
    ``(blocks of outputs, 1, height, width, 1, block)``."""
    batch, blocks, height, width, block = input_np.shape
    plain = np.moveaxis(input_np, -1, 2).reshape(batch, blocks * block, height, width)
    out_blocks, _, k_height, k_width, _, out_block = filter_np.shape
    each = out_blocks * out_block // (blocks * block)
    weights = np.transpose(filter_np, (0, 5, 1, 2, 3, 4)).reshape(blocks * block, each, k_height, k_width)
    out = depthwise_conv2d_python_nchw(plain, weights, stride, padding)
    return np.moveaxis(out.reshape(batch, out_blocks, out_block, *out.shape[2:]), 2, -1)


__all__ = sorted(name for name in dict(globals()) if name.endswith(("_python", "_python_nchw", "_python_nhwc", "_python_nchwc")))
