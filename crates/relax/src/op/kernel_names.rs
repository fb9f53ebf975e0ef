//! What the kernels of operators are called.
//!
//! Programs look kernels up by name, and texts of TVM have them, so the names are TVM's: the last part of the operator's own,
//! but for those of this table. Nothing else depends on them.

use super::OpDef;

/// Operators whose kernels are called otherwise, in order.
const OTHERWISE: &[(&str, &str)] = &[
    ("abs", "tir_abs"),
    ("acos", "tir_acos"),
    ("acosh", "tir_acosh"),
    ("asin", "tir_asin"),
    ("asinh", "tir_asinh"),
    ("astype", "cast"),
    ("atan", "tir_atan"),
    ("atanh", "tir_atanh"),
    ("bitwise_not", "tir_bitwise_not"),
    ("bucketize", "searchsorted"),
    ("ceil", "tir_ceil"),
    ("clip", "tir_clip"),
    ("collapse_sum_like", "collapse_sum"),
    ("collapse_sum_to", "collapse_sum"),
    ("concat", "concatenate"),
    ("cos", "tir_cos"),
    ("cosh", "tir_cosh"),
    ("exp", "tir_exp"),
    ("flatten", "reshape"),
    ("floor", "tir_floor"),
    ("full_like", "full"),
    ("gather_elements", "gather"),
    ("gather_nd", "te_gather_nd"),
    ("isfinite", "tir_isfinite"),
    ("isinf", "tir_isinf"),
    ("isnan", "tir_isnan"),
    ("layout_transform", "te_layout_transform"),
    ("log", "tir_log"),
    ("logical_not", "tir_logical_not"),
    ("negative", "tir_negative"),
    ("nn.batch_flatten", "reshape"),
    ("nn.leakyrelu", "leaky_relu"),
    ("ones_like", "ones"),
    ("permute_dims", "transpose"),
    ("round", "tir_round"),
    ("rsqrt", "tir_rsqrt"),
    ("sigmoid", "tir_sigmoid"),
    ("sign", "tir_sign"),
    ("sin", "tir_sin"),
    ("sinh", "tir_sinh"),
    ("sqrt", "tir_sqrt"),
    ("square", "tir_square"),
    ("tan", "tir_tan"),
    ("tanh", "tir_tanh"),
    ("trunc", "tir_trunc"),
    ("zeros_like", "zeros"),
];

/// The name of an operator's kernels.
pub fn kernel_name(def: &OpDef) -> &'static str {
    match OTHERWISE.binary_search_by_key(&def.name, |row| row.0) {
        Ok(row) => OTHERWISE[row].1,
        Err(_) => last_part(def),
    }
}

/// The last part of an operator's name, by which its tensors are called.
pub fn last_part(def: &OpDef) -> &'static str {
    def.name.rsplit('.').next().unwrap_or(def.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_of_operators() {
        assert!(OTHERWISE.is_sorted_by(|a, b| a.0 < b.0));
        let unknown: Vec<&str> =
            OTHERWISE.iter().map(|row| row.0).filter(|op| super::super::lookup(op).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?} are no operators");
    }
}
