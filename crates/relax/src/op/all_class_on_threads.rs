//! Suppression for each class where threads share the work: what `all_class_nms` does with a heap, in steps that threads can share.
//!
//! ```text
//! order[i, c]         the boxes of each image and class, the best first
//! ranked, values      boxes and scores in that order
//! taken[i, c, j]      1 for those that count; each in turn that is kept drops those behind it that overlap it
//! rows[p]             how many are taken up to each place, over all images and classes, or over those of an image
//! selected[r]         the first place with more than r taken up to it
//! ```
//!
//! All boxes of a class are sorted, also those behind the last one that is looked at: a heap is one thread's.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::{Stmt, te};

use super::all_class_nms::{Format, first_load};
use super::detection::overlap;
use super::loops::{Cell, axes, nest};
use super::manipulate::reshape_tensor;
use super::scan::running;
use super::sort::order;
use super::window::all;

const I64: DataType = DataType::int(64);

/// The kernel.
pub(super) fn per_class(t: &[te::Tensor], format: Format) -> Vec<te::Tensor> {
    let (boxes, scores) = (&t[0], &t[1]);
    let [batch, classes, count] = [0, 1, 2].map(|i| scores.shape()[i].clone());
    let order = order(scores, 2, true, None);
    let place = |at: &[PrimExpr]| order.at(&at[..3]);
    let values =
        te::compute("ranked_scores", scores.shape(), |at| scores.at(&[at[0].clone(), at[1].clone(), place(at)]));
    let corners = [batch.clone(), classes.clone(), count.clone(), PrimExpr::from(4)];
    let ranked = te::compute("ranked_boxes", corners, |at| boxes.at(&[at[0].clone(), place(at), at[3].clone()]));
    let taken = taken(&ranked, &values, &t[2..]);
    // Rows are counted over everything, or image by image.
    let dims = match format {
        Format::Onnx => [PrimExpr::from(1), &batch * &classes * &count],
        Format::TensorFlow => [batch.clone(), &classes * &count],
    };
    let add = |a: PrimExpr, b: PrimExpr| a + b;
    let rows = running(&reshape_tensor("T_taken", &taken, &dims), 1, I64, false, 0.0, add);
    let found = found(&rows, &dims);
    let last = |group: &PrimExpr| {
        let total = rows.at(&[group.clone(), &dims[1] - 1]);
        prim::if_then_else(prim::gt(&dims[1], 0), total, constant(I64, 0.0))
    };
    // Where a row comes from: its group, class and place in the order.
    let of_row = |group: &PrimExpr, row: &PrimExpr| {
        let at = found.at(&[group.clone(), row.clone()]);
        let (image, rest) = match format {
            Format::Onnx => (prim::floordiv(&at, &classes * &count), prim::floormod(&at, &classes * &count)),
            Format::TensorFlow => (group.clone(), at),
        };
        [image, prim::floordiv(&rest, &count), prim::floormod(rest, &count)]
    };
    match format {
        Format::Onnx => {
            let selected = te::compute("selected", [dims[1].clone(), PrimExpr::from(3)], |at| {
                let row = of_row(&PrimExpr::from(0), &at[0]);
                let place = order.at(&row);
                let [image, class, _] = row;
                prim::select(prim::eq(&at[1], 0), image, prim::select(prim::eq(&at[1], 1), class, place))
            });
            vec![selected, te::compute("total", [1i64], |_| last(&PrimExpr::from(0)))]
        }
        Format::TensorFlow => {
            let counts = |at: &[PrimExpr]| prim::lt(at[1].clone(), last(&at[0]));
            let selected = te::compute("selected", [batch.clone(), dims[1].clone(), PrimExpr::from(2)], |at| {
                let row = of_row(&at[0], &at[1]);
                let value = prim::select(prim::eq(&at[2], 0), row[1].clone(), order.at(&row));
                prim::if_then_else(counts(at), value, constant(I64, 0.0))
            });
            let f32 = DataType::float(32);
            let kept = te::compute("selected_scores", &dims, |at| {
                let value = cast(f32, values.at(&of_row(&at[0], &at[1])));
                prim::if_then_else(counts(at), value, constant(f32, 0.0))
            });
            vec![selected, kept, te::compute("total", [batch], |at| last(&at[0]))]
        }
    }
}

