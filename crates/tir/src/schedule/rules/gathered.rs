//! Elements that are gathered from the same places of many planes: sampling at coordinates, resizing with interpolation, deformable windows.
//!
//! Matches injective stages with a load whose place along the row is data or no line, and an outer axis `c` that every access walks in equal
//! steps and nothing else asks for.
//!
//! ```text
//! B[c, y, x] = A[c, iy[y, x], ix[y, x]] * w[y, x]
//!   ->  parallel over the other axes and blocks of 8 c:
//!           for t over vectors of x:
//!               places and weights of 16 x, in registers
//!               for c in the block:  B[c, y, x ..] = A[c, the places] * the weights
//! ```
//!
//! Row after row of one plane, places, weights and conditions would be computed anew for each. LLVM moves them out of the loop over planes,
//! which depends on none of them. Parameter: 8 planes, whose lines stay in a cache of 12 ways also where planes are a power of two apart.
//! Roof: a load for each lane.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{BufferLoad, PrimExpr, PrimVisitor, VarMap, add, int, min, mul, sub};

use super::super::affine::{ceil_div, cost, flat_index, linear, loads, product, uses, uses_any};
use super::super::inline::bound_in;
use super::super::lanes::Lanes;
use super::super::nest::Tail;
use super::super::parameters::{Choices, Domain, Guess};
use super::super::{Axis, Cx, Machine, Refusal, Stage, nest};
use super::elementwise::{block_of, widest};
use super::lifted_choice::lifted;
use super::row::choice;
use super::rule::{self, Rule};
use crate::Stmt;

/// Elements of a row that one task takes.
const BLOCK: i64 = 512;
/// Planes that share places.
const PLANES: i64 = 8;

/// The rule.
pub struct Gathered;

/// A stage that gathers, and its axes.
pub struct Found<'w> {
    stage: &'w Stage,
    inner: &'w Axis,
    /// The axis that counts planes.
    planes: &'w Axis,
    others: Vec<Axis>,
}

/// What the rule decides.
pub struct Decided {
    /// Elements of a row that one task takes.
    block: i64,
    /// Planes that share places.
    planes: i64,
    /// Lanes of a vector.
    lanes: i64,
}

impl Rule for Gathered {
    type Work = Stage;
    type Found<'w> = Found<'w>;
    type Decided = Decided;

    fn find<'w>(machine: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
        find(machine, stage)
    }

    fn decide(machine: &Machine, found: &Found<'_>, choices: &mut Choices<'_>) -> Result<Decided, Refusal> {
        let block = choices.choose(block_of(BLOCK));
        let planes = choices.choose(Guess {
            name: "planes",
            value: PLANES,
            domain: Domain::powers_of_two(1, 64),
            reason: "so many share the work on places, and their lines stay in the first-level cache, however far they are apart",
            limit: "lines of more planes drive each other out of the first-level cache",
        });
        Ok(Decided { block, planes, lanes: rule::lanes(choices, machine.lanes(widest(found.stage))) })
    }

    fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
        emit(cx, found, decided)
    }
}

fn find<'w>(machine: &Machine, stage: &'w Stage) -> Result<Found<'w>, Refusal> {
    let Some((inner, outer)) = stage.spatial.split_last() else {
        return Err(Refusal::new("a single element has no vectors"));
    };
    let lanes = machine.lanes(widest(stage));
    if inner.extent.as_int().is_some_and(|n| n < lanes) {
        return Err(Refusal::new("rows are shorter than a vector"));
    }
    if stage.tail != Tail::Masked {
        return Err(Refusal::new("rows end without a mask"));
    }
    if choice(&stage.value).is_some() || lifted(&inner.var, &stage.value, inner.extent.as_int(), lanes).is_some() {
        return Err(Refusal::new("a choice is made for parts of rows"));
    }
    if !loads(&stage.value).iter().any(|load| is_gathered(&stage.value, load, &inner.var)) {
        return Err(Refusal::new("no element is gathered"));
    }
    let stored = flat_index(&stage.output, &stage.indices);
    let counts = |axis: &&Axis| {
        axis.extent.as_int().is_none_or(|n| n > 1)
            && linear(&stored, &axis.var).is_some_and(|(step, _)| !uses(&step, &inner.var))
            && is_stepped(&stage.value, &axis.var)
    };
    let Some(planes) = outer.iter().find(counts) else {
        return Err(Refusal::new("places differ from plane to plane"));
    };
    let others = outer.iter().filter(|axis| axis.var != planes.var).cloned().collect();
    Ok(Found { stage, inner, planes, others })
}

