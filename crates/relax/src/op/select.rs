//! The first few elements of each row in an order, without sorting the others.
//!
//! The elements pass by once. Those that come before the last of the `k` first ones so far take their place among them, which is
//! rare in a long row: of `n` elements in random order about `k ln(n / k)`.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::{Stmt, te};

use super::loops::{axes, nest};
use super::sort::before;

/// Values and places (as int64) of the `k` first elements along an axis, in order. Equal elements keep their order, and NaN counts as
/// larger than every number. There must be as many elements.
pub fn first_in_order(x: &te::Tensor, axis: usize, k: i64, descending: bool) -> [te::Tensor; 2] {
    let wide = DataType::int(64);
    let mut rows = x.shape().to_vec();
    let size = rows.remove(axis);
    let mut dims = x.shape().to_vec();
    dims[axis] = PrimExpr::from(k);
    let outs = [("first".to_string(), dims.clone(), x.dtype()), ("places".to_string(), dims, wide)];
    let outs = te::extern_stage("select", std::slice::from_ref(x), outs, |source, target| {
        let [first, places] = target else { return Stmt::nop() };
        let (vars, row) = axes(&rows, "i");
        let at = |k: &PrimExpr| {
            let mut index = row.clone();
            index.insert(axis, k.clone());
            index
        };
        let put = |to: &PrimExpr, value: PrimExpr, from: PrimExpr| {
            Stmt::seq([Stmt::store(first, at(to), value), Stmt::store(places, at(to), from)])
        };
        // Puts an element last, and then in front of its neighbour as long as it comes before that.
        let enter = |t: &PrimExpr, last: PrimExpr| {
            let value = prim::load(&source[0], at(t));
            let ascent = Stmt::each("step", last.clone(), |step| {
                let place = &last - step;
                let above = &place - 1;
                let neighbour = prim::load(first, at(&above));
                let swap = Stmt::seq([
                    put(&place, neighbour.clone(), prim::load(places, at(&above))),
                    put(&above, value.clone(), t.clone()),
                ]);
                Stmt::if_else(before(&value, &neighbour, descending), swap, Stmt::break_loop())
            });
            Stmt::seq([put(&last, value.clone(), t.clone()), ascent])
        };
        let filled = Stmt::each("t", PrimExpr::from(k), |t| enter(t, t.clone()));
        let passed = Stmt::each("t", size.clone() - k, |t| {
            let t = t + k;
            let comes_before =
                before(&prim::load(&source[0], at(&t)), &prim::load(first, at(&(k - 1).into())), descending);
            Stmt::when(comes_before, enter(&t, (k - 1).into()))
        });
        nest(&vars, &rows, Stmt::seq([filled, passed]))
    });
    [outs[0].clone(), outs[1].clone()]
}
