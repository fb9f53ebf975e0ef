"""Makers of calls for :mod:`ways` of the operators that :mod:`ways_more` leaves out, and of elements of every width.

Lengths may be 0 and 1, axes negative, optional inputs absent.
"""

import numpy as np
from ways import Call, _pair, _shape, values

#: Element types of numbers that ONNX Runtime computes with on processors, and those that only move.
NUMBERS = ["f4", "f8", "i8", "i4"]
NARROW = ["i1", "u1", "i2", "u2", "u4", "u8", "f2"]


def _one(rng, choices):
    return choices[int(rng.integers(len(choices)))]


def _yes(rng, part=0.5):
    return bool(rng.random() < part)


def functions(rng):
    op = _one(rng, ["Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp", "Gelu", "HardSwish", "Log", "Mish",
                    "Reciprocal", "Sigmoid", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "IsNaN", "IsInf", "Swish"])
    x = values(rng, _shape(rng, int(rng.integers(0, 4))), special=op not in ("Sin", "Cos", "Tan"))
    attributes = {}
    if op == "Gelu" and _yes(rng):
        attributes["approximate"] = "tanh"
    if op == "IsInf":
        attributes = {"detect_negative": int(_yes(rng)), "detect_positive": int(_yes(rng))}
    opset = {"Gelu": 20, "Swish": 24}.get(op, 18)
    return Call(op, [x], opset=opset, **attributes)


def with_numbers(rng):
    op = _one(rng, ["Shrink", "ThresholdedRelu", "HardSigmoid", "Elu", "Selu", "Celu", "LeakyRelu"])
    attributes = {"Shrink": {"lambd": 0.4, "bias": 0.1}, "ThresholdedRelu": {"alpha": 0.3}, "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
                  "Elu": {"alpha": 1.5}, "Selu": {"alpha": 1.2, "gamma": 0.7}, "Celu": {"alpha": 2.0}, "LeakyRelu": {"alpha": 0.3}}[op]
    return Call(op, [values(rng, _shape(rng, int(rng.integers(0, 4))))], **(attributes if _yes(rng, 0.7) else {}))


def logic(rng):
    a, b = _pair(rng)
    if _yes(rng, 0.2):
        return Call("Not", [values(rng, a, "bool")])
    return Call(_one(rng, ["And", "Or", "Xor", "Equal"]), [values(rng, a, "bool"), values(rng, b, "bool")])


def several(rng):
    a, b = _pair(rng)
    op = _one(rng, ["Sum", "Mean", "Max", "Min"])
    parts = [values(rng, _one(rng, [a, b, [], [1]]), special=op in ("Max", "Min")) for _ in range(int(rng.integers(1, 5)))]
    return Call(op, parts)


def narrow(rng):
    """Arithmetic of every width: it wraps around."""
    dtype = _one(rng, NARROW)
    a, b = _pair(rng)
    op = _one(rng, ["Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Less", "Greater", "Mod", "Neg", "Abs", "Sign", "Relu", "Clip"])
    x, y = values(rng, a, dtype, special=op not in ("Div", "Mod") and dtype != "f2"), values(rng, b, dtype, special=False)
    if op in ("Neg", "Abs", "Sign", "Relu"):
        return Call(op, [x if op != "Neg" or np.dtype(dtype).kind != "u" else x.astype("i8")])
    if op == "Clip":
        low, high = np.sort(values(rng, [2], dtype, special=False))
        return Call(op, [x, low, high], [1, 2] if _yes(rng) else [])
    if op in ("Div", "Mod"):
        y = np.where(y == 0, np.array(3, dtype), y)
    return Call(op, [x, y], fmod=1) if op == "Mod" and dtype == "f2" else Call(op, [x, y])


