//! Matrices of numbers of 4 or 8 bits in blocks of a column, and the products of rows with them.
//!
//! ```text
//! s[m, b] = largest |x| of block b of row m / 127,   a = round(x / s)
//! y[m, n] = sum over b of (sum over the block of a * w - z[b, n] * sum over the block of a) * (s[m, b] * t[b, n])
//! ```
//!
//! Rows are quantized to 8 bits in the blocks that the matrix has. Sums over a block are exact: words of four bytes (`dot_bytes`). Four numbers
//! of 8 bits are a word; of 4 bits eight share one, the first four in the lower halves of its bytes.
//!
//! Columns lie in panels of up to 64 ([`Widths::LONGEST`]), side by side: `[panels, words of a column, columns of a panel]`. A panel is read from its beginning to its end, which
//! memory is fastest at, and once for all rows (the rule `column_terms`). What is behind the last column or the last row is zero.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::workers;
use relaxide_tir::schedule::{Machine, tile_columns};
use relaxide_tir::te;

const F32: DataType = DataType::float(32);
const I32: DataType = DataType::int(32);
const U32: DataType = DataType::uint(32);
/// Bits and bytes of a word.
const BITS: i64 = 32;
const BYTES: i64 = 4;
/// Elements up to which one thread lays them out.
const FEW: usize = 1 << 16;
/// The largest number that what is multiplied becomes.
const LARGEST: f64 = 127.0;
/// The lower halves of a word's bytes, and a word of four ones.
const LOWER: i64 = 0x0f0f_0f0f;
const ONES: i64 = 0x0101_0101;
/// What stands for zero where a matrix of 4 bits says nothing else.
pub const MIDDLE: u8 = 8;

/// How wide panels may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Widths {
    /// Columns at most.
    most: i64,
    /// What columns are a multiple of: a vector.
    vector: i64,
}

impl Widths {
    /// Those of the longest vectors, of which shorter ones read a part at a time: for whom no processor is known.
    pub const LONGEST: Widths = Widths { most: 64, vector: 16 };

    /// Those that a processor's tiles of registers read from the beginning to the end.
    pub fn of(machine: &Machine, dtype: DataType) -> Widths {
        Widths { most: tile_columns(machine, dtype), vector: machine.lanes(dtype) }
    }

    /// The wider of two.
    pub fn wider(self, other: Widths) -> Widths {
        if other.most > self.most { other } else { self }
    }

    /// Columns of a panel at least: tiles of fewer leave too many registers unused.
    pub fn least(self) -> i64 {
        self.most * 3 / 4
    }

    /// The same of a convolution, whose tiles have more pixels instead.
    fn least_filters(self) -> i64 {
        (self.most / 2).max(2 * self.vector)
    }
}

/// Columns of a matrix in panels, side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Panels {
    columns: i64,
    width: i64,
}

impl Panels {
    /// Of so many columns, as wide as leaves little of the last one empty; none where there are no columns, or too many.
    pub fn new(columns: i64, widths: Widths) -> Option<Panels> {
        let narrowest = Panels { columns, width: widths.vector };
        can_be_counted(columns).then(|| Panels::with_empty(columns, widths, columns / 16).unwrap_or(narrowest))
    }

    /// The same, as wide as leaves nothing empty; none where no width does.
    pub fn whole(columns: i64, widths: Widths) -> Option<Panels> {
        can_be_counted(columns).then(|| Panels::with_empty(columns, widths, 0)).flatten()
    }

    /// The panels of a convolution's filters; none where panels of few are all that would leave little of the last one empty.
    pub fn of_filters(filters: i64, widths: Widths) -> Option<Panels> {
        Panels::new(filters, widths).filter(|panels| panels.width() >= widths.least_filters())
    }

    /// The widest that leave at most so many columns of the last one empty.
    fn with_empty(columns: i64, Widths { most: widest, vector }: Widths, most: i64) -> Option<Panels> {
        let widths = (1..=widest / vector).rev().map(|vectors| vectors * vector);
        widths.map(|width| Panels { columns, width }).find(|panels| panels.padded() - columns <= most)
    }

