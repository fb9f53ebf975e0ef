"""Operators of neural networks on tensors of the compute language."""

from .. import te as _te
from ._operator import call, elementwise, one
from ._padding import get_pad_tuple, get_pad_tuple1d, get_pad_tuple3d, get_pad_tuple_generic  # noqa: F401
from ._shapes import _turned, concatenate, reshape, strided_slice, transpose

add = elementwise()["add"]


def relu(x):
    """Zero where ``x`` is below it."""
    return one("nn.relu", x)


def leaky_relu(x, alpha):
    """``alpha * x`` where ``x`` is below zero."""
    return one("nn.leakyrelu", x, alpha=alpha)


def prelu(x, slope, axis=1):
    """``x`` times the slope of its channel where it is below zero."""
    return one("nn.prelu", x, slope, axis=axis)


def softmax(x, axis=-1):
    """``exp(x)`` over its sum along ``axis``."""
    return one("nn.softmax", x, axis=axis)


fast_softmax = softmax


def log_softmax(x, axis=-1):
    """The logarithm of :func:`softmax`."""
    return one("nn.log_softmax", x, axis=axis)


def softplus(x, beta=1.0, threshold=20.0):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` above the threshold."""
    return one("nn.softplus", x, beta=beta, threshold=threshold)


def flatten(data):
    """All dimensions but the first made one."""
    return one("nn.batch_flatten", data)


def pad(data, pad_before, pad_after=None, pad_value=0.0, name="PadInput", attrs=None):
    """Elements added before and behind each dimension."""
    return _padded(data, pad_before, pad_after, pad_mode="constant", pad_value=float(pad_value))


def _padded(data, before, after, **how):
    after = before if after is None else after
    return one("nn.pad", data, pad_width=[width for pair in zip(before, after) for width in pair], **how)


def mirror_pad(data, pad_before, pad_after=None, mode="SYMMETRIC", name="MirrorPadInput"):
    """Padding by the elements in reverse; ``"REFLECT"`` leaves out the outermost."""
    if mode != "REFLECT":
        raise NotImplementedError(f"topi.nn.mirror_pad has the mode REFLECT, got {mode}")
    return _padded(data, pad_before, pad_after, pad_mode="reflect")


def reflect_pad(data, pad_before, pad_after=None, name="ReflectPadInput"):
    """Padding by the elements in reverse, without the outermost."""
    return _padded(data, pad_before, pad_after, pad_mode="reflect")


def replicate_pad(data, pad_before, pad_after=None, name="ReplicatePadInput"):
    """Padding by the outermost elements."""
    return _padded(data, pad_before, pad_after, pad_mode="replicate")


def circular_pad(data, pad_before, pad_after=None, name="CircularPadInput"):
    """Padding by the elements of the other end."""
    return _padded(data, pad_before, pad_after, pad_mode="circular")


def _product(tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b):
    y = one("matmul", _turned(tensor_a, transpose_a), _turned(tensor_b, transpose_b), out_dtype=out_dtype or "void")
    return y if bias is None else add(y, bias)


def matmul(tensor_a, tensor_b, bias=None, out_dtype=None, transpose_a=False, transpose_b=False, **layouts):
    """The product of two matrices, and a vector added to each row."""
    return _product(tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b)


def dense(data, weight, bias=None, out_dtype=None, **layouts):
    """``data @ weight.T``, and a vector added to each row."""
    return _product(data, weight, bias, out_dtype, False, True)


def batch_matmul(tensor_a, tensor_b, oshape=None, out_dtype=None, transpose_a=False, transpose_b=True, **layouts):
    """Products of matrices, of which the second is transposed unless said otherwise."""
    return _product(tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b)


def _window(padding, kernel):
    """Padding on all sides; ``"SAME"`` and ``"VALID"`` are what the kernel's lengths make of them."""
    if not isinstance(padding, str):
        return padding
    if padding == "VALID":
        return [0] * 2 * len(kernel)
    if padding != "SAME":
        raise ValueError(f"padding is SAME, VALID or numbers, got {padding}")
    around = [int(length) - 1 for length in kernel]
    before = [(width + 1) // 2 for width in around]
    return before + [width - first for width, first in zip(around, before)]


_KERNEL_LAYOUTS = {"NCW": "OIW", "NWC": "WIO", "NCHW": "OIHW", "NHWC": "HWIO", "NCDHW": "OIDHW", "NDHWC": "DHWIO"}


def conv(
    inp, filt, stride, padding, dilation, groups, data_layout, kernel_layout="", out_dtype=None, **layouts
):
    """A convolution over one, two or three dimensions, in the layouts that are given.

    Parameters
    ----------
    inp, filt : Tensor
        The images and the weights.
    stride, dilation : int or sequence of int
        Steps of the window and between its elements.
    padding : int, sequence of int or str
        Elements added around; ``"SAME"`` or ``"VALID"``.
    groups : int
        The groups of channels.
    data_layout, kernel_layout : str
        The order of the dimensions, as ``"NCHW"`` and ``"OIHW"``.
    out_dtype : str, optional
        The element type of the result.
    """
    kernel_layout = kernel_layout or _KERNEL_LAYOUTS.get(data_layout, "")
    lengths = [filt.shape[at] for at, axis in enumerate(kernel_layout) if axis in "DHW"]
    how = {"strides": stride, "padding": _window(padding, lengths), "dilation": dilation, "groups": groups}
    how |= {"data_layout": data_layout, "kernel_layout": kernel_layout, "out_dtype": out_dtype or "void"}
    return one(f"nn.conv{len(data_layout) - 2}d", inp, filt, **how)


def conv1d(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, data_layout="NCW", kernel_layout="", out_dtype=None):
    """See :func:`conv`."""
    return conv(data, kernel, strides, padding, dilation, groups, data_layout, kernel_layout, out_dtype)


def conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """See :func:`conv`."""
    return conv(data, kernel, strides, padding, dilation, 1, "NCW", "", out_dtype)


def conv1d_nwc(data, kernel, strides=1, padding="VALID", dilation=1, out_dtype=None):
    """See :func:`conv`."""
    return conv(data, kernel, strides, padding, dilation, 1, "NWC", "", out_dtype)


def conv2d(input, filter, strides, padding, dilation, data_layout="NCHW", kernel_layout="", out_dtype=None):
    """See :func:`conv`."""
    return conv(input, filter, strides, padding, dilation, 1, data_layout, kernel_layout, out_dtype)


def conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NCHW", "", out_dtype)


def conv2d_nhwc(Input, Filter, stride, padding, dilation, out_dtype="float32", **layouts):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, 1, "NHWC", "", out_dtype)


def group_conv2d_nchw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCHW", "", out_dtype)


def group_conv2d_nhwc(Input, Filter, stride, padding, dilation, groups, out_dtype=None):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NHWC", "", out_dtype)


def depthwise_conv2d_nchw(Input, Filter, stride, padding, dilation, out_dtype=None):
    """A convolution of each channel by weights ``[channels, multiplier, height, width]`` of its own."""
    channels, multiplier, height, width = Filter.shape
    weight = reshape(Filter, [channels * multiplier, 1, height, width])
    return conv(Input, weight, stride, padding, dilation, int(channels), "NCHW", "", out_dtype)


def conv3d_ncdhw(Input, Filter, stride, padding, dilation, groups, out_dtype=None):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NCDHW", "", out_dtype)


def conv3d_ndhwc(Input, Filter, stride, padding, dilation, groups, out_dtype="float32", **layouts):
    """See :func:`conv`."""
    return conv(Input, Filter, stride, padding, dilation, groups, "NDHWC", "", out_dtype)


def conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding):
    """The transpose of :func:`conv1d_ncw`, by weights ``[in, out, width]``."""
    return group_conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding, 1)


def group_conv1d_transpose_ncw(data, kernel, stride, padding, out_dtype, output_padding, groups):
    """The transpose of a convolution in groups, by weights ``[in, out / groups, width]``."""
    return _transposed("nn.conv1d_transpose", data, kernel, stride, padding, out_dtype, output_padding, groups)


def conv2d_transpose_nchw(Input, Filter, strides, padding, out_dtype, output_padding):
    """The transpose of :func:`conv2d_nchw`, by weights ``[in, out, height, width]``."""
    return group_conv2d_transpose_nchw(Input, Filter, strides, padding, out_dtype, output_padding, 1)


def group_conv2d_transpose_nchw(data, kernel, stride, padding, out_dtype, output_padding, groups):
    """The transpose of a convolution in groups, by weights ``[in, out / groups, height, width]``."""
    return _transposed("nn.conv2d_transpose", data, kernel, stride, padding, out_dtype, output_padding, groups)


def _transposed(operator, data, kernel, stride, padding, out_dtype, output_padding, groups):
    padding = _window(padding, kernel.shape[2:])
    how = {"strides": stride, "padding": padding, "output_padding": output_padding, "groups": groups}
    return one(operator, data, kernel, **how, out_dtype=out_dtype or "void")


def _pool(rank, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad):
    how = {"pool_size": kernel, "strides": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil_mode}
    if pool_type == "avg":
        how["count_include_pad"] = count_include_pad
    elif pool_type != "max":
        raise ValueError(f"pool_type is avg or max, got {pool_type}")
    return one(f"nn.{pool_type}_pool{rank}d", data, **how, layout=layout)


def pool1d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCW", count_include_pad=True):
    """The largest element or the mean (``pool_type``) of windows."""
    return _pool(1, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool2d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCHW", count_include_pad=True):
    """The largest element or the mean (``pool_type``) of windows."""
    return _pool(2, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def pool3d(data, kernel, stride, dilation, padding, pool_type, ceil_mode=False, layout="NCDHW", count_include_pad=True):
    """The largest element or the mean (``pool_type``) of windows."""
    return _pool(3, data, kernel, stride, dilation, padding, pool_type, ceil_mode, layout, count_include_pad)


def global_pool(data, pool_type, layout="NCHW"):
    """The largest element or the mean of each image."""
    axes = [at for at, axis in enumerate(layout) if axis in "DHW"]
    return one({"avg": "mean", "max": "max"}[pool_type], data, axis=axes, keepdims=True)


def adaptive_pool(data, output_size, pool_type, layout="NCHW"):
    """The mean of windows that divide each image into ``output_size``."""
    return _adaptive(2, data, output_size, pool_type, layout)


def adaptive_pool1d(data, output_size, pool_type, layout="NCW"):
    """The mean of windows that divide each row into ``output_size``."""
    return _adaptive(1, data, output_size, pool_type, layout)


def adaptive_pool3d(data, output_size, pool_type, layout="NCDHW"):
    """The mean of windows that divide each volume into ``output_size``."""
    return _adaptive(3, data, output_size, pool_type, layout)


def _adaptive(rank, data, output_size, pool_type, layout):
    if pool_type != "avg":
        raise NotImplementedError(f"adaptive pooling takes the mean (avg), got {pool_type}")
    return one(f"nn.adaptive_avg_pool{rank}d", data, output_size=output_size, layout=layout)


def layer_norm(data, gamma, beta, axis, epsilon=1e-5):
    """Mean zero and variance one along ``axis``, scaled and shifted."""
    return one("nn.layer_norm", data, gamma, beta, axes=axis, epsilon=epsilon)


def rms_norm(data, weight, axis, epsilon=1e-5):
    """``data`` over the root of the mean of its squares along ``axis``, scaled."""
    return one("nn.rms_norm", data, weight, axes=axis, epsilon=epsilon)


def group_norm(data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5):
    """Groups of channels with mean zero and variance one, scaled and shifted."""
    how = {"num_groups": num_groups, "channel_axis": channel_axis, "axes": axes, "epsilon": epsilon}
    return one("nn.group_norm", data, gamma, beta, **how)


def instance_norm(data, gamma, beta, channel_axis, axis, epsilon=1e-5):
    """Each channel of each image with mean zero and variance one, scaled and shifted."""
    return one("nn.instance_norm", data, gamma, beta, channel_axis=channel_axis, axes=axis, epsilon=epsilon)


def batch_norm(
    data, gamma, beta, moving_mean, moving_var, axis=None, epsilon=None, center=None, scale=None, training=None, momentum=None
):
    """Channels with mean zero and variance one; returns the result, the mean and the variance."""
    how = {"axis": 1 if axis is None else axis, "epsilon": 1e-5 if epsilon is None else epsilon}
    how |= {"center": center is not False, "scale": scale is not False, "training": bool(training)}
    return call("nn.batch_norm", data, gamma, beta, moving_mean, moving_var, **how, momentum=0.1 if momentum is None else momentum)


def space_to_depth(data, block_size, layout="NCHW"):
    """Blocks of places made channels."""
    _only_nchw("space_to_depth", layout)
    n, c, h, w = data.shape
    blocks = reshape(data, [n, c, h // block_size, block_size, w // block_size, block_size])
    return reshape(transpose(blocks, [0, 3, 5, 1, 2, 4]), [n, c * block_size * block_size, h // block_size, w // block_size])


def depth_to_space(data, block_size, layout="NCHW", mode="DCR"):
    """Channels made blocks of places."""
    _only_nchw("depth_to_space", layout)
    n, c, h, w = data.shape
    kept = c // (block_size * block_size)
    order, axes = ([block_size, block_size, kept], [0, 3, 4, 1, 5, 2]) if mode == "DCR" else ([kept, block_size, block_size], [0, 1, 4, 2, 5, 3])
    return reshape(transpose(reshape(data, [n, *order, h, w]), axes), [n, kept, h * block_size, w * block_size])


def _only_nchw(name, layout):
    if layout != "NCHW":
        raise NotImplementedError(f"topi.nn.{name} takes the layout NCHW, got {layout}")


def dilate(data, strides, dilation_value=0.0, name="DilatedInput"):
    """Elements with a value between them, so that neighbours are ``strides`` apart."""
    value = _te.const(dilation_value, str(data.dtype))
    shape = [(dim - 1) * stride + 1 for dim, stride in zip(data.shape, strides)]

    def element(*indices):
        hits = [_te.floormod(i, stride) == 0 for i, stride in zip(indices, strides) if stride != 1]
        source = data(*(_te.floordiv(i, stride) for i, stride in zip(indices, strides)))
        return _te.if_then_else(_te.all(*hits), source, value) if hits else source

    return _te.compute(shape, element, name=name)


def upsampling(data, scale_h, scale_w, layout="NCHW", method="nearest_neighbor", align_corners=False, output_shape=None):
    """Images that are ``scale_h`` and ``scale_w`` times as large."""
    from .image import resize2d

    axes = [layout.index("H"), layout.index("W")]
    size = [int(round(int(data.shape[axis]) * scale)) for axis, scale in zip(axes, (scale_h, scale_w))]
    coordinates = "align_corners" if align_corners else "asymmetric"
    method = {"bilinear": "linear", "bicubic": "cubic"}.get(method, method)
    return resize2d(data, [0.0] * 4, output_shape or size, layout, method, coordinates, "floor" if "nearest" in method else "")


from ._bitserial import *  # noqa: E402,F403 they build on what is above
from ._more_nn import *  # noqa: E402,F403
from ._more_nn import __all__ as _more  # noqa: E402
from ._winograd import *  # noqa: E402,F403

__all__ = [
    name
    for name, value in list(globals().items())
    if callable(value) and str(getattr(value, "__module__", "")).startswith(__package__) and name[0] != "_"
]
__all__ = [name for name in __all__ if name not in ("call", "elementwise", "one")]
__all__ = sorted({*__all__, *_more})
