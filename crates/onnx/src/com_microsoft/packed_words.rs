//! `MatMulNBits` in integers, where the node allows it (`accuracy_level` 4): what is multiplied is quantized to 8 bits in blocks of a row, as
//! the weight is in blocks of a column.
//!
//! ```text
//! s[m, b] = largest |x| of block b of row m / 127,   a = round(x / s)
//! y[m, n] = sum over b of (sum over the block of a * w - z[b, n] * sum over the block of a) * (s[m, b] * t[b, n])
//! ```
//!
//! Sums over a block are exact: words of four bytes (`dot_bytes`), of which the weight's are made from eight numbers of 4 bits that share a
//! word, the first four in the lower halves of its bytes. They are arranged when the model is imported, columns side by side.
//!
//! Serves weights of 4 bits that the program knows with whole blocks of eight numbers, in the order of their columns.

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use crate::dims;
use crate::error::NodeError;
use crate::quantized::words::{BYTES, add_product_of_words, product_of_words};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);
const U32: DataType = DataType::uint(32);
/// Numbers of 4 bits that share a word.
const SHARED: i64 = 8;
/// The largest number that what is multiplied becomes.
const LARGEST: f64 = 127.0;
/// The lower halves of a word's bytes, and a word of four ones.
const LOWER: i64 = 0x0f0f_0f0f;
const ONES: i64 = 0x0101_0101;

/// A weight of 4 bits in blocks.
pub(super) struct Blocks<'a> {
    /// Rows of the weight, its columns, and how many rows a block has.
    pub k: i64,
    pub n: i64,
    pub block: i64,
    /// Column by column, two numbers to a byte.
    pub packed: &'a Tensor,
    /// A scale for each block, column by column.
    pub scales: Expr,
    /// The numbers that stand for zero, packed like the weight; 8 where there are none.
    pub zeros: Option<&'a Tensor>,
}

