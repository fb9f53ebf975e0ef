//! Forms that keep the shape of what was written: `min(x + 2, y) - x` becomes `min(2, y - x)`.
//!
//! The canonical form expands products and sorts terms; a reader of the result does not find what was written. Here an expression is
//! rewritten from its leaves up by rules, each of which makes it shorter or brings a part of it where other rules expect it: literals
//! behind, sums of vectors as one vector, comparisons as `<`, `<=` and `==`. The forms are those of TVM's `rewrite_simplify`.
//!
//! ```text
//! x * y + x * 10                           ->   (y + 10) * x
//! ramp(x * 8 + 1, 1, 4) // broadcast(8, 4) ->   broadcast(x, 4)
//! x // 10 == 5 && x % 10 < 7               ->   50 <= x && x < 57
//! ```
//!
//! **Model.** Rules are lines of text ([`rules`]), read once. What a rule asks for beyond its pattern is calculated with literals, or
//! proved by the canonical form.
//!
//! **Assumptions** are those of [`arith`](super): what was read from memory and other types than indices are touched by rules only that
//! hold where arithmetic overflows; floats by none.
//!
//! **Cost.** A rule that was applied is followed by others on what is new. Rewriting ends behind a fixed number of rules.

mod matching;
mod rules;
mod term;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use relaxide_ffi::{DataType, Ref};

use super::sum::is_index;
use super::{Analyzer, Quotients, same};
use crate::prim::{self, Binary, BufferLoad, Let, PrimCall, PrimVisitor};
use crate::{BinaryOp, PrimExpr};
use matching::{Bindings, calculate, find};
use term::{Condition, Node, Rule, Term};

/// How many rules may be applied to one expression.
const MAX_STEPS: u32 = 512;

/// What a rule begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Root {
    Binary(BinaryOp),
    Select,
    IfThenElse,
}

#[derive(Debug)]
struct RuleInTable {
    rule: Rule,
    /// Whether it holds where arithmetic overflows.
    wraps: bool,
}

/// All rules by what they begin with.
static TABLE: LazyLock<HashMap<Root, Vec<RuleInTable>>> = LazyLock::new(|| {
    let mut table: HashMap<Root, Vec<RuleInTable>> = HashMap::new();
    for (lines, wraps) in [(rules::INDEX, false), (rules::COMPARISONS, false), (rules::WRAPPING, true)] {
        for rule in lines.iter().flat_map(|line| Rule::parse(line).unwrap_or_else(|error| unreachable!("{}", error.0)))
        {
            let root = match &rule.left {
                Term::Binary(op, _) => Root::Binary(*op),
                Term::Node(Node::Select, _) => Root::Select,
                Term::Node(Node::IfThenElse, _) => Root::IfThenElse,
                other => unreachable!("a rule begins with {other:?}"),
            };
            table.entry(root).or_default().push(RuleInTable { rule, wraps });
        }
    }
    table
});

impl Analyzer {
    /// An expression of the same value in the form that rules make of it, which keeps more of its shape than
    /// [`simplify`](Analyzer::simplify).
    pub fn rewrite(&mut self, e: &PrimExpr) -> PrimExpr {
        self.rewrite_counted(e).0
    }

    /// The canonical form of what [`rewrite`](Analyzer::rewrite) makes of an expression, which kernels of the compute language have in TVM.
    pub fn rewrite_and_simplify(&mut self, e: &PrimExpr) -> PrimExpr {
        let form = self.rewrite(e);
        self.canonical_as_tvm(&form)
    }

    /// The canonical form of what [`rewrite`](Analyzer::rewrite) makes of an expression, or that itself where the canonical form is longer or
    /// has the same parts in another order: sums keep the order that they were written in, and products of sums stay.
    pub fn simplify_as_tvm(&mut self, e: &PrimExpr) -> PrimExpr {
        let form = self.rewrite(e);
        let canonical = self.canonical_as_tvm(&form);
        let (long, short) = (prim::count_parts(&canonical), prim::count_parts(&form));
        if long > short || long == short && pieces(&canonical) == pieces(&form) { form } else { canonical }
    }

