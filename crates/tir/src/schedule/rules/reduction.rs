//! Reductions that are no contractions: sums, means, maxima, pooling.
//!
//! Two nests, by where the input is contiguous.
//!
//! Along the innermost reduction axis (a row's sum, global pooling after its image became a row): vectors of terms.
//! ```text
//! parallel p over the output:
//!     acc[4 vectors] = identity
//!     for other reduction axes, for t:  acc[..] = acc[..] op value(k + t*32 ..)      # masked lanes take the identity
//!     C[p] = epilogue(init op all lanes of acc)
//! ```
//! Along the output's row (sums over rows or channels, windows of pooling): vectors of outputs.
//! ```text
//! parallel p over the output's rows:
//!     for tile of 4 vectors of x:
//!         acc[4] = init;  for reduction axes:  acc[..] = acc[..] op value(x ..)
//!         C[p, x ..] = epilogue(acc)
//! ```
//!
//! Where each output has many terms, as [`cached_columns`] has it. Where no axis is as long as a vector, as in pooling of small images, one
//! vector has the whole row, and lanes that do not count.
//!
//! Parameters: four accumulators cover the latency of an addition. Roof: memory bandwidth.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{
    BinaryOp, Let, PrimExpr, VarMap, add, binary, broadcast, call, float_of, floordiv, gt, int, int_of, load, mul,
    ramp, select, sub,
};
use relaxide_ir::{Buffer, DataType, Var};

use super::super::affine::{coefficient, cost, flat_index, loads, product, uses};
use super::super::inline::freshen_lets;
use super::super::lanes::{Lanes, splat};
use super::super::nest::Tail;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::prefetch::Prefetch;
use super::super::{Axis, Cx, Machine, Reduce, Reduction, Refusal, nest};
use super::cached_columns::{self, Blocks};
use super::cached_row::CachedRow;
use super::clipped::{Clipped, part};
use super::contraction::contiguous_axis;
use super::elementwise::widest;
use super::register_tile::{RegisterTile, Rows};
use super::rule::{self, Rule};
use crate::Stmt;
use crate::intrin::Intrinsic;

/// Stride up to which vectors of outputs are taken although their terms are no neighbours.
const NEAR: i64 = 4;
/// Accumulators.
pub const VECTORS: i64 = 4;
/// Elements of a row from which a vector with lanes that do not count is faster than one after the other.
const SHORTEST: i64 = 4;

/// The rule.
pub struct Reductions;

/// A reduction, and along which axis its vectors lie.
pub struct Found<'w> {
    reduce: &'w Reduce,
    reduction: &'w Reduction,
    way: Way,
    /// Lanes of a vector at most.
    lanes: i64,
}

/// Where vectors lie.
enum Way {
    /// Along an axis that is reduced.
    Terms(Axis),
    /// Along the output's row.
    Outputs(Axis),
}

impl Way {
    fn axis(&self) -> &Axis {
        match self {
            Way::Terms(axis) | Way::Outputs(axis) => axis,
        }
    }
}

/// Where vectors lie that are longer than their row.
fn short_way(machine: &Machine, terms: Option<&Axis>, outputs: Option<Axis>, value: &PrimExpr) -> Option<Way> {
    let pays = |axis: &Axis| machine.device.is_none() && axis.extent.as_int().is_some_and(|n| n >= SHORTEST);
    let outputs = outputs.filter(|x| pays(x) && !is_scattered(value, &x.var)).map(Way::Outputs);
    outputs.or_else(|| terms.filter(|axis| pays(axis)).map(|axis| Way::Terms(axis.clone())))
}

/// What the rule decides.
pub enum Decided {
    /// Vectors of terms.
    Terms(Accumulators),
    /// Vectors of outputs, which are accumulated in registers.
    InRegisters(Accumulators),
    /// The same, accumulated in the cache.
    InCache(Blocks),
}

