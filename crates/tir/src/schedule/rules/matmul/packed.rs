//! Matrix products through panels: copies of B's chunk in the order in which register tiles read them.
//!
//! ```text
//! for 96 rows:                                    # what all panels read of A stays in the second-level cache
//!     for panel:
//!         in the first 96 rows:  P[panel][k][16] = B(k, x0 ..)
//!         for 6 rows:  register tile              # its steps ask for the next panel's part of B
//! ```
//!
//! A matrix that lies in such panels is read where it is.
//!
//! A deep product is cut: `P` has a part for each block of the depth, and the 96 rows' sums wait between blocks.
//!
//! ```text
//! for 96 rows:
//!     S[panel][m][16] = 0
//!     for block of the depth:
//!         for panel:
//!             in the first 96 rows:  P[block][panel] = B's part of the block
//!             for 6 rows:  S += register tile
//!     C(m, x ..) = epilogue(S ..)
//! ```

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    PrimExpr, VarMap, add, constant, eq, floordiv, floormod, int, load, min, mul, ramp, sub, substitute,
};
use relaxide_ir::{Buffer, Var};

use super::super::register_tile::{Rows, Sums};
use super::depth::DepthBlocks;
use super::{Manner, MatmulNest, Part};
use crate::Stmt;
use crate::schedule::affine::{ceil_div, flat_index, loads, product};
use crate::schedule::lanes::splat;
use crate::schedule::machine::elements_in_line;
use crate::schedule::nest::Tile;
use crate::schedule::prefetch::request;
use crate::schedule::{Axis, Cx, Refusal, nest};

/// Panels in memory.
pub(super) struct Panels {
    buffer: Ref<Buffer>,
    /// Where they begin.
    start: PrimExpr,
}

impl Panels {
    /// Stores what lies at a place of them.
    pub(super) fn store(&self, place: PrimExpr, value: PrimExpr) -> Stmt {
        Stmt::store(&self.buffer, [place], value)
    }
}

/// What a step asks for, with the reduction axes replaced as the map says.
type Request = Box<dyn Fn(&VarMap) -> Stmt>;

impl MatmulNest {
    /// Packs B's chunk, then register tiles that read the panels.
    pub(super) fn packed(&self, cx: &mut Cx, part: &Part, chunk: &PrimExpr) -> Result<Stmt, Refusal> {
        let width = chunk.as_int().unwrap_or(self.decided.panels * self.shape.vectors * self.lanes);
        if let Some(blocks) = self.decided.depth_block.and_then(|size| DepthBlocks::of(&self.c, size)) {
            return self.packed_in_blocks(cx, part, width, &blocks);
        }
        let panels = self.panels_of(mul(int(width), self.depth()), int(0));
        let tiles = self.row_blocks(part, |rows, first| self.panels(cx, rows, panels.as_ref(), first, None))?;
        Ok(Stmt::seq(panels.iter().map(|panels| Stmt::alloc(&panels.buffer)).chain([tiles])))
    }

    /// Memory for so many elements of panels; none where the matrix lies in them.
    fn panels_of(&self, elements: PrimExpr, start: PrimExpr) -> Option<Panels> {
        let is_panel = self.c.column_is_panel(self.shape.vectors * self.lanes);
        (!is_panel).then(|| Panels { buffer: Buffer::new("panels", self.c.column.dtype(), [elements]), start })
    }

    fn depth(&self) -> PrimExpr {
        product(self.c.inner.iter().map(|a| &a.extent))
    }

