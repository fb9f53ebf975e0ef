//! A row that is stored, and reduced while it is made.
//!
//! Of pieces that share rows, a map whose row the next piece reduces:
//!
//! ```text
//! for k: E[k] = exp(A[k] - M)               for t:  e = exp(A[t*32 ..] - M);  E[t*32 ..] = e;  acc[..] += e
//! for k: S = S + E[k]              ->       S = all lanes of acc
//! ```
//!
//! The sum takes each vector from its register. Read back from memory, the last one of a row would wait for its masked
//! store to reach the cache, and a long row would be read from the second-level cache again.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, PrimMutator, VarMap, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{flat_index, loads, same};
use super::super::lanes::Lanes;
use super::super::nest::{Tail, Tile};
use super::super::parameters::Choices;
use super::super::prefetch::Prefetch;
use super::super::{Axis, Cx, Machine, Reduce, Refusal, Stage};
use super::elementwise::widest;
use super::reduction::{Accumulators, VECTORS, term_vectors};
use super::rule::{self, Rule};
use super::{merge, reduction, row};
use crate::Stmt;

/// The row, in the words of the reduction.
pub struct CachedRow<'a> {
    /// Stands for an element of it in the reduction's term.
    var: Ref<Var>,
    /// Where it is stored.
    buffer: Ref<Buffer>,
    /// At which element, over the reduction's axis.
    indices: Vec<PrimExpr>,
    /// An element of it.
    value: PrimExpr,
    /// How it ends.
    tail: Tail,
    /// What is asked for on the way.
    ahead: Option<&'a Prefetch>,
}

/// The rule for a map and the reduction of its row.
pub struct Kept;

/// A map and a reduction with their axes merged.
pub struct Found {
    made: Stage,
    /// The reduction, with the row's name in its term.
    reduce: Reduce,
    axis: Axis,
    /// The row's name.
    var: Ref<Var>,
}

impl Rule for Kept {
    type Work = (Stage, Reduce);
    type Found<'w> = Found;
    type Decided = Accumulators;

    fn find(machine: &Machine, (made, reduce): &(Stage, Reduce)) -> Result<Found, Refusal> {
        find(machine, made, reduce)
    }

    fn decide(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Result<Accumulators, Refusal> {
        let lanes = rule::lanes(choices, fitting(machine, &found.made, &found.reduce));
        // An exponential alone fills sixteen registers.
        let is_full = machine.deterministic || machine.vector_registers < 32;
        let vectors = term_vectors(choices, if is_full { 1 } else { VECTORS });
        Ok(Accumulators { lanes, vectors })
    }

    fn emit(cx: &mut Cx, found: &Found, decided: &Accumulators) -> Result<Stmt, Refusal> {
        let Found { made, reduce, axis, var } = found;
        let kept = CachedRow::of(made, axis, var.clone());
        reduction::along(cx, reduce, axis, *decided, Some(&kept))
    }
}

/// Lanes of a vector of both.
fn fitting(machine: &Machine, made: &Stage, reduce: &Reduce) -> i64 {
    machine.sum_lanes(widest(made)).min(machine.sum_lanes(widest(&reduce.stage)))
}

fn find(machine: &Machine, made: &Stage, reduce: &Reduce) -> Result<Found, Refusal> {
    let (made, reduce) = (merge::run(made), merge::reduce(reduce));
    let ([own], [axis]) = (made.spatial.as_slice(), reduce.stage.reduce.as_slice()) else {
        return Err(Refusal::new("the row has several axes"));
    };
    if !reduce.stage.spatial.is_empty() || !same(&own.extent, &axis.extent) {
        return Err(Refusal::new("the reduction is not one of the whole row"));
    }
    if row::has_choice(&made.value) {
        return Err(Refusal::new("parts of the row differ"));
    }
    let lanes = fitting(machine, &made, &reduce);
    if axis.extent.as_int().is_some_and(|n| n < lanes) {
        return Err(Refusal::new("the row is shorter than a vector"));
    }
    let (axis, var) = (axis.clone(), Var::prim("kept", made.output.dtype));
    let kept = CachedRow::of(&made, &axis, var.clone());
    let mut take = Take { kept: &kept, place: flat_index(&kept.buffer, &kept.indices), taken: false };
    let term = take.mutate_prim(&reduce.stage.value);
    if !take.taken || loads(&term).iter().any(|l| l.buffer.data == kept.buffer.data) {
        return Err(Refusal::new("the reduction reads other elements than those that are made"));
    }
    let stage = Stage { value: term, ..reduce.stage.clone() };
    Ok(Found { reduce: Reduce { stage, ..reduce }, axis, var, made })
}

impl<'a> CachedRow<'a> {
    /// The row of a map over one axis, in the words of a reduction over another.
    fn of(made: &'a Stage, axis: &Axis, var: Ref<Var>) -> CachedRow<'a> {
        let names: VarMap = made.spatial.iter().map(|own| (own.var.clone(), PrimExpr::from(&axis.var))).collect();
        CachedRow {
            var,
            indices: made.indices.iter().map(|i| substitute(i, &names)).collect(),
            value: substitute(&made.value, &names),
            buffer: made.output.clone(),
            tail: made.tail,
            ahead: made.ahead.as_deref(),
        }
    }

    /// Makes and stores one vector of a tile; the names under which the reduction finds it.
    pub fn vector(
        &self,
        cx: &mut Cx,
        tile: &Tile,
        at: i64,
        axis: &Ref<Var>,
        lanes: i64,
    ) -> Result<(Stmt, VarMap), Refusal> {
        let none = VarMap::new();
        let base = tile.at(at, lanes);
        let ahead =
            self.ahead.map(|ahead| ahead.of(cx, axis, &base, lanes, &self.value, &self.indices)).unwrap_or_default();
        let value =
            Lanes::new(&mut cx.views, axis, base.clone(), lanes, tile.mask_of(at), &none).vector(&self.value)?;
        let vector = Var::prim("kept", value.dtype());
        let names: VarMap = [(self.var.clone(), PrimExpr::from(&vector))].into_iter().collect();
        let store = Lanes::new(&mut cx.views, axis, base, lanes, tile.mask_of(at), &names);
        let store = store.store_row(self.tail, &self.buffer, &self.indices, &PrimExpr::from(&self.var))?;
        Ok((Stmt::seq(ahead.into_iter().chain([Stmt::bind(vector, value), store])), names))
    }
}

/// Puts the row's name where a reduction reads the row.
struct Take<'a> {
    kept: &'a CachedRow<'a>,
    place: PrimExpr,
    taken: bool,
}

impl PrimMutator for Take<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(l)
                if l.buffer.data == self.kept.buffer.data
                    && l.buffer.dtype == self.kept.buffer.dtype
                    && same(&flat_index(&l.buffer, &l.indices), &self.place) =>
            {
                self.taken = true;
                PrimExpr::from(&self.kept.var)
            }
            _ => self.remake_prim(e),
        }
    }
}
