//! `unsafe_hide_buffer_access`: a block says no longer that it reads, or writes, some buffers.
//!
//! ```text
//! with T.sblock("B"):                            with T.sblock("B"):
//!     T.reads(A[0:128], at[vi])      -- [1] ->       T.reads(A[0:128])
//!     B[vi] = A[at[vi]]                              B[vi] = A[at[vi]]
//! ```
//!
//! For blocks that are to be matched with an intrinsic of which such buffers are no part. Later steps believe what a block
//! says, so nothing may write what is hidden here: that is the caller's word.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, ints_of, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "UnsafeHideBufferAccess",
    method: "unsafe_hide_buffer_access",
    is_pure: false,
    params: &[Param::Input("block"), Param::Input("buf_type"), Param::Input("buf_index_array")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let hidden = call.inputs.get(2).and_then(ints_of);
    let hidden =
        hidden.ok_or_else(|| ScheduleError::Operand("the buffers to hide are a list of their indices".into()))?;
    let (reads, writes) = (&block.reads, &block.writes);
    let (reads, writes) = match call.inputs.get(1) {
        Some(AttrValue::Str(side)) if side == "read" => (without(block, reads, &hidden, "reads")?, writes.clone()),
        Some(AttrValue::Str(side)) if side == "write" => (reads.clone(), without(block, writes, &hidden, "writes")?),
        _ => return Err(ScheduleError::Operand("accesses are \"read\" or \"write\"".into())),
    };
    let new = Ref::new(SBlock { reads, writes, ..copy_block(block) });
    let body =
        replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), with_block(&realize, new.clone()).into())]);
    sch.commit(&place.func, body, &[(block.clone(), new)])?;
    Ok(Vec::new())
}

fn without(
    block: &SBlock,
    regions: &[Ref<BufferRegion>],
    hidden: &[i64],
    what: &str,
) -> Result<Vec<Ref<BufferRegion>>, ScheduleError> {
    if let Some(wrong) = hidden.iter().find(|i| usize::try_from(**i).map_or(true, |i| i >= regions.len())) {
        let reason =
            format!("block `{}` {what} {} buffers, and index {wrong} is none of them", block.name, regions.len());
        return Err(ScheduleError::at_block(block, reason));
    }
    let seen = regions.iter().enumerate().filter(|(at, _)| !hidden.contains(&(*at as i64)));
    Ok(seen.map(|(_, region)| region.clone()).collect())
}

impl Schedule {
    /// Lets a block say no longer that it reads (`side` is `"read"`) or writes the buffers at these indices.
    pub fn unsafe_hide_buffer_access(
        &mut self,
        block: &Ref<SBlockRV>,
        side: &str,
        indices: &[i64],
    ) -> Result<(), StepError> {
        self.step_only(&KIND, vec![operand(block), side.into(), indices.to_vec().into()], vec![])
    }
}
