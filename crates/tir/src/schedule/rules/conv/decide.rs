//! What the rule of convolutions decides.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, int};

use super::block::{goes_on, lines_at_once, long_vectors};
use super::chunks;
use super::panels;
use super::pieces::{self, Cut};
use super::{Found, divides, even, height_of, windowed};
use crate::schedule::affine::{ceil_div, loads, product, uses};
use crate::schedule::parameters::{Choices, Domain, Guess};
use crate::schedule::rules::register_tile::{self, MOST_ROWS, Shape, TileGuess};
use crate::schedule::rules::rule;
use crate::schedule::rules::window::{Windowed, least_rows, rows_per_block};
use crate::schedule::{Axis, Machine, Reduce, Refusal};

/// Output rows below which a block's halo costs too much.
const LEAST_ROWS: i64 = 4;
/// Blocks of rows that an image has at least, for threads to share.
const BLOCKS: i64 = 4;
/// Blocks from which it makes little difference that one of two threads has one more.
const FEW_BLOCKS: i64 = 9;
/// Numbers of parts into which channels may be divided, the best first, and panels of channels.
const PARTS: &[i64] = &[8, 4, 2];
const PARTS_OF_PANELS: &[i64] = &[8, 7, 6, 5, 4, 3, 2];
/// Channels of a part at least: of heavy weights, and of images whose rows are not divided.
const LEAST_CHANNELS: i64 = 32;
const LEAST_CHANNELS_OF_WHOLE_IMAGES: i64 = 8;
/// Elements of the sums that wait to be finished, for all rows of a register tile: they stay in the first-level cache.
const SUMS: i64 = 12 << 10;

/// What is decided.
pub struct Decided {
    /// Elements of a piece, where a signal is cut into pieces.
    pub(super) piece: Option<i64>,
    /// Of all, or of the pieces.
    pub(super) whole: Nest,
    /// Of what pieces leave.
    pub(super) rest: Option<Nest>,
}

/// What is decided of a nest.
pub struct Nest {
    /// Lanes of a vector.
    pub(super) lanes: i64,
    /// Parts into which channels are divided.
    pub(super) parts: i64,
    /// Channels of a panel; one where channels lie in none.
    pub(super) width: i64,
    /// Chunks into which the pixels of a block are divided, at least: pixels of unknown number are divided into more where these fit no cache.
    pub(super) chunks: i64,
    /// Whether parts and chunks share a workspace.
    pub(super) is_shared: bool,
    /// Output rows of a block.
    pub(super) block: BlockRows,
    /// How a block's products are made.
    pub(super) products: Products,
}

/// How the products of a block are made. Tiles are channels and vectors of pixels.
pub enum Products {
    /// Row by row, finished in registers.
    RowByRow(Shape),
    /// Vectors go on from row to row, through so many elements of sums.
    LongRows { sums: i64, tile: Shape },
    /// Vectors lie along channels.
    InPanels(panels::Decided),
}

/// Output rows of a block.
#[derive(Clone, Copy)]
pub enum BlockRows {
    /// So many.
    Known(i64),
    /// As many as fit, once the image's size is known.
    Fitting {
        /// Bytes of a workspace.
        image_bytes: i64,
        /// Rows at least.
        least: i64,
        /// Blocks that an image has at least.
        blocks: i64,
    },
}

impl Decided {
    /// Asks for the parameters.
    pub(super) fn of(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let Found { reduce, channel, window } = found;
        let Some(piece) = pieces::decide(machine, window, choices) else {
            return Ok(Decided { piece: None, whole: Nest::of(machine, reduce, channel, window, choices), rest: None });
        };
        let cut = Cut::of(reduce, &window.x.axis, piece);
        let nest = |reduce: &Reduce, choices: &mut Choices<'_>| -> Result<Nest, Refusal> {
            let (channel, window) = windowed(reduce)?;
            Ok(Nest::of(machine, reduce, &channel, &window, choices))
        };
        let whole = nest(&cut.pieces, choices)?;
        let rest = cut.rest.as_ref().map(|rest| choices.within("rest", |choices| nest(rest, choices)));
        Ok(Decided { piece: Some(piece), whole, rest: rest.transpose()? })
    }
}

