"""Calls of convolutions and poolings."""

import re


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


def pool_backward(name):
    return lambda g: (
        f"R.grad.{name}({g.tensor([1, 2, 4, 4])}, {g.tensor([1, 2, 8, 8])}, pool_size=[2, 2], strides=[2, 2], dilation=[1, 1], "
        f'padding=[0, 0, 0, 0], ceil_mode=False, count_include_pad=False, layout="NCHW", out_layout="NCHW")'
    )


CALLS = {
    **{f"nn.conv{n}d": conv(f"conv{n}d", n) for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": conv(f"conv{n}d_transpose", n, True) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pool(f"{kind}_pool{n}d", n) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": adaptive(f"adaptive_avg_pool{n}d", n) for n in (1, 2, 3)},
    "grad.max_pool2d_backward": pool_backward("max_pool2d_backward"), "grad.avg_pool2d_backward": pool_backward("avg_pool2d_backward"),
}
