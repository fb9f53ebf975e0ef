//! From a case that fails to a simple one that fails.
//!
//! Works on the choices that a case was made of, so it knows nothing of kernels or schedules: whatever a generator makes of
//! fewer and smaller choices is a legal case again. This is how Hypothesis shrinks (MacIver and Donaldson, "Test-Case
//! Reduction via Test-Case Generation", ECOOP 2020).

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Random;

/// How many cases are tried on the way to a simpler one.
const ATTEMPTS: usize = 4000;

/// A case that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The choices that lead to it, for [`Random::repeat`].
    pub choices: Vec<u64>,
    /// What was found.
    pub story: String,
}

/// Checks a case; a panic is a failure too.
pub fn attempt(mut random: Random, check: &dyn Fn(&mut Random) -> Result<(), String>) -> Result<(), Failure> {
    let found = catch_unwind(AssertUnwindSafe(|| check(&mut random))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string())).unwrap_or_default())
    });
    found.map_err(|story| Failure { choices: random.choices(), story })
}

/// The simplest failure that is found near a failure.
pub fn shrink(failure: Failure, check: &dyn Fn(&mut Random) -> Result<(), String>) -> Failure {
    let mut search = Search { best: failure, left: ATTEMPTS, check };
    loop {
        let before = search.best.choices.clone();
        for size in [64, 16, 4, 2, 1] {
            search.delete(size);
        }
        search.lower();
        if search.left == 0 || search.best.choices == before {
            return search.best;
        }
    }
}

/// So many seeds, from the one that `RELAXIDE_SEED` names, or else from zero.
pub fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("RELAXIDE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(0u64);
    first..first.saturating_add(count)
}

/// Checks the cases of so many [`seeds`]; the first that fails is made simple and reported by a panic.
pub fn check_seeds(count: u64, check: &dyn Fn(&mut Random) -> Result<(), String>) {
    for seed in seeds(count) {
        if let Err(failure) = attempt(Random::new(seed), check) {
            report(seed, failure, check);
        }
    }
}

/// Panics with the simplest form of a failure.
pub fn report(seed: u64, failure: Failure, check: &dyn Fn(&mut Random) -> Result<(), String>) -> ! {
    let Failure { choices, story } = shrink(failure, check);
    panic!("seed {seed}, made simpler to the choices {choices:?}:\n{story}");
}

struct Search<'a> {
    best: Failure,
    left: usize,
    check: &'a dyn Fn(&mut Random) -> Result<(), String>,
}

impl Search<'_> {
    /// Takes over a list of choices that fails and is simpler: shorter, or of equal length and less in the first place that differs.
    fn accept(&mut self, choices: &[u64]) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let Err(found) = attempt(Random::repeat(choices), self.check) else { return false };
        let simpler = (found.choices.len(), &found.choices) < (self.best.choices.len(), &self.best.choices);
        if simpler {
            self.best = found;
        }
        simpler
    }

    /// Leaves out runs of choices, the last ones first.
    fn delete(&mut self, size: usize) {
        let mut end = self.best.choices.len();
        while end > 0 {
            let list = &self.best.choices;
            end = end.min(list.len());
            let start = end.saturating_sub(size);
            let shorter = [&list[..start], &list[end..]].concat();
            if !self.accept(&shorter) {
                end = end.saturating_sub(1.max(size / 2));
            }
        }
    }

    /// Makes choices smaller, each by bisection.
    fn lower(&mut self) {
        let mut at = 0;
        while let Some(&value) = self.best.choices.get(at) {
            let mut low = 0;
            let mut high = value;
            while low < high {
                let middle = if low == 0 { 0 } else { low + (high - low) / 2 };
                let mut fewer = self.best.choices.clone();
                let Some(place) = fewer.get_mut(at) else { break };
                *place = middle;
                if self.accept(&fewer) {
                    high = middle;
                } else {
                    low = middle + 1;
                }
            }
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails where some number of a list is above 100.
    fn check(random: &mut Random) -> Result<(), String> {
        let list: Vec<usize> = (0..random.below(20)).map(|_| random.below(1000)).collect();
        if list.iter().any(|v| *v > 100) { Err(format!("{list:?}")) } else { Ok(()) }
    }

    #[test]
    fn a_failure_becomes_the_simplest_that_fails() {
        let failure = (0..).find_map(|seed| attempt(Random::new(seed), &check).err()).unwrap();
        assert_eq!(shrink(failure, &check), Failure { choices: vec![1, 101], story: "[101]".into() });
    }

    #[test]
    fn a_panic_is_a_failure() {
        let found = attempt(Random::new(0), &|_| panic!("at the {}", "end")).unwrap_err();
        assert_eq!(found.story, "at the end");
    }
}
