"""Products and sums between `DequantizeLinear` and `QuantizeLinear` are those of `QLinearConv`, `QLinearMatMul`, `QLinearAdd` and `QLinearMul`: the same
integers, and a step at most from the numbers that the file says."""

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from test_dequantized_products import CODES, RANGES, Network

KERNELS = {"pixel": (1, 1, 1, 0), "window": (3, 1, 1, 1), "stride": (3, 1, 2, 1), "groups": (3, 2, 1, 1), "depthwise": (3, 6, 1, 1)}


def least(dtype):
    return np.iinfo(dtype).min


def steps_apart(found, expected, scale, zero, dtype):
    """How many steps results lie from what numbers are rounded to, at most."""
    limits = np.iinfo(dtype)
    exact = np.clip(np.rint(expected / scale) + int(zero), limits.min, limits.max)
    return np.abs(found.astype("int64") - exact).max()


def convolved(net, left, out, kind, form):
    """The nodes, the input, the numbers of the sum, and the same in one node."""
    kernel, groups, stride, pads = KERNELS[kind]
    a, w = net.integers((2, 6, 9, 8), left), net.integers((6, 6 // groups, kernel, kernel), "int8")
    x, numbers = net.dequantized("x", "a", a)
    weight, of_weight = net.dequantized("w", net.constant("wq", w), w, 0, zeros=False)
    attributes = dict(strides=[stride] * 2, pads=[pads] * 4, group=groups)
    scale_x, scale_w = (net.value(name) for name in ("x_scale", "w_scale"))
    bias = net.rng.integers(-999, 999, 6).astype("int32")
    of_bias = (scale_x * scale_w).astype("float32") * np.float32(2 if form == "other bias" else 1)
    net.nodes.append(h.make_node("DequantizeLinear", [net.constant("bq", bias), net.constant("b_scale", of_bias)], ["b"], axis=0))
    net.nodes.append(h.make_node("Conv", [x, weight, "b"], ["sum"], **attributes))
    padded = np.pad(numbers, ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    parts = zip(np.split(windows, groups, axis=1), np.split(of_weight, groups))
    expected = np.concatenate([np.einsum("nchwij,ocij->nohw", image, own) for image, own in parts], axis=1)
    expected = expected + (bias * of_bias.astype("float64"))[:, None, None]
    inputs = ["a", "x_scale", "x_zero", "wq", "w_scale", "w_zero", "y_scale", "y_zero", "bq"]
    return a, expected, h.make_node("QLinearConv", inputs, ["y"], **attributes)


def multiplied(net, left, out, kind, form):
    a, w = net.integers((5, 37), left), net.integers((37, 19), kind)
    x, numbers = net.dequantized("x", "a", a)
    weight, of_weight = net.dequantized("w", net.constant("wq", w), w)
    net.nodes.append(h.make_node("MatMul", [x, weight], ["sum"]))
    return a, numbers @ of_weight, h.make_node("QLinearMatMul", ["a", "x_scale", "x_zero", "wq", "w_scale", "w_zero", "y_scale", "y_zero"], ["y"])


def compared(seed, left, out, make, kind, form):
    """What both ways give, and how many steps the first lies from the numbers."""
    net = Network(seed)
    a, expected, node = make(net, left, out, kind, form)
    clipped = form in ("relu", "relu of signed")
    zero = np.array(least(out) if clipped else net.rng.integers(*RANGES[out]), out)
    if form == "relu of signed":
        zero = np.array(least(out) + 3, out)
    scale = np.float32(np.abs(expected).max() / 100)
    given = [net.constant("y_scale", scale), net.constant("y_zero", zero)]
    last = "sum"
    if clipped:
        net.nodes.append(h.make_node("Relu", ["sum"], ["positive"]))
        last, expected = "positive", np.maximum(expected, 0)
    net.nodes.append(h.make_node("QuantizeLinear", [last, *given], ["y"]))
    found, _ = net.run("y", {"a": a}, kind=CODES[out])
    net.nodes = [node]
    same, _ = net.run("y", {"a": a}, kind=CODES[out])
    return found, same, steps_apart(found, expected, scale, zero, out)


FORMS = ["plain", "relu", "relu of signed", "other bias"]


@pytest.mark.parametrize("out", RANGES)
@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("form", FORMS)
def test_convolutions(form, kind, left, out):
    seed = list(KERNELS).index(kind) + 10 * FORMS.index(form)
    found, same, steps = compared(seed, left, out, convolved, kind, form)
    assert found.dtype == out and steps <= 1
    # With a `Relu` the node alone has what is below zero; where it is no such product, the way of the file is taken.
    if form in ("plain", "relu"):
        assert np.array_equal(found, same)


@pytest.mark.parametrize("out", RANGES)
@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("right", RANGES)
def test_matrices(right, left, out):
    found, same, steps = compared(3, left, out, multiplied, right, "plain")
    assert found.dtype == out and steps <= 1 and np.array_equal(found, same)


BY_ELEMENT = {"Add": ("QLinearAdd", np.add), "Mul": ("QLinearMul", np.multiply)}
SHAPES = {"equal": [(3, 5, 7), (3, 5, 7)], "broadcast": [(3, 5, 7), (5, 1)]}


def by_element(op, shapes):
    def make(net, left, out, right, form):
        """The nodes, the input, the numbers, and the same in one node."""
        a, b = (net.integers(shape, dtype) for shape, dtype in zip(SHAPES[shapes], (left, right)))
        x, numbers = net.dequantized("x", "a", a)
        y, others = net.dequantized("w", net.constant("wq", b), b)
        net.nodes.append(h.make_node(op, [x, y], ["sum"]))
        inputs = ["a", "x_scale", "x_zero", "wq", "w_scale", "w_zero", "y_scale", "y_zero"]
        return a, BY_ELEMENT[op][1](numbers, others), h.make_node(BY_ELEMENT[op][0], inputs, ["y"], domain="com.microsoft")

    return make


@pytest.mark.parametrize("out", RANGES)
@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("right", RANGES)
@pytest.mark.parametrize("shapes", SHAPES)
@pytest.mark.parametrize("op", BY_ELEMENT)
@pytest.mark.parametrize("form", ["plain", "relu", "relu of signed"])
def test_sums_and_products_by_element(form, op, shapes, right, left, out):
    found, same, steps = compared(5 + list(SHAPES).index(shapes), left, out, by_element(op, shapes), right, form)
    assert found.dtype == out and steps <= 1
    if form != "relu of signed":
        assert np.array_equal(found, same)


def test_others_still_read_the_numbers():
    """The sum is an output, too, and integers have 16 bits."""
    net = Network(9)
    a, expected, _ = multiplied(net, "uint8", "uint8", "int8", "plain")
    scale = np.float32(np.abs(expected).max() / 100)
    net.nodes.append(h.make_node("QuantizeLinear", ["sum", net.constant("y_scale", scale), net.constant("y_zero", np.array(7, "uint16"))], ["q"]))
    net.nodes.append(h.make_node("DequantizeLinear", ["q", "y_scale", "y_zero"], ["back"]))
    net.nodes.append(h.make_node("QuantizeLinear", ["sum", "y_scale", net.constant("y_zero8", np.array(7, "uint8"))], ["q8"]))
    net.nodes.append(h.make_node("DequantizeLinear", ["q8", "y_scale", "y_zero8"], ["back8"]))
    net.nodes.append(h.make_node("Sum", ["sum", "back", "back8"], ["y"]))
    found, _ = net.run("y", {"a": a}, kind=T.FLOAT)
    bounded = [np.clip(np.rint(expected / scale) + 7, 0, most) - 7 for most in (65535, 255)]
    np.testing.assert_allclose(found, expected + (bounded[0] + bounded[1]) * scale, atol=2.01 * scale)
