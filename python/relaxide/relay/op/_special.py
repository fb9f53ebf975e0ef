"""Operators whose functions do more than build one call: sizes that are expressions take the dynamic operator, lists become
tuples, several calls make one function."""

from ..expr import Constant, RelayExpr, Tuple, TupleWrapper, const
from ..ty import dims_of
from . import _devices, _random
from ._generate import call


def _known(value):
    """The numbers of a constant, or the value as it is."""
    return value.data.numpy().tolist() if isinstance(value, Constant) else value


def _fields(data):
    return Tuple(list(data)) if isinstance(data, (list, tuple)) else data


def _sized(name, value, attribute):
    """Attributes and operands of a size that may be an expression."""
    value = _known(value)
    if isinstance(value, RelayExpr):
        return f"dyn.{name}", [value], {}
    return name, [], {attribute: dims_of(value)}


def reshape(data, newshape, allowzero=False):
    """The same elements in another shape; -1 is inferred, 0 copies, -2 to -4 as TVM reads them."""
    name, more, attrs = _sized("reshape", newshape, "newshape")
    return call(name, [data, *more], {**attrs, "newshape": attrs.get("newshape", []), "allowzero": allowzero})


def reverse_reshape(data, newshape):
    """As ``reshape``, with special numbers read from the end."""
    return call("contrib_reverse_reshape", [data], {"newshape": dims_of(newshape)})


def broadcast_to(data, shape):
    """The tensor repeated to a shape."""
    name, more, attrs = _sized("broadcast_to", shape, "shape")
    return call(name, [data, *more], attrs)


def full(fill_value, shape=(), dtype=""):
    """A tensor of one number."""
    name, more, attrs = _sized("full", shape, "shape")
    return call(name, [fill_value, *more], {**attrs, "dtype": dtype})


def zeros(shape, dtype):
    """Zeros."""
    name, more, attrs = _sized("zeros", shape, "shape")
    return call(name, more, {**attrs, "dtype": dtype})


def ones(shape, dtype):
    """Ones."""
    name, more, attrs = _sized("ones", shape, "shape")
    return call(name, more, {**attrs, "dtype": dtype})


def tile(data, reps):
    """The tensor repeated along dimensions."""
    name, more, attrs = _sized("tile", reps, "reps")
    return call(name, [data, *more], {**attrs, "reps": attrs.get("reps", [])})


def expand_dims(data, axis, num_newaxis=1):
    """New dimensions of length 1."""
    axis = _known(axis)
    if isinstance(axis, RelayExpr):
        return call("dyn.expand_dims", [data, axis])
    return call("expand_dims", [data, ], {"axis": axis, "num_newaxis": num_newaxis})


def squeeze(data, axis=None):
    """Without dimensions of length 1."""
    axis = _known(axis)
    if isinstance(axis, RelayExpr):
        return call("dyn.squeeze", [data, axis])
    return call("squeeze", [data], {"axis": axis})


def transpose(data, axes=None):
    """Dimensions in another order."""
    return call("transpose", [data], {"axes": None if axes is None else list(axes)})


def concatenate(data, axis):
    """Tensors one behind the other."""
    return call("concatenate", [_fields(data)], {"axis": axis})


def stack(data, axis):
    """Tensors along a new dimension."""
    return call("stack", [_fields(data)], {"axis": axis})


def einsum(data, equation):
    """Sums of products by Einstein's notation."""
    return call("einsum", [_fields(data)], {"equation": equation})


def adv_index(inputs):
    """NumPy's indexing by tensors of indices, which come behind the tensor."""
    return call("adv_index", [_fields(inputs)])


def meshgrid(data, indexing="ij"):
    """Coordinates of a grid."""
    fields = _fields(data)
    return TupleWrapper(call("meshgrid", [fields], {"indexing": indexing}), len(data))


def split(data, indices_or_sections, axis=0):
    """Parts of a tensor: a number of equal ones, or those between indices."""
    whole = isinstance(indices_or_sections, int)
    made = call("split", [data], {"indices_or_sections": indices_or_sections if whole else list(indices_or_sections), "axis": axis})
    return TupleWrapper(made, indices_or_sections if whole else len(indices_or_sections) + 1)