/// Accumulators in registers.
#[derive(Clone, Copy)]
pub struct Accumulators {
    /// Lanes of each.
    pub lanes: i64,
    /// How many there are.
    pub vectors: i64,
}

impl Rule for Reductions {
    type Work = Reduce;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, reduce: &'w Reduce) -> Result<Found<'w>, Refusal> {
        let Some(reduction) = &reduce.stage.reduction else { return Err(Refusal::new("it does not reduce")) };
        let along_reduction = reduce.stage.reduce.iter().rev().find(|a| is_contiguous(&reduce.stage.value, &a.var));
        let along_output = contiguous_axis(reduce).ok().filter(|x| !is_scattered(&reduce.stage.value, &x.var));
        let lanes = machine.sum_lanes(widest(&reduce.stage));
        let long = |a: &Axis| a.extent.as_int().is_none_or(|n| n >= lanes);
        let way = match (along_reduction.filter(|a| long(a)), along_output.filter(long)) {
            // A window that slides along the output's row is contiguous both ways; the output's way has no lanes to join.
            (_, Some(x)) if is_contiguous(&reduce.stage.value, &x.var) => Way::Outputs(x),
            (Some(axis), _) => Way::Terms(axis.clone()),
            (None, Some(x)) => Way::Outputs(x),
            (None, None) => {
                let way = short_way(machine, along_reduction, contiguous_axis(reduce).ok(), &reduce.stage.value)
                    .ok_or_else(|| Refusal::new("no axis is contiguous and as long as a vector"))?;
                let extent = way.axis().extent.as_int().unwrap_or(lanes);
                let lanes = lanes.min((extent as u64).next_power_of_two() as i64);
                return Ok(Found { reduce, reduction, way, lanes });
            }
        };
        Ok(Found { reduce, reduction, way, lanes })
    }

    fn decide(_: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let Found { reduce, way, lanes, .. } = found;
        let lanes = rule::lanes(choices, *lanes);
        let x = match way {
            Way::Terms(_) => {
                return Ok(Decided::Terms(Accumulators { lanes, vectors: term_vectors(choices, VECTORS) }));
            }
            Way::Outputs(x) => x,
        };
        if cached_columns::chosen(choices, reduce, x, VECTORS * lanes) {
            return Ok(Decided::InCache(Blocks::decide(choices, reduce, x, lanes)));
        }
        let vectors = choices.choose(Guess {
            name: "vectors",
            value: VECTORS,
            domain: Domain::range(1, 8),
            reason: "four accumulators cover the latency of an addition",
            limit: "more do not add up faster, and their ends of rows are code",
        });
        Ok(Decided::InRegisters(Accumulators { lanes, vectors }))
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        let Found { reduce, reduction, way, .. } = found;
        match (way, decided) {
            (Way::Terms(axis), Decided::Terms(sums)) => along(cx, reduce, axis, *sums, None),
            (Way::Outputs(x), Decided::InRegisters(sums)) => columns(cx, reduce, reduction, x, *sums),
            (Way::Outputs(x), Decided::InCache(blocks)) => cached_columns::emit(cx, reduce, reduction, x, blocks),
            _ => Err(Refusal::new("the decision is about vectors along another axis")),
        }
    }
}

/// Accumulators of terms, which are joined by halves.
pub fn term_vectors(choices: &mut Choices<'_>, guess: i64) -> i64 {
    choices.choose(Guess {
        name: "vectors",
        value: guess,
        domain: Domain::powers_of_two(1, 8),
        reason: match guess {
            1 => "what makes the terms on the way fills the registers",
            _ => "four accumulators cover the latency of an addition",
        },
        limit: "accumulators are joined by halves, and more of them do not add up faster",
    })
}

/// Whether a load moves by one element with an axis.
fn is_contiguous(value: &PrimExpr, var: &Ref<Var>) -> bool {
    loads(value).iter().any(|l| coefficient(&flat_index(&l.buffer, &l.indices), var) == Some(1))
}

