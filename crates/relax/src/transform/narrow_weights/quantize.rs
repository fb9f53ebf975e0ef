//! Numbers of 4 bits for the elements of a matrix, in blocks of a column.
//!
//! ```text
//! w[k, n] is about (q[k, n] - z[b, n]) * t[b, n],   q and z of 0 to 15, b = k / 32
//! ```
//!
//! Of each block some scales are tried, the best is moved to where its squared error is least, and rounded to what it is kept as before
//! numbers are chosen for it. Zeros are 8 everywhere, or one for each block: the latter where they leave less than seven tenths of the
//! squared error, which is what the quarter of a bit that they take would gain elsewhere.

use half::f16;

use crate::blocks::{Blocks, MIDDLE};

/// Rows of a block.
pub const BLOCK: i64 = 32;
/// Steps from the middle to an element that is furthest from zero, of the scales that are tried.
const STEPS: [f32; 4] = [7.0, 7.5, 8.0, 8.5];
/// Parts of a block's range that the fifteen steps between numbers cover, of the scales that are tried with zeros.
const PARTS: [f32; 3] = [1.0, 0.95, 0.9];
/// The part of the squared error that zeros must leave at most.
const WORTH: f64 = 0.7;
const LARGEST: f32 = 15.0;
/// Blocks by which it is judged whether there are zeros.
const SAMPLE: usize = 1 << 13;

/// A matrix in numbers of 4 bits.
pub struct Quantized {
    /// Block by block, each with its elements together; blocks of all columns before the next rows.
    numbers: Vec<u8>,
    /// One for each block, the columns of the first rows first.
    pub scales: Vec<f32>,
    /// The same for what stands for zero; none where it is 8.
    pub zeros: Option<Vec<u8>>,
    /// Whether scales are numbers of 16 bits.
    pub is_half: bool,
    columns: usize,
}

impl Quantized {
    /// The number at a row and column.
    pub fn number(&self, row: usize, column: usize) -> u8 {
        self.numbers[self.block_of(row / BLOCK as usize, column) * BLOCK as usize + row % BLOCK as usize]
    }

    /// Where a block stands among the scales.
    pub fn block_of(&self, block: usize, column: usize) -> usize {
        block * self.columns + column
    }
}

/// A block's numbers, scale and zero, and their squared error.
#[derive(Clone, Copy)]
struct Choice {
    numbers: [u8; BLOCK as usize],
    scale: f32,
    zero: u8,
    error: f64,
}

/// A matrix of numbers, which `element` reads.
pub fn quantized(of: Blocks, element: impl Fn(usize, usize) -> f32) -> Quantized {
    let (rows, columns, size) = (of.rows() as usize, of.panels().columns() as usize, BLOCK as usize);
    let count = of.count() as usize;
    let block = |at: usize| {
        let (first, column) = (at / columns * size, at % columns);
        let mut values = [0f32; BLOCK as usize];
        values.iter_mut().zip(first..rows).for_each(|(value, row)| *value = element(row, column));
        values
    };
    let is_half = (0..count * columns).all(|at| fits_half(&block(at)));
    let blocks = count * columns;
    let errors =
        (0..blocks).step_by(blocks.div_ceil(SAMPLE)).map(block).fold((0.0, 0.0), |(plain, shifted), values| {
            (plain + symmetric(&values, is_half).error, shifted + with_zero(&values, is_half).error)
        });
    let with_zeros = errors.1 < WORTH * errors.0;
    let choose = if with_zeros { with_zero } else { symmetric };
    let mut made = Quantized {
        numbers: Vec::with_capacity(blocks * size),
        scales: Vec::with_capacity(blocks),
        zeros: with_zeros.then(|| Vec::with_capacity(blocks)),
        is_half,
        columns,
    };
    for choice in (0..blocks).map(|at| choose(&block(at), is_half)) {
        made.numbers.extend(choice.numbers);
        made.scales.push(choice.scale);
        made.zeros.iter_mut().for_each(|zeros| zeros.push(choice.zero));
    }
    made
}

/// The element that is furthest from zero; none where all are so near that a step between them is no number.
fn extreme(values: &[f32]) -> Option<f32> {
    let furthest = values.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
    (furthest.abs() >= 64.0 * f32::MIN_POSITIVE).then_some(furthest)
}

/// Whether the scales of a block are normal numbers of 16 bits.
fn fits_half(values: &[f32]) -> bool {
    let normal = 2.0 * f16::MIN_POSITIVE.to_f32()..f16::MAX.to_f32();
    extreme(values).is_none_or(|furthest| normal.contains(&(furthest.abs() / 16.0)) && normal.contains(&furthest.abs()))
}

fn kept(scale: f32, is_half: bool) -> f32 {
    if is_half { f16::from_f32(scale).to_f32() } else { scale }
}

/// A value to the nearest whole number, ties to even, where it is far below 2^22; a function that vectors have on every processor.
pub fn rounded(value: f32) -> f32 {
    const SHIFT: f32 = 12_582_912.0;
    (value + SHIFT) - SHIFT
}

/// The number of a value, for the inverse of a scale and a zero.
fn number(value: f32, factor: f32, zero: f32) -> f32 {
    (rounded(value * factor) + zero).clamp(0.0, LARGEST)
}

/// The squared error of a block for a scale and a zero, in units of its largest element.
fn error_of(values: &[f32; BLOCK as usize], unit: f32, scale: f32, zero: u8) -> f32 {
    let (factor, zero) = (1.0 / scale, f32::from(zero));
    let mut sums = [0f32; 8];
    for values in values.chunks_exact(8) {
        for (sum, value) in sums.iter_mut().zip(values) {
            let off = ((number(*value, factor, zero) - zero) * scale - value) * unit;
            *sum += off * off;
        }
    }
    sums.iter().sum()
}

