//! What `read_at` and `write_at` share: a block that copies a box of a buffer, once in each iteration of a loop.
//!
//! ```text
//! for i_0 in range(8):
//!     with T.sblock("A_shared"):
//!         v0 = i_0
//!         for ax0, ax1 in T.grid(8, 48): A_shared[v0 * 8 + ax0, ax1] = A[v0 * 8 + ax0, ax1]
//! ```
//!
//! The copy has the buffer's dimensions. The block has an axis for each loop that the box depends on, and one loop inside for
//! each dimension; it is marked (`auto_copy`) for passes that lay out such copies on a device.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap, free_vars, load, substitute};
use relaxide_ir::{Buffer, Var};

use super::caching::{Redirect, Spot, buffer_like, insert_stage};
use super::structure::{body_list, free_name, holds, loops_around};
use crate::analysis::interval::{Interval, Running};
use crate::analysis::regions::{substitute_region, to_region, whole_dimension, widened};
use crate::functor::StmtMutator;
use crate::s_tir::state::{NodeId, StmtRef, Tree};
use crate::s_tir::{Schedule, ScheduleError, Value};
use crate::stmt::*;

/// A loop, and the statements that its body is made of.
pub(super) struct AtLoop<'a> {
    pub place: &'a StmtRef,
    pub loop_: Ref<For>,
    pub list: Vec<Stmt>,
}

