//! Boxes of detected objects: those that count, decoding, and suppression of those that overlap a better one.
//!
//! Suppression goes through boxes in the order of their scores, and drops what overlaps one that was kept by more than a
//! threshold. The overlap of two boxes is their intersection over their union.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant, math};
use relaxide_ir::{Type, Var};
use relaxide_tir::{Stmt, te};

use super::loops::{Cell, axes, nest};
use super::manipulate::input;
use super::sort::order;
use super::window::all;
use super::*;

const I32: DataType = DataType::int(32);
const I64: DataType = DataType::int(64);

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "vision.get_valid_counts",
        &[ArgDef::tensor("data", "Boxes: (batch, boxes, numbers of each).")],
        &[
            AttrDef::float("score_threshold", 0.0, "Boxes count whose score is larger."),
            AttrDef::int("id_index", 0, "Which number is the class, which must not be negative; -1 for none."),
            AttrDef::int("score_index", 1, "Which number is the score."),
        ],
        counts_type,
        get_valid_counts,
        "A tuple: how many boxes count, these in front of rows of -1, and the index of each.",
    ),
    OpDef::compute(
        "vision.non_max_suppression",
        &[
            ArgDef::tensor("data", "Boxes: (batch, boxes, numbers of each)."),
            ArgDef::tensor("valid_count", "How many of them count, int32."),
            ArgDef::tensor("indices", "The index of each, int32."),
        ],
        &[
            AttrDef::int("max_output_size", -1, "How many are kept at most; all if negative."),
            AttrDef::float("iou_threshold", 0.5, "The overlap from which on a box is dropped."),
            AttrDef::bool("force_suppress", false, "Whether boxes of other classes are dropped too."),
            AttrDef::int("top_k", -1, "How many of the best take part; all if negative."),
            AttrDef::int("coord_start", 2, "Which number is the first of the four coordinates."),
            AttrDef::int("score_index", 1, "Which number is the score."),
            AttrDef::int("id_index", 0, "Which number is the class; -1 for none."),
            AttrDef::bool("return_indices", true, "Whether the indices of what is kept are given, not the boxes."),
            AttrDef::bool("invalid_to_bottom", false, "Whether kept boxes are moved to the front."),
            AttrDef::float(
                "soft_nms_sigma",
                0.0,
                "If positive, boxes that overlap less lose score, by exp(-overlap² / 2 sigma).",
            ),
            AttrDef::float("score_threshold", 0.0, "With `soft_nms_sigma`: boxes that fall to it are dropped."),
        ],
        suppression_type,
        suppression,
        "Boxes without those that overlap a better one; what is dropped is -1.",
    ),
    OpDef::decomposed(
        "vision.all_class_non_max_suppression",
        &[
            ArgDef::tensor("boxes", "(batch, boxes, 4)."),
            ArgDef::tensor("scores", "(batch, classes, boxes)."),
            ArgDef::tensor("max_output_boxes_per_class", "How many are kept of each class at most."),
            ArgDef::tensor("iou_threshold", "The overlap from which on a box is dropped."),
            ArgDef::tensor("score_threshold", "Boxes count whose score is larger."),
        ],
        &[AttrDef::str("output_format", "onnx", "onnx or tensorflow.")],
        all_class_nms::all_class_type,
        all_class_nms::all_class,
        "Suppression for each class on its own. onnx: a tuple of rows (image, class, box) and their number; tensorflow: a tuple \
         of rows (class, box), their scores, and their number for each image. ONNX: NonMaxSuppression.",
    ),
    OpDef::compute(
        "vision.multibox_transform_loc",
        &[
            ArgDef::tensor("cls_pred", "Scores: (batch, classes, anchors)."),
            ArgDef::tensor("loc_pred", "Offsets (x, y, w, h) of each anchor: (batch, 4 * anchors)."),
            ArgDef::tensor("anchor", "(1, anchors, 4): left, top, right, bottom."),
        ],
        &[
            AttrDef::bool("clip", false, "Whether boxes are clipped to 0 … 1."),
            AttrDef::float("threshold", 0.0, "Scores below it become zero."),
            AttrDef::new("variances", AttrKind::Any, AttrDefault::None, "Factors of the four offsets; 1 if absent."),
            AttrDef::bool("keep_background", true, "Whether the scores of class 0 stay; else they are zero."),
            AttrDef::bool("apply_softmax", true, "Whether scores are brought to sum to one over the classes first."),
        ],
        multibox_type,
        multibox,
        "A tuple: boxes (top, left, bottom, right) decoded from anchors and offsets, and scores.",
    ),
];

