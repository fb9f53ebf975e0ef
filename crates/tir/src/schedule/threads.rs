//! Kernels over the threads of a device: the fallback that takes everything.
//!
//! A device runs what stands in loops over its blocks and threads, and its host runs the rest. So whatever touches memory comes into such
//! loops: a parallel loop over as many threads as it has iterations, all else into the loops of one thread.
//!
//! ```text
//! for p in T.parallel(n):         for b in T.thread_binding((n + 63) // 64, "blockIdx.x"):
//!     C[p] = f(p)            ->       for t in T.thread_binding(64, "threadIdx.x"):
//!                                         if b * 64 + t < n:  p = b * 64 + t;  C[p] = f(p)
//!
//! s[0] = 0                        for b in T.thread_binding(1, "blockIdx.x"):
//! for i in range(n): s[0] += …  ->    for t in T.thread_binding(1, "threadIdx.x"):
//!                                         s[0] = 0
//!                                         for i in range(n): s[0] += …
//! ```
//!
//! What stays outside is what the host can do: memory for intermediate results, names of numbers, checks of numbers, choices by
//! numbers, and loops around what rules have bound. A loop inside of a bound one is executed by the thread that meets it. Threads do not talk to each other here; rules for
//! devices, whose threads do, bind their loops themselves, and what they bound stays as it is. No roof.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimVisitor, add, int, int_of, lt, mul};
use relaxide_ir::{Buffer, Var};

use super::affine::ceil_div;
use super::nest::PARALLEL_IF;
use crate::functor::StmtVisitor;
use crate::lower::stores_packed;
use crate::stmt::*;

/// Threads of a block, where there are as many. Small: what is left over of a block does nothing.
pub(super) const THREADS: i64 = 64;

/// The annotation of a parallel loop that says how many threads a block has instead.
pub(super) const BLOCK: &str = "relaxide.block";

/// A kernel in which all that touches memory is bound to threads. What binds loops itself stays as it is.
pub fn bind(body: &Stmt) -> Stmt {
    Stmt::seq(bind_list(std::slice::from_ref(body)))
}

/// True if a loop is bound to threads already.
pub fn has_threads(stmt: &Stmt) -> bool {
    struct Bound(bool);
    impl PrimVisitor for Bound {}
    impl StmtVisitor for Bound {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= matches!(stmt, Stmt::For(n) if n.kind == ForKind::ThreadBinding);
            if !self.0 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut bound = Bound(false);
    bound.visit_stmt(stmt);
    bound.0
}

/// Binds statements in order; neighbours that one thread executes are one launch.
fn bind_list(list: &[Stmt]) -> Vec<Stmt> {
    let (mut out, mut alone): (Vec<Stmt>, Vec<Stmt>) = (Vec::new(), Vec::new());
    let mut rest = list;
    while let [stmt, behind @ ..] = rest {
        let held = held_together(rest);
        if held > 0 {
            alone.extend(rest[..held].iter().map(serial));
            rest = &rest[held..];
            continue;
        }
        rest = behind;
        if needs_one_thread(stmt) {
            alone.push(serial(stmt));
            continue;
        }
        flush(&mut out, &mut alone);
        out.push(bind_one(stmt));
    }
    flush(&mut out, &mut alone);
    out
}

fn flush(out: &mut Vec<Stmt>, alone: &mut Vec<Stmt>) {
    if !alone.is_empty() {
        out.push(one_thread(Stmt::seq(std::mem::take(alone))));
    }
}

/// How many of some statements are one thread's, since the first makes memory that is a thread's own, or a name of what only the device can
/// know: as far as such names are used. What ends a thread early holds all that is behind it.
fn held_together(list: &[Stmt]) -> usize {
    if !list.first().is_some_and(|stmt| own_name(stmt).is_some() || may_end(stmt)) {
        return 0;
    }
    let (mut at, mut end) = (0, 1);
    while at < end {
        if may_end(&list[at]) {
            return list.len();
        }
        if let Some(name) = own_name(&list[at]) {
            end = end.max(list.iter().rposition(|stmt| mentions(stmt, name)).map_or(0, |last| last + 1));
        }
        at += 1;
    }
    end
}

fn may_end(stmt: &Stmt) -> bool {
    let has_name = matches!(stmt, Stmt::Alloc(_) | Stmt::Bind(_) | Stmt::Decl(_));
    !has_name && stmt.has_early_exit() && !is_parallel(stmt) && !is_bound(stmt)
}

/// The name of what one thread alone has.
fn own_name(stmt: &Stmt) -> Option<&Ref<Var>> {
    match stmt {
        Stmt::Alloc(n) => (n.buffer.scope != "global").then_some(&n.buffer.data),
        Stmt::Bind(n) => touches_memory(&n.value).then_some(&n.var),
        Stmt::Decl(n) => (!n.is_view()).then_some(&n.buffer.data),
        _ => None,
    }
}

/// Whether a statement uses a name, be it that of a buffer's memory.
fn mentions(stmt: &Stmt, name: &Ref<Var>) -> bool {
    struct Mentions<'a>(&'a Ref<Var>, bool);
    impl PrimVisitor for Mentions<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.1 |= e.as_var() == Some(self.0);
            if !self.1 {
                self.walk_prim(e);
            }
        }

        fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
            self.1 |= buffer.data == *self.0;
        }
    }
    impl StmtVisitor for Mentions<'_> {
        fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
            self.1 |= buffer.data == *self.0;
        }

        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Block(n) = stmt {
                self.1 |= n.block.match_buffers.iter().any(|alias| alias.source.buffer.data == *self.0);
            }
            if !self.1 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut mentions = Mentions(name, false);
    mentions.visit_stmt(stmt);
    mentions.1
}

