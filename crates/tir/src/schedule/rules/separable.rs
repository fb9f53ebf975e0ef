//! Transforms of small tiles by constant matrices from both sides: the two ends of Winograd's convolution.
//!
//! Matches sums over two axes `a`, `b` of a few values each, whose terms are an element times two constants, the first of which depends on
//! `a` and a place down the tile, the second on `b` and a place along it:
//!
//! ```text
//! V[i, j, c, y, x] = sum over a, b of  P(i, a) * Q(j, b) * D(c, 4*y + a, 4*x + b)                   # tiles apart: axes i, j
//! R[m, y, x] = sum over a, b of  P(y % 4, a) * Q(x % 4, b) * M[a, b, m, y // 4, x // 4]             # tiles beside each other
//! ```
//!
//! One sum of all terms takes `a * b` multiply-adds an element. A tile takes the columns first, then the rows, and both many times fewer:
//!
//! ```text
//! parallel p over (c, y), for 16 tiles:                   parallel p over (m, y // 4), for 16 tiles:
//!     for each vector of the columns under them:              for each b:  Z[.., b] = P @ M[.., b, 16 tiles]
//!         S[.., columns] = P @ D[.., columns]                 for each row of the tiles:
//!     for i:  V[i, .., 16 tiles] = S[i, columns in turn] @ Q      S[columns in turn] = Z[row, ..] @ Q
//!                                                                 R[.., 64 columns] = epilogue(S)
//! ```
//!
//! `S` has constant places and stays in registers: what lies in turn is shuffled. Lanes are tiles of one row of them; a short row fills
//! few lanes, which costs little where channels are many. Parameter: lanes, no more than a row of tiles has. Roof: memory bandwidth.

mod matrix;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{PrimExpr, VarMap, add, int, load, lt, mul, ramp, sub, substitute};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{ceil_div, coefficient, flat_index, linear, loads, product, same, uses};
use super::super::lanes::{Lanes, Mask};
use super::super::nest::Tile;
use super::super::parameters::Choices;
use super::super::{Axis, Cx, Machine, Reduce, Refusal, nest};
use super::contraction::contiguous_axis;
use super::rule::{self, Rule};
use crate::Stmt;
use matrix::{Matrix, factors};

/// Values of an axis of a tile at most: more do not fit registers.
const MOST: i64 = 8;

/// The rule.
pub struct Separable;

/// A transform of tiles.
pub struct Found<'w> {
    reduce: &'w Reduce,
    /// What multiplies columns, over the first axis of the sum; what multiplies rows, over the second.
    down: Matrix,
    along: Matrix,
    /// The element of a term.
    element: PrimExpr,
    /// The contiguous axis of the result.
    x: Axis,
    form: Form,
}

/// How tiles lie in the result.
enum Form {
    /// Places within a tile are axes of their own; tiles begin so many elements of the image after each other.
    Apart { step: i64 },
    /// Places within a tile are the remainders of an element's place, whose axis down the tile is this one.
    Beside { y: Axis },
}

impl Rule for Separable {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    /// Lanes of a vector.
    type Decided = i64;

    fn find<'w>(_: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        let (down, along, element) = factors(reduce, MOST)?;
        let x = contiguous_axis(reduce)?;
        let form = form_of(reduce, &down, &along, &element, &x)?;
        Ok(Found { reduce, down, along, element, x, form })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<i64, Refusal> {
        let fitting = machine.lanes(found.reduce.stage.output.dtype);
        let tiles = found.tiles().as_int().map_or(fitting, |n| n.clamp(2, fitting));
        let narrow = (tiles as u64).next_power_of_two() as i64;
        Ok(rule::lanes(choices, narrow.min(fitting)))
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, lanes: &i64) -> Result<Stmt, Refusal> {
        let wide = cx.machine.lanes(found.reduce.stage.output.dtype);
        let emit = Emit { found, lanes: *lanes, wide };
        match &found.form {
            Form::Apart { step } => emit.apart(cx, *step),
            Form::Beside { y } => emit.beside(cx, y),
        }
    }
}

