//! Which blocks of a scope feed which, and what a block's axes allow.
//!
//! The *scope* of a block is the block around it. Its direct children depend on each other through the buffers that they
//! read and write. A child is *complete* if it alone writes what it writes, once for each element and in any order; a
//! *reduction* if it is complete but for axes whose values are combined into one element. Steps that move or repeat
//! computation ask for one of the two.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::prim::{PrimVisitor, free_vars};

use super::state::{NodeId, Tree};
use crate::functor::StmtVisitor;
use crate::stmt::*;

/// The children of a block, and what flows between them.
pub struct Scope<'t> {
    tree: &'t Tree,
    /// The block.
    pub root: NodeId,
    /// Its direct children, in order.
    pub children: Vec<NodeId>,
}

/// Buffers of regions.
fn buffers(regions: &[Ref<BufferRegion>]) -> impl Iterator<Item = &Ref<Buffer>> {
    regions.iter().map(|r| &r.buffer)
}

impl<'t> Scope<'t> {
    /// The scope that a block makes.
    pub fn new(tree: &'t Tree, root: NodeId) -> Scope<'t> {
        Scope { tree, root, children: tree.child_blocks(root) }
    }

    /// The part of a scope that is under one of its loops: what happens elsewhere does not count.
    pub fn under(tree: &'t Tree, root: NodeId, loop_: NodeId) -> Scope<'t> {
        Scope { tree, root, children: tree.child_blocks(loop_) }
    }

    fn block(&self, id: NodeId) -> Option<&Ref<SBlock>> {
        self.tree.as_block(id).map(|n| &n.block)
    }

    /// Children in front of a child that write what it reads or writes, those for reads first.
    pub fn producers(&self, child: NodeId) -> Vec<NodeId> {
        let Some(block) = self.block(child) else { return Vec::new() };
        let mut found = Vec::new();
        for buffer in buffers(&block.reads).chain(buffers(&block.writes)) {
            for id in self.children.iter().copied().take_while(|id| *id != child) {
                if self.writes(id, buffer) && !found.contains(&id) {
                    found.push(id);
                }
            }
        }
        found
    }

    /// Children behind a child that read or write what it writes, in order.
    pub fn consumers(&self, child: NodeId) -> Vec<NodeId> {
        let Some(block) = self.block(child) else { return Vec::new() };
        let behind = self.children.iter().copied().skip_while(|id| *id != child).skip(1);
        let depends = |id: &NodeId| buffers(&block.writes).any(|b| self.reads(*id, b) || self.writes(*id, b));
        behind.filter(depends).collect()
    }

    /// Whether a child says that it reads a buffer.
    pub fn reads(&self, id: NodeId, buffer: &Ref<Buffer>) -> bool {
        self.block(id).is_some_and(|b| buffers(&b.reads).any(|r| r == buffer))
    }

    /// Whether a child says that it writes a buffer.
    pub fn writes(&self, id: NodeId, buffer: &Ref<Buffer>) -> bool {
        self.block(id).is_some_and(|b| buffers(&b.writes).any(|r| r == buffer))
    }

    /// The children that write a buffer.
    pub fn writers(&self, buffer: &Ref<Buffer>) -> Vec<NodeId> {
        self.children.iter().copied().filter(|id| self.writes(*id, buffer)).collect()
    }

    /// Whether a child writes a buffer that outlives the scope.
    pub fn is_output(&self, id: NodeId) -> bool {
        let Some((root, block)) = self.block(self.root).zip(self.block(id)) else { return false };
        buffers(&block.writes).any(|b| !root.alloc_buffers.contains(b))
    }

    fn is_dominant(&self, id: NodeId) -> bool {
        self.block(id).is_some_and(|block| buffers(&block.writes).all(|b| self.writers(b).len() == 1))
    }

    /// Why a child is not complete; `None` where it is.
    pub fn why_not_complete(&self, id: NodeId) -> Option<&'static str> {
        let block = self.block(id)?;
        if block.iter_vars.iter().any(|iter| iter.kind != IterKind::Spatial) {
            return Some("not all of its axes are spatial");
        }
        if !self.is_dominant(id) {
            return Some("another block writes the same buffer");
        }
        let written: HashSet<&Ref<Buffer>> = buffers(&block.writes).collect();
        let overlap = buffers(&block.reads).any(|b| written.contains(b));
        overlap.then_some("it reads what it writes")
    }

    /// Why a child is not a reduction; `None` where it is. That its axes' values are affine is asked elsewhere.
    pub fn why_not_reduction(&self, id: NodeId) -> Option<&'static str> {
        let block = self.block(id)?;
        if block.init.is_none() {
            return Some("it has no init");
        }
        if block.iter_vars.iter().any(|iter| !matches!(iter.kind, IterKind::Spatial | IterKind::Reduce)) {
            return Some("not all of its axes are spatial or combined");
        }
        if !self.is_dominant(id) {
            return Some("another block writes the same buffer");
        }
        uses_reduction_axis(block).then_some("an axis that is combined indexes what it writes")
    }
}

/// Whether an axis that values are combined over takes part in where a block stores.
fn uses_reduction_axis(block: &SBlock) -> bool {
    struct Stores<'a> {
        combined: HashSet<&'a Ref<relaxide_ir::Var>>,
        found: bool,
    }
    impl PrimVisitor for Stores<'_> {}
    impl StmtVisitor for Stores<'_> {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Store(n) = stmt {
                self.found |= n.indices.iter().flat_map(free_vars).any(|v| self.combined.contains(&v));
            }
            self.walk_stmt(stmt);
        }
    }
    let combined = block.iter_vars.iter().filter(|i| i.kind == IterKind::Reduce).map(|i| &i.var).collect();
    let mut stores = Stores { combined, found: false };
    stores.visit_stmt(&block.body);
    stores.found
}