/// Which boxes are kept, in the order of each class.
fn taken(ranked: &te::Tensor, values: &te::Tensor, limits: &[te::Tensor]) -> te::Tensor {
    let dims = values.shape().to_vec();
    let count = dims[2].clone();
    let [most, overlap_limit, lowest] = [0, 1, 2].map(|i| first_load(&limits[i]));
    let inputs: Vec<te::Tensor> = [ranked, values].into_iter().chain(limits).cloned().collect();
    let outs = [("taken".to_string(), dims.clone(), I64), ("kept".to_string(), vec![PrimExpr::from(1)], I64)];
    let mut outs = te::extern_stage("suppress", &inputs, outs, |source, target| {
        let kept = Cell::new(&target[1], 0);
        let (vars, class) = axes(&dims[..2], "i");
        let at = |j: &PrimExpr| [class[0].clone(), class[1].clone(), j.clone()];
        let is_taken = |j: &PrimExpr| prim::eq(prim::load(&target[0], at(j)), 1);
        let drop = |j: &PrimExpr| Stmt::store(&target[0], at(j), constant(I64, 0.0));
        let corners = |j: &PrimExpr| {
            [0, 1, 2, 3]
                .map(|k| prim::load(&source[0], [class[0].clone(), class[1].clone(), j.clone(), PrimExpr::from(k)]))
        };
        let start = Stmt::each("j", count.clone(), |j| {
            let counts = prim::gt(prim::load(&source[1], at(j)), cast(values.dtype(), lowest(&source[4])));
            Stmt::store(&target[0], at(j), cast(I64, counts))
        });
        let sweep = Stmt::each("j", count.clone(), |j| {
            let others = Stmt::each("k", count.clone(), |k| {
                let limit = cast(ranked.dtype(), overlap_limit(&source[3]));
                let meets = prim::ge(overlap(corners(k), corners(j)), limit);
                Stmt::when(all([prim::gt(k, j), is_taken(k)]), Stmt::when(meets, drop(k)))
            });
            let room = prim::lt(kept.get(), cast(I64, most(&source[2])));
            Stmt::when(is_taken(j), Stmt::if_else(room, Stmt::seq([kept.next(), others]), drop(j)))
        });
        nest(&vars, &dims[..2], Stmt::seq([start, kept.set(0), sweep]))
    });
    outs.swap_remove(0)
}

/// For each number of rows the first place up to which there are more; the last place where there is none.
fn found(rows: &te::Tensor, dims: &[PrimExpr; 2]) -> te::Tensor {
    let outs = [("found".to_string(), dims.to_vec(), I64), ("bounds".to_string(), vec![PrimExpr::from(2)], I64)];
    let steps = dims[1].as_int().map_or(63, |n| i64::from(64 - n.max(0).leading_zeros()));
    let mut outs = te::extern_stage("find_rows", std::slice::from_ref(rows), outs, |source, target| {
        let (low, high) = (Cell::new(&target[1], 0), Cell::new(&target[1], 1));
        let (vars, at) = axes(dims, "i");
        let middle = prim::max(prim::min(prim::floordiv(low.get() + high.get(), 2), &dims[1] - 1), 0);
        let beyond = prim::gt(prim::load(&source[0], [at[0].clone(), middle.clone()]), &at[1]);
        let halve = Stmt::if_else(beyond, high.set(middle.clone()), low.set(middle + 1));
        let search = Stmt::each("step", steps, |_| Stmt::when(prim::lt(low.get(), high.get()), halve));
        let store = Stmt::store(&target[0], at, low.get());
        nest(&vars, dims, Stmt::seq([low.set(0), high.set(&dims[1] - 1), search, store]))
    });
    outs.swap_remove(0)
}
