//! Places in a program that jumps name before they are known.
//!
//! ```
//! use relaxide_vm::{Arg, ExecBuilder, Register};
//!
//! let mut builder = ExecBuilder::new();
//! builder.begin_function("forever", &["x"])?;
//! let head = builder.new_label();
//! builder.bind_label(head)?;
//! builder.emit_call("step", &[Arg::Register(Register(0))], Register(0))?;
//! builder.emit_goto_label(head)?;
//! builder.end_function()?;
//! assert!(builder.get()?.as_text()?.contains("goto  -1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::builder::{BuildError, ExecBuilder};
use crate::bytecode::Register;

/// A place in the code. It belongs to the builder that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label(usize);

/// What a builder knows of a label.
#[derive(Clone, Debug, Default)]
pub(crate) struct LabelUse {
    /// The instruction that it names.
    target: Option<usize>,
    /// The jumps that lead to it.
    jumps: Vec<usize>,
}

impl ExecBuilder {
    /// A label that names no place yet.
    pub fn new_label(&mut self) -> Label {
        self.labels.push(LabelUse::default());
        Label(self.labels.len() - 1)
    }

    /// Has a label name the next instruction.
    pub fn bind_label(&mut self, label: Label) -> Result<(), BuildError> {
        let next = self.next_instruction();
        let place = self.labels.get_mut(label.0).ok_or(BuildError::UnknownLabel(label.0))?;
        if place.target.replace(next).is_some() {
            return Err(BuildError::LabelBoundTwice(label.0));
        }
        Ok(())
    }

    /// Emits a jump to a label; returns the number of the instruction.
    pub fn emit_goto_label(&mut self, label: Label) -> Result<usize, BuildError> {
        let jump = self.emit_goto(0)?;
        self.note_jump(label, jump)
    }

    /// Emits a branch that jumps to a label if the register is zero; returns the number of the instruction.
    pub fn emit_if_label(&mut self, cond: Register, label: Label) -> Result<usize, BuildError> {
        let jump = self.emit_if(cond, 0)?;
        self.note_jump(label, jump)
    }

    fn note_jump(&mut self, label: Label, jump: usize) -> Result<usize, BuildError> {
        let place = self.labels.get_mut(label.0).ok_or(BuildError::UnknownLabel(label.0))?;
        place.jumps.push(jump);
        Ok(jump)
    }

    /// Fills in where jumps to labels lead.
    pub(crate) fn settle_labels(&mut self) -> Result<(), BuildError> {
        for (number, place) in std::mem::take(&mut self.labels).into_iter().enumerate() {
            for jump in place.jumps {
                let target = place.target.ok_or(BuildError::UnboundLabel(number))?;
                self.set_jump_target(jump, target)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Arg;

    fn builder() -> ExecBuilder {
        let mut builder = ExecBuilder::new();
        builder.begin_function("f", &["x"]).unwrap();
        builder
    }

    #[test]
    fn jumps_lead_where_their_labels_are() {
        let mut b = builder();
        let (head, end) = (b.new_label(), b.new_label());
        b.bind_label(head).unwrap();
        b.emit_call("test", &[Arg::Register(Register(0))], Register(1)).unwrap();
        b.emit_if_label(Register(1), end).unwrap();
        b.emit_goto_label(head).unwrap();
        b.bind_label(end).unwrap();
        b.emit_ret(Register(1)).unwrap();
        b.end_function().unwrap();
        let text = b.get().unwrap().as_text().unwrap();
        assert!(text.contains("If    %1, 2") && text.contains("goto  -2"), "{text}");
    }

    #[test]
    fn labels_that_make_no_sense_are_refused() {
        let mut b = builder();
        let label = b.new_label();
        b.emit_goto_label(label).unwrap();
        b.emit_ret(Register(0)).unwrap();
        b.end_function().unwrap();
        assert_eq!(b.get().unwrap_err(), BuildError::UnboundLabel(0));

        let mut b = builder();
        let label = b.new_label();
        b.bind_label(label).unwrap();
        assert_eq!(b.bind_label(label).unwrap_err(), BuildError::LabelBoundTwice(0));
        assert_eq!(b.bind_label(Label(7)).unwrap_err(), BuildError::UnknownLabel(7));
        assert_eq!(b.emit_goto_label(Label(7)).unwrap_err(), BuildError::UnknownLabel(7));

        // A label behind the last instruction of a function leads out of it.
        let mut b = builder();
        let label = b.new_label();
        b.emit_goto_label(label).unwrap();
        b.end_function().unwrap();
        b.bind_label(label).unwrap();
        assert!(matches!(b.get().unwrap_err(), BuildError::Verify(_)));
    }
}