fn is_bound(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For(n) if n.kind == ForKind::ThreadBinding)
}

fn is_parallel(stmt: &Stmt) -> bool {
    match stmt {
        // Neighbours that share a byte are stored by one thread.
        Stmt::For(n) if stores_packed(&n.body) => false,
        Stmt::For(n) => n.kind == ForKind::Parallel && !touches_memory(&n.min) && !touches_memory(&n.extent),
        Stmt::Attr(n) if n.key == PARALLEL_IF => is_parallel(&n.body),
        _ => false,
    }
}

/// Whether it touches memory outside of any parallel loop.
fn needs_one_thread(stmt: &Stmt) -> bool {
    match stmt {
        _ if is_parallel(stmt) || is_bound(stmt) => false,
        Stmt::Alloc(_) | Stmt::Decl(_) => false,
        // The host repeats what threads do.
        Stmt::For(_) if has_threads(stmt) => false,
        Stmt::Bind(n) => touches_memory(&n.value),
        Stmt::Seq(n) => n.seq.iter().all(needs_one_thread) && !n.seq.is_empty(),
        Stmt::If(n) => {
            let other = n.else_case.as_ref();
            touches_memory(&n.condition) || needs_one_thread(&n.then_case) && other.is_none_or(needs_one_thread)
        }
        Stmt::Evaluate(n) => touches_memory(&n.value),
        Stmt::Assert(n) => touches_memory(&n.condition),
        Stmt::Attr(n) => needs_one_thread(&n.body),
        _ => true,
    }
}

fn bind_one(stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::For(n) if is_parallel(stmt) => spread(n),
        // Whether threads are worth it is a question for processors.
        Stmt::Attr(n) if n.key == PARALLEL_IF => bind_one(&n.body),
        Stmt::Attr(n) => {
            let body = Stmt::seq(bind_list(std::slice::from_ref(&n.body)));
            Ref::new(AttrStmt { node: n.node.clone(), key: n.key.clone(), value: n.value.clone(), body }).into()
        }
        Stmt::Seq(n) => Stmt::seq(bind_list(&n.seq)),
        Stmt::If(n) => {
            let branch = |stmt: &Stmt| Stmt::seq(bind_list(std::slice::from_ref(stmt)));
            match &n.else_case {
                Some(other) => Stmt::if_else(n.condition.clone(), branch(&n.then_case), branch(other)),
                None => Stmt::when(n.condition.clone(), branch(&n.then_case)),
            }
        }
        _ => stmt.clone(),
    }
}