    /// As [`simplify`](Analyzer::simplify), with quotients where TVM has them.
    pub fn canonical_as_tvm(&mut self, e: &PrimExpr) -> PrimExpr {
        // What was found under the other forms does not hold here.
        let answers = std::mem::take(&mut self.answers);
        self.quotients = Quotients::Outside;
        let value = self.convert(e);
        let simple = self.emit(&value);
        self.quotients = Quotients::Inside;
        self.answers = answers;
        if same(e, &simple) { e.clone() } else { simple }
    }

    /// The same as [`rewrite`](Analyzer::rewrite), and how much work it was.
    pub fn rewrite_counted(&mut self, e: &PrimExpr) -> (PrimExpr, RewriteCounts) {
        let mut rewriter = Rewriter { analyzer: self, steps: MAX_STEPS, counts: RewriteCounts::default() };
        (rewriter.any(e), rewriter.counts)
    }
}

/// What an expression is made of, whatever the order.
fn pieces(e: &PrimExpr) -> Vec<String> {
    struct Pieces(Vec<String>);
    impl PrimVisitor for Pieces {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Binary(n) => self.0.push(format!("{:?}", n.op)),
                PrimExpr::Call(n) => self.0.push(n.op.clone()),
                PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_) => self.0.push(e.to_string()),
                _ => {}
            }
            self.walk_prim(e);
        }
    }
    let mut pieces = Pieces(Vec::new());
    pieces.visit_prim(e);
    pieces.0.sort();
    pieces.0
}

/// How much work [`Analyzer::rewrite_counted`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewriteCounts {
    /// Nodes of the expression.
    pub nodes: u64,
    /// Rules that were tried.
    pub tried: u64,
    /// Rules that were applied.
    pub applied: u64,
    /// Conditions that were taken to hold.
    pub assumed: u64,
}

struct Rewriter<'a> {
    analyzer: &'a mut Analyzer,
    steps: u32,
    counts: RewriteCounts,
}