/// Whether a load moves with an axis by more than a few elements, so that a vector of it is one access a lane.
fn is_scattered(value: &PrimExpr, var: &Ref<Var>) -> bool {
    loads(value).iter().any(|l| {
        let flat = flat_index(&l.buffer, &l.indices);
        uses(&flat, var) && !coefficient(&flat, var).is_some_and(|c| (1..=NEAR).contains(&c))
    })
}

/// What a reduction's value is before any term, whatever the terms are.
pub fn identity(op: BinaryOp, dtype: DataType) -> Result<PrimExpr, Refusal> {
    let extreme = |sign: f64| match () {
        () if dtype.is_float() => Ok(float_of(dtype, sign * f64::INFINITY)),
        () if dtype.is_int() && sign > 0.0 => Ok(int_of(dtype, i64::MAX >> (64 - dtype.bits))),
        () if dtype.is_int() => Ok(int_of(dtype, i64::MIN >> (64 - dtype.bits))),
        () => Err(Refusal::new(format!("{dtype} has no extreme literals"))),
    };
    match op {
        BinaryOp::Add => Ok(relaxide_ir::prim::constant(dtype, 0.0)),
        BinaryOp::Mul => Ok(relaxide_ir::prim::constant(dtype, 1.0)),
        BinaryOp::Min => extreme(1.0),
        BinaryOp::Max => extreme(-1.0),
        _ => Err(Refusal::new("the operator does not reduce")),
    }
}

/// One number from the lanes of a vector.
pub(super) fn all_lanes(op: BinaryOp, vector: PrimExpr) -> Result<PrimExpr, Refusal> {
    let dtype = vector.dtype();
    if dtype.lanes == 1 {
        return Ok(vector);
    }
    let reduce = match op {
        BinaryOp::Add => Intrinsic::VectorReduceAdd,
        BinaryOp::Mul => Intrinsic::VectorReduceMul,
        BinaryOp::Min => Intrinsic::VectorReduceMin,
        BinaryOp::Max => Intrinsic::VectorReduceMax,
        _ => return Err(Refusal::new("the operator does not reduce")),
    };
    Ok(call(dtype.element(), format!("tirx.{}", reduce.name()), vec![vector]))
}

/// Vectors of terms along a reduction axis.
///
/// With a row that is made on the way, which must be all that is reduced.
pub fn along(
    cx: &mut Cx,
    reduce: &Reduce,
    axis: &Axis,
    Accumulators { lanes, vectors }: Accumulators,
    kept: Option<&CachedRow<'_>>,
) -> Result<Stmt, Refusal> {
    let Some(reduction) = &reduce.stage.reduction else { return Err(Refusal::new("it does not reduce")) };
    let stage = &reduce.stage;
    let sum = Sum {
        op: reduction.op,
        value: &stage.value,
        axis,
        lanes,
        dtype: stage.output.dtype,
        kept,
        ahead: stage.ahead.as_deref().filter(|_| kept.is_none()),
        vectors,
        repeats: stage.tail == Tail::Overlapped,
        plain: stage.shown_elsewhere,
    };
    let others: Vec<Axis> = stage.reduce.iter().filter(|a| a.var != axis.var).cloned().collect();
    let (statements, total) = sum.emit(cx, &others)?;
    let total = binary(reduction.op, reduction.init.clone(), total);
    let value: PrimExpr = Ref::new(Let { var: reduce.acc.clone(), value: total, body: reduce.epilogue.clone() }).into();
    let store = Stmt::store(&reduce.output, reduce.indices.clone(), freshen_lets(&value));
    let body = Stmt::seq([statements, store]);
    Ok(over(cx, reduce, &stage.spatial, body))
}

