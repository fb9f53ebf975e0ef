"""Calls of layers of networks: normalization, losses, attention, quantization."""


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
            args += [g.tensor([5], "int32", 1), g.tensor([], "int32", 1), g.tensor([5], "int32", 1), g.tensor([], "int32", 1)]
        return f'R.nn.{name}({", ".join(args)}, scale=None, causal_mask={g.pick("None", repr("TopLeft"))}, window_size=None)'

    return call


def take_backward(g):
    return f"R.grad.take_backward({g.tensor([3, 4])}, {g.tensor([3, 'n'])}, {g.tensor([4], 'int64')}, axis=1)"


def nll_backward(g):
    weights = f", {g.tensor([5])}" if g.chance(0.5) else ""
    return f'R.grad.nll_loss_backward({g.tensor([])}, {g.tensor([2, 5, "n"])}, {g.tensor([2, "n"], "int64")}{weights}, reduction="mean", ignore_index=-100)'


CALLS = {
    "quantize": quantized("quantize", "int8"), "dequantize": quantized("dequantize", "float32"), "nn.softmax": softmax("softmax"),
    "nn.log_softmax": softmax("log_softmax"), "nn.batch_norm": batch_norm, "nn.layer_norm": normalized("layer_norm"),
    "nn.rms_norm": normalized("rms_norm"), "nn.group_norm": channel_norm("group_norm"), "nn.instance_norm": channel_norm("instance_norm"),
    "nn.prelu": prelu, "nn.dropout": dropout, "nn.pad": pad, "nn.pixel_shuffle": pixel_shuffle,
    "nn.cross_entropy_with_logits": cross_entropy, "nn.nll_loss": nll_loss, "nn.attention": attention("attention"),
    "nn.attention_bias": attention("attention_bias"), "nn.attention_var_len": attention("attention_var_len"),
    "grad.take_backward": take_backward, "grad.nll_loss_backward": nll_backward,
}
