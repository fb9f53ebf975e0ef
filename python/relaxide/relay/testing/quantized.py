"""Networks of 8-bit integers, written with the operators of ``qnn``: a residual one and one of depth-wise convolutions.

A value is an integer with its scale and its zero point, which are constants of the program. A convolution gives sums of 32 bits,
which ``qnn.requantize`` brings into the scale of the result; where that has its zero at the least integer, what is negative is
cut off there, so that no other activation is needed.
"""

from collections import namedtuple

import numpy as np

from ...runtime import tensor
from .. import expr, op
from ..module import IRModule

nn, qnn = op.nn, op.qnn

#: An expression of integers, with what they stand for, and how many channels of squares there are.
Quantized = namedtuple("Quantized", "value scale zero channels side")


def _const(value, dtype):
    return expr.const(np.asarray(value, dtype), dtype)


class Builder:
    """Layers of a network of integers: data of ``dtype``, weights of int8 with a scale for each channel."""

    def __init__(self, dtype, seed=0):
        self.dtype, self.least = dtype, np.iinfo(dtype).min
        self.random = np.random.default_rng(seed)
        self.params, self.weights = [], {}

    def input(self, name, shape, scale=4 / 127):
        """Floats that come in, quantized around their middle."""
        var = expr.var(name, shape=shape, dtype="float32")
        self.params.append(var)
        zero = self.least + 128
        value = qnn.quantize(var, _const(scale, "float32"), _const(zero, "int32"), out_dtype=self.dtype)
        return Quantized(value, scale, zero, *shape[1:3])

    def _weight(self, name, array):
        var = expr.var(name, shape=array.shape, dtype=str(array.dtype))
        self.params.append(var)
        self.weights[name] = tensor(array)
        return var

    def _layer(self, name, shape, scale):
        """A weight, its scales, and a bias in the scale of the sums."""
        floats = self.random.normal(0.0, (2.0 / np.prod(shape[1:])) ** 0.5, shape)
        # Beside data without sign, weights have seven bits: processors that add pairs of products in 16 bits saturate else.
        largest = 127 if self.least else 63
        scales = (np.abs(floats).reshape(shape[0], -1).max(axis=1) / largest).astype("float32")
        weight = np.round(floats / scales.reshape(-1, *[1] * (len(shape) - 1))).astype("int8")
        bias = np.round(self.random.uniform(-0.1, 0.1, shape[0]) / (scales * scale)).astype("int32")
        return self._weight(f"{name}_weight", weight), scales, self._weight(f"{name}_bias", bias)

    def conv(self, x, name, channels, kernel, strides=1, padding=0, groups=1, scale=6 / 255, relu=True):
        """A convolution; what comes out begins at zero, or lies around it."""
        weight, scales, bias = self._layer(name, (channels, x.channels // groups, kernel, kernel), x.scale)
        sums = qnn.conv2d(
            x.value,
            weight,
            _const(x.zero, "int32"),
            _const(0, "int32"),
            _const(x.scale, "float32"),
            _const(scales, "float32"),
            kernel_size=(kernel, kernel),
            channels=channels,
            strides=(strides, strides),
            padding=(padding, padding, padding, padding),
            groups=groups,
            out_dtype="int32",
        )
        zero = self.least if relu else self.least + 128
        value = qnn.requantize(
            nn.bias_add(sums, bias),
            _const(np.float32(x.scale) * scales, "float32"),
            _const(0, "int32"),
            _const(scale, "float32"),
            _const(zero, "int32"),
            axis=1,
            out_dtype=self.dtype,
        )
        side = (x.side + 2 * padding - kernel) // strides + 1
        return Quantized(value, scale, zero, channels, side)

    def add(self, x, y, scale=8 / 255):
        """A sum, which begins at zero."""
        parts = [_const(v, t) for side in (x, y) for v, t in ((side.scale, "float32"), (side.zero, "int32"))]
        value = qnn.add(x.value, y.value, *parts, _const(scale, "float32"), _const(self.least, "int32"))
        return Quantized(value, scale, self.least, x.channels, x.side)

    def concatenate(self, parts, scale=6 / 255):
        """Channels behind each other, in one scale."""
        scales, zeros = ([_const(getattr(p, name), t) for p in parts] for name, t in (("scale", "float32"), ("zero", "int32")))
        to = _const(scale, "float32"), _const(self.least, "int32")
        value = qnn.concatenate(expr.Tuple([p.value for p in parts]), expr.Tuple(scales), expr.Tuple(zeros), *to, axis=1)
        return Quantized(value, scale, self.least, sum(p.channels for p in parts), parts[0].side)

    def max_pool(self, x):
        """The largest of each window, which needs no scale."""
        return x._replace(value=nn.max_pool2d(x.value, pool_size=(2, 2), strides=(2, 2)), side=x.side // 2)

    def classes(self, x, name, count):
        """The mean of each channel, which is a sum in a smaller scale, and a dense layer whose sums become floats."""
        scale, zero, area = 3 / 255, self.least, x.side * x.side
        sums = op.sum(op.cast(x.value, "int32"), axis=[2, 3])
        from_scale, from_zero = _const(x.scale / area, "float32"), _const(x.zero * area, "int32")
        to = _const(scale, "float32"), _const(zero, "int32")
        means = qnn.requantize(sums, from_scale, from_zero, *to, out_dtype=self.dtype)
        weight, scales, bias = self._layer(name, (count, x.channels), scale)
        operands = _const(zero, "int32"), _const(0, "int32"), _const(scale, "float32"), _const(scales, "float32")
        sums = nn.bias_add(qnn.dense(means, weight, *operands, units=count, out_dtype="int32"), bias)
        return qnn.dequantize(sums, _const(np.float32(scale) * scales, "float32"), _const(0, "int32"), axis=1)

    def workload(self, body):
        """``(module, weights)``"""
        return IRModule.from_expr(expr.Function(self.params, body)), self.weights


def resnet(batch_size=1, num_classes=10, image_shape=(3, 32, 32), width=8, dtype="int8"):
    """Three stages of residual units of two convolutions."""
    net = Builder(dtype)
    x = net.conv(net.input("data", (batch_size, *image_shape)), "conv0", width, 3, 1, 1)
    for stage, channels in enumerate((width, 2 * width, 4 * width)):
        strides = 1 if stage == 0 else 2
        y = net.conv(x, f"stage{stage}_conv1", channels, 3, strides, 1)
        y = net.conv(y, f"stage{stage}_conv2", channels, 3, 1, 1, scale=8 / 255, relu=False)
        same = strides == 1
        x = net.add(y, x if same else net.conv(x, f"stage{stage}_sc", channels, 1, strides, scale=8 / 255, relu=False))
    return net.workload(net.classes(x, "fc", num_classes))


def mobilenet(batch_size=1, num_classes=10, image_shape=(3, 32, 32), width=8, dtype="uint8"):
    """Depth-wise separable convolutions, pooling, and two ways whose channels are put together."""
    net = Builder(dtype, seed=1)
    x = net.conv(net.input("data", (batch_size, *image_shape)), "conv0", width, 3, 2, 1)
    for at, channels in enumerate((2 * width, 2 * width, 4 * width)):
        x = net.conv(x, f"block{at}_depthwise", x.channels, 3, 1, 1, groups=x.channels)
        x = net.conv(x, f"block{at}_pointwise", channels, 1)
    x = net.max_pool(x)
    ways = [net.conv(x, "narrow", width, 1, scale=5 / 255), net.conv(x, "wide", width, 3, 1, 1, scale=7 / 255)]
    return net.workload(net.classes(net.concatenate(ways), "fc", num_classes))
