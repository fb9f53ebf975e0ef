//! What schedules need to know of a kernel in block form: which boxes of buffers statements touch, what the axes of a block
//! are bound to, and what a reduction combines.
//!
//! Nothing here changes a kernel. The questions are asked of statements, not of a schedule's state, so that passes and
//! the schedule rules may ask them as well.

pub mod affine;
pub mod cost;
pub mod effects;
pub mod interval;
pub mod iterators;
pub mod reducer;
pub mod regions;
#[cfg(test)]
pub(crate) mod samples;
pub mod wide;
