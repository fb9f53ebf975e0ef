//! Code whose jumps lead to labels.

use std::collections::HashMap;

use relaxide_relay_vm::Instruction;

/// A place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Label(pub usize);

/// A line of code before jumps are resolved.
pub(super) enum Line {
    /// An instruction that is no jump.
    Plain(Instruction),
    /// A jump to one of two places.
    Choice { test: i64, target: i64, then: Label, other: Label },
    /// A jump.
    Goto(Label),
    /// A place.
    Here(Label),
}

/// Jumps as distances. A jump to the next line is left out.
pub(super) fn resolve(lines: &[Line]) -> Vec<Instruction> {
    let skipped = |i: usize| match &lines[i] {
        Line::Here(_) => true,
        Line::Goto(label) => {
            let mut next = i + 1;
            while let Some(Line::Here(here)) = lines.get(next) {
                if here == label {
                    return true;
                }
                next += 1;
            }
            false
        }
        _ => false,
    };
    let mut places = HashMap::new();
    let mut at = 0i64;
    for (i, line) in lines.iter().enumerate() {
        if let Line::Here(label) = line {
            places.insert(label.0, at);
        }
        if !skipped(i) {
            at += 1;
        }
    }
    let mut code = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if skipped(i) {
            continue;
        }
        let here = code.len() as i64;
        let distance = |label: &Label| places.get(&label.0).copied().unwrap_or(here) - here;
        code.push(match line {
            Line::Plain(instruction) => instruction.clone(),
            Line::Choice { test, target, then, other } => {
                Instruction::If { test: *test, target: *target, then: distance(then), other: distance(other) }
            }
            Line::Goto(label) => Instruction::Goto { offset: distance(label) },
            Line::Here(_) => continue,
        });
    }
    code
}
