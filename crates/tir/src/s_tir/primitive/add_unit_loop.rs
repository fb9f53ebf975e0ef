//! `add_unit_loop`: a loop of one iteration around a block or a loop, where later steps need one.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::replace;
use crate::s_tir::step::Call;
use crate::s_tir::{LoopRV, Rv, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "AddUnitLoop",
    method: "add_unit_loop",
    is_pure: false,
    params: &[Param::Input("block_or_loop")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = match call.block(0) {
        Ok(block) => sch.block_ref(&block)?,
        Err(_) => sch.loop_ref(&call.loop_(0)?)?,
    };
    place.scope()?;
    // Its counter is used nowhere, so that the types of the loops around it do not matter.
    let dtype = relaxide_ir::DataType::int(32);
    let var = Var::prim("u", dtype);
    let unit = Stmt::serial(var.clone(), prim::int_of(dtype, 1), place.stmt().clone());
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), unit)]);
    sch.commit(&place.func, body, &[])?;
    Ok(vec![Value::Loop(place.func, var)])
}

impl Schedule {
    /// Puts a loop of one iteration around a block or a loop.
    pub fn add_unit_loop(&mut self, around: &Rv) -> Result<Ref<LoopRV>, StepError> {
        self.step_loop(&KIND, vec![around.into()], vec![])
    }
}
