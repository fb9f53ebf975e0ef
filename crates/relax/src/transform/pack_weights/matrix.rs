//! Products whose matrix lies in panels: of columns where it is the right one, of rows where it is the left one.
//!
//! A left matrix of many columns and a right one of few, as the products of Winograd's tiles of small images have, are what a convolution of one
//! pixel is: [`filters`](super::filters) says when vectors along the rows of the left one gain.

use std::borrow::Cow;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::Type;
use relaxide_ir::prim::{floordiv, floormod};
use relaxide_tir::te;

use super::{F32, Layout, Pack, filters};
use crate::blocks::{Panels, Widths};
use crate::shape::prove_equal;
use crate::transform::dispatch::kind_of;
use crate::*;

/// Elements from which a matrix is packed: smaller ones stay in a cache however they lie.
const LEAST_ELEMENTS: i64 = 64 * 128;

/// A product with a constant matrix as one with its panels.
pub(super) fn product(pack: &mut Pack<'_>, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
    let [x, matrix] = call.args.as_slice() else { return Ok(None) };
    let (left, result) = (x.ty(), &call.ty);
    let (Some(left), Some(result)) = (left.as_tensor(), result.as_tensor()) else { return Ok(None) };
    let (Some(dims), true) = (result.shape.clone(), left.dtype == F32 && result.dtype == F32) else { return Ok(None) };
    if left.ndim < 2 || kind_of(&call.ty).is_some_and(|kind| kind.is_gpu()) {
        return Ok(None);
    }
    let Some(panels) = pack.panels(matrix, Layout::Columns, in_panels) else { return left_product(pack, b, call) };
    b.call_te("matmul", vec![x.clone(), panels], |inputs| {
        let [x, panels] = inputs else { return Vec::new() };
        let [_, depth, width] = panels.shape() else { return Vec::new() };
        let k = te::reduce_axis(depth.clone());
        vec![te::compute("matmul", &dims, |at| {
            let Some((column, rows)) = at.split_last() else { return te::sum(k.var(), [&k]) };
            let row: Vec<_> = rows.iter().cloned().chain([k.var()]).collect();
            te::sum(x.at(&row) * panels.at(&[floordiv(column, width), k.var(), floormod(column, width)]), [&k])
        })]
    })
    .map(Some)
}

/// A product with a constant matrix on its left as one with its panels.
fn left_product(pack: &mut Pack<'_>, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
    let [matrix, x] = call.args.as_slice() else { return Ok(None) };
    let shape = |ty: &Type| ty.as_tensor().filter(|ty| ty.dtype == F32).and_then(|ty| ty.shape.clone());
    let (Some(left), Some(right), Some(dims)) = (shape(&matrix.ty()), shape(&x.ty()), shape(&call.ty)) else {
        return Ok(None);
    };
    let ([batch @ .., _, terms], [.., columns]) = (left.as_slice(), right.as_slice()) else { return Ok(None) };
    let [outer @ .., _, _] = dims.as_slice() else { return Ok(None) };
    // Each matrix of several belongs to one of the right ones.
    let Some(above) = outer.len().checked_sub(batch.len()) else { return Ok(None) };
    let belongs = right.len() == dims.len() && outer[above..].iter().zip(batch).all(|(a, b)| prove_equal(a, b));
    if !belongs || !filters::gain(1, terms.as_int().unwrap_or(0), columns.as_int()) {
        return Ok(None);
    }
    let Some(panels) = pack.panels(matrix, Layout::Rows, rows_in_panels) else { return Ok(None) };
    let terms = terms.clone();
    b.call_te("matmul", vec![panels, x.clone()], |inputs| {
        let [panels, x] = inputs else { return Vec::new() };
        let Some(width) = panels.shape().last().cloned() else { return Vec::new() };
        let k = te::reduce_axis(terms.clone());
        vec![te::compute("matmul", &dims, |at| {
            let [outer @ .., row, column] = at else { return te::sum(k.var(), [&k]) };
            let inside = [floordiv(row, &width), k.var(), floormod(row, &width)];
            let element = panels.at(&outer[above..].iter().cloned().chain(inside).collect::<Vec<_>>());
            let terms = outer.iter().cloned().chain([k.var(), column.clone()]).collect::<Vec<_>>();
            te::sum(element * x.at(&terms), [&k])
        })]
    })
    .map(Some)
}

