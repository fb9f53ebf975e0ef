"""Cases of operators with results that NumPy, or a loop in Python, computes.

A case is a call, as TVMScript over `{0}`, `{1}` …, its inputs, and what it gives. Shapes, dtypes and attributes are random.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Case:
    call: str
    inputs: list
    expect: object
    #: How far floating-point results may be off, relative and absolute.
    tolerance: float = 2e-5
    #: Whether dimensions may be symbolic.
    symbolic: bool = True
    #: The extent of dimensions that the call names itself, which stay numbers.
    fixed: tuple = field(default_factory=tuple)


class Random:
    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def int(self, low, high):
        return int(self.rng.integers(low, high + 1))

    def pick(self, *options):
        return options[self.int(0, len(options) - 1)]

    def chance(self, share):
        return self.rng.random() < share

    def shape(self, low=0, high=4, empty=0.06):
        return tuple(0 if self.chance(empty) else self.int(1, 5) for _ in range(self.int(low, high)))

    def data(self, shape, dtype="float32", low=-3, high=3):
        if dtype == "bool":
            return self.rng.random(shape) > 0.5
        if dtype.startswith("float"):
            return np.asarray(self.rng.uniform(low, high, shape), dtype)
        low = max(low, 0) if dtype.startswith("u") else low
        return np.asarray(self.rng.integers(low, high + 1, shape), dtype)

    def floats(self):
        return self.pick("float32", "float32", "float64", "float16")

    def numbers(self):
        return self.pick("float32", "float64", "int32", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64")

    def broadcast(self, shape):
        out = tuple(1 if self.chance(0.3) else d for d in shape[self.int(0, len(shape)) :])
        return out


TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-9}


def tolerance(*arrays):
    return max((TOLERANCE.get(str(a.dtype), 0) for a in arrays), default=0)


def wide(x):
    return x.astype("float64") if x.dtype.kind == "f" else x


# Element by element.

erf = np.vectorize(math.erf, otypes=["float64"])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


UNARY = {
    "acos": (np.arccos, -0.95, 0.95), "acosh": (np.arccosh, 1.1, 4), "asin": (np.arcsin, -0.95, 0.95), "asinh": (np.arcsinh, -3, 3),
    "atan": (np.arctan, -3, 3), "atanh": (np.arctanh, -0.9, 0.9), "cos": (np.cos, -3, 3), "cosh": (np.cosh, -2, 2), "erf": (erf, -2, 2),
    "exp": (np.exp, -3, 3), "log": (np.log, 0.1, 4), "rsqrt": (lambda x: 1 / np.sqrt(x), 0.1, 4), "sigmoid": (sigmoid, -4, 4),
    "sin": (np.sin, -3, 3), "sinh": (np.sinh, -2, 2), "sqrt": (np.sqrt, 0.1, 4), "tan": (np.tan, -1.2, 1.2), "tanh": (np.tanh, -3, 3),
    "nn.gelu": (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, -3, 3),
    "nn.gelu_tanh": (lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), -3, 3),
    "nn.silu": (lambda x: x * sigmoid(x), -3, 3),
    "nn.selu": (lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * (np.exp(x) - 1)), -3, 3),
}
ANY_UNARY = {
    "abs": np.abs, "ceil": np.ceil, "floor": np.floor, "round": np.round, "trunc": np.trunc, "negative": np.negative,
    "sign": np.sign, "square": np.square, "nn.relu": lambda x: np.maximum(x, 0),
}


def unary(name):
    def case(r):
        f, low, high = UNARY[name]
        dtype = r.floats()
        x = r.data(r.shape(), dtype, low, high)
        return Case(f"R.{name}({{0}})", [x], np.asarray(f(wide(x)), dtype), 10 * tolerance(x) if name in ("tan", "nn.gelu", "nn.gelu_tanh") else 3 * tolerance(x))

    return case


def any_unary(name):
    def case(r):
        x = r.data(r.shape(), r.numbers(), -5, 5)
        return Case(f"R.{name}({{0}})", [x], np.asarray(ANY_UNARY[name](x), x.dtype))

    return case


def to_bfloat16(x):
    """The nearest numbers of eight bits of fraction, in single precision; ties go to the even one."""
    bits = np.ascontiguousarray(x, "float32").view("uint32").astype("uint64")
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    return rounded.astype("uint32").view("float32").reshape(x.shape)


#: Calls in bfloat16 and the same in single precision; results may be off by a rounding or two.
NARROW = {
    "add": ("R.add({0}, {1})", np.add), "multiply": ("R.multiply({0}, {1})", np.multiply), "divide": ("R.divide({0}, {1})", np.divide),
    "maximum": ("R.maximum({0}, {1})", np.maximum), "negative": ("R.negative({0})", lambda a, b: -a), "abs": ("R.abs({0})", lambda a, b: abs(a)),
    "exp": ("R.exp({0})", lambda a, b: np.exp(a)), "tanh": ("R.tanh({0})", lambda a, b: np.tanh(a)), "nn.relu": ("R.nn.relu({0})", lambda a, b: np.maximum(a, 0)),
    "sigmoid": ("R.sigmoid({0})", lambda a, b: sigmoid(a)), "max": ("R.max({0}, axis=[1])", lambda a, b: a.max(1)),
    "matmul": ('R.matmul({0}, R.permute_dims({1}, axes=[1, 0]), out_dtype="float32")', lambda a, b: a @ b.T), "floor": ("R.floor({0})", lambda a, b: np.floor(a)),
    "concat": ("R.concat(({0}, {1}), axis=0)", lambda a, b: np.concatenate([a, b])), "nn.softmax": ("R.nn.softmax({0}, axis=1)", lambda a, b: np.exp(a) / np.exp(a).sum(1, keepdims=True)),
    "where": ("R.where(R.greater({0}, {1}), {0}, {1})", np.maximum), "sort": ("R.sort({0}, axis=1)", lambda a, b: np.sort(a, 1)),
}


def bfloat16(r):
    text, f = r.pick(*NARROW.values())
    shape = (r.int(1, 4), r.int(1, 20))
    a, b = (to_bfloat16(r.data(shape, "float32", 0.3, 3)) for _ in range(2))
    narrow = [f'R.astype({{{i}}}, dtype="bfloat16")' for i in range(2)]
    return Case(f'R.astype({text.format(*narrow)}, dtype="float32")', [a, b], f(a, b).astype("float32"), 0.03)


def negative_zero(r):
    x = np.array([0.0, -0.0, 1.0, -1.0, np.inf], r.pick("float32", "float64", "float16"))
    return Case("R.divide(R.const(1, \"{dtype}\"), R.negative({{0}}))".format(dtype=x.dtype), [x], 1 / -x)


def special(name, f):
    def case(r):
        x = np.array([1, np.nan, np.inf, -np.inf, 0, -2], r.pick("float32", "float64"))
        return Case(f"R.{name}({{0}})", [x], f(x))

    return case


def trunc_divide(a, b):
    return np.trunc(a / b).astype(a.dtype) if a.dtype.kind in "iu" else a / b


def trunc_mod(a, b):
    return np.fmod(a, b)


BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": trunc_divide, "floor_divide": np.floor_divide,
    "mod": trunc_mod, "floor_mod": np.mod, "maximum": np.maximum, "minimum": np.minimum,
    "equal": np.equal, "not_equal": np.not_equal, "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
}
FLOAT_BINARY = {"power": np.power, "atan2": np.arctan2, "log_add_exp": np.logaddexp}
INT_BINARY = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


def binary(name):
    def case(r):
        dtype = r.numbers() if r.chance(0.6) else "float16"
        shape = r.shape()
        low = 1 if "div" in name or "mod" in name else -4
        a, b = r.data(shape, dtype, -5, 5), r.data(r.broadcast(shape), dtype, low, 5)
        if dtype.startswith("u"):
            a = np.maximum(a, b) if name == "subtract" else a
        expect = BINARY[name](a, b)
        if name in ("mod", "floor_mod", "floor_divide") and a.dtype.kind == "f":
            # Floating-point remainders jump at whole quotients.
            a, b = np.round(a * 4) / 4, np.round(b)
            a, b = a.astype(dtype), b.astype(dtype)
            expect = BINARY[name](a, b)
        return Case(f"R.{name}({{0}}, {{1}})", [a, b], expect, 2 * tolerance(a) if a.dtype.kind == "f" else 0)

    return case


def float_binary(name):
    def case(r):
        dtype, shape = r.floats(), r.shape()
        a, b = r.data(shape, dtype, 0.2 if name == "power" else -3, 3), r.data(r.broadcast(shape), dtype, -2, 2)
        return Case(f"R.{name}({{0}}, {{1}})", [a, b], FLOAT_BINARY[name](wide(a), wide(b)).astype(dtype), 4 * tolerance(a))

    return case


def int_binary(name):
    def case(r):
        dtype, shape = r.pick("int32", "int64", "uint8", "bool"), r.shape()
        a, b = r.data(shape, dtype, 0, 100), r.data(r.broadcast(shape), dtype, 0, 100)
        return Case(f"R.{name}({{0}}, {{1}})", [a, b], INT_BINARY[name](a, b))

    return case


def shift(name, f):
    def case(r):
        dtype, shape = r.pick("int32", "int64", "uint8"), r.shape()
        a, b = r.data(shape, dtype, 0, 7), r.data(r.broadcast(shape), dtype, 0, 3)
        return Case(f"R.{name}({{0}}, {{1}})", [a, b], f(a, b).astype(dtype))

    return case


def logical(name, f):
    def case(r):
        shape = r.shape()
        a, b = r.data(shape, "bool"), r.data(r.broadcast(shape), "bool")
        return Case(f"R.{name}({{0}}, {{1}})", [a, b], f(a, b))

    return case


def where(r):
    shape, dtype = r.shape(), r.numbers()
    c, a, b = r.data(r.broadcast(shape), "bool"), r.data(shape, dtype), r.data(r.broadcast(shape), dtype)
    return Case("R.where({0}, {1}, {2})", [c, a, b], np.where(c, a, b))


def ewise_fma(r):
    shape = r.shape()
    a, b, c = (r.data(shape) for _ in range(3))
    return Case("R.ewise_fma({0}, {1}, {2})", [a, b, c], a * b + c)


def astype(r):
    x, to = r.data(r.shape(), r.numbers(), -5, 5), r.pick("float32", "float64", "float16", "int32", "int64", "int8", "bool")
    return Case(f'R.astype({{0}}, dtype="{to}")', [x], x.astype(to), 4e-3 if to == "float16" else 1e-6)


def clip(r):
    x = r.data(r.shape(), r.floats())
    return Case("R.clip({0}, R.prim_value(T.float32(-1.0)), R.prim_value(T.float32(1.5)))", [x], np.clip(x, -1, 1.5).astype(x.dtype))


def leakyrelu(r):
    x = r.data(r.shape(), r.pick("float32", "float64"))
    return Case("R.nn.leakyrelu({0}, alpha=0.2)", [x], np.where(x > 0, x, x * x.dtype.type(0.2)))


def softplus(r):
    x = r.data(r.shape(), "float32")
    return Case("R.nn.softplus({0}, beta=2.0, threshold=20.0)", [x], np.log1p(np.exp(2 * x)) / 2)


def prelu(r):
    x = r.data(r.shape(1, 4))
    axis = r.int(0, x.ndim - 1)
    alpha = r.data((x.shape[axis],))
    slope = alpha.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    return Case(f"R.nn.prelu({{0}}, {{1}}, axis={axis})", [x, alpha], np.where(x > 0, x, x * slope))


def dropout(r):
    x = r.data(r.shape())
    return Case("R.nn.dropout({0}, rate=0.5)", [x], [x, np.ones_like(x)])


# Reductions and order.

REDUCE = {"sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "mean": np.mean, "variance": np.var, "std": np.std}


def axes_of(r, ndim):
    if ndim == 0 or r.chance(0.3):
        return None
    return sorted(r.rng.permutation(ndim)[: r.int(1, ndim)].tolist())


def reduction(name):
    def case(r):
        empty = 0.06 if name in ("sum", "prod") else 0
        dtype = r.pick("float32", "float64", "int64") if name in ("sum", "prod", "max", "min") else r.pick("float32", "float64")
        x = r.data(r.shape(empty=empty), dtype, 1 if name == "prod" else -3, 2 if name == "prod" else 3)
        axes, keep = axes_of(r, x.ndim), r.chance(0.5)
        expect = REDUCE[name](x, axis=None if axes is None else tuple(axes), keepdims=keep)
        return Case(f"R.{name}({{0}}, axis={axes}, keepdims={keep})", [x], np.asarray(expect, dtype), 2e-4 if dtype == "float32" else 1e-8)

    return case


def arg_reduction(name):
    def case(r):
        x = r.data(r.shape(1, 4, empty=0), r.numbers())
        axis, keep = r.pick(None, r.int(-x.ndim, x.ndim - 1)), r.chance(0.5)
        return Case(f"R.{name}({{0}}, axis={axis}, keepdims={keep})", [x], np.asarray(getattr(np, name)(x, axis=axis, keepdims=keep), "int64"))

    return case


def median(r):
    x = r.data(r.shape(1, 3, empty=0), r.pick("float32", "int32"))
    axis, keep = r.pick(None, r.int(0, x.ndim - 1)), r.chance(0.5)
    flat = x.reshape(-1) if axis is None else x
    at = 0 if axis is None else axis
    order = np.argsort(flat, axis=at, kind="stable")
    index = np.take(order, [(flat.shape[at] - 1) // 2], axis=at)
    value = np.take_along_axis(flat, index, at)
    if axis is None:
        return Case(f"R.median({{0}}, axis=None, keepdims={keep})", [x], value.reshape([1] * x.ndim if keep else []))
    if not keep:
        value, index = value.squeeze(axis), index.squeeze(axis)
    return Case(f"R.median({{0}}, axis=[{axis}], keepdims={keep})", [x], [value, index.astype("int64")])


def ordered(x, axis, descending):
    keys = -x.astype("float64") if descending else x
    return np.argsort(keys, axis=axis, kind="stable")


def sized(r):
    shape = list(r.shape(1, 3, empty=0.04))
    if r.chance(0.3):
        shape[r.int(0, len(shape) - 1)] = r.int(30, 200)
    return r.data(tuple(shape), r.pick("float32", "int32", "float64", "int64"), -20, 20)


def sort(r):
    x = sized(r)
    axis, down = r.int(-x.ndim, x.ndim - 1), r.chance(0.5)
    expect = np.take_along_axis(x, ordered(x, axis, down), axis)
    return Case(f"R.sort({{0}}, axis={axis}, descending={down})", [x], expect)


def sort_nan(r):
    x = np.array([2, np.nan, -1, np.inf, np.nan, -np.inf, 0], "float32")
    return Case("R.sort({0}, axis=-1, descending=False)", [x], np.sort(x))


def argsort(r):
    x = sized(r)
    axis, down, dtype = r.int(-x.ndim, x.ndim - 1), r.chance(0.5), r.pick("int32", "int64")
    return Case(f'R.argsort({{0}}, axis={axis}, descending={down}, dtype="{dtype}")', [x], ordered(x, axis, down).astype(dtype))


def topk(r):
    x = sized(r)
    axis, largest, kind = r.int(-x.ndim, x.ndim - 1), r.chance(0.5), r.pick("both", "values", "indices")
    k = r.int(1, max(x.shape[axis], 1)) if x.shape[axis] else 0
    index = np.take(ordered(x, axis, largest), np.arange(k), axis=axis)
    both = [np.take_along_axis(x, index, axis), index.astype("int32")]
    expect = {"both": both, "values": both[0], "indices": both[1]}[kind]
    return Case(f'R.topk({{0}}, k={k}, axis={axis}, ret_type="{kind}", largest={largest}, dtype="int32")', [x], expect, fixed=(x.shape[axis],))


def scan(name):
    def case(r):
        x = r.data(r.shape(1, 3), r.pick("float32", "float64", "int64"), 1 if name == "cumprod" else -3, 2)
        axis, exclusive = r.pick(None, r.int(-x.ndim, x.ndim - 1)), r.chance(0.3)
        expect = getattr(np, name)(x, axis=axis)
        if exclusive:
            start = 1 if name == "cumprod" else 0
            at = 0 if axis is None else axis
            expect = np.roll(expect, 1, at)
            if expect.size:
                np.moveaxis(expect, at, 0)[0] = start
        return Case(f"R.{name}({{0}}, axis={axis}, dtype=None, exclusive={exclusive})", [x], expect.astype(x.dtype), 1e-4)

    return case


def bucketize(r):
    x = r.data(r.shape(), "float32")
    bounds = np.sort(np.round(r.data((r.int(0, 9),), "float32"), 1))
    x = np.where(r.data(x.shape, "bool"), np.round(x, 1), x).astype("float32")
    right, small = r.chance(0.5), r.chance(0.5)
    expect = np.searchsorted(bounds, x, side="right" if right else "left").astype("int32" if small else "int64")
    return Case(f"R.bucketize({{0}}, {{1}}, out_int32={small}, right={right})", [x, bounds], np.asarray(expect))


def unique(r):
    x = r.data(r.shape(1, 3, empty=0), r.pick("int32", "float32", "int64", "uint8", "bool"), 0, 3)
    x = np.round(x) if x.dtype.kind == "f" else x
    axis = r.pick(None, r.int(0, x.ndim - 1))
    flags = [r.chance(0.5) for _ in range(3)]
    expect = list(np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis))
    expect[2] = expect[2].reshape(-1)
    chosen = [expect[0]] + [e.astype("int64") for e, f in zip(expect[1:], flags) if f]
    text = ", ".join(f"R.prim_value({f})" for f in [True, *flags])
    axis = "" if axis is None else f", R.prim_value({axis})"
    return Case(f"R.unique({{0}}, {text}{axis})", [x], chosen if any(flags) else chosen[0], symbolic=False)


def unique_unsorted(r):
    x = r.data((r.int(1, 12),), "int32", 0, 5)
    first = np.sort(np.unique(x, return_index=True)[1])
    return Case("R.unique({0}, R.prim_value(False), R.prim_value(False), R.prim_value(False), R.prim_value(False))", [x], x[first], symbolic=False)


def nonzero(r):
    x = r.data(r.shape(1, 3), r.pick("int32", "float32", "bool"), 0, 1)
    x = np.round(x) if x.dtype.kind == "f" else x
    return Case("R.nonzero({0})", [x], np.array(np.nonzero(x), "int64").reshape(x.ndim, -1), symbolic=False)


def multinomial(r):
    rows, classes, draws = r.int(1, 3), r.int(2, 6), r.int(1, 5)
    prob = r.data((rows, classes), "float32", 0.1, 1)
    prob /= prob.sum(1, keepdims=True)
    uniform, index = r.data((draws, 1), "float32", 0, 0.99), r.data((draws, 1), "int64", 0, rows - 1)
    sums = np.cumsum(prob, axis=1, dtype="float32")
    expect = [[np.argmax(sums[i] > u)] for i, u in zip(index[:, 0], uniform[:, 0])]
    return Case('R.multinomial_from_uniform({0}, {1}, {2}, dtype="int64")', [prob, uniform, index], np.array(expect, "int64"))


# Shapes.


def reshape(r):
    x = r.data(r.shape(1, 4), r.numbers())
    target = list(r.rng.permutation(x.shape))
    if len(target) > 1 and r.chance(0.6):
        target = [target[0] * target[1]] + target[2:]
    dims = [int(d) for d in target]
    return Case(f"R.reshape({{0}}, R.shape({dims}))", [x], x.reshape(dims), fixed=x.shape)


def plain(name, f, low=0, high=4, kinds=None):
    def case(r):
        x = r.data(r.shape(low, high), r.numbers())
        return Case(f"R.{name}({{0}})", [x], f(x))

    return case


def expand_dims(r):
    x = r.data(r.shape(0, 3))
    axes = sorted(r.rng.permutation(x.ndim + 2)[:2].tolist())
    return Case(f"R.expand_dims({{0}}, axis={axes})", [x], np.expand_dims(x, tuple(axes)))


def squeeze(r):
    shape = list(r.shape(1, 3))
    at = r.int(0, len(shape) - 1)
    shape[at] = 1
    x = r.data(tuple(shape))
    return Case(f"R.squeeze({{0}}, axis=[{at}])", [x], x.squeeze(at))


def permute_dims(r):
    x = r.data(r.shape())
    axes = r.rng.permutation(x.ndim).tolist()
    return Case(f"R.permute_dims({{0}}, axes={axes})", [x], x.transpose(axes))


def broadcast_to(r):
    shape = r.shape(1, 4)
    x = r.data(r.broadcast(shape))
    return Case(f"R.broadcast_to({{0}}, R.shape({list(shape)}))", [x], np.broadcast_to(x, shape), fixed=shape)


def collapse(r):
    shape = r.shape(1, 4)
    target = r.broadcast(shape)
    x = r.data(shape)
    lead = len(shape) - len(target)
    axes = tuple(range(lead)) + tuple(i + lead for i, d in enumerate(target) if d == 1)
    expect = x.sum(axis=axes, keepdims=True).reshape(target)
    if r.chance(0.5):
        return Case("R.collapse_sum_like({0}, {1})", [x, np.zeros(target, "float32")], expect, 1e-4)
    return Case(f"R.collapse_sum_to({{0}}, R.shape({list(target)}))", [x], expect, 1e-4, fixed=shape)


def joined(name, f):
    def case(r):
        shape, dtype = list(r.shape(1, 3)), r.numbers()
        axis = r.int(0, len(shape) - (name == "concat"))
        parts = []
        for _ in range(r.int(1, 4)):
            own = list(shape)
            if name == "concat":
                own[axis] = r.int(0, 4)
            parts.append(r.data(tuple(own), dtype))
        names = "".join(f"{{{i}}}, " for i in range(len(parts)))
        return Case(f"R.{name}(({names}), axis={axis})", parts, f(parts, axis))

    return case


def split(r):
    shape = list(r.shape(1, 3))
    axis = r.int(0, len(shape) - 1)
    shape[axis] = 6
    x = r.data(tuple(shape))
    how = r.pick(2, 3, [1, 4], [0, 2, 2])
    return Case(f"R.split({{0}}, indices_or_sections={how}, axis={axis})", [x], np.split(x, how, axis), fixed=(6,))


def tile(r):
    x, repeats = r.data(r.shape(0, 3)), [r.int(1, 3) for _ in range(r.int(1, 4))]
    return Case(f"R.tile({{0}}, repeats={repeats})", [x], np.tile(x, repeats))


def repeat(r):
    x = r.data(r.shape(1, 3))
    axis, n = r.pick(None, r.int(0, x.ndim - 1)), r.int(1, 3)
    return Case(f"R.repeat({{0}}, repeats={n}, axis={axis})", [x], np.repeat(x, n, axis))


def flip(r):
    x = r.data(r.shape(1, 4))
    axis = r.int(-x.ndim, x.ndim - 1)
    return Case(f"R.flip({{0}}, axis={axis})", [x], np.flip(x, axis))


def gather_elements(r):
    x = r.data(r.shape(1, 3, empty=0))
    axis = r.int(0, x.ndim - 1)
    shape = list(x.shape)
    shape[axis] = r.int(0, 4)
    index = r.data(tuple(shape), r.pick("int64", "int32"), -x.shape[axis], x.shape[axis] - 1)
    return Case(f"R.gather_elements({{0}}, {{1}}, axis={axis})", [x, index], np.take_along_axis(x, index.astype("int64") % x.shape[axis], axis))


def gather_nd(r):
    x = r.data(r.shape(1, 3, empty=0))
    k = r.int(1, x.ndim)
    lead = r.shape(1, 2)
    index = np.stack([r.data(lead, "int64", 0, x.shape[i] - 1) for i in range(k)], -1)
    return Case("R.gather_nd({0}, {1}, batch_dims=0)", [x, index], x[tuple(np.moveaxis(index, -1, 0))], fixed=(k,))


def take(r):
    x = r.data(r.shape(1, 3, empty=0))
    axis, mode = r.int(0, x.ndim - 1), r.pick("fast", "clip", "wrap")
    size = x.shape[axis]
    index = r.data(r.shape(0, 2), r.pick("int32", "int64"), 0 if mode == "fast" else -2, size - 1 if mode == "fast" else size + 2)
    if mode == "clip":
        index = np.asarray(np.maximum(index, 0), index.dtype)
    expect = np.take(x, index % size if mode == "wrap" else index, axis, mode="clip")
    return Case(f'R.take({{0}}, {{1}}, axis={axis}, mode="{mode}")', [x, index], expect)


def strided_slice(r):
    x = r.data(r.shape(1, 3))
    axis = r.int(0, x.ndim - 1)
    begin, end, step = r.int(-4, 4), r.int(-5, 6), r.pick(1, 2, -1)
    at = [slice(None)] * x.ndim
    at[axis] = slice(begin, end, step)
    return Case(f"R.strided_slice({{0}}, ({axis},), ({begin},), ({end},), ({step},), assume_inbound=False)", [x], x[tuple(at)])


def dynamic_strided_slice(r):
    x = r.data(r.shape(1, 3))
    bounds = [(r.int(-4, 4), r.int(-5, 6), r.pick(1, 2, -1)) for _ in range(x.ndim)]
    begin, end, step = (np.array(v, "int64") for v in zip(*bounds))
    return Case("R.dynamic_strided_slice({0}, {1}, {2}, {3})", [x, begin, end, step], x[tuple(slice(*b) for b in bounds)], symbolic=False)


def scatter_elements(r):
    x = r.data(r.shape(1, 3, empty=0), r.pick("float32", "int64"))
    axis, how = r.int(0, x.ndim - 1), r.pick("update", "add", "mul", "min", "max")
    shape = [r.int(1, d) for d in x.shape]
    index, updates = r.data(tuple(shape), "int64", 0, x.shape[axis] - 1), r.data(tuple(shape), str(x.dtype))
    expect = x.copy()
    combine = {"update": lambda a, b: b, "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum}[how]
    for at in itertools.product(*map(range, shape)):
        to = list(at)
        to[axis] = index[at]
        expect[tuple(to)] = combine(expect[tuple(to)], updates[at])
    return Case(f'R.scatter_elements({{0}}, {{1}}, {{2}}, axis={axis}, reduction="{how}")', [x, index, updates], expect, 1e-4)


def scatter_nd(r):
    x = r.data(r.shape(1, 3, empty=0))
    k, n = r.int(1, x.ndim), r.int(1, 4)
    index = np.stack([r.data((n,), "int64", 0, x.shape[i] - 1) for i in range(k)], -1)
    updates, how = r.data((n, *x.shape[k:])), r.pick("update", "add")
    expect = x.copy()
    for row, value in zip(index, updates):
        expect[tuple(row)] = value if how == "update" else expect[tuple(row)] + value
    return Case(f'R.scatter_nd({{0}}, {{1}}, {{2}}, reduction="{how}")', [x, index, updates], expect, 1e-4, fixed=(k,))


def slice_scatter(r):
    x = r.data((8, *r.shape(0, 2)))
    start, end, step = r.pick((1, 7, 2), (0, 3, 1), (-5, -1, 1), (2, 8, 3))
    expect = x.copy()
    source = r.data(x[start:end:step].shape)
    expect[start:end:step] = source
    return Case(f"R.slice_scatter({{0}}, {{1}}, R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), axis=0)", [x, source], expect, fixed=(8, *source.shape[:1]))


def index_tensor(r):
    x = r.data(r.shape(1, 4, empty=0))
    k, front = r.int(1, x.ndim), r.shape(1, 2, empty=0)
    index = [r.data(r.broadcast(front) or (1,), r.pick("int64", "int32"), -x.shape[i], x.shape[i] - 1) for i in range(k)]
    names = "".join(f"{{{i + 1}}}, " for i in range(k))
    return Case(f"R.index_tensor({{0}}, ({names}))", [x, *index], x[tuple(index)])


def index_put(r):
    x = r.data(r.shape(1, 3, empty=0))
    n, add = r.int(1, 5), r.chance(0.5)
    index = [r.data((n,), "int64", -d, d - 1) for d in x.shape]
    values, expect = r.data((n,)), x.copy()
    if add:
        np.add.at(expect, tuple(index), values)
    else:
        for i in range(n):
            expect[tuple(a[i] for a in index)] = values[i]
    names = "".join(f"{{{i + 1}}}, " for i in range(x.ndim))
    return Case(f"R.index_put({{0}}, ({names}), {{{x.ndim + 1}}}, accumulate={add})", [x, *index, values], expect, 1e-4)


def one_hot(r):
    depth = r.int(1, 5)
    index = r.data(r.shape(0, 2), r.pick("int32", "int64"), 0, depth - 1)
    axis = r.int(0, index.ndim)
    expect = np.moveaxis(np.where(np.arange(depth) == index[..., None], 2.0, -1.0).astype("float32"), -1, axis)
    return Case(f"R.one_hot({{0}}, R.prim_value(T.float32(2.0)), R.prim_value(T.float32(-1.0)), depth={depth}, axis={axis})", [index], expect)


def reverse_sequence(r):
    x = r.data(r.shape(2, 3))
    seq, batch = r.pick((0, 1), (1, 0))
    lengths = r.data((x.shape[batch],), r.pick("int32", "int64"), 0, x.shape[seq])
    expect = np.moveaxis(x.copy(), (batch, seq), (0, 1))
    for i, n in enumerate(lengths):
        expect[i, :n] = expect[i, :n][::-1].copy()
    return Case(f"R.reverse_sequence({{0}}, {{1}}, seq_axis={seq}, batch_axis={batch})", [x, lengths], np.moveaxis(expect, (0, 1), (batch, seq)))


def meshgrid(r):
    vectors = [r.data(r.shape(1, 1)) for _ in range(r.int(2, 3))]
    kind = r.pick("ij", "xy")
    names = "".join(f"{{{i}}}, " for i in range(len(vectors)))
    return Case(f'R.meshgrid(({names}), indexing="{kind}")', vectors, [np.ascontiguousarray(v) for v in np.meshgrid(*vectors, indexing=kind)])


# Tensors of a pattern.


def filled(name):
    def case(r):
        shape, dtype = list(r.shape()), r.pick("float32", "int64", "bool", "float16")
        return Case(f'R.{name}(R.shape({shape}), dtype="{dtype}")', [], getattr(np, name)(shape, dtype))

    return case


def full(r):
    shape, dtype = list(r.shape()), r.pick("float32", "int64")
    return Case(f'R.full(R.shape({shape}), R.const(3, "{dtype}"), dtype="{dtype}")', [], np.full(shape, 3, dtype))


def alike(name, value):
    def case(r):
        x = r.data(r.shape(), r.numbers())
        extra = ', R.const(3, "float32")' if name == "full_like" else ""
        return Case(f"R.{name}({{0}}{extra})", [x], np.full_like(x, value))

    return case


def arange(r):
    start, end, step = r.pick((0, 10, 1), (2, 11, 3), (5, 5, 1), (10, 0, -2))
    dtype = r.pick("int64", "float32", "int32")
    return Case(f'R.arange(R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), dtype="{dtype}")', [], np.arange(start, end, step, dtype))


def eye(r):
    n, m, k = r.int(1, 5), r.int(1, 5), r.int(-2, 2)
    if r.chance(0.5):
        return Case(f"R.eye_like({{0}}, R.prim_value({k}))", [np.zeros((n, m), "float32")], np.eye(n, m, k, "float32"))
    return Case(f'R.eye(R.prim_value({n}), R.prim_value({m}), R.prim_value({k}), dtype="float32")', [], np.eye(n, m, k, "float32"))


def hamming_window(r):
    n, periodic = r.int(1, 12), r.pick(0, 1)
    steps = max(n if periodic else n - 1, 1)
    expect = 0.54 - 0.46 * np.cos(2 * np.pi * np.arange(n) / steps)
    return Case(f'R.hamming_window(R.prim_value({n}), R.prim_value({periodic}), R.prim_value(T.float32(0.54)), R.prim_value(T.float32(0.46)), dtype="float32")', [], expect.astype("float32"))


def triangle(name):
    def case(r):
        x, k = r.data(r.shape(2, 4), r.numbers()), r.int(-2, 2)
        return Case(f"R.{name}({{0}}, R.prim_value({k}))", [x], getattr(np, name)(x, k))

    return case


# Products.


def matmul(r):
    k, batch = r.int(1, 6), r.shape(0, 2)
    left = r.pick((k,), (r.int(1, 5), k), (*batch, r.int(1, 5), k))
    right = r.pick((k,), (k, r.int(1, 5)), (*r.broadcast(batch), k, r.int(1, 5)))
    dtype = r.floats()
    a, b = r.data(left, dtype), r.data(right, dtype)
    return Case("R.matmul({0}, {1}, out_dtype=None)", [a, b], np.matmul(wide(a), wide(b)).astype(dtype), 10 * tolerance(a))


def outer(r):
    a, b = r.data(r.shape(1, 1)), r.data(r.shape(1, 1))
    return Case("R.outer({0}, {1})", [a, b], np.outer(a, b))


def einsum(r):
    text, shapes = r.pick(
        ("ij,jk->ik", [(2, 3), (3, 4)]), ("bij,bjk->bik", [(2, 2, 3), (2, 3, 4)]), ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]), ("...ij,...jk->...ik", [(2, 2, 3), (1, 3, 4)]), ("i,i->", [(4,), (4,)]), ("ij,j->i", [(2, 3), (3,)]),
    )
    parts = [r.data(s) for s in shapes]
    names = "".join(f"{{{i}}}, " for i in range(len(parts)))
    return Case(f'R.einsum(({names}), subscripts="{text}")', parts, np.asarray(np.einsum(text, *parts)), 1e-4, symbolic=False)


# Windows. Images are computed in the order batch, channels, space and put into the layout.


def layout(r, letters, share=0.5):
    if r.chance(share):
        return letters
    return "".join(r.rng.permutation(list(letters)))


def to_layout(x, letters, order):
    return np.ascontiguousarray(x.transpose([letters.index(c) for c in order]))


def windows(x, kernel, strides, padding, dilation, fill, sizes):
    """Yields each position with the elements under the window there."""
    n = len(kernel)
    big = [(0, 0), (0, 0)] + [(padding[i], padding[n + i] + strides[i]) for i in range(n)]
    padded = np.pad(x, big, constant_values=fill)
    for at in itertools.product(*map(range, sizes)):
        index = [slice(None)] * 2
        for a, k, s, d in zip(at, kernel, strides, dilation):
            index.append(slice(a * s, a * s + d * (k - 1) + 1, d))
        yield at, padded[tuple(index)]


def conv_reference(x, w, strides, padding, dilation, groups):
    n = x.ndim - 2
    sizes = [(x.shape[i + 2] + padding[i] + padding[n + i] - dilation[i] * (w.shape[i + 2] - 1) - 1) // strides[i] + 1 for i in range(n)]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), "float64")
    per_in, per_out = x.shape[1] // groups, w.shape[0] // groups
    for at, under in windows(x.astype("float64"), w.shape[2:], strides, padding, dilation, 0, sizes):
        for g in range(groups):
            part = under[:, g * per_in : (g + 1) * per_in]
            out[(slice(None), slice(g * per_out, (g + 1) * per_out), *at)] = np.tensordot(
                part, w[g * per_out : (g + 1) * per_out].astype("float64"), [list(range(1, n + 2))] * 2
            )
    return out


def geometry(r, n):
    return [r.int(1, 2) for _ in range(n)], [r.int(0, 2) for _ in range(2 * n)], [r.int(1, 2) for _ in range(n)]


def conv(n):
    def case(r):
        groups, per, filters = r.pick(1, 1, 2), r.int(1, 2), r.pick(2, 4)
        strides, padding, dilation = geometry(r, n)
        space = "DHW"[3 - n :]
        x = r.data((r.int(1, 2), per * groups, *[r.int(5, 7) for _ in range(n)]))
        w = r.data((filters, per, *[r.int(1, 3) for _ in range(n)]))
        expect = conv_reference(x, w, strides, padding, dilation, groups).astype("float32")
        data, kernel, out = layout(r, "NC" + space), layout(r, "OI" + space), layout(r, "NC" + space)
        call = (
            f"R.nn.conv{n}d({{0}}, {{1}}, strides={strides}, padding={padding}, dilation={dilation}, groups={groups}, "
            f'data_layout="{data}", kernel_layout="{kernel}", out_layout="{out}", out_dtype=None)'
        )
        inputs = [to_layout(x, "NC" + space, data), to_layout(w, "OI" + space, kernel)]
        return Case(call, inputs, to_layout(expect, "NC" + space, out), 2e-4, fixed=w.shape + x.shape[1:2])

    return case


def conv_transpose(n):
    def case(r):
        groups, per, filters = r.pick(1, 1, 2), r.int(1, 2), r.int(1, 2)
        strides, padding, dilation = [r.int(1, 3) for _ in range(n)], [r.int(0, 1) for _ in range(2 * n)], [r.int(1, 2) for _ in range(n)]
        extra = [r.int(0, s - 1) for s in strides]
        space = "DHW"[3 - n :]
        x = r.data((r.int(1, 2), per * groups, *[r.int(2, 4) for _ in range(n)]))
        w = r.data((per * groups, filters, *[r.int(2, 3) for _ in range(n)]))
        full = [(x.shape[i + 2] - 1) * strides[i] + dilation[i] * (w.shape[i + 2] - 1) + 1 + extra[i] for i in range(n)]
        out = np.zeros((x.shape[0], filters * groups, *full), "float64")
        for at in itertools.product(*map(range, x.shape[2:])):
            for tap in itertools.product(*map(range, w.shape[2:])):
                to = tuple(a * s + t * d for a, s, t, d in zip(at, strides, tap, dilation))
                for g in range(groups):
                    piece = x[(slice(None), slice(g * per, (g + 1) * per), *at)] @ w[(slice(g * per, (g + 1) * per), slice(None), *tap)]
                    out[(slice(None), slice(g * filters, (g + 1) * filters), *to)] += piece
        crop = tuple(slice(padding[i], full[i] - padding[n + i]) for i in range(n))
        expect = out[(slice(None), slice(None), *crop)].astype("float32")
        data, kernel, order = layout(r, "NC" + space), layout(r, "IO" + space), layout(r, "NC" + space)
        call = (
            f"R.nn.conv{n}d_transpose({{0}}, {{1}}, strides={strides}, padding={padding}, output_padding={extra}, dilation={dilation}, "
            f'groups={groups}, data_layout="{data}", kernel_layout="{kernel}", out_layout="{order}", out_dtype=None)'
        )
        inputs = [to_layout(x, "NC" + space, data), to_layout(w, "IO" + space, kernel)]
        return Case(call, inputs, to_layout(expect, "NC" + space, order), 2e-4, fixed=w.shape + x.shape[1:2])

    return case


def pooled_sizes(x, kernel, strides, padding, dilation, ceil):
    n, sizes = len(kernel), []
    for i in range(n):
        spare = x.shape[i + 2] + padding[i] + padding[n + i] - dilation[i] * (kernel[i] - 1) - 1
        size = (-(-spare // strides[i]) if ceil else spare // strides[i]) + 1
        if ceil and (size - 1) * strides[i] >= x.shape[i + 2] + padding[i]:
            size -= 1
        sizes.append(size)
    return sizes


def pool(kind, n):
    def case(r):
        space = "DHW"[3 - n :]
        kernel, strides = [r.int(1, 3) for _ in range(n)], [r.int(1, 2) for _ in range(n)]
        dilation = [r.int(1, 2) for _ in range(n)]
        padding = [r.int(0, kernel[i % n] // 2) for i in range(2 * n)]
        ceil, counted = r.chance(0.4), r.chance(0.5)
        x = r.data((r.int(1, 2), r.int(1, 2), *[r.int(6, 8) for _ in range(n)]), "float32")
        sizes = pooled_sizes(x, kernel, strides, padding, dilation, ceil)
        expect = np.zeros((*x.shape[:2], *sizes))
        axes = tuple(range(2, n + 2))
        if kind == "max":
            for at, under in windows(x, kernel, strides, padding, dilation, -np.inf, sizes):
                expect[(slice(None), slice(None), *at)] = under.max(axes)
        else:
            inside = np.ones(x.shape)
            if counted:
                inside = np.pad(inside, [(0, 0), (0, 0)] + [(padding[i], padding[n + i]) for i in range(n)], constant_values=1)
            around = [0] * (2 * n) if counted else padding
            sums = windows(x, kernel, strides, padding, dilation, 0, sizes)
            counts = windows(inside, kernel, strides, around, dilation, 0, sizes)
            for (at, under), (_, count) in zip(sums, counts):
                expect[(slice(None), slice(None), *at)] = under.sum(axes) / np.maximum(count.sum(axes), 1)
        data, out = layout(r, "NC" + space), layout(r, "NC" + space)
        call = (
            f"R.nn.{kind}_pool{n}d({{0}}, pool_size={kernel}, strides={strides}, dilation={dilation}, padding={padding}, ceil_mode={ceil}, "
            f'count_include_pad={counted}, layout="{data}", out_layout="{out}")'
        )
        return Case(call, [to_layout(x, "NC" + space, data)], to_layout(expect.astype("float32"), "NC" + space, out), 1e-4)

    return case


def adaptive(n):
    def case(r):
        space = "DHW"[3 - n :]
        x = r.data((r.int(1, 2), r.int(1, 2), *[r.int(3, 7) for _ in range(n)]))
        sizes = [r.int(1, 4) for _ in range(n)]
        expect = np.zeros((*x.shape[:2], *sizes))
        for at in itertools.product(*map(range, sizes)):
            part = [slice(a * s // m, -(-(a + 1) * s // m)) for a, s, m in zip(at, x.shape[2:], sizes)]
            expect[(slice(None), slice(None), *at)] = x[(slice(None), slice(None), *part)].mean(tuple(range(2, n + 2)))
        data, out = layout(r, "NC" + space), layout(r, "NC" + space)
        call = f'R.nn.adaptive_avg_pool{n}d({{0}}, output_size={sizes}, layout="{data}", out_layout="{out}")'
        return Case(call, [to_layout(x, "NC" + space, data)], to_layout(expect.astype("float32"), "NC" + space, out), 1e-4)

    return case


def pool_backward(kind):
    def case(r):
        kernel, strides = [r.int(1, 3) for _ in range(2)], [r.int(1, 2) for _ in range(2)]
        padding = [r.int(0, kernel[i % 2] // 2) for i in range(4)]
        x = r.data((1, 2, 6, 7))
        sizes = pooled_sizes(x, kernel, strides, padding, [1, 1], False)
        g = r.data((1, 2, *sizes))
        expect = np.zeros(x.shape)
        for c, i, j in itertools.product(range(2), *map(range, sizes)):
            top, left = i * strides[0] - padding[0], j * strides[1] - padding[1]
            places = [(y, z) for y in range(top, top + kernel[0]) for z in range(left, left + kernel[1]) if 0 <= y < 6 and 0 <= z < 7]
            if kind == "max":
                best = max(places, key=lambda p: x[0, c, p[0], p[1]])
                expect[0, c, best[0], best[1]] += g[0, c, i, j]
            else:
                for y, z in places:
                    expect[0, c, y, z] += g[0, c, i, j] / len(places)
        call = (
            f"R.grad.{kind}_pool2d_backward({{0}}, {{1}}, pool_size={kernel}, strides={strides}, dilation=[1, 1], padding={padding}, "
            f'ceil_mode=False, count_include_pad=False, layout="NCHW", out_layout="NCHW")'
        )
        return Case(call, [g, x], expect.astype("float32"), 1e-4, symbolic=False)

    return case


# Networks.


def softmax(name):
    def case(r):
        x = r.data(r.shape(1, 4, empty=0.03), r.pick("float32", "float64"))
        axis = r.int(-x.ndim, x.ndim - 1)
        if x.shape[axis] == 0:
            x = r.data((2, 3))
            axis = 1
        e = np.exp(x - x.max(axis, keepdims=True))
        expect = e / e.sum(axis, keepdims=True)
        return Case(f"R.nn.{name}({{0}}, axis={axis})", [x], (np.log(expect) if "log" in name else expect).astype(x.dtype), 1e-4)

    return case


def normalize(x, axes, epsilon=1e-5):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def batch_norm(r):
    x = r.data(r.shape(2, 4, empty=0))
    axis, training = r.int(0, x.ndim - 1), r.chance(0.5)
    channels = (x.shape[axis],)
    gamma, beta, mean, var = r.data(channels), r.data(channels), r.data(channels), r.data(channels, low=0.5, high=2)
    wide_shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    rest = tuple(i for i in range(x.ndim) if i != axis)
    m, v = (x.mean(rest), x.var(rest)) if training else (mean, var)
    y = (x - m.reshape(wide_shape)) / np.sqrt(v.reshape(wide_shape) + 1e-5) * gamma.reshape(wide_shape) + beta.reshape(wide_shape)
    moved = [mean * 0.9 + m * 0.1, var * 0.9 + v * 0.1] if training else [mean, var]
    call = f"R.nn.batch_norm({{0}}, {{1}}, {{2}}, {{3}}, {{4}}, axis={axis}, epsilon=1e-05, center=True, scale=True, momentum=0.1, training={training})"
    return Case(call, [x, gamma, beta, mean, var], [y.astype("float32"), *[e.astype("float32") for e in moved]], 2e-3)


def layer_norm(r):
    x = r.data(r.shape(1, 4, empty=0))
    axes = sorted(r.rng.permutation(x.ndim)[: r.int(1, x.ndim)].tolist())
    own = tuple(x.shape[a] for a in axes)
    gamma, beta = r.data(own), r.data(own)
    spread = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    expect = normalize(x.astype("float64"), tuple(axes)) * gamma.reshape(spread) + beta.reshape(spread)
    return Case(f"R.nn.layer_norm({{0}}, {{1}}, {{2}}, axes={axes}, epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3)


def rms_norm(r):
    x = r.data(r.shape(1, 4, empty=0))
    weight = r.data(x.shape[-1:])
    expect = x / np.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5) * weight
    return Case("R.nn.rms_norm({0}, {1}, axes=[-1], epsilon=1e-05)", [x, weight], expect.astype("float32"), 1e-4)


def group_norm(r):
    x = r.data((r.int(1, 2), 4, r.int(2, 3), r.int(2, 3)))
    gamma, beta = r.data((4,)), r.data((4,))
    grouped = normalize(x.reshape(x.shape[0], 2, 2, *x.shape[2:]).astype("float64"), (2, 3, 4)).reshape(x.shape)
    expect = grouped * gamma.reshape(1, 4, 1, 1) + beta.reshape(1, 4, 1, 1)
    return Case("R.nn.group_norm({0}, {1}, {2}, num_groups=2, channel_axis=1, axes=[2, 3], epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3, fixed=(4,))


def instance_norm(r):
    x = r.data((r.int(1, 2), r.int(1, 3), r.int(2, 3), r.int(2, 3)))
    gamma, beta = r.data((x.shape[1],)), r.data((x.shape[1],))
    expect = normalize(x.astype("float64"), (2, 3)) * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)
    return Case("R.nn.instance_norm({0}, {1}, {2}, channel_axis=1, axes=[2, 3], epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3)


def pad(r):
    x = r.data(tuple(r.int(2, 5) for _ in range(r.int(1, 4))))
    mode = r.pick("constant", "reflect", "replicate", "circular")
    widths = [(r.int(0, d - 1), r.int(0, d - 1)) for d in x.shape]
    names = {"replicate": "edge", "circular": "wrap"}
    extra = {"constant_values": 1.5} if mode == "constant" else {}
    flat = [w for pair in widths for w in pair]
    return Case(f'R.nn.pad({{0}}, pad_width={flat}, pad_mode="{mode}", pad_value=1.5)', [x], np.pad(x, widths, mode=names.get(mode, mode), **extra))


def pixel_shuffle(r):
    f, c, h, w = r.pick(2, 3), r.int(1, 2), r.int(1, 3), r.int(1, 3)
    x = r.data((1, c * f * f, h, w))
    expect = x.reshape(1, c, f, f, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(1, c, h * f, w * f)
    return Case(f"R.nn.pixel_shuffle({{0}}, upscale_factor={f})", [x], expect, fixed=x.shape)


def cross_entropy(r):
    x, y = r.data((3, 4)), r.data((3, 4))
    return Case("R.nn.cross_entropy_with_logits({0}, {1})", [x, y], np.asarray(-(x * y).sum() / 3, "float32"), 1e-4)


def nll_parts(r):
    classes, rest = r.int(2, 5), r.shape(0, 2, empty=0)
    batch = r.int(1, 4)
    x, t, w = r.data((batch, classes, *rest)), r.data((batch, *rest), "int64", 0, classes - 1), r.data((classes,), low=0.2, high=2)
    ignore = r.pick(-100, 0)
    weight = np.where(t == ignore, 0, w[t])
    return x, t, w, ignore, weight


def nll_loss(r):
    x, t, w, ignore, weight = nll_parts(r)
    how = r.pick("mean", "sum", "none")
    losses = -np.take_along_axis(x, t[:, None], 1)[:, 0] * weight
    if how == "mean" and weight.sum() == 0:
        how = "sum"
    expect = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / max(weight.sum(), 1e-9)}[how]
    return Case(f'R.nn.nll_loss({{0}}, {{1}}, {{2}}, reduction="{how}", ignore_index={ignore})', [x, t, w], np.asarray(expect, "float32"), 1e-4)


def nll_backward(r):
    x, t, w, ignore, weight = nll_parts(r)
    how = r.pick("mean", "sum") if weight.sum() else "sum"
    g = r.data(())
    share = weight * g / (weight.sum() if how == "mean" else 1)
    expect = np.zeros_like(x)
    np.put_along_axis(expect, t[:, None], -share[:, None].astype("float32"), 1)
    return Case(f'R.grad.nll_loss_backward({{0}}, {{1}}, {{2}}, {{3}}, reduction="{how}", ignore_index={ignore})', [g, x, t, w], expect, 1e-4)


def take_backward(r):
    x, t = r.data(r.shape(1, 3, empty=0)), None
    axis = r.int(0, x.ndim - 1)
    t = r.data((r.int(1, 5),), "int64", 0, x.shape[axis] - 1)
    g = r.data(tuple(t.size if i == axis else d for i, d in enumerate(x.shape)))
    expect = np.zeros_like(x)
    np.add.at(np.moveaxis(expect, axis, 0), t, np.moveaxis(g, axis, 0))
    return Case(f"R.grad.take_backward({{0}}, {{1}}, {{2}}, axis={axis})", [g, x, t], expect, 1e-4)


def attention(name):
    def case(r):
        b, q, k, h, d, v = r.int(1, 2), r.int(1, 5), r.int(1, 5), r.pick(1, 2), r.int(1, 4), r.int(1, 4)
        mask = r.pick(None, "TopLeft", "BottomRight") if k >= q else r.pick(None, "TopLeft")
        if name == "attention_var_len":
            b = 1
        query, key, value = r.data((b, q, h, d)), r.data((b, k, h, d)), r.data((b, k, h, v))
        hidden = np.zeros((q, k), "bool")
        inputs = [query, key, value]
        scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(d)
        row, column = np.arange(q)[:, None], np.arange(k)[None]
        if name == "attention_bias":
            bias = r.data((r.pick(b, 1), r.pick(h, 1), q, k))
            inputs.append(bias)
            scores = scores + bias
        if name == "attention_var_len":
            q = k = 5
            query, key, value = r.data((1, 5, h, d)), r.data((1, 5, h, d)), r.data((1, 5, h, v))
            starts = np.array([0, 2, 3, 5], "int32")
            inputs = [query, key, value, starts, starts, np.array(2, "int32"), np.array(2, "int32")]
            scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(d)
            of = np.searchsorted(starts, np.arange(5), side="right")
            hidden = of[:, None] != of[None]
            row, column = np.arange(5)[:, None], np.arange(5)[None]
            mask = r.pick(None, "TopLeft")
        if mask:
            hidden = hidden | (column > row + (k - q if mask == "BottomRight" else 0))
        scores = np.where(hidden, -np.inf, scores)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        expect = np.einsum("bhqk,bkhv->bqhv", e / e.sum(-1, keepdims=True), value)
        names = ", ".join(f"{{{i}}}" for i in range(len(inputs)))
        text = f'"{mask}"' if mask else None
        return Case(f"R.nn.{name}({names}, scale=None, causal_mask={text}, window_size=None)", inputs, expect.astype("float32"), 1e-4, fixed=(h, d, 4))

    return case


def quantize(r):
    x = r.data(r.shape(1, 3), "float32", -20, 20)
    axis = r.int(0, x.ndim - 1)
    scale, zero = r.data((x.shape[axis],), "float32", 0.3, 2), r.data((x.shape[axis],), "int8", -5, 5)
    spread = [-1 if i == axis else 1 for i in range(x.ndim)]
    expect = np.clip(np.round(x / scale.reshape(spread)) + zero.reshape(spread), -128, 127).astype("int8")
    return Case(f'R.quantize({{0}}, {{1}}, {{2}}, axis={axis}, out_dtype="int8")', [x, scale, zero], expect)


def dequantize(r):
    x = r.data(r.shape(1, 3), "int8", -100, 100)
    axis = r.int(0, x.ndim - 1)
    scale, zero = r.data((x.shape[axis],), "float32", 0.3, 2), r.data((x.shape[axis],), "int8", -5, 5)
    spread = [-1 if i == axis else 1 for i in range(x.ndim)]
    expect = (x.astype("int32") - zero.astype("int32").reshape(spread)) * scale.reshape(spread)
    return Case(f'R.dequantize({{0}}, {{1}}, {{2}}, axis={axis}, out_dtype="float32")', [x, scale, zero], expect.astype("float32"))


# Values of the language.


def shape_of(r):
    x = r.data(r.shape(1, 4))
    return Case("R.shape_to_tensor(R.shape_of({0}))", [x], np.array(x.shape, "int64"))


def size(r):
    x = r.data(r.shape())
    return Case("R.size({0})", [x], np.array(x.size, "int64"))


def same(name):
    def case(r):
        x = r.data(r.shape())
        return Case(f"R.{name}({{0}})", [x], x)

    return case


def wrap_param(r):
    x = r.data(r.shape())
    return Case('R.wrap_param({0}, dtype="float64")', [x], x.astype("float64"))


def layout_transform(r):
    x = r.data((r.int(1, 4), r.int(1, 9)))
    if r.chance(0.3):
        return Case("R.layout_transform({0}, index_map=T.index_map(lambda i, j: (j, i)), pad_value=None)", [x], x.T)
    rows = -(-x.shape[1] // 4)
    expect = np.full((x.shape[0], rows * 4), 1.5, "float32")
    expect[:, : x.shape[1]] = x
    call = "R.layout_transform({0}, index_map=T.index_map(lambda i, j: (i, j // 4, j % 4)), pad_value=T.float32(1.5))"
    return Case(call, [x], expect.reshape(-1, rows, 4))


def view(r):
    x = r.data((8, 4))
    if r.chance(0.5):
        return Case("R.memory.view({0}, R.shape([4, 4]), R.tuple(), R.prim_value(64))", [x], x.reshape(8, 4)[4:8].reshape(4, 4), symbolic=False)
    return Case('R.memory.view({0}, R.tuple(), R.dtype("int32"), R.tuple())', [x], x.view("int32"), symbolic=False)


def narrow_panels(r):
    """A product whose result has one column and a few rows: the packed panels behind the last whole one are narrow."""
    a, b = r.data((3, 4, 4), "float64"), r.data((4, 1), "float64")
    return Case("R.matmul({0}, {1}, out_dtype=None)", [a, b], a @ b, 1e-9)


def nothing_reduced(r):
    x = r.data(r.pick((3, 0), (3, 0, 2), (5, 0, 4)), r.pick("float32", "float64", "int64"))
    axes = list(range(1, x.ndim))
    return Case(f"R.prod({{0}}, axis={axes})", [x], x.prod(tuple(axes)).astype(x.dtype))


def nothing_transposed(r):
    x = r.data((3, 0), r.pick("float32", "float64", "int64"))
    return Case("R.permute_dims({0}, axes=[1, 0])", [x], x.T)


CASES = {
    "narrow panels": narrow_panels, "nothing reduced": nothing_reduced, "nothing transposed": nothing_transposed,
    **{name: unary(name) for name in UNARY},
    **{name: any_unary(name) for name in ANY_UNARY},
    "negative zero": negative_zero, **{f"bfloat16 {i}": bfloat16 for i in range(8)}, "sort nan": sort_nan, "unique unsorted": unique_unsorted,
    **{name: special(name, f) for name, f in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items()},
    "bitwise_not": lambda r: (lambda x: Case("R.bitwise_not({0})", [x], np.invert(x)))(r.data(r.shape(), r.pick("int32", "uint8", "bool"), 0, 9)),
    "logical_not": lambda r: (lambda x: Case("R.logical_not({0})", [x], ~x))(r.data(r.shape(), "bool")),
    **{name: binary(name) for name in BINARY}, **{name: float_binary(name) for name in FLOAT_BINARY}, **{name: int_binary(name) for name in INT_BINARY},
    "left_shift": shift("left_shift", np.left_shift), "right_shift": shift("right_shift", np.right_shift),
    **{f"logical_{n}": logical(f"logical_{n}", f) for n, f in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items()},
    "where": where, "ewise_fma": ewise_fma, "astype": astype, "clip": clip, "nn.leakyrelu": leakyrelu, "nn.softplus": softplus,
    "nn.prelu": prelu, "nn.dropout": dropout,
    **{name: reduction(name) for name in REDUCE}, "argmax": arg_reduction("argmax"), "argmin": arg_reduction("argmin"), "median": median,
    "sort": sort, "argsort": argsort, "topk": topk, "cumsum": scan("cumsum"), "cumprod": scan("cumprod"), "bucketize": bucketize,
    "unique": unique, "nonzero": nonzero, "multinomial_from_uniform": multinomial,
    "reshape": reshape, "flatten": plain("flatten", lambda x: x.reshape(-1)),
    "nn.batch_flatten": plain("nn.batch_flatten", lambda x: x.reshape(x.shape[0], math.prod(x.shape[1:])), 2),
    "expand_dims": expand_dims, "squeeze": squeeze, "permute_dims": permute_dims, "broadcast_to": broadcast_to,
    "collapse_sum_to": collapse, "collapse_sum_like": collapse,
    "concat": joined("concat", np.concatenate), "stack": joined("stack", np.stack), "split": split, "tile": tile, "repeat": repeat, "flip": flip,
    "gather_elements": gather_elements, "gather_nd": gather_nd, "take": take, "strided_slice": strided_slice,
    "dynamic_strided_slice": dynamic_strided_slice, "scatter_elements": scatter_elements, "scatter_nd": scatter_nd,
    "slice_scatter": slice_scatter, "index_tensor": index_tensor, "index_put": index_put, "one_hot": one_hot,
    "reverse_sequence": reverse_sequence, "meshgrid": meshgrid,
    "zeros": filled("zeros"), "ones": filled("ones"), "full": full, "zeros_like": alike("zeros_like", 0), "ones_like": alike("ones_like", 1),
    "full_like": alike("full_like", 3), "arange": arange, "eye": eye, "eye_like": eye, "hamming_window": hamming_window,
    "tril": triangle("tril"), "triu": triangle("triu"), "matmul": matmul, "outer": outer, "einsum": einsum,
    **{f"nn.conv{n}d": conv(n) for n in (1, 2, 3)}, **{f"nn.conv{n}d_transpose": conv_transpose(n) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pool(kind, n) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": adaptive(n) for n in (1, 2, 3)},
    "grad.max_pool2d_backward": pool_backward("max"), "grad.avg_pool2d_backward": pool_backward("avg"),
    "nn.softmax": softmax("softmax"), "nn.log_softmax": softmax("log_softmax"), "nn.batch_norm": batch_norm, "nn.layer_norm": layer_norm,
    "nn.rms_norm": rms_norm, "nn.group_norm": group_norm, "nn.instance_norm": instance_norm, "nn.pad": pad, "nn.pixel_shuffle": pixel_shuffle,
    "nn.cross_entropy_with_logits": cross_entropy, "nn.nll_loss": nll_loss, "grad.nll_loss_backward": nll_backward, "grad.take_backward": take_backward,
    **{f"nn.{name}": attention(name) for name in ("attention", "attention_bias", "attention_var_len")},
    "quantize": quantize, "dequantize": dequantize, "shape_of": shape_of, "shape_to_tensor": shape_of, "size": size,
    "grad.no_grad": same("grad.no_grad"), "grad.start_checkpoint": same("grad.start_checkpoint"), "grad.end_checkpoint": same("grad.end_checkpoint"),
    "wrap_param": wrap_param, "memory.view": view, "layout_transform": layout_transform,
}
