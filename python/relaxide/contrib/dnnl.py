"""Products and convolutions as functions of the process that kernels call, under the names of oneDNN's.

The functions, ``tvm.contrib.dnnl.*``, are NumPy's: a library that calls them runs where this module was imported.
"""

import numpy as np

from .. import te
from ..runtime import register_global_func
from ..tirx import call_packed
from ..topi.nn.utils import get_pad_tuple
from .cblas import _product

register_global_func("tvm.contrib.dnnl.matmul", _product, override=True)


@register_global_func("tvm.contrib.dnnl.conv2d", override=True)
def _conv2d(src, weights, out, top, down, left, right, stride_h, stride_w, groups, channel_last, pre_cast, post_cast):
    x, w = src.numpy(), weights.numpy()
    if channel_last:
        x, w = x.transpose(0, 3, 1, 2), w.transpose(3, 2, 0, 1)
    x = np.pad(x, [(0, 0), (0, 0), (top, down), (left, right)])
    # Windows of the image: (batch, channels, rows, columns, kernel rows, kernel columns).
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], axis=(2, 3))[:, :, ::stride_h, ::stride_w]
    parts = zip(np.split(windows, groups, axis=1), np.split(w, groups, axis=0))
    made = np.concatenate([np.einsum("nchwij,ocij->nohw", image, kernel) for image, kernel in parts], axis=1)
    out.copyfrom(np.ascontiguousarray(made.transpose(0, 2, 3, 1) if channel_last else made).astype(str(out.dtype), copy=False))


def matmul(lhs, rhs, transa=False, transb=False, **kwargs):
    """The product of two matrices, each the other way round where ``transa`` or ``transb`` says so."""
    rows = lhs.shape[1] if transa else lhs.shape[0]
    columns = rhs.shape[0] if transb else rhs.shape[1]

    def call(ins, outs):
        return call_packed("tvm.contrib.dnnl.matmul", ins[0], ins[1], outs[0], transa, transb)

    return te.extern((rows, columns), [lhs, rhs], call, name="C", **kwargs)


def dnnl_conv2d(src, weights, stride, padding, dilation, groups, channel_last=False, out_dtype="float32", **kwargs):
    """A convolution of images.

    Parameters
    ----------
    src : te.Tensor
        ``(batch, channels, height, width)``; with ``channel_last`` ``(batch, height, width, channels)``.
    weights : te.Tensor
        ``(filters, channels / groups, rows, columns)``; with ``channel_last`` ``(rows, columns, channels / groups, filters)``.
    stride, dilation : int or pair of int
        Steps along height and width. A dilation other than 1 is a ValueError: the function that is called has none.
    padding : int or tuple of int
        Rows and columns of zeros: one number, (height, width), or (top, left, bottom, right).
    groups : int
        The number of groups of channels.
    out_dtype : str
        The element type of the result.
    """
    strides = (stride, stride) if isinstance(stride, int) else tuple(stride)
    if ((dilation, dilation) if isinstance(dilation, int) else tuple(dilation)) != (1, 1):
        raise ValueError(f"dnnl_conv2d takes no dilation, and {dilation} is given: use topi.nn.conv2d")
    batch, height, width = (src.shape[axis] for axis in ((0, 1, 2) if channel_last else (0, 2, 3)))
    filters, rows, columns = (weights.shape[axis] for axis in ((3, 0, 1) if channel_last else (0, 2, 3)))
    top, left, down, right = get_pad_tuple(padding, (rows, columns))
    size = [(height - rows + top + down) // strides[0] + 1, (width - columns + left + right) // strides[1] + 1]
    shape = (batch, *size, filters) if channel_last else (batch, filters, *size)
    casts = (str(src.dtype) == "float32", out_dtype == "float32")

    def call(ins, outs):
        numbers = (top, down, left, right, *strides, groups, channel_last, *casts)
        return call_packed("tvm.contrib.dnnl.conv2d", ins[0], ins[1], outs[0], *numbers)

    return te.extern(shape, [src, weights], call, name="C", dtype=out_dtype, **kwargs)


__all__ = ["dnnl_conv2d", "matmul"]
