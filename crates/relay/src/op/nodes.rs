//! The attributes of operators, by attribute node, in the order in which they are declared and saved.

use relaxide_ffi::DataType;

use super::schema::Default::{Absent, Bool, DType, Float, Floats, Int, Ints, Null, Required, Str, Void};
use super::schema::{AttrKind, AttrsDef, Field};

const fn field(name: &'static str, kind: AttrKind, default: super::schema::Default) -> Field {
    Field { name, kind, default, boxed: false }
}

const fn boxed(name: &'static str, kind: AttrKind, default: super::schema::Default) -> Field {
    Field { name, kind, default, boxed: true }
}

/// Every attribute node; its type key is `relay.attrs.NAMEAttrs`.
#[rustfmt::skip]
pub(super) static NODES: &[AttrsDef] = &[
    AttrsDef { name: "AllClassNonMaximumSuppression", fields: &[
        field("output_format", AttrKind::Str, Str("onnx")),
    ] },
    AttrsDef { name: "DFT", fields: &[
        field("inverse", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Dilate", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        field("dilation_value", AttrKind::Float, Float(0.0)),
    ] },
    AttrsDef { name: "GetValidCounts", fields: &[
        boxed("score_threshold", AttrKind::Float, Null),
        field("id_index", AttrKind::Int, Int(0)),
        field("score_index", AttrKind::Int, Int(1)),
    ] },
    AttrsDef { name: "NonMaximumSuppression", fields: &[
        boxed("max_output_size", AttrKind::Int, Absent),
        field("force_suppress", AttrKind::Bool, Bool(false)),
        field("top_k", AttrKind::Int, Int(-1)),
        field("coord_start", AttrKind::Int, Int(2)),
        field("score_index", AttrKind::Int, Int(1)),
        field("id_index", AttrKind::Int, Int(0)),
        field("return_indices", AttrKind::Bool, Bool(true)),
        field("invalid_to_bottom", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "RegularNonMaximumSuppression", fields: &[
        field("max_detections_per_class", AttrKind::Int, Required),
        field("max_detections", AttrKind::Int, Required),
        field("num_classes", AttrKind::Int, Required),
        field("iou_threshold", AttrKind::Float, Required),
        field("score_threshold", AttrKind::Float, Required),
    ] },
    AttrsDef { name: "Proposal", fields: &[
        boxed("scales", AttrKind::Floats, Floats(&[4.0, 8.0, 16.0, 32.0])),
        boxed("ratios", AttrKind::Floats, Floats(&[0.5, 1.0, 2.0])),
        field("feature_stride", AttrKind::Int, Int(16)),
        field("threshold", AttrKind::Float, Float(0.7)),
        field("rpn_pre_nms_top_n", AttrKind::Int, Int(6000)),
        field("rpn_post_nms_top_n", AttrKind::Int, Int(300)),
        field("rpn_min_size", AttrKind::Int, Int(16)),
        field("iou_loss", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "ROIAlign", fields: &[
        boxed("pooled_size", AttrKind::Ints, Required),
        field("spatial_scale", AttrKind::Float, Required),
        field("sample_ratio", AttrKind::Int, Int(-1)),
        field("layout", AttrKind::Str, Str("NCHW")),
        field("mode", AttrKind::Str, Str("avg")),
    ] },
    AttrsDef { name: "ROIPool", fields: &[
        boxed("pooled_size", AttrKind::Ints, Required),
        field("spatial_scale", AttrKind::Float, Required),
        field("layout", AttrKind::Str, Str("NCHW")),
    ] },
    AttrsDef { name: "Scanop", fields: &[
        boxed("axis", AttrKind::Int, Absent),
        field("dtype", AttrKind::DType, Void),
        boxed("exclusive", AttrKind::Bool, Null),
    ] },
    AttrsDef { name: "ScatterElements", fields: &[
        boxed("axis", AttrKind::Int, Int(0)),
        boxed("reduction", AttrKind::Str, Str("update")),
    ] },
    AttrsDef { name: "ScatterND", fields: &[
        boxed("mode", AttrKind::Str, Str("update")),
    ] },
    AttrsDef { name: "Stft", fields: &[
        field("n_fft", AttrKind::Int, Int(-1)),
        field("hop_length", AttrKind::Int, Int(-1)),
        field("win_length", AttrKind::Int, Int(-1)),
        field("normalized", AttrKind::Bool, Bool(false)),
        field("onesided", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "Trilu", fields: &[
        field("upper", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "Unique", fields: &[
        field("sorted", AttrKind::Bool, Bool(true)),
        field("return_counts", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AdaptivePool1D", fields: &[
        boxed("output_size", AttrKind::Ints, Ints(&[])),
        field("layout", AttrKind::Str, Str("NCW")),
        boxed("out_layout", AttrKind::Str, Str("")),
    ] },
    AttrsDef { name: "AdaptivePool2D", fields: &[
        boxed("output_size", AttrKind::Ints, Ints(&[])),
        field("layout", AttrKind::Str, Str("NCHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
    ] },
    AttrsDef { name: "AdaptivePool3D", fields: &[
        boxed("output_size", AttrKind::Ints, Ints(&[])),
        field("layout", AttrKind::Str, Str("NCDHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
    ] },
    AttrsDef { name: "AffineGrid", fields: &[
        boxed("target_shape", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "AllocStorage", fields: &[
        field("dtype", AttrKind::DType, DType(DataType::float(32))),
        boxed("virtual_device", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "AllocTensor", fields: &[
        field("dtype", AttrKind::DType, DType(DataType::float(32))),
        boxed("const_shape", AttrKind::Any, Null),
        boxed("assert_shape", AttrKind::Ints, Null),
    ] },
    AttrsDef { name: "Arange", fields: &[
        boxed("start", AttrKind::Any, Null),
        boxed("stop", AttrKind::Any, Null),
        boxed("step", AttrKind::Any, Null),
        field("dtype", AttrKind::DType, Required),
    ] },
    AttrsDef { name: "ArgReduce", fields: &[
        boxed("axis", AttrKind::Ints, Absent),
        field("keepdims", AttrKind::Bool, Bool(false)),
        field("select_last_index", AttrKind::Bool, Bool(false)),
        field("exclude", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Argsort", fields: &[
        field("axis", AttrKind::Int, Int(-1)),
        field("is_ascend", AttrKind::Bool, Bool(true)),
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "AutoSchedulerLayoutTransform", fields: &[
        field("src_layout", AttrKind::Str, Required),
        field("dst_layout", AttrKind::Str, Required),
    ] },
    AttrsDef { name: "AvgPool1D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1])),
        boxed("padding", AttrKind::Ints, Ints(&[0])),
        field("layout", AttrKind::Str, Str("NCW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
        field("count_include_pad", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AvgPool2D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("layout", AttrKind::Str, Str("NCHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
        field("count_include_pad", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "AvgPool3D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0, 0])),
        field("layout", AttrKind::Str, Str("NCDHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
        field("count_include_pad", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "BatchMatmul", fields: &[
        field("out_dtype", AttrKind::DType, Void),
        field("transpose_a", AttrKind::Bool, Bool(false)),
        field("transpose_b", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "BatchNorm", fields: &[
        field("axis", AttrKind::Int, Int(1)),
        field("epsilon", AttrKind::Float, Float(1e-5)),
        field("center", AttrKind::Bool, Bool(true)),
        field("scale", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BatchToSpaceND", fields: &[
        boxed("block_shape", AttrKind::Ints, Ints(&[1, 1])),
        boxed("crops", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "BiasAdd", fields: &[
        field("axis", AttrKind::Int, Int(1)),
    ] },
    AttrsDef { name: "BinaryConv2D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("kernel_size", AttrKind::Ints, Ints(&[3, 3])),
        boxed("channels", AttrKind::Int, Absent),
        field("activation_bits", AttrKind::Int, Int(1)),
        field("weight_bits", AttrKind::Int, Int(1)),
        field("data_layout", AttrKind::Str, Str("NCHW")),
        field("kernel_layout", AttrKind::Str, Str("OIHW")),
        field("pack_dtype", AttrKind::DType, Void),
        field("out_dtype", AttrKind::DType, Void),
        field("unipolar", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BinaryDense", fields: &[
        boxed("units", AttrKind::Int, Required),
        field("data_bits", AttrKind::Int, Int(1)),
        field("weight_bits", AttrKind::Int, Int(1)),
        field("pack_dtype", AttrKind::DType, Void),
        field("out_dtype", AttrKind::DType, Void),
        field("unipolar", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "BitPack", fields: &[
        field("bits", AttrKind::Int, Int(1)),
        field("pack_axis", AttrKind::Int, Int(1)),
        field("bit_axis", AttrKind::Int, Int(-1)),
        field("pack_type", AttrKind::DType, Void),
        field("name", AttrKind::Str, Str("BitPack")),
    ] },
    AttrsDef { name: "Broadcast", fields: &[
        field("lhs_axis", AttrKind::Int, Int(-1)),
        field("rhs_axis", AttrKind::Int, Int(-1)),
    ] },
    AttrsDef { name: "CallLowered", fields: &[
        boxed("metadata", AttrKind::Any, Absent),
    ] },
    AttrsDef { name: "Cast", fields: &[
        field("dtype", AttrKind::DType, Required),
    ] },
    AttrsDef { name: "Clip", fields: &[
        field("a_min", AttrKind::Float, Required),
        field("a_max", AttrKind::Float, Required),
    ] },
    AttrsDef { name: "Concatenate", fields: &[
        field("axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "Conv1D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1])),
        field("groups", AttrKind::Int, Int(1)),
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("data_layout", AttrKind::Str, Str("NCW")),
        boxed("kernel_layout", AttrKind::Str, Str("OIW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Conv1DTranspose", fields: &[
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("strides", AttrKind::Ints, Ints(&[1])),
        boxed("output_padding", AttrKind::Ints, Ints(&[0])),
        boxed("padding", AttrKind::Ints, Ints(&[0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1])),
        field("groups", AttrKind::Int, Int(1)),
        field("data_layout", AttrKind::Str, Str("NCW")),
        field("kernel_layout", AttrKind::Str, Str("IOW")),
        field("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Conv2D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1])),
        field("groups", AttrKind::Int, Int(1)),
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("data_layout", AttrKind::Str, Str("NCHW")),
        boxed("kernel_layout", AttrKind::Str, Str("OIHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Conv2DTranspose", fields: &[
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("output_padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1])),
        field("groups", AttrKind::Int, Int(1)),
        field("data_layout", AttrKind::Str, Str("NCHW")),
        field("kernel_layout", AttrKind::Str, Str("IOHW")),
        field("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Conv3D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1, 1])),
        field("groups", AttrKind::Int, Int(1)),
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("data_layout", AttrKind::Str, Str("NCDHW")),
        boxed("kernel_layout", AttrKind::Str, Str("OIDHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Conv3DTranspose", fields: &[
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("output_padding", AttrKind::Ints, Ints(&[0, 0, 0])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1, 1])),
        field("groups", AttrKind::Int, Int(1)),
        boxed("data_layout", AttrKind::Str, Str("NCDHW")),
        boxed("kernel_layout", AttrKind::Str, Str("IODHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "ConvGemmWeightTransform", fields: &[
        field("tile_N", AttrKind::Int, Required),
        field("tile_K", AttrKind::Int, Required),
    ] },
    AttrsDef { name: "Correlation", fields: &[
        field("kernel_size", AttrKind::Int, Int(1)),
        field("max_displacement", AttrKind::Int, Int(1)),
        field("stride1", AttrKind::Int, Int(1)),
        field("stride2", AttrKind::Int, Int(1)),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        field("is_multiply", AttrKind::Bool, Bool(true)),
        boxed("layout", AttrKind::Str, Str("NCHW")),
    ] },
    AttrsDef { name: "CropAndResize", fields: &[
        boxed("crop_size", AttrKind::Ints, Absent),
        field("layout", AttrKind::Str, Str("NCHW")),
        field("method", AttrKind::Str, Str("bilinear")),
        field("extrapolation_value", AttrKind::Float, Float(0.0)),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Debug", fields: &[
        boxed("debug_func", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "DeformableConv2D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1])),
        field("deformable_groups", AttrKind::Int, Int(1)),
        field("groups", AttrKind::Int, Int(1)),
        boxed("channels", AttrKind::Int, Absent),
        boxed("kernel_size", AttrKind::Ints, Absent),
        field("data_layout", AttrKind::Str, Str("NCHW")),
        field("kernel_layout", AttrKind::Str, Str("OIHW")),
        field("out_layout", AttrKind::Str, Str("")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Dense", fields: &[
        boxed("units", AttrKind::Int, Required),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "DensePack", fields: &[
        boxed("units", AttrKind::Int, Required),
        field("out_dtype", AttrKind::DType, Void),
        boxed("weight_layout", AttrKind::Str, Str("NC")),
    ] },
    AttrsDef { name: "Dequantize", fields: &[
        field("out_dtype", AttrKind::DType, Required),
        field("axis", AttrKind::Int, Int(-1)),
    ] },
    AttrsDef { name: "DeviceCopy", fields: &[
        boxed("src_virtual_device", AttrKind::Any, Required),
        boxed("dst_virtual_device", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "Dict", fields: &[
    ] },
    AttrsDef { name: "Dilation2D", fields: &[
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("dilations", AttrKind::Ints, Ints(&[1, 1])),
        field("data_layout", AttrKind::Str, Str("NCHW")),
        field("kernel_layout", AttrKind::Str, Str("IHW")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Dropout", fields: &[
        field("rate", AttrKind::Float, Float(0.5)),
    ] },
    AttrsDef { name: "Einsum", fields: &[
        boxed("equation", AttrKind::Str, Required),
    ] },
    AttrsDef { name: "ExpandDims", fields: &[
        field("axis", AttrKind::Int, Required),
        field("num_newaxis", AttrKind::Int, Int(1)),
    ] },
    AttrsDef { name: "FIFOBuffer", fields: &[
        field("axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "FixedPointMultiply", fields: &[
        field("multiplier", AttrKind::Int, Required),
        field("shift", AttrKind::Int, Required),
    ] },
    AttrsDef { name: "FixedPointMultiplyPerAxis", fields: &[
        field("is_lshift_required", AttrKind::Bool, Bool(false)),
        field("is_rshift_required", AttrKind::Bool, Bool(false)),
        boxed("axes", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "Gather", fields: &[
        boxed("axis", AttrKind::Int, Absent),
    ] },
    AttrsDef { name: "GatherND", fields: &[
        boxed("batch_dims", AttrKind::Int, Int(0)),
        boxed("index_rank", AttrKind::Int, Absent),
    ] },
    AttrsDef { name: "GlobalPool2D", fields: &[
        boxed("layout", AttrKind::Str, Str("NCHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
    ] },
    AttrsDef { name: "GridSample", fields: &[
        boxed("method", AttrKind::Str, Str("bilinear")),
        boxed("layout", AttrKind::Str, Str("NCHW")),
        boxed("padding_mode", AttrKind::Str, Str("zeros")),
        field("align_corners", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "GroupNorm", fields: &[
        field("num_groups", AttrKind::Int, Int(0)),
        field("axis", AttrKind::Int, Int(1)),
        field("epsilon", AttrKind::Float, Float(1e-5)),
        field("center", AttrKind::Bool, Bool(true)),
        field("scale", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "InitOp", fields: &[
        boxed("shape", AttrKind::Ints, Null),
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "InstanceNorm", fields: &[
        field("axis", AttrKind::Int, Int(1)),
        field("epsilon", AttrKind::Float, Float(1e-5)),
        field("center", AttrKind::Bool, Bool(true)),
        field("scale", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "L2Normalize", fields: &[
        field("eps", AttrKind::Float, Required),
        boxed("axis", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "LRN", fields: &[
        field("size", AttrKind::Int, Int(5)),
        field("axis", AttrKind::Int, Int(1)),
        field("bias", AttrKind::Float, Float(2.0)),
        field("alpha", AttrKind::Float, Float(0.0001)),
        field("beta", AttrKind::Float, Float(0.75)),
    ] },
    AttrsDef { name: "LayerNorm", fields: &[
        field("axis", AttrKind::Int, Int(-1)),
        field("epsilon", AttrKind::Float, Float(1e-5)),
        field("center", AttrKind::Bool, Bool(true)),
        field("scale", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "LayoutTransform", fields: &[
        field("src_layout", AttrKind::Str, Required),
        field("dst_layout", AttrKind::Str, Required),
    ] },
    AttrsDef { name: "LeakyRelu", fields: &[
        field("alpha", AttrKind::Float, Float(0.25)),
    ] },
    AttrsDef { name: "Matmul", fields: &[
        boxed("units", AttrKind::Int, Required),
        field("out_dtype", AttrKind::DType, Void),
        field("transpose_a", AttrKind::Bool, Bool(false)),
        field("transpose_b", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MatrixSetDiag", fields: &[
        field("k1", AttrKind::Int, Int(0)),
        field("k2", AttrKind::Int, Int(0)),
        field("super_diag_right_align", AttrKind::Bool, Bool(true)),
        field("sub_diag_right_align", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool1D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1])),
        boxed("padding", AttrKind::Ints, Ints(&[0])),
        field("layout", AttrKind::Str, Str("NCW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool2D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0])),
        boxed("layout", AttrKind::Str, Str("NCHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MaxPool3D", fields: &[
        boxed("pool_size", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("dilation", AttrKind::Ints, Ints(&[1, 1, 1])),
        boxed("padding", AttrKind::Ints, Ints(&[0, 0, 0])),
        field("layout", AttrKind::Str, Str("NCDHW")),
        boxed("out_layout", AttrKind::Str, Str("")),
        field("ceil_mode", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Meshgrid", fields: &[
        field("indexing", AttrKind::Str, Str("ij")),
    ] },
    AttrsDef { name: "MetaRef", fields: &[
        boxed("node_type_key", AttrKind::Str, Required),
        field("node_index", AttrKind::Int, Required),
    ] },
    AttrsDef { name: "MetaScheduleLayoutTransform", fields: &[
        boxed("index_map", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "MirrorPad", fields: &[
        field("mode", AttrKind::Str, Str("SYMMETRIC")),
        boxed("pad_width", AttrKind::Any, Required),
    ] },
    AttrsDef { name: "MultiBoxPrior", fields: &[
        boxed("sizes", AttrKind::Floats, Floats(&[1.0])),
        boxed("ratios", AttrKind::Floats, Floats(&[1.0])),
        boxed("steps", AttrKind::Floats, Floats(&[-1.0, -1.0])),
        boxed("offsets", AttrKind::Floats, Floats(&[0.5, 0.5])),
        field("clip", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "MultiBoxTransformLoc", fields: &[
        field("clip", AttrKind::Bool, Bool(true)),
        field("threshold", AttrKind::Float, Float(0.01)),
        boxed("variances", AttrKind::Floats, Floats(&[0.1, 0.1, 0.2, 0.2])),
        field("keep_background", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Multinomial", fields: &[
        boxed("num_samples", AttrKind::Int, Int(1)),
    ] },
    AttrsDef { name: "NLLLoss", fields: &[
        field("reduction", AttrKind::Str, Str("mean")),
        field("ignore_index", AttrKind::Int, Required),
    ] },
    AttrsDef { name: "NdarraySize", fields: &[
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Normal", fields: &[
        boxed("out_shape", AttrKind::Ints, Required),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "OnDevice", fields: &[
        boxed("virtual_device", AttrKind::Any, Absent),
        field("constrain_result", AttrKind::Bool, Bool(false)),
        field("constrain_body", AttrKind::Bool, Bool(true)),
    ] },
    AttrsDef { name: "OneHot", fields: &[
        field("depth", AttrKind::Int, Int(1)),
        field("axis", AttrKind::Int, Int(-1)),
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "PRelu", fields: &[
        field("axis", AttrKind::Int, Int(1)),
    ] },
    AttrsDef { name: "Pad", fields: &[
        boxed("pad_width", AttrKind::Ints, Required),
        boxed("pad_mode", AttrKind::Str, Str("constant")),
    ] },
    AttrsDef { name: "Quantize", fields: &[
        field("out_dtype", AttrKind::DType, Required),
        field("axis", AttrKind::Int, Int(-1)),
    ] },
    AttrsDef { name: "Reduce", fields: &[
        boxed("axis", AttrKind::Ints, Absent),
        field("keepdims", AttrKind::Bool, Bool(false)),
        field("exclude", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "Repeat", fields: &[
        boxed("repeats", AttrKind::Int, Required),
        boxed("axis", AttrKind::Int, Absent),
    ] },
    AttrsDef { name: "Requantize", fields: &[
        field("axis", AttrKind::Int, Int(-1)),
        field("rounding", AttrKind::Str, Str("None")),
        field("compute_dtype", AttrKind::Str, Str("None")),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Reshape", fields: &[
        boxed("newshape", AttrKind::Ints, Required),
        field("allowzero", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "ReshapeLike", fields: &[
        field("lhs_begin", AttrKind::Int, Int(0)),
        boxed("lhs_end", AttrKind::Int, Absent),
        field("rhs_begin", AttrKind::Int, Int(0)),
        boxed("rhs_end", AttrKind::Int, Absent),
    ] },
    AttrsDef { name: "ReshapeTensor", fields: &[
        boxed("newshape", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "Resize1D", fields: &[
        boxed("size", AttrKind::Ints, Absent),
        boxed("roi", AttrKind::Floats, Absent),
        field("layout", AttrKind::Str, Str("NCW")),
        field("method", AttrKind::Str, Str("linear")),
        field("coordinate_transformation_mode", AttrKind::Str, Str("half_pixel")),
        field("rounding_method", AttrKind::Str, Str("round")),
        field("cubic_alpha", AttrKind::Float, Float(-0.5)),
        field("cubic_exclude", AttrKind::Int, Int(0)),
        field("extrapolation_value", AttrKind::Float, Float(0.0)),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Resize", fields: &[
        boxed("size", AttrKind::Ints, Absent),
        field("layout", AttrKind::Str, Str("NCHW")),
        field("method", AttrKind::Str, Str("bilinear")),
        field("align_corners", AttrKind::Bool, Absent),
        field("coordinate_transformation_mode", AttrKind::Str, Str("half_pixel")),
        field("rounding_method", AttrKind::Str, Str("")),
        field("bicubic_alpha", AttrKind::Float, Float(-0.5)),
        field("bicubic_exclude", AttrKind::Int, Int(0)),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Resize2D", fields: &[
        boxed("size", AttrKind::Ints, Absent),
        boxed("roi", AttrKind::Floats, Absent),
        field("layout", AttrKind::Str, Str("NCHW")),
        field("method", AttrKind::Str, Str("linear")),
        field("coordinate_transformation_mode", AttrKind::Str, Str("half_pixel")),
        field("rounding_method", AttrKind::Str, Str("round")),
        field("cubic_alpha", AttrKind::Float, Float(-0.5)),
        field("cubic_exclude", AttrKind::Int, Int(0)),
        field("extrapolation_value", AttrKind::Float, Float(0.0)),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Resize3D", fields: &[
        boxed("size", AttrKind::Ints, Absent),
        boxed("roi", AttrKind::Floats, Absent),
        field("layout", AttrKind::Str, Str("NCDHW")),
        field("method", AttrKind::Str, Str("linear")),
        field("coordinate_transformation_mode", AttrKind::Str, Str("half_pixel")),
        field("rounding_method", AttrKind::Str, Str("round")),
        field("cubic_alpha", AttrKind::Float, Float(-0.5)),
        field("cubic_exclude", AttrKind::Int, Int(0)),
        field("extrapolation_value", AttrKind::Float, Float(0.0)),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Reverse", fields: &[
        boxed("axis", AttrKind::Int, Absent),
    ] },
    AttrsDef { name: "ReverseSequence", fields: &[
        boxed("seq_axis", AttrKind::Int, Int(1)),
        boxed("batch_axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "SearchSorted", fields: &[
        field("right", AttrKind::Bool, Bool(false)),
        field("dtype", AttrKind::DType, DType(DataType::int(32))),
    ] },
    AttrsDef { name: "SequenceMask", fields: &[
        field("mask_value", AttrKind::Float, Float(0.0)),
        field("axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "ShapeOf", fields: &[
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "SimulatedQuantize", fields: &[
        field("kind", AttrKind::Int, Required),
        field("sign", AttrKind::Bool, Bool(true)),
        field("rounding", AttrKind::Str, Str("round")),
    ] },
    AttrsDef { name: "SliceLike", fields: &[
        boxed("axes", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "SlidingWindow", fields: &[
        field("axis", AttrKind::Int, Required),
        boxed("window_shape", AttrKind::Ints, Required),
        boxed("strides", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "Softmax", fields: &[
        field("axis", AttrKind::Int, Int(-1)),
    ] },
    AttrsDef { name: "SpaceToBatchND", fields: &[
        boxed("block_shape", AttrKind::Ints, Ints(&[1, 1])),
        boxed("paddings", AttrKind::Any, Required),
        field("pad_value", AttrKind::Float, Float(0.0)),
    ] },
    AttrsDef { name: "SparseConv2D", fields: &[
        field("layout", AttrKind::Str, Str("NHWC")),
        boxed("kernel_size", AttrKind::Ints, Ints(&[1, 1])),
    ] },
    AttrsDef { name: "SparseDense", fields: &[
        field("sparse_lhs", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "SparseToDense", fields: &[
        boxed("output_shape", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "SparseTranspose", fields: &[
    ] },
    AttrsDef { name: "Split", fields: &[
        boxed("indices_or_sections", AttrKind::Any, Required),
        field("axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "Squeeze", fields: &[
        boxed("axis", AttrKind::Ints, Absent),
    ] },
    AttrsDef { name: "Stack", fields: &[
        boxed("axis", AttrKind::Int, Int(0)),
    ] },
    AttrsDef { name: "StridedSlice", fields: &[
        boxed("begin", AttrKind::Ints, Null),
        boxed("end", AttrKind::Ints, Null),
        boxed("strides", AttrKind::Ints, Null),
        boxed("slice_mode", AttrKind::Str, Str("end")),
        boxed("axes", AttrKind::Ints, Null),
    ] },
    AttrsDef { name: "SubPixel", fields: &[
        field("block_size", AttrKind::Int, Int(1)),
        field("layout", AttrKind::Str, Str("NCHW")),
        field("mode", AttrKind::Str, Str("DCR")),
    ] },
    AttrsDef { name: "Take", fields: &[
        boxed("batch_dims", AttrKind::Int, Int(0)),
        boxed("axis", AttrKind::Int, Absent),
        boxed("mode", AttrKind::Str, Str("clip")),
    ] },
    AttrsDef { name: "ThreefryGenerate", fields: &[
        boxed("out_shape", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "Tile", fields: &[
        boxed("reps", AttrKind::Ints, Required),
    ] },
    AttrsDef { name: "Topk", fields: &[
        boxed("k", AttrKind::Int, Null),
        field("axis", AttrKind::Int, Int(-1)),
        field("ret_type", AttrKind::Str, Str("both")),
        field("is_ascend", AttrKind::Bool, Bool(false)),
        field("dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "Transpose", fields: &[
        boxed("axes", AttrKind::Ints, Null),
    ] },
    AttrsDef { name: "Uniform", fields: &[
        boxed("out_shape", AttrKind::Ints, Required),
        field("out_dtype", AttrKind::DType, Void),
    ] },
    AttrsDef { name: "UpSampling", fields: &[
        field("scale_h", AttrKind::Float, Required),
        field("scale_w", AttrKind::Float, Required),
        boxed("layout", AttrKind::Str, Str("NCHW")),
        boxed("method", AttrKind::Str, Str("")),
        field("align_corners", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "UpSampling3D", fields: &[
        field("scale_d", AttrKind::Float, Required),
        field("scale_h", AttrKind::Float, Required),
        field("scale_w", AttrKind::Float, Required),
        field("layout", AttrKind::Str, Str("NCDHW")),
        field("method", AttrKind::Str, Str("")),
        field("coordinate_transformation_mode", AttrKind::Str, Str("half_pixel")),
    ] },
    AttrsDef { name: "Variance", fields: &[
        boxed("axis", AttrKind::Ints, Absent),
        field("keepdims", AttrKind::Bool, Bool(false)),
        field("exclude", AttrKind::Bool, Bool(false)),
        field("unbiased", AttrKind::Bool, Bool(false)),
    ] },
    AttrsDef { name: "YoloReorg", fields: &[
        boxed("stride", AttrKind::Int, Int(1)),
    ] },
];
