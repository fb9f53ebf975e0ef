//! Scratch moves to where it is used.
//!
//! ```text
//! B = T.sblock_alloc_buffer((16, 16))        for i in range(16):
//! for i in range(16):                            with T.sblock(""):
//!     for j in range(16):                            B = T.sblock_alloc_buffer((16, 16))
//!         B[i, j] = A[i, j] * 2        ->            for j in range(16):
//!     for j in range(16):                                B[i, j] = A[i, j] * 2
//!         C[i, j] = B[i, j] + 1                      for j in range(16):
//!                                                        C[i, j] = B[i, j] + 1
//! ```
//!
//! A buffer that a block allocates moves to the innermost loop or block around all of its accesses. A loop's body becomes a block
//! without axes for that. Behind this, [`CompactBufferAllocation`](super::compact_allocations) keeps of the buffer what one
//! iteration touches, here one row.
//!
//! **What may move into a loop.** Memory that is allocated anew in each iteration forgets what the last one left in it. So
//! within one iteration everything that is read has been written before. That is proved, access by access: a read is covered
//! by one store in front of it, whose indices fill a box ([`affine`](crate::analysis::affine)) and which nothing makes
//! conditional. A reduction that sets its element first counts as having written it, if all of its steps lie inside. Where
//! there is no proof, the buffer goes to the next place further out.
//!
//! Left where they are: buffers whose pointer something takes, and shared ones around the loops over threads that share them.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::Buffer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimMutator, PrimVisitor};

use super::initialized_before_read::initialized_before_read;
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::regions::{regions_of, shared_memory};
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.PlanAndUpdateBufferAllocationLocation",
    "Scratch moves to the innermost loop or block around all of its uses.",
    plan_allocations
);

/// A kernel whose blocks allocate where buffers are used.
pub(super) fn plan_allocations(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut places = AccessScopes::default();
    places.visit_stmt(&func.body);
    let pointers = shared_memory(&func.body);
    let mut moves = Move::default();
    for (buffer, place) in places.around {
        let Some(place) = place.filter(|_| !pointers.contains(&buffer.data)) else { continue };
        let inside = &place.path[place.defined..];
        let Some(at) = inside.iter().rposition(|frame| frame.may_hold(&buffer, inside)) else { continue };
        moves.into.entry(inside[at].clone()).or_default().push(buffer.clone());
        moves.moved.insert(buffer);
    }
    if moves.moved.is_empty() {
        return Ok(func.clone());
    }
    Ok(func.with_body(moves.mutate_stmt(&func.body)))
}

/// A loop or a block that could allocate.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Frame {
    Loop(Ref<For>),
    Block(Ref<SBlock>),
}

impl Frame {
    /// Whether a buffer may be allocated anew each time the frame is entered; `path` leads to it from where it is allocated now.
    fn may_hold(&self, buffer: &Ref<Buffer>, path: &[Frame]) -> bool {
        let shared = |frame: &&Frame| matches!(frame, Frame::Loop(n) if n.kind == ForKind::ThreadBinding);
        let outer = path.iter().take_while(|frame| *frame != self).chain([self]);
        if buffer.scope != "local" && outer.clone().any(|frame| shared(&frame)) {
            return false;
        }
        match self {
            Frame::Loop(n) => initialized_before_read(&n.body, buffer),
            Frame::Block(n) => initialized_before_read(&n.body, buffer),
        }
    }
}

/// What is around all accesses of a buffer.
struct AccessScope {
    path: Vec<Frame>,
    /// How many frames of the path are around the allocation, its block included.
    defined: usize,
}

#[derive(Default)]
struct AccessScopes {
    path: Vec<Frame>,
    /// How many frames at most may lead to an access: what is inside of a `while` is entered again and again.
    limit: Option<usize>,
    defined: HashMap<Ref<Buffer>, usize>,
    around: indexmap::IndexMap<Ref<Buffer>, Option<AccessScope>>,
}

impl AccessScopes {
    fn access(&mut self, buffer: &Ref<Buffer>) {
        let Some(defined) = self.defined.get(buffer).copied() else { return };
        let here = &self.path[..self.limit.unwrap_or(self.path.len()).max(defined)];
        match self.around.entry(buffer.clone()).or_default() {
            Some(place) => {
                let common = place.path.iter().zip(here).take_while(|(a, b)| a == b).count();
                place.path.truncate(common);
            }
            empty => *empty = Some(AccessScope { path: here.to_vec(), defined }),
        }
    }
}

