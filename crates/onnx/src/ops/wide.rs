//! Sums of narrow floats, in 32 bits.
//!
//! The largest float16 is 65504. The sum over an image is beyond that where its mean is 2, a square where the number is 256,
//! and yet the mean or the norm that is made of them may be small. ONNX Runtime computes such in 32 bits; so do the rules here:
//!
//! ```text
//! y: float16 = mean(x: float16)     =====>     y = astype(mean(astype(x, "float32")), "float16")
//! ```
//!
//! Fusion makes the conversions part of the kernels, so that no wide tensor is in memory.

use relaxide_ffi::DataType;
use relaxide_relax::Expr;

use crate::error::NodeError;
use crate::scope::Scope;

/// A tensor in 32 bits if it is of narrower floats, and the type that it had.
pub fn widened(scope: &mut Scope, x: Expr) -> Result<(Expr, DataType), NodeError> {
    let own = scope.dtype(&x);
    let narrow = own.is_float() && own.bits < 32;
    Ok((if narrow { scope.cast(x, DataType::float(32))? } else { x }, own))
}
