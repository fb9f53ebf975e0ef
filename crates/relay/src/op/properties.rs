//! What passes ask of an operator beyond its types: how it may share a kernel, and which precision it takes.
//!
//! Where the operator of Relax says it, that counts; the lists are of what Relay has in another form.

use relaxide_relax::op::{OpPattern, lookup as relax_op};

use super::{Mapping, lookup};

/// How an operator's result depends on its operands, from the simplest on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Pattern {
    /// Each element depends on one of each operand.
    Injective,
    /// Each element depends on many, which are combined.
    Reduction,
    /// Each element is a sum of products, or goes over a window as one does.
    Product,
    /// Nothing is known.
    Opaque,
}

/// Which precision an operator takes where products are computed in half precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Half precision.
    Half,
    /// What its operands have.
    Follows,
    /// Single precision.
    Single,
}

/// Sums of products.
const PRODUCTS: &[&str] = &[
    "nn.conv1d",
    "nn.conv2d",
    "nn.conv3d",
    "nn.conv1d_transpose",
    "nn.conv2d_transpose",
    "nn.conv3d_transpose",
    "nn.dense",
    "nn.matmul",
    "nn.batch_matmul",
];

/// Sums and maxima over windows, which share kernels as products do.
const WINDOWS: &[&str] = &[
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.avg_pool1d",
    "nn.avg_pool2d",
    "nn.avg_pool3d",
    "nn.global_avg_pool2d",
    "nn.global_max_pool2d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_max_pool2d",
];

const REDUCTIONS: &[&str] = &["sum", "max", "min", "mean", "prod", "all", "any", "argmax", "argmin"];

const INJECTIVE: &[&str] = &[
    "cast",
    "clip",
    "expand_dims",
    "squeeze",
    "reshape",
    "transpose",
    "nn.bias_add",
    "nn.batch_flatten",
    "nn.leaky_relu",
    "nn.prelu",
    "where",
    "concatenate",
    "strided_slice",
    "broadcast_to",
    "tile",
    "repeat",
    "reverse",
    "full",
    "zeros",
    "ones",
    "full_like",
    "zeros_like",
    "ones_like",
    "nn.pad",
    "layout_transform",
    "take",
    "copy",
    "log2",
    "log10",
    "cast_like",
    "reshape_like",
    "broadcast_to_like",
    "nn.upsampling",
    "stack",
    "nn.depth_to_space",
    "nn.space_to_depth",
];

/// Operators that lose nothing in half precision beyond what their operands lost.
const FOLLOWS: &[&str] = &[
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "nn.relu",
    "nn.leaky_relu",
    "nn.prelu",
    "nn.bias_add",
    "nn.batch_norm",
    "nn.max_pool1d",
    "nn.max_pool2d",
    "nn.max_pool3d",
    "nn.global_max_pool2d",
    "nn.batch_flatten",
    "nn.pad",
    "nn.dropout",
    "reshape",
    "transpose",
    "expand_dims",
    "squeeze",
    "concatenate",
    "stack",
    "split",
    "strided_slice",
    "clip",
    "take",
    "tile",
    "repeat",
    "reverse",
    "copy",
    "negative",
    "abs",
    "nn.upsampling",
    "nn.depth_to_space",
    "nn.space_to_depth",
    "broadcast_to",
    "layout_transform",
    "where",
    "max",
    "min",
    "sigmoid",
    "tanh",
    "nn.adaptive_max_pool2d",
];

/// Operators that are known to need single precision: sums of many terms, and functions that lose much of small differences.
const SINGLE: &[&str] = &[
    "exp",
    "log",
    "log2",
    "log10",
    "power",
    "sqrt",
    "rsqrt",
    "erf",
    "divide",
    "sum",
    "mean",
    "prod",
    "variance",
    "cumsum",
    "cumprod",
    "nn.softmax",
    "nn.fast_softmax",
    "nn.log_softmax",
    "nn.cross_entropy",
    "nn.cross_entropy_with_logits",
    "nn.nll_loss",
    "nn.l2_normalize",
    "nn.layer_norm",
    "nn.group_norm",
    "nn.instance_norm",
    "nn.lrn",
    "nn.avg_pool1d",
    "nn.avg_pool2d",
    "nn.avg_pool3d",
    "nn.global_avg_pool2d",
    "nn.adaptive_avg_pool1d",
    "nn.adaptive_avg_pool2d",
    "nn.adaptive_avg_pool3d",
    "cast",
    "arange",
    "full",
    "zeros",
    "ones",
    "on_device",
    "device_copy",
];

/// Whether something is said of an operator's precision; one of which nothing is said takes single precision.
pub fn has_precision(name: &str) -> bool {
    PRODUCTS.contains(&name) || FOLLOWS.contains(&name) || SINGLE.contains(&name)
}

/// How an operator may share a kernel.
pub fn pattern(name: &str) -> Pattern {
    if INJECTIVE.contains(&name) {
        return Pattern::Injective;
    }
    if REDUCTIONS.contains(&name) {
        return Pattern::Reduction;
    }
    if PRODUCTS.contains(&name) || WINDOWS.contains(&name) {
        return Pattern::Product;
    }
    let known = match lookup(name).map(|def| def.mapping) {
        Some(Mapping::Binary(_)) => return Pattern::Injective,
        Some(Mapping::Same) => relax_op(name),
        Some(Mapping::As(other)) => relax_op(other),
        _ => None,
    };
    match known.map(|def| def.pattern) {
        Some(OpPattern::Elemwise | OpPattern::Broadcast | OpPattern::Injective) => Pattern::Injective,
        Some(OpPattern::Reduce) => Pattern::Reduction,
        Some(OpPattern::OutFusable) => Pattern::Product,
        _ => Pattern::Opaque,
    }
}

/// Which precision an operator takes.
pub fn precision(name: &str) -> Precision {
    if PRODUCTS.contains(&name) {
        Precision::Half
    } else if FOLLOWS.contains(&name) {
        Precision::Follows
    } else {
        Precision::Single
    }
}

/// Whether a kernel of products may read its operands through an injective operator.
pub fn is_read_through(name: &str) -> bool {
    !matches!(name, "concatenate" | "stack" | "take")
}
