//! One row of an injective value, stored in vectors.
//!
//! ```text
//! C[x] = if_then_else(row_ok and 1 <= x < w + 1, A[x - 1] * s[c], 0)
//! ```
//! becomes
//! ```text
//! if row_ok:                                   # what does not move along the row is decided outside
//!     s' = s[c]                                # and loaded once
//!     C[0 .. 1] = 0                            # linear limits leave an interval, with nothing to ask inside
//!     C[1 .. w + 1] = A[0 ..] * s'
//!     C[w + 1 ..] = 0
//! else: C[..] = 0
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, Let, PrimExpr, PrimMutator, VarMap, add, any, binary, call, eq, floordiv, gt, int, max, min, select, sub,
    substitute,
};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{linear, loads, uses, uses_any};
use super::super::lanes::Lanes;
use super::super::nest::{Tail, Tile};
use super::super::prefetch::Prefetch;
use super::super::{Cx, Refusal, nest};
use super::lifted_choice::lifted;
use super::row_sides::on_side;
use crate::Stmt;

/// Where a row is stored, and along which axis it runs.
pub struct Row<'a> {
    /// The axis.
    pub axis: &'a Ref<Var>,
    /// How long the axis is.
    pub length: &'a PrimExpr,
    /// Lanes of a vector.
    pub lanes: i64,
    /// The buffer.
    pub buffer: &'a Ref<Buffer>,
    /// The element, over the axis.
    pub indices: &'a [PrimExpr],
    /// What other variables stand for.
    pub map: &'a VarMap,
    /// How the row ends.
    pub tail: Tail,
    /// What is asked for on the way.
    pub ahead: Option<&'a Prefetch>,
}

