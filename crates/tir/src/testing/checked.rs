//! Random programs with checked bounds: each gives the interpreter's results, or an `IndexError`, and never a crash.

use super::{Program, ProgramOptions, Random, program};
use crate::PrimFunc;
use crate::interp::{InterpError, Scalar};
use crate::lower::{LowerOptions, lower_with};

/// A program, of which one in two has an index that is wrong, and what is to come out of it.
pub struct Checked {
    /// The program.
    pub program: Program,
    /// The program with checks, for a back end.
    pub lowered: PrimFunc,
    /// What it computes; `None` where an index is wrong.
    expected: Option<Vec<Vec<Scalar>>>,
}

impl Checked {
    /// A random program under a name.
    pub fn draw(random: &mut Random, name: &str) -> Result<Checked, String> {
        let program = program(random, ProgramOptions { mistakes: true });
        let func = &program.sample.func;
        let named = PrimFunc { attrs: func.attrs.clone().with("global_symbol", name), ..func.clone() };
        let lowered = lower_with(&named, LowerOptions { check_bounds: true, ..LowerOptions::default() })
            .map_err(|e| format!("{e}\n{func}"))?;
        let expected = match program.sample.interpret(func) {
            Ok(elements) => Some(elements),
            // An access whose value nothing needs may have gone.
            Err(InterpError::OutOfBounds { .. }) => program.sample.interpret(&lowered).ok(),
            Err(other) => return Err(format!("{other}\n{func}")),
        };
        Ok(Checked { program, lowered, expected })
    }

    /// Holds what an execution gave, its outputs or its error's kind and text, against what is right.
    pub fn judge(&self, found: Result<Vec<Vec<Scalar>>, (String, String)>) -> Result<(), String> {
        match (found, &self.expected) {
            (Ok(found), Some(expected)) => match self.program.difference(&found, expected) {
                None => Ok(()),
                Some((output, at)) => {
                    let (found, expected) = (found[output].get(at), expected[output].get(at));
                    Err(format!("{found:?} for {expected:?} at {at} of output {output}"))
                }
            },
            (Ok(_), None) => Err("no error".into()),
            (Err((kind, _)), None) if kind == "IndexError" => Ok(()),
            (Err(error), _) => Err(format!("{error:?}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_programs_whose_errors_the_checks_find() {
        let mut noise = Random::new(3);
        let mut inputs: Vec<Vec<u8>> = vec![Vec::new(), vec![0; 64], vec![255; 100], (0..=255).collect()];
        inputs.extend((1..9).map(|n| (0..n * 40).map(|_| noise.bits() as u8).collect()));
        let mut errors = 0;
        for bytes in &inputs {
            let case = Checked::draw(&mut Random::from_bytes(bytes), "kernel").unwrap();
            let found = case.program.sample.interpret(&case.lowered).map_err(|error| match error {
                InterpError::Assertion { kind, message } => (kind, message),
                other => (String::new(), other.to_string()),
            });
            errors += usize::from(found.is_err());
            case.judge(found).unwrap_or_else(|e| panic!("{e}\n{}", case.program.sample.func));
        }
        assert!(errors > 0 && errors < inputs.len(), "{errors} of {} go wrong", inputs.len());
    }
}