def strided_slice(data, begin, end, strides=None, axes=None, slice_mode="end"):
    """A part of a tensor with steps."""
    begin, end, strides = _known(begin), _known(end), _known(strides)
    given = [part for part in (begin, end, strides) if isinstance(part, RelayExpr)]
    if given:
        if axes is not None:
            raise ValueError("strided_slice with expressions takes no axes")
        as_expr = lambda part: part if isinstance(part, RelayExpr) else const(list(part), "int64")
        length = len(begin) if not isinstance(begin, RelayExpr) else None
        if strides is None:
            from . import ones_like

            strides = ones_like(as_expr(begin)) if length is None else const([1] * length, "int64")
        operands = [data, as_expr(begin), as_expr(end), as_expr(strides)]
        return call("dyn.strided_slice", operands, {"slice_mode": slice_mode})
    strides = [1] * len(begin) if strides is None else strides
    attrs = {"begin": list(begin), "end": list(end), "strides": list(strides), "slice_mode": slice_mode}
    return call("strided_slice", [data], {**attrs, "axes": None if axes is None else list(axes)})


def strided_set(data, v, begin, end, strides=None):
    """The tensor with another in the place of a part."""
    as_expr = lambda part: part if isinstance(part, RelayExpr) else const(list(part))
    strides = const([1], "int32") if strides is None else as_expr(strides)
    return call("strided_set", [data, v, as_expr(begin), as_expr(end), strides])


def arange(start, stop=None, step=None, dtype="float32"):
    """Numbers from one to another."""
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    operands = [part if isinstance(part, RelayExpr) else const(part, dtype) for part in (start, stop, step)]
    return call("arange", operands, {"dtype": dtype})


def one_hot(indices, on_value, off_value, depth, axis, dtype):
    """One number at an index and another elsewhere."""
    depth = _known(depth)
    if isinstance(depth, RelayExpr):
        return call("dyn.one_hot", [indices, on_value, off_value, depth], {"axis": axis, "dtype": dtype})
    return call("one_hot", [indices, on_value, off_value], {"depth": depth, "axis": axis, "dtype": dtype})


def topk(data, k=1, axis=-1, ret_type="both", is_ascend=False, dtype="int32"):
    """The largest elements along a dimension, and where they are."""
    k = _known(k)
    attrs = {"axis": axis, "ret_type": ret_type, "is_ascend": is_ascend, "dtype": dtype}
    if isinstance(k, RelayExpr):
        made = call("dyn.topk", [data, k], attrs)
    else:
        made = call("topk", [data], {**attrs, "k": k})
    return TupleWrapper(made, 2) if ret_type == "both" else made


def sort(data, axis=-1, is_ascend=1):
    """Sorted along a dimension."""
    return call("sort", [data], {"axis": axis, "is_ascend": bool(is_ascend)})


def unique(data, is_sorted=True, return_counts=False):
    """Each number once, where it is met first, which of them each element is, and how many there are."""
    made = call("unique", [data], {"sorted": is_sorted, "return_counts": return_counts})
    return TupleWrapper(made, 5 if return_counts else 4)


def variance(data, axis=None, keepdims=False, exclude=False, unbiased=False, with_mean=None):
    """The mean of squared distances from the mean."""
    from . import mean

    centre = mean(data, axis, True, exclude) if with_mean is None else with_mean
    attrs = {"axis": axis, "keepdims": keepdims, "exclude": exclude, "unbiased": unbiased}
    return call("variance", [data, centre], attrs)


def std(data, axis=None, keepdims=False, exclude=False, unbiased=False):
    """The root of the variance."""
    return call("sqrt", [variance(data, axis, keepdims, exclude, unbiased)])


def mean_variance(data, axis=None, keepdims=False, exclude=False, unbiased=False):
    """Mean and variance."""
    from . import mean

    centre = mean(data, axis, True, exclude)
    found = variance(data, axis, keepdims, exclude, unbiased, centre)
    return Tuple([centre if keepdims else squeeze(centre, axis), found])


def reverse(data, axis):
    """In the other direction along a dimension."""
    return call("reverse", [data], {"axis": axis})


def sparse_to_dense(sparse_indices, output_shape, sparse_values, default_value=0):
    """Numbers at places, and another elsewhere."""
    default = default_value if isinstance(default_value, RelayExpr) else const(default_value, "float32")
    output_shape = _known(output_shape)
    if isinstance(output_shape, RelayExpr):
        return call("dyn.sparse_to_dense", [sparse_indices, sparse_values, default, output_shape])
    return call("sparse_to_dense", [sparse_indices, sparse_values, default], {"output_shape": dims_of(output_shape)})


