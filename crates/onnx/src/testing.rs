//! What the tests and the documents of this crate need of its inside. No program calls it.

pub use crate::budget::{Budget, check};
pub use crate::dim_name::expression;
pub use crate::node::Node;
pub use crate::ops::matmul::transposed_constant;
pub use crate::ops::{MAX_OPSET, TABLE, rule, rules_of};
pub use crate::order::sorted;
pub use crate::symbolic::{Ratio, Symbolic, evaluate};
pub use crate::value::Value;
