"""Writes operators.json: cases of operators with results that NumPy computes.

Run with a Python that has NumPy, in this folder: `python operators.py > operators.json`.
An argument is "$0" (the first input), {"shape": [...]}, {"scalar": v}, {"scalars": [...]} or {"tuple": ["$0", ...]}.
"""
import json
import math

import numpy as np

rng = np.random.default_rng(0)
CASES = []


def encode(a):
    a = np.asarray(a)
    flat = a.reshape(-1)
    if a.dtype.kind == "f":
        data = [float(np.float32(v)) if math.isfinite(v) else str(float(v)) for v in flat]
    else:
        data = [int(v) for v in flat]
    return {"shape": list(a.shape), "dtype": str(a.dtype), "data": data}


def case(op, inputs, expect, args=None, **attrs):
    inputs = [np.asarray(i) for i in inputs]
    args = [f"${i}" for i in range(len(inputs))] if args is None else args
    expect = [encode(e) for e in (expect if isinstance(expect, (list, tuple)) else [expect])]
    CASES.append({"op": op, "inputs": [encode(i) for i in inputs], "args": args, "attrs": attrs, "expect": expect})


def f(*shape, low=-2.0, high=2.0):
    return rng.uniform(low, high, shape).astype("float32").round(3)


def i(*shape, low=-5, high=6, dtype="int32"):
    return rng.integers(low, high, shape).astype(dtype)


F = np.float32
x, y = f(2, 3), f(2, 3)
erf = np.vectorize(math.erf, otypes=["float32"])
sigmoid = lambda v: 1 / (1 + np.exp(-v))

for name, fn in {
    "abs": np.abs, "atan": np.arctan, "asinh": np.arcsinh, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "erf": erf,
    "exp": np.exp, "floor": np.floor, "negative": np.negative, "round": np.round, "sigmoid": sigmoid, "sign": np.sign,
    "sin": np.sin, "sinh": np.sinh, "square": np.square, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc,
    "nn.relu": lambda v: np.maximum(v, 0), "nn.silu": lambda v: v * sigmoid(v),
    "nn.gelu": lambda v: v * (1 + erf(v / np.sqrt(2))) / 2,
    "nn.gelu_tanh": lambda v: v / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (v + 0.044715 * v**3))),
    "nn.selu": lambda v: 1.0507009873554805 * np.where(v > 0, v, 1.6732632423543772 * (np.exp(v) - 1)),
    "isnan": np.isnan, "isfinite": np.isfinite,
}.items():
    case(name, [x], fn(x).astype("bool" if name[:2] == "is" else "float32"))
case("logical_not", [x > 0], ~(x > 0))
unit = f(4, low=-0.9, high=0.9)
for name, fn in {"acos": np.arccos, "asin": np.arcsin, "atanh": np.arctanh}.items():
    case(name, [unit], fn(unit))
positive = f(4, low=1.1, high=4.0)
for name, fn in {"acosh": np.arccosh, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda v: 1 / np.sqrt(v)}.items():
    case(name, [positive], fn(positive).astype("float32"))
n = i(5)
case("abs", [n], np.abs(n))
case("sign", [n], np.sign(n))
case("negative", [n], -n)

row, column = f(1, 3), f(2, 1)
for name, fn in {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "atan2": np.arctan2, "floor_mod": np.mod, "mod": np.fmod, "floor_divide": np.floor_divide,
    "log_add_exp": np.logaddexp, "equal": np.equal, "less": np.less, "greater_equal": np.greater_equal,
}.items():
    case(name, [row, column], fn(row, column))
case("power", [positive, unit], np.power(positive, unit))
a, b = i(6), i(6, low=1, high=5)
for name, fn in {"floor_divide": np.floor_divide, "floor_mod": np.mod, "bitwise_and": np.bitwise_and,
                 "bitwise_xor": np.bitwise_xor, "left_shift": np.left_shift, "not_equal": np.not_equal}.items():
    case(name, [a, b], fn(a, b))
case("divide", [a, b], np.trunc(a / b).astype("int32"))
p, q = np.array([1, 0, 1, 0], "bool"), np.array([1, 1, 0, 0], "bool")
for name, fn in {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}.items():
    case(name, [p, q], fn(p, q))
case("add", [x], x + F(2), args=["$0", {"scalar": 2}])

cube = f(2, 3, 4)
for name, fn in {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "variance": np.var, "std": np.std}.items():
    case(name, [cube], fn(cube, axis=1), axis=[1])
    case(name, [cube], fn(cube, axis=(0, 2), keepdims=True), axis=[0, -1], keepdims=True)
    case(name, [cube], fn(cube))