    fn packed_in_blocks(&self, cx: &mut Cx, part: &Part, width: i64, blocks: &DepthBlocks) -> Result<Stmt, Refusal> {
        let dtype = self.c.reduce.stage.output.dtype;
        let panels = self.panels_of(int(width * blocks.size * blocks.count), mul(blocks.start(), int(width)));
        let rows = self.decided.block_tiles * self.shape.rows;
        let rows = part.height.as_int().filter(|height| *height < rows).unwrap_or(rows);
        let rows = (rows + self.shape.rows - 1) / self.shape.rows * self.shape.rows;
        let sums = Buffer::new("sums", dtype, [int(rows * width)]);
        let over_depth = |body: Stmt| {
            let body = Stmt::seq(blocks.binds().into_iter().chain([body]));
            Stmt::serial(blocks.var.clone(), int(blocks.count), body)
        };

        let block = MatmulNest { c: blocks.contraction(&self.c), ..self.clone() };
        let tiles = self.row_blocks(part, |rows, first| {
            let add_up = over_depth(block.panels(cx, rows, panels.as_ref(), first, Some(&sums))?);
            Ok(Stmt::seq([self.clear(&sums), add_up, self.emit_epilogue(cx, rows, &sums)?]))
        })?;
        let memory = panels.iter().map(|panels| &panels.buffer).chain([&sums]).map(Stmt::alloc);
        Ok(Stmt::seq(memory.chain([tiles])))
    }

    /// A part's rows in blocks of as many as a second-level cache has room for. The body is told when a block is the first,
    /// where there are several.
    fn row_blocks(
        &self,
        part: &Part,
        mut body: impl FnMut(&Part, Option<PrimExpr>) -> Result<Stmt, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let block = self.decided.block_tiles * self.shape.rows;
        if part.height.as_int().is_some_and(|height| height <= block) {
            return body(part, None);
        }
        let (at, m0, height) = (Var::dim("row_block"), Var::dim("block_start"), Var::dim("block_rows"));
        let before = mul(PrimExpr::from(&at), int(block));
        let binds = [
            Stmt::bind(m0.clone(), add(&part.m0, &before)),
            Stmt::bind(height.clone(), min(int(block), sub(&part.height, before))),
        ];
        let rows = Part { m0: PrimExpr::from(&m0), height: PrimExpr::from(&height), ..part.clone() };
        let first = eq(PrimExpr::from(&at), int(0));
        let body = Stmt::seq(binds.into_iter().chain([body(&rows, Some(first))?]));
        Ok(Stmt::serial(at, ceil_div(&part.height, block), body))
    }

    /// Panels one after the other, each packed, where this is the `first` block of rows and the matrix does not lie in panels, and then read by
    /// register tiles; `sums` are what they add to, where the panels are not the whole depth.
    fn panels(
        &self,
        cx: &mut Cx,
        part: &Part,
        panels: Option<&Panels>,
        first: Option<PrimExpr>,
        sums: Option<&Ref<Buffer>>,
    ) -> Result<Stmt, Refusal> {
        nest::tiles_then_vectors(part.x0.clone(), &part.count, self.lanes, self.shape.vectors, |tile| {
            let pack = panels.map_or_else(|| Ok(Stmt::nop()), |panels| self.pack(cx, part, panels, &tile))?;
            let pack = first.iter().fold(pack, |pack, first| Stmt::when(first.clone(), pack));
            let by_row = !self.decided.apart && part.height.as_int().is_none();
            let tiles = self.many_rows(part, |rows| {
                let sums = sums.map(|buffer| self.sums(part, buffer, &tile, rows));
                let next = match panels {
                    Some(_) => self.next_panel(cx, part, &tile, rows),
                    None => self.next_of_matrix(cx, part, &tile, rows),
                };
                let (bind, ask) = next.map_or((None, None), |(bind, ask)| (Some(bind), Some(ask)));
                let beside = ask.as_deref();
                let manner = Manner { sums: sums.as_ref(), by_row, beside };
                let tile = self.tile(cx, rows, &tile, manner, &mut |cx, j, map| {
                    let Some(panels) = panels else { return self.vector(cx, &tile, j, map) };
                    let index =
                        self.place(part, panels, &tile, &int(j * self.lanes), &substitute(&self.depth_index(), map));
                    Ok(load(&panels.buffer, [index]))
                })?;
                Ok(Stmt::seq(bind.into_iter().chain([tile])))
            })?;
            Ok(Stmt::seq([pack, tiles]))
        })
    }

