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
//! A rule is one file under `rules/`: what it matches, the nest that it makes, its parameters and the roof that it is held
//! to. Refusals are kept with their reasons ([`Note`]); the last rule of each table never refuses.
//!
//! A kernel that was [scheduled by hand](scheduled_by_hand) stays as it is.
//!
//! Needs: a kernel as `create_prim_func` or fusion makes it. Gives: loops without blocks, except where a statement was not
//! understood (sorting, scans, hand-written kernels), which stays as it was. The order in which a reduction adds its terms
//! changes; nothing else does.

pub mod affine;
mod below_maximum;
mod by_hand;
mod compact;
mod declare;
pub mod group;
pub mod inline;
pub mod lanes;
mod machine;
pub mod nest;
mod read_ahead;
pub mod rows;
mod rules;
mod separate;
mod shown_by_sum;
pub mod stage;
mod sum_of_exponentials;
mod threads;
mod turns;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::{Buffer, Target, prim};

pub use by_hand::{IS_SCHEDULED, scheduled_by_hand};
pub(crate) use declare::declare_views;
pub use group::{Reduce, Work};
use lanes::Views;
pub use machine::Machine;
pub use rules::SORTS_RANKS;
pub use stage::{Axis, Item, Program, Reduction, Stage};
#[cfg(test)]
pub(crate) use threads::launch;
use turns::Laid;
pub use turns::TURNS;

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

/// A kernel cannot be scheduled. This is a defect of the kernel's description.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// Every rule refused a piece of work.
    #[error("no schedule rule takes stage {stage}: {reason}")]
    NoRule {
        /// The stage.
        stage: String,
        /// What the last rule said.
        reason: String,
    },
}

/// What happened to one piece of work: the rule that took it, and why those before refused.
#[derive(Clone, Debug)]
pub struct Note {
    /// Name of the stage.
    pub stage: String,
    /// The rule that took it.
    pub rule: &'static str,
    /// Rules that were asked before, with their reasons.
    pub refused: Vec<(&'static str, Refusal)>,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.stage, self.rule)?;
        for (rule, reason) in &self.refused {
            write!(f, "\n  not {rule}: {reason}")?;
        }
        Ok(())
    }
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
    let Held { func, entry } = inside::hold(func);
    let mut scheduled = schedule(&func, target)?;
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

fn schedule(func: &PrimFunc, target: &Target) -> Result<Scheduled, ScheduleError> {
    if !turns::any(func)
        && let Some(reason) = scheduled_by_hand(func)
    {
        let stage = func.global_symbol().unwrap_or("kernel").to_string();
        let note = Note { stage, rule: "by hand", refused: vec![("all rules", Refusal::new(reason))] };
        let bind = target.is_gpu() && !threads::has_threads(&func.body);
        let func = if bind { func.with_body(threads::bind(&func.body)) } else { func.clone() };
        return Ok(Scheduled { func, notes: vec![note] });
    }
    let mut notes = Vec::new();
    let Laid { memory, body } = match turns::apply(func, target, &mut notes)? {
        Some(laid) => laid,
        None => lay_out(Program::read(func), target, &mut notes)?,
    };
    let stmts = memory.iter().map(Stmt::alloc).chain([body]);
    Ok(Scheduled { func: declare_views(&func.with_body(Stmt::seq(stmts))), notes })
}

/// The nests of some statements of a kernel, with the memory that they alone use.
fn nests(
    func: &PrimFunc,
    (memory, body): (&[Ref<Buffer>], &Stmt),
    target: &Target,
    notes: &mut Vec<Note>,
) -> Result<Laid, ScheduleError> {
    let mut program = Program::read(&func.with_body(body.clone()));
    program.intermediates.extend(memory.iter().cloned());
    lay_out(program, target, notes)
}

fn lay_out(mut program: Program, target: &Target, notes: &mut Vec<Note>) -> Result<Laid, ScheduleError> {
    inline::run(&mut program);
    if !target.is_gpu() {
        separate::run(&mut program);
    }
    let work = group::plan(&program);
    let work = compact::run(&mut program, work);
    let machine = Machine::of(target);
    let work = rows::join(&program, work, machine.device);
    let private = private(&program, &work);
    let mut cx = Cx { machine, views: Views::default(), private };
    let mut body = Vec::new();
    for piece in &work {
        body.push(rules::schedule(&mut cx, piece, notes)?);
    }
    let mut memory = group::alive(&program, &work);
    let mut body = Stmt::seq(body);
    if target.is_gpu() {
        // Rules may have found other ways, which need other memory.
        let (read, written) = stage::accessed(&body);
        memory.retain(|buffer| read.contains(buffer) || written.contains(buffer));
        body = threads::bind(&body);
    }
    Ok(Laid { memory, body })
}
