"""Programs of Relax in Relay: the inverse of ``to_relax`` for one function of tensors.

Each binding becomes a call of the operator of Relay that means the same. Dimensions that are symbolic become ``Any``. What
has no counterpart is an error that names the operator.
"""

import numpy as np

from ... import ir as _ir
from ...relax import expr as rx
from .. import expr, op
from ..module import IRModule
from ..ty import Any

nn = op.nn


def _dim(dim):
    return int(dim.value) if hasattr(dim, "value") else dim if isinstance(dim, int) else Any()


def _shape_of(ty):
    shape = getattr(ty, "shape", None)
    if shape is None:
        raise ValueError(f"the rank of a tensor of type {ty} is not known: Relay needs it")
    return [_dim(dim) for dim in getattr(shape, "values", shape)]


def _known(shape, what):
    if any(isinstance(dim, Any) for dim in shape):
        raise ValueError(f"{what} has a size that only the run shows, which has no form in Relay here")
    return shape


class _Call:
    """A call of Relax with what its converter asks for."""

    def __init__(self, call, args, name):
        self.call, self.args, self.name = call, args, name
        self.attrs = call.attrs or {}

    def attr(self, key, default=None):
        value = self.attrs[key] if key in self.attrs else default
        if isinstance(value, (bool, int, float, str)) or value is None:
            return value
        if hasattr(value, "value"):
            return value.value
        return [self._plain(item) for item in value]

    @staticmethod
    def _plain(item):
        return item.value if hasattr(item, "value") else item

    def shape(self, at):
        return _shape_of(self.call.args[at].ty)

    def dims(self, at):
        """The numbers of an argument that is a shape."""
        arg = self.call.args[at]
        values = getattr(arg, "values", None)
        values = values if values is not None else arg
        return [_dim(dim) for dim in values]

    def number(self, at):
        arg = self.call.args[at]
        return getattr(arg, "value", arg)

    def dtype(self):
        return str(self.call.ty.dtype)

    def result(self):
        return _shape_of(self.call.ty)


_SAME = "abs acos acosh asin asinh atan atanh ceil cos cosh erf exp floor isfinite isinf isnan log logical_not negative"
_SAME += " round rsqrt sigmoid sign sin sinh sqrt tan tanh trunc bitwise_not add subtract multiply divide power maximum"
_SAME += " minimum mod floor_divide floor_mod equal not_equal less less_equal greater greater_equal logical_and logical_or"
_SAME += " logical_xor bitwise_and bitwise_or bitwise_xor left_shift right_shift where"
_CONVERT = {name: (lambda c, name=name: getattr(op, name)(*c.args)) for name in _SAME.split()}


def _register(*names):
    def enter(function):
        _CONVERT.update({name: function for name in names})
        return function

    return enter


@_register("nn.relu", "nn.silu", "nn.gelu", "nn.gelu_tanh", "nn.leakyrelu", "nn.prelu", "clip", "nn.softmax", "nn.log_softmax")
def _activation(c):
    x = c.args[0]
    scalar = lambda v: expr.const(v, c.dtype())
    if c.name == "nn.silu":
        return x * op.sigmoid(x)
    if c.name == "nn.gelu":
        return x * (scalar(0.5) + scalar(0.5) * op.erf(x * scalar(0.5**0.5)))
    if c.name == "nn.gelu_tanh":
        inner = scalar((2 / np.pi) ** 0.5) * (x + scalar(0.044715) * x * x * x)
        return scalar(0.5) * x * (scalar(1.0) + op.tanh(inner))
    if c.name == "nn.leakyrelu":
        return nn.leaky_relu(x, alpha=c.attr("alpha"))
    if c.name == "nn.prelu":
        return nn.prelu(x, c.args[1], axis=c.attr("axis", 1))
    if c.name == "clip":
        return op.clip(x, float(c.number(1)), float(c.number(2)))
    if c.name == "nn.relu":
        return nn.relu(x)
    return (nn.softmax if c.name == "nn.softmax" else nn.log_softmax)(x, axis=c.attr("axis", -1))