    /// What a register tile asks for at each step: a line of the same row of B's next panel, another one each tile of rows. So
    /// the panel has come from afar when it is packed.
    fn next_panel(&self, cx: &mut Cx, part: &Part, tile: &Tile, rows: &Rows) -> Option<(Stmt, Request)> {
        let loads = loads(&self.c.column);
        let [read] = loads.as_slice() else { return None };
        if !self.decided.ask_next || !self.c.column_is_contiguous() || tile.vectors < self.shape.vectors {
            return None;
        }
        let line = elements_in_line(read.buffer.dtype);
        let panel = self.shape.vectors * self.lanes;
        let number = self.row_tile(part, rows);
        let place = add(&tile.base, add(int(panel), mul(floormod(number, int((panel / line).max(1))), int(line))));
        let at = Var::dim("ahead");
        let bind = Stmt::bind(at.clone(), min(place, sub(&self.c.x.extent, int(1))));
        let (buffer, index) = (cx.views.flat(&read.buffer), flat_index(&read.buffer, &read.indices));
        let column = self.c.x.var.clone();
        let ask = move |map: &VarMap| {
            let mut map = map.clone();
            map.insert(column.clone(), PrimExpr::from(&at));
            request("tirx.prefetch", &buffer, substitute(&index, &map))
        };
        Some((bind, Box::new(ask)))
    }

    /// The same where the matrix lies in panels: what follows those at hand comes next. The tiles of a block of rows ask for all lines of it
    /// together, as many at a step as they have to.
    fn next_of_matrix(&self, cx: &mut Cx, part: &Part, tile: &Tile, rows: &Rows) -> Option<(Stmt, Request)> {
        let loads = loads(&self.c.column);
        let [read] = loads.as_slice() else { return None };
        let width = self.c.x.extent.as_int()?;
        if !self.decided.ask_next || tile.vectors < self.shape.vectors {
            return None;
        }
        let line = elements_in_line(read.buffer.dtype);
        let lines = ((width + line - 1) / line).max(1);
        let share = part.height.as_int().map_or(1, |rows| (lines * self.shape.rows + rows - 1) / rows.max(1));
        let share = share.min(lines);
        let (at, number) = (Var::dim("ahead"), mul(self.row_tile(part, rows), int(share * line)));
        let bind = Stmt::bind(at.clone(), floormod(number, int(lines * line)));
        let (buffer, index) = (cx.views.flat(&read.buffer), flat_index(&read.buffer, &read.indices));
        let (column, next) = (self.c.x.var.clone(), mul(int(width), self.depth()));
        let last = sub(read.buffer.num_elements(), int(1));
        let ask = move |map: &VarMap| {
            let mut map = map.clone();
            map.insert(column.clone(), PrimExpr::from(&at));
            let first = add(substitute(&index, &map), next.clone());
            let lines = (0..share).map(|i| min(add(&first, int(i * line)), last.clone()));
            Stmt::seq(lines.map(|place| request("tirx.prefetch", &buffer, place)))
        };
        Some((bind, Box::new(ask)))
    }

    /// The number of a tile of rows in its block.
    fn row_tile(&self, part: &Part, rows: &Rows) -> PrimExpr {
        floordiv(sub(&rows.place, part.m0.clone()), int(self.shape.rows))
    }

    /// Where the vector at `offset` of a panel's row `k` lies. Behind the last whole panel lie narrower ones, whose rows follow each other
    /// without gaps, too.
    pub(super) fn place(&self, part: &Part, panels: &Panels, tile: &Tile, offset: &PrimExpr, k: &PrimExpr) -> PrimExpr {
        let panel = add(&panels.start, mul(sub(&tile.base, part.x0.clone()), self.depth()));
        let row = mul(k.clone(), int(tile.vectors * self.lanes));
        ramp(add(add(panel, row), offset), int(1), self.lanes)
    }

