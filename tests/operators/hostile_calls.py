"""Random calls of Relax's operators whose indices or lengths are hostile, written as programs in TVMScript.

Of a template: a program of one operator, and a way to draw its inputs with what must come out: values where all indices are inside,
counted from the front; anything but a fault elsewhere, an error or an answer of the operator's own.
"""

import numpy as np

#: The run may be an error or give anything of its own.
ANYTHING = object()


def index(rng, n, shape, dtype="int64"):
    """Indices into `n` elements, and whether all are inside."""
    limit = np.iinfo(dtype)
    out = rng.integers(0, max(n, 1), shape).astype(dtype)
    if out.size and rng.random() < 0.6:
        bad = [-1, -n, n, n + 1, -n - 1, 2 * n, 1000, -1000, 2**31 - 1, -(2**31), limit.max, limit.min, limit.max - n, limit.min + n]
        for _ in range(rng.integers(1, 4)):
            out.flat[rng.integers(out.size)] = np.clip(bad[rng.integers(len(bad))], limit.min, limit.max)
    wide = out.astype(object)
    return out, bool(np.all((wide >= 0) & (wide < n)))


def data(rng, shape):
    return rng.standard_normal(shape).astype("float32")


def program(call, **params):
    """A function `main` of tensors: a shape of names and numbers, and an element type, for each parameter."""
    tensor = lambda dims, dtype: "R.Tensor((" + "".join(f"{d if isinstance(d, int) else repr(d)}, " for d in dims) + f'), "{dtype}")'  # noqa: E731
    listed = ", ".join(f"{name}: {tensor(*kind)}" for name, kind in params.items())
    return f"@R.function\ndef main({listed}):\n    with R.dataflow():\n        y = {call}\n        R.output(y)\n    return y\n"


def dims(shape, named, letter):
    return [f"{letter}{axis}" if named else n for axis, n in enumerate(shape)]


def take(rng, named):
    shape, axis = [int(d) for d in rng.integers(1, 6, 2)], int(rng.integers(2))
    count, dtype = int(rng.integers(1, 40)), str(rng.choice(["int64", "int32"]))

    def draw(rng):
        x, (i, inside) = data(rng, shape), index(rng, shape[axis], [count], dtype)
        return [x, i], np.take(x, i, axis) if inside else ANYTHING

    return program(f"R.take(x, i, axis={axis})", x=(dims(shape, named, "n"), "float32"), i=(dims([count], named, "k"), dtype)), draw


def gather_elements(rng, named):
    n, m, axis = int(rng.integers(1, 6)), int(rng.integers(1, 20)), int(rng.integers(2))
    shape, own = [n, m], [int(rng.integers(1, n + 1)), int(rng.integers(1, m + 1))]

    def draw(rng):
        x, (i, inside) = data(rng, shape), index(rng, shape[axis], own)
        rest = x[: own[0]] if axis == 1 else x[:, : own[1]]
        return [x, i], np.take_along_axis(rest, i, axis) if inside else ANYTHING

    return program(f"R.gather_elements(x, i, axis={axis})", x=(dims(shape, named, "n"), "float32"), i=(dims(own, named, "k"), "int64")), draw


def gather_nd(rng, named):
    shape, count = [int(d) for d in rng.integers(1, 6, 3)], int(rng.integers(1, 12))

    def draw(rng):
        x = data(rng, shape)
        (a, first), (b, second) = index(rng, shape[0], [count]), index(rng, shape[1], [count])
        return [x, np.stack([a, b], -1)], x[a, b] if first and second else ANYTHING

    kinds = dict(x=(dims(shape, named, "n"), "float32"), i=([*dims([count], named, "k"), 2], "int64"))
    return program("R.gather_nd(x, i)", **kinds), draw


def scatter_elements(rng, named):
    n, m, axis = int(rng.integers(1, 6)), int(rng.integers(1, 20)), int(rng.integers(2))
    shape, own = [n, m], [int(rng.integers(1, n + 1)), int(rng.integers(1, m + 1))]

    def draw(rng):
        x, u, (i, inside) = data(rng, shape), data(rng, own), index(rng, shape[axis], own)
        wanted = x.copy()
        if inside:
            for place in np.ndindex(*own):
                at = list(place)
                at[axis] = i[place]
                wanted[tuple(at)] += u[place]
        return [x, i, u], wanted if inside else ANYTHING

    kinds = dict(x=(dims(shape, named, "n"), "float32"), i=(dims(own, named, "k"), "int64"), u=(dims(own, named, "k"), "float32"))
    return program(f'R.scatter_elements(x, i, u, axis={axis}, reduction="add")', **kinds), draw


