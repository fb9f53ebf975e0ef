//! Rows that are columns elsewhere: transposition, changes of layout.
//!
//! Matches injective stages that read something contiguously along another axis `y` than the output's own `x`.
//!
//! ```text
//! B[y, x] = A[x, y]
//!   ->  parallel p over blocks of 32 y × 64 x:
//!           for 8 x, 8 y in the block:  tile[8 y, 8 x] = A[8 x, 8 y]            # a square of vectors, transposed in registers
//!           for y in the block:  B[y, x0 .. x0 + 64] = tile[y, 0 .. 64]
//! ```
//!
//! A row of the output takes one element of each line of the input; row after row, a long one would drive out lines before
//! their next element is asked for, and lines that are a power of two apart share few places in a cache, however large it
//! is. So each line is read once and put aside. Elements of less than 32 bits, whose squares would have more vectors than there are registers, lie
//! in the tile as they were read, and are taken from it lane by lane. Where the output's rows turn out to be shorter than a vector, vectors of the input are
//! scattered instead. Parameters: two lines of the input, 64 elements of the output's row. Roof:
//! memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BufferLoad, PrimExpr, PrimMutator, VarMap, add, floordiv, int, load, lt, min, mul, ramp, sub, substitute,
};
use relaxide_ir::{Buffer, Var};

use super::super::affine::{all_same, ceil_div, coefficient, cost, flat_index, loads, product, uses};
use super::super::lanes::Lanes;
use super::super::nest::Tail;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Refusal, Stage, nest, square};
use super::elementwise::widest;
use super::row::{Row, has_choice};
use super::rule::{self, Rule};
use crate::Stmt;

/// Bytes of a line of the cache.
const LINE: i64 = 64;
/// Lines of the input along its row.
const LINES: i64 = 2;
/// Elements along the output's row.
const RUN: i64 = 64;

/// The rule.
pub struct Transpose;

/// A stage that reads columns.
pub struct Found<'w> {
    stage: &'w Stage,
    x: &'w Axis,
    /// The axis along which the columns lie.
    y: &'w Axis,
    outer: &'w [Axis],
    read: Ref<BufferLoad>,
}

/// What the rule decides.
pub struct Decided {
    /// Lanes of a vector.
    lanes: i64,
    /// Elements of a block along the input's row.
    line: i64,
    /// Elements of a block along the output's row.
    run: i64,
}

impl Rule for Transpose {
    type Work = Stage;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
        find(machine, stage)
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let lanes = rule::lanes(choices, machine.lanes(widest(found.stage)));
        let lines = choices.choose(Guess {
            name: "lines",
            value: LINES,
            domain: Domain::powers_of_two(1, 8),
            reason: "processors fetch lines of the cache in pairs",
            limit: "a block is whole lines of the input, and of more of them few blocks fit the first-level cache",
        });
        let run = choices.choose(Guess {
            name: "run",
            value: RUN,
            domain: Domain::powers_of_two(16, 256),
            reason: "so many elements are whole lines of the output, and a block of them stays in the first-level cache",
            limit: "shorter runs are no whole lines, and longer ones do not stay in the first-level cache",
        });
        Ok(Decided { lanes, line: elements(&found.read, lines), run })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        emit(cx, found, decided)
    }
}

/// Elements in so many lines of what is read.
fn elements(read: &BufferLoad, lines: i64) -> i64 {
    (lines * LINE / (i64::from(read.buffer.dtype.bits) / 8).max(1)).max(1)
}

fn find<'w>(machine: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
    let Some((x, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no rows"));
    };
    if coefficient(&flat_index(&stage.output, &stage.indices), &x.var) != Some(1) {
        return Err(Refusal::new("the output is not contiguous"));
    }
    let Some((y, read)) = outer.iter().find_map(|y| Some((y, column(stage, x, y)?))) else {
        return Err(Refusal::new("nothing is contiguous along another axis"));
    };
    if has_choice(&stage.value) {
        return Err(Refusal::new("what is read depends on a condition"));
    }
    let (line, lanes) = (elements(&read, LINES), machine.lanes(widest(stage)));
    if [(x, lanes), (y, line / 4)].iter().any(|(axis, least)| axis.extent.as_int().is_some_and(|n| n < *least)) {
        return Err(Refusal::new("rows or columns are too short for blocks"));
    }
    Ok(Found { stage, x, y, outer, read })
}

