//! The attributes of operators, by attribute node, in the order in which they are declared and saved.

use relaxide_ffi::DataType;

use super::schema::Default::{Absent, Bool, DType, Float, Floats, Int, Ints, Null, Required, Str, Void};
use super::schema::{AttrsDef, Field, Kind};

const fn field(name: &'static str, kind: Kind, default: super::schema::Default) -> Field {
    Field { name, kind, default, boxed: false }
}

const fn boxed(name: &'static str, kind: Kind, default: super::schema::Default) -> Field {
    Field { name, kind, default, boxed: true }
}

/// Every attribute node; its type key is `relay.attrs.NAMEAttrs`.
#[rustfmt::skip]
pub(super) static NODES: &[AttrsDef] = &[
    AttrsDef { name: "AllClassNonMaximumSuppression", fields: &[
        field("output_format", Kind::Str, Str("onnx")),
    ] },
    AttrsDef { name: "DFT", fields: &[
        field("inverse", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Dilate", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        field("dilation_value", Kind::Float, Float(0.0)),
    ] },
    AttrsDef { name: "GetValidCounts", fields: &[
        boxed("score_threshold", Kind::Float, Null),
        field("id_index", Kind::Int, Int(0)),
        field("score_index", Kind::Int, Int(1)),
    ] },
    AttrsDef { name: "NonMaximumSuppression", fields: &[
        boxed("max_output_size", Kind::Int, Absent),
        field("force_suppress", Kind::Bool, Bool(false)),
        field("top_k", Kind::Int, Int(-1)),
        field("coord_start", Kind::Int, Int(2)),
        field("score_index", Kind::Int, Int(1)),
        field("id_index", Kind::Int, Int(0)),
        field("return_indices", Kind::Bool, Bool(true)),
        field("invalid_to_bottom", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "RegularNonMaximumSuppression", fields: &[
        field("max_detections_per_class", Kind::Int, Required),
        field("max_detections", Kind::Int, Required),
        field("num_classes", Kind::Int, Required),
        field("iou_threshold", Kind::Float, Required),
        field("score_threshold", Kind::Float, Required),
    ] },
    AttrsDef { name: "Proposal", fields: &[
        boxed("scales", Kind::Floats, Floats(&[4.0, 8.0, 16.0, 32.0])),
        boxed("ratios", Kind::Floats, Floats(&[0.5, 1.0, 2.0])),
        field("feature_stride", Kind::Int, Int(16)),
        field("threshold", Kind::Float, Float(0.7)),
        field("rpn_pre_nms_top_n", Kind::Int, Int(6000)),
        field("rpn_post_nms_top_n", Kind::Int, Int(300)),
        field("rpn_min_size", Kind::Int, Int(16)),
        field("iou_loss", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "ROIAlign", fields: &[
        boxed("pooled_size", Kind::Ints, Required),
        field("spatial_scale", Kind::Float, Required),
        field("sample_ratio", Kind::Int, Int(-1)),
        field("layout", Kind::Str, Str("NCHW")),
        field("mode", Kind::Str, Str("avg")),
    ] },
    AttrsDef { name: "ROIPool", fields: &[
        boxed("pooled_size", Kind::Ints, Required),
        field("spatial_scale", Kind::Float, Required),
        field("layout", Kind::Str, Str("NCHW")),
    ] },
    AttrsDef { name: "Scanop", fields: &[
        boxed("axis", Kind::Int, Absent),
        field("dtype", Kind::DType, Void),
        boxed("exclusive", Kind::Bool, Null),
    ] },
    AttrsDef { name: "ScatterElements", fields: &[
        boxed("axis", Kind::Int, Int(0)),
        boxed("reduction", Kind::Str, Str("update")),
    ] },
    AttrsDef { name: "ScatterND", fields: &[
        boxed("mode", Kind::Str, Str("update")),
    ] },
    AttrsDef { name: "Stft", fields: &[
        field("n_fft", Kind::Int, Int(-1)),
        field("hop_length", Kind::Int, Int(-1)),
        field("win_length", Kind::Int, Int(-1)),
        field("normalized", Kind::Bool, Bool(false)),
        field("onesided", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "Trilu", fields: &[
        field("upper", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "Unique", fields: &[
        field("sorted", Kind::Bool, Bool(true)),
        field("return_counts", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AdaptivePool1D", fields: &[
        boxed("output_size", Kind::Ints, Ints(&[])),
        field("layout", Kind::Str, Str("NCW")),
        boxed("out_layout", Kind::Str, Str("")),
    ] },
    AttrsDef { name: "AdaptivePool2D", fields: &[
        boxed("output_size", Kind::Ints, Ints(&[])),
        field("layout", Kind::Str, Str("NCHW")),
        boxed("out_layout", Kind::Str, Str("")),
    ] },
    AttrsDef { name: "AdaptivePool3D", fields: &[
        boxed("output_size", Kind::Ints, Ints(&[])),
        field("layout", Kind::Str, Str("NCDHW")),
        boxed("out_layout", Kind::Str, Str("")),
    ] },
    AttrsDef { name: "AffineGrid", fields: &[
        boxed("target_shape", Kind::Ints, Required),
    ] },
    AttrsDef { name: "AllocStorage", fields: &[
        field("dtype", Kind::DType, DType(DataType::float(32))),
        boxed("virtual_device", Kind::Any, Required),
    ] },
    AttrsDef { name: "AllocTensor", fields: &[
        field("dtype", Kind::DType, DType(DataType::float(32))),
        boxed("const_shape", Kind::Any, Null),
        boxed("assert_shape", Kind::Ints, Null),
    ] },
    AttrsDef { name: "Arange", fields: &[
        boxed("start", Kind::Any, Null),
        boxed("stop", Kind::Any, Null),
        boxed("step", Kind::Any, Null),
        field("dtype", Kind::DType, Required),
    ] },
    AttrsDef { name: "ArgReduce", fields: &[
        boxed("axis", Kind::Ints, Absent),
        field("keepdims", Kind::Bool, Bool(false)),
        field("select_last_index", Kind::Bool, Bool(false)),
        field("exclude", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Argsort", fields: &[
        field("axis", Kind::Int, Int(-1)),
        field("is_ascend", Kind::Bool, Bool(true)),
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "AutoSchedulerLayoutTransform", fields: &[
        field("src_layout", Kind::Str, Required),
        field("dst_layout", Kind::Str, Required),
    ] },
    AttrsDef { name: "AvgPool1D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1])),
        boxed("dilation", Kind::Ints, Ints(&[1])),
        boxed("padding", Kind::Ints, Ints(&[0])),
        field("layout", Kind::Str, Str("NCW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
        field("count_include_pad", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AvgPool2D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("layout", Kind::Str, Str("NCHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
        field("count_include_pad", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AvgPool3D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0, 0])),
        field("layout", Kind::Str, Str("NCDHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
        field("count_include_pad", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "BatchMatmul", fields: &[
        field("out_dtype", Kind::DType, Void),
        field("transpose_a", Kind::Bool, Bool(false)),
        field("transpose_b", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "BatchNorm", fields: &[
        field("axis", Kind::Int, Int(1)),
        field("epsilon", Kind::Float, Float(1e-5)),
        field("center", Kind::Bool, Bool(true)),
        field("scale", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BatchToSpaceND", fields: &[
        boxed("block_shape", Kind::Ints, Ints(&[1, 1])),
        boxed("crops", Kind::Any, Required),
    ] },
    AttrsDef { name: "BiasAdd", fields: &[
        field("axis", Kind::Int, Int(1)),
    ] },
    AttrsDef { name: "BinaryConv2D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("kernel_size", Kind::Ints, Ints(&[3, 3])),
        boxed("channels", Kind::Int, Absent),
        field("activation_bits", Kind::Int, Int(1)),
        field("weight_bits", Kind::Int, Int(1)),
        field("data_layout", Kind::Str, Str("NCHW")),
        field("kernel_layout", Kind::Str, Str("OIHW")),
        field("pack_dtype", Kind::DType, Void),
        field("out_dtype", Kind::DType, Void),
        field("unipolar", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BinaryDense", fields: &[
        boxed("units", Kind::Int, Required),
        field("data_bits", Kind::Int, Int(1)),
        field("weight_bits", Kind::Int, Int(1)),
        field("pack_dtype", Kind::DType, Void),
        field("out_dtype", Kind::DType, Void),
        field("unipolar", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BitPack", fields: &[
        field("bits", Kind::Int, Int(1)),
        field("pack_axis", Kind::Int, Int(1)),
        field("bit_axis", Kind::Int, Int(-1)),
        field("pack_type", Kind::DType, Void),
        field("name", Kind::Str, Str("BitPack")),
    ] },
    AttrsDef { name: "Broadcast", fields: &[
        field("lhs_axis", Kind::Int, Int(-1)),
        field("rhs_axis", Kind::Int, Int(-1)),
    ] },
    AttrsDef { name: "CallLowered", fields: &[
        boxed("metadata", Kind::Any, Absent),
    ] },
    AttrsDef { name: "Cast", fields: &[
        field("dtype", Kind::DType, Required),
    ] },
    AttrsDef { name: "Clip", fields: &[
        field("a_min", Kind::Float, Required),
        field("a_max", Kind::Float, Required),
    ] },
    AttrsDef { name: "Concatenate", fields: &[
        field("axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "Conv1D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1])),
        field("groups", Kind::Int, Int(1)),
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("data_layout", Kind::Str, Str("NCW")),
        boxed("kernel_layout", Kind::Str, Str("OIW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Conv1DTranspose", fields: &[
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("strides", Kind::Ints, Ints(&[1])),
        boxed("output_padding", Kind::Ints, Ints(&[0])),
        boxed("padding", Kind::Ints, Ints(&[0])),
        boxed("dilation", Kind::Ints, Ints(&[1])),
        field("groups", Kind::Int, Int(1)),
        field("data_layout", Kind::Str, Str("NCW")),
        field("kernel_layout", Kind::Str, Str("IOW")),
        field("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Conv2D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1])),
        field("groups", Kind::Int, Int(1)),
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("data_layout", Kind::Str, Str("NCHW")),
        boxed("kernel_layout", Kind::Str, Str("OIHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Conv2DTranspose", fields: &[
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("output_padding", Kind::Ints, Ints(&[0, 0])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1])),
        field("groups", Kind::Int, Int(1)),
        field("data_layout", Kind::Str, Str("NCHW")),
        field("kernel_layout", Kind::Str, Str("IOHW")),
        field("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Conv3D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1, 1])),
        field("groups", Kind::Int, Int(1)),
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("data_layout", Kind::Str, Str("NCDHW")),
        boxed("kernel_layout", Kind::Str, Str("OIDHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Conv3DTranspose", fields: &[
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        boxed("strides", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("output_padding", Kind::Ints, Ints(&[0, 0, 0])),
        boxed("padding", Kind::Ints, Ints(&[0, 0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1, 1])),
        field("groups", Kind::Int, Int(1)),
        boxed("data_layout", Kind::Str, Str("NCDHW")),
        boxed("kernel_layout", Kind::Str, Str("IODHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "ConvGemmWeightTransform", fields: &[
        field("tile_N", Kind::Int, Required),
        field("tile_K", Kind::Int, Required),
    ] },
    AttrsDef { name: "Correlation", fields: &[
        field("kernel_size", Kind::Int, Int(1)),
        field("max_displacement", Kind::Int, Int(1)),
        field("stride1", Kind::Int, Int(1)),
        field("stride2", Kind::Int, Int(1)),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        field("is_multiply", Kind::Bool, Bool(true)),
        boxed("layout", Kind::Str, Str("NCHW")),
    ] },
    AttrsDef { name: "CropAndResize", fields: &[
        boxed("crop_size", Kind::Ints, Absent),
        field("layout", Kind::Str, Str("NCHW")),
        field("method", Kind::Str, Str("bilinear")),
        field("extrapolation_value", Kind::Float, Float(0.0)),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Debug", fields: &[
        boxed("debug_func", Kind::Any, Required),
    ] },
    AttrsDef { name: "DeformableConv2D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1])),
        field("deformable_groups", Kind::Int, Int(1)),
        field("groups", Kind::Int, Int(1)),
        boxed("channels", Kind::Int, Absent),
        boxed("kernel_size", Kind::Ints, Absent),
        field("data_layout", Kind::Str, Str("NCHW")),
        field("kernel_layout", Kind::Str, Str("OIHW")),
        field("out_layout", Kind::Str, Str("")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Dense", fields: &[
        boxed("units", Kind::Int, Required),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "DensePack", fields: &[
        boxed("units", Kind::Int, Required),
        field("out_dtype", Kind::DType, Void),
        boxed("weight_layout", Kind::Str, Str("NC")),
    ] },
    AttrsDef { name: "Dequantize", fields: &[
        field("out_dtype", Kind::DType, Required),
        field("axis", Kind::Int, Int(-1)),
    ] },
    AttrsDef { name: "DeviceCopy", fields: &[
        boxed("src_virtual_device", Kind::Any, Required),
        boxed("dst_virtual_device", Kind::Any, Required),
    ] },
    AttrsDef { name: "Dict", fields: &[
    ] },
    AttrsDef { name: "Dilation2D", fields: &[
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("dilations", Kind::Ints, Ints(&[1, 1])),
        field("data_layout", Kind::Str, Str("NCHW")),
        field("kernel_layout", Kind::Str, Str("IHW")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Dropout", fields: &[
        field("rate", Kind::Float, Float(0.5)),
    ] },
    AttrsDef { name: "Einsum", fields: &[
        boxed("equation", Kind::Str, Required),
    ] },
    AttrsDef { name: "ExpandDims", fields: &[
        field("axis", Kind::Int, Required),
        field("num_newaxis", Kind::Int, Int(1)),
    ] },
    AttrsDef { name: "FIFOBuffer", fields: &[
        field("axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "FixedPointMultiply", fields: &[
        field("multiplier", Kind::Int, Required),
        field("shift", Kind::Int, Required),
    ] },
    AttrsDef { name: "FixedPointMultiplyPerAxis", fields: &[
        field("is_lshift_required", Kind::Bool, Bool(false)),
        field("is_rshift_required", Kind::Bool, Bool(false)),
        boxed("axes", Kind::Ints, Required),
    ] },
    AttrsDef { name: "Gather", fields: &[
        boxed("axis", Kind::Int, Absent),
    ] },
    AttrsDef { name: "GatherND", fields: &[
        boxed("batch_dims", Kind::Int, Int(0)),
        boxed("index_rank", Kind::Int, Absent),
    ] },
    AttrsDef { name: "GlobalPool2D", fields: &[
        boxed("layout", Kind::Str, Str("NCHW")),
        boxed("out_layout", Kind::Str, Str("")),
    ] },
    AttrsDef { name: "GridSample", fields: &[
        boxed("method", Kind::Str, Str("bilinear")),
        boxed("layout", Kind::Str, Str("NCHW")),
        boxed("padding_mode", Kind::Str, Str("zeros")),
        field("align_corners", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "GroupNorm", fields: &[
        field("num_groups", Kind::Int, Int(0)),
        field("axis", Kind::Int, Int(1)),
        field("epsilon", Kind::Float, Float(1e-5)),
        field("center", Kind::Bool, Bool(true)),
        field("scale", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "InitOp", fields: &[
        boxed("shape", Kind::Ints, Null),
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "InstanceNorm", fields: &[
        field("axis", Kind::Int, Int(1)),
        field("epsilon", Kind::Float, Float(1e-5)),
        field("center", Kind::Bool, Bool(true)),
        field("scale", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "L2Normalize", fields: &[
        field("eps", Kind::Float, Required),
        boxed("axis", Kind::Ints, Required),
    ] },
    AttrsDef { name: "LRN", fields: &[
        field("size", Kind::Int, Int(5)),
        field("axis", Kind::Int, Int(1)),
        field("bias", Kind::Float, Float(2.0)),
        field("alpha", Kind::Float, Float(0.0001)),
        field("beta", Kind::Float, Float(0.75)),
    ] },
    AttrsDef { name: "LayerNorm", fields: &[
        field("axis", Kind::Int, Int(-1)),
        field("epsilon", Kind::Float, Float(1e-5)),
        field("center", Kind::Bool, Bool(true)),
        field("scale", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "LayoutTransform", fields: &[
        field("src_layout", Kind::Str, Required),
        field("dst_layout", Kind::Str, Required),
    ] },
    AttrsDef { name: "LeakyRelu", fields: &[
        field("alpha", Kind::Float, Float(0.25)),
    ] },
    AttrsDef { name: "Matmul", fields: &[
        boxed("units", Kind::Int, Required),
        field("out_dtype", Kind::DType, Void),
        field("transpose_a", Kind::Bool, Bool(false)),
        field("transpose_b", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MatrixSetDiag", fields: &[
        field("k1", Kind::Int, Int(0)),
        field("k2", Kind::Int, Int(0)),
        field("super_diag_right_align", Kind::Bool, Bool(true)),
        field("sub_diag_right_align", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool1D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1])),
        boxed("dilation", Kind::Ints, Ints(&[1])),
        boxed("padding", Kind::Ints, Ints(&[0])),
        field("layout", Kind::Str, Str("NCW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool2D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1, 1])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0])),
        boxed("layout", Kind::Str, Str("NCHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool3D", fields: &[
        boxed("pool_size", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("dilation", Kind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", Kind::Ints, Ints(&[0, 0, 0])),
        field("layout", Kind::Str, Str("NCDHW")),
        boxed("out_layout", Kind::Str, Str("")),
        field("ceil_mode", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Meshgrid", fields: &[
        field("indexing", Kind::Str, Str("ij")),
    ] },
    AttrsDef { name: "MetaRef", fields: &[
        boxed("node_type_key", Kind::Str, Required),
        field("node_index", Kind::Int, Required),
    ] },
    AttrsDef { name: "MetaScheduleLayoutTransform", fields: &[
        boxed("index_map", Kind::Any, Required),
    ] },
    AttrsDef { name: "MirrorPad", fields: &[
        field("mode", Kind::Str, Str("SYMMETRIC")),
        boxed("pad_width", Kind::Any, Required),
    ] },
    AttrsDef { name: "MultiBoxPrior", fields: &[
        boxed("sizes", Kind::Floats, Floats(&[1.0])),
        boxed("ratios", Kind::Floats, Floats(&[1.0])),
        boxed("steps", Kind::Floats, Floats(&[-1.0, -1.0])),
        boxed("offsets", Kind::Floats, Floats(&[0.5, 0.5])),
        field("clip", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MultiBoxTransformLoc", fields: &[
        field("clip", Kind::Bool, Bool(true)),
        field("threshold", Kind::Float, Float(0.01)),
        boxed("variances", Kind::Floats, Floats(&[0.1, 0.1, 0.2, 0.2])),
        field("keep_background", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Multinomial", fields: &[
        boxed("num_samples", Kind::Int, Int(1)),
    ] },
    AttrsDef { name: "NLLLoss", fields: &[
        field("reduction", Kind::Str, Str("mean")),
        field("ignore_index", Kind::Int, Required),
    ] },
    AttrsDef { name: "NdarraySize", fields: &[
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Normal", fields: &[
        boxed("out_shape", Kind::Ints, Required),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "OnDevice", fields: &[
        boxed("virtual_device", Kind::Any, Absent),
        field("constrain_result", Kind::Bool, Bool(false)),
        field("constrain_body", Kind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "OneHot", fields: &[
        field("depth", Kind::Int, Int(1)),
        field("axis", Kind::Int, Int(-1)),
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "PRelu", fields: &[
        field("axis", Kind::Int, Int(1)),
    ] },
    AttrsDef { name: "Pad", fields: &[
        boxed("pad_width", Kind::Ints, Required),
        boxed("pad_mode", Kind::Str, Str("constant")),
    ] },
    AttrsDef { name: "Quantize", fields: &[
        field("out_dtype", Kind::DType, Required),
        field("axis", Kind::Int, Int(-1)),
    ] },
    AttrsDef { name: "Reduce", fields: &[
        boxed("axis", Kind::Ints, Absent),
        field("keepdims", Kind::Bool, Bool(false)),
        field("exclude", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Repeat", fields: &[
        boxed("repeats", Kind::Int, Required),
        boxed("axis", Kind::Int, Absent),
    ] },
    AttrsDef { name: "Requantize", fields: &[
        field("axis", Kind::Int, Int(-1)),
        field("rounding", Kind::Str, Str("None")),
        field("compute_dtype", Kind::Str, Str("None")),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Reshape", fields: &[
        boxed("newshape", Kind::Ints, Required),
        field("allowzero", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "ReshapeLike", fields: &[
        field("lhs_begin", Kind::Int, Int(0)),
        boxed("lhs_end", Kind::Int, Absent),
        field("rhs_begin", Kind::Int, Int(0)),
        boxed("rhs_end", Kind::Int, Absent),
    ] },
    AttrsDef { name: "ReshapeTensor", fields: &[
        boxed("newshape", Kind::Ints, Required),
    ] },
    AttrsDef { name: "Resize1D", fields: &[
        boxed("size", Kind::Ints, Absent),
        boxed("roi", Kind::Floats, Absent),
        field("layout", Kind::Str, Str("NCW")),
        field("method", Kind::Str, Str("linear")),
        field("coordinate_transformation_mode", Kind::Str, Str("half_pixel")),
        field("rounding_method", Kind::Str, Str("round")),
        field("cubic_alpha", Kind::Float, Float(-0.5)),
        field("cubic_exclude", Kind::Int, Int(0)),
        field("extrapolation_value", Kind::Float, Float(0.0)),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Resize", fields: &[
        boxed("size", Kind::Ints, Absent),
        field("layout", Kind::Str, Str("NCHW")),
        field("method", Kind::Str, Str("bilinear")),
        field("align_corners", Kind::Bool, Absent),
        field("coordinate_transformation_mode", Kind::Str, Str("half_pixel")),
        field("rounding_method", Kind::Str, Str("")),
        field("bicubic_alpha", Kind::Float, Float(-0.5)),
        field("bicubic_exclude", Kind::Int, Int(0)),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Resize2D", fields: &[
        boxed("size", Kind::Ints, Absent),
        boxed("roi", Kind::Floats, Absent),
        field("layout", Kind::Str, Str("NCHW")),
        field("method", Kind::Str, Str("linear")),
        field("coordinate_transformation_mode", Kind::Str, Str("half_pixel")),
        field("rounding_method", Kind::Str, Str("round")),
        field("cubic_alpha", Kind::Float, Float(-0.5)),
        field("cubic_exclude", Kind::Int, Int(0)),
        field("extrapolation_value", Kind::Float, Float(0.0)),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Resize3D", fields: &[
        boxed("size", Kind::Ints, Absent),
        boxed("roi", Kind::Floats, Absent),
        field("layout", Kind::Str, Str("NCDHW")),
        field("method", Kind::Str, Str("linear")),
        field("coordinate_transformation_mode", Kind::Str, Str("half_pixel")),
        field("rounding_method", Kind::Str, Str("round")),
        field("cubic_alpha", Kind::Float, Float(-0.5)),
        field("cubic_exclude", Kind::Int, Int(0)),
        field("extrapolation_value", Kind::Float, Float(0.0)),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Reverse", fields: &[
        boxed("axis", Kind::Int, Absent),
    ] },
    AttrsDef { name: "ReverseSequence", fields: &[
        boxed("seq_axis", Kind::Int, Int(1)),
        boxed("batch_axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "SearchSorted", fields: &[
        field("right", Kind::Bool, Bool(false)),
        field("dtype", Kind::DType, DType(DataType::int(32))),
    ] },
    AttrsDef { name: "SequenceMask", fields: &[
        field("mask_value", Kind::Float, Float(0.0)),
        field("axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "ShapeOf", fields: &[
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "SimulatedQuantize", fields: &[
        field("kind", Kind::Int, Required),
        field("sign", Kind::Bool, Bool(true)),
        field("rounding", Kind::Str, Str("round")),
    ] },
    AttrsDef { name: "SliceLike", fields: &[
        boxed("axes", Kind::Ints, Required),
    ] },
    AttrsDef { name: "SlidingWindow", fields: &[
        field("axis", Kind::Int, Required),
        boxed("window_shape", Kind::Ints, Required),
        boxed("strides", Kind::Ints, Required),
    ] },
    AttrsDef { name: "Softmax", fields: &[
        field("axis", Kind::Int, Int(-1)),
    ] },
    AttrsDef { name: "SpaceToBatchND", fields: &[
        boxed("block_shape", Kind::Ints, Ints(&[1, 1])),
        boxed("paddings", Kind::Any, Required),
        field("pad_value", Kind::Float, Float(0.0)),
    ] },
    AttrsDef { name: "SparseConv2D", fields: &[
        field("layout", Kind::Str, Str("NHWC")),
        boxed("kernel_size", Kind::Ints, Ints(&[1, 1])),
    ] },
    AttrsDef { name: "SparseDense", fields: &[
        field("sparse_lhs", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "SparseToDense", fields: &[
        boxed("output_shape", Kind::Ints, Required),
    ] },
    AttrsDef { name: "SparseTranspose", fields: &[
    ] },
    AttrsDef { name: "Split", fields: &[
        boxed("indices_or_sections", Kind::Any, Required),
        field("axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "Squeeze", fields: &[
        boxed("axis", Kind::Ints, Absent),
    ] },
    AttrsDef { name: "Stack", fields: &[
        boxed("axis", Kind::Int, Int(0)),
    ] },
    AttrsDef { name: "StridedSlice", fields: &[
        boxed("begin", Kind::Ints, Null),
        boxed("end", Kind::Ints, Null),
        boxed("strides", Kind::Ints, Null),
        boxed("slice_mode", Kind::Str, Str("end")),
        boxed("axes", Kind::Ints, Null),
    ] },
    AttrsDef { name: "SubPixel", fields: &[
        field("block_size", Kind::Int, Int(1)),
        field("layout", Kind::Str, Str("NCHW")),
        field("mode", Kind::Str, Str("DCR")),
    ] },
    AttrsDef { name: "Take", fields: &[
        boxed("batch_dims", Kind::Int, Int(0)),
        boxed("axis", Kind::Int, Absent),
        boxed("mode", Kind::Str, Str("clip")),
    ] },
    AttrsDef { name: "ThreefryGenerate", fields: &[
        boxed("out_shape", Kind::Ints, Required),
    ] },
    AttrsDef { name: "Tile", fields: &[
        boxed("reps", Kind::Ints, Required),
    ] },
    AttrsDef { name: "Topk", fields: &[
        boxed("k", Kind::Int, Null),
        field("axis", Kind::Int, Int(-1)),
        field("ret_type", Kind::Str, Str("both")),
        field("is_ascend", Kind::Bool, Bool(false)),
        field("dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "Transpose", fields: &[
        boxed("axes", Kind::Ints, Null),
    ] },
    AttrsDef { name: "Uniform", fields: &[
        boxed("out_shape", Kind::Ints, Required),
        field("out_dtype", Kind::DType, Void),
    ] },
    AttrsDef { name: "UpSampling", fields: &[
        field("scale_h", Kind::Float, Required),
        field("scale_w", Kind::Float, Required),
        boxed("layout", Kind::Str, Str("NCHW")),
        boxed("method", Kind::Str, Str("")),
        field("align_corners", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "UpSampling3D", fields: &[
        field("scale_d", Kind::Float, Required),
        field("scale_h", Kind::Float, Required),
        field("scale_w", Kind::Float, Required),
        field("layout", Kind::Str, Str("NCDHW")),
        field("method", Kind::Str, Str("")),
        field("coordinate_transformation_mode", Kind::Str, Str("half_pixel")),
    ] },
    AttrsDef { name: "Variance", fields: &[
        boxed("axis", Kind::Ints, Absent),
        field("keepdims", Kind::Bool, Bool(false)),
        field("exclude", Kind::Bool, Bool(false)),
        field("unbiased", Kind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "YoloReorg", fields: &[
        boxed("stride", Kind::Int, Int(1)),
    ] },
];
