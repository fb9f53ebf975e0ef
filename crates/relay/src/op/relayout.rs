//! Another order of elements: blocks of an image as channels or batches, and layouts by their letters.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};
use super::manipulate::{flat_pairs, sliced};

/// The number of channels, and where they are, of a layout with blocks.
fn four_dims(cx: &LowerCx<'_>, x: &rx::Expr) -> Result<([PrimExpr; 4], bool), LowerError> {
    let shape: Result<[PrimExpr; 4], _> = cx.shape(x)?.try_into();
    let shape = shape.map_err(|_| LowerError(format!("{} takes four dimensions", cx.def.name)))?;
    match cx.str("layout").as_str() {
        "NCHW" => Ok((shape, false)),
        "NHWC" => Ok((shape, true)),
        other => fail(format!("{}: there is no layout {other}", cx.def.name)),
    }
}

fn permute(cx: &mut LowerCx<'_>, x: rx::Expr, axes: &[i64]) -> Lowered {
    cx.emit("permute_dims", [x], attrs([("axes", axes.to_vec().into())]))
}

pub(super) fn depth_to_space(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let block = cx.int("block_size")?;
    let (_, nhwc) = four_dims(cx, &x)?;
    let x = if nhwc { permute(cx, x, &[0, 3, 1, 2])? } else { x };
    let shape = cx.shape(&x)?;
    let [n, c, h, w] = [0, 1, 2, 3].map(|i: usize| shape[i].clone());
    let (b, depth) = (prim::int(block), prim::floordiv(c, prim::int(block * block)));
    let (parts, order) = match cx.str("mode").as_str() {
        "DCR" => (vec![n.clone(), b.clone(), b, depth.clone(), h.clone(), w.clone()], [0, 3, 4, 1, 5, 2]),
        "CRD" => (vec![n.clone(), depth.clone(), b.clone(), b, h.clone(), w.clone()], [0, 1, 4, 2, 5, 3]),
        other => return fail(format!("nn.depth_to_space: there is no mode {other:?}")),
    };
    let split = cx.reshape(x, parts)?;
    let moved = permute(cx, split, &order)?;
    let joined = cx.reshape(moved, vec![n, depth, h * block, w * block])?;
    if nhwc { permute(cx, joined, &[0, 2, 3, 1]) } else { Ok(joined) }
}

pub(super) fn space_to_depth(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let block = cx.int("block_size")?;
    let (_, nhwc) = four_dims(cx, &x)?;
    let x = if nhwc { permute(cx, x, &[0, 3, 1, 2])? } else { x };
    let shape = cx.shape(&x)?;
    let [n, c, h, w] = [0, 1, 2, 3].map(|i: usize| shape[i].clone());
    let b = prim::int(block);
    let (h, w) = (prim::floordiv(h, b.clone()), prim::floordiv(w, b.clone()));
    let split = cx.reshape(x, vec![n.clone(), c.clone(), h.clone(), b.clone(), w.clone(), b])?;
    let moved = permute(cx, split, &[0, 3, 5, 1, 2, 4])?;
    let joined = cx.reshape(moved, vec![n, c * (block * block), h, w])?;
    if nhwc { permute(cx, joined, &[0, 2, 3, 1]) } else { Ok(joined) }
}

pub(super) fn space_to_batch(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, block) = (cx.arg(0)?, cx.ints("block_shape")?);
    let (width, value) = (flat_pairs(cx, "paddings")?, cx.float("pad_value")?);
    let ndim = cx.ndim(&x)?;
    let mut all = vec![0, 0];
    all.extend(&width);
    all.resize(ndim * 2, 0);
    let padded = cx.emit("nn.pad", [x], attrs([("pad_width", all.into()), ("pad_value", value.into())]))?;
    let shape = cx.shape(&padded)?;
    let m = block.len();
    let (mut parts, mut order, mut joined) = (vec![shape[0].clone()], Vec::new(), vec![shape[0].clone()]);
    for (i, b) in block.iter().enumerate() {
        let outer = prim::floordiv(shape[i + 1].clone(), prim::int(*b));
        parts.extend([outer.clone(), prim::int(*b)]);
        order.push(2 * i as i64 + 2);
        joined[0] = joined[0].clone() * *b;
        joined.push(outer);
    }
    order.push(0);
    order.extend((0..m as i64).map(|i| 2 * i + 1));
    order.extend((0..(ndim - 1 - m) as i64).map(|i| 2 * m as i64 + 1 + i));
    parts.extend(shape[m + 1..].iter().cloned());
    joined.extend(shape[m + 1..].iter().cloned());
    let split = cx.reshape(padded, parts)?;
    let moved = permute(cx, split, &order)?;
    cx.reshape(moved, joined)
}

