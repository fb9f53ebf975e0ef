//! Chunks of a block's pixels, for panels of filters that are too few tasks: some of its rows, or some tiles of its only row.
//!
//! ```text
//! 17 rows in 4 chunks:                    rows 0 .. 4, 4 .. 8, 8 .. 12, 12 .. 17
//! 169 pixels in tiles of 6, 2 chunks:     29 tiles, of which 24 have 6 pixels and the last 5 have 5; tiles 0 .. 14, 14 .. 29
//! ```
//!
//! Each chunk reads the weights of its panels again, which caches keep, and has sums of its own.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, add, floordiv, int, max, min, mul, sub};

use super::decide::BlockRows;
use super::height_of;
use crate::Stmt;
use crate::schedule::affine::{ceil_div, ceil_div_by, product};
use crate::schedule::parameters::{Choices, Domain, Guess};
use crate::schedule::rules::register_tile::{self, Rows};
use crate::schedule::rules::window::Windowed;
use crate::schedule::{Machine, Refusal};

/// Tasks that threads share at least, and what their number is a multiple of: two threads, or four, have equally many.
const LEAST_TASKS: i64 = 8;
pub(super) const EVEN: i64 = 4;
/// Pixels of a chunk at least: weights are read once for all of them.
const LEAST_PIXELS: i64 = 18;

/// Chunks of an image of which each fits half of the second-level cache.
pub(super) fn that_fit(machine: &Machine, window: &Windowed) -> i64 {
    let elements = product([&window.depth(), &window.x.axis.extent, &height_of(window)]).as_int();
    let bytes = i64::from(window.c.column.dtype().bits / 8).max(1);
    elements.map_or(1, |elements| (elements * bytes + machine.l2_block() - 1) / machine.l2_block())
}

/// Asks into how many chunks the pixels of a block are divided, beside so many parts of the channels; `least` where more do not fit a cache.
pub(super) fn decide(
    window: &Windowed,
    block: BlockRows,
    pixels: i64,
    parts: i64,
    least: i64,
    choices: &mut Choices<'_>,
) -> i64 {
    let extent = window.x.axis.extent.as_int();
    let height = height_of(window).as_int();
    let rows = match block {
        BlockRows::Known(rows) => Some(rows),
        BlockRows::Fitting { .. } => height,
    };
    // What is divided: rows, or tiles of one that is known.
    let (units, each) = match (window.has_rows_to_divide(), extent) {
        (true, _) => (rows, extent),
        (false, Some(extent)) => (Some(tiles(extent, pixels)), Some(pixels)),
        (false, None) => (None, None),
    };
    let most = units.unwrap_or(LEAST_TASKS);
    let fits = |n: i64| n <= most && each.is_none_or(|each| most / n * each >= LEAST_PIXELS);
    let is_even = |n: &i64| parts * n >= LEAST_TASKS && parts * n % EVEN == 0;
    let wanted = (1..=LEAST_TASKS).find(is_even).unwrap_or(1).max(least);
    choices.choose(Guess {
        name: "chunks",
        value: (1..=wanted).rev().find(|n| fits(*n)).unwrap_or(1),
        domain: Domain::range(1, most.clamp(1, 64)),
        reason: "with the parts of the channels they are tasks for threads, about as many for each of two or four",
        limit: "pixels are divided by whole rows, or by tiles of the only row",
    })
}

/// Into how many chunks the pixels of a block are divided where it runs: `least`, or if there is no knowing how many pixels they are, as
/// many as let the image of each fit the cache that a block is made for.
pub(super) fn number(window: &Windowed, block: BlockRows, least: i64) -> PrimExpr {
    let extent = &window.x.axis.extent;
    let BlockRows::Fitting { image_bytes, .. } = block else { return int(least) };
    if least == 1 || window.has_rows_to_divide() || extent.as_int().is_some() {
        return int(least);
    }
    let bytes = i64::from(window.c.column.dtype().bits / 8).max(1);
    let elements = product([&window.depth(), extent]);
    max(ceil_div(&elements, (image_bytes / bytes).max(1)), int(least))
}

/// How many tiles a row has.
fn tiles(extent: i64, most: i64) -> i64 {
    ((extent + most - 1) / most).max(1)
}

/// Which of the chunks of a block one is: its number, and how many there are.
#[derive(Clone, Copy)]
pub(super) struct ChunkNumber<'a> {
    pub(super) chunks: &'a PrimExpr,
    pub(super) number: &'a PrimExpr,
}

/// How many rows a block has, and how many at most.
#[derive(Clone, Copy)]
pub(super) struct RowsOfBlock<'a> {
    pub(super) count: &'a PrimExpr,
    pub(super) most: &'a PrimExpr,
}

/// One chunk.
pub(super) struct Chunk {
    /// Its first row, counted from the block's; how many it has, and how many one has at most.
    pub(super) first_line: PrimExpr,
    pub(super) lines: PrimExpr,
    most_lines: PrimExpr,
    /// The same of the pixels of a row.
    pub(super) first_pixel: PrimExpr,
    pub(super) pixels: PrimExpr,
    most_pixels: PrimExpr,
    /// The first tile, and the one behind the last, where not all of a row belong to it.
    tiles: Option<(PrimExpr, PrimExpr)>,
}

