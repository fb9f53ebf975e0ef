//! `parallel`, `vectorize`, `unroll`, `bind`: how the iterations of a loop are executed.
//!
//! Iterations that run at the same time must not depend on each other: every block inside is complete or a reduction, the
//! values of its axes are affine in the loops, and those that use this loop are spatial. (A combined axis may be bound to
//! threads of one group, which can combine their values.) Unrolling keeps the order and is always legal.

use relaxide_ffi::Ref;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::free_vars;

use crate::analysis::affine::is_affine;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{StmtRef, copy_loop, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static PARALLEL: InstructionKind = InstructionKind {
    name: "Parallel",
    method: "parallel",
    is_pure: false,
    params: &[Param::Input("loop")],
    results: Results::None,
    apply: |sch, call| apply(sch, call, ForKind::Parallel),
};

pub(in crate::s_tir) static VECTORIZE: InstructionKind = InstructionKind {
    name: "Vectorize",
    method: "vectorize",
    is_pure: false,
    params: &[Param::Input("loop")],
    results: Results::None,
    apply: |sch, call| apply(sch, call, ForKind::Vectorized),
};

pub(in crate::s_tir) static UNROLL: InstructionKind = InstructionKind {
    name: "Unroll",
    method: "unroll",
    is_pure: false,
    params: &[Param::Input("loop")],
    results: Results::None,
    apply: |sch, call| apply(sch, call, ForKind::Unrolled),
};

pub(in crate::s_tir) static BIND: InstructionKind = InstructionKind {
    name: "Bind",
    method: "bind",
    is_pure: false,
    params: &[Param::Input("loop"), Param::Attr("thread_axis")],
    results: Results::None,
    apply: |sch, call| apply(sch, call, ForKind::ThreadBinding),
};

/// The names that threads have.
const THREAD_AXES: [&str; 10] = [
    "blockIdx.x",
    "blockIdx.y",
    "blockIdx.z",
    "threadIdx.x",
    "threadIdx.y",
    "threadIdx.z",
    "vthread",
    "vthread.x",
    "vthread.y",
    "vthread.z",
];

fn apply(sch: &mut Schedule, call: &mut Call<'_>, kind: ForKind) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.loop_ref(&call.loop_(0)?)?;
    let loop_ = place.for_loop()?;
    let thread_tag = if kind == ForKind::ThreadBinding { call.str(0)?.to_string() } else { String::new() };
    if kind == ForKind::ThreadBinding && !THREAD_AXES.contains(&thread_tag.as_str()) {
        let reason = format!("there is no thread axis `{thread_tag}`");
        return Err(ScheduleError::at_loop(&loop_, reason).with_help(format!("one of {}", THREAD_AXES.join(", "))));
    }
    if kind != ForKind::Unrolled {
        check_independent(&place, &loop_, &thread_tag)?;
    }
    let changed = Ref::new(For { kind, thread_tag, ..copy_loop(&loop_) });
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), changed.into())]);
    sch.commit(&place.func, body, &[])?;
    Ok(Vec::new())
}

/// Whether iterations of a loop may run at the same time.
fn check_independent(place: &StmtRef, loop_: &Ref<For>, thread_tag: &str) -> Result<(), ScheduleError> {
    let tree = &place.tree;
    // Another block that writes the same buffer elsewhere, as the init of a reduction does, is executed before or behind.
    let scope = Scope::under(tree, place.scope()?, place.node);
    for id in scope.children.iter().copied() {
        let Some(n) = tree.as_block(id) else { continue };
        if scope.why_not_complete(id).is_some()
            && let Some(reason) = scope.why_not_reduction(id)
        {
            let reason =
                format!("block `{}` is neither a complete block nor a reduction block: {reason}", n.block.name);
            return Err(ScheduleError::at_block(&n.block, reason));
        }
    }
    let inside = tree.blocks().filter(|(id, _)| tree.contains(place.node, *id));
    for (id, n) in inside {
        let loops: Vec<Ref<For>> = tree.loops_above(id).iter().filter_map(|l| tree.as_loop(*l).cloned()).collect();
        if !is_affine(n, &loops) {
            let reason =
                format!("the values of the axes of block `{}` are not affine in the loops around it", n.block.name);
            return Err(ScheduleError::at_block(&n.block, reason)
                .with_help("reorder and split in ways that divide the loops keep them so"));
        }
        for (iter, value) in n.block.iter_vars.iter().zip(&n.iter_values) {
            let uses = free_vars(value).contains(&loop_.var);
            let combined = iter.kind == IterKind::Reduce && thread_tag.starts_with("threadIdx");
            if uses && iter.kind != IterKind::Spatial && !combined {
                let reason = format!(
                    "axis `{}` of block `{}`, which loop `{}` runs over, is not spatial: its iterations depend on each other",
                    iter.var.name, n.block.name, loop_.var.name
                );
                return Err(ScheduleError::at_loop(loop_, reason).with_help("rfactor makes a reduction's axis spatial"));
            }
        }
    }
    Ok(())
}

impl Schedule {
    /// Spreads the iterations of a loop over the threads of the pool.
    pub fn parallel(&mut self, loop_: &Ref<LoopRV>) -> Result<(), StepError> {
        self.step_only(&PARALLEL, vec![loop_operand(loop_)], vec![])
    }

    /// Makes the iterations of a loop lanes of vectors.
    pub fn vectorize(&mut self, loop_: &Ref<LoopRV>) -> Result<(), StepError> {
        self.step_only(&VECTORIZE, vec![loop_operand(loop_)], vec![])
    }

    /// Writes the iterations of a loop one behind the other.
    pub fn unroll(&mut self, loop_: &Ref<LoopRV>) -> Result<(), StepError> {
        self.step_only(&UNROLL, vec![loop_operand(loop_)], vec![])
    }

    /// Makes the iterations of a loop threads of a device.
    pub fn bind(&mut self, loop_: &Ref<LoopRV>, thread_axis: &str) -> Result<(), StepError> {
        self.step_only(&BIND, vec![loop_operand(loop_)], vec![AttrValue::from(thread_axis)])
    }
}