for name, fn in {"argmax": np.argmax, "argmin": np.argmin}.items():
    case(name, [cube], fn(cube, axis=2).astype("int64"), axis=2)
    case(name, [cube], fn(cube).astype("int64"))
case("argmax", [np.array([3, 1, 3], "float32")], np.int64(0))

case("reshape", [cube], cube.reshape(4, 6), args=["$0", {"shape": [4, 6]}])
case("reshape", [cube], cube.reshape(2, 6, 2), args=["$0", {"shape": [2, -1, 2]}])
case("flatten", [cube], cube.reshape(-1))
case("expand_dims", [x], x[:, None, :, None], axis=[1, 3])
s = f(1, 3, 1)
case("squeeze", [s], s.reshape(3))
case("squeeze", [s], s.reshape(1, 3), axis=[-1])
case("permute_dims", [cube], cube.transpose(2, 0, 1), axes=[2, 0, 1])
case("permute_dims", [cube], cube.T)
case("broadcast_to", [row], np.broadcast_to(row, (2, 3)), args=["$0", {"shape": [2, 3]}])
case("concat", [x, y, x], np.concatenate([x, y, x], 1), args=[{"tuple": ["$0", "$1", "$2"]}], axis=1)
case("stack", [x, y], np.stack([x, y], 2), args=[{"tuple": ["$0", "$1"]}], axis=-1)
case("split", [cube], np.split(cube, [1, 3], 2), indices_or_sections=[1, 3], axis=2)
case("split", [cube], np.split(cube, 3, 1), indices_or_sections=3, axis=1)
case("flip", [cube], np.flip(cube, 1), axis=1)
case("tile", [x], np.tile(x, (2, 1, 2)), repeats=[2, 1, 2])
case("repeat", [x], np.repeat(x, 2, 1), repeats=2, axis=1)
case("repeat", [x], np.repeat(x, 3), repeats=3)

case("strided_slice", [cube], cube[:, 1:, 3:0:-2], args=["$0", {"scalars": [1, 2]}, {"scalars": [1, 3]}, {"scalars": [99, 0]}, {"scalars": [1, -2]}])
case("strided_slice", [cube], cube[:, :, -3:-1], args=["$0", {"scalars": [2]}, {"scalars": [-3]}, {"scalars": [-1]}])
case("strided_slice", [cube], cube[:, 2:1], args=["$0", {"scalars": [1]}, {"scalars": [2]}, {"scalars": [1]}])
u, v = f(1, 2), f(2, 1)
case("where", [p.reshape(2, 2), u, v], np.where(p.reshape(2, 2), u, v))
at = np.array([[2, 0], [-1, 1]], "int64")
case("take", [cube], np.take(cube, 1, 2), args=["$0", {"scalar": 1}], axis=2)
case("take", [cube, at], np.take(cube, at, 1), axis=1)
case("take", [cube.reshape(-1), np.array([5, 9])], np.take(cube, [5, 9]))
case("take", [x, np.array([7, 1])], np.take(x, [7, 1], 1, mode="clip"), axis=1, mode="clip")
g = np.array([[0, 2, 1], [1, 1, 0]], "int64")
case("gather_elements", [x, g], np.take_along_axis(x, g, 1), axis=1)
points = np.array([[0, 2], [1, 1]], "int64")
case("gather_nd", [cube, points], cube[points[:, 0], points[:, 1]])
hot = np.array([1, 0, 3], "int64")
case("one_hot", [hot], np.eye(4, dtype="float32")[hot], args=["$0", {"scalar": 1.0}, {"scalar": 0.0}], depth=4)

