"""Operators that are computed by another way than their definition says, beside their definitions.

Many calls are nodes of one model, which is compiled once.
"""

import os

import numpy as np
import pytest
from onnx import TensorProto as T
from onnx import helper

from many_nodes import Nodes

# Short ones, products of small factors, powers, primes that have a matrix, primes that are too long for one, and their doubles.
LENGTHS = [1, 2, 3, 7, 10, 60, 64, 65, 96, 97, 100, 128, 131, 243, 257, 263, 400, 480, 512, 526, 625, 1000, 1024, 1031, 2048, 4096]


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
def test_fourier_transforms_are_what_numpy_says(named):
    rng = np.random.default_rng(0)
    m = Nodes()
    # A length that the program computes is transformed as it is written, quadratic in the length.
    for place, n in enumerate(LENGTHS if not named else [n for n in LENGTHS if n <= 131]):
        # Of long ones every second is of complex numbers, and the others of real ones.
        for parts in (1, 2) if n <= 100 or named or os.environ.get("RELAXIDE_DEEP") else (1 + place % 2,):
            x = rng.standard_normal((2, 3, n, parts)).astype("float32")
            signal = x[..., 0] + (1j * x[..., 1] if parts == 2 else 0)
            name = m.value(x, [2, 3, f"n{n}_{parts}" if named else n, parts])
            for inverse in (0, 1):
                spectrum = np.fft.ifft(signal) if inverse else np.fft.fft(signal)
                m.node("DFT", [name, "", m.weight(np.int64(2))], [1], [spectrum], inverse=inverse)
            if parts == 1:
                m.node("DFT", [name, "", m.weight(np.int64(2))], [1], [np.fft.rfft(signal)], onesided=1)
        if not named:
            longer, shorter = n + 5, max(n - 3, 1)
            for length in (longer, shorter):
                m.node("DFT", [name, m.weight(np.int64(length)), m.weight(np.int64(2))], [1], [np.fft.fft(signal, length)])
            half = rng.standard_normal((2, n // 2 + 1, 2)).astype("float32")
            # What stands in the middle and at the beginning of a real signal's spectrum is real.
            half[:, 0, 1] = half[:, -1, 1] = 0
            spectrum = half[..., 0] + 1j * half[..., 1]
            expected = np.fft.irfft(spectrum, 2 * (n // 2)) if n > 1 else None
            if expected is not None:
                m.node("DFT", [m.value(half), "", m.weight(np.int64(1))], [1], [expected], inverse=1, onesided=1)
    for got, expected in zip(m.run(), m.expected, strict=True):
        values = got[..., 0] + 1j * got[..., 1] if got.shape[-1] == 2 else got[..., 0]
        assert values.shape == expected.shape
        np.testing.assert_allclose(values, expected, atol=2e-6 * max(np.abs(expected).max(), 1), rtol=0)


def test_transforms_along_other_axes_and_in_double_precision():
    rng = np.random.default_rng(1)
    m = Nodes()
    x = rng.standard_normal((200, 5, 2))
    name = m.value(x)
    for axis in (0, 1):
        expected = np.fft.fft(x[..., 0] + 1j * x[..., 1], axis=axis)
        m.node("DFT", [name, "", m.weight(np.int64(axis))], [T.DOUBLE], [expected])
    for got, expected in zip(m.run(), m.expected, strict=True):
        np.testing.assert_allclose(got[..., 0] + 1j * got[..., 1], expected, atol=1e-11)


def transposed_calls(rng, count):
    for _ in range(count):
        n = int(rng.choice([1, 1, 2, 2, 2, 3]))
        most = {1: 17, 2: 9, 3: 4}[n]
        kernel = [int(k) for k in rng.integers(1, most, n)]
        strides = [int(s) for s in rng.integers(1, {1: 9, 2: 5, 3: 3}[n], n)]
        extra = [int(rng.integers(0, s)) for s in strides]
        pads = [int(rng.integers(0, k)) for k in kernel + kernel]
        sizes = [int(s) for s in rng.integers(1, {1: 20, 2: 9, 3: 5}[n], n)]
        out = [(d - 1) * s + k + e - a - b for d, s, k, e, a, b in zip(sizes, strides, kernel, extra, pads[:n], pads[n:])]
        if min(out) < 1:
            continue
        group = int(rng.choice([1, 1, 1, 2]))
        dilations = [int(d) for d in rng.choice([1, 1, 1, 1, 2], n)]
        attributes = {"strides": strides, "pads": pads, "output_padding": extra, "group": group, "dilations": dilations}
        yield sizes, kernel, attributes


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
def test_transposed_convolutions_are_what_they_were(named):
    rng = np.random.default_rng(2 + named)
    m = Nodes()
    for i, (sizes, kernel, attributes) in enumerate(transposed_calls(rng, 60)):
        channels, filters = 2 * int(rng.integers(1, 4)), int(rng.integers(1, 4))
        x = rng.standard_normal((2, channels, *sizes)).astype("float32")
        dims = [2, channels, *(f"d{i}_{a}" for a in range(len(sizes)))] if named else None
        w = rng.standard_normal((channels, filters, *kernel)).astype("float32")
        inputs = [m.value(x, dims), m.weight(w)]
        if i % 3 == 0:
            inputs.append(m.weight(rng.standard_normal(filters * attributes["group"]).astype("float32")))
        if i % 7 == 0:
            inputs[1] = m.value(w)
        m.node("ConvTranspose", inputs, [1], **attributes)
    assert len(m.nodes) > 30
    for node, got, expected in zip(m.nodes, m.run(), m.run_there(), strict=True):
        assert got.shape == expected.shape, node
        np.testing.assert_allclose(got, expected, atol=1e-4, rtol=1e-4, err_msg=str(node))


@pytest.mark.parametrize("named", [False, True], ids=["fixed", "named"])
def test_the_largest_are_those_of_a_sort(named):
    rng = np.random.default_rng(4)
    m = Nodes()
    specials = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], "float32")
    for i, (shape, axis, k) in enumerate(
        [((1, 5000), 1, 50), ((4, 300), 1, 1), ((300, 4), 0, 7), ((2, 40, 3), 1, 19), ((2, 40, 3), 1, 20), ((1, 700), 1, 128), ((1, 700), 1, 129), ((2, 300), 1, 280), ((150, 2), 0, 150), ((3, 1), 1, 1)]
    ):
        for kind in ("distinct", "equal", "special", "integers", "ascending"):
            x = {
                "distinct": lambda: rng.permutation(int(np.prod(shape))).reshape(shape).astype("float32"),
                "equal": lambda: rng.integers(0, 3, shape).astype("float32"),
                "special": lambda: rng.choice(specials, shape),
                "integers": lambda: rng.integers(-(2**62), 2**62, shape),
                "ascending": lambda: np.arange(np.prod(shape)).reshape(shape).astype("float32"),
            }[kind]()
            dims = [f"d{i}_{kind}_{a}" for a in range(len(shape))] if named else None
            name, wanted = m.value(x, dims), m.weight(np.array([k]))
            types = [T.INT64 if kind == "integers" else 1, T.INT64]
            for largest in (0, 1):
                # A stable sort of what is compared: NaN is larger than all numbers, and zeros are equal.
                key = np.where(np.isnan(x), np.inf, x) if x.dtype.kind == "f" else x
                rank = np.isnan(x).astype(int) if x.dtype.kind == "f" else np.zeros(shape, int)
                flip = -1 if largest else 1
                order = np.stack([np.moveaxis(key, axis, -1).reshape(-1, shape[axis]), np.moveaxis(rank, axis, -1).reshape(-1, shape[axis])])
                places = [sorted(range(shape[axis]), key=lambda j: (flip * r[j], flip * v[j]))[:k] for v, r in zip(*order.tolist())]
                places = np.moveaxis(np.array(places).reshape(*np.delete(shape, axis), k), -1, axis)
                m.node("TopK", [name, wanted], types, [np.take_along_axis(x, places, axis), places], axis=axis, largest=largest)
    for got, expected in zip(m.run(), m.expected, strict=True):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"])
def test_elements_of_every_type_are_ordered(dtype):
    rng = np.random.default_rng(6)
    m = Nodes()
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        numbers = rng.integers(-99, 99, 200) / 8
        numbers[::7], numbers[3], numbers[4] = np.finfo(dtype).max, np.finfo(dtype).tiny, -np.inf
    else:
        limits = np.iinfo(dtype)
        numbers = rng.integers(limits.min, limits.max, 200, dtype, endpoint=True)
        numbers[::9], numbers[::11] = limits.min, limits.max
    numbers = numbers.astype(dtype)
    name = m.value(numbers)
    for largest in (0, 1):
        places = sorted(range(200), key=lambda j: -numbers[j].item() if largest else numbers[j].item())
        for k in (5, 130, 200):
            expected = np.array(places[:k])
            kind = helper.np_dtype_to_tensor_dtype(dtype)
            m.node("TopK", [name, m.weight(np.array([k]))], [kind, T.INT64], [numbers[expected], expected], largest=largest)
    for got, expected in zip(m.run(), m.expected, strict=True):
        np.testing.assert_array_equal(got, expected)


def test_convolutions_whose_taps_lie_outside_are_what_they_were():
    rng = np.random.default_rng(5)
    m = Nodes()
    for i in range(60):
        sizes = [int(s) for s in rng.integers(1, 9, 2)]
        kernel = [int(k) for k in rng.integers(1, 6, 2)]
        dilations = [int(d) for d in rng.integers(1, 7, 2)]
        strides = [int(s) for s in rng.integers(1, 4, 2)]
        reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        pads = [int(rng.integers(0, r + 1)) for r in reach * 2]
        if any(s + a + b < r for s, r, a, b in zip(sizes, reach, pads[:2], pads[2:])):
            continue
        group = 1 + i % 2
        x, w = rng.standard_normal((2, 4, *sizes)).astype("float32"), rng.standard_normal((6, 4 // group, *kernel)).astype("float32")
        m.node("Conv", [m.value(x), m.weight(w)], [1], pads=pads, dilations=dilations, strides=strides, group=group)
    # One pixel: a product.
    for shape in ((1, 5, 1, 1), (3, 7, 1, 1), (2, 6, 1)):
        w = rng.standard_normal((4, shape[1], *shape[2:])).astype("float32")
        m.node("Conv", [m.value(rng.standard_normal(shape).astype("float32")), m.weight(w), m.weight(np.ones(4, "float32"))], [1])
    assert len(m.nodes) > 30
    for node, got, expected in zip(m.nodes, m.run(), m.run_there(), strict=True):
        assert got.shape == expected.shape, node
        np.testing.assert_allclose(got, expected, atol=1e-4, rtol=1e-4, err_msg=str(node))