impl Rewriter<'_> {
    fn any(&mut self, e: &PrimExpr) -> PrimExpr {
        self.counts.nodes += 1;
        match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => e.clone(),
            PrimExpr::Var(var) => match self.analyzer.values.contains_key(var) || self.analyzer.is_settled(var) {
                true => self.analyzer.simplify(e),
                false => e.clone(),
            },
            PrimExpr::Cast(n) => {
                let value = self.any(&n.value);
                converted(n.dtype, &value).unwrap_or_else(|| prim::cast(n.dtype, value))
            }
            PrimExpr::Binary(n) => self.operands(n),
            PrimExpr::Not(n) => {
                let a = self.any(&n.a);
                self.negated(&a)
            }
            PrimExpr::Select(n) => self.choice(Root::Select, [&n.condition, &n.true_value, &n.false_value]),
            PrimExpr::Let(n) => {
                let (value, body) = (self.any(&n.value), self.any(&n.body));
                Ref::new(Let { var: n.var.clone(), value, body }).into()
            }
            PrimExpr::Ramp(n) => prim::ramp(self.any(&n.base), self.any(&n.stride), n.lanes),
            PrimExpr::Broadcast(n) => prim::broadcast(self.any(&n.value), n.lanes),
            PrimExpr::Load(n) => {
                let indices = n.indices.iter().map(|i| self.any(i)).collect();
                let predicate = n.predicate.as_ref().map(|p| self.any(p));
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
            }
            PrimExpr::Call(n) => {
                if let ("tirx.if_then_else", [c, t, f]) = (n.op.as_str(), n.args.as_slice()) {
                    return self.choice(Root::IfThenElse, [c, t, f]);
                }
                let args: Vec<_> = n.args.iter().map(|a| self.any(a)).collect();
                called(n, &args).unwrap_or_else(|| prim::call(n.dtype, n.op.clone(), args))
            }
        }
    }

    fn operands(&mut self, n: &Binary) -> PrimExpr {
        let a = self.any(&n.a);
        if n.op.is_logical() && a.dtype().lanes == 1 {
            let b = self.any(&n.b);
            // What one side says settles the other, but does not change its form.
            for (known, asked) in [(&a, &b), (&b, &a)] {
                match self.settled_by(known, n.op == BinaryOp::And, asked) {
                    Some(truth) if truth == (n.op == BinaryOp::And) => return known.clone(),
                    Some(truth) => return prim::boolean(truth),
                    None => {}
                }
            }
            return self.binary(n.op, a, b);
        }
        let b = self.any(&n.b);
        self.binary(n.op, a, b)
    }

    /// The truth of a condition where another holds, or fails.
    fn settled_by(&mut self, known: &PrimExpr, holds: bool, asked: &PrimExpr) -> Option<bool> {
        if self.is_data(known) || self.is_data(asked) {
            return None;
        }
        let known = if holds { known.clone() } else { prim::not(known.clone()) };
        self.analyzer.assuming(&known, |analyzer| {
            if analyzer.can_prove(asked) {
                return Some(true);
            }
            analyzer.can_prove(&prim::not(asked.clone())).then_some(false)
        })
    }

    fn choice(&mut self, root: Root, [condition, yes, no]: [&PrimExpr; 3]) -> PrimExpr {
        let condition = self.any(condition);
        if self.analyzer.can_prove(&condition) {
            return self.any(yes);
        }
        if self.analyzer.can_prove(&prim::not(condition.clone())) {
            return self.any(no);
        }
        // Both sides of a `Select` are evaluated whatever the condition is: an access there must not count on it.
        let counts = root == Root::IfThenElse || !(self.is_data(yes) || self.is_data(no));
        let [yes, no] = [(yes, true), (no, false)].map(|(side, holds)| {
            if !counts {
                return self.any(side);
            }
            let known = if holds { condition.clone() } else { prim::not(condition.clone()) };
            self.counts.assumed += 1;
            let mark = self.analyzer.assume(&known);
            let side = self.any(side);
            self.analyzer.forget(mark);
            side
        });
        let e = match root {
            Root::Select => prim::select(condition, yes, no),
            _ => prim::if_then_else(condition, yes, no),
        };
        self.by_rules(root, &e, |_| true).unwrap_or(e)
    }

    /// A binary operation on operands that have their form.
    fn binary(&mut self, op: BinaryOp, a: PrimExpr, b: PrimExpr) -> PrimExpr {
        use BinaryOp::*;
        match op {
            Gt => return self.binary(Lt, b, a),
            Ge => return self.binary(Le, b, a),
            Le if self.steps > 0 => {
                self.steps -= 1;
                let less = self.binary(Lt, b, a);
                return self.negated(&less);
            }
            Ne if self.steps > 0 => {
                self.steps -= 1;
                let equal = self.binary(Eq, a, b);
                return self.negated(&equal);
            }
            _ => {}
        }
        let literal_first = a.as_int().is_some() && b.as_int().is_none() && matches!(op, Add | Mul | Eq);
        let e = if literal_first { prim::binary(op, b, a) } else { prim::binary(op, a, b) };
        let PrimExpr::Binary(n) = &e else { return e };
        let root = Root::Binary(op);
        if matches!(op, Min | Max)
            && let Some(result) = self.by_rules(root, &e, |entry| entry.wraps)
        {
            // What is one of two whatever they are keeps the order of its operands, which a proof would not.
            return result;
        }
        self.decided(n).or_else(|| self.by_rules(root, &e, |_| true)).unwrap_or(e)
    }

    /// What the canonical form knows of a comparison, a minimum or a maximum.
    fn decided(&mut self, n: &Ref<Binary>) -> Option<PrimExpr> {
        if n.a.dtype().lanes != 1 {
            return None;
        }
        let e = PrimExpr::Binary(n.clone());
        match n.op {
            BinaryOp::Lt | BinaryOp::Eq if self.analyzer.can_prove(&e) => Some(prim::boolean(true)),
            BinaryOp::Lt | BinaryOp::Eq => self.analyzer.can_prove(&prim::not(e)).then(|| prim::boolean(false)),
            BinaryOp::Min | BinaryOp::Max if is_index(n.a.dtype()) => {
                let [first, second] = if n.op == BinaryOp::Min { [&n.a, &n.b] } else { [&n.b, &n.a] };
                if self.analyzer.can_prove(&prim::le(first, second)) {
                    Some(n.a.clone())
                } else {
                    self.analyzer.can_prove(&prim::le(second, first)).then(|| n.b.clone())
                }
            }
            _ => None,
        }
    }

    /// The opposite of a condition that has its form.
    fn negated(&mut self, condition: &PrimExpr) -> PrimExpr {
        use BinaryOp::*;
        match condition {
            PrimExpr::Not(n) => n.a.clone(),
            PrimExpr::Broadcast(n) => prim::broadcast(self.negated(&n.value), n.lanes),
            PrimExpr::Binary(n) => match n.op {
                Lt => {
                    let opposite = prim::le(&n.b, &n.a);
                    self.by_rules(Root::Binary(Le), &opposite, |_| true).unwrap_or(opposite)
                }
                Le => prim::lt(&n.b, &n.a),
                Eq => prim::ne(&n.a, &n.b),
                Ne => prim::eq(&n.a, &n.b),
                And | Or => {
                    let (a, b) = (self.negated(&n.a), self.negated(&n.b));
                    self.binary(if n.op == And { Or } else { And }, a, b)
                }
                _ => prim::not(condition.clone()),
            },
            _ => prim::not(condition.clone()),
        }
    }

    /// What the first rule among those asked for that fits makes of an expression.
    fn by_rules(&mut self, root: Root, e: &PrimExpr, asked: fn(&RuleInTable) -> bool) -> Option<PrimExpr> {
        let floats = matches!(e, PrimExpr::Binary(n) if n.a.dtype().is_float());
        for entry in TABLE.get(&root).filter(|_| !floats)?.iter().filter(|entry| asked(entry)) {
            if self.steps == 0 {
                return None;
            }
            self.counts.tried += 1;
            let mut accept = |bindings: &Bindings| self.accepts(entry, bindings);
            let Some(bindings) = find(&entry.rule, e, &mut accept) else { continue };
            self.steps -= 1;
            if let Some(result) = self.build(&entry.rule.right, &bindings, e.dtype(), true) {
                self.counts.applied += 1;
                return Some(result);
            }
        }
        None
    }

    /// Whether a value depends on memory or calls, so that arithmetic on it may overflow.
    fn is_data(&mut self, e: &PrimExpr) -> bool {
        let value = self.analyzer.convert(e);
        self.analyzer.atoms.value_is_data(&value)
    }

    fn accepts(&mut self, entry: &RuleInTable, bindings: &Bindings) -> bool {
        if !entry.wraps {
            let mut fits = |e: &PrimExpr| {
                let dtype = e.dtype();
                (is_index(dtype.element()) || dtype.is_bool()) && !self.is_data(e)
            };
            if !bindings.iter().flatten().all(&mut fits) {
                return false;
            }
        }
        let (calculated, proved): (Vec<_>, Vec<_>) =
            entry.rule.conditions.iter().partition(|c| matches!(c, Condition::Holds(_)));
        calculated.into_iter().chain(proved).all(|condition| match condition {
            Condition::Holds(term) => calculate(term, bindings).is_some_and(|value| value != 0),
            Condition::Proved(term) => match self.build(term, bindings, DataType::bool(), false) {
                Some(condition) => self.analyzer.can_prove(&condition),
                None => false,
            },
        })
    }

    /// The expression that a term stands for, of a type where the term itself has none; with `rewriting` in its form. `None` where a
    /// number does not fit its type.
    fn build(&mut self, term: &Term, bindings: &Bindings, dtype: DataType, rewriting: bool) -> Option<PrimExpr> {
        Some(match term {
            Term::Any(place) | Term::Literal(place) | Term::Lanes(place) => bindings[*place].clone()?,
            Term::Int(_) | Term::Computed(_) => {
                let value = calculate(term, bindings)?;
                if !prim::holds(dtype.element(), value) {
                    return None;
                }
                prim::int_of(dtype, value)
            }
            Term::Bool(value) => prim::int_of(dtype, i64::from(*value)),
            Term::Not(inner) => {
                let inner = self.build(inner, bindings, dtype, rewriting)?;
                if rewriting { self.negated(&inner) } else { prim::not(inner) }
            }
            Term::Binary(op, operands) => {
                let [a, b] = &**operands;
                let own = if op.is_comparison() { self.type_of(term, bindings)? } else { dtype };
                let a = self.build(a, bindings, own, rewriting)?;
                let b = self.build(b, bindings, own, rewriting)?;
                if rewriting { self.binary(*op, a, b) } else { prim::binary(*op, a, b) }
            }
            Term::Node(node, operands) => {
                let element = dtype.element();
                match (node, operands.as_slice()) {
                    (Node::Ramp, [base, stride, lanes]) => {
                        let base = self.build(base, bindings, element, rewriting)?;
                        let stride = self.build(stride, bindings, base.dtype(), rewriting)?;
                        prim::ramp(base, stride, calculate(lanes, bindings)?)
                    }
                    (Node::Broadcast, [value, lanes]) => {
                        let value = self.build(value, bindings, element, rewriting)?;
                        prim::broadcast(value, calculate(lanes, bindings)?)
                    }
                    (Node::Select | Node::IfThenElse, [condition, yes, no]) => {
                        let condition = self.build(condition, bindings, DataType::bool(), rewriting)?;
                        let yes = self.build(yes, bindings, dtype, rewriting)?;
                        let no = self.build(no, bindings, dtype, rewriting)?;
                        match node {
                            Node::Select => prim::select(condition, yes, no),
                            _ => prim::if_then_else(condition, yes, no),
                        }
                    }
                    _ => return None,
                }
            }
        })
    }

    /// The type of the numbers in a comparison: that of the first name in it which has one.
    fn type_of(&self, term: &Term, bindings: &Bindings) -> Option<DataType> {
        match term {
            Term::Any(place) | Term::Literal(place) => Some(bindings[*place].as_ref()?.dtype()),
            Term::Binary(_, operands) => operands.iter().find_map(|t| self.type_of(t, bindings)),
            Term::Not(inner) | Term::Computed(inner) => self.type_of(inner, bindings),
            Term::Node(_, operands) => operands.first().and_then(|t| self.type_of(t, bindings)),
            Term::Int(_) | Term::Bool(_) | Term::Lanes(_) => None,
        }
    }
}