def moved(rng):
    """What only moves elements takes every type."""
    dtype = _one(rng, ["f4", *NARROW, "bool", "f8"])
    shape = _shape(rng, 2)
    x = values(rng, shape, dtype)
    kind = int(rng.integers(9))
    if kind == 0:
        return Call("Concat", [x, values(rng, shape, dtype)], axis=int(rng.integers(-2, 2)))
    if kind == 1:
        return Call("Transpose", [x])
    if kind == 2:
        return Call("Unsqueeze", [x, np.array(_one(rng, [[0], [-1], [1, 3], [-3, 0], [2]]))], [1])
    if kind == 3:
        return Call("Reshape", [x, np.array(_one(rng, [[-1], [0, -1], [1, 0, -1] if shape[1] else [1, *shape[::-1]]]))] if 0 not in shape else [x, np.array(shape[::-1])], [1])
    if kind == 4:
        return Call("Where", [values(rng, shape, "bool"), x, values(rng, [], dtype)])
    if kind == 5:
        return Call("Expand", [values(rng, [shape[0], 1], dtype), np.array([2, 1, 3])], [1])
    if kind == 6:
        return Call("Slice", [x, np.array([-1]), np.array([-(2**62)]), np.array([int(rng.integers(-2, 2))]), np.array([-1])], [1, 2, 3, 4])
    if kind == 7:
        return Call("Tile", [x, rng.integers(0, 3, 2)], [1])
    return Call("Identity", [x])


def casts(rng):
    source = _one(rng, ["f4", "f8", "f2", "i8", "i4", "u1", "i1", "u2", "i2", "u4", "u8", "bool"])
    target = _one(rng, [1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13])
    x = values(rng, _shape(rng, 2), source, special=False)
    if np.dtype(source).kind == "f":
        x = np.abs(x) if target in (2, 4, 12, 13) else x
    return Call("Cast", [x], to=target) if _yes(rng) else Call("CastLike", [x, values(rng, [], {1: "f4", 2: "u1", 3: "i1", 4: "u2", 5: "i2", 6: "i4", 7: "i8", 9: "bool", 10: "f2", 11: "f8", 12: "u4", 13: "u8"}[target])])


def made(rng):
    kind = int(rng.integers(6))
    shape = _shape(rng, int(rng.integers(0, 4)))
    if kind == 0:
        from onnx import numpy_helper

        value = values(rng, [1], _one(rng, ["f4", "i8", "bool", "u1"]), special=False)
        return Call("ConstantOfShape", [np.array(shape, "i8")], [0] if _yes(rng, 0.7) or not shape else [], value=numpy_helper.from_array(value))
    if kind == 1:
        return Call("EyeLike", [values(rng, _shape(rng, 2), _one(rng, ["f4", "i8"]))], k=int(rng.integers(-3, 4)), **({"dtype": 1} if _yes(rng) else {}))
    if kind == 2:
        return Call("Shape", [values(rng, shape)], **({"start": int(rng.integers(-4, 4)), "end": int(rng.integers(-4, 5))} if _yes(rng) else {}))
    if kind == 3:
        return Call("Size", [values(rng, shape)])
    if kind == 4:
        depth = int(rng.integers(1, 6))
        return Call("OneHot", [rng.integers(-depth, depth, _shape(rng, int(rng.integers(0, 3)))), np.array(depth), values(rng, [2], _one(rng, ["f4", "i8"]), special=False)],
                    [1], axis=-1)
    return Call("NonZero", [np.where(rng.random(_shape(rng, int(rng.integers(1, 4)))) < 0.5, 0, 1).astype(_one(rng, ["f4", "i8", "bool"]))])


def sorted_(rng):
    shape = _shape(rng, int(rng.integers(1, 4)), 1)
    axis = int(rng.integers(-len(shape), len(shape)))
    x = rng.permutation(int(np.prod(shape))).reshape(shape).astype(_one(rng, ["f4", "i8", "i4", "f8"]))
    return Call("TopK", [x, np.array([int(rng.integers(0, shape[axis] + 1))])], [1], axis=axis, largest=int(_yes(rng)))


