"""Operators of neural networks in other layouts, packed, or by other ways, as computes."""

from collections import namedtuple

from .. import te
from ._more_shapes import _as, _const
from ._operator import one
from ._shapes import reshape, transpose
from ._winograd import _pair

SQNN_DISABLE, SQNN_INT8, SQNN_UINT8, SQNN_INT32 = 0, 1, 2, 3
#: What quantized types are numbered by.
SQNN_DTYPE_TO_CODE = {"disable": SQNN_DISABLE, "int8": SQNN_INT8, "uint8": SQNN_UINT8, "int32": SQNN_INT32}

#: The numbers that a convolution is described by.
Workload = namedtuple(
    "Workload",
    "in_dtype out_dtype height width in_filter groups out_filter kernel_h kernel_w padt padl padb padr dilation_h dilation_w stride_h stride_w",
)


def _conv(inp, filt, stride, padding, dilation, layout, kernel_layout, out_dtype, groups=1):
    from .nn import conv

    return conv(inp, filt, stride, padding, dilation, groups, layout, kernel_layout, out_dtype)


def conv2d_hwcn(Input, Filter, stride, padding, dilation, out_dtype=None):
    """A convolution of ``[height, width, in, batch]`` by ``[height, width, in, out]``."""
    made = _conv(transpose(Input, [3, 0, 1, 2]), Filter, stride, padding, dilation, "NHWC", "HWIO", out_dtype)
    return transpose(made, [1, 2, 3, 0])


def _unpacked(data):
    n, outer, h, w, inner = data.shape
    return reshape(transpose(data, [0, 1, 4, 2, 3]), [n, outer * inner, h, w])


def _unpacked_kernel(kernel):
    if len(kernel.shape) == 6:
        o, i, h, w, inner, outer = kernel.shape
        return reshape(transpose(kernel, [0, 5, 1, 4, 2, 3]), [o * outer, i * inner, h, w])
    # Weights of products of several bytes at once: the inner channels in groups.
    o, i, h, w, groups, outer, inner = kernel.shape
    return reshape(transpose(kernel, [0, 5, 1, 4, 6, 2, 3]), [o * outer, i * groups * inner, h, w])


def _packed(made, size):
    n, c, h, w = made.shape
    return transpose(reshape(made, [n, te.indexdiv(c, size), size, h, w]), [0, 1, 3, 4, 2])


def conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype="float32"):
    """A convolution whose channels are in blocks: ``NCHW16c`` by ``OIHW16i16o``."""
    made = _conv(_unpacked(data), _unpacked_kernel(kernel), stride, padding, dilation, "NCHW", "OIHW", out_dtype)
    return _packed(made, int(kernel.shape[-1]) if len(kernel.shape) == 6 else int(kernel.shape[5]))


def conv2d_NCHWc_int8(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype="int32", n_elems=4):
    """The same of bytes, by weights ``OIHW4i16o4i``."""
    return conv2d_NCHWc(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype)


def conv2d_NCHWc_OIHWo(data, kernel, stride, padding, dilation, layout, out_layout, out_dtype="float32"):
    """The same by weights ``OIHW16o``, whose input channels are in no blocks."""
    o, i, h, w, inner = kernel.shape
    weights = reshape(transpose(kernel, [0, 4, 1, 2, 3]), [o * inner, i, h, w])
    made = _conv(_unpacked(data), weights, stride, padding, dilation, "NCHW", "OIHW", out_dtype)
    return _packed(made, int(inner))


def unpack_NCHWc_to_nchw(packed_out, out_dtype):
    """``NCHW16c`` as ``NCHW``, of another type."""
    made = _unpacked(packed_out)
    return made if str(made.dtype) == str(out_dtype) else made.astype(out_dtype)


def conv2d_transpose_nchw_preprocess(data, kernel, strides, padding, out_dtype, output_padding):
    """The images with zeros between and around their elements, and the weights turned over, so that a convolution of them is the transpose."""
    return _transposed_parts(data, kernel, strides, padding, out_dtype, output_padding, 2)


