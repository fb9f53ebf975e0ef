//! Numbers of 4 or 8 bits for the elements of a matrix, in blocks of a column.
//!
//! ```text
//! w[k, n] is about (q[k, n] - z[b, n]) * t[b, n],   q and z of 0 to 15, b = k / 32 (of bytes mostly k / 64)
//! ```
//!
//! Of each block some scales are tried, the best is moved to where its squared error is least, and rounded to what it is kept as before
//! numbers are chosen for it. Zeros are 8 everywhere, or one for each block: the latter where they leave less than seven tenths of the
//! squared error, which is what the quarter of a bit that they take would gain elsewhere.
//!
//! Numbers of 8 bits have 127 steps to each side of 128, and no zeros of their own.
//!
//! Blocks of sixteen columns are looked at together, a lane each, and panels by as many threads as there are cores.

use half::f16;

use relaxide_ir::workers;

use crate::blocks::{Blocks, MIDDLE};

/// Rows of a block of numbers of 4 bits.
const BLOCK: i64 = 32;
/// The same of 8 bits: a scale for each costs a product of many rows three instructions beside a product of bytes for each four of its rows.
const BYTE_BLOCK: i64 = 64;
/// Steps from the middle to an element that is furthest from zero, of the scales that are tried.
const STEPS: [f32; 4] = [7.0, 7.5, 8.0, 8.5];
/// Parts of a block's range that the fifteen steps between numbers cover, of the scales that are tried with zeros.
const PARTS: [f32; 3] = [1.0, 0.95, 0.9];
/// The part of the squared error that zeros must leave at most.
const WORTH: f64 = 0.7;
const LARGEST: f32 = 15.0;
/// Steps of a number of 8 bits to each side of its middle.
const BYTE_STEPS: f32 = 127.0;
/// Blocks by which it is judged whether there are zeros, and tiles that a thread looks at in one go.
const SAMPLE: usize = 1 << 13;

/// Columns that are looked at together, each in a lane of its own.
const LANES: usize = 16;
/// Rows of a block at most.
const MOST_ROWS: usize = BYTE_BLOCK as usize;

/// What each of some columns has.
type Lane = [f32; LANES];
/// The elements of a block of each of some columns.
struct Tile {
    elements: [Lane; MOST_ROWS],
    /// Rows of the block.
    rows: usize,
}

impl Tile {
    fn rows(&self) -> &[Lane] {
        &self.elements[..self.rows]
    }
}

/// A matrix in numbers of 4 or 8 bits, in panels.
pub struct Quantized {
    /// Numbers of a column that share a word, `[panels, words of a column, columns of a panel]`.
    pub words: Vec<u32>,
    /// One for each block of a column, `[panels, blocks, columns of a panel]`.
    pub scales: Vec<f32>,
    /// The same for what stands for zero; none where it is the middle.
    pub zeros: Option<Vec<u8>>,
    /// Whether scales are numbers of 16 bits.
    pub is_half: bool,
}

/// Blocks of some columns: numbers, scales and zeros, and the squared errors.
struct Choice {
    numbers: [[u8; LANES]; MOST_ROWS],
    scale: Lane,
    zero: Lane,
    error: [f64; LANES],
}

/// How a matrix is quantized.
#[derive(Clone, Copy)]
struct Manner {
    has_bytes: bool,
    is_half: bool,
    with_zeros: bool,
}

impl Manner {
    fn choose(self, values: &Tile) -> Choice {
        match self {
            Manner { has_bytes: true, is_half, .. } => bytes(values, is_half),
            Manner { with_zeros: true, is_half, .. } => with_zero(values, is_half),
            Manner { is_half, .. } => symmetric(values, is_half),
        }
    }
}

/// Blocks of a matrix of so many rows and columns; none where there are none. Those of bytes are as long as fill up nothing.
pub fn blocks_of(bits: i64, [rows, columns]: [i64; 2]) -> Option<Blocks> {
    match bits {
        8 if rows % BYTE_BLOCK == 0 => Blocks::of_bytes(rows, columns, BYTE_BLOCK),
        8 => Blocks::of_bytes(rows, columns, BLOCK),
        _ => Blocks::new(rows, columns, BLOCK),
    }
}