/// Whether a load's place along the row is data, or no line.
fn is_gathered(value: &PrimExpr, load: &BufferLoad, axis: &Ref<Var>) -> bool {
    let place = flat_index(&load.buffer, &load.indices);
    let moves = |e: &PrimExpr| uses(e, axis) || uses_any(e, &moving(value, axis));
    moves(&place) && linear(&place, axis).is_none_or(|(step, rest)| moves(&step) || moves(&rest))
}

/// Names of a value that stand for something else in each element of a row.
fn moving(value: &PrimExpr, axis: &Ref<Var>) -> Vec<Ref<Var>> {
    struct Moving<'a> {
        axis: &'a Ref<Var>,
        names: Vec<Ref<Var>>,
    }
    impl PrimVisitor for Moving<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            if let PrimExpr::Let(n) = e
                && (uses(&n.value, self.axis) || uses_any(&n.value, &self.names))
            {
                self.names.push(n.var.clone());
            }
            self.walk_prim(e);
        }
    }
    let mut moving = Moving { axis, names: Vec::new() };
    moving.visit_prim(value);
    moving.names
}

/// Whether an axis is used by the places of loads only, each of which it moves in equal steps, and moves one of them.
fn is_stepped(value: &PrimExpr, axis: &Ref<Var>) -> bool {
    struct Steps<'a> {
        axis: &'a Ref<Var>,
        names: Vec<Ref<Var>>,
        moved: usize,
        only: bool,
    }
    impl PrimVisitor for Steps<'_> {
        fn visit_prim(&mut self, e: &PrimExpr) {
            match e {
                PrimExpr::Var(var) => self.only &= var != self.axis,
                PrimExpr::Load(n) => {
                    let place = flat_index(&n.buffer, &n.indices);
                    if !uses(&place, self.axis) {
                        return self.walk_prim(e);
                    }
                    let step = linear(&place, self.axis).filter(|(step, rest)| {
                        let is_fixed = loads(step).is_empty() && !self.names.iter().any(|name| uses(step, name));
                        is_fixed && !uses(rest, self.axis)
                    });
                    self.moved += 1;
                    self.only &= step.is_some() && n.predicate.as_ref().is_none_or(|p| !uses(p, self.axis));
                }
                _ => self.walk_prim(e),
            }
        }
    }
    let mut steps = Steps { axis, names: bound_in(value).into_iter().collect(), moved: 0, only: true };
    steps.visit_prim(value);
    steps.only && steps.moved > 0
}

/// The nest of a stage that gathers.
fn emit(cx: &mut Cx, found: &Found<'_>, decided: &Decided) -> Result<Stmt, Refusal> {
    let Found { stage, inner, planes, others } = found;
    let Decided { block: size, planes: shared, lanes } = *decided;
    let (counter, group, block) = (Var::dim("p"), Var::dim("planes"), Var::dim("block"));
    let mut axes = others.clone();
    axes.push(Axis { var: group.clone(), extent: ceil_div(&planes.extent, shared) });
    axes.push(Axis { var: block.clone(), extent: ceil_div(&inner.extent, size) });
    let first = mul(PrimExpr::from(&group), int(shared));
    let start = mul(PrimExpr::from(&block), int(size));
    let (count, length) = (Var::dim("count"), Var::dim("length"));
    let lasting = [
        Stmt::bind(count.clone(), min(int(shared), sub(&planes.extent, &first))),
        Stmt::bind(length.clone(), min(int(size), sub(&inner.extent, &start))),
    ];
    let none = VarMap::new();
    let rows = nest::tiles(start, &PrimExpr::from(&length), lanes, 1, |tile| {
        let lanes = Lanes::new(&mut cx.views, &inner.var, tile.base.clone(), lanes, tile.mask_of(0), &none);
        let store = lanes.store(&stage.output, &stage.indices, &stage.value)?;
        let plane = Var::dim(planes.var.name.clone());
        let bind = Stmt::bind(planes.var.clone(), add(&first, PrimExpr::from(&plane)));
        Ok::<Stmt, Refusal>(Stmt::serial(plane, PrimExpr::from(&count), Stmt::seq([bind, store])))
    })?;
    let (tasks, binds) = nest::fuse(&axes, &counter);
    let body = Stmt::seq(binds.into_iter().chain(lasting).chain([rows]));
    let work = mul(product(stage.spatial.iter().map(|a| &a.extent)), int(cost(&stage.value) + 1));
    Ok(nest::parallel(&cx.machine, counter, tasks, work, body))
}
