//! Matrix products through panels: copies of B's chunk in the order in which register tiles read them.
//!
//! ```text
//! P[panel][k][16] = B(k, x0 ..)
//! for 96 rows:                                    # what all panels read of A stays in the second-level cache
//!     for panel:  for 6 rows:  register tile
//! ```
//!
//! A deep product is cut: `P` has a part for each block of the depth, and the 96 rows' sums wait between blocks.
//!
//! ```text
//! for block of the depth:  P[block] = B's chunk of the block
//! for 96 rows:
//!     S[panel][m][16] = 0
//!     for block of the depth:  for panel:  for 6 rows:  S += register tile
//!     C(m, x ..) = finish(S ..)
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{PrimExpr, VarMap, add, call, constant, int, load, min, mul, ramp, sub, substitute};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::register_tile::{Rows, Sums};
use super::depth::DepthBlocks;
use super::{Part, Plan, TILES_PER_BLOCK};
use crate::Stmt;
use crate::schedule::affine::{ceil_div, flat_index, loads, product};
use crate::schedule::lanes::{Lanes, splat};
use crate::schedule::nest::Tile;
use crate::schedule::{Axis, Cx, Refusal, nest};

/// Row tiles in a block of a deep product: its rows are far apart, often by a power of two, and then few of them fit the ways
/// of a cache together.
const DEEP_TILES_PER_BLOCK: i64 = 6;

/// Elements of B that are asked for ahead while it is packed.
const ELEMENTS_AHEAD: i64 = 1024;

/// Panels in memory.
struct Panels {
    buffer: Ref<Buffer>,
    /// Where they begin.
    start: PrimExpr,
    /// Columns of all of them, at most.
    width: i64,
}

impl Plan {
    /// Packs B's chunk, then register tiles that read the panels.
    pub(super) fn packed(&self, cx: &mut Cx, part: &Part, chunk: &PrimExpr) -> Result<Stmt, Refusal> {
        let width = chunk.as_int().unwrap_or(4 * self.shape.vectors * self.lanes);
        if let Some(blocks) = DepthBlocks::of(&self.c) {
            return self.packed_in_blocks(cx, part, width, &blocks);
        }
        let dtype = self.c.reduce.stage.output.dtype;
        let panels =
            Panels { buffer: Buffer::new("panels", dtype, [mul(int(width), self.depth())]), start: int(0), width };
        let pack = self.pack(cx, part, &panels)?;
        let tiles = self.row_blocks(part, TILES_PER_BLOCK, |rows| self.tiles(cx, rows, &panels, None))?;
        Ok(Stmt::seq([Stmt::alloc(&panels.buffer), pack, tiles]))
    }

    fn depth(&self) -> PrimExpr {
        product(self.c.inner.iter().map(|a| &a.extent))
    }

    fn packed_in_blocks(&self, cx: &mut Cx, part: &Part, width: i64, blocks: &DepthBlocks) -> Result<Stmt, Refusal> {
        let dtype = self.c.reduce.stage.output.dtype;
        let buffer = Buffer::new("panels", dtype, [int(width * blocks.size * blocks.count)]);
        let panels = Panels { buffer, start: mul(blocks.start(), int(width)), width };
        let rows = DEEP_TILES_PER_BLOCK * self.shape.rows;
        let rows = part.height.as_int().filter(|height| *height < rows).unwrap_or(rows);
        let rows = (rows + self.shape.rows - 1) / self.shape.rows * self.shape.rows;
        let sums = Buffer::new("sums", dtype, [int(rows * width)]);
        let over_depth = |body: Stmt| {
            let body = Stmt::seq(blocks.binds().into_iter().chain([body]));
            Stmt::serial(blocks.var.clone(), int(blocks.count), body)
        };

        let block = Plan { c: blocks.contraction(&self.c), ..self.clone() };
        let pack = over_depth(block.pack(cx, part, &panels)?);
        let tiles = self.row_blocks(part, DEEP_TILES_PER_BLOCK, |rows| {
            let add_up = over_depth(block.tiles(cx, rows, &panels, Some(&sums))?);
            Ok(Stmt::seq([self.clear(&sums), add_up, self.finish(cx, rows, &sums)?]))
        })?;
        Ok(Stmt::seq([Stmt::alloc(&panels.buffer), Stmt::alloc(&sums), pack, tiles]))
    }

    /// A part's rows in blocks of as many as a second-level cache has room for.
    fn row_blocks(
        &self,
        part: &Part,
        tiles: i64,
        mut body: impl FnMut(&Part) -> Result<Stmt, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let block = tiles * self.shape.rows;
        if part.height.as_int().is_some_and(|height| height <= block) {
            return body(part);
        }
        let (at, m0, height) = (Var::dim("row_block"), Var::dim("block_start"), Var::dim("block_rows"));
        let before = mul(PrimExpr::from(&at), int(block));
        let binds = [
            Stmt::bind(m0.clone(), add(&part.m0, &before)),
            Stmt::bind(height.clone(), min(int(block), sub(&part.height, before))),
        ];
        let rows = Part { m0: PrimExpr::from(&m0), height: PrimExpr::from(&height), ..part.clone() };
        let body = Stmt::seq(binds.into_iter().chain([body(&rows)?]));
        Ok(Stmt::serial(at, ceil_div(&part.height, block), body))
    }

