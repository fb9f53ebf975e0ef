//! Panels of a matrix whose own rows are what is summed (`B[x, k]`): squares of vectors that are transposed in registers.
//!
//! ```text
//! for k0 in steps of 16, for vector of the panel:
//!     rows = B[x0 .. x0 + 16][k0 .. k0 + 16]
//!     P[panel][k0 .. k0 + 16][vector] = columns of the square
//! for k behind the last square:  P[panel][k] = B[x0 .., k]              # lane by lane
//! ```
//!
//! Lane by lane throughout, packing would be most of the work of a product of few rows, as the scores of one token are.

use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, floordiv, int, min, mul, sub, substitute};

use super::packed::Panels;
use super::{MatmulNest, Part};
use crate::Stmt;
use crate::schedule::affine::{flat_index, loads};
use crate::schedule::lanes::Lanes;
use crate::schedule::nest::Tile;
use crate::schedule::prefetch::request;
use crate::schedule::{Axis, Cx, Refusal, nest, square};

impl MatmulNest {
    /// Whether panels are made of squares.
    pub(super) fn packs_squares(&self) -> bool {
        let dtype = self.c.column.dtype();
        let is_vector = self.lanes >= square::LEAST_SIDE && self.lanes.count_ones() == 1 && dtype.lanes == 1;
        is_vector && dtype.bits >= 32 && self.group.is_none() && self.c.has_rows_of_terms(self.lanes)
    }

    /// Copies a panel in squares; `fresh` are the axes of the depth as the copy's loops name them.
    pub(super) fn pack_squares(
        &self,
        cx: &mut Cx,
        part: &Part,
        panels: &Panels,
        tile: &Tile,
        fresh: &[Axis],
    ) -> Result<Stmt, Refusal> {
        let Some((last, outer)) = fresh.split_last() else { return Ok(Stmt::nop()) };
        let (block, vector, term) = (Var::dim("square"), Var::dim("vector"), Var::dim("term"));
        let first = mul(PrimExpr::from(&block), int(self.lanes));
        let squares = self.square(cx, part, panels, tile, (fresh, &first, &PrimExpr::from(&vector)))?;
        let blocks = floordiv(&last.extent, int(self.lanes));
        let done = mul(&blocks, int(self.lanes));
        let rest = sub(&last.extent, &done);
        let squares = Stmt::serial(block, blocks, Stmt::serial(vector, int(tile.vectors), squares));
        let map = self.depth_at(fresh, &add(&done, PrimExpr::from(&term)));
        let k = substitute(&self.depth_index(), &map);
        let behind = (0..tile.vectors).map(|j| {
            let value = self.vector(cx, tile, j, &map)?;
            Ok(panels.store(self.place(part, panels, tile, &int(j * self.lanes), &k), value))
        });
        let behind = Stmt::seq(behind.collect::<Result<Vec<_>, Refusal>>()?);
        let behind = if rest.is_int(0) { Stmt::nop() } else { Stmt::serial(term, rest, behind) };
        Ok(nest::serial(outer, Stmt::seq([squares, behind])))
    }

    /// One square: from term `first` of the depth's last axis on, in the vector of the panel that is given.
    fn square(
        &self,
        cx: &mut Cx,
        part: &Part,
        panels: &Panels,
        tile: &Tile,
        (fresh, first, vector): (&[Axis], &PrimExpr, &PrimExpr),
    ) -> Result<Stmt, Refusal> {
        let Some(last) = self.c.inner.last() else { return Ok(Stmt::nop()) };
        let offset = mul(vector, int(self.lanes));
        let row = |n: i64, cx: &mut Cx| {
            let column = add(add(&tile.base, &offset), int(n));
            // Columns behind the end are computed and not stored: those of the last one stand in for them.
            let column = match tile.mask {
                Some(_) => min(column, sub(&self.c.x.extent, int(1))),
                None => column,
            };
            let mut map = self.depth_map(fresh);
            map.remove(&last.var);
            map.insert(self.c.x.var.clone(), column);
            Lanes::new(&mut cx.views, &last.var, first.clone(), self.lanes, None, &map).vector(&self.c.column)
        };
        let rows = (0..self.lanes).map(|n| row(n, cx)).collect::<Result<Vec<_>, _>>()?;
        let (mut square, columns) = square::columns(rows);
        square.extend(columns.into_iter().zip(0..).map(|(column, n)| {
            let k = substitute(&self.depth_index(), &self.depth_at(fresh, &add(first, int(n))));
            panels.store(self.place(part, panels, tile, &offset, &k), column)
        }));
        square.extend(self.next_square(cx, tile, fresh, first, &offset));
        Ok(Stmt::seq(square))
    }

    /// Requests for the rows of the square that has the place of this one in the next panel. They lie behind each other as a whole, but a
    /// square takes a line of each, in an order that the processor does not guess.
    fn next_square(
        &self,
        cx: &mut Cx,
        tile: &Tile,
        fresh: &[Axis],
        first: &PrimExpr,
        offset: &PrimExpr,
    ) -> Option<Stmt> {
        let reads = loads(&self.c.column);
        let [read] = reads.as_slice() else { return None };
        let last = self.c.inner.last()?;
        // A whole panel, so that there are as many columns as a square has.
        if !self.decided.ask_next || tile.vectors < self.shape.vectors || tile.mask.is_some() {
            return None;
        }
        let mut map = self.depth_map(fresh);
        map.insert(last.var.clone(), first.clone());
        let at = Var::dim("ahead");
        let next = add(add(&tile.base, offset), int(tile.vectors * self.lanes));
        let bind = Stmt::bind(at.clone(), min(next, sub(&self.c.x.extent, int(self.lanes))));
        let index = flat_index(&read.buffer, &read.indices);
        let requests = (0..self.lanes).map(|n| {
            let mut map = map.clone();
            map.insert(self.c.x.var.clone(), add(PrimExpr::from(&at), int(n)));
            request("tirx.prefetch", &cx.views.flat(&read.buffer), substitute(&index, &map))
        });
        Some(Stmt::seq([bind].into_iter().chain(requests).collect::<Vec<_>>()))
    }

    /// The axes of the depth, by those of the copy's loops but the last, which is at `term`.
    fn depth_at(&self, fresh: &[Axis], term: &PrimExpr) -> VarMap {
        let mut map = self.depth_map(fresh);
        map.extend(self.c.inner.last().map(|last| (last.var.clone(), term.clone())));
        map
    }
}
