"""Computes that tuning is tried on: products, convolutions and norms of the sizes that networks have.

``create_te_workload("C2D", 0)`` is the first configuration of a convolution of images as a kernel. The functions give the tensors
of a compute, arguments first. Convolutions after Winograd are not among them.
"""

from .... import te, tirx, topi


def _out(length, kernel, stride, padding, dilation=1):
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _padded(data, axes, padding, name="PadInput"):
    """A tensor with zeros around it along some axes."""
    lengths = [int(length) for length in data.shape]
    before = [padding if axis in axes else 0 for axis in range(len(lengths))]

    def element(*at):
        inside = [bound for i, n, by in zip(at, lengths, before) if by for bound in (by <= i, i < n + by)]
        read = data[tuple(i - by if by else i for i, by in zip(at, before))]
        return te.if_then_else(tirx.all(*inside), read, tirx.const(0.0, data.dtype)) if inside else read

    shape = [n + 2 * by for n, by in zip(lengths, before)]
    return te.compute(shape, _named(element, [f"i{axis}" for axis in range(len(shape))]), name=name)


def _relu(data):
    """A tensor without what is below zero."""
    return te.compute([int(length) for length in data.shape], lambda *at: tirx.max(data[at], tirx.const(0.0, data.dtype)), name="compute")


