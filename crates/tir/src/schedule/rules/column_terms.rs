//! Sums whose terms are no plain products, a part of which moves along the output's row and is the same for all rows.
//!
//! ```text
//! C[m, x] = sum over b of f(A(m, b), B(b, x))            # products of blocks: f unpacks, multiplies and scales a block
//! ```
//! becomes
//! ```text
//! parallel p over the output's other axes:               # panels of columns: each is read once, whatever the rows
//!     for tile of 4 rows, for tile of 4 vectors of x:
//!         acc[4][4] = init
//!         for b:  for j:  for i:  acc[i][j] += f(A(m + i, b), B(b, x + j*16 ..))
//!         C(m + i, x ..) = epilogue(acc[i][j])
//! ```
//!
//! A term in which products of words are added one after the other is not computed at once: all sums of the tile take their first word, then
//! all take the second. So each word is read once for all rows, each row's word once for all vectors, and no sum waits for its own last word.
//!
//! The part that all rows share (words that are loaded and taken apart) stands in each term, and is computed once for the rows of a
//! tile, as equal expressions without a store to memory between them are.
//!
//! Parameters: four rows spread the cost of the common part, and each of their accumulators waits for its own block only; vectors are as
//! many as leave half of the registers to what is taken apart, half as many where that is floats. Roof: memory bandwidth with one row, products of bytes with many.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, PrimExpr, PrimMutator, VarMap, add, any, binary, call, int, load, min, sub, substitute,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{coefficient, flat_index, loads, uses, uses_any};
use super::super::inline::freshen_lets;
use super::super::lanes::{Lanes, multiply_add, splat};
use super::super::machine::{LINE, elements_in_line};
use super::super::nest::Tile;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::prefetch::request;
use super::super::{Axis, Cx, Machine, Reduce, Reduction, Refusal, nest};
use super::contraction::contiguous_axis;
use super::elementwise::widest;
use super::reduction::over;
use super::register_tile::{self, RegisterTile, Rows, Shape};
use super::rule::{self, Rule};
use crate::Stmt;

/// The product of words, added to what its last argument is.
const DOT: &str = "tirx.dot_bytes";
/// Rows of a tile.
const ROWS: i64 = 4;
/// Rows of a tile at most.
const MOST_ROWS: i64 = 8;

/// Bytes that one row asks for its columns ahead: a page.
const AHEAD: i64 = 4096;

/// Vectors that an output of one row has at most: longer ones are read in runs.
const NARROW: i64 = 16;

/// The rule.
pub struct ColumnTerms;

/// Whether the processor's rule for such sums takes one.
pub fn has_column_terms(machine: &Machine, reduce: &Reduce) -> bool {
    machine.device.is_none() && ColumnTerms::find(machine, reduce).is_ok()
}

/// A sum, and the roles of its axes.
pub struct Found<'w> {
    reduce: &'w Reduce,
    reduction: &'w Reduction,
    /// The axis of the vectors.
    x: Axis,
    /// The axis that only the rest of a term has.
    row: Option<Axis>,
}

/// What is decided.
pub struct Decided {
    /// Lanes of a vector.
    lanes: i64,
    shape: Shape,
    /// Bytes by which one row asks for its columns before they are read.
    ahead: i64,
}