/// The first of `count` that one of so many chunks has, and how many it has; with what names them.
fn share(count: &PrimExpr, chunks: &PrimExpr, number: &PrimExpr, list: &mut Vec<Stmt>) -> (PrimExpr, PrimExpr) {
    let known = count.as_int().zip(chunks.as_int());
    if let Some(each) = known.filter(|(n, chunks)| n % chunks == 0).map(|(n, chunks)| n / chunks) {
        return (mul(number, int(each)), int(each));
    }
    let border = |number: PrimExpr| floordiv(mul(number, count), chunks.clone());
    let (first, here) = (Var::dim("first"), Var::dim("here"));
    list.push(Stmt::bind(first.clone(), border(number.clone())));
    list.push(Stmt::bind(here.clone(), sub(border(add(number, int(1))), PrimExpr::from(&first))));
    (PrimExpr::from(&first), PrimExpr::from(&here))
}

impl Chunk {
    /// One chunk of a block of rows; tiles have `tile` pixels at most. And what names its bounds.
    pub(super) fn of(
        window: &Windowed,
        rows: RowsOfBlock<'_>,
        tile: i64,
        which: ChunkNumber<'_>,
    ) -> (Vec<Stmt>, Chunk) {
        let (RowsOfBlock { count, most }, ChunkNumber { chunks, number }) = (rows, which);
        let (extent, mut binds) = (&window.x.axis.extent, Vec::new());
        let all = Chunk {
            first_line: int(0),
            lines: count.clone(),
            most_lines: most.clone(),
            first_pixel: int(0),
            pixels: extent.clone(),
            most_pixels: extent.clone(),
            tiles: None,
        };
        if chunks.is_int(1) {
            return (binds, all);
        }
        if window.has_rows_to_divide() {
            let (first_line, lines) = share(count, chunks, number, &mut binds);
            return (binds, Chunk { first_line, lines, most_lines: ceil_div_by(most, chunks), ..all });
        }
        let (start, length) = (Var::dim("start"), Var::dim("length"));
        let (first_pixel, pixels) = (PrimExpr::from(&start), PrimExpr::from(&length));
        let Some((row, known)) = extent.as_int().zip(chunks.as_int()) else {
            let number_of_tiles = Var::dim("row_tiles");
            binds.push(Stmt::bind(number_of_tiles.clone(), ceil_div(extent, tile)));
            let number_of_tiles = PrimExpr::from(&number_of_tiles);
            let (first, here) = share(&number_of_tiles, chunks, number, &mut binds);
            binds.push(Stmt::bind(start, mul(&first, int(tile))));
            binds.push(Stmt::bind(length, sub(min(mul(add(first, here), int(tile)), extent), &first_pixel)));
            return (
                binds,
                Chunk {
                    first_pixel,
                    pixels,
                    most_pixels: mul(ceil_div_by(&number_of_tiles, chunks), int(tile)),
                    ..all
                },
            );
        };
        let number_of_tiles = tiles(row, tile);
        let (few, more) = (row / number_of_tiles, row % number_of_tiles);
        let (first, here) = share(&int(number_of_tiles), chunks, number, &mut binds);
        let end = add(&first, here);
        let pixel = |tile: &PrimExpr| add(mul(tile, int(few)), min(tile.clone(), int(more)));
        binds.push(Stmt::bind(start, pixel(&first)));
        binds.push(Stmt::bind(length, sub(pixel(&end), &first_pixel)));
        let most_tiles = (number_of_tiles + known - 1) / known;
        let chunk = Chunk {
            first_pixel,
            pixels,
            most_pixels: int(most_tiles * few + more.min(most_tiles)),
            tiles: Some((first, end)),
            ..all
        };
        (binds, chunk)
    }

    /// Its pixels, and how many one has at most.
    pub(super) fn count(&self) -> PrimExpr {
        mul(&self.lines, &self.pixels)
    }

    pub(super) fn most(&self) -> PrimExpr {
        mul(&self.most_lines, &self.most_pixels)
    }

    /// The number of a pixel, `line` rows below the first one.
    pub(super) fn pixel(&self, line: &PrimExpr, x: &PrimExpr) -> PrimExpr {
        add(mul(line, &self.pixels), sub(x, &self.first_pixel))
    }

    /// Its tiles of a row: as many pixels in each, or one more in the first ones, since a tile of few waits for its sums.
    pub(super) fn row(
        &self,
        most: i64,
        mut tile: impl FnMut(&Rows) -> Result<Stmt, Refusal>,
        extent: &PrimExpr,
    ) -> Result<Stmt, Refusal> {
        let Some(n) = extent.as_int() else { return register_tile::rows(&self.first_pixel, &self.pixels, most, tile) };
        let count = tiles(n, most);
        let (few, more) = (n / count, n % count);
        let Some((first, end)) = &self.tiles else {
            let long = register_tile::rows(&int(0), &int(more * (few + 1)), few + 1, &mut tile)?;
            let short = (count - more) * few;
            return Ok(Stmt::seq([long, register_tile::rows(&int(more * (few + 1)), &int(short), few, &mut tile)?]));
        };
        let mut list = Vec::new();
        if more > 0 {
            let (t, from) = (Var::dim("row_tile"), min(first.clone(), int(more)));
            let at = mul(add(&from, PrimExpr::from(&t)), int(few + 1));
            let body = tile(&Rows::full(at, few + 1))?;
            list.push(Stmt::serial(t, sub(min(end.clone(), int(more)), from), body));
        }
        let (t, from) = (Var::dim("row_tile"), max(first.clone(), int(more)));
        let at = add(mul(add(&from, PrimExpr::from(&t)), int(few)), int(more));
        let body = tile(&Rows::full(at, few))?;
        list.push(Stmt::serial(t, max(sub(end, from), int(0)), body));
        Ok(Stmt::seq(list))
    }
}
