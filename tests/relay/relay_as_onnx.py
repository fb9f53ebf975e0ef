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
        return self.call(expr.op.name, [self.value(arg) for arg in expr.args], expr.attrs)

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
    graph = helper.make_graph(writer.nodes, "network", writer.inputs, outputs, writer.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model)
    return model