// Boxes that count.

/// Checks that an index names a number of each box, or is -1 where that is allowed.
fn check_index(cx: &CallCx, attr: &str, length: Option<i64>, least: i64) -> Result<i64, OpError> {
    let index = cx.int(attr)?;
    if index < least || length.is_some_and(|n| index >= n) {
        return cx.invalid(format!("`{attr}` is {index}, which is none of the numbers of a box"));
    }
    Ok(index)
}

fn box_length(data: &TensorInfo) -> Option<i64> {
    data.dims.as_ref().and_then(|d| d.last()).and_then(PrimExpr::as_int)
}

pub(super) fn check_boxes(cx: &CallCx) -> Result<TensorInfo, OpError> {
    let data = cx.tensor(0)?;
    match data.ndim {
        Some(n) if n != 3 => cx.invalid(format!("the boxes have {n} dimensions, not 3")),
        _ => Ok(data),
    }
}

fn counts_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = check_boxes(cx)?;
    check_index(cx, "score_index", box_length(&data), 0)?;
    check_index(cx, "id_index", box_length(&data), -1)?;
    let part = |n: usize| data.dims.as_ref().map(|d| d[..n].to_vec());
    Ok(Type::tuple(vec![
        tensor_type(part(1), Some(1), I32),
        tensor_type(part(3), Some(3), data.dtype),
        tensor_type(part(2), Some(2), I32),
    ]))
}

fn get_valid_counts(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let data = input(cx, inputs, 0)?;
    let (dtype, dims) = (data.dtype(), data.shape().to_vec());
    let (score, id) = (cx.int("score_index")?, cx.int("id_index")?);
    let threshold = constant(dtype, cx.float("score_threshold")?);
    let outs = [
        ("valid_count".to_string(), dims[..1].to_vec(), I32),
        ("out_tensor".to_string(), dims.clone(), dtype),
        ("out_indices".to_string(), dims[..2].to_vec(), I32),
    ];
    Ok(te::extern_stage("get_valid_counts", inputs, outs, |source, target| {
        let minus = constant(dtype, -1.0);
        Stmt::each("i", dims[0].clone(), |i| {
            let count = prim::load(&target[0], [i.clone()]);
            let place = cast(I64, count.clone());
            let of = |j: &PrimExpr, k: PrimExpr| prim::load(&source[0], [i.clone(), j.clone(), k]);
            let clear = Stmt::each("j", dims[1].clone(), |j| {
                let row = Stmt::each("k", dims[2].clone(), |k| {
                    Stmt::store(&target[1], [i.clone(), j.clone(), k.clone()], &minus)
                });
                Stmt::seq([row, Stmt::store(&target[2], [i.clone(), j.clone()], prim::int_of(I32, -1))])
            });
            let take = Stmt::each("j", dims[1].clone(), |j| {
                let mut counts = prim::gt(of(j, score.into()), threshold);
                if id >= 0 {
                    counts = prim::and(counts, prim::ge(of(j, id.into()), constant(dtype, 0.0)));
                }
                let row = Stmt::each("k", dims[2].clone(), |k| {
                    Stmt::store(&target[1], [i.clone(), place.clone(), k.clone()], of(j, k.clone()))
                });
                let index = Stmt::store(&target[2], [i.clone(), place.clone()], cast(I32, j));
                let next = Stmt::store(&target[0], [i.clone()], &count + prim::int_of(I32, 1));
                Stmt::when(counts, Stmt::seq([row, index, next]))
            });
            Stmt::seq([Stmt::store(&target[0], [i.clone()], prim::int_of(I32, 0)), clear, take])
        })
    }))
}

// Suppression.

