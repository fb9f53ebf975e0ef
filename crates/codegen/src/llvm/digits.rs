//! Places in several axes that one counter stands for.
//!
//! A loop over fused axes takes its counter apart, the last axis first:
//! ```text
//! for p in range(a * b * c):
//!     k = p % c;  j = p // c % b;  i = p // c // b
//! ```
//! A division takes as long as a few vectors, and each row has two or more. So the places are counted beside `p`: the divisions are made once, in
//! front of the loop, and a step adds one to `k`, and where that is `c`, one to `j` …

use relaxide_ir::arith::same;
use relaxide_ir::prim::{floordiv, free_vars, is_data};
use relaxide_ir::{BinaryOp, PrimExpr, Ref, Var};
use relaxide_tir::{For, Stmt};

use super::kernel::Body;
use super::value::{Overflow, Ty, Val};
use crate::error::CodegenError;

/// The places that the body of a loop takes its counter apart into.
pub(super) struct Digits {
    /// From the last axis on: the name, and the extent where the axis is not the first.
    axes: Vec<(Ref<Var>, Option<PrimExpr>)>,
    /// The body without them.
    pub rest: Stmt,
}

/// A place and how far it counts, in a loop that is being written.
pub(super) struct Digit {
    pub first: Val,
    pub extent: Option<Val>,
}

impl Digits {
    /// Of a loop that divides at least once.
    pub fn of(n: &For) -> Option<Digits> {
        let Stmt::Seq(body) = &n.body else { return None };
        let (mut axes, mut rest) = (Vec::new(), Vec::new());
        let mut left = Some(PrimExpr::from(&n.var));
        let mut stmts = body.seq.iter().peekable();
        // Memory may be allocated between them.
        while let Some(stmt) = stmts.peek() {
            match stmt {
                Stmt::Alloc(_) => rest.push((*stmt).clone()),
                Stmt::Bind(bind) if bind.var.dtype() == n.var.dtype() => {
                    let found = left.as_ref().and_then(|left| digit(&bind.value, left, &n.var, &axes));
                    let Some((extent, next)) = found else { break };
                    axes.push((bind.var.clone(), extent));
                    left = next;
                }
                _ => break,
            }
            stmts.next();
        }
        rest.extend(stmts.cloned());
        let divides = axes.iter().any(|(_, extent)| extent.is_some());
        divides.then(|| Digits { axes, rest: Stmt::seq(rest) })
    }

    /// The names, the last axis first.
    pub fn names(&self) -> impl Iterator<Item = &Ref<Var>> {
        self.axes.iter().map(|(name, _)| name)
    }
}

/// The extent of a digit of what is left of the counter, and what is left behind it.
fn digit(
    value: &PrimExpr,
    left: &PrimExpr,
    counter: &Ref<Var>,
    before: &[(Ref<Var>, Option<PrimExpr>)],
) -> Option<(Option<PrimExpr>, Option<PrimExpr>)> {
    if !before.is_empty() && same(value, left) {
        return Some((None, None));
    }
    let PrimExpr::Binary(rest) = value else { return None };
    if rest.op != BinaryOp::FloorMod || !same(&rest.a, left) {
        return None;
    }
    let changes = |var: &Ref<Var>| var == counter || before.iter().any(|(name, _)| name == var);
    if is_data(&rest.b) || free_vars(&rest.b).iter().any(changes) {
        return None;
    }
    let next = floordiv(left, &rest.b);
    Some((Some(rest.b.clone()), Some(next)))
}

impl Body<'_, '_> {
    /// Where the places of a loop begin, in front of it.
    pub(super) fn first_digits(&mut self, digits: &Digits, first: &Val) -> Result<Vec<Digit>, CodegenError> {
        let mut left = first.clone();
        let mut out = Vec::new();
        for (_, extent) in &digits.axes {
            let Some(extent) = extent else {
                out.push(Digit { first: left.clone(), extent: None });
                continue;
            };
            let extent = self.index_typed(extent)?;
            let extent = self.f.convert(&extent, first.ty);
            // An extent of zero belongs to a loop without iterations.
            let one = Val::int(first.ty, 1);
            let divisor = self.f.binary(BinaryOp::Max, &extent, &one, Overflow::Never);
            let place = self.f.op("srem", &left, &divisor);
            left = self.f.op("sdiv", &left, &divisor);
            out.push(Digit { first: place, extent: Some(extent) });
        }
        Ok(out)
    }

    /// Steps the places of a loop, in its latch.
    pub(super) fn step_digits(&mut self, digits: &[Digit], places: &[Val]) {
        let mut carry: Option<Val> = None;
        for (digit, place) in digits.iter().zip(places) {
            let ty = place.ty;
            let more = carry.as_ref().map_or_else(|| "1".to_string(), |carry| carry.text.to_string());
            let Some(extent) = &digit.extent else {
                self.f.loop_step(place, format_args!("add nuw nsw {place}, {more}"));
                continue;
            };
            let next = self.f.emit(ty, format_args!("add nuw nsw {place}, {more}"));
            let is_end = self.f.emit(ty.with_kind(Ty::BOOL), format_args!("icmp eq {next}, {}", extent.text));
            let zero = Val::int(ty, 0);
            self.f.loop_step(place, format_args!("select {is_end}, {zero}, {next}"));
            carry = Some(self.f.emit(ty, format_args!("zext {is_end} to {ty}")));
        }
    }
}
