"""Cases of tensors of a pattern and of products."""

import numpy as np

from .case import Case, tolerance, wide


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


def narrow_panels(r):
    """A product whose result has one column and a few rows: the packed panels behind the last whole one are narrow."""
    a, b = r.data((3, 4, 4), "float64"), r.data((4, 1), "float64")
    return Case("R.matmul({0}, {1}, out_dtype=None)", [a, b], a @ b, 1e-9)


CASES = {
    "narrow panels": narrow_panels, "zeros": filled("zeros"), "ones": filled("ones"), "full": full, "zeros_like": alike("zeros_like", 0),
    "ones_like": alike("ones_like", 1), "full_like": alike("full_like", 3), "arange": arange, "eye": eye, "eye_like": eye,
    "hamming_window": hamming_window, "tril": triangle("tril"), "triu": triangle("triu"), "matmul": matmul, "outer": outer,
    "einsum": einsum,
}