def compressed(rng):
    shape = _shape(rng, 2, 1)
    if _yes(rng):
        return Call("Compress", [values(rng, shape), values(rng, [int(rng.integers(1, shape[0] * shape[1] + 1))], "bool")])
    axis = int(rng.integers(-2, 2))
    return Call("Compress", [values(rng, shape), values(rng, [int(rng.integers(1, shape[axis] + 1))], "bool")], axis=axis)


def unique(rng):
    x = rng.integers(-3, 4, _shape(rng, 1, 1)).astype(_one(rng, ["f4", "i8"]))
    return Call("Unique", [x], sorted=1)


def reductions(rng):
    """Of every type that ONNX Runtime reduces, over no axes, over all, over none of the elements."""
    op = _one(rng, ["ReduceMax", "ReduceMin", "ReduceSum", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceSumSquare", "ReduceLogSumExp"])
    dtype = _one(rng, ["i4", "i8", "f8", "f4"])
    rank = int(rng.integers(0, 4))
    x = np.abs(rng.integers(-3, 4, _shape(rng, rank, 1))).astype(dtype) + (1 if op == "ReduceLogSum" else 0)
    x = x.astype(dtype)
    attributes = {"keepdims": int(_yes(rng))}
    if rank and _yes(rng, 0.7):
        return Call(op, [x, rng.integers(-rank, rank, 1)], [1], **attributes)
    if _yes(rng, 0.3):
        return Call(op, [x, np.zeros(0, "i8")], [1], noop_with_empty_axes=int(_yes(rng)), **attributes)
    return Call(op, [x], **attributes)


def norms(rng):
    shape = [int(v) for v in rng.integers(1, 4, int(rng.integers(3, 5)))]
    c = shape[1]
    x = values(rng, shape, special=False)
    plain = lambda *s: values(rng, list(s), special=False)  # noqa: E731
    kind = int(rng.integers(9))
    if kind == 0:
        return Call("BatchNormalization", [x, plain(c), plain(c), plain(c), np.abs(plain(c))], epsilon=1e-3)
    if kind == 1:
        return Call("InstanceNormalization", [x, plain(c), plain(c)], epsilon=1e-3)
    if kind == 2:
        return Call("LRN", [x], size=_one(rng, [1, 3, 5]), alpha=0.1, bias=2.0) if len(shape) == 4 else Call("LpNormalization", [x], axis=int(rng.integers(-3, 3)), p=_one(rng, [1, 2]))
    if kind == 3:
        # Of one element the deviation is zero, and what is divided by it depends on who divides.
        x = values(rng, [shape[0] + 1, *shape[1:]], special=False)
        return Call("MeanVarianceNormalization", [x], axes=[0, 2, -1] if len(shape) == 4 else [0, 2])
    if kind == 4:
        groups = _one(rng, [1, c])
        return Call("GroupNormalization", [x, plain(c), plain(c)], num_groups=groups, opset=21, epsilon=1e-3)
    if kind == 5:
        return Call("RMSNormalization", [x, plain(shape[-1])], axis=-1, opset=23, epsilon=1e-3)
    if kind == 6:
        return Call(_one(rng, ["GlobalAveragePool", "GlobalMaxPool"]), [x])
    if kind == 7:
        return Call("GlobalLpPool", [x], p=_one(rng, [1, 2, 3]))
    return Call("LpPool", [values(rng, [1, 2, 5, 6], special=False)], kernel_shape=[2, 3], strides=[1, 2], p=_one(rng, [1, 2, 3]), pads=[1, 0, 0, 1])


def convolutions(rng):
    groups = _one(rng, [1, 1, 2])
    rank = _one(rng, [1, 2, 2, 3])
    cin, cout = groups * int(rng.integers(1, 4)), groups * int(rng.integers(1, 4))
    kernel = [int(v) for v in rng.integers(1, 4, rank)]
    dilation = [int(v) for v in rng.integers(1, 3, rank)]
    space = [int(v) for v in rng.integers(1, 5, rank) + (np.array(kernel) - 1) * dilation]
    whole = lambda *s: rng.integers(-4, 5, s).astype("f4")  # noqa: E731
    attributes = {"dilations": dilation, "group": groups, "strides": [int(v) for v in rng.integers(1, 3, rank)]}
    if _yes(rng, 0.3):
        attributes["kernel_shape"] = kernel
    way = _one(rng, ["pads", "VALID", "SAME_UPPER", "SAME_LOWER", ""])
    if way == "pads":
        attributes["pads"] = [int(v) for v in rng.integers(0, 3, 2 * rank)]
    elif way and not (way.startswith("SAME") and any(d > 1 for d in dilation)):
        attributes["auto_pad"] = way
    if _yes(rng, 0.6):
        inputs = [whole(int(rng.integers(1, 3)), cin, *space), whole(cout, cin // groups, *kernel)]
        op = "Conv"
    else:
        attributes.pop("auto_pad", None)
        inputs = [whole(int(rng.integers(1, 3)), cin, *space), whole(cin, cout // groups, *kernel)]
        op = "ConvTranspose"
        if "pads" in attributes:
            attributes["pads"] = [0] * (2 * rank)
    bias = [whole(cout)] if _yes(rng) else []
    return Call(op, inputs + bias, [1] + [2] * len(bias) if _yes(rng) else [], **attributes)


def pools(rng):
    rank = _one(rng, [1, 2, 2, 2, 3])
    kernel = [int(v) for v in rng.integers(1, 5, rank)]
    strides = [int(v) for v in rng.integers(1, 4, rank)]
    space = [int(v) for v in rng.integers(1, 9, rank) + np.array(kernel)]
    op = _one(rng, ["MaxPool", "MaxPool", "AveragePool"])
    attributes = {"kernel_shape": kernel, "strides": strides}
    way = _one(rng, ["pads", "SAME_UPPER", "SAME_LOWER", "VALID", ""])
    if way == "pads":
        attributes["pads"] = [int(rng.integers(0, k)) for k in kernel * 2]
    elif way:
        # With steps longer than the window ONNX Runtime refuses, and the reference evaluator is not what the text says.
        attributes["auto_pad"] = way
        attributes["strides"] = strides = [min(s, k) for s, k in zip(strides, kernel)]
    if op == "MaxPool" and way in ("", "pads") and _yes(rng, 0.4):
        attributes["dilations"] = [int(v) for v in rng.integers(1, 3, rank)]
        space = [s + k for s, k in zip(space, kernel)]
    if op == "AveragePool":
        attributes["count_include_pad"] = int(_yes(rng))
    dtype = _one(rng, ["f4", "f4", "i1", "u1"]) if op == "MaxPool" and rank == 2 else "f4"
    # What becomes of NaN ONNX Runtime's pools do not agree about.
    x = values(rng, [1, int(rng.integers(1, 3)), *space], dtype, special=op == "MaxPool")
    return Call(op, [np.where(np.isnan(x), np.float32(3), x) if dtype == "f4" else x], **attributes)


def linear(rng):
    m, k, n = (int(v) for v in rng.choice([0, 1, 2, 5], 3))
    dtype = _one(rng, ["f4", "f8"])
    whole = lambda *s: rng.integers(-4, 5, s).astype(dtype)  # noqa: E731
    if _yes(rng, 0.4):
        dtype = _one(rng, ["i4", "i8", "u4", "f8", "f4"])
        a, b = _one(rng, [((k,), (k,)), ((k,), (k, n)), ((m, k), (k,)), ((2, 1, m, k), (3, k, n)), ((m, k), (2, k, n))])
        return Call("MatMul", [rng.integers(0, 5, a).astype(dtype), rng.integers(0, 5, b).astype(dtype)])
    a, b = int(_yes(rng)), int(_yes(rng))
    inputs = [whole(*((k, m) if a else (m, k))), whole(*((n, k) if b else (k, n)))]
    if _yes(rng, 0.7):
        inputs.append(whole(*_one(rng, [(m, n), (n,), (1, n), (m, 1), (1,), ()])))
    return Call("Gemm", inputs, transA=a, transB=b, **({"alpha": 0.5, "beta": 2.0} if _yes(rng) else {}))


def integer_products(rng):
    m, k, n = (int(v) for v in rng.integers(1, 6, 3))
    a, b = _one(rng, ["u1", "i1"]), _one(rng, ["u1", "i1"])
    of = lambda dtype, *s: rng.integers(*((0, 128) if dtype == "u1" else (-60, 60)), s).astype(dtype)  # noqa: E731
    if _yes(rng):
        zeros = [of(a), of(b)] if _yes(rng) else []
        return Call("MatMulInteger", [of(a, m, k), of(b, k, n), *zeros])
    return Call("ConvInteger", [of("u1", 1, 2, 4, 5), of(b, 3, 2, 2, 3), of("u1"), of(b)][: 4 if _yes(rng) else 2], [1], pads=[1, 0, 0, 1])


def quantized(rng):
    dtype = _one(rng, ["u1", "i1", "u2", "i2"])
    n = int(rng.integers(1, 5))
    per = _yes(rng)
    scale = (rng.random([n] if per else []) + 0.05).astype("f4")
    zero = rng.integers(0, 20, scale.shape).astype(dtype)
    opset = 21
    if _yes(rng):
        return Call("QuantizeLinear", [values(rng, [2, n, 3]) * np.float32(4), scale, zero], axis=_one(rng, [1, -2]), opset=opset)
    return Call("DequantizeLinear", [values(rng, [2, n, 3], dtype), scale, zero], axis=_one(rng, [1, -2]), opset=opset)


def scattered(rng):
    shape = _shape(rng, 2, 1)
    axis = int(rng.integers(-2, 2))
    count, other = int(rng.integers(0, shape[axis] + 1)), shape[(axis + 1) % 2]
    i = np.stack([rng.permutation(shape[axis])[:count] for _ in range(other)]).astype("i8")
    i = i.T if axis % 2 == 0 else i
    i = np.where(rng.random(i.shape) < 0.5, i - shape[axis], i)
    dtype = _one(rng, ["f4", "i8", "i4"])
    kind = _one(rng, ["none", "add", "mul", "max", "min"])
    return Call("ScatterElements", [values(rng, shape, dtype, special=False), i, values(rng, i.shape, dtype, special=False)], axis=axis, reduction=kind)


def scattered_places(rng):
    shape = _shape(rng, 3, 1)
    depth = int(rng.integers(1, 4))
    count = int(rng.integers(0, 5))
    all_ = np.array(list(np.ndindex(*shape[:depth])))
    i = all_[rng.permutation(len(all_))[:count]].reshape(-1, depth)
    dtype = _one(rng, ["f4", "i8"])
    return Call("ScatterND", [values(rng, shape, dtype, special=False), i.astype("i8"), values(rng, [len(i), *shape[depth:]], dtype, special=False)],
                reduction=_one(rng, ["none", "add", "mul", "max", "min"]))


def resized(rng):
    rank = _one(rng, [1, 2, 2, 3])
    space = [int(v) for v in rng.integers(1, 6, rank)]
    mode = _one(rng, ["nearest", "linear", "cubic"] if rank == 2 else ["nearest", "linear"])
    way = _one(rng, ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    attributes = {"mode": mode, "coordinate_transformation_mode": way}
    if mode == "nearest":
        attributes["nearest_mode"] = _one(rng, ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    x = values(rng, [1, int(rng.integers(1, 3)), *space], special=False)
    if _yes(rng):
        scales = np.array([1, 1, *rng.choice([0.5, 1, 2, 3], rank)], "f4")
        if any(int(np.floor(s * n)) == 0 for s, n in zip(scales[2:], space)):
            scales[2:] = 2
        return Call("Resize", [x, np.zeros(0, "f4"), scales], [1, 2], **attributes)
    return Call("Resize", [x, np.zeros(0, "f4"), np.zeros(0, "f4"), np.array([1, x.shape[1], *rng.integers(1, 8, rank)])], [1, 2, 3], **attributes)


def padded(rng):
    shape = _shape(rng, 2, 1)
    mode = _one(rng, ["constant", "edge", "reflect", "wrap"])
    dtype = _one(rng, ["f4", "i8", "u1", "f8"])
    most = [1000 if mode in ("constant", "edge") else n for n in shape]
    most = [min(4, n - 1 if mode == "reflect" else n) for n in most]
    pads = np.array([int(rng.integers(0, m + 1)) for m in most * 2])
    inputs = [values(rng, shape, dtype, special=False), pads]
    if mode == "constant" and _yes(rng):
        pads -= rng.integers(0, 2, 4)
        pads = np.maximum(pads, 0 if min(shape) < 2 else -1)
        inputs = [inputs[0], pads]
    return Call("Pad", inputs, [1], mode=mode, opset=19)


def losses(rng):
    n, c, d = (int(v) for v in rng.integers(1, 5, 3))
    op = _one(rng, ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
    shape = [n, c] if _yes(rng) else [n, c, d]
    labels = rng.integers(0, c, [n, *shape[2:]])
    weights = [np.abs(values(rng, [c], special=False)) + 0.1] if _yes(rng) else []
    return Call(op, [values(rng, shape, special=False), labels.astype(_one(rng, ["i8", "i4"])), *[w.astype("f4") for w in weights]], reduction=_one(rng, ["none", "sum", "mean"]))


def signals(rng):
    kind = int(rng.integers(4))
    if kind == 0:
        return Call(_one(rng, ["HannWindow", "HammingWindow", "BlackmanWindow"]), [np.array(int(rng.integers(2, 12)))], [0] if _yes(rng) else [], periodic=int(_yes(rng)))
    if kind == 1:
        n = _one(rng, [2, 4])
        return Call("DFT", [values(rng, [1, n, _one(rng, [1, 2])], special=False)], axis=1, inverse=0, opset=17)
    if kind == 2:
        return Call("Det", [values(rng, [2, 3, 3], special=False)])
    return Call("Col2Im", [values(rng, [1, 8, 12], special=False), np.array([4, 5]), np.array([2, 2])], [1, 2])


def states(rng):
    """Recurrent layers: directions, lengths, states, fewer inputs than there may be."""
    op = _one(rng, ["RNN", "GRU", "LSTM"])
    steps, batch, inputs, hidden = (int(v) for v in rng.integers(1, 7, 4))
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    way = _one(rng, ["forward", "reverse", "bidirectional"])
    d = 2 if way == "bidirectional" else 1
    small = lambda *s: (rng.standard_normal(s) * 0.5).astype("f4")  # noqa: E731
    given = [small(steps, batch, inputs), small(d, gates * hidden, inputs), small(d, gates * hidden, hidden)]
    if _yes(rng):
        given.append(small(d, 2 * gates * hidden))
        if _yes(rng):
            given.append(rng.integers(1, steps + 1, batch).astype("i4"))
            if _yes(rng):
                given.append(small(d, batch, hidden))
                if op == "LSTM":
                    given.append(small(d, batch, hidden))
    attributes = {"hidden_size": hidden, "direction": way}
    if op == "GRU":
        attributes["linear_before_reset"] = int(_yes(rng))
    return Call(op, given, [1, 2] if _yes(rng, 0.7) else [], **attributes)


MAKERS = [functions, with_numbers, logic, several, narrow, moved, casts, made, sorted_, compressed, unique, reductions, norms, convolutions,
          pools, linear, integer_products, quantized, scattered, scattered_places, resized, padded, losses, signals, states]