/// The panels of a matrix, `[panels, rows, columns of a panel]`, with zeros behind the last column; none where it is to stay.
pub(super) fn in_panels(matrix: &Tensor, widths: Widths) -> Option<Tensor> {
    let [rows, columns] = *matrix.shape() else { return None };
    let fits = |panels: &Panels| panels.width() >= widths.least() && panels.count() > 1;
    let padded = || Panels::new(columns, widths).filter(fits);
    let panels = Panels::whole(columns, widths).filter(fits).or_else(padded)?;
    if matrix.dtype() != F32 || rows * columns < LEAST_ELEMENTS {
        return None;
    }
    let (elements, length) = (floats(matrix)?, columns as usize);
    let laid_out = panels.laid_out(rows, 0.0, |row, column| elements[row * length + column]);
    Tensor::from_slice(&laid_out, &[panels.count(), rows, panels.width()]).ok()
}

/// The panels of the rows of some matrices, `[.., panels, columns, rows of a panel]`, with zeros behind the last row; none where they are to stay.
pub(super) fn rows_in_panels(matrices: &Tensor, widths: Widths) -> Option<Tensor> {
    let [batch @ .., rows, columns] = matrices.shape() else { return None };
    let panels = Panels::of_filters(*rows, widths)?;
    if matrices.dtype() != F32 {
        return None;
    }
    let (elements, length) = (floats(matrices)?, *columns as usize);
    let laid_out = |own: &[f32]| panels.laid_out(*columns, 0.0, |column, row| own[row * length + column]);
    let all: Vec<f32> = elements.chunks(*rows as usize * length).flat_map(laid_out).collect();
    let shape: Vec<i64> = batch.iter().copied().chain([panels.count(), *columns, panels.width()]).collect();
    Tensor::from_slice(&all, &shape).ok()
}

/// The elements of a constant; those that do not lie as the processor reads them are copied.
pub(super) fn floats(constant: &Tensor) -> Option<Cow<'_, [f32]>> {
    constant.as_slice().map(Cow::Borrowed).or_else(|_| constant.to_vec().map(Cow::Owned)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_panel_follow_each_other() {
        let (rows, columns) = (70, 128);
        let elements: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let panels = in_panels(&Tensor::from_slice(&elements, &[rows, columns]).unwrap(), Widths::LONGEST).unwrap();
        assert_eq!(panels.shape(), [2, rows, 64]);
        let packed = panels.to_vec::<f32>().unwrap();
        for (row, column) in [(0, 0), (3, 63), (3, 64), (69, 127)] {
            let at = ((column / 64) * rows + row) * 64 + column % 64;
            assert_eq!(packed[at as usize], elements[(row * columns + column) as usize]);
        }
    }

    #[test]
    fn what_would_leave_much_of_a_panel_empty_stays() {
        let of = |rows: i64, columns: i64| {
            in_panels(
                &Tensor::from_slice(&vec![0f32; (rows * columns) as usize], &[rows, columns]).unwrap(),
                Widths::LONGEST,
            )
            .is_some()
        };
        assert!(of(256, 96) && of(256, 192) && of(256, 1000));
        assert!(!of(256, 64) && !of(256, 100) && !of(2, 128));
    }

    #[test]
    fn rows_of_a_panel_of_each_matrix_follow_each_other() {
        let (matrices, rows, columns) = (2, 126, 5);
        let elements: Vec<f32> = (0..matrices * rows * columns).map(|i| i as f32).collect();
        let panels =
            rows_in_panels(&Tensor::from_slice(&elements, &[matrices, rows, columns]).unwrap(), Widths::LONGEST)
                .unwrap();
        assert_eq!(panels.shape(), [matrices, 2, columns, 64]);
        let packed = panels.to_vec::<f32>().unwrap();
        for (matrix, row, column) in [(0, 0, 0), (0, 63, 4), (1, 64, 0), (1, 125, 4)] {
            let at = ((matrix * 2 + row / 64) * columns + column) * 64 + row % 64;
            assert_eq!(packed[at as usize], elements[((matrix * rows + row) * columns + column) as usize]);
        }
        assert_eq!(packed.last(), Some(&0.0));
    }
}
