//! `pad_einsum`: a contraction over axes whose extents are rounded up, on padded copies of its operands.
//!
//! ```text
//! C[vi, vj] += A[vi, vk] * B[vk, vj]              A_pad[v0, v1] = if_then_else(v0 < 127 and v1 < 127, A[v0, v1], 0)
//! over 127 x 127 x 127               -- 16s -->   B_pad …
//!                                                 C_pad[vi, vj] += A_pad[vi, vk] * B_pad[vk, vj]   over 128 x 128 x 128
//!                                                 C[v0, v1] = C_pad[v0, v1]
//! ```
//!
//! `padding` has a number for each axis: its extent becomes a multiple of it. The block touches buffers at single axes, or
//! constants. What it computes in the padding is not copied back; where an axis that is combined grows, it must add what is zero
//! in the padding: products of elements, sums of such products, multiples of them.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr};
use relaxide_ir::{Buffer, Var};

use super::caching::{Element, Redirect, axes_over, buffer_like, copy_nest, element};
use super::structure::{free_name, loops_around, own_nest};
use super::transform_block_layout::is_trivial;
use crate::analysis::interval::Interval;
use crate::analysis::reducer::Reducer;
use crate::analysis::regions::with_regions;
use crate::functor::StmtMutator;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{copy_block, copy_loop, replace, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "PadEinsum",
    method: "pad_einsum",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("padding")],
    results: Results::None,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let realize = place.realize()?;
    let block = &realize.block;
    let padding = call.ints(0)?;
    let (tree, root) = (&place.tree, place.scope()?);
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    let scope = Scope::new(tree, root);
    if let (Some(a), Some(b)) = (scope.why_not_complete(place.node), scope.why_not_reduction(place.node)) {
        return Err(refuse(format!(
            "block `{}` is neither a complete block ({a}) nor a reduction block ({b})",
            block.name
        )));
    }
    if padding.len() != block.iter_vars.len() || padding.iter().any(|p| *p <= 0) {
        let reason = format!("padding needs a positive number for each of the {} axes", block.iter_vars.len());
        return Err(refuse(reason));
    }
    let (loops, nest) = (loops_around(tree, place.node), own_nest(tree, place.node));
    if loops.first().map(|l| Stmt::For(l.clone())) != Some(nest.clone()) || !is_trivial(&realize, &loops) {
        return Err(refuse(format!("the loops around block `{}` do more than run through its axes", block.name))
            .with_help("pad before loops are split and reordered"));
    }
    let mut analyzer = Analyzer::new();
    let axes: Vec<Ref<IterVar>> = block
        .iter_vars
        .iter()
        .zip(&padding)
        .map(|(iter, by)| {
            let by = prim::int_of(iter.extent.dtype(), *by);
            let rounded = prim::floordiv(&iter.extent + &by - prim::int_of(by.dtype(), 1), by.clone()) * by;
            let (var, min, extent) = (iter.var.clone(), iter.min.clone(), analyzer.simplify_as_tvm(&rounded));
            Ref::new(IterVar { var, min, extent, kind: iter.kind })
        })
        .collect();
    check_einsum(block, &axes)?;
    let func = sch.func(&place.func)?;
    let (mut before, mut behind, mut made) = (Vec::new(), Vec::new(), Vec::new());
    let mut padded: Stmt = realize.clone().into();
    for (region, is_written) in block.reads.iter().map(|r| (r, false)).chain(block.writes.iter().map(|r| (r, true))) {
        let buffer = &region.buffer;
        let shape = padded_shape(region, &axes);
        let grows = shape.iter().zip(&buffer.shape).any(|(a, b)| !analyzer.can_prove_equal(a, b));
        if !grows {
            continue;
        }
        let name = free_name(&func, tree, format!("{}_pad", buffer.name));
        let copy = buffer_like(buffer, name.clone(), &shape, &buffer.scope);
        padded = Redirect { from: buffer, to: &copy, stores: is_written, first: &[] }.mutate_stmt(&padded);
        if is_written {
            let own = axes_over(&buffer.shape);
            let at: Vec<PrimExpr> = own.iter().map(|a| (&a.var).into()).collect();
            let boxes: Vec<Interval> = own.iter().map(|a| Interval::of_range(&a.min, &a.extent)).collect();
            behind.push(copy_nest(&name, own, &boxes, Element::new(&copy, &at), Element::new(buffer, &at)).0);
        } else {
            before.push(padding_nest(&name, buffer, &copy));
        }
        made.push(copy);
    }
    let rebuilt = over_axes(&padded, &realize, &loops, &axes);
    let root_stmt = &tree.node(root).stmt;
    let list = before.into_iter().chain([rebuilt]).chain(behind);
    let changed = match replace(root_stmt, &[(nest, Stmt::seq(list))]) {
        Stmt::Block(n) => {
            let mut alloc_buffers = n.block.alloc_buffers.clone();
            alloc_buffers.extend(made);
            Stmt::Block(with_block(&n, Ref::new(SBlock { alloc_buffers, ..copy_block(&n.block) })))
        }
        other => other,
    };
    let body = replace(&func.body, &[(root_stmt.clone(), changed)]);
    sch.commit(&place.func, body, &[])?;
    Ok(Vec::new())
}

