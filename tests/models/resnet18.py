"""ResNet-18 as an ONNX file with random weights, built node by node.

The architecture is that of the paper (He et al., 2015) in the usual inference form; the weights are drawn from a fixed seed
and scaled so that activations neither vanish nor explode.
"""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """Nodes and weights of a network of convolutions, as they come."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes = []
        self.weights = []

    def weight(self, name, array):
        self.weights.append(numpy_helper.from_array(array.astype("float32"), name))
        return name

    def node(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], name=f"{op}:{output}", **attributes))
        return output

    def conv_bn(self, x, name, channels_in, channels, kernel, stride, group=1):
        inputs = channels_in // group
        scale = (2.0 / (inputs * kernel * kernel)) ** 0.5
        weight = self.rng.standard_normal((channels, inputs, kernel, kernel)) * scale
        pad = kernel // 2
        y = self.node(
            "Conv",
            [x, self.weight(f"{name}.weight", weight)],
            f"{name}.conv",
            kernel_shape=[kernel, kernel],
            strides=[stride, stride],
            pads=[pad] * 4,
            group=group,
        )
        statistics = {
            "gamma": self.rng.uniform(0.5, 1.0, channels),
            "beta": self.rng.uniform(-0.1, 0.1, channels),
            "mean": self.rng.uniform(-0.1, 0.1, channels),
            "var": self.rng.uniform(0.5, 1.5, channels),
        }
        params = [self.weight(f"{name}.{key}", value) for key, value in statistics.items()]
        return self.node("BatchNormalization", [y, *params], f"{name}.bn", epsilon=1e-5)

    def block(self, x, name, channels_in, channels, stride):
        y = self.conv_bn(x, f"{name}.1", channels_in, channels, 3, stride)
        y = self.node("Relu", [y], f"{name}.relu")
        y = self.conv_bn(y, f"{name}.2", channels, channels, 3, 1)
        if stride != 1 or channels_in != channels:
            x = self.conv_bn(x, f"{name}.down", channels_in, channels, 1, stride)
        y = self.node("Add", [y, x], f"{name}.add")
        return self.node("Relu", [y], f"{name}.out")

    def classifier(self, x, name, channels, classes):
        """The model, whose batch, height and width are symbolic, of features and a layer that tells classes by them."""
        x = self.node("GlobalAveragePool", [x], "pool")
        x = self.node("Flatten", [x], "features", axis=1)
        weight = self.weight("fc.weight", self.rng.standard_normal((classes, channels)) * (1.0 / channels) ** 0.5)
        bias = self.weight("fc.bias", self.rng.uniform(-0.1, 0.1, classes))
        self.node("Gemm", [x, weight, bias], "logits", transB=1)
        given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w"])
        result = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["n", classes])
        graph = helper.make_graph(self.nodes, name, [given], [result], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="relaxide-tests")
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model


def build(seed=18):
    """The model; batch, height and width are symbolic."""
    g = Graph(seed)
    x = g.conv_bn("x", "stem", 3, 64, 7, 2)
    x = g.node("Relu", [x], "stem.relu")
    x = g.node("MaxPool", [x], "stem.pool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, width in enumerate([64, 128, 256, 512]):
        for i in range(2):
            stride = 2 if stage > 0 and i == 0 else 1
            x = g.block(x, f"stage{stage}.{i}", channels, width, stride)
            channels = width
    return g.classifier(x, "resnet18", 512, 1000)
