"""Operators of ONNX Runtime's set, with random shapes, attributes, element types and optional inputs, give what ONNX Runtime
gives; where it has no kernel for a processor, what the same gives in standard operators. `RELAXIDE_DEEP` draws eight times as many."""

import os
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
from one_node import Case, Random, check, fixed, model_of, number, ours, runtime
from onnx import helper

import relaxide as tvm

SEEDS = range(40 if os.environ.get("RELAXIDE_DEEP") else 5)


def parameters(r, dtype, optional=False, low=0.01, high=0.1):
    """A scale and a zero point, which may be left out."""
    zero = None if optional and r.rng.random() < 0.4 else number(r.bytes(1, dtype=dtype)[0], dtype)
    return [number(r.rng.uniform(low, high)), zero]


def chain(nodes, feed):
    """What ONNX Runtime gives for standard operators one after the other."""
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feed.items()]
    result = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    graph = helper.make_graph(nodes, "g", infos, [result])
    return runtime(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), feed)


def reduce_mean(r):
    """ONNX Runtime has no kernel for it on processors: compared with the three operators that it stands for."""
    dtype = r.one_of("uint8", "int8")
    rank = r.up_to(1, 4)
    shape = [r.up_to(1, 6) for _ in range(rank)]
    count = r.up_to(1, rank)
    axes = [int(a) - r.one_of(0, rank) for a in r.rng.permutation(rank)[:count]]
    attrs = {"axes": axes, "keepdims": r.up_to(0, 1)}
    x = r.bytes(*shape, dtype=dtype)
    inner, outer = parameters(r, dtype, True), parameters(r, dtype, True)

    def reference():
        zeros = [np.array(0, dtype) if zero is None else np.asarray(zero) for _, zero in (inner, outer)]
        feed = {"x": x, "s": np.asarray(inner[0]), "z": zeros[0], "t": np.asarray(outer[0]), "y": zeros[1]}
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "s", "z"], ["a"]),
            helper.make_node("ReduceMean", ["a"], ["b"], **attrs),
            helper.make_node("QuantizeLinear", ["b", "t", "y"], ["c"]),
        ]
        return chain(nodes, feed)

    return Case("QLinearReduceMean", [x, *inner, *outer], attrs, steps=1, reference=reference)


def where(r):
    dtype = r.one_of("uint8", "int8")
    rank = r.up_to(1, 4)
    shape = [r.up_to(2, 5) for _ in range(rank)]

    def part():
        return [1 if r.rng.random() < 0.3 else d for d in shape[r.up_to(0, rank - 1) :]]

    x, y = (r.bytes(*part(), dtype=dtype) for _ in range(2))
    if r.rng.random() < 0.3:
        y = fixed(y)
    condition = r.rng.random(part()) < 0.5
    inputs = [condition, x, *parameters(r, dtype), y, *parameters(r, dtype), *parameters(r, dtype)]
    return Case("QLinearWhere", inputs, steps=1)


def transposed_product(r):
    m, k, n = (r.up_to(1, 9) for _ in range(3))
    a, b = r.up_to(0, 1), r.up_to(0, 1)
    front = [r.up_to(1, 3) for _ in range(r.up_to(0, 2))]
    x = r.reals(*front, *((k, m) if a else (m, k)))
    y = r.reals(*front, *((n, k) if b else (k, n)))
    attrs = {"transA": a, "transB": b} | ({"alpha": r.rng.uniform(-2, 2)} if r.up_to(0, 1) else {})
    return Case("TransposeMatMul", [x, fixed(y) if r.up_to(0, 1) else y], attrs)


def max_pool(r):
    dtype = r.one_of("uint8", "int8")
    axes = r.up_to(1, 3)
    kernel = [r.up_to(1, 3) for _ in range(axes)]
    attrs = {"kernel_shape": kernel}
    if r.up_to(0, 1):
        attrs["strides"] = [r.up_to(1, 3) for _ in range(axes)]
    if r.up_to(0, 1):
        attrs["dilations"] = [r.up_to(1, 2) for _ in range(axes)]
    if r.up_to(0, 1):
        attrs["ceil_mode"] = 1
    if r.up_to(0, 1):
        attrs["pads"] = [r.up_to(0, k - 1) for k in kernel * 2]
    elif not attrs.keys() & {"strides", "dilations"}:
        # How much is padded with strides depends on dimensions, which must be known then.
        attrs["auto_pad"] = r.one_of("SAME_UPPER", "SAME_LOWER", "VALID")
    shape = [r.up_to(1, 2), *[r.up_to(6, 11) for _ in range(axes)], r.up_to(1, 5)]
    return Case("NhwcMaxPool", [r.bytes(*shape, dtype=dtype)], attrs, keep=(1, shape[-1]))