/// A reduction of terms in vectors.
struct Sum<'a> {
    /// How terms combine.
    op: BinaryOp,
    /// A term.
    value: &'a PrimExpr,
    /// The axis that is contiguous.
    axis: &'a Axis,
    /// Lanes of a vector.
    lanes: i64,
    /// Type of the result.
    dtype: DataType,
    /// The row that is made on the way.
    kept: Option<&'a CachedRow<'a>>,
    /// What is asked for on the way.
    ahead: Option<&'a Prefetch>,
    /// Accumulators.
    vectors: i64,
    /// Whether the last vectors may meet terms twice.
    repeats: bool,
    /// Whether a maximum may leave out what is no number.
    plain: bool,
}

impl Sum<'_> {
    /// What was combined so far, with one term more.
    fn combined(&self, so_far: PrimExpr, term: PrimExpr) -> PrimExpr {
        match self.plain {
            true => select(gt(term.clone(), so_far.clone()), term, so_far),
            false => binary(self.op, so_far, term),
        }
    }

    /// The statements that combine all terms, and the scalar that holds the result behind them.
    fn emit(&self, cx: &mut Cx, others: &[Axis]) -> Result<(Stmt, PrimExpr), Refusal> {
        let (op, dtype, lanes) = (self.op, self.dtype, self.lanes);
        let acc = Buffer::scoped("acc", dtype, [int(self.vectors * lanes)], "local");
        let at = |j: i64| ramp(int(j * lanes), int(1), lanes);
        let neutral = broadcast(identity(op, dtype)?, lanes);
        let mut list = vec![Stmt::alloc(&acc)];
        list.extend((0..self.vectors).map(|j| Stmt::store(&acc, [at(j)], neutral.clone())));
        let mut step = |tile: nest::Tile| {
            let steps: Result<Vec<Stmt>, Refusal> = (0..tile.vectors)
                .map(|j| {
                    let mask = tile.mask_of(j);
                    let axis = &self.axis.var;
                    let (base, own) = (tile.at(j, lanes), [PrimExpr::from(axis)]);
                    let asked = self.ahead.map(|ahead| ahead.of(cx, axis, &base, lanes, self.value, &own));
                    let (made, names) = match self.kept {
                        Some(kept) => kept.vector(cx, &tile, j, axis, lanes)?,
                        None => (Stmt::nop(), VarMap::new()),
                    };
                    let term = Lanes::new(&mut cx.views, axis, base, lanes, mask, &names).vector(self.value)?;
                    let term = match mask {
                        Some(mask) => select(mask.vector(lanes), term, neutral.clone()),
                        None => term,
                    };
                    let taken = Stmt::store(&acc, [at(j)], self.combined(load(&acc, [at(j)]), term));
                    Ok(Stmt::seq(asked.into_iter().flatten().chain([made, taken])))
                })
                .collect();
            Ok::<_, Refusal>(Stmt::seq(steps?))
        };
        // An extreme may meet a term twice.
        let tiles = match self.repeats && matches!(op, BinaryOp::Max | BinaryOp::Min) && self.kept.is_none() {
            true => nest::overlapping_tiles(&self.axis.extent, lanes, self.vectors, &mut step)?,
            false => nest::tiles_then_vectors(int(0), &self.axis.extent, lanes, self.vectors, &mut step)?,
        };
        list.push(nest::serial(others, tiles));
        // Halve what is left until one vector remains.
        let mut vectors = self.vectors;
        while vectors > 1 {
            vectors /= 2;
            for j in 0..vectors {
                let joined = self.combined(load(&acc, [at(j)]), load(&acc, [at(j + vectors)]));
                list.push(Stmt::store(&acc, [at(j)], joined));
            }
        }
        let total = Var::prim("total", dtype);
        list.push(Stmt::bind(total.clone(), all_lanes(op, load(&acc, [at(0)]))?));
        Ok((Stmt::seq(list), PrimExpr::from(&total)))
    }
}

