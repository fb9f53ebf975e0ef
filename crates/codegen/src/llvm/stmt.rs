//! Statements.

use relaxide_ir::prim::is_data;
use relaxide_ir::{BinaryOp, PrimExpr, Ref, Type, prim::PrimVisitor};
use relaxide_tir::schedule::nest::{OUTLINED, PARALLEL_IF, UNROLL_COUNT};
use relaxide_tir::{EarlyExit, EarlyExits, For, ForKind, IfThenElse, SeqStmt, Stmt, StmtVisitor, While};

use super::{
    digits::Digits,
    kernel::{Body, LoopEnds},
    module::Metadata,
    region::RegionKind,
    shared_bytes::shares_stored_bytes,
    value::Val,
};
use crate::error::CodegenError;
use crate::shared::first_line;

impl Body<'_, '_> {
    /// Writes one statement.
    pub fn stmt(&mut self, stmt: &Stmt) -> Result<(), CodegenError> {
        if self.f.module.notes_statements() {
            self.f.note(&first_line(stmt));
        }
        let before = self.f.enter(stmt);
        let written = self.write(stmt).map_err(|error| error.in_statement(|| first_line(stmt)));
        // What follows inside of the statement around belongs to that: the step of a loop, to the loop.
        before.into_iter().for_each(|line| self.f.at_line(line));
        written
    }

    fn write(&mut self, stmt: &Stmt) -> Result<(), CodegenError> {
        if let Some(jump @ (EarlyExit::Break | EarlyExit::Continue)) = stmt.early_exit() {
            return self.leave_loop(jump);
        }
        match stmt {
            Stmt::For(n) => self.for_loop(n),
            Stmt::While(n) => self.while_loop(n),
            Stmt::Seq(n) => self.sequence(n),
            Stmt::If(n) => self.branch(n),
            Stmt::Store(n) => {
                self.store(n)?;
                self.forget_values();
                Ok(())
            }
            Stmt::Bind(n) => {
                let value = self.bound_value(&n.value, &n.var.ty)?;
                self.vars.insert(n.var.clone(), value);
                self.forget_values();
                Ok(())
            }
            Stmt::Evaluate(n) => {
                self.eval(&n.value)?;
                self.forget_values();
                Ok(())
            }
            Stmt::Assert(n) => {
                let condition = self.eval(&n.condition)?;
                let condition = self.f.not_zero(&condition);
                let told = match n.told() {
                    Some((texts, [first, second])) if self.kernel.device.is_none() => {
                        Some((texts, [self.number(first)?, self.number(second)?]))
                    }
                    _ => None,
                };
                let (fail, go_on) = (self.f.label(), self.f.label());
                self.f.branch_if(&condition, go_on, fail);
                self.f.start(fail);
                match told {
                    Some((texts, numbers)) => self.fail_with_numbers(&n.error_kind, texts, &numbers),
                    None => self.fail(&n.error_kind, &n.said()),
                }
                self.f.start(go_on);
                self.forget_values();
                Ok(())
            }
            Stmt::Attr(n) => match &n.body {
                Stmt::For(inner) if n.key == PARALLEL_IF && inner.kind == ForKind::Parallel && self.divides(inner) => {
                    let worth = self.eval(&n.value)?;
                    let worth = self.f.not_zero(&worth);
                    self.parallel_loop(inner, Some(&worth))
                }
                body if n.key == OUTLINED && self.kernel.device.is_none() => self.outlined(body),
                body => self.stmt(body),
            },
            // Memory that nothing follows is memory that nothing uses.
            Stmt::Alloc(_) => Ok(()),
            Stmt::Decl(n) if n.is_view() => Ok(()),
            Stmt::Decl(n) => {
                let address = self.eval(&n.data)?;
                self.vars.insert(n.buffer.data.clone(), address);
                self.forget_values();
                Ok(())
            }
            Stmt::Return(n) => {
                self.return_value(&n.value)?;
                self.forget_values();
                Ok(())
            }
            // EarlyExits, which were written above.
            Stmt::Break(_) | Stmt::Continue(_) => Ok(()),
            Stmt::ScopeIds(_) | Stmt::Tile(_) => {
                Err(self.kernel.malformed("a statement about tiles was not lowered".to_string()))
            }
            Stmt::Block(n) => {
                Err(self.kernel.malformed(format!("block `{}` was not lowered to statements", n.block.name)))
            }
        }
    }