def _transposed_parts(data, kernel, strides, padding, out_dtype, output_padding, rank):
    from .nn import dilate, get_pad_tuple, get_pad_tuple3d, pad

    strides = [strides] * rank if isinstance(strides, int) else list(strides)
    extra = [output_padding] * rank if isinstance(output_padding, int) else list(output_padding)
    lengths = [int(dim) for dim in kernel.shape[2:]]
    around = get_pad_tuple(padding, lengths) if rank == 2 else get_pad_tuple3d(padding, lengths)
    first, last = around[:rank], around[rank:]
    wide = dilate(data, [1, 1, *strides], name="data_dilate")
    before = [0, 0, *(length - 1 - width for length, width in zip(lengths, first))]
    after = [0, 0, *(length - 1 - width + more for length, width, more in zip(lengths, last, extra))]
    ready = pad(wide, before, after, name="data_pad")
    if out_dtype and str(ready.dtype) != str(out_dtype):
        ready = ready.astype(out_dtype)
    shape = [kernel.shape[1], kernel.shape[0], *kernel.shape[2:]]

    def turned(o, i, *places):
        return kernel(i, o, *(length - 1 - place for length, place in zip(lengths, places)))

    return ready, te.compute(shape, turned, name="kernel_transform")


def declaration_conv2d_transpose_impl(data, kernel, strides, padding, out_dtype, output_padding):
    """The transpose of a convolution."""
    from .nn import conv2d_transpose_nchw

    return conv2d_transpose_nchw(data, kernel, strides, padding, out_dtype, output_padding)


def conv3d_transpose_ncdhw(Input, Filter, strides, padding, out_dtype, output_padding):
    """The transpose of a convolution over three dimensions, by weights ``[in, out, depth, height, width]``."""
    return group_conv3d_transpose_ncdhw(Input, Filter, strides, padding, out_dtype, output_padding, 1)


declaration_conv3d_transpose_impl = conv3d_transpose_ncdhw


def group_conv3d_transpose_ncdhw(data, kernel, strides, padding, out_dtype, output_padding, groups):
    """The same in groups of channels."""
    from .nn import _transposed

    return _transposed("nn.conv3d_transpose", data, kernel, strides, padding, out_dtype, output_padding, groups)


def conv3d_transpose_ncdhw_preprocess(data, kernel, strides, padding, out_dtype, output_padding):
    """As :func:`conv2d_transpose_nchw_preprocess`, over three dimensions."""
    return _transposed_parts(data, kernel, strides, padding, out_dtype, output_padding, 3)


def group_conv1d_ncw(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, out_dtype=None):
    """A convolution over one dimension in groups of channels, ``NCW`` by ``OIW``."""
    return _conv(data, kernel, strides, padding, dilation, "NCW", "OIW", out_dtype, groups)


def group_conv1d_nwc(data, kernel, strides=1, padding="VALID", dilation=1, groups=1, out_dtype=None):
    """The same, ``NWC`` by ``WIO``."""
    return _conv(data, kernel, strides, padding, dilation, "NWC", "WIO", out_dtype, groups)


def depthwise_conv2d_nhwc(Input, Filter, stride, padding, dilation, kernel_layout="HWOI", out_dtype=None):
    """A convolution of each channel by itself, ``NHWC`` by ``[height, width, channel, multiplier]``."""
    if kernel_layout == "HWOI":
        h, w, channels, times = Filter.shape
    else:
        h, w, times, channels = Filter.shape
        Filter = transpose(Filter, [0, 1, 3, 2])
    weights = reshape(Filter, [h, w, 1, channels * times])
    return _conv(Input, weights, stride, padding, dilation, "NHWC", "HWIO", out_dtype, int(channels))


def depthwise_conv2d_NCHWc(Input, Filter, stride, padding, dilation, layout, out_layout, out_dtype=None):
    """The same with channels in blocks: ``NCHW16c`` by ``[channel, 1, height, width, 1, 16]``."""
    data = _unpacked(Input)
    outer, times, h, w, _, inner = Filter.shape
    weights = reshape(transpose(Filter, [0, 5, 1, 4, 2, 3]), [outer * inner, times, h, w])
    made = _conv(data, weights, stride, padding, dilation, "NCHW", "OIHW", out_dtype, int(data.shape[1]))
    return _packed(made, int(inner))


def depthwise_conv2d_backward_input_nhwc(Filter, Out_grad, oshape, ishape, stride, padding):
    """The gradient of a convolution of each channel with respect to its images ``ishape``, of weights ``[h, w, channel, multiplier]``."""
    from .nn import get_pad_tuple

    (sh, sw), (h, w, _, times) = _pair(stride), (int(dim) for dim in Filter.shape)
    top, left, _, _ = get_pad_tuple(padding, (h, w))
    batch, height, width, channels = (int(dim) for dim in ishape)
    out_h, out_w = int(oshape[1]), int(oshape[2])
    r, s, m = (te.reduce_axis((0, size), name=name) for size, name in ((h, "dh"), (w, "dw"), (times, "m")))

    def element(n, i, j, c):
        y, x = i + top - r, j + left - s
        row, column = te.indexdiv(y, sh), te.indexdiv(x, sw)
        inside = te.all(y >= 0, x >= 0, te.indexmod(y, sh) == 0, te.indexmod(x, sw) == 0, row < out_h, column < out_w)
        return te.sum(te.if_then_else(inside, Out_grad(n, row, column, c * times + m) * Filter(r, s, c, m), _const(0.0, str(Filter.dtype))), axis=[r, s, m])

    return te.compute([batch, height, width, channels], element, name="depthwise_backward_input")


