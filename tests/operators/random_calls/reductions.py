"""Calls of reductions, orders and scans."""


def reduction(name):
    def call(g):
        shape = g.shape()
        axis = g.pick("None", repr(g.axes(len(shape))), repr([g.axis(len(shape))]))
        return f"R.{name}({g.tensor(shape, g.dtype('*') if name != 'mean' else 'float32')}, axis={axis}, keepdims={g.chance(0.5)})"

    return call


def arg_reduction(name):
    def call(g):
        shape = g.shape()
        axis = g.pick("None", repr(g.axis(len(shape))))
        return f"R.{name}({g.tensor(shape, g.dtype('*'))}, axis={axis}, keepdims={g.chance(0.5)})"

    return call


def with_axis(name, extra=lambda g: ""):
    def call(g):
        shape = g.shape(g.int(1, 4))
        return f"R.{name}({g.tensor(shape)}, axis={g.axis(len(shape))}{extra(g)})"

    return call


def scan(name):
    def call(g):
        shape = g.shape(g.int(1, 3))
        return (
            f"R.{name}({g.tensor(shape, g.dtype('*'))}, axis={g.pick('None', g.axis(len(shape)))}, "
            f"dtype={g.pick('None', repr(g.dtype('f')))}, exclusive={g.chance(0.5)})"
        )

    return call


def sort(g):
    shape = g.shape(g.int(1, 3))
    return f"R.sort({g.tensor(shape)}, axis={g.axis(len(shape)) if g.chance(0.5) else -1}, descending={g.chance(0.5)})"


def argsort(g):
    shape = g.shape(g.int(1, 3))
    return f'R.argsort({g.tensor(shape)}, axis=-1, descending={g.chance(0.5)}, dtype="{g.pick("int32", "int64")}")'


def topk(g):
    shape = g.shape(g.int(1, 3))
    axis = g.int(-len(shape), len(shape) - 1)
    shape[axis] = g.pick(4, 6, "n")
    return f'R.topk({g.tensor(shape)}, k={g.int(-1, 4)}, axis={axis}, ret_type="{g.pick("both", "values", "indices")}", largest={g.chance(0.5)}, dtype="{g.pick("int32", "int64")}")'


def bucketize(g):
    return f"R.bucketize({g.tensor(g.shape())}, {g.tensor(g.shape(1 if g.chance(0.9) else 2))}, out_int32={g.chance(0.5)}, right={g.chance(0.5)})"


CALLS = {
    **{name: reduction(name) for name in "sum prod max min mean variance std median".split()},
    **{name: arg_reduction(name) for name in ("argmax", "argmin")}, "cumsum": scan("cumsum"), "cumprod": scan("cumprod"), "sort": sort,
    "argsort": argsort, "topk": topk, "bucketize": bucketize,
}