/// The best of some scales, and of the one that fits its numbers best.
fn best(
    values: &[f32; BLOCK as usize],
    furthest: f32,
    tried: impl Iterator<Item = (f32, u8)>,
    is_half: bool,
) -> Choice {
    let unit = 1.0 / furthest.abs();
    let better = |a: (f32, f32, u8), b: (f32, f32, u8)| if b.0 < a.0 { b } else { a };
    let judged = |scale: f32, zero: u8| {
        let scale = kept(scale, is_half);
        (error_of(values, unit, scale, zero), scale, zero)
    };
    let found = tried.map(|(scale, zero)| judged(scale, zero)).fold((f32::INFINITY, furthest, MIDDLE), better);
    let (factor, zero) = (1.0 / found.1, f32::from(found.2));
    let (mut squares, mut products) = (0f32, 0f32);
    for value in values {
        let step = number(*value, factor, zero) - zero;
        squares += step * step;
        products += step * (value * unit);
    }
    let fitted = products / squares / unit;
    let (error, scale, zero) = match fitted.is_normal() {
        true => better(found, judged(fitted, found.2)),
        false => found,
    };
    let factor = 1.0 / scale;
    let numbers = values.map(|value| number(value, factor, f32::from(zero)) as u8);
    Choice { numbers, scale, zero, error: f64::from(error) * f64::from(furthest).powi(2) }
}

/// A block of what is zero, or as good as.
fn nothing(values: &[f32; BLOCK as usize]) -> Choice {
    let error = values.iter().map(|v| f64::from(*v).powi(2)).sum();
    Choice { numbers: [MIDDLE; BLOCK as usize], scale: 0.0, zero: MIDDLE, error }
}

fn symmetric(values: &[f32; BLOCK as usize], is_half: bool) -> Choice {
    match extreme(values) {
        // Numbers go one step further below zero than above.
        Some(furthest) => best(values, furthest, STEPS.iter().map(|steps| (-furthest / steps, MIDDLE)), is_half),
        None => nothing(values),
    }
}

fn with_zero(values: &[f32; BLOCK as usize], is_half: bool) -> Choice {
    let Some(furthest) = extreme(values) else { return nothing(values) };
    let (low, high) = values.iter().fold((0f32, 0f32), |(low, high), v| (low.min(*v), high.max(*v)));
    let tried = PARTS.iter().map(|part| {
        let scale = (high / LARGEST - low / LARGEST) * part;
        (scale, rounded((-low * part / scale).clamp(0.0, LARGEST)) as u8)
    });
    best(values, furthest, tried, is_half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f32) -> (Quantized, f32) {
        let of = Blocks::new(rows as i64, columns as i64, BLOCK).unwrap();
        let made = quantized(of, &value);
        let mut worst = 0f32;
        for column in 0..columns {
            for row in 0..rows {
                let at = made.block_of(row / BLOCK as usize, column);
                let zero = made.zeros.as_ref().map_or(MIDDLE, |zeros| zeros[at]);
                let step = f32::from(made.number(row, column)) - f32::from(zero);
                assert!((-15.0..=15.0).contains(&step));
                let block = row / BLOCK as usize * BLOCK as usize;
                let in_block = block..rows.min(block + BLOCK as usize);
                let largest = in_block.map(|row| value(row, column).abs()).fold(0f32, f32::max);
                let error = (step * made.scales[at] - value(row, column)).abs();
                worst = worst.max(if largest > 0.0 { error / largest } else { error });
            }
        }
        (made, worst)
    }

    fn noise(row: usize, column: usize) -> f32 {
        let bits = (row as u32 * 2_654_435_761).wrapping_add(column as u32 * 40_503).wrapping_mul(2_246_822_519);
        (bits >> 8) as f32 / (1 << 23) as f32 - 1.0
    }

    #[test]
    fn an_element_is_off_by_little_more_than_half_a_step() {
        for (rows, columns) in [(32, 1), (64, 3), (33, 7), (5, 2), (100, 17)] {
            let (made, worst) = errors(rows, columns, noise);
            assert!(made.is_half && worst < 0.15, "{rows}x{columns}: {worst}");
        }
    }

    #[test]
    fn numbers_of_one_sign_get_zeros() {
        let (made, worst) = errors(96, 5, |row, column| noise(row, column) + 1.0);
        assert!(made.zeros.is_some() && worst < 0.06, "{worst}");
        assert!(errors(96, 5, noise).0.zeros.is_none());
    }

    #[test]
    fn sixteen_equally_spaced_numbers_are_exact() {
        let (_, worst) = errors(32, 2, |row, _| (row % 16) as f32 * 0.25 - 2.0);
        assert_eq!(worst, 0.0);
    }

    #[test]
    fn scales_that_are_no_numbers_of_16_bits_have_32() {
        for factor in [1e-7f32, 1e6, 1e30] {
            let (made, worst) = errors(64, 2, |row, column| noise(row, column) * factor);
            assert!(!made.is_half && worst < 0.15, "{factor}: {worst}");
        }
        let (made, _) = errors(64, 2, |_, column| if column == 0 { 0.0 } else { 1e-44 });
        assert!(made.is_half && made.scales.iter().all(|scale| *scale == 0.0));
        let (made, worst) = errors(64, 2, |row, _| if row % 2 == 0 { f32::MAX } else { f32::MIN });
        assert!(made.scales.iter().all(|scale| scale.is_finite()) && worst < 0.15, "{worst}");
    }
}
