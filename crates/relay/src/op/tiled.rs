//! Convolutions whose weight is stored in tiles for a product of matrices, and those whose weight is sparse. The weight is brought
//! back to its plain layout, which folds away where it is a constant, and the usual convolution does the rest.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;

use super::cx::{LowerCx, Lowered, attrs, fail};

fn known(cx: &LowerCx<'_>, e: &rx::Expr) -> Result<Vec<i64>, super::LowerError> {
    let dims = rx::shape::const_dims(&cx.shape(e)?);
    dims.map_or_else(|| fail(format!("{} needs a weight of known size", cx.def.name)), Ok)
}

fn in_shape(cx: &mut LowerCx<'_>, e: rx::Expr, dims: &[i64]) -> Lowered {
    cx.reshape(e, dims.iter().copied().map(prim::int).collect())
}

fn transposed(cx: &mut LowerCx<'_>, e: rx::Expr, axes: &[i64]) -> Lowered {
    cx.emit("permute_dims", [e], attrs([("axes", axes.to_vec().into())]))
}

/// Whether tiles have their columns in front of their rows.
fn columns_first(cx: &LowerCx<'_>, e: &rx::Expr) -> Result<bool, super::LowerError> {
    let dtype = cx.dtype(e)?;
    Ok(dtype.bits == 8 && (dtype.is_int() || dtype.is_uint()))
}

/// A weight in `HWIO` as tiles of the matrix that it is: `(columns / n, rows / k, k, n)`, for bytes `(…, n, k)`. What tiles have
/// more is zero; rows fill four tiles.
pub(super) fn gemm_weight(cx: &mut LowerCx<'_>) -> Lowered {
    let weight = cx.arg(0)?;
    let dims = known(cx, &weight)?;
    let [height, width, input, output] = dims[..] else {
        return fail(format!("{} takes a weight in HWIO", cx.def.name));
    };
    let (n, k) = (cx.int("tile_N")?, cx.int("tile_K")?);
    if n <= 0 || k <= 0 {
        return fail(format!("{}: tiles of {n} by {k} are none", cx.def.name));
    }
    let (rows, columns) = (height * width * input, output);
    let whole = |length: i64, tile: i64| (length + tile - 1) / tile * tile;
    let (all_rows, all_columns) = (whole(rows, 4 * k), whole(columns, n));
    let flat = in_shape(cx, weight.clone(), &[rows, columns])?;
    let width = vec![0, all_rows - rows, 0, all_columns - columns];
    let pairs = attrs([("pad_width", width.into()), ("pad_mode", "constant".into()), ("pad_value", 0.0.into())]);
    let flat = cx.emit("nn.pad", [flat], pairs)?;
    let tiles = in_shape(cx, flat, &[all_rows / k, k, all_columns / n, n])?;
    let axes: [i64; 4] = if columns_first(cx, &weight)? { [2, 0, 3, 1] } else { [2, 0, 1, 3] };
    transposed(cx, tiles, &axes)
}

/// A convolution in `NHWC` whose weight is in such tiles.
pub(super) fn gemm_conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, tiles) = (cx.arg(0)?, cx.arg(1)?);
    let dims = known(cx, &tiles)?;
    let [a, b, c, d] = dims[..] else { return fail(format!("{} takes a weight in tiles", cx.def.name)) };
    let (kernel, output) = (cx.ints("kernel_size")?, cx.int("channels")?);
    let [height, width] = kernel[..] else { return fail(format!("{}: kernel_size has two numbers", cx.def.name)) };
    let layout = cx.str("data_layout");
    let input = cx.shape(&x)?.get(3).and_then(PrimExpr::as_int).filter(|_| layout == "NHWC");
    let Some(input) = input else { return fail(format!("{} takes data in NHWC with known channels", cx.def.name)) };
    let first = columns_first(cx, &tiles)?;
    let (n, k) = if first { (c, d) } else { (d, c) };
    let (rows, columns) = (height * width * input, output);
    if rows > b * k || columns > a * n || rows < 0 || columns < 0 {
        let (all_rows, all_columns) = (b * k, a * n);
        return fail(format!(
            "{}: a weight of {rows} by {columns} is not in tiles that hold {all_rows} by {all_columns}",
            cx.def.name
        ));
    }
    let axes: [i64; 4] = if first { [1, 3, 0, 2] } else { [1, 2, 0, 3] };
    let flat = transposed(cx, tiles, &axes)?;
    let flat = in_shape(cx, flat, &[b * k, a * n])?;
    let pairs = attrs([("begin", vec![0, 0].into()), ("end", vec![rows, columns].into())]);
    let flat = cx.relay("strided_slice", vec![flat], pairs)?;
    let weight = in_shape(cx, flat, &[height, width, input, output])?;
    let attrs = cx.attrs.clone().with("kernel_layout", "HWIO");
    cx.relay("nn.conv2d", vec![x, weight], attrs)
}

