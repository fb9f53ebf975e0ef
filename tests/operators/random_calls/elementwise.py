"""Calls of operators that go element by element."""


def unary(name, kinds="fff*"):
    return lambda g: f"R.{name}({g.tensor(g.shape(), g.dtype(g.pick(*kinds)))})"


def binary(name, kinds="ffi"):
    def call(g):
        a = g.shape()
        dtype = g.dtype(g.pick(*kinds))
        other = dtype if g.chance(0.93) else g.dtype("*")
        x, y = g.tensor(a, dtype), g.tensor(g.like(a), other)
        if g.chance(0.2):
            y = f'R.const(2, "{dtype}")'
        return f"R.{name}({x}, {y})" if g.chance(0.5) else f"R.{name}({y}, {x})"

    return call


def clip(g):
    return f"R.clip({g.tensor(g.shape(), g.dtype('f'))}, R.prim_value(T.float32(0.0)), R.prim_value(T.float32(1.0)))"


FLOAT_UNARY = "acos acosh asin asinh atan atanh cos cosh erf exp log rsqrt sigmoid sin sinh sqrt tan tanh".split()
ANY_UNARY = "abs ceil floor negative round sign square trunc isfinite isinf isnan".split()
NN_UNARY = "relu gelu gelu_tanh silu selu".split()


CALLS = {
    **{name: unary(name) for name in FLOAT_UNARY + ANY_UNARY}, **{f"nn.{name}": unary(f"nn.{name}") for name in NN_UNARY},
    "bitwise_not": unary("bitwise_not", "i"), "logical_not": unary("logical_not", "b"),
    **{name: binary(name) for name in "add subtract multiply divide floor_divide mod floor_mod power maximum minimum equal not_equal less less_equal greater greater_equal atan2 log_add_exp".split()},
    **{name: binary(name, "i") for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()},
    **{name: binary(name, "b") for name in "logical_and logical_or logical_xor".split()}, "clip": clip,
    "astype": lambda g: f'R.astype({g.tensor(g.shape(), g.dtype("*"))}, dtype="{g.dtype("*")}")',
    "ewise_fma": lambda g: (lambda s, d: f"R.ewise_fma({g.tensor(s, d)}, {g.tensor(s, d)}, {g.tensor(s, d)})")(g.shape(), g.dtype("f")),
    "nn.leakyrelu": lambda g: f"R.nn.leakyrelu({g.tensor(g.shape(), g.dtype('f'))}, alpha=0.1)",
    "nn.softplus": lambda g: f"R.nn.softplus({g.tensor(g.shape(), g.dtype('f'))}, beta=1.0, threshold=20.0)",
}