impl Rule for ColumnTerms {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        let Some(reduction) = &reduce.stage.reduction else { return Err(Refusal::new("it does not reduce")) };
        if reduction.op != BinaryOp::Add {
            return Err(Refusal::new("it does not sum"));
        }
        let x = contiguous_axis(reduce)?;
        let lanes = machine.sum_lanes(widest(&reduce.stage));
        if x.extent.as_int().is_none_or(|n| n < lanes) {
            return Err(Refusal::new("the output's rows are not known to fill a vector"));
        }
        let (columns, rest): (Vec<PrimExpr>, Vec<PrimExpr>) = loads(&reduce.stage.value)
            .iter()
            .map(|l| flat_index(&l.buffer, &l.indices))
            .partition(|flat| uses(flat, &x.var));
        if columns.is_empty() || columns.iter().any(|flat| coefficient(flat, &x.var) != Some(1)) {
            return Err(Refusal::new("terms do not lie side by side along the output's row"));
        }
        let reduced: Vec<Ref<Var>> = reduce.stage.reduce.iter().map(|a| a.var.clone()).collect();
        if !rest.iter().any(|flat| uses_any(flat, &reduced)) {
            return Err(Refusal::new("terms have no part of their own for each row"));
        }
        let is_row = |a: &&Axis| {
            a.var != x.var
                && !columns.iter().any(|flat| uses(flat, &a.var))
                && rest.iter().any(|flat| uses(flat, &a.var))
        };
        let row = reduce.stage.spatial.iter().rev().find(is_row).cloned();
        if row.is_none() && x.extent.as_int().is_none_or(|n| n > NARROW * lanes) {
            return Err(Refusal::new("there is one row, and it is long"));
        }
        Ok(Found { reduce, reduction, x, row })
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let lanes = rule::lanes(choices, machine.lanes(widest(&found.reduce.stage)));
        let known = found.row.as_ref().map_or(Some(1), |row| row.extent.as_int());
        let most = known.unwrap_or(MOST_ROWS).clamp(1, MOST_ROWS);
        let rows = choices.choose(Guess {
            name: "rows",
            value: ROWS.min(most),
            domain: Domain::range(1, most),
            reason: "four rows spread the cost of what they have in common",
            limit: "a tile has no more rows than the output, and no more than registers have room for",
        });
        let is_of_words = any(&found.reduce.stage.value, |e| matches!(e, PrimExpr::Call(n) if n.op == DOT));
        let left = (machine.vector_registers / 8).clamp(1, 4);
        let is_shared = known != Some(1) && !is_of_words;
        let vectors = choices.choose(Guess {
            name: "vectors",
            value: if is_shared { (left / 2).max(1) } else { left },
            domain: Domain::range(1, 4),
            reason: match is_shared {
                true => {
                    "what is taken apart becomes a vector for each of its numbers, which wait in registers for all rows"
                }
                false => "with four rows, half of the registers are left to what is taken apart",
            },
            limit: "a row of a tile has four vectors at most",
        });
        let ahead = choices.choose(Guess {
            name: "ahead",
            value: AHEAD,
            domain: Domain::list([0, 1024, 2048, 4096, 8192, 16384]),
            reason: "processors guess what is read next, but only to the end of a page, and one row waits for nothing but its columns",
            limit: "nothing is asked for (0), or so many bytes before they are read",
        });
        Ok(Decided { lanes, shape: Shape { rows, vectors }, ahead })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        let Found { reduce, x, row, .. } = found;
        let is_outer = |a: &&Axis| a.var != x.var && row.as_ref().is_none_or(|row| row.var != a.var);
        let outer: Vec<Axis> = reduce.stage.spatial.iter().filter(is_outer).cloned().collect();
        let rows = row.as_ref().map_or(int(1), |row| row.extent.clone());
        let body = register_tile::ragged_rows(&int(0), &rows, decided.shape.rows, false, &[1], |rows| {
            nest::tiles(int(0), &x.extent, decided.lanes, decided.shape.vectors, |tile| {
                found.tile(cx, decided, rows, &tile)
            })
        })?;
        Ok(over(cx, reduce, &outer, body))
    }
}

