//! One buffer in the place of another, everywhere in a function: at its allocation or parameter, in every access and region.

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, DataType};

use crate::IndexMap;
use crate::PrimFunc;
use crate::analysis::regions::with_regions;
use crate::functor::StmtMutator;
use crate::s_tir::state::{NodeId, StmtRef, Tree, copy_block};
use crate::s_tir::{Schedule, ScheduleError};
use crate::stmt::*;

/// A buffer that takes the place of another.
pub(super) struct Rebuffer<'a> {
    from: &'a Ref<Buffer>,
    to: &'a Ref<Buffer>,
    /// How indices change.
    map: Option<&'a IndexMap>,
    analyzer: Analyzer,
}

impl<'a> Rebuffer<'a> {
    /// Puts a buffer in the place of another, at other indices perhaps.
    pub(super) fn new(from: &'a Ref<Buffer>, to: &'a Ref<Buffer>, map: Option<&'a IndexMap>) -> Self {
        Rebuffer { from, to, map, analyzer: Analyzer::new() }
    }

    /// Carries it out in a function of a schedule.
    pub(super) fn commit(mut self, sch: &mut Schedule, name: &str) -> Result<(), ScheduleError> {
        let func = sch.func(name)?;
        let body = self.mutate_stmt(&func.body);
        let swap = |b: &Ref<Buffer>| if b == self.from { self.to.clone() } else { b.clone() };
        let buffers = func.buffers.iter().map(|b| b.as_ref().map(swap)).collect();
        sch.commit_func(name, PrimFunc { buffers, body, ..PrimFunc::clone(&func) }, &[])
    }

    fn indices(&mut self, indices: &[PrimExpr]) -> Vec<PrimExpr> {
        let indices = self.mutate_prims(indices);
        let Some(new) = self.map.and_then(|map| map.apply(&indices)) else { return indices };
        let dtype = indices.first().map_or(DataType::int(64), PrimExpr::dtype);
        new.iter().map(|e| prim::cast(dtype, self.analyzer.simplify_as_tvm(e))).collect()
    }

    fn stored(&self, value: PrimExpr) -> PrimExpr {
        if self.from.dtype == self.to.dtype { value } else { prim::cast(self.to.dtype, value) }
    }
}

impl PrimMutator for Rebuffer<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if n.buffer == *self.from => {
                let (indices, predicate) = (self.indices(&n.indices), n.predicate.clone());
                let load = Ref::new(BufferLoad { buffer: self.to.clone(), indices, predicate }).into();
                if self.from.dtype == self.to.dtype { load } else { prim::cast(self.from.dtype, load) }
            }
            PrimExpr::Var(var) if *var == self.from.data => PrimExpr::from(&self.to.data),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Rebuffer<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let Stmt::For(n) = stmt {
            self.analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
        }
        self.remake_stmt(stmt)
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        if buffer == self.from { self.to.clone() } else { buffer.clone() }
    }

    fn remake_store(&mut self, n: &Ref<BufferStore>) -> Ref<BufferStore> {
        let value = self.mutate_prim(&n.value);
        if n.buffer == *self.from {
            let (value, indices) = (self.stored(value), self.indices(&n.indices));
            return Ref::new(BufferStore { buffer: self.to.clone(), value, indices, predicate: n.predicate.clone() });
        }
        let indices = self.mutate_prims(&n.indices);
        if value == n.value && indices == n.indices {
            return n.clone();
        }
        Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate: n.predicate.clone() })
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        for iter in &n.iter_vars {
            self.analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
        }
        let alloc_buffers: Vec<_> = n.alloc_buffers.iter().map(|b| self.mutate_buffer_def(b)).collect();
        let init = n.init.as_ref().map(|s| self.mutate_stmt(s));
        let body = self.mutate_stmt(&n.body);
        let swap = |r: &Ref<BufferRegion>| match r.buffer == *self.from {
            true => Ref::new(BufferRegion { buffer: self.to.clone(), region: r.region.clone() }),
            false => r.clone(),
        };
        let source = |m: &Ref<MatchBufferRegion>| {
            Ref::new(MatchBufferRegion { buffer: m.buffer.clone(), source: swap(&m.source) })
        };
        let match_buffers: Vec<_> = n.match_buffers.iter().map(source).collect();
        let touched = n.reads.iter().chain(&n.writes).any(|r| r.buffer == *self.from);
        if !touched && alloc_buffers == n.alloc_buffers && init == n.init && body == n.body {
            return n.clone();
        }
        let (reads, writes) = (n.reads.iter().map(swap).collect(), n.writes.iter().map(swap).collect());
        let block = SBlock { reads, writes, alloc_buffers, match_buffers, init, body, ..copy_block(n) };
        if touched && self.map.is_some() { with_regions(block) } else { Ref::new(block) }
    }
}

/// The block that allocates a buffer; an error where the buffer comes from outside of the function.
pub(super) fn allocating_block(place: &StmtRef, buffer: &Buffer, at: &SBlock) -> Result<NodeId, ScheduleError> {
    let allocates = |n: &SBlockRealize| n.block.alloc_buffers.iter().any(|b| b.data == buffer.data);
    let tree: &Tree = &place.tree;
    tree.blocks().find(|(_, n)| allocates(n)).map(|(id, _)| id).ok_or_else(|| {
        let reason = format!("buffer `{}` is a parameter of the kernel, not allocated in it", buffer.name);
        ScheduleError::at_block(at, reason).with_help("cache_read or cache_write makes a buffer of its own")
    })
}
