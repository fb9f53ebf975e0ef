//! Products of integers of 8 bits by words: four terms of a sum are the bytes of an integer of 32 bits.
//!
//! ```text
//! sum over k of (a[m, k] - za) * (b[k, n] - zb[n])
//!     = sum over k/4 of dot_bytes(A[m, k/4], W[k/4, n]) - za * (sum over k of w[k, n] - K * z[n]) - z[n] * (sum over k of a[m, k])
//! ```
//!
//! where `w = b - (zb - z)` is made when the model is imported, `W` are its words, and `z` is what of the zero point is left: nothing, where
//! `b - zb` has 8 bits. What is multiplied has no sign and the weight has one, which is what processors have instructions for
//! (`dot_bytes` in `relaxide_tir`): 128 is added to what has a sign, and to its zero point. Sums wrap in 32 bits, as integers' do.
//!
//! Serves weights that the program knows. What it does not serve, it leaves to products of numbers ([`exact`](super::exact)).

use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_relax::blocks::{Panels, Widths};
use relaxide_tir::te;

use super::integer::{Integers, per_channel};
use crate::constant;
use crate::error::NodeError;
use crate::node::Node;
use crate::ops::conv::{self, Window};
use crate::ops::elementwise::{broadcast_call, with_number};
use crate::scope::Scope;

type Result<T> = std::result::Result<T, NodeError>;

/// Bytes of a word.
const BYTES: i64 = 4;
/// Channels from which words of them have more bytes in use than not.
const LEAST_CHANNELS: i64 = 3;
/// Words of a sum from which filters lie in panels. As was measured (`docs/performance/convolutions.md`, "Filters in panels").
const LEAST_WORDS: i64 = 256;
const U8: DataType = DataType::uint(8);
const I32: DataType = DataType::int(32);
const U32: DataType = DataType::uint(32);

/// A weight as integers with a sign, and what of its zero points is left.
struct Weight {
    /// Kept places (columns, filters) by terms.
    rows: Vec<Vec<i64>>,
    zeros: Vec<i64>,
}

impl Weight {
    /// Of rows, one each kept place, and zero points: one, or one each row.
    fn new(rows: Vec<Vec<i64>>, zeros: &[i64], signed: bool) -> Option<Weight> {
        let one_each = zeros.len() == rows.len();
        if rows.is_empty() || rows[0].is_empty() || !(one_each || zeros.len() == 1) {
            return None;
        }
        let zeros: Vec<i64> = (0..rows.len()).map(|n| zeros[if one_each { n } else { 0 }]).collect();
        let fits = |(row, zero): (&Vec<i64>, &i64)| row.iter().all(|b| (-128..128).contains(&(b - zero)));
        let offset = if signed { 0 } else { 128 };
        let all_fit = rows.iter().zip(&zeros).all(fits);
        let taken: Vec<i64> = zeros.iter().map(|zero| if all_fit { *zero } else { offset }).collect();
        let rows = rows.iter().zip(&taken).map(|(row, by)| row.iter().map(|b| b - by).collect()).collect();
        Some(Weight { rows, zeros: zeros.iter().zip(&taken).map(|(zero, by)| zero - by).collect() })
    }

    /// Whether nothing is left of zero points.
    fn is_centred(&self) -> bool {
        self.zeros.iter().all(|zero| *zero == 0)
    }

    /// What a unit of the other side's zero point takes from the sums of each row.
    fn of_zero(&self) -> Vec<i64> {
        let own = |(row, zero): (&Vec<i64>, &i64)| row.iter().sum::<i64>() - row.len() as i64 * zero;
        self.rows.iter().zip(&self.zeros).map(own).map(wrapped).collect()
    }
}

/// What 32 bits hold of a number.
fn wrapped(value: i64) -> i64 {
    i64::from(value as i32)
}

/// Up to four integers of 8 bits as a word.
fn word(bytes: impl Iterator<Item = i64>) -> i64 {
    wrapped(bytes.enumerate().fold(0, |word, (at, byte)| word | (byte & 0xff) << (8 * at)))
}

/// A constant's weight and zero points, as far as a node has constants for them: the numbers, and whether they have a sign.
fn known<'n>(node: &'n Node, [weight, zero]: [usize; 2]) -> Option<(&'n Tensor, Vec<i64>, Vec<i64>)> {
    let tensor = node.optional(weight)?.constant()?;
    if tensor.dtype().bits != 8 || !(tensor.dtype().is_int() || tensor.dtype().is_uint()) {
        return None;
    }
    let zeros = match node.optional(zero) {
        None => vec![0],
        Some(value) => constant::ints(value.constant()?).ok()?,
    };
    Some((tensor, constant::ints(tensor).ok()?, zeros))
}