impl Nest {
    fn of(machine: &Machine, reduce: &Reduce, channel: &Axis, window: &Windowed, choices: &mut Choices<'_>) -> Nest {
        let dtype = reduce.stage.output.dtype;
        let lanes = rule::lanes(choices, machine.lanes(dtype));
        let weights = product(reduce.stage.reduce.iter().map(|a| &a.extent).chain([&channel.extent])).as_int();
        let is_heavy = weights.is_some_and(|n| n.saturating_mul(i64::from(dtype.bits / 8)) > machine.l2_share());
        let pitch = window.pitch();
        let pitch = if pitch.as_int().is_some() { pitch } else { PrimExpr::from(&Var::dim("pitch")) };
        let images = product(window.outer.iter().map(|a| &a.extent)).as_int();
        let division = match () {
            () if is_heavy => Division::HeavyWeights,
            () if images.is_some_and(|tasks| tasks >= BLOCKS) || is_volume(window) => Division::Images,
            () if !window.has_rows_to_divide() => Division::OneRow,
            () if BlockRows::are_uneven(machine, window, &pitch) => Division::UnevenRows,
            () => Division::Rows,
        };
        let panels = panels::decide(machine, channel, window, is_heavy, choices);
        let width = panels.as_ref().map_or(1, |panels| panels.width);
        let has_chunks = panels.is_some() && division.is_of_blocks();
        let in_tiles = panels.as_ref().is_some_and(|panels| panels.image == panels::ImageForm::InTiles) && has_chunks;
        let least_chunks = if in_tiles { chunks::that_fit(machine, window) } else { 1 };
        let parts = parts(channel, width, division, least_chunks, choices);
        let is_divided = parts > 1 || has_chunks || division == Division::Images;
        let block = BlockRows::decide(machine, window, &pitch, division, is_divided, choices);
        let chunks = match &panels {
            Some(panels) if has_chunks => chunks::decide(window, block, panels.pixels, parts, least_chunks, choices),
            _ => 1,
        };
        let is_copied = panels.as_ref().is_none_or(|panels| panels.image == panels::ImageForm::Copied);
        let is_shared = is_copied && parts * chunks > 1 && is_shared(division, has_chunks, choices);
        let channels = channel.extent.as_int().map(|channels| channels / parts);
        let products = match panels {
            Some(decided) => Products::InPanels(decided),
            None => Products::of_rows(machine, window, &pitch, block, channels, choices),
        };
        Nest { lanes, parts, width, chunks, is_shared, block, products }
    }
}

/// Whether images are the slices of a volume, whose number is not known: the window slides across them, too. There are as many as the volume has
/// layers, while images of a batch may be a single one.
fn is_volume(window: &Windowed) -> bool {
    let reads = loads(&window.c.column);
    let places = || reads.iter().flat_map(|load| load.indices.iter());
    let slides = |axis: &Axis| {
        places().any(|place| uses(place, &axis.var) && window.channels.iter().any(|tap| uses(place, &tap.var)))
    };
    window.outer.iter().any(|axis| axis.extent.as_int().is_none() && slides(axis))
}

impl Products {
    /// Whether they read a copy of the image.
    pub(super) fn copy_image(&self) -> bool {
        match self {
            Products::RowByRow(_) | Products::LongRows { .. } => true,
            Products::InPanels(decided) => decided.image == panels::ImageForm::Copied,
        }
    }

    /// Those of channels by vectors of pixels.
    fn of_rows(
        machine: &Machine,
        window: &Windowed,
        pitch: &PrimExpr,
        block: BlockRows,
        channels: Option<i64>,
        choices: &mut Choices<'_>,
    ) -> Products {
        let lanes = machine.lanes(window.c.reduce.stage.output.dtype);
        let most = match block {
            BlockRows::Known(rows) => int(rows),
            BlockRows::Fitting { .. } => PrimExpr::from(&Var::dim("rows")),
        };
        let count = if divides(&most, &height_of(window)) { most.clone() } else { PrimExpr::from(&Var::dim("count")) };
        let sums = sums(window, lanes, choices);
        let guess = match sums {
            Some(sums) => {
                let lines = lines_at_once(&most, &count, pitch, sums);
                let lines = if lines.as_int().is_some() { lines } else { PrimExpr::from(&Var::dim("lines")) };
                let vectors = long_vectors(window, pitch, &lines, &count, lanes);
                register_tile::image_shape(machine, MOST_ROWS, channels, vectors)
            }
            None => {
                let width = window.x.axis.extent.as_int().map(|n| (n + lanes - 1) / lanes);
                register_tile::shape(machine, MOST_ROWS, channels, width)
            }
        };
        let most_rows = MOST_ROWS.min(channels.unwrap_or(MOST_ROWS));
        let reason = "of all tiles that fit the registers it wastes least at edges of channels and rows";
        let tile = TileGuess { shape: guess, most_rows, reason }.decide(machine, choices);
        match sums {
            Some(sums) => Products::LongRows { sums, tile },
            None => Products::RowByRow(tile),
        }
    }
}

