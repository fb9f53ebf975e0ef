//! Programs of every kind of statement, bit for bit.

use relaxide_tir::interp::InterpError;
use relaxide_tir::lower::{self, LowerOptions, lower_with};
use relaxide_tir::testing::{ProgramOptions, Random, program};

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
    let program = program(random, ProgramOptions { mistakes: true });
    let script = relaxide_script::print_prim_func(&program.sample.func);
    let options = LowerOptions { check_bounds: true, ..LowerOptions::default() };
    let lowered = lower_with(&named(&program.sample.func, name), options).map_err(|e| format!("{e}\n{script}"))?;
    let expected = match program.sample.interpret(&program.sample.func) {
        Ok(elements) => Some(elements),
        // An access whose value nothing needs may have gone.
        Err(InterpError::OutOfBounds { .. }) => program.sample.interpret(&lowered).ok(),
        Err(other) => return Err(format!("{other}\n{script}")),
    };
    let name = name.to_string();
    let check = move |kernels: &_| match (execute(kernels, &name, &program.sample), &expected) {
        (Ok(found), Some(expected)) if program.difference(&found, expected).is_none() => Ok(()),
        (Ok(_), Some(_)) => Err(format!("another result\n{script}")),
        (Ok(_), None) => Err(format!("no error\n{script}")),
        (Err((kind, _)), None) if kind == "IndexError" => Ok(()),
        (Err(error), _) => Err(format!("{error:?}\n{script}")),
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
