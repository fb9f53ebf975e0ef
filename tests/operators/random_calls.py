"""Random calls of operators, as TVMScript: what the tests of types and of hooks go through.

A generator gets a :class:`Draw` and returns the text of a call; tensors that it asks for become parameters of the function
around the call. Most calls are right, some are wrong on purpose: ranks, axes, dtypes and sizes that do not fit.
"""

import re
import random

FLOATS = ["float32", "float32", "float32", "float16", "float64"]
INTS = ["int32", "int64", "int8", "uint8"]
DIMS = [1, 2, 3, 4, 6, 8, "n", "n", "m"]


class Draw:
    """One case: random choices, and the parameters that they lead to."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.params = []
        self.symbols = set()

    def chance(self, share):
        return self.rng.random() < share

    def pick(self, *options):
        return self.rng.choice(options)

    def int(self, low, high):
        return self.rng.randint(low, high)

    def dim(self):
        dim = self.rng.choice(DIMS)
        if isinstance(dim, str):
            self.symbols.add(dim)
        return dim

    def shape(self, ndim=None):
        return [self.dim() for _ in range(self.int(0, 4) if ndim is None else ndim)]

    def dtype(self, kinds="f"):
        if kinds == "f":
            return self.rng.choice(FLOATS)
        if kinds == "i":
            return self.rng.choice(INTS)
        if kinds == "b":
            return "bool"
        return self.rng.choice(FLOATS + INTS + ["bool"])

    def text(self, shape):
        for dim in shape:
            for name in ("n", "m"):
                if isinstance(dim, str) and name in dim:
                    self.symbols.add(name)
        quoted = (f'"{d}", ' if isinstance(d, str) else f"{d}, " for d in shape)
        return "(" + "".join(quoted) + ")"

    def shape_arg(self, shape):
        self.text(shape)
        return "R.shape([" + ", ".join(str(d) for d in shape) + "])"

    def tensor(self, shape, dtype="float32", known=0.85):
        """A parameter of this type, about which sometimes less is said; its name."""
        name = f"x{len(self.params)}"
        if self.chance(known):
            ty = f'R.Tensor({self.text(shape)}, dtype="{dtype}")'
        else:
            ty = self.pick(
                f'R.Tensor(dtype="{dtype}", ndim={len(shape)})',
                f'R.Tensor(dtype="{dtype}", ndim={len(shape)})',
                f'R.Tensor(dtype="{dtype}")',
                f"R.Tensor(ndim={len(shape)})",
                "R.Tensor",
            )
        self.params.append((name, ty))
        return name

    def axis(self, ndim):
        if self.chance(0.08):
            return self.pick(ndim, ndim + 2, -ndim - 1)
        if ndim == 0:
            return 0
        return self.int(-ndim, ndim - 1)

    def axes(self, ndim):
        if ndim == 0 or self.chance(0.05):
            return [self.axis(ndim)]
        count = self.int(1, ndim)
        chosen = self.rng.sample(range(ndim), count)
        return [a - ndim if self.chance(0.3) else a for a in chosen]

    def like(self, shape):
        """A shape that can mostly be broadcast with another."""
        out = [1 if self.chance(0.3) else d for d in shape[self.int(0, len(shape)) :]]
        if self.chance(0.1) and out:
            out[self.int(0, len(out) - 1)] = self.dim()
        return out

    def signature(self):
        return ", ".join(f"{name}: {ty}" for name, ty in self.params)


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


def reshape(g):
    shape = g.shape()
    rest = list(shape)
    g.rng.shuffle(rest)
    if g.chance(0.4) and len(rest) > 1:
        rest = rest[2:] + [f"{rest[0]} * {rest[1]}" if isinstance(rest[0], str) or isinstance(rest[1], str) else rest[0] * rest[1]]
    if g.chance(0.1):
        rest.append(3)
    return f"R.reshape({g.tensor(shape)}, {g.shape_arg(rest)})"


def broadcast_to(g):
    target = g.shape()
    return f"R.broadcast_to({g.tensor(g.like(target))}, {g.shape_arg(target)})"


def collapse_sum_to(g):
    shape = g.shape()
    return f"R.collapse_sum_to({g.tensor(shape)}, {g.shape_arg(g.like(shape))})"


def collapse_sum_like(g):
    shape = g.shape()
    return f"R.collapse_sum_like({g.tensor(shape)}, {g.tensor(g.like(shape))})"


def expand_dims(g):
    shape = g.shape()
    count = g.int(1, 2)
    axes = g.rng.sample(range(len(shape) + count), count)
    if g.chance(0.1):
        axes = [axes[0], axes[0]]
    return f"R.expand_dims({g.tensor(shape)}, axis={axes})"


def squeeze(g):
    shape = [1 if g.chance(0.5) else d for d in g.shape(g.int(1, 4))]
    ones = [i for i, d in enumerate(shape) if d == 1]
    axis = "None" if g.chance(0.3) else repr(ones[:2] if ones and g.chance(0.8) else g.axes(len(shape)))
    return f"R.squeeze({g.tensor(shape)}, axis={axis})"


def permute_dims(g):
    shape = g.shape()
    axes = list(range(len(shape)))
    g.rng.shuffle(axes)
    if g.chance(0.1) and axes:
        axes[0] = axes[-1]
    return f"R.permute_dims({g.tensor(shape)}, axes={'None' if g.chance(0.3) else axes})"


def joined(name):
    def call(g):
        shape = g.shape(g.int(1, 3))
        axis = g.axis(len(shape) + (name == "stack"))
        tensors = []
        dtype = g.dtype("f")
        for _ in range(g.int(1, 3)):
            own = list(shape)
            if name == "concat" and -len(shape) <= axis < len(shape):
                own[axis] = g.dim()
            if g.chance(0.05):
                own[0] = g.dim()
            tensors.append(g.tensor(own, dtype, known=0.93))
        return f"R.{name}(({', '.join(tensors)},), axis={axis})"

    return call


def split(g):
    shape = g.shape(g.int(1, 3))
    axis = g.axis(len(shape))
    if -len(shape) <= axis < len(shape):
        shape[axis] = g.pick(4, 6, 8)
    how = g.pick(1, 2, 3, [1], [1, 3], [2, 2], [3, 5])
    return f"R.split({g.tensor(shape, known=1)}, indices_or_sections={how}, axis={axis})"


def tile(g):
    shape = g.shape()
    return f"R.tile({g.tensor(shape)}, repeats={[g.int(1, 3) for _ in range(g.int(1, 4))]})"


def repeat(g):
    shape = g.shape(g.int(1, 3))
    return f"R.repeat({g.tensor(shape)}, repeats={g.int(1, 3)}, axis={g.pick('None', g.axis(len(shape)))})"


def gather_elements(g):
    shape = g.shape(g.int(1, 3))
    indices = [g.dim() for _ in shape] if g.chance(0.9) else g.shape()
    return f"R.gather_elements({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'int32', 'float32'))}, axis={g.axis(len(shape))})"


def gather_nd(g):
    shape = g.shape(g.int(1, 4))
    batch = g.pick(0, 0, 1)
    indices = shape[:batch] + g.shape(g.int(0, 2)) + [g.int(1, len(shape))]
    return f"R.gather_nd({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'int32', 'float32'))}, batch_dims={batch})"


def take(g):
    shape = g.shape(g.int(1, 3))
    indices = g.tensor(g.shape(g.int(0, 2)), g.pick("int64", "int32", "int32", "float32"))
    if g.chance(0.15):
        indices = f"R.prim_value({g.int(0, 2)})"
    axis = "None" if g.chance(0.2) else g.axis(len(shape))
    if axis == "None":
        shape = [g.dim()]
    return f"R.take({g.tensor(shape)}, {indices}, axis={axis}, mode=\"{g.pick('fast', 'clip', 'wrap', 'nan')}\")"


def strided_slice(g):
    shape = g.shape(g.int(1, 4))
    axes = g.rng.sample(range(len(shape)), g.int(1, len(shape)))
    begin = [g.int(-2, 3) for _ in axes]
    end = [b + g.int(1, 4) if b >= 0 else g.pick(-1, 8) for b in begin]
    strides = [g.pick(1, 1, 1, 2) for _ in axes]
    tup = lambda v: "(" + "".join(f"{x}, " for x in v) + ")"
    return f"R.strided_slice({g.tensor(shape)}, {tup(axes)}, {tup(begin)}, {tup(end)}, {tup(strides)}, assume_inbound=False)"


def dynamic_strided_slice(g):
    ndim = g.int(1, 3)
    bound = lambda: g.tensor([ndim if g.chance(0.95) else ndim + 1], "int64" if g.chance(0.95) else "int32", known=1)
    return f"R.dynamic_strided_slice({g.tensor(g.shape(ndim))}, {bound()}, {bound()}, {bound()})"


def where(g):
    shape = g.shape()
    dtype = g.dtype("f")
    other = dtype if g.chance(0.93) else "int32"
    condition = "bool" if g.chance(0.93) else "float32"
    return f"R.where({g.tensor(g.like(shape), condition)}, {g.tensor(shape, dtype)}, {g.tensor(g.like(shape), other)})"


def one_hot(g):
    shape = g.shape(g.int(0, 3))
    return f"R.one_hot({g.tensor(shape, g.pick('int32', 'int64', 'int64', 'float32'))}, R.prim_value(T.float32(1.0)), R.prim_value(T.float32(0.0)), depth={g.int(1, 5)}, axis={g.axis(len(shape) + 1)})"


def scatter_elements(g):
    shape = g.shape(g.int(1, 3))
    indices = [g.dim() for _ in shape]
    updates = indices if g.chance(0.9) else g.shape(len(shape))
    return (
        f"R.scatter_elements({g.tensor(shape)}, {g.tensor(indices, g.pick('int64', 'int64', 'float32'))}, {g.tensor(updates)}, "
        f"axis={g.axis(len(shape))}, reduction=\"{g.pick('update', 'add', 'mul', 'min', 'max')}\")"
    )


def scatter_nd(g):
    shape = g.shape(g.int(1, 3))
    lead = g.shape(g.int(1, 2))
    k = g.int(1, len(shape))
    updates = lead + shape[k:]
    if g.chance(0.1):
        updates = g.shape()
    return f"R.scatter_nd({g.tensor(shape)}, {g.tensor(lead + [k], g.pick('int64', 'int64', 'float32'))}, {g.tensor(updates)}, reduction=\"update\")"


def slice_scatter(g):
    shape = [8] + g.shape(g.int(0, 2))
    start, end, step = g.pick((1, 7, 2), (0, 3, 1), (-5, -1, 1), (2, 8, 3))
    count = (end - start + step - 1) // step
    source = [count if g.chance(0.9) else count + 1] + shape[1:]
    return f"R.slice_scatter({g.tensor(shape)}, {g.tensor(source)}, R.prim_value({start}), R.prim_value({end}), R.prim_value({step}), axis={g.pick(0, -len(shape))})"


def index_tensor(g):
    shape = g.shape(g.int(1, 4))
    front = g.shape(g.int(1, 2))
    k = g.int(1, len(shape) + g.chance(0.1))
    indices = [g.tensor(g.like(front) or [1], g.pick("int64", "int32", "int64", "int64", "float32" if g.chance(0.2) else "int32")) for _ in range(k)]
    return f"R.index_tensor({g.tensor(shape)}, ({''.join(i + ', ' for i in indices)}))"


def index_put(g):
    shape = g.shape(g.int(1, 3))
    front = [g.pick(2, 3, "n")]
    k = len(shape) if g.chance(0.9) else g.int(1, 3)
    indices = [g.tensor(front, g.pick("int64", "int32"), known=1) for _ in range(k)]
    dtype = g.dtype("f")
    values = g.tensor(front, dtype if g.chance(0.9) else "int32", known=1)
    return f"R.index_put({g.tensor(shape, dtype)}, ({''.join(i + ', ' for i in indices)}), {values}, accumulate={g.chance(0.5)})"


def reverse_sequence(g):
    shape = g.shape(g.int(2, 3))
    batch = g.axis(len(shape))
    count = shape[batch] if -len(shape) <= batch < len(shape) and g.chance(0.9) else 5
    return f"R.reverse_sequence({g.tensor(shape)}, {g.tensor([count], g.pick('int32', 'int64', 'float32'))}, seq_axis={g.axis(len(shape))}, batch_axis={batch})"


def meshgrid(g):
    dtype = g.dtype("f")
    vectors = [g.tensor(g.shape(1 if g.chance(0.95) else 2), dtype if g.chance(0.95) else "int32", known=0.95) for _ in range(g.int(1, 3))]
    return f"R.meshgrid(({''.join(v + ', ' for v in vectors)}), indexing=\"ij\")"


def unique(g):
    shape = g.shape(g.int(0, 3))
    flags = ", ".join(f"R.prim_value({g.chance(0.5)})" for _ in range(4))
    axis = f", R.prim_value({g.axis(len(shape))})" if shape and g.chance(0.5) else ""
    return f"R.unique({g.tensor(shape, g.dtype('*'))}, {flags}{axis})"


def multinomial_from_uniform(g):
    n = g.dim()
    other = n if g.chance(0.9) else g.dim()
    return (
        f"R.multinomial_from_uniform({g.tensor(g.shape(2), g.pick('float32', 'float32', 'int32'))}, {g.tensor([n, 1], 'float32', known=1)}, "
        f"{g.tensor([other, 1], 'int64', known=1)}, dtype=\"{g.pick('int64', 'int32')}\")"
    )


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


def clip(g):
    return f"R.clip({g.tensor(g.shape(), g.dtype('f'))}, R.prim_value(T.float32(0.0)), R.prim_value(T.float32(1.0)))"


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


def quantized(name, dtype):
    def call(g):
        shape = g.shape(g.int(1, 3))
        axis = g.int(-len(shape), len(shape) - 1)
        channels = shape[axis]
        data, out = ("float32", '"int8"') if name == "quantize" else ("int8", '"float32"')
        scale = f'R.const([{", ".join(["0.5"] * channels)}], "float32")' if isinstance(channels, int) else 'R.const(0.5, "float32")'
        zero = f'R.const([{", ".join(["1"] * channels)}], "int8")' if isinstance(channels, int) else 'R.const(1, "int8")'
        return f"R.{name}({g.tensor(shape, data)}, {scale}, {zero}, axis={axis}, out_dtype={out})"

    return call


def layouts(g, letters, values=()):
    """A layout of axes, given their lengths where it may split one that is whole blocks."""
    if g.chance(0.6):
        return letters
    order = list(letters)
    g.rng.shuffle(order)
    whole = [letter for letter, value in zip(letters, values) if isinstance(value, int) and value and value % 2 == 0]
    if whole and g.chance(0.5):
        order.append(f"2{g.pick(*whole).lower()}")
    return "".join(order)


def ordered(values, letters, layout):
    """The lengths of axes as they lie in a layout."""
    block = re.findall(r"(\d+)([a-z])", layout)
    split = {axis.upper(): int(size) for size, axis in block}
    lengths = [values[letters.index(c)] // split[c] if c in split else values[letters.index(c)] for c in re.sub(r"\d+[a-z]", "", layout)]
    return lengths + [int(size) for size, _ in block]


def conv(name, n, transposed=False):
    space = "DHW"[3 - n :]

    def call(g):
        groups = g.pick(1, 1, 1, 2)
        per_group, filters = g.pick(2, 3), g.pick(2, 4)
        data = [g.dim(), per_group * groups] + [g.pick(8, 9, "n") for _ in range(n)]
        kernel = [g.pick(1, 2, 3) for _ in range(n)]
        letters = ("IO" if transposed else "OI") + space
        weight = ([per_group * groups, filters] if transposed else [filters, per_group]) + kernel
        if g.chance(0.08):
            data[1] += 1
        layout, kernel_layout = layouts(g, "NC" + space, data[:2]), layouts(g, letters, weight)
        out_layout = layout if g.chance(0.5) else layouts(g, "NC" + space)
        padding = [g.int(0, 2) for _ in range(g.pick(n, 2 * n))] if n > 1 else [g.int(0, 2), g.int(0, 2)]
        strides, dilation = [g.int(1, 2) for _ in range(n)], [g.int(1, 2) for _ in range(n)]
        dtype = g.dtype("f")
        other = dtype if g.chance(0.95) else "int8"
        extra = f"output_padding={[g.int(0, 1) for _ in range(n)]}, " if transposed else ""
        if len(padding) != 2 * n:
            padding = padding * 2
        known = 0.93
        return (
            f"R.nn.{name}({g.tensor(ordered(data, 'NC' + space, layout), dtype, known)}, "
            f"{g.tensor(ordered(weight, letters, kernel_layout), other, known)}, strides={strides}, padding={padding}, {extra}"
            f'dilation={dilation}, groups={groups}, data_layout="{layout}", kernel_layout="{kernel_layout}", '
            f'out_layout="{out_layout}", out_dtype={g.pick("None", "None", repr("float32"))})'
        )

    return call


def pool(name, n):
    space = "DHW"[3 - n :]

    def call(g):
        data = [g.dim(), g.dim()] + [g.pick(6, 8, 9, "n") for _ in range(n)]
        layout = layouts(g, "NC" + space, data[:2])
        out_layout = layout if g.chance(0.5) else layouts(g, "NC" + space, data[:2])
        numbers = lambda low, high, count=n: [g.int(low, high) for _ in range(count)]
        return (
            f"R.nn.{name}({g.tensor(ordered(data, 'NC' + space, layout), g.dtype('f'))}, pool_size={numbers(1, 3)}, strides={numbers(1, 2)}, "
            f"dilation={numbers(1, 2)}, padding={numbers(0, 1, 2 * n)}, ceil_mode={g.chance(0.5)}, count_include_pad={g.chance(0.5)}, "
            f'layout="{layout}", out_layout="{out_layout}")'
        )

    return call


def adaptive(name, n):
    space = "DHW"[3 - n :]

    def call(g):
        data = [g.dim(), g.dim()] + [g.pick(6, 8, "n") for _ in range(n)]
        layout = layouts(g, "NC" + space, data[:2])
        out_layout = layout if g.chance(0.5) else layouts(g, "NC" + space, data[:2])
        size = g.pick("None", repr([g.int(1, 4) for _ in range(n)]))
        return f"R.nn.{name}({g.tensor(ordered(data, 'NC' + space, layout))}, output_size={size}, layout=\"{layout}\", out_layout=\"{out_layout}\")"

    return call


def resize(name, n):
    space = "DHW"[3 - n :]

    def call(g):
        data = [g.dim(), g.dim()] + [g.pick(6, 8, "n") for _ in range(n)]
        layout = layouts(g, "NC" + space, data[:2])
        size = [g.pick(3, 12, "m") for _ in range(n)]
        if g.chance(0.1):
            size = size + [2]
        if "m" in size:
            g.tensor(["m"], known=1)
        return (
            f"R.image.{name}({g.tensor(ordered(data, 'NC' + space, layout))}, {g.shape_arg(size)}, roi=[{', '.join(['T.float32(0.0)'] * 2 * n)}], "
            f'layout="{layout}", method="{g.pick("linear", "nearest_neighbor", "cubic")}", '
            f'coordinate_transformation_mode="half_pixel", rounding_method="round", cubic_alpha=-0.75, cubic_exclude=0, '
            f'extrapolation_value=0.0, out_dtype={g.pick("None", repr("float16"))})'
        )

    return call


def affine_grid(g):
    n = g.pick(2, 2, 3)
    size = [g.pick(4, 5, "n") for _ in range(n)]
    maps = [g.dim(), n, n + 1]
    if g.chance(0.1):
        maps[g.int(1, 2)] += 1
    if "n" in size:
        g.tensor(["n"], known=1)
    return f"R.image.affine_grid({g.tensor(maps)}, {g.shape_arg(size)}, align_corners={g.chance(0.5)})"


def grid_sample(g):
    n = g.pick(2, 2, 3)
    batch = g.dim()
    data = [batch, g.dim()] + [g.pick(6, "n") for _ in range(n)]
    layout = g.pick("NCHW", "NHWC") if n == 2 else g.pick("NCDHW", "NDHWC")
    grid = [batch, n] + [g.pick(4, "m") for _ in range(n)]
    return (
        f"R.image.grid_sample({g.tensor(ordered(data, 'NC' + 'DHW'[3 - n :], layout))}, {g.tensor(grid)}, method=\"bilinear\", "
        f'layout="{layout}", padding_mode="zeros", align_corners=False)'
    )


def softmax(name):
    def call(g):
        shape = g.shape(g.int(1, 4))
        return f"R.nn.{name}({g.tensor(shape, g.dtype('f') if g.chance(0.9) else 'int32')}, axis={g.axis(len(shape))})"

    return call


def batch_norm(g):
    shape = g.shape(g.int(2, 4))
    axis = g.axis(len(shape))
    channels = shape[axis] if -len(shape) <= axis < len(shape) else 3
    if g.chance(0.08):
        channels = 7
    dtype = g.dtype("f")
    small = ", ".join(g.tensor([channels], dtype, known=0.97) for _ in range(4))
    return f"R.nn.batch_norm({g.tensor(shape, dtype)}, {small}, axis={axis}, epsilon=1e-05, center=True, scale=True, momentum=0.1, training={g.chance(0.5)})"


def normalized(name):
    def call(g):
        shape = g.shape(g.int(2, 4))
        axes = sorted(a % len(shape) for a in g.axes(len(shape))) if g.chance(0.9) else g.axes(len(shape))
        own = [shape[a] for a in axes if -len(shape) <= a < len(shape)]
        dtype = g.dtype("f")
        if g.chance(0.08):
            own = own + [2]
        if name == "rms_norm":
            return f"R.nn.rms_norm({g.tensor(shape, dtype)}, {g.tensor(own, dtype)}, axes={axes}, epsilon=1e-05)"
        return f"R.nn.layer_norm({g.tensor(shape, dtype)}, {g.tensor(own, dtype)}, {g.tensor(own, dtype)}, axes={axes}, epsilon=1e-05, center=True, scale=True)"

    return call


def channel_norm(name):
    def call(g):
        shape = [g.dim(), g.pick(4, 6)] + g.shape(2)
        channels = shape[1] if g.chance(0.92) else 3
        groups = f"num_groups={g.pick(2, 2, 3)}, " if name == "group_norm" else ""
        dtype = g.dtype("f")
        return (
            f"R.nn.{name}({g.tensor(shape, dtype)}, {g.tensor([channels], dtype)}, {g.tensor([channels], dtype)}, {groups}"
            f"channel_axis=1, axes=[2, 3], epsilon=1e-05, center=True, scale=True)"
        )

    return call


def prelu(g):
    shape = g.shape(g.int(1, 4))
    axis = g.axis(len(shape))
    alpha = shape[axis] if -len(shape) <= axis < len(shape) and g.chance(0.9) else 5
    return f"R.nn.prelu({g.tensor(shape)}, {g.tensor([alpha])}, axis={axis})"


def dropout(g):
    return f"R.nn.dropout({g.tensor(g.shape(), g.dtype('f'))}, rate=0.5)"


def pad(g):
    shape = g.shape(g.int(1, 4))
    widths = [g.int(0, 2) for _ in range(2 * len(shape) - (g.chance(0.05)))]
    return f'R.nn.pad({g.tensor(shape)}, pad_width={widths}, pad_mode="{g.pick("constant", "reflect", "replicate", "circular")}", pad_value=0.0)'


def pixel_shuffle(g):
    r = g.pick(2, 3)
    shape = g.shape(g.int(0, 2)) + [g.pick(2, 3) * r * r if g.chance(0.9) else 5, g.dim(), g.dim()]
    return f"R.nn.pixel_shuffle({g.tensor(shape)}, upscale_factor={r})"


def cross_entropy(g):
    shape = g.shape(g.int(1, 2))
    other = shape if g.chance(0.9) else g.shape(len(shape))
    return f"R.nn.cross_entropy_with_logits({g.tensor(shape)}, {g.tensor(other)})"


def nll_loss(g):
    classes = g.pick(3, 5)
    rest = g.shape(g.int(0, 2))
    batched = bool(rest) or g.chance(0.7)
    batch = [g.dim()] if batched else []
    predictions, targets = batch + [classes] + rest, batch + rest
    if g.chance(0.08):
        targets = targets + [2]
    weights = f", {g.tensor([classes if g.chance(0.9) else 7])}" if g.chance(0.5) else ""
    return f'R.nn.nll_loss({g.tensor(predictions)}, {g.tensor(targets, "int64" if g.chance(0.95) else "float32")}{weights}, reduction="{g.pick("mean", "sum", "none")}", ignore_index=-100)'


def attention(name):
    def call(g):
        b, q, k, h, d, v = g.dim(), g.dim(), g.dim(), g.pick(2, 4), g.pick(4, 8), g.pick(4, 6)
        known = 1  # the reference crashes without shapes
        dtype = g.dtype("f")
        args = [g.tensor([b, q, h, d if g.chance(0.95) else 5], dtype, known), g.tensor([b, k, h, d], dtype, known), g.tensor([b, k, h, v], dtype, known)]
        if name == "attention_bias":
            args.append(g.tensor([g.pick(b, 1), g.pick(h, 1), q, k], dtype, known))
        if name == "attention_var_len":
            args += [g.tensor([5], "int32", 1), g.tensor([5], "int32", 1), g.tensor([], "int32", 1), g.tensor([], "int32", 1)]
        return f'R.nn.{name}({", ".join(args)}, scale=None, causal_mask={g.pick("None", repr("TopLeft"))}, window_size=None)'

    return call


def view(g):
    return (
        f"R.memory.view({g.tensor([8, 4], 'float32')}, {g.pick('R.shape([4, 4])', 'R.shape([16, 2])', 'R.shape([9, 4])', 'R.tuple()')}, "
        f"{g.pick('R.tuple()', 'R.dtype(' + repr('int32') + ')', 'R.dtype(' + repr('float16') + ')', 'R.dtype(' + repr('float64') + ')')}, "
        f"{g.pick('R.tuple()', 'R.prim_value(0)', 'R.prim_value(16)')})"
    )


def inspect(name):
    return lambda g: f"R.inspect.{name}({g.tensor(g.shape(), g.dtype('*'))})"


def inspect_axis(name):
    def call(g):
        shape = g.shape(g.int(1, 3))
        return f"R.inspect.{name}({g.tensor(shape)}, R.prim_value({g.int(-1, len(shape))}))"

    return call


def roi(name):
    def call(g):
        layout = g.pick("NCHW", "NCHW", "NHWC")
        data = ordered([g.dim(), g.dim(), 8, "n"], "NCHW", layout)
        extra = f'sample_ratio={g.pick(-1, 2)}, aligned={g.chance(0.5)}, layout="{layout}", mode="{g.pick("avg", "max")}"' if name == "roi_align" else f'layout="{layout}"'
        return f"R.vision.{name}({g.tensor(data)}, {g.tensor([g.dim(), 5 if g.chance(0.93) else 4])}, pooled_size=[2, 3], spatial_scale=0.5, {extra})"

    return call


def get_valid_counts(g):
    return f"R.vision.get_valid_counts({g.tensor(g.shape(2 if g.chance(0.95) else 1) + [6])}, score_threshold=0.5, id_index={g.pick(0, -1, 7)}, score_index=1)"


def non_max_suppression(g):
    b, n = g.dim(), g.dim()
    return (
        f"R.vision.non_max_suppression({g.tensor([b, n, 6])}, {g.tensor([b if g.chance(0.93) else 5], 'int32')}, {g.tensor([b, n], 'int32')}, "
        f"max_output_size=-1, iou_threshold=0.5, force_suppress=False, top_k=-1, coord_start=2, score_index=1, id_index=0, "
        f"return_indices={g.chance(0.5)}, invalid_to_bottom=False, soft_nms_sigma={g.pick(0.0, 0.5)}, score_threshold=0.0)"
    )


def all_class(g):
    b, c, n = g.dim(), g.dim(), g.dim()
    return (
        f"R.vision.all_class_non_max_suppression({g.tensor([b, n, 4], known=1)}, {g.tensor([b, c, n], known=1)}, R.const(5, \"int64\"), "
        f'R.const(0.5, "float32"), R.const(0.1, "float32"), output_format="{g.pick("onnx", "tensorflow")}")'
    )


def multibox(g):
    b, c, n = g.dim(), g.dim(), g.pick(3, 6)
    offsets = 4 * n if g.chance(0.93) else 4 * n + 1
    return (
        f"R.vision.multibox_transform_loc({g.tensor([b, c, n])}, {g.tensor([b, offsets])}, {g.tensor([1, n, 4])}, clip=False, threshold=0.0, "
        f"variances=[0.1, 0.1, 0.2, 0.2], keep_background=True, apply_softmax=True)"
    )


def take_backward(g):
    return f"R.grad.take_backward({g.tensor([3, 4])}, {g.tensor([3, 'n'])}, {g.tensor([4], 'int64')}, axis=1)"


def pool_backward(name):
    return lambda g: (
        f"R.grad.{name}({g.tensor([1, 2, 4, 4])}, {g.tensor([1, 2, 8, 8])}, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], "
        f'padding=[0, 0, 0, 0], ceil_mode=False, count_include_pad=False, layout="NCHW", out_layout="NCHW")'
    )


def nll_backward(g):
    weights = f", {g.tensor([5])}" if g.chance(0.5) else ""
    return f'R.grad.nll_loss_backward({g.tensor([])}, {g.tensor([2, 5, "n"])}, {g.tensor([2, "n"], "int64")}{weights}, reduction="mean", ignore_index=-100)'


def layout_transform(g):
    text, ndim = g.pick(("lambda i, j: (j, i)", 2), ("lambda i, j: (i, j // 4, j % 4)", 2), ("lambda i: (i // 3, i % 3)", 1), ("lambda i, j, k: (k, i, j)", 3))
    pad = g.pick("None", "T.float32(2.0)")
    return f"R.layout_transform({g.tensor([g.dim() if g.chance(0.4) else g.pick(8, 12, 14) for _ in range(ndim)])}, index_map=T.index_map({text}), pad_value={pad})"


FLOAT_UNARY = "acos acosh asin asinh atan atanh cos cosh erf exp log rsqrt sigmoid sin sinh sqrt tan tanh".split()
ANY_UNARY = "abs ceil floor negative round sign square trunc isfinite isinf isnan".split()
NN_UNARY = "relu gelu gelu_tanh silu selu".split()

CALLS = {
    **{name: unary(name) for name in FLOAT_UNARY + ANY_UNARY},
    **{f"nn.{name}": unary(f"nn.{name}") for name in NN_UNARY},
    "bitwise_not": unary("bitwise_not", "i"),
    "logical_not": unary("logical_not", "b"),
    **{name: binary(name) for name in "add subtract multiply divide floor_divide mod floor_mod power maximum minimum equal not_equal less less_equal greater greater_equal atan2 log_add_exp".split()},
    **{name: binary(name, "i") for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()},
    **{name: binary(name, "b") for name in "logical_and logical_or logical_xor".split()},
    **{name: reduction(name) for name in "sum prod max min mean variance std median".split()},
    **{name: arg_reduction(name) for name in ("argmax", "argmin")},
    "reshape": reshape, "broadcast_to": broadcast_to, "collapse_sum_to": collapse_sum_to, "collapse_sum_like": collapse_sum_like,
    "expand_dims": expand_dims, "squeeze": squeeze, "permute_dims": permute_dims, "concat": joined("concat"), "stack": joined("stack"),
    "split": split, "tile": tile, "repeat": repeat, "flip": with_axis("flip"), "flatten": unary("flatten"), "nn.batch_flatten": unary("nn.batch_flatten"),
    "gather_elements": gather_elements, "gather_nd": gather_nd, "take": take, "strided_slice": strided_slice,
    "dynamic_strided_slice": dynamic_strided_slice, "where": where, "one_hot": one_hot, "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd, "slice_scatter": slice_scatter, "index_tensor": index_tensor, "index_put": index_put,
    "reverse_sequence": reverse_sequence, "meshgrid": meshgrid, "unique": unique, "nonzero": unary("nonzero"),
    "multinomial_from_uniform": multinomial_from_uniform, "matmul": matmul, "outer": outer, "einsum": einsum,
    "zeros": filled("zeros"), "ones": filled("ones"), "full": full, "zeros_like": alike("zeros_like"), "ones_like": alike("ones_like"),
    "full_like": full_like, "eye_like": eye_like, "eye": eye, "arange": arange, "hamming_window": hamming_window,
    "tril": triangle("tril"), "triu": triangle("triu"), "clip": clip, "cumsum": scan("cumsum"), "cumprod": scan("cumprod"),
    "sort": sort, "argsort": argsort, "topk": topk, "bucketize": bucketize,
    "quantize": quantized("quantize", "int8"), "dequantize": quantized("dequantize", "float32"),
    "astype": lambda g: f'R.astype({g.tensor(g.shape(), g.dtype("*"))}, dtype="{g.dtype("*")}")',
    "ewise_fma": lambda g: (lambda s, d: f"R.ewise_fma({g.tensor(s, d)}, {g.tensor(s, d)}, {g.tensor(s, d)})")(g.shape(), g.dtype("f")),
    "wrap_param": lambda g: f'R.wrap_param({g.tensor(g.shape())}, dtype="{g.dtype("f")}")',
    "shape_of": unary("shape_of"), "size": unary("size"),
    "tensor_to_shape": lambda g: f"R.tensor_to_shape({g.tensor(g.shape(1), 'int64')})",
    "shape_to_tensor": lambda g: f"R.shape_to_tensor({g.shape_arg([g.int(1, 4) for _ in range(g.int(0, 3))])})",
    **{f"nn.conv{n}d": conv(f"conv{n}d", n) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": conv(f"conv{n}d_transpose", n, True) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pool(f"{kind}_pool{n}d", n) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": adaptive(f"adaptive_avg_pool{n}d", n) for n in (1, 2, 3)},
    "image.resize2d": resize("resize2d", 2), "image.resize3d": resize("resize3d", 3),
    "image.affine_grid": affine_grid, "image.grid_sample": grid_sample,
    "nn.softmax": softmax("softmax"), "nn.log_softmax": softmax("log_softmax"), "nn.batch_norm": batch_norm,
    "nn.layer_norm": normalized("layer_norm"), "nn.rms_norm": normalized("rms_norm"),
    "nn.group_norm": channel_norm("group_norm"), "nn.instance_norm": channel_norm("instance_norm"),
    "nn.prelu": prelu, "nn.dropout": dropout, "nn.pad": pad, "nn.pixel_shuffle": pixel_shuffle,
    "nn.leakyrelu": lambda g: f"R.nn.leakyrelu({g.tensor(g.shape(), g.dtype('f'))}, alpha=0.1)",
    "nn.softplus": lambda g: f"R.nn.softplus({g.tensor(g.shape(), g.dtype('f'))}, beta=1.0, threshold=20.0)",
    "nn.cross_entropy_with_logits": cross_entropy, "nn.nll_loss": nll_loss,
    "nn.attention": attention("attention"), "nn.attention_bias": attention("attention_bias"), "nn.attention_var_len": attention("attention_var_len"),
    "memory.view": view, "layout_transform": layout_transform,
    **{f"inspect.{name}": inspect(name) for name in "tensor_ndim tensor_dtype_code tensor_dtype_bits tensor_dtype_lanes tensor_byte_offset tensor_elem_offset".split()},
    **{f"inspect.{name}": inspect_axis(name) for name in ("tensor_shape_i", "tensor_stride_i")},
    "vision.roi_align": roi("roi_align"), "vision.roi_pool": roi("roi_pool"), "vision.get_valid_counts": get_valid_counts,
    "vision.non_max_suppression": non_max_suppression, "vision.all_class_non_max_suppression": all_class, "vision.multibox_transform_loc": multibox,
    "grad.no_grad": unary("grad.no_grad"), "grad.start_checkpoint": unary("grad.start_checkpoint"), "grad.end_checkpoint": unary("grad.end_checkpoint"),
    "grad.take_backward": take_backward, "grad.nll_loss_backward": nll_backward,
    "grad.max_pool2d_backward": pool_backward("max_pool2d_backward"), "grad.avg_pool2d_backward": pool_backward("avg_pool2d_backward"),
}


def module(name, seed):
    """A module whose function binds `y` to a random call of an operator."""
    draw = Draw(f"{name}/{seed}")
    call = CALLS[name](draw)
    symbols = "".join(f"        {s} = T.int64()\n" for s in sorted(draw.symbols))
    return (
        "# from tvm.script import ir as I\n# from tvm.script import tirx as T\n# from tvm.script import relax as R\n\n"
        f"@I.ir_module\nclass Module:\n    @R.function\n    def main({draw.signature()}):\n{symbols}        y = {call}\n        return y\n"
    )
