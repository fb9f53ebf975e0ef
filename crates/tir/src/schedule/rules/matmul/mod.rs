//! Matrix products: batched, either operand in either order, 1x1 convolutions among them.
//!
//! Matches contractions without windows (`C[b, m, x] += A(b, m, k) * B(b, k, x)`); factors may be any expressions, so that
//! a scale or a cast in front of a product is done while packing.
//!
//! ```text
//! parallel p over (batch, row blocks, column chunks):
//!     pack B's chunk:  P[panel][k][16] = B(k, x0 ..)            # contiguous, zero behind the row's end
//!     for panel of 16 columns:                                  # stays in the first-level cache
//!         for tile of 6 rows:  register tile, A broadcast in natural order
//! ```
//!
//! Packing costs a load and a store for each vector that is then used once a row: it is left out where the rows are few and
//! B is contiguous. Rows known only at run time choose then. A register tile of one row has eight vectors. One row with a B whose own rows
//! are summed is left to the rule of reductions, which reads them as they lie.
//!
//! A matrix that lies in panels is read where it is: one panel by each tile, or several by a tile of one row ([`panel_groups`]); a last panel that is not
//! full has a nest of its own ([`last_panel`]). Of an unknown number of rows one alone has a nest of its own, too.
//!
//! Columns that are left behind the last whole vector are summed along the depth where they are few ([`edge`]).
//!
//! Parameters: columns a chunk: one panel, four from 1024 columns on (longer runs of B a row, still enough chunks for all
//! threads); row blocks of 16 tiles where the columns alone are too few to share. Roof: two multiply-adds a cycle.

mod decide;
mod depth;
mod edge;
mod last_panel;
mod packed;
mod panel_groups;
mod transposed_panel;

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, VarMap, add, eq, floordiv, ge, int, min, mul, select, sub, substitute};

use super::super::affine::{ceil_div, product};
use super::super::inline::freshen_lets;
use super::super::lanes::Lanes;
use super::super::nest::Tile;
use super::super::parameters::Choices;
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::cached_columns;
use super::contraction::Contraction;
use super::register_tile::{self, ONE_ROW_VECTORS, RegisterTile, Rows, Shape, Sums};
use super::rule::Rule;
use crate::Stmt;
use crate::functor::fresh_copy;
use decide::Decided;
use edge::Edge;
use panel_groups::PanelGroup;

/// The rule.
pub struct MatrixProduct;

/// A matrix product.
#[derive(Clone)]
pub struct Found {
    c: Contraction,
    /// The axis that the register tile's rows walk; others that only the row operand has are batch axes.
    row: Option<Axis>,
    outer: Vec<Axis>,
    /// Columns behind those of `c`, which fill no vector.
    edge: Option<Edge>,
    /// Whether the columns are those of several panels.
    group: Option<PanelGroup>,
    /// The columns of a last panel that is not full.
    rest: Option<Box<Found>>,
}

/// Bytes of a page of memory.
const PAGE: i64 = 4096;

/// Whether the column operand has rows of a page of memory and more, as many as sums in the cache are for: a tile of columns would read a few
/// lines of each.
fn has_long_rows(c: &Contraction) -> bool {
    let bytes = i64::from(c.column.dtype().element().bits) / 8;
    let columns = c.x.extent.as_int().unwrap_or(0);
    let depth = product(c.inner.iter().map(|a| &a.extent)).as_int().unwrap_or(0);
    columns.saturating_mul(bytes) >= PAGE && depth >= cached_columns::MANY
}

impl Found {
    fn of(machine: &Machine, mut c: Contraction) -> Result<Found, Refusal> {
        let lanes = machine.lanes(c.reduce.stage.output.dtype);
        let in_sums = machine.sum_lanes(c.reduce.stage.output.dtype);
        if c.has_one_row() && !c.column_is_contiguous() && c.has_rows_of_terms(in_sums) {
            return Err(Refusal::new("each element of the matrix is used once, and its rows are what is summed"));
        }
        if c.has_one_row() && c.column_is_contiguous() && has_long_rows(&c) {
            return Err(Refusal::new("each element of the matrix is used once, and its rows are pages of memory"));
        }
        let edge = Edge::of(machine, &c);
        if let Some(edge) = &edge {
            c.x.extent = int(edge.first);
        }
        let rows = c.rows.last().map_or(Some(1), |axis| axis.extent.as_int());
        let group = rows.filter(|_| edge.is_none()).and_then(|rows| PanelGroup::of(&c, rows, lanes));
        let group = group.map(|(grouped, group)| {
            c = grouped;
            group
        });
        let row = c.rows.pop();
        let outer = outer(&c);
        Ok(Found { c, row, outer, edge, group, rest: None })
    }

