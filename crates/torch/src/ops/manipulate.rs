//! Operators that change where elements stand, not what they are.

use relaxide_ir::Attrs;
use relaxide_ir::arith::dims;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::Value;

pub const TABLE: Table = &[
    ("aten.view", |cx| reshaped(cx, "self")),
    ("aten.view.dtype", |_| Err(NodeError::unsupported("bytes are not read as another element type"))),
    ("aten._unsafe_view", |cx| reshaped(cx, "self")),
    ("aten.view_copy", |cx| reshaped(cx, "self")),
    ("aten.view_as", |cx| reshaped(cx, "self")),
    ("aten.reshape", |cx| reshaped(cx, "self")),
    ("aten.reshape_as", |cx| reshaped(cx, "self")),
    ("aten.flatten", |cx| reshaped(cx, "self")),
    ("aten.ravel", |cx| reshaped(cx, "self")),
    ("aten.unflatten", |cx| reshaped(cx, "self")),
    ("aten.permute", permute),
    ("aten.transpose", transpose),
    ("aten.swapaxes", transpose),
    ("aten.t", transposed_matrix),
    ("aten.numpy_T", transposed_matrix),
    ("aten.movedim", movedim),
    ("aten.unsqueeze", unsqueeze),
    ("aten.squeeze", squeeze),
    ("aten.expand", expand),
    ("aten.expand_as", expand),
    ("aten.broadcast_to", expand),
    ("aten.cat", cat),
    ("aten.concat", cat),
    ("aten.concatenate", cat),
    ("aten.stack", stack),
    ("aten.split", parts),
    ("aten.split_with_sizes", parts),
    ("aten.split_with_sizes_copy", parts),
    ("aten.split_copy", parts),
    ("aten.chunk", parts),
    ("aten.tensor_split", parts),
    ("aten.unbind", unbind),
    ("aten.repeat", repeat),
    ("aten.tile", repeat),
    ("aten.repeat_interleave.self_int", repeat_interleave),
    ("aten.flip", flip),
    ("aten.roll", roll),
    ("aten.rot90", rot90),
    ("aten.diagonal", diagonal),
    ("aten.unfold", unfold),
    ("aten.constant_pad_nd", |cx| {
        let value = cx.float_or("value", 0.0)?;
        padded(cx, Fill::Value(value))
    }),
    ("aten.pad", pad),
    ("aten.reflection_pad1d", |cx| padded(cx, Fill::Reflect)),
    ("aten.reflection_pad2d", |cx| padded(cx, Fill::Reflect)),
    ("aten.reflection_pad3d", |cx| padded(cx, Fill::Reflect)),
    ("aten.replication_pad1d", |cx| padded(cx, Fill::Edge)),
    ("aten.replication_pad2d", |cx| padded(cx, Fill::Edge)),
    ("aten.replication_pad3d", |cx| padded(cx, Fill::Edge)),
    ("aten.pixel_shuffle", pixel_shuffle),
    ("aten.pixel_unshuffle", pixel_unshuffle),
    ("aten.channel_shuffle", channel_shuffle),
    ("aten.meshgrid", meshgrid),
    ("aten.as_strided", as_strided),
];

/// The same elements in the declared dimensions.
fn reshaped(cx: &mut Cx<'_>, name: &str) -> Outputs {
    let (x, to) = (cx.tensor(name)?, cx.result()?.dims.clone());
    one(cx.reshape(x, &to)?)
}

fn permute(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axes = cx.axes("dims", cx.rank(&x)?)?;
    one(cx.permute(x, &axes)?)
}

fn swapped(rank: usize, a: usize, b: usize) -> Vec<usize> {
    let mut axes: Vec<usize> = (0..rank).collect();
    axes.swap(a, b);
    axes
}

fn transpose(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    if rank == 0 {
        return one(x);
    }
    let names = if cx.get("dim0").is_some() { ("dim0", "dim1") } else { ("axis0", "axis1") };
    let (a, b) = (cx.axis(names.0, 0, rank)?, cx.axis(names.1, 0, rank)?);
    one(cx.permute(x, &swapped(rank, a, b))?)
}

fn transposed_matrix(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axes: Vec<usize> = (0..cx.rank(&x)?).rev().collect();
    one(cx.permute(x, &axes)?)
}