/// Vectors of outputs along the output's row.
fn columns(
    cx: &mut Cx,
    reduce: &Reduce,
    reduction: &Reduction,
    x: &Axis,
    Accumulators { lanes, vectors }: Accumulators,
) -> Result<Stmt, Refusal> {
    let stage = &reduce.stage;
    let outer: Vec<Axis> = stage.spatial.iter().filter(|a| a.var != x.var).cloned().collect();
    let clipped = Clipped::of(stage, reduction, &x.var);
    let columns = Columns { reduce, reduction, x: &x.var, lanes, clipped: &clipped };
    if clipped.along.is_open() {
        let body = columns.emit(cx, int(0), &x.extent, vectors, true)?;
        return Ok(over(cx, reduce, &outer, body));
    }
    let mut list = Vec::new();
    let (first, length) = part(&mut list, &clipped.along, &x.extent);
    let behind = add(&first, &length);
    let rest = sub(&x.extent, &behind);
    list.push(columns.emit(cx, int(0), &first, 1, false)?);
    list.push(columns.emit(cx, first, &length, vectors, true)?);
    list.push(columns.emit(cx, behind, &rest, 1, false)?);
    Ok(over(cx, reduce, &outer, Stmt::seq(list)))
}

/// Vectors of outputs along a part of the output's row.
struct Columns<'a> {
    reduce: &'a Reduce,
    reduction: &'a Reduction,
    x: &'a Ref<Var>,
    lanes: i64,
    clipped: &'a Clipped,
}

impl Columns<'_> {
    /// The outputs from a place on, of their terms or, where there are none, of what a reduction starts from.
    fn emit(
        &self,
        cx: &mut Cx,
        start: PrimExpr,
        extent: &PrimExpr,
        vectors: i64,
        terms: bool,
    ) -> Result<Stmt, Refusal> {
        let (stage, lanes, none) = (&self.reduce.stage, self.lanes, VarMap::new());
        nest::tiles(start, extent, lanes, vectors, |tile| {
            let acc = Buffer::scoped("acc", stage.output.dtype, [int(tile.vectors * lanes)], "local");
            let at = |j: i64| ramp(int(j * lanes), int(1), lanes);
            let mut vector = |e: &PrimExpr, j: i64, map: &VarMap| {
                Lanes::new(&mut cx.views, self.x, tile.at(j, lanes), lanes, tile.mask_of(j), map).vector(e)
            };
            let mut list = vec![Stmt::alloc(&acc)];
            for j in 0..tile.vectors {
                list.push(Stmt::store(&acc, [at(j)], vector(&self.reduction.init, j, &none)?));
            }
            if terms {
                let (binds, axes, map) = self.clipped.over(&stage.reduce);
                let mut steps = Vec::new();
                for j in 0..tile.vectors {
                    let term = vector(&self.clipped.value, j, &map)?;
                    steps.push(Stmt::store(&acc, [at(j)], binary(self.reduction.op, load(&acc, [at(j)]), term)));
                }
                list.extend(binds);
                list.push(nest::serial(&axes, Stmt::seq(steps)));
            }
            let register_tile = RegisterTile {
                reduce: self.reduce,
                row_axis: None,
                column_axis: self.x,
                lanes,
                rows: &Rows::full(int(0), 1),
                tile: &tile,
                at: &none,
                sums: None,
                by_row: false,
                beside: None,
            };
            for j in 0..tile.vectors {
                list.push(register_tile.emit_epilogue(cx, int(0), j, splat(load(&acc, [at(j)]), lanes))?);
            }
            Ok(Stmt::seq(list))
        })
    }
}

/// A parallel loop over some axes of the output.
pub fn over(cx: &Cx, reduce: &Reduce, axes: &[Axis], body: Stmt) -> Stmt {
    if axes.is_empty() {
        return body;
    }
    let p = Var::dim("p");
    let (tasks, binds) = nest::fuse(axes, &p);
    let extents = reduce.stage.spatial.iter().chain(&reduce.stage.reduce).map(|a| &a.extent);
    let work = mul(product(extents), int(cost(&reduce.stage.value) + 1));
    nest::parallel(&cx.machine, p, tasks, floordiv(work, int(2)), Stmt::seq(binds.into_iter().chain([body])))
}