    /// Columns.
    pub fn columns(self) -> i64 {
        self.columns
    }

    /// Columns of a panel.
    pub fn width(self) -> i64 {
        self.width
    }

    /// Panels.
    pub fn count(self) -> i64 {
        up(self.columns, self.width())
    }

    /// Columns with what is behind the last of them.
    pub fn padded(self) -> i64 {
        self.count() * self.width()
    }

    /// What each row of each column has, `[panels, rows, columns of a panel]`, with `none` behind the last column.
    pub fn laid_out<T: Copy + Send + Sync>(self, rows: i64, none: T, of: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
        let [panels, rows, width, columns] = [self.count(), rows, self.width, self.columns].map(|n| n as usize);
        let mut all = vec![none; panels * rows * width];
        let fill = |panel: usize, own: &mut [T]| {
            for (row, elements) in own.chunks_mut(width.max(1)).enumerate() {
                let known = (panel * width..columns).zip(elements);
                known.for_each(|(column, element)| *element = of(row, column));
            }
        };
        let size = rows * width;
        if all.len() < FEW {
            all.chunks_mut(size.max(1)).enumerate().for_each(|(panel, own)| fill(panel, own));
        } else {
            workers::fill(&mut all, size, fill);
        }
        all
    }

    /// A product in panels, `[rows, panels, columns of a panel]`, as rows of so many elements as there are columns.
    pub fn without_padding(self, product: &te::Tensor) -> te::Tensor {
        let rows = product.shape().first().cloned().unwrap_or_else(|| prim::int(1));
        let width = prim::int(self.width());
        te::compute("columns", [rows, prim::int(self.columns)], |at| {
            product.at(&[at[0].clone(), prim::floordiv(&at[1], &width), prim::floormod(&at[1], &width)])
        })
    }
}

/// A matrix of numbers of 4 or 8 bits in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Rows, of which a block has so many: whole words.
    rows: i64,
    block: i64,
    panels: Panels,
    /// Bits of a number.
    bits: i64,
}

impl Blocks {
    /// One of so many rows and columns and numbers of 4 bits; none where there are none, or where a block is not whole words.
    pub fn new(rows: i64, columns: i64, block: i64) -> Option<Blocks> {
        Blocks::of_bits(4, rows, columns, block)
    }

    /// The same with numbers of 8 bits.
    pub fn of_bytes(rows: i64, columns: i64, block: i64) -> Option<Blocks> {
        Blocks::of_bits(8, rows, columns, block)
    }

    fn of_bits(bits: i64, rows: i64, columns: i64, block: i64) -> Option<Blocks> {
        let is_sound = rows > 0 && block > 0 && block % (BITS / bits) == 0;
        let fits = rows.checked_add(block).is_some_and(|n| n < i64::from(i32::MAX));
        Panels::new(columns, Widths::LONGEST).filter(|_| is_sound && fits).map(|panels| Blocks {
            rows,
            block,
            panels,
            bits,
        })
    }

    /// Whether numbers have 8 bits.
    pub fn has_bytes(self) -> bool {
        self.bits == 8
    }

    /// Numbers that share a word.
    pub fn shared(self) -> i64 {
        BITS / self.bits
    }

    /// What stands for zero where a matrix says nothing else.
    pub fn middle(self) -> i64 {
        1 << (self.bits - 1)
    }

    /// The largest number.
    fn largest(self) -> i64 {
        (1 << self.bits) - 1
    }

    /// By how many bits the number is moved that is at a place of its word.
    pub fn shift(self, place: usize) -> usize {
        let (bytes, place) = (BYTES as usize, place % self.shared() as usize);
        place % bytes * 8 + place / bytes * 4
    }

    /// Blocks of a column.
    pub fn count(self) -> i64 {
        up(self.rows, self.block)
    }

    /// Words of a column.
    fn words_of_column(self) -> i64 {
        self.count() * self.block / self.shared()
    }

