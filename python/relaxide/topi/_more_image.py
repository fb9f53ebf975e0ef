"""Images in other sizes, and morphology, as computes."""

from .. import te
from ._more_nn import _pair
from ._more_shapes import _const
from ._operator import one
from ._shapes import reshape


def resize3d(
    data,
    roi,
    size,
    layout="NCDHW",
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="",
    bicubic_alpha=-0.75,
    bicubic_exclude=0,
    extrapolation_value=0.0,
    out_dtype=None,
    output_shape=None,
):
    """Volumes in another size; see the operator ``relax.image.resize3d``. The whole volume is resized."""
    if roi is not None and any(float(bound) != 0.0 for bound in roi):
        raise NotImplementedError("topi.image.resize3d takes the whole volume: a region (roi) is not supported")
    how = {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode}
    how |= {"rounding_method": rounding_method, "cubic_alpha": bicubic_alpha, "cubic_exclude": bicubic_exclude}
    return one("image.resize3d", data, list(size), **how, extrapolation_value=extrapolation_value, out_dtype=out_dtype or "void")


def resize1d(
    data,
    roi,
    size,
    layout="NCW",
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="",
    bicubic_alpha=-0.75,
    bicubic_exclude=0,
    extrapolation_value=0.0,
    out_dtype=None,
    output_shape=None,
):
    """Rows in another size: images of height one."""
    from .image import resize2d

    at = layout.index("W")
    shape = list(data.shape)
    wide = reshape(data, [*shape[:at], 1, *shape[at:]])
    wanted = size[0] if hasattr(size, "__len__") else size
    made = resize2d(
        wide,
        None if roi is None else [0.0, roi[0], 0.0, roi[1]],
        [1, wanted],
        layout[:at] + "H" + layout[at:],
        method,
        coordinate_transformation_mode,
        rounding_method,
        bicubic_alpha,
        bicubic_exclude,
        extrapolation_value,
        out_dtype,
    )
    return reshape(made, [*shape[:at], wanted, *shape[at + 1 :]])


def crop_and_resize(
    data, boxes, box_indices, crop_size, layout="NCHW", method="bilinear", extrapolation_value=None, out_dtype=None
):
    """Boxes of images in one size. ``boxes`` are ``[y1, x1, y2, x2]`` as parts of the height and width, ``box_indices`` say of which image."""
    if layout not in ("NCHW", "NHWC"):
        raise ValueError(f"layout is NCHW or NHWC, got {layout}")
    is_first = layout == "NCHW"
    height, width = (data.shape[2], data.shape[3]) if is_first else (data.shape[1], data.shape[2])
    channels = data.shape[1] if is_first else data.shape[3]
    rows, columns = (int(length) for length in crop_size)
    dtype = "float32"
    beyond = _const(float(extrapolation_value or 0.0), str(data.dtype))

    def at(n, c, y, x):
        return data(n, c, y, x) if is_first else data(n, y, x, c)

    def value(box, c, i, j):
        n = box_indices(box)
        y1, x1, y2, x2 = (boxes(box, k).astype(dtype) for k in range(4))
        y = _spot(y1, y2, i, rows, height)
        x = _spot(x1, x2, j, columns, width)
        inside = te.all(y >= 0, y <= _last(height), x >= 0, x <= _last(width))
        if method == "nearest_neighbor":
            row, column = te.round(y).astype("int32"), te.round(x).astype("int32")
            got = at(n, c, _edge(row, height), _edge(column, width))
        else:
            got = _between(lambda a, b: at(n, c, a, b), y, x, height, width)
        return te.if_then_else(inside, got.astype(str(data.dtype)), beyond).astype(out_dtype or str(data.dtype))

    count = boxes.shape[0]
    if is_first:
        return te.compute([count, channels, rows, columns], value, name="crop_and_resize")
    return te.compute([count, rows, columns, channels], lambda b, i, j, c: value(b, c, i, j), name="crop_and_resize")


def _last(length):
    return length - 1 if hasattr(length, "dtype") and getattr(length, "value", None) is None else _const(float(int(length) - 1), "float32")


