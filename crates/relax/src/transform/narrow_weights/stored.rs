//! How the elements of a matrix are kept, and what they are made of.
//!
//! All lie in [panels](crate::blocks::Panels) of columns, so that a product of one row reads its matrix from the beginning to the end.

use half::{bf16, f16};
use relaxide_ffi::{DataType, Tensor};
use relaxide_ir::workers;

use super::NarrowForm;
use super::notes::Stays;
use super::quantize::{blocks_of, quantized, rounded};
use crate::Expr;
use crate::blocks::{Blocks, Panels, Widths};

/// Steps of an integer of 8 bits to each side of zero.
const STEPS: f32 = 127.0;
/// Numbers of 16 bits that share a word.
pub const PAIR: i64 = 2;

/// What is kept of a matrix.
#[derive(Clone)]
pub enum Stored {
    /// Its elements, `[panels, rows, columns of a panel]`, and what a step of each column is, `[panels, columns of a panel]`.
    Each { elements: Expr, scales: Option<Expr> },
    /// Two bfloat16 of a column as a word, `[panels, rows / 2, columns of a panel]`.
    Pairs { words: Expr },
    /// Numbers of 4 or 8 bits in blocks of a column.
    Blocks { of: Blocks, words: Expr, scales: Expr, zeros: Option<Expr> },
}

/// A matrix of so many rows and columns, whose elements are read by row and column, in fewer bits; or why it stays.
pub fn stored(
    [rows, columns]: [i64; 2],
    form: NarrowForm,
    element: impl Fn(usize, usize) -> f32 + Sync,
) -> Result<Stored, Stays> {
    let panels = Panels::new(columns, Widths::LONGEST).ok_or(Stays::Size)?;
    if form.dtype == DataType::int(4) || form.dtype == DataType::int(8) && form.products {
        return in_blocks([rows, columns], form.dtype, element);
    }
    // Columns that are few fill a part of a panel only.
    if i64::from(form.dtype.bits) * panels.padded() > 24 * columns {
        return Err(Stays::Padding);
    }
    let shape = [panels.count(), rows, panels.width()];
    if form.products {
        let bits = |row: usize, column: usize| match row < rows as usize {
            true => u32::from(bf16::from_f32(element(row, column)).to_bits()),
            false => 0,
        };
        let height = (rows + PAIR - 1) / PAIR;
        let words = panels.laid_out(height, 0, |at, column| bits(2 * at, column) | bits(2 * at + 1, column) << 16);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let words = constant(&bytes, &[shape[0], height, shape[2]], DataType::uint(32))?;
        return Ok(Stored::Pairs { words });
    }
    let halves = |bits: fn(f32) -> u16| {
        let all = panels.laid_out(rows, 0, |row, column| bits(element(row, column)));
        constant(&all.iter().flat_map(|half| half.to_le_bytes()).collect::<Vec<u8>>(), &shape, form.dtype)
    };
    let elements = match form.dtype.code {
        DataType::BFLOAT => halves(|value| bf16::from_f32(value).to_bits())?,
        DataType::FLOAT => halves(|value| f16::from_f32(value).to_bits())?,
        _ => return in_steps(panels, rows, element),
    };
    Ok(Stored::Each { elements, scales: None })
}

/// Numbers as steps of each column's scale, and the scales. The number zero is a step.
fn in_steps(panels: Panels, rows: i64, element: impl Fn(usize, usize) -> f32 + Sync) -> Result<Stored, Stays> {
    let largest = |panel: usize| {
        let (width, columns) = (panels.width() as usize, panels.columns() as usize);
        let own = panel * width..columns.min((panel + 1) * width);
        let mut largest = vec![0f32; own.len()];
        for row in 0..rows as usize {
            let values = own.clone().map(|column| element(row, column).abs());
            largest.iter_mut().zip(values).for_each(|(largest, value)| *largest = largest.max(value));
        }
        largest
    };
    let mut scales = workers::in_order(panels.count() as usize, largest).concat();
    // A scale that is no number, or so small that a quotient is none, stands for zeros.
    scales.iter_mut().for_each(|scale| *scale = if *scale / STEPS >= f32::MIN_POSITIVE { *scale / STEPS } else { 1.0 });
    let step = |value: f32, scale: f32| rounded((value / scale).clamp(-STEPS, STEPS)) as i8 as u8;
    let steps = panels.laid_out(rows, 0, |row, column| step(element(row, column), scales[column]));
    let (count, width) = (panels.count(), panels.width());
    let scales = panels.laid_out(1, 1f32, |_, column| scales[column]);
    let scales: Vec<u8> = scales.iter().flat_map(|scale| scale.to_le_bytes()).collect();
    Ok(Stored::Each {
        elements: constant(&steps, &[count, rows, width], DataType::int(8))?,
        scales: Some(constant(&scales, &[count, width], DataType::float(32))?),
    })
}

fn in_blocks(
    [rows, columns]: [i64; 2],
    dtype: DataType,
    element: impl Fn(usize, usize) -> f32 + Sync,
) -> Result<Stored, Stays> {
    let bits = i64::from(dtype.bits);
    let of = blocks_of(bits, [rows, columns]).ok_or(Stays::Size)?;
    let count = |shape: [i64; 3]| shape.iter().product::<i64>();
    // Beside words there are scales of 16 bits. With blocks and panels that are filled up, more bits would do as well.
    if 4 * count(of.shape_of_words()) + 2 * count(of.shape_of_blocks()) > rows * columns * bits * 3 / 16 {
        return Err(Stays::Padding);
    }
    let made = quantized(of, element);
    let scales: Vec<u8> = match made.is_half {
        true => made.scales.iter().flat_map(|scale| f16::from_f32(*scale).to_le_bytes()).collect(),
        false => made.scales.iter().flat_map(|scale| scale.to_le_bytes()).collect(),
    };
    let bits = if made.is_half { 16 } else { 32 };
    let words: Vec<u8> = made.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Ok(Stored::Blocks {
        of,
        words: constant(&words, &of.shape_of_words(), DataType::uint(32))?,
        scales: constant(&scales, &of.shape_of_blocks(), DataType::float(bits))?,
        zeros: made.zeros.map(|zeros| constant(&zeros, &of.shape_of_blocks(), DataType::uint(8))).transpose()?,
    })
}

/// A constant of so many bytes.
pub fn constant(bytes: &[u8], shape: &[i64], dtype: DataType) -> Result<Expr, Stays> {
    Tensor::from_bytes(bytes, shape, dtype).map(Expr::constant).map_err(|_| Stays::Size)
}