def stft(data, n_fft, hop_length=None, win_length=None, window=None, normalized=False, onesided=True):
    """Fourier transforms of windows that move along a signal."""
    hop_length, win_length = hop_length or n_fft // 4, win_length or n_fft
    window = ones([n_fft], "int32") if window is None else window
    attrs = {"n_fft": n_fft, "hop_length": hop_length, "win_length": win_length}
    return call("stft", [data, window], {**attrs, "normalized": normalized, "onesided": onesided})


def dft(re_data, im_data):
    """Fourier transform along the last dimension, of real and imaginary parts."""
    return TupleWrapper(call("dft", [re_data, im_data], {"inverse": False}), 2)


def idft(re_data, im_data):
    """The inverse of :func:`dft`."""
    return TupleWrapper(call("dft", [re_data, im_data], {"inverse": True}), 2)


def dropout(data, rate=0.5):
    """In inference, the tensor itself."""
    return TupleWrapper(dropout_raw(data, rate), 2)[0]


def dropout_raw(data, rate=0.5):
    """The tensor and the mask."""
    return call("nn.dropout", [data], {"rate": rate})


def pad(data, pad_width, pad_value=0, pad_mode="constant"):
    """The tensor with a border."""
    value = pad_value if isinstance(pad_value, RelayExpr) else const(pad_value, "float32")
    pad_width = _known(pad_width)
    if isinstance(pad_width, RelayExpr):
        return call("dyn.nn.pad", [data, pad_width, value], {"pad_width": [], "pad_mode": pad_mode})
    flat = [int(n) for pair in pad_width for n in (pair if isinstance(pair, (list, tuple)) else (pair,))]
    return call("nn.pad", [data, value], {"pad_width": flat, "pad_mode": pad_mode})


def upsampling(data, scale_h=1, scale_w=1, layout="NCHW", method="nearest_neighbor", align_corners=False):
    """A larger image."""
    attrs = {"layout": layout, "method": method, "align_corners": align_corners}
    if any(isinstance(scale, RelayExpr) for scale in (scale_h, scale_w)):
        as_expr = lambda scale: scale if isinstance(scale, RelayExpr) else const(scale, "float64")
        scales = [as_expr(scale_h), as_expr(scale_w)]
        return call("dyn.nn.upsampling", [data, *scales], {**attrs, "scale_h": 0.0, "scale_w": 0.0})
    return call("nn.upsampling", [data], {**attrs, "scale_h": scale_h, "scale_w": scale_w})


def upsampling3d(
    data,
    scale_d=1,
    scale_h=1,
    scale_w=1,
    layout="NCDHW",
    method="nearest_neighbor",
    coordinate_transformation_mode="half_pixel",
):
    """A larger volume."""
    attrs = {"layout": layout, "method": method, "coordinate_transformation_mode": coordinate_transformation_mode}
    scales = {"scale_d": scale_d, "scale_h": scale_h, "scale_w": scale_w}
    return call("nn.upsampling3d", [data], {**attrs, **scales})


def resize2d(
    data,
    size,
    roi=None,
    layout="NCHW",
    method="linear",
    coordinate_transformation_mode="half_pixel",
    rounding_method="",
    cubic_alpha=-0.5,
    cubic_exclude=0,
    extrapolation_value=0.0,
    out_dtype="",
):
    """An image of another size."""
    attrs = {
        "layout": layout,
        "method": method,
        "coordinate_transformation_mode": coordinate_transformation_mode,
        "rounding_method": rounding_method,
        "cubic_alpha": cubic_alpha,
        "cubic_exclude": cubic_exclude,
        "extrapolation_value": extrapolation_value,
        "out_dtype": out_dtype,
    }
    size = _known(size)
    if isinstance(size, RelayExpr):
        roi = const([0.0] * 4, "float32") if roi is None else roi
        return call("dyn.image.resize2d", [data, size, roi], attrs)
    size = [size, size] if isinstance(size, int) else list(size)
    return call("image.resize2d", [data], {**attrs, "size": size, "roi": [0.0] * 4 if roi is None else list(roi)})


def get_valid_counts(data, score_threshold, id_index=0, score_index=1):
    """Boxes above a score, in front of the others."""
    threshold = score_threshold if isinstance(score_threshold, RelayExpr) else const(score_threshold, "float32")
    made = call("vision.get_valid_counts", [data, threshold], {"id_index": id_index, "score_index": score_index})
    return TupleWrapper(getattr(made, "tuple_value", made), 3)