def embedding(r):
    dtype = r.one_of("uint8", "int8")
    batch, length, width = r.up_to(1, 4), r.up_to(1, 7), r.up_to(2, 20)
    tables = [fixed(r.bytes(n, width, dtype=dtype)) for n in (11, 9, 3)]
    norm = [fixed(r.bytes(width, dtype=dtype)) for _ in range(2)]
    segmented, masked = r.up_to(0, 1), r.up_to(0, 1)
    described = [parameters(r, dtype) for _ in range(5)]
    segments = r.ints(batch, length, dtype="int32", high=3) if segmented else None
    if not segmented:
        tables[2], described[2] = None, [None, None]
    mask = r.ints(batch, length, dtype="int32", high=2) if masked else None
    scales, zeros = ([pair[i] for pair in described] for i in (0, 1))
    inputs = [r.ints(batch, length, dtype="int32", high=11), segments, *tables, *norm, mask, *scales, *zeros]
    attrs = {"epsilon": 1e-3} if r.up_to(0, 1) else {}
    return Case("QEmbedLayerNormalization", inputs, attrs, outputs=2, tolerance=1e-4, keep=())


def bits_packed(numbers, bits):
    """Numbers of a few bits along the last axis as bytes, the first of each in its lowest bits."""
    per = 8 // bits
    numbers = np.pad(numbers, [(0, 0)] * (numbers.ndim - 1) + [(0, -numbers.shape[-1] % per)])
    shifted = numbers.reshape(*numbers.shape[:-1], -1, per).astype("int64") << (bits * np.arange(per))
    return shifted.sum(-1).astype("uint8")