/// What is multiplied without a sign, and its zero point in 32 bits, if it has one; none where it is no integer of 8 bits.
fn unsigned(scope: &mut Scope, x: &Integers) -> Result<Option<Integers>> {
    let zero = x.zero.as_ref().map(|zero| scope.cast(zero.clone(), I32)).transpose()?;
    let x = &x.values;
    match scope.dtype(x) {
        dtype if dtype == U8 => Ok(Some(Integers { values: x.clone(), zero })),
        dtype if dtype == DataType::int(8) => {
            let dims = scope.dims(x)?;
            let moved = scope.te("unsigned", vec![x.clone()], |inputs| {
                vec![te::compute("unsigned", &dims, |at| {
                    prim::cast(U8, prim::cast(I32, inputs[0].at(at)) + prim::int_of(I32, 128))
                })]
            })?;
            let zero = match zero {
                Some(zero) => with_number(scope, "add", zero, 128.0)?,
                None => scope.whole(&[128], &[], I32)?,
            };
            Ok(Some(Integers { values: moved, zero: Some(zero) }))
        }
        _ => Ok(None),
    }
}

/// Four neighbours along an axis of so many elements as a word; behind the last there are zeros.
fn word_at(x: &te::Tensor, at: &[PrimExpr], axis: usize, length: i64) -> PrimExpr {
    let byte = |j: i64| {
        let place = &at[axis] * BYTES + prim::int(j);
        let mut index = at.to_vec();
        index[axis] = place.clone();
        let byte = prim::cast(U32, x.at(&index));
        let byte = if j == 0 { byte } else { byte * prim::int_of(U32, 1 << (8 * j)) };
        // Of the last word's bytes some are not there.
        match length % BYTES {
            rest if rest != 0 && j >= rest => {
                prim::if_then_else(prim::lt(place, prim::int(length)), byte, prim::int_of(U32, 0))
            }
            _ => byte,
        }
    };
    (1..BYTES).fold(byte(0), |word, j| word + byte(j))
}

/// The products of four bytes without a sign and four with one.
fn product_of_words(a: PrimExpr, b: PrimExpr) -> PrimExpr {
    prim::call(I32, "tirx.dot_bytes", vec![a, b, prim::int_of(I32, 0)])
}

fn words_in(length: i64) -> i64 {
    (length + BYTES - 1) / BYTES
}

/// How a constant matrix lies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Lies {
    /// A row for each term of a sum.
    ByTerms,
    /// A row for each column of the product.
    ByColumns,
}

/// A constant matrix of integers of 8 bits, column by column, with its zero points.
pub struct Matrix {
    columns: Vec<Vec<i64>>,
    zeros: Vec<i64>,
    signed: bool,
}

impl Matrix {
    /// A node's, with the zero points that are the other input.
    pub fn of(node: &Node, inputs: [usize; 2], lies: Lies) -> Option<Matrix> {
        let (tensor, values, zeros) = known(node, inputs)?;
        let &[rows, width] = tensor.shape() else { return None };
        Matrix::new(&values, [rows, width], lies, zeros, tensor.dtype().is_int())
    }

    /// One of several that a node has in one tensor, a row for each term; zero points are one, or one a column, for each.
    pub fn one_of(node: &Node, inputs: [usize; 2], index: usize) -> Option<Matrix> {
        let (tensor, values, zeros) = known(node, inputs)?;
        let &[count, rows, width] = tensor.shape() else { return None };
        let count = usize::try_from(count).ok().filter(|count| index < *count)?;
        let part = |values: &[i64]| {
            let size = values.len() / count;
            values.get(index * size..(index + 1) * size).filter(|_| values.len() == count * size).map(<[i64]>::to_vec)
        };
        let zeros = if node.optional(inputs[1]).is_some() { part(&zeros)? } else { zeros };
        Matrix::new(&part(&values)?, [rows, width], Lies::ByTerms, zeros, tensor.dtype().is_int())
    }

    fn new(values: &[i64], shape: [i64; 2], lies: Lies, zeros: Vec<i64>, signed: bool) -> Option<Matrix> {
        let [rows, width] = shape.map(|n| usize::try_from(n).ok().filter(|n| *n > 0));
        let (rows, width) = (rows?, width?);
        let columns = match lies {
            Lies::ByTerms => (0..width).map(|n| values.iter().skip(n).step_by(width).copied().collect()).collect(),
            Lies::ByColumns => values.chunks(width).take(rows).map(<[i64]>::to_vec).collect(),
        };
        Some(Matrix { columns, zeros, signed })
    }

