//! `cache_inplace`: a block that changes a buffer in place works on a copy, which is read in front of it and written behind.
//!
//! ```text
//! for i, j in T.grid(64, 64):                 for i, j in T.grid(64, 64):
//!     A[i, j] = A[i, j] * 2          ->           A_local[i, j] = A[i, j]
//!                                                 A_local[i, j] = A_local[i, j] * 2
//!                                                 A[i, j] = A_local[i, j]
//! ```
//!
//! Both copies are made for each iteration of the loops around, of what the block says that it reads and writes. What is
//! written must be among what is read: the rest of the box is written back as it was. Pointers to the buffer inside of the
//! block become pointers to the copy.

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, VarMap};

use super::caching::{Element, Redirect, axes_over, buffer_like, copy_nest};
use super::rebind::guard;
use super::split::analyzer_at;
use super::structure::{free_name, nth_buffer};
use crate::analysis::interval::Interval;
use crate::analysis::regions::{substitute_region, whole_dimension};
use crate::functor::{StmtMutator, substitute_stmt};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{copy_block, replace, with_block};
use crate::s_tir::step::{Call, operand};
use crate::s_tir::{SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "CacheInplace",
    method: "cache_inplace",
    is_pure: false,
    params: &[Param::Input("block"), Param::Attr("read_buffer_index"), Param::Attr("storage_scope")],
    results: Results::List,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.block_ref(&call.block(0)?)?;
    let (realize, root, storage) = (place.realize()?, place.scope()?, call.str(1)?.to_string());
    let block = &realize.block;
    let read = nth_buffer(block, call.int(0)?, &block.reads, "reads")?;
    let buffer = read.buffer.clone();
    let Some(write) = block.writes.iter().find(|w| w.buffer == buffer).cloned() else {
        let reason = format!("block `{}` reads buffer `{}`, but does not write it", block.name, buffer.name);
        return Err(ScheduleError::at_block(block, reason).with_help("cache_read makes a copy of what is only read"));
    };
    let axes: VarMap = block.iter_vars.iter().map(|i| i.var.clone()).zip(realize.iter_values.iter().cloned()).collect();
    let mut analyzer = analyzer_at(&place.tree, place.node);
    let _where = analyzer.assume(&realize.predicate);
    let boxed = |region: &BufferRegion| -> Vec<Interval> {
        let region = substitute_region(region, &axes);
        region.region.iter().map(|r| Interval::of_range(&r.min, &r.extent)).collect()
    };
    let (reads, writes) = (boxed(&read), boxed(&write));
    check(block, &buffer, &reads, &writes, &mut analyzer)?;
    let name = free_name(&*sch.func(&place.func)?, &place.tree, format!("{}_{storage}", buffer.name));
    let copy = buffer_like(&buffer, name.clone(), &buffer.shape, &storage);
    let copying = |boxes: &[Interval], inwards: bool| {
        let own = axes_over(&buffer.shape);
        let at: Vec<PrimExpr> = own.iter().map(|axis| (&axis.var).into()).collect();
        let (outside, inside) = (Element::new(&buffer, &at), Element::new(&copy, &at));
        let (from, to) = if inwards { (outside, inside) } else { (inside, outside) };
        let (nest, made) = copy_nest(&name, own, boxes, from, to);
        (if realize.predicate.is_int(1) { nest } else { guard(&nest, &realize.predicate) }, made)
    };
    let ((first, reader), (last, writer)) = (copying(&reads, true), copying(&writes, false));
    let changed = Redirect { from: &buffer, to: &copy, stores: true, first: &[] }.mutate_stmt(place.stmt());
    let changed = substitute_stmt(&changed, &VarMap::from([(buffer.data.clone(), PrimExpr::from(&copy.data))]));
    let func = sch.func(&place.func)?;
    let root_stmt = &place.tree.node(root).stmt;
    let mut rebuilt = replace(root_stmt, &[(place.stmt().clone(), Stmt::seq([first, changed, last]))]);
    if let Stmt::Block(n) = &rebuilt {
        let mut alloc_buffers = n.block.alloc_buffers.clone();
        alloc_buffers.push(copy.clone());
        rebuilt = with_block(n, Ref::new(SBlock { alloc_buffers, ..copy_block(&n.block) })).into();
    }
    let body = replace(&func.body, &[(root_stmt.clone(), rebuilt)]);
    sch.commit(&place.func, body, &[])?;
    Ok(vec![Value::Block(place.func.clone(), reader), Value::Block(place.func.clone(), writer)])
}

/// The boxes lie in the buffer, and what is written is among what is read.
fn check(
    block: &SBlock,
    buffer: &Buffer,
    reads: &[Interval],
    writes: &[Interval],
    analyzer: &mut Analyzer,
) -> Result<(), ScheduleError> {
    analyzer.mark_dims(&buffer.shape);
    for (d, (read, write)) in reads.iter().zip(writes).enumerate() {
        if !whole_dimension(buffer, d).covers(read, analyzer) {
            let reason = format!(
                "what block `{}` says that it reads of buffer `{}` may reach outside of dimension {d}",
                block.name, buffer.name
            );
            return Err(ScheduleError::at_block(block, reason));
        }
        if !read.covers(write, analyzer) {
            let reason = format!(
                "block `{}` writes more of buffer `{}` along dimension {d} than it reads, and a copy would write what nobody has set",
                block.name, buffer.name
            );
            return Err(ScheduleError::at_block(block, reason));
        }
    }
    Ok(())
}

impl Schedule {
    /// Lets a block that changes a buffer in place work on a copy. The blocks that read into it and write back.
    pub fn cache_inplace(
        &mut self,
        block: &Ref<SBlockRV>,
        read_buffer_index: i64,
        storage_scope: &str,
    ) -> Result<Vec<Ref<SBlockRV>>, StepError> {
        self.step_blocks(&KIND, vec![operand(block)], vec![read_buffer_index.into(), storage_scope.into()])
    }
}