    /// A value under a name. What only serves indices is integer and does not overflow.
    fn bound_value(&mut self, value: &PrimExpr, ty: &Type) -> Result<Val, CodegenError> {
        let index_like = matches!(ty, Type::Prim(ty) if ty.dtype.is_int()) && !is_data(value);
        if index_like { self.index_typed(value) } else { self.eval(value) }
    }

    fn sequence(&mut self, n: &SeqStmt) -> Result<(), CodegenError> {
        let mark = self.workspaces.len();
        for stmt in &n.seq {
            match stmt {
                Stmt::Alloc(alloc) => {
                    self.f.enter(stmt);
                    self.allocate(&alloc.buffer).map_err(|error| error.in_statement(|| first_line(stmt)))?;
                }
                other => self.stmt(other)?,
            }
        }
        for workspace in self.workspaces.split_off(mark).iter().rev() {
            self.free_workspace(workspace);
        }
        Ok(())
    }

    fn branch(&mut self, n: &IfThenElse) -> Result<(), CodegenError> {
        let condition = self.index_typed(&n.condition)?;
        let condition = self.f.not_zero(&condition);
        if condition.ty.is_vector() {
            return Err(self.kernel.malformed("a statement under a vector of conditions"));
        }
        self.forget_values();
        let (then, otherwise, done) = (self.f.label(), self.f.label(), self.f.label());
        self.f.open(RegionKind::Branch);
        self.f.branch_if(&condition, then, otherwise);
        self.f.start(then);
        self.stmt(&n.then_case)?;
        self.f.branch(done);
        self.f.start(otherwise);
        self.forget_values();
        if let Some(other) = &n.else_case {
            self.stmt(other)?;
        }
        self.f.branch(done);
        self.f.close();
        self.f.start(done);
        self.forget_values();
        Ok(())
    }

    fn for_loop(&mut self, n: &Ref<For>) -> Result<(), CodegenError> {
        match n.kind {
            ForKind::Parallel if self.divides(n) => return self.parallel_loop(n, None),
            ForKind::ThreadBinding if self.kernel.device.is_some() => return self.thread_axis(n),
            ForKind::ThreadBinding => {
                return Err(self.kernel.unsupported(format!("a loop bound to `{}`", n.thread_tag)));
            }
            ForKind::Serial | ForKind::Parallel | ForKind::Vectorized | ForKind::Unrolled => {}
        }
        let ty = self.kernel.ty(n.var.dtype())?;
        let (min, extent) = (self.index_typed(&n.min)?, self.index_typed(&n.extent)?);
        let (min, extent) = (self.f.convert(&min, ty), self.f.convert(&extent, ty));
        self.forget_values();
        match n.extent.as_int() {
            Some(count) if count <= 0 => return Ok(()),
            Some(1) if !EarlyExits::of(&n.body).of_loop => {
                self.vars.insert(n.var.clone(), min);
                self.stmt(&n.body)?;
                self.forget_values();
                return Ok(());
            }
            _ => {}
        }
        let end = if n.min.is_int(0) { extent } else { self.f.op("add nsw", &min, &extent) };
        let shape = LoopShape::of(&n.body);
        let hints = self.loop_hints(n, &shape);
        self.counted_loop(n, &min, &end, hints, shape.has_vectors)
    }