    /// Terms of a sum.
    pub fn depth(&self) -> i64 {
        self.columns.first().map_or(0, |column| column.len() as i64)
    }

    /// As words; none where zero points are not lined up with the columns.
    pub fn packed(&self, scope: &Scope) -> Result<Option<Packed>> {
        let Some(weight) = Weight::new(self.columns.clone(), &self.zeros, self.signed) else { return Ok(None) };
        let (depth, columns) = (weight.rows[0].len() as i64, weight.rows.len() as i64);
        let in_words = words_in(depth);
        let words = (0..in_words as usize).flat_map(|k| {
            let of = move |row: &Vec<i64>| word(row.iter().skip(k * BYTES as usize).take(BYTES as usize).copied());
            weight.rows.iter().map(of)
        });
        let words = scope.whole(&words.collect::<Vec<_>>(), &[in_words, columns], I32)?;
        let of_zero = scope.whole(&weight.of_zero(), &[columns], I32)?;
        let zeros = match weight.is_centred() {
            true => None,
            false => Some(scope.whole(&weight.zeros, &[columns], I32)?),
        };
        Ok(Some(Packed { words, of_zero, zeros, depth }))
    }
}

/// A matrix as words.
#[derive(Clone)]
pub struct Packed {
    /// `[terms / 4, columns]`.
    words: Expr,
    /// What a unit of the other side's zero point takes from the sum of each column.
    of_zero: Expr,
    /// What of its own zero points is left, if anything is.
    zeros: Option<Expr>,
    /// Terms of a sum.
    depth: i64,
}

impl Packed {
    /// The product of a matrix of integers of 8 bits and this one, both less their zero points, in int32; none where the other has not so
    /// many columns, or other elements. Its zero point is lined up with its rows.
    pub fn product(&self, scope: &mut Scope, a: &Integers) -> Result<Option<Expr>> {
        let dims = scope.dims(&a.values)?;
        if dims.len() < 2 || !dims.last().is_some_and(|k| k.is_int(self.depth)) {
            return Ok(None);
        }
        let Some(a) = unsigned(scope, a)? else { return Ok(None) };
        let mut sum = product(scope, a.values.clone(), self.words.clone(), self.depth)?;
        if let Some(zero) = a.zero {
            let less = broadcast_call(scope, "multiply", [zero, self.of_zero.clone()])?;
            sum = broadcast_call(scope, "subtract", [sum, less])?;
        }
        if let Some(zeros) = &self.zeros {
            let total = sum_of_rows(scope, a.values)?;
            let less = broadcast_call(scope, "multiply", [total, zeros.clone()])?;
            sum = broadcast_call(scope, "subtract", [sum, less])?;
        }
        Ok(Some(sum))
    }

    /// The same with its tensors replaced.
    pub fn map(&self, f: &mut impl FnMut(&Expr) -> Expr) -> Packed {
        let (words, of_zero) = (f(&self.words), f(&self.of_zero));
        Packed { words, of_zero, zeros: self.zeros.as_ref().map(f), depth: self.depth }
    }
}

/// The product of a matrix of integers of 8 bits and a node's constant one, as [`Packed::product`]; none where it is not of this kind.
pub fn matmul(scope: &mut Scope, node: &Node, a: &Integers, weight: [usize; 2]) -> Result<Option<Expr>> {
    let Some(matrix) = Matrix::of(node, weight, Lies::ByTerms) else { return Ok(None) };
    match matrix.packed(scope)? {
        Some(packed) => packed.product(scope, a),
        None => Ok(None),
    }
}

/// The product of rows of so many bytes and words of a matrix.
fn product(scope: &mut Scope, a: Expr, words: Expr, depth: i64) -> Result<Expr> {
    let mut dims = scope.dims(&a)?;
    let last = dims.len() - 1;
    dims[last] = words_in(depth).into();
    // Where words are whole, the product reads them as they lie.
    let whole = depth % BYTES == 0;
    let a = match whole {
        true => a,
        false => scope.te("words", vec![a], |inputs| {
            vec![te::compute("words", &dims, |at| word_at(&inputs[0], at, last, depth))]
        })?,
    };
    let columns = scope.dims(&words)?[1].clone();
    let k = te::reduce_axis(dims[last].clone());
    dims[last] = columns;
    scope.te("matmul_words", vec![a, words], |inputs| {
        vec![te::compute("matmul_words", &dims, |out| {
            let mut left = out.to_vec();
            left[last] = k.var();
            let a = if whole { word_at(&inputs[0], &left, last, depth) } else { inputs[0].at(&left) };
            te::sum(product_of_words(a, inputs[1].at(&[k.var(), out[last].clone()])), [&k])
        })]
    })
}

