//! What the rule of matrix products decides.

use super::Found;
use super::depth::DepthBlocks;
use crate::schedule::Machine;
use crate::schedule::affine::product;
use crate::schedule::parameters::{Choices, Domain, Guess};
use crate::schedule::rules::register_tile::{self, MOST_ROWS_OF_PRODUCT, ONE_ROW_VECTORS, Shape, TileGuess};
use crate::schedule::rules::rule;

/// Columns from which a chunk has four panels.
const MANY_COLUMNS: i64 = 1024;
/// Panels that it has then.
const PANELS: i64 = 4;
/// Row tiles in a block of rows.
const TILES_PER_BLOCK: i64 = 16;
/// The same of a deep product: its rows are far apart, often by a power of two, and then few of them fit the ways of a cache
/// together.
const DEEP_TILES_PER_BLOCK: i64 = 6;
/// Elements of B that are asked for ahead while it is packed.
const ELEMENTS_AHEAD: i64 = 1024;
/// Row tiles from which packing pays.
const PACK_FROM: i64 = 2;
/// Terms of a sum from which the way of the accumulators through memory costs nothing.
const DEEP: i64 = 128;
/// Rows up to which they are not cut into blocks when the columns' number is unknown.
const KEEP_ROWS: i64 = 512;
/// Registers from which tiles leave instructions free to ask for memory.
const SPARE_REGISTERS: i64 = 16;

/// What is decided.
#[derive(Clone, Copy)]
pub struct Decided {
    /// Lanes of a vector.
    pub(super) lanes: i64,
    /// Rows and vectors of a register tile.
    pub(super) shape: Shape,
    /// Rows from which B is packed; where it is not contiguous, it always is.
    pub(super) pack_from: i64,
    /// Panels of a chunk of many columns, and how many columns are many: all, where their number is known.
    pub(super) panels: i64,
    pub(super) many_columns: i64,
    /// Row tiles of a task; 0 where a task has all rows.
    pub(super) task_tiles: i64,
    /// Row tiles that go through all panels together.
    pub(super) block_tiles: i64,
    /// Terms of a block of the depth, if it is cut.
    pub(super) depth_block: Option<i64>,
    /// Elements of B that are asked for ahead while it is packed.
    pub(super) ahead: i64,
    /// Whether register tiles ask for the next panel.
    pub(super) ask_next: bool,
    /// Whether full tiles of rows have code of their own, which ends without a loop over the rows.
    pub(super) apart: bool,
}

