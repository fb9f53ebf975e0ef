//! Choices that what is taken for granted makes needless go.
//!
//! ```text
//! T.assume(not (i >= 5) or A[i] == 0)                         T.assume(not (i >= 5) or A[i] == 0)
//! B[i] = T.if_then_else(i >= 5, 0, A[i] * 2)        ->        B[i] = A[i] * 2
//! ```
//!
//! A buffer that was laid out with padding says so by such an assumption, and what is computed of it keeps the padding by a choice. Where
//! what is computed is that value anyway, all elements are computed alike, which vectors can do.
//!
//! All that the computation reads must be in the padding where the choice is: then it is memory that is there, and its value is known.
//! Source: TVM's `UseAssumeToReduceBranches`, which also fuses and vectorizes the loops; here schedules do.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::{Analyzer, same};
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap, substitute};
use relaxide_ir::{Buffer, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.UseAssumeToReduceBranches",
    "Choices that what is taken for granted makes needless go.",
    use_assumptions
);

fn use_assumptions(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut known = Known::default();
    known.visit_stmt(&func.body);
    if known.0.is_empty() {
        return Ok(func.clone());
    }
    Ok(func.with_body(Needless { known: known.0 }.mutate_stmt(&func.body)))
}

/// The value of a buffer's elements where a condition on their indices holds.
struct Padding {
    indices: Vec<Ref<Var>>,
    place: PrimExpr,
    value: PrimExpr,
}

/// What is taken for granted of buffers.
#[derive(Default)]
struct Known(HashMap<Ref<Buffer>, Padding>);

impl PrimVisitor for Known {}

impl StmtVisitor for Known {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::Evaluate(n) = stmt
            && let PrimExpr::Call(call) = &n.value
            && call.op == "tirx.assume"
            && let [fact] = call.args.as_slice()
            && let Some((buffer, padding)) = padding_of(fact)
        {
            self.0.insert(buffer, padding);
        }
        self.walk_stmt(stmt);
    }
}

/// `not place or A[i, j] == value`, in either order.
fn padding_of(fact: &PrimExpr) -> Option<(Ref<Buffer>, Padding)> {
    let PrimExpr::Binary(either) = fact else { return None };
    if either.op != BinaryOp::Or {
        return None;
    }
    let of = |outside: &PrimExpr, equal: &PrimExpr| {
        let PrimExpr::Binary(equal) = equal else { return None };
        let (PrimExpr::Load(load), BinaryOp::Eq) = (&equal.a, equal.op) else { return None };
        let indices: Vec<Ref<Var>> = load.indices.iter().map(|i| i.as_var().cloned()).collect::<Option<_>>()?;
        let is_known = matches!(&equal.b, PrimExpr::Int(_) | PrimExpr::Float(_)) && load.predicate.is_none();
        let padding = Padding { indices, place: negated(outside), value: equal.b.clone() };
        is_known.then(|| (load.buffer.clone(), padding))
    };
    of(&either.a, &either.b).or_else(|| of(&either.b, &either.a))
}

/// A condition that holds where another does not.
fn negated(e: &PrimExpr) -> PrimExpr {
    match e {
        PrimExpr::Not(n) => n.a.clone(),
        other => prim::not(other.clone()),
    }
}

struct Needless {
    known: HashMap<Ref<Buffer>, Padding>,
}

impl Needless {
    /// Whether a value is what is chosen in a place, there and by what is taken for granted.
    fn gives(&self, value: &PrimExpr, place: &PrimExpr, chosen: &PrimExpr) -> bool {
        let mut inside = Inside { known: &self.known, place, all: true };
        let there = inside.mutate_prim(value);
        let mut analyzer = Analyzer::new();
        inside.all && same(&analyzer.simplify(&there), &analyzer.simplify(chosen))
    }

    /// What a choice is without its condition, if that is needless.
    fn plain(&self, condition: &PrimExpr, first: &PrimExpr, second: &PrimExpr) -> Option<PrimExpr> {
        if self.gives(second, condition, first) {
            return Some(second.clone());
        }
        self.gives(first, &negated(condition), second).then(|| first.clone())
    }
}

impl PrimMutator for Needless {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let e = self.remake_prim(e);
        let plain = match &e {
            PrimExpr::Select(n) => self.plain(&n.condition, &n.true_value, &n.false_value),
            PrimExpr::Call(n) if n.op == "tirx.if_then_else" => match n.args.as_slice() {
                [condition, first, second] => self.plain(condition, first, second),
                _ => None,
            },
            _ => None,
        };
        plain.unwrap_or(e)
    }
}

impl StmtMutator for Needless {}

/// Puts what elements of the padding are in the place of their loads.
struct Inside<'a> {
    known: &'a HashMap<Ref<Buffer>, Padding>,
    place: &'a PrimExpr,
    /// Whether all loads are of the padding.
    all: bool,
}

impl PrimMutator for Inside<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let PrimExpr::Load(load) = e else { return self.remake_prim(e) };
        if let Some(padding) = self.known.get(&load.buffer)
            && load.predicate.is_none()
        {
            let at: VarMap = padding.indices.iter().cloned().zip(load.indices.iter().cloned()).collect();
            let place = substitute(&padding.place, &at);
            let mut analyzer = Analyzer::new();
            if same(&place, self.place) || same(&analyzer.simplify(&place), &analyzer.simplify(self.place)) {
                return padding.value.clone();
            }
        }
        self.all = false;
        e.clone()
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::DataType;

    use super::*;

    const WORD: DataType = DataType::int(32);

    /// `B[i] = if i >= 5 { other } else { value(A[i]) }`, where `A[i]` is taken to be `padding` from 5 on.
    fn kernel(padding: i64, other: i64, value: impl FnOnce(PrimExpr) -> PrimExpr) -> String {
        let (a, b) = (Buffer::new("A", WORD, [8i64]), Buffer::new("B", WORD, [8i64]));
        let place = |i: &PrimExpr| prim::ge(i, 5i64);
        let granted = Stmt::each("i", 8i64, |i| {
            let equal = prim::eq(prim::load(&a, [i.clone()]), prim::int_of(WORD, padding));
            let fact = prim::or(prim::not(place(i)), equal);
            Stmt::evaluate(prim::call(DataType::bool(), "tirx.assume", vec![fact]))
        });
        let computed = Stmt::each("i", 8i64, |i| {
            let value = value(prim::load(&a, [i.clone()]));
            Stmt::store(&b, [i.clone()], prim::if_then_else(place(i), prim::int_of(WORD, other), value))
        });
        let func = PrimFunc::over_buffers(&[a, b], &[], Stmt::seq([granted, computed]));
        use_assumptions(&func).unwrap().to_string()
    }

    #[test]
    fn what_gives_the_padding_anyway_is_computed_everywhere() {
        let text = kernel(0, 0, |a| a * prim::int_of(WORD, 2));
        assert!(!text.contains("if_then_else"), "{text}");
    }

    #[test]
    fn what_gives_something_else_in_the_padding_keeps_its_choice() {
        for text in [
            kernel(0, 0, |a| a + prim::int_of(WORD, 1)),
            kernel(1, 0, |a| a * prim::int_of(WORD, 2)),
            kernel(0, 1, |a| a),
        ] {
            assert!(text.contains("if_then_else"), "{text}");
        }
    }
}
