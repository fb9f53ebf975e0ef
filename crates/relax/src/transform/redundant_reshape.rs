//! RemoveRedundantReshape: of two reshapes behind each other the first goes, and one to the shape that is there.
//!
//! ```text
//! lv = R.reshape(x, (8,))
//! gv = R.reshape(lv, (4, 2))     →     gv = R.reshape(x, (4, 2))
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;

use super::rules::{Known, apply};
use crate::shape::same_dims;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "RemoveRedundantReshape",
    "Of two reshapes the first goes, and one to the shape that is there.",
    |module, _, _| apply(PASS.name, module, reshape),
);

fn reshape(known: &Known, call: &Ref<Call>, _: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let (Some("reshape"), [data, shape]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let dims = |e: &relaxide_ir::Type| e.as_tensor().and_then(|t| t.shape.clone());
    if let (Some(from), Some(to)) = (dims(&data.ty()), dims(&call.ty))
        && same_dims(&from, &to)
    {
        return Ok(Some(data.clone()));
    }
    match known.op(data, "reshape").and_then(|inner| inner.args.first()) {
        Some(data) => Ok(Some(op::call("reshape", [data.clone(), shape.clone()], call.attrs.clone())?)),
        None => Ok(None),
    }
}
