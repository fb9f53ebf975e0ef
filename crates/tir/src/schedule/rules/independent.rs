//! Loops that were not understood, but whose iterations have nothing to do with each other: sorts and scans row by row,
//! scatters along one axis, searches, regions.
//!
//! ```text
//! for i, j:                                    parallel p in range(n * m):       # serial where the whole is small
//!     state[0] = …                     ->          i, j = p // m, p % m
//!     for k: order[i, j, k] = … state[0] …         alloc state;  state[0] = …
//!                                                  for k: order[i, j, k] = … state[0] …
//! ```
//!
//! Matches the outermost counters of serial loops that are, each of them, an index of every access to every buffer which the
//! loops write: two iterations then never meet at an element. Buffers of a few numbers that every iteration writes before it
//! reads them, and that nobody else uses, become its own. Loops inside stay as they are. Roof: none; what the loops do
//! is theirs.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor, add, free_vars, int, mul};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{cost, loads, uses_any};
use super::super::lanes::is_lanewise;
use super::super::{Axis, Cx, nest};
use crate::{ForKind, SBlockRealize, Stmt, StmtMutator, StmtVisitor};

/// Elements up to which a buffer is a handful of numbers.
const FEW: i64 = 16;
/// Iterations of a loop whose extent changes from one iteration to the next.
const SOME: i64 = 8;

/// The statement with loops on several threads; `None` where no loop allows it.
pub fn apply(cx: &Cx, stmt: &Stmt) -> Option<Stmt> {
    match stmt {
        Stmt::Block(realize) => {
            let body = apply(cx, plain(realize)?)?;
            Some(Stmt::seq(realize.block.alloc_buffers.iter().map(Stmt::alloc).chain([body])))
        }
        Stmt::Seq(n) => {
            let changed: Vec<Option<Stmt>> = n.seq.iter().map(|s| of_loops(cx, s, stmt)).collect();
            let any = changed.iter().any(Option::is_some);
            let kept = changed.into_iter().zip(&n.seq).map(|(new, old)| new.unwrap_or_else(|| old.clone()));
            any.then(|| Stmt::seq(kept))
        }
        Stmt::For(_) => of_loops(cx, stmt, stmt),
        _ => None,
    }
}

/// The body of a block that is nothing but a body.
pub(super) fn plain(realize: &SBlockRealize) -> Option<&Stmt> {
    let block = &realize.block;
    let bare = block.iter_vars.is_empty() && block.match_buffers.is_empty() && block.init.is_none();
    (bare && block.annotations.0.is_empty() && realize.predicate.is_int(1)).then_some(&block.body)
}

/// One nest of loops, beside the statements around it.
fn of_loops(cx: &Cx, stmt: &Stmt, around: &Stmt) -> Option<Stmt> {
    let mut axes: Vec<Axis> = Vec::new();
    let mut inner = stmt;
    while let Stmt::For(n) = inner {
        let earlier = axes.iter().map(|a| &a.var);
        let counts = n.var.dtype() == DataType::int(64) && n.min.is_int(0) && n.kind == ForKind::Serial;
        if !counts || !n.annotations.0.is_empty() || uses_any(&n.extent, earlier) {
            break;
        }
        axes.push(Axis { var: n.var.clone(), extent: n.extent.clone() });
        inner = &n.body;
    }
    let accesses = Accesses::of(stmt)?;
    let own: Vec<Ref<Buffer>> = accesses.written.iter().filter(|b| is_own(cx, b, stmt, around)).cloned().collect();
    let mut rows = axes.iter().take_while(|a| accesses.is_row(&a.var, &own)).count();
    if rows == axes.len() && rows > 1 && matches!(inner, Stmt::Store(_)) {
        // A row of its own for the innermost loop, which may become vectors.
        rows -= 1;
    }
    let body = behind(stmt, rows);
    if rows == 0 || own.iter().any(|b| !Assigned::before_read(b, body)) {
        return None;
    }
    let axes = &axes[..rows];
    let counter = Var::dim("p");
    let (tasks, binds) = nest::fuse(axes, &counter);
    let work = mul(&tasks, work(body));
    let fresh = own.iter().map(|b| (b.clone(), Buffer::scoped(b.name.clone(), b.dtype, b.shape.clone(), "local")));
    let mut rename = Rename(fresh.collect());
    let body = rename.mutate_stmt(body);
    let body = Stmt::seq(binds.into_iter().chain(own.iter().map(|b| Stmt::alloc(&rename.0[b]))).chain([body]));
    Some(nest::parallel(&cx.machine, counter, tasks, work, body))
}

