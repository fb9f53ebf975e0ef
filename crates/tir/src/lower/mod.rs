//! Lowering: from loops over multi-dimensional buffers to what a back end translates one to one.
//!
//! [`lower`] runs the passes of [`PIPELINE`] in order; [`PASSES`] is the table of all of them. They accept any kernel, scheduled or not, and give the *lowered form*:
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

mod annotate;
mod blocks;
mod bounds;
mod canonical_loop;
mod common_subexpr;
mod compact_allocations;
mod device_limits;
mod drop_statements;
mod filled_before_read;
mod flatten;
mod float_storage;
mod force_narrow;
mod hoist;
mod hoist_choices;
mod hoist_conditions;
mod hoist_expression;
mod init_block;
mod irregular_loop;
mod loop_partition;
mod match_buffer;
mod narrow;
mod no_op;
mod opaque_blocks;
mod open_packed;
mod plan_allocations;
mod promote_floats;
mod pure;
mod ramp;
mod rewritten_weights;
mod shared_memory;
mod simplify;
mod single_definition;
mod split_device;
mod split_pattern;
mod table;
mod thread_sync;
mod threads_in_turn;
mod unify_threads;
mod unroll;
mod unsafe_select;
mod vectorize;
mod verify_memory;
mod views;
mod virtual_thread;
mod vscale;

#[cfg(test)]
mod pass_tests;
#[cfg(test)]
mod tests;

use relaxide_ir::pass::PassInfo;

pub use device_limits::DeviceLimits;
pub use open_packed::{is_opened, is_opened_float, open_packed, stores_packed};
pub use shared_memory::{SHARED, bytes_of, is_shared, is_shared_scope};
pub use split_device::{DEVICE_TYPE, FAULT_WORDS, Fault, Launch, Split, split_device};
pub use table::{PASSES, absent, pass};
use table::{kernel_pass, kernel_pass_with};
pub use threads_in_turn::not_in_turn;
pub use vscale::fix_vscale;

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

/// A pass on one kernel.
pub type KernelPass = fn(&PrimFunc) -> Result<PrimFunc, LowerError>;

/// A step of [`lower`].
#[derive(Clone, Copy)]
pub struct LowerStep {
    /// The row of its pass.
    pub pass: PassInfo,
    /// The pass on one kernel, with default options.
    pub run: KernelPass,
    /// Whether it is about blocks, so that a kernel without any is left out.
    of_blocks: bool,
}

const fn step(pass: PassInfo, run: KernelPass) -> LowerStep {
    LowerStep { pass, run, of_blocks: false }
}

const fn of_blocks(pass: PassInfo, run: KernelPass) -> LowerStep {
    LowerStep { pass, run, of_blocks: true }
}

/// The passes of [`lower`] in order. One pass may stand in the list more than once.
pub static PIPELINE: &[LowerStep] = &[
    step(single_definition::PASS, single_definition::define_once),
    of_blocks(init_block::PASS, init_block::lower_init_blocks),
    of_blocks(plan_allocations::PASS, plan_allocations::plan_allocations),
    of_blocks(opaque_blocks::PASS, opaque_blocks::convert_blocks_to_opaque),
    of_blocks(compact_allocations::PASS, compact_allocations::compact_allocations),
    of_blocks(match_buffer::PASS, match_buffer::lower_match_buffers),
    of_blocks(blocks::PASS, blocks::lower_opaque_blocks),
    step(simplify::PASS, simplify::simplify),
    step(flatten::PASS, flatten::flatten_buffers),
    step(vectorize::PASS, vectorize::vectorize_loops),
    step(unroll::PASS, unroll::unroll_loops),
    step(simplify::PASS, simplify::simplify),
    step(hoist::PASS, hoist::hoist_allocations),
    step(no_op::PASS, no_op::remove_no_ops),
];

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
    let has_blocks = blocks::has_blocks(func);
    let mut to_check = options.check_bounds;
    PIPELINE.iter().filter(|step| has_blocks || !step.of_blocks).try_fold(func.clone(), |func, step| {
        match step.pass.name {
            // Blocks and loops move what the place of a declared buffer names.
            single_definition::NAME => Ok(views::open_views(&(step.run)(&func)?)),
            // A buffer that is as large as its uses has none outside of it.
            plan_allocations::NAME | compact_allocations::NAME if options.check_bounds => Ok(func),
            // Behind the lowering of blocks, which opens sub-buffers, and in front of what takes indices to be right.
            simplify::NAME if to_check => {
                to_check = false;
                (step.run)(&bounds::check_bounds(&func)?)
            }
            vectorize::NAME if options.keep_loops => vectorize::skip_vectorize(&func),
            unroll::NAME if options.keep_loops => Ok(func),
            _ => (step.run)(&func),
        }
    })
}