/// A matrix of numbers, which `element` reads.
pub fn quantized(of: Blocks, element: impl Fn(usize, usize) -> f32 + Sync) -> Quantized {
    let (columns, blocks) = (of.panels().columns() as usize, of.count() as usize);
    let tile = |at: usize| tile_of(of, at % blocks, at / blocks * LANES, &element);
    let count = columns.div_ceil(LANES) * blocks;
    let is_half = workers::in_order(count.div_ceil(SAMPLE), |part| {
        (part * SAMPLE..count.min((part + 1) * SAMPLE)).all(|at| fits_half(&tile(at), of.middle() as f32 * 2.0))
    });
    let is_half = is_half.iter().all(|fits| *fits);
    let sample = (0..count).step_by(count.div_ceil(SAMPLE / LANES)).map(tile);
    let with_zeros = !of.has_bytes() && zeros_gain(sample, is_half);
    let manner = Manner { has_bytes: of.has_bytes(), is_half, with_zeros };
    let panels = workers::in_order(of.panels().count() as usize, |panel| panel_of(of, panel, manner, &element));
    let mut made = Quantized {
        words: Vec::with_capacity(of.shape_of_words().iter().product::<i64>() as usize),
        scales: Vec::with_capacity(of.shape_of_blocks().iter().product::<i64>() as usize),
        zeros: manner.with_zeros.then(Vec::new),
        is_half: manner.is_half,
    };
    for (words, scales, zeros) in panels {
        made.words.extend(words);
        made.scales.extend(scales);
        made.zeros.iter_mut().for_each(|all| all.extend(&zeros));
    }
    made
}

/// Whether zeros leave so little of the squared error that they are worth what they take.
fn zeros_gain(sample: impl Iterator<Item = Tile>, is_half: bool) -> bool {
    let sum = |choice: Choice| choice.error.iter().sum::<f64>();
    let errors = sample.fold((0.0, 0.0), |(plain, shifted), values| {
        (plain + sum(symmetric(&values, is_half)), shifted + sum(with_zero(&values, is_half)))
    });
    errors.1 < WORTH * errors.0
}

/// The elements of a block of some columns; zero behind the last row and the last column.
fn tile_of(of: Blocks, block: usize, first: usize, element: &impl Fn(usize, usize) -> f32) -> Tile {
    let (rows, columns) = (of.rows() as usize, of.panels().columns() as usize);
    let mut tile = Tile { elements: [[0f32; LANES]; MOST_ROWS], rows: of.block() as usize };
    for (values, row) in tile.elements[..tile.rows].iter_mut().zip(block * tile.rows..rows) {
        values.iter_mut().zip(first..columns).for_each(|(value, column)| *value = element(row, column));
    }
    tile
}

/// A panel's words, scales and zeros.
fn panel_of(
    of: Blocks,
    panel: usize,
    manner: Manner,
    element: &impl Fn(usize, usize) -> f32,
) -> (Vec<u32>, Vec<f32>, Vec<u8>) {
    let [width, blocks] = [of.panels().width(), of.count()].map(|n| n as usize);
    let (rows, columns) = (of.rows() as usize, of.panels().columns() as usize);
    let (shared, height) = (of.shared() as usize, of.block() as usize);
    let words_of_block = height / shared;
    let mut words = vec![0u32; blocks * words_of_block * width];
    let (mut scales, mut zeros) = (vec![0f32; blocks * width], vec![MIDDLE; blocks * width]);
    for block in 0..blocks {
        // Panels are whole vectors of columns.
        for start in (0..width).step_by(LANES) {
            let first = panel * width + start;
            let choice = manner.choose(&tile_of(of, block, first, element));
            let lanes = LANES.min(columns.saturating_sub(first));
            let at = block * width + start;
            scales[at..at + lanes].copy_from_slice(&choice.scale[..lanes]);
            zeros[at..at + lanes].iter_mut().zip(&choice.zero).for_each(|(to, zero)| *to = *zero as u8);
            for (row, numbers) in (block * height..rows).zip(&choice.numbers).take(height) {
                let shift = of.shift(row % shared);
                let to = &mut words[row / shared * width + start..][..lanes];
                to.iter_mut().zip(numbers).for_each(|(to, number)| *to |= u32::from(*number) << shift);
            }
        }
    }
    (words, scales, zeros)
}

fn lanes(of: impl Fn(usize) -> f32) -> Lane {
    let mut all = [0f32; LANES];
    all.iter_mut().enumerate().for_each(|(lane, value)| *value = of(lane));
    all
}

/// Of each column the element that is furthest from zero.
fn furthest(values: &Tile) -> Lane {
    let further = |mut most: Lane, row: &Lane| {
        most.iter_mut()
            .zip(row)
            .for_each(|(most, value)| *most = if value.abs() >= most.abs() { *value } else { *most });
        most
    };
    values.rows().iter().fold([0f32; LANES], further)
}