    /// Whether threads share a parallel loop: not inside of another, and not where two of them might change one byte.
    fn divides(&self, n: &For) -> bool {
        !self.in_parallel && !shares_stored_bytes(&n.body)
    }

    /// A loop's iterations from `min` below `end`; `vectors` says whether its body has any.
    pub fn counted_loop(
        &mut self,
        n: &For,
        min: &Val,
        end: &Val,
        hints: Option<Metadata>,
        vectors: bool,
    ) -> Result<(), CodegenError> {
        let counts_up = n.min.as_int().is_some_and(|min| min >= 0) && min.ty.kind.is_signed();
        let apart = if counts_up { Digits::of(n) } else { None };
        let digits = apart.as_ref().map(|apart| self.first_digits(apart, min)).transpose()?.unwrap_or_default();
        let (header, inside, latch, done) = (self.f.label(), self.f.label(), self.f.label(), self.f.label());
        let from = self.f.current();
        self.f.open(RegionKind::Loop { vectors });
        self.f.branch(header);
        self.f.start(header);
        let counter = self.f.loop_phi(min, from, latch);
        let places: Vec<Val> = digits.iter().map(|digit| self.f.loop_phi(&digit.first, from, latch)).collect();
        let predicate = if min.ty.kind.is_signed() { "slt" } else { "ult" };
        let more = self.f.icmp(predicate, &counter, end);
        self.f.branch_if(&more, inside, done);
        self.f.start(inside);
        self.loops.push(LoopEnds { next: latch, done, workspaces: self.workspaces.len() });
        self.vars.insert(n.var.clone(), counter.clone());
        for (name, place) in apart.iter().flat_map(Digits::names).zip(&places) {
            self.vars.insert(name.clone(), place.clone());
        }
        self.stmt(apart.as_ref().map_or(&n.body, |apart| &apart.rest))?;
        self.loops.pop();
        self.forget_values();
        self.f.branch(latch);
        self.f.start(latch);
        // The counter stays below `end`, which is representable.
        let flags = match (counter.ty.kind.is_signed(), min.as_int_literal()) {
            (true, Some(0..)) => "nuw nsw",
            (true, _) => "nsw",
            (false, _) => "nuw",
        };
        self.f.loop_step(&counter, format_args!("add {flags} {counter}, 1"));
        self.step_digits(&digits, &places);
        self.f.loop_branch(header, hints);
        self.f.close();
        self.f.start(done);
        Ok(())
    }

    fn while_loop(&mut self, n: &While) -> Result<(), CodegenError> {
        let (header, inside, done) = (self.f.label(), self.f.label(), self.f.label());
        self.f.open(RegionKind::Loop { vectors: false });
        self.f.branch(header);
        self.f.start(header);
        let condition = self.eval(&n.condition)?;
        let condition = self.f.not_zero(&condition);
        self.forget_values();
        self.f.branch_if(&condition, inside, done);
        self.f.start(inside);
        self.loops.push(LoopEnds { next: header, done, workspaces: self.workspaces.len() });
        self.stmt(&n.body)?;
        self.loops.pop();
        self.forget_values();
        self.f.branch(header);
        self.f.close();
        self.f.start(done);
        Ok(())
    }

    /// Goes to the end of the innermost loop, or of its iteration; memory that was allocated inside of it is freed before.
    fn leave_loop(&mut self, jump: EarlyExit<'_>) -> Result<(), CodegenError> {
        let Some(LoopEnds { next, done, workspaces }) = self.loops.last().copied() else {
            return Err(self.kernel.malformed(format!("`{}` outside of a loop", jump.word())));
        };
        for workspace in self.workspaces[workspaces..].to_vec().iter().rev() {
            self.free_workspace(workspace);
        }
        self.f.branch(if jump == EarlyExit::Break { done } else { next });
        let unreachable = self.f.label();
        self.f.start(unreachable);
        self.forget_values();
        Ok(())
    }