@_register("nn.conv1d", "nn.conv2d", "nn.conv3d")
def _convolution(c):
    names = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout")
    given = {name: c.attr(name) for name in names}
    weight, kernel = c.shape(1), given["kernel_layout"]
    size = [weight[i] for i, letter in enumerate(kernel) if letter in "DHW"]
    out = {"out_dtype": c.dtype()} if c.dtype() != str(c.call.args[0].ty.dtype) else {}
    made = getattr(nn, c.name[3:])
    return made(*c.args, **given, channels=weight[kernel.index("O")], kernel_size=_known(size, c.name), **out)


@_register("nn.conv1d_transpose", "nn.conv2d_transpose", "nn.conv3d_transpose")
def _transposed(c):
    names = ("strides", "padding", "dilation", "groups", "data_layout", "kernel_layout", "output_padding")
    weight, kernel = c.shape(1), c.attr("kernel_layout")
    size = [weight[i] for i, letter in enumerate(kernel) if letter in "DHW"]
    channels = weight[kernel.index("O")] * c.attr("groups")
    return getattr(nn, c.name[3:])(*c.args, **{n: c.attr(n) for n in names}, channels=channels, kernel_size=size)


@_register("nn.max_pool1d", "nn.max_pool2d", "nn.max_pool3d", "nn.avg_pool1d", "nn.avg_pool2d", "nn.avg_pool3d")
def _pool(c):
    names = ["pool_size", "strides", "padding", "dilation", "layout", "ceil_mode"]
    names += ["count_include_pad"] if "avg" in c.name else []
    return getattr(nn, c.name[3:])(c.args[0], **{name: c.attr(name) for name in names})


@_register("nn.adaptive_avg_pool1d", "nn.adaptive_avg_pool2d", "nn.adaptive_avg_pool3d")
def _adaptive(c):
    return getattr(nn, c.name[3:])(c.args[0], output_size=c.attr("output_size"), layout=c.attr("layout"))


@_register("nn.batch_norm")
def _batch_norm(c):
    made = nn.batch_norm(*c.args, axis=c.attr("axis"), epsilon=c.attr("epsilon"), center=c.attr("center"), scale=c.attr("scale"))
    return made.astuple()


@_register("nn.layer_norm")
def _layer_norm(c):
    axes = c.attr("axes")
    rank = len(c.shape(0))
    if [axis % rank for axis in axes] != [rank - 1]:
        raise ValueError("nn.layer_norm over several dimensions has no form in Relay")
    return nn.layer_norm(*c.args, axis=-1, epsilon=c.attr("epsilon"), center=c.attr("center"), scale=c.attr("scale"))


@_register("nn.instance_norm")
def _instance_norm(c):
    return nn.instance_norm(*c.args, axis=c.attr("channel_axis", 1), epsilon=c.attr("epsilon"))


@_register("nn.dropout")
def _dropout(c):
    return nn.dropout_raw(c.args[0], c.attr("rate")).astuple() if hasattr(nn.dropout_raw(c.args[0]), "astuple") else nn.dropout_raw(c.args[0])


@_register("nn.lrn")
def _lrn(c):
    return nn.lrn(c.args[0], **{name: c.attr(name) for name in ("size", "axis", "bias", "alpha", "beta")})


@_register("nn.pad")
def _pad(c):
    width = c.attr("pad_width")
    value = c.args[1] if len(c.args) > 1 else c.attr("pad_value", 0.0)
    return nn.pad(c.args[0], [width[i : i + 2] for i in range(0, len(width), 2)], value, c.attr("pad_mode", "constant"))