/// The body of the innermost of so many loops.
fn behind(stmt: &Stmt, loops: usize) -> &Stmt {
    (0..loops).fold(stmt, |body, _| match body {
        Stmt::For(n) => &n.body,
        other => other,
    })
}

/// Every access of a statement to memory that it does not allocate itself.
#[derive(Default)]
pub(super) struct Accesses {
    pub written: HashSet<Ref<Buffer>>,
    /// Where buffers are read and written.
    pub places: Vec<(Ref<Buffer>, Vec<PrimExpr>)>,
    inside: HashSet<Ref<Var>>,
    strange: bool,
    /// Whether an index that is data is checked.
    pub checks: bool,
}

impl Accesses {
    /// `None` where something is done to memory, or to the flow of control, that accesses do not say, or where an index is checked.
    fn of(stmt: &Stmt) -> Option<Accesses> {
        Accesses::with_checks(stmt).filter(|accesses| !accesses.checks)
    }

    /// The same where checks of indices do not matter.
    pub fn with_checks(stmt: &Stmt) -> Option<Accesses> {
        let mut found = Accesses::default();
        found.visit_stmt(stmt);
        let inside = std::mem::take(&mut found.inside);
        found.written.retain(|b| !inside.contains(&b.data));
        found.places.retain(|(b, _)| !inside.contains(&b.data));
        // Another buffer over the same memory has other indices.
        let names: HashMap<&Ref<Var>, &Ref<Buffer>> = found.places.iter().map(|(b, _)| (&b.data, b)).collect();
        let alone = found.places.iter().all(|(b, _)| names.get(&b.data) == Some(&b));
        (alone && !found.strange).then_some(found)
    }

    /// Whether iterations of different values of a counter never meet at an element that one of them writes.
    pub fn is_row(&self, counter: &Ref<Var>, own: &[Ref<Buffer>]) -> bool {
        self.written.iter().filter(|b| !own.contains(b)).all(|buffer| {
            (0..buffer.ndim()).any(|dim| {
                let mut places = self.places.iter().filter(|(b, _)| b == buffer);
                places.all(|(_, indices)| indices.get(dim).and_then(PrimExpr::as_var) == Some(counter))
            })
        })
    }
}

impl PrimVisitor for Accesses {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Load(n) => self.places.push((n.buffer.clone(), n.indices.clone())),
            PrimExpr::Call(n) => {
                let harmless = is_lanewise(&n.op) || matches!(n.op.as_str(), "tirx.if_then_else" | "tirx.likely");
                let checks = n.op == "tirx.checked_index";
                self.checks |= checks;
                self.strange |= !harmless && !checks;
            }
            _ => {}
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for Accesses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Store(n) => {
                self.written.insert(n.buffer.clone());
                self.places.push((n.buffer.clone(), n.indices.clone()));
            }
            Stmt::Alloc(n) => {
                self.inside.insert(n.buffer.data.clone());
            }
            Stmt::For(n) => self.strange |= n.kind == ForKind::ThreadBinding || n.kind == ForKind::Parallel,
            Stmt::Block(_) | Stmt::Attr(_) | Stmt::Decl(_) => self.strange = true,
            _ => self.strange |= stmt.early_exit().is_some(),
        }
        self.walk_stmt(stmt);
    }
}

/// Whether a buffer is a handful of numbers that only this statement knows.
pub(super) fn is_own(cx: &Cx, buffer: &Ref<Buffer>, stmt: &Stmt, around: &Stmt) -> bool {
    let few = buffer.num_elements().as_int().is_some_and(|n| n <= FEW);
    few && cx.private.contains(buffer)
        && (std::ptr::eq(stmt, around) || count_uses(around, buffer) == count_uses(stmt, buffer))
}

fn count_uses(stmt: &Stmt, buffer: &Ref<Buffer>) -> usize {
    let mut found = Accesses::default();
    found.visit_stmt(stmt);
    found.places.iter().filter(|(b, _)| b == buffer).count()
}

