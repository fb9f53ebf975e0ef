//! `compute_inline`: a block goes, and its consumers compute its elements themselves.
//!
//! ```text
//! C[vi, vj] = A[vi, vj] * 2
//! D[vi, vj] = C[vi, vj] + 1        ->        D[vi, vj] = A[vi, vj] * 2 + 1
//! ```
//!
//! The block must be complete, not an output, not the only one, and store one element at indices that are its axes.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, substitute};

use super::inline::{Inline, check_plain_access, index_axes, leaf, single_store, without};
use crate::functor::StmtMutator;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ComputeInline",
    method: "compute_inline",
    is_pure: false,
    params: &[Param::Input("block")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    compute_inline(sch, &call.block(0)?)?;
    Ok(Vec::new())
}

pub(super) fn compute_inline(sch: &mut Schedule, block: &Ref<SBlockRV>) -> Result<(), ScheduleError> {
    let place = sch.block_ref(block)?;
    let (n, root) = (place.realize()?, place.scope()?);
    let refuse = |reason: String| ScheduleError::at_block(&n.block, reason);
    let scope = Scope::new(&place.tree, root);
    if let Some(reason) = scope.why_not_complete(place.node) {
        return Err(refuse(format!("block `{}` is not complete: {reason}", n.block.name)));
    }
    if scope.is_output(place.node) {
        let reason =
            format!("block `{}` is an output block: what it writes outlives the block around it", n.block.name);
        return Err(refuse(reason).with_help("inline it into its producer with reverse_compute_inline"));
    }
    let store = single_store(&n.block)?;
    let axes = index_axes(&n.block, &store)?;
    let around = place.tree.as_block(root).cloned().ok_or(ScheduleError::Expired { what: "block" })?;
    check_plain_access(&around.block, &store.buffer)?;
    let unit: VarMap =
        n.block.iter_vars.iter().filter(|i| i.extent.is_int(1)).map(|i| (i.var.clone(), i.min.clone())).collect();
    let stays = without(&sch.func(&place.func)?.body, &leaf(&place, root)?);
    let value = |indices: &[PrimExpr]| {
        let mut map = unit.clone();
        map.extend(axes.iter().filter_map(|(d, var)| Some((var.clone(), indices.get(*d)?.clone()))));
        substitute(&store.value, &map)
    };
    let mut inline = Inline { buffer: &store.buffer, value: &value, reuse: Vec::new() };
    let body = inline.mutate_stmt(&stays);
    let reuse = inline.reuse;
    sch.commit(&place.func, body, &reuse)
}

impl Schedule {
    /// Inlines a block into its consumers.
    pub fn compute_inline(&mut self, block: &Ref<SBlockRV>) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block)], vec![])
    }
}
