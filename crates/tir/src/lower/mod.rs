//! Lowering: from loops over multi-dimensional buffers to what a back end translates one to one.
//!
//! [`PIPELINE`] is the passes in order, [`LowerOptions`] say which of its alternatives are taken, and [`PASSES`] is the table of all
//! passes over kernels. A compilation runs them as [`passes`] of a module, below the instruments of its context; [`lower`] runs them on
//! one kernel. They accept any kernel, scheduled or not, and give the *lowered form*:
//!
//! * no blocks; loops are serial or parallel, counting from a minimum by one;
//! * every buffer is accessed by one index, flat and row-major (strides apply to it only in buffers of one dimension that
//!   have a stride);
//! * vectors are explicit: ramps, broadcasts and predicates; no vectorized or unrolled loop is left;
//! * scratch is allocated outside of serial loops where its size allows.
//!
//! Each pass leaves the kernel's meaning as it was, bit for bit, which the tests check with the interpreter. A pass is
//! total: what it cannot improve it leaves in a form that later passes and back ends accept, and only a malformed kernel is
//! an error.

mod and_of_ors;
mod annotate;
mod blocks;
mod bounds;
mod canonical_loop;
mod common_subexpr;
mod compact_allocations;
mod decompose_packed;
mod device_indices;
mod device_limits;
mod double_buffer;
mod drop_statements;
mod flat_buffers;
mod flatten;
mod float_storage;
mod force_narrow;
mod hoist;
mod hoist_choices;
mod hoist_conditions;
mod hoist_expression;
mod init_block;
mod initialized_before_read;
mod inline_kernels;
mod irregular_loop;
mod launch;
mod loop_partition;
mod loops;
mod lower_intrin;
mod magnitude;
mod match_buffer;
mod merge_shared;
mod narrow;
mod no_op;
mod opaque_blocks;
mod pipeline;
mod plan_allocations;
mod profile_intrinsics;
mod promote_floats;
mod pure;
mod ramp;
mod rewritten_weights;
mod serial_threads;
mod shared_memory;
mod simplify;
mod single_definition;
mod software_pipeline;
mod split_device;
mod split_pattern;
mod table;
mod thread_allreduce;
mod thread_sync;
mod unify_threads;
mod unroll;
mod unsafe_select;
mod use_assumptions;
mod used_boxes;
mod vectorize;
mod verify_memory;
mod versions;
mod views;
mod virtual_thread;
mod vscale;

#[cfg(test)]
mod tests;

pub use canonical_loop::{module_of_unit_steps, unit_steps};
pub use decompose_packed::{decompose_packed, is_decomposed, is_decomposed_float, stores_packed};
pub use device_limits::DeviceLimits;
pub use launch::{FAULT_WORDS, Fault, Launch};
pub use pipeline::{KernelPass, LowerStep, PIPELINE, passes, steps};
pub(crate) use profile_intrinsics::PROFILER_CALLS;
pub use ramp::linear_in_lane;
pub use serial_threads::not_serial;
pub use shared_memory::{SHARED, bytes_of, is_shared, is_shared_scope};
pub use split_device::{DEVICE_TYPE, PASS as SPLIT_HOST_DEVICE, Split, split_device, split_for};
pub(crate) use table::on_kernels;
pub use table::{PASSES, absent, pass};
use table::{kernel_pass, kernel_pass_with};
pub use vscale::fix_vscale;

use relaxide_ir::Code;
use relaxide_ir::pass::Refusal;

use crate::PrimFunc;
use crate::verify::{VerifyError, verify};

/// Why a kernel could not be lowered: it is malformed.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LowerError {
    /// An access has a number of indices that its buffer does not allow.
    #[error("buffer `{buffer}` has {ndim} dimensions but is accessed with {indices} indices")]
    WrongRank {
        /// The buffer.
        buffer: String,
        /// Its rank.
        ndim: usize,
        /// How many indices there are.
        indices: usize,
    },
    /// A block is given values for fewer or more axes than it has.
    #[error("block `{block}` has {axes} axes but is given {values} values")]
    AxisValues {
        /// The block.
        block: String,
        /// How many axes it has.
        axes: usize,
        /// How many values there are.
        values: usize,
    },
    /// An option of a pass has a value that the pass does not know. The user's.
    #[error("{option} {given:?} is not known; there is {known}")]
    Option {
        /// Which option.
        option: &'static str,
        /// What was given.
        given: String,
        /// What could be.
        known: &'static str,
    },
    /// A kernel has what a pass cannot do. The user's, or that of what runs the pass.
    #[error("{0}")]
    Refused(String),
    /// The kernel is not well-formed.
    #[error(transparent)]
    Malformed(#[from] VerifyError),
    /// A sub-buffer does not fit the region that it stands for.
    #[error("sub-buffer `{buffer}` does not fit the region of `{source_buffer}` that it stands for: {reason}")]
    SubBuffer {
        /// The sub-buffer.
        buffer: String,
        /// Of which buffer.
        source_buffer: String,
        /// What does not fit.
        reason: &'static str,
    },
}

/// What to try where a kernel is malformed.
pub const KERNEL_HELP: &str = "a kernel that the program holds as it is must be well-formed; of any other this is a defect of Relaxide: \
                               report it with the program";

impl From<LowerError> for Refusal {
    fn from(error: LowerError) -> Refusal {
        let code = match &error {
            LowerError::Option { .. } => Code::PassArguments,
            LowerError::Refused(_) => Code::Precondition,
            _ => return Refusal::new(Code::Kernel, error.to_string()).help(KERNEL_HELP),
        };
        Refusal::new(code, error.to_string())
    }
}

/// The option of a pass context that asks for [`LowerOptions::check_bounds`].
pub const CHECK_BOUNDS_OPTION: &str = "tirx.instrument_bound_checkers";

/// How kernels are lowered.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerOptions {
    /// Whether accesses outside of buffers are errors (`InstrumentBoundCheckers`).
    pub check_bounds: bool,
    /// Whether vectorized loops become serial ones and unrolled ones stay, for back ends whose compiler does both.
    pub keep_loops: bool,
}

/// Lowers a kernel of any form.
pub fn lower(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    lower_with(func, LowerOptions::default())
}

/// Lowers a kernel of any form, as options say.
pub fn lower_with(func: &PrimFunc, options: LowerOptions) -> Result<PrimFunc, LowerError> {
    verify(func)?;
    if let Some(what) = crate::tile::unlowered(func) {
        return Err(LowerError::Refused(format!("no code is made of {what}")));
    }
    let stepped = unit_steps(func)?;
    let func = stepped.as_ref().unwrap_or(func);
    steps(options).filter(|step| step.is_about(func)).try_fold(func.clone(), |func, step| (step.run)(&func))
}
