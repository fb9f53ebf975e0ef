//! The compute language: what a kernel computes, element by element, before anyone asks how.
//!
//! An op describes its result as a graph of *stages*. A [`placeholder`] is an input; a [`compute`] gives one element as an
//! expression over its axes and over elements of other tensors; [`sum`], [`max`] and their like combine many elements
//! into one; an [`extern_stage`] is written as statements where no expression will do (a sort, a scan).
//! [`create_prim_func`] turns the graph between some tensors into a kernel in block form, which the schedule rules read.
//!
//! ```
//! use relaxide_ir::{DataType, Var, prim};
//! use relaxide_tir::te;
//!
//! let n = Var::dim("n");
//! let a = te::placeholder("A", [prim::PrimExpr::from(&n), 64.into()], DataType::float(32));
//! let k = te::reduce_axis(64);
//! let b = te::compute("B", [&n], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
//! let kernel = te::create_prim_func(&[a, b]).unwrap();
//! assert_eq!(kernel.params.len(), 2);
//! ```
//!
//! **Invariants.** An axis has the type of what it runs over: 64-bit, unless a dimension is given in another. A tensor is
//! immutable and cheap to clone. A stage is referred to by the buffers of its outputs: each carries the stage that produces
//! it, so an expression needs nothing but loads.
//!
//! **Left out.** Nothing here knows loops, targets or memory: that is the business of the schedule rules.

mod access;
mod checks;
mod compute;
mod index_type;
mod layout_free;
mod nested;
mod prim_func;
mod reduce;
mod scan;
mod tensor;

#[cfg(test)]
mod tests;

pub use access::{reads_of_expr, reads_of_stmt};
pub use compute::{Compute, compute, compute_multi, extern_stage, extern_stage_over};
pub use index_type::with_index_type;
pub use prim_func::{
    TeError, create_checked, create_prim_func, create_simplified, create_simplified_over, placeholders_of,
};
pub use reduce::{Bodies, Body, ReduceAxis, Reduction, combine, max, min, prod, reduce_axis, reduce_axis_named, sum};
pub use scan::scan;
pub use tensor::{StageForm, Tensor, placeholder};
