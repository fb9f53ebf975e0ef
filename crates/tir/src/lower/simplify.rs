//! Simpler indices, bounds and conditions.
//!
//! The arithmetic analyzer walks along: it knows the ranges of the loops around, the conditions that were passed, and that
//! dimensions are not negative. Conditions that are decided go with their branch; loops of one iteration become their body;
//! what stands behind an early exit goes.
//!
//! ```text
//! for i in range(n):                        for i in range(n):
//!     for j in range(4):                        for j in range(4):
//!         if i * 4 + j < n * 4:        ->           A[i * 4 + j] = B[i]
//!             A[i * 4 + j] = B[(i * 4 + j) // 4]
//! ```
//!
//! A choice that evaluates both sides (`Select`) guards neither: what reads memory on a side is simplified as if the choice
//! were not there, or an index that is right under the condition alone would be evaluated without it.
//!
//! The analyzer's form is expanded, which is not always cheaper than what stood there; an expression is replaced only where
//! the new one costs less. The pass by itself takes the expanded form also where it costs the same, so that equal expressions
//! look equal behind it, and writes what a name stands for in its places; the one that lowering runs leaves both.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::arith::{Analyzer, same, solver};
use relaxide_ir::pass::{PassContext, PassInfo};
use relaxide_ir::prim::{self, PrimCall, PrimExpr, PrimMutator, PrimVisitor, Select, VarMap, count_parts, substitute};
use relaxide_ir::{BinaryOp, Var};

use super::and_of_ors::and_of_ors;
use super::pure::is_pure;
use super::{LowerError, kernel_pass, kernel_pass_with};
use crate::PrimFunc;
use crate::early_exit::EarlyExits;
use crate::functor::{StmtMutator, substitute_stmt};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "tirx.transform.StmtSimplify",
    "Simplifies indices, bounds and conditions; drops guards that always hold.",
    |func, context, _| Ok(simplify_more(func, Conditions { expanded: true, ..Conditions::of(context) }))
);

/// The same where kernels are lowered.
pub(super) const LOWERING: PassInfo = kernel_pass_with!(
    "tirx.transform.StmtSimplify",
    "Simplifies indices, bounds and conditions; drops guards that always hold.",
    |func, context, _| Ok(simplify_more(func, Conditions::of(context)))
);

/// The same for kernels in block form.
pub(super) const SCHEDULABLE: PassInfo = kernel_pass!(
    "s_tir.transform.StmtSimplify",
    "Simplifies indices, bounds and conditions of kernels in block form.",
    simplify
);

/// A kernel with simpler indices and conditions.
pub(super) fn simplify(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(simplify_more(func, Conditions::default()))
}

/// The same, with what names stand for in their places.
pub(super) fn simplify_written_out(func: &PrimFunc) -> PrimFunc {
    simplify_more(func, Conditions { written_out: true, expanded: true, ..Conditions::default() })
}

/// What more is done about conditions.
#[derive(Clone, Copy, Default)]
struct Conditions {
    /// Whether each side of `and` and `or` is simplified under the other one.
    under_each_other: bool,
    /// Whether conditions are proved by cases, too.
    by_cases: bool,
    /// Whether they become an `and` of `or`s.
    and_of_ors: bool,
    /// Whether a condition stands where its name is used.
    written_out: bool,
    /// Whether expressions take the analyzer's form also where it costs the same, and values stand where their names are used.
    expanded: bool,
}

impl Conditions {
    /// What the options of a context ask for.
    fn of(context: &PassContext) -> Conditions {
        let entry = |name| context.config.entry("tirx.StmtSimplify", name) != 0;
        Conditions {
            under_each_other: entry("apply_constraints_to_boolean_branches"),
            by_cases: entry("transitively_prove_inequalities"),
            and_of_ors: entry("convert_boolean_to_and_of_ors"),
            written_out: true,
            expanded: false,
        }
    }
}

fn simplify_more(func: &PrimFunc, conditions: Conditions) -> PrimFunc {
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    let body = Simplify { analyzer, facts: Vec::new(), named: VarMap::default(), conditions }.mutate_stmt(&func.body);
    func.with_body(body.or_evaluated())
}

struct Simplify {
    analyzer: Analyzer,
    /// Conditions that were passed, as they stood: the analyzer knows ranges, and not every condition is one.
    facts: Vec<PrimExpr>,
    /// What is written out where its name is used.
    named: VarMap,
    conditions: Conditions,
}

impl Simplify {
    fn under<T>(&mut self, condition: &PrimExpr, f: impl FnOnce(&mut Self) -> T) -> T {
        let condition = without_hint(condition);
        let (mark, known) = (self.analyzer.assume(condition), self.facts.len());
        facts_of(condition, &mut self.facts);
        let result = f(self);
        self.facts.truncate(known);
        self.analyzer.forget(mark);
        result
    }