/// Whether a step between numbers is a number, for the element that is furthest from zero.
fn has_steps(furthest: f32) -> bool {
    furthest.abs() >= 64.0 * f32::MIN_POSITIVE
}

/// Whether the scales of blocks, whose steps are so many at most, are normal numbers of 16 bits.
fn fits_half(values: &Tile, most: f32) -> bool {
    let normal = 2.0 * f16::MIN_POSITIVE.to_f32()..f16::MAX.to_f32();
    let fits = |furthest: f32| normal.contains(&(furthest.abs() / most)) && normal.contains(&furthest.abs());
    furthest(values).into_iter().all(|furthest| !has_steps(furthest) || fits(furthest))
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

/// The squared errors of blocks for scales and zeros, in units of their largest elements.
fn error_of(values: &Tile, unit: &Lane, scale: &Lane, zero: &Lane) -> Lane {
    let factor = scale.map(|scale| 1.0 / scale);
    let mut sums = [0f32; LANES];
    for row in values.rows() {
        sums = lanes(|lane| {
            let step = number(row[lane], factor[lane], zero[lane]) - zero[lane];
            let off = (step * scale[lane] - row[lane]) * unit[lane];
            sums[lane] + off * off
        });
    }
    sums
}

/// Scales and zeros of some blocks, and their squared errors.
#[derive(Clone, Copy)]
struct Judged {
    error: Lane,
    scale: Lane,
    zero: Lane,
}

impl Judged {
    /// Takes over what has less error.
    fn improve(&mut self, other: &Judged) {
        let Judged { error, scale, zero } = *self;
        let is_better = |lane: usize| other.error[lane] < error[lane];
        self.error = lanes(|lane| if is_better(lane) { other.error[lane] } else { error[lane] });
        self.scale = lanes(|lane| if is_better(lane) { other.scale[lane] } else { scale[lane] });
        self.zero = lanes(|lane| if is_better(lane) { other.zero[lane] } else { zero[lane] });
    }
}

/// The best of some scales, and of the one that fits its numbers best.
fn best(values: &Tile, furthest: &Lane, tried: impl Iterator<Item = (Lane, Lane)>, is_half: bool) -> Choice {
    let unit = furthest.map(|furthest| 1.0 / furthest.abs());
    let judged = |scale: Lane, zero: Lane| {
        let scale = scale.map(|scale| kept(scale, is_half));
        Judged { error: error_of(values, &unit, &scale, &zero), scale, zero }
    };
    let mut found = Judged { error: [f32::INFINITY; LANES], scale: *furthest, zero: [f32::from(MIDDLE); LANES] };
    tried.for_each(|(scale, zero)| found.improve(&judged(scale, zero)));
    let factor = found.scale.map(|scale| 1.0 / scale);
    let (mut squares, mut products) = ([0f32; LANES], [0f32; LANES]);
    for row in values.rows() {
        let steps = lanes(|lane| number(row[lane], factor[lane], found.zero[lane]) - found.zero[lane]);
        squares = lanes(|lane| squares[lane] + steps[lane] * steps[lane]);
        products = lanes(|lane| products[lane] + steps[lane] * (row[lane] * unit[lane]));
    }
    let fitted = lanes(|lane| products[lane] / squares[lane] / unit[lane]);
    let mut moved = judged(fitted, found.zero);
    moved.error.iter_mut().zip(&fitted).filter(|(_, fitted)| !fitted.is_normal()).for_each(|(e, _)| *e = f32::INFINITY);
    found.improve(&moved);
    choice(values, furthest, &found)
}

/// The numbers for scales and zeros. Blocks of what is zero, or as good as, have none but zeros.
fn choice(values: &Tile, furthest: &Lane, found: &Judged) -> Choice {
    let is_nothing = furthest.map(|furthest| !has_steps(furthest));
    let middle = f32::from(MIDDLE);
    let zero = lanes(|lane| if is_nothing[lane] { middle } else { found.zero[lane] });
    let factor = lanes(|lane| if is_nothing[lane] { 0.0 } else { 1.0 / found.scale[lane] });
    let mut numbers = [[0u8; LANES]; MOST_ROWS];
    for (numbers, row) in numbers.iter_mut().zip(values.rows()) {
        *numbers = lanes(|lane| number(row[lane], factor[lane], zero[lane])).map(|number| number as u8);
    }
    let mut error = [0f64; LANES];
    for (lane, error) in error.iter_mut().enumerate() {
        *error = match is_nothing[lane] {
            true => values.rows().iter().map(|row| f64::from(row[lane]).powi(2)).sum(),
            false => f64::from(found.error[lane]) * f64::from(furthest[lane]).powi(2),
        };
    }
    Choice { numbers, scale: lanes(|lane| if is_nothing[lane] { 0.0 } else { found.scale[lane] }), zero, error }
}

fn symmetric(values: &Tile, is_half: bool) -> Choice {
    let furthest = furthest(values);
    // Numbers go one step further below zero than above.
    let tried = STEPS.iter().map(|steps| (furthest.map(|furthest| -furthest / steps), [f32::from(MIDDLE); LANES]));
    best(values, &furthest, tried, is_half)
}

/// Numbers of 8 bits.
fn bytes(values: &Tile, is_half: bool) -> Choice {
    let furthest = furthest(values);
    let scale = furthest.map(|furthest| kept(furthest.abs() / BYTE_STEPS, is_half));
    let factor = lanes(|lane| if has_steps(furthest[lane]) { 1.0 / scale[lane] } else { 0.0 });
    let mut numbers = [[0u8; LANES]; MOST_ROWS];
    for (numbers, row) in numbers.iter_mut().zip(values.rows()) {
        let steps = lanes(|lane| rounded((row[lane] * factor[lane]).clamp(-BYTE_STEPS, BYTE_STEPS)));
        *numbers = steps.map(|step| (step + BYTE_STEPS + 1.0) as u8);
    }
    let scale = lanes(|lane| if has_steps(furthest[lane]) { scale[lane] } else { 0.0 });
    Choice { numbers, scale, zero: [f32::from(MIDDLE); LANES], error: [0.0; LANES] }
}

fn with_zero(values: &Tile, is_half: bool) -> Choice {
    let furthest = furthest(values);
    let (mut low, mut high) = ([0f32; LANES], [0f32; LANES]);
    for row in values.rows() {
        low = lanes(|lane| low[lane].min(row[lane]));
        high = lanes(|lane| high[lane].max(row[lane]));
    }
    let tried = PARTS.iter().map(|part| {
        let scale = lanes(|lane| (high[lane] / LARGEST - low[lane] / LARGEST) * part);
        (scale, lanes(|lane| rounded((-low[lane] * part / scale[lane]).clamp(0.0, LARGEST))))
    });
    best(values, &furthest, tried, is_half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f32 + Sync) -> (Quantized, f32) {
        let of = Blocks::new(rows as i64, columns as i64, BLOCK).unwrap();
        let made = quantized(of, &value);
        let mut worst = 0f32;
        for column in 0..columns {
            for row in 0..rows {
                let width = of.panels().width() as usize;
                let (panel, column_of) = (column / width, column % width);
                let at = (panel * of.count() as usize + row / BLOCK as usize) * width + column_of;
                let zero = made.zeros.as_ref().map_or(MIDDLE, |zeros| zeros[at]);
                let words = of.shape_of_words()[1] as usize;
                let word = made.words[(panel * words + row / 8) * width + column_of];
                let number = word >> (8 * (row % 4) + 4 * (row % 8 / 4)) & 15;
                let step = number as f32 - f32::from(zero);
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
        let (row, column) = ((row as u32).wrapping_mul(2_654_435_761), (column as u32).wrapping_mul(40_503));
        let bits = row.wrapping_add(column).wrapping_mul(2_246_822_519);
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
    fn numbers_of_eight_bits_are_off_by_half_a_step() {
        for (rows, columns) in [(32, 1), (64, 3), (33, 7), (100, 17), (192, 5)] {
            let of = blocks_of(8, [rows, columns]).unwrap();
            let made = quantized(of, noise);
            let [count, words, width] = of.shape_of_words().map(|n| n as usize);
            assert!(made.words.len() == count * words * width && made.zeros.is_none() && made.is_half);
            for (row, column) in (0..rows as usize).flat_map(|row| (0..columns as usize).map(move |c| (row, c))) {
                let (panel, at) = (column / width, column % width);
                let number = made.words[(panel * words + row / 4) * width + at] >> (8 * (row % 4)) & 255;
                let scale = made.scales[(panel * of.count() as usize + row / of.block() as usize) * width + at];
                assert!(((number as f32 - 128.0) * scale - noise(row, column)).abs() < 0.505 / 127.0);
            }
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