/// How tiles lie, where the element moves with them as it must.
fn form_of(reduce: &Reduce, down: &Matrix, along: &Matrix, element: &PrimExpr, x: &Axis) -> Result<Form, Refusal> {
    let spatial = &reduce.stage.spatial;
    let is_axis = |var: &Ref<Var>| spatial.iter().any(|a| a.var == *var);
    if !is_axis(&down.place) || !is_axis(&along.place) || down.place == along.place {
        return Err(Refusal::new("the constants do not depend on one axis of the result each"));
    }
    let at = |e: &PrimExpr, var: &Ref<Var>, value: PrimExpr| {
        Analyzer::new().simplify(&substitute(e, &[(var.clone(), value)].into()))
    };
    match (down.modulus, along.modulus) {
        (None, None) => {
            if [&down.place, &along.place].into_iter().any(|place| uses(element, place) || *place == x.var) {
                return Err(Refusal::new("places within a tile are no axes of their own"));
            }
            let reads = loads(element);
            let [read] = reads.as_slice() else { return Err(Refusal::new("a term reads several elements")) };
            let flat = flat_index(&read.buffer, &read.indices);
            let step = coefficient(&flat, &x.var).filter(|step| (1..=MOST).contains(step));
            let Some(step) = step.filter(|_| coefficient(&flat, &along.tap.var) == Some(1)) else {
                return Err(Refusal::new("tiles do not follow each other along the image's rows"));
            };
            let (one, other) = (PrimExpr::from(&x.var) + int(1), PrimExpr::from(&along.tap.var) + int(step));
            if !same(&at(element, &x.var, one), &at(element, &along.tap.var, other)) {
                return Err(Refusal::new("the next tile is not the same one some elements on"));
            }
            Ok(Form::Apart { step })
        }
        (Some(m), Some(n)) if along.place == x.var => {
            let Some(y) = spatial.iter().find(|a| a.var == down.place) else {
                return Err(Refusal::new("the tile's rows are no axis of the result"));
            };
            let (ty, tx) = (Var::dim("tile_y"), Var::dim("tile_x"));
            let of = |r: i64, s: i64| {
                let element = at(element, &y.var, PrimExpr::from(&ty) * m + int(r));
                at(&element, &x.var, PrimExpr::from(&tx) * n + int(s))
            };
            let first = of(0, 0);
            if !(0..m).all(|r| (0..n).all(|s| same(&first, &of(r, s)))) {
                return Err(Refusal::new("the elements of a tile are not sums of the same"));
            }
            let contiguous =
                loads(&first).iter().all(|l| coefficient(&flat_index(&l.buffer, &l.indices), &tx) == Some(1));
            let rows = linear(&flat_index(&reduce.output, &reduce.indices), &y.var);
            match contiguous && rows.is_some() {
                true => Ok(Form::Beside { y: y.clone() }),
                false => Err(Refusal::new("tiles do not lie one behind the other")),
            }
        }
        _ => Err(Refusal::new("tiles are apart along one axis only")),
    }
}

impl Found<'_> {
    /// The tiles of a row.
    fn tiles(&self) -> PrimExpr {
        match &self.form {
            Form::Apart { .. } => self.x.extent.clone(),
            Form::Beside { .. } => ceil_div(&self.x.extent, self.along.rows.len() as i64),
        }
    }

    fn dtype(&self) -> DataType {
        self.reduce.stage.output.dtype
    }
}

struct Emit<'a> {
    found: &'a Found<'a>,
    /// Tiles that go together.
    lanes: i64,
    /// Elements of a row that go together.
    wide: i64,
}

/// Values with names, and the statements that give them.
#[derive(Default)]
struct Named(Vec<Stmt>);

impl Named {
    fn name(&mut self, name: &str, value: PrimExpr) -> PrimExpr {
        let var = Var::prim(name, value.dtype());
        self.0.push(Stmt::bind(var.clone(), value));
        PrimExpr::from(&var)
    }
}