fn suppression_type(cx: &CallCx) -> Result<Type, OpError> {
    let data = check_boxes(cx)?;
    let (count, indices) = (cx.tensor(1)?, cx.tensor(2)?);
    let length = box_length(&data);
    check_index(cx, "score_index", length, 0)?;
    check_index(cx, "id_index", length, -1)?;
    check_index(cx, "coord_start", length.map(|n| n - 3), 0)?;
    for (info, name, ndim) in [(&count, "valid_count", 1), (&indices, "indices", 2)] {
        if let Some(n) = info.ndim.filter(|n| *n != ndim) {
            return cx.invalid(format!("`{name}` has {n} dimensions, not {ndim}"));
        }
        if !info.dtype.is_void() && info.dtype != I32 {
            return cx.wrong_dtype(format!("`{name}` has dtype {}, not int32", info.dtype));
        }
        let mut pairs = data.dims.iter().flatten().zip(info.dims.iter().flatten());
        if !pairs.all(|(a, b)| crate::shape::prove_equal(a, b)) {
            return cx.invalid(format!("the shape of `{name}` does not fit that of the boxes"));
        }
    }
    if !cx.bool("return_indices")? {
        return Ok(tensor_type(data.dims, Some(3), data.dtype));
    }
    let front = data.dims.as_ref().map(|d| d[..2].to_vec());
    let counts = data.dims.as_ref().map(|d| vec![d[0].clone(), PrimExpr::from(1)]);
    let rest = [tensor_type(front, Some(2), I32), tensor_type(counts, Some(2), I32)];
    let boxes = (cx.float("soft_nms_sigma")? > 0.0).then(|| tensor_type(data.dims.clone(), Some(3), data.dtype));
    Ok(Type::tuple(boxes.into_iter().chain(rest).collect::<Vec<_>>()))
}

/// What suppression needs to know of a call.
struct Suppression {
    dims: Vec<PrimExpr>,
    dtype: DataType,
    score: i64,
    id: i64,
    coordinates: i64,
    force: bool,
    most: i64,
    overlap: PrimExpr,
    sigma: f64,
    lowest: PrimExpr,
}

/// The boxes that are worked on, of one example.
struct Boxes<'a> {
    s: &'a Suppression,
    data: &'a Ref<relaxide_ir::Buffer>,
    index: &'a Ref<relaxide_ir::Buffer>,
    i: PrimExpr,
}

impl Boxes<'_> {
    fn get(&self, j: &PrimExpr, k: i64) -> PrimExpr {
        prim::load(self.data, [self.i.clone(), j.clone(), PrimExpr::from(k)])
    }

    fn score(&self, j: &PrimExpr) -> PrimExpr {
        self.get(j, self.s.score)
    }

    fn place(&self, j: &PrimExpr) -> PrimExpr {
        prim::load(self.index, [self.i.clone(), j.clone()])
    }

    fn set_place(&self, j: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(self.index, [self.i.clone(), j.clone()], value)
    }

    fn set_score(&self, j: &PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(self.data, [self.i.clone(), j.clone(), PrimExpr::from(self.s.score)], value)
    }

    /// A box becomes -1 throughout.
    fn clear(&self, j: &PrimExpr) -> Stmt {
        let minus = constant(self.s.dtype, -1.0);
        Stmt::each("k", self.s.dims[2].clone(), |k| {
            Stmt::store(self.data, [self.i.clone(), j.clone(), k.clone()], minus)
        })
    }

    /// Whether a box may suppress another: they are of one class, or classes do not matter.
    fn rivals(&self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        if self.s.force || self.s.id < 0 {
            return prim::boolean(true);
        }
        prim::eq(self.get(a, self.s.id), self.get(b, self.s.id))
    }

    fn overlap(&self, a: &PrimExpr, b: &PrimExpr) -> PrimExpr {
        let corners = |j: &PrimExpr| [0, 1, 2, 3].map(|k| self.get(j, self.s.coordinates + k));
        overlap(corners(a), corners(b))
    }
}

