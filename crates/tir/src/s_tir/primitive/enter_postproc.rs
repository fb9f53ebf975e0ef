//! `enter_postproc`: a mark in the trace. What is behind it is left out of traces without postprocessing.

use crate::s_tir::instruction::{InstructionKind, Results};
use crate::s_tir::{Schedule, StepError};

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "EnterPostproc",
    method: "enter_postproc",
    is_pure: false,
    params: &[],
    results: Results::None,
    apply: |_, _| Ok(Vec::new()),
};

impl Schedule {
    /// Marks the place in the trace where postprocessing begins.
    pub fn enter_postproc(&mut self) -> Result<(), StepError> {
        self.step_only(&KIND, vec![], vec![])
    }
}
