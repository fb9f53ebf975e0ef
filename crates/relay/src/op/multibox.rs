//! Boxes of a detector: anchors moved by offsets, each with its best class, those that count in front.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::boxes::floats;
use super::cx::{LowerCx, Lowered, attrs, fail};
use super::manipulate::PLACES;

const INT: DataType = DataType::int(32);

/// A tuple: rows `(class, score, left, top, right, bottom)`, and how many of them count. Rows behind those are -1, where the reference
/// leaves what was there.
pub(super) fn transform_loc(cx: &mut LowerCx<'_>) -> Lowered {
    let (scores, offsets, anchors) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let shape = cx.shape(&scores)?;
    let [batch, classes, count] = &shape[..] else {
        return fail("vision.multibox_transform_loc takes scores (batch, classes, anchors)");
    };
    let first = i64::from(!cx.bool("keep_background"));
    let Some(classes) = classes.as_int().filter(|n| *n > first) else {
        return fail("vision.multibox_transform_loc needs a class beside the background");
    };
    let kept = attrs([("axes", vec![1].into()), ("begin", vec![first].into()), ("end", vec![classes].into())]);
    let kept = cx.relay("strided_slice", vec![scores], kept)?;
    let best = cx.emit("max", [kept.clone()], attrs([("axis", vec![1].into())]))?;
    let class = cx.emit("argmax", [kept], attrs([("axis", 1.into())]))?;
    let offsets = cx.reshape(offsets, vec![batch.clone(), count.clone(), prim::int(4)])?;
    let (batch, count) = (batch.clone(), count.clone());
    let rows = decoded(cx, [best, class, offsets, anchors], first, [batch.clone(), count.clone()])?;
    // Those that do not count have the class -1, and go behind the others, whose order stays.
    let parts = cx.builder.emit_te("multibox_flags", vec![rows.clone()], |t| {
        let rows = t[0].clone();
        let out = [batch.clone(), count.clone()];
        vec![te::compute("T_multibox_flags", out, |at: &[PrimExpr]| {
            let class = rows.at(&[at[0].clone(), at[1].clone(), prim::int(0)]);
            let zero = prim::constant(class.dtype(), 0.0);
            prim::select(prim::lt(&class, zero), prim::int_of(INT, 1), prim::int_of(INT, 0))
        })]
    })?;
    let order = cx.emit("argsort", [parts.clone()], attrs([("axis", 1.into()), ("dtype", INT.into())]))?;
    let sorted = cx.builder.emit_te("multibox_sorted", vec![rows, order], |t| {
        let (rows, order) = (t[0].clone(), t[1].clone());
        let out = [batch.clone(), count.clone(), prim::int(6)];
        vec![te::compute("T_multibox_sorted", out, |at: &[PrimExpr]| {
            let from = prim::cast(PLACES, order.at(&at[..2]));
            let from = prim::max(prim::min(from, count.clone() - 1), prim::int(0));
            rows.at(&[at[0].clone(), from, at[2].clone()])
        })]
    })?;
    let gone = cx.emit("sum", [parts], attrs([("axis", vec![1].into())]))?;
    let valid = cx.builder.emit_te("multibox_count", vec![gone], |t| {
        let gone = t[0].clone();
        vec![te::compute("T_multibox_count", [batch.clone()], |at: &[PrimExpr]| {
            prim::cast(INT, count.clone()) - gone.at(at)
        })]
    })?;
    Ok(rx::Expr::tuple([sorted, valid]))
}

/// A row of each anchor; all of -1 where it shows the background only.
fn decoded(cx: &mut LowerCx<'_>, parts: [rx::Expr; 4], first: i64, dims: [PrimExpr; 2]) -> Lowered {
    let [best, class, offsets, anchors] = parts;
    let dtype = cx.dtype(&offsets)?;
    let (clip, threshold, variances) = (cx.bool("clip"), cx.float("threshold")?, floats(cx, "variances")?);
    let [vx, vy, vw, vh] = variances[..] else { return fail("vision.multibox_transform_loc: variances are four") };
    let float = move |value: f64| prim::constant(dtype, value);
    let sizes = cx.builder.emit_te("multibox_sizes", vec![offsets.clone()], |t| {
        let offsets = t[0].clone();
        vec![te::compute("T_multibox_sizes", offsets.shape().to_vec(), |at: &[PrimExpr]| {
            let factor = prim::select(prim::eq(at[2].clone(), prim::int(2)), float(vw), float(vh));
            offsets.at(at) * factor
        })]
    })?;
    let sizes = cx.op("exp", [sizes])?;
    let [batch, count] = dims;
    Ok(cx.builder.emit_te("multibox_rows", vec![best, class, offsets, sizes, anchors], |t| {
        let [best, class, offsets, sizes, anchors] = [0, 1, 2, 3, 4].map(|i| t[i].clone());
        vec![te::compute("T_multibox_rows", [batch, count, prim::int(6)], |at: &[PrimExpr]| {
            let place = &at[..2];
            let number = |of: &te::Tensor, i: i64| of.at(&[at[0].clone(), at[1].clone(), prim::int(i)]);
            let anchor = |i: i64| anchors.at(&[prim::int(0), at[1].clone(), prim::int(i)]);
            let score = best.at(place);
            let edge = |axis: i64, is_last: bool| {
                let extent = anchor(axis + 2) - anchor(axis);
                let middle = (anchor(axis) + anchor(axis + 2)) * float(0.5);
                let factor = float(if axis == 0 { vx } else { vy });
                let middle = number(&offsets, axis) * factor * extent.clone() + middle;
                let half = number(&sizes, axis + 2) * extent * float(0.5);
                let edge = if is_last { middle + half } else { middle - half };
                if clip { prim::max(prim::min(edge, float(1.0)), float(0.0)) } else { edge }
            };
            let class = prim::cast(PLACES, class.at(place)) + first;
            let low = prim::lt(&score, prim::constant(score.dtype(), threshold));
            let class = prim::select(prim::and(prim::gt(&class, prim::int(0)), low), prim::int(0), class);
            let counts = prim::ge(&class, prim::int(first));
            let numbers = [
                prim::cast(dtype, class - first),
                prim::cast(dtype, score),
                edge(0, false),
                edge(1, false),
                edge(0, true),
            ];
            let chosen = numbers.into_iter().enumerate().rev().fold(edge(1, true), |other, (i, number)| {
                prim::select(prim::eq(at[2].clone(), prim::int(i as i64)), number, other)
            });
            prim::select(counts, chosen, float(-1.0))
        })]
    })?)
}