/// The nest of a stage that reads columns.
fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
    let Found { stage, x, y, outer, read } = found;
    let Decided { lanes, line, run: length_of_run } = *decided;
    let (counter, row_block, run) = (Var::dim("p"), Var::dim("rows"), Var::dim("run"));
    let mut axes: Vec<Axis> = outer.iter().filter(|a| a.var != y.var).cloned().collect();
    axes.push(Axis { var: row_block.clone(), extent: ceil_div(&y.extent, line) });
    axes.push(Axis { var: run.clone(), extent: ceil_div(&x.extent, length_of_run) });
    let (tasks, binds) = nest::fuse(&axes, &counter);
    let first = mul(PrimExpr::from(&row_block), int(line));
    let start = mul(PrimExpr::from(&run), int(length_of_run));
    let (height, length) = (Var::dim("height"), Var::dim("length"));
    let (bind_rows, rows) = named(height, part(&y.extent, &first, line));
    let (bind_length, length) = named(length, part(&x.extent, &start, length_of_run));
    let none = VarMap::new();
    let (across, down) = (sub(&x.var, &start), sub(&y.var, &first));
    let side = cx.machine.lanes(read.buffer.dtype);
    let in_squares = read.buffer.dtype.bits >= 32 && side >= square::LEAST_SIDE;
    let (shape, place) = match in_squares {
        true => ([line, length_of_run], [down, across]),
        false => ([length_of_run, line], [across, down]),
    };
    let tile = Buffer::scoped("tile", read.buffer.dtype, shape.map(int), "global");
    let aside = load(&tile, place.to_vec());
    let value = Replace { read, by: &aside }.mutate_prim(&stage.value);
    let fill = if in_squares {
        let block = Block { found, tile: &tile, side, start: &start, length: &length, first: &first, rows: &rows };
        block.fill(cx)?
    } else {
        let column = Row {
            axis: &y.var,
            length: &y.extent,
            lanes,
            buffer: &tile,
            indices: &place,
            map: &none,
            tail: Tail::Masked,
            ahead: None,
        };
        let column = column.emit(cx, &first, &rows, &PrimExpr::from(read.clone()))?;
        bound(&x.var, &start, &length, column)
    };
    let row = Row {
        axis: &x.var,
        length: &x.extent,
        lanes,
        buffer: &stage.output,
        indices: &stage.indices,
        map: &none,
        tail: Tail::Masked,
        ahead: None,
    };
    let row = row.emit(cx, &start, &length, &value)?;
    let store = bound(&y.var, &first, &rows, row);
    let mut body = Stmt::seq([Stmt::alloc(&tile), fill, store]);
    if x.extent.as_int().is_none() {
        // A vector that is read and scattered, instead of rows that are parts of one.
        let (buffer, indices) = (&stage.output, &stage.indices);
        let column = Row {
            axis: &y.var,
            length: &y.extent,
            lanes,
            buffer,
            indices,
            map: &none,
            tail: Tail::Masked,
            ahead: None,
        };
        let column = column.emit(cx, &first, &rows, &stage.value)?;
        let all = bound(&x.var, &int(0), &x.extent, column);
        body = Stmt::if_else(lt(x.extent.clone(), int(lanes)), all, body);
    }
    let body = Stmt::seq(binds.into_iter().chain([bind_rows, bind_length, body]));
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, counter, tasks, work, body))
}

/// A block whose elements are put aside as rows of the output.
struct Block<'a> {
    found: &'a Found<'a>,
    /// `[y, x]`.
    tile: &'a Ref<Buffer>,
    /// Vectors of a square, and lanes of each.
    side: i64,
    start: &'a PrimExpr,
    length: &'a PrimExpr,
    first: &'a PrimExpr,
    rows: &'a PrimExpr,
}

