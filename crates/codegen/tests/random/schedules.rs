//! Kernels behind random steps of a schedule, against the kernels as they were made.

use relaxide_ir::Target;
use relaxide_tir::testing::{Options, Random, sample_from, schedule_from};
use relaxide_tir::{lower, schedule};

use super::{Case, check_cases, count, named};

pub fn make(name: &str, random: &mut Random) -> Result<Case, String> {
    let sample = sample_from(random, Options::default()).map_err(|e| e.to_string())?;
    let samples = random.between(1, 1000);
    let drawn = schedule_from(random, &sample.func, samples, 12).map_err(|e| e.to_string())?;
    let func = drawn.func().ok_or("no kernel is left")?;
    let script = relaxide_script::print_prim_func;
    let story = format!("{}\n{}\n{}", drawn.schedule.trace(), script(&sample.func), script(&func));
    // What the interpreter refuses might corrupt memory as native code.
    sample.interpret(&func).map_err(|e| format!("{e}\n{story}"))?;
    let scheduled = schedule::apply(&named(&func, name), &Target::default()).map_err(|e| format!("{e}\n{story}"))?;
    let lowered = lower::lower(&scheduled.func).map_err(|e| format!("{e}\n{story}"))?;
    Case::of_sample(name, sample, lowered, story)
}

#[test]
fn random_schedules_compile_to_the_same_results() {
    check_cases(count(60, 2000), make);
}
