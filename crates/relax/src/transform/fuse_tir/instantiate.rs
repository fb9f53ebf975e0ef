//! A copy of a kernel's statements over given buffers, with variables of its own.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{FreeVars, Ref, structural_equal};
use relaxide_ir::prim::{self, Let, PrimExpr, PrimMutator, VarMap};
use relaxide_ir::{Buffer, Var};
use relaxide_tir::stmt::{BufferRegion, MatchBufferRegion, SBlock};
use relaxide_tir::{Stmt, StmtMutator};

/// Names that are taken in the kernel under construction.
#[derive(Default)]
pub(super) struct Names {
    buffers: HashSet<String>,
    blocks: HashSet<String>,
}

impl Names {
    /// A buffer's name like `hint`.
    pub(super) fn buffer(&mut self, hint: &str) -> String {
        unique(&mut self.buffers, hint)
    }
}

/// What takes the place of what is in a kernel.
pub(super) struct Instantiate<'a> {
    /// Symbolic dimensions, scalars, and variables bound so far.
    pub(super) vars: VarMap,
    /// Parameters' buffers, and buffers met so far.
    pub(super) buffers: HashMap<Ref<Buffer>, Ref<Buffer>>,
    /// Buffers of one known element.
    pub(super) literals: HashMap<Ref<Buffer>, PrimExpr>,
    pub(super) names: &'a mut Names,
}

impl Instantiate<'_> {
    /// A kernel's body without its root block, whose scratch buffers go to `scratch`.
    pub(super) fn body(&mut self, body: &Stmt, scratch: &mut Vec<Ref<Buffer>>) -> Stmt {
        match body {
            Stmt::Block(n) if is_plain_root(&n.block) && n.predicate.as_int() == Some(1) => {
                scratch.extend(n.block.alloc_buffers.iter().map(|b| self.mutate_buffer_def(b)));
                self.mutate_stmt(&n.block.body)
            }
            other => self.mutate_stmt(other),
        }
    }

    fn remake_regions(&mut self, regions: &[Ref<BufferRegion>]) -> Vec<Ref<BufferRegion>> {
        let real: Vec<_> = regions.iter().filter(|r| !self.literals.contains_key(&r.buffer)).cloned().collect();
        let mut made: Vec<Ref<BufferRegion>> = Vec::with_capacity(real.len());
        for region in &real {
            let region = self.remake_region(region);
            // Two parameters may be one buffer here.
            if !made.iter().any(|known| structural_equal(known, &region, FreeVars::Same).is_ok()) {
                made.push(region);
            }
        }
        made
    }

    fn fresh_buffer(&mut self, old: &Ref<Buffer>) -> Ref<Buffer> {
        let data = match self.vars.get(&old.data) {
            Some(PrimExpr::Var(data)) => data.clone(),
            _ => self.mutate_var_def(&old.data),
        };
        let name = self.names.buffer(&old.name);
        let new = Ref::new(Buffer { name, ..self.remake_buffer(old, data) });
        self.buffers.insert(old.clone(), new.clone());
        new
    }
}

/// Whether a block only holds scratch buffers and statements.
fn is_plain_root(block: &SBlock) -> bool {
    block.iter_vars.is_empty() && block.init.is_none() && block.match_buffers.is_empty()
}

impl PrimMutator for Instantiate<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.vars.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Load(load) if self.literals.contains_key(&load.buffer) => {
                let lanes = load.indices.last().map_or(1, |i| i.dtype().lanes);
                prim::broadcast(&self.literals[&load.buffer], i64::from(lanes))
            }
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                let var = self.mutate_var_def(&n.var);
                Ref::new(Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            _ => self.remake_prim(e),
        }
    }

    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        match self.buffers.get(buffer) {
            Some(new) => new.clone(),
            // Another view of known memory.
            None => self.fresh_buffer(buffer),
        }
    }
}

impl StmtMutator for Instantiate<'_> {
    fn mutate_var_def(&mut self, var: &Ref<Var>) -> Ref<Var> {
        let fresh = Var::new(var.name.clone(), var.ty.clone());
        self.vars.insert(var.clone(), PrimExpr::from(&fresh));
        fresh
    }

    fn mutate_buffer_def(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.mutate_var_def(&buffer.data);
        self.fresh_buffer(buffer)
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let alloc_buffers = n.alloc_buffers.iter().map(|b| self.mutate_buffer_def(b)).collect();
        let iter_vars = n.iter_vars.iter().map(|v| self.remake_iter(v)).collect();
        let mut match_buffers = Vec::with_capacity(n.match_buffers.len());
        for alias in &n.match_buffers {
            let source = self.remake_region(&alias.source);
            match_buffers.push(Ref::new(MatchBufferRegion { buffer: self.mutate_buffer_def(&alias.buffer), source }));
        }
        Ref::new(SBlock {
            alloc_buffers,
            iter_vars,
            match_buffers,
            reads: self.remake_regions(&n.reads),
            writes: self.remake_regions(&n.writes),
            name: unique(&mut self.names.blocks, &n.name),
            annotations: n.annotations.clone(),
            init: n.init.as_ref().map(|s| self.mutate_stmt(s)),
            body: self.mutate_stmt(&n.body),
        })
    }
}

/// A name that is not taken yet: `hint`, or `hint_1`, `hint_2` …
fn unique(taken: &mut HashSet<String>, hint: &str) -> String {
    let numbered = (1..).map(|i| format!("{hint}_{i}"));
    let name = std::iter::once(hint.to_string()).chain(numbered).find(|n| !taken.contains(n)).unwrap_or_default();
    taken.insert(name.clone());
    name
}
