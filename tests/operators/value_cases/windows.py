"""Cases of windows. Images are computed in the order batch, channels, space and put into the layout."""

import itertools

import numpy as np

from .case import Case


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


CASES = {
    **{f"nn.conv{n}d": conv(n) for n in (1, 2, 3)}, **{f"nn.conv{n}d_transpose": conv_transpose(n) for n in (1, 2, 3)},
    **{f"nn.{kind}_pool{n}d": pool(kind, n) for kind in ("max", "avg") for n in (1, 2, 3)},
    **{f"nn.adaptive_avg_pool{n}d": adaptive(n) for n in (1, 2, 3)}, "grad.max_pool2d_backward": pool_backward("max"),
    "grad.avg_pool2d_backward": pool_backward("avg"),
}
