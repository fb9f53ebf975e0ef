//! Random kernels behind the schedule rules, and behind random steps.

use relaxide_ir::Target;

use super::{Options, sample, schedule_at_random};
use crate::{lower, schedule, verify};

#[test]
fn scheduled_kernels_compute_the_same_up_to_rounding() {
    for seed in 0..24 {
        let sample = sample(seed, Options::default()).unwrap();
        let expected = sample.interpret(&sample.func).unwrap();
        let scheduled = schedule::apply(&sample.func, &Target::default()).unwrap().func;
        verify::verify(&scheduled).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let lowered = lower::lower(&scheduled).unwrap();
        for (what, func) in [("scheduled", scheduled), ("lowered", lowered)] {
            let found = sample.interpret(&func).unwrap_or_else(|e| panic!("seed {seed}, {what}: {e}\n{func}"));
            let wrong = sample.difference(&found, &expected);
            assert_eq!(wrong, None, "seed {seed}, {what}:\n{}\n{func}", sample.func);
        }
    }
}

/// A kernel behind random steps computes the same, as blocks and lowered, and its trace leads there again.
fn check_random_steps(seed: u64) -> Vec<&'static str> {
    let sample = sample(seed, Options::default()).unwrap();
    let expected = sample.interpret(&sample.func).unwrap();
    let drawn = schedule_at_random(&sample.func, seed, 12).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let func = drawn.func().unwrap();
    let story = || format!("seed {seed}\n{}\n{}\n{func}", drawn.schedule.trace(), sample.func);
    verify::verify(&func).unwrap_or_else(|e| panic!("{e}\n{}", story()));
    let lowered = lower::lower(&func).unwrap_or_else(|e| panic!("{e}\n{}", story()));
    for (what, func) in [("scheduled", &*func), ("lowered", &lowered)] {
        let found = sample.interpret(func).unwrap_or_else(|e| panic!("{what}: {e}\n{}\n{func}", story()));
        assert_eq!(sample.difference(&found, &expected), None, "{what}: {}\n{func}", story());
    }
    let mut again = crate::s_tir::Schedule::of_func(sample.func.clone());
    drawn.schedule.trace().apply_to(&mut again, false).unwrap_or_else(|e| panic!("{e}\n{}", story()));
    assert_eq!(again.func("main").unwrap().to_string(), func.to_string(), "{}", story());
    drawn.carried_out
}

#[test]
fn random_steps_keep_what_a_kernel_computes() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 60 };
    let mut steps: Vec<&'static str> = (0..count).flat_map(check_random_steps).collect();
    steps.sort_unstable();
    steps.dedup();
    for wanted in ["compute_inline", "fuse", "parallel", "reorder", "split", "unroll", "vectorize"] {
        assert!(steps.contains(&wanted), "{wanted} was never legal: {steps:?}");
    }
}
