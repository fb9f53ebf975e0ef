//! No access leaves its buffer: each index of a kernel is proved to lie inside, or checked when the kernel runs.
//!
//! ```text
//! for i, j in T.grid(n, 64):                                for i, j in T.grid(n, 64):
//!     B[i, j] = A[I[i], j]                ->                    B[i, j] = A[checked_index(I[i], m, "…"), j]
//!
//! for i in range(n):                                        if n >= 1: checked_index(n - 1, m, "…")
//!     C[i] = A[i] + B[i]      # B has m   ->                for i in range(n): C[i] = A[i] + B[i]
//! ```
//!
//! **What is checked.** Every dimension of every load and store of a kernel in block form, before it is scheduled: a fused kernel
//! keeps the checks of its parts, and rules see where an index comes from. Three cases, in this order:
//!
//! 1. The analyzer proves `0 <= index < extent` from loops, dimensions and the conditions around; an index that is data (a
//!    load, a value computed from one) is proved where its own form bounds it: clamped, wrapped, of a narrow type, or asked
//!    for by a condition around ([`range`]). Nothing is left to do.
//! 2. The index is made of counters and dimensions alone, and the access happens in every iteration: its least and greatest
//!    value are held against the extent once, before the kernel does anything ([`range`]). Loops stay what they are.
//! 3. Else the index is checked where it is evaluated, by one unsigned comparison (`checked_index`). What does not move along a
//!    row is checked once a row, since rules give names to it; a vector of indices is checked at once.
//!
//! **Why before scheduling.** An index too large for its dimension may still lie inside of the memory: after flattening it
//! reads a wrong element instead of being an error.
//!
//! **Needs** buffers whose shapes are true: those of parameters are compared with the tensors at the kernel's entry. **Leaves
//! out** raw pointers (`address_of`, calls of foreign functions) and declared views of other memory: they are a program's own
//! business.

mod index_range;
mod range;

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::{Analyzer, Assumption};
use relaxide_ir::prim::{self, BinaryOp, BufferLoad, Let, PrimExpr, PrimMutator, PrimVisitor, free_vars};
use relaxide_ir::{Buffer, Var};

use crate::PrimFunc;
use crate::analysis::wide::in_64_bits;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

/// A kernel none of whose accesses leaves its buffer, given the checks in front of it.
pub struct Held {
    /// The kernel.
    pub func: PrimFunc,
    /// What is held against extents before anything else happens.
    pub entry: Vec<Stmt>,
}

/// Proves or checks every access of a kernel in block form.
pub fn hold(func: &PrimFunc) -> Held {
    let mut hold = Hold::of(func);
    let body = hold.mutate_stmt(&func.body);
    Held { func: func.with_body(body), entry: hold.entry }
}

/// A loop around the place where the walk is.
struct Counter {
    var: Ref<Var>,
    min: PrimExpr,
    extent: PrimExpr,
}

/// What a condition around says of a value that is data: `low <= high`, or `low < high` where it is strict.
struct Fact {
    low: PrimExpr,
    high: PrimExpr,
    strict: bool,
}

struct Hold {
    analyzer: Analyzer,
    /// Variables that have a value when the kernel begins: dimensions and scalars.
    known: HashSet<Ref<Var>>,
    /// Variables whose value depends on memory.
    data: HashSet<Ref<Var>>,
    /// What variables stand for.
    values: HashMap<Ref<Var>, PrimExpr>,
    facts: Vec<Fact>,
    /// Memory that the kernel writes: what is loaded from it may change between a condition and its use.
    written: HashSet<Ref<Var>>,
    counters: Vec<Counter>,
    /// How many conditions stand around.
    conditions: usize,
    entry: Vec<Stmt>,
}

/// A number, and the numbers that it is the least of.
fn least(e: &PrimExpr) -> Vec<&PrimExpr> {
    let of = match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::Min => [&n.a, &n.b].into_iter().flat_map(least).collect(),
        _ => Vec::new(),
    };
    [e].into_iter().chain(of).collect()
}