/// A convolution with a sparse weight: a product of the image's points, or of their neighbourhoods, with a sparse matrix.
pub(super) fn sparse_conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (layout, kernel) = (cx.str("layout"), cx.ints("kernel_size")?);
    let is_last = match layout.as_str() {
        "NHWC" => true,
        "NCHW" => false,
        other => return fail(format!("nn.sparse_conv2d: there is no layout {other}")),
    };
    let shape = cx.shape(&x)?;
    let [batch, ..] = &shape[..] else { return fail("nn.sparse_conv2d takes an image") };
    if shape.len() != 4 {
        return fail("nn.sparse_conv2d takes an image of four dimensions");
    }
    let (height, width, depth) = match is_last {
        true => (&shape[1], &shape[2], &shape[3]),
        false => (&shape[2], &shape[3], &shape[1]),
    };
    let points = match kernel[..] {
        [1, 1] => match is_last {
            true => x,
            false => transposed(cx, x, &[0, 2, 3, 1])?,
        },
        [3, 3] => neighbours(cx, x, is_last)?,
        _ => return fail(format!("nn.sparse_conv2d: a kernel of {kernel:?} is neither 1 by 1 nor 3 by 3")),
    };
    let numbers = depth * kernel.iter().product::<i64>();
    let count = batch * height * width;
    let points = cx.reshape(points, vec![count, numbers])?;
    let parts = [cx.arg(1)?, cx.arg(2)?, cx.arg(3)?];
    let args = [points].into_iter().chain(parts).collect();
    let result = cx.relay("nn.sparse_dense", args, relaxide_ir::Attrs::new())?;
    let outputs = cx.shape(&result)?[1].clone();
    let result = cx.reshape(result, vec![batch.clone(), height.clone(), width.clone(), outputs])?;
    if is_last { Ok(result) } else { transposed(cx, result, &[0, 3, 1, 2]) }
}

/// The points around each point, zero beyond the image: `(batch, height, width, numbers)`, where the channel runs fastest in `NHWC`
/// and slowest in `NCHW`.
fn neighbours(cx: &mut LowerCx<'_>, x: rx::Expr, is_last: bool) -> Lowered {
    let pads = if is_last { vec![0, 0, 1, 1, 1, 1, 0, 0] } else { vec![0, 0, 0, 0, 1, 1, 1, 1] };
    let shape = cx.shape(&x)?;
    let pairs = attrs([("pad_width", pads.into()), ("pad_mode", "constant".into()), ("pad_value", 0.0.into())]);
    let padded = cx.emit("nn.pad", [x], pairs)?;
    let (row, channel) = if is_last { (1, 3) } else { (2, 1) };
    let (height, width, depth) = (shape[row].clone(), shape[row + 1].clone(), shape[channel].clone());
    let out = [shape[0].clone(), height, width, depth.clone() * 9];
    Ok(cx.builder.emit_te("neighbours", vec![padded], |t| {
        let padded = t[0].clone();
        vec![relaxide_tir::te::compute("T_neighbours", out, |at: &[PrimExpr]| {
            let number = at[3].clone();
            let (c, place) = match is_last {
                true => (prim::floormod(number.clone(), depth.clone()), prim::floordiv(number, depth.clone())),
                false => (prim::floordiv(number.clone(), prim::int(9)), prim::floormod(number, prim::int(9))),
            };
            let y = at[1].clone() + prim::floordiv(place.clone(), prim::int(3));
            let z = at[2].clone() + prim::floormod(place, prim::int(3));
            match is_last {
                true => padded.at(&[at[0].clone(), y, z, c]),
                false => padded.at(&[at[0].clone(), c, y, z]),
            }
        })]
    })?)
}