impl Emit<'_> {
    /// All tiles: a task for each row of them.
    fn tasks(&self, cx: &mut Cx, axes: &[Axis], tiles: Stmt) -> Stmt {
        let p = Var::dim("p");
        let stage = &self.found.reduce.stage;
        let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(MOST));
        if axes.is_empty() {
            return tiles;
        }
        let (tasks, binds) = nest::fuse(axes, &p);
        nest::parallel(&cx.machine, p, tasks, work, Stmt::seq(binds.into_iter().chain([tiles])))
    }

    /// Axes of the result but some.
    fn others(&self, taken: &[&Ref<Var>]) -> Vec<Axis> {
        let spatial = &self.found.reduce.stage.spatial;
        spatial.iter().filter(|a| !taken.contains(&&a.var)).cloned().collect()
    }

    /// Tiles whose places are axes of the result.
    fn apart(&self, cx: &mut Cx, step: i64) -> Result<Stmt, Refusal> {
        let found = self.found;
        let axes = self.others(&[&found.down.place, &found.along.place, &found.x.var]);
        let tiles = nest::tiles(int(0), &found.x.extent, self.lanes, 1, |tile| self.apart_tiles(cx, step, &tile))?;
        Ok(self.tasks(cx, &axes, tiles))
    }

    fn apart_tiles(&self, cx: &mut Cx, step: i64, tile: &Tile) -> Result<Stmt, Refusal> {
        let Found { reduce, down, along, element, x, .. } = self.found;
        let (lanes, wide, fma, dtype) = (self.lanes, self.wide, cx.machine.fma, self.found.dtype());
        let (taps, columns) = (down.taps(), along.taps());
        let covered = step * (lanes - 1) + columns;
        let pitch = (covered + wide - 1) / wide * wide;
        let rows = down.rows.len() as i64;
        let space = Buffer::scoped("columns", dtype, [int(rows * pitch)], "local");
        let mut list = Named(vec![Stmt::alloc(&space)]);
        for at in (0..pitch).step_by(wide as usize) {
            // The last tiles' columns only: what lies behind them no term reads.
            let mask = match &tile.mask {
                None if at + wide <= covered => None,
                None => Some(Mask::first(int(covered - at))),
                Some(_) => {
                    let count = sub(&x.extent, &tile.base);
                    Some(Mask::first(Analyzer::new().simplify(&(count * step + int(columns - step - at)))))
                }
            };
            let mut image = Vec::new();
            for a in 0..taps {
                let map: VarMap = [(x.var.clone(), tile.base.clone()), (down.tap.var.clone(), int(a))].into();
                let value =
                    Lanes::new(&mut cx.views, &along.tap.var, int(at), wide, mask.as_ref(), &map).vector(element)?;
                image.push(list.name(&format!("d{a}"), value));
            }
            for (i, row) in (0..).zip(&down.rows) {
                let value = matrix::combine(row, &image, fma);
                list.0.push(Stmt::store(&space, [ramp(int(i * pitch + at), int(1), wide)], value));
            }
        }
        for i in 0..rows {
            let mut columns_of_step = Vec::new();
            for b in 0..columns {
                columns_of_step
                    .push(list.name(&format!("s{b}"), load(&space, [ramp(int(i * pitch + b), int(step), lanes)])));
            }
            for (j, row) in (0..).zip(&along.rows) {
                let map = VarMap::from([
                    (down.place.clone(), int(i)),
                    (along.place.clone(), int(j)),
                    (reduce.acc.clone(), matrix::combine(row, &columns_of_step, fma)),
                ]);
                let lanes = Lanes::new(&mut cx.views, &x.var, tile.base.clone(), lanes, tile.mask.as_ref(), &map);
                list.0.push(lanes.store(&reduce.output, &reduce.indices, &reduce.epilogue)?);
            }
        }
        Ok(Stmt::seq(list.0))
    }

    /// Tiles that lie beside each other in the result.
    fn beside(&self, cx: &mut Cx, y: &Axis) -> Result<Stmt, Refusal> {
        let found = self.found;
        let row = Axis { var: Var::dim("tile_y"), extent: ceil_div(&y.extent, found.down.rows.len() as i64) };
        let mut axes = self.others(&[&y.var, &found.x.var]);
        axes.push(row.clone());
        let tiles =
            nest::tiles(int(0), &found.tiles(), self.lanes, 1, |tile| self.beside_tiles(cx, y, &row.var, &tile))?;
        Ok(self.tasks(cx, &axes, tiles))
    }

    fn beside_tiles(&self, cx: &mut Cx, y: &Axis, row: &Ref<Var>, tile: &Tile) -> Result<Stmt, Refusal> {
        let Found { down, along, element, x, .. } = self.found;
        let (lanes, fma, dtype) = (self.lanes, cx.machine.fma, self.found.dtype());
        let (height, width) = (down.rows.len() as i64, along.rows.len() as i64);
        let tx = Var::dim("tile_x");
        let place = [(y.var.clone(), PrimExpr::from(row) * height), (x.var.clone(), PrimExpr::from(&tx) * width)];
        let element = Analyzer::new().simplify(&substitute(element, &place.into()));
        let mut list = Named::default();
        // By row of the tile, then by column of what is summed.
        let mut rows = vec![Vec::new(); down.rows.len()];
        for b in 0..along.taps() {
            let mut column = Vec::new();
            for a in 0..down.taps() {
                let map: VarMap = [(down.tap.var.clone(), int(a)), (along.tap.var.clone(), int(b))].into();
                let lanes = Lanes::new(&mut cx.views, &tx, tile.base.clone(), lanes, tile.mask.as_ref(), &map);
                column.push(list.name(&format!("m{a}{b}"), lanes.vector(&element)?));
            }
            for (at, row) in rows.iter_mut().zip(&down.rows) {
                at.push(list.name("z", matrix::combine(row, &column, fma)));
            }
        }
        let together = width * lanes;
        let wide = self.wide.min(together);
        for (r, values) in (0..).zip(&rows) {
            let interleaved = Buffer::scoped("interleaved", dtype, [int(together)], "local");
            list.0.push(Stmt::alloc(&interleaved));
            for (s, coefficients) in (0..).zip(&along.rows) {
                let value = matrix::combine(coefficients, values, fma);
                list.0.push(Stmt::store(&interleaved, [ramp(int(s), int(width), lanes)], value));
            }
            let at = add(mul(PrimExpr::from(row), int(height)), int(r));
            let mut stores = Vec::new();
            for v in (0..together).step_by(wide as usize) {
                let sum = load(&interleaved, [ramp(int(v), int(1), wide)]);
                stores.push(self.store(
                    cx,
                    tile,
                    v,
                    wide,
                    [(y.var.clone(), at.clone()), (self.found.reduce.acc.clone(), sum)],
                )?);
            }
            let inside = Analyzer::new().simplify(&ceil_div(&y.extent, height)) * height;
            let divides = Analyzer::new().can_prove(&relaxide_ir::prim::eq(inside, y.extent.clone()));
            let stores = Stmt::seq(stores);
            list.0.push(if divides { stores } else { Stmt::when(lt(at, y.extent.clone()), stores) });
        }
        Ok(Stmt::seq(list.0))
    }

    /// The store of the elements from `v` on of some tiles' row.
    fn store(
        &self,
        cx: &mut Cx,
        tile: &Tile,
        v: i64,
        wide: i64,
        values: [(Ref<Var>, PrimExpr); 2],
    ) -> Result<Stmt, Refusal> {
        let Found { reduce, along, x, .. } = self.found;
        let width = along.rows.len() as i64;
        let base = add(mul(&tile.base, int(width)), int(v));
        let left = Analyzer::new().simplify(&sub(&x.extent, &base));
        if left.as_int().is_some_and(|left| left <= 0) {
            return Ok(Stmt::nop());
        }
        let whole_tiles = x.extent.as_int().is_some_and(|n| n % width == 0) && tile.mask.is_none();
        let is_whole = whole_tiles || left.as_int().is_some_and(|left| left >= wide);
        let mask = (!is_whole).then(|| Mask::first(left));
        Lanes::new(&mut cx.views, &x.var, base, wide, mask.as_ref(), &values.into()).store(
            &reduce.output,
            &reduce.indices,
            &reduce.epilogue,
        )
    }
}