/// What threads divide among themselves.
#[derive(Clone, Copy, PartialEq)]
enum Division {
    /// Blocks of rows.
    Rows,
    /// Images, slices of volumes, or groups of channels.
    Images,
    /// The channels or pixels of a block: each block of rows would read weights that no cache keeps.
    HeavyWeights,
    /// The same: rows give too few tasks.
    OneRow,
    /// The same: rows divide into no equal blocks, and a cache keeps the whole image.
    UnevenRows,
}

impl Division {
    /// Whether each block is divided.
    fn is_of_blocks(self) -> bool {
        matches!(self, Division::HeavyWeights | Division::OneRow | Division::UnevenRows)
    }
}

/// Into how many parts channels can be divided, all of as many panels of `width`, the best number first.
fn numbers_of_parts(channel: &Axis, width: i64) -> impl Iterator<Item = i64> {
    let panels = channel.extent.as_int().map(|n| (n + width - 1) / width);
    let numbers = if width > 1 { PARTS_OF_PANELS } else { PARTS };
    numbers.iter().copied().filter(move |parts| panels.is_some_and(|n| n % parts == 0 && n >= *parts))
}

/// Into how many parts the channels are divided, all of as many panels of `width`, so that they share one kernel. Where so many chunks of the
/// pixels are tasks as well, parts are as few as threads need: each copies its chunk.
fn parts(channel: &Axis, width: i64, division: Division, chunks: i64, choices: &mut Choices<'_>) -> i64 {
    let channels = channel.extent.as_int();
    let least = match division {
        Division::UnevenRows => LEAST_CHANNELS_OF_WHOLE_IMAGES,
        _ => LEAST_CHANNELS,
    };
    let fits = |parts: &i64| channels.is_some_and(|n| n / parts >= least);
    let fitting = match chunks {
        1 => numbers_of_parts(channel, width).find(fits),
        _ => numbers_of_parts(channel, width).chain([1]).filter(|n| n * chunks >= chunks::EVEN).last(),
    };
    let fitting = fitting.filter(|_| division.is_of_blocks());
    choices.choose(Guess {
        name: "parts",
        value: fitting.unwrap_or(1),
        domain: Domain::list([1].into_iter().chain(numbers_of_parts(channel, width))),
        reason: match division {
            Division::HeavyWeights | Division::OneRow => {
                "rows give too few tasks, or each block of rows would read weights that no cache keeps"
            }
            Division::UnevenRows => "rows divide into no equal blocks, and vectors fill best along the whole image",
            Division::Rows => "blocks of rows are enough tasks, and caches keep the weights",
            Division::Images => "images, or the slices of a volume, are enough tasks, and caches keep the weights",
        },
        limit: "parts are equal: the number of output channels, or of panels of them, is a multiple of how many there are",
    })
}

/// Whether the parts and chunks of a block share one copy of the image.
fn is_shared(division: Division, has_chunks: bool, choices: &mut Choices<'_>) -> bool {
    let pays = has_chunks || matches!(division, Division::HeavyWeights | Division::UnevenRows);
    let is_shared = choices.choose(Guess {
        name: "shared",
        value: i64::from(pays),
        domain: Domain::flag(),
        reason: match division {
            Division::HeavyWeights => {
                "no cache keeps the weights, so threads fill one workspace together and each reads its part of them"
            }
            _ if pays => "the image is copied once for all that a block is divided into",
            _ => "the weights are few enough to be read with each block",
        },
        limit: "each task has a workspace (0), or those of a block share one (1)",
    });
    is_shared == 1
}

