//! Rows whose neighbours come from few rows in turn: enlarging an image by a whole factor, transposed convolution.
//!
//! Matches injective stages that use their contiguous axis `x` as `x // c` and `x % c` for one small constant `c`, and those whose
//! contiguous axis has but so many elements and lies behind another one (depth to space, channels last of an image in colours): the
//! two are such an axis together.
//!
//! ```text
//! B[y, x] = A[x % 2, y // 2, x // 2]
//!   ->  parallel y:  for t over whole vectors of x' = x // 2:
//!           v0 = A[0, y // 2, x' ..];  v1 = A[1, y // 2, x' ..]     # contiguous, one vector a phase
//!           B[y, 2*x' .. 2*x' + 16] = v0 and v1 in turn             # shuffled in registers
//!       the elements behind the last whole `c`, masked
//! ```
//!
//! Choices that do not move along the row (which of several images has the row) are made in front of it. Without the rule each lane would
//! be a load of its own, behind a division. The last vectors move back and store some elements
//! twice. Parameter: factors up to four, which registers hold. Roof: memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, PrimMutator, PrimVisitor, VarMap, add, floordiv, floormod, ge, int, load, min, mul, ramp, sub,
};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{ceil_div, cost, flat_index, linear, loads, product, uses, with_var};
use super::super::lanes::{Lanes, splat};
use super::super::nest::Tail;
use super::super::parameters::Choices;
use super::super::{Axis, Cx, Machine, Refusal, Stage, nest};
use super::elementwise::widest;
use super::lifted_choice::{condition_of, decided};
use super::row::{Row, choice};
use super::rule::{self, Rule};
use crate::{BufferStore, Stmt};

/// The largest factor.
const LARGEST: i64 = 4;
/// Choices that are decided for a row, one within the other, at most.
const DEEPEST: usize = 4;

/// The rule.
pub struct Interleave;

/// A stage that takes its row apart.
pub struct Found<'w> {
    stage: &'w Stage,
    row: Taken<'w>,
    /// By which number.
    factor: i64,
    /// The number of an element within its phase, and the value of each phase over it.
    whole: Ref<Var>,
    phases: Vec<PrimExpr>,
}

impl Rule for Interleave {
    type Work = Stage;
    type Found<'w> = Found<'w>;
    /// Lanes of a vector.
    type Decided = i64;

    fn find<'w>(_: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
        find(stage)
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<i64, Refusal> {
        Ok(rule::lanes(choices, machine.lanes(widest(found.stage))))
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, lanes: &i64) -> Result<Stmt, Refusal> {
        emit(cx, found, *lanes)
    }
}

/// A row as the rule sees it.
struct Taken<'w> {
    inner: Axis,
    outer: &'w [Axis],
    /// Where an element is stored, and its value.
    flat: PrimExpr,
    value: PrimExpr,
}

