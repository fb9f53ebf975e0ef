//! A chunk of an image tile by tile, for panels of filters of one pixel.
//!
//! ```text
//! for channel c:  for tile of 6 pixels at x:   T[x (C + 16) + 6 c ..] = S[c][x .. x + 6]
//! ```
//!
//! Rows of an image lie far apart, and a tile reads a piece of a line of each: many pages, and lines whose other pixels are read by the next tiles.
//! Side by side they are one run for each tile, which all panels read. A chunk of the pixels stays in the second-level cache for them.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, add, int, load, mul, ramp, substitute};
use relaxide_ir::{Buffer, Var};

use super::block::Block;
use super::chunks::Chunk;
use crate::Stmt;
use crate::schedule::inline::freshen_lets;
use crate::schedule::lanes::Lanes;
use crate::schedule::rules::register_tile::Rows;
use crate::schedule::rules::window::Windowed;
use crate::schedule::{Axis, Cx, Refusal};

/// Lanes of the vectors that a tile's pixels are copied by.
const LANES: [i64; 4] = [8, 4, 2, 1];

/// Elements of a line behind each pixel of a tile's channels: without it, tiles of many channels lie a power of two apart, and the copy's lines
/// share one set of the first-level cache.
const GAP: i64 = 16;

/// The memory of a chunk's tiles.
pub(super) struct Tiles {
    pub(super) buffer: Ref<Buffer>,
    /// Elements from a pixel's channels to the next one's.
    pitch: PrimExpr,
}

impl Tiles {
    /// Whether a window's images can be taken tile by tile: it has one pixel, and the length of its rows is known.
    pub(super) fn can_be(window: &Windowed) -> bool {
        window.channels.len() == 1 && window.count_taps() == 1 && window.x.axis.extent.as_int().is_some()
    }

    /// Those of a chunk.
    pub(super) fn of(window: &Windowed, depth: &Axis, chunk: &Chunk) -> Tiles {
        let pitch = add(&depth.extent, int(GAP));
        let buffer = Buffer::new("tiles", window.c.column.dtype(), [mul(chunk.most(), &pitch)]);
        Tiles { buffer, pitch }
    }

    /// A pixel of a tile in a channel.
    pub(super) fn element(
        &self,
        chunk: &Chunk,
        line: &PrimExpr,
        pixels: &Rows,
        channel: &PrimExpr,
        pixel: i64,
    ) -> PrimExpr {
        load(&self.buffer, [self.place(chunk, line, pixels, channel, pixel)])
    }

    fn place(&self, chunk: &Chunk, line: &PrimExpr, pixels: &Rows, channel: &PrimExpr, pixel: i64) -> PrimExpr {
        let tile = mul(chunk.pixel(line, &pixels.first), &self.pitch);
        add(tile, add(mul(channel, int(pixels.count)), int(pixel)))
    }

    /// Copies a chunk's pixels, in tiles of `most` at most.
    pub(super) fn fill(
        &self,
        cx: &mut Cx,
        block: &Block<'_>,
        depth: &Axis,
        chunk: &Chunk,
        most: i64,
    ) -> Result<Stmt, Refusal> {
        let window = block.window;
        let (channel, line) = (Var::dim(depth.var.name.clone()), Var::dim("line"));
        let (at, below) = (PrimExpr::from(&channel), PrimExpr::from(&line));
        let mut map: VarMap = window.taps().map(|tap| (tap.var.clone(), int(0))).collect();
        map.insert(depth.var.clone(), at.clone());
        map.extend(block.at_row(&add(&chunk.first_line, &below)));
        let tile = |pixels: &Rows| {
            let (mut list, mut from) = (Vec::new(), 0);
            while from < pixels.count {
                let lanes = LANES.into_iter().find(|lanes| from + lanes <= pixels.count).unwrap_or(1);
                let (first, place) = (add(&pixels.first, int(from)), self.place(chunk, &below, pixels, &at, from));
                list.push(match lanes {
                    1 => {
                        let mut map = map.clone();
                        map.insert(window.x.axis.var.clone(), first);
                        Stmt::store(&self.buffer, [place], freshen_lets(&substitute(&window.c.column, &map)))
                    }
                    _ => {
                        let value = Lanes::new(&mut cx.views, &window.x.axis.var, first, lanes, None, &map)
                            .vector(&freshen_lets(&window.c.column))?;
                        Stmt::store(&self.buffer, [ramp(place, int(1), lanes)], value)
                    }
                });
                from += lanes;
            }
            Ok(Stmt::seq(list))
        };
        let row = chunk.row(most, tile, &window.x.axis.extent)?;
        Ok(Stmt::serial(channel, depth.extent.clone(), Stmt::serial(line, chunk.lines.clone(), row)))
    }
}