/// A parallel loop over blocks of threads.
fn spread(n: &For) -> Stmt {
    let dtype = n.var.dtype();
    let number = |value: i64| int_of(dtype, value);
    let most = n.annotations.int(BLOCK).unwrap_or(THREADS);
    let threads = n.extent.as_int().map_or(most, |extent| extent.clamp(1, most));
    let blocks = ceil_div(&n.extent, threads);
    let [block, thread, at] = ["block", "thread", "at"].map(|name| Var::new(name, n.var.ty.clone()));
    let value = add(mul(PrimExpr::from(&block), number(threads)), PrimExpr::from(&thread));
    let inside = Stmt::seq([Stmt::bind(n.var.clone(), add(PrimExpr::from(&at), n.min.clone())), serial(&n.body)]);
    let inside = match n.extent.as_int() {
        Some(extent) if extent % threads == 0 => inside,
        _ => Stmt::when(lt(PrimExpr::from(&at), n.extent.clone()), inside),
    };
    let body = Stmt::seq([Stmt::bind(at, value), inside]);
    let body = Stmt::threads(thread, number(threads), "threadIdx.x", body);
    Stmt::threads(block, relaxide_ir::prim::cast(dtype, blocks), "blockIdx.x", body)
}

fn one_thread(body: Stmt) -> Stmt {
    launch(&Var::dim("block"), int(1), &Var::dim("thread"), 1, body)
}

/// Blocks of threads. A launch has one block at least: where none may be meant, it does nothing.
pub(crate) fn launch(block: &Ref<Var>, blocks: PrimExpr, thread: &Ref<Var>, threads: i64, body: Stmt) -> Stmt {
    let body = match blocks.as_int() {
        Some(1..) => body,
        _ => Stmt::when(lt(PrimExpr::from(block), blocks.clone()), body),
    };
    let inner = Stmt::threads(thread.clone(), int(threads), "threadIdx.x", body);
    Stmt::threads(block.clone(), blocks, "blockIdx.x", inner)
}

/// The statement with loops that one thread executes.
fn serial(stmt: &Stmt) -> Stmt {
    use crate::functor::StmtMutator;
    use relaxide_ir::prim::PrimMutator;
    struct Serial;
    impl PrimMutator for Serial {}
    impl StmtMutator for Serial {
        fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
            match stmt {
                Stmt::For(n) if n.kind == ForKind::Parallel => {
                    let body = self.mutate_stmt(&n.body);
                    let annotations =
                        if n.annotations.int(BLOCK).is_some() { Default::default() } else { n.annotations.clone() };
                    Ref::new(For { kind: ForKind::Serial, annotations, body, ..For::clone(n) }).into()
                }
                Stmt::Attr(n) if n.key == PARALLEL_IF => self.mutate_stmt(&n.body),
                _ => self.remake_stmt(stmt),
            }
        }
    }
    Serial.mutate_stmt(stmt)
}

/// Whether a value depends on memory.
fn touches_memory(e: &PrimExpr) -> bool {
    struct Touches(bool, HashSet<PrimExpr>);
    impl PrimVisitor for Touches {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Load(_) => self.0 = true,
                PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_) | PrimExpr::Str(_) => {}
                _ if !self.0 && self.1.insert(e.clone()) => self.walk_prim(e),
                _ => {}
            }
        }

        fn visit_buffer_use(&mut self, _: &Ref<Buffer>) {
            self.0 = true;
        }
    }
    let mut touches = Touches(false, HashSet::new());
    touches.visit_prim(e);
    touches.0
}