def _conv_channels_last(name, lengths, sizes, axes, kernel_size, stride, padding, dilation, groups, dtypes):
    """A convolution whose channels are last, of as many dimensions as there are lengths."""
    (batch, channels, outputs), (in_dtype, out_dtype) = sizes, dtypes
    inputs = te.placeholder((batch, *lengths, channels), name="inputs", dtype=in_dtype)
    weight = te.placeholder((*(kernel_size for _ in lengths), channels // groups, outputs), name="weight", dtype=in_dtype)
    padded = _padded(inputs, range(1, len(lengths) + 1), padding)
    steps = [te.reduce_axis((0, kernel_size), name=f"r{axis}") for axis in axes]
    rc = te.reduce_axis((0, channels // groups), name="rc")

    def element(n, *rest):
        *at, co = rest
        read = [a * stride + r * dilation for a, r in zip(at, steps)]
        group = co // (outputs // groups) * (channels // groups)
        a, b = padded[(n, *read, group + rc)], weight[(*steps, rc, co)]
        return te.sum(a.astype(out_dtype) * b.astype(out_dtype), axis=[*steps, rc])

    shape = (batch, *(_out(length, kernel_size, stride, padding, dilation) for length in lengths), outputs)
    return inputs, weight, te.compute(shape, _named(element, ["n", *axes, "co"]), name=name)


def _named(element, names):
    """The function with parameters of these names, which axes are called after."""
    return eval(f"lambda {', '.join(names)}: element({', '.join(names)})", {"element": element})  # noqa: S307


def conv1d_nlc(N, L, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype="float32", out_dtype="float32"):
    """A convolution of sequences: ``(N, L, CI)`` by ``(kernel, CI / groups, CO)``."""
    dtypes = in_dtype, out_dtype
    return _conv_channels_last("conv1d_nlc", [L], (N, CI, CO), ["l"], kernel_size, stride, padding, dilation, groups, dtypes)


def conv2d_nhwc(N, H, W, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype="float32", out_dtype="float32"):
    """A convolution of images: ``(N, H, W, CI)`` by ``(kernel, kernel, CI / groups, CO)``."""
    dtypes = in_dtype, out_dtype
    return _conv_channels_last("conv2d_nhwc", [H, W], (N, CI, CO), ["h", "w"], kernel_size, stride, padding, dilation, groups, dtypes)


def conv3d_ndhwc(N, D, H, W, CI, CO, kernel_size, stride=1, padding=0, dilation=1, groups=1, in_dtype="float32", out_dtype="float32"):
    """A convolution of volumes: ``(N, D, H, W, CI)`` by ``(kernel, kernel, kernel, CI / groups, CO)``."""
    lengths, axes, dtypes = [D, H, W], ["d", "h", "w"], (in_dtype, out_dtype)
    return _conv_channels_last("conv3d_ndhwc", lengths, (N, CI, CO), axes, kernel_size, stride, padding, dilation, groups, dtypes)


def depthwise_conv2d_nhwc(N, H, W, C, kernel_size, stride=1, padding=0, dilation=1, factor=1, in_dtype="float32", out_dtype="float32"):
    """A convolution of each channel by itself: ``(N, H, W, C)`` by ``(factor, kernel, kernel, C)``."""
    inputs = te.placeholder((N, H, W, C), name="placeholder", dtype=in_dtype)
    weight = te.placeholder((factor, kernel_size, kernel_size, C), name="placeholder", dtype=in_dtype)
    padded = _padded(inputs, (1, 2), padding)
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))

    def element(n, h, w, c):
        a = padded[n, h * stride + rh * dilation, w * stride + rw * dilation, c // factor]
        b = weight[c % factor, rh, rw, c // factor]
        return te.sum(a.astype(out_dtype) * b.astype(out_dtype), axis=[rh, rw])

    height, width = (_out(length, kernel_size, stride, padding, dilation) for length in (H, W))
    return inputs, weight, te.compute((N, height, width, C * factor), element, name="depth_conv2d_nhwc")


def conv2d_transpose_nhwc(N, H, W, CI, CO, kernel_size, stride=1, padding=0, in_dtype="float32", out_dtype="float32"):
    """A transposed convolution of images: ``(N, H, W, CI)`` by ``(kernel, kernel, CI, CO)``."""
    inputs = te.placeholder((N, H, W, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, CI, CO), name="weight", dtype=in_dtype)
    # What is put between the elements of the input is not stored: only every `stride`-th place holds one.
    around = kernel_size - 1 - padding
    before = (around + stride - 1) // stride
    offset = (stride - around % stride) % stride
    padded = _padded(inputs, (1, 2), before)
    rh, rw = (te.reduce_axis((0, kernel_size), name=name) for name in ("rh", "rw"))
    rc = te.reduce_axis((0, CI), name="rc")

    def element(n, h, w, co):
        y, x = h + rh + offset, w + rw + offset
        holds = tirx.all(y % stride == 0, x % stride == 0)
        a = te.if_then_else(holds, padded[n, y // stride, x // stride, rc], tirx.const(0.0, in_dtype))
        b = weight[kernel_size - 1 - rh, kernel_size - 1 - rw, rc, co]
        return te.sum(a.astype(out_dtype) * b.astype(out_dtype), axis=[rh, rw, rc])

    height, width = ((length - 1) * stride - 2 * padding + kernel_size for length in (H, W))
    return inputs, weight, te.compute((N, height, width, CO), element, name="conv2d_transpose_nhwc")


def conv2d_capsule_nhwijc(N, H, W, CI, CO, kernel_size, stride=1, padding=0, capsule_size=4, in_dtype="float32", out_dtype="float32"):
    """A convolution whose elements are square matrices: ``(N, H, W, size, size, CI)`` by ``(kernel, kernel, size, size, CI, CO)``."""
    inputs = te.placeholder((N, H, W, capsule_size, capsule_size, CI), name="inputs", dtype=in_dtype)
    weight = te.placeholder((kernel_size, kernel_size, capsule_size, capsule_size, CI, CO), name="weight", dtype=in_dtype)
    padded = _padded(inputs, (1, 2), padding)
    extents = (("rh", kernel_size), ("rw", kernel_size), ("cap_k", capsule_size), ("rc", CI))
    rh, rw, cap_k, rc = (te.reduce_axis((0, extent), name=name) for name, extent in extents)

    def element(n, h, w, cap_i, cap_j, co):
        a = padded[n, h * stride + rh, w * stride + rw, cap_i, cap_k, rc]
        return te.sum(a.astype(out_dtype) * weight[rh, rw, cap_k, cap_j, rc, co].astype(out_dtype), axis=[rh, rw, cap_k, rc])

    height, width = (_out(length, kernel_size, stride, padding) for length in (H, W))
    shape = (N, height, width, capsule_size, capsule_size, CO)
    return inputs, weight, te.compute(shape, element, name="conv2d_capsule_nhwijc")


def batch_matmul_nkkm(B, N, M, K, in_dtype="float32", out_dtype="float32"):
    """Products of ``B`` pairs of matrices: ``(B, N, K)`` by ``(B, K, M)``."""
    x = te.placeholder((B, N, K), name="X", dtype=in_dtype)
    y = te.placeholder((B, K, M), name="Y", dtype=in_dtype)
    k = te.reduce_axis((0, K), name="k")

    def element(b, i, j):
        return te.sum(x[b, i, k].astype(out_dtype) * y[b, k, j].astype(out_dtype), axis=[k])

    return x, y, te.compute((B, N, M), element, name="Z")


def matmul(n, m, k, in_dtype="float32", out_dtype="float32"):
    """A product of matrices: ``(n, k)`` by ``(k, m)``."""
    a = te.placeholder((n, k), name="A", dtype=in_dtype)
    b = te.placeholder((k, m), name="B", dtype=in_dtype)
    along = te.reduce_axis((0, k), name="k")

    def element(i, j):
        return te.sum(a[i, along].astype(out_dtype) * b[along, j].astype(out_dtype), axis=[along])

    return a, b, te.compute((n, m), element, name="C")


def matmul_relu(n, m, k, in_dtype="float32", out_dtype="float32"):
    """A product of matrices without what is below zero."""
    a, b, c = matmul(n, m, k, in_dtype, out_dtype)
    return a, b, _relu(c)


def transpose_batch_matmul(batch, seq_len, n_head, n_dim, in_dtype="float32", out_dtype="float32"):
    """The scores of attention: queries by keys, both ``(batch, seq_len, n_head, n_dim)``, for each head."""
    shape = batch, seq_len, n_head, n_dim
    query = te.placeholder(shape, name="query", dtype=in_dtype)
    value = te.placeholder(shape, name="value", dtype=in_dtype)
    query_t = te.compute((batch, n_head, seq_len, n_dim), lambda b, h, l, d: query[b, l, h, d], name="query_T")  # noqa: E741
    value_t = te.compute((batch, n_head, n_dim, seq_len), lambda b, h, d, l: value[b, l, h, d], name="value_T")  # noqa: E741
    k = te.reduce_axis((0, n_dim), name="k")

    def element(b, h, i, j):
        return te.sum(query_t[b, h, i, k].astype(out_dtype) * value_t[b, h, k, j].astype(out_dtype), axis=[k])

    return query, value, te.compute((batch, n_head, seq_len, seq_len), element, name="C")


def norm_bmn(B, M, N):
    """The root of the sum of the squares of each of ``B`` matrices."""
    a = te.placeholder((B, M, N), name="A")
    i, j = te.reduce_axis((0, M), name="i"), te.reduce_axis((0, N), name="j")
    c = te.compute((B,), lambda b: te.sum(a[b, i, j] * a[b, i, j], axis=[i, j]), name="C")
    return a, te.compute((B,), lambda b: te.sqrt(c[b]), name="D")


def softmax_mn(m, n):
    """The softmax of each row."""
    a = te.placeholder((m, n), name="A")
    k, along = te.reduce_axis((0, n), name="k"), te.reduce_axis((0, n), name="k")
    largest = te.compute((m,), lambda i0: te.max(a[i0, k], axis=k), name="T_softmax_maxelem")
    powers = te.compute((m, n), lambda i0, i1: te.exp(a[i0, i1] - largest[i0]), name="T_softmax_exp")
    total = te.compute((m,), lambda i0: te.sum(powers[i0, along], axis=along), name="T_softmax_expsum")
    return a, te.compute((m, n), lambda i0, i1: powers[i0, i1] / total[i0], name="T_softmax_norm")


def max_pool2d_nchw(n, h, w, ci, padding):
    """The largest of each window of two by two, which move by one."""
    x = te.placeholder((n, ci, h, w), name="X")
    return x, topi.nn.pool2d(x, [2, 2], [1, 1], [1, 1], [padding] * 4, "max")


def conv2d_nchw(n, h, w, ci, co, kh, kw, stride, padding, dilation=1, in_dtype="float32", out_dtype="float32"):
    """A convolution of images whose channels are first: ``(n, ci, h, w)`` by ``(co, ci, kh, kw)``."""
    x = te.placeholder((n, ci, h, w), name="X", dtype=in_dtype)
    weight = te.placeholder((co, ci, kh, kw), name="W", dtype=in_dtype)
    return x, weight, topi.nn.conv2d_nchw(x, weight, stride, padding, dilation, out_dtype=out_dtype)


def _with_norm(out, shape, bias, scale, offset, at):
    """A convolution's result with a bias, scaled and moved for each channel, without what is below zero."""
    biased = te.compute(shape, lambda i, j, k, l: out[i, j, k, l] + bias[at(i, j, k, l)], name="bias_add")  # noqa: E741
    scaled = te.compute(shape, lambda i, j, k, l: biased[i, j, k, l] * scale[at(i, j, k, l)], name="bn_mul")  # noqa: E741
    moved = te.compute(shape, lambda i, j, k, l: scaled[i, j, k, l] + offset[at(i, j, k, l)], name="bn_add")  # noqa: E741
    return _relu(moved)


def conv2d_nchw_bias_bn_relu(n, h, w, ci, co, kh, kw, stride, padding, dilation=1, in_dtype="float32", out_dtype="float32"):
    """:func:`conv2d_nchw` with a bias, normalized, without what is below zero."""
    height, width = _out(h, kh, stride, padding, dilation), _out(w, kw, stride, padding, dilation)
    x, weight, out = conv2d_nchw(n, h, w, ci, co, kh, kw, stride, padding, dilation, in_dtype, out_dtype)
    bias, scale, offset = (te.placeholder((co, 1, 1), name=name) for name in ("B", "bn_scale", "bn_offset"))
    result = _with_norm(out, (n, co, height, width), bias, scale, offset, lambda _i, j, _k, _l: (j, 0, 0))
    return x, weight, bias, scale, offset, result


def conv2d_nhwc_bn_relu(N, H, W, CI, CO, kernel_size, strides, padding, dilation=1, in_dtype="float32", out_dtype="float32"):
    """:func:`conv2d_nhwc` with a bias, normalized, without what is below zero."""
    data = te.placeholder((N, H, W, CI), name="data", dtype=in_dtype)
    kernel = te.placeholder((kernel_size, kernel_size, CI, CO), name="kernel", dtype=in_dtype)
    bias, scale, offset = (te.placeholder((CO,), name=name) for name in ("bias", "bn_scale", "bn_offset"))
    padded = _padded(data, (1, 2), padding, "PaddedInput")
    ry, rx = (te.reduce_axis((0, kernel_size), name=name) for name in ("ry", "rx"))
    rc = te.reduce_axis((0, CI), name="rc")

    def element(nn, yy, xx, ff):
        a = padded[nn, yy * strides + ry * dilation, xx * strides + rx * dilation, rc]
        return te.sum(a.astype(out_dtype) * kernel[ry, rx, rc, ff].astype(out_dtype), axis=[ry, rx, rc])

    shape = (N, _out(H, kernel_size, strides, padding, dilation), _out(W, kernel_size, strides, padding, dilation), CO)
    out = te.compute(shape, element, name="Conv2dOutput")
    return data, kernel, bias, offset, scale, _with_norm(out, shape, bias, scale, offset, lambda _i, _j, _k, c: (c,))


#: The computes by their short names, each with the sizes that it is tried with.
CONFIGS = {
    "C1D": (conv1d_nlc, [(1, 256, 64, 128, 3, 2, 1), (1, 128, 128, 256, 1, 2, 0), (1, 64, 256, 256, 5, 1, 2), (1, 32, 512, 512, 3, 1, 1)]),
    "C2D": (
        conv2d_nhwc,
        [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 64, 1, 1, 0), (1, 14, 14, 256, 256, 3, 1, 1), (1, 7, 7, 512, 512, 3, 1, 1)],
    ),
    "C3D": (
        conv3d_ndhwc,
        [
            (1, 16, 224, 224, 3, 64, 7, 2, 3),
            (1, 16, 56, 56, 64, 64, 1, 1, 0),
            (1, 16, 14, 14, 256, 256, 3, 1, 1),
            (1, 16, 7, 7, 512, 512, 3, 1, 1),
        ],
    ),
    "GMM": (batch_matmul_nkkm, [(1, 128, 128, 128), (1, 512, 32, 512), (1, 512, 512, 512), (1, 1024, 1024, 1024)]),
    "GRP": (
        conv2d_nhwc,
        [
            (1, 56, 56, 64, 128, 3, 2, 1, 1, 4),
            (1, 56, 56, 64, 64, 1, 1, 0, 1, 4),
            (1, 14, 14, 256, 256, 3, 1, 1, 1, 4),
            (1, 7, 7, 512, 512, 3, 1, 1, 1, 4),
        ],
    ),
    "DIL": (
        conv2d_nhwc,
        [
            (1, 224, 224, 3, 64, 7, 2, 3, 2),
            (1, 56, 56, 64, 64, 1, 1, 0, 2),
            (1, 14, 14, 256, 256, 3, 1, 1, 2),
            (1, 7, 7, 512, 512, 3, 1, 1, 2),
        ],
    ),
    "DEP": (
        depthwise_conv2d_nhwc,
        [(1, 112, 112, 32, 3, 1, 1), (1, 112, 112, 64, 3, 2, 1), (1, 14, 14, 512, 3, 2, 1), (1, 7, 7, 1024, 3, 1, 1)],
    ),
    "T2D": (
        conv2d_transpose_nhwc,
        [(1, 4, 4, 512, 256, 4, 2, 1), (1, 8, 8, 256, 128, 4, 2, 1), (1, 16, 16, 128, 64, 4, 2, 1), (1, 32, 32, 64, 3, 4, 2, 1)],
    ),
    "CAP": (
        conv2d_capsule_nhwijc,
        [(1, 16, 16, 32, 32, 3, 2, 1), (1, 8, 8, 32, 32, 3, 1, 1), (1, 16, 16, 8, 16, 3, 2, 1), (1, 8, 8, 16, 16, 3, 1, 1)],
    ),
    "NRM": (norm_bmn, [(1, 256, 256), (1, 512, 512), (1, 1024, 1024), (1, 4096, 1024)]),
    "SFM": (softmax_mn, [(256, 256), (512, 512), (1024, 1024), (2048, 2048)]),
    "CBR": (
        conv2d_nhwc_bn_relu,
        [(1, 224, 224, 3, 64, 7, 2, 3), (1, 56, 56, 64, 128, 3, 2, 1), (1, 28, 28, 128, 256, 1, 2, 0), (1, 7, 7, 512, 512, 3, 1, 1)],
    ),
    "TBG": (transpose_batch_matmul, [(1, 128, 12, 64), (1, 128, 16, 64), (1, 64, 12, 128), (1, 128, 12, 128)]),
}


def create_te_workload(name, idx):
    """A compute of :data:`CONFIGS` as a kernel.

    Parameters
    ----------
    name : str
        Its short name, such as ``"C2D"``.
    idx : int
        Which of its sizes.

    Raises
    ------
    ValueError
        There is no such compute, or it has no such sizes.
    """
    if name not in CONFIGS:
        raise ValueError(f"no compute is called {name!r} (known: {', '.join(CONFIGS)})")
    build, sizes = CONFIGS[name]
    if not 0 <= idx < len(sizes):
        raise ValueError(f"{name} has sizes 0 to {len(sizes) - 1}, got {idx}")
    return te.create_prim_func(build(*sizes[idx]))
