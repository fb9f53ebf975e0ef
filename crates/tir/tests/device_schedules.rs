//! What threads of a block do together is what the blocks say: every rule by random kernels, interpreted.

use relaxide_ir::Target;

use relaxide_tir::lower::{DeviceLimits, LowerOptions, lower_with, split_device};
use relaxide_tir::schedule::{Override, apply, apply_with};
use relaxide_tir::testing::{KINDS, Random, Teamwork, teamwork, tensor_product};

fn check(seed: u64, target: &Target) {
    let Teamwork { sample, rule } = teamwork(seed).unwrap();
    let scheduled = apply(&sample.func, target).unwrap();
    let notes: Vec<&str> = scheduled.notes.iter().map(|note| note.rule).collect();
    assert!(notes.contains(&rule), "seed {seed}: {rule}: {:?}\n{}", scheduled.notes, scheduled.func);
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
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 2 * KINDS };
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

/// Each parameter of a rule by another value: the kernel computes the same.
#[test]
fn what_rules_decide_may_be_replaced() {
    let mut replaced = 0;
    for (seed, target) in [
        (0, "opencl"),
        (3, "cuda -arch=sm_80"),
        (4, "opencl"),
        (5, "cuda -arch=sm_80"),
        (8, "opencl"),
        (9, "opencl"),
        (12, "opencl"),
        (13, "opencl"),
        (23, "opencl"),
    ] {
        let target: Target = target.parse().unwrap();
        let sample = teamwork(seed).unwrap().sample;
        let expected = sample.interpret(&sample.func).unwrap();
        for note in apply(&sample.func, &target).unwrap().notes {
            for parameter in &note.parameters {
                let others: Vec<i64> = parameter.domain.values().filter(|value| *value != parameter.value).collect();
                let Some(other) = others.get(seed as usize % others.len().max(1)) else { continue };
                let values = vec![(parameter.name.clone(), *other)];
                let asked = [Override { stage: note.key.clone(), rule: note.rule.into(), values }];
                let scheduled = apply_with(&sample.func, &target, &asked).unwrap_or_else(|error| panic!("{error}"));
                let lowered =
                    lower_with(&scheduled.func, LowerOptions { keep_loops: true, ..Default::default() }).unwrap();
                let found =
                    sample.interpret(&lowered).unwrap_or_else(|error| panic!("{parameter}: {error}\n{lowered}"));
                assert!(sample.difference(&found, &expected).is_none(), "{parameter} by {other}\n{lowered}");
                replaced += 1;
            }
        }
    }
    assert!(replaced >= 5, "{replaced}");
}

/// A product by tensor cores, with some of its parameters replaced, and those of a seed.
fn check_tensor_cores(seed: u64, values: &[(&str, i64)]) {
    let target: Target = "cuda -arch=sm_80".parse().unwrap();
    let Teamwork { sample, rule } = tensor_product(seed).unwrap();
    let stage = apply(&sample.func, &target).unwrap().notes[0].key.clone();
    let rounds = (seed % 6 == 5).then_some(("tf32", 1));
    let values = rounds.iter().chain(values).map(|(name, value)| (name.to_string(), *value)).collect();
    let asked = [Override { stage, rule: rule.into(), values }];
    let scheduled =
        apply_with(&sample.func, &target, &asked).unwrap_or_else(|error| panic!("seed {seed}: {error}")).func;
    let lowered = lower_with(&scheduled, LowerOptions { keep_loops: true, ..Default::default() }).unwrap();
    assert!(lowered.to_string().contains("warp_multiply_add"), "{lowered}");
    let expected = sample.interpret(&sample.func).unwrap();
    let found = sample.interpret(&lowered).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{lowered}"));
    if let Some((output, at)) = sample.difference(&found, &expected) {
        let (found, expected) = (found[output][at], expected[output][at]);
        panic!("seed {seed}: {found:?} for {expected:?} at {at}\n{}\n{lowered}", sample.func);
    }
    let limits = DeviceLimits::of(&target);
    for launch in split_device(&lowered, target.device_type()).unwrap().launches {
        limits.check(&launch).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn warps_multiply_what_the_blocks_say() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 300 } else { 6 };
    (0..count).for_each(|seed| check_tensor_cores(seed, &[]));
}

#[test]
fn warps_of_any_size_multiply_the_same() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 300 } else { 6 };
    for seed in 0..count {
        let mut random = Random::new(seed + 1000);
        let pick = |random: &mut Random, list: &[i64]| list[random.below(list.len())];
        let values = [
            ("warp_rows", pick(&mut random, &[16, 32])),
            ("warp_columns", pick(&mut random, &[16, 32])),
            ("warps_down", pick(&mut random, &[1, 2])),
            ("warps_across", pick(&mut random, &[1, 2])),
            ("depth", pick(&mut random, &[32])),
            ("double_buffer", pick(&mut random, &[0, 1])),
        ];
        check_tensor_cores(seed, &values);
    }
}

#[test]
fn single_precision_is_rounded_only_where_it_is_asked_for() {
    let Teamwork { sample, .. } = tensor_product(5).unwrap();
    let notes = apply(&sample.func, &"cuda -arch=sm_80".parse().unwrap()).unwrap().notes;
    let refused = &notes[0].refused;
    assert!(notes[0].rule == "tiled product" && refused[0].1.to_string().contains("tf32 = 1"), "{notes:?}");
    let Teamwork { sample, .. } = tensor_product(0).unwrap();
    for (target, taken) in [("cuda -arch=sm_75", false), ("cuda -arch=sm_90a", true), ("opencl", false)] {
        let notes = apply(&sample.func, &target.parse().unwrap()).unwrap().notes;
        assert_eq!(notes[0].rule == "tensor-core product", taken, "{target}: {notes:?}");
    }
}