    fn rows(&self) -> PrimExpr {
        self.row.as_ref().map_or(int(1), |a| a.extent.clone())
    }
}

impl Rule for MatrixProduct {
    type Work = Reduce;
    type Found<'w> = Found;
    type Decided = Nests;

    fn find(machine: &Machine, reduce: &Reduce) -> Result<Found, Refusal> {
        let c = Contraction::of_numbers_or_words(reduce)?;
        if c.x.extent.as_int().is_some_and(|n| n < machine.sum_lanes(reduce.stage.output.dtype) / 2) {
            return Err(Refusal::new("rows are shorter than half a vector"));
        }
        let Some((full, last)) = last_panel::apart(&c) else { return Found::of(machine, c) };
        let of = |reduce: &Reduce| Found::of(machine, Contraction::of_numbers_or_words(reduce)?);
        Ok(Found { rest: Some(Box::new(of(&last)?)), ..of(&full)? })
    }

    fn decide(machine: &Machine, found: &Found, choices: &mut Choices<'_>) -> Result<Nests, Refusal> {
        let whole = Decided::of(machine, found, choices);
        let rest = found.rest.as_ref();
        let rest = rest.map(|rest| choices.within("rest", |choices| Decided::of(machine, rest, choices)));
        Ok(Nests { whole, rest })
    }

    fn emit(cx: &mut Cx, found: &Found, decided: &Nests) -> Result<Stmt, Refusal> {
        let whole = MatmulNest::of(found, &decided.whole).emit(cx)?;
        let Some((rest, decided)) = found.rest.as_ref().zip(decided.rest.as_ref()) else { return Ok(whole) };
        let rest = fresh_copy(&MatmulNest::of(rest, decided).emit(cx)?);
        Ok(Stmt::seq([whole, rest]))
    }
}

/// What is decided of the nest, and of that of what is left of the columns.
pub struct Nests {
    whole: Decided,
    rest: Option<Decided>,
}

/// What is a task's own: the axes of the batch, of rows beyond those of a tile, and of columns that are no vectors.
fn outer(c: &Contraction) -> Vec<Axis> {
    c.batch.iter().chain(&c.rows).chain(&c.columns).cloned().collect()
}

#[derive(Clone)]
struct MatmulNest {
    c: Contraction,
    lanes: i64,
    shape: Shape,
    row: Option<Axis>,
    outer: Vec<Axis>,
    edge: Option<Edge>,
    group: Option<PanelGroup>,
    decided: Decided,
    /// Other axes stand for themselves.
    nothing: VarMap,
}

impl MatmulNest {
    fn of(found: &Found, decided: &Decided) -> MatmulNest {
        let Found { c, row, outer, edge, group, .. } = found.clone();
        let (Decided { lanes, shape, .. }, nothing) = (*decided, VarMap::new());
        MatmulNest { c, lanes, shape, row, outer, edge, group, decided: *decided, nothing }
    }

    fn rows(&self) -> PrimExpr {
        self.row.as_ref().map_or(int(1), |a| a.extent.clone())
    }

    /// The whole nest: packed, direct, or both under a condition on the number of rows.
    fn emit(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let enough = self.decided.pack_from;
        let contiguous = self.c.column_is_contiguous();
        match self.rows().as_int() {
            Some(rows) if contiguous && rows < enough => self.nest(cx, false),
            None if contiguous => {
                let (packed, direct) = (self.nest(cx, true)?, self.nest(cx, false)?);
                let few = Stmt::if_else(eq(self.rows(), int(1)), self.of_one_row().nest(cx, false)?, direct);
                Ok(Stmt::if_else(ge(self.rows(), int(enough)), packed, few))
            }
            _ => self.nest(cx, true),
        }
    }

    /// The nest for one row of a number of rows that is not known: as many vectors as one row needs, of several panels if there are some.
    fn of_one_row(&self) -> MatmulNest {
        let grouped = PanelGroup::of(&self.c, 1, self.lanes).filter(|_| self.edge.is_none());
        let (mut c, group) = grouped.map_or_else(|| (self.c.clone(), None), |(c, group)| (c, Some(group)));
        let mut row = self.row.clone();
        for axis in c.reduce.stage.spatial.iter_mut().chain(&mut row) {
            if self.row.as_ref().is_some_and(|row| row.var == axis.var) {
                axis.extent = int(1);
            }
        }
        let there = c.x.extent.as_int().map_or(ONE_ROW_VECTORS, |columns| (columns + self.lanes - 1) / self.lanes);
        let (outer, shape) = (outer(&c), Shape { rows: 1, vectors: ONE_ROW_VECTORS.min(there) });
        MatmulNest { c, row, outer, shape, group, ..self.clone() }
    }