impl Row<'_> {
    /// Stores `start .. start + extent` of a value.
    pub fn emit(&self, cx: &mut Cx, start: &PrimExpr, extent: &PrimExpr, value: &PrimExpr) -> Result<Stmt, Refusal> {
        let Some((condition, t, f)) = choice(value) else {
            if let Some(value) = lifted(self.axis, value, extent.as_int(), self.lanes) {
                return self.emit(cx, start, extent, &value);
            }
            let (value, binds) = Hoist::run(self.axis, value, self.map);
            if divides_lanes(self.axis, &value) {
                let loops = self.one_by_one(start, extent, &value);
                return Ok(Stmt::seq(binds.into_iter().chain([loops])));
            }
            let store = |tile: Tile| self.store(cx, &tile, &value);
            let loops = match self.tail {
                Tail::Overlapped if start.is_int(0) => nest::overlapping_tiles(extent, self.lanes, 1, store)?,
                _ => nest::tiles(start.clone(), extent, self.lanes, 1, store)?,
            };
            return Ok(Stmt::seq(binds.into_iter().chain([loops])));
        };
        let (moving, fixed): (Vec<PrimExpr>, Vec<PrimExpr>) =
            conjuncts(condition).into_iter().partition(|c| uses(c, self.axis));
        let Some(limits) = all_of(&moving) else {
            let (t, f) = (self.emit(cx, start, extent, t)?, self.emit(cx, start, extent, f)?);
            return Ok(Stmt::if_else(substitute(condition, self.map), t, f));
        };
        // What stands on several sides of a choice is written out on each; where it makes choices of its own, on one only, or
        // the text of N choices would be 2^N long.
        let nested = has_choice(f);
        let fixed = all_of(&fixed);
        if let Some(fixed) = fixed.as_ref().filter(|_| !nested) {
            let inside = call(value.dtype(), "tirx.if_then_else", vec![limits, t.clone(), f.clone()]);
            let (inside, outside) = (self.emit(cx, start, extent, &inside)?, self.emit(cx, start, extent, f)?);
            return Ok(Stmt::if_else(substitute(fixed, self.map), inside, outside));
        }
        let Some(interval) = interval(self.axis, &moving) else {
            return nest::tiles(start.clone(), extent, self.lanes, 1, |tile| self.store(cx, &tile, value));
        };
        let Parts { binds, before, inside, behind } = self.parts(&interval, fixed.as_ref(), start, extent);
        let side = |cx: &mut Cx, part: &Option<Part>, limits: Option<[&PrimExpr; 2]>| {
            let Some(part) = part else { return Ok(None) };
            let limits = limits.filter(|_| fixed.is_none());
            let Some(value) = limits.and_then(|[from, to]| on_side(f, self.axis, from, to)) else {
                return self.emit(cx, &part.start, &part.extent, f).map(Some);
            };
            let stored = self.emit(cx, &part.start, &part.extent, &value)?;
            // An element that all places of the part have is read once, in front of them, and there must be one.
            Ok::<_, Refusal>(Some(Stmt::when(gt(part.extent.clone(), int(0)), stored)))
        };
        let stmts = match (&before, &behind) {
            (Some(before), Some(behind)) if nested => {
                let sides = self.both_sides(cx, before, behind, f)?;
                // Both sides are stored by now, so nothing may spill over.
                let row = Row { tail: Tail::Masked, ..*self };
                vec![Some(sides), Some(row.emit(cx, &inside.start, &inside.extent, t)?)]
            }
            _ => {
                let origin = int(0);
                let before = side(cx, &before, interval.low.as_ref().map(|low| [&origin, low]))?;
                let inside = self.emit(cx, &inside.start, &inside.extent, t)?;
                let behind = side(cx, &behind, interval.high.as_ref().map(|high| [high, self.length]))?;
                vec![before, Some(inside), behind]
            }
        };
        Ok(Stmt::seq(binds.into_iter().chain(stmts.into_iter().flatten())))
    }

    /// The part of a row where conditions hold, and what is left of it on both sides, if anything can be. `fixed` is a condition
    /// for the whole row: without it the part is empty.
    fn parts(&self, limits: &Interval, fixed: Option<&PrimExpr>, start: &PrimExpr, extent: &PrimExpr) -> Parts {
        let Interval { low, high } = limits;
        let end = add(start, extent);
        let mut binds = Vec::new();
        let mut bind = |name: &str, value: PrimExpr| {
            let var = Var::dim(name);
            let value = match fixed {
                Some(fixed) => select(substitute(fixed, self.map), value, start.clone()),
                None => value,
            };
            binds.push(Stmt::bind(var.clone(), value));
            PrimExpr::from(&var)
        };
        let from = match low {
            Some(low) => bind("from", min(max(start.clone(), substitute(low, self.map)), end.clone())),
            None => start.clone(),
        };
        let is_open = high.is_none() && fixed.is_none();
        let to = match high {
            _ if is_open => end.clone(),
            Some(high) => bind("to", max(from.clone(), min(substitute(high, self.map), end.clone()))),
            None => bind("to", end.clone()),
        };
        let part = |start: &PrimExpr, end: &PrimExpr| Part { start: start.clone(), extent: sub(end, start) };
        Parts {
            before: low.is_some().then(|| part(start, &from)),
            inside: part(&from, &to),
            behind: (!is_open).then(|| part(&to, &end)),
            binds,
        }
    }

    /// Stores a value on both sides of an interval, by one text.
    fn both_sides(&self, cx: &mut Cx, before: &Part, behind: &Part, value: &PrimExpr) -> Result<Stmt, Refusal> {
        let (side, start, extent) = (Var::dim("side"), Var::dim("start"), Var::dim("length"));
        let first = || eq(PrimExpr::from(&side), int(0));
        let binds = [
            Stmt::bind(start.clone(), select(first(), before.start.clone(), behind.start.clone())),
            Stmt::bind(extent.clone(), select(first(), before.extent.clone(), behind.extent.clone())),
        ];
        let stored = self.emit(cx, &PrimExpr::from(&start), &PrimExpr::from(&extent), value)?;
        Ok(Stmt::serial(side.clone(), int(2), Stmt::seq(binds.into_iter().chain([stored]))))
    }

    /// Stores elements that vectors would make one by one, too, and more of them than there are.
    fn one_by_one(&self, start: &PrimExpr, extent: &PrimExpr, value: &PrimExpr) -> Stmt {
        let at = Var::dim("at");
        let mut map = self.map.clone();
        map.insert(self.axis.clone(), add(start, PrimExpr::from(&at)));
        let indices: Vec<PrimExpr> = self.indices.iter().map(|index| substitute(index, &map)).collect();
        Stmt::serial(at, extent.clone(), Stmt::store(self.buffer, indices, substitute(value, &map)))
    }

    fn store(&self, cx: &mut Cx, tile: &Tile, value: &PrimExpr) -> Result<Stmt, Refusal> {
        let base = tile.base.clone();
        let ahead = self.ahead.map(|ahead| ahead.of(cx, self.axis, &base, self.lanes, value, self.indices));
        let lanes = Lanes::new(&mut cx.views, self.axis, base, self.lanes, tile.mask_of(0), self.map);
        let store = lanes.store_row(self.tail, self.buffer, self.indices, value)?;
        Ok(Stmt::seq(ahead.into_iter().flatten().chain([store])))
    }
}