    fn clear(&self, sums: &Ref<Buffer>) -> Stmt {
        let at = Var::dim("at");
        let index = ramp(mul(PrimExpr::from(&at), int(self.lanes)), int(1), self.lanes);
        let clear = Stmt::store(sums, [index], splat(constant(sums.dtype, 0.0), self.lanes));
        Stmt::serial(at, ceil_div(&sums.num_elements(), self.lanes), clear)
    }

    fn emit_epilogue(&self, cx: &mut Cx, part: &Part, sums: &Ref<Buffer>) -> Result<Stmt, Refusal> {
        nest::tiles_then_vectors(part.x0.clone(), &part.count, self.lanes, self.shape.vectors, |tile| {
            self.many_rows(part, |rows| {
                let sums = self.sums(part, sums, &tile, rows);
                self.register_tile(rows, &tile, None).emit_epilogue_by_row(cx, &sums)
            })
        })
    }

    /// Where the sums of a tile lie among those of a block of rows.
    fn sums(&self, part: &Part, buffer: &Ref<Buffer>, tile: &Tile, rows: &Rows) -> Sums {
        let height = mul(ceil_div(&part.height, self.shape.rows), int(self.shape.rows));
        let panel = mul(sub(&tile.base, part.x0.clone()), height);
        let before = sub(&rows.place, part.m0.clone());
        Sums { buffer: buffer.clone(), start: add(panel, mul(before, int(tile.vectors * self.lanes))) }
    }

    /// Requests for a panel's rows some steps on: each of its rows lies in another page, where the processor does not guess.
    fn ask(&self, cx: &mut Cx, tile: &Tile, depth: &[Axis], map: &VarMap) -> Option<Stmt> {
        let (axis, k) = (self.c.inner.last()?, depth.last()?);
        let loads = loads(&self.c.column);
        let [read] = loads.as_slice() else { return None };
        let rows = self.decided.ahead / (tile.vectors * self.lanes);
        let later = min(add(PrimExpr::from(&k.var), int(rows)), sub(&k.extent, int(1)));
        let row = Var::dim("later");
        let mut map = map.clone();
        map.insert(axis.var.clone(), PrimExpr::from(&row));
        let requests = (0..tile.vectors).map(|j| {
            let mut map = map.clone();
            map.insert(self.c.x.var.clone(), tile.at(j, self.lanes));
            let place = substitute(&flat_index(&read.buffer, &read.indices), &map);
            request("tirx.prefetch", &cx.views.flat(&read.buffer), place)
        });
        Some(Stmt::seq([Stmt::bind(row, later)].into_iter().chain(requests)))
    }

    /// The axes of the depth, by those of a copy's loops.
    pub(super) fn depth_map(&self, fresh: &[Axis]) -> VarMap {
        self.c.inner.iter().zip(fresh).map(|(a, f)| (a.var.clone(), PrimExpr::from(&f.var))).collect()
    }

    /// Copies a panel, in the order in which B lies.
    fn pack(&self, cx: &mut Cx, part: &Part, panels: &Panels, tile: &Tile) -> Result<Stmt, Refusal> {
        let fresh: Vec<Axis> =
            self.c.inner.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        if self.packs_squares() {
            return self.pack_squares(cx, part, panels, tile, &fresh);
        }
        let map = self.depth_map(&fresh);
        let k = substitute(&self.depth_index(), &map);
        let copy = |j| -> Result<Stmt, Refusal> {
            let value = self.vector(cx, tile, j, &map)?;
            Ok(panels.store(self.place(part, panels, tile, &int(j * self.lanes), &k), value))
        };
        let mut steps: Vec<Stmt> = (0..tile.vectors).map(copy).collect::<Result<_, _>>()?;
        if self.c.column_is_contiguous() {
            steps.extend(self.ask(cx, tile, &fresh, &map));
        }
        Ok(nest::serial(&fresh, Stmt::seq(steps)))
    }
}
