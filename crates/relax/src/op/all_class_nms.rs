//! Suppression for each class: of each image and class the best boxes that overlap no better one. Where threads share the work it is
//! [another kernel](super::all_class_on_threads).

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_ir::{Buffer, Type, Var};
use relaxide_tir::{Stmt, te};

use super::detection::{check_boxes, overlap};
use super::heap::Heap;
use super::loops::{Cell, axes, nest};
use super::*;

const I64: DataType = DataType::int(64);

pub(super) fn all_class_type(cx: &CallCx) -> Result<Type, OpError> {
    let (boxes, scores) = (check_boxes(cx)?, cx.tensor(1)?);
    if let Some(n) = scores.ndim.filter(|n| *n != 3) {
        return cx.invalid(format!("`scores` has {n} dimensions, not 3"));
    }
    let onnx = cx.str("output_format")? == "onnx";
    let dims = boxes.dims.and(scores.dims);
    let product = |d: &[PrimExpr]| relaxide_ir::arith::Analyzer::new().simplify(&crate::shape::num_elements(d));
    let rows = |first: usize| dims.as_ref().map(|d| product(&d[first..]));
    if onnx {
        // How many boxes are kept is known when the program runs: no type promises more than there is.
        return Ok(Type::tuple(vec![tensor_type(None, Some(2), I64), Type::tensor([1], I64)]));
    }
    let batch = || dims.as_ref().map(|d| d[0].clone());
    let pair = batch().zip(rows(1));
    let indices = pair.clone().map(|(b, n)| vec![b, n, PrimExpr::from(2)]);
    Ok(Type::tuple(vec![
        tensor_type(indices, Some(3), I64),
        tensor_type(pair.map(|(b, n)| vec![b, n]), Some(2), DataType::float(32)),
        tensor_type(batch().map(|b| vec![b]), Some(1), I64),
    ]))
}

pub(super) fn all_class(cx: &CallCx, b: &mut crate::BlockBuilder) -> Result<Expr, OpError> {
    let plain = |e| OpError::of_build(cx.name(), e);
    let (boxes, scores) = (cx.dims(0)?, cx.dims(1)?);
    if boxes.len() != 3 || scores.len() != 3 {
        return cx.invalid("needs boxes and scores of 3 dimensions");
    }
    let onnx = cx.str("output_format")? == "onnx";
    let result = b.emit_te("all_class_non_max_suppression", cx.args.to_vec(), |t| {
        let format = if onnx { Format::Onnx } else { Format::TensorFlow };
        if cx.over_threads { all_class_on_threads::per_class(t, format) } else { per_class(t, format) }
    });
    let result = result.map_err(plain)?;
    if !onnx {
        return Ok(result);
    }
    // Rows behind the last one that counts are cut off.
    let field = |b: &mut crate::BlockBuilder, i: usize| b.emit(Expr::field(result.clone(), i)).map_err(plain);
    let (rows, count) = (field(b, 0)?, field(b, 1)?);
    let shape = b.op("tensor_to_shape", [count.clone()], relaxide_ir::Attrs::new()).map_err(plain)?;
    let selected = PrimExpr::from(&relaxide_ir::Var::dim("num_selected"));
    b.match_cast(shape, Type::shape([selected.clone()])).map_err(plain)?;
    let cut = b.emit_te("selected_rows", vec![rows], |t| {
        vec![te::compute("T_selected", [selected, PrimExpr::from(3)], |at| t[0].at(at))]
    });
    Ok(Expr::tuple([cut.map_err(plain)?, count]))
}

/// How rows of kept boxes are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Onnx,
    TensorFlow,
}

impl Format {
    /// Names, shapes and types of what the kernel gives.
    fn results(self, batch: &PrimExpr, classes: &PrimExpr, count: &PrimExpr) -> Vec<(String, Vec<PrimExpr>, DataType)> {
        match self {
            Format::Onnx => vec![
                ("selected".to_string(), vec![batch * classes * count, PrimExpr::from(3)], I64),
                ("total".to_string(), vec![PrimExpr::from(1)], I64),
            ],
            Format::TensorFlow => vec![
                ("selected".to_string(), vec![batch.clone(), classes * count, PrimExpr::from(2)], I64),
                ("selected_scores".to_string(), vec![batch.clone(), classes * count], DataType::float(32)),
                ("total".to_string(), vec![batch.clone()], I64),
            ],
        }
    }

    /// Stores a row about a box that is kept.
    fn write(self, target: &[Ref<Buffer>], row: &Cell, [image, class, place]: [&PrimExpr; 3], score: PrimExpr) -> Stmt {
        match self {
            Format::Onnx => {
                let entry = |k: i64, v: &PrimExpr| Stmt::store(&target[0], [row.get(), PrimExpr::from(k)], v.clone());
                Stmt::seq([entry(0, image), entry(1, class), entry(2, place)])
            }
            Format::TensorFlow => {
                let at = |k: i64| [image.clone(), row.get(), PrimExpr::from(k)];
                let entry = |k: i64, v: &PrimExpr| Stmt::store(&target[0], at(k), v.clone());
                let value = cast(DataType::float(32), score);
                let value = Stmt::store(&target[1], [image.clone(), row.get()], value);
                Stmt::seq([entry(0, class), entry(1, place), value])
            }
        }
    }
}