/// A literal of another type, where that holds its value.
fn converted(dtype: DataType, value: &PrimExpr) -> Option<PrimExpr> {
    let PrimExpr::Float(n) = value else { return None };
    // What all types of floats hold, whatever their precision.
    let small = n.value.fract() == 0.0 && n.value.abs() <= 16.0 && !(n.value == 0.0 && n.value.is_sign_negative());
    if !small {
        return None;
    }
    match dtype.is_float() {
        true => Some(prim::float_of(dtype, n.value)),
        false => prim::holds(dtype, n.value as i64).then(|| prim::int_of(dtype, n.value as i64)),
    }
}

/// The value of a function of literals.
fn called(call: &PrimCall, args: &[PrimExpr]) -> Option<PrimExpr> {
    let (dtype, value) = match args.first()? {
        PrimExpr::Int(n) => (n.dtype, n.value),
        _ => return None,
    };
    let by = || args.get(1).and_then(PrimExpr::as_int).filter(|by| (0..i64::from(dtype.bits)).contains(by));
    let result = match call.op.as_str() {
        "tirx.clz" if value >= 0 => i64::from(value.leading_zeros()) - 64 + i64::from(dtype.bits),
        "tirx.shift_left" => value.checked_mul(1i64.checked_shl(u32::try_from(by()?).ok()?)?)?,
        "tirx.shift_right" if value >= 0 || dtype.is_int() => value >> by()?,
        _ => return None,
    };
    prim::holds(call.dtype, result).then(|| prim::int_of(call.dtype, result))
}