def depthwise_conv2d_backward_weight_nhwc(Input, Out_grad, oshape, fshape, stride, padding):
    """The gradient of a convolution of each channel with respect to its weights ``fshape``."""
    from .nn import get_pad_tuple

    (sh, sw), (h, w, channels, times) = _pair(stride), (int(dim) for dim in fshape)
    top, left, _, _ = get_pad_tuple(padding, (h, w))
    batch, height, width, _ = (int(dim) for dim in Input.shape)
    n, y, x = (te.reduce_axis((0, int(size)), name=name) for size, name in ((batch, "n"), (oshape[1], "y"), (oshape[2], "x")))

    def element(r, s, c, m):
        row, column = y * sh + r - top, x * sw + s - left
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        return te.sum(te.if_then_else(inside, Input(n, row, column, c) * Out_grad(n, y, x, c * times + m), _const(0.0, str(Input.dtype))), axis=[n, y, x])

    return te.compute([h, w, channels, times], element, name="depthwise_backward_weight")


def dense_pack(data, weight, bias=None, out_dtype=None):
    """A product by weights in blocks: ``[out / b, in, b]``."""
    outer, k, inner = weight.shape
    axis = te.reduce_axis((0, k), name="k")
    dtype = out_dtype or str(data.dtype)
    made = te.compute(
        [data.shape[0], outer * inner],
        lambda i, j: te.sum(data(i, axis).astype(dtype) * weight(te.indexdiv(j, inner), axis, te.indexmod(j, inner)).astype(dtype), axis=axis),
        name="T_dense_pack",
    )
    return made if bias is None else te.compute(made.shape, lambda i, j: made(i, j) + bias(j).astype(dtype), name="T_add")


