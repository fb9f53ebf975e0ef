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
use super::super::read_ahead::ReadAhead;
use super::super::{Cx, Reduce, Refusal, Stage};
use super::elementwise::widest;
use super::{merge, reduction, row};
use crate::Stmt;

/// The row, in the words of the reduction.
pub struct KeptRow<'a> {
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
    ahead: Option<&'a ReadAhead>,
}

/// Makes one nest of a map and the reduction of its row.
pub fn apply(cx: &mut Cx, made: &Stage, reduce: &Reduce) -> Result<Stmt, Refusal> {
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
    let lanes = cx.machine.lanes(widest(&made)).min(cx.machine.lanes(widest(&reduce.stage)));
    if axis.extent.as_int().is_some_and(|n| n < lanes) {
        return Err(Refusal::new("the row is shorter than a vector"));
    }
    let names: VarMap = [(own.var.clone(), PrimExpr::from(&axis.var))].into_iter().collect();
    let kept = KeptRow {
        var: Var::prim("kept", made.output.dtype),
        indices: made.indices.iter().map(|i| substitute(i, &names)).collect(),
        value: substitute(&made.value, &names),
        buffer: made.output.clone(),
        tail: made.tail,
        ahead: made.ahead.as_deref(),
    };
    let mut take = Take { kept: &kept, place: flat_index(&kept.buffer, &kept.indices), taken: false };
    let term = take.mutate_prim(&reduce.stage.value);
    if !take.taken || loads(&term).iter().any(|l| l.buffer.data == kept.buffer.data) {
        return Err(Refusal::new("the reduction reads other elements than those that are made"));
    }
    let stage = Stage { value: term, ..reduce.stage.clone() };
    reduction::along(cx, &Reduce { stage, ..reduce.clone() }, axis, lanes, Some(&kept))
}

impl KeptRow<'_> {
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
            self.ahead.map(|ahead| ahead.of(cx, (axis, &base), lanes, &self.value, &self.indices)).unwrap_or_default();
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
    kept: &'a KeptRow<'a>,
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
