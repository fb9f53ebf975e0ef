"""Norms, products and losses in NumPy."""

import numpy as np


def _moments(data, axes):
    wide = data.astype("float64")
    return wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)


def _shaped(values, data, axes):
    """Values of some dimensions, as an array that spreads over all."""
    return np.asarray(values).reshape([size if at in axes else 1 for at, size in enumerate(data.shape)])


def _normal(data, axes, epsilon):
    mean, variance = _moments(data, axes)
    return (data - mean) / np.sqrt(variance + epsilon)


def _axes(axis, data):
    axes = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    return tuple(one % data.ndim for one in axes)


def softmax_python(a_np, axis=1):
    """The softmax over a dimension."""
    powers = np.exp(a_np - a_np.max(axis, keepdims=True))
    return powers / powers.sum(axis, keepdims=True)


def log_softmax_python(a_np, axis=1):
    """The logarithm of the softmax over a dimension."""
    below = a_np - a_np.max(axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis, keepdims=True))


def layer_norm_python(data, gamma, beta, axis, epsilon=1e-5):
    """The norm over dimensions, with a factor and a summand of their shape."""
    axes = _axes(axis, data)
    out = _normal(data, axes, epsilon) * _shaped(gamma, data, axes)
    return (out if beta is None else out + _shaped(beta, data, axes)).astype(data.dtype)


def instance_norm_python(data, gamma, beta, axis, epsilon=1e-5):
    """The norm over dimensions, with a factor and a summand that are spread over the last dimensions."""
    out = _normal(data, _axes(axis, data), epsilon) * gamma
    return (out if beta is None else out + beta).astype(data.dtype)