def scatter_nd(rng, named):
    shape, count = [int(d) for d in rng.integers(1, 6, 2)], int(rng.integers(1, 12))

    def draw(rng):
        x, u, (i, inside) = data(rng, shape), data(rng, [count, shape[1]]), index(rng, shape[0], [count, 1])
        wanted = x.copy()
        if inside:
            np.add.at(wanted, i[:, 0], u)
        return [x, i, u], wanted if inside else ANYTHING

    size = dims(shape, named, "n")
    kinds = dict(x=(size, "float32"), i=([*dims([count], named, "k"), 1], "int64"), u=([*dims([count], named, "k"), size[1]], "float32"))
    return program('R.scatter_nd(x, i, u, reduction="add")', **kinds), draw


def index_tensor(rng, named):
    shape, count = [int(d) for d in rng.integers(1, 6, 3)], int(rng.integers(1, 12))

    def draw(rng):
        x = data(rng, shape)
        (a, first), (b, second) = index(rng, shape[0], [count]), index(rng, shape[1], [count])
        return [x, a, b], x[a, b] if first and second else ANYTHING

    key = (dims([count], named, "k"), "int64")
    return program("R.index_tensor(x, (a, b))", x=(dims(shape, named, "n"), "float32"), a=key, b=key), draw


def index_put(rng, named):
    shape, count = [int(d) for d in rng.integers(1, 6, 2)], int(rng.integers(1, 12))

    def draw(rng):
        x, u = data(rng, shape), data(rng, [count])
        (a, first), (b, second) = index(rng, shape[0], [count]), index(rng, shape[1], [count])
        wanted = x.copy()
        if first and second:
            np.add.at(wanted, (a, b), u)
        return [x, a, b, u], wanted if first and second else ANYTHING

    key = (dims([count], named, "k"), "int64")
    kinds = dict(x=(dims(shape, named, "n"), "float32"), a=key, b=key, u=(key[0], "float32"))
    return program("R.index_put(x, (a, b), u, accumulate=True)", **kinds), draw


def dynamic_slice(rng, named):
    shape = [int(d) for d in rng.integers(1, 9, 2)]

    def draw(rng):
        x = data(rng, shape)
        (begin, _), (end, _) = index(rng, 9, [2]), index(rng, 9, [2])
        strides = rng.choice([1, 2, 3, -1, -2], 2).astype("int64")
        return [x, begin, end, strides], ANYTHING

    three = ([2], "int64")
    return program("R.dynamic_strided_slice(x, b, e, s)", x=(dims(shape, named, "n"), "float32"), b=three, e=three, s=three), draw


def one_hot(rng, named):
    count, depth = int(rng.integers(1, 12)), int(rng.integers(1, 9))

    def draw(rng):
        i, inside = index(rng, depth, [count])
        return [i], np.eye(depth, dtype="float32")[i] if inside else ANYTHING

    return program(f"R.one_hot(i, R.prim_value(T.float32(1)), R.prim_value(T.float32(0)), {depth}, axis=-1)", i=(dims([count], named, "k"), "int64")), draw


def nll_loss(rng, named):
    rows, classes = int(rng.integers(1, 9)), int(rng.integers(1, 6))

    def draw(rng):
        x, (i, inside) = data(rng, [rows, classes]), index(rng, classes, [rows])
        return [x, i], np.float32(-x[np.arange(rows), i].sum()) if inside else ANYTHING

    kinds = dict(x=(dims([rows, classes], named, "n"), "float32"), i=(dims([rows], named, "n"), "int64"))
    return program('R.nn.nll_loss(x, i, reduction="sum")', **kinds), draw


def bucketize(rng, named):
    count, bounds = int(rng.integers(1, 40)), int(rng.integers(1, 9))

    def draw(rng):
        x, edges = data(rng, [count]), np.sort(data(rng, [bounds]))
        x.flat[rng.integers(count)] = rng.choice([np.nan, np.inf, -np.inf, 0.0])
        return [x, edges], ANYTHING if np.isnan(x).any() else np.searchsorted(edges, x).astype("int64")

    return program("R.bucketize(x, e)", x=(dims([count], named, "k"), "float32"), e=(dims([bounds], named, "b"), "float32")), draw


def grid_sample(rng, named):
    shape = [int(d) for d in rng.integers(1, 5, 4)]
    mode, pad = str(rng.choice(["bilinear", "nearest", "bicubic"])), str(rng.choice(["zeros", "border", "reflection"]))

    def draw(rng):
        grid = data(rng, [shape[0], 2, 3, 3])
        grid.flat[rng.integers(grid.size)] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -1e9, 1e-40])
        return [data(rng, shape), grid], ANYTHING

    call = f'R.image.grid_sample(x, g, method="{mode}", padding_mode="{pad}", align_corners=False)'
    return program(call, x=(dims(shape, named, "n"), "float32"), g=([dims(shape, named, "n")[0], 2, 3, 3], "float32")), draw


TEMPLATES = [take, gather_elements, gather_nd, scatter_elements, scatter_nd, index_tensor, index_put, dynamic_slice, one_hot, nll_loss,
             bucketize, grid_sample]
