"""MobileNetV2 as an ONNX file with random weights: the architecture of the paper (Sandler et al., 2018) in the usual inference form."""

import numpy as np
from onnx import numpy_helper
from resnet18 import Graph

#: Widening, channels, blocks and the first block's stride of each stage.
STAGES = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]


def clipped(g, x, name):
    """Numbers below nothing and above six are cut off."""
    return g.node("Clip", [x, "zero", "six"], name)


def block(g, x, name, channels_in, channels, widening, stride):
    inner, y = channels_in * widening, x
    if widening != 1:
        y = clipped(g, g.conv_bn(y, f"{name}.wide", channels_in, inner, 1, 1), f"{name}.wide.clip")
    y = clipped(g, g.conv_bn(y, f"{name}.depth", inner, inner, 3, stride, group=inner), f"{name}.depth.clip")
    y = g.conv_bn(y, f"{name}.narrow", inner, channels, 1, 1)
    return g.node("Add", [x, y], f"{name}.add") if stride == 1 and channels_in == channels else y


def build(seed=2):
    """The model; batch, height and width are symbolic."""
    g = Graph(seed)
    g.weights += [numpy_helper.from_array(np.array(value, "float32"), name) for name, value in (("zero", 0), ("six", 6))]
    x = clipped(g, g.conv_bn("x", "stem", 3, 32, 3, 2), "stem.clip")
    channels = 32
    for stage, (widening, width, blocks, stride) in enumerate(STAGES):
        for i in range(blocks):
            x = block(g, x, f"stage{stage}.{i}", channels, width, widening, stride if i == 0 else 1)
            channels = width
    x = clipped(g, g.conv_bn(x, "head", channels, 1280, 1, 1), "head.clip")
    return g.classifier(x, "mobilenetv2", 1280, 1000)
