//! The intrinsics that `T.` names directly, and how the type of a call follows from its arguments.
//!
//! One table serves both directions: the printer writes `T.exp(x)` only where the parser would infer the same type, and
//! writes `T.call_intrin("float32", "tirx.exp", x)` everywhere else.

use relaxide_ffi::DataType;
use relaxide_ir::PrimExpr;

/// How the type of a call follows from its arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResultType {
    /// That of the first argument.
    First,
    /// That of the second argument.
    Second,
    /// That of the third argument.
    Third,
    /// Bool, with the lanes of the first argument.
    Bool,
    /// 32-bit integer.
    Int32,
    /// Address.
    Handle,
    /// Nothing.
    Void,
    /// Written first, as text.
    Written,
    /// Written behind the arguments.
    WrittenLast,
}

use ResultType::*;

/// Names behind `T.` (and `tirx.` inside the nodes) with the rule of each.
const TABLE: &[(&str, ResultType)] = &[
    ("abs", First),
    ("acos", First),
    ("acosh", First),
    ("address_of", Handle),
    ("anylist_getitem", Handle),
    ("anylist_resetitem", Int32),
    ("anylist_setitem_call_cpacked", Int32),
    ("anylist_setitem_call_packed", Int32),
    ("asin", First),
    ("asinh", First),
    ("assume", First),
    ("atan", First),
    ("atan2", First),
    ("atanh", First),
    ("break_loop", Void),
    ("call_cpacked", Int32),
    ("call_extern", Written),
    ("call_llvm_intrin", Written),
    ("call_llvm_pure_intrin", Written),
    ("call_packed", Int32),
    ("call_pure_extern", Written),
    ("ceil", First),
    ("clz", First),
    ("continue_loop", Void),
    ("copysign", First),
    ("cos", First),
    ("cosh", First),
    ("dot_bytes", Third),
    ("dot_pairs", Third),
    ("dp4a", Written),
    ("end_profile_intrinsic", Void),
    ("erf", First),
    ("exp", First),
    ("exp10", First),
    ("exp2", First),
    ("fabs", First),
    ("floor", First),
    ("fma", First),
    ("fmod", First),
    ("handle_add_byte_offset", Handle),
    ("hypot", First),
    ("if_then_else", Second),
    ("ignore_loop_partition", First),
    ("isfinite", Bool),
    ("isinf", Bool),
    ("isnan", Bool),
    ("isnullptr", Bool),
    ("ldexp", First),
    ("likely", First),
    ("log", First),
    ("log10", First),
    ("log1p", First),
    ("log2", First),
    ("nearbyint", First),
    ("nextafter", First),
    ("popcount", First),
    ("pow", First),
    ("q_multiply_shift", First),
    ("q_multiply_shift_per_axis", First),
    ("reinterpret", Written),
    ("round", First),
    ("rsqrt", First),
    ("selector", First),
    ("sigmoid", First),
    ("sin", First),
    ("sinh", First),
    ("sqrt", First),
    ("start_profile_intrinsic", Void),
    ("tan", First),
    ("tanh", First),
    ("trunc", First),
    ("tvm_access_ptr", Handle),
    ("tvm_bmma_sync", Void),
    ("tvm_call_cpacked_lowered", Int32),
    ("tvm_call_packed_lowered", Int32),
    ("tvm_fill_fragment", Void),
    ("tvm_load_matrix_sync", Void),
    ("tvm_mma_sync", Void),
    ("tvm_stack_alloca", Handle),
    ("tvm_stack_make_array", Handle),
    ("tvm_stack_make_shape", Handle),
    ("tvm_storage_sync", Void),
    ("tvm_store_matrix_sync", Void),
    ("tvm_struct_get", WrittenLast),
    ("tvm_struct_set", Int32),
    ("tvm_thread_allreduce", Void),
    ("tvm_thread_invariant", First),
    ("tvm_warp_activemask", Written),
    ("tvm_warp_shuffle", Second),
    ("tvm_warp_shuffle_down", Second),
    ("tvm_warp_shuffle_up", Second),
    ("tvm_warp_shuffle_xor", Second),
    ("type_annotation", Written),
    ("undef", Int32),
    ("vectorcombine", Written),
    ("vectorhigh", Written),
    ("vectorlow", Written),
    ("vscale", Int32),
];

/// Operators that are intrinsics: symbol, binding strength (see the printer), name.
pub(crate) const BITWISE: &[(&str, u8, &str)] = &[
    ("|", 5, "tirx.bitwise_or"),
    ("^", 6, "tirx.bitwise_xor"),
    ("&", 7, "tirx.bitwise_and"),
    ("<<", 8, "tirx.shift_left"),
    (">>", 8, "tirx.shift_right"),
];

/// The rule of a name without prefix.
pub(crate) fn rule(name: &str) -> Option<ResultType> {
    TABLE.binary_search_by_key(&name, |(n, _)| n).ok().and_then(|i| TABLE.get(i)).map(|(_, rule)| *rule)
}

/// All names, for suggestions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|(name, _)| *name)
}

/// The type that a rule gives, where it is not written.
pub(crate) fn infer(rule: ResultType, args: &[PrimExpr]) -> Option<DataType> {
    match rule {
        First => args.first().map(PrimExpr::dtype),
        Second => args.get(1).map(PrimExpr::dtype),
        Third => args.get(2).map(PrimExpr::dtype),
        Bool => args.first().map(|a| DataType::bool().with_lanes(a.dtype().lanes)),
        Int32 => Some(DataType::int(32)),
        Handle => Some(DataType::handle()),
        Void => Some(DataType::void()),
        Written | WrittenLast => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_as_the_search_needs() {
        assert!(TABLE.windows(2).all(|w| w[0].0 < w[1].0));
        assert_eq!(rule("exp"), Some(First));
        assert_eq!(rule("no_such"), None);
    }
}
