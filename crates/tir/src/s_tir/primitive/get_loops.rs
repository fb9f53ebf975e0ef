//! `get_loops`: the loops around a block, up to the block around it.

use relaxide_ffi::Ref;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "GetLoops",
    method: "get_loops",
    is_pure: true,
    params: &[Param::Input("block")],
    results: Results::List,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let loops = place.tree.loops_above(place.node);
    Ok(loops
        .iter()
        .filter_map(|id| Some(Value::Loop(place.func.clone(), place.tree.as_loop(*id)?.var.clone())))
        .collect())
}

impl Schedule {
    /// The loops around a block, outermost first.
    pub fn get_loops(&mut self, block: &Ref<SBlockRV>) -> Result<Vec<Ref<LoopRV>>, StepError> {
        self.step_loops(&KIND, vec![operand(block)], vec![])
    }
}