impl<'w> Taken<'w> {
    /// The last axis of a stage, with the one in front of it where it is a narrow one.
    fn of(stage: &'w Stage) -> Option<Taken<'w>> {
        let (inner, outer) = stage.spatial.split_last()?;
        let flat = flat_index(&stage.output, &stage.indices);
        let joined = || {
            let (next, outer) = outer.split_last()?;
            let width = inner.extent.as_int().filter(|n| (2..=LARGEST).contains(n))?;
            let (step, rest) = linear(&flat, &inner.var)?;
            let (step_of_next, rest) = linear(&rest, &next.var)?;
            if !step.is_int(1) || !step_of_next.is_int(width) {
                return None;
            }
            let x = Var::dim(next.var.name.clone());
            let at = || PrimExpr::from(&x);
            let value = with_var(&stage.value, &inner.var, floormod(at(), int(width)));
            let value = with_var(&value, &next.var, floordiv(at(), int(width)));
            let flat = add(&rest, at());
            let inner = Axis { var: x, extent: mul(&next.extent, int(width)) };
            Some(Taken { inner, outer, flat, value })
        };
        let own = || Taken { inner: inner.clone(), outer, flat: flat.clone(), value: stage.value.clone() };
        Some(joined().unwrap_or_else(own))
    }
}

fn find(stage: &Stage) -> Result<Found<'_>, Refusal> {
    let Some(row) = Taken::of(stage) else {
        return Err(Refusal::new("a single element has no vectors"));
    };
    let inner = &row.inner;
    let Some(factor) = factor_of(&row.value, &inner.var) else {
        return Err(Refusal::new("no axis is taken apart by a small factor"));
    };
    if linear(&row.flat, &inner.var).is_none_or(|(step, _)| !step.is_int(1)) {
        return Err(Refusal::new("the output is not contiguous"));
    }
    let whole = Var::dim(format!("{}_whole", inner.var.name));
    let phases: Vec<PrimExpr> = (0..factor)
        .map(|r| {
            let x = mul(PrimExpr::from(&whole), int(factor)) + int(r);
            Reduce { whole: &whole }.mutate_prim(&with_var(&row.value, &inner.var, x))
        })
        .collect();
    let stays_apart =
        phases.iter().flat_map(loads).any(|l| linear(&flat_index(&l.buffer, &l.indices), &whole).is_none());
    if stays_apart {
        return Err(Refusal::new("the phases of a row are not linear"));
    }
    Ok(Found { stage, row, factor, whole, phases })
}

/// The nest of an interleaving stage.
fn emit(cx: &mut Cx, found: &Found<'_>, lanes: i64) -> Result<Stmt, Refusal> {
    let Found { stage, row, phases, .. } = found;
    let body = whole_row(cx, found, phases, &row.value, lanes, DEEPEST)?;
    if row.outer.is_empty() {
        return Ok(body);
    }
    let p = Var::dim("p");
    let (tasks, binds) = nest::fuse(row.outer, &p);
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(binds.into_iter().chain([body]))))
}

/// A row, for each side of a choice that does not move along it.
fn whole_row(
    cx: &mut Cx,
    found: &Found<'_>,
    phases: &[PrimExpr],
    value: &PrimExpr,
    lanes: i64,
    deepest: usize,
) -> Result<Stmt, Refusal> {
    if deepest > 0
        && let Some(condition) = condition_of(&found.whole, phases)
    {
        let mut side = |holds| {
            let phases: Vec<PrimExpr> = phases.iter().map(|phase| decided(phase, &condition, holds)).collect();
            whole_row(cx, found, &phases, &decided(value, &condition, holds), lanes, deepest - 1)
        };
        let (yes, no) = (side(true)?, side(false)?);
        return Ok(Stmt::if_else(condition, yes, no));
    }
    let Found { stage, row: Taken { inner, flat, .. }, factor, whole, .. } = found;
    let factor = *factor;
    let count = floordiv(&inner.extent, int(factor));
    let t = Var::dim("t");
    let base = min(mul(PrimExpr::from(&t), int(lanes)), sub(&count, int(lanes)));
    let at = Var::dim("at");
    let start = with_var(flat, &inner.var, mul(PrimExpr::from(&at), int(factor)));
    let tile = tile(cx, stage, whole, phases, &at, start, lanes)?;
    let tiles = Stmt::serial(t, ceil_div(&count, lanes), Stmt::seq([Stmt::bind(at, base), tile]));

    let none = VarMap::new();
    let (buffer, indices) = (&cx.views.flat(&stage.output), std::slice::from_ref(flat));
    let row = Row {
        axis: &inner.var,
        length: &inner.extent,
        lanes,
        buffer,
        indices,
        map: &none,
        tail: Tail::Masked,
        ahead: None,
    };
    let done = mul(&count, int(factor));
    let behind = row.emit(cx, &done, &sub(&inner.extent, &done), value)?;
    let narrow = row.emit(cx, &int(0), &inner.extent, value)?;
    Ok(Stmt::if_else(ge(count, int(lanes)), Stmt::seq([tiles, behind]), narrow))
}