def group_norm_python(data, gamma, beta, num_groups, channel_axis, axes, epsilon=1e-5):
    """The norm over dimensions and groups of channels, with a factor and a summand for each channel."""
    channel, others = channel_axis % data.ndim, _axes(axes, data)
    parted = data.reshape(*data.shape[:channel], num_groups, data.shape[channel] // num_groups, *data.shape[channel + 1 :])
    over = (channel + 1, *(axis + (axis > channel) for axis in others))
    out = _normal(parted, over, epsilon).reshape(data.shape)
    out = out if gamma is None else out * _shaped(gamma, data, (channel,))
    return (out if beta is None else out + _shaped(beta, data, (channel,))).astype(data.dtype)


def rms_norm_python(data, weight, axis, epsilon=1e-5):
    """Elements over the root of the mean of squares, with a factor of the shape of the dimensions."""
    axes = _axes(axis, data)
    wide = data.astype("float32")
    out = wide / np.sqrt((wide**2).mean(axes, keepdims=True) + epsilon)
    return (out * _shaped(weight, data, axes)).astype(data.dtype)


def l2_normalize_python(a_np, eps, axis=None):
    """Elements over the root of the sum of squares, which is at least ``eps``."""
    axes = None if axis is None else tuple(axis) if isinstance(axis, (list, tuple)) else axis
    return a_np / np.sqrt(np.maximum((a_np**2).sum(axes, keepdims=True), eps))


def lrn_python(a_np, size, axis, bias, alpha, beta):
    """Elements over a power of the mean of squares of ``size`` neighbours along a dimension."""
    moved = np.moveaxis(a_np, axis, -1)
    around = np.pad(moved**2, [(0, 0)] * (moved.ndim - 1) + [(size // 2, size // 2)])
    sums = np.lib.stride_tricks.sliding_window_view(around, size, axis=-1).sum(-1)[..., : moved.shape[-1]]
    return np.moveaxis(moved / (bias + alpha * sums / size) ** beta, -1, axis).astype(a_np.dtype)


def batch_norm(
    x, gamma, beta, moving_mean, moving_var, axis, epsilon, center, scale, training, momentum
):  # fmt: skip
    """The norm of each channel: ``[outputs, mean, variance]``, of which the last two are the moving ones, updated where ``training``."""
    axis = axis % x.ndim
    others = tuple(at for at in range(x.ndim) if at != axis)
    mean, variance = (x.mean(others), x.var(others)) if training else (moving_mean, moving_var)
    out = (x - _shaped(mean, x, (axis,))) / np.sqrt(_shaped(variance, x, (axis,)) + epsilon)
    out = out * _shaped(gamma, x, (axis,)) if scale else out
    out = out + _shaped(beta, x, (axis,)) if center else out
    if training:
        return [out, (1 - momentum) * moving_mean + momentum * mean, (1 - momentum) * moving_var + momentum * variance]
    return [out, moving_mean, moving_var]


def batch_matmul(x, y, out_dtype=None, trans_x=False, trans_y=True):
    """Products of matrices, one for each of a batch; a batch of one stands for all."""
    x, y = (np.swapaxes(value, -1, -2) if turned else value for value, turned in ((x, trans_x), (y, trans_y)))
    dtype = out_dtype or x.dtype
    return np.matmul(x.astype(dtype), y.astype(dtype))


def dense(x, y, bias, use_bias=False, use_relu=False, out_dtype=None):
    """``x @ y.T``, with a bias and a ReLU if they are asked for."""
    dtype = out_dtype or x.dtype
    out = np.dot(x.astype(dtype), y.T.astype(dtype))
    out = out + bias if use_bias else out
    return np.maximum(out, 0) if use_relu else out


def nll_loss(predictions, targets, weights, reduction="mean", ignore_index=-100):
    """The negative likelihood of targets, weighted by their class; ``reduction`` is ``mean``, ``sum`` or ``none``."""
    kept = targets != ignore_index
    classes = np.where(kept, targets, 0)
    chosen = np.take_along_axis(predictions, np.expand_dims(classes, 1), 1).squeeze(1) if predictions.ndim > 1 else predictions[classes]
    factors = np.where(kept, weights[classes], 0)
    losses = -chosen * factors
    if reduction == "mean":
        return losses.sum() / factors.sum()
    return losses.sum() if reduction == "sum" else losses


def attention_python(q, k, v, bias, qk_scale, causal, window_size=None, layout="BSNH"):
    """Attention of queries, keys and values, whose dimensions ``layout`` names: batch, length, heads, size.

    ``qk_scale`` may be ``"none"`` for one over the root of the size. ``causal`` is ``"none"``, ``"TopLeft"`` or ``"BottomRight"``; with
    ``window_size`` a query sees that many positions. Heads of keys may be fewer than those of queries.
    """
    order = [layout.index(dim) for dim in "BNSH"]
    q, k, v = (np.transpose(value, order) for value in (q, k, v))
    k, v = (np.repeat(value, q.shape[1] // value.shape[1], axis=1) for value in (k, v))
    scale = 1 / np.sqrt(q.shape[-1]) if isinstance(qk_scale, str) else qk_scale
    scores = q @ np.swapaxes(k, -1, -2) * scale
    scores = scores if bias is None else scores + bias
    if causal != "none":
        rows, columns = scores.shape[-2:]
        if causal not in ("TopLeft", "BottomRight"):
            raise ValueError(f"causal is 'none', 'TopLeft' or 'BottomRight', not {causal!r}")
        sees = np.tril(np.ones((rows, columns), bool), 0 if causal == "TopLeft" else columns - rows)
        if window_size:
            sees &= np.triu(np.ones((rows, columns), bool), 1 - window_size)
        scores = np.where(sees, scores, -np.inf)
    return np.transpose(softmax_python(scores, -1) @ v, np.argsort(order))


__all__ = ["attention_python", "batch_matmul", "batch_norm", "dense", "group_norm_python", "instance_norm_python", "l2_normalize_python"]
__all__ += ["layer_norm_python", "log_softmax_python", "lrn_python", "nll_loss", "rms_norm_python", "softmax_python"]
