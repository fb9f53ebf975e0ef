"""Cases of operators that go element by element."""

import math

import numpy as np

from .case import Case, tolerance, wide


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


CASES = {
    **{name: unary(name) for name in UNARY}, **{name: any_unary(name) for name in ANY_UNARY}, "negative zero": negative_zero,
    **{f"bfloat16 {i}": bfloat16 for i in range(8)},
    **{name: special(name, f) for name, f in {"isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite}.items()},
    "bitwise_not": lambda r: (lambda x: Case("R.bitwise_not({0})", [x], np.invert(x)))(r.data(r.shape(), r.pick("int32", "uint8", "bool"), 0, 9)),
    "logical_not": lambda r: (lambda x: Case("R.logical_not({0})", [x], ~x))(r.data(r.shape(), "bool")),
    **{name: binary(name) for name in BINARY}, **{name: float_binary(name) for name in FLOAT_BINARY},
    **{name: int_binary(name) for name in INT_BINARY}, "left_shift": shift("left_shift", np.left_shift),
    "right_shift": shift("right_shift", np.right_shift),
    **{f"logical_{n}": logical(f"logical_{n}", f) for n, f in {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}.items()},
    "where": where, "ewise_fma": ewise_fma, "astype": astype, "clip": clip, "nn.leakyrelu": leakyrelu, "nn.softplus": softplus,
    "nn.prelu": prelu, "nn.dropout": dropout,
}
