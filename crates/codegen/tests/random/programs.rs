//! Programs of every kind of statement, bit for bit.

use relaxide_tir::lower;
use relaxide_tir::testing::{Checked, ProgramOptions, Random, program};

use super::{Case, check_cases, count, execute, named};

pub fn make(name: &str, random: &mut Random) -> Result<Case, String> {
    let program = program(random, ProgramOptions::default());
    let script = relaxide_script::print_prim_func(&program.sample.func);
    let expected = program.sample.interpret(&program.sample.func).map_err(|e| format!("{e}\n{script}"))?;
    let lowered = lower::lower(&named(&program.sample.func, name)).map_err(|e| format!("{e}\n{script}"))?;
    // What the interpreter refuses might corrupt memory as native code.
    program.sample.interpret(&lowered).map_err(|e| format!("lowered: {e}\n{script}"))?;
    let name = name.to_string();
    let check = move |kernels: &_| {
        let found = execute(kernels, &name, &program.sample).map_err(|error| format!("{error:?}\n{script}"))?;
        match program.difference(&found, &expected) {
            Some((output, at)) => {
                let (found, expected) = (found[output].get(at), expected[output].get(at));
                Err(format!("{found:?} for {expected:?} at {at} of output {output}\n{script}"))
            }
            None => Ok(()),
        }
    };
    Ok(Case { lowered, check: Box::new(check) })
}

/// Programs with checked bounds, half of them with an index that is wrong: each gives the results, or the error, never a crash.
pub fn make_checked(name: &str, random: &mut Random) -> Result<Case, String> {
    let case = Checked::draw(random, name)?;
    let (name, lowered) = (name.to_string(), case.lowered.clone());
    let check = move |kernels: &_| {
        let sample = &case.program.sample;
        case.judge(execute(kernels, &name, sample))
            .map_err(|error| format!("{error}\n{}", relaxide_script::print_prim_func(&sample.func)))
    };
    Ok(Case { lowered, check: Box::new(check) })
}

#[test]
fn accesses_outside_of_buffers_are_errors_where_bounds_are_checked() {
    check_cases(count(60, 2000), make_checked);
}

#[test]
fn random_programs_compile_to_the_same_results() {
    check_cases(count(100, 5000), make);
}
