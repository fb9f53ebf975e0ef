//! Lowering: from loops over multi-dimensional buffers to what a back end translates one to one.
//!
//! [`lower`] runs the passes of [`PASSES`] in order. They accept any kernel, scheduled or not, and give the *lowered form*:
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

mod blocks;
mod bounds;
mod flatten;
mod hoist;
mod no_op;
mod ramp;
mod simplify;
mod single_definition;
mod unroll;
mod vectorize;
mod views;
mod vscale;

#[cfg(test)]
mod tests;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassInfo, PassResult};
use relaxide_ir::{BaseFunc, IRModule};

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

/// One lowering pass.
#[derive(Clone, Copy)]
pub struct LowerPass {
    /// Its name, as in pipelines and on the command line.
    pub name: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
    /// The pass on one kernel.
    pub run: KernelPass,
    /// The pass on every kernel of a module.
    pub info: PassInfo,
}

/// The pass that makes vectors.
const VECTORIZE_LOOP: &str = "tirx.transform.VectorizeLoop";

/// The pass that writes loops out.
const UNROLL_LOOP: &str = "tirx.transform.UnrollLoop";

macro_rules! passes {
    ($($(#[doc = $doc:literal])+ $name:literal => $run:path;)*) => {
        /// The lowering passes in order. One pass may stand in the list more than once.
        pub const PASSES: &[LowerPass] = &[$(LowerPass {
            name: $name,
            doc: concat!($($doc),+),
            run: $run,
            info: PassInfo::new($name, concat!($($doc),+), |module, _, _| map_kernels(module, $name, $run)),
        },)*];
    };
}

passes! {
    /// Renames variables that are defined more than once.
    "tirx.transform.ConvertSSA" => single_definition::define_once;
    /// Turns blocks into the loops around them: axes become expressions, initial values become guarded stores.
    "s_tir.transform.LowerOpaqueBlock" => blocks::lower_blocks;
    /// Simplifies indices, bounds and conditions; drops guards that always hold.
    "tirx.transform.StmtSimplify" => simplify::simplify;
    /// Turns accesses of several dimensions into flat ones.
    "tirx.transform.FlattenBuffer" => flatten::flatten_buffers;
    /// Turns vectorized loops into vector expressions, or into serial loops where that is impossible.
    "tirx.transform.VectorizeLoop" => vectorize::vectorize_loops;
    /// Writes unrolled loops out.
    "tirx.transform.UnrollLoop" => unroll::unroll_loops;
    /// Simplifies what the passes above have made.
    "tirx.transform.StmtSimplify" => simplify::simplify;
    /// Moves allocations out of serial loops.
    "tirx.transform.StorageRewrite" => hoist::hoist_allocations;
    /// Removes statements without effect.
    "tirx.transform.RemoveNoOp" => no_op::remove_no_ops;
}

/// The option of a pass context, and the name, of [`CHECK_BOUNDS`].
pub const CHECK_BOUNDS_OPTION: &str = "tirx.instrument_bound_checkers";

/// Turns accesses outside of their buffers into errors. Stands behind the lowering of blocks where it is asked for.
pub const CHECK_BOUNDS: LowerPass = LowerPass {
    name: "tirx.transform.InstrumentBoundCheckers",
    doc: "Turns accesses outside of their buffers into errors.",
    run: bounds::check_bounds,
    info: PassInfo::new(
        "tirx.transform.InstrumentBoundCheckers",
        "Turns accesses outside of their buffers into errors.",
        |module, _, _| map_kernels(module, "tirx.transform.InstrumentBoundCheckers", bounds::check_bounds),
    ),
};

/// How kernels are lowered.
#[derive(Clone, Copy, Debug, Default)]
pub struct LowerOptions {
    /// Whether accesses outside of buffers are errors ([`CHECK_BOUNDS`]).
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
    PASSES.iter().try_fold(func.clone(), |func, pass| {
        let run = match pass.name {
            VECTORIZE_LOOP if options.keep_loops => vectorize::skip_vectorize,
            UNROLL_LOOP if options.keep_loops => return Ok(func),
            _ => pass.run,
        };
        let func = run(&func)?;
        let checks = options.check_bounds && pass.name == "s_tir.transform.LowerOpaqueBlock";
        if checks { (CHECK_BOUNDS.run)(&func) } else { Ok(func) }
    })
}

fn map_kernels(mut module: IRModule, name: &'static str, run: KernelPass) -> PassResult {
    for (symbol, func) in module.functions.iter_mut() {
        let Some(kernel) = func.downcast::<PrimFunc>() else { continue };
        let lowered = run(&kernel).map_err(|error| PassError::new(name, format!("kernel `{symbol}`: {error}")))?;
        *func = BaseFunc::from(Ref::new(lowered));
    }
    Ok(module)
}
