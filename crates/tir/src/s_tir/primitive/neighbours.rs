//! `get_child_blocks`, `get_producers`, `get_consumers`, `get_output_blocks`: blocks by where they stand.

use relaxide_ffi::Ref;

use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{NodeId, StmtRef};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{Rv, SBlockRV, Schedule, ScheduleError, StepError, Value};

pub(in crate::s_tir) static CHILD_BLOCKS: InstructionKind = InstructionKind {
    name: "GetChildBlocks",
    method: "get_child_blocks",
    is_pure: true,
    params: &[Param::Splat],
    results: Results::List,
    apply: |sch, call| {
        let place = match call.block(0) {
            Ok(block) => sch.block_ref(&block)?,
            Err(_) => sch.loop_ref(&call.loop_(0)?)?,
        };
        Ok(values(&place, &place.tree.child_blocks(place.node)))
    },
};

pub(in crate::s_tir) static PRODUCERS: InstructionKind = InstructionKind {
    name: "GetProducers",
    method: "get_producers",
    is_pure: true,
    params: &[Param::Input("block")],
    results: Results::List,
    apply: |sch, call| {
        let place = sch.block_ref(&call.block(0)?)?;
        let found = Scope::new(&place.tree, place.scope()?).producers(place.node);
        Ok(values(&place, &found))
    },
};

pub(in crate::s_tir) static CONSUMERS: InstructionKind = InstructionKind {
    name: "GetConsumers",
    method: "get_consumers",
    is_pure: true,
    params: &[Param::Input("block")],
    results: Results::List,
    apply: |sch, call| {
        let place = sch.block_ref(&call.block(0)?)?;
        let found = Scope::new(&place.tree, place.scope()?).consumers(place.node);
        Ok(values(&place, &found))
    },
};

pub(in crate::s_tir) static OUTPUT_BLOCKS: InstructionKind = InstructionKind {
    name: "GetOutputBlocks",
    method: "get_output_blocks",
    is_pure: true,
    params: &[Param::Input("block")],
    results: Results::List,
    apply: output_blocks,
};

fn output_blocks(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let scope = Scope::new(&place.tree, place.node);
    let found: Vec<NodeId> = scope.children.iter().copied().filter(|id| scope.is_output(*id)).collect();
    Ok(values(&place, &found))
}

fn values(place: &StmtRef, ids: &[NodeId]) -> Vec<Value> {
    let block = |id: &NodeId| Some(Value::Block(place.func.clone(), place.tree.as_block(*id)?.block.clone()));
    ids.iter().filter_map(block).collect()
}

impl Schedule {
    /// The blocks directly inside of a block or a loop.
    pub fn get_child_blocks(&mut self, inside: &Rv) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&CHILD_BLOCKS, vec![inside.into()], vec![])
    }

    /// The blocks of the same scope that write what a block reads.
    pub fn get_producers(&mut self, block: &Ref<SBlockRV>) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&PRODUCERS, vec![operand(block)], vec![])
    }

    /// The blocks of the same scope that read what a block writes.
    pub fn get_consumers(&mut self, block: &Ref<SBlockRV>) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&CONSUMERS, vec![operand(block)], vec![])
    }

    /// The blocks inside of a block that write what outlives it.
    pub fn get_output_blocks(&mut self, scope_block: &Ref<SBlockRV>) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&OUTPUT_BLOCKS, vec![operand(scope_block)], vec![])
    }
}
