"""Cases of reductions, orders and scans."""

import numpy as np

from .case import Case


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


def nothing_reduced(r):
    x = r.data(r.pick((3, 0), (3, 0, 2), (5, 0, 4)), r.pick("float32", "float64", "int64"))
    axes = list(range(1, x.ndim))
    return Case(f"R.prod({{0}}, axis={axes})", [x], x.prod(tuple(axes)).astype(x.dtype))


CASES = {
    "nothing reduced": nothing_reduced, "sort nan": sort_nan, "unique unsorted": unique_unsorted,
    **{name: reduction(name) for name in REDUCE}, "argmax": arg_reduction("argmax"), "argmin": arg_reduction("argmin"), "median": median,
    "sort": sort, "argsort": argsort, "topk": topk, "cumsum": scan("cumsum"), "cumprod": scan("cumprod"), "bucketize": bucketize,
    "unique": unique, "nonzero": nonzero, "multinomial_from_uniform": multinomial,
}
