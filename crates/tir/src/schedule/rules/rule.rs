//! What a schedule rule is: match, parameters, emission.
//!
//! ```text
//! find(work)            what it is about the kernel that the rule serves, or a refusal
//! decide(found)         parameters: guesses from the machine and the shape, or what replaces them
//! emit(found, decided)  the nest
//! ```
//!
//! The loop nest follows from what was found and decided alone. What an emission asks the machine for is what it *is*
//! (whether it multiplies and adds at once), never what would be good on it.
//!
//! Every rule has a parameter that is not its own: from which work on its loops are shared by threads.

use crate::Stmt;
use crate::schedule::parameters::{Choices, Domain, Guess};
use crate::schedule::record::{PieceError, Record};
use crate::schedule::{Cx, Machine, Refusal, ScheduleError};

/// A schedule rule.
pub trait Rule {
    /// The kind of work.
    type Work;
    /// What it finds in it.
    type Found<'w>;
    /// What it decides.
    type Decided;

    /// Whether the rule serves a piece of work, and what of it matters; a refusal says why not.
    fn find<'w>(machine: &Machine, work: &'w Self::Work) -> Result<Self::Found<'w>, Refusal>;

    /// The parameters.
    fn decide(machine: &Machine, found: &Self::Found<'_>, choices: &mut Choices<'_>) -> Result<Self::Decided, Refusal>;

    /// The loop nest.
    fn emit(cx: &mut Cx, found: &Self::Found<'_>, decided: &Self::Decided) -> Result<Stmt, Refusal>;
}

/// A row of a table of rules: the name of one and its function.
pub struct Entry<T> {
    pub name: &'static str,
    pub apply: fn(&mut Cx, &T, &mut Choices<'_>) -> Result<Stmt, Refusal>,
}

/// The three steps of a rule.
pub fn apply<R: Rule>(cx: &mut Cx, work: &R::Work, choices: &mut Choices<'_>) -> Result<Stmt, Refusal> {
    let found = R::find(&cx.machine, work)?;
    let decided = R::decide(&cx.machine, &found, choices)?;
    with_threads(cx, choices, |cx| R::emit(cx, &found, &decided))
}

/// Emits with threads where they pay, which is a parameter of all rules.
pub fn with_threads<T>(cx: &mut Cx, choices: &mut Choices<'_>, emit: impl FnOnce(&mut Cx) -> T) -> T {
    let guess = cx.machine.parallel_threshold;
    cx.machine.parallel_threshold = threads_from(&cx.machine, choices);
    let made = emit(cx);
    cx.machine.parallel_threshold = guess;
    made
}

/// From how many simple operations on threads share the work; none where there is but one. Devices always do.
pub fn threads_from(machine: &Machine, choices: &mut Choices<'_>) -> Option<i64> {
    let guess = machine.parallel_threshold?;
    if machine.device.is_some() {
        return Some(guess);
    }
    Some(choices.choose(Guess {
        name: "threads_from",
        value: guess,
        domain: Domain::list([0].into_iter().chain((10..=30).step_by(2).map(|n| 1 << n))),
        reason: "threads take about as long to start as this many simple operations",
        limit: "it is a number of simple operations below which one thread does all, in coarse steps",
    }))
}

/// Lanes of a vector: what fits a register of the machine.
pub fn lanes(choices: &mut Choices<'_>, fitting: i64) -> i64 {
    choices.choose(Guess {
        name: "lanes",
        value: fitting,
        domain: Domain::powers_of_two(fitting.min(2), fitting),
        reason: "a vector fills a register with the widest type that takes part",
        limit: "a register of the machine holds no more, and vectors have a power of two of lanes",
    })
}

/// The nest of a piece of work by the first rule that does not refuse, or by the one that is asked for.
pub fn first<T>(
    cx: &mut Cx,
    rules: &[Entry<T>],
    work: &T,
    stage: String,
    record: &mut Record<'_>,
) -> Result<Stmt, ScheduleError> {
    let key = record.key(&stage);
    if let Some(asked) = record.asked(&key) {
        let Some(rule) = rules.iter().find(|rule| rule.name == asked.rule) else {
            let known = rules.iter().map(|rule| rule.name).collect();
            return Err(PieceError::NoRule { stage: key, rule: asked.rule.clone(), known }.into());
        };
        let mut choices = Choices::of(Some(asked));
        let made = (rule.apply)(cx, work, &mut choices);
        let refused = |reason| PieceError::Refused { stage: key, rule: asked.rule.clone(), reason };
        // A value that was refused says more than what the guess in its place led to.
        if choices.wrong().is_some() || made.is_ok() {
            record.check(asked, &choices)?;
        }
        let made = made.map_err(refused)?;
        record.note(stage, rule.name, Vec::new(), choices.into_parameters());
        return Ok(made);
    }
    let mut refused = Vec::new();
    for rule in rules {
        let mut choices = Choices::of(None);
        match (rule.apply)(cx, work, &mut choices) {
            Ok(stmt) => {
                record.note(stage, rule.name, refused, choices.into_parameters());
                return Ok(stmt);
            }
            Err(refusal) => refused.push((rule.name, refusal)),
        }
    }
    let reason = refused.pop().map_or_else(|| "there is none".into(), |(_, r)| r.to_string());
    Err(ScheduleError::NoRule { stage, reason })
}
