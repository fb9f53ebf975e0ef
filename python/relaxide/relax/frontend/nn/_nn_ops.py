"""Operators of neural networks on tensors of modules: activations, convolutions, norms, attention, images."""

import math

import numpy as np

from ... import op as _op
from ...expr import const
from ._values import wrap_nested


def relu(x, name="relu"):
    """Zero where ``x`` is below it."""
    return wrap_nested(_op.nn.relu(x._expr), name)


def relu6(x, name="relu6"):
    """``x`` between zero and six."""
    return wrap_nested(_op.nn.relu6(x._expr), name)


def silu(x, name="silu"):
    """``x * sigmoid(x)``."""
    return wrap_nested(_op.nn.silu(x._expr), name)


def gelu(x, approximate=None, name="gelu"):
    """``x`` times the normal distribution's function at ``x``; ``approximate="tanh"`` takes the formula with it."""
    operator = _op.nn.gelu_tanh if approximate == "tanh" else _op.nn.gelu
    return wrap_nested(operator(x._expr), name)


def softmax(x, axis=-1, name="softmax"):
    """``exp(x)`` over its sum along ``axis``."""
    return wrap_nested(_op.nn.softmax(x._expr, axis), name)


def softplus(x, beta=1.0, threshold=20.0, name="softplus"):
    """``log(1 + exp(beta * x)) / beta``, and ``x`` above the threshold."""
    return wrap_nested(_op.nn.softplus(x._expr, beta=beta, threshold=threshold), name)


def prelu(x, alpha, name="prelu"):
    """``x`` times ``alpha`` of its channel where it is below zero."""
    return wrap_nested(_op.nn.prelu(x._expr, alpha._expr), name)


def _with_bias(y, bias, channel, rank, name):
    """A convolution's result with a number added to each channel."""
    if bias is not None:
        y = _op.add(y, _op.reshape(bias._expr, [-1 if at == channel else 1 for at in range(rank)]))
    return wrap_nested(y, name)


def _convolve(operator, x, weight, bias, layout, name, **attributes):
    # TVM's programs name the result's layout of convolutions over one dimension, and of no others.
    if len(layout) == 3:
        attributes["out_layout"] = layout
    y = operator(data=x._expr, weight=weight._expr, data_layout=layout, **attributes)
    return _with_bias(y, bias, layout.index("C"), len(layout), name)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, name="conv1d"):
    """Convolution over the last dimension of ``[N, C, W]`` by weights ``[O, C / groups, W]``."""
    how = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _convolve(_op.nn.conv1d, x, weight, bias, "NCW", name, **how)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCHW", name="conv2d"):
    """Convolution of images in ``data_layout`` by weights ``[O, C / groups, H, W]``."""
    how = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _convolve(_op.nn.conv2d, x, weight, bias, data_layout, name, **how)


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_layout="NCDHW", name="conv3d"):
    """Convolution of volumes in ``data_layout`` by weights ``[O, C / groups, D, H, W]``."""
    how = {"strides": stride, "padding": padding, "dilation": dilation, "groups": groups}
    return _convolve(_op.nn.conv3d, x, weight, bias, data_layout, name, **how)


def conv1d_transpose(
    x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1, name="conv1d_transpose"
):
    """The transpose of :func:`conv1d`, by weights ``[C, O / groups, W]``."""
    how = {"strides": stride, "padding": padding, "output_padding": output_padding, "dilation": dilation, "groups": groups}
    return _convolve(_op.nn.conv1d_transpose, x, weight, bias, "NCW", name, **how)


def _weights_or(value, tensor, shape, dtype):
    """A tensor's expression, or a constant of one value."""
    return const(np.full(shape, value), dtype) if tensor is None else tensor._expr