impl Found<'_> {
    /// The sums of one tile and their epilogues.
    fn tile(&self, cx: &mut Cx, decided: &Decided, rows: &Rows, tile: &Tile) -> Result<Stmt, Refusal> {
        let (stage, none, lanes) = (&self.reduce.stage, VarMap::new(), decided.lanes);
        let row_axis = self.row.as_ref().map(|row| &row.var);
        let register_tile = RegisterTile {
            reduce: self.reduce,
            row_axis,
            column_axis: &self.x.var,
            lanes,
            rows,
            tile,
            at: &none,
            sums: None,
            by_row: false,
            beside: None,
        };
        let fresh: Vec<Axis> =
            stage.reduce.iter().map(|a| Axis { var: Var::dim(a.var.name.clone()), ..a.clone() }).collect();
        let renamed: VarMap =
            stage.reduce.iter().zip(&fresh).map(|(old, new)| (old.var.clone(), PrimExpr::from(&new.var))).collect();
        let mut vector = |e: &PrimExpr, (i, j): (i64, i64), map: &VarMap| {
            let mut map = map.clone();
            if let Some(axis) = row_axis {
                map.insert(axis.clone(), rows.read(i));
            }
            let base = tile.at(j, lanes);
            let value = Lanes::new(&mut cx.views, &self.x.var, base, lanes, tile.mask_of(j), &map).vector(e)?;
            Ok::<_, Refusal>(splat(freshen_lets(&value), lanes))
        };
        let acc = Buffer::scoped("acc", stage.output.dtype, [int(rows.count * tile.vectors * lanes)], "local");
        // Vector by vector, so that what the rows have in common is in registers for one vector only.
        let cells: Vec<(i64, i64)> = (0..tile.vectors).flat_map(|j| (0..rows.count).map(move |i| (i, j))).collect();
        let asked = if rows.count == 1 { self.requests(&renamed, decided, tile) } else { Vec::new() };
        let (mut list, mut steps) = (vec![Stmt::alloc(&acc)], Vec::new());
        let chain = DotChain::of(&stage.value);
        let dots = Buffer::scoped("dots", DataType::int(32), acc.shape.clone(), "local");
        if let Some(chain) = &chain {
            list.push(Stmt::alloc(&dots));
            for &(i, j) in &cells {
                let start = vector(&chain.start, (i, j), &renamed)?;
                steps.push(Stmt::store(&dots, [register_tile.cell(i, j)], start));
            }
            for (step, (i, j)) in
                chain.steps.iter().flat_map(|step| register_tile.cells().map(move |cell| (step, cell)))
            {
                let (a, b) = (vector(&step.a, (i, j), &renamed)?, vector(&step.b, (i, j), &renamed)?);
                let sum = load(&dots, [register_tile.cell(i, j)]);
                let dot = call(sum.dtype(), DOT, vec![a, b, sum]);
                steps.push(Stmt::store(&dots, [register_tile.cell(i, j)], dot));
            }
        }
        let term = chain.as_ref().map_or(&stage.value, |chain| &chain.rest);
        for &(i, j) in &cells {
            let (cell, mut at) = (register_tile.cell(i, j), renamed.clone());
            at.extend(chain.as_ref().map(|chain| (chain.sum.clone(), load(&dots, [cell.clone()]))));
            list.push(Stmt::store(&acc, [cell.clone()], vector(&self.reduction.init, (i, j), &none)?));
            let so_far = load(&acc, [cell.clone()]);
            let sum = match factors(term) {
                Some((a, b)) => {
                    let (a, b) = (vector(a, (i, j), &at)?, vector(b, (i, j), &at)?);
                    multiply_add(cx.machine.fma, a, b, so_far)
                }
                None => binary(BinaryOp::Add, so_far, vector(term, (i, j), &at)?),
            };
            steps.push(Stmt::store(&acc, [cell], sum));
        }
        steps.extend(asked.into_iter().map(|(buffer, place)| request("tirx.prefetch", &cx.views.flat(&buffer), place)));
        list.push(nest::serial(&fresh, Stmt::seq(steps)));
        list.extend(register_tile.emit_epilogues(cx, &acc)?);
        Ok(Stmt::seq(list))
    }

    /// The lines that the tile's columns are in some steps later, of the last step where there are no more.
    fn requests(&self, renamed: &VarMap, decided: &Decided, tile: &Tile) -> Vec<(Ref<Buffer>, PrimExpr)> {
        let stage = &self.reduce.stage;
        let [axis] = stage.reduce.as_slice() else { return Vec::new() };
        let known: Vec<&Ref<Var>> = stage.spatial.iter().map(|a| &a.var).chain([&axis.var]).collect();
        let is_known = |e: &PrimExpr| !any(e, |e| matches!(e, PrimExpr::Var(var) if !known.contains(&var)));
        let columns: Vec<(Ref<Buffer>, PrimExpr)> = loads(&stage.value)
            .into_iter()
            .map(|l| (l.buffer.clone(), flat_index(&l.buffer, &l.indices)))
            .filter(|(_, flat)| uses(flat, &self.x.var) && is_known(flat))
            .collect();
        let bytes = |buffer: &Ref<Buffer>| LINE / elements_in_line(buffer.dtype) * decided.lanes;
        let step: i64 = columns.iter().map(|(buffer, _)| bytes(buffer) * tile.vectors).sum();
        let (Some(at), true) = (renamed.get(&axis.var), step > 0 && decided.ahead > 0) else { return Vec::new() };
        let soon = min(add(at, int((decided.ahead + step - 1) / step)), sub(&axis.extent, int(1)));
        let lines = columns.iter().flat_map(|(buffer, flat)| {
            let starts = (0..tile.vectors).filter(|j| j * bytes(buffer) % LINE < bytes(buffer));
            starts.map(|j| {
                let map = VarMap::from_iter([
                    (axis.var.clone(), soon.clone()),
                    (self.x.var.clone(), tile.at(j, decided.lanes)),
                ]);
                (buffer.clone(), substitute(flat, &map))
            })
        });
        lines.collect()
    }
}

/// The factors of a term that is a product.
fn factors(term: &PrimExpr) -> Option<(&PrimExpr, &PrimExpr)> {
    match term {
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul => Some((&n.a, &n.b)),
        _ => None,
    }
}

/// A term with products of words that are added one after the other: `rest`, where `sum` stands for what the steps make of `start`.
struct DotChain {
    start: PrimExpr,
    steps: Vec<Dot>,
    sum: Ref<Var>,
    rest: PrimExpr,
}

/// A product of words.
struct Dot {
    a: PrimExpr,
    b: PrimExpr,
}

impl DotChain {
    /// The first of a term, where several words are added.
    fn of(term: &PrimExpr) -> Option<DotChain> {
        let sum = Var::prim("dots", DataType::int(32));
        let mut take = TakeChain { sum: &sum, chain: None };
        let rest = take.mutate_prim(term);
        let mut start = take.chain?;
        let mut steps = Vec::new();
        while let Some((dot, before)) = dot_of(&start) {
            steps.push(dot);
            start = before;
        }
        steps.reverse();
        (steps.len() > 1).then_some(DotChain { start, steps, sum, rest })
    }
}

/// A product of words that is added to what is before it.
fn dot_of(e: &PrimExpr) -> Option<(Dot, PrimExpr)> {
    match e {
        PrimExpr::Call(n) if n.op == DOT => match n.args.as_slice() {
            [a, b, before] => Some((Dot { a: a.clone(), b: b.clone() }, before.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Takes the first chain out of a term.
struct TakeChain<'a> {
    sum: &'a Ref<Var>,
    chain: Option<PrimExpr>,
}

impl PrimMutator for TakeChain<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            _ if self.chain.is_some() => e.clone(),
            PrimExpr::Let(_) => e.clone(),
            _ if dot_of(e).is_some() => {
                self.chain = Some(e.clone());
                PrimExpr::from(self.sum)
            }
            _ => self.remake_prim(e),
        }
    }
}