    fn is_known(&self, condition: &PrimExpr) -> bool {
        let alike = |fact: &PrimExpr| match (fact, condition) {
            (PrimExpr::Binary(a), PrimExpr::Binary(b)) => a.op == b.op,
            (PrimExpr::Binary(_), _) | (_, PrimExpr::Binary(_)) => false,
            _ => true,
        };
        self.facts.iter().any(|fact| alike(fact) && same(fact, condition))
    }

    /// A condition with what was passed already in it decided.
    fn decided(&self, e: &PrimExpr) -> PrimExpr {
        if self.is_known(e) {
            return prim::boolean(true);
        }
        if negated(e).is_some_and(|opposite| self.is_known(&opposite)) {
            return prim::boolean(false);
        }
        match e {
            PrimExpr::Binary(n) if n.op == BinaryOp::And => prim::and(self.decided(&n.a), self.decided(&n.b)),
            PrimExpr::Binary(n) if n.op == BinaryOp::Or => prim::or(self.decided(&n.a), self.decided(&n.b)),
            PrimExpr::Not(n) => prim::not(self.decided(&n.a)),
            PrimExpr::Call(n) if n.op == LIKELY => match n.args.as_slice() {
                [hinted] => Some(self.decided(hinted)).filter(|v| v.as_int().is_some()).unwrap_or_else(|| e.clone()),
                _ => e.clone(),
            },
            _ => e.clone(),
        }
    }

    /// A condition whose sides are simplified under each other, and which is proved by cases, as far as options say so.
    fn condition(&mut self, e: &PrimExpr) -> PrimExpr {
        if let (PrimExpr::Binary(n), true) = (e, self.conditions.under_each_other)
            && matches!(n.op, BinaryOp::And | BinaryOp::Or)
        {
            let other = |side: &PrimExpr| match n.op {
                BinaryOp::And => side.clone(),
                _ => negated(side).unwrap_or_else(|| prim::not(side.clone())),
            };
            let a = self.under(&other(&n.b), |this| this.mutate_prim(&n.a));
            let b = self.under(&other(&a), |this| this.mutate_prim(&n.b));
            return if n.op == BinaryOp::And { prim::and(a, b) } else { prim::or(a, b) };
        }
        let is_open = |e: &PrimExpr| matches!(e, PrimExpr::Binary(n) if n.op.is_comparison() && n.a.dtype().is_int());
        if self.conditions.by_cases && is_open(e) {
            if solver::follows(&self.facts, e) {
                return prim::boolean(true);
            }
            if solver::follows(&self.facts, &prim::not(e.clone())) {
                return prim::boolean(false);
            }
        }
        e.clone()
    }

    /// Both sides of a choice, each under what it may take for granted.
    fn sides(&mut self, condition: &PrimExpr, yes: &PrimExpr, no: &PrimExpr) -> (PrimExpr, PrimExpr) {
        if condition.dtype().lanes != 1 {
            return (self.mutate_prim(yes), self.mutate_prim(no));
        }
        let yes = self.under(condition, |this| this.mutate_prim(yes));
        let no = self.under(&prim::not(condition.clone()), |this| this.mutate_prim(no));
        (yes, no)
    }

    fn lazy_choice(&mut self, e: &PrimExpr, n: &PrimCall) -> PrimExpr {
        let [condition, yes, no] = n.args.as_slice() else { return self.remake_prim(e) };
        let simple = self.mutate_prim(condition);
        let (new_yes, new_no) = self.sides(&simple, yes, no);
        if simple == *condition && new_yes == *yes && new_no == *no {
            return e.clone();
        }
        prim::if_then_else(simple, new_yes, new_no)
    }

    /// Both sides are evaluated whatever the condition is: only arithmetic may take it for granted.
    fn choice(&mut self, e: &PrimExpr, n: &Select) -> PrimExpr {
        let condition = self.mutate_prim(&n.condition);
        let (yes, no) = if prim::is_data(&n.true_value) || prim::is_data(&n.false_value) {
            (self.mutate_prim(&n.true_value), self.mutate_prim(&n.false_value))
        } else {
            self.sides(&condition, &n.true_value, &n.false_value)
        };
        if condition == n.condition && yes == n.true_value && no == n.false_value {
            return e.clone();
        }
        prim::select(condition, yes, no)
    }

