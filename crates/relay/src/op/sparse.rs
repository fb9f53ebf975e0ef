//! Sparse matrices.
//!
//! A sparse weight is a constant of the model nearly always. Then it is made dense when the program is compiled, and the
//! dense kernels, which are the fast ones, do the rest; a sparse matrix that only the run shows is gone through element by
//! element.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::Buffer;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::{Stmt, te};

use super::cx::{DimDef, LowerCx, Lowered, NewDims, attrs, fail};
use super::manipulate::PLACES;
use crate::scalar;

/// Numbers at places, and another elsewhere.
pub(super) fn sparse_to_dense(cx: &mut LowerCx<'_>) -> Lowered {
    let shape = cx.ints("output_shape")?.into_iter().map(prim::int).collect();
    placed_in(cx, shape)
}

/// The same in a shape whose dimensions may be expressions.
pub(super) fn placed_in(cx: &mut LowerCx<'_>, shape: Vec<PrimExpr>) -> Lowered {
    let (indices, values, default) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let dtype = cx.dtype(&values)?;
    let default = cx.cast(default, dtype)?;
    let filled = cx.emit("full", [rx::Expr::shape(shape.clone()), default], attrs([("dtype", dtype.into())]))?;
    let (ndim, rank) = (cx.ndim(&indices)?, shape.len() as i64);
    let count = match ndim {
        0 => prim::int(1),
        _ => cx.shape(&indices)?[0].clone(),
    };
    if ndim < 2 && rank != 1 {
        return fail("sparse_to_dense: places in several dimensions are a matrix");
    }
    let indices = cx.cast(indices, PLACES)?;
    let indices = cx.reshape(indices, vec![count.clone(), prim::int(rank)])?;
    let values = match cx.ndim(&values)? {
        0 => {
            let one = cx.reshape(values, vec![prim::int(1)])?;
            cx.op("broadcast_to", [one, rx::Expr::shape(vec![count])])?
        }
        _ => values,
    };
    cx.emit("scatter_nd", [filled, indices, values], attrs([("reduction", "update".into())]))
}

/// A sparse matrix of constants, dense: compressed rows, or rows of blocks.
fn dense_of(cx: &LowerCx<'_>, first: usize, columns: Option<i64>) -> Option<Tensor> {
    let (data, indices, starts) = (cx.value(first)?, cx.value(first + 1)?, cx.value(first + 2)?);
    let (indices, starts) = (scalar::ints(&indices)?, scalar::ints(&starts)?);
    let (height, width) = match data.shape() {
        [_] => (1, 1),
        // Blocks of one column.
        [_, height] => (usize::try_from(*height).ok()?, 1),
        [_, height, width] => (usize::try_from(*height).ok()?, usize::try_from(*width).ok()?),
        _ => return None,
    };
    let rows = starts.len().checked_sub(1)? * height;
    let columns = match columns {
        Some(columns) => usize::try_from(columns).ok()?,
        None => (usize::try_from(indices.iter().max()? + 1).ok()?) * width,
    };
    let size = data.byte_size().checked_div(data.numel().max(1))?;
    let bytes = data.to_bytes().ok()?;
    let mut out = vec![0u8; rows.checked_mul(columns)?.checked_mul(size)?];
    for (block_row, range) in starts.windows(2).enumerate() {
        for at in usize::try_from(range[0]).ok()?..usize::try_from(range[1]).ok()? {
            let column = usize::try_from(*indices.get(at)?).ok()? * width;
            if column + width > columns {
                return None;
            }
            for y in 0..height {
                let from = (at * height + y) * width * size;
                let to = ((block_row * height + y) * columns + column) * size;
                out.get_mut(to..to + width * size)?.copy_from_slice(bytes.get(from..from + width * size)?);
            }
        }
    }
    Tensor::from_bytes(&out, &[rows as i64, columns as i64], data.dtype()).ok()
}

