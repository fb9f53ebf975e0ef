"""Classes of attributes, by operator. Attributes of a call are an :class:`~relaxide.ir.DictAttrs`; each class here knows which of them are
its own: ``isinstance(call.attrs, SoftmaxAttrs)`` holds where they have all of its names."""

from ...ir.attrs import Attrs as _Attrs
from ...ir.attrs import DictAttrs as _DictAttrs

_POOL = "pool_size strides padding dilation ceil_mode count_include_pad layout out_layout"
_ADAPTIVE = "output_size layout out_layout"
_CONV = "strides padding dilation groups data_layout kernel_layout out_layout out_dtype"
_CONV_TRANSPOSE = "strides padding output_padding dilation groups data_layout kernel_layout out_layout out_dtype"
_RESIZE = "roi layout method coordinate_transformation_mode rounding_method cubic_alpha cubic_exclude extrapolation_value out_dtype"

#: The names that the attributes of a kind of call have.
_NAMES = {
    "AdaptivePool1DAttrs": _ADAPTIVE,
    "AdaptivePool2DAttrs": _ADAPTIVE,
    "AdaptivePool3DAttrs": _ADAPTIVE,
    "AllClassNonMaximumSuppressionAttrs": "output_format",
    "AllGatherAttrs": "num_workers in_group",
    "AllReduceAttrs": "op_type in_group",
    "ArgmaxArgminAttrs": "axis keepdims",
    "ArgsortAttrs": "axis descending dtype",
    "AstypeAttrs": "dtype",
    "AttentionAttrs": "scale causal_mask window_size",
    "BatchNormAttrs": "axis epsilon center scale momentum training",
    "CallInplacePackedAttrs": "inplace_indices",
    "CallTIRInplaceAttrs": "inplace_indices",
    "CallTIRWithGradAttrs": "te_grad_name te_grad_kwargs",
    "ConcatAttrs": "axis",
    "Conv1DAttrs": _CONV,
    "Conv1DTransposeAttrs": _CONV_TRANSPOSE,
    "Conv2DAttrs": _CONV,
    "Conv2DTransposeAttrs": _CONV_TRANSPOSE,
    "Conv3DAttrs": _CONV,
    "Conv3DTransposeAttrs": _CONV_TRANSPOSE,
    "DropoutAttrs": "rate",
    "EinsumAttrs": "subscripts",
    "ExpandDimsAttrs": "axis",
    "FlipAttrs": "axis",
    "GatherElementsAttrs": "axis",
    "GatherNDAttrs": "batch_dims",
    "GetValidCountsAttrs": "score_threshold id_index score_index",
    "GroupNormAttrs": "num_groups channel_axis axes epsilon center scale",
    "HintOnDeviceAttrs": "device_type index memory_scope",
    "IndexPutAttrs": "accumulate",
    "InitAttrs": "dtype",
    "InstanceNormAttrs": "channel_axis axes epsilon center scale",
    "LayerNormAttrs": "axes epsilon center scale",
    "LayoutTransformAttrs": "index_map pad_value",
    "LeakyReluAttrs": "alpha",
    "MatmulAttrs": "out_dtype",
    "MeshgridAttrs": "indexing",
    "MultiboxTransformLocAttrs": "clip threshold variances keep_background apply_softmax",
    "MultinomialFromUniformAttrs": "dtype",
    "NLLLossAttrs": "reduction ignore_index",
    "NonMaximumSuppressionAttrs": "max_output_size iou_threshold force_suppress top_k coord_start score_index id_index return_indices invalid_to_bottom soft_nms_sigma score_threshold",
    "OneHotAttrs": "depth axis",
    "PReluAttrs": "axis",
    "PadAttrs": "pad_width pad_value pad_mode",
    "PermuteDimsAttrs": "axes",
    "PixelShuffleAttrs": "upscale_factor",
    "Pool1DAttrs": "pool_size strides dilation padding ceil_mode count_include_pad layout out_layout",
    "Pool2DAttrs": "pool_size strides dilation padding ceil_mode count_include_pad layout out_layout",
    "Pool3DAttrs": "pool_size strides dilation padding ceil_mode count_include_pad layout out_layout",
    "QuantizeAttrs": "out_dtype axis",
    "RMSNormAttrs": "axes epsilon",
    "ROIAlignAttrs": "pooled_size spatial_scale sample_ratio aligned layout mode",
    "ROIPoolAttrs": "pooled_size spatial_scale layout",
    "RepeatAttrs": "repeats axis",
    "Resize2DAttrs": _RESIZE,
    "ReverseSequenceAttrs": "seq_axis batch_axis",
    "ScanopAttrs": "axis dtype exclusive",
    "ScatterCollectiveAttrs": "num_workers axis",
    "ScatterElementsAttrs": "axis reduction",
    "ScatterNDAttrs": "reduction",
    "SliceScatterAttrs": "axis",
    "SoftmaxAttrs": "axis",
    "SoftplusAttrs": "beta threshold",
    "SortAttrs": "axis descending",
    "SplitAttrs": "indices_or_sections axis",
    "SqueezeAttrs": "axis",
    "StackAttrs": "axis",
    "StatisticalAttrs": "axis keepdims",
    "StridedSliceAttrs": "assume_inbound",
    "TakeAttrs": "axis mode",
    "TileAttrs": "repeats",
    "ToVDeviceAttrs": "dst_vdevice",
    "TopKAttrs": "k axis ret_type largest dtype",
    "TriluAttrs": "k",
    "WrapParamAttrs": "dtype",
}


class _Kind(type(_Attrs)):
    """Of whose instances are the attributes that have all names of the class."""

    def __instancecheck__(cls, value):
        return isinstance(value, _Attrs) and cls._fields <= set(value)


def _class(name, fields):
    def __init__(self, *values, **named):
        if len(values) > len(fields):
            raise TypeError(f"{name} has {len(fields)} attributes, got {len(values)}")
        unknown = set(named) - set(fields)
        if unknown:
            raise TypeError(f"{name} has no attribute {sorted(unknown)[0]!r}; there are: {', '.join(fields)}")
        _DictAttrs.__init__(self, {**dict(zip(fields, values)), **named})

    doc = f"The attributes {', '.join(fields)}." if fields else "No attributes."
    body = {"__doc__": doc, "__module__": __name__, "__init__": __init__, "_fields": frozenset(fields)}
    return _Kind(name, (_DictAttrs,), body)


globals().update({name: _class(name, tuple(fields.split())) for name, fields in _NAMES.items()})
__all__ = list(_NAMES)