    fn simplify_loop(&mut self, stmt: &Stmt, n: &Ref<For>) -> Stmt {
        let (min, extent) = (self.mutate_prim(&n.min), self.mutate_prim(&n.extent));
        match extent.as_int() {
            Some(count) if count <= 0 => return Stmt::nop(),
            // What leaves the loop would leave another if its body stood alone.
            Some(1) if n.kind != ForKind::ThreadBinding && !EarlyExits::of(&n.body).of_loop => {
                let body = substitute_stmt(&n.body, &VarMap::from([(n.var.clone(), min)]));
                return self.mutate_stmt(&body);
            }
            _ => {}
        }
        // The body runs only if there is an iteration at all.
        let mark = self.analyzer.assume(&prim::ge(extent.clone(), 1));
        self.analyzer.bind(&n.var, &min, &extent);
        let body = self.mutate_stmt(&n.body);
        self.analyzer.forget(mark);
        if min == n.min && extent == n.extent && body == n.body {
            return stmt.clone();
        }
        Ref::new(For { min, extent, body, ..For::clone(n) }).into()
    }

    fn bind(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        let is_condition = self.conditions.written_out && value.dtype() == DataType::bool() && is_lasting(value);
        match value {
            PrimExpr::Int(_) | PrimExpr::Var(_) => self.analyzer.bind_value(var, value),
            _ if is_condition
                || self.conditions.expanded && is_pure(value) && count_parts(value) <= MOST_WRITTEN_OUT =>
            {
                self.named.insert(var.clone(), value.clone());
                if value.dtype().is_int() {
                    self.analyzer.bind(var, value, prim::int_of(value.dtype(), 1));
                }
            }
            // The name stays, since it is cheaper than its value; what follows from the value is known of it.
            _ => self.analyzer.bind(var, value, prim::int_of(value.dtype(), 1)),
        }
    }
}

impl PrimMutator for Simplify {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let dtype = e.dtype();
        let is_written_out = !self.named.is_empty() && (dtype.is_bool() || self.conditions.expanded);
        let written_out = if is_written_out { substitute(e, &self.named) } else { e.clone() };
        let e = &written_out;
        if dtype.lanes == 1 && (dtype.is_bool() || dtype.is_int() && dtype.bits >= 32) {
            let known = if dtype.is_bool() && !self.facts.is_empty() { self.decided(e) } else { e.clone() };
            let known = if dtype.is_bool() { self.condition(&known) } else { known };
            if self.conditions.and_of_ors
                && dtype.is_bool()
                && let Some(parted) = and_of_ors(&known)
            {
                return parted;
            }
            let simple = self.analyzer.simplify(&known);
            let (before, after) = (cost(&known), cost(&simple));
            let is_taken =
                after < before || self.conditions.expanded && after == before && !is_commuted(&simple, &known);
            return if is_taken { simple } else { known };
        }
        match e {
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => self.lazy_choice(e, n),
            PrimExpr::Select(n) => self.choice(e, n),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Simplify {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => self.simplify_loop(stmt, n),
            Stmt::Seq(n) if n.seq.iter().any(Stmt::never_ends) => {
                let seq = Stmt::reached(n.seq.clone());
                Stmt::seq(seq.iter().map(|s| self.mutate_stmt(s)))
            }
            Stmt::If(n) => {
                let condition = self.mutate_prim(&n.condition);
                match condition.as_int() {
                    Some(0) => return n.else_case.as_ref().map_or_else(Stmt::nop, |s| self.mutate_stmt(s)),
                    Some(_) => return self.mutate_stmt(&n.then_case),
                    None => {}
                }
                let then_case = self.under(&condition, |this| this.mutate_stmt(&n.then_case));
                let Some(other) = &n.else_case else { return Stmt::when(condition, then_case) };
                let other = self.under(&prim::not(condition.clone()), |this| this.mutate_stmt(other));
                Stmt::if_else(condition, then_case, other)
            }
            Stmt::Store(n) if writes_what_is_there(n, same) => Stmt::nop(),
            Stmt::Bind(n) => {
                let value = self.mutate_prim(&n.value);
                self.bind(&n.var, &value);
                if value == n.value { stmt.clone() } else { Stmt::bind(n.var.clone(), value) }
            }
            Stmt::Block(n) => {
                let (values, predicate) = (self.mutate_prims(&n.iter_values), self.mutate_prim(&n.predicate));
                // Inside, an axis is known by its range; which values it is given is the business of the loops around.
                let mark = self.analyzer.assume(&predicate);
                for iter in &n.block.iter_vars {
                    self.analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
                }
                let block = self.remake_block(&n.block);
                self.analyzer.forget(mark);
                if values == n.iter_values && predicate == n.predicate && block == n.block {
                    return stmt.clone();
                }
                Ref::new(SBlockRealize { iter_values: values, predicate, block }).into()
            }
            _ => self.remake_stmt(stmt),
        }
    }
}