/// The product of a dense matrix and the transpose of a sparse one, or of the sparse one and the transpose of the dense one.
pub(super) fn sparse_dense(cx: &mut LowerCx<'_>) -> Lowered {
    let product = dense_and_sparse(cx)?;
    match cx.bool("sparse_lhs") {
        true => cx.emit("permute_dims", [product], relaxide_ir::Attrs::new().with("axes", vec![1, 0])),
        false => Ok(product),
    }
}

fn dense_and_sparse(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    if let Some(weight) = dense_of(cx, 1, shape[1].as_int()) {
        return cx.relay(
            "nn.dense",
            vec![x, rx::Expr::constant(weight)],
            relaxide_ir::Attrs::new().with("units", relaxide_ir::AttrValue::None),
        );
    }
    let parts = [cx.arg(1)?, cx.arg(2)?, cx.arg(3)?];
    if cx.ndim(&parts[0])? != 1 {
        return fail("nn.sparse_dense: blocks must be constants");
    }
    let dtype = cx.dtype(&x)?;
    let (count, rows) = (cx.shape(&parts[0])?[0].clone(), cx.shape(&parts[2])?[0].clone() - 1);
    let (out, depth) = ([shape[0].clone(), rows], shape[1].clone());
    let [data, indices, starts] = parts;
    let all = te::reduce_axis(count);
    Ok(cx.builder.emit_te("sparse_dense", vec![x, data, indices, starts], |inputs| {
        let [x, data, indices, starts] = [0, 1, 2, 3].map(|i| inputs[i].clone());
        vec![te::compute("T_sparse_dense", out, |at: &[PrimExpr]| {
            let j = all.var();
            let own = row_holds(&starts, &at[1], &j);
            let column = within(prim::cast(PLACES, indices.at(std::slice::from_ref(&j))), &depth);
            let product = data.at(std::slice::from_ref(&j)) * x.at(&[at[0].clone(), column]);
            te::sum(prim::select(own, product, prim::constant(dtype, 0.0)), [all.clone()])
        })]
    })?)
}

fn row_holds(starts: &te::Tensor, row: &PrimExpr, j: &PrimExpr) -> PrimExpr {
    let bound = |row: PrimExpr| prim::cast(PLACES, starts.at(&[row]));
    let place = prim::cast(PLACES, j.clone());
    prim::and(prim::le(bound(row.clone()), place.clone()), prim::lt(&place, bound(row.clone() + 1)))
}

/// An index that is data stays inside.
fn within(index: PrimExpr, extent: &PrimExpr) -> PrimExpr {
    prim::max(prim::min(index, extent.clone() - 1), prim::int(0))
}

/// A dense matrix and a sparse one added.
pub(super) fn sparse_add(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let shape = cx.shape(&x)?;
    if let Some(other) = dense_of(cx, 1, shape[1].as_int()) {
        return cx.binary("add", x, rx::Expr::constant(other));
    }
    let (data, indices, starts) = (cx.arg(1)?, cx.arg(2)?, cx.arg(3)?);
    let dtype: DataType = cx.dtype(&x)?;
    let all = te::reduce_axis(cx.shape(&data)?[0].clone());
    let out = shape.clone();
    let added = cx.builder.emit_te("sparse_matrix", vec![data, indices, starts], |inputs| {
        let [data, indices, starts] = [0, 1, 2].map(|i| inputs[i].clone());
        vec![te::compute("T_sparse_matrix", out, |at: &[PrimExpr]| {
            let j = all.var();
            let here =
                prim::eq(prim::cast(PLACES, indices.at(std::slice::from_ref(&j))), prim::cast(PLACES, at[1].clone()));
            let own = prim::and(row_holds(&starts, &at[0], &j), here);
            te::sum(prim::select(own, data.at(std::slice::from_ref(&j)), prim::constant(dtype, 0.0)), [all.clone()])
        })]
    })?;
    cx.binary("add", x, added)
}

