//! Whether an expression is what a pattern describes.
//!
//! Operands are variables, so that the matcher looks through each to the value that it is bound to. It backtracks: what a
//! part was taken for is forgotten where the rest does not fit.

use std::collections::HashMap;

use relaxide_ffi::{Field, FreeVars, StructuralEqual, structural_equal};
use relaxide_ir::{AttrValue, Attrs, PrimExpr, Type};

use super::pattern::{Pattern, PatternKind};
use crate::shape::{prove_equal, same_dims};
use crate::*;

/// What variables are bound to.
pub type VarValues = HashMap<AnyVar, Expr>;

/// What each part of a pattern stands for.
#[derive(Clone, Debug, Default)]
pub struct Matches(HashMap<Pattern, Match>);

#[derive(Clone, Debug)]
struct Match {
    operand: Expr,
    value: Expr,
}

impl Matches {
    /// What a part stands for as it stands in the program: a variable, where the value is bound to one.
    pub fn operand(&self, part: &Pattern) -> Option<&Expr> {
        self.0.get(part).map(|m| &m.operand)
    }

    /// The value that a part stands for, with variables looked through.
    pub fn value(&self, part: &Pattern) -> Option<&Expr> {
        self.0.get(part).map(|m| &m.value)
    }

    /// All parts that matched, with operand and value.
    pub fn iter(&self) -> impl Iterator<Item = (&Pattern, &Expr, &Expr)> {
        self.0.iter().map(|(part, m)| (part, &m.operand, &m.value))
    }
}

/// What each part of a pattern stands for in an expression, if the expression matches.
pub fn match_expr(pattern: &Pattern, expr: &Expr, values: &VarValues) -> Option<Matches> {
    let mut matcher = Matcher { values, found: Matches::default(), trail: Vec::new() };
    matcher.part(pattern, expr).then_some(matcher.found)
}

/// What every variable of a function is bound to, those of branches and nested functions included.
pub fn values_of(func: &Function) -> VarValues {
    struct Collect(VarValues);
    impl ExprVisitor for Collect {
        fn visit_binding(&mut self, binding: &Binding) {
            if let Binding::Var(bound) = binding {
                self.0.insert(bound.var.clone(), bound.value.clone());
            }
            self.visit_expr(binding.value());
        }
    }
    let mut collect = Collect(VarValues::new());
    collect.visit_seq(&func.body);
    collect.0
}

/// The value behind a variable, through any number of variables.
pub(super) fn resolve<'a>(mut expr: &'a Expr, values: &'a VarValues) -> &'a Expr {
    // Bindings do not go in circles in a well-formed program; in others, the count ends the walk.
    for _ in 0..=values.len() {
        match expr.as_var().and_then(|var| values.get(&var)) {
            Some(value) => expr = value,
            None => break,
        }
    }
    expr
}

struct Matcher<'a> {
    values: &'a VarValues,
    found: Matches,
    /// Parts in the order in which they matched.
    trail: Vec<Pattern>,
}

