//! PackWeights: constant matrices of products lie in panels of columns, as loops over products read them.
//!
//! ```text
//! y = R.matmul(x, w)    ->    y = R.call_tir(cls.matmul, (x, p), …)      y[.., n] = sum over k of x[.., k] * p[n // 64, k, n % 64]
//! ```
//!
//! A product of many rows otherwise copies its matrix panel by panel whenever it runs, from rows that lie far apart, often by a power of two, so
//! that few of their lines fit a cache together; and one of few rows reads pieces of rows, each from another page of memory. A panel is read from
//! its beginning to its end. The schedule makes axes of `n // 64` and `n % 64` (`relaxide_tir::schedule`).
//!
//! **Where** the matrix is a constant of float32 (`FoldConstant` has run before), large enough, and has more than one panel and no column outside
//! of them; what is multiplied with it has rows. Others stay, and everything for GPUs. A matrix of several products is packed once.

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::IRModule;
use relaxide_ir::pass::{PassInfo, PassResult};
use relaxide_ir::prim::{floordiv, floormod};
use relaxide_tir::te;

use super::dispatch::kind_of;
use crate::rewrite::{Action, Rewrite, in_function, rewrite_function};
use crate::*;

pub(super) const PASS: PassInfo =
    PassInfo::new("PackWeights", "Constant matrices of products lie in panels of columns.", |module, context, _| {
        if context.target.is_gpu() { Ok(module) } else { run(module) }
    });

/// Columns of a panel: whole vectors of every processor, and as many as a tile of registers has; fewer where those divide no matrix.
const WIDTHS: [i64; 2] = [64, 48];
/// Elements from which a matrix is packed: smaller ones stay in a cache however they lie.
const LEAST_ELEMENTS: i64 = 64 * 128;
const F32: DataType = DataType::float(32);

fn run(module: IRModule) -> PassResult {
    let mut b = BlockBuilder::with_module(module);
    let functions: Vec<_> = b.module().functions_of::<Function>().map(|(n, f)| (n.to_string(), f)).collect();
    let mut packed = HashMap::new();
    for (name, func) in functions {
        let mut pack = Pack { values: HashMap::new(), packed: &mut packed, changed: false };
        let refused = |e| in_function(PASS.name, &name, e);
        let new = rewrite_function(&mut b, &func, &mut pack).map_err(refused)?;
        if pack.changed {
            let new = super::clean_up(&mut b, &new).map_err(refused)?;
            b.module_mut().insert(name, new);
        }
    }
    Ok(b.finish())
}

struct Pack<'a> {
    values: HashMap<AnyVar, Expr>,
    /// Matrices that were looked at, with their panels if they have some.
    packed: &'a mut HashMap<Ref<Constant>, Option<Expr>>,
    changed: bool,
}

impl Rewrite for Pack<'_> {
    fn value(&mut self, b: &mut BlockBuilder, var: &AnyVar, value: Expr) -> Result<Action, BuildError> {
        let new = match &value {
            Expr::Call(call) => self.product(b, call)?,
            _ => None,
        };
        self.changed |= new.is_some();
        let value = new.unwrap_or(value);
        self.values.insert(var.clone(), value.clone());
        Ok(Action::Bind(value))
    }
}

impl Pack<'_> {
    /// A product with a constant matrix as one with its panels.
    fn product(&mut self, b: &mut BlockBuilder, call: &Ref<Call>) -> Result<Option<Expr>, BuildError> {
        let (Some("matmul"), [x, matrix]) = (call.op_name(), call.args.as_slice()) else { return Ok(None) };
        let (left, result) = (x.ty(), &call.ty);
        let (Some(left), Some(result)) = (left.as_tensor(), result.as_tensor()) else { return Ok(None) };
        let (Some(dims), true) = (result.shape.clone(), left.dtype == F32 && result.dtype == F32) else {
            return Ok(None);
        };
        let matrix = matrix.as_var().and_then(|var| self.values.get(&var)).unwrap_or(matrix);
        let Expr::Constant(matrix) = matrix else { return Ok(None) };
        if left.ndim < 2 || kind_of(&call.ty).is_some_and(|kind| kind.is_gpu()) {
            return Ok(None);
        }
        let panels = self.packed.entry(matrix.clone()).or_insert_with(|| in_panels(&matrix.value).map(Expr::constant));
        let Some(panels) = panels.clone() else { return Ok(None) };
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
}

/// The panels of a matrix, `[panels, rows, columns of a panel]`; none where it is to stay.
fn in_panels(matrix: &Tensor) -> Option<Tensor> {
    let [rows, columns] = *matrix.shape() else { return None };
    let width = WIDTHS.into_iter().find(|width| columns % width == 0 && columns > *width)?;
    if matrix.dtype() != F32 || rows * columns < LEAST_ELEMENTS {
        return None;
    }
    let elements = matrix.to_vec::<f32>().ok()?;
    let mut panels = Vec::with_capacity(elements.len());
    for first in (0..columns).step_by(width as usize) {
        for row in elements.chunks_exact(columns as usize) {
            panels.extend_from_slice(&row[first as usize..(first + width) as usize]);
        }
    }
    Tensor::from_slice(&panels, &[columns / width, rows, width]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_panel_follow_each_other() {
        let (rows, columns) = (70, 128);
        let elements: Vec<f32> = (0..rows * columns).map(|i| i as f32).collect();
        let panels = in_panels(&Tensor::from_slice(&elements, &[rows, columns]).unwrap()).unwrap();
        assert_eq!(panels.shape(), [2, rows, 64]);
        let packed = panels.to_vec::<f32>().unwrap();
        for (row, column) in [(0, 0), (3, 63), (3, 64), (69, 127)] {
            let at = ((column / 64) * rows + row) * 64 + column % 64;
            assert_eq!(packed[at as usize], elements[(row * columns + column) as usize]);
        }
    }

    #[test]
    fn what_has_no_whole_panels_stays() {
        let of = |rows: i64, columns: i64| {
            in_panels(&Tensor::from_slice(&vec![0f32; (rows * columns) as usize], &[rows, columns]).unwrap()).is_some()
        };
        assert!(of(256, 96) && of(256, 192));
        assert!(!of(256, 64) && !of(256, 100) && !of(2, 128));
    }
}