/// The places of a sparse tensor's numbers in another shape, of which one dimension may be -1.
pub(super) fn sparse_reshape(cx: &mut LowerCx<'_>) -> Lowered {
    let (indices, from, to) = (cx.arg(0)?, cx.arg(1)?, cx.arg(2)?);
    let length = |dims: Vec<PrimExpr>| dims.first().and_then(PrimExpr::as_int);
    let (Some(rank), Some(new_rank)) = (length(cx.shape(&from)?), length(cx.shape(&to)?)) else {
        return fail("sparse_reshape: shapes are vectors of known length");
    };
    let (dtype, shape_type) = (cx.dtype(&indices)?, cx.dtype(&to)?);
    let count = cx.shape(&indices)?[0].clone();
    let indices = cx.reshape(indices, vec![count.clone(), prim::int(rank)])?;
    Ok(cx.builder.emit_te("sparse_reshape", vec![indices, from, to], |inputs| {
        let [indices, from, to] = [0, 1, 2].map(|i| inputs[i].clone());
        let dim = |of: &te::Tensor, i: i64| prim::cast(PLACES, of.at(&[prim::int(i)]));
        let product = |dims: Vec<PrimExpr>| dims.into_iter().fold(prim::int(1), |all, dim| all * dim);
        let open = |i: i64| prim::lt(dim(&to, i), prim::int(0));
        let known = product((0..new_rank).map(|i| prim::select(open(i), prim::int(1), dim(&to, i))).collect());
        let total = product((0..rank).map(|i| dim(&from, i)).collect());
        // A dimension of nothing divides nothing.
        let rest = prim::floordiv(total, prim::max(known, prim::int(1)));
        let shape = te::compute("T_shape", [new_rank], |at: &[PrimExpr]| {
            let own = prim::cast(PLACES, to.at(at));
            prim::cast(PLACES, prim::select(prim::lt(&own, prim::int(0)), rest, own))
        });
        let places = te::compute("T_sparse_reshape", [count, prim::int(new_rank)], |at: &[PrimExpr]| {
            let index = |i: i64| prim::cast(PLACES, indices.at(&[at[0].clone(), prim::int(i)]));
            let flat = (0..rank).fold(prim::int(0), |place, i| place * dim(&from, i) + index(i));
            let along = |axis: i64| {
                let behind = product((axis + 1..new_rank).map(|i| shape.at(&[prim::int(i)])).collect());
                let place = prim::floordiv(flat.clone(), prim::max(behind, prim::int(1)));
                match axis {
                    0 => place,
                    _ => prim::floormod(place, prim::max(shape.at(&[prim::int(axis)]), prim::int(1))),
                }
            };
            let chosen = (0..new_rank - 1).rev().fold(along(new_rank - 1), |other, axis| {
                prim::select(prim::eq(at[1].clone(), prim::int(axis)), along(axis), other)
            });
            prim::cast(dtype, chosen)
        });
        let own = shape.clone();
        let shape = te::compute("T_new_shape", [new_rank], |at: &[PrimExpr]| prim::cast(shape_type, own.at(at)));
        vec![places, shape]
    })?)
}

/// The types of a sparse matrix without empty rows. The call is made of other operators before it is compiled
/// ([`crate::transform`]), since how many rows are empty is what only the run shows.
pub(super) fn sparse_fill_empty_rows(cx: &mut LowerCx<'_>) -> Lowered {
    if !matches!(cx.dims, NewDims::Type) {
        return fail("sparse_fill_empty_rows was not made of other operators; this is a defect of Relaxide");
    }
    let (indices, values, _) = (cx.arg(0)?, cx.arg(1)?, cx.arg(3)?);
    let (index, value) = (cx.dtype(&indices)?, cx.dtype(&values)?);
    let shape = cx.shape(&indices)?;
    let [_, rank] = shape.as_slice() else { return fail("sparse_fill_empty_rows: places are a matrix") };
    let (count, rows) = (prim::int(0), prim::int(0));
    let (count, rows) = (cx.dim("count", DimDef::Expr(open(count))), cx.dim("rows", DimDef::Expr(open(rows))));
    let filled = |cx: &mut LowerCx<'_>, shape: Vec<PrimExpr>, dtype: DataType| {
        let zero = cx.constant(0.0, dtype)?;
        cx.emit("full", [rx::Expr::shape(shape), zero], attrs([("dtype", dtype.into())]))
    };
    let places = filled(cx, vec![count.clone(), rank.clone()], index)?;
    let (values, empty) = (filled(cx, vec![count], value)?, filled(cx, vec![rows], index)?);
    Ok(rx::Expr::tuple([places, values, empty]))
}