pub(super) fn batch_to_space(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, block) = (cx.arg(0)?, cx.ints("block_shape")?);
    let crops = flat_pairs(cx, "crops")?;
    let shape = cx.shape(&x)?;
    let (m, ndim) = (block.len(), shape.len());
    let whole: i64 = block.iter().product();
    let batch = prim::floordiv(shape[0].clone(), prim::int(whole));
    let mut parts: Vec<PrimExpr> = block.iter().map(|b| prim::int(*b)).collect();
    parts.push(batch.clone());
    parts.extend(shape[1..].iter().cloned());
    let mut order = vec![m as i64];
    let mut joined = vec![batch];
    for (i, b) in block.iter().enumerate() {
        order.extend([(m + 1 + i) as i64, i as i64]);
        joined.push(shape[i + 1].clone() * *b);
    }
    order.extend((2 * m + 1..m + ndim).map(|i| i as i64));
    joined.extend(shape[m + 1..].iter().cloned());
    let split = cx.reshape(x, parts)?;
    let moved = permute(cx, split, &order)?;
    let whole = cx.reshape(moved, joined.clone())?;
    let axes: Vec<usize> = (1..=m).collect();
    let from = (0..m).map(|i| prim::int(crops[2 * i])).collect();
    let to = (0..m).map(|i| &joined[i + 1] - crops[2 * i + 1]).collect();
    sliced(cx, whole, &axes, from, to, &vec![1; m])
}

/// Layouts as `NCHW` and `NCHW4c`: letters in capitals are dimensions, in small letters blocks of them.
pub(super) fn layout_transform(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (from, to) = (parts(&cx.str("src_layout"))?, parts(&cx.str("dst_layout"))?);
    let own = cx.shape(&x)?;
    if own.len() != from.len() {
        return fail("layout_transform: the source layout does not have the tensor's dimensions");
    }
    // Each letter's whole extent: its own dimension times its blocks.
    let extent = |letter: char| {
        from.iter()
            .zip(&own)
            .filter(|((l, _), _)| l.eq_ignore_ascii_case(&letter))
            .fold(prim::int(1), |n, (_, d)| n * d)
    };
    let block = |layout: &[(char, i64)], letter: char| {
        layout.iter().find(|(l, _)| l.is_ascii_lowercase() && l.eq_ignore_ascii_case(&letter)).map_or(1, |(_, n)| *n)
    };
    let mut shape = Vec::new();
    for (letter, size) in &to {
        if letter.is_ascii_lowercase() {
            shape.push(prim::int(*size));
        } else {
            let whole = extent(*letter);
            shape.push(prim::floordiv(whole + (block(&to, *letter) - 1), prim::int(block(&to, *letter))));
        }
    }
    let dtype = cx.dtype(&x)?;
    Ok(cx.builder.emit_te("layout_transform", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_layout", shape, |indices: &[PrimExpr]| {
            let whole = |letter: char| {
                to.iter().zip(indices).filter(|((l, _), _)| l.eq_ignore_ascii_case(&letter)).fold(
                    prim::int(0),
                    |at, ((l, _), index)| {
                        if l.is_ascii_lowercase() { at + index } else { at + index * block(&to, letter) }
                    },
                )
            };
            let at: Vec<PrimExpr> = from
                .iter()
                .map(|(letter, size)| {
                    let place = whole(*letter);
                    if letter.is_ascii_lowercase() {
                        prim::floormod(place, prim::int(*size))
                    } else {
                        prim::floordiv(place, prim::int(block(&from, *letter)))
                    }
                })
                .collect();
            // A block that the extent does not fill is filled with zeros.
            let padded = to
                .iter()
                .any(|(l, n)| l.is_ascii_lowercase() && extent(*l).as_int().is_none_or(|whole| whole % n != 0));
            if !padded {
                return x.at(&at);
            }
            let inside = to
                .iter()
                .filter(|(l, _)| l.is_ascii_lowercase())
                .map(|(l, _)| prim::lt(whole(*l), extent(*l)))
                .reduce(prim::and)
                .unwrap_or_else(|| prim::boolean(true));
            prim::if_then_else(inside, x.at(&at), prim::constant(dtype, 0.0))
        })]
    })?)
}

/// The letters of a layout with the sizes of blocks.
fn parts(layout: &str) -> Result<Vec<(char, i64)>, LowerError> {
    let (mut out, mut size) = (Vec::new(), String::new());
    for c in layout.chars() {
        match c {
            '0'..='9' => size.push(c),
            c if c.is_ascii_uppercase() && size.is_empty() => out.push((c, 0)),
            c if c.is_ascii_lowercase() => {
                let block = size.parse().ok().filter(|n| *n > 0);
                out.push((c, block.ok_or_else(|| LowerError(format!("{layout:?}: a block needs a size")))?));
                size.clear();
            }
            _ => return fail(format!("{layout:?} is no layout")),
        }
    }
    if size.is_empty() { Ok(out) } else { fail(format!("{layout:?} is no layout")) }
}
