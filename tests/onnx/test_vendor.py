"""Quantized operators and those of ONNX Runtime give what ONNX Runtime gives, with fixed and with symbolic dimensions."""

import numpy as np
import pytest
from one_node import Case, Random, check, fixed, model_of, number, ours

RANDOM = Random(3)
RNG, reals, ints = RANDOM.rng, RANDOM.reals, RANDOM.ints


# Signed weights. Where a processor has no instructions for it (VNNI), ONNX Runtime adds two products of uint8 and int8 in
# 16 bits, and what does not fit there is wrong.
SEVEN_BITS = {"dtype": "int8", "low": -64, "high": 64}


def quantized_lstms():
    """LSTMs with weights in 8 bits: sizes, directions, scales for each column, biases and states."""
    inputs, hidden = 5, 6
    for steps, batch, directions, dtype, columns, state in [
        (1, 1, 1, "int8", False, False),
        (7, 1, 1, "int8", True, True),
        (7, 3, 2, "uint8", False, True),
        (3, 2, 2, "int8", True, False),
    ]:
        kind = SEVEN_BITS if dtype == "int8" else {}
        each = [directions, 4 * hidden] if columns else [directions]
        weights = [fixed(ints(directions, n, 4 * hidden, **kind)) for n in (inputs, hidden)]
        scales = [fixed(RNG.uniform(0.004, 0.01, each).astype("float32")) for _ in weights]
        zeros = [fixed(np.full(each, 0 if dtype == "int8" else 120, dtype)) for _ in weights]
        bias = fixed(reals(directions, 8 * hidden, size=0.3)) if state else None
        states = [reals(directions, batch, hidden, size=0.5) for _ in range(2)] if state else [None, None]
        given = [reals(steps, batch, inputs), *weights, bias, None, *states, None, scales[0], zeros[0], scales[1], zeros[1]]
        attrs = {"hidden_size": hidden, "direction": "bidirectional" if directions == 2 else "forward"}
        yield Case("DynamicQuantizeLSTM", given, attrs, outputs=3)


X = reals(2, 3, 8)
U8 = ints(2, 3, 8)
ROW = fixed(reals(8))
Z = number(120, "uint8")
SCALE = number(0.05)
IMAGE = ints(1, 4, 7, 9)
HIDDEN = reals(2, 6, 8)
ONNX = {"domain": ""}


def quantized(x, zero=128, scale=0.02):
    return [x, number(scale), number(zero, x.dtype)]


