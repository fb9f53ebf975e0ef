"""Products of 8-bit integers by words of four bytes: exact for every sign, zero point and length, by every instruction that there is."""

import itertools

import numpy as np
import onnx
import pytest
import relaxide as tvm
from onnx import TensorProto, helper, numpy_helper

TYPES = {"uint8": TensorProto.UINT8, "int8": TensorProto.INT8, "int32": TensorProto.INT32}
TARGETS = ["llvm", "llvm -mcpu=x86-64-v4", "llvm -mcpu=x86-64-v3", "llvm -mcpu=x86-64-v2"]


def runnable():
    """Targets whose code this machine runs."""
    with open("/proc/cpuinfo") as info:
        flags = next((set(line.split()) for line in info if line.startswith("flags")), set())
    needed = {"v4": "avx512vl", "v3": "avx2", "v2": "sse4_2"}
    return [t for t in TARGETS if needed.get(t[-2:], "sse2") in flags or t == "llvm"]


def run(op, x, dims, constants, target, out="int32", **attributes):
    """What a node gives whose first input is `x` and whose others are constants; `dims` are those of the model."""
    names = ["x"] + [f"c{i}" if c is not None else "" for i, c in enumerate(constants)]
    weights = [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(constants) if c is not None]
    node = helper.make_node(op, names, ["y"], **attributes)
    inputs = [helper.make_tensor_value_info("x", TYPES[str(x.dtype)], dims)]
    outputs = [helper.make_tensor_value_info("y", TYPES[out], None)]
    graph = helper.make_graph([node], "g", inputs, outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    module = tvm.relax.frontend.onnx.from_onnx(onnx.load_from_string(model.SerializeToString()))
    vm = tvm.relax.VirtualMachine(tvm.compile(module, target=target), tvm.cpu())
    return vm["main"](tvm.runtime.tensor(x)).numpy()


def numbers(rng, dtype, *shape):
    """Numbers of all sizes, the extremes among them."""
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, shape)
    pick = rng.integers(0, 6, shape)
    return np.where(pick == 0, limits.min, np.where(pick == 1, limits.max, x)).astype(dtype)


def zero(rng, dtype, kind, length):
    """A zero point: none, one number, or one for each place."""
    if kind == "none":
        return None
    return numbers(rng, dtype, length) if kind == "each" else numbers(rng, dtype, 1).reshape(())


def less(x, zero_point):
    return x.astype(np.int64) - (0 if zero_point is None else zero_point.astype(np.int64))


CASES = list(itertools.product(["uint8", "int8"], ["uint8", "int8"], range(6)))


@pytest.mark.parametrize("left, right, seed", CASES)
def test_products_of_matrices_are_exact(left, right, seed):
    rng = np.random.default_rng([seed, left == "int8", right == "int8"])
    rows, inner, columns = (int(rng.choice(c)) for c in ([1, 2, 9, 40], [1, 3, 4, 7, 32, 65], [1, 5, 16, 37, 130]))
    a, b = numbers(rng, left, rows, inner), numbers(rng, right, inner, columns)
    za = zero(rng, left, rng.choice(["none", "one", "each"]), rows)
    zb = zero(rng, right, rng.choice(["none", "one", "each"]), columns)
    lined = za if za is None or za.ndim == 0 else za.reshape(-1, 1)
    wanted = less(a, lined) @ less(b, zb)
    dims = [("m" if seed % 2 and (za is None or za.ndim == 0) else rows), inner]
    targets = runnable()
    got = run("MatMulInteger", a, dims, [b, za, zb], targets[seed % len(targets)])
    np.testing.assert_array_equal(got, wanted.astype(np.int32))


@pytest.mark.parametrize("target", runnable())
def test_the_largest_sums_do_not_saturate(target):
    a, b = np.full((9, 260), 255, "uint8"), np.full((260, 40), -128, "int8")
    a[:, ::2] = 254
    np.testing.assert_array_equal(run("MatMulInteger", a, [9, 260], [b], target), a.astype(int) @ b.astype(int))


def windows(x, weight, strides, pads, dilations):
    """A convolution of integers, padded with zeros."""
    top, left, bottom, right = pads
    x = np.pad(x, [(0, 0), (0, 0), (top, bottom), (left, right)])
    (sy, sx), (dy, dx), (kh, kw) = strides, dilations, weight.shape[2:]
    height = (x.shape[2] - (kh - 1) * dy - 1) // sy + 1
    width = (x.shape[3] - (kw - 1) * dx - 1) // sx + 1
    sums = np.zeros((x.shape[0], weight.shape[0], height, width), np.int64)
    for ky, kx in np.ndindex(kh, kw):
        part = x[:, :, ky * dy : ky * dy + (height - 1) * sy + 1 : sy, kx * dx : kx * dx + (width - 1) * sx + 1 : sx]
        sums += np.einsum("nchw,fc->nfhw", part, weight[:, :, ky, kx])
    return sums


@pytest.mark.parametrize("left, right, seed", CASES)
def test_convolutions_are_exact(left, right, seed):
    rng = np.random.default_rng([seed, left == "int8", right == "int8", 7])
    channels, filters, kernel = (int(rng.choice(c)) for c in ([3, 4, 8, 13], [1, 6, 17], [1, 1, 3, 5]))
    check_convolution(rng, left, right, seed, channels, filters, kernel)


@pytest.mark.parametrize("left, right, seed", CASES)
def test_convolutions_whose_filters_lie_in_panels_are_exact(left, right, seed):
    rng = np.random.default_rng([seed, left == "int8", right == "int8", 11])
    channels, kernel = [(115, 3), (1030, 1), (41, 5)][seed % 3]
    check_convolution(rng, left, right, seed, channels, int(rng.choice([32, 62, 130])), kernel)


def check_convolution(rng, left, right, seed, channels, filters, kernel):
    stride, dilation = int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2]))
    pads = [int(n) for n in rng.integers(0, 3, 4)] if seed % 2 else [0] * 4
    height, width = (int(n) for n in rng.integers((kernel - 1) * dilation + 1, 24, 2))
    x, w = numbers(rng, left, 1, channels, height, width), numbers(rng, right, filters, channels, kernel, kernel)
    zx = zero(rng, left, rng.choice(["none", "one"]), 1)
    zw = zero(rng, right, rng.choice(["none", "one", "each"]), filters)
    lined = zw if zw is None or zw.ndim == 0 else zw.reshape(-1, 1, 1, 1)
    wanted = windows(less(x, zx), less(w, lined), (stride, stride), pads, (dilation, dilation))
    dims = [1, channels, "h" if seed % 3 == 2 else height, width]
    targets = runnable()
    attributes = {"strides": [stride] * 2, "pads": pads, "dilations": [dilation] * 2}
    got = run("ConvInteger", x, dims, [w, zx, zw], targets[seed % len(targets)], **attributes)
    np.testing.assert_array_equal(got, wanted.astype(np.int32))
