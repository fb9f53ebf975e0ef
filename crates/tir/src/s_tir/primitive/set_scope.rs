//! `set_scope`: a buffer that a block writes lives in another scope, such as `"local"` or `"shared"`.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;

use super::caching::buffer_like;
use super::rebuffer::{Rebuffer, allocating_block};
use super::structure::nth_buffer;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "SetScope",
    method: "set_scope",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("buffer_index"), Param::Attr("storage_scope")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let (realize, scope) = (place.realize()?, call.str(1)?.to_string());
    let buffer = nth_buffer(&realize.block, call.int(0)?, &realize.block.writes, "writes")?.buffer.clone();
    if scope.is_empty() || !scope.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | ':')) {
        return Err(ScheduleError::Operand(format!("`{scope}` is no storage scope")));
    }
    allocating_block(&place, &buffer, &realize.block)?;
    if buffer.scope == scope {
        return Ok(Vec::new());
    }
    let name = format!("{}_{}", buffer.name, scope.replace(['.', ':'], "_"));
    let moved = buffer_like(&buffer, name, &buffer.shape, &scope);
    Rebuffer::new(&buffer, &moved, None).commit(sch, &place.func)?;
    Ok(Vec::new())
}

impl Schedule {
    /// Lets the `buffer_index`th buffer that a block writes live in another scope.
    pub fn set_scope(
        &mut self,
        block: &Ref<SBlockRV>,
        buffer_index: i64,
        storage_scope: &str,
    ) -> Result<(), StepError> {
        let attrs: Vec<AttrValue> = vec![buffer_index.into(), storage_scope.into()];
        self.step_only(&KIND, vec![operand(block)], attrs)
    }
}
