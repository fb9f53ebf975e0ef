"""Networks of Relay as models of ONNX, on the same weights: what ONNX Runtime is asked about."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from relaxide import relay

PLAIN = {
    "nn.relu": "Relu",
    "add": "Add",
    "multiply": "Mul",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "erf": "Erf",
    "nn.global_avg_pool2d": "GlobalAveragePool",
    "nn.dropout": "Identity",
    "nn.batch_flatten": "Flatten",
}


class Writer:
    """Writes the calls of an expression as nodes."""

    def __init__(self, weights):
        self.weights, self.nodes, self.constants, self.inputs, self.known = weights, [], [], [], {}

    def node(self, kind, inputs, count=1, **attrs):
        names = [f"v{len(self.nodes)}_{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attrs))
        return names[0] if count == 1 else names

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def value(self, expr):
        """The name of what an expression gives, or the names of a tuple's fields."""
        found = next((name for known, name in self.known.get(hash(expr), ()) if known.same_as(expr)), None)
        if found is None:
            found = self.made(expr)
            self.known.setdefault(hash(expr), []).append((expr, found))
        return found

    def made(self, expr):
        if isinstance(expr, relay.Var):
            if expr.name_hint in self.weights:
                return self.constant(self.weights[expr.name_hint].numpy())
            ty = expr.type_annotation
            kind = TensorProto.INT64 if str(ty.dtype) == "int64" else TensorProto.FLOAT
            self.inputs.append(helper.make_tensor_value_info(expr.name_hint, kind, [int(d) for d in ty.concrete_shape]))
            return expr.name_hint
        if isinstance(expr, relay.Constant):
            return self.constant(expr.data.numpy())
        if isinstance(expr, relay.Tuple):
            return [self.value(field) for field in expr.fields]
        if isinstance(expr, relay.TupleGetItem):
            fields = self.value(expr.tuple_value)
            return fields[expr.index] if isinstance(fields, list) else fields
        if expr.op.name in ("qnn.requantize", "qnn.dequantize"):
            sums = expr.args[0]
            if isinstance(sums, relay.Call) and sums.op.name == "nn.bias_add":
                return self.quantized_layer(expr, sums)
        if expr.op.name == "qnn.requantize":
            sums, scale, zero, *to = expr.args
            centred = self.node("Sub", [self.value(sums), self.value(zero)])
            floats = self.node("Cast", [centred], to=TensorProto.FLOAT)
            return self.integers(self.node("Mul", [floats, self.value(scale)]), *to, expr.checked_type.dtype)
        if expr.op.name == "qnn.concatenate":
            parts = zip(*(arg.fields for arg in expr.args[:3]))
            floats = [self.floats(*part) for part in parts]
            joined = self.node("Concat", floats, axis=int(expr.attrs.axis))
            return self.integers(joined, *expr.args[3:], expr.checked_type.dtype)
        if expr.op.name == "qnn.add":
            a, b, *parts = expr.args
            sides = [self.floats(a, *parts[:2]), self.floats(b, *parts[2:4])]
            return self.integers(self.node("Add", sides), *parts[4:], expr.checked_type.dtype)
        if expr.op.name == "qnn.quantize":
            x, scale, zero = expr.args
            return self.integers(self.value(x), scale, zero, expr.attrs.out_dtype)
        if expr.op.name == "qnn.dequantize":
            return self.floats(*expr.args)
        return self.call(expr.op.name, [self.value(arg) for arg in expr.args], expr.attrs)

    def narrow(self, name, dtype):
        """A zero point in the type of the integers, which Relay has as int32."""
        value = next(numpy_helper.to_array(c) for c in self.constants if c.name == name)
        return self.constant(value.astype(dtype))

    def integers(self, name, scale, zero, dtype):
        """Floats as integers."""
        return self.node("QuantizeLinear", [name, self.value(scale), self.narrow(self.value(zero), str(dtype))])

    def floats(self, x, scale, zero):
        """What integers stand for."""
        zero = self.narrow(self.value(zero), str(x.checked_type.dtype))
        return self.node("DequantizeLinear", [self.value(x), self.value(scale), zero])

    def quantized_layer(self, expr, sums):
        """A convolution or a dense layer of integers with its bias, up to the scale of what comes out."""
        product, bias = sums.args[0], self.value(sums.args[1])
        x, weight, x_zero, w_zero, x_scale, w_scale = map(self.value, product.args)
        dtype = str(product.args[0].checked_type.dtype)
        zeros = [self.narrow(x_zero, dtype), self.narrow(w_zero, "int8")]
        if product.op.name == "qnn.conv2d":
            out = str(expr.attrs.out_dtype)
            to_scale, to_zero = self.value(expr.args[3]), self.narrow(self.value(expr.args[4]), out)
            attrs = product.attrs
            window = {"group": int(attrs.groups), **self.window(attrs, attrs.kernel_size)}
            channels = next(c.dims[0] for c in self.constants if c.name == weight)
            per_channel = self.constant(np.zeros(channels, "int8"))
            inputs = [x, x_scale, zeros[0], weight, w_scale, per_channel, to_scale, to_zero, bias]
            return self.node("QLinearConv", inputs, **window)
        # Sums of a dense layer, as floats.
        whole = self.node("Transpose", [weight], perm=[1, 0])
        integers = self.node("Add", [self.node("MatMulInteger", [x, whole, *zeros]), bias])
        floats = self.node("Cast", [integers], to=TensorProto.FLOAT)
        return self.node("Mul", [floats, self.value(expr.args[1])])

    def window(self, attrs, size):
        pads = [int(p) for p in attrs.padding]
        pads = pads * (4 // len(pads))
        return {"kernel_shape": [int(k) for k in size], "strides": [int(s) for s in attrs.strides], "pads": pads}

    def call(self, name, args, attrs):
        if name in PLAIN:
            return self.node(PLAIN[name], args)
        kind = name.removeprefix("nn.")
        return getattr(self, f"of_{kind}")(args, attrs)

    def of_conv2d(self, args, attrs):
        return self.node("Conv", args, group=int(attrs.groups), **self.window(attrs, attrs.kernel_size))

    def of_conv2d_transpose(self, args, attrs):
        more = [int(p) for p in attrs.output_padding]
        return self.node("ConvTranspose", args, output_padding=more, **self.window(attrs, attrs.kernel_size))

    def of_dense(self, args, attrs):
        return self.node("Gemm", args, transB=1)

    def of_bias_add(self, args, attrs):
        # Images have their channels in front, rows of a matrix have them last.
        axis = int(attrs.axis)
        shape = [-1] if axis == -1 or self.ranks.get(args[0], 2) == 2 else [1, -1, 1, 1]
        return self.node("Add", [args[0], self.node("Reshape", [args[1], self.constant(np.array(shape, "int64"))])])

    def of_batch_norm(self, args, attrs):
        data, gamma, beta, *moments = args
        # What is not scaled has the weight nevertheless.
        size = next(c.dims[0] for c in self.constants if c.name == gamma)
        gamma = gamma if attrs.scale else self.constant(np.ones(size, "float32"))
        beta = beta if attrs.center else self.constant(np.zeros(size, "float32"))
        return [self.node("BatchNormalization", [data, gamma, beta, *moments], epsilon=float(attrs.epsilon)), "", ""]

    def of_layer_norm(self, args, attrs):
        return self.node("LayerNormalization", args, axis=int(attrs.axis), epsilon=float(attrs.epsilon))

    def of_max_pool2d(self, args, attrs):
        return self.node("MaxPool", args, ceil_mode=int(attrs.ceil_mode), **self.window(attrs, attrs.pool_size))

    def of_avg_pool2d(self, args, attrs):
        counted = int(attrs.count_include_pad)
        return self.node("AveragePool", args, count_include_pad=counted, **self.window(attrs, attrs.pool_size))

    def of_cast(self, args, attrs):
        return self.node("Cast", args, to=helper.np_dtype_to_tensor_dtype(np.dtype(str(attrs.dtype))))

    def of_sum(self, args, attrs):
        axes = self.constant(np.array([int(axis) for axis in attrs.axis], "int64"))
        return self.node("ReduceSum", [args[0], axes], keepdims=int(attrs.keepdims))

    def of_concatenate(self, args, attrs):
        return self.node("Concat", args[0], axis=int(attrs.axis))

    def of_softmax(self, args, attrs):
        return self.node("Softmax", args, axis=int(attrs.axis))

    def of_reshape(self, args, attrs):
        return self.node("Reshape", [args[0], self.constant(np.array([int(d) for d in attrs.newshape], "int64"))])

    def of_transpose(self, args, attrs):
        return self.node("Transpose", args, perm=[int(a) for a in attrs.axes])

    def of_take(self, args, attrs):
        return self.node("Gather", args, axis=int(attrs.axis))

    def of_split(self, args, attrs):
        count = int(attrs.indices_or_sections)
        return self.node("Split", args, count, axis=int(attrs.axis), num_outputs=count)

    def of_zeros(self, args, attrs):
        return self.constant(np.zeros([int(d) for d in attrs.shape], str(attrs.dtype)))

    def of_batch_matmul(self, args, attrs):
        turned = [self.node("Transpose", [args[1]], perm=[0, 2, 1])] if attrs.transpose_b else args[1:]
        return self.node("MatMul", [args[0], *turned])


def as_onnx(mod, weights):
    """A network without control flow, whose weights are by the names of parameters of ``main``."""
    writer = Writer(weights)
    # A convolution's bias has the rank of what it is added to.
    writer.ranks = {}
    node = writer.node

    def ranked(kind, inputs, count=1, **attrs):
        made = node(kind, inputs, count, **attrs)
        if kind in ("Conv", "ConvTranspose"):
            writer.ranks[made] = 4
        return made

    writer.node = ranked
    result = writer.value(mod["main"].body)
    shape = [int(d) for d in mod["main"].body.checked_type.concrete_shape]
    outputs = [helper.make_tensor_value_info(result, TensorProto.FLOAT, shape)]
    used = {name for made in writer.nodes for name in made.input}
    constants = [constant for constant in writer.constants if constant.name in used]
    graph = helper.make_graph(writer.nodes, "network", writer.inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model
