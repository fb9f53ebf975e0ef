//! Bytes as a random kernel and random steps of a schedule: what is not refused computes the same, and its trace leads there
//! again. A finding prints the trace and the kernel.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_tir::s_tir::Schedule;
use relaxide_tir::testing::{Options, Random, sample_from, schedule_from};
use relaxide_tir::{lower, verify};

fuzz_target!(|bytes: &[u8]| {
    let mut random = Random::from_bytes(bytes);
    let Ok(sample) = sample_from(&mut random, Options { max_stages: 3, ..Options::default() }) else { return };
    let expected = sample.interpret(&sample.func).expect("a random kernel runs");
    let samples = random.between(1, 1000);
    let drawn = schedule_from(&mut random, &sample.func, samples, 16).expect("blocks are found");
    let func = drawn.func().expect("the kernel is there");
    let story = || format!("{}\n{}\n{func}", drawn.schedule.trace(), sample.func);
    verify::verify(&func).unwrap_or_else(|e| panic!("{e}\n{}", story()));
    let lowered = lower::lower(&func).unwrap_or_else(|e| panic!("{e}\n{}", story()));
    for func in [&*func, &lowered] {
        let found = sample.interpret(func).unwrap_or_else(|e| panic!("{e}\n{}\n{func}", story()));
        assert_eq!(sample.difference(&found, &expected), None, "{}\n{func}", story());
    }
    let mut again = Schedule::of_func(sample.func.clone());
    drawn.schedule.trace().apply_to(&mut again, false).unwrap_or_else(|e| panic!("{e}\n{}", story()));
});