def batch_to_space_nd(data, block_shape, crop_begin_list, crop_end_list):
    """Batches of blocks put together to images, which are cropped: ``data`` is ``[batch, *space, *rest]``."""
    rank, block = len(block_shape), [int(size) for size in block_shape]
    shape, times = [int(dim) for dim in data.shape], 1
    for size in block:
        times *= size
    made = reshape(data, [*block, shape[0] // times, *shape[1:]])
    order = [rank]
    for axis in range(rank):
        order += [rank + 1 + axis, axis]
    order += range(2 * rank + 1, rank + len(shape))
    whole = [size * dim for size, dim in zip(block, shape[1:])]
    made = reshape(transpose(made, order), [shape[0] // times, *whole, *shape[1 + rank :]])
    first = [int(value) for value in crop_begin_list]
    last = [dim - int(value) for dim, value in zip(whole, crop_end_list)]
    from ._shapes import strided_slice

    return strided_slice(made, [0, *first, *([0] * (len(shape) - rank - 1))], [shape[0] // times, *last, *shape[1 + rank :]])


def space_to_batch_nd(data, block_shape, pad_before, pad_after, pad_value=0.0):
    """Images taken apart into batches of blocks, after they are padded."""
    from .nn import pad

    rank, block = len(block_shape), [int(size) for size in block_shape]
    rest = len(data.shape) - rank - 1
    made = pad(data, [0, *pad_before, *([0] * rest)], [0, *pad_after, *([0] * rest)], pad_value)
    shape = [int(dim) for dim in made.shape]
    split, times = [shape[0]], 1
    for size, dim in zip(block, shape[1:]):
        split += [dim // size, size]
        times *= size
    made = reshape(made, [*split, *shape[1 + rank :]])
    order = [2 + 2 * axis for axis in range(rank)] + [0] + [1 + 2 * axis for axis in range(rank)]
    order += range(2 * rank + 1, 2 * rank + 1 + rest)
    return reshape(transpose(made, order), [shape[0] * times, *(dim // size for size, dim in zip(block, shape[1:])), *shape[1 + rank :]])


def correlation_nchw(data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply):
    """How patches of one image fit those of another that are moved: a channel for each move. Products are summed, or differences."""
    from .nn import get_pad_tuple, pad

    top, left, bottom, right = get_pad_tuple(padding, (kernel_size, kernel_size))
    first, second = (pad(one_, [0, 0, top, left], [0, 0, bottom, right]) for one_ in (data1, data2))
    batch, channels, height, width = (int(dim) for dim in first.shape)
    radius, border = (kernel_size - 1) // 2, max_displacement + (kernel_size - 1) // 2
    moves = 2 * (max_displacement // stride2) + 1
    out_h, out_w = -(-(height - 2 * border) // stride1), -(-(width - 2 * border) // stride1)
    c, r, s = (te.reduce_axis((0, size), name=name) for size, name in ((channels, "rc"), (kernel_size, "ry"), (kernel_size, "rx")))

    def element(n, q, i, j):
        y, x = i * stride1 + max_displacement, j * stride1 + max_displacement
        dy = (te.indexdiv(q, moves) - moves // 2) * stride2
        dx = (te.indexmod(q, moves) - moves // 2) * stride2
        a, b = first(n, c, y + r, x + s), second(n, c, y + dy + r, x + dx + s)
        value = a * b if is_multiply else te.abs(a - b)
        return te.sum(value / _const(float(kernel_size * kernel_size * channels), str(data1.dtype)), axis=[c, r, s])

    if radius < 0:
        raise ValueError("kernel_size is one or more")
    return te.compute([batch, moves * moves, out_h, out_w], element, tag="correlation_nchw")


def _sampled(data, n, c, y, x, layout):
    """The value of an image between its elements; zero outside."""
    height, width = (data.shape[2], data.shape[3]) if layout == "NCHW" else (data.shape[1], data.shape[2])
    dtype = str(data.dtype)
    top, left = te.floor(y).astype("int32"), te.floor(x).astype("int32")
    total = _const(0.0, dtype)
    for dy in (0, 1):
        for dx in (0, 1):
            i, j = top + dy, left + dx
            weight_y = (y - top.astype(dtype)) if dy else (_const(1.0, dtype) - (y - top.astype(dtype)))
            weight_x = (x - left.astype(dtype)) if dx else (_const(1.0, dtype) - (x - left.astype(dtype)))
            inside = te.all(i >= 0, j >= 0, i < height, j < width)
            value = data(n, c, i, j) if layout == "NCHW" else data(n, i, j, c)
            total = total + te.if_then_else(inside, value * weight_y * weight_x, _const(0.0, dtype))
    return total


def deformable_conv2d_nchw(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype):
    """A convolution whose windows are moved, element by element, by ``offset``: ``[batch, 2 * groups * h * w, out height, out width]``."""
    return _deformable(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, "NCHW")


def deformable_conv2d_nhwc(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype):
    """The same, ``NHWC`` by ``HWIO``; the offsets are ``[batch, out height, out width, …]``."""
    return _deformable(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, "NHWC")


def _deformable(data, offset, kernel, strides, padding, dilation, deformable_groups, groups, out_dtype, layout):
    from .nn import get_pad_tuple

    is_first = layout == "NCHW"
    batch, channels, height, width = (int(d) for d in (data.shape if is_first else [data.shape[i] for i in (0, 3, 1, 2)]))
    out, per_group, h, w = (int(d) for d in (kernel.shape if is_first else [kernel.shape[i] for i in (3, 2, 0, 1)]))
    (sh, sw), (dh, dw) = _pair(strides), _pair(dilation)
    top, left, bottom, right = get_pad_tuple(padding, ((h - 1) * dh + 1, (w - 1) * dw + 1))
    out_h, out_w = ((size + both - (k - 1) * d - 1) // s + 1 for size, both, k, d, s in ((height, top + bottom, h, dh, sh), (width, left + right, w, dw, sw)))
    dtype, each = str(data.dtype), channels // deformable_groups
    c, r, s = (te.reduce_axis((0, size), name=name) for size, name in ((per_group, "rc"), (h, "ry"), (w, "rx")))

    def moved(n, channel, y, x, which):
        place = te.indexdiv(channel, each) * (2 * h * w) + (r * w + s) * 2 + which
        return offset(n, place, y, x) if is_first else offset(n, y, x, place)

    def value(n, o, y, x):
        channel = te.indexdiv(o, out // groups) * per_group + c
        row = _as(y * sh + r * dh - top, dtype) + moved(n, channel, y, x, 0)
        column = _as(x * sw + s * dw - left, dtype) + moved(n, channel, y, x, 1)
        weight = kernel(o, c, r, s) if is_first else kernel(r, s, c, o)
        product = _sampled(data, n, channel, row, column, layout).astype(out_dtype or dtype) * weight.astype(out_dtype or dtype)
        return te.sum(product, axis=[c, r, s])

    if is_first:
        return te.compute([batch, out, out_h, out_w], value, tag="deformable_conv2d_nchw")
    return te.compute([batch, out_h, out_w, out], lambda n, y, x, o: value(n, o, y, x), tag="deformable_conv2d_nhwc")


def bilinear_sample_nchw(data, indices, max_y, max_x):
    """The value of an image at ``(n, c, y, x)``, of which the last two may lie between its elements; beyond its edge it is the edge's."""
    n, c, y, x = indices
    return _clamped(lambda i, j: data(n, c, i, j), y, x, max_y, max_x)


def bilinear_sample_nhwc(data, indices, max_y, max_x):
    """The same at ``(n, y, x, c)``."""
    n, y, x, c = indices
    return _clamped(lambda i, j: data(n, i, j, c), y, x, max_y, max_x)


def _clamped(at, y, x, max_y, max_x):
    top, left = te.floor(y).astype("int32"), te.floor(x).astype("int32")

    def edge(value, most):
        return te.max(te.min(value, most), 0)

    fy, fx = y - top.astype(y.dtype), x - left.astype(x.dtype)
    corners = [[at(edge(top + i, max_y), edge(left + j, max_x)) for j in (0, 1)] for i in (0, 1)]
    above = corners[0][0] * (1.0 - fx) + corners[0][1] * fx
    below = corners[1][0] * (1.0 - fx) + corners[1][1] * fx
    return above * (1.0 - fy) + below * fy


def fifo_buffer(data, buffer, axis):
    """What a buffer holds once new data came in at its end along an axis and as much has gone at its beginning."""
    new, size = data.shape[axis], buffer.shape[axis]

    def element(*indices):
        i = indices[axis]
        old = [index if k != axis else index + new for k, index in enumerate(indices)]
        fresh = [index if k != axis else index - (size - new) for k, index in enumerate(indices)]
        return te.if_then_else(i < size - new, buffer(*old), data(*fresh))

    return te.compute(buffer.shape, element, name="new_buffer")


def get_padded_shape(data, pad_before, pad_after=None):
    """The shape of padded data."""
    after = pad_before if pad_after is None else pad_after
    if not len(pad_before) == len(after) == len(data.shape):
        raise ValueError(f"{len(data.shape)} dimensions, {len(pad_before)} and {len(after)} widths")
    return tuple(dim + first + last for dim, first, last in zip(data.shape, pad_before, after))


def lrn(data, size, axis=1, alpha=0.0001, beta=0.75, bias=2):
    """Each element over ``(bias + alpha / size * sum of squares of its neighbours along an axis) ** beta``."""
    if size % 2 == 0:
        raise ValueError(f"size is odd, got {size}")
    if axis not in (1, 3):
        raise ValueError(f"axis is 1 or 3, got {axis}")
    k = te.reduce_axis((0, size), name="k")
    length, dtype = data.shape[axis], str(data.dtype)

    def neighbours(*indices):
        place = indices[axis] + k - size // 2
        own = [index if i != axis else place for i, index in enumerate(indices)]
        value = data(*own)
        return te.sum(te.if_then_else(te.all(place >= 0, place < length), value * value, _const(0.0, dtype)), axis=k)

    squares = te.compute(data.shape, neighbours, name="sqr_sum")
    scale = _const(float(alpha) / size, dtype)
    return te.compute(data.shape, lambda *i: data(*i) / te.power(_const(float(bias), dtype) + scale * squares(*i), _const(float(beta), dtype)))


def scale_shift_nchw(Input, Scale, Shift):
    """Each channel of ``NCHW`` times a number and plus one."""
    return te.compute(Input.shape, lambda b, c, i, j: Input(b, c, i, j) * Scale(c) + Shift(c), name="ScaleShift")


def scale_shift_nhwc(Input, Scale, Shift):
    """The same of ``NHWC``."""
    return te.compute(Input.shape, lambda b, i, j, c: Input(b, i, j, c) * Scale(c) + Shift(c), name="ScaleShift")


def scale_shift_nchwc(Input, Scale, Shift):
    """The same of channels in blocks."""
    return te.compute(Input.shape, lambda b, o, i, j, c: Input(b, o, i, j, c) * Scale(o, c) + Shift(o, c), name="ScaleShift")


def nll_loss(predictions, targets, weights, reduction, ignore_index):
    """The negative log likelihood; see the operator ``relax.nn.nll_loss``."""
    return one("nn.nll_loss", predictions, targets, weights, reduction=reduction, ignore_index=ignore_index)


def pool_grad(grads, data, kernel, stride, padding, pool_type, ceil_mode=False, count_include_pad=True, layout="NCHW"):
    """The gradient of pooling over two dimensions with respect to its images."""
    how = {"pool_size": kernel, "strides": stride, "padding": padding, "ceil_mode": ceil_mode, "layout": layout}
    if pool_type not in ("max", "avg"):
        raise ValueError(f"pool_type is avg or max, got {pool_type}")
    return one(f"grad.{pool_type}_pool2d_backward", grads, data, **how, count_include_pad=count_include_pad)


def softmax_common(x, axis, use_fast_exp):
    """``exp(x)`` over its sum along an axis; the quick exponential is the exact one here."""
    return one("nn.softmax", x, axis=axis)


def upsampling3d(
    data, scale_d, scale_h, scale_w, layout="NCDHW", method="nearest_neighbor", coordinate_transformation_mode="half_pixel", output_shape=None
):
    """Volumes that are so many times as large."""
    from .image import resize3d

    axes = [layout.index(letter) for letter in "DHW"]
    size = output_shape or [int(round(int(data.shape[axis]) * scale)) for axis, scale in zip(axes, (scale_d, scale_h, scale_w))]
    method = {"trilinear": "linear"}.get(method, method)
    return resize3d(data, [0.0] * 6, size, layout, method, coordinate_transformation_mode, "floor" if "nearest" in method else "")


def _of_channel(tensor, indices, axis):
    return tensor(indices[axis]) if len(tensor.shape) else tensor()


def simulated_quantize(data, out_dtype, output_scale=None, output_zero_point=None, axis=-1):
    """Numbers as the integers of a quantized type that stand for them, still as numbers. ``out_dtype`` is a tensor with one of the codes
    ``SQNN_…``."""
    axis = axis + len(data.shape) if axis < 0 else axis
    dtype = str(data.dtype)

    def element(*indices):
        value = data(*indices)
        scaled = te.round(value / _of_channel(output_scale, indices, axis)) + _of_channel(output_zero_point, indices, axis).astype(dtype)
        result = value
        for code, low, high in ((SQNN_INT8, -128, 127), (SQNN_UINT8, 0, 255), (SQNN_INT32, -(2**31), 2**31 - 1)):
            cut = te.max(te.min(scaled, _const(float(high), dtype)), _const(float(low), dtype))
            result = te.Select(out_dtype() == code, cut, result)
        return result

    return te.compute(data.shape, element, name="simulated_quantize")


def simulated_dequantize(data, in_dtype, input_scale=None, input_zero_point=None, axis=-1):
    """The numbers that such integers stand for."""
    axis = axis + len(data.shape) if axis < 0 else axis
    dtype = str(data.dtype)

    def element(*indices):
        value = data(*indices)
        number = (value - _of_channel(input_zero_point, indices, axis).astype(dtype)) * _of_channel(input_scale, indices, axis)
        return te.Select(in_dtype() == SQNN_DISABLE, value, number)

    return te.compute(data.shape, element, name="simulated_dequantize")


def infer_pad(data, data_pad):
    """The padding that made one tensor of another, along height and width."""
    return (0, 0) if data_pad is None else tuple((int(after) - int(before)) // 2 for before, after in zip(data.shape[2:4], data_pad.shape[2:4]))


def infer_pad3d(data, data_pad, layout):
    """The same along depth, height and width."""
    if data_pad is None:
        return 0, 0, 0
    axes = [layout.index(letter) for letter in "DHW"]
    return tuple((int(data_pad.shape[axis]) - int(data.shape[axis])) // 2 for axis in axes)


def infer_stride(data, kernel, out):
    """The steps of a window that makes one tensor of another."""
    return tuple((int(data.shape[i]) - int(kernel.shape[i])) // max(int(out.shape[i]) - 1, 1) for i in (2, 3))


__all__ = [name for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__ and name[0] != "_"]
__all__ += ["SQNN_DISABLE", "SQNN_DTYPE_TO_CODE", "SQNN_INT32", "SQNN_INT8", "SQNN_UINT8", "declaration_conv3d_transpose_impl"]
__all__ = sorted({*__all__, "Workload"})
