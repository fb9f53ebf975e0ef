"""Calls of operators that add many terms, or compute functions, of random lengths: products, convolutions, reductions, norms.

Lengths lie below a vector, among some vectors, and beyond, so that what is left of a vector comes up as often as what fills it.
"""

import numpy as np
import ways
from ways import Call


def length(rng):
    """A length below a vector, of some vectors and what is left, or of many."""
    return int(rng.choice([rng.integers(1, 17), rng.integers(17, 70), rng.integers(70, 300)], p=[0.4, 0.4, 0.2]))


def numbers(rng, *shape):
    return ways.values(rng, shape, special=False)


def product(rng):
    m, k, n = length(rng), length(rng), length(rng)
    a, b = numbers(rng, 1 if rng.random() < 0.4 else m, k), numbers(rng, k, n)
    return Call("MatMul", [a, b], [1] if rng.random() < 0.5 else [])


def product_of_transposed(rng):
    m, k, n = int(rng.choice([1, 2, length(rng)])), length(rng), length(rng)
    return Call("Gemm", [numbers(rng, m, k), numbers(rng, n, k), numbers(rng, n)], [1] if rng.random() < 0.5 else [], transB=1, alpha=0.7)


def batched_product(rng):
    b, m, k, n = int(rng.integers(1, 4)), length(rng) // 3 + 1, length(rng), length(rng)
    return Call("MatMul", [numbers(rng, b, m, k), numbers(rng, b, k, n)])


def convolution(rng):
    groups = int(rng.choice([1, 1, 2, 4]))
    c, f = groups * int(rng.integers(1, 20)), groups * int(rng.integers(1, 20))
    kernel, size = int(rng.choice([1, 3, 3, 5])), int(rng.integers(7, 30))
    step, dilation = int(rng.choice([1, 1, 2])), int(rng.choice([1, 1, 2]))
    pad = int(rng.integers(0, kernel))
    size = max(size, dilation * (kernel - 1) + 1)
    return Call("Conv", [numbers(rng, 1, c, size, size + 3), numbers(rng, f, c // groups, kernel, kernel), numbers(rng, f)],
                [1, 2], group=groups, strides=[step] * 2, dilations=[dilation] * 2, pads=[pad] * 4)


def depthwise(rng):
    c, kernel, step = int(rng.integers(1, 40)), int(rng.choice([3, 5])), int(rng.choice([1, 2]))
    return Call("Conv", [numbers(rng, 1, c, int(rng.integers(7, 40)), int(rng.integers(7, 40))), numbers(rng, c, 1, kernel, kernel)],
                [1], group=c, strides=[step] * 2, pads=[kernel // 2] * 4)


def transposed(rng):
    c, f, kernel, step = int(rng.integers(1, 20)), int(rng.integers(1, 20)), int(rng.choice([2, 3, 4])), int(rng.choice([1, 2]))
    return Call("ConvTranspose", [numbers(rng, 1, c, 9, 11), numbers(rng, c, f, kernel, kernel)], [1], strides=[step] * 2)


def signal(rng):
    c, f, kernel = int(rng.integers(1, 40)), int(rng.integers(1, 40)), int(rng.choice([3, 7]))
    return Call("Conv", [numbers(rng, 1, c, 7 + length(rng)), numbers(rng, f, c, kernel)], [1], pads=[kernel // 2] * 2)


def reduced(rng):
    rank = int(rng.integers(1, 4))
    shape = [length(rng) if i == rank - 1 else length(rng) // 4 + 1 for i in range(rank)]
    axes = np.sort(rng.choice(rank, int(rng.integers(1, rank + 1)), replace=False)).astype("i8")
    op = str(rng.choice(["ReduceSum", "ReduceMean", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare", "ReduceL1"]))
    return Call(op, [numbers(rng, *shape), axes], [1], keepdims=int(rng.integers(0, 2)))


def softmax(rng):
    return Call(str(rng.choice(["Softmax", "LogSoftmax"])), [numbers(rng, int(rng.integers(1, 9)), length(rng))], axis=-1)


def normalized(rng):
    rows, n = int(rng.integers(1, 9)), length(rng)
    return Call("LayerNormalization", [numbers(rng, rows, n), numbers(rng, n), numbers(rng, n)], [1, 2], axis=-1)


def normalized_image(rng):
    c = int(rng.integers(1, 9))
    return Call("InstanceNormalization", [numbers(rng, 1, c, int(rng.integers(2, 20)), length(rng)), numbers(rng, c), numbers(rng, c)], [1, 2])


def pooled(rng):
    x = numbers(rng, 1, int(rng.integers(1, 40)), int(rng.integers(7, 30)), int(rng.integers(7, 30)))
    if rng.random() < 0.3:
        return Call("GlobalAveragePool", [x])
    return Call("AveragePool", [x], kernel_shape=[3, 3], strides=[int(rng.choice([1, 2]))] * 2, pads=[1] * 4)


def summed_up(rng):
    return Call("CumSum", [numbers(rng, int(rng.integers(1, 9)), length(rng)), np.array(1)], [1])


def functions(rng):
    op = str(rng.choice(["Exp", "Log", "Tanh", "Sigmoid", "Erf", "Softplus", "Sin", "Cos", "Atan", "Asinh", "Sqrt", "Reciprocal", "Gelu", "Mish"]))
    x = numbers(rng, length(rng)) * np.float32(rng.choice([0.1, 3, 40]))
    return Call(op, [np.abs(x) if op in ("Log", "Sqrt") else x], opset=20)


def recurrent(rng):
    steps, batch, size, hidden = int(rng.integers(1, 5)), int(rng.integers(1, 4)), length(rng) // 2 + 1, int(rng.integers(1, 50))
    op, gates = [("LSTM", 4), ("GRU", 3)][int(rng.integers(0, 2))]
    return Call(op, [numbers(rng, steps, batch, size), numbers(rng, 1, gates * hidden, size), numbers(rng, 1, gates * hidden, hidden)],
                [1, 2], hidden_size=hidden)


MAKERS = [product, product_of_transposed, batched_product, convolution, depthwise, transposed, signal, reduced, softmax, normalized,
        normalized_image, pooled, summed_up, functions, recurrent]
