"""Operators on boxes, as tensors of the compute language."""

from ._more_nn import bilinear_sample_nchw, bilinear_sample_nhwc
from ._more_shapes import binary_search
from ._operator import call, one
from ._shapes import transpose


def roi_align_nchw(data, rois, pooled_size, spatial_scale, mode, sample_ratio=-1, aligned=False):
    """Regions of images ``NCHW`` in one size, by samples of each part; ``rois`` are ``[batch index, x1, y1, x2, y2]``."""
    size = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    mode = {b"avg": "avg", b"max": "max", 0: "avg", 1: "max"}.get(mode, mode)
    how = {"pooled_size": size, "spatial_scale": float(spatial_scale), "sample_ratio": sample_ratio, "aligned": aligned}
    return one("vision.roi_align", data, rois, **how, layout="NCHW", mode=mode)


def roi_align_nhwc(data, rois, pooled_size, spatial_scale, mode, sample_ratio=-1, aligned=False):
    """The same of ``NHWC``."""
    made = roi_align_nchw(transpose(data, [0, 3, 1, 2]), rois, pooled_size, spatial_scale, mode, sample_ratio, aligned)
    return transpose(made, [0, 2, 3, 1])


def roi_align(data, rois, pooled_size, spatial_scale, mode, sample_ratio=-1, aligned=False, layout="NCHW"):
    """:func:`roi_align_nchw` or :func:`roi_align_nhwc`, by ``layout``."""
    by = {"NCHW": roi_align_nchw, "NHWC": roi_align_nhwc}
    if layout not in by:
        raise ValueError(f"layout is NCHW or NHWC, got {layout}")
    return by[layout](data, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned)


def roi_pool_nchw(data, rois, pooled_size, spatial_scale):
    """The largest element of each part of regions of images ``NCHW``."""
    size = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    return one("vision.roi_pool", data, rois, pooled_size=size, spatial_scale=float(spatial_scale), layout="NCHW")


def roi_pool(data, rois, pooled_size, spatial_scale, layout="NCHW"):
    """:func:`roi_pool_nchw`; ``layout`` is ``"NCHW"``."""
    if layout != "NCHW":
        raise ValueError(f"layout is NCHW, got {layout}")
    return roi_pool_nchw(data, rois, pooled_size, spatial_scale)


def get_valid_counts(data, score_threshold=0, id_index=0, score_index=1):
    """``[counts, boxes, places]``: the boxes whose score is above a threshold come first."""
    how = {"score_threshold": float(score_threshold), "id_index": id_index, "score_index": score_index}
    return call("vision.get_valid_counts", data, **how)


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
    soft_nms_sigma=0.0,
    score_threshold=0.0,
):
    """Boxes without those that overlap better ones; see the operator ``relax.vision.non_max_suppression``."""
    how = {"max_output_size": max_output_size, "iou_threshold": float(iou_threshold), "force_suppress": force_suppress, "top_k": top_k}
    how |= {"coord_start": coord_start, "score_index": score_index, "id_index": id_index, "return_indices": return_indices}
    how |= {"invalid_to_bottom": invalid_to_bottom, "soft_nms_sigma": float(soft_nms_sigma), "score_threshold": float(score_threshold)}
    made = call("vision.non_max_suppression", data, valid_count, indices, **how)
    return made if len(made) > 1 else made[0]


def all_class_non_max_suppression(
    boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, output_format="onnx", output_shape=None
):
    """Boxes without those that overlap better ones of the same class; see the operator ``relax.vision.all_class_non_max_suppression``."""
    from ._more_shapes import _const
    from ..te import Tensor, compute

    def scalar(value, dtype):
        return value if isinstance(value, Tensor) else compute((), lambda: _const(value, dtype), name="limit")

    limits = (scalar(max_output_boxes_per_class, "int64"), scalar(iou_threshold, "float32"), scalar(score_threshold, "float32"))
    return call("vision.all_class_non_max_suppression", boxes, scores, *limits, output_format=output_format)


def multibox_transform_loc(
    cls_pred, loc_pred, anchor, variances, clip=False, threshold=0.0, keep_background=True
):
    """``[boxes, scores]`` of anchors that are moved by predictions; see the operator ``relax.vision.multibox_transform_loc``."""
    how = {"clip": clip, "threshold": float(threshold), "variances": [float(v) for v in variances], "keep_background": keep_background}
    return call("vision.multibox_transform_loc", cls_pred, loc_pred, anchor, **how)


__all__ = ["all_class_non_max_suppression", "bilinear_sample_nchw", "bilinear_sample_nhwc", "binary_search", "get_valid_counts"]
__all__ += ["multibox_transform_loc", "non_max_suppression", "roi_align", "roi_align_nchw", "roi_align_nhwc", "roi_pool", "roi_pool_nchw"]