case("zeros", [], np.zeros((2, 2), "float32"), args=[{"shape": [2, 2]}], dtype="float32")
case("full", [np.float32(3)], np.full((2, 2), 3, "float32"), args=[{"shape": [2, 2]}, "$0"])
case("ones_like", [x], np.ones_like(x))
case("full_like", [x], np.full_like(x, 7), args=["$0", {"scalar": 7}])
case("arange", [], np.arange(2, 9, 3), args=[{"scalar": 2}, {"scalar": 9}, {"scalar": 3}], dtype="int64")
case("arange", [], np.arange(0, 1, 0.25, "float32"), args=[{"scalar": 0.0}, {"scalar": 1.0}, {"scalar": 0.25}], dtype="float32")
case("eye", [], np.eye(3, 4, 1, "float32"), args=[{"scalar": 3}, {"scalar": 4}, {"scalar": 1}], dtype="float32")
case("tril", [cube], np.tril(cube, 1), args=["$0", {"scalar": 1}])
case("triu", [cube], np.triu(cube, 0), args=["$0", {"scalar": 0}])
case("astype", [x], x.astype("int32"), dtype="int32")
case("astype", [n], n.astype("float32"), dtype="float32")
case("astype", [n], n.astype("bool"), dtype="bool")
case("clip", [x], np.clip(x, -1, 0.5), args=["$0", {"scalar": -1.0}, {"scalar": 0.5}])
case("clip", [n], np.clip(n, -2, None), args=["$0", {"scalar": -2}, {"scalar": 1e30}])

m1, m2, vec = f(2, 1, 3, 4), f(5, 4, 2), f(4)
case("matmul", [m1, m2], m1 @ m2)
case("matmul", [m1, vec], m1 @ vec)
case("matmul", [vec, m2], vec @ m2)
case("matmul", [vec, vec], vec @ vec)


