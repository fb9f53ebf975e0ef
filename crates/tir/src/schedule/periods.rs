//! Axes of maps along which something repeats as two axes: which repetition, and what of it.
//!
//! ```text
//! B[i] = A[i % n]        for i in range(n * 100)     ->     B[n r + i] = A[i]        for r in range(100), i in range(n)
//! ```
//!
//! A repetition is a row that is copied, where each element was divided and gathered. **Leaves alone** what repeats within a vector.

use super::Machine;
use super::group::Work;
use super::quotients::Quotients;
use super::stage::Stage;

/// Gives repetitions an axis, in every map that has them.
pub fn run(work: Vec<Work>, machine: &Machine) -> Vec<Work> {
    let by_period = |piece| match piece {
        Work::Map(stage) => Work::Map(by_period(stage, machine)),
        other => other,
    };
    work.into_iter().map(by_period).collect()
}

fn by_period(mut stage: Stage, machine: &Machine) -> Stage {
    let lanes = machine.lanes(stage.output.dtype);
    for axis in stage.spatial.clone() {
        let is_last = stage.spatial.last().is_some_and(|last| last.var == axis.var);
        let Some(mut found) = Quotients::of(&stage.value, &axis.var, "repetition", true) else { continue };
        let is_short = is_last && found.by().is_some_and(|by| by < lanes);
        if !is_short
            && found.has_remainders(&stage.value)
            && let Some(new) = found.split_map(&stage)
        {
            stage = new;
        }
    }
    stage
}
