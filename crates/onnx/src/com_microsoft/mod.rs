//! Operators of ONNX Runtime (`com.microsoft`), as its optimizer and its exporters of language models write them.
//!
//! Each is made of standard operations: kernels come out of the compiler's fusion, not out of the operator's name.

pub mod activation;
pub mod array;
pub mod attention;
pub mod channels;
pub mod distance;
pub mod embedding;
pub mod experts;
pub mod gather;
pub mod group_query;
pub mod normalization;
pub mod packed;
mod packed_words;
pub mod product;
pub mod qlinear;

use crate::ops::Rule::{Flow, Node};
use crate::ops::{OpRow, activation as standard, gather_scatter, pad, shape};
use crate::quantized::{elementwise, linear};
use crate::recurrent;
use crate::text_ops;

/// Every operator of the set that is imported, by name.
pub static TABLE: &[OpRow] = &[
    OpRow { name: "Attention", versions: &[(1, Node(attention::attention))] },
    OpRow { name: "BiasGelu", versions: &[(1, Node(activation::bias_gelu))] },
    OpRow { name: "CDist", versions: &[(1, Node(distance::distances))] },
    OpRow { name: "DequantizeLinear", versions: &[(1, Node(linear::dequantize))] },
    OpRow { name: "DynamicQuantizeLSTM", versions: &[(1, Flow(recurrent::quantized_lstm))] },
    OpRow { name: "DynamicQuantizeMatMul", versions: &[(1, Node(product::dynamic_quantize_matmul))] },
    OpRow { name: "EmbedLayerNormalization", versions: &[(1, Node(embedding::embed))] },
    OpRow { name: "FastGelu", versions: &[(1, Node(activation::fast_gelu))] },
    OpRow { name: "FusedConv", versions: &[(1, Node(product::fused_conv))] },
    OpRow { name: "FusedGemm", versions: &[(1, Node(product::fused_gemm))] },
    OpRow { name: "FusedMatMul", versions: &[(1, Node(product::fused_matmul))] },
    OpRow { name: "GatherBlockQuantized", versions: &[(1, Node(gather::gather))] },
    OpRow { name: "Gelu", versions: &[(1, Node(standard::gelu))] },
    OpRow { name: "GroupQueryAttention", versions: &[(1, Node(group_query::group_query))] },
    OpRow { name: "Inverse", versions: &[(1, Node(array::inverse))] },
    OpRow { name: "MatMulBnb4", versions: &[(1, Node(packed::matmul_bnb4))] },
    OpRow { name: "MatMulIntegerToFloat", versions: &[(1, Node(product::matmul_integer_to_float))] },
    OpRow { name: "MatMulNBits", versions: &[(1, Node(packed::matmul_n_bits))] },
    OpRow { name: "MoE", versions: &[(1, Node(experts::mixture))] },
    OpRow { name: "MultiHeadAttention", versions: &[(1, Node(attention::multi_head))] },
    OpRow { name: "NhwcConv", versions: &[(1, Node(channels::conv))] },
    OpRow { name: "NhwcMaxPool", versions: &[(1, Node(channels::max_pool))] },
    OpRow { name: "Pad", versions: &[(1, Node(pad::pad))] },
    OpRow { name: "QAttention", versions: &[(1, Node(attention::quantized))] },
    OpRow { name: "QEmbedLayerNormalization", versions: &[(1, Node(embedding::quantized))] },
    OpRow { name: "QGemm", versions: &[(1, Node(product::q_gemm))] },
    OpRow { name: "QLinearAdd", versions: &[(1, Node(elementwise::qlinear_add))] },
    OpRow { name: "QLinearAveragePool", versions: &[(1, Node(qlinear::average_pool))] },
    OpRow { name: "QLinearConcat", versions: &[(1, Node(qlinear::concat))] },
    OpRow { name: "QLinearGlobalAveragePool", versions: &[(1, Node(qlinear::global_average_pool))] },
    OpRow { name: "QLinearLeakyRelu", versions: &[(1, Node(qlinear::leaky_relu))] },
    OpRow { name: "QLinearMul", versions: &[(1, Node(elementwise::qlinear_multiply))] },
    OpRow { name: "QLinearReduceMean", versions: &[(1, Node(qlinear::reduce_mean))] },
    OpRow { name: "QLinearSigmoid", versions: &[(1, Node(qlinear::sigmoid))] },
    OpRow { name: "QLinearSoftmax", versions: &[(1, Node(qlinear::softmax))] },
    OpRow { name: "QLinearWhere", versions: &[(1, Node(qlinear::where_))] },
    OpRow { name: "QMoE", versions: &[(1, Node(experts::quantized))] },
    OpRow { name: "QuantizeLinear", versions: &[(1, Node(linear::quantize))] },
    OpRow { name: "QuickGelu", versions: &[(1, Node(activation::quick_gelu))] },
    OpRow { name: "Range", versions: &[(1, Node(shape::range))] },
    OpRow { name: "RotaryEmbedding", versions: &[(1, Node(attention::rotary))] },
    OpRow { name: "SimplifiedLayerNormalization", versions: &[(1, Node(normalization::simplified))] },
    OpRow { name: "SkipLayerNormalization", versions: &[(1, Node(normalization::skip))] },
    OpRow { name: "SkipSimplifiedLayerNormalization", versions: &[(1, Node(normalization::skip_simplified))] },
    OpRow { name: "Tokenizer", versions: &[(1, Node(text_ops::tokenize))] },
    OpRow { name: "TransposeMatMul", versions: &[(1, Node(product::fused_matmul))] },
    OpRow { name: "Trilu", versions: &[(1, Node(gather_scatter::trilu))] },
    OpRow { name: "Unique", versions: &[(1, Node(array::unique))] },
];
