//! The search itself: which candidate comes next, and what becomes of it.

use std::path::PathBuf;
use std::time::Instant;

use relaxide_ir::IRModule;
use relaxide_tir::s_tir::random::Random;
use relaxide_tir::schedule::{Domain, KernelNote, Override, Parameter};
use relaxide_vm::ProfileReport;

use super::{Comparison, Database, Kernel, Measure, MeasureError, Pair, TuneOptions, build, kernels};
use crate::compiler::processors::target_name;
use crate::{CompileOptions, Error};

/// What was found for a kernel.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The kernel.
    pub kernel: String,
    /// Its time by the rules' guesses over its time now, where it got faster: the product of what each change won.
    pub speedup: f64,
    /// The parameters that are no guesses, as `stage.name = value`.
    pub changed: Vec<String>,
    /// How many candidates were measured.
    pub trials: usize,
    /// How many of them failed, or computed something else.
    pub wrong: usize,
}

/// A candidate that was measured.
pub struct Trial<'a> {
    /// How many were, with it.
    pub done: usize,
    /// What it won, in words, if it did.
    pub won: Option<&'a str>,
    /// What is known by now.
    pub database: &'a Database,
}

/// Another value of one parameter.
struct Change {
    /// Which of the kernels.
    kernel: usize,
    /// Which piece of its note.
    piece: usize,
    parameter: Parameter,
    value: i64,
}

/// What became of a change.
enum Outcome {
    /// The rules refuse it, or the kernel stays the same.
    NoCandidate,
    /// It was measured; what it won in words, if it did.
    Measured(Option<String>),
}

/// A search over the kernels of a program.
pub struct Tuner<'o, 'p> {
    options: &'o mut CompileOptions<'p>,
    target: String,
    candidates: Vec<TunedKernel>,
    folder: tempfile::TempDir,
    random: Random,
    /// How many libraries were made.
    made: usize,
    /// What was told of decisions that no longer fit.
    pub stale: Vec<String>,
}

/// A kernel, and the best that is known of it.
struct TunedKernel {
    kernel: Kernel,
    decisions: Vec<Override>,
    note: KernelNote,
    library: PathBuf,
    /// Values that were tried for what is known now: stage, parameter, value.
    tried: Vec<(String, String, i64)>,
    /// Seconds by the guesses and now, by the measurements that were won.
    times: Option<(f64, f64)>,
    found: Tuned,
}

impl<'o, 'p> Tuner<'o, 'p> {
    /// A search over a program's kernels, which begins with what a database says. `report` is of a run of the program.
    pub fn new(
        program: &IRModule,
        report: &ProfileReport,
        options: &'o mut CompileOptions<'p>,
        database: &mut Database,
        seed: u64,
    ) -> Result<Self, Error> {
        let target = target_name(options)?;
        let failed = |source| Error::Io { context: "cannot make a temporary folder".into(), source };
        let folder = tempfile::Builder::new().prefix("relaxide-tune-").tempdir().map_err(failed)?;
        let all = kernels(program, report, options)?;
        let (mut candidates, mut stale) = (Vec::new(), Vec::new());
        for name in database.kernels(&target) {
            if !all.iter().any(|kernel| kernel.name == name) {
                stale.push(format!("{name}: no run of the program calls such a kernel"));
                database.set(&name, &target, &[], None);
            }
        }
        let mut made = 0;
        for kernel in all {
            let known = database.of_kernel(&kernel.name, &target);
            let mut place = || {
                made += 1;
                folder.path().join(format!("{made}.so"))
            };
            let by_known = build(&kernel, &known, options, place());
            let (decisions, (library, note)) = match by_known {
                Ok(built) => (known, built),
                Err(error) if !known.is_empty() => {
                    stale.push(format!("{}: its decisions no longer fit: {error}", kernel.name));
                    database.set(&kernel.name, &target, &[], None);
                    (Vec::new(), build(&kernel, &[], options, place())?)
                }
                Err(error) => return Err(error),
            };
            let found = Tuned { kernel: kernel.name.clone(), speedup: 1.0, changed: Vec::new(), trials: 0, wrong: 0 };
            candidates.push(TunedKernel { kernel, decisions, note, library, tried: Vec::new(), times: None, found });
        }
        Ok(Tuner { options, target, candidates, folder, random: Random::new(seed as i64), made, stale })
    }