def non_max_suppression(
    data,
    valid_count,
    indices,
    max_output_size=-1,
    iou_threshold=0.5,
    force_suppress=False,
    top_k=-1,
    coord_start=2,
    score_index=1,
    id_index=0,
    return_indices=True,
    invalid_to_bottom=False,
):
    """Boxes without those that overlap better ones."""
    as_expr = lambda value, dtype: value if isinstance(value, RelayExpr) else const(value, dtype)
    operands = [data, valid_count, indices, as_expr(max_output_size, "int32"), as_expr(iou_threshold, "float32")]
    attrs = {
        "force_suppress": force_suppress,
        "top_k": top_k,
        "coord_start": coord_start,
        "score_index": score_index,
        "id_index": id_index,
        "return_indices": return_indices,
        "invalid_to_bottom": invalid_to_bottom,
    }
    made = call("vision.non_max_suppression", operands, attrs)
    return TupleWrapper(made, 2) if return_indices else made


def all_class_non_max_suppression(
    boxes, scores, max_output_boxes_per_class=-1, iou_threshold=-1.0, score_threshold=-1.0, output_format="onnx"
):
    """Boxes of every class without those that overlap better ones."""
    as_expr = lambda value, dtype: value if isinstance(value, RelayExpr) else const(value, dtype)
    operands = [
        boxes,
        scores,
        as_expr(max_output_boxes_per_class, "int32"),
        as_expr(iou_threshold, "float32"),
        as_expr(score_threshold, "float32"),
    ]
    made = call("vision.all_class_non_max_suppression", operands, {"output_format": output_format})
    return TupleWrapper(made, 2 if output_format == "onnx" else 3)


def regular_non_max_suppression(
    boxes, scores, max_detections_per_class, max_detections, num_classes, iou_threshold, score_threshold
):
    """The best boxes of all classes, each class without those that overlap better ones of it."""
    attrs = {
        "max_detections_per_class": max_detections_per_class,
        "max_detections": max_detections,
        "num_classes": num_classes,
        "iou_threshold": iou_threshold,
        "score_threshold": score_threshold,
    }
    return TupleWrapper(call("vision.regular_non_max_suppression", [boxes, scores], attrs), 4)


def proposal(
    cls_prob,
    bbox_pred,
    im_info,
    scales,
    ratios,
    feature_stride,
    threshold,
    rpn_pre_nms_top_n,
    rpn_post_nms_top_n,
    rpn_min_size,
    iou_loss,
):
    """Regions that a network proposes."""
    attrs = {
        "scales": list(scales),
        "ratios": list(ratios),
        "feature_stride": feature_stride,
        "threshold": threshold,
        "rpn_pre_nms_top_n": rpn_pre_nms_top_n,
        "rpn_post_nms_top_n": rpn_post_nms_top_n,
        "rpn_min_size": rpn_min_size,
        "iou_loss": iou_loss,
    }
    return call("vision.proposal", [cls_prob, bbox_pred, im_info], attrs)


def qnn_concatenate(data, input_scales, input_zero_points, output_scale, output_zero_point, axis):
    """Quantized tensors one behind the other, in one scale."""
    operands = [_fields(data), _fields(input_scales), _fields(input_zero_points), output_scale, output_zero_point]
    return call("qnn.concatenate", operands, {"axis": axis})


TOP = "reshape reverse_reshape broadcast_to full zeros ones tile expand_dims squeeze transpose concatenate stack einsum"
TOP += " adv_index meshgrid split strided_slice strided_set arange one_hot topk sort unique variance std mean_variance"
TOP += " reverse sparse_to_dense stft dft idft"
#: The functions here, by the names of their operators.
SPECIAL = {name: globals()[name] for name in TOP.split()}
SPECIAL |= {f"nn.{name}": globals()[name] for name in "dropout dropout_raw pad upsampling upsampling3d".split()}
SPECIAL |= {"image.resize2d": resize2d, "qnn.concatenate": qnn_concatenate}
SPECIAL |= {
    f"vision.{name}": globals()[name]
    for name in "get_valid_counts non_max_suppression all_class_non_max_suppression regular_non_max_suppression proposal".split()
}
SPECIAL |= _random.SPECIAL | _devices.SPECIAL
