//! Schedule rules: from blocks that say what is computed to loop nests that suit the processor.
//!
//! A kernel in block form is read as a [`Program`] of stages. Cheap injective stages are inlined into their consumers
//! ([`inline`]), an element-wise consumer becomes the *epilogue* of the reduction that feeds it ([`group`]), and what
//! remains is a list of [`Work`], in which pieces that share their rows are joined ([`rows`]): each piece goes to the first
//! rule of the table that does not refuse.
//!
//! ```text
//! pad, conv, bias, relu                one kernel of four blocks
//!   -> Reduce { conv over pad's body, epilogue = max(acc + bias[c], 0) }
//!   -> rule "conv": workspace with zero borders, tiles of 6 channels x 2 vectors, epilogue at the store
//! ```
//!
//! A rule is one file under `rules/`, in three steps (`rules/rule.rs`): what it matches, its [parameters], and the nest that it
//! makes of both; its doc names the roof that it is held to. Parameters are guesses with reasons, which [`Overrides`] replace.
//! Refusals are kept with their reasons ([`Note`]); the last rule of each table never refuses.
//!
//! A kernel that was [scheduled manually](manually_scheduled) stays as it is.
//!
//! Needs: a kernel as `create_prim_func` or fusion makes it. Gives: loops without blocks, except where a statement was not
//! understood (sorting, scans, hand-written kernels), which stays as it was. The order in which a reduction adds its terms
//! changes; nothing else does.

pub mod affine;
pub mod back_to_back;
mod below_maximum;
mod caches;
mod channel_groups;
mod column_panels;
mod compact;
mod declare;
pub mod group;
pub mod inline;
pub mod lanes;
mod machine;
mod manual;
pub mod nest;
pub mod overrides;
pub mod parameters;
mod pass;
mod periods;
mod prefetch;
mod quotients;
mod record;
mod recurrence;
mod requantize;
pub mod rows;
mod rules;
mod separate;
mod shown_by_sum;
pub mod square;
mod stage;
mod sum_of_exponentials;
mod threads;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::{Buffer, Target, Var, prim};

pub(crate) use declare::declare_views;
pub use group::{Reduce, Work};
use lanes::Views;
pub use machine::Machine;
pub use manual::{IS_SCHEDULED, manually_scheduled};
pub use overrides::{Override, OverrideError, Overrides};
pub use parameters::{Domain, Parameter};
pub(crate) use pass::PASS;
pub use pass::{KernelNote, Notes, SCHEDULE_OPTION, pass};
use record::Record;
pub use record::{Note, PieceError};
use recurrence::Laid;
pub use recurrence::RECURRENCE;
pub use rules::{SORTS_RANKS, copies_image, names as rule_names, tile_columns, words};
pub use separate::separates;
pub use stage::{Axis, Item, Program, Reduction, Stage};
#[cfg(test)]
pub(crate) use threads::launch;

use crate::inside::{self, Held};
use crate::{PrimFunc, Stmt};

/// Why a rule does not apply, in words for `--explain`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    /// A refusal and its reason.
    pub fn new(reason: impl Into<String>) -> Refusal {
        Refusal(reason.into())
    }
}

/// A kernel cannot be scheduled.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// Every rule refused a piece of work. This is a defect of the kernel's description.
    #[error("no schedule rule takes stage {stage}: {reason}")]
    NoRule {
        /// The stage.
        stage: String,
        /// What the last rule said.
        reason: String,
    },
    /// What was asked for a piece does not fit it: the fault of whoever asked.
    #[error(transparent)]
    Piece(#[from] PieceError),
}

/// A kernel as loops.
#[derive(Debug)]
pub struct Scheduled {
    /// The kernel.
    pub func: PrimFunc,
    /// How each piece came about.
    pub notes: Vec<Note>,
}

/// What rules work with.
pub struct Cx {
    /// The processor.
    pub machine: Machine,
    /// Flat views of the kernel's buffers.
    pub views: Views,
    /// Buffers of the kernel's own that one piece of work alone uses.
    pub private: HashSet<Ref<Buffer>>,
}

fn private(program: &Program, work: &[Work]) -> HashSet<Ref<Buffer>> {
    let mut users: HashMap<Ref<Buffer>, usize> = HashMap::new();
    for buffer in work.iter().flat_map(Work::buffers) {
        *users.entry(buffer).or_default() += 1;
    }
    program.intermediates.iter().filter(|b| users.get(*b) == Some(&1)).cloned().collect()
}