impl Matcher<'_> {
    fn part(&mut self, pattern: &Pattern, expr: &Expr) -> bool {
        let values = self.values;
        let value = resolve(expr, values);
        if let Some(before) = self.found.0.get(pattern) {
            return before.value == *value;
        }
        let mark = self.trail.len();
        let matched = self.kind(pattern.kind(), expr, value);
        if matched {
            self.found.0.insert(pattern.clone(), Match { operand: expr.clone(), value: value.clone() });
            self.trail.push(pattern.clone());
        } else {
            self.back_to(mark);
        }
        matched
    }

    fn back_to(&mut self, mark: usize) {
        for part in self.trail.drain(mark..) {
            self.found.0.remove(&part);
        }
    }

    fn kind(&mut self, kind: &PatternKind, expr: &Expr, value: &Expr) -> bool {
        match (kind, value) {
            (PatternKind::Wildcard, _) => true,
            (PatternKind::Var(name), _) => expr.as_var().is_some_and(|v| named(name, v.name())),
            (PatternKind::DataflowVar(name), _) => matches!(expr, Expr::DataflowVar(v) if named(name, &v.name)),
            (PatternKind::Global(name), Expr::Global(g)) => named(name, &g.name),
            (PatternKind::Extern(name), Expr::Extern(e)) => named(name, &e.global_symbol),
            (PatternKind::Constant, Expr::Constant(_)) => true,
            (PatternKind::Op(name), Expr::Op(op)) => {
                op.name == *name || name.strip_prefix("relax.") == Some(op.name.as_str())
            }
            (PatternKind::Expr(wanted), _) => *wanted == *value || equal(wanted, expr) || equal(wanted, value),
            (PatternKind::Call { callee, args, more }, Expr::Call(call)) => self.call(callee, args, *more, call),
            (PatternKind::Function { params, body }, Expr::Function(func)) => {
                let own: Vec<Expr> = func.params.iter().map(|p| Expr::Var(p.clone())).collect();
                self.all(params, &own) && self.part(body, &func.body.body)
            }
            (PatternKind::Tuple(fields), Expr::Tuple(tuple)) => self.all(fields, &tuple.fields),
            (PatternKind::UnorderedTuple(fields), Expr::Tuple(tuple)) => {
                fields.len() == tuple.fields.len() && self.any_order(fields, &mut tuple.fields.clone())
            }
            (PatternKind::TupleGetItem(tuple, index), Expr::TupleGetItem(item)) => {
                index.is_none_or(|i| i64::try_from(i) == Ok(item.index)) && self.part(tuple, &item.tuple)
            }
            (PatternKind::Or(a, b), _) => self.part(a, expr) || self.part(b, expr),
            (PatternKind::And(a, b), _) => self.part(a, expr) && self.part(b, expr),
            (PatternKind::Not(p), _) => {
                let mark = self.trail.len();
                let matched = self.part(p, expr);
                self.back_to(mark);
                !matched
            }
            (PatternKind::Type(p, ty), _) => self.part(p, expr) && is_of_type(&expr.ty(), ty),
            (PatternKind::DType(p, dtype), _) => {
                self.part(p, expr) && matches!(expr.ty(), Type::Tensor(t) if t.dtype == *dtype)
            }
            (PatternKind::Shape(p, dims), _) => {
                let has = |dims: &[PrimExpr]| matches!(expr.ty(), Type::Tensor(t) if t.shape.as_ref().is_some_and(|s| same_dims(s, dims)));
                self.part(p, expr) && has(dims)
            }
            (PatternKind::ShapeExpr(dims), Expr::Shape(shape)) => same_dims(&shape.values, dims),
            (PatternKind::Attrs(p, attrs), _) => {
                let has = match value {
                    Expr::Call(call) => contains(&call.attrs, attrs),
                    Expr::Function(func) => contains(&func.attrs, attrs),
                    _ => false,
                };
                has && self.part(p, expr)
            }
            _ => false,
        }
    }

    /// A call. The two arguments of an addition or a product match in either order.
    fn call(&mut self, callee: &Pattern, args: &Option<Vec<Pattern>>, more: bool, call: &Call) -> bool {
        if !self.part(callee, &call.op) {
            return false;
        }
        let Some(args) = args else { return true };
        let fits = if more { args.len() <= call.args.len() } else { args.len() == call.args.len() };
        let Some(given) = call.args.get(..args.len()).filter(|_| fits) else { return false };
        let mark = self.trail.len();
        if self.all(args, given) {
            return true;
        }
        self.back_to(mark);
        match (call.op_name().map(|name| name.trim_start_matches("relax.")), given) {
            (Some("add" | "multiply"), [a, b]) => self.all(args, &[b.clone(), a.clone()]),
            _ => false,
        }
    }

    fn all(&mut self, patterns: &[Pattern], exprs: &[Expr]) -> bool {
        patterns.len() == exprs.len() && patterns.iter().zip(exprs).all(|(p, e)| self.part(p, e))
    }

    fn any_order(&mut self, patterns: &[Pattern], exprs: &mut Vec<Expr>) -> bool {
        let Some((first, rest)) = patterns.split_first() else { return exprs.is_empty() };
        for i in 0..exprs.len() {
            let mark = self.trail.len();
            let expr = exprs.remove(i);
            if self.part(first, &expr) && self.any_order(rest, exprs) {
                return true;
            }
            self.back_to(mark);
            exprs.insert(i, expr);
        }
        false
    }
}

fn named(wanted: &str, name: &str) -> bool {
    wanted.is_empty() || wanted == name
}

fn equal(a: &Expr, b: &Expr) -> bool {
    structural_equal(a, b, FreeVars::Same).is_ok()
}

/// Whether a type says all that `wanted` says.
pub fn is_of_type(ty: &Type, wanted: &Type) -> bool {
    match (ty, wanted) {
        (_, Type::Any(_) | Type::Missing(_)) => true,
        (Type::Tensor(t), Type::Tensor(w)) => {
            let dims = match (&t.shape, &w.shape) {
                (_, None) => true,
                (Some(have), Some(want)) => same_dims(have, want),
                (None, Some(_)) => false,
            };
            dims && (w.dtype.is_void() || t.dtype == w.dtype) && (w.ndim < 0 || t.ndim == w.ndim)
        }
        (Type::Shape(s), Type::Shape(w)) => match (&s.values, &w.values) {
            (_, None) => w.ndim < 0 || s.ndim == w.ndim,
            (Some(have), Some(want)) => {
                have.len() == want.len() && have.iter().zip(want).all(|(a, b)| prove_equal(a, b))
            }
            (None, Some(_)) => false,
        },
        (Type::Tuple(t), Type::Tuple(w)) => {
            t.fields.len() == w.fields.len() && t.fields.iter().zip(&w.fields).all(|(a, b)| is_of_type(a, b))
        }
        _ => crate::shape::same_type(ty, wanted),
    }
}

/// Whether attributes have these values. An element type may be given as text.
fn contains(have: &Attrs, wanted: &Attrs) -> bool {
    wanted.0.iter().all(|(name, value)| match (have.0.get(name), value) {
        (Some(AttrValue::DType(dtype)), AttrValue::Str(text)) => text.parse() == Ok(*dtype),
        (Some(AttrValue::Int(a)), AttrValue::Bool(b)) | (Some(AttrValue::Bool(b)), AttrValue::Int(a)) => {
            *a == i64::from(*b)
        }
        (Some(have), value) => have.s_equal(value, &mut StructuralEqual::new()),
        (None, AttrValue::None) => true,
        (None, _) => false,
    })
}
