//! The last columns of a product, where they would fill a small part of a vector: sums along the depth.
//!
//! ```text
//! E[j][k] = B(k, first + j)                                # a few columns, each as one row
//! for tile of rows:
//!     acc[i][j] += A(m + i, k ..) * E[j][k ..]             # vectors along the depth
//!     C(m + i, first + j) = epilogue(all lanes of acc[i][j])
//! ```
//!
//! An image of 7×7 has 49 columns: in vectors of 16 a fourth vector would be there for one of them, and a quarter of the time.

use relaxide_ir::prim::{BinaryOp, PrimExpr, VarMap, add, constant, int, load, mul, ramp, substitute};
use relaxide_ir::{Buffer, Var};

use super::super::contraction::{Contraction, step, words};
use super::super::reduction::all_lanes;
use super::super::register_tile::{self, Rows};
use super::{MatmulNest, Part};
use crate::Stmt;
use crate::schedule::inline::freshen_lets;
use crate::schedule::lanes::{Lanes, multiply_add, splat};
use crate::schedule::{Axis, Cx, Machine, Refusal, nest};

/// Of so many lanes one is a column that is left, at least.
const LANES_A_COLUMN: i64 = 8;
/// Columns up to which what is left of the last vector matters: a vector of twenty.
const MOST_VECTORS: i64 = 20;
/// Vectors that a sum has at least: fewer are not worth the sum of their lanes.
const LEAST_VECTORS: i64 = 4;
/// Rows of a tile at most.
const MOST_ROWS: i64 = 8;

/// Columns that no vector is filled with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    /// The first.
    pub(super) first: i64,
    count: i64,
    depth: i64,
    /// Lanes of a vector of terms.
    lanes: i64,
    /// Rows of a tile.
    rows: i64,
}

impl Edge {
    /// The edge of a product, if it has one that is better apart.
    pub(super) fn of(machine: &Machine, c: &Contraction) -> Option<Edge> {
        let ([axis], [.., row]) = (c.inner.as_slice(), c.rows.as_slice()) else { return None };
        let (columns, depth) = (c.x.extent.as_int()?, axis.extent.as_int()?);
        row.extent.as_int()?;
        let dtype = c.reduce.stage.output.dtype;
        let lanes = machine.sum_lanes(dtype);
        let count = columns % lanes;
        let is_narrow =
            count > 0 && LANES_A_COLUMN * count <= lanes && (lanes..MOST_VECTORS * lanes).contains(&columns);
        let is_plain = words(&c.reduce.stage.value).is_none() && dtype.is_float();
        let alike = [&c.row, &c.column].iter().all(|factor| factor.dtype() == dtype);
        let rows_are_vectors = step(&c.row, &axis.var) == Some(1) && depth >= LEAST_VECTORS * lanes;
        // A vector of the row and one of each column beside the accumulators.
        let vectors = machine.vector_registers * machine.lanes(dtype) / lanes;
        let rows = ((vectors - 2 - count) / (count + 1)).clamp(1, MOST_ROWS);
        let pays = is_narrow && is_plain && alike && rows_are_vectors;
        pays.then_some(Edge { first: columns - count, count, depth, lanes, rows })
    }
}

impl MatmulNest {
    /// The edge's columns of a part's rows.
    pub(super) fn edge(&self, cx: &mut Cx, part: &Part, edge: &Edge) -> Result<Stmt, Refusal> {
        let [axis] = self.c.inner.as_slice() else { return Err(Refusal::new("the depth has several axes")) };
        let (dtype, lanes) = (self.c.reduce.stage.output.dtype, edge.lanes);
        let pitch = (edge.depth + lanes - 1) / lanes * lanes;
        let columns = Buffer::new("edge", dtype, [int(edge.count * pitch)]);
        let zero = splat(constant(dtype, 0.0), lanes);
        let mut list = vec![Stmt::alloc(&columns)];
        if pitch > edge.depth {
            let ends = (1..=edge.count).map(|j| ramp(int(j * pitch - lanes), int(1), lanes));
            list.extend(ends.map(|end| Stmt::store(&columns, [end], zero.clone())));
        }
        let k = Var::dim(axis.var.name.clone());
        let copies = (0..edge.count).map(|j| {
            let at =
                VarMap::from([(axis.var.clone(), PrimExpr::from(&k)), (self.c.x.var.clone(), int(edge.first + j))]);
            let value = freshen_lets(&substitute(&self.c.column, &at));
            Stmt::store(&columns, [add(int(j * pitch), PrimExpr::from(&k))], value)
        });
        let copies = Stmt::seq(copies.collect::<Vec<_>>());
        list.push(Stmt::serial(k, axis.extent.clone(), copies));
        list.push(register_tile::rows(&part.m0, &part.height, edge.rows, |rows| {
            let column = |j: i64, base: &PrimExpr| load(&columns, [ramp(add(base, int(j * pitch)), int(1), lanes)]);
            self.edge_tile(cx, edge, axis, rows, &column)
        })?);
        Ok(Stmt::seq(list))
    }

