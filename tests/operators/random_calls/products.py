"""Calls of tensors of a pattern and of products."""


def matmul(g):
    k = g.dim()
    batch = g.shape(g.int(0, 2))
    left = g.pick([k], batch + [g.dim(), k], batch + [g.dim(), k])
    right = g.pick([k], [k, g.dim()], g.like(batch) + [k, g.dim()])
    if g.chance(0.1):
        right = g.shape()
    dtype = g.dtype("f")
    other = dtype if g.chance(0.93) else g.dtype("*")
    out = g.pick("None", "None", '"float32"', '"float16"')
    return f"R.matmul({g.tensor(left, dtype)}, {g.tensor(right, other)}, out_dtype={out})"


def outer(g):
    return f"R.outer({g.tensor(g.shape(1 if g.chance(0.9) else 2))}, {g.tensor(g.shape(1))})"


def einsum(g):
    subscripts, shapes = g.pick(
        ("ij,jk->ik", [[2, "n"], ["n", 4]]),
        ("ij,jk", [[2, 3], [3, "m"]]),
        ("bij,bjk->bik", [["n", 2, 3], ["n", 3, 4]]),
        ("ii->i", [[3, 3]]),
        ("ij->ji", [["n", 3]]),
        ("ij->", [[2, 3]]),
        ("ij,jk->ik", [[2, 3], [4, 4]]),
        ("ij,j->i", [[2, 3], [3, 4]]),
        ("...ij,...jk->...ik", [[5, 2, 3], [5, 3, 4]]),
    )
    tensors = "".join(g.tensor(s, known=1) + ", " for s in shapes)
    return f'R.einsum(({tensors}), subscripts="{subscripts}")'


def filled(name):
    def call(g):
        shape = g.shape()
        if any(isinstance(d, str) for d in shape):
            g.tensor(["n", "m"])
        return f'R.{name}({g.shape_arg(shape)}, dtype="{g.dtype("*")}")'

    return call


def full(g):
    shape = g.shape()
    g.tensor(["n", "m"], known=1)
    value = g.pick('R.const(2, "float32")', 'R.const(3, "int32")')
    return f"R.full({g.shape_arg(shape)}, {value}, dtype={g.pick('None', repr(g.dtype('*')))})"


def full_like(g):
    return f"R.full_like({g.tensor(g.shape(), g.dtype('*'))}, R.const(2, \"float32\"), dtype={g.pick('None', repr(g.dtype('*')))})"


def alike(name):
    return lambda g: f"R.{name}({g.tensor(g.shape(), g.dtype('*'))}, dtype={g.pick('None', repr(g.dtype('*')))})"


def eye_like(g):
    return f"R.eye_like({g.tensor(g.shape(2 if g.chance(0.9) else 3), known=1)}, R.prim_value({g.int(-1, 1)}), dtype={g.pick('None', repr(g.dtype('f')))})"


def eye(g):
    g.tensor(["n", "m"], known=1)
    return f'R.eye(R.prim_value({g.pick(3, "n")}), R.prim_value({g.pick(4, "m")}), R.prim_value({g.int(-1, 1)}), dtype="{g.dtype("f")}")'


def arange(g):
    g.tensor(["n", "m"], known=1)
    start, end, step = g.pick((0, 10, 1), (1, 10, 3), (0, "n", 1), (2, "n", 1), ("n", "n + 4", 1), (0, "n", 2), (5, 1, 1))
    return f'R.arange(R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), dtype="{g.pick("int64", "float32", "int32")}")'


def hamming_window(g):
    g.tensor(["n"], known=1)
    return (
        f"R.hamming_window(R.prim_value({g.pick(5, 10, 'n', -1)}), R.prim_value({g.pick(0, 1)}), R.prim_value(T.float32(0.54)), "
        f'R.prim_value(T.float32(0.46)), dtype="{g.pick("float32", "float64", "int32")}")'
    )


def triangle(name):
    return lambda g: f"R.{name}({g.tensor(g.shape())}, R.prim_value({g.int(-2, 2)}))"


CALLS = {
    "matmul": matmul, "outer": outer, "einsum": einsum, "zeros": filled("zeros"), "ones": filled("ones"), "full": full,
    "zeros_like": alike("zeros_like"), "ones_like": alike("ones_like"), "full_like": full_like, "eye_like": eye_like, "eye": eye,
    "arange": arange, "hamming_window": hamming_window, "tril": triangle("tril"), "triu": triangle("triu"),
}
