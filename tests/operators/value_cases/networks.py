"""Cases of layers of networks: normalization, losses, attention, quantization."""

import numpy as np

from .case import Case


def softmax(name):
    def case(r):
        x = r.data(r.shape(1, 4, empty=0.03), r.pick("float32", "float64"))
        axis = r.int(-x.ndim, x.ndim - 1)
        if x.shape[axis] == 0:
            x = r.data((2, 3))
            axis = 1
        e = np.exp(x - x.max(axis, keepdims=True))
        expect = e / e.sum(axis, keepdims=True)
        return Case(f"R.nn.{name}({{0}}, axis={axis})", [x], (np.log(expect) if "log" in name else expect).astype(x.dtype), 1e-4)

    return case


def normalize(x, axes, epsilon=1e-5):
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon)


def batch_norm(r):
    x = r.data(r.shape(2, 4, empty=0))
    axis, training = r.int(0, x.ndim - 1), r.chance(0.5)
    channels = (x.shape[axis],)
    gamma, beta, mean, var = r.data(channels), r.data(channels), r.data(channels), r.data(channels, low=0.5, high=2)
    wide_shape = [-1 if i == axis else 1 for i in range(x.ndim)]
    rest = tuple(i for i in range(x.ndim) if i != axis)
    m, v = (x.mean(rest), x.var(rest)) if training else (mean, var)
    y = (x - m.reshape(wide_shape)) / np.sqrt(v.reshape(wide_shape) + 1e-5) * gamma.reshape(wide_shape) + beta.reshape(wide_shape)
    moved = [mean * 0.9 + m * 0.1, var * 0.9 + v * 0.1] if training else [mean, var]
    call = f"R.nn.batch_norm({{0}}, {{1}}, {{2}}, {{3}}, {{4}}, axis={axis}, epsilon=1e-05, center=True, scale=True, momentum=0.1, training={training})"
    return Case(call, [x, gamma, beta, mean, var], [y.astype("float32"), *[e.astype("float32") for e in moved]], 2e-3)


def layer_norm(r):
    x = r.data(r.shape(1, 4, empty=0))
    axes = sorted(r.rng.permutation(x.ndim)[: r.int(1, x.ndim)].tolist())
    own = tuple(x.shape[a] for a in axes)
    gamma, beta = r.data(own), r.data(own)
    spread = [x.shape[i] if i in axes else 1 for i in range(x.ndim)]
    expect = normalize(x.astype("float64"), tuple(axes)) * gamma.reshape(spread) + beta.reshape(spread)
    return Case(f"R.nn.layer_norm({{0}}, {{1}}, {{2}}, axes={axes}, epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3)


def rms_norm(r):
    x = r.data(r.shape(1, 4, empty=0))
    weight = r.data(x.shape[-1:])
    expect = x / np.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5) * weight
    return Case("R.nn.rms_norm({0}, {1}, axes=[-1], epsilon=1e-05)", [x, weight], expect.astype("float32"), 1e-4)