fn movedim(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    let (from, to) = (cx.axes("source", rank)?, cx.axes("destination", rank)?);
    let mut axes = vec![usize::MAX; rank];
    for (&from, &to) in from.iter().zip(&to) {
        axes[to] = from;
    }
    let mut rest = (0..rank).filter(|axis| !from.contains(axis));
    for axis in &mut axes {
        if *axis == usize::MAX {
            *axis = rest.next().ok_or_else(|| NodeError::invalid("an axis is moved twice"))?;
        }
    }
    one(cx.permute(x, &axes)?)
}

fn unsqueeze(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", 0, cx.rank(&x)? + 1)?;
    one(cx.op("expand_dims", [x], Attrs::new().with("axis", vec![axis as i64]))?)
}

fn squeeze(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let shape = cx.shape(&x)?;
    if shape.is_empty() {
        return one(x);
    }
    let single = |axis: &usize| shape[*axis].is_int(1);
    let axes: Vec<i64> = cx.axes("dim", shape.len())?.into_iter().filter(single).map(|axis| axis as i64).collect();
    if axes.is_empty() {
        return one(x);
    }
    one(cx.op("squeeze", [x], Attrs::new().with("axis", axes))?)
}

fn expand(cx: &mut Cx<'_>) -> Outputs {
    let (x, to) = (cx.tensor("self")?, cx.result()?.dims.clone());
    one(cx.broadcast(x, &to)?)
}

fn cat(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    let axis = cx.axis("dim", 0, declared.dims.len())?;
    let mut parts = Vec::new();
    for part in cx.tensors("tensors")? {
        let shape = cx.shape(&part)?;
        // PyTorch lets a tensor of no elements and one axis stand beside any.
        if shape.len() == 1 && declared.dims.len() != 1 && shape[0].is_int(0) {
            continue;
        }
        let mut wanted = declared.clone();
        wanted.dims[axis] = shape.get(axis).cloned().ok_or_else(|| NodeError::invalid("a tensor has too few axes"))?;
        parts.push(cx.declared(part, &wanted)?);
    }
    if let [single] = parts.as_slice() {
        return one(single.clone());
    }
    one(cx.op("concat", [Expr::tuple(parts)], Attrs::new().with("axis", axis as i64))?)
}

fn stack(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    let axis = cx.axis("dim", 0, declared.dims.len())?;
    let mut wanted = declared;
    wanted.dims.remove(axis);
    let mut parts = Vec::new();
    for part in cx.tensors("tensors")? {
        parts.push(cx.declared(part, &wanted)?);
    }
    one(cx.op("stack", [Expr::tuple(parts)], Attrs::new().with("axis", axis as i64))?)
}

/// A part of an axis, with bounds that are inside of it.
pub fn part(cx: &mut Cx<'_>, x: Expr, axis: usize, start: PrimExpr, end: PrimExpr, step: i64) -> Result<Expr> {
    let ordered = dims::non_negative(&(&end - &start));
    let tuple = |e: PrimExpr| Expr::tuple([Expr::prim(e)]);
    let args = [x, tuple(prim::int(axis as i64)), tuple(start), tuple(end), tuple(prim::int(step))];
    cx.op("strided_slice", args, Attrs::new().with("assume_inbound", ordered))
}

/// An axis cut as the declared results say.
fn parts(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", 0, cx.rank(&x)?)?;
    let lengths: Option<Vec<PrimExpr>> = cx.results.iter().map(|r| r.dims.get(axis).cloned()).collect();
    let lengths = lengths.ok_or_else(|| NodeError::invalid("the program does not say what the parts are"))?;
    let mut bounds = vec![prim::int(0)];
    for length in &lengths {
        bounds.push(dims::simplify(&(&bounds[bounds.len() - 1] + length)));
    }
    let count = lengths.len();
    let known: Option<Vec<i64>> = bounds[1..count].iter().map(PrimExpr::as_int).collect();
    if let (Some(at), true) = (&known, count > 1) {
        let attrs = Attrs::new().with("indices_or_sections", at.clone()).with("axis", axis as i64);
        let tuple = cx.op("split", [x], attrs)?;
        return (0..count).map(|i| Ok(Value::Tensor(cx.field(&tuple, i)?))).collect();
    }
    let cut = |(i, _): (usize, &PrimExpr)| {
        let piece = part(cx, x.clone(), axis, bounds[i].clone(), bounds[i + 1].clone(), 1)?;
        Ok(Value::Tensor(piece))
    };
    lengths.iter().enumerate().map(cut).collect()
}