/// One vector of every phase, stored in turn from flat index `start` on.
fn tile(
    cx: &mut Cx,
    stage: &Stage,
    whole: &Ref<Var>,
    phases: &[PrimExpr],
    at: &Ref<Var>,
    start: PrimExpr,
    lanes: i64,
) -> Result<Stmt, Refusal> {
    let factor = phases.len() as i64;
    let interleaved = Buffer::scoped("interleaved", stage.output.dtype, [int(factor * lanes)], "local");
    let mut list = vec![Stmt::alloc(&interleaved)];
    for (r, phase) in phases.iter().enumerate() {
        let vector = Lanes::new(&mut cx.views, whole, PrimExpr::from(at), lanes, None, &VarMap::new()).vector(phase)?;
        list.push(Stmt::store(&interleaved, [ramp(int(r as i64), int(factor), lanes)], splat(vector, lanes)));
    }
    let buffer = cx.views.flat(&stage.output);
    for j in 0..factor {
        let value = load(&interleaved, [ramp(int(j * lanes), int(1), lanes)]);
        let indices = vec![ramp(add(&start, int(j * lanes)), int(1), lanes)];
        list.push(Ref::new(BufferStore { buffer: buffer.clone(), value, indices, predicate: None }).into());
    }
    Ok(Stmt::seq(list))
}

/// The constant by which an expression divides an axis, if there is one and it is small.
fn factor_of(e: &PrimExpr, axis: &Ref<Var>) -> Option<i64> {
    struct Search<'a> {
        axis: &'a Ref<Var>,
        found: Vec<i64>,
    }
    impl PrimVisitor for Search<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Binary(n) = e
                && matches!(n.op, BinaryOp::FloorDiv | BinaryOp::FloorMod)
                && uses(&n.a, self.axis)
            {
                self.found.push(n.b.as_int().unwrap_or(0));
            }
            self.walk_prim(e);
        }
    }
    let mut search = Search { axis, found: Vec::new() };
    search.visit_prim(e);
    let first = search.found.first().copied().filter(|f| (2..=LARGEST).contains(f))?;
    search.found.iter().all(|f| *f == first).then_some(first)
}

/// Executes divisions whose axis has a coefficient that the divisor divides.
struct Reduce<'a> {
    whole: &'a Ref<Var>,
}

impl PrimMutator for Reduce<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        if let PrimExpr::Binary(n) = e
            && let Some(divisor) = n.b.as_int().filter(|d| *d > 0)
            && let Some((step, rest)) = linear(&n.a, self.whole)
            && let Some(step) = step.as_int().filter(|s| s % divisor == 0 && *s != 0)
        {
            match n.op {
                BinaryOp::FloorDiv => {
                    return mul(PrimExpr::from(self.whole), int(step / divisor)) + floordiv(rest, int(divisor));
                }
                BinaryOp::FloorMod => return floormod(rest, int(divisor)),
                _ => {}
            }
        }
        let made = self.remake_prim(e);
        match choice(&made).and_then(|(condition, t, f)| Some((condition.as_int()?, t, f))) {
            Some((holds, t, f)) => {
                if holds != 0 {
                    t.clone()
                } else {
                    f.clone()
                }
            }
            None => made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_by_the_factor_leaves_the_whole_part_and_the_phase() {
        let whole = Var::dim("whole");
        let x = PrimExpr::from(&whole) * 2 + int(1);
        let mut reduce = Reduce { whole: &whole };
        assert_eq!(reduce.mutate_prim(&floordiv(x.clone(), int(2))).as_var(), Some(&whole));
        assert!(reduce.mutate_prim(&floormod(x, int(2))).is_int(1));
    }

    #[test]
    fn two_factors_are_none() {
        let x = Var::dim("x");
        let both = floordiv(PrimExpr::from(&x), int(2)) + floormod(PrimExpr::from(&x), int(3));
        assert_eq!(factor_of(&both, &x), None);
        assert_eq!(factor_of(&floordiv(PrimExpr::from(&x), int(2)), &x), Some(2));
    }
}