/// Schedules a kernel for a target. Its accesses are proved or checked to lie inside of their buffers.
pub fn apply(func: &PrimFunc, target: &Target) -> Result<Scheduled, ScheduleError> {
    apply_with(func, target, &[])
}

/// Schedules a kernel for a target as [`apply`] does, with other decisions than the rules' guesses.
pub fn apply_with(func: &PrimFunc, target: &Target, asked: &[Override]) -> Result<Scheduled, ScheduleError> {
    let Held { func, entry } = inside::hold(func);
    let mut record = Record::of(asked);
    let func = schedule(&func, target, &mut record)?;
    let mut scheduled = Scheduled { func, notes: record.finish()? };
    if !entry.is_empty() {
        scheduled.func = scheduled.func.with_body(behind_assertions(&scheduled.func.body, entry));
    }
    Ok(scheduled)
}

/// Checks of accesses stand in front of a kernel, but behind what it asserts of lengths: that says more of what is wrong.
fn behind_assertions(body: &Stmt, checks: Vec<Stmt>) -> Stmt {
    let all: &[Stmt] = match body {
        Stmt::Seq(seq) => &seq.seq,
        other => std::slice::from_ref(other),
    };
    // An assertion that reads memory does so behind the checks.
    let comes_first = |stmt: &Stmt| match stmt {
        Stmt::Alloc(_) | Stmt::Decl(_) => true,
        Stmt::Assert(assertion) => !prim::is_data(&assertion.condition),
        _ => false,
    };
    let (first, rest) = all.split_at(all.iter().take_while(|stmt| comes_first(stmt)).count());
    Stmt::seq(first.iter().cloned().chain(checks).chain(rest.iter().cloned()))
}

fn schedule(func: &PrimFunc, target: &Target, record: &mut Record<'_>) -> Result<PrimFunc, ScheduleError> {
    if !recurrence::any(func)
        && let Some(reason) = manually_scheduled(func)
    {
        let stage = func.global_symbol().unwrap_or("kernel").to_string();
        record.leave(stage, "manual", ("all rules", Refusal::new(reason)))?;
        let bind = target.is_gpu() && !threads::has_threads(&func.body);
        return Ok(if bind { func.with_body(threads::bind(&func.body)) } else { func.clone() });
    }
    let Laid { memory, body } = match recurrence::apply(func, target, record)? {
        Some(laid) => laid,
        None => lay_out(Program::read(func), target, record)?,
    };
    let stmts = memory.iter().map(Stmt::alloc).chain([body]);
    Ok(declare_views(&func.with_body(Stmt::seq(stmts))))
}

/// The nests of some statements of a kernel, with the memory that they alone use.
fn nests(
    func: &PrimFunc,
    memory: &[Ref<Buffer>],
    body: &Stmt,
    target: &Target,
    record: &mut Record<'_>,
) -> Result<Laid, ScheduleError> {
    let mut program = Program::read(&func.with_body(body.clone()));
    program.intermediates.extend(memory.iter().cloned());
    lay_out(program, target, record)
}

fn lay_out(mut program: Program, target: &Target, record: &mut Record<'_>) -> Result<Laid, ScheduleError> {
    inline::run(&mut program);
    if !target.is_gpu() {
        separate::run(&mut program);
    }
    let work = group::plan(&program);
    let work = column_panels::run(channel_groups::run(work));
    let work = compact::run(&mut program, work);
    let machine = Machine::of(target);
    let work = if target.is_gpu() { work } else { periods::run(requantize::run(work, &machine), &machine) };
    let work = back_to_back::join(&program, work, &machine, record)?;
    let work = rows::join(&program, work, &machine, record)?;
    let private = private(&program, &work);
    let mut cx = Cx { machine, views: Views::default(), private };
    let mut body = Vec::new();
    for piece in &work {
        body.push(rules::schedule(&mut cx, piece, record)?);
    }
    let mut memory = group::alive(&program, &work);
    let mut body = Stmt::seq(body);
    if target.is_gpu() {
        // Rules may have found other ways, which need other memory. What they do need they may reach by views alone.
        let (read, written) = stage::accessed(&body);
        let used: HashSet<&Ref<Var>> = read.iter().chain(&written).map(|buffer| &buffer.data).collect();
        memory.retain(|buffer| used.contains(&buffer.data));
        body = threads::bind(&body);
    }
    Ok(Laid { memory, body })
}
