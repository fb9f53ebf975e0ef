//! `storage_align`: rows of a buffer that a block writes begin at `factor * n + offset` elements.
//!
//! This is a hint to whoever lays the buffer out: the annotation `buffer_dim_align` of the block, a list of
//! `[buffer, axis, factor, offset]`. A second hint for the same axis takes the place of the first.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;

use super::rebuffer::allocating_block;
use super::structure::nth_buffer;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, ints_of, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::SBlock;

/// The annotation.
pub const BUFFER_DIM_ALIGN: &str = "buffer_dim_align";

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "StorageAlign",
    method: "storage_align",
    is_pure: false,
    params: &[
        Param::Input("block"),
        Param::Attr("buffer_index"),
        Param::Attr("axis"),
        Param::Attr("factor"),
        Param::Attr("offset"),
    ],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let (index, axis, factor, offset) = (call.int(0)?, call.int(1)?, call.int(2)?, call.int(3)?);
    let buffer = nth_buffer(block, index, &block.writes, "writes")?.buffer.clone();
    allocating_block(&place, &buffer, block)?;
    let ndim = buffer.ndim() as i64;
    let at = if axis < 0 { axis + ndim } else { axis };
    if !(0..ndim).contains(&at) {
        let reason = format!("buffer `{}` has {ndim} dimensions, and axis {axis} is none of them", buffer.name);
        return Err(ScheduleError::at_block(block, reason));
    }
    if factor <= 0 {
        return Err(ScheduleError::at_block(block, format!("the factor is {factor}, but factors are positive")));
    }
    let row = AttrValue::List([index, at, factor, offset].into_iter().map(AttrValue::Int).collect());
    let known = match block.annotations.get(BUFFER_DIM_ALIGN) {
        Some(AttrValue::List(rows)) => rows.clone(),
        _ => Vec::new(),
    };
    let same = |row: &AttrValue| ints_of(row).is_some_and(|r| r.first() == Some(&index) && r.get(1) == Some(&at));
    let rows = known.into_iter().filter(|r| !same(r)).chain([row]).collect();
    let annotations = block.annotations.clone().with(BUFFER_DIM_ALIGN, AttrValue::List(rows));
    let new = Ref::new(SBlock { annotations, ..copy_block(block) });
    let changed = with_block(&realize, new.clone());
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), changed.into())]);
    sch.commit(&place.func, body, &[(block.clone(), new)])?;
    Ok(Vec::new())
}

impl Schedule {
    /// Aligns rows of a buffer along an axis.
    pub fn storage_align(
        &mut self,
        block: &Ref<SBlockRV>,
        buffer_index: i64,
        axis: i64,
        factor: i64,
        offset: i64,
    ) -> Result<(), StepError> {
        let attrs = [buffer_index, axis, factor, offset].map(AttrValue::Int).to_vec();
        self.step_only(&KIND, vec![operand(block)], attrs)
    }
}