impl<'a> AtLoop<'a> {
    /// A loop around a block of the same scope.
    pub fn new(place: &'a StmtRef, block: &StmtRef) -> Result<AtLoop<'a>, ScheduleError> {
        let loop_ = place.for_loop()?;
        let (tree, realize) = (&place.tree, block.realize()?);
        let inside = tree.find_block(&realize.block).filter(|_| place.func == block.func);
        let own = inside.filter(|id| tree.loops_above(*id).contains(&place.node));
        if own.is_none() {
            let reason = format!("loop `{}` is not around block `{}` in its scope", loop_.var.name, realize.block.name);
            return Err(ScheduleError::at_loop(&loop_, reason));
        }
        Ok(AtLoop { place, loop_, list: body_list(place.stmt()) })
    }

    fn tree(&self) -> &Tree {
        &self.place.tree
    }

    /// The blocks under the loop, with the numbers of the statements that hold them.
    pub fn blocks(&self) -> Vec<(usize, NodeId)> {
        let at = |id: &NodeId| self.list.iter().position(|s| holds(s, &self.tree().node(*id).stmt));
        self.tree().child_blocks(self.place.node).into_iter().filter_map(|id| Some((at(&id)?, id))).collect()
    }

    /// Lets blocks use a copy of a buffer, in what they write or in what they read, and puts the block that copies in front of
    /// the loop's statement with a number.
    pub fn insert(
        &self,
        sch: &mut Schedule,
        buffer: &Ref<Buffer>,
        users: &[NodeId],
        written: bool,
        storage: &str,
        index: usize,
    ) -> Result<Vec<Value>, ScheduleError> {
        let (place, tree) = (self.place, self.tree());
        let dims = self.touched(buffer, users, written, storage);
        let name = free_name(&*sch.func(&place.func)?, tree, format!("{}_{storage}", buffer.name));
        let copy = buffer_like(buffer, name.clone(), &buffer.shape, storage);
        let (from, to) = if written { (&copy, buffer) } else { (buffer, &copy) };
        let copying = self.copying(&name, &dims, from, to);
        let mut redirect = Redirect { from: buffer, to: &copy, stores: written, first: &[] };
        let changes: Vec<(Stmt, Stmt)> =
            users.iter().map(|id| (tree.node(*id).stmt.clone(), redirect.mutate_stmt(&tree.node(*id).stmt))).collect();
        let spot = Spot { parent: place.node, index };
        insert_stage(sch, place, place.scope()?, &changes, spot, copying.clone().into(), &copy)?;
        Ok(vec![Value::Block(place.func.clone(), copying.block.clone())])
    }

    /// What blocks touch of a buffer in one iteration of the loop, within the buffer: in all threads that share the copy.
    fn touched(&self, buffer: &Ref<Buffer>, blocks: &[NodeId], written: bool, storage: &str) -> Vec<Interval> {
        let is_shared = |l: &For| {
            let in_block = ["threadIdx.", "vthread"].iter().any(|tag| l.thread_tag.starts_with(tag));
            storage.starts_with("shared") && l.kind == ForKind::ThreadBinding && in_block
        };
        let tree = self.tree();
        let mut analyzer = self.analyzer();
        analyzer.mark_dims(&buffer.shape);
        let mut all: Option<Vec<Interval>> = None;
        for id in blocks {
            let Some(n) = tree.as_block(*id) else { continue };
            let mut running = Running::default();
            let loops = loops_around(tree, *id);
            let outside = loops.iter().position(|l| l.var == self.loop_.var).map_or(0, |at| at + 1);
            let all_at_once = loops.iter().enumerate().filter(|(at, l)| *at >= outside || is_shared(l));
            for (_, l) in all_at_once {
                analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
                running.add(&l.var, &l.min, &l.extent, &mut analyzer);
            }
            let axes: VarMap =
                n.block.iter_vars.iter().map(|i| i.var.clone()).zip(n.iter_values.iter().cloned()).collect();
            let regions = if written { &n.block.writes } else { &n.block.reads };
            for region in regions.iter().filter(|r| r.buffer == *buffer) {
                let dims = widened(&substitute_region(region, &axes), &running, &mut analyzer);
                all = Some(match all {
                    None => dims,
                    Some(known) => known.iter().zip(&dims).map(|(a, b)| a.hull(b, &mut analyzer)).collect(),
                });
            }
        }
        let clipped = |(d, dim): (usize, Interval)| {
            let whole = whole_dimension(buffer, d);
            if whole.covers(&dim, &mut analyzer) { dim } else { dim.meet(&whole, &mut analyzer) }
        };
        all.unwrap_or_default().into_iter().enumerate().map(clipped).collect()
    }

    /// The ranges of the loop and those around.
    fn analyzer(&self) -> Analyzer {
        let mut analyzer = super::split::analyzer_at(self.tree(), self.place.node);
        analyzer.mark_dims([&self.loop_.extent]);
        analyzer.bind(&self.loop_.var, self.loop_.min.clone(), self.loop_.extent.clone());
        analyzer
    }

    /// The block that copies a box.
    fn copying(&self, name: &str, dims: &[Interval], from: &Ref<Buffer>, to: &Ref<Buffer>) -> Ref<SBlockRealize> {
        let used: Vec<Ref<Var>> = dims.iter().flat_map(|d| [&d.min, &d.max]).flat_map(free_vars).collect();
        let around: Vec<Ref<For>> =
            loops_around(self.tree(), self.place.node).into_iter().chain([self.loop_.clone()]).collect();
        let (mut iter_vars, mut iter_values, mut own) = (Vec::new(), Vec::new(), VarMap::new());
        let mut analyzer = self.analyzer();
        for l in around.iter().filter(|l| used.contains(&l.var)) {
            let var = Var::prim(format!("v{}", iter_vars.len()), l.var.dtype());
            own.insert(l.var.clone(), PrimExpr::from(&var));
            let (min, extent) = (l.min.clone(), l.extent.clone());
            analyzer.bind(&var, min.clone(), extent.clone());
            iter_vars.push(Ref::new(IterVar { var, min, extent, kind: IterKind::Spatial }));
            iter_values.push(PrimExpr::from(&l.var));
        }
        let moved = |dim: &Interval| Interval { min: substitute(&dim.min, &own), max: substitute(&dim.max, &own) };
        let dims: Vec<Interval> = dims.iter().map(moved).collect();
        let extents: Vec<PrimExpr> = dims.iter().map(|dim| dim.extent(&mut analyzer)).collect();
        let vars: Vec<Ref<Var>> =
            extents.iter().enumerate().map(|(d, e)| Var::prim(format!("ax{d}"), e.dtype())).collect();
        let at: Vec<PrimExpr> =
            dims.iter().zip(&vars).map(|(dim, var)| prim::add(dim.min.clone(), PrimExpr::from(var))).collect();
        let copied = Stmt::store(to, at.iter().cloned(), load(from, at.iter().cloned()));
        let body = vars
            .iter()
            .zip(&extents)
            .rev()
            .fold(copied, |body, (var, extent)| Stmt::serial(var.clone(), extent.clone(), body));
        let mut annotations = relaxide_ir::Attrs::new();
        annotations.0.insert("auto_copy".to_string(), AttrValue::Bool(true));
        let block = Ref::new(SBlock {
            iter_vars,
            reads: vec![to_region(from, &dims, &mut analyzer)],
            writes: vec![to_region(to, &dims, &mut analyzer)],
            name: name.to_string(),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations,
            init: None,
            body,
        });
        Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block })
    }
}
