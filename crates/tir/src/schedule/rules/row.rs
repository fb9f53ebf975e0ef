//! One row of an injective value, stored in vectors.
//!
//! ```text
//! C[x] = if_then_else(row_ok and 1 <= x < w + 1, A[x - 1] * s[c], 0)
//! ```
//! becomes
//! ```text
//! if row_ok:                                   # what does not move along the row is decided outside
//!     s' = s[c]                                # and loaded once
//!     for t: if 1 <= x and x + 7 < w + 1:      # affine limits hold for a vector if they hold at both its ends
//!                C[x .. x+8] = A[x-1 ..] * s'
//!            else: the same, predicated
//! else: C[x ..] = 0
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, Let, PrimExpr, PrimMutator, PrimVisitor, VarMap, binary, call, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{linear, loads, uses, uses_any, with_var};
use super::super::lanes::Lanes;
use super::super::nest::Tile;
use super::super::{Cx, Refusal, nest};
use crate::Stmt;

/// Where a row is stored, and along which axis it runs.
pub struct Row<'a> {
    /// The axis.
    pub axis: &'a Ref<Var>,
    /// Lanes of a vector.
    pub lanes: i64,
    /// The buffer.
    pub buffer: &'a Ref<Buffer>,
    /// The element, over the axis.
    pub indices: &'a [PrimExpr],
    /// What other variables stand for.
    pub map: &'a VarMap,
}

impl Row<'_> {
    /// Stores `start .. start + extent` of a value.
    pub fn emit(&self, cx: &mut Cx, start: &PrimExpr, extent: &PrimExpr, value: &PrimExpr) -> Result<Stmt, Refusal> {
        let Some((condition, t, f)) = choice(value) else {
            let (value, binds) = Hoist::run(self.axis, value, self.map);
            let loops = nest::tiles(start.clone(), extent, self.lanes, 1, |tile| self.store(cx, &tile, &value))?;
            return Ok(Stmt::seq(binds.into_iter().chain([loops])));
        };
        let (moving, fixed): (Vec<PrimExpr>, Vec<PrimExpr>) =
            conjuncts(condition).into_iter().partition(|c| uses(c, self.axis));
        let Some(limits) = all_of(&moving) else {
            let (t, f) = (self.emit(cx, start, extent, t)?, self.emit(cx, start, extent, f)?);
            return Ok(Stmt::if_else(substitute(condition, self.map), t, f));
        };
        if let Some(fixed) = all_of(&fixed) {
            let inside = call(value.dtype(), "tirx.if_then_else", vec![limits, t.clone(), f.clone()]);
            let (inside, outside) = (self.emit(cx, start, extent, &inside)?, self.emit(cx, start, extent, f)?);
            return Ok(Stmt::if_else(substitute(&fixed, self.map), inside, outside));
        }
        let convex = moving.iter().all(|c| self.is_limit(c));
        nest::tiles(start.clone(), extent, self.lanes, 1, |tile| {
            let guarded = self.store(cx, &tile, value)?;
            if !convex || tile.mask.is_some() {
                return Ok(guarded);
            }
            let last = tile.base.clone() + (tile.vectors * self.lanes - 1);
            let at = |x: &PrimExpr| substitute(&with_var(&limits, self.axis, x.clone()), self.map);
            let both = binary(BinaryOp::And, at(&tile.base), at(&last));
            Ok(Stmt::if_else(both, self.store(cx, &tile, t)?, guarded))
        })
    }

    fn store(&self, cx: &mut Cx, tile: &Tile, value: &PrimExpr) -> Result<Stmt, Refusal> {
        Lanes::new(&mut cx.views, self.axis, tile.base.clone(), self.lanes, tile.mask_of(0), self.map).store(
            self.buffer,
            self.indices,
            value,
        )
    }

    /// Whether a condition is an inequality of sides that are linear in the axis, and so holds on an interval.
    fn is_limit(&self, condition: &PrimExpr) -> bool {
        let PrimExpr::Binary(n) = condition else { return false };
        let inequality = matches!(n.op, BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge);
        inequality && linear(&n.a, self.axis).is_some() && linear(&n.b, self.axis).is_some()
    }
}

/// The parts of a lazy choice.
fn choice(e: &PrimExpr) -> Option<(&PrimExpr, &PrimExpr, &PrimExpr)> {
    match e {
        PrimExpr::Call(n) if n.op == "tirx.if_then_else" => match n.args.as_slice() {
            [condition, t, f] => Some((condition, t, f)),
            _ => None,
        },
        _ => None,
    }
}

/// The conditions that a conjunction joins.
fn conjuncts(e: &PrimExpr) -> Vec<PrimExpr> {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => conjuncts(&n.a).into_iter().chain(conjuncts(&n.b)).collect(),
        _ => vec![e.clone()],
    }
}

fn all_of(conditions: &[PrimExpr]) -> Option<PrimExpr> {
    conditions.iter().cloned().reduce(|a, b| binary(BinaryOp::And, a, b))
}

/// Gives names to what does not move along the row and costs a load.
struct Hoist<'a> {
    axis: &'a Ref<Var>,
    map: &'a VarMap,
    /// Names of `let`s around the place where the walk is.
    inner: Vec<Ref<Var>>,
    binds: Vec<Stmt>,
}

impl<'a> Hoist<'a> {
    /// An expression over names, and the statements that bind them.
    fn run(axis: &'a Ref<Var>, e: &PrimExpr, map: &'a VarMap) -> (PrimExpr, Vec<Stmt>) {
        let mut hoist = Hoist { axis, map, inner: Vec::new(), binds: Vec::new() };
        let value = hoist.mutate_prim(e);
        (value, hoist.binds)
    }
}

impl PrimMutator for Hoist<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        let moves = uses(e, self.axis) || uses_any(e, &self.inner);
        let vectors = || uses_any(e, self.map.iter().filter(|(_, to)| to.dtype().lanes > 1).map(|(v, _)| v));
        match e {
            _ if !moves && !loads(e).is_empty() && !has_let(e) && !vectors() => {
                let var = Var::prim("invariant", e.dtype());
                self.binds.push(Stmt::bind(var.clone(), substitute(e, self.map)));
                PrimExpr::from(&var)
            }
            // The sides of a lazy choice must not be evaluated ahead of it.
            PrimExpr::Call(c) if c.op == "tirx.if_then_else" => e.clone(),
            PrimExpr::Let(n) => {
                let value = self.mutate_prim(&n.value);
                self.inner.push(n.var.clone());
                let body = self.mutate_prim(&n.body);
                Ref::new(Let { var: n.var.clone(), value, body }).into()
            }
            _ => self.remake_prim(e),
        }
    }
}

fn has_let(e: &PrimExpr) -> bool {
    struct Search(bool);
    impl PrimVisitor for Search {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.0 |= matches!(e, PrimExpr::Let(_));
            self.walk_prim(e);
        }
    }
    let mut search = Search(false);
    search.visit_prim(e);
    search.0
}
