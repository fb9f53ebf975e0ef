//! A matrix in fewer bits: its products, and the columns that are looked up in it.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr, cast};
use relaxide_tir::te;

use super::notes::Stays;
use super::stored::{PAIR, Stored, constant, stored};
use super::{Along, NarrowForm};
use crate::blocks::{Panels, Widths};
use crate::*;

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);
const U32: DataType = DataType::uint(32);

/// A matrix in fewer bits, whose columns are what products keep and lookups find.
#[derive(Clone)]
pub struct Matrix {
    rows: i64,
    panels: Panels,
    stored: Stored,
    /// The numbers of its columns, by which they are looked up: what an index stands for is the operator's rule.
    places: Expr,
}

impl Matrix {
    /// A matrix in fewer bits, or why it stays. Its columns are the rows of what is given, or the columns.
    pub fn new(host: &[f32], [height, width]: [i64; 2], form: NarrowForm, along: Along) -> Result<Matrix, Stays> {
        let stride = width as usize;
        let (rows, columns) = if along == Along::Rows { (width, height) } else { (height, width) };
        let stored = match along {
            Along::Rows => stored([rows, columns], form, |row, column| host[column * stride + row]),
            Along::Columns => stored([rows, columns], form, |row, column| host[row * stride + column]),
        }?;
        let panels = Panels::new(columns, Widths::LONGEST).ok_or(Stays::Size)?;
        let places: Vec<u8> = (0..columns as i32).flat_map(i32::to_le_bytes).collect();
        Ok(Matrix { rows, panels, stored, places: constant(&places, &[columns], I32)? })
    }

    /// The product of a tensor's rows with the matrix, in the shape that it had.
    pub fn product(&self, b: &mut BlockBuilder, x: &Expr, dims: &[PrimExpr]) -> Result<Expr, BuildError> {
        let front = &dims[..dims.len().saturating_sub(1)];
        let rows = crate::shape::num_elements(front);
        let flat = Expr::shape([rows.clone(), prim::int(self.rows)]);
        let x = b.op("reshape", [x.clone(), flat], Attrs::new())?;
        let panels = self.panels;
        let shape = [rows, prim::int(panels.count()), prim::int(panels.width())];
        let y = match &self.stored {
            Stored::Blocks { of, words, scales, zeros } => {
                let args = [x, words.clone(), scales.clone()].into_iter().chain(zeros.clone()).collect();
                b.emit_te("matmul_blocks", args, |inputs| of.product("matmul_blocks", inputs))?
            }
            Stored::Pairs { words } => {
                let pairs = b.emit_te("pairs", vec![x], |inputs| self.pairs(inputs))?;
                b.emit_te("matmul_pairs", vec![pairs, words.clone()], |inputs| product_of_pairs(inputs, &shape))?
            }
            Stored::Each { elements, scales } => {
                let args = [x, elements.clone()].into_iter().chain(scales.clone()).collect();
                b.emit_te("narrow_matmul", args, |inputs| product(inputs, &shape))?
            }
        };
        let y = match panels.columns() == panels.padded() {
            true => y,
            false => {
                b.emit_te("columns", vec![y], |inputs| inputs.iter().map(|y| panels.without_padding(y)).collect())?
            }
        };
        Ok(op::call("reshape", [y, Expr::shape(dims.to_vec())], Attrs::new())?)
    }

    /// Two neighbours of a row as a word, each rounded to bfloat16; behind the last there is zero.
    fn pairs(&self, inputs: &[te::Tensor]) -> Vec<te::Tensor> {
        let [x] = inputs else { return Vec::new() };
        let half = |row: &PrimExpr, column: PrimExpr| {
            let rounded = cast(F32, cast(DataType::bfloat16(), x.at(&[row.clone(), column.clone()])));
            let bits = prim::call(U32, "tirx.reinterpret", vec![rounded]);
            match self.rows % PAIR {
                0 => bits,
                _ => prim::if_then_else(prim::lt(column, prim::int(self.rows)), bits, prim::int_of(U32, 0)),
            }
        };
        let rows = x.shape().first().cloned().unwrap_or_else(|| prim::int(1));
        vec![te::compute("pairs", [rows, prim::int((self.rows + PAIR - 1) / PAIR)], |at| {
            // The lower half of what is rounded is zero.
            let first = half(&at[0], &at[1] * PAIR);
            let first = prim::call(U32, "tirx.shift_right", vec![first, prim::int_of(U32, 16)]);
            prim::call(U32, "tirx.bitwise_or", vec![first, half(&at[0], &at[1] * PAIR + 1)])
        })]
    }

