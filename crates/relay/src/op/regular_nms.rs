//! Boxes of each class without those that overlap better ones, and of all that are left the best: what TFLite calls its regular
//! suppression.
//!
//! Boxes are put in order by class, and each is kept unless one that was kept overlaps it. The best of those that were kept
//! come from a second sort, which is stable as the first, so that of two equal scores the lower class comes first.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::{Stmt, te};

use super::cx::{LowerCx, Lowered, attrs, fail};
use super::manipulate::PLACES;

const INT: DataType = DataType::int(32);

/// What is known when the program is compiled.
struct Sizes {
    batch: PrimExpr,
    boxes: PrimExpr,
    classes: i64,
    /// The most of a class, and of all.
    of_class: i64,
    of_all: i64,
}

/// A tuple: boxes, their classes as float32, their scores, and how many there are of each image; zeros behind those.
pub(super) fn regular_non_max_suppression(cx: &mut LowerCx<'_>) -> Lowered {
    let (boxes, scores) = (cx.arg(0)?, cx.arg(1)?);
    let shape = cx.shape(&scores)?;
    let (box_shape, classes) = (cx.shape(&boxes)?, cx.int("num_classes")?);
    let ([batch, count, given], [_, _, corners]) = (&shape[..], &box_shape[..]) else {
        return fail(
            "vision.regular_non_max_suppression takes boxes (batch, boxes, 4) and scores (batch, boxes, classes)",
        );
    };
    let first = given.as_int().map(|given| given - classes).filter(|first| *first >= 0 && classes > 0);
    let Some(first) = first else {
        return fail(format!("vision.regular_non_max_suppression: {classes} classes, and scores of {given}"));
    };
    if corners.as_int() != Some(4) || count.as_int() == Some(0) {
        return fail("vision.regular_non_max_suppression takes at least one box, and boxes of four numbers");
    }
    let (of_class, of_all) = (cx.int("max_detections_per_class")?, cx.int("max_detections")?);
    if of_class < 0 || of_all < 0 {
        return fail("vision.regular_non_max_suppression: the numbers of detections are not negative");
    }
    let sizes = Sizes { batch: batch.clone(), boxes: count.clone(), classes, of_class, of_all };
    let dims = [batch.clone(), prim::int(classes), count.clone()];
    let scores = cx.builder.emit_te("scores_by_class", vec![scores], |t| {
        let scores = t[0].clone();
        vec![te::compute("T_scores_by_class", dims, |at: &[PrimExpr]| {
            scores.at(&[at[0].clone(), at[2].clone(), at[1].clone() + first])
        })]
    })?;
    let descending = |axis: i64| attrs([("axis", axis.into()), ("descending", true.into()), ("dtype", INT.into())]);
    let order = cx.emit("argsort", [scores.clone()], descending(2))?;
    let kept = kept(cx, &sizes, [&boxes, &scores, &order])?;
    let rated = rated(cx, &sizes, [&scores, &order, &kept])?;
    let best = cx.emit("argsort", [rated], descending(1))?;
    let total = cx.emit("sum", [kept], attrs([("axis", vec![1, 2].into())]))?;
    results(cx, &sizes, [boxes, scores, order, best, total])
}

/// An index that a tensor holds, within its dimension.
fn inside(place: PrimExpr, extent: &PrimExpr) -> PrimExpr {
    prim::max(prim::min(prim::cast(PLACES, place), extent.clone() - 1), prim::int(0))
}

/// By class and place in the order: 1 where the box is kept.
fn kept(cx: &mut LowerCx<'_>, sizes: &Sizes, parts: [&rx::Expr; 3]) -> Lowered {
    let (overlap, least) = (cx.float("iou_threshold")?, cx.float("score_threshold")?);
    let Sizes { batch, boxes: count, classes, of_class, .. } = sizes;
    let outs = [
        ("kept".to_string(), vec![batch.clone(), prim::int(*classes), count.clone()], INT),
        // How many were kept so far, and whether one of them overlaps the box.
        ("state".to_string(), vec![prim::int(2)], INT),
    ];
    let (none, one) = (|| prim::int_of(INT, 0), || prim::int_of(INT, 1));
    Ok(cx.builder.emit_te("regular_nms", parts.map(Clone::clone).to_vec(), |inputs| {
        let mut outs = te::extern_stage("regular_nms", inputs, outs, |source, target| {
            let (kept, state) = (&target[0], &target[1]);
            let set = |cell: i64, value: PrimExpr| Stmt::store(state, [prim::int(cell)], value);
            let get = |cell: i64| prim::load(state, [prim::int(cell)]);
            Stmt::each("b", batch.clone(), |b| {
                Stmt::each("c", *classes, |c| {
                    let at = |k: &PrimExpr| [b.clone(), c.clone(), k.clone()];
                    let place = |k: &PrimExpr| inside(prim::load(&source[2], at(k)), count);
                    let corners = |k: &PrimExpr| {
                        let place = place(k);
                        [0, 1, 2, 3].map(|i| prim::load(&source[0], [b.clone(), place.clone(), prim::int(i)]))
                    };
                    let each = Stmt::each("k", count.clone(), |k| {
                        let others = Stmt::each("j", k.clone(), |j| {
                            let shared = intersection_over_union(corners(j), corners(k));
                            let over = prim::gt(&shared, threshold(shared.dtype(), overlap));
                            let was = prim::eq(prim::load(kept, at(j)), one());
                            Stmt::when(was, Stmt::when(over, set(1, one())))
                        });
                        let stays = Stmt::seq([Stmt::store(kept, at(k), one()), set(0, get(0) + one())]);
                        let free = prim::eq(get(1), none());
                        let looked = [set(1, none()), others, Stmt::when(free, stays)];
                        let score = prim::load(&source[1], [b.clone(), c.clone(), place(k)]);
                        let counts = prim::ge(&score, threshold(score.dtype(), least));
                        let room = prim::lt(get(0), prim::int_of(INT, (*of_class).min(i64::from(i32::MAX))));
                        Stmt::seq([
                            Stmt::store(kept, at(k), none()),
                            Stmt::when(prim::and(counts, room), Stmt::seq(looked)),
                        ])
                    });
                    Stmt::seq([set(0, none()), each])
                })
            })
        });
        outs.truncate(1);
        outs
    })?)
}