def group_norm(r):
    x = r.data((r.int(1, 2), 4, r.int(2, 3), r.int(2, 3)))
    gamma, beta = r.data((4,)), r.data((4,))
    grouped = normalize(x.reshape(x.shape[0], 2, 2, *x.shape[2:]).astype("float64"), (2, 3, 4)).reshape(x.shape)
    expect = grouped * gamma.reshape(1, 4, 1, 1) + beta.reshape(1, 4, 1, 1)
    return Case("R.nn.group_norm({0}, {1}, {2}, num_groups=2, channel_axis=1, axes=[2, 3], epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3, fixed=(4,))


def instance_norm(r):
    x = r.data((r.int(1, 2), r.int(1, 3), r.int(2, 3), r.int(2, 3)))
    gamma, beta = r.data((x.shape[1],)), r.data((x.shape[1],))
    expect = normalize(x.astype("float64"), (2, 3)) * gamma.reshape(1, -1, 1, 1) + beta.reshape(1, -1, 1, 1)
    return Case("R.nn.instance_norm({0}, {1}, {2}, channel_axis=1, axes=[2, 3], epsilon=1e-05, center=True, scale=True)", [x, gamma, beta], expect.astype("float32"), 2e-3)


def pad(r):
    x = r.data(tuple(r.int(2, 5) for _ in range(r.int(1, 4))))
    mode = r.pick("constant", "reflect", "replicate", "circular")
    widths = [(r.int(0, d - 1), r.int(0, d - 1)) for d in x.shape]
    names = {"replicate": "edge", "circular": "wrap"}
    extra = {"constant_values": 1.5} if mode == "constant" else {}
    flat = [w for pair in widths for w in pair]
    return Case(f'R.nn.pad({{0}}, pad_width={flat}, pad_mode="{mode}", pad_value=1.5)', [x], np.pad(x, widths, mode=names.get(mode, mode), **extra))


def pixel_shuffle(r):
    f, c, h, w = r.pick(2, 3), r.int(1, 2), r.int(1, 3), r.int(1, 3)
    x = r.data((1, c * f * f, h, w))
    expect = x.reshape(1, c, f, f, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(1, c, h * f, w * f)
    return Case(f"R.nn.pixel_shuffle({{0}}, upscale_factor={f})", [x], expect, fixed=x.shape)


def cross_entropy(r):
    x, y = r.data((3, 4)), r.data((3, 4))
    return Case("R.nn.cross_entropy_with_logits({0}, {1})", [x, y], np.asarray(-(x * y).sum() / 3, "float32"), 1e-4)


def nll_parts(r):
    classes, rest = r.int(2, 5), r.shape(0, 2, empty=0)
    batch = r.int(1, 4)
    x, t, w = r.data((batch, classes, *rest)), r.data((batch, *rest), "int64", 0, classes - 1), r.data((classes,), low=0.2, high=2)
    ignore = r.pick(-100, 0)
    weight = np.where(t == ignore, 0, w[t])
    return x, t, w, ignore, weight


def nll_loss(r):
    x, t, w, ignore, weight = nll_parts(r)
    how = r.pick("mean", "sum", "none")
    losses = -np.take_along_axis(x, t[:, None], 1)[:, 0] * weight
    if how == "mean" and weight.sum() == 0:
        how = "sum"
    expect = {"none": losses, "sum": losses.sum(), "mean": losses.sum() / max(weight.sum(), 1e-9)}[how]
    return Case(f'R.nn.nll_loss({{0}}, {{1}}, {{2}}, reduction="{how}", ignore_index={ignore})', [x, t, w], np.asarray(expect, "float32"), 1e-4)


def nll_backward(r):
    x, t, w, ignore, weight = nll_parts(r)
    how = r.pick("mean", "sum") if weight.sum() else "sum"
    g = r.data(())
    share = weight * g / (weight.sum() if how == "mean" else 1)
    expect = np.zeros_like(x)
    np.put_along_axis(expect, t[:, None], -share[:, None].astype("float32"), 1)
    return Case(f'R.grad.nll_loss_backward({{0}}, {{1}}, {{2}}, {{3}}, reduction="{how}", ignore_index={ignore})', [g, x, t, w], expect, 1e-4)


def take_backward(r):
    x, t = r.data(r.shape(1, 3, empty=0)), None
    axis = r.int(0, x.ndim - 1)
    t = r.data((r.int(1, 5),), "int64", 0, x.shape[axis] - 1)
    g = r.data(tuple(t.size if i == axis else d for i, d in enumerate(x.shape)))
    expect = np.zeros_like(x)
    np.add.at(np.moveaxis(expect, axis, 0), t, np.moveaxis(g, axis, 0))
    return Case(f"R.grad.take_backward({{0}}, {{1}}, {{2}}, axis={axis})", [g, x, t], expect, 1e-4)


def attention(name):
    def case(r):
        b, q, k, h, d, v = r.int(1, 2), r.int(1, 5), r.int(1, 5), r.pick(1, 2), r.int(1, 4), r.int(1, 4)
        mask = r.pick(None, "TopLeft", "BottomRight") if k >= q else r.pick(None, "TopLeft")
        if name == "attention_var_len":
            b = 1
        query, key, value = r.data((b, q, h, d)), r.data((b, k, h, d)), r.data((b, k, h, v))
        hidden = np.zeros((q, k), "bool")
        inputs = [query, key, value]
        scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(d)
        row, column = np.arange(q)[:, None], np.arange(k)[None]
        if name == "attention_bias":
            bias = r.data((r.pick(b, 1), r.pick(h, 1), q, k))
            inputs.append(bias)
            scores = scores + bias
        if name == "attention_var_len":
            q = k = 5
            query, key, value = r.data((1, 5, h, d)), r.data((1, 5, h, d)), r.data((1, 5, h, v))
            starts = np.array([0, 2, 3, 5], "int32")
            inputs = [query, key, value, starts, np.array(2, "int32"), starts, np.array(2, "int32")]
            scores = np.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(d)
            of = np.searchsorted(starts, np.arange(5), side="right")
            hidden = of[:, None] != of[None]
            row, column = np.arange(5)[:, None], np.arange(5)[None]
            mask = r.pick(None, "TopLeft")
        if mask:
            hidden = hidden | (column > row + (k - q if mask == "BottomRight" else 0))
        scores = np.where(hidden, -np.inf, scores)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        expect = np.einsum("bhqk,bkhv->bqhv", e / e.sum(-1, keepdims=True), value)
        names = ", ".join(f"{{{i}}}" for i in range(len(inputs)))
        text = f'"{mask}"' if mask else None
        return Case(f"R.nn.{name}({names}, scale=None, causal_mask={text}, window_size=None)", inputs, expect.astype("float32"), 1e-4, fixed=(h, d, 4))

    return case


def quantize(r):
    x = r.data(r.shape(1, 3), "float32", -20, 20)
    axis = r.int(0, x.ndim - 1)
    scale, zero = r.data((x.shape[axis],), "float32", 0.3, 2), r.data((x.shape[axis],), "int8", -5, 5)
    spread = [-1 if i == axis else 1 for i in range(x.ndim)]
    expect = np.clip(np.round(x / scale.reshape(spread)) + zero.reshape(spread), -128, 127).astype("int8")
    return Case(f'R.quantize({{0}}, {{1}}, {{2}}, axis={axis}, out_dtype="int8")', [x, scale, zero], expect)


def dequantize(r):
    x = r.data(r.shape(1, 3), "int8", -100, 100)
    axis = r.int(0, x.ndim - 1)
    scale, zero = r.data((x.shape[axis],), "float32", 0.3, 2), r.data((x.shape[axis],), "int8", -5, 5)
    spread = [-1 if i == axis else 1 for i in range(x.ndim)]
    expect = (x.astype("int32") - zero.astype("int32").reshape(spread)) * scale.reshape(spread)
    return Case(f'R.dequantize({{0}}, {{1}}, {{2}}, axis={axis}, out_dtype="float32")', [x, scale, zero], expect.astype("float32"))


CASES = {
    "nn.softmax": softmax("softmax"), "nn.log_softmax": softmax("log_softmax"), "nn.batch_norm": batch_norm, "nn.layer_norm": layer_norm,
    "nn.rms_norm": rms_norm, "nn.group_norm": group_norm, "nn.instance_norm": instance_norm, "nn.pad": pad,
    "nn.pixel_shuffle": pixel_shuffle, "nn.cross_entropy_with_logits": cross_entropy, "nn.nll_loss": nll_loss,
    "grad.nll_loss_backward": nll_backward, "grad.take_backward": take_backward,
    **{f"nn.{name}": attention(name) for name in ("attention", "attention_bias", "attention_var_len")}, "quantize": quantize,
    "dequantize": dequantize,
}
