"""Convolutions by Winograd's method, as computes."""

from .. import te
from ._shapes import transpose


def _pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def winograd_transform_matrices(tile_size, kernel_size, out_dtype):
    """``(A, B, G)`` of Winograd's convolution of tiles and windows of these sizes, as tensors."""
    from ._more_shapes import _const_tensor

    return tuple(_const_tensor(matrix.astype(out_dtype), f"matrix_{name}") for name, matrix in zip("ABG", _winograd(tile_size, kernel_size)))


def _winograd(tile, kernel):
    """By the method of Cook and Toom, at the points 0, 1, -1, 2, -2, 1/2 … and infinity."""
    from fractions import Fraction

    import numpy

    count = tile + kernel - 1
    points = [Fraction(0)]
    for value in (1, 2, Fraction(1, 2), 3, Fraction(1, 3), 4, Fraction(1, 4), 5, 6):
        points += [Fraction(value), -Fraction(value)]
    points = points[: count - 1]

    def powers(size):
        rows = [[point**k for k in range(size)] for point in points]
        return numpy.array([*rows, [Fraction(int(k == size - 1)) for k in range(size)]], dtype=object)

    inverse = _inverse(powers(count))
    return powers(tile).astype("float64"), inverse.astype("float64"), powers(kernel).astype("float64")


def _inverse(matrix):
    from fractions import Fraction

    import numpy

    size = len(matrix)
    rows = numpy.concatenate([matrix, numpy.array([[Fraction(int(i == j)) for j in range(size)] for i in range(size)], dtype=object)], axis=1)
    for i in range(size):
        pivot = next(j for j in range(i, size) if rows[j, i] != 0)
        rows[[i, pivot]] = rows[[pivot, i]]
        rows[i] = rows[i] / rows[i, i]
        for j in range(size):
            if j != i:
                rows[j] = rows[j] - rows[j, i] * rows[i]
    return rows[:, size:]


def conv2d_winograd_weight_transform(kernel, tile_size):
    """Weights ``[out, in, r, r]`` as Winograd's method multiplies them: ``[tile + r - 1, tile + r - 1, out, in]``."""
    size = int(kernel.shape[2])
    if int(kernel.shape[3]) != size:
        raise ValueError("Winograd's method takes square windows")
    _, _, transform = winograd_transform_matrices(tile_size, size, str(kernel.dtype))
    count = tile_size + size - 1
    r, s = te.reduce_axis((0, size), name="r_kh"), te.reduce_axis((0, size), name="r_kw")
    shape = [count, count, kernel.shape[0], kernel.shape[1]]
    return te.compute(
        shape, lambda i, j, o, c: te.sum(kernel(o, c, r, s) * transform(i, r) * transform(j, s), axis=[r, s]), name="transform_weight"
    )


def conv3d_winograd_weight_transform(kernel, tile_size):
    """Weights ``[out, in, d, r, r]`` as Winograd's method over three dimensions multiplies them; windows of one in depth stay so."""
    size, depth = int(kernel.shape[3]), int(kernel.shape[2])
    _, _, transform = winograd_transform_matrices(tile_size, size, str(kernel.dtype))
    count = tile_size + size - 1
    r, s = te.reduce_axis((0, size), name="r_kh"), te.reduce_axis((0, size), name="r_kw")
    if depth != size:
        shape = [count, count, depth, kernel.shape[0], kernel.shape[1]]
        return te.compute(
            shape, lambda h, w, d, o, c: te.sum(kernel(o, c, d, r, s) * transform(h, r) * transform(w, s), axis=[r, s]), name="transform_weight"
        )
    q = te.reduce_axis((0, size), name="r_kd")
    shape = [count, count, count, kernel.shape[0], kernel.shape[1]]

    def element(omg, eps, nu, o, c):
        return te.sum(kernel(o, c, q, r, s) * transform(omg, q) * transform(eps, r) * transform(nu, s), axis=[q, r, s])

    return te.compute(shape, element, name="transform_weight")