    /// The shape of the words, `[panels, words of a column, columns of a panel]`.
    pub fn shape_of_words(self) -> [i64; 3] {
        [self.panels.count(), self.words_of_column(), self.panels.width()]
    }

    /// The shape of what each block of a column has, `[panels, blocks, columns of a panel]`.
    pub fn shape_of_blocks(self) -> [i64; 3] {
        [self.panels.count(), self.count(), self.panels.width()]
    }

    /// The words, from the number at each row and column.
    pub fn words(self, number: impl Fn(usize, usize) -> u8 + Sync) -> Vec<u32> {
        let (rows, shared, mask) = (self.rows as usize, self.shared() as usize, self.largest() as u32);
        self.panels.laid_out(self.words_of_column(), 0, |word, column| {
            let own = (word * shared..rows.min((word + 1) * shared)).enumerate();
            own.fold(0, |bits, (at, row)| bits | (u32::from(number(row, column)) & mask) << self.shift(at))
        })
    }

    /// What each block of a column has, from it.
    pub fn per_block<T: Copy + Send + Sync>(self, none: T, of: impl Fn(usize, usize) -> T + Sync) -> Vec<T> {
        self.panels.laid_out(self.count(), none, of)
    }

    /// The product of rows `[rows, rows of the matrix]` with words, scales and, if there is a fourth, what stands for zero, in panels:
    /// `[rows, panels, columns of a panel]`.
    pub fn product(self, name: &str, inputs: &[te::Tensor]) -> Vec<te::Tensor> {
        let [x, words, scales, zeros @ ..] = inputs else { return Vec::new() };
        let rows = x.shape().first().cloned().unwrap_or_else(|| prim::int(1));
        let (blocks, block) = (self.count(), self.block);
        let of_block = block / BYTES;
        let element = |row: &PrimExpr, at: PrimExpr| self.element(x, row, at);
        let per_block = [rows.clone(), prim::int(blocks)];
        let inside = te::reduce_axis(prim::int(block));
        let largest = te::compute("largest", &per_block, |at| {
            te::max(prim::math("fabs", element(&at[0], &at[1] * block + inside.var())), [&inside])
        });
        let quantized = te::compute("quantized", &[rows.clone(), prim::int(blocks * of_block)], |at| {
            let largest = largest.at(&[at[0].clone(), prim::floordiv(&at[1], of_block)]);
            word_of(&|j| element(&at[0], &at[1] * BYTES + j), &largest)
        });
        let word = te::reduce_axis(prim::int(of_block));
        let totals = te::compute("totals", &per_block, |at| {
            let own = quantized.at(&[at[0].clone(), &at[1] * of_block + word.var()]);
            te::sum(dot_bytes(prim::int_of(U32, ONES), own, prim::int_of(I32, 0)), [&word])
        });
        let b = te::reduce_axis(prim::int(blocks));
        let shape = [rows, prim::int(self.panels.count()), prim::int(self.panels.width())];
        vec![te::compute(name, &shape, |at| {
            let (row, panel, column) = (&at[0], &at[1], &at[2]);
            let (place, of_row) = ([panel.clone(), b.var(), column.clone()], [row.clone(), b.var()]);
            let total = totals.at(&of_row);
            let start = match zeros.first() {
                Some(zeros) => prim::cast(I32, zeros.at(&place)) * (prim::int_of(I32, 0) - total),
                None => total * prim::int_of(I32, -self.middle()),
            };
            let own = |i: i64| quantized.at(&[row.clone(), b.var() * of_block + i]);
            let words_of_block = block / self.shared();
            let sum = (0..words_of_block).fold(start, |sum, i| {
                let word = words.at(&[panel.clone(), b.var() * words_of_block + i, column.clone()]);
                if self.has_bytes() {
                    return dot_bytes(word, own(i), sum);
                }
                let upper = prim::call(U32, "tirx.shift_right", vec![word.clone(), prim::int_of(U32, 4)]);
                dot_bytes(lower(upper), own(2 * i + 1), dot_bytes(lower(word), own(2 * i), sum))
            });
            let scale = largest.at(&of_row) * prim::constant(F32, 1.0 / LARGEST) * prim::cast(F32, scales.at(&place));
            te::sum(prim::cast(F32, sum) * scale, [&b])
        })]
    }

