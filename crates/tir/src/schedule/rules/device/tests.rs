//! What threads of a block do together is what the blocks say: every rule by random kernels, interpreted.

use relaxide_ir::Target;

use crate::lower::{DeviceLimits, LowerOptions, lower_with, split_device};
use crate::schedule::apply;
use crate::testing::{KINDS, Teamwork, teamwork};

fn check(seed: u64, target: &Target) {
    let Teamwork { sample, rule } = teamwork(seed).unwrap();
    let scheduled = apply(&sample.func, target).unwrap();
    let notes: Vec<&str> = scheduled.notes.iter().map(|note| note.rule).collect();
    assert!(notes.contains(&rule), "seed {seed}: {notes:?} for {rule}\n{}", sample.func);
    let lowered = lower_with(&scheduled.func, LowerOptions { keep_loops: true, ..Default::default() });
    let lowered = lowered.unwrap_or_else(|error| panic!("seed {seed}: {error}\n{}", scheduled.func));
    let expected = sample.interpret(&sample.func).unwrap();
    let found = sample.interpret(&lowered).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{lowered}"));
    assert!(sample.difference(&found, &expected).is_none(), "seed {seed}\n{}\n{lowered}", sample.func);
    let limits = DeviceLimits::of(target);
    for launch in split_device(&lowered, target.device_type()).unwrap().launches {
        limits.check(&launch).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn threads_together_compute_what_the_blocks_say() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { KINDS };
    for seed in 0..count {
        let target = ["opencl", "cuda -arch=sm_80"][(seed / KINDS % 2) as usize];
        check(seed, &target.parse().unwrap());
    }
}

#[test]
fn a_device_of_few_threads_and_little_memory_gets_blocks_that_fit() {
    let target: Target = "opencl -max_threads_per_block=64 -max_shared_memory_per_block=9216".parse().unwrap();
    (KINDS..2 * KINDS).for_each(|seed| check(seed, &target));
}