/// The overlap of two boxes, each given by two opposite corners.
pub(super) fn overlap(a: [PrimExpr; 4], b: [PrimExpr; 4]) -> PrimExpr {
    let zero = constant(a[0].dtype(), 0.0);
    let low = |c: &[PrimExpr; 4], axis: usize| prim::min(&c[axis], &c[axis + 2]);
    let high = |c: &[PrimExpr; 4], axis: usize| prim::max(&c[axis], &c[axis + 2]);
    let shared = |axis: usize| {
        prim::max(prim::min(high(&a, axis), high(&b, axis)) - prim::max(low(&a, axis), low(&b, axis)), &zero)
    };
    let area = |c: &[PrimExpr; 4]| (high(c, 0) - low(c, 0)) * (high(c, 1) - low(c, 1));
    let intersection = shared(0) * shared(1);
    let union = area(&a) + area(&b) - &intersection;
    prim::select(prim::le(&union, &zero), zero, prim::div(intersection, union))
}

fn suppression(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (data, count) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let (dtype, dims) = (data.dtype(), data.shape().to_vec());
    let sigma = cx.float("soft_nms_sigma")?;
    let s = Suppression {
        dims: dims.clone(),
        dtype,
        score: cx.int("score_index")?,
        id: cx.int("id_index")?,
        coordinates: cx.int("coord_start")?,
        force: cx.bool("force_suppress")?,
        most: cx.int("max_output_size")?,
        overlap: constant(dtype, cx.float("iou_threshold")?),
        sigma,
        lowest: constant(dtype, if sigma > 0.0 { cx.float("score_threshold")? } else { 0.0 }),
    };
    let (top, indices, to_front) = (cx.int("top_k")?, cx.bool("return_indices")?, cx.bool("invalid_to_bottom")?);
    let scores =
        te::compute("score_tensor", &dims[..2], |at| data.at(&[at[0].clone(), at[1].clone(), PrimExpr::from(s.score)]));
    let sorted = order(&scores, 1, true, Some(count));
    let outs = [
        ("out_data".to_string(), dims.clone(), dtype),
        ("out_box_indices".to_string(), dims[..2].to_vec(), I32),
        ("out_valid_box_count".to_string(), vec![dims[0].clone(), PrimExpr::from(1)], I32),
        ("state".to_string(), vec![PrimExpr::from(3)], I64),
        ("value".to_string(), vec![PrimExpr::from(1)], dtype),
    ];
    let all_inputs = [data.clone(), sorted, count.clone(), input(cx, inputs, 2)?.clone()];
    let mut outs = te::extern_stage("non_max_suppression", &all_inputs, outs, |source, target| {
        Stmt::each("i", dims[0].clone(), |i| {
            let boxes = Boxes { s: &s, data: &target[0], index: &target[1], i: i.clone() };
            let cells = [0, 1, 2].map(|at| Cell::new(&target[3], at));
            let value = Cell::new(&target[4], 0);
            // Sorting has refused numbers that are larger.
            let mut keep = prim::min(cast(I64, prim::load(&source[2], [i.clone()])), dims[1].clone());
            if top > 0 {
                keep = prim::min(keep, top);
            }
            let gather = Stmt::each("j", dims[1].clone(), |j| {
                let from = prim::load(&source[1], [i.clone(), j.clone()]);
                let copy = Stmt::each("k", dims[2].clone(), |k| {
                    let element = prim::load(&source[0], [i.clone(), from.clone(), k.clone()]);
                    Stmt::store(&target[0], [i.clone(), j.clone(), k.clone()], element)
                });
                let taken = Stmt::seq([copy, boxes.set_place(j, cast(I32, from.clone()))]);
                let gone = Stmt::seq([boxes.clear(j), boxes.set_place(j, prim::int_of(I32, -1))]);
                Stmt::if_else(prim::lt(j, &keep), taken, gone)
            });
            let work = if s.sigma > 0.0 { soft(&boxes, &cells, &value, &keep) } else { hard(&boxes, &cells[0], &keep) };
            let finish = if indices { compact(&boxes, &cells[1], &source[3], &target[2]) } else { Stmt::nop() };
            Stmt::seq([gather, work, finish])
        })
    });
    if indices {
        outs.truncate(3);
        return Ok(if s.sigma > 0.0 { outs } else { outs.split_off(1) });
    }
    outs.truncate(1);
    match to_front {
        false => Ok(outs),
        true => Ok(vec![moved_to_front(&outs[0], s.score)]),
    }
}