fn unbind(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let axis = cx.axis("dim", 0, cx.rank(&x)?)?;
    let count = cx.results.len() as i64;
    if count == 1 {
        let dims = cx.results[0].dims.clone();
        return one(cx.reshape(x, &dims)?);
    }
    let attrs = Attrs::new().with("indices_or_sections", count).with("axis", axis as i64);
    let tuple = cx.op("split", [x], attrs)?;
    let mut out = Vec::new();
    for i in 0..count as usize {
        let piece = cx.field(&tuple, i)?;
        out.push(Value::Tensor(cx.op("squeeze", [piece], Attrs::new().with("axis", vec![axis as i64]))?));
    }
    Ok(out)
}

/// Repeats along axes, new ones in front included.
fn repeat(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let shape = cx.shape(&x)?;
    let name = if cx.get("repeats").is_some() { "repeats" } else { "dims" };
    let times = cx.dims(name)?.unwrap_or_default();
    let known: Option<Vec<i64>> = times.iter().map(PrimExpr::as_int).collect();
    if let Some(times) = known {
        return one(cx.op("tile", [x], Attrs::new().with("repeats", times))?);
    }
    let front = declared.dims.len() - shape.len().min(declared.dims.len());
    one(cx.te("tile", vec![x], |inputs| {
        vec![te::compute("tile", &declared.dims, |at| {
            let index: Vec<PrimExpr> = shape.iter().zip(&at[front..]).map(|(dim, i)| prim::floormod(i, dim)).collect();
            inputs[0].at(&index)
        })]
    })?)
}

fn repeat_interleave(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let times = cx.int("repeats")?.ok_or_else(|| NodeError::unsupported("a number of repeats that is not known"))?;
    let rank = cx.rank(&x)?;
    if cx.get("dim").is_none() {
        let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
        let flat = cx.reshape(x, &[count])?;
        return one(cx.op("repeat", [flat], Attrs::new().with("repeats", times).with("axis", 0i64))?);
    }
    let axis = cx.axis("dim", 0, rank)?;
    one(cx.op("repeat", [x], Attrs::new().with("repeats", times).with("axis", axis as i64))?)
}

fn flip(cx: &mut Cx<'_>) -> Outputs {
    let mut x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    for axis in cx.ints("dims")?.unwrap_or_default() {
        let axis = cx.axis_from_front(axis, rank)?;
        x = cx.op("flip", [x], Attrs::new().with("axis", axis as i64))?;
    }
    one(x)
}

fn roll(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let own = cx.shape(&x)?;
    let shifts = cx.dims("shifts")?.unwrap_or_default();
    let axes = cx.ints("dims")?.unwrap_or_default();
    // Without axes all elements are one row.
    let flat = axes.is_empty();
    let shape = if flat { vec![own.iter().fold(prim::int(1), |n, d| n * d)] } else { own.clone() };
    let axes = if flat { vec![0] } else { axes };
    if axes.len() != shifts.len() {
        return Err(NodeError::invalid(format!("{} shifts for {} axes", shifts.len(), axes.len())));
    }
    let axes = axes.into_iter().map(|axis| cx.axis_from_front(axis, shape.len())).collect::<Result<Vec<_>>>()?;
    let x = cx.reshape(x, &shape)?;
    let rolled = cx.te("roll", vec![x], |inputs| {
        vec![te::compute("roll", &shape, |at| {
            let mut index = at.to_vec();
            for (&axis, shift) in axes.iter().zip(&shifts) {
                index[axis] = prim::floormod(&index[axis] - shift, &shape[axis]);
            }
            inputs[0].at(&index)
        })]
    })?;
    one(cx.reshape(rolled, &own)?)
}

