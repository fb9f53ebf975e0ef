//! One buffer in the place of another, everywhere in a function: at its allocation or parameter, in every access and region.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator};
use relaxide_ir::{Buffer, DataType, Type, Var};

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
    /// Other names of parts of the buffer, which are in the same scope and of the same type as it.
    parts: HashMap<Ref<Buffer>, Ref<Buffer>>,
}

impl<'a> Rebuffer<'a> {
    /// Puts a buffer in the place of another, at other indices perhaps.
    pub(super) fn new(from: &'a Ref<Buffer>, to: &'a Ref<Buffer>, map: Option<&'a IndexMap>) -> Self {
        Rebuffer { from, to, map, analyzer: Analyzer::new(), parts: HashMap::new() }
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

    /// What takes the place of a buffer.
    fn other(&self, buffer: &Ref<Buffer>) -> Option<&Ref<Buffer>> {
        if buffer == self.from { Some(self.to) } else { self.parts.get(buffer) }
    }

    /// A part of the buffer by another name, in the new one's scope and type.
    fn part(&mut self, part: &Ref<Buffer>) -> Ref<Buffer> {
        let (dtype, scope) = (self.to.dtype, self.to.scope.clone());
        if (part.dtype, &part.scope) != (self.from.dtype, &self.from.scope)
            || (part.dtype, &part.scope) == (dtype, &scope)
        {
            return part.clone();
        }
        let data = Var::new(part.data.name.clone(), Type::pointer(dtype, &scope));
        let made = Ref::new(Buffer { dtype, scope, data, ..Buffer::clone(part) });
        self.parts.insert(part.clone(), made.clone());
        made
    }

    fn stored(&self, value: PrimExpr) -> PrimExpr {
        if self.from.dtype == self.to.dtype { value } else { prim::cast(self.to.dtype, value) }
    }

    fn swapped(&mut self, m: &Ref<MatchBufferRegion>) -> Ref<MatchBufferRegion> {
        let Some(source) = self.other(&m.source.buffer).cloned() else { return m.clone() };
        let source = Ref::new(BufferRegion { buffer: source, region: m.source.region.clone() });
        Ref::new(MatchBufferRegion { buffer: self.part(&m.buffer), source })
    }
}

impl PrimMutator for Rebuffer<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if self.other(&n.buffer).is_some() => {
                let buffer = self.other(&n.buffer).unwrap_or(&n.buffer).clone();
                let is_part = n.buffer != *self.from;
                let indices = if is_part { self.mutate_prims(&n.indices) } else { self.indices(&n.indices) };
                let load = Ref::new(BufferLoad { buffer, indices, predicate: n.predicate.clone() }).into();
                if self.from.dtype == self.to.dtype { load } else { prim::cast(self.from.dtype, load) }
            }
            PrimExpr::Var(var) if *var == self.from.data => PrimExpr::from(&self.to.data),
            PrimExpr::Var(var) => {
                let part = self.parts.iter().find(|(old, _)| old.data == *var);
                part.map_or_else(|| e.clone(), |(_, new)| PrimExpr::from(&new.data))
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Rebuffer<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        if let Stmt::For(n) = stmt
            && !n.extent.is_int(1)
        {
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
        if let Some(part) = self.parts.get(&n.buffer).cloned() {
            let (value, predicate) = (self.stored(value), n.predicate.clone());
            return Ref::new(BufferStore { buffer: part, value, indices, predicate });
        }
        if value == n.value && indices == n.indices {
            return n.clone();
        }
        Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate: n.predicate.clone() })
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        // An index along which there is one element stays what it is called, and does not become zero.
        for iter in n.iter_vars.iter().filter(|iter| !iter.extent.is_int(1)) {
            self.analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
        }
        let alloc_buffers: Vec<_> = n.alloc_buffers.iter().map(|b| self.mutate_buffer_def(b)).collect();
        let swapped: Vec<_> = n.match_buffers.iter().map(|m| self.swapped(m)).collect();
        let init = n.init.as_ref().map(|s| self.mutate_stmt(s));
        let body = self.mutate_stmt(&n.body);
        let swap = |r: &Ref<BufferRegion>| match self.other(&r.buffer) {
            Some(buffer) => Ref::new(BufferRegion { buffer: buffer.clone(), region: r.region.clone() }),
            None => r.clone(),
        };
        let match_buffers = swapped;
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
