//! Random kernels behind the schedule rules, and behind random steps.

use std::cell::RefCell;
use std::collections::BTreeSet;

use relaxide_ir::Target;

use relaxide_tir::testing::{
    Options, ProgramOptions, Random, check_seeds, program, sample, sample_from, schedule_from,
};
use relaxide_tir::{lower, schedule, verify};

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
fn check_random_steps(random: &mut Random, executed: &RefCell<BTreeSet<&'static str>>) -> Result<(), String> {
    let sample = sample_from(random, Options::default()).map_err(|e| e.to_string())?;
    let expected = sample.interpret(&sample.func).map_err(|e| e.to_string())?;
    let samples = random.between(1, 1000);
    let drawn = schedule_from(random, &sample.func, samples, 12).map_err(|e| e.to_string())?;
    let func = drawn.func().ok_or("no kernel is left")?;
    let story = |what: String| format!("{what}\n{}\n{}\n{func}", drawn.schedule.trace(), sample.func);
    verify::verify(&func).map_err(|e| story(e.to_string()))?;
    let lowered = lower::lower(&func).map_err(|e| story(e.to_string()))?;
    for (what, func) in [("scheduled", &*func), ("lowered", &lowered)] {
        let found = sample.interpret(func).map_err(|e| story(format!("{what}: {e}\n{func}")))?;
        if let Some((output, at)) = sample.difference(&found, &expected) {
            let (found, expected) = (found[output].get(at), expected[output].get(at));
            return Err(story(format!("{what}: {found:?} for {expected:?} at {at} of output {output}")));
        }
    }
    let mut again = relaxide_tir::s_tir::Schedule::of_func(sample.func.clone());
    drawn.schedule.trace().apply_to(&mut again, false).map_err(|e| story(e.to_string()))?;
    let repeated = again.func("main").map_err(|e| e.to_string())?.to_string();
    if repeated != func.to_string() {
        return Err(story(format!("the trace leads elsewhere:\n{repeated}")));
    }
    executed.borrow_mut().extend(drawn.executed);
    Ok(())
}

#[test]
fn random_steps_keep_what_a_kernel_computes() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 2000 } else { 60 };
    let steps = RefCell::default();
    check_seeds(count, &|random| check_random_steps(random, &steps));
    for wanted in ["compute_inline", "fuse", "parallel", "reorder", "split", "unroll", "vectorize"] {
        assert!(steps.borrow().contains(wanted), "{wanted} was never legal: {steps:?}");
    }
}

/// A random program computes the same in lowered form, by the interpreter.
fn check_program(random: &mut Random) -> Result<(), String> {
    let program = program(random, ProgramOptions::default());
    let (sample, func) = (&program.sample, &program.sample.func);
    verify::verify(func).map_err(|e| format!("{e}\n{func}"))?;
    let expected = sample.interpret(func).map_err(|e| format!("{e}\n{func}"))?;
    let lowered = lower::lower(func).map_err(|e| format!("{e}\n{func}"))?;
    let found = sample.interpret(&lowered).map_err(|e| format!("lowered: {e}\n{func}\n{lowered}"))?;
    match program.difference(&found, &expected) {
        Some((output, at)) => {
            let (found, expected) = (found[output].get(at), expected[output].get(at));
            Err(format!("lowered: {found:?} for {expected:?} at {at} of output {output}\n{func}\n{lowered}"))
        }
        None => Ok(()),
    }
}

#[test]
fn random_programs_compute_the_same_when_lowered() {
    let count = if std::env::var_os("RELAXIDE_DEEP").is_some() { 5000 } else { 100 };
    check_seeds(count, &check_program);
}