CASES = [
    Case("QuantizeLinear", [X, SCALE, Z], **ONNX),
    Case("QuantizeLinear", [X, number(0.05), number(3, "int8")], **ONNX),
    Case("QuantizeLinear", [X, fixed([0.1, 0.2, 0.3], "float32"), fixed([1, 100, 200], "uint8")], {"axis": 1}, **ONNX),
    Case("QuantizeLinear", [X, number(0.001), number(30000, "uint16")], **ONNX),
    Case("QuantizeLinear", [X, fixed(np.abs(reals(2, 3, 2)) + 0.1), fixed(ints(2, 3, 2))], {"axis": 2, "block_size": 4}, **ONNX),
    Case("DequantizeLinear", [U8, SCALE, Z], **ONNX),
    Case("DequantizeLinear", [U8, fixed([0.1, 0.2, 0.3], "float32"), fixed([1, 100, 200], "uint8")], {"axis": 1}, **ONNX),
    Case("DequantizeLinear", [U8, fixed(reals(2, 3, 2)), fixed(ints(2, 3, 2))], {"axis": 2, "block_size": 4}, **ONNX),
    Case("DequantizeLinear", [ints(4, 5, dtype="int32", low=-900, high=900), number(0.1)], **ONNX),
    Case("DynamicQuantizeLinear", [X], outputs=3, **ONNX),
    Case("DynamicQuantizeLinear", [np.abs(X)], outputs=3, **ONNX),
    Case("MatMulInteger", [ints(2, 3, 8), fixed(ints(8, 5)), number(12, "uint8"), number(100, "uint8")], **ONNX),
    Case("MatMulInteger", [ints(3, 8), fixed(ints(8, 5, **SEVEN_BITS))], **ONNX),
    Case("ConvInteger", [IMAGE, fixed(ints(6, 4, 3, 3)), number(12, "uint8"), number(100, "uint8")], {"pads": [1, 1, 1, 1]}, **ONNX),
    Case("QLinearMatMul", [*quantized(ints(2, 3, 8)), *quantized(fixed(ints(8, 5))), number(0.1), number(120, "uint8")], steps=1, **ONNX),
    Case("QLinearConv", [*quantized(IMAGE), *quantized(fixed(ints(6, 4, 3, 3))), number(0.1), number(120, "uint8"), fixed(ints(6, dtype="int32"))], {"pads": [1, 1, 1, 1], "strides": [2, 2]}, steps=1, **ONNX),
    Case("QLinearConv", [*quantized(IMAGE), fixed(ints(6, 2, 3, 3, **SEVEN_BITS)), fixed(np.abs(reals(6)) * 0.02 + 0.01), fixed(np.zeros(6, "int8")), number(0.2), number(120, "uint8")], {"group": 2}, steps=1, **ONNX),
    Case("BiasGelu", [X, ROW]),
    Case("FastGelu", [X, ROW]),
    Case("FastGelu", [X]),
    Case("Gelu", [X]),
    Case("QuickGelu", [X], {"alpha": 1.3}),
    Case("SkipLayerNormalization", [X, reals(2, 3, 8), ROW, fixed(reals(8)), fixed(reals(8))], {"epsilon": 1e-5}),
    Case("SkipLayerNormalization", [X, reals(2, 3, 8), ROW], outputs=4),
    Case("SkipSimplifiedLayerNormalization", [X, reals(2, 3, 8), ROW], outputs=4),
    Case("SimplifiedLayerNormalization", [X, ROW], {"axis": -1, "epsilon": 1e-6}, domain="", opset=17),
    Case("EmbedLayerNormalization", [ints(2, 5, dtype="int32", high=10), ints(2, 5, dtype="int32", high=2), fixed(reals(10, 8)), fixed(reals(9, 8)), fixed(reals(2, 8)), ROW, fixed(reals(8)), fixed(np.ones((2, 5), "int32"))], outputs=2),
    Case("FusedMatMul", [reals(2, 8, 3), reals(2, 5, 8)], {"transA": 1, "transB": 1, "alpha": 0.5}),
    Case("FusedConv", [reals(1, 4, 7, 9), fixed(reals(6, 4, 3, 3)), fixed(reals(6))], {"activation": "Relu", "pads": [1, 1, 1, 1]}),
    Case("FusedConv", [reals(1, 4, 7, 9), fixed(reals(6, 4, 3, 3))], {"activation": "LeakyRelu", "activation_params": [0.2]}),
    Case("FusedGemm", [reals(3, 8), fixed(reals(5, 8)), fixed(reals(5))], {"transB": 1, "activation": "Relu"}),
    Case("MatMulIntegerToFloat", [ints(3, 8), fixed(ints(8, 5)), number(0.02), number(0.03), number(12, "uint8"), number(90, "uint8"), fixed(reals(5))]),
    *quantized_lstms(),
    Case("DynamicQuantizeMatMul", [reals(3, 8), fixed(ints(8, 5)), number(0.03), number(90, "uint8"), fixed(reals(5))]),
    Case("MatMulNBits", [reals(2, 3, 64), fixed(ints(5, 4, 8)), fixed(reals(20))], {"K": 64, "N": 5, "bits": 4, "block_size": 16}),
    Case("MatMulNBits", [reals(3, 64), fixed(ints(5, 4, 8)), fixed(reals(20)), fixed(ints(10))], {"K": 64, "N": 5, "bits": 4, "block_size": 16}),
    Case("MatMulNBits", [reals(2, 3, 64), fixed(ints(21, 4, 8)), fixed(reals(84))], {"K": 64, "N": 21, "bits": 4, "block_size": 16, "accuracy_level": 4}, tolerance=2e-3),
    Case("MatMulNBits", [reals(3, 96), fixed(ints(5, 3, 16)), fixed(reals(15)), fixed(ints(10)), None, fixed(reals(5))], {"K": 96, "N": 5, "bits": 4, "block_size": 32, "accuracy_level": 4}, tolerance=2e-3),
    Case("QGemm", [*quantized(ints(3, 8)), *quantized(fixed(ints(8, 5))), fixed(ints(5, dtype="int32")), number(0.1), number(120, "uint8")], steps=1),
    Case("QGemm", [*quantized(ints(3, 8)), *quantized(fixed(ints(5, 8))), fixed(ints(5, dtype="int32"))], {"transB": 1, "alpha": 2.0}),
    Case("QGemm", [*quantized(ints(8, 3)), *quantized(fixed(ints(5, 8)))], {"transA": 1, "transB": 1}),
    Case("QLinearAdd", [*quantized(ints(2, 3, 8)), *quantized(ints(8)), number(0.03), Z], steps=1),
    Case("QLinearMul", [*quantized(ints(2, 3, 8)), *quantized(ints(8)), number(0.03), Z], steps=1),
    Case("QLinearSigmoid", [*quantized(U8), number(0.004), number(0, "uint8")], steps=1),
    Case("QLinearLeakyRelu", [*quantized(U8), number(0.02), Z], {"alpha": 0.1}, steps=1),
    Case("QLinearSoftmax", [*quantized(U8), number(0.004), number(0, "uint8")], {"axis": -1, "opset": 13}, steps=1),
    Case("QLinearGlobalAveragePool", [*quantized(IMAGE), number(0.02), Z], {"channels_last": 0}, steps=1),
    Case("QLinearAveragePool", [*quantized(IMAGE), number(0.02), Z], {"kernel_shape": [3, 3], "strides": [2, 2]}, steps=1),
    Case("QLinearConcat", [number(0.03), Z, *quantized(ints(2, 3, 8)), *quantized(ints(2, 3, 8), 100, 0.05)], {"axis": 1}, steps=1),
    Case("Attention", [HIDDEN, fixed(reals(8, 24)), fixed(reals(24))], {"num_heads": 2}),
    Case("Attention", [HIDDEN, fixed(reals(8, 24)), fixed(reals(24)), np.array([[1, 1, 1, 1, 0, 0], [1, 1, 1, 1, 1, 1]], "int32")], {"num_heads": 2}),
    Case("Attention", [HIDDEN, fixed(reals(8, 24)), fixed(reals(24)), np.array([4, 6], "int32")], {"num_heads": 2}),
    Case("Attention", [HIDDEN, fixed(reals(8, 24)), fixed(reals(24))], {"num_heads": 2, "unidirectional": 1}),
    Case("Attention", [HIDDEN, fixed(reals(8, 24)), fixed(reals(24)), None, reals(2, 2, 2, 3, 4)], {"num_heads": 2}, outputs=2),
    Case("MultiHeadAttention", [HIDDEN, reals(2, 5, 8), reals(2, 5, 8)], {"num_heads": 2}),
    Case("MultiHeadAttention", [HIDDEN, reals(2, 6, 8), reals(2, 6, 8), fixed(reals(24))], {"num_heads": 2, "scale": 0.3}, outputs=3),
    Case("MultiHeadAttention", [HIDDEN, reals(2, 5, 8), reals(2, 5, 8), None, None, reals(1, 2, 6, 5)], {"num_heads": 2}),
    Case("QAttention", [ints(2, 6, 8), fixed(ints(8, 24)), fixed(reals(24)), number(0.02), number(0.03), None, number(120, "uint8"), number(110, "uint8")], {"num_heads": 2}),
    Case("QAttention", [ints(2, 6, 8), fixed(ints(8, 24, **SEVEN_BITS)), fixed(reals(24)), number(0.02), number(0.03), np.array([4, 6], "int32"), number(120, "uint8"), number(0, "int8")], {"num_heads": 2, "unidirectional": 1}),
    Case("QAttention", [ints(2, 6, 8), fixed(ints(8, 24)), fixed(reals(24)), number(0.01), number(0.01), None, number(120, "uint8"), number(110, "uint8"), reals(2, 2, 2, 3, 4)], {"num_heads": 2, "unidirectional": 1}, outputs=2),
    Case("MatMulNBits", [reals(2, 3, 64), fixed(ints(5, 4, 8)), fixed(reals(20)), None, fixed(RNG.permutation(64) // 16, "int32")], {"K": 64, "N": 5, "bits": 4, "block_size": 16}),
    Case("Trilu", [reals(2, 5, 6)]),
    Case("Trilu", [reals(5, 6), number(2, "int64")], {"upper": 0}),
    Case("Trilu", [ints(3, 5, 5, dtype="int64"), number(-1, "int64")], {"upper": 1}),
    Case("Pad", [reals(2, 3, 8), fixed([0, 1, 2, 1, 0, 3], "int64"), number(0.5)]),
    Case("Pad", [reals(2, 3, 8), fixed([0, 1, 2, 1, 0, 3], "int64")], {"mode": "reflect"}),
    Case("Pad", [reals(2, 3, 8), fixed([0, -1, 2, 1, 0, -3], "int64"), number(0.5)], {"mode": "edge"}),
    Case("Unique", [ints(30, high=9).astype("float32")], outputs=3),
    Case("Unique", [ints(1).astype("float32")], outputs=3),
    Case("Inverse", [reals(3, 4, 4)]),
    Case("Inverse", [reals(2, 3, 5, 5)]),
    Case("Inverse", [np.array([[0, 2], [4, 0]], "float32")]),
    Case("Inverse", [reals(1, 1)]),
    Case("Inverse", [reals(2, 9, 9).astype("float64")]),
    Case("RotaryEmbedding", [reals(2, 6, 8), fixed([0], "int64"), fixed(reals(10, 2)), fixed(reals(10, 2))], {"num_heads": 0}),
    Case("RotaryEmbedding", [reals(2, 6, 8), np.tile(np.arange(6), (2, 1)), fixed(reals(10, 2)), fixed(reals(10, 2))], {"interleaved": 1}),
]


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_agrees_with_onnx_runtime(case, symbolic):
    check(case, symbolic)


def test_products_of_eight_full_bits_are_exact():
    x, w = ints(30, 80, high=256), ints(80, 7, dtype="int8", low=-128, high=128)
    model, feed = model_of(Case("MatMulInteger", [x, fixed(w)], **ONNX), False)
    (got,) = ours(model, feed)
    np.testing.assert_array_equal(got, x.astype("int32") @ w.astype("int32"))


def test_zeros_of_reordered_blocks_are_those_of_their_group():
    # ONNX Runtime takes 8 for every zero where blocks are reordered.
    x, packed, scales, zeros, groups = reals(3, 64), ints(5, 4, 8), reals(20), ints(10), RNG.integers(0, 4, 64).astype("int32")
    inputs = [x, *map(fixed, (packed, scales, zeros, groups))]
    model, feed = model_of(Case("MatMulNBits", inputs, {"K": 64, "N": 5, "bits": 4, "block_size": 16}), False)

    def nibbles(a, columns):
        return np.stack([a & 15, a >> 4], -1).reshape(5, columns).astype("float32")

    weight = (nibbles(packed, 64) - nibbles(zeros, 4)[:, groups]) * scales.reshape(5, 4)[:, groups]
    (got,) = ours(model, feed)
    np.testing.assert_allclose(got, x @ weight.T, rtol=1e-4, atol=1e-4)