def layer_norm(x, normalized_shape, weight=None, bias=None, eps=1e-5, name="layer_norm"):
    """The last dimensions, of lengths ``normalized_shape``, with mean zero and variance one, then scaled and shifted."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    axes = list(range(-len(shape), 0))
    gamma, beta = _weights_or(1, weight, shape, x.dtype), _weights_or(0, bias, shape, x.dtype)
    return wrap_nested(_op.nn.layer_norm(x._expr, gamma=gamma, beta=beta, axes=axes, epsilon=eps), name)


def rms_norm(x, weight, axes, epsilon=1e-5, name="rms_norm"):
    """``x`` over the root of the mean of its squares along ``axes``, scaled by ``weight``."""
    return wrap_nested(_op.nn.rms_norm(x._expr, weight._expr, axes, epsilon), name)


def group_norm(x, num_groups, weight, bias, eps=1e-5, channel_axis=1, axes=None, name="group_norm"):
    """Groups of channels with mean zero and variance one over ``axes`` (all behind the channels), then scaled and shifted."""
    channels = [x.shape[channel_axis]]
    gamma, beta = _weights_or(1, weight, channels, x.dtype), _weights_or(0, bias, channels, x.dtype)
    axes = list(range(channel_axis + 1, x.ndim)) if axes is None else axes
    how = {"num_groups": num_groups, "channel_axis": channel_axis, "axes": axes, "epsilon": eps}
    return wrap_nested(_op.nn.group_norm(x._expr, gamma, beta, **how), name)


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, is_causal=False, scale=None, name="scaled_dot_product_attention"
):
    """Attention of ``[batch, length, heads, size]``.

    Parameters
    ----------
    query, key, value : Tensor
        The operands.
    attn_mask : Tensor, optional
        Added to the products before their softmax.
    is_causal : bool
        Each position sees none behind it.
    scale : float, optional
        The factor of the products, one over the root of the size where nothing is said.
    """
    if attn_mask is not None and is_causal:
        raise ValueError("a mask and `is_causal` exclude each other: put the triangle into the mask")
    bias = None if attn_mask is None else attn_mask._expr
    causal = "TopLeft" if is_causal else None
    y = _op.nn.attention(query._expr, key._expr, value._expr, bias=bias, scale=scale, causal_mask=causal)
    return wrap_nested(y, name)


_METHODS = {"nearest": "nearest_neighbor", "bilinear": "linear", "bicubic": "cubic"}


def interpolate(
    x,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=None,
    data_layout="NCHW",
    name="interpolate",
):
    """Images in another size.

    Parameters
    ----------
    x : Tensor
        The images, in ``data_layout``.
    size : int or (int, int), optional
        The height and width of the result; or
    scale_factor : float or (float, float), optional
        how many times larger it is.
    mode : str
        ``"nearest"``, ``"bilinear"`` or ``"bicubic"``.
    align_corners : bool
        Whether the outermost elements lie on each other.
    """
    if recompute_scale_factor is not None:
        raise ValueError("recompute_scale_factor is not supported: give the size")
    if antialias is not None:
        raise ValueError("antialias is not supported")
    if (size is None) == (scale_factor is None):
        raise ValueError("give one of size and scale_factor")
    if mode not in _METHODS and mode not in _METHODS.values():
        raise ValueError(f"mode is one of {', '.join(_METHODS)}, got {mode!r}")
    axes = [data_layout.index("H"), data_layout.index("W")]
    if size is None:
        factors = scale_factor if isinstance(scale_factor, (list, tuple)) else [scale_factor] * len(axes)
        size = [_scaled(x.shape[axis], factor) for axis, factor in zip(axes, factors)]
    elif not isinstance(size, (list, tuple)):
        size = [size] * len(axes)
    if mode.startswith("nearest"):
        coordinates = "asymmetric"
    else:
        coordinates = "align_corners" if align_corners else "half_pixel"
    how = {"method": _METHODS.get(mode, mode), "coordinate_transformation_mode": coordinates, "layout": data_layout}
    return wrap_nested(_op.image.resize2d(x._expr, list(size), **how), name)


def _scaled(length, factor):
    """A length times a factor, rounded down; a symbolic one times a whole factor."""
    if isinstance(length, int):
        return int(length * factor)
    if float(factor).is_integer():
        return length * int(factor)
    raise ValueError(f"a symbolic length cannot be scaled by {factor}: give the size")


def get_timestep_embedding(
    x,
    embedding_dim,
    flip_sin_to_cos=False,
    downscale_freq_shift=1,
    scale=1,
    max_period=10000,
    name="get_timestep_embedding",
):
    """Sines and cosines of time steps (`Denoising Diffusion Probabilistic Models`, Ho et al., 2020).

    Parameters
    ----------
    x : Tensor
        The steps, of shape ``[n]``.
    embedding_dim : int
        The length of a row of the result, ``[n, embedding_dim]``; an odd one ends in a zero.
    flip_sin_to_cos : bool
        Cosines stand before sines.
    downscale_freq_shift, scale, max_period : float
        The frequencies are ``max_period ** (-i / (embedding_dim // 2 - downscale_freq_shift))``, times ``scale``.
    """
    from .core import get_default_dtype

    half = embedding_dim // 2
    steps = _op.astype(x._expr, "float32")
    exponent = _op.multiply(const(-math.log(max_period), "float32"), _op.arange(0, half, 1, "float32"))
    exponent = _op.divide(exponent, const(half - downscale_freq_shift, "float32"))
    angles = _op.multiply(_op.expand_dims(steps, 1), _op.expand_dims(_op.exp(exponent), 0))
    if scale != 1:
        angles = _op.multiply(const(scale, "float32"), angles)
    parts = [_op.sin(angles), _op.cos(angles)]
    row = _op.concat(parts[::-1] if flip_sin_to_cos else parts, axis=-1)
    if embedding_dim % 2:
        row = _op.nn.pad(row, [0, 0, 0, 1])
    return wrap_nested(_op.astype(row, get_default_dtype()), name)


__all__ = [
    name for name, value in list(globals().items()) if callable(value) and getattr(value, "__module__", "") == __name__ and name[0] != "_"
]
