//! Legalize: operators that stand for others become those.
//!
//! ```text
//! nn.matmul(%x, %w, transpose_b=True)      becomes     nn.dense(%x, %w)
//! qnn.concatenate((%a, %b), …)             becomes     concatenate((qnn.requantize(%a, …), qnn.requantize(%b, …)))
//! nn.global_avg_pool2d(%x)                 becomes     nn.adaptive_avg_pool2d(%x, output_size=[1, 1])
//! nn.batch_flatten(%x)                     becomes     reshape(%x, newshape=[0, -1])
//! ```
//!
//! In TVM every target says what it has no kernels for. Here every operator has kernels by way of Relax, so the pass is only for what
//! one operator says in the words of another; passes behind it have fewer cases then.

use relaxide_ir::Attrs;

use super::arithmetic::{call, expand_composed, with_types};
use super::table::TransformError;
use crate::*;

/// The program without operators that others can say.
pub fn legalize(module: &Module) -> Result<Module, TransformError> {
    with_types(&expand_composed(module), |new, old, types| {
        let (call_, name) = new.as_op_call()?;
        let rank = |expr: &Expr| types.of(expr).and_then(|ty| ty.as_tensor().map(|t| t.shape.len()));
        let (old_call, _) = old.as_op_call()?;
        match name {
            "nn.matmul"
                if call_.attrs.bool("transpose_b") == Some(true) && call_.attrs.bool("transpose_a") != Some(true) =>
            {
                if rank(old_call.args.first()?)? != 2 {
                    return None;
                }
                let value = |name: &str| call_.attrs.0.get(name).cloned().unwrap_or(relaxide_ir::AttrValue::None);
                let attrs = Attrs::new().with("units", value("units")).with("out_dtype", value("out_dtype"));
                call("nn.dense", call_.args.clone(), attrs)
            }
            "nn.global_avg_pool2d" => {
                let attrs = Attrs::new().with("output_size", vec![1i64, 1]).with("layout", call_.attrs.str("layout")?);
                call("nn.adaptive_avg_pool2d", call_.args.clone(), attrs)
            }
            "nn.batch_flatten" if rank(old_call.args.first()?)? >= 2 => {
                call("reshape", call_.args.clone(), Attrs::new().with("newshape", vec![0i64, -1]))
            }
            _ => None,
        }
    })
}