/// What was assumed, to be forgotten.
struct Mark(Assumption, usize);

impl Hold {
    fn of(func: &PrimFunc) -> Hold {
        struct Written(HashSet<Ref<Var>>);
        impl PrimVisitor for Written {}
        impl StmtVisitor for Written {
            fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
                self.0.insert(buffer.data.clone());
            }
        }
        let mut written = Written(HashSet::new());
        written.visit_stmt(&func.body);
        let mut known: HashSet<Ref<Var>> = func.params.iter().cloned().collect();
        let mut analyzer = Analyzer::new();
        let numbers = |b: &Ref<Buffer>| -> Vec<PrimExpr> { b.shape.iter().chain(&b.strides).cloned().collect() };
        for buffer in func.buffers.iter().flatten() {
            known.extend(numbers(buffer).iter().filter_map(|e| e.as_var().cloned()));
            let plain: Vec<PrimExpr> = buffer.shape.iter().filter(|d| d.as_var().is_some()).cloned().collect();
            analyzer.mark_dims(&plain);
        }
        let mut hold = Hold {
            analyzer,
            known,
            data: HashSet::new(),
            values: HashMap::new(),
            facts: Vec::new(),
            written: written.0,
            counters: Vec::new(),
            // What stands behind an early end may never happen.
            conditions: usize::from(func.body.has_early_exit()),
            entry: Vec::new(),
        };
        // No tensor has a negative dimension, whatever expression it is.
        for buffer in func.buffers.iter().flatten() {
            for dim in buffer.shape.iter().filter(|d| d.as_int().is_none() && d.as_var().is_none()) {
                let _for_ever = hold.analyzer.assume(&prim::ge(dim.clone(), prim::int_of(dim.dtype(), 0)));
            }
        }
        hold
    }

    /// Whether a value depends on memory, or on what a function returns.
    fn is_data(&self, e: &PrimExpr) -> bool {
        prim::is_data(e) || !self.data.is_empty() && free_vars(e).iter().any(|v| self.data.contains(v))
    }

    fn reads_what_changes(&self, e: &PrimExpr) -> bool {
        crate::schedule::affine::loads(e).iter().any(|l| self.written.contains(&l.buffer.data))
    }

    /// Takes a condition to hold.
    fn assume(&mut self, condition: &PrimExpr) -> Mark {
        // The analyzer forgets everything behind a mark, so a condition that says nothing marks the place.
        let mark = Mark(self.analyzer.assume(&prim::boolean(true)), self.facts.len());
        self.learn(condition, true);
        self.conditions += 1;
        mark
    }

    fn forget(&mut self, mark: Mark) {
        self.conditions -= 1;
        self.facts.truncate(mark.1);
        self.analyzer.forget(mark.0);
    }

    /// What is not its least value is larger, and what is not its greatest is less.
    fn learn_strict(&mut self, condition: &PrimExpr, holds: bool) {
        let PrimExpr::Binary(n) = condition else { return };
        let differ = matches!((n.op, holds), (BinaryOp::Eq, false) | (BinaryOp::Ne, true));
        if !differ || !n.a.dtype().is_int() || n.a.dtype().lanes != 1 {
            return;
        }
        for (or_equal, strict) in [(BinaryOp::Ge, BinaryOp::Gt), (BinaryOp::Le, BinaryOp::Lt)] {
            if self.analyzer.can_prove(&prim::binary(or_equal, n.a.clone(), n.b.clone())) {
                let _until_forgotten = self.analyzer.assume(&prim::binary(strict, n.a.clone(), n.b.clone()));
            }
        }
    }

    fn learn(&mut self, condition: &PrimExpr, holds: bool) {
        match condition {
            PrimExpr::Not(n) => self.learn(&n.a, !holds),
            PrimExpr::Call(n) if n.op == "tirx.likely" => n.args.iter().for_each(|c| self.learn(c, holds)),
            PrimExpr::Binary(n) if n.op == BinaryOp::And && holds || n.op == BinaryOp::Or && !holds => {
                self.learn(&n.a, holds);
                self.learn(&n.b, holds);
            }
            PrimExpr::Binary(n) if self.is_data(condition) => {
                let (low, high, strict) = match (n.op, holds) {
                    (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => (&n.a, &n.b, true),
                    (BinaryOp::Le, true) | (BinaryOp::Gt, false) => (&n.a, &n.b, false),
                    (BinaryOp::Gt, true) | (BinaryOp::Le, false) => (&n.b, &n.a, true),
                    (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => (&n.b, &n.a, false),
                    (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => {
                        self.facts.push(Fact { low: n.b.clone(), high: n.a.clone(), strict: false });
                        (&n.a, &n.b, false)
                    }
                    _ => return,
                };
                self.facts.push(Fact { low: low.clone(), high: high.clone(), strict });
            }
            _ if self.is_data(condition) => {}
            _ => {
                self.learn_strict(condition, holds);
                let condition = if holds { condition.clone() } else { prim::not(condition.clone()) };
                let _until_forgotten = self.analyzer.assume(&condition);
            }
        }
    }

    /// Gives a variable its value.
    fn define(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        if self.is_data(value) {
            self.data.insert(var.clone());
            if self.reads_what_changes(value) && !range::is_bounded_by_form(value) {
                return;
            }
        } else {
            self.analyzer.bind_value(var, value);
        }
        self.values.insert(var.clone(), value.clone());
    }

    /// The indices of an access, each proved or checked.
    fn inside(&mut self, buffer: &Ref<Buffer>, indices: Vec<PrimExpr>, predicate: Option<&PrimExpr>) -> Vec<PrimExpr> {
        let flat = indices.len() != buffer.ndim();
        let check = |(dimension, index): (usize, PrimExpr)| {
            let (extent, place) = match buffer.shape.get(dimension).filter(|_| !flat) {
                Some(extent) => (extent.clone(), format!("along dimension {dimension}")),
                None if buffer.strides.is_empty() => (buffer.num_elements(), "as a whole".to_string()),
                None => return index,
            };
            if self.is_inside(&index, &extent) {
                return index;
            }
            let what = format!("buffer `{}` {place}", buffer.name);
            let is_checked = predicate.is_none()
                && (self.check_at_entry(&index, &extent, &what) || self.check_length_at_entry(&index, &extent, &what));
            if is_checked {
                return index;
            }
            checked(index, &extent, what, predicate)
        };
        indices.into_iter().enumerate().map(check).collect()
    }

    /// Whether an index is known to lie in `0 .. extent`.
    fn is_inside(&mut self, index: &PrimExpr, extent: &PrimExpr) -> bool {
        if let (Some(index), Some(extent)) = (index.as_int(), extent.as_int()) {
            return (0..extent).contains(&index);
        }
        if let Some(var) = index.as_var()
            && let Some(counter) = self.counters.iter().find(|c| c.var == *var)
            && counter.min.is_int(0)
            && crate::schedule::affine::same(&counter.extent, extent)
        {
            return true;
        }
        let (index, extent) = match index.dtype() == extent.dtype() {
            true => (index.clone(), extent.clone()),
            false => (in_64_bits(index), in_64_bits(extent)),
        };
        match &index {
            PrimExpr::Broadcast(n) => self.is_inside(&n.value, &extent),
            PrimExpr::Ramp(n) if n.lanes > 0 => {
                let last = &n.base + &n.stride * (n.lanes - 1);
                self.is_inside(&n.base, &extent) && self.is_inside(&last, &extent)
            }
            _ if index.dtype().lanes != 1 => false,
            _ => self.is_at_least_zero(&index) && self.is_below(&index, &extent),
        }
    }

    fn remake_access(&mut self, n: &BufferLoad) -> (Vec<PrimExpr>, Option<PrimExpr>) {
        let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
        let indices = self.mutate_prims(&n.indices);
        (self.inside(&n.buffer, indices, predicate.as_ref()), predicate)
    }

    fn counted(&mut self, n: &Ref<For>) -> Stmt {
        let (min, extent) = (self.mutate_prim(&n.min), self.mutate_prim(&n.extent));
        let mark = Mark(self.analyzer.assume(&prim::boolean(true)), self.facts.len());
        let depends = self.is_data(&min) || self.is_data(&extent);
        if depends {
            self.data.insert(n.var.clone());
            self.facts.push(Fact { low: min.clone(), high: PrimExpr::from(&n.var), strict: false });
            let ends = least(&extent).into_iter().map(|extent| &min + extent);
            let below = |end| Fact { low: PrimExpr::from(&n.var), high: end, strict: true };
            self.facts.extend(ends.map(below));
            self.conditions += 1;
        } else {
            let _until_forgotten = self.analyzer.assume(&prim::ge(extent.clone(), prim::int_of(extent.dtype(), 1)));
            self.analyzer.bind(&n.var, &min, &extent);
        }
        self.counters.push(Counter { var: n.var.clone(), min: min.clone(), extent: extent.clone() });
        let body = self.mutate_stmt(&n.body);
        self.counters.pop();
        self.conditions -= usize::from(depends);
        self.facts.truncate(mark.1);
        self.analyzer.forget(mark.0);
        if min == n.min && extent == n.extent && body == n.body {
            return Stmt::For(n.clone());
        }
        Ref::new(For { min, extent, body, ..For::clone(n) }).into()
    }

    fn block(&mut self, n: &Ref<SBlockRealize>) -> Stmt {
        let iter_values = self.mutate_prims(&n.iter_values);
        for (iter, value) in n.block.iter_vars.iter().zip(&iter_values) {
            self.define(&iter.var, value);
        }
        let predicate = self.mutate_prim(&n.predicate);
        let mark = (predicate.as_int() != Some(1)).then(|| self.assume(&predicate));
        let views: Vec<Stmt> = n.block.match_buffers.iter().flat_map(|m| self.view_checks(m)).collect();
        let init = n.block.init.as_ref().map(|s| self.mutate_stmt(s));
        let body = self.mutate_stmt(&n.block.body);
        if let Some(mark) = mark {
            self.forget(mark);
        }
        let body = if views.is_empty() { body } else { Stmt::seq(views.into_iter().chain([body])) };
        let block = if body == n.block.body && init == n.block.init {
            n.block.clone()
        } else {
            Ref::new(SBlock { init, body, ..(*n.block).clone() })
        };
        if block == n.block && predicate == n.predicate && iter_values == n.iter_values {
            return Stmt::Block(n.clone());
        }
        Ref::new(SBlockRealize { iter_values, predicate, block }).into()
    }

    /// The checks of a sub-buffer's region, which must lie in its source.
    fn view_checks(&mut self, m: &MatchBufferRegion) -> Vec<Stmt> {
        let source = m.source.buffer.clone();
        let mut checks = Vec::new();
        for (dimension, (range, extent)) in m.source.region.iter().zip(&source.shape).enumerate() {
            let last = &range.min + &range.extent - prim::int_of(range.min.dtype(), 1);
            for index in [range.min.clone(), last] {
                if !self.is_inside(&index, extent) {
                    let what = format!("buffer `{}` along dimension {dimension}", source.name);
                    checks.push(Stmt::evaluate(checked(index, extent, what, None)));
                }
            }
        }
        checks
    }
}

/// An index that is compared with its extent where it is evaluated.
fn checked(index: PrimExpr, extent: &PrimExpr, what: String, predicate: Option<&PrimExpr>) -> PrimExpr {
    let index = in_64_bits(&index);
    let lanes = index.dtype().lanes;
    let shown = from_end(&index).unwrap_or(&index).clone();
    let mut args = vec![index, in_64_bits(extent), prim::string(what), shown];
    args.extend(predicate.filter(|p| p.dtype().lanes == lanes).cloned());
    prim::call(DataType::int(64).with_lanes(lanes), "tirx.checked_index", args)
}

/// `x` of `select(x < 0, n + x, x)`: what the program gave, which is what an error shows.
fn from_end(index: &PrimExpr) -> Option<&PrimExpr> {
    let PrimExpr::Select(n) = index else { return None };
    let PrimExpr::Binary(below) = &n.condition else { return None };
    let is_wrap =
        below.op == BinaryOp::Lt && below.b.is_int(0) && crate::schedule::affine::same(&below.a, &n.false_value);
    is_wrap.then_some(&n.false_value)
}

impl PrimMutator for Hold {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) => {
                let (indices, predicate) = self.remake_access(n);
                if indices == n.indices && predicate == n.predicate {
                    return e.clone();
                }
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
            }
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                self.define(&n.var, &value);
                let body = self.mutate_prim(&n.body);
                if value == n.value && body == n.body {
                    return e.clone();
                }
                Ref::new(Let { var: n.var.clone(), value, body }).into()
            }
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.if_then_else", [condition, yes, no]) => {
                    // Nothing is stored within an expression, so what a condition loads stays what it is.
                    let new = self.mutate_prim(condition);
                    let mark = self.assume(&new);
                    let new_yes = self.mutate_prim(yes);
                    self.forget(mark);
                    let mark = self.assume(&prim::not(new.clone()));
                    let new_no = self.mutate_prim(no);
                    self.forget(mark);
                    if new == *condition && new_yes == *yes && new_no == *no {
                        return e.clone();
                    }
                    prim::call(n.dtype, n.op.clone(), vec![new, new_yes, new_no])
                }
                // An address is no access, and what is checked is checked.
                ("tirx.address_of" | "tirx.prefetch" | "tirx.prefetch_write" | "tirx.checked_index", _) => e.clone(),
                _ => self.remake_prim(e),
            },
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Hold {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Store(n) => {
                let value = self.mutate_prim(&n.value);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                let indices = self.mutate_prims(&n.indices);
                let indices = self.inside(&n.buffer, indices, predicate.as_ref());
                if value == n.value && predicate == n.predicate && indices == n.indices {
                    return stmt.clone();
                }
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            Stmt::For(n) => self.counted(n),
            Stmt::Bind(n) => {
                let value = self.mutate_prim(&n.value);
                self.define(&n.var, &value);
                if value == n.value { stmt.clone() } else { Stmt::bind(n.var.clone(), value) }
            }
            Stmt::If(n) => {
                let condition = self.mutate_prim(&n.condition);
                let lasting = if self.reads_what_changes(&condition) { prim::boolean(true) } else { condition.clone() };
                let mark = self.assume(&lasting);
                let then_case = self.mutate_stmt(&n.then_case);
                self.forget(mark);
                let other = if self.reads_what_changes(&condition) { lasting } else { prim::not(lasting) };
                let mark = self.assume(&other);
                let else_case = n.else_case.as_ref().map(|s| self.mutate_stmt(s));
                self.forget(mark);
                if condition == n.condition && then_case == n.then_case && else_case == n.else_case {
                    return stmt.clone();
                }
                match else_case {
                    Some(other) => Stmt::if_else(condition, then_case, other),
                    None => Stmt::when(condition, then_case),
                }
            }
            Stmt::While(n) => {
                let condition = self.mutate_prim(&n.condition);
                let mark = self.assume(&prim::boolean(true));
                let body = self.mutate_stmt(&n.body);
                self.forget(mark);
                if condition == n.condition && body == n.body {
                    return stmt.clone();
                }
                Ref::new(While { condition, body }).into()
            }
            Stmt::Block(n) => self.block(n),
            _ => self.remake_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests;