@_register("matmul")
def _matmul(c):
    (a, b), sa, sb = c.args, c.shape(0), c.shape(1)
    if len(sb) == 2 and len(sa) >= 2:
        units = None if isinstance(sb[1], Any) else sb[1]
        flat = a if len(sa) == 2 else op.reshape(a, (-1, sa[-1]))
        made = nn.dense(flat, op.transpose(b, (1, 0)), units=units)
        return made if len(sa) == 2 else op.reshape(made, [*_open(sa[:-1]), sb[1]])
    if len(sa) < 2 or len(sb) < 2:
        raise ValueError("matmul of vectors has no form in Relay here")
    if len(sa) == len(sb) == 3 and (sa[0] == sb[0] or 1 in (sa[0], sb[0])):
        return nn.batch_matmul(a, b, transpose_b=False)
    batch = _known(c.result()[:-2], "matmul")
    flat = lambda e, shape: op.reshape(op.broadcast_to(e, [*batch, *shape[-2:]]) if shape[:-2] != batch else e, (-1, *shape[-2:]))
    made = nn.batch_matmul(flat(a, _known(sa, "matmul")), flat(b, _known(sb, "matmul")), transpose_b=False)
    return op.reshape(made, [*batch, sa[-2], sb[-1]])


def _open(dims):
    """Dimensions of which one may be inferred."""
    if sum(isinstance(dim, Any) for dim in dims) > 1:
        raise ValueError("a shape with several sizes that only the run shows has no form in Relay here")
    return [-1 if isinstance(dim, Any) else dim for dim in dims]


@_register("reshape")
def _reshape(c):
    return op.reshape(c.args[0], _open(c.dims(1)))


@_register("flatten")
def _flatten(c):
    return op.reshape(c.args[0], (-1,))


@_register("nn.batch_flatten")
def _batch_flatten(c):
    return nn.batch_flatten(c.args[0])


@_register("permute_dims")
def _permute(c):
    return op.transpose(c.args[0], c.attr("axes"))


@_register("expand_dims")
def _expand(c):
    made, rank = c.args[0], len(c.result())
    for axis in sorted(axis % rank for axis in c.attr("axis")):
        made = op.expand_dims(made, axis)
    return made


@_register("squeeze")
def _squeeze(c):
    return op.squeeze(c.args[0], c.attr("axis"))


@_register("concat")
def _concat(c):
    return op.concatenate(c.args[0], c.attr("axis", 0))


@_register("stack")
def _stack(c):
    return op.stack(c.args[0], c.attr("axis", 0))


@_register("split")
def _split(c):
    parts = c.attr("indices_or_sections")
    return op.split(c.args[0], parts, c.attr("axis", 0)).astuple()


@_register("strided_slice")
def _slice(c):
    axes, begin, end = c.dims(1), c.dims(2), c.dims(3)
    strides = c.dims(4) if len(c.call.args) > 4 else [1] * len(begin)
    for part in (begin, end, strides):
        _known(part, "strided_slice")
    return op.strided_slice(c.args[0], begin, end, strides, axes=axes)


@_register("take")
def _take(c):
    mode = c.attr("mode", "fast")
    return op.take(c.args[0], c.args[1], axis=c.attr("axis"), mode="clip" if mode in ("fast", "nan") else mode)


@_register("gather_elements")
def _gather(c):
    return op.gather(c.args[0], c.attr("axis", 0), c.args[1])


@_register("astype")
def _astype(c):
    return op.cast(c.args[0], c.dtype())


@_register("broadcast_to")
def _broadcast(c):
    return op.broadcast_to(c.args[0], _known(c.dims(1), "broadcast_to"))


@_register("full", "zeros", "ones")
def _filled(c):
    shape = _known(c.result(), c.name)
    if c.name == "full":
        return op.full(c.args[1], shape, c.dtype())
    return getattr(op, c.name)(shape, c.dtype())


@_register("sum", "mean", "max", "min", "prod")
def _reduce(c):
    return getattr(op, c.name)(c.args[0], axis=c.attr("axis"), keepdims=c.attr("keepdims", False))


