//! `reorder_block_iter_var`: the axes of a block in another order. What they are bound to goes with them.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace};
use crate::s_tir::step::{Call, ints_of, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "ReorderBlockIterVar",
    method: "reorder_block_iter_var",
    is_pure: false,
    params: &[Param::Input("block"), Param::Input("new_order")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let n = place.realize()?;
    let order = call.inputs.get(1).and_then(ints_of);
    let order = order.ok_or_else(|| ScheduleError::Operand("the new order is a list of the axes' numbers".into()))?;
    let count = n.block.iter_vars.len();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if !sorted.iter().copied().eq(0..count as i64) {
        let reason = format!("{order:?} is no order of the {count} axes of block `{}`", n.block.name);
        return Err(ScheduleError::at_block(&n.block, reason).with_help("name each of them once, counted from 0"));
    }
    let order: Vec<usize> = order.iter().filter_map(|i| usize::try_from(*i).ok()).collect();
    let iter_vars = order.iter().filter_map(|i| n.block.iter_vars.get(*i).cloned()).collect();
    let iter_values = order.iter().filter_map(|i| n.iter_values.get(*i).cloned()).collect();
    let block = Ref::new(SBlock { iter_vars, ..copy_block(&n.block) });
    let changed = SBlockRealize { iter_values, predicate: n.predicate.clone(), block: block.clone() };
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), Ref::new(changed).into())]);
    sch.commit(&place.func, body, &[(n.block.clone(), block)])?;
    Ok(Vec::new())
}

impl Schedule {
    /// Puts the axes of a block in another order.
    pub fn reorder_block_iter_var(&mut self, block: &Ref<SBlockRV>, new_order: &[i64]) -> Result<(), StepError> {
        let order: AttrValue = new_order.to_vec().into();
        self.step_only(&KIND, vec![operand(block), order], vec![])
    }
}
