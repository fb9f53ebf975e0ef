"""What the networks are written with: layers whose weights get names and shapes as they are made."""

import numpy as np

from ...runtime import tensor
from .. import expr, op
from ..module import IRModule


class Builder:
    """Layers of one network. Names of weights are those that TVM's testing networks give them."""

    def __init__(self, dtype="float32"):
        self.dtype, self.params = dtype, []

    def input(self, name, shape, dtype=None):
        """An input."""
        return self._param(name, shape, dtype or self.dtype)

    def _param(self, name, shape, dtype=None):
        var = expr.var(name, shape=shape, dtype=dtype or self.dtype)
        self.params.append((var, tuple(shape)))
        return var

    weight = _param

    def conv(self, x, name, cin, cout, kernel, strides=1, padding=0, groups=1, bias=False, transposed=False, **attrs):
        """A convolution, of a square kernel or of one with two sides."""
        kernel = (kernel, kernel) if isinstance(kernel, int) else kernel
        strides = (strides, strides) if isinstance(strides, int) else strides
        padding = (padding, padding) if isinstance(padding, int) else padding
        shape = (cin, cout, *kernel) if transposed else (cout, cin // groups, *kernel)
        weight = self._param(f"{name}_weight", shape)
        apply = op.nn.conv2d_transpose if transposed else op.nn.conv2d
        y = apply(x, weight, strides=strides, padding=padding, groups=groups, channels=cout, kernel_size=kernel, **attrs)
        return op.nn.bias_add(y, self._param(f"{name}_bias", (cout,))) if bias else y

    def batch_norm(self, x, name, channels, epsilon=1e-5, scale=True):
        """Normalization by moving statistics."""
        parts = [self._param(f"{name}_{part}", (channels,)) for part in ("gamma", "beta", "moving_mean", "moving_var")]
        return op.nn.batch_norm(x, *parts, epsilon=epsilon, scale=scale)[0]

    def conv_bn_relu(self, x, name, cin, cout, kernel, strides=1, padding=0, groups=1, epsilon=1e-5):
        """Convolution, normalization, activation."""
        y = self.conv(x, f"{name}_conv", cin, cout, kernel, strides, padding, groups)
        return op.nn.relu(self.batch_norm(y, f"{name}_bn", cout, epsilon))

    def dense(self, x, name, cin, cout, bias=True):
        """A dense layer."""
        y = op.nn.dense(x, self._param(f"{name}_weight", (cout, cin)), units=cout)
        return op.nn.bias_add(y, self._param(f"{name}_bias", (cout,)), axis=-1) if bias else y

    def function(self, body):
        """The function of all inputs and weights."""
        return expr.Function([var for var, _ in self.params], body)

    def workload(self, body, inputs=("data",), seed=0):
        """``(module, weights)``: weights are drawn so that values stay in range through many layers."""
        random = np.random.default_rng(seed)
        values = {}
        for var, shape in self.params:
            name = var.name_hint
            if name not in inputs:
                values[name] = tensor(_initial(name, shape, random).astype(self.dtype))
        return IRModule.from_expr(self.function(body)), values


def _initial(name, shape, random):
    if name.endswith(("gamma", "moving_var")):
        return random.uniform(0.8, 1.2, shape)
    if name.endswith(("beta", "moving_mean", "bias")):
        return random.uniform(-0.1, 0.1, shape)
    fan = int(np.prod(shape[1:])) or 1
    return random.normal(0.0, (2.0 / fan) ** 0.5, shape)
