"""Makers of calls for :mod:`ways` with several outputs and absent inputs, of regions, grids, spectra, quantized sums, attention, and
of images that are smaller than the window."""

import numpy as np
from ways import Call, _shape, values
from ways_rest import _one, _yes


def _ints(rng, low, high, count):
    return [int(v) for v in rng.integers(low, high, count)]


def _plain(rng, shape, dtype="f4"):
    return values(rng, list(shape), dtype, special=False)


def splits(rng):
    axis = int(rng.integers(-2, 2))
    shape = _ints(rng, 1, 7, 2)
    if _yes(rng):
        parts = _ints(rng, 0, 4, int(rng.integers(1, 4)))
        shape[axis] = sum(parts)
        return Call("Split", [values(rng, shape, _one(rng, ["f4", "i8", "u1"])), np.array(parts, "i8")], [1] if _yes(rng) else [],
                    outputs=len(parts), axis=axis)
    count = int(rng.integers(1, shape[axis] + 1))
    return Call("Split", [values(rng, shape)], outputs=count, num_outputs=count, axis=axis)


def found(rng):
    """The places of what is found, with those of equal elements."""
    shape = _ints(rng, 1, 6, int(rng.integers(1, 4)))
    axis = int(rng.integers(-len(shape), len(shape)))
    x = rng.integers(-2, 3, shape).astype(_one(rng, ["f4", "i8", "i4", "f8"]))
    if _yes(rng):
        return Call("TopK", [x, np.array([int(rng.integers(0, shape[axis] + 1))])], [1] if _yes(rng) else [], outputs=2, axis=axis, largest=int(_yes(rng)))
    return Call(_one(rng, ["ArgMax", "ArgMin"]), [x], axis=axis, keepdims=int(_yes(rng)), select_last_index=int(_yes(rng)))


