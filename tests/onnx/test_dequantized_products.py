"""Products between `DequantizeLinear` and whatever follows are products of integers, with the results of the numbers that the file says."""

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper as h
from onnx import numpy_helper as nh

import relaxide as tvm
from relaxide import relax

RANGES = {"uint8": (0, 256), "int8": (-128, 128)}
CODES = {"uint8": T.UINT8, "int8": T.INT8}


class Network:
    """Nodes, constants and an input, and what each name is in double precision."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.nodes, self.constants, self.inputs = [], [], []

    def constant(self, name, value):
        self.constants.append(nh.from_array(np.asarray(value), name))
        return name

    def value(self, name):
        return nh.to_array(next(constant for constant in self.constants if constant.name == name))

    def integers(self, shape, dtype):
        return self.rng.integers(*RANGES[dtype], shape).astype(dtype)

    def scales(self, shape):
        return (0.01 + self.rng.random(shape)).astype("float32") / 64

    def dequantized(self, name, given, values, axis=None, zeros=True):
        """The name of a dequantized tensor, and its numbers."""
        count = () if axis is None else (values.shape[axis],)
        scale, zero = self.scales(count), self.integers(count, str(values.dtype)) if zeros else np.zeros(count, values.dtype)
        names = [given, self.constant(name + "_scale", scale), self.constant(name + "_zero", zero)]
        self.nodes.append(h.make_node("DequantizeLinear", names, [name], axis=1 if axis is None else axis))
        lined = [1] * values.ndim
        if axis is not None:
            lined[axis] = -1
        return name, (values.astype("float64") - zero.reshape(lined if axis is not None else ())) * scale.reshape(lined if axis is not None else ())

    def run(self, output, feeds, functions=(), kind=T.FLOAT):
        infos = [h.make_tensor_value_info(name, CODES[str(value.dtype)], [f"{name}_{i}" if i == 0 else n for i, n in enumerate(value.shape)]) for name, value in feeds.items()]
        graph = h.make_graph(self.nodes, "g", infos, [h.make_tensor_value_info(output, kind, None)], self.constants)
        imports = [h.make_opsetid("", 23), h.make_opsetid("com.microsoft", 1), *(h.make_opsetid(function.domain, 1) for function in functions)]
        model = h.make_model(graph, opset_imports=imports, ir_version=10, functions=functions)
        mod = relax.frontend.onnx.from_onnx(model)
        machine = relax.VirtualMachine(tvm.compile(mod, "llvm"), tvm.cpu())
        return machine["main"](*map(tvm.runtime.tensor, feeds.values())).numpy(), "dot_bytes" in mod.script()


@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("right", RANGES)
@pytest.mark.parametrize("form", ["matmul", "per column", "gemm", "gemm per row", "no zeros"])
def test_matrices(left, right, form):
    net = Network(sum(map(ord, left + right + form)))
    a, is_turned = net.integers((5, 37), left), form.startswith("gemm")
    w = net.integers((19, 37) if is_turned else (37, 19), right)
    x, numbers = net.dequantized("x", "a", a, zeros=form != "no zeros")
    axis = {"per column": 1, "gemm per row": 0}.get(form)
    weight, of_weight = net.dequantized("w", net.constant("wq", w), w, axis, zeros=form != "no zeros")
    if is_turned:
        bias = net.constant("bias", net.rng.standard_normal(19).astype("float32"))
        net.nodes.append(h.make_node("Gemm", [x, weight, bias], ["y"], transB=1, alpha=0.5, beta=2.0))
        expected = 0.5 * numbers @ of_weight.T + 2.0 * nh.to_array(net.constants[-1])
    else:
        net.nodes.append(h.make_node("MatMul", [x, weight], ["y"]))
        expected = numbers @ of_weight
    found, is_integer = net.run("y", {"a": a})
    assert is_integer
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())


@pytest.mark.parametrize("left", RANGES)
@pytest.mark.parametrize("axis", [None, 0])
@pytest.mark.parametrize("kernel, stride, pads", [(1, 1, 0), (3, 1, 1), (3, 2, 1)])
def test_convolutions(left, axis, kernel, stride, pads):
    net = Network(kernel + 10 * stride)
    a, w = net.integers((2, 6, 9, 8), left), net.integers((7, 6, kernel, kernel), "int8")
    x, numbers = net.dequantized("x", "a", a)
    weight, of_weight = net.dequantized("w", net.constant("wq", w), w, axis, zeros=False)
    bias, of_bias = net.rng.integers(-99, 99, 7).astype("int32"), net.scales(())
    names = [net.constant("bq", bias), net.constant("b_scale", of_bias)]
    net.nodes.append(h.make_node("DequantizeLinear", names, ["b"]))
    net.nodes.append(h.make_node("Conv", [x, weight, "b"], ["y"], strides=[stride] * 2, pads=[pads] * 4))
    padded = np.pad(numbers, ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (kernel, kernel), axis=(2, 3))[:, :, ::stride, ::stride]
    expected = np.einsum("nchwij,ocij->nohw", windows, of_weight) + (bias * of_bias)[:, None, None]
    found, is_integer = net.run("y", {"a": a})
    assert is_integer
    np.testing.assert_allclose(found, expected, rtol=2e-6, atol=2e-6 * np.abs(expected).max())


def test_what_integers_do_not_hold_stays_a_product_of_numbers():
    """Sums that leave 32 bits, columns whose scales are not the weight's, and left sides with several scales."""
    net = Network(3)
    a, w = net.integers((2, 33_030), "uint8"), net.integers((33_030, 3), "int8")
    x, numbers = net.dequantized("x", "a", a)
    weight, of_weight = net.dequantized("w", net.constant("wq", w), w)
    net.nodes.append(h.make_node("MatMul", [x, weight], ["y"]))
    found, is_integer = net.run("y", {"a": a})
    assert not is_integer
    np.testing.assert_allclose(found, numbers @ of_weight, rtol=1e-3, atol=1e-3 * np.abs(numbers @ of_weight).max())
    for axes in [(None, 0), (1, None)]:
        net = Network(4)
        a, w = net.integers((4, 8), "uint8"), net.integers((8, 5), "int8")
        x, numbers = net.dequantized("x", "a", a, axes[0])
        weight, of_weight = net.dequantized("w", net.constant("wq", w), w, axes[1])
        net.nodes.append(h.make_node("MatMul", [x, weight], ["y"]))
        found, is_integer = net.run("y", {"a": a})
        assert not is_integer
        np.testing.assert_allclose(found, numbers @ of_weight, rtol=1e-5, atol=1e-5 * np.abs(numbers @ of_weight).max())