/// The elements of a buffer that have been written for certain.
#[derive(Clone)]
pub(super) struct Assigned<'a> {
    buffer: &'a Ref<Buffer>,
    elements: HashSet<Vec<i64>>,
}

impl<'a> Assigned<'a> {
    /// Whether a statement writes each element of a buffer before it reads it, whatever way it takes.
    pub fn before_read(buffer: &'a Ref<Buffer>, stmt: &Stmt) -> bool {
        Assigned { buffer, elements: HashSet::new() }.follow(stmt)
    }

    fn follow(&mut self, stmt: &Stmt) -> bool {
        match stmt {
            Stmt::Seq(n) => n.seq.iter().all(|s| self.follow(s)),
            Stmt::Store(n) => {
                let known = n.indices.iter().chain([&n.value]).chain(&n.predicate).all(|e| self.knows(e));
                if n.buffer != *self.buffer {
                    return known;
                }
                let Some(element) = constants(&n.indices) else { return false };
                if n.predicate.is_none() {
                    self.elements.insert(element);
                }
                known
            }
            Stmt::If(n) => {
                let (mut then, mut other) = (self.clone(), self.clone());
                let known = self.knows(&n.condition)
                    && then.follow(&n.then_case)
                    && n.else_case.as_ref().is_none_or(|s| other.follow(s));
                self.elements = then.elements.intersection(&other.elements).cloned().collect();
                known
            }
            // A loop may have no iteration: what it writes counts inside only.
            Stmt::For(n) => self.knows(&n.extent) && self.clone().follow(&n.body),
            Stmt::While(n) => self.knows(&n.condition) && self.clone().follow(&n.body),
            Stmt::Bind(n) => self.knows(&n.value),
            Stmt::Evaluate(n) => self.knows(&n.value),
            Stmt::Assert(n) => self.knows(&n.condition),
            Stmt::Alloc(_) => true,
            Stmt::Block(_) | Stmt::Attr(_) | Stmt::Decl(_) => false,
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => false,
            Stmt::ScopeIds(_) | Stmt::Tile(_) => false,
        }
    }

    fn knows(&self, e: &PrimExpr) -> bool {
        let reads = loads(e);
        let mut own = reads.iter().filter(|l| l.buffer == *self.buffer);
        own.all(|l| constants(&l.indices).is_some_and(|element| self.elements.contains(&element)))
    }
}

fn constants(indices: &[PrimExpr]) -> Option<Vec<i64>> {
    indices.iter().map(PrimExpr::as_int).collect()
}

/// Simple operations that a statement costs, as far as its loops' extents are known in front of it.
fn work(stmt: &Stmt) -> PrimExpr {
    fn inside(stmt: &Stmt, bound: &mut HashSet<Ref<Var>>) -> PrimExpr {
        match stmt {
            Stmt::For(n) => {
                bound.insert(n.var.clone());
                let body = inside(&n.body, bound);
                let known = loads(&n.extent).is_empty() && !free_vars(&n.extent).iter().any(|v| bound.contains(v));
                mul(body, if known { n.extent.clone() } else { int(SOME) })
            }
            Stmt::While(n) => mul(inside(&n.body, bound), int(SOME)),
            Stmt::Seq(n) => n.seq.iter().map(|s| inside(s, bound)).fold(int(0), add),
            Stmt::If(n) => {
                let other = n.else_case.as_ref().map_or(int(0), |s| inside(s, bound));
                add(inside(&n.then_case, bound), other)
            }
            Stmt::Bind(n) => {
                bound.insert(n.var.clone());
                int(cost(&n.value))
            }
            Stmt::Store(n) => int(1 + cost(&n.value)),
            _ => int(1),
        }
    }
    inside(stmt, &mut HashSet::new())
}

/// Puts buffers in the place of others.
pub(super) struct Rename(pub HashMap<Ref<Buffer>, Ref<Buffer>>);

impl PrimMutator for Rename {
    fn mutate_buffer_use(&mut self, buffer: &Ref<Buffer>) -> Ref<Buffer> {
        self.0.get(buffer).unwrap_or(buffer).clone()
    }
}

impl StmtMutator for Rename {}