/// A threshold, which the reference keeps as float32.
fn threshold(dtype: DataType, value: f64) -> PrimExpr {
    prim::constant(dtype, f64::from(value as f32))
}

/// How much of what two boxes cover is covered by both; nothing where one of them is empty. Corners are top, left, bottom, right.
fn intersection_over_union(a: [PrimExpr; 4], b: [PrimExpr; 4]) -> PrimExpr {
    let zero = prim::constant(a[0].dtype(), 0.0);
    let area = |c: &[PrimExpr; 4]| (c[2].clone() - c[0].clone()) * (c[3].clone() - c[1].clone());
    let shared = |axis: usize| {
        let (low, high) = (prim::max(&a[axis], &b[axis]), prim::min(&a[axis + 2], &b[axis + 2]));
        prim::max(high - low, &zero)
    };
    let (first, second, both) = (area(&a), area(&b), shared(0) * shared(1));
    let real = prim::and(prim::gt(&first, &zero), prim::gt(&second, &zero));
    prim::select(real, prim::div(both.clone(), first + second - both), zero)
}

/// The scores of what is kept, in one row for each image; all others have the lowest there is.
fn rated(cx: &mut LowerCx<'_>, sizes: &Sizes, parts: [&rx::Expr; 3]) -> Lowered {
    let count = sizes.boxes.clone();
    let dims = [sizes.batch.clone(), count.clone() * sizes.classes];
    Ok(cx.builder.emit_te("rated", parts.map(Clone::clone).to_vec(), |t| {
        let [scores, order, kept] = [0, 1, 2].map(|i| t[i].clone());
        vec![te::compute("T_rated", dims, |at: &[PrimExpr]| {
            let (class, rank) =
                (prim::floordiv(at[1].clone(), count.clone()), prim::floormod(at[1].clone(), count.clone()));
            let place = [at[0].clone(), class.clone(), rank];
            let score = scores.at(&[at[0].clone(), class, inside(order.at(&place), &count)]);
            let lowest = prim::constant(score.dtype(), f64::NEG_INFINITY);
            prim::select(prim::eq(kept.at(&place), prim::int_of(INT, 1)), score, lowest)
        })]
    })?)
}

fn results(cx: &mut LowerCx<'_>, sizes: &Sizes, parts: [rx::Expr; 5]) -> Lowered {
    let Sizes { batch, boxes: count, classes, of_all, .. } = sizes;
    let most = prim::int_of(INT, (*of_all).min(i64::from(i32::MAX)));
    let tuple = cx.builder.emit_te("detections", parts.to_vec(), |t| {
        let [boxes, scores, order, best, total] = [0, 1, 2, 3, 4].map(|i| t[i].clone());
        let there = |b: &PrimExpr, m: &PrimExpr| {
            let total = prim::min(total.at(std::slice::from_ref(b)), &most);
            prim::lt(m, prim::cast(PLACES, total))
        };
        // The class, and the box in it, of the detection of a rank.
        let found = |b: &PrimExpr, m: &PrimExpr| {
            let all = count.clone() * *classes;
            let rank = prim::max(prim::min(m.clone(), all.clone() - 1), prim::int(0));
            let flat = inside(best.at(&[b.clone(), rank]), &all);
            let (class, rank) = (prim::floordiv(flat.clone(), count.clone()), prim::floormod(flat, count.clone()));
            let place = inside(order.at(&[b.clone(), class.clone(), rank]), count);
            (class, place)
        };
        let chosen = |at: &[PrimExpr], value: &dyn Fn(PrimExpr, PrimExpr) -> PrimExpr| {
            let (class, place) = found(&at[0], &at[1]);
            let value = value(class, place);
            let nothing = prim::constant(value.dtype(), 0.0);
            prim::if_then_else(there(&at[0], &at[1]), value, nothing)
        };
        let rows = [batch.clone(), prim::int(*of_all)];
        let corners = [batch.clone(), prim::int(*of_all), prim::int(4)];
        vec![
            te::compute("T_boxes", corners, |at: &[PrimExpr]| {
                chosen(at, &|_, place| boxes.at(&[at[0].clone(), place, at[2].clone()]))
            }),
            te::compute("T_classes", rows.clone(), |at: &[PrimExpr]| {
                chosen(at, &|class, _| prim::cast(DataType::float(32), class))
            }),
            te::compute("T_scores", rows, |at: &[PrimExpr]| {
                chosen(at, &|class, place| scores.at(&[at[0].clone(), class, place]))
            }),
            te::compute("T_count", [batch.clone()], |at: &[PrimExpr]| prim::min(total.at(at), &most)),
        ]
    })?;
    Ok(tuple)
}