@_register("argmax", "argmin")
def _arg_reduce(c):
    axis = c.attr("axis")
    made = getattr(op, c.name)(c.args[0], axis=None if axis is None else [axis], keepdims=c.attr("keepdims", False))
    return op.cast(made, c.dtype())


@_register("cumsum", "cumprod")
def _scan(c):
    return getattr(op, c.name)(c.args[0], axis=c.attr("axis"), dtype=c.dtype(), exclusive=bool(c.attr("exclusive", False)))


@_register("image.resize2d")
def _resize(c):
    names = ("layout", "method", "coordinate_transformation_mode", "rounding_method", "cubic_alpha", "cubic_exclude")
    size = _known(c.dims(1), "image.resize2d")
    return op.image.resize2d(c.args[0], size, **{name: c.attr(name) for name in names})


@_register("tile", "repeat")
def _repeat(c):
    if c.name == "tile":
        return op.tile(c.args[0], c.attr("repeats"))
    return op.repeat(c.args[0], c.attr("repeats"), c.attr("axis"))


class _Reader:
    def __init__(self, keep_constants):
        self.values, self.keep, self.weights = {}, keep_constants, []

    def value(self, e):
        key = e.__chandle__()
        if key in self.values:
            return self.values[key]
        if isinstance(e, rx.Constant):
            made = self._constant(e)
        elif isinstance(e, rx.Tuple):
            made = expr.Tuple([self.value(field) for field in e.fields])
        elif isinstance(e, rx.TupleGetItem):
            made = expr.TupleGetItem(self.value(e.tuple_value), e.index)
        elif isinstance(e, rx.Call):
            made = self._call(e)
        elif isinstance(e, rx.Var):
            raise ValueError(f"the variable {e.name_hint} is not bound in the function")
        else:
            raise ValueError(f"{type(e).__name__} of Relax has no form in Relay here")
        self.values[key] = made
        self._alive = getattr(self, "_alive", [])
        self._alive.append(e)
        return made

    def _constant(self, e):
        data = e.data
        if self.keep or data.numpy().size <= 16:
            return expr.Constant(data)
        weight = expr.var(f"p{len(self.weights)}", shape=data.shape, dtype=str(data.dtype))
        self.weights.append((weight, data))
        return weight

    def _call(self, call):
        name = getattr(call.op, "name", "").removeprefix("relax.")
        convert = _CONVERT.get(name)
        if convert is None:
            raise ValueError(f"the operator {name or call.op} of Relax has no counterpart in Relay here")
        args = [self._argument(arg) for arg in call.args]
        made = convert(_Call(call, args, name))
        return made.astuple() if isinstance(made, expr.TupleWrapper) else made

    def _argument(self, arg):
        if isinstance(arg, (rx.ShapeExpr, rx.DataTypeImm)):
            return None
        if isinstance(arg, (_ir.prim.IntImm, _ir.prim.FloatImm)) if hasattr(_ir, "prim") else False:
            return expr.const(arg.value)
        return self.value(arg) if isinstance(arg, (rx.Var, rx.Constant, rx.Tuple, rx.TupleGetItem, rx.Call)) else None


def from_relax(module, function="main", constants=True):
    """``(module, weights)``: a function of a Relax module as ``main`` in Relay.

    Constants stay in the program, or become parameters ``p0``, ``p1`` … with their values beside.
    """
    source = module[function]
    reader = _Reader(constants)
    params = []
    for param in source.params:
        ty = param.ty
        params.append(expr.var(str(param.name_hint), shape=_shape_of(ty), dtype=str(ty.dtype)))
        reader.values[param.__chandle__()] = params[-1]
    for block in source.body.blocks:
        for binding in block.bindings:
            # A cast to a type changes nothing that Relay sees.
            reader.values[binding.var.__chandle__()] = reader.value(binding.value)
    body = reader.value(source.body.body)
    made = expr.Function([*params, *(weight for weight, _ in reader.weights)], body)
    return IRModule.from_expr(made), {weight.name_hint: data for weight, data in reader.weights}


__all__ = ["from_relax"]