def conv2d_winograd_nchw(
    data, weight, strides, padding, dilation, out_dtype, pre_computed=False, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None
):
    """A convolution of ``NCHW`` by ``OIHW``, of windows with a step of one, by Winograd's method with tiles of four.

    ``pre_computed`` says that the weights are those of :func:`conv2d_winograd_weight_transform`.
    """
    return _by_winograd(data, weight, strides, padding, dilation, out_dtype, pre_computed, "NCHW")


def conv2d_winograd_nhwc(
    data, weight, strides, padding, dilation, out_dtype, pre_computed=False, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None
):
    """The same of ``NHWC`` by ``HWIO``; weights in Winograd's form are ``[.., .., out, in]``."""
    return _by_winograd(data, weight, strides, padding, dilation, out_dtype, pre_computed, "NHWC")


def conv2d_winograd_nchw_without_weight_transform(
    data, weight, strides, padding, dilation, out_dtype, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None
):
    """:func:`conv2d_winograd_nchw` of weights in Winograd's form."""
    return _by_winograd(data, weight, strides, padding, dilation, out_dtype, True, "NCHW")


def conv2d_winograd_nhwc_without_weight_transform(
    data, weight, strides, padding, dilation, out_dtype, auto_scheduler_rewritten_layout="", meta_schedule_original_shape=None
):
    """:func:`conv2d_winograd_nhwc` of weights in Winograd's form."""
    return _by_winograd(data, weight, strides, padding, dilation, out_dtype, True, "NHWC")


def _by_winograd(data, weight, strides, padding, dilation, out_dtype, pre_computed, layout):
    from .nn import get_pad_tuple, pad

    tile = 4
    if _pair(strides) != (1, 1) or _pair(dilation) != (1, 1):
        raise ValueError("Winograd's method takes windows with a step of one, of neighbours")
    if layout == "NHWC":
        data = transpose(data, [0, 3, 1, 2])
        weight = weight if pre_computed else transpose(weight, [3, 2, 0, 1])
    size = int(weight.shape[0]) - tile + 1 if pre_computed else int(weight.shape[2])
    top, left, bottom, right = get_pad_tuple(padding, (size, size))
    batch, channels, height, width = (int(dim) for dim in data.shape)
    out_h, out_w = height + top + bottom - size + 1, width + left + right - size + 1
    rows, columns = -(-out_h // tile), -(-out_w // tile)
    count = tile + size - 1
    after = [0, 0, rows * tile + size - 1 - height - top, columns * tile + size - 1 - width - left]
    padded = pad(data, [0, 0, top, left], after)
    outer, inner, _ = winograd_transform_matrices(tile, size, str(data.dtype))
    kernel = weight if pre_computed else conv2d_winograd_weight_transform(weight, tile)
    a, b = te.reduce_axis((0, count), name="a"), te.reduce_axis((0, count), name="b")
    tiles = te.compute(
        [count, count, channels, batch, rows, columns],
        lambda i, j, c, n, y, x: te.sum(padded(n, c, y * tile + a, x * tile + b) * inner(a, i) * inner(b, j), axis=[a, b]),
        name="data_pack",
    )
    k = te.reduce_axis((0, channels), name="ci")
    products = te.compute(
        [count, count, kernel.shape[2], batch, rows, columns],
        lambda i, j, o, n, y, x: te.sum(kernel(i, j, o, k) * tiles(i, j, k, n, y, x), axis=k),
        name="bgemm",
    )
    p, q = te.reduce_axis((0, count), name="p"), te.reduce_axis((0, count), name="q")
    parts = te.compute(
        [kernel.shape[2], batch, rows, columns, tile, tile],
        lambda o, n, y, x, u, v: te.sum(products(p, q, o, n, y, x) * outer(p, u) * outer(q, v), axis=[p, q]),
        name="inverse",
    )
    made = te.compute(
        [batch, kernel.shape[2], out_h, out_w],
        lambda n, o, h, w: parts(o, n, te.indexdiv(h, tile), te.indexdiv(w, tile), te.indexmod(h, tile), te.indexmod(w, tile)).astype(
            out_dtype or str(data.dtype)
        ),
        name="conv2d_winograd",
    )
    return made if layout == "NCHW" else transpose(made, [0, 2, 3, 1])


__all__ = [name for name, value in list(globals().items()) if getattr(value, "__module__", "") == __name__ and name[0] != "_"]