/// Whether fewer boxes are kept than may be.
fn room(s: &Suppression, kept: &Cell) -> PrimExpr {
    if s.most > 0 { prim::lt(kept.get(), s.most) } else { prim::boolean(true) }
}

/// Each box in turn, the best first, drops those behind it that overlap it.
fn hard(boxes: &Boxes, kept: &Cell, count: &PrimExpr) -> Stmt {
    let s = boxes.s;
    let minus = || (constant(s.dtype, -1.0), prim::int_of(I32, -1));
    let sweep = Stmt::each("j", count.clone(), |j| {
        let others = Stmt::each("k", count.clone(), |k| {
            let behind = all([prim::gt(k, j), prim::gt(boxes.score(k), &s.lowest), boxes.rivals(j, k)]);
            let dropped = Stmt::seq([boxes.set_score(k, minus().0), boxes.set_place(k, minus().1)]);
            Stmt::when(behind, Stmt::when(prim::ge(boxes.overlap(j, k), &s.overlap), dropped))
        });
        let gone = Stmt::seq([boxes.clear(j), boxes.set_place(j, minus().1)]);
        let stays = prim::and(prim::gt(boxes.score(j), &s.lowest), room(s, kept));
        Stmt::if_else(stays, Stmt::seq([kept.next(), others]), gone)
    });
    Stmt::seq([kept.set(0), sweep])
}

/// The best of those that are left is kept, and takes score from those that overlap it.
fn soft(boxes: &Boxes, cells: &[Cell; 3], value: &Cell, count: &PrimExpr) -> Stmt {
    let s = boxes.s;
    let [kept, best, spare] = cells;
    let scale = constant(s.dtype, -0.5 / s.sigma);
    // Both are places of boxes, by their form as well.
    let [own, first] = [kept, best].map(|cell| prim::max(prim::min(cell.get(), &s.dims[1] - 1), 0));
    let find = Stmt::each("j", count.clone(), |j| {
        let better = all([prim::ge(j, kept.get()), prim::ge(boxes.place(j), 0), prim::gt(boxes.score(j), value.get())]);
        Stmt::when(better, Stmt::seq([best.set(j), value.set(boxes.score(j))]))
    });
    let swap = {
        let places = Stmt::seq([
            spare.set(boxes.place(&own)),
            boxes.set_place(&own, boxes.place(&first)),
            boxes.set_place(&first, cast(I32, spare.get())),
        ]);
        let numbers = Stmt::each("k", s.dims[2].clone(), |k| {
            let at = |j: &PrimExpr| [boxes.i.clone(), j.clone(), k.clone()];
            Stmt::seq([
                value.set(prim::load(boxes.data, at(&own))),
                Stmt::store(boxes.data, at(&own), prim::load(boxes.data, at(&first))),
                Stmt::store(boxes.data, at(&first), value.get()),
            ])
        });
        Stmt::when(prim::ne(best.get(), kept.get()), Stmt::seq([places, numbers]))
    };
    let weaken = Stmt::each("j", count.clone(), |j| {
        let takes_part = all([
            prim::gt(j, &own),
            prim::ge(boxes.place(j), 0),
            prim::gt(boxes.score(j), &s.lowest),
            boxes.rivals(&own, j),
        ]);
        let gone = || boxes.set_place(j, prim::int_of(I32, -1));
        let shared = Var::prim("overlap", s.dtype);
        let overlap = PrimExpr::from(&shared);
        let lost = boxes.score(j) * math("exp", &scale * &overlap * &overlap);
        let less = Stmt::seq([boxes.set_score(j, lost), Stmt::when(prim::le(boxes.score(j), &s.lowest), gone())]);
        let effect = Stmt::if_else(prim::ge(&overlap, &s.overlap), gone(), less);
        Stmt::when(takes_part, Stmt::seq([Stmt::bind(shared, boxes.overlap(&own, j)), effect]))
    });
    let round = Stmt::seq([
        best.set(-1),
        value.set(&s.lowest),
        find,
        Stmt::when(prim::ge(best.get(), 0), Stmt::seq([swap, weaken, kept.next()])),
    ]);
    let rounds = Stmt::each("round", count.clone(), |_| Stmt::when(room(s, kept), round));
    let rest = Stmt::each("j", s.dims[1].clone(), |j| {
        let gone = Stmt::seq([boxes.clear(j), boxes.set_place(j, prim::int_of(I32, -1))]);
        Stmt::when(prim::ge(j, kept.get()), gone)
    });
    Stmt::seq([kept.set(0), rounds, rest])
}