impl BlockRows {
    fn decide(
        machine: &Machine,
        window: &Windowed,
        pitch: &PrimExpr,
        division: Division,
        is_divided: bool,
        choices: &mut Choices<'_>,
    ) -> BlockRows {
        // Each block reads the weights again: heavy ones are worth a workspace that leaves less of the cache free.
        let image_bytes = match division {
            Division::HeavyWeights => 2 * machine.l2_block(),
            _ => machine.l2_block(),
        };
        let blocks = if is_divided { 1 } else { BLOCKS };
        let guess = BlockRows::Fitting { image_bytes, least: LEAST_ROWS, blocks };
        let height = height_of(window);
        if let Some((rows, height)) = guess.rows(window, pitch).as_int().zip(height.as_int()) {
            return BlockRows::Known(choices.choose(Guess {
                name: "block_rows",
                value: rows,
                domain: Domain::range(1, height),
                reason: match division {
                    Division::HeavyWeights => {
                        "their workspace fits the second-level cache, few blocks read heavy weights, and all blocks are equal"
                    }
                    _ => {
                        "their workspace fits half of the second-level cache, an image has blocks for all threads, and all \
                         blocks are equal"
                    }
                },
                limit: "they are rows of the output",
            }));
        }
        let image_bytes = choices.choose(Guess {
            name: "image_bytes",
            value: image_bytes,
            domain: Domain::powers_of_two(16 << 10, 16 << 20),
            reason: "the image rows of a block fit half of the second-level cache",
            limit: "less holds no rows of usual images, and more leaves the caches",
        });
        let least = least_rows(choices, if window.has_rows_to_divide() { LEAST_ROWS } else { 1 });
        let blocks = choices.choose(Guess {
            name: "blocks",
            value: blocks,
            domain: Domain::range(1, 64),
            reason: match is_divided {
                false => "an image has so many blocks at least, for threads to share",
                true => "threads share the parts of a block, or images, so blocks may be as large as fits",
            },
            limit: "more threads than that share an image's parts and not its rows",
        });
        BlockRows::Fitting { image_bytes, least, blocks }
    }

    /// Whether an image of known size divides into no equal blocks for threads to share, or into few that are an odd number, and a cache
    /// keeps its workspace whole.
    fn are_uneven(machine: &Machine, window: &Windowed, pitch: &PrimExpr) -> bool {
        let image_bytes = machine.l2_block();
        let rows = |blocks| BlockRows::Fitting { image_bytes, least: LEAST_ROWS, blocks }.rows(window, pitch).as_int();
        let (Some(height), Some(block), Some(whole)) = (height_of(window).as_int(), rows(BLOCKS), rows(1)) else {
            return false;
        };
        let blocks = (height + block - 1) / block;
        (height % block != 0 || (blocks % 2 == 1 && blocks < FEW_BLOCKS)) && whole == height
    }

    /// How many rows they are.
    pub(super) fn rows(self, window: &Windowed, pitch: &PrimExpr) -> PrimExpr {
        match self {
            BlockRows::Known(rows) => int(rows),
            BlockRows::Fitting { image_bytes, least, blocks } => {
                let rows = rows_per_block(window, pitch, image_bytes, least, |height| ceil_div(height, blocks));
                even(&rows, &height_of(window))
            }
        }
    }
}

/// Whether vectors go on from row to row, and through how many sums then.
fn sums(window: &Windowed, lanes: i64, choices: &mut Choices<'_>) -> Option<i64> {
    let pays = goes_on(window, lanes);
    let is_long = choices.choose(Guess {
        name: "long_rows",
        value: i64::from(pays),
        domain: if window.y.is_some() { Domain::flag() } else { Domain::list([0]) },
        reason: match pays {
            true => "rows fill vectors badly or are not known, or sums have enough terms to pay for their way through memory",
            false => "rows fill their vectors, and sums are too short to pay for a way through memory",
        },
        limit: "vectors end with each row (0), or go on to the next one (1) where the output has several",
    });
    (is_long == 1).then(|| {
        choices.choose(Guess {
            name: "sums",
            value: SUMS,
            domain: Domain::steps(1 << 10, 64 << 10, 1 << 10),
            reason: "so many elements of sums stay in the first-level cache beside weights and image",
            limit: "fewer are less than a row, and more leave the caches of a core",
        })
    })
}