def small_images(rng):
    """Pooling of images of which some are smaller than the window, by less than a stride."""
    rank = _one(rng, [1, 2, 2, 3])
    kernel = _ints(rng, 1, 5, rank)
    strides = _ints(rng, 1, 4, rank)
    space = [max(1, k - int(rng.integers(0, s))) if _yes(rng) else k + 2 for k, s in zip(kernel, strides)]
    op = _one(rng, ["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    x = rng.permutation(2 * int(np.prod(space))).reshape(1, 2, *space).astype("f4")
    attributes = {"storage_order": int(_yes(rng))} if op == "MaxPool" and rank > 1 else {}
    if op == "AveragePool":
        # Where the length is not fixed, there is no window yet.
        return Call(op, [x], [0], kernel_shape=kernel, strides=strides)
    return Call(op, [x], outputs=1 + int(op == "MaxPool"), kernel_shape=kernel, strides=strides, **attributes)


def regions(rng):
    count, batch = int(rng.integers(1, 4)), 2
    if _yes(rng, 0.3):
        corners = np.sort(rng.integers(0, 6, [count, 2, 2]), 1).reshape(count, 4)
        rois = np.concatenate([rng.integers(0, batch, [count, 1]), corners], 1).astype("f4")
        return Call("MaxRoiPool", [_plain(rng, [batch, 2, 6, 6]), rois], pooled_shape=_ints(rng, 1, 4, 2), spatial_scale=_one(rng, [1.0, 0.5]))
    rois = np.sort(rng.random([count, 2, 2]) * 6, 1).reshape(count, 4).astype("f4")
    attributes = dict(output_height=int(rng.integers(1, 4)), output_width=int(rng.integers(1, 4)), sampling_ratio=int(rng.integers(0, 3)),
                      spatial_scale=_one(rng, [1.0, 0.5]),
                      coordinate_transformation_mode=_one(rng, ["half_pixel", "output_half_pixel"]))
    return Call("RoiAlign", [_plain(rng, [batch, 2, 5, 6]), rois, rng.integers(0, batch, count)], opset=16, **attributes)


def suppressed(rng):
    batch, boxes, classes = 1 + int(_yes(rng)), int(rng.integers(1, 7)), int(rng.integers(1, 3))
    corners = np.sort(rng.random([batch, boxes, 2, 2]), 2).reshape(batch, boxes, 4).astype("f4")
    scores = rng.permutation(batch * classes * boxes).reshape(batch, classes, boxes).astype("f4") / 10
    extra = [np.array([int(rng.integers(0, 4))]), np.array([0.5], "f4"), np.array([0.2], "f4")][: int(rng.integers(1, 4))]
    return Call("NonMaxSuppression", [corners, scores, *extra], range(2, 2 + len(extra)) if _yes(rng) else [], center_point_box=int(_yes(rng)))


def grids(rng):
    rank = _one(rng, [2, 2, 3])
    if _yes(rng, 0.3):
        # Where the only place of an axis of one is, texts differ.
        size = _ints(rng, 2, 5, rank)
        return Call("AffineGrid", [_plain(rng, [2, rank, rank + 1]), np.array([2, 1, *size])], [1], opset=20, align_corners=int(_yes(rng)))
    places = (rng.random([2, *_ints(rng, 1, 4, rank), rank]) * 3 - 1.5).astype("f4")
    return Call("GridSample", [_plain(rng, [2, int(rng.integers(1, 3)), *_ints(rng, 1, 5, rank)]), places], opset=20,
                mode=_one(rng, ["linear", "nearest"] + ["cubic"] * (rank == 2)), padding_mode=_one(rng, ["zeros", "border", "reflection"]),
                align_corners=int(_yes(rng)))


def quantized_sums(rng):
    dtype = _one(rng, ["u1", "i1"])
    of = lambda *shape: rng.integers(*((0, 255) if dtype == "u1" else (-127, 127)), shape).astype(dtype)  # noqa: E731
    number = lambda x: np.float32(x)  # noqa: E731
    if _yes(rng, 0.3):
        return Call("BitwiseNot", [values(rng, _shape(rng, 2), _one(rng, ["i8", "u1", "i4", "u4"]))])
    if _yes(rng):
        m, k, n = _ints(rng, 1, 6, 3)
        a, b = _one(rng, [((m, k), (k, n)), ((2, m, k), (2, k, n)), ((2, m, k), (k, n))])
        return Call("QLinearMatMul", [of(*a), number(0.125), of(), of(*b), number(0.25), of(), number(0.5), of()])
    group = _one(rng, [1, 1, 2])
    channels, filters, kernel = group * int(rng.integers(1, 3)), group * int(rng.integers(1, 3)), _ints(rng, 1, 4, 2)
    space = [int(v) for v in rng.integers(1, 4, 2) + np.array(kernel)]
    inputs = [of(1, channels, *space), number(0.0625), of(), of(filters, channels // group, *kernel), number(0.125), of(), number(2.0), of()]
    if _yes(rng):
        inputs.append(rng.integers(-500, 500, filters).astype("i4"))
    return Call("QLinearConv", inputs, [1, 2, 4, 5, 6, 7] + ([3, 8][: len(inputs) - 7] if _yes(rng) else []), group=group,
                strides=_ints(rng, 1, 3, 2), pads=_ints(rng, 0, 3, 4))


def open_weights(rng):
    """Convolutions and normalizations whose weight comes with the input, transposed ones by all of the ways to say their output."""
    group, rank = _one(rng, [1, 1, 2]), _one(rng, [1, 2, 2, 3])
    channels, filters = group * int(rng.integers(1, 3)), group * int(rng.integers(1, 3))
    kernel, strides, space = _ints(rng, 1, 4, rank), _ints(rng, 1, 4, rank), _ints(rng, 1, 5, rank)
    whole = lambda *shape: rng.integers(-4, 5, shape).astype("f4")  # noqa: E731
    if _yes(rng, 0.2):
        x = _plain(rng, [2, 2 * group, *space])
        return Call("GroupNormalization", [x, _plain(rng, [2 * group]), _plain(rng, [2 * group])], num_groups=group, opset=21, epsilon=1e-2)
    attributes = {"group": group, "strides": strides}
    if _yes(rng, 0.3):
        attributes["kernel_shape"] = kernel
    bias = [whole(filters)] if _yes(rng) else []
    way = _one(rng, ["pads", "SAME_UPPER", "SAME_LOWER", "VALID", ""])
    if _yes(rng, 0.4):
        space = [n + k for n, k in zip(space, kernel)]
        if way == "pads":
            attributes["pads"] = _ints(rng, 0, 2, 2 * rank)
        elif way:
            attributes["auto_pad"] = way
        return Call("Conv", [whole(1, channels, *space), whole(filters, channels // group, *kernel), *bias], **attributes)
    if way == "pads":
        attributes["pads"] = [int(rng.integers(0, min(2, k))) for k in kernel * 2]
    elif way == "SAME_UPPER" and _yes(rng):
        attributes["output_shape"] = [n * s + int(rng.integers(0, 2)) for n, s in zip(space, strides)]
    elif way:
        attributes["auto_pad"] = way
    if way in ("pads", "VALID", ""):
        attributes["output_padding"] = [int(rng.integers(0, s)) for s in strides]
    return Call("ConvTranspose", [whole(1, channels, *space), whole(channels, filters // group, *kernel), *bias], **attributes)


def attended(rng):
    heads, shared, rows, others, width = 4, _one(rng, [4, 2, 1]), int(rng.integers(1, 4)), int(rng.integers(1, 5)), 4
    if _yes(rng, 0.4):
        table = [_plain(rng, [6, width // 2]), _plain(rng, [6, width // 2])]
        return Call("RotaryEmbedding", [_plain(rng, [2, heads, rows, width]), *table, rng.integers(0, 6, [2, rows])], opset=23, interleaved=int(_yes(rng)))
    inputs = [_plain(rng, [2, heads, rows, width]), _plain(rng, [2, shared, others, width]), _plain(rng, [2, shared, others, width])]
    if _yes(rng):
        inputs.append(_plain(rng, _one(rng, [[rows, others], [2, 1, rows, others], [2, heads, rows, others]])))
    return Call("Attention", inputs, opset=23, **({"is_causal": 1} if _yes(rng) else {}), **({"softcap": 2.0} if _yes(rng, 0.3) else {}))


def spectra(rng):
    if _yes(rng, 0.3):
        return Call("MelWeightMatrix", [np.array(4), np.array(16), np.array(8000), np.float32(0), np.float32(4000)], [0, 1], opset=17)
    if _yes(rng, 0.3):
        return Call("CumProd", [rng.integers(-3, 4, _shape(rng, 2)).astype("f4"), np.array(int(rng.integers(-2, 2)))], [1], opset=26,
                    exclusive=int(_yes(rng)), reverse=int(_yes(rng)))
    width = _one(rng, [4, 6, 8])
    window = _yes(rng)
    inputs = [_plain(rng, [2, int(rng.integers(8, 20)), 1]), np.array(int(rng.integers(1, 4))), _plain(rng, [width]) if window else None, np.array(width)]
    return Call("STFT", inputs, [1, 2, 3] if window else [1, 3], opset=17, onesided=int(_yes(rng)))


MAKERS = [splits, found, small_images, regions, suppressed, grids, quantized_sums, open_weights, attended, spectra]