impl PrimVisitor for AccessScopes {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        self.access(buffer);
    }
}

impl StmtVisitor for AccessScopes {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        self.access(buffer);
    }

    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.visit_prim(&n.min);
                self.visit_prim(&n.extent);
                self.path.push(Frame::Loop(n.clone()));
                self.visit_stmt(&n.body);
                self.path.pop();
            }
            Stmt::While(_) => {
                let outer = self.limit;
                self.limit = Some(outer.unwrap_or(self.path.len()));
                self.walk_stmt(stmt);
                self.limit = outer;
            }
            Stmt::Block(n) => {
                n.iter_values.iter().for_each(|v| self.visit_prim(v));
                self.visit_prim(&n.predicate);
                self.path.push(Frame::Block(n.block.clone()));
                let depth = self.path.len();
                self.defined.extend(n.block.alloc_buffers.iter().map(|b| (b.clone(), depth)));
                n.block.match_buffers.iter().for_each(|m| self.access(&m.source.buffer));
                n.block.init.iter().chain([&n.block.body]).for_each(|s| self.visit_stmt(s));
                self.path.pop();
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Puts allocations to their new places.
#[derive(Default)]
struct Move {
    into: HashMap<Frame, Vec<Ref<Buffer>>>,
    moved: HashSet<Ref<Buffer>>,
    /// Buffers whose new place is around what is being rebuilt.
    held: HashSet<Ref<Buffer>>,
}

impl PrimMutator for Move {}

impl Move {
    /// The regions of what a block still sees.
    fn seen(&self, regions: &[Ref<BufferRegion>]) -> Vec<Ref<BufferRegion>> {
        let gone = |b| self.moved.contains(b) && !self.held.contains(b);
        regions.iter().filter(|r| !gone(&r.buffer)).cloned().collect()
    }

    /// A statement inside of the new place of some buffers.
    fn inside(&mut self, key: &Frame, stmt: &Stmt) -> (Stmt, Vec<Ref<Buffer>>) {
        let new = self.into.get(key).cloned().unwrap_or_default();
        self.held.extend(new.iter().cloned());
        let stmt = self.mutate_stmt(stmt);
        self.held.retain(|b| !new.contains(b));
        (stmt, new)
    }
}

impl StmtMutator for Move {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        let (body, buffers) = self.inside(&Frame::Loop(n.clone()), &n.body);
        if buffers.is_empty() {
            return if body == n.body { stmt.clone() } else { Stmt::loop_around(n, body) };
        }
        let touched = regions_of(&body);
        let foreign = |r: &Ref<BufferRegion>| !buffers.contains(&r.buffer);
        let block = SBlock {
            iter_vars: Vec::new(),
            reads: touched.reads.into_iter().filter(foreign).collect(),
            writes: touched.writes.into_iter().filter(foreign).collect(),
            name: String::new(),
            alloc_buffers: buffers,
            match_buffers: Vec::new(),
            annotations: Default::default(),
            init: None,
            body,
        };
        let predicate = prim::boolean(true);
        let realize = SBlockRealize { iter_values: Vec::new(), predicate, block: Ref::new(block) };
        Stmt::loop_around(n, Ref::new(realize).into())
    }

    fn remake_block(&mut self, n: &Ref<SBlock>) -> Ref<SBlock> {
        let init = n.init.as_ref().map(|init| self.mutate_stmt(init));
        let (body, new) = self.inside(&Frame::Block(n.clone()), &n.body);
        let stay = n.alloc_buffers.iter().filter(|b| !self.moved.contains(*b)).cloned();
        let alloc_buffers: Vec<_> = stay.chain(new).collect();
        let (reads, writes) = (self.seen(&n.reads), self.seen(&n.writes));
        let regions = (&reads, &writes) == (&n.reads, &n.writes);
        if regions && alloc_buffers == n.alloc_buffers && init == n.init && body == n.body {
            return n.clone();
        }
        Ref::new(SBlock { alloc_buffers, init, body, reads, writes, ..(**n).clone() })
    }
}