    /// Some rows of the edge; `column` is a vector of one of its columns.
    fn edge_tile(
        &self,
        cx: &mut Cx,
        edge: &Edge,
        axis: &Axis,
        rows: &Rows,
        column: &dyn Fn(i64, &PrimExpr) -> PrimExpr,
    ) -> Result<Stmt, Refusal> {
        let Some(row_axis) = &self.row else { return Err(Refusal::new("the product has no rows")) };
        let (dtype, lanes) = (self.c.reduce.stage.output.dtype, edge.lanes);
        let acc = Buffer::scoped("acc", dtype, [int(rows.count * edge.count * lanes)], "local");
        let totals = Buffer::scoped("totals", dtype, [int(rows.count * edge.count)], "local");
        let cell = |i: i64, j: i64| ramp(int((i * edge.count + j) * lanes), int(1), lanes);
        let cells = || (0..rows.count).flat_map(|i| (0..edge.count).map(move |j| (i, j)));
        let zero = splat(constant(dtype, 0.0), lanes);
        let mut list = vec![Stmt::alloc(&acc), Stmt::alloc(&totals)];
        list.extend(cells().map(|(i, j)| Stmt::store(&acc, [cell(i, j)], zero.clone())));
        list.push(nest::tiles(int(0), &int(edge.depth), lanes, 1, |tile| {
            let mut steps = Vec::new();
            for i in 0..rows.count {
                let map = VarMap::from([(row_axis.var.clone(), rows.read(i))]);
                let of_row = Lanes::new(&mut cx.views, &axis.var, tile.base.clone(), lanes, tile.mask_of(0), &map);
                let a = Var::prim(format!("a{i}"), dtype.with_lanes(lanes as u16));
                steps.push(Stmt::bind(a.clone(), of_row.vector(&freshen_lets(&self.c.row))?));
                for j in 0..edge.count {
                    let so_far = load(&acc, [cell(i, j)]);
                    let sum = multiply_add(cx.machine.fma, PrimExpr::from(&a), column(j, &tile.base), so_far);
                    steps.push(Stmt::store(&acc, [cell(i, j)], sum));
                }
            }
            Ok::<_, Refusal>(Stmt::seq(steps))
        })?);
        for (i, j) in cells() {
            let total = all_lanes(BinaryOp::Add, load(&acc, [cell(i, j)]))?;
            list.push(Stmt::store(&totals, [int(i * edge.count + j)], total));
        }
        let (i, j) = (Var::dim("i"), Var::dim("j"));
        let total = load(&totals, [add(mul(PrimExpr::from(&i), int(edge.count)), PrimExpr::from(&j))]);
        let reduce = &self.c.reduce;
        let at = VarMap::from([
            (row_axis.var.clone(), add(&rows.first, PrimExpr::from(&i))),
            (self.c.x.var.clone(), add(int(edge.first), PrimExpr::from(&j))),
            (reduce.acc.clone(), total),
        ]);
        let indices = reduce.indices.iter().map(|index| substitute(index, &at)).collect::<Vec<_>>();
        let store = Stmt::store(&reduce.output, indices, freshen_lets(&substitute(&reduce.epilogue, &at)));
        let store = Stmt::serial(j, int(edge.count), store);
        list.push(Stmt::serial(i, int(rows.count), store));
        Ok(Stmt::seq(list))
    }
}