    /// What LLVM should know of an innermost loop: one that a schedule has already written in vectors is left alone.
    fn loop_hints(&mut self, n: &For, shape: &LoopShape) -> Option<Metadata> {
        let mut hints: Vec<String> = Vec::new();
        if let Some(count) = n.annotations.int(UNROLL_COUNT) {
            hints.push(format!("!\"llvm.loop.unroll.count\", i32 {count}"));
        }
        match n.kind {
            ForKind::Unrolled => hints.push("!\"llvm.loop.unroll.full\"".into()),
            ForKind::Vectorized => hints.push("!\"llvm.loop.vectorize.enable\", i1 true".into()),
            _ if (shape.has_vectors && !shape.has_loops) || (n.var.dtype().bits < 64 && shape.wraps_around) => {
                hints.push("!\"llvm.loop.vectorize.width\", i32 1".into());
                hints.push("!\"llvm.loop.interleave.count\", i32 1".into());
            }
            _ => {}
        }
        if hints.is_empty() {
            return None;
        }
        let nodes: Vec<String> =
            hints.iter().map(|hint| self.f.module.metadata(&format!("!{{{hint}}}")).to_string()).collect();
        Some(self.f.module.metadata(&format!("distinct !{{{{self}}, {}}}", nodes.join(", "))))
    }
}

/// How far a kernel's loops are written in vectors, the least of it first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Written {
    /// There are loops, and no vector in any of them.
    Scalar,
    /// Some innermost loops have vectors, others have none.
    Mixed,
    /// Every innermost loop has vectors.
    Vectors,
}

impl Written {
    /// How a kernel's body is written.
    pub fn of(body: &Stmt) -> Self {
        let shape = LoopShape::of(body);
        if shape.has_loops && !shape.has_vectors {
            return Self::Scalar;
        }
        let mut search = ScalarLoop(false);
        search.visit_stmt(body);
        if search.0 { Self::Mixed } else { Self::Vectors }
    }
}

/// Finds an innermost loop without a vector.
struct ScalarLoop(bool);

impl PrimVisitor for ScalarLoop {}

impl StmtVisitor for ScalarLoop {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        let body = match stmt {
            Stmt::For(n) => Some(&n.body),
            Stmt::While(n) => Some(&n.body),
            _ => None,
        };
        let shape = body.map(LoopShape::of);
        self.0 |= shape.is_some_and(|shape| !shape.has_loops && !shape.has_vectors);
        self.walk_stmt(stmt);
    }
}

/// What a loop's body holds.
#[derive(Default)]
pub(super) struct LoopShape {
    pub has_vectors: bool,
    has_loops: bool,
    /// Whether some index wraps around at a power of two. LLVM's loop vectorizer (19 and 22 at least) takes `a[i * 4 + r % 4]`
    /// over a 32-bit `r` for neighbours, and reads beyond the row.
    wraps_around: bool,
}

impl LoopShape {
    pub fn of(body: &Stmt) -> Self {
        let mut shape = Self::default();
        shape.visit_stmt(body);
        shape
    }
}

impl PrimVisitor for LoopShape {
    fn visit_prim(&mut self, e: &PrimExpr) {
        // A loop over vectors is left alone anyway.
        if let PrimExpr::Ramp(_) | PrimExpr::Broadcast(_) = e {
            self.has_vectors = true;
        }
        if self.has_vectors {
            return;
        }
        if let PrimExpr::Binary(n) = e {
            let power_of_two = n.b.as_int().is_some_and(|by| by > 1 && by.count_ones() == 1);
            self.wraps_around |= power_of_two && matches!(n.op, BinaryOp::FloorMod | BinaryOp::Mod);
        }
        self.walk_prim(e);
    }
}

impl StmtVisitor for LoopShape {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        self.has_loops |= matches!(stmt, Stmt::For(_) | Stmt::While(_));
        self.walk_stmt(stmt);
    }
}