def test_functions_of_the_model_may_have_the_name():
    net = Network(5)
    a, w = net.integers((4, 8), "uint8"), net.integers((8, 5), "int8")
    x, numbers = net.dequantized("x", "a", a)
    weight, _ = net.dequantized("w", net.constant("wq", w), w)
    net.nodes[0].domain = net.nodes[1].domain = "mine"
    net.nodes.append(h.make_node("MatMul", [x, weight], ["y"]))
    body = [h.make_node("Cast", ["q"], ["f"], to=T.FLOAT), h.make_node("Add", ["f", "s"], ["y"])]
    function = h.make_function("mine", "DequantizeLinear", ["q", "s", "z"], ["y"], body, [h.make_opsetid("", 23)], ["axis"])
    found, is_integer = net.run("y", {"a": a}, [function])
    assert not is_integer
    added = [nh.to_array(next(c for c in net.constants if c.name == f"{name}_scale")).astype("float64") for name in "xw"]
    np.testing.assert_allclose(found, (a + added[0]) @ (w + added[1]), rtol=1e-5, atol=1e-3)


def test_products_of_float16_stay_what_they_are():
    net = Network(6)
    a, w = net.integers((4, 8), "uint8"), net.integers((8, 5), "int8")
    (x, numbers), (weight, of_weight) = net.dequantized("x", "a", a), net.dequantized("w", net.constant("wq", w), w)
    for node in net.nodes:
        node.attribute.append(h.make_attribute("output_dtype", T.FLOAT16))
    net.nodes.append(h.make_node("MatMul", [x, weight], ["y"]))
    found, is_integer = net.run("y", {"a": a}, kind=T.FLOAT16)
    assert found.dtype == "float16" and not is_integer
    np.testing.assert_allclose(found, numbers @ of_weight, rtol=1e-2, atol=1e-2 * np.abs(numbers @ of_weight).max())


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int16"])
def test_weights_of_other_widths_stay_what_they_are(dtype):
    """Elements of half a byte lie two in a byte."""
    net = Network(7)
    a, w = net.integers((4, 8), "uint8"), net.rng.integers(0, 8, (5, 8))
    x, numbers = net.dequantized("x", "a", a)
    kind = getattr(T, dtype.upper())
    net.constants.append(h.make_tensor("wq", kind, w.shape, w.ravel().tolist()))
    net.nodes.append(h.make_node("DequantizeLinear", ["wq", net.constant("w_scale", np.float32(0.5))], ["w"]))
    net.nodes.append(h.make_node("Gemm", [x, "w"], ["y"], transB=1))
    found, is_integer = net.run("y", {"a": a})
    assert not is_integer
    np.testing.assert_allclose(found, numbers @ (w * 0.5).T, rtol=1e-5, atol=1e-4)


def test_gemm_is_of_matrices():
    net = Network(8)
    a, w = net.integers((2, 4, 8), "uint8"), net.integers((5, 8), "int8")
    (x, _), (weight, _) = net.dequantized("x", "a", a), net.dequantized("w", net.constant("wq", w), w)
    net.nodes.append(h.make_node("Gemm", [x, weight], ["y"], transB=1))
    with pytest.raises(Exception, match="an input is not a matrix"):
        net.run("y", {"a": a})