    /// Register tiles that read the panels of B's chunk; `sums` are what they add to, where the panels are not the whole
    /// depth.
    fn tiles(&self, cx: &mut Cx, part: &Part, panels: &Panels, sums: Option<&Ref<Buffer>>) -> Result<Stmt, Refusal> {
        nest::tiles_then_vectors(part.x0.clone(), &part.count, self.lanes, self.shape.vectors, |tile| {
            self.rows_of(part, false, |rows| {
                let sums = sums.map(|buffer| self.sums(part, buffer, &tile, &rows.first));
                self.tile(cx, rows, &tile, sums.as_ref(), &mut |_, j, map| {
                    let index = self.place(part, panels, &tile, j, &substitute(&self.depth_index(), map));
                    Ok(load(&panels.buffer, [index]))
                })
            })
        })
    }

    /// Where vector `j` of a panel's row `k` lies. Behind the last whole panel lie narrower ones, whose rows follow each other
    /// without gaps, too.
    fn place(&self, part: &Part, panels: &Panels, tile: &Tile, j: i64, k: &PrimExpr) -> PrimExpr {
        let panel = add(&panels.start, mul(sub(&tile.base, part.x0.clone()), self.depth()));
        let row = mul(k.clone(), int(tile.vectors * self.lanes));
        ramp(add(add(panel, row), int(j * self.lanes)), int(1), self.lanes)
    }

    fn clear(&self, sums: &Ref<Buffer>) -> Stmt {
        let at = Var::dim("at");
        let index = ramp(mul(PrimExpr::from(&at), int(self.lanes)), int(1), self.lanes);
        let clear = Stmt::store(sums, [index], splat(constant(sums.dtype, 0.0), self.lanes));
        Stmt::serial(at, ceil_div(&sums.num_elements(), self.lanes), clear)
    }

    fn finish(&self, cx: &mut Cx, part: &Part, sums: &Ref<Buffer>) -> Result<Stmt, Refusal> {
        nest::tiles_then_vectors(part.x0.clone(), &part.count, self.lanes, self.shape.vectors, |tile| {
            let count = self.shape.rows;
            let rows = Rows { first: part.m0.clone(), count, present: Some(part.height.clone()) };
            let sums = self.sums(part, sums, &tile, &part.m0);
            self.register_tile(&rows, &tile, None).finish_by_row(cx, &sums)
        })
    }

    /// Where the sums of a tile lie among those of a block of rows.
    fn sums(&self, part: &Part, buffer: &Ref<Buffer>, tile: &Tile, row: &PrimExpr) -> Sums {
        let rows = mul(ceil_div(&part.height, self.shape.rows), int(self.shape.rows));
        let panel = mul(sub(&tile.base, part.x0.clone()), rows);
        let start = add(panel, mul(sub(row, part.m0.clone()), int(tile.vectors * self.lanes)));
        Sums { buffer: buffer.clone(), start }
    }

    /// Requests for B's chunk some rows on: each of its rows lies in another page, where the processor does not guess.
    fn ask(&self, cx: &mut Cx, part: &Part, panels: &Panels, depth: &[Axis], map: &VarMap) -> Option<Stmt> {
        let (axis, k) = (self.c.inner.last()?, depth.last()?);
        let loads = loads(&self.c.column);
        let [read] = loads.as_slice() else { return None };
        let later = min(add(PrimExpr::from(&k.var), int(ELEMENTS_AHEAD / panels.width)), sub(&k.extent, int(1)));
        let (line, row) = (Var::dim("line"), Var::dim("later"));
        let mut map = map.clone();
        map.insert(axis.var.clone(), PrimExpr::from(&row));
        map.insert(self.c.x.var.clone(), add(&part.x0, mul(PrimExpr::from(&line), int(self.lanes))));
        let place = substitute(&flat_index(&read.buffer, &read.indices), &map);
        let request = call(DataType::int(32), "tirx.prefetch", vec![load(&cx.views.flat(&read.buffer), [place])]);
        let lines = Stmt::serial(line, ceil_div(&part.count, self.lanes), Stmt::evaluate(request));
        Some(Stmt::seq([Stmt::bind(row, later), lines]))
    }

    /// Copies B's chunk into panels, in the order in which B lies.
    fn pack(&self, cx: &mut Cx, part: &Part, panels: &Panels) -> Result<Stmt, Refusal> {
        let fresh: Vec<Axis> =
            self.c.inner.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        let map: VarMap =
            self.c.inner.iter().zip(&fresh).map(|(a, f)| (a.var.clone(), PrimExpr::from(&f.var))).collect();
        let k = substitute(&self.depth_index(), &map);
        let mut copy = |tile: &Tile| -> Result<Stmt, Refusal> {
            let stores: Result<Vec<Stmt>, Refusal> = (0..tile.vectors)
                .map(|j| {
                    let base = tile.at(j, self.lanes);
                    let value = Lanes::new(&mut cx.views, &self.c.x.var, base, self.lanes, tile.mask_of(j), &map)
                        .vector(&self.c.column)?;
                    Ok(Stmt::store(&panels.buffer, [self.place(part, panels, tile, j, &k)], value))
                })
                .collect();
            Ok(Stmt::seq(stores?))
        };
        let (start, count) = (part.x0.clone(), &part.count);
        if self.c.column_is_contiguous() {
            let row = nest::tiles_then_vectors(start, count, self.lanes, self.shape.vectors, |tile| copy(&tile))?;
            let ask = self.ask(cx, part, panels, &fresh, &map);
            return Ok(nest::serial(&fresh, Stmt::seq(ask.into_iter().chain([row]))));
        }
        nest::tiles_then_vectors(start, count, self.lanes, self.shape.vectors, |tile| {
            Ok(nest::serial(&fresh, copy(&tile)?))
        })
    }
}