/// The sum of each row of bytes, as a column.
fn sum_of_rows(scope: &mut Scope, a: Expr) -> Result<Expr> {
    let mut dims = scope.dims(&a)?;
    let last = dims.len() - 1;
    let k = te::reduce_axis(dims[last].clone());
    dims[last] = 1.into();
    scope.te("sum_of_rows", vec![a], |inputs| {
        vec![te::compute("sum_of_rows", &dims, |out| {
            let mut at = out.to_vec();
            at[last] = k.var();
            te::sum(prim::cast(I32, inputs[0].at(&at)), [&k])
        })]
    })
}

/// A convolution of integers of 8 bits less their zero point with a constant weight less its own, in int32; none where it is not of this kind: in
/// groups, of few channels, of three axes, or with weights that have more than 8 bits without their zero.
pub fn convolution(scope: &mut Scope, node: &Node, x: &Integers, weight: [usize; 2]) -> Result<Option<Expr>> {
    let Some((tensor, values, zeros)) = known(node, weight) else { return Ok(None) };
    let (dims, shape) = (scope.dims(&x.values)?, tensor.shape().to_vec());
    let (Some(filters), Some(channels)) = (shape.first().copied(), shape.get(1).copied()) else { return Ok(None) };
    let is_plane = matches!(shape.len(), 3 | 4) && dims.len() == shape.len();
    if !is_plane || conv::group(node)? != 1 || channels < LEAST_CHANNELS || !dims[1].is_int(channels) || filters == 0 {
        return Ok(None);
    }
    if x.zero.as_ref().is_some_and(|zero| scope.dims(zero).map_or(true, |dims| dims.iter().any(|n| !n.is_int(1)))) {
        return Ok(None);
    }
    let window = Window::read(node, shape[2..].to_vec(), &dims[2..])?;
    let rows = values.chunks(values.len() / filters as usize).map(<[i64]>::to_vec).collect();
    let weight = Weight::new(rows, &zeros, tensor.dtype().is_int()).filter(Weight::is_centred);
    let (Some(weight), None) = (weight, &window.same) else { return Ok(None) };
    let Some(mut x) = unsigned(scope, x)? else { return Ok(None) };
    x.zero = x.zero.map(|zero| scope.reshape(zero, Vec::<PrimExpr>::new())).transpose()?;
    let sum = Slide::new(&window, channels, &shape).emit(scope, &x, &weight)?;
    let sum = match x.zero {
        Some(zero) => {
            let own = scope.whole(&weight.of_zero(), &[filters], I32)?;
            let own = per_channel(scope, own, 1, 4)?;
            let less = broadcast_call(scope, "multiply", [zero, own])?;
            broadcast_call(scope, "subtract", [sum, less])?
        }
        None => sum,
    };
    conv::from_2d(scope, sum, shape.len() - 2).map(Some)
}

/// A window that slides over words of channels.
struct Slide {
    channels: i64,
    kernel: Vec<i64>,
    strides: Vec<i64>,
    dilations: Vec<i64>,
    /// Top, left, bottom, right.
    pads: Vec<i64>,
}

impl Slide {
    fn new(window: &Window, channels: i64, shape: &[i64]) -> Slide {
        Slide {
            channels,
            kernel: conv::lift(&shape[2..], 1),
            strides: conv::lift(&window.strides, 1),
            dilations: conv::lift(&window.dilations, 1),
            pads: conv::lift_pads(&window.pads),
        }
    }