fn rot90(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let rank = cx.rank(&x)?;
    let axes = cx.ints("dims")?.unwrap_or_else(|| vec![0, 1]);
    let [a, b] = axes.as_slice() else { return Err(NodeError::invalid("`dims` must be two axes")) };
    let (a, b) = (cx.axis_from_front(*a, rank)?, cx.axis_from_front(*b, rank)?);
    let flip = |cx: &mut Cx<'_>, x: Expr, axis: usize| cx.op("flip", [x], Attrs::new().with("axis", axis as i64));
    one(match cx.int_or("k", 1)?.rem_euclid(4) {
        1 => {
            let x = flip(cx, x, b)?;
            cx.permute(x, &swapped(rank, a, b))?
        }
        2 => {
            let x = flip(cx, x, a)?;
            flip(cx, x, b)?
        }
        3 => {
            let x = flip(cx, x, a)?;
            cx.permute(x, &swapped(rank, a, b))?
        }
        _ => x,
    })
}

fn diagonal(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let rank = cx.rank(&x)?;
    let (a, b) = (cx.axis("dim1", 0, rank)?, cx.axis("dim2", 1, rank)?);
    let offset = cx.int_or("offset", 0)?;
    one(cx.te("diagonal", vec![x], |inputs| {
        vec![te::compute("diagonal", &declared.dims, |at| {
            let along = &at[at.len() - 1];
            let mut rest = at[..at.len() - 1].iter();
            let index: Vec<PrimExpr> = (0..rank)
                .map(|axis| match axis {
                    _ if axis == a => along + (-offset).max(0),
                    _ if axis == b => along + offset.max(0),
                    _ => rest.next().cloned().unwrap_or_else(|| prim::int(0)),
                })
                .collect();
            inputs[0].at(&index)
        })]
    })?)
}

/// Windows of an axis, as a new last axis.
fn unfold(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let axis = cx.axis("dimension", 0, cx.rank(&x)?)?;
    let step = cx.dim("step")?.unwrap_or_else(|| prim::int(1));
    one(cx.te("unfold", vec![x], |inputs| {
        vec![te::compute("unfold", &declared.dims, |at| {
            let last = at.len() - 1;
            let mut index = at[..last].to_vec();
            index[axis] = &at[axis] * &step + &at[last];
            inputs[0].at(&index)
        })]
    })?)
}

/// What stands around a tensor that is padded.
#[derive(Clone, Copy)]
enum Fill {
    Value(f64),
    Reflect,
    Edge,
    Circular,
}

fn pad(cx: &mut Cx<'_>) -> Outputs {
    let fill = match cx.text_or("mode", "constant")? {
        "constant" => Fill::Value(cx.float_or("value", 0.0)?),
        "reflect" => Fill::Reflect,
        "replicate" => Fill::Edge,
        "circular" => Fill::Circular,
        other => return Err(NodeError::invalid(format!("`mode` is \"{other}\""))),
    };
    padded(cx, fill)
}

/// Adds elements in front of axes and behind them, from the last axis on; negative counts cut.
fn padded(cx: &mut Cx<'_>, fill: Fill) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let own = cx.shape(&x)?;
    let name = if cx.get("pad").is_some() { "pad" } else { "padding" };
    let pads = cx.dims(name)?.unwrap_or_default();
    if pads.len() % 2 != 0 || pads.len() / 2 > own.len() {
        return Err(NodeError::invalid(format!("`{name}` has {} counts for {} axes", pads.len(), own.len())));
    }
    let mut front = vec![prim::int(0); own.len()];
    for (i, pair) in pads.chunks(2).enumerate() {
        front[own.len() - 1 - i] = pair[0].clone();
    }
    let known: Option<Vec<i64>> = pads.iter().map(PrimExpr::as_int).collect();
    if let (Fill::Value(value), Some(known)) = (fill, known.filter(|list| list.iter().all(|&n| n >= 0))) {
        let mut widths = vec![0; 2 * own.len()];
        for (i, pair) in known.chunks(2).enumerate() {
            let axis = own.len() - 1 - i;
            (widths[2 * axis], widths[2 * axis + 1]) = (pair[0], pair[1]);
        }
        let attrs = Attrs::new().with("pad_width", widths).with("pad_mode", "constant").with("pad_value", value);
        return one(cx.op("nn.pad", [x], attrs)?);
    }
    let dtype = cx.dtype(&x);
    one(cx.te("pad", vec![x], |inputs| {
        vec![te::compute("pad", &declared.dims, |at| {
            let mut inside = prim::boolean(true);
            let mut index = Vec::new();
            for ((i, before), dim) in at.iter().zip(&front).zip(&own) {
                let place = i - before;
                index.push(match fill {
                    _ if before.is_int(0) && dims::equal(dim, &declared.dims[index.len()]) => i.clone(),
                    Fill::Value(_) => {
                        inside = prim::and(inside.clone(), prim::and(prim::ge(&place, 0), prim::lt(&place, dim)));
                        place
                    }
                    Fill::Edge => prim::max(prim::min(place, dim - 1), 0),
                    Fill::Circular => prim::floormod(place, dim),
                    Fill::Reflect => {
                        let up = prim::select(prim::lt(&place, 0), prim::int(0) - &place, place);
                        prim::select(prim::ge(&up, dim), (dim - 1) * 2 - &up, up)
                    }
                });
            }
            let value = inputs[0].at(&index);
            match fill {
                Fill::Value(fill) => prim::if_then_else(inside, value, prim::constant(dtype, fill)),
                _ => value,
            }
        })]
    })?)
}