def _spot(low, high, index, count, length):
    """The place of a sample of a box."""
    last = _last(length)
    last = last.astype("float32") if hasattr(last, "astype") else last
    if count == 1:
        return (low + high) * _const(0.5, "float32") * last
    return low * last + index.astype("float32") * (high - low) * last / _const(float(count - 1), "float32")


def _edge(place, length):
    return te.max(te.min(place, length - 1), 0)


def _between(at, y, x, height, width):
    top, left = te.floor(y).astype("int32"), te.floor(x).astype("int32")
    fy, fx = y - top.astype("float32"), x - left.astype("float32")
    corners = [[at(_edge(top + i, height), _edge(left + j, width)).astype("float32") for j in (0, 1)] for i in (0, 1)]
    above = corners[0][0] * (1.0 - fx) + corners[0][1] * fx
    below = corners[1][0] * (1.0 - fx) + corners[1][1] * fx
    return above * (1.0 - fy) + below * fy


def dilation2d_nchw(input, filter, stride, padding, dilations, out_dtype=None):
    """The largest sum of an image and a window, element by element: ``NCHW`` by ``[channel, height, width]``."""
    return _dilation(input, filter, stride, padding, dilations, out_dtype, True)


def dilation2d_nhwc(input, filter, stride, padding, dilations, out_dtype=None):
    """The same of ``NHWC`` by ``[height, width, channel]``."""
    return _dilation(input, filter, stride, padding, dilations, out_dtype, False)


def _dilation(data, window, stride, padding, dilations, out_dtype, is_first):
    from .nn import get_pad_tuple

    dtype = out_dtype or str(data.dtype)
    batch, channels, height, width = (int(d) for d in (data.shape if is_first else [data.shape[i] for i in (0, 3, 1, 2)]))
    h, w = (int(d) for d in (window.shape[1:] if is_first else window.shape[:2]))
    (sh, sw), (dh, dw) = _pair(stride), _pair(dilations)
    top, left, bottom, right = get_pad_tuple(padding, ((h - 1) * dh + 1, (w - 1) * dw + 1))
    out_h = (height + top + bottom - (h - 1) * dh - 1) // sh + 1
    out_w = (width + left + right - (w - 1) * dw - 1) // sw + 1
    r, s = te.reduce_axis((0, h), name="dh"), te.reduce_axis((0, w), name="dw")

    def value(n, c, y, x):
        row, column = y * sh + r * dh - top, x * sw + s * dw - left
        inside = te.all(row >= 0, row < height, column >= 0, column < width)
        own = data(n, c, row, column) if is_first else data(n, row, column, c)
        weight = window(c, r, s) if is_first else window(r, s, c)
        return te.max(te.if_then_else(inside, own.astype(dtype), _const(0, dtype)) + weight.astype(dtype), axis=[r, s])

    if is_first:
        return te.compute([batch, channels, out_h, out_w], value, tag="dilation2d_nchw")
    return te.compute([batch, out_h, out_w, channels], lambda n, y, x, c: value(n, c, y, x), tag="dilation2d_nhwc")


def can_convert_multiply_to_intdiv(origin_size, scaled_size):
    """Whether one length is a multiple of the other, so that places are found by whole division."""
    from ..ir.prim import IntImm

    known = all(isinstance(size, (int, IntImm)) for size in (origin_size, scaled_size))
    return known and int(origin_size) > 0 and int(scaled_size) / int(origin_size) == int(scaled_size) // int(origin_size)


def _places(indices, layout, letters):
    if len(layout) == len(letters) + 2 and set(layout) == {"N", "C", *letters}:
        by = dict(zip(layout, indices))
        return (by["N"], by["C"], *(by[letter] for letter in letters), None, None, None)
    if layout.upper().startswith(f"NC{letters}") and layout[-1] == "c":
        n, c, *space, inner = indices
        return (n, c, *space, inner, None, None)
    raise ValueError(f"{layout} is no layout of {letters}; there are NC{letters} and N{letters}C")


def get_1d_indices(indices, layout="NCW"):
    """``(n, c, x, inner c, inner n, inner c)`` of indices in a layout; ``None`` for those that it has not."""
    return _places(indices, layout, "W")


def get_2d_indices(indices, layout="NCHW"):
    """``(n, c, y, x, …)`` of indices in a layout."""
    return _places(indices, layout, "HW")