/// The kernel: for each image and class the boxes in order of score, without those that overlap a kept one. A box is compared with the
/// kept ones, which are few. Boxes come from a heap, so that those behind the last one that is looked at are never sorted.
fn per_class(t: &[te::Tensor], format: Format) -> Vec<te::Tensor> {
    let (boxes, scores) = (&t[0], &t[1]);
    let [batch, classes, count] = [0, 1, 2].map(|i| scores.shape()[i].clone());
    let mut outs = format.results(&batch, &classes, &count);
    let results = outs.len();
    // The boxes that are kept of the class; how many they are, how many rows are written, whether a box overlaps a kept one.
    outs.push(("kept".to_string(), vec![count.clone(), PrimExpr::from(4)], boxes.dtype()));
    outs.push(("state".to_string(), vec![PrimExpr::from(3)], I64));
    outs.extend(Heap::buffers(&count, scores.dtype()));
    let (most, overlap_limit, lowest) = (first_load(&t[2]), first_load(&t[3]), first_load(&t[4]));
    let mut tensors = te::extern_stage("all_class_nms", t, outs, |source, target| {
        let Some(heap) = Heap::of(&target[results + 2..]) else { return Stmt::nop() };
        let [kept, row, meets] = [0, 1, 2].map(|i| Cell::new(&target[results + 1], i));
        let kept_box =
            |k: &PrimExpr| [0, 1, 2, 3].map(|c| prim::load(&target[results], [k.clone(), PrimExpr::from(c)]));
        let (vars, at) = axes(&[batch.clone(), classes.clone()], "i");
        let (image, class) = (&at[0], &at[1]);
        let score = |j: &PrimExpr| prim::load(&source[1], [image, class, j]);
        let fill = heap.fill(score, |j| prim::gt(score(j), cast(scores.dtype(), lowest(&source[4]))));
        let write = |place: &PrimExpr| format.write(target, &row, [image, class, place], score(place));
        let sweep = Stmt::each("j", count.clone(), |_| {
            let place = Var::dim("place");
            let place_at = PrimExpr::from(&place);
            let corners =
                [0, 1, 2, 3].map(|k| prim::load(&source[0], [image.clone(), place_at.clone(), PrimExpr::from(k)]));
            let compare = Stmt::each("k", count.clone(), |k| {
                let limit = cast(boxes.dtype(), overlap_limit(&source[3]));
                let hit = prim::ge(overlap(corners.clone(), kept_box(k)), limit);
                Stmt::seq([
                    Stmt::when(prim::ge(k, kept.get()), Stmt::break_loop()),
                    Stmt::when(hit, Stmt::seq([meets.set(1), Stmt::break_loop()])),
                ])
            });
            // There is room: a class keeps at most as many boxes as it has.
            let last = prim::min(kept.get(), &count - 1);
            let keep = (0..4)
                .zip(corners.clone())
                .map(|(c, corner)| Stmt::store(&target[results], [last.clone(), PrimExpr::from(c)], corner));
            let keep = keep.chain([write(&place_at), kept.next(), row.next()]);
            let done = prim::or(heap.is_empty(), prim::ge(kept.get(), cast(I64, most(&source[2]))));
            Stmt::seq([
                Stmt::when(done, Stmt::break_loop()),
                Stmt::bind(place, heap.first()),
                heap.remove_first(),
                meets.set(0),
                compare,
                Stmt::when(prim::eq(meets.get(), 0), Stmt::seq(keep)),
            ])
        });
        let of_class = Stmt::seq([kept.set(0), fill, sweep]);
        let zero = |out: usize| {
            let dims = &target[out].shape;
            let (vars, at) = axes(dims, "z");
            nest(&vars, dims, Stmt::store(&target[out], at, constant(target[out].dtype, 0.0)))
        };
        match format {
            Format::Onnx => {
                let total = Stmt::store(&target[1], [PrimExpr::from(0)], row.get());
                // Rows behind those that count are cut off, and nobody reads them.
                Stmt::seq([row.set(0), nest(&vars, &[batch.clone(), classes.clone()], of_class), total])
            }
            Format::TensorFlow => {
                let total = Stmt::store(&target[2], [image.clone()], row.get());
                let of_image =
                    Stmt::seq([row.set(0), nest(&vars[1..], std::slice::from_ref(&classes), of_class), total]);
                Stmt::seq([zero(0), zero(1), nest(&vars[..1], std::slice::from_ref(&batch), of_image)])
            }
        }
    });
    tensors.truncate(results);
    tensors
}

/// A load of the first element of a tensor's buffer, whatever its rank.
pub(super) fn first_load(t: &te::Tensor) -> impl Fn(&Ref<Buffer>) -> PrimExpr {
    let ndim = t.ndim();
    move |buffer| prim::load(buffer, vec![PrimExpr::from(0); ndim])
}
