//! The order of the passes that lower kernels.
//!
//! One list, with the alternatives in place: what checks accesses stands behind the lowering of blocks, which resolves sub-buffers, and
//! in front of what takes indices to be right; back ends whose compiler makes vectors are given loops. [`steps`] picks by
//! [`LowerOptions`]; [`passes`] makes passes over modules of what it picks.

use relaxide_ir::pass::{Pass, PassError, PassInfo};
use relaxide_ir::{Attrs, BaseFunc};

use super::{
    LowerError, LowerOptions, blocks, bounds, compact_allocations, flatten, hoist, init_block, match_buffer, no_op,
    opaque_blocks, plan_allocations, simplify, single_definition, unroll, vectorize, views,
};
use crate::PrimFunc;

/// A pass on one kernel.
pub type KernelPass = fn(&PrimFunc) -> Result<PrimFunc, LowerError>;

/// A pass at its place in the pipeline.
#[derive(Clone, Copy)]
pub struct LowerStep {
    /// The row of its pass.
    pub pass: PassInfo,
    /// The pass on one kernel, with the step's parameters and the default options of a context.
    pub run: KernelPass,
    /// Whether the lowered form depends on it, so that it cannot be left out.
    pub is_needed: bool,
    /// A parameter that is not the pass's default.
    parameter: Option<(&'static str, bool)>,
    /// Whether it is about blocks, so that a kernel without any is left as it is.
    of_blocks: bool,
    /// For which options it is in the pipeline.
    when: When,
}

/// For which options a step is in the pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// Accesses are checked, or are not.
    Checked(bool),
    /// Loops are kept for another compiler, or are not.
    KeepLoops(bool),
}

const fn step(pass: PassInfo, run: KernelPass) -> LowerStep {
    LowerStep { pass, run, is_needed: false, parameter: None, of_blocks: false, when: When::Always }
}

impl LowerStep {
    const fn needed(self) -> LowerStep {
        LowerStep { is_needed: true, ..self }
    }

    const fn of_blocks(self) -> LowerStep {
        LowerStep { of_blocks: true, ..self }
    }

    const fn when(self, when: When) -> LowerStep {
        LowerStep { when, ..self }
    }

    const fn parameter(self, name: &'static str, value: bool) -> LowerStep {
        LowerStep { parameter: Some((name, value)), ..self }
    }

    fn is_taken(&self, options: LowerOptions) -> bool {
        match self.when {
            When::Always => true,
            When::Checked(checked) => checked == options.check_bounds,
            When::KeepLoops(kept) => kept == options.keep_loops,
        }
    }

    /// Whether a kernel has what the pass is about.
    pub(super) fn is_about(&self, func: &PrimFunc) -> bool {
        !self.of_blocks || blocks::has_blocks(func)
    }

    /// The step as a pass over the kernels of a module.
    fn to_pass(self) -> Result<Pass, PassError> {
        let given = self.parameter.map_or_else(Attrs::new, |(name, value)| Attrs::new().with(name, value));
        let args = self.pass.complete(&given)?;
        Ok(Pass::new(self.pass.name, move |mut module, context| {
            let is_left = |func: &BaseFunc| func.downcast::<PrimFunc>().is_some_and(|func| !self.is_about(&func));
            let mut about = module.clone();
            about.functions.retain(|_, func| !is_left(func));
            module.functions.extend((self.pass.run)(about, context, &args)?.functions);
            Ok(module)
        }))
    }
}

/// The passes in order. One pass may stand in the list more than once.
pub static PIPELINE: &[LowerStep] = &[
    step(single_definition::PASS, single_definition::define_once).needed(),
    step(views::PASS, views::lower_declared_buffers).needed(),
    step(init_block::PASS, init_block::lower_init_blocks).of_blocks().needed(),
    // A buffer that is as large as its uses has none outside of it, so where accesses are checked it stays as it is.
    step(plan_allocations::PASS, plan_allocations::plan_allocations).of_blocks().when(When::Checked(false)),
    step(opaque_blocks::PASS, opaque_blocks::convert_blocks_to_opaque).of_blocks().needed(),
    step(compact_allocations::PASS, compact_allocations::compact_allocations).of_blocks().when(When::Checked(false)),
    step(match_buffer::PASS, match_buffer::lower_match_buffers).of_blocks().needed(),
    step(blocks::LOWERING, blocks::lower_opaque_blocks).of_blocks().needed(),
    step(bounds::PASS, bounds::check_bounds).when(When::Checked(true)).needed(),
    step(simplify::LOWERING, simplify::simplify),
    step(flatten::PASS, flatten::flatten_buffers).needed(),
    step(vectorize::PASS, vectorize::vectorize_loops)
        .parameter(vectorize::ANY_MASK, true)
        .when(When::KeepLoops(false))
        .needed(),
    step(vectorize::PASS, vectorize::skip_vectorize)
        .parameter(vectorize::ENABLE, false)
        .when(When::KeepLoops(true))
        .needed(),
    step(unroll::PASS, unroll::unroll_loops).when(When::KeepLoops(false)).needed(),
    step(simplify::LOWERING, simplify::simplify),
    step(hoist::PASS, hoist::hoist_allocations),
    step(no_op::PASS, no_op::remove_no_ops),
];

/// The steps that options ask for, in order.
pub fn steps(options: LowerOptions) -> impl Iterator<Item = &'static LowerStep> {
    PIPELINE.iter().filter(move |step| step.is_taken(options))
}

/// The passes over modules that options ask for, in order.
pub fn passes(options: LowerOptions) -> Result<Vec<Pass>, PassError> {
    steps(options).map(|step| step.to_pass()).collect()
}
