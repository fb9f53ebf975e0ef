//! Lazy choices within a value, lifted to its root, where [`Row`](super::row::Row) decides them outside of the loop.
//!
//! ```text
//! max(if_then_else(c < 64, A[c, x], B[c - 64, x]) * s[c], 0)
//! ```
//! becomes
//! ```text
//! if_then_else(c < 64, max(A[c, x] * s[c], 0), max(B[c - 64, x] * s[c], 0))
//! ```
//!
//! A choice that stays inside is made of masks: each lane pays for all sides, and a concatenation of many tensors has as many.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, PrimMutator, PrimVisitor, call};

use super::super::Stage;
use super::super::affine::{loads, uses, uses_any};
use super::row::{choice, conjuncts, interval};

/// Sides that a value is written for at most: each is a loop of its own.
const MOST_SIDES: usize = 64;
/// Sides of a value from which choices that are the same for all elements stay inside: each side is a nest.
const MOST_NESTS: usize = 4;
/// Rows shorter than so many vectors are not cut where a choice moves along them: the pieces would be parts of vectors.
const FEWEST_VECTORS: i64 = 4;

/// A value whose root is the first of its choices that a row decides outside of its loop; `None` where it has none, or too many sides.
/// `extent` is the length of the row where it is known, and `lanes` of a vector.
pub fn lifted(axis: &Ref<Var>, value: &PrimExpr, extent: Option<i64>, lanes: i64) -> Option<PrimExpr> {
    let cut = extent.is_none_or(|n| n >= FEWEST_VECTORS * lanes).then_some(axis);
    let mut search = Search { axes: &[axis], cut, bound: Vec::new(), found: None };
    search.visit_prim(value);
    let condition = search.found?;
    if sides(value) > MOST_SIDES {
        return None;
    }
    let [t, f] = [true, false].map(|holds| decided(value, &condition, holds));
    Some(call(value.dtype(), "tirx.if_then_else", vec![condition.clone(), t, f]))
}

/// A condition of values that is the same for all elements along an axis, as the root of which each value may be decided on both sides.
pub(super) fn condition_of<'e>(axis: &Ref<Var>, values: impl IntoIterator<Item = &'e PrimExpr>) -> Option<PrimExpr> {
    let mut search = Search { axes: &[axis], cut: None, bound: Vec::new(), found: None };
    values.into_iter().for_each(|value| search.visit_prim(value));
    search.found
}

/// The condition of a choice within a stage's value that is the same for all of its elements; `None` where there is none, or where sides
/// are many. Each side may be a nest of its own.
pub(super) fn same_for_all(stage: &Stage) -> Option<PrimExpr> {
    let axes: Vec<&Ref<Var>> = stage.spatial.iter().chain(&stage.reduce).map(|axis| &axis.var).collect();
    let mut search = Search { axes: &axes, cut: None, bound: Vec::new(), found: None };
    search.visit_prim(&stage.value);
    search.found.filter(|condition| loads(condition).is_empty() && sides(&stage.value) <= MOST_NESTS)
}

/// A value where a condition holds, or where it does not.
pub(super) fn decided(value: &PrimExpr, condition: &PrimExpr, holds: bool) -> PrimExpr {
    Decide { condition, holds }.mutate_prim(value)
}

/// How many values there are once every choice is decided.
fn sides(value: &PrimExpr) -> usize {
    struct Count(usize);
    impl PrimVisitor for Count {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match choice(e) {
                Some((_, t, f)) => self.0 = self.0.saturating_mul(sides(t).saturating_add(sides(f))),
                None => self.walk_prim(e),
            }
        }
    }
    let mut count = Count(1);
    count.visit_prim(value);
    count.0
}

/// Looks for the condition of a choice that may be made outside of the loops over some axes.
struct Search<'a> {
    axes: &'a [&'a Ref<Var>],
    /// The axis, if it may be cut where a condition changes along it.
    cut: Option<&'a Ref<Var>>,
    /// Names of `let`s around the place where the walk is.
    bound: Vec<Ref<Var>>,
    found: Option<PrimExpr>,
}

impl PrimVisitor for Search<'_> {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if self.found.is_some() {
            return;
        }
        match (e, choice(e)) {
            // A choice within a side may hold only where that side is taken.
            (_, Some((condition, _, _))) => {
                let moves = |c: &PrimExpr| self.axes.iter().any(|axis| uses(c, axis));
                let moving: Vec<_> = conjuncts(condition).into_iter().filter(|c| moves(c)).collect();
                let decided = moving.is_empty() || self.cut.is_some_and(|axis| interval(axis, &moving).is_some());
                if decided && !uses_any(condition, &self.bound) {
                    self.found = Some(condition.clone());
                }
            }
            (PrimExpr::Let(n), None) => {
                self.visit_prim(&n.value);
                self.bound.push(n.var.clone());
                self.visit_prim(&n.body);
                self.bound.pop();
            }
            (_, None) => self.walk_prim(e),
        }
    }
}

/// Takes one side of every choice with a condition.
struct Decide<'a> {
    condition: &'a PrimExpr,
    holds: bool,
}

impl PrimMutator for Decide<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match choice(e) {
            Some((condition, t, f)) if condition == self.condition => self.mutate_prim(if self.holds { t } else { f }),
            _ => self.remake_prim(e),
        }
    }
}