def softmax(v, axis):
    e = np.exp(v - v.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


case("nn.softmax", [cube], softmax(cube, 1), axis=1)
case("nn.log_softmax", [cube], np.log(softmax(cube, -1)))
channel = lambda v: v[None, :, None]
gamma, beta, mean, var = f(3), f(3), f(3), f(3, low=0.5)
expected = channel(gamma) * (cube - channel(mean)) / np.sqrt(channel(var) + F(1e-5)) + channel(beta)
case("nn.batch_norm", [cube, gamma, beta, mean, var], [expected, mean, var], axis=1, training=False)
bm, bv = cube.mean((0, 2)), cube.var((0, 2))
expected = channel(gamma) * (cube - channel(bm)) / np.sqrt(channel(bv) + F(1e-5)) + channel(beta)
case("nn.batch_norm", [cube, gamma, beta, mean, var], [expected, mean * F(0.9) + bm * F(0.1), var * F(0.9) + bv * F(0.1)], axis=1)


def norm(v, axes):
    return (v - v.mean(axes, keepdims=True)) / np.sqrt(v.var(axes, keepdims=True) + F(1e-5))


lg, lb = f(3, 4), f(3, 4)
case("nn.layer_norm", [cube, lg, lb], norm(cube, (1, 2)) * lg + lb, axes=[1, 2])
case("nn.instance_norm", [cube, gamma, beta], norm(cube, (2,)) * channel(gamma) + channel(beta), channel_axis=1, axes=[2])
wide, wg, wb = f(2, 4, 3), f(4), f(4)
grouped = norm(wide.reshape(2, 2, 2, 3), (2, 3)).reshape(2, 4, 3)
case("nn.group_norm", [wide, wg, wb], grouped * channel(wg) + channel(wb), num_groups=2, channel_axis=1, axes=[2])
w = f(4)
case("nn.rms_norm", [cube, w], cube / np.sqrt((cube**2).mean(-1, keepdims=True) + F(1e-5)) * w)

case("nn.leakyrelu", [x], np.where(x > 0, x, x * F(0.2)), alpha=0.2)
case("nn.softplus", [x], np.log1p(np.exp(x)))
case("nn.prelu", [cube, gamma], np.where(cube > 0, cube, cube * channel(gamma)))
case("nn.pad", [x], np.pad(x, ((1, 0), (0, 2)), constant_values=5), pad_width=[1, 0, 0, 2], pad_value=5.0)
case("nn.pad", [x], np.pad(x, ((0, 0), (1, 2)), mode="reflect"), pad_width=[0, 0, 1, 2], pad_mode="reflect")
case("nn.pad", [x], np.pad(x, ((1, 1), (0, 2)), mode="edge"), pad_width=[1, 1, 0, 2], pad_mode="replicate")
case("nn.pad", [x], np.pad(x, ((0, 0), (2, 1)), mode="wrap"), pad_width=[0, 0, 2, 1], pad_mode="circular")
case("nn.dropout", [x], [x, np.ones_like(x)])

case("cumsum", [cube], np.cumsum(cube, 1), axis=1)
case("cumsum", [n], np.cumsum(n).astype("int32"))
case("cumsum", [x], np.cumsum(x, 1) - x, axis=1, exclusive=True)
case("cumprod", [x], np.cumprod(x, 0), axis=0)
ties = np.array([[3, 1, 3, 2], [0, 0, -1, 5]], "float32")
case("sort", [ties], np.sort(ties, 1))
case("argsort", [ties], np.argsort(ties, 1, kind="stable").astype("int32"))
down = np.argsort(-ties, 1, kind="stable")
case("argsort", [ties], down.astype("int64"), descending=True, dtype="int64")
case("topk", [ties], [np.take_along_axis(ties, down, 1)[:, :2], down[:, :2].astype("int32")], k=2)

image = f(1, 2, 4, 6)
case("nn.adaptive_avg_pool2d", [image], image.mean((2, 3), keepdims=True), output_size=[1, 1])
case("nn.adaptive_avg_pool2d", [image], image.reshape(1, 2, 2, 2, 3, 2).mean((3, 5)), output_size=[2, 3])
cells = np.stack([image[:, :, :, c * 6 // 4:-(-(c + 1) * 6 // 4)].mean(3) for c in range(4)], 3)
case("nn.adaptive_avg_pool2d", [image], cells, output_size=[4, 4])
signal, taps = f(1, 2, 7), f(3, 2, 3)
padded = np.pad(signal, ((0, 0), (0, 0), (1, 1)))
conv = np.stack([(padded[:, None, :, k * 2:k * 2 + 3] * taps[None]).sum((2, 3)) for k in range(4)], 2)
case("nn.conv1d", [signal, taps], conv, strides=[2], padding=[1, 1])
case("size", [cube], np.int64(24))
case("shape_to_tensor", [], np.array([2, 3, 4], "int64"), args=[{"shape": [2, 3, 4]}])

left, right = f(3), f(2)
case("outer", [left, right], np.outer(left, right))
case("ewise_fma", [x, y, x], x * y + x)
shuffled = f(1, 8, 2, 3)
case("nn.pixel_shuffle", [shuffled], shuffled.reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3).reshape(1, 2, 4, 6), upscale_factor=2)
case("nn.cross_entropy_with_logits", [x, y], np.float32(-(x * y).sum() / 2))
line = f(1, 2, 6)
case("nn.max_pool1d", [line], line.reshape(1, 2, 3, 2).max(3), pool_size=[2], strides=[2])
case("nn.avg_pool1d", [line], line.reshape(1, 2, 3, 2).mean(3), pool_size=[2], strides=[2])
qq, kk, vv, bias = f(1, 3, 2, 4), f(1, 5, 2, 4), f(1, 5, 2, 4), f(1, 2, 3, 5)
heads = lambda t: t.transpose(0, 2, 1, 3)
scores = heads(qq) @ heads(kk).transpose(0, 1, 3, 2) / 2
case("nn.attention", [qq, kk, vv], heads(softmax(scores, -1) @ heads(vv)))
case("nn.attention_bias", [qq, kk, vv, bias], heads(softmax(scores + bias, -1) @ heads(vv)))
target, where_to, news = f(3, 3), np.array([[2, 0, 1], [1, 1, -1]], "int64"), f(2, 3)
scattered = target.copy()
np.put_along_axis(scattered, where_to % 3, news, 0)
case("scatter_elements", [target, where_to, news], scattered)
added = target.copy()
np.add.at(added, (where_to % 3, np.broadcast_to(np.arange(3), (2, 3))), news)
case("scatter_elements", [target, where_to, news], added, axis=0, reduction="add")
rows, fresh = np.array([[2], [0]], "int64"), f(2, 3)
moved = target.copy()
moved[[2, 0]] = fresh
case("scatter_nd", [target, rows, fresh], moved)
step, zero = np.array([0.1, 0.2, 0.05], "float32"), np.array([0, 3, -2], "int32")
case("quantize", [x, step, zero], np.clip(np.round(x / step) + zero, -128, 127).astype("int8"))
whole = i(2, 3, dtype="int8")
case("dequantize", [whole, step, zero], ((whole.astype("int32") - zero) * step).astype("float32"))
e1, e2 = f(2, 3, 4), f(4, 5)
case("einsum", [e1, e2], np.einsum("bij,jk->bik", e1, e2), args=[{"tuple": ["$0", "$1"]}], subscripts="bij,jk->bik")
case("einsum", [target], np.einsum("ii->i", target), args=[{"tuple": ["$0"]}], subscripts="ii->i")
case("einsum", [e2], np.einsum("ij->ji", e2), args=[{"tuple": ["$0"]}], subscripts="ij->ji")

print("[" + ",\n".join(json.dumps(c) for c in CASES) + "]")