impl Block<'_> {
    /// Squares, and what they leave at the ends of rows and columns, element by element.
    fn fill(&self, cx: &mut Cx) -> Result<Stmt, Refusal> {
        let Block { found, tile, side, .. } = *self;
        let (i, j) = (Var::dim("across"), Var::dim("down"));
        let (across, down) = (mul(PrimExpr::from(&i), int(side)), mul(PrimExpr::from(&j), int(side)));
        let read = PrimExpr::from(found.read.clone());
        let vector = |n: i64, cx: &mut Cx| {
            let map = VarMap::from([(found.x.var.clone(), add(self.start, add(&across, int(n))))]);
            Lanes::new(&mut cx.views, &found.y.var, add(self.first, &down), side, None, &map).vector(&read)
        };
        let vectors = (0..side).map(|n| vector(n, cx)).collect::<Result<Vec<_>, _>>()?;
        let (mut square, columns) = square::columns(vectors);
        square.extend(
            columns
                .into_iter()
                .zip(0..)
                .map(|(column, n)| Stmt::store(tile, [add(&down, int(n)), ramp(across.clone(), int(1), side)], column)),
        );
        let whole = |count: &PrimExpr| floordiv(count, int(side));
        let (columns, rows) = (whole(self.length), whole(self.rows));
        let (behind, below) = (mul(&columns, int(side)), mul(&rows, int(side)));
        let squares = Stmt::serial(i, columns, Stmt::serial(j, rows, Stmt::seq(square)));
        let ends = self.elements([&behind, &int(0)], [&sub(self.length, &behind), self.rows]);
        let rest = self.elements([&int(0), &below], [&behind, &sub(self.rows, &below)]);
        Ok(Stmt::seq([squares, ends, rest]))
    }

    /// Some elements, from a place of the block on: so many across and down.
    fn elements(&self, from: [&PrimExpr; 2], count: [&PrimExpr; 2]) -> Stmt {
        if count.iter().any(|count| count.is_int(0)) {
            return Stmt::nop();
        }
        let (i, j) = (Var::dim("across"), Var::dim("down"));
        let (across, down) = (add(from[0], PrimExpr::from(&i)), add(from[1], PrimExpr::from(&j)));
        let map = VarMap::from([
            (self.found.x.var.clone(), add(self.start, &across)),
            (self.found.y.var.clone(), add(self.first, &down)),
        ]);
        let element = substitute(&PrimExpr::from(self.found.read.clone()), &map);
        let store = Stmt::store(self.tile, [down, across], element);
        Stmt::serial(i, count[0].clone(), Stmt::serial(j, count[1].clone(), store))
    }
}

/// What is contiguous along `y` and not along `x`, where something is.
pub(super) fn column(stage: &Stage, x: &Axis, y: &Axis) -> Option<Ref<BufferLoad>> {
    let is_column = |read: &BufferLoad| {
        let flat = flat_index(&read.buffer, &read.indices);
        let far = uses(&flat, &x.var) && coefficient(&flat, &x.var) != Some(1);
        far && coefficient(&flat, &y.var) == Some(1) && read.predicate.is_none()
    };
    loads(&stage.value).into_iter().find(|l| is_column(l))
}

/// How much of an extent a block that begins at `first` has.
fn part(extent: &PrimExpr, first: &PrimExpr, block: i64) -> PrimExpr {
    match extent.as_int() {
        Some(n) if n % block == 0 => int(block),
        _ => min(int(block), sub(extent, first)),
    }
}

/// A number, under a name unless it is a constant.
fn named(name: Ref<Var>, e: PrimExpr) -> (Stmt, PrimExpr) {
    match e.as_int() {
        Some(n) => (Stmt::nop(), int(n)),
        None => (Stmt::bind(name.clone(), e), PrimExpr::from(&name)),
    }
}

/// A loop in which an axis goes through a part of its extent.
fn bound(axis: &Ref<Var>, first: &PrimExpr, count: &PrimExpr, body: Stmt) -> Stmt {
    let inside = Var::dim(axis.name.clone());
    let bind = Stmt::bind(axis.clone(), add(first, PrimExpr::from(&inside)));
    Stmt::serial(inside, count.clone(), Stmt::seq([bind, body]))
}

/// Puts what was put aside in the place of what was read.
pub(super) struct Replace<'a> {
    pub(super) read: &'a Ref<BufferLoad>,
    pub(super) by: &'a PrimExpr,
}

impl PrimMutator for Replace<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) if n.buffer == self.read.buffer && all_same(&n.indices, &self.read.indices) => {
                self.by.clone()
            }
            _ => self.remake_prim(e),
        }
    }
}