def get_3d_indices(indices, layout="NCDHW"):
    """``(n, c, z, y, x, inner c)`` of indices in a layout."""
    return _places(indices, layout, "DHW")[:6]


def _pixel(data, layout, n, c, places, letters, cc):
    if layout.endswith("c"):
        return data(n, c, *places, cc).astype("float")
    by = {"N": n, "C": c, **dict(zip(letters, places))}
    return data(*(by[letter] for letter in layout)).astype("float")


def _inside(value, length):
    return te.max(te.min(value, length - 1), 0)


def get_1d_pixel(data, layout, image_width, n, c, x, cc, ib, ic):
    """The element of a row; beyond its edge that of the edge."""
    return _pixel(data, layout, n, c, [_inside(x, image_width)], "W", cc)


def get_2d_pixel(data, layout, image_height, image_width, n, c, y, x, cc, ib, ic):
    """The element of an image; beyond its edge that of the edge."""
    return _pixel(data, layout, n, c, [_inside(y, image_height), _inside(x, image_width)], "HW", cc)


def get_3d_pixel(data, layout, image_depth, image_height, image_width, n, c, z, y, x, cc):
    """The element of a volume; beyond its edge that of the edge."""
    return _pixel(data, layout, n, c, [_inside(z, image_depth), _inside(y, image_height), _inside(x, image_width)], "DHW", cc)


def get_inx(x, image_width, target_width, coordinate_transformation_mode, start_x=0, end_x=-1, use_int_div=False):
    """The place in a row of ``image_width`` that the place ``x`` of one of ``target_width`` comes from, by a mode of ONNX."""
    ratio = _float(image_width) / _float(target_width)
    x = x.astype("float") if not use_int_div and hasattr(x, "astype") else x
    mode = coordinate_transformation_mode
    if mode == "half_pixel":
        return ratio * (x + 0.5) - 0.5
    if mode == "align_corners":
        return (_float(image_width) - 1.0) / te.max(_float(target_width) - 1.0, _const(1.0, "float32")) * x
    if mode == "asymmetric":
        return te.indexdiv(x, int(target_width) // int(image_width)) if use_int_div else ratio * x
    if mode == "pytorch_half_pixel":
        return te.if_then_else(target_width > 1, ratio * (x + 0.5) - 0.5, _const(0.0, "float32"))
    if mode == "tf_half_pixel_for_nn":
        return (x + 0.5) * ratio
    if mode == "tf_crop_and_resize":
        whole = _float(image_width) - 1.0
        many = start_x * whole + x * (end_x - start_x) * whole / te.max(_float(target_width) - 1.0, _const(1.0, "float32"))
        return te.if_then_else(target_width > 1, many, 0.5 * (start_x + end_x) * whole)
    raise ValueError(f"Unsupported coordinate_transformation_mode: {mode}")


def _float(value):
    return value.astype("float32") if hasattr(value, "astype") else _const(float(value), "float32")


def get_closest_index(in_x, rounding_method, boxes, use_int_div=False):
    """The whole place next to one between two, by a way of rounding."""
    if use_int_div:
        return in_x
    if rounding_method == "round" or boxes is not None:
        return te.round(in_x).astype("int32")
    if rounding_method == "round_prefer_floor":
        return te.ceil(in_x - 0.5).astype("int32")
    if rounding_method == "round_prefer_ceil":
        return te.floor(in_x + 0.5).astype("int32")
    if rounding_method == "floor":
        # A little is added, so that what is a whole number but for rounding stays it.
        return te.floor(in_x + 1e-5).astype("int32")
    if rounding_method == "ceil":
        return te.ceil(in_x - 1e-5).astype("int32")
    raise ValueError(f"Unknown rounding method: {rounding_method}")


__all__ = ["can_convert_multiply_to_intdiv", "crop_and_resize", "dilation2d_nchw", "dilation2d_nhwc", "get_1d_indices", "get_1d_pixel"]
__all__ += ["get_2d_indices", "get_2d_pixel", "get_3d_indices", "get_3d_pixel", "get_closest_index", "get_inx", "resize1d", "resize3d"]
