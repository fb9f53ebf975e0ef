"""More makers of calls for :mod:`ways`: operators that move, sort, divide and normalize."""

import numpy as np
from ways import Call, _pair, _shape, values


def division(rng):
    dtype = str(rng.choice(["i8", "i4", "f4"]))
    a, b = _pair(rng)
    below = values(rng, b, dtype, special=False)
    return Call("Div", [values(rng, a, dtype, special=dtype == "f4"), np.where(below == 0, np.array(3, dtype), below)])


def modulo(rng):
    dtype = str(rng.choice(["i8", "i4", "f4"]))
    a, b = _pair(rng)
    below = values(rng, b, dtype, special=False)
    below = np.where(below == 0, np.array(3, dtype), below)
    return Call("Mod", [values(rng, a, dtype, special=False), below], fmod=1 if dtype == "f4" else int(rng.integers(0, 2)))


def comparison(rng):
    dtype = str(rng.choice(["i8", "f4", "u8", "i4"]))
    a, b = _pair(rng)
    return Call(str(rng.choice(["Less", "Greater", "Equal", "LessOrEqual", "GreaterOrEqual"])), [values(rng, a, dtype), values(rng, b, dtype)])


def cumulative(rng):
    shape = _shape(rng, 2, 1)
    x = rng.integers(-9, 9, shape).astype(str(rng.choice(["f4", "i8", "i4"])))
    attributes = {"exclusive": int(rng.integers(0, 2)), "reverse": int(rng.integers(0, 2))}
    return Call("CumSum", [x, np.array(int(rng.integers(-2, 2)))], [1], **attributes)


def softmax(rng):
    op = str(rng.choice(["Softmax", "LogSoftmax", "Hardmax"]))
    x = values(rng, _shape(rng, int(rng.integers(1, 4)), 1), special=op != "Hardmax")
    # Where infinities meet, the answer is no number, and which it is depends on the order of steps.
    return Call(op, [np.clip(np.nan_to_num(x, nan=0.0), -1e30, 1e30)], axis=int(rng.integers(-1, 1)))


def tile(rng):
    shape = _shape(rng, 2)
    return Call("Tile", [values(rng, shape), rng.integers(0, 4, 2)], [1])


def transpose(rng):
    rank = int(rng.integers(1, 5))
    return Call("Transpose", [values(rng, _shape(rng, rank), str(rng.choice(["f4", "i8", "bool"])))], perm=[int(a) for a in rng.permutation(rank)])


def flatten(rng):
    rank = int(rng.integers(1, 4))
    return Call("Flatten", [values(rng, _shape(rng, rank, 1))], axis=int(rng.integers(-rank, rank + 1)))


def blocks(rng):
    block = int(rng.integers(1, 4))
    n, c, y, x = (int(v) for v in rng.integers(1, 4, 4))
    if rng.random() < 0.5:
        return Call("SpaceToDepth", [values(rng, [n, c, y * block, x * block])], blocksize=block)
    return Call("DepthToSpace", [values(rng, [n, c * block * block, y, x])], blocksize=block, mode=str(rng.choice(["DCR", "CRD"])))


def triangle(rng):
    x = values(rng, _shape(rng, int(rng.integers(2, 4))), str(rng.choice(["f4", "i8"])))
    return Call("Trilu", [x, np.array(int(rng.integers(-12, 12)))], [1], upper=int(rng.integers(0, 2)))


def sums(rng):
    op = str(rng.choice(["ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp", "ReduceMean"]))
    rank = int(rng.integers(1, 4))
    axes = np.unique(rng.integers(-rank, rank, 1))
    x = rng.integers(-3, 4, _shape(rng, rank, 1)).astype("f4")
    return Call(op, [x, axes], [1], keepdims=int(rng.integers(0, 2)))


def gathered(rng):
    shape, axis = _shape(rng, 2, 1), int(rng.integers(0, 2))
    places = list(shape)
    places[axis] = int(rng.integers(1, 7))
    return Call("GatherElements", [values(rng, shape), rng.integers(-shape[axis], shape[axis], places)], axis=axis)


def normalization(rng):
    shape = _shape(rng, 3, 1)
    axis = int(rng.integers(1, 3))
    rest = shape[axis:]
    return Call("LayerNormalization", [values(rng, shape, special=False), values(rng, rest, special=False), values(rng, rest, special=False)], axis=axis)


def squeeze(rng):
    shape = [1, *_shape(rng, 2), 1]
    axes = rng.permutation([0, 3])[: int(rng.integers(1, 3))]
    return Call("Squeeze", [values(rng, shape), axes], [1])


def cast(rng):
    source, target = str(rng.choice(["f4", "i8", "i4", "u1", "bool", "f8"])), int(rng.choice([1, 7, 6, 9, 11]))
    x = values(rng, _shape(rng, 2), source, special=False)
    return Call("Cast", [x], to=target)


def bits(rng):
    a, b = _pair(rng)
    op = str(rng.choice(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]))
    dtype = str(rng.choice(["i8", "i4", "u8", "u1"]))
    return Call(op, [values(rng, a, dtype), values(rng, b, dtype)])


def shift(rng):
    a, b = _pair(rng)
    dtype = str(rng.choice(["u8", "u1"]))
    return Call("BitShift", [values(rng, a, dtype), rng.integers(0, 8, b).astype(dtype)], direction=str(rng.choice(["LEFT", "RIGHT"])))


def gathered_places(rng):
    batch = int(rng.integers(0, 2))
    shape = _shape(rng, 3, 1)
    depth, count = int(rng.integers(1, 3 - batch + 1)), int(rng.integers(1, 5))
    columns = [rng.integers(-shape[batch + d], shape[batch + d], [*shape[:batch], count]) for d in range(depth)]
    return Call("GatherND", [values(rng, shape), np.stack(columns, -1)], batch_dims=batch)


def reversed_rows(rng):
    time, batch = int(rng.integers(1, 6)), int(rng.integers(1, 5))
    return Call("ReverseSequence", [values(rng, [time, batch, 2]), rng.integers(1, time + 1, batch)], time_axis=0, batch_axis=1)


def crop(rng):
    shape = _shape(rng, 2, 1)
    return Call("CenterCropPad", [values(rng, shape, special=False), rng.integers(1, 9, 2)], [1])


def pooled(rng):
    shape = [1, int(rng.integers(1, 3)), *(int(v) for v in rng.integers(3, 9, 2))]
    op = str(rng.choice(["MaxPool", "AveragePool"]))
    attributes = {"kernel_shape": [int(v) for v in rng.integers(1, 4, 2)], "strides": [int(v) for v in rng.integers(1, 3, 2)],
                  "ceil_mode": int(rng.integers(0, 2))}
    return Call(op, [values(rng, shape, special=False)], **attributes)


MAKERS = [division, modulo, comparison, cumulative, softmax, tile, transpose, flatten, blocks, triangle, sums, gathered, normalization,
          squeeze, cast, bits, shift, gathered_places, reversed_rows, crop, pooled]