/// A dimension that is not known.
fn open(e: PrimExpr) -> PrimExpr {
    e + PrimExpr::Var(relaxide_ir::Var::dim("n"))
}

/// A square sparse matrix of compressed rows, transposed.
pub(super) fn sparse_transpose(cx: &mut LowerCx<'_>) -> Lowered {
    let parts = [cx.arg(0)?, cx.arg(1)?, cx.arg(2)?];
    let (count, bounds) = (cx.shape(&parts[0])?[0].clone(), cx.shape(&parts[2])?[0].clone());
    if cx.ndim(&parts[0])? != 1 {
        return fail("nn.sparse_transpose: blocks cannot be compiled yet");
    }
    let types = [cx.dtype(&parts[0])?, cx.dtype(&parts[1])?, cx.dtype(&parts[2])?];
    Ok(cx.builder.emit_te("sparse_transpose", parts.to_vec(), |inputs| {
        let outs = [
            ("data".to_string(), vec![count.clone()], types[0]),
            ("indices".to_string(), vec![count.clone()], types[1]),
            ("starts".to_string(), vec![bounds.clone()], types[2]),
            ("next".to_string(), vec![bounds.clone()], PLACES),
        ];
        let mut outs = te::extern_stage("sparse_transpose", inputs, outs, |source, target| {
            let (rows, one) = (bounds.clone() - 1, || prim::int(1));
            let place = |of: &Ref<Buffer>, at: PrimExpr| prim::cast(PLACES, prim::load(of, [at]));
            let column =
                |k: &PrimExpr| prim::max(prim::min(place(&source[1], k.clone()), rows.clone() - 1), prim::int(0));
            let next = |at: PrimExpr| prim::load(&target[3], [at]);
            let set = |at: PrimExpr, value: PrimExpr| Stmt::store(&target[3], [at], value);
            let zero = Stmt::each("i", bounds.clone(), |i| set(i.clone(), prim::int(0)));
            let count_all = Stmt::each("k", count.clone(), |k| set(column(k) + 1, next(column(k) + 1) + one()));
            let sum = Stmt::each("i", rows.clone(), |i| set(i.clone() + 1, next(i.clone() + 1) + next(i.clone())));
            let starts = Stmt::each("i", bounds.clone(), |i| {
                Stmt::store(&target[2], [i.clone()], prim::cast(types[2], next(i.clone())))
            });
            let fill = Stmt::each("row", rows.clone(), |row| {
                let low = prim::max(place(&source[2], row.clone()), prim::int(0));
                let high = prim::min(place(&source[2], row.clone() + 1), count.clone());
                Stmt::each("k", prim::max(high - low.clone(), prim::int(0)), |k| {
                    let k = low.clone() + k.clone();
                    let to = next(column(&k));
                    let data = Stmt::store(&target[0], [to.clone()], prim::load(&source[0], [k.clone()]));
                    let index = Stmt::store(&target[1], [to.clone()], prim::cast(types[1], row.clone()));
                    Stmt::seq([data, index, set(column(&k), to + one())])
                })
            });
            Stmt::seq([zero, count_all, sum, starts, fill])
        });
        outs.truncate(3);
        outs
    })?)
}
