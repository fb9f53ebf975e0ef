"""Padding that exporters compute in floats, from constants and from `Shape`, as TensorFlow's SAME has it.

Where the image's sides are known, so are those of what is padded: nothing of the arithmetic is left in the program.
"""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from relaxide.relax.frontend.onnx import from_onnx
from relaxide.onnx_backend import RelaxideBackend

RNG = np.random.default_rng(11)


class Nodes:
    """Nodes and constants of a graph, each value named by its number."""

    def __init__(self):
        self.nodes, self.constants = [], []

    def constant(self, value, dtype):
        self.constants.append(numpy_helper.from_array(np.array(value, dtype), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def __call__(self, op, *inputs, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [f"v{len(self.nodes)}"], **attributes))
        return f"v{len(self.nodes) - 1}"

    def along(self, side, window, stride):
        """How many pixels come before and behind a side: `max((ceil(side / stride) - 1) * stride + window - side, 0)`, halved."""
        real = lambda value: self.constant(value, "float32")
        steps = self("Ceil", self("Div", side, real(stride)))
        reach = self("Add", self("Mul", self("Sub", steps, real(1)), real(stride)), real(window))
        both = self("Cast", self("Clip", self("Sub", reach, side), real(0), ""), to=TensorProto.INT64)
        before = self("Div", both, self.constant(2, "int64"))
        return before, self("Sub", both, before)


def same_padded(height, width, window, stride, from_shape):
    """Convolutions behind such padding; the second image's sides are those of the first's result."""
    make = Nodes()
    image, channels = "x", 3
    sides = [make.constant(float(side), "float32") if isinstance(side, int) else None for side in (height, width)]
    for layer in range(2):
        if layer > 0 or from_shape:
            shape = make("Shape", image)
            picked = [make("Gather", shape, make.constant(axis, "int64")) for axis in (2, 3)]
            sides = [make("Cast", side, to=TensorProto.FLOAT) for side in picked]
        (top, bottom), (left, right) = (make.along(side, window, stride) for side in sides)
        vector = lambda value: make("Unsqueeze", value, make.constant([0], "int64"))
        zero = make.constant([0, 0], "int64")
        pads = make("Concat", zero, vector(top), vector(left), zero, vector(bottom), vector(right), axis=0)
        padded = make("Pad", image, pads, make.constant(0, "float32"), mode="constant")
        weight = make.constant(RNG.standard_normal((4, channels, window, window)), "float32")
        image, channels = make("Conv", padded, weight, strides=[stride, stride], kernel_shape=[window, window]), 4
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, height, width])
    result = helper.make_tensor_value_info(image, TensorProto.FLOAT, None)
    graph = helper.make_graph(make.nodes, "same", [given], [result], make.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 8
    return model


def agrees(model, sides):
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    program = RelaxideBackend.prepare(model)
    for height, width in sides:
        x = RNG.standard_normal((1, 3, height, width)).astype("float32")
        (expected,) = session.run(None, {"x": x})
        (got,) = program.run([x])
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("from_shape", [False, True], ids=["constants", "shape"])
@pytest.mark.parametrize("height, width, window, stride", [(15, 16, 3, 2), (9, 23, 5, 3), (8, 8, 1, 2), (17, 12, 4, 1)])
def test_known_sides(height, width, window, stride, from_shape):
    model = same_padded(height, width, window, stride, from_shape)
    agrees(model, [(height, width)])
    main = from_onnx(model)["main"]
    assert "shape_of" not in str(main)
    assert all(isinstance(int(dim), int) for dim in main.ret_ty.shape.values)


@pytest.mark.parametrize("window, stride", [(3, 2), (5, 3), (4, 1)])
def test_named_sides(window, stride):
    model = same_padded("h", "w", window, stride, from_shape=True)
    agrees(model, [(15, 16), (9, 23), (8, 8), (1, 5)])
