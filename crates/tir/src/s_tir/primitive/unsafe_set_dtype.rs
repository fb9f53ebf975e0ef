//! `unsafe_set_dtype`: a buffer that a block writes holds elements of another type.
//!
//! Values are converted where they are stored and where they are read. This is not checked to keep results: that is what the
//! name says.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::{Buffer, DataType, Type, Var};

use super::rebuffer::{Rebuffer, allocating_block};
use super::structure::nth_buffer;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "UnsafeSetDType",
    method: "unsafe_set_dtype",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("buffer_index"), Param::Attr("dtype")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let buffer = nth_buffer(&realize.block, call.int(0)?, &realize.block.writes, "writes")?.buffer.clone();
    let wrong = || ScheduleError::Operand("the type is not known".into());
    let dtype: DataType = call.str(1)?.parse().map_err(|_| wrong())?;
    allocating_block(&place, &buffer, &realize.block)?;
    if buffer.dtype == dtype {
        return Ok(Vec::new());
    }
    let other = Ref::new(Buffer {
        name: buffer.name.clone(),
        data: Var::new(buffer.data.name.clone(), Type::pointer(dtype, &buffer.scope)),
        dtype,
        shape: buffer.shape.clone(),
        strides: buffer.strides.clone(),
        elem_offset: buffer.elem_offset.clone(),
        scope: buffer.scope.clone(),
        alignment: buffer.alignment,
        offset_factor: buffer.offset_factor,
        layout: buffer.layout.clone(),
        producer: None,
    });
    Rebuffer::new(&buffer, &other, None).commit(sch, &place.func)?;
    Ok(Vec::new())
}

impl Schedule {
    /// Lets the `buffer_index`th buffer that a block writes hold another type.
    pub fn unsafe_set_dtype(&mut self, block: &Ref<SBlockRV>, buffer_index: i64, dtype: &str) -> Result<(), StepError> {
        let attrs: Vec<AttrValue> = vec![buffer_index.into(), dtype.into()];
        self.step_only(&KIND, vec![operand(block)], attrs)
    }
}