/// Buffers are touched at single axes or constants, and what is combined in the padding changes nothing.
fn check_einsum(block: &SBlock, axes: &[Ref<IterVar>]) -> Result<(), ScheduleError> {
    let refuse = |reason: String| ScheduleError::at_block(block, reason);
    for region in block.reads.iter().chain(&block.writes) {
        let mut analyzer = Analyzer::new();
        let mut single = |(r, dim): (&Ref<Range>, &PrimExpr)| {
            let axis = block.iter_vars.iter().find(|i| r.min.as_var() == Some(&i.var));
            let whole = axis.is_some_and(|i| analyzer.can_prove_equal(&i.extent, dim));
            r.extent.is_int(1) && (whole || r.min.as_int().is_some())
        };
        if !region.region.iter().zip(&region.buffer.shape).all(&mut single) {
            let reason = format!(
                "buffer `{}` is not accessed along whole dimensions at single axes of block `{}`",
                region.buffer.name, block.name
            );
            return Err(refuse(reason));
        }
    }
    let mut analyzer = Analyzer::new();
    let mut grows = |(old, new): (&Ref<IterVar>, &Ref<IterVar>)| {
        old.kind == IterKind::Reduce && !analyzer.can_prove_equal(&old.extent, &new.extent)
    };
    let grown: Vec<Ref<Var>> =
        block.iter_vars.iter().zip(axes).filter(|pair| grows(*pair)).map(|(iter, _)| iter.var.clone()).collect();
    if grown.is_empty() {
        return Ok(());
    }
    let reducer = Reducer::of(block).map_err(|why| refuse(format!("block `{}`: {why}", block.name)))?;
    let x = prim::float_of(relaxide_ir::DataType::float(32), 1.0);
    let is_sum = reducer.combine(std::slice::from_ref(&x), std::slice::from_ref(&x));
    let sum = matches!(is_sum.as_slice(), [PrimExpr::Binary(n)] if n.op == BinaryOp::Add);
    match grown.iter().find(|var| !sum || !reducer.values.iter().all(|value| vanishes(value, var))) {
        None => Ok(()),
        Some(var) => {
            let reason =
                format!("block `{}` does not add what is zero where its elements along `{}` are", block.name, var.name);
            Err(refuse(reason).with_help("pad spatial axes only: a padding of 1 leaves an axis as it is"))
        }
    }
}