fn pixel_shuffle(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    one(cx.op("nn.pixel_shuffle", [x], Attrs::new().with("upscale_factor", cx.int_or("upscale_factor", 1)?))?)
}

fn pixel_unshuffle(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let shape = cx.shape(&x)?;
    let factor = cx.int_or("downscale_factor", 1)?;
    let Some(axis) = shape.len().checked_sub(3) else { return Err(NodeError::invalid("an image has three axes")) };
    let (front, back) = (&shape[..axis], &shape[axis..]);
    let mut split = front.to_vec();
    split.push(back[0].clone());
    for dim in &back[1..] {
        split.extend([prim::floordiv(dim, factor), prim::int(factor)]);
    }
    let x = cx.reshape(x, &split)?;
    let axes: Vec<usize> = (0..axis).chain([axis, axis + 2, axis + 4, axis + 1, axis + 3]).collect();
    let x = cx.permute(x, &axes)?;
    one(cx.reshape(x, &declared.dims)?)
}

fn channel_shuffle(cx: &mut Cx<'_>) -> Outputs {
    let x = cx.tensor("self")?;
    let shape = cx.shape(&x)?;
    let groups = cx.int_or("groups", 1)?;
    if shape.len() < 2 {
        return Err(NodeError::invalid("an image has channels"));
    }
    let mut split = vec![shape[0].clone(), prim::int(groups), prim::floordiv(&shape[1], groups)];
    split.extend_from_slice(&shape[2..]);
    let x = cx.reshape(x, &split)?;
    let x = cx.permute(x, &swapped(split.len(), 1, 2))?;
    one(cx.reshape(x, &shape)?)
}

fn meshgrid(cx: &mut Cx<'_>) -> Outputs {
    let (axes, results) = (cx.tensors("tensors")?, cx.results.clone());
    let xy = cx.text_or("indexing", "ij")? == "xy";
    let mut out = Vec::new();
    for (i, (tensor, declared)) in axes.into_iter().zip(&results).enumerate() {
        let at = if xy && i < 2 { 1 - i } else { i };
        let mut dims = vec![prim::int(1); results.len()];
        dims[at] = cx.shape(&tensor)?.first().cloned().unwrap_or_else(|| prim::int(1));
        let column = cx.reshape(tensor, &dims)?;
        out.push(Value::Tensor(cx.broadcast(column, &declared.dims)?));
    }
    Ok(out)
}

/// Elements at distances in memory, which is taken to be compact.
fn as_strided(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let strides = cx.dims("stride")?.unwrap_or_default();
    let offset = cx.dim("storage_offset")?.unwrap_or_else(|| prim::int(0));
    if strides.len() != declared.dims.len() {
        return Err(NodeError::invalid("`stride` has another length than `size`"));
    }
    let count = cx.shape(&x)?.into_iter().fold(prim::int(1), |n, d| n * d);
    let flat = cx.reshape(x, &[count])?;
    one(cx.te("as_strided", vec![flat], |inputs| {
        vec![te::compute("as_strided", &declared.dims, |at| {
            let place = at.iter().zip(&strides).fold(offset.clone(), |n, (i, stride)| n + i * stride);
            inputs[0].at(&[place])
        })]
    })?)
}