/// The indices of what is kept, in front of -1, and how many there are.
fn compact(boxes: &Boxes, at: &Cell, indices: &Ref<relaxide_ir::Buffer>, count: &Ref<relaxide_ir::Buffer>) -> Stmt {
    let rows = || boxes.s.dims[1].clone();
    let take = Stmt::each("j", rows(), |j| {
        let index = prim::load(indices, [boxes.i.clone(), cast(I64, boxes.place(j))]);
        let kept = Stmt::seq([boxes.set_place(&at.get(), index), at.next()]);
        Stmt::when(prim::ge(boxes.place(j), 0), kept)
    });
    let rest =
        Stmt::each("j", rows(), |j| Stmt::when(prim::ge(j, at.get()), boxes.set_place(j, prim::int_of(I32, -1))));
    let number = Stmt::store(count, [boxes.i.clone(), PrimExpr::from(0)], cast(I32, at.get()));
    Stmt::seq([at.set(0), take, number, rest])
}

/// Boxes of a score that is not negative, in front of rows of -1.
fn moved_to_front(data: &te::Tensor, score: i64) -> te::Tensor {
    let dims = data.shape().to_vec();
    let outs =
        [("rearranged".to_string(), dims.clone(), data.dtype()), ("state".to_string(), vec![PrimExpr::from(1)], I64)];
    let mut outs = te::extern_stage("rearrange", std::slice::from_ref(data), outs, |source, target| {
        let at = Cell::new(&target[1], 0);
        Stmt::each("i", dims[0].clone(), |i| {
            let of = |j: &PrimExpr, k: PrimExpr| prim::load(&source[0], [i.clone(), j.clone(), k]);
            let take = Stmt::each("j", dims[1].clone(), |j| {
                let row = Stmt::each("k", dims[2].clone(), |k| {
                    Stmt::store(&target[0], [i.clone(), at.get(), k.clone()], of(j, k.clone()))
                });
                let valid = prim::ge(of(j, score.into()), constant(data.dtype(), 0.0));
                Stmt::when(valid, Stmt::seq([row, at.next()]))
            });
            let (vars, rest) = axes(&dims[1..], "r");
            let index = [i.clone(), rest[0].clone(), rest[1].clone()];
            let clear = Stmt::store(&target[0], index, constant(data.dtype(), -1.0));
            let clear = nest(&vars, &dims[1..], Stmt::when(prim::ge(&rest[0], at.get()), clear));
            Stmt::seq([at.set(0), take, clear])
        })
    });
    outs.swap_remove(0)
}

// Decoding.

fn multibox_type(cx: &CallCx) -> Result<Type, OpError> {
    let (scores, offsets, anchors) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    for (info, name, ndim) in [(&scores, "cls_pred", 3), (&offsets, "loc_pred", 2), (&anchors, "anchor", 3)] {
        if let Some(n) = info.ndim.filter(|n| *n != ndim) {
            return cx.invalid(format!("`{name}` has {n} dimensions, not {ndim}"));
        }
        if info.dtype != scores.dtype && !info.dtype.is_void() && !scores.dtype.is_void() {
            return cx.wrong_dtype(format!("`{name}` has dtype {}, the scores {}", info.dtype, scores.dtype));
        }
    }
    variances(cx)?;
    let fixed = |info: &TensorInfo, i: usize| info.dims.as_ref().and_then(|d| d[i].as_int());
    if let Some(n) = fixed(&offsets, 1) {
        let anchors_of_scores = fixed(&scores, 2);
        if n % 4 != 0 || anchors_of_scores.is_some_and(|a| a * 4 != n) {
            return cx.invalid(format!("{n} offsets do not fit the anchors, four for each"));
        }
    }
    let differ = |a: Option<i64>, b: Option<i64>| a.zip(b).is_some_and(|(a, b)| a != b);
    if differ(fixed(&scores, 2), fixed(&anchors, 1)) || differ(fixed(&scores, 0), fixed(&offsets, 0)) {
        return cx.invalid("the scores, offsets and anchors do not fit each other");
    }
    if fixed(&anchors, 0).is_some_and(|n| n != 1) || fixed(&anchors, 2).is_some_and(|n| n != 4) {
        return cx.invalid("the anchors have the shape (1, anchors, 4)");
    }
    let boxes = scores.dims.as_ref().map(|d| vec![d[0].clone(), d[2].clone(), PrimExpr::from(4)]);
    Ok(Type::tuple(vec![tensor_type(boxes, Some(3), scores.dtype), tensor_type(scores.dims, Some(3), scores.dtype)]))
}

