//! OptimizeLayoutTransform: a tensor that is laid out anew and back is taken as it was.
//!
//! ```text
//! lv = R.layout_transform(x, lambda i, j: (i, j // 4, j % 4))
//! lv1 = R.layout_transform(lv, lambda i, a, b: (i, a * 4 + b))      →    what uses lv1 uses x
//! ```
//!
//! So what `AlterOpImpl` put between two kernels of one layout goes. The kernel `remove_pad` may stand between, which cuts off
//! what the layout added: if it comes on again, and its value is free (`pad_value=None`), it may as well stay on.
//!
//! **Differs from TVM** in that both maps one after the other must be proven to lead each element back to its place; TVM asks
//! for equal dimensions only, which a square matrix has before and behind a transpose.

use relaxide_ffi::Ref;
use relaxide_ir::AttrValue;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::PrimExpr;
use relaxide_tir::{IndexMap, PrimFunc};

use super::alter_op_impl::{OPERATOR_NAME, REMOVE_PAD};
use super::fuse_ops::PRIMITIVE_ATTR;
use super::rules::{Known, apply_to};
use crate::op::core::CallTir;
use crate::shape::same_dims;
use crate::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "OptimizeLayoutTransform",
    "A tensor that is laid out anew and back is taken as it was.",
    |module, _, _| {
        let wanted = |func: &Function| func.attrs.bool(PRIMITIVE_ATTR) != Some(true);
        apply_to(PASS.name, module, wanted, there_and_back)
    },
);

fn there_and_back(known: &Known, call: &Ref<Call>, b: &mut BlockBuilder) -> Result<Option<Expr>, BuildError> {
    let (Some("layout_transform"), [source]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
    let Some(back) = map_of(call) else { return Ok(None) };
    let there = match (known.op(source, "layout_transform"), pad_removed(known, source, b)) {
        (Some(there), _) => there,
        (None, Some(there)) if call.attrs.get("pad_value").is_none() => there,
        _ => return Ok(None),
    };
    let (Some(first), [x]) = (map_of(there), there.args.as_slice()) else { return Ok(None) };
    let dims = |e: &Expr| e.ty().as_tensor().and_then(|t| t.shape.clone());
    let (Some(from), Some(to)) = (dims(x), call.ty.as_tensor().and_then(|t| t.shape.clone())) else { return Ok(None) };
    let same = same_dims(&from, &to) && leads_back(&first, &back, &from);
    Ok(same.then(|| x.clone()))
}

fn map_of(call: &Call) -> Option<Ref<IndexMap>> {
    match call.attrs.get("index_map") {
        Some(AttrValue::Object(map)) => map.clone().downcast::<IndexMap>().ok(),
        _ => None,
    }
}

/// What was laid out anew before its padding was cut off, if that is what an operand is.
fn pad_removed<'a>(known: &'a Known, e: &Expr, b: &BlockBuilder) -> Option<&'a Ref<Call>> {
    let tir = CallTir::of(known.value(e))?;
    let kernel = b.module().get_as::<PrimFunc>(&tir.func.name)?;
    let [padded] = tir.args.as_slice() else { return None };
    (kernel.attrs.str(OPERATOR_NAME) == Some(REMOVE_PAD)).then(|| known.op_of(padded, "layout_transform"))?
}

/// Whether two maps, one after the other, lead every element of a tensor to where it was.
fn leads_back(first: &IndexMap, second: &IndexMap, dims: &[PrimExpr]) -> bool {
    let mut analyzer = Analyzer::new();
    if first.initial_indices.len() != dims.len() {
        return false;
    }
    for (var, dim) in first.initial_indices.iter().zip(dims) {
        analyzer.bind(var, 0, dim.clone());
    }
    let Some(end) = second.apply(&first.final_indices) else { return false };
    let start = first.initial_indices.iter().map(PrimExpr::from);
    end.len() == dims.len() && end.iter().zip(start).all(|(end, start)| analyzer.can_prove_equal(end, &start))
}