/// Where conditions hold, as first value and first value behind, if each is an inequality that is linear in the axis.
pub fn interval(axis: &Ref<Var>, conditions: &[PrimExpr]) -> Option<Interval> {
    let (mut low, mut high) = (None, None);
    let both = |known: Option<PrimExpr>, more: PrimExpr, join: fn(PrimExpr, PrimExpr) -> PrimExpr| match known {
        Some(known) => Some(join(known, more)),
        None => Some(more),
    };
    for condition in conditions {
        let PrimExpr::Binary(n) = condition else { return None };
        let (slope, rest) = linear(&sub(&n.a, &n.b), axis)?;
        let slope = slope.as_int()?;
        // All as `slope * x + rest >= 0`.
        let (slope, rest) = match n.op {
            BinaryOp::Ge => (slope, rest),
            BinaryOp::Gt => (slope, rest - 1),
            BinaryOp::Le => (slope.checked_neg()?, int(0) - rest),
            BinaryOp::Lt => (slope.checked_neg()?, int(-1) - rest),
            _ => return None,
        };
        match slope {
            0 => return None,
            s if s > 0 => low = both(low, floordiv(int(s - 1) - rest, int(s)), max),
            s => high = both(high, floordiv(rest, int(s.checked_neg()?)) + 1, min),
        }
    }
    Some(Interval { low, high })
}

/// Where conditions hold: the first place and the first behind it, where there is a limit.
#[derive(Default)]
pub struct Interval {
    pub low: Option<PrimExpr>,
    pub high: Option<PrimExpr>,
}

impl Interval {
    /// Whether neither end has a limit.
    pub fn is_open(&self) -> bool {
        self.low.is_none() && self.high.is_none()
    }
}

/// A part of a row.
struct Part {
    start: PrimExpr,
    extent: PrimExpr,
}

/// A row, cut where a choice changes.
struct Parts {
    /// Names of the places.
    binds: Vec<Stmt>,
    before: Option<Part>,
    inside: Part,
    behind: Option<Part>,
}

/// The parts of a lazy choice.
pub fn choice(e: &PrimExpr) -> Option<(&PrimExpr, &PrimExpr, &PrimExpr)> {
    match e {
        PrimExpr::Call(n) if n.op == "tirx.if_then_else" => match n.args.as_slice() {
            [condition, t, f] => Some((condition, t, f)),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a value makes a lazy choice somewhere.
pub fn has_choice(e: &PrimExpr) -> bool {
    any(e, |e| choice(e).is_some())
}

/// The conditions that a conjunction joins.
pub fn conjuncts(e: &PrimExpr) -> Vec<PrimExpr> {
    match e {
        PrimExpr::Binary(n) if n.op == BinaryOp::And => conjuncts(&n.a).into_iter().chain(conjuncts(&n.b)).collect(),
        _ => vec![e.clone()],
    }
}

pub fn all_of(conditions: &[PrimExpr]) -> Option<PrimExpr> {
    conditions.iter().cloned().reduce(|a, b| binary(BinaryOp::And, a, b))
}

/// Whether each lane of a vector is divided by a number that nobody knows: no processor has an instruction for it.
fn divides_lanes(axis: &Ref<Var>, value: &PrimExpr) -> bool {
    any(value, |e| match e {
        PrimExpr::Binary(n) => {
            let divides = matches!(n.op, BinaryOp::FloorDiv | BinaryOp::FloorMod | BinaryOp::Div | BinaryOp::Mod);
            divides && n.a.dtype().is_int() && n.b.as_int().is_none() && uses(e, axis)
        }
        _ => false,
    })
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
    any(e, |e| matches!(e, PrimExpr::Let(_)))
}