fn variances(cx: &CallCx) -> Result<[f64; 4], OpError> {
    let Some(relaxide_ir::AttrValue::List(list)) = cx.attrs.get("variances") else {
        return match cx.attrs.get("variances") {
            None => Ok([1.0; 4]),
            Some(_) => cx.invalid("`variances` must be four numbers"),
        };
    };
    let number = |v: &relaxide_ir::AttrValue| match v {
        relaxide_ir::AttrValue::Float(v) => Some(*v),
        relaxide_ir::AttrValue::Int(v) => Some(*v as f64),
        relaxide_ir::AttrValue::Prim(PrimExpr::Float(f)) => Some(f.value),
        _ => None,
    };
    let numbers: Option<Vec<f64>> = list.iter().map(number).collect();
    match numbers.map(<[f64; 4]>::try_from) {
        Some(Ok(four)) => Ok(four),
        _ => cx.invalid("`variances` must be four numbers"),
    }
}

fn multibox(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (raw, offsets, anchors) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?, input(cx, inputs, 2)?);
    let dtype = raw.dtype();
    let number = |v: f64| constant(dtype, v);
    let [vx, vy, vw, vh] = variances(cx)?;
    let (clip, softmax, background) = (cx.bool("clip")?, cx.bool("apply_softmax")?, cx.bool("keep_background")?);
    let dims = [raw.shape()[0].clone(), raw.shape()[2].clone(), PrimExpr::from(4)];
    let boxes = te::compute("T_boxes", dims, |at| {
        let edge = |k: i64| anchors.at(&[PrimExpr::from(0), at[1].clone(), PrimExpr::from(k)]);
        let offset = |k: i64| offsets.at(&[at[0].clone(), &at[1] * 4 + k]);
        // One axis: centre and half extent, from its edges, its two offsets and their factors.
        let axis = |low: i64, place: i64, factor: f64, extent: i64, extent_factor: f64| {
            let length = edge(low + 2) - edge(low);
            let centre = offset(place) * number(factor) * &length + (edge(low) + edge(low + 2)) * number(0.5);
            let half = number(0.5) * math("exp", offset(extent) * number(extent_factor)) * length;
            (centre, half)
        };
        let ((y, half_height), (x, half_width)) = (axis(1, 1, vy, 3, vh), axis(0, 0, vx, 2, vw));
        let sides = [&y - &half_height, &x - &half_width, y + half_height, x + half_width];
        let clipped = |e: &PrimExpr| if clip { prim::max(prim::min(e, number(1.0)), number(0.0)) } else { e.clone() };
        (0..3)
            .rev()
            .fold(clipped(&sides[3]), |rest, i| prim::select(prim::eq(&at[2], i as i64), clipped(&sides[i]), rest))
    });
    let scores = if softmax { norm::softmax_over(raw, 1, norm::Log::No) } else { raw.clone() };
    let threshold = number(cx.float("threshold")?);
    let scores = te::compute("T_scores", raw.shape(), |at| {
        let value = scores.at(at);
        let kept = prim::select(prim::ge(&value, threshold), value, number(0.0));
        if background { kept } else { prim::select(prim::eq(&at[1], 0), number(0.0), kept) }
    });
    Ok(vec![boxes, scores])
}