def bnb4_product(r):
    """Codes of the two kinds, blocks that end inside of rows."""
    k, n, block = r.up_to(1, 40), r.up_to(1, 9), r.one_of(16, 32, 64)
    rows = [r.up_to(1, 5) for _ in range(r.up_to(1, 2))]
    packed = r.bytes((k * n + 1) // 2)
    largest = np.abs(r.reals((k * n + block - 1) // block))
    attrs = {"K": k, "N": n, "block_size": block, "quant_type": r.up_to(0, 1)}
    return Case("MatMulBnb4", [r.reals(*rows, k), fixed(packed), fixed(largest)], attrs, tolerance=1e-4, keep=(1, k))


def gathered_blocks(r):
    """Bytes of 2, 4 or 8 bits, and 4-bit integers and small floats whose scales lie along any axis."""
    kind = r.one_of("uint8", "uint8", "uint4", "int4", "float8_e4m3fn", "float8_e5m2")
    rank = r.up_to(2, 3)
    bits = r.one_of(2, 4, 8) if kind == "uint8" else 4
    per = 8 // bits if kind == "uint8" else 1
    shape = [r.up_to(2, 5) for _ in range(rank)]
    blocked = rank - 1 if kind == "uint8" else r.up_to(0, rank - 1)
    gathered = 0 if kind == "uint8" else r.up_to(0, rank - 1)
    shape[blocked] = per * r.up_to(16 // per, 80 // per)
    block = r.one_of(16, 32)
    attrs = {"gather_axis": gathered - r.one_of(0, rank), "quantize_axis": blocked, "block_size": block}
    scales = list(shape)
    scales[blocked] = (shape[blocked] + block - 1) // block
    if kind == "uint8":
        attrs["bits"] = bits
        data = bits_packed(r.rng.integers(0, 1 << bits, shape), bits)
        zeros = bits_packed(r.rng.integers(0, 1 << bits, scales), bits)
    else:
        dtype = ml_dtypes.finfo(kind).dtype if "float" in kind else np.dtype(getattr(ml_dtypes, kind))
        low, high = (0, 16) if kind == "uint4" else (-8, 8)
        data, zeros = (r.rng.integers(low, high, s).astype(dtype) for s in (shape, scales))
    zeros = None if "float" in kind or r.up_to(0, 1) else fixed(zeros)
    size = shape[gathered]
    # Some numbers are not those of a row.
    numbers = r.rng.integers(-size - 1, size + 1, [r.up_to(1, 4) for _ in range(r.up_to(0, 2))]).astype(r.one_of("int32", "int64"))
    scale = r.reals(*scales).astype(r.one_of("float32", "float16"))
    case = Case("GatherBlockQuantized", [fixed(data), numbers, fixed(scale), zeros], attrs, keep=(1,))
    if kind in ("uint4", "int4") and r.up_to(0, 1):
        # ONNX Runtime is given such elements in files only.
        model, feed = model_of(case, False)
        return replace(case, inputs=[data, *case.inputs[1:]], reference=lambda: runtime(model, feed))
    return case


def experts(r):
    rows, width, inner, count, k = r.up_to(1, 9), r.up_to(2, 20), r.up_to(2, 12), r.up_to(3, 6), r.up_to(1, 3)
    kind = r.one_of("relu", "gelu", "silu", "identity", "swiglu", "swiglu")
    attrs = {"k": k, "activation_type": kind, "normalize_routing_weights": r.up_to(0, 1)}
    wide = inner
    if kind == "swiglu":
        wide *= 2
        attrs |= {"swiglu_fusion": 1}
        attrs |= r.one_of({}, {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.7})
    return rows, width, inner, wide, count, k, attrs


def tokens(r, rows, width):
    """Rows in two or three axes."""
    if rows % 2 == 0 and r.up_to(0, 1):
        return r.reals(2, rows // 2, width)
    return r.reals(rows, width)


def mixture(r):
    rows, width, inner, wide, count, k, attrs = experts(r)
    bias = [fixed(r.reals(count, n)) if r.up_to(0, 1) else None for n in (wide, width)]
    weights = [fixed(r.reals(count, wide, width)), fixed(r.reals(count, width, inner))]
    inputs = [tokens(r, rows, width), r.reals(rows, count), weights[0], bias[0], weights[1], bias[1]]
    return Case("MoE", inputs, attrs, tolerance=2e-4, keep=(1, width, count))


def quantized_mixture(r):
    """Weights of 2, 4 and 8 bits with a scale for each row or block; ONNX Runtime rounds what it multiplies blocks of 8 bits by."""
    rows, width, inner, wide, count, k, attrs = experts(r)
    bits = r.one_of(2, 4, 8)
    block = r.one_of(0, 0 if bits == 8 else 16)
    grain = block or 8 // bits
    width, inner = (-(-n // grain) * max(grain, 2) for n in (width, inner))
    wide = inner * (2 if attrs["activation_type"] == "swiglu" else 1)
    attrs |= {"expert_weight_bits": bits} | ({"block_size": block} if block else {})
    weights, scales, zeros, bias = [], [], [], []
    some_zeros = r.up_to(0, 1)
    for high, across in ((wide, width), (width, inner)):
        shape = [count, high, across // block] if block else [count, high]
        weights.append(fixed(bits_packed(r.rng.integers(0, 1 << bits, (count, high, across)), bits)))
        scales.append(fixed(np.abs(r.reals(*shape, size=0.1)) + 0.01))
        zeros.append(fixed(bits_packed(r.rng.integers(0, 1 << bits, shape), bits)) if some_zeros else None)
        bias.append(fixed(r.reals(count, high)) if r.up_to(0, 1) else None)
    routed = r.rng.random((rows, count)).astype("float32") if r.up_to(0, 1) else None
    inputs = [tokens(r, rows, width), r.reals(rows, count), weights[0], scales[0], bias[0], weights[1], scales[1], bias[1]]
    inputs += [None, None, None, *zeros, None, routed]
    if half := r.up_to(0, 3) == 0:
        inputs = [x if x is None or x.dtype != "float32" else x.astype("float16") for x in inputs]
    return Case("QMoE", inputs, attrs, tolerance=2e-2 if half else 2e-3, keep=(1, width, count))


def activation(kind, x):
    if kind in ("gelu", "geglu"):
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return {"identity": x, "relu": np.maximum(x, 0), "silu": x / (1 + np.exp(-x))}[kind]


def gate(attrs, first, second):
    """One half through the activation, times the other."""
    if attrs["activation_type"] != "swiglu":
        return activation(attrs["activation_type"], first) * second
    limit, behind = attrs.get("swiglu_limit", np.inf), attrs.get("swiglu_limit_after_activation", 0)
    first = first if behind else np.minimum(first, limit)
    swish = first / (1 + np.exp(-attrs.get("activation_alpha", 1.0) * first))
    return np.minimum(swish, limit if behind else np.inf) * (np.clip(second, -limit, limit) + attrs.get("activation_beta", 0.0))


def by_hand(x, router, attrs, layers):
    """A mixture of experts as its definition says it; layers are weights and biases."""
    flat = x.reshape(-1, x.shape[-1]).astype("float64")
    result = np.zeros_like(flat)
    shares = np.exp(router.astype("float64"))
    shares /= shares.sum(-1, keepdims=True)
    for row, (token, share) in enumerate(zip(flat, shares, strict=True)):
        chosen = np.argsort(-share)[: attrs["k"]]
        total = share[chosen].sum() if attrs["normalize_routing_weights"] else 1
        for e in chosen:
            hidden = [weight[e] @ token + bias[e] for weight, bias in layers[::2]]
            if len(hidden) == 1:
                h = hidden[0]
                hidden = [h[::2], h[1::2]] if attrs["swiglu_fusion"] == 1 else np.split(h, 2)
            weight, bias = layers[1]
            result[row] += share[e] / total * (weight[e] @ gate(attrs, *hidden) + bias[e])
    return [result.reshape(x.shape).astype("float32")]


def gated_mixture(r):
    """What ONNX Runtime has no kernel for on processors: a third layer, halves that lie behind each other, limits behind the
    activation."""
    rows, width, inner, _, count, k, _ = experts(r)
    third = r.up_to(0, 1)
    kind = r.one_of("relu", "gelu", "silu", "swiglu") if third else r.one_of("swiglu", "geglu")
    attrs = {"k": k, "activation_type": kind, "normalize_routing_weights": r.up_to(0, 1)}
    attrs |= {} if third else {"swiglu_fusion": r.up_to(1, 2)}
    if kind == "swiglu":
        limits = {"swiglu_limit": 0.5, "swiglu_limit_after_activation": r.up_to(0, 1)}
        attrs |= r.one_of({}, limits) | {"activation_alpha": 1.3, "activation_beta": 0.4}
    wide = inner if third else 2 * inner
    shapes = [(wide, width), (width, inner), (inner, width)][: 2 + third]
    layers = [(r.reals(count, *s), r.reals(count, s[0])) for s in shapes]
    x, router = tokens(r, rows, width), r.reals(rows, count)
    inputs = [x, router, *[fixed(part) for layer in layers for part in layer]]
    reference = lambda: by_hand(x, router, attrs, layers)  # noqa: E731
    return Case("MoE", inputs, attrs, tolerance=2e-4, keep=(1, width, count), reference=reference)


def quantized_blocks_of_bytes(r):
    """Compared with what the weights stand for, since ONNX Runtime rounds the other side of products with such."""
    rows, width, inner, block = r.up_to(1, 9), r.up_to(17, 40), r.up_to(17, 40), 16
    attrs = {"k": 2, "activation_type": "silu", "normalize_routing_weights": 1, "expert_weight_bits": 8, "block_size": block}
    weights, parts = [], []
    for high, across in ((inner, width), (width, inner), (inner, width)):
        packed = r.bytes(4, high, across)
        scales = np.abs(r.reals(4, high, -(-across // block), size=0.1)) + 0.01
        zeros, bias = r.bytes(*scales.shape), r.reals(4, high)
        parts.append((fixed(packed), fixed(scales), fixed(bias), fixed(zeros)))
        scale, zero = (np.repeat(a, block, -1)[..., :across] for a in (scales, zeros.astype("float64")))
        weights.append(((packed - zero) * scale, bias))
    x, router = tokens(r, rows, width), r.reals(rows, 4)
    inputs = [x, router, *[p for part in parts for p in part[:3]], *[part[3] for part in parts]]
    reference = lambda: by_hand(x, router, attrs, weights)  # noqa: E731
    return Case("QMoE", inputs, attrs, tolerance=1e-3, keep=(1, width, 4), reference=reference)


MAKERS = [
    reduce_mean,
    where,
    transposed_product,
    max_pool,
    embedding,
    bnb4_product,
    gathered_blocks,
    mixture,
    quantized_mixture,
    gated_mixture,
    quantized_blocks_of_bytes,
]


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("maker", MAKERS, ids=lambda maker: maker.__name__)
def test_random_node(maker, seed, symbolic):
    check(maker(Random(seed)), symbolic)


@pytest.mark.parametrize("kind", [0, 1])
def test_codes_of_a_weight_that_is_not_transposed(kind):
    # ONNX Runtime reads the weight as if it were. The product with ones in a row each shows the weight.
    r = Random(kind)
    packed, largest = r.bytes(24), np.abs(r.reals(3))
    attrs = {"K": 6, "N": 8, "block_size": 16, "quant_type": kind}
    shown = [Case("MatMulBnb4", [np.eye(n, dtype="float32"), fixed(packed), fixed(largest)], attrs | more) for n, more in ((6, {}), (8, {"transB": 0}))]
    (turned,) = runtime(*model_of(shown[0], False))
    (straight,) = ours(*model_of(shown[1], False))
    np.testing.assert_array_equal(straight, turned.T)


WEIGHTS = [fixed(np.zeros((4, 6, 8), "float32")), None, fixed(np.zeros((4, 8, 6), "float32"))]
PACKED = [fixed(np.zeros((4, 6, 4), "uint8")), fixed(np.zeros((4, 6), "float32")), None]
PACKED += [fixed(np.zeros((4, 8, 3), "uint8")), fixed(np.zeros((4, 8), "float32"))]
ROWS = [np.zeros((3, 8), "float32"), np.zeros((3, 4), "float32")]
TABLE = [fixed(np.zeros((4, 16), "uint8")), np.zeros(3, "int64"), fixed(np.zeros((4, 1), "float32"))]
FLOATS = [TABLE[0].view(ml_dtypes.float8_e5m2), *TABLE[1:], fixed(np.zeros((4, 1), ml_dtypes.float8_e5m2))]


@pytest.mark.parametrize(
    "op, inputs, attrs, match",
    [
        ("MoE", ROWS + WEIGHTS, {"use_sparse_mixer": 1}, "use_sparse_mixer"),
        ("MoE", ROWS + WEIGHTS, {"activation_type": "relu2"}, "`relu2` is not supported"),
        ("MoE", ROWS + WEIGHTS, {"activation_type": "swiglu"}, "needs a third layer"),
        ("MoE", ROWS + WEIGHTS, {"k": 5}, "5 of 4 elements"),
        ("QMoE", ROWS + PACKED, {"quant_type": "fp4"}, "quant_type"),
        ("QMoE", ROWS + PACKED, {"weights_prepacked": 1}, "weights_prepacked"),
        ("QMoE", ROWS + PACKED, {"expert_weight_bits": 3}, "weights of 3 bits"),
        ("QMoE", ROWS + PACKED, {"fc2_expert_weight_bits": 8}, "a dimension is"),
        ("GatherBlockQuantized", TABLE, {"quantize_axis": 0, "block_size": 16}, "`quantize_axis` must be the last axis"),
        ("GatherBlockQuantized", FLOATS, {"block_size": 16}, "has no zero points"),
        ("MatMulBnb4", [ROWS[0], TABLE[0], TABLE[2]], {"K": 8, "N": 16, "block_size": 32, "quant_type": 2}, "`quant_type` is 2"),
    ],
)
def test_what_is_not_supported_is_refused(op, inputs, attrs, match):
    model, _ = model_of(Case(op, inputs, attrs), False)
    with pytest.raises(Exception, match=match):
        tvm.relax.frontend.onnx.from_onnx(model)