    /// The weight's words: filters by words of channels by places of the window; in panels, if there are some, filters of a panel come last.
    fn words(&self, scope: &Scope, weight: &Weight, panels: Option<Panels>) -> Result<Expr> {
        let (places, words) = ((self.kernel[0] * self.kernel[1]) as usize, words_in(self.channels) as usize);
        let word_of = |row: &[i64], term: usize| {
            let (c, place) = (term / places, term % places);
            let channels = (c * BYTES as usize..self.channels as usize).take(BYTES as usize);
            word(channels.map(|channel| row[channel * places + place]))
        };
        let (filters, words) = (weight.rows.len() as i64, words as i64);
        let terms = words as usize * places;
        let window = [words, self.kernel[0], self.kernel[1]];
        match panels {
            Some(panels) => {
                let packed = panels.laid_out(terms as i64, 0, |term, filter| word_of(&weight.rows[filter], term));
                let shape = [panels.count()].into_iter().chain(window).chain([panels.width()]).collect::<Vec<_>>();
                scope.whole(&packed, &shape, I32)
            }
            None => {
                let packed: Vec<i64> =
                    weight.rows.iter().flat_map(|row| (0..terms).map(|term| word_of(row, term))).collect();
                scope.whole(&packed, &[filters, window[0], window[1], window[2]], I32)
            }
        }
    }

    /// The panels of filters, where sums have so many words that their way through memory, back to rows of pixels, costs little.
    fn panels(&self, filters: usize) -> Option<Panels> {
        let words = words_in(self.channels) * self.kernel[0] * self.kernel[1];
        if words < LEAST_WORDS { None } else { Panels::of_filters(filters as i64, Widths::LONGEST) }
    }

    /// The kernel: words of the image with its padding, which is the zero point, and the products.
    fn emit(&self, scope: &mut Scope, x: &Integers, weight: &Weight) -> Result<Expr> {
        let panels = self.panels(weight.rows.len());
        let words = self.words(scope, weight, panels)?;
        let image = conv::as_2d(scope, x.values.clone())?;
        let dims = scope.dims(&image)?;
        let is_padded = self.pads.iter().any(|n| *n > 0);
        let mut args = vec![image, words];
        args.extend(x.zero.clone().filter(|_| is_padded));
        let image = |i: usize| &dims[i + 2] + prim::int(self.pads[i] + self.pads[i + 2]);
        let padded = [dims[0].clone(), words_in(self.channels).into(), image(0), image(1)];
        let places = |i: usize| {
            let dilated_extent = (self.kernel[i] - 1) * self.dilations[i] + 1;
            prim::floordiv(image(i) - prim::int(dilated_extent), prim::int(self.strides[i])) + prim::int(1)
        };
        let out = [dims[0].clone(), (weight.rows.len() as i64).into(), places(0), places(1)]
            .map(|dim| crate::dims::simplify(&dim));
        let axes = [words_in(self.channels), self.kernel[0], self.kernel[1]].map(te::reduce_axis);
        scope.te("conv_words", args, |inputs| {
            let image = te::compute("words", padded.map(|dim| crate::dims::simplify(&dim)), |at| {
                self.word(&inputs[0], inputs.get(2), &dims, at)
            });
            vec![te::compute("conv_words", &out, |at| {
                let place = |i: usize| &at[i + 2] * self.strides[i] + axes[i + 1].var() * prim::int(self.dilations[i]);
                let pixel = image.at(&[at[0].clone(), axes[0].var(), place(0), place(1)]);
                let term = [axes[0].var(), axes[1].var(), axes[2].var()];
                let weight = match panels.map(Panels::width) {
                    Some(width) => {
                        let (panel, own) = (prim::floordiv(&at[1], width), prim::floormod(&at[1], width));
                        inputs[1].at(&[panel].into_iter().chain(term).chain([own]).collect::<Vec<_>>())
                    }
                    None => inputs[1].at(&[at[1].clone()].into_iter().chain(term).collect::<Vec<_>>()),
                };
                te::sum(product_of_words(weight, pixel), &axes)
            })]
        })
    }

    /// A word of the padded image.
    fn word(&self, x: &te::Tensor, zero: Option<&te::Tensor>, dims: &[PrimExpr], at: &[PrimExpr]) -> PrimExpr {
        let mut index = at.to_vec();
        let mut inside = Vec::new();
        for i in 0..2 {
            if self.pads[i] + self.pads[i + 2] == 0 {
                continue;
            }
            let place = &at[i + 2] - prim::int(self.pads[i]);
            inside.push(prim::and(prim::ge(&place, 0), prim::lt(&place, &dims[i + 2])));
            index[i + 2] = place;
        }
        let word = word_at(x, &index, 1, self.channels);
        let Some(inside) = inside.into_iter().reduce(prim::and) else { return word };
        let fill =
            zero.map_or(prim::int_of(U32, 0), |zero| prim::cast(U32, zero.at(&[])) * prim::int_of(U32, 0x0101_0101));
        prim::if_then_else(inside, word, fill)
    }
}