impl Decided {
    /// Asks for the parameters.
    pub(super) fn of(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Decided {
        let lanes = rule::lanes(choices, machine.lanes(found.c.reduce.stage.output.dtype));
        let shape = tile(machine, found, lanes, choices);
        let pack_from = pack_from(found, shape, choices);
        let (panels, many_columns) = panels(found, choices);
        let task_tiles = task_tiles(machine, found, shape, lanes, choices);
        let depth_block = DepthBlocks::decide(choices, &found.c);
        let block_tiles = choices.choose(Guess {
            name: "block_tiles",
            value: if depth_block.is_some() { DEEP_TILES_PER_BLOCK } else { TILES_PER_BLOCK },
            domain: Domain::range(1, 64),
            reason: match depth_block {
                Some(_) => "rows of deep products are far apart, and few of them fit the ways of a cache together",
                None => "what all panels read of so many row tiles stays in the second-level cache",
            },
            limit: "more rows do not stay in the second-level cache",
        });
        let ahead = choices.choose(Guess {
            name: "ahead",
            value: ELEMENTS_AHEAD,
            domain: Domain::powers_of_two(256, 8192),
            reason: "each row of a panel lies in another page, and memory takes as long as so many elements",
            limit: "less comes too late, and more drives out what was asked for before it is used",
        });
        let spare = machine.vector_registers >= SPARE_REGISTERS;
        let ask_next = choices.choose(Guess {
            name: "ask_next",
            value: i64::from(spare),
            domain: Domain::flag(),
            reason: match spare {
                true => "tiles leave instructions free to ask for the next panel",
                false => "tiles in few registers leave no instructions free to ask for the next panel",
            },
            limit: "it is no (0) or yes (1)",
        });
        let depth = product(found.c.inner.iter().map(|a| &a.extent)).as_int();
        let is_shallow = depth.is_some_and(|depth| depth < DEEP);
        let apart = choices.choose(Guess {
            name: "apart",
            value: i64::from(is_shallow),
            domain: Domain::flag(),
            reason: match is_shallow {
                true => "sums are so short that a loop over the rows at their end would cost something",
                false => "sums are so long that a loop over the rows at their end costs nothing, and it is less code",
            },
            limit: "it is no (0) or yes (1)",
        });
        Decided {
            lanes,
            shape,
            pack_from,
            panels,
            many_columns,
            task_tiles,
            block_tiles,
            depth_block,
            ahead,
            ask_next: ask_next == 1,
            apart: apart == 1,
        }
    }
}

fn tile(machine: &Machine, found: &Found, lanes: i64, choices: &mut Choices<'_>) -> Shape {
    let rows = found.rows().as_int();
    let vectors = found.c.x.extent.as_int().map(|n| (n + lanes - 1) / lanes);
    if rows == Some(1) {
        let vectors = choices.choose(Guess {
            name: "vectors",
            value: vectors.unwrap_or(ONE_ROW_VECTORS).min(ONE_ROW_VECTORS),
            domain: Domain::range(1, ONE_ROW_VECTORS),
            reason: "one row needs eight accumulators to cover the latency of multiply-add",
            limit: "more accumulators gain nothing",
        });
        return Shape { rows: 1, vectors };
    }
    let guess = register_tile::lean_shape(machine, MOST_ROWS_OF_PRODUCT, rows, vectors);
    let reason = "of all tiles that fit the registers it wastes least at edges and needs fewest loads for its products";
    TileGuess { shape: guess, most_rows: MOST_ROWS_OF_PRODUCT.min(rows.unwrap_or(MOST_ROWS_OF_PRODUCT)), reason }
        .decide(machine, choices)
}

fn pack_from(found: &Found, shape: Shape, choices: &mut Choices<'_>) -> i64 {
    if !found.c.column_is_contiguous() {
        return 0;
    }
    choices.choose(Guess {
        name: "pack_from",
        value: PACK_FROM * shape.rows,
        domain: Domain::range(shape.rows, 1024),
        reason: "packing a vector costs a load and a store, which two tiles of rows pay back",
        limit: "the last tile of packed rows is moved back by less than a tile, so there is one at least",
    })
}

/// Panels of a chunk, and from how many columns on it has as many.
fn panels(found: &Found, choices: &mut Choices<'_>) -> (i64, i64) {
    let columns = found.c.x.extent.as_int();
    let many_columns = match columns {
        Some(_) => 0,
        None => choices.choose(Guess {
            name: "many_columns",
            value: MANY_COLUMNS,
            domain: Domain::powers_of_two(1, 1 << 16),
            reason: "from so many columns on there are chunks for all threads though each has several panels",
            limit: "beyond that a chunk has one panel in any case that occurs",
        }),
    };
    let panels = choices.choose(Guess {
        name: "panels",
        value: if columns.is_none_or(|n| n >= MANY_COLUMNS) { PANELS } else { 1 },
        domain: Domain::range(1, 8),
        reason: match columns {
            Some(n) if n < MANY_COLUMNS => "the columns are few, and every panel is a task",
            _ => "longer runs of B a row, and still chunks for all threads",
        },
        limit: "more panels leave too few tasks",
    });
    (panels, many_columns)
}

fn task_tiles(machine: &Machine, found: &Found, shape: Shape, lanes: i64, choices: &mut Choices<'_>) -> i64 {
    let panel = shape.vectors * lanes;
    let panel_bytes = i64::from(found.c.reduce.stage.output.dtype.bits / 8) * panel;
    let chunks = found.c.x.extent.as_int().map(|n| n / panel);
    let keep = match (found.rows().as_int(), chunks) {
        (Some(rows), _) if rows <= TILES_PER_BLOCK * shape.rows => true,
        (Some(rows), None) => rows <= KEEP_ROWS,
        (Some(rows), Some(chunks)) => chunks >= machine.cores * 2 && rows * panel_bytes <= 16 * machine.l2_share(),
        // Columns are enough tasks, and each block of rows would pack them anew.
        (None, Some(chunks)) => chunks >= machine.cores * 2,
        (None, None) => false,
    };
    choices.choose(Guess {
        name: "task_tiles",
        value: if keep { 0 } else { TILES_PER_BLOCK },
        domain: Domain::range(0, 64),
        reason: match keep {
            true => "columns are enough tasks, or rows are few, and each block of rows would pack the columns anew",
            false => "the columns alone are too few to share",
        },
        limit: "0 leaves all rows to one task; blocks of more tiles are too few to share",
    })
}