    /// The columns that are looked up, each as a row.
    pub fn lookup(&self, b: &mut BlockBuilder, call: &Call, i: &Expr) -> Result<Option<Expr>, BuildError> {
        let places = b.op("take", [self.places.clone(), i.clone()], call.attrs.clone())?;
        let Some(mut dims) = places.ty().as_tensor().and_then(|ty| ty.shape.clone()) else { return Ok(None) };
        dims.push(prim::int(self.rows));
        let more: Vec<Expr> = match &self.stored {
            Stored::Each { elements, scales } => [elements.clone()].into_iter().chain(scales.clone()).collect(),
            Stored::Pairs { words } => vec![words.clone()],
            Stored::Blocks { words, scales, zeros, .. } => {
                [words.clone(), scales.clone()].into_iter().chain(zeros.clone()).collect()
            }
        };
        let width = prim::int(self.panels.width());
        b.call_te("look_up", [places].into_iter().chain(more).collect(), |inputs| {
            let [places, kept @ ..] = inputs else { return Vec::new() };
            vec![te::compute("look_up", &dims, |at| {
                let (front, row) = at.split_at(at.len().saturating_sub(1));
                let row = row.first().cloned().unwrap_or_else(|| prim::int(0));
                let column = cast(DataType::int(64), places.at(front));
                self.element(kept, &row, [prim::floordiv(&column, &width), prim::floormod(&column, &width)])
            })]
        })
        .map(Some)
    }

    /// The element at a row and a panel's column.
    fn element(&self, kept: &[te::Tensor], row: &PrimExpr, [panel, column]: [PrimExpr; 2]) -> PrimExpr {
        let [first, others @ ..] = kept else { return prim::constant(F32, 0.0) };
        let at = |t: &te::Tensor, row: PrimExpr| t.at(&[panel.clone(), row, column.clone()]);
        match &self.stored {
            Stored::Each { .. } => {
                let element = cast(F32, at(first, row.clone()));
                match others.first() {
                    Some(scales) => element * scales.at(&[panel.clone(), column.clone()]),
                    None => element,
                }
            }
            Stored::Pairs { .. } => {
                let sixteen = || prim::int_of(U32, 16);
                let upper = cast(U32, prim::floormod(row, prim::int(PAIR)));
                let word = at(first, prim::floordiv(row, prim::int(PAIR)));
                let half = prim::call(U32, "tirx.shift_right", vec![word, upper * sixteen()]);
                let bits = prim::call(U32, "tirx.shift_left", vec![half, sixteen()]);
                prim::call(F32, "tirx.reinterpret", vec![bits])
            }
            Stored::Blocks { of, .. } => {
                let block = prim::floordiv(row, prim::int(of.block()));
                let scale = others.first().map_or_else(|| prim::constant(F32, 1.0), |s| at(s, block.clone()));
                let zero = match others.get(1) {
                    Some(zeros) => cast(I32, at(zeros, block)),
                    None => prim::int_of(I32, of.middle()),
                };
                let word = at(first, prim::floordiv(row, prim::int(of.shared())));
                cast(F32, of.number_of(word, row) - zero) * cast(F32, scale)
            }
        }
    }
}

/// `sum over k of x[m, k] * float32(q[p, k, c])`, times the column's scale.
fn product(inputs: &[te::Tensor], shape: &[PrimExpr]) -> Vec<te::Tensor> {
    let [x, q, scales @ ..] = inputs else { return Vec::new() };
    let terms = q.shape().get(1).cloned().unwrap_or_else(|| 1.into());
    let k = te::reduce_axis(terms);
    let sums = te::compute("narrow_matmul", shape, |at| {
        te::sum(x.at(&[at[0].clone(), k.var()]) * cast(F32, q.at(&[at[1].clone(), k.var(), at[2].clone()])), [&k])
    });
    match scales.first() {
        Some(scales) => vec![te::compute("scaled", shape, |at| sums.at(at) * scales.at(&at[1..]))],
        None => vec![sums],
    }
}

/// `sum over k of dot_pairs(x[m, k], w[p, k, c], 0)`.
fn product_of_pairs(inputs: &[te::Tensor], shape: &[PrimExpr]) -> Vec<te::Tensor> {
    let [pairs, words] = inputs else { return Vec::new() };
    let terms = words.shape().get(1).cloned().unwrap_or_else(|| 1.into());
    let k = te::reduce_axis(terms);
    vec![te::compute("matmul_pairs", shape, |at| {
        let factors = [pairs.at(&[at[0].clone(), k.var()]), words.at(&[at[1].clone(), k.var(), at[2].clone()])];
        let [a, b] = factors;
        te::sum(prim::call(F32, "tirx.dot_pairs", vec![a, b, prim::constant(F32, 0.0)]), [&k])
    })]
}