    /// The product of rows of float32 with the numbers as floats, of the same inputs and shape as [`Blocks::product`]: nothing is rounded that
    /// the product with the numbers' own values does not round.
    pub fn product_of_floats(self, name: &str, inputs: &[te::Tensor]) -> Vec<te::Tensor> {
        let [x, words, scales, zeros @ ..] = inputs else { return Vec::new() };
        let rows = x.shape().first().cloned().unwrap_or_else(|| prim::int(1));
        let words_of_block = self.block / self.shared();
        let unrolled = [4, 2, 1].into_iter().find(|words| words_of_block % words == 0).unwrap_or(1);
        let (b, part) =
            (te::reduce_axis(prim::int(self.count())), te::reduce_axis(prim::int(words_of_block / unrolled)));
        let shape = [rows, prim::int(self.panels.count()), prim::int(self.panels.width())];
        vec![te::compute(name, &shape, |at| {
            let (row, panel, column) = (&at[0], &at[1], &at[2]);
            let place = [panel.clone(), b.var(), column.clone()];
            let zero = match zeros.first() {
                Some(zeros) => prim::cast(F32, zeros.at(&place)),
                None => prim::constant(F32, self.middle() as f64),
            };
            let first = b.var() * words_of_block + part.var() * unrolled;
            let term = |number: i64| {
                let (word, inside) = (&first + number / self.shared(), number % self.shared());
                let taken = self.number_of(words.at(&[panel.clone(), word, column.clone()]), &prim::int(inside));
                let factor = prim::cast(F32, prim::cast(I32, taken)) - &zero;
                self.element(x, row, &first * self.shared() + number) * factor
            };
            let sum = (0..unrolled * self.shared()).map(term).reduce(|a, b| a + b);
            te::sum(sum.unwrap_or_else(|| prim::constant(F32, 0.0)) * prim::cast(F32, scales.at(&place)), [&b, &part])
        })]
    }

    /// An element of what is multiplied, which has zeros behind its last one.
    fn element(self, x: &te::Tensor, row: &PrimExpr, at: PrimExpr) -> PrimExpr {
        let place = [row.clone(), at.clone()];
        match self.rows % self.block {
            0 => x.at(&place),
            _ => prim::if_then_else(prim::lt(at, prim::int(self.rows)), x.at(&place), prim::constant(F32, 0.0)),
        }
    }

    /// The number at a row, of the word that holds it.
    pub fn number_of(self, word: PrimExpr, row: &PrimExpr) -> PrimExpr {
        let at = prim::cast(U32, prim::floormod(row, prim::int(self.shared())));
        let four = || prim::int_of(U32, BYTES);
        let shift = match self.has_bytes() {
            true => at * prim::int_of(U32, 8),
            false => prim::floormod(at.clone(), four()) * prim::int_of(U32, 8) + prim::floordiv(at, four()) * four(),
        };
        let moved = prim::call(U32, "tirx.shift_right", vec![word, shift]);
        prim::cast(I32, prim::call(U32, "tirx.bitwise_and", vec![moved, prim::int_of(U32, self.largest())]))
    }

    /// Rows.
    pub fn rows(self) -> i64 {
        self.rows
    }

    /// Columns, and how they lie.
    pub fn panels(self) -> Panels {
        self.panels
    }

    /// Rows of a block.
    pub fn block(self) -> i64 {
        self.block
    }
}

fn can_be_counted(columns: i64) -> bool {
    (1..i64::from(i32::MAX) - Widths::LONGEST.most).contains(&columns)
}

fn up(n: i64, by: i64) -> i64 {
    (n + by - 1) / by
}

/// A sum and the products of four bytes without a sign and four with one.
fn dot_bytes(plain: PrimExpr, signed: PrimExpr, sum: PrimExpr) -> PrimExpr {
    prim::call(I32, "tirx.dot_bytes", vec![plain, signed, sum])
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