impl Blocks<'_> {
    fn count(&self) -> i64 {
        self.k / self.block
    }

    /// The product of a tensor's rows with the weight; none where the weight is not of this kind.
    pub fn product(&self, scope: &mut Scope, x: Expr) -> Result<Option<Expr>> {
        let mut out = scope.dims(&x)?;
        let is_whole = self.block % SHARED == 0 && self.k % self.block == 0;
        let is_plain = scope.dtype(&x) == F32 && scope.dtype(&self.scales) == F32;
        let Some(last) = out.last_mut().filter(|_| is_whole && is_plain) else { return Ok(None) };
        *last = prim::int(self.k);
        let x = scope.agree(x, &out)?;
        let Some(words) = self.words(scope)? else { return Ok(None) };
        let Some(zeros) = self.zeros(scope)? else { return Ok(None) };
        let rows = out[..out.len() - 1].iter().fold(prim::int(1), |n, dim| n * dim);
        let x = scope.reshape_known(x, vec![dims::simplify(&rows), prim::int(self.k)])?;
        let scales = scope.reshape(self.scales.clone(), vec![prim::int(self.n), prim::int(self.count())])?;
        let scales = scope.transpose(scales, &[1, 0])?;
        let y = self.emit(scope, dims::simplify(&rows), vec![x, words, scales, zeros])?;
        if let Some(last) = out.last_mut() {
            *last = prim::int(self.n);
        }
        scope.reshape_known(y, out).map(Some)
    }

    /// The numbers of a packed constant, one or two bytes' worth after the other.
    fn halves(tensor: &Tensor) -> Result<Option<Vec<u8>>> {
        if tensor.dtype() != DataType::uint(8) {
            return Ok(None);
        }
        let bytes = tensor.to_bytes().map_err(|e| NodeError::invalid(e.to_string()))?;
        Ok(Some(bytes.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()))
    }

    /// The weight, `[rows / 8, columns]`.
    fn words(&self, scope: &Scope) -> Result<Option<Expr>> {
        let (rows, columns) = (self.k as usize, self.n as usize);
        let Some(numbers) = Blocks::halves(self.packed)?.filter(|all| all.len() == rows * columns) else {
            return Ok(None);
        };
        let in_words = rows / SHARED as usize;
        let mut words = Vec::with_capacity(in_words * columns);
        for at in 0..in_words {
            for column in 0..columns {
                let first = column * rows + at * SHARED as usize;
                let of = |i: usize| i64::from(numbers[first + i] | numbers[first + i + BYTES as usize] << 4) << (8 * i);
                words.push((0..BYTES as usize).fold(0, |word, i| word | of(i)));
            }
        }
        scope.whole(&words, &[in_words as i64, self.n], U32).map(Some)
    }

    /// What stands for zero in each block, `[blocks, columns]`.
    fn zeros(&self, scope: &Scope) -> Result<Option<Expr>> {
        let (blocks, columns) = (self.count() as usize, self.n as usize);
        let Some(tensor) = self.zeros else {
            return scope.whole(&vec![8; blocks * columns], &[self.count(), self.n], I32).map(Some);
        };
        // Each column begins with a byte of its own.
        let stride = blocks.div_ceil(2) * 2;
        let Some(numbers) = Blocks::halves(tensor)?.filter(|all| all.len() == stride * columns) else {
            return Ok(None);
        };
        let place = |at: usize| i64::from(numbers[at % columns * stride + at / columns]);
        let zeros: Vec<i64> = (0..blocks * columns).map(place).collect();
        scope.whole(&zeros, &[self.count(), self.n], I32).map(Some)
    }

    fn emit(&self, scope: &mut Scope, rows: PrimExpr, args: Vec<Expr>) -> Result<Expr> {
        let (blocks, block) = (self.count(), self.block);
        let of_block = block / BYTES;
        let per_block = [rows.clone(), prim::int(blocks)];
        scope.te("matmul_blocks", args, |inputs| {
            let [x, words, scales, zeros] = [0, 1, 2, 3].map(|i| inputs[i].clone());
            let inside = te::reduce_axis(prim::int(block));
            let largest = te::compute("largest", &per_block, |at| {
                let element = x.at(&[at[0].clone(), &at[1] * block + inside.var()]);
                te::max(prim::math("fabs", element), [&inside])
            });
            let in_words = [rows.clone(), prim::int(self.k / BYTES)];
            let quantized = te::compute("quantized", &in_words, |at| {
                let largest = largest.at(&[at[0].clone(), prim::floordiv(&at[1], of_block)]);
                word_of(&|j| x.at(&[at[0].clone(), &at[1] * BYTES + j]), &largest)
            });
            let word = te::reduce_axis(prim::int(of_block));
            let totals = te::compute("totals", &per_block, |at| {
                let own = quantized.at(&[at[0].clone(), &at[1] * of_block + word.var()]);
                te::sum(product_of_words(prim::int_of(U32, ONES), own), [&word])
            });
            let b = te::reduce_axis(prim::int(blocks));
            vec![te::compute("matmul_blocks", [rows.clone(), prim::int(self.n)], |at| {
                let (row, column, place) = (&at[0], &at[1], [b.var(), at[1].clone()]);
                let sum = (0..of_block / 2).fold(prim::int_of(I32, 0), |sum, i| {
                    let own = |half: i64| quantized.at(&[row.clone(), b.var() * of_block + (2 * i + half)]);
                    let word = words.at(&[b.var() * (of_block / 2) + i, column.clone()]);
                    let upper = prim::call(U32, "tirx.shift_right", vec![word.clone(), prim::int_of(U32, 4)]);
                    add_product_of_words(lower(upper), own(1), add_product_of_words(lower(word), own(0), sum))
                });
                let of_row = [row.clone(), b.var()];
                let sum = sum - zeros.at(&place) * totals.at(&of_row);
                let scale = largest.at(&of_row) * prim::constant(F32, 1.0 / LARGEST) * scales.at(&place);
                te::sum(prim::cast(F32, sum) * scale, [&b])
            })]
        })
    }
}

/// Four numbers as the bytes of a word, as parts of the largest of their block.
fn word_of(element: &dyn Fn(i64) -> PrimExpr, largest: &PrimExpr) -> PrimExpr {
    let none = prim::constant(F32, 0.0);
    let factor = prim::select(
        prim::gt(largest, &none),
        prim::div(prim::constant(F32, LARGEST), prim::max(largest, prim::constant(F32, f64::from(f32::MIN_POSITIVE)))),
        none.clone(),
    );
    let byte = |j: i64| {
        let whole = prim::math("round", element(j) * &factor);
        let whole = prim::max(prim::min(whole, prim::constant(F32, LARGEST)), prim::constant(F32, -LARGEST));
        let byte = prim::call(I32, "tirx.bitwise_and", vec![prim::cast(I32, whole), prim::int_of(I32, 255)]);
        prim::cast(U32, byte) * prim::int_of(U32, 1 << (8 * j))
    };
    prim::cast(I32, (1..BYTES).fold(byte(0), |word, j| word + byte(j)))
}

fn lower(word: PrimExpr) -> PrimExpr {
    prim::call(U32, "tirx.bitwise_and", vec![word, prim::int_of(U32, LOWER)])
}
