//! What the two inlining steps share: blocks that say their buffer's elements in one expression, and taking such a block
//! out of the program.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, Var};

use crate::analysis::regions::with_regions;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::s_tir::state::{NodeId, Tree, copy_block, replace};
use crate::s_tir::{ScheduleError, StmtRef};
use crate::stmt::*;

/// A block whose body is one store without predicate, to the only buffer that it writes.
pub(super) fn single_store(block: &Ref<SBlock>) -> Result<Ref<BufferStore>, ScheduleError> {
    let refuse = |reason: &str| ScheduleError::at_block(block, format!("block `{}` {reason}", block.name));
    let Stmt::Store(store) = &block.body else { return Err(refuse("does more than one store")) };
    let writes: HashSet<&Ref<Buffer>> = block.writes.iter().map(|r| &r.buffer).collect();
    if writes.len() != 1 || !writes.contains(&store.buffer) {
        return Err(refuse("does not write exactly the buffer that it says"));
    }
    if store.predicate.is_some() || block.init.is_some() || !block.match_buffers.is_empty() {
        return Err(refuse("has an init, a predicate or parts of buffers by other names"));
    }
    Ok(store.clone())
}

/// The axes that the indices of a store are, each another; constants only along dimensions of extent one.
pub(super) fn index_axes(block: &SBlock, store: &BufferStore) -> Result<Vec<(usize, Ref<Var>)>, ScheduleError> {
    let mut axes: Vec<(usize, Ref<Var>)> = Vec::new();
    for (d, index) in store.indices.iter().enumerate() {
        match index.as_var() {
            Some(var) if axes.iter().all(|(_, v)| v != var) => axes.push((d, var.clone())),
            _ if index.is_int(0) && store.buffer.shape.get(d).is_some_and(|dim| dim.is_int(1)) => {}
            _ => {
                let reason =
                    format!("index {d} of the store of block `{}` is {index}, not an axis of its own", block.name);
                return Err(ScheduleError::at_block(block, reason));
            }
        }
    }
    let used = free_vars(&store.value);
    // Along a dimension of one element, an axis of one value is the index.
    let zeros = (0..store.indices.len()).filter(|d| store.indices[*d].is_int(0));
    let missing = |i: &&Ref<IterVar>| i.extent.is_int(1) && i.min.is_int(0) && used.contains(&i.var);
    let units: Vec<Ref<Var>> = block.iter_vars.iter().filter(missing).map(|i| i.var.clone()).collect();
    let units = units.into_iter().filter(|var| axes.iter().all(|(_, v)| v != var)).collect::<Vec<_>>();
    axes.extend(zeros.zip(units));
    let free = block.iter_vars.iter().find(|i| used.contains(&i.var) && axes.iter().all(|(_, v)| *v != i.var));
    match free.filter(|iter| !iter.extent.is_int(1)) {
        Some(iter) => {
            let reason = format!(
                "the value of block `{}` depends on axis `{}`, which its indices do not",
                block.name, iter.var.name
            );
            Err(ScheduleError::at_block(block, reason))
        }
        None => Ok(axes),
    }
}

/// Refuses where a buffer is reached in other ways than by loads and stores.
pub(super) fn check_plain_access(scope: &SBlock, buffer: &Ref<Buffer>) -> Result<(), ScheduleError> {
    struct Opaque<'a>(&'a Ref<Buffer>, bool);
    impl PrimVisitor for Opaque<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 |= e.as_var() == Some(&self.0.data);
            self.walk_prim(e);
        }

        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            self.1 |= buffer.data == self.0.data && buffer != self.0;
        }
    }
    impl StmtVisitor for Opaque<'_> {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.1 |= buffer.data == self.0.data && buffer != self.0;
        }

        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Block(n) = stmt {
                self.1 |= n.block.match_buffers.iter().any(|m| m.source.buffer == *self.0);
            }
            self.walk_stmt(stmt);
        }
    }
    let mut opaque = Opaque(buffer, false);
    opaque.visit_stmt(&scope.body);
    match opaque.1 {
        true => Err(ScheduleError::at_block(
            scope,
            format!("buffer `{}` is reached by a pointer or another name", buffer.name),
        )),
        false => Ok(()),
    }
}

/// The outermost statement that holds nothing but a block: the block with the loops around it.
pub(super) fn leaf(place: &StmtRef, scope: NodeId) -> Result<Stmt, ScheduleError> {
    let tree: &Tree = &place.tree;
    let mut at = place.node;
    while let Some(parent) = tree.node(at).parent.filter(|p| *p != scope) {
        if tree.node(parent).children.len() != 1 {
            break;
        }
        at = parent;
    }
    let root = tree.as_block(scope).map(|n| n.block.clone());
    let stmt = tree.node(at).stmt.clone();
    match root {
        Some(root) if root.body == stmt => {
            let n = place.realize()?;
            let reason = format!("block `{}` is the only one in block `{}`", n.block.name, root.name);
            Err(ScheduleError::at_block(&n.block, reason))
        }
        _ => Ok(stmt),
    }
}

/// Loads of one buffer become expressions; blocks around them say anew what they read.
pub(super) struct Inline<'a> {
    /// The buffer that goes.
    pub buffer: &'a Ref<Buffer>,
    /// The value of an element.
    pub value: &'a dyn Fn(&[PrimExpr]) -> PrimExpr,
    /// Blocks that were built anew.
    pub reuse: Vec<(Ref<SBlock>, Ref<SBlock>)>,
}

impl PrimMutator for Inline<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if n.buffer == *self.buffer => {
                let indices = self.mutate_prims(&n.indices);
                (self.value)(&indices)
            }
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Inline<'_> {
    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let (init, body) = (n.init.as_ref().map(|s| self.mutate_stmt(s)), self.mutate_stmt(&n.body));
        let alloc_buffers: Vec<_> = n.alloc_buffers.iter().filter(|b| *b != self.buffer).cloned().collect();
        if body == n.body && init == n.init && alloc_buffers.len() == n.alloc_buffers.len() {
            return n.clone();
        }
        let read = n.reads.iter().any(|r| r.buffer == *self.buffer);
        let changed = SBlock { alloc_buffers, init, body, ..copy_block(n) };
        let reads = if read { with_regions(copy_block(&changed)).reads.clone() } else { n.reads.clone() };
        let block = Ref::new(SBlock { reads, ..changed });
        self.reuse.push((n.clone(), block.clone()));
        block
    }
}

/// The loads of a buffer in a statement.
pub(super) fn loads_of(stmt: &Stmt, buffer: &Ref<Buffer>) -> Vec<Ref<BufferLoad>> {
    struct Loads<'a>(&'a Ref<Buffer>, Vec<Ref<BufferLoad>>);
    impl PrimVisitor for Loads<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Load(n) = e
                && n.buffer == *self.0
            {
                self.1.push(n.clone());
            }
            self.walk_prim(e);
        }
    }
    impl StmtVisitor for Loads<'_> {}
    let mut loads = Loads(buffer, Vec::new());
    loads.visit_stmt(stmt);
    loads.1
}

/// A body without a statement; loops and sequences that it was the last of have been found by [`leaf`].
pub(super) fn without(body: &Stmt, stmt: &Stmt) -> Stmt {
    replace(body, &[(stmt.clone(), Stmt::nop())])
}