    /// How the rows are cut into blocks: rows a block.
    fn block(&self) -> PrimExpr {
        let size = self.decided.task_tiles * self.shape.rows;
        let whole = size == 0 || self.rows().as_int().is_some_and(|rows| rows <= size);
        if whole { self.rows() } else { int(size) }
    }

    fn nest(&self, cx: &mut Cx, packed: bool) -> Result<Stmt, Refusal> {
        let panel = self.shape.vectors * self.lanes;
        let columns = self.c.x.extent.clone();
        let Decided { panels, many_columns, .. } = self.decided;
        let chunk = match columns.as_int() {
            Some(_) => int(panels * panel),
            None => select(ge(columns.clone(), int(many_columns)), int(panels * panel), int(panel)),
        };
        let (p, chunk_axis, block_axis) = (Var::dim("p"), Var::dim("chunk"), Var::dim("block"));
        let width = Var::dim("width");
        let block = self.block();
        let chunks = match columns.as_int().zip(chunk.as_int()) {
            Some((n, c)) => int((n + c - 1) / c),
            None => floordiv(add(&columns, sub(PrimExpr::from(&width), int(1))), PrimExpr::from(&width)),
        };
        let mut axes = self.outer.clone();
        let blocks = match block.as_int() {
            Some(size) => ceil_div(&self.rows(), size),
            None => int(1),
        };
        // What is left of the last vector is a task of its own.
        let with_edge = add(&chunks, int(i64::from(self.edge.is_some())));
        for (var, extent) in [(&block_axis, blocks), (&chunk_axis, with_edge)] {
            axes.push(Axis { var: var.clone(), extent });
        }
        let (tasks, binds) = nest::fuse(&axes, &p);

        let (x0, count) = (Var::dim("x0"), Var::dim("count"));
        let (m0, height) = (Var::dim("m0"), Var::dim("height"));
        let known =
            columns.as_int().zip(chunk.as_int()).filter(|(n, c)| n % c == 0 || n < c).map(|(n, c)| int(n.min(c)));
        let x_rest = known.unwrap_or_else(|| min(PrimExpr::from(&width), sub(&columns, PrimExpr::from(&x0))));
        let whole = block.as_int().is_none() || self.rows().as_int().is_some_and(|m| block.is_int(m));
        let m_rest = match (whole, self.rows().as_int().zip(block.as_int())) {
            (true, _) => self.rows(),
            (_, Some((m, b))) if m % b == 0 => int(b),
            _ => min(block.clone(), sub(self.rows(), PrimExpr::from(&m0))),
        };
        let named = |var: &Ref<Var>, e: &PrimExpr| if e.as_int().is_some() { e.clone() } else { PrimExpr::from(var) };
        let (start, rows) = (if whole { int(0) } else { PrimExpr::from(&m0) }, named(&height, &m_rest));
        let part = Part {
            x0: PrimExpr::from(&x0),
            count: named(&count, &x_rest),
            end: add(&start, &rows),
            m0: start,
            height: rows,
        };
        let mut body = binds;
        body.push(Stmt::bind(x0.clone(), mul(PrimExpr::from(&chunk_axis), PrimExpr::from(&width))));
        body.push(Stmt::bind(count, x_rest));
        if !whole {
            body.push(Stmt::bind(m0, mul(PrimExpr::from(&block_axis), block)));
        }
        body.push(Stmt::bind(height, m_rest));
        let whole_vectors = if packed { self.packed(cx, &part, &chunk)? } else { self.direct(cx, &part)? };
        body.push(match &self.edge {
            None => whole_vectors,
            Some(edge) => {
                let is_edge = eq(PrimExpr::from(&chunk_axis), chunks);
                Stmt::if_else(is_edge, self.edge(cx, &part, edge)?, whole_vectors)
            }
        });

        let extents = self.c.reduce.stage.spatial.iter().chain(&self.c.inner).map(|a| &a.extent);
        let work = floordiv(product(extents), int(4));
        let parallel = nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(body));
        Ok(Stmt::seq([Stmt::bind(width, chunk), parallel]))
    }

    /// Register tiles that read B where it lies.
    fn direct(&self, cx: &mut Cx, part: &Part) -> Result<Stmt, Refusal> {
        nest::tiles_then_vectors(part.x0.clone(), &part.count, self.lanes, self.shape.vectors, |tile| {
            self.few_rows(part, &tile, |rows| {
                self.tile(cx, rows, &tile, Manner::default(), &mut |cx, j, map| self.vector(cx, &tile, j, map))
            })
        })
    }

    /// A vector of B where it lies, with the reduction axes replaced as the map says.
    fn vector(&self, cx: &mut Cx, tile: &Tile, j: i64, map: &VarMap) -> Result<PrimExpr, Refusal> {
        let (base, mut map) = (tile.at(j, self.lanes), map.clone());
        let base = self.group.as_ref().map_or(base.clone(), |group| group.place(&base, &mut map));
        Lanes::new(&mut cx.views, &self.c.x.var, base, self.lanes, tile.mask_of(j), &map).vector(&self.c.column)
    }

    /// Where a point of the reduction axes lies in the depth of a panel.
    fn depth_index(&self) -> PrimExpr {
        self.c.inner.iter().fold(int(0), |k, a| add(mul(k, &a.extent), PrimExpr::from(&a.var)))
    }

    /// The part's rows in tiles, for the direct nest, where they are often few: one, two and four have a tile of their own. What ends a row of unknown
    /// length is short: there bodies are few.
    fn few_rows(
        &self,
        part: &Part,
        tile: &Tile,
        body: impl FnMut(&Rows) -> Result<Stmt, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let end = tile.vectors < self.shape.vectors && part.count.as_int().is_none();
        let few: &[i64] = if end { &[1] } else { &[1, 2, 4] };
        register_tile::ragged_rows(&part.m0, &part.height, self.shape.rows, false, few, body)
    }

    /// The part's rows in tiles, where they are many.
    fn many_rows(&self, part: &Part, body: impl FnMut(&Rows) -> Result<Stmt, Refusal>) -> Result<Stmt, Refusal> {
        let tile = self.shape.rows;
        if self.may_repeat() {
            return register_tile::overlapping_rows(&part.m0, &part.height, &part.end, tile, body);
        }
        // Where squares are transposed, packing costs little, so that tiles of few rows count.
        let few: &[i64] = if self.packs_squares() { &[1, 2, 4] } else { &[] };
        register_tile::ragged_rows(&part.m0, &part.height, tile, self.decided.apart, few, body)
    }

    /// Whether rows may be computed twice: there are more than a tile's, else the nest would be the direct one. Nothing that is
    /// read is overwritten: neither a stage nor what becomes its epilogue reads what it writes.
    fn may_repeat(&self) -> bool {
        self.c.column_is_contiguous()
    }

    fn register_tile<'a>(&'a self, rows: &'a Rows, tile: &'a Tile, sums: Option<&'a Sums>) -> RegisterTile<'a> {
        RegisterTile {
            reduce: &self.c.reduce,
            row_axis: self.row.as_ref().map(|a| &a.var),
            column_axis: &self.c.x.var,
            lanes: self.lanes,
            rows,
            tile,
            at: &self.nothing,
            sums,
            by_row: false,
            beside: None,
        }
    }

    fn tile(
        &self,
        cx: &mut Cx,
        rows: &Rows,
        tile: &Tile,
        manner: Manner<'_>,
        column: &mut dyn FnMut(&mut Cx, i64, &VarMap) -> Result<PrimExpr, Refusal>,
    ) -> Result<Stmt, Refusal> {
        let axis = self.row.as_ref().map(|a| &a.var);
        let row = |i: i64, map: &VarMap| {
            let mut map = map.clone();
            if let Some(axis) = axis {
                map.insert(axis.clone(), rows.read(i));
            }
            freshen_lets(&substitute(&self.c.row, &map))
        };
        let Manner { sums, by_row, beside } = manner;
        RegisterTile { beside, by_row, ..self.register_tile(rows, tile, sums) }.emit(
            cx,
            &self.c.inner,
            &[VarMap::new()],
            &row,
            column,
        )
    }
}

/// How a register tile of a packed product differs from one that reads B where it lies; see [`RegisterTile`].
#[derive(Clone, Copy, Default)]
struct Manner<'a> {
    sums: Option<&'a Sums>,
    by_row: bool,
    beside: Option<&'a dyn Fn(&VarMap) -> Stmt>,
}

/// The part of the output that one task computes, or a block of its rows.
#[derive(Clone)]
struct Part {
    x0: PrimExpr,
    count: PrimExpr,
    m0: PrimExpr,
    height: PrimExpr,
    /// Where the rows of the task end.
    end: PrimExpr,
}
