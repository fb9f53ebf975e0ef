"""Where TVM's functions differ from the operators' own order of arguments and attributes, or from their defaults.

A text names arguments and attributes of the operator, as Python writes a signature. ``results`` says how many results the
operators have that give several.
"""

_POOL = "data, pool_size={one}, strides={one}, dilation={one}, padding={zero}, layout={layout!r}, out_layout='', ceil_mode=False"
_TRANSPOSED = (
    "data, weight, strides={one}, padding={zero}, dilation={one}, groups=1, channels=None, kernel_size=None, "
    "data_layout={layout!r}, kernel_layout={kernel!r}, out_layout='', output_padding={zero}, out_dtype=''"
)
_RESIZE = (
    "data, size, roi=None, layout={layout!r}, method='linear', coordinate_transformation_mode='half_pixel', "
    "rounding_method='', cubic_alpha=-0.5, cubic_exclude=0, extrapolation_value=0.0, out_dtype=''"
)
_QNN_BINARY = (
    "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, output_zero_point, lhs_axis=-1, rhs_axis=-1"
)

SIGNATURES = {
    "cumsum": "data, axis=None, dtype='', exclusive=None",
    "cumprod": "data, axis=None, dtype='', exclusive=None",
    "argsort": "data, axis=-1, is_ascend=1, dtype='int32'",
    "take": "data, indices, axis=None, batch_dims=0, mode='clip'",
    "gather": "data, axis, indices",
    "gather_nd": "data, indices, batch_dims=0, index_rank=None",
    "scatter_elements": "data, indices, updates, axis=0, reduction='update'",
    "scatter_nd": "data, indices, updates, mode='update'",
    "sequence_mask": "data, valid_length, mask_value=0, axis=0",
    "slice_like": "data, shape_like, axes=()",
    "shape_of": "data, dtype='int32'",
    "ndarray_size": "data, dtype='int32'",
    "unravel_index": "indices, shape",
    "where": "condition, x, y",
    "nn.batch_matmul": "tensor_a, tensor_b, out_dtype='', transpose_a=False, transpose_b=True",
    "nn.matmul": "tensor_a, tensor_b, units=None, out_dtype='', transpose_a=False, transpose_b=False",
    "nn.dense": "data, weight, units=None, out_dtype=''",
    "nn.leaky_relu": "data, alpha=0.01",
    "nn.lrn": "data, size=5, axis=1, bias=2, alpha=1e-05, beta=0.75",
    "nn.l2_normalize": "data, eps, axis=()",
    "nn.nll_loss": "predictions, targets, weights, reduction='mean', ignore_index=-100",
    "nn.dilate": "x, strides, dilation_value=0.0",
    "nn.space_to_batch_nd": "data, block_shape, paddings, pad_value=0",
    "nn.mirror_pad": "data, pad_width, mode='SYMMETRIC'",
    "nn.adaptive_avg_pool1d": "data, output_size=(), layout='NCW', out_layout=''",
    "nn.conv1d_transpose": _TRANSPOSED.format(one="(1,)", zero="(0,)", layout="NCW", kernel="IOW"),
    "nn.conv2d_transpose": _TRANSPOSED.format(one="(1, 1)", zero="(0, 0)", layout="NCHW", kernel="IOHW"),
    "nn.conv3d_transpose": _TRANSPOSED.format(one="(1, 1, 1)", zero="(0, 0, 0)", layout="NCDHW", kernel="IODHW"),
    "nn.max_pool1d": _POOL.format(one="(1,)", zero="(0,)", layout="NCW"),
    "nn.max_pool2d": _POOL.format(one="(1, 1)", zero="(0, 0)", layout="NCHW"),
    "nn.max_pool3d": _POOL.format(one="(1, 1, 1)", zero="(0, 0, 0)", layout="NCDHW"),
    "nn.avg_pool1d": _POOL.format(one="(1,)", zero="(0,)", layout="NCW") + ", count_include_pad=False",
    "nn.avg_pool2d": _POOL.format(one="(1, 1)", zero="(0, 0)", layout="NCHW") + ", count_include_pad=False",
    "nn.avg_pool3d": _POOL.format(one="(1, 1, 1)", zero="(0, 0, 0)", layout="NCDHW") + ", count_include_pad=False",
    "nn.deformable_conv2d": (
        "data, offset, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), deformable_groups=1, groups=1, "
        "channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='OIHW', out_layout='', out_dtype=''"
    ),
    "image.resize1d": _RESIZE.format(layout="NCW"),
    "image.resize3d": _RESIZE.format(layout="NCDHW"),
    "vision.roi_align": "data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout='NCHW', mode='avg'",
    "vision.multibox_prior": (
        "data, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False"
    ),
    "qnn.add": _QNN_BINARY,
    "qnn.mul": _QNN_BINARY,
    "qnn.subtract": _QNN_BINARY,
    "qnn.quantize": "data, output_scale, output_zero_point, axis=-1, out_dtype='int8'",
    "qnn.dequantize": "data, input_scale, input_zero_point, axis=-1, out_dtype='float32'",
    "qnn.requantize": (
        "data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, rounding='None', "
        "compute_dtype='None', out_dtype='int8'"
    ),
    "qnn.dense": (
        "data, weight, input_zero_point, weight_zero_point, input_scale, weight_scale, units, out_dtype='int32'"
    ),
    "qnn.batch_matmul": "x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32'",
    "qnn.conv2d": (
        "data, weight, input_zero_point, weight_zero_point, input_scale, weight_scale, kernel_size, channels, "
        "strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, data_layout='NCHW', kernel_layout='OIHW', "
        "out_layout='', out_dtype='int32'"
    ),
    "qnn.conv2d_transpose": (
        "data, weight, input_zero_point, weight_zero_point, input_scale, weight_scale, strides=(1, 1), padding=(0, 0), "
        "dilation=(1, 1), groups=1, channels=None, kernel_size=None, data_layout='NCHW', kernel_layout='IOHW', "
        "out_layout='', output_padding=(0, 0), out_dtype='int32'"
    ),
}

#: How many results, where there are several; ``None`` is no bound of its own.
RESULTS = {
    "nn.batch_norm": 3,
    "vision.multibox_transform_loc": 2,
    "vision.get_valid_counts": 3,
    "random.uniform": 2,
    "random.normal": 2,
    "random.multinomial": 2,
    "random.threefry_split": 2,
    "random.threefry_generate": 2,
    "sparse_reshape": 2,
    "sparse_fill_empty_rows": 3,
    "nn.sparse_transpose": 3,
}

#: TVM's names of operators' functions where they differ.
NAMES = {"contrib_reverse_reshape": "reverse_reshape", "trunc_divide": "trunc_divide"}