/// Whether a value is zero where the elements that are read along an axis are.
fn vanishes(e: &PrimExpr, axis: &Ref<Var>) -> bool {
    match e {
        PrimExpr::Load(n) => n.indices.iter().any(|index| index.as_var() == Some(axis)),
        PrimExpr::Cast(n) => vanishes(&n.value, axis),
        PrimExpr::Int(_) => e.is_int(0),
        PrimExpr::Float(n) => n.value == 0.0,
        PrimExpr::Binary(n) => match n.op {
            BinaryOp::Mul => vanishes(&n.a, axis) || vanishes(&n.b, axis),
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Max | BinaryOp::Min => {
                vanishes(&n.a, axis) && vanishes(&n.b, axis)
            }
            BinaryOp::Div | BinaryOp::FloorDiv => vanishes(&n.a, axis) && n.b.as_int().is_some_and(|by| by != 0),
            _ => false,
        },
        _ => false,
    }
}

/// The dimensions of a buffer whose every element is accessed along the axes.
fn padded_shape(region: &BufferRegion, axes: &[Ref<IterVar>]) -> Vec<PrimExpr> {
    let extent = |r: &Ref<Range>| axes.iter().find(|a| r.min.as_var() == Some(&a.var)).map(|a| a.extent.clone());
    let dims = region.region.iter().zip(&region.buffer.shape);
    dims.map(|(r, dim)| extent(r).unwrap_or_else(|| dim.clone())).collect()
}

/// A block that copies a buffer, with zeros around.
fn padding_nest(name: &str, from: &Ref<Buffer>, to: &Ref<Buffer>) -> Stmt {
    let axes = axes_over(&to.shape);
    let at: Vec<PrimExpr> = axes.iter().map(|a| (&a.var).into()).collect();
    let mut analyzer = Analyzer::new();
    let mut inside = prim::boolean(true);
    for ((index, axis), dim) in at.iter().zip(&axes).zip(&from.shape) {
        if !analyzer.can_prove_equal(&axis.extent, dim) {
            inside = prim::and(inside, prim::lt(index, dim.clone()));
        }
    }
    let value = prim::if_then_else(inside, prim::load(from, at.iter().cloned()), prim::constant(from.dtype, 0.0));
    let block = with_regions(SBlock {
        iter_vars: axes,
        reads: vec![element(from, &at)],
        writes: vec![element(to, &at)],
        name: name.to_string(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body: Stmt::store(to, at.iter().cloned(), value),
    });
    let vars: Vec<Ref<Var>> = to.shape.iter().enumerate().map(|(d, e)| Var::prim(format!("i{d}"), e.dtype())).collect();
    let iter_values = vars.iter().map(PrimExpr::from).collect();
    let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block }).into();
    vars.iter().zip(&to.shape).rev().fold(innermost, |body, (v, e)| Stmt::serial(v.clone(), e.clone(), body))
}

/// The block over axes of other extents, under loops of the same.
fn over_axes(padded: &Stmt, realize: &SBlockRealize, loops: &[Ref<For>], axes: &[Ref<IterVar>]) -> Stmt {
    let innermost = match padded {
        Stmt::Block(n) => with_block(n, Ref::new(SBlock { iter_vars: axes.to_vec(), ..copy_block(&n.block) })).into(),
        other => other.clone(),
    };
    loops.iter().rev().fold(innermost, |body, l| {
        let at = realize.iter_values.iter().position(|v| v.as_var() == Some(&l.var));
        let extent = at.and_then(|at| axes.get(at)).map_or_else(|| l.extent.clone(), |a| a.extent.clone());
        Ref::new(For { extent, body, ..copy_loop(l) }).into()
    })
}

impl Schedule {
    /// Rounds the extents of a contraction's axes up to multiples.
    pub fn pad_einsum(&mut self, block: &Ref<SBlockRV>, padding: &[i64]) -> Result<(), StepError> {
        let padding = AttrValue::List(padding.iter().map(|p| AttrValue::Int(*p)).collect());
        self.step_only(&KIND, vec![operand(block)], vec![padding])
    }
}