    /// Tries candidates until the budget is spent or there is nothing left to try. `tell` hears of each.
    pub fn run(
        &mut self,
        budget: TuneOptions,
        measure: &mut dyn Measure,
        database: &mut Database,
        tell: &mut dyn FnMut(&Trial<'_>) -> Result<(), Error>,
    ) -> Result<Vec<Tuned>, Error> {
        let (start, mut done) = (Instant::now(), 0);
        let is_spent =
            |done: usize| done >= budget.trials || budget.limit.is_some_and(|limit| start.elapsed() >= limit);
        while !is_spent(done) {
            let Some(change) = self.propose() else { break };
            let Outcome::Measured(won) = self.try_one(&change, measure)? else { continue };
            done += 1;
            if won.is_some() {
                let state = &self.candidates[change.kernel];
                database.set(&state.kernel.name, &self.target, &state.decisions, state.times);
            }
            tell(&Trial { done, won: won.as_deref(), database })?;
        }
        Ok(self.candidates.iter().map(|state| state.found.clone()).collect())
    }

    /// A change that was not tried. Kernels come up by the time they take.
    fn propose(&mut self) -> Option<Change> {
        let all = self.candidates.iter().enumerate();
        let mut open: Vec<Vec<Change>> =
            all.map(|(at, state)| state.changes(at)).filter(|changes| !changes.is_empty()).collect();
        let weight = |changes: &Vec<Change>| {
            let kernel = changes.first().map_or(0, |change| change.kernel);
            // A kernel of a thousandth of the time is still worth a try when others are done.
            self.candidates[kernel].kernel.time.as_micros() as usize + 1
        };
        let mut left = self.random.below(open.iter().map(weight).sum());
        let chosen = open.iter().position(|changes| {
            let own = weight(changes);
            let is_here = left < own;
            left = left.saturating_sub(own);
            is_here
        })?;
        let mut changes = open.swap_remove(chosen);
        let which = self.random.below(changes.len());
        Some(changes.swap_remove(which))
    }

    /// Measures a change.
    fn try_one(&mut self, change: &Change, measure: &mut dyn Measure) -> Result<Outcome, Error> {
        let Change { kernel, piece, ref parameter, value } = *change;
        let state = &mut self.candidates[kernel];
        let Some(note) = state.note.notes.get(piece) else { return Ok(Outcome::NoCandidate) };
        let (stage, rule) = (note.key.clone(), note.rule.to_string());
        state.tried.push((stage.clone(), parameter.name.clone(), value));
        let decisions = with_change(&state.decisions, &stage, &rule, parameter, value);
        self.made += 1;
        let path = self.folder.path().join(format!("{}.so", self.made));
        // A value that others do not go with is refused by the rule: there are more.
        let Ok((library, note)) = build(&state.kernel, &decisions, self.options, path) else {
            return Ok(Outcome::NoCandidate);
        };
        // Many parameters say from where on something is done: on the same side of that, the kernel is the same.
        if std::fs::read(&library).ok().is_some_and(|code| std::fs::read(&state.library).is_ok_and(|own| own == code)) {
            let _ = std::fs::remove_file(&library);
            return Ok(Outcome::NoCandidate);
        }
        let (kernel, arguments) = (&state.kernel.name, &state.kernel.arguments);
        let pair = Pair { incumbent: &state.library, candidate: &library, kernel, arguments };
        state.found.trials += 1;
        let compared = measure.compare(pair);
        if let Err(error @ MeasureError::Unreachable(_)) = compared {
            return Err(error.into());
        }
        state.found.wrong += usize::from(!compared.as_ref().is_ok_and(|compared| compared.agrees));
        // Of many candidates the luckiest looks faster: what counts is that it is so again.
        let again = compared.ok().filter(Comparison::is_won).and_then(|_| measure.compare(pair).ok());
        let won = again.filter(Comparison::is_won);
        let Some(Comparison { incumbent, candidate, .. }) = won else {
            let _ = std::fs::remove_file(&library);
            return Ok(Outcome::Measured(None));
        };
        let _ = std::fs::remove_file(&state.library);
        state.found.speedup *= incumbent / candidate;
        let first = state.times.map_or(incumbent, |(first, _)| first);
        state.times = Some((first, candidate));
        (state.library, state.note, state.decisions) = (library, note, decisions);
        // What was slower before may be faster now.
        state.tried.clear();
        state.found.changed = changed(&state.decisions);
        Ok(Outcome::Measured(Some(format!(
            "{}: {:.1} to {:.1} us by {stage}.{} = {value} (was {})",
            state.kernel.name,
            incumbent * 1e6,
            candidate * 1e6,
            parameter.name,
            parameter.value
        ))))
    }
}

impl TunedKernel {
    /// All changes of one parameter that were not tried yet.
    fn changes(&self, kernel: usize) -> Vec<Change> {
        let mut all = Vec::new();
        for (piece, note) in self.note.notes.iter().enumerate() {
            for parameter in &note.parameters {
                let values = other_values(parameter);
                let is_new = |value: &i64| {
                    let tried = |(stage, name, tried): &(String, String, i64)| {
                        (stage, name, tried) == (&note.key, &parameter.name, value)
                    };
                    !self.tried.iter().any(tried)
                };
                let change = |value| Change { kernel, piece, parameter: parameter.clone(), value };
                all.extend(values.into_iter().filter(is_new).map(change));
            }
        }
        all
    }
}

/// What a parameter may be instead: of a long domain, steps about its value, the double and the half, and both ends.
fn other_values(parameter: &Parameter) -> Vec<i64> {
    const LONG: usize = 12;
    let Parameter { value, domain, .. } = parameter;
    let first: Vec<i64> = domain.values().take(LONG + 1).collect();
    let mut values = match (domain, first.len() > LONG) {
        (Domain::Range { first, last, step }, true) => {
            let snapped = |wanted: i64| first + (wanted - first).div_euclid(*step) * step;
            let about = [-2, -1, 1, 2].map(|steps| value + steps * step);
            about.into_iter().chain([snapped(value / 2), snapped(value * 2), *first, *last]).collect()
        }
        (Domain::List(list), true) => list.clone(),
        _ => first,
    };
    values.retain(|other| other != value && domain.contains(*other));
    values.sort_unstable();
    values.dedup();
    values
}

/// Decisions with one changed. A value that is the guess again is none.
fn with_change(decisions: &[Override], stage: &str, rule: &str, parameter: &Parameter, value: i64) -> Vec<Override> {
    let mut all = decisions.to_vec();
    let piece = match all.iter().position(|piece| piece.stage == stage) {
        Some(at) => at,
        None => {
            all.push(Override { stage: stage.to_string(), rule: rule.to_string(), values: Vec::new() });
            all.len() - 1
        }
    };
    let values = &mut all[piece].values;
    values.retain(|(name, _)| *name != parameter.name);
    if value != parameter.guess {
        values.push((parameter.name.clone(), value));
    }
    all.retain(|piece| !piece.values.is_empty());
    all
}

fn changed(decisions: &[Override]) -> Vec<String> {
    let of_piece = |piece: &Override| {
        let stage = piece.stage.clone();
        piece.values.iter().map(|(name, value)| format!("{stage}.{name} = {value}")).collect::<Vec<_>>()
    };
    decisions.iter().flat_map(of_piece).collect()
}