/// Whether a store writes the element that it reads, where two indices are said to be equal or not.
pub(super) fn writes_what_is_there(n: &BufferStore, mut same: impl FnMut(&PrimExpr, &PrimExpr) -> bool) -> bool {
    let PrimExpr::Load(load) = &n.value else { return false };
    let same_place = load.indices.iter().zip(&n.indices).all(|(a, b)| same(a, b));
    load.buffer == n.buffer && load.predicate.is_none() && same_place && load.indices.iter().all(is_lasting)
}

/// What follows from a condition, each as it stands. What reads memory or calls is no lasting fact.
fn facts_of(condition: &PrimExpr, facts: &mut Vec<PrimExpr>) {
    match condition {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => {
            facts_of(&n.a, facts);
            facts_of(&n.b, facts);
        }
        PrimExpr::Not(n) => match (&n.a, negated(&n.a)) {
            (PrimExpr::Binary(either), _) if either.op == BinaryOp::Or => {
                facts_of(&prim::not(either.a.clone()), facts);
                facts_of(&prim::not(either.b.clone()), facts);
            }
            (_, Some(opposite)) => facts_of(&opposite, facts),
            (_, None) if is_lasting(condition) => facts.push(condition.clone()),
            _ => {}
        },
        _ if condition.as_int().is_none() && is_lasting(condition) => facts.push(condition.clone()),
        _ => {}
    }
}

/// The condition that holds where another does not. Of numbers that are no number neither order holds.
fn negated(condition: &PrimExpr) -> Option<PrimExpr> {
    match condition {
        PrimExpr::Not(n) => Some(n.a.clone()),
        PrimExpr::Binary(n) => {
            let is_ordered = !n.a.dtype().is_float();
            match n.op {
                BinaryOp::Eq => Some(prim::ne(&n.a, &n.b)),
                BinaryOp::Ne => Some(prim::eq(&n.a, &n.b)),
                BinaryOp::Lt if is_ordered => Some(prim::le(&n.b, &n.a)),
                BinaryOp::Le if is_ordered => Some(prim::lt(&n.b, &n.a)),
                BinaryOp::Gt if is_ordered => Some(prim::le(&n.a, &n.b)),
                BinaryOp::Ge if is_ordered => Some(prim::lt(&n.a, &n.b)),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The call that says which way a condition mostly goes.
const LIKELY: &str = "tirx.likely";

/// A condition without saying which way it mostly goes.
fn without_hint(condition: &PrimExpr) -> &PrimExpr {
    match condition {
        PrimExpr::Call(n) if n.op == LIKELY => n.args.first().map_or(condition, without_hint),
        _ => condition,
    }
}

/// Whether an expression has the same value wherever it stands: it is made of names and literals.
pub(super) fn is_lasting(e: &PrimExpr) -> bool {
    struct Lasts(bool);
    impl PrimVisitor for Lasts {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 &= !matches!(e, PrimExpr::Load(_) | PrimExpr::Call(_) | PrimExpr::Let(_));
            self.walk_prim(e);
        }
    }
    let mut lasts = Lasts(true);
    lasts.visit_prim(e);
    lasts.0
}

/// The largest value that is written where its name is used: a name may stand for others, and these for more.
const MOST_WRITTEN_OUT: usize = 256;

/// Whether two expressions differ by the order of factors alone.
fn is_commuted(a: &PrimExpr, b: &PrimExpr) -> bool {
    let (PrimExpr::Binary(x), PrimExpr::Binary(y)) = (a, b) else { return a == b };
    let straight = x.op == y.op && is_commuted(&x.a, &y.a) && is_commuted(&x.b, &y.b);
    straight || x.op == BinaryOp::Mul && y.op == x.op && is_commuted(&x.a, &y.b) && is_commuted(&x.b, &y.a)
}

/// What an expression costs to evaluate, roughly: divisions are dear, names and literals are free.
fn cost(e: &PrimExpr) -> u64 {
    struct Cost(u64);
    impl PrimVisitor for Cost {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 += match e {
                PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => 0,
                PrimExpr::Binary(n) => match n.op {
                    BinaryOp::Div | BinaryOp::Mod | BinaryOp::FloorDiv | BinaryOp::FloorMod => 12,
                    BinaryOp::Mul => 2,
                    _ => 1,
                },
                PrimExpr::Call(_) => 4,
                _ => 1,
            };
            self.walk_prim(e);
        }
    }
    let mut total = Cost(0);
    total.visit_prim(e);
    total.0
}
