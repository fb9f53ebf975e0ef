//! `decompose_padding`: a block that pads becomes one that fills everything with the padding, and one that copies inside.
//!
//! ```text
//! for i in range(140):                                           for i in range(140):
//!     P[i] = if_then_else(6 <= i and i < 134, A[i - 6], 0)   ->      P[i] = 0
//!                                                                for i in range(128):
//!                                                                    P[i + 6] = A[i]
//! ```
//!
//! The filling is put in front of a loop around the block. The block must be complete and store
//! `if_then_else(condition, value, constant)`; the condition holds for one interval of each axis, which it says with
//! comparisons against constants or sizes. An axis whose value is a loop of its own has that loop shortened; for others the
//! condition stays as the block's predicate.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::prim::{self, BinaryOp, PrimExpr, VarMap, free_vars, substitute};

use super::simpler_accesses::simpler_accesses;
use super::structure::{Inner, inner_place};
use crate::analysis::affine::conjuncts;
use crate::analysis::interval::Interval;
use crate::analysis::regions::{substitute_region, with_regions};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::scope::Scope;
use crate::s_tir::state::{copy_block, copy_loop, replace};
use crate::s_tir::step::{Call, loop_operand, operand};
use crate::s_tir::{LoopRV, SBlockRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "DecomposePadding",
    method: "decompose_padding",
    is_pure: false,
    params: &[Param::Input("block"), Param::Input("loop")],
    results: Results::One,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let given = inner_place(sch, &call.block(0)?, &call.loop_(1)?)?;
    let scope = Scope::new(&given.place.tree, given.place.scope()?);
    if let Some(why) = scope.why_not_complete(given.place.node) {
        let block = &given.realize.block;
        return Err(ScheduleError::at_block(block, format!("block `{}` is not complete: {why}", block.name)));
    }
    let padding = Padding::of(&given)?;
    let (filling, filler) = padding.filling(&given);
    // The loops that hold nothing but the block are built anew around what it copies.
    let lonely = given.loops.iter().rposition(|l| !matches!(l.body, Stmt::For(_) | Stmt::Block(_)));
    let from = lonely.map_or(0, |at| at + 1).max(given.at);
    let (copying, copier) = padding.copying(&given, from);
    let target: Stmt = given.loops[given.at].clone().into();
    let old: Stmt = match given.loops.get(from) {
        Some(l) => l.clone().into(),
        None => given.realize.clone().into(),
    };
    let copied = replace(&target, &[(old, copying)]);
    let func = &given.place.func;
    let body = replace(&sch.func(func)?.body, &[(target, Stmt::seq([filling, copied]))]);
    sch.commit(func, body, &[(given.realize.block.clone(), copier)])?;
    Ok(vec![Value::Block(func.clone(), filler)])
}

/// What a block pads.
struct Padding {
    store: Ref<BufferStore>,
    /// What is copied, over the block's axes.
    value: PrimExpr,
    /// What is filled in.
    constant: PrimExpr,
    /// The interval of each axis' value where it copies.
    inside: Vec<Interval>,
    /// Where it copies, over the loops.
    condition: PrimExpr,
}

impl Padding {
    fn of(given: &Inner) -> Result<Padding, ScheduleError> {
        let (realize, block) = (&given.realize, &given.realize.block);
        let refuse = |reason: &str| ScheduleError::at_block(block, format!("block `{}` {reason}", block.name));
        let Stmt::Store(store) = &block.body else { return Err(refuse("does not store one element")) };
        let PrimExpr::Call(choice) = &store.value else { return Err(refuse("does not pad with if_then_else")) };
        let ("tirx.if_then_else", [condition, value, constant]) = (choice.op.as_str(), choice.args.as_slice()) else {
            return Err(refuse("does not pad with if_then_else"));
        };
        if !matches!(constant, PrimExpr::Int(_) | PrimExpr::Float(_)) {
            return Err(refuse("pads with something that is no constant"));
        }
        let axes: VarMap = block.iter_vars.iter().map(|i| i.var.clone()).zip(realize.iter_values.clone()).collect();
        let mut analyzer = Analyzer::new();
        for l in &given.loops {
            analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
            analyzer.mark_dims([&l.extent]);
        }
        let mut inside: Vec<Interval> =
            block.iter_vars.iter().map(|i| Interval::of_range(&prim::int_of(i.var.dtype(), 0), &i.extent)).collect();
        for bound in conjuncts(condition) {
            let Some((at, limit)) = limit_of(&bound, block, &mut analyzer) else {
                let reason = format!("pads under the condition `{bound}`, which is no bound of one axis");
                return Err(refuse(&reason));
            };
            match limit {
                Limit::Least(least) => inside[at].min = analyzer.simplify_as_tvm(&prim::max(&inside[at].min, &least)),
                Limit::Most(most) => inside[at].max = analyzer.simplify_as_tvm(&prim::min(&inside[at].max, &most)),
            }
        }
        let all = prim::and(substitute(condition, &axes), realize.predicate.clone());
        let kept = conjuncts(&all).into_iter().filter(|c| !analyzer.can_prove(c));
        let condition = kept.fold(prim::boolean(true), prim::and);
        if condition.is_int(1) {
            return Err(refuse("never pads: its condition always holds"));
        }
        let (store, value, constant) = (store.clone(), value.clone(), constant.clone());
        Ok(Padding { store, value, constant, inside, condition })
    }

    /// The loops and the block that fill, and that block.
    fn filling(&self, given: &Inner) -> (Stmt, Ref<SBlock>) {
        let block = &given.realize.block;
        let fresh = |var: &Ref<Var>| Var::new(var.name.clone(), var.ty.clone());
        let axis = |iter: &Ref<IterVar>| {
            let (min, extent) = (iter.min.clone(), iter.extent.clone());
            Ref::new(IterVar { var: fresh(&iter.var), min, extent, kind: IterKind::Spatial })
        };
        let iter_vars: Vec<Ref<IterVar>> = block.iter_vars.iter().map(axis).collect();
        let pairs = block.iter_vars.iter().zip(&iter_vars);
        let axes: VarMap = pairs.map(|(old, new)| (old.var.clone(), PrimExpr::from(&new.var))).collect();
        let indices = self.store.indices.iter().map(|i| substitute(i, &axes));
        let filler = Ref::new(SBlock {
            iter_vars,
            reads: Vec::new(),
            writes: block.writes.iter().map(|w| substitute_region(w, &axes)).collect(),
            name: format!("{}_pad_const", block.name),
            alloc_buffers: Vec::new(),
            match_buffers: Vec::new(),
            annotations: relaxide_ir::Attrs::new(),
            init: None,
            body: Stmt::store(&self.store.buffer, indices, self.constant.clone()),
        });
        let own = &given.loops[given.at..];
        let renamed: Vec<Ref<Var>> = own.iter().map(|l| fresh(&l.var)).collect();
        let map: VarMap = own.iter().zip(&renamed).map(|(l, new)| (l.var.clone(), PrimExpr::from(new))).collect();
        // What the loops that stay around have as their only value is that value.
        let mut analyzer = Analyzer::new();
        for l in &given.loops {
            analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
        }
        let mut value = |e: &PrimExpr| analyzer.simplify_as_tvm(&substitute(e, &map));
        let iter_values = given.realize.iter_values.iter().map(&mut value).collect();
        let predicate = value(&given.realize.predicate);
        let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate, block: filler.clone() }).into();
        let nest = own.iter().zip(renamed).rev().fold(innermost, |body, (l, var)| {
            let (min, extent) = (substitute(&l.min, &map), substitute(&l.extent, &map));
            Ref::new(For::new(ForKind::Serial, var, min, extent, body)).into()
        });
        (nest, filler)
    }

    /// The block that copies, under the loops from one on, and that block.
    fn copying(&self, given: &Inner, from: usize) -> (Stmt, Ref<SBlock>) {
        let (realize, block) = (&given.realize, &given.realize.block);
        let mut analyzer = Analyzer::new();
        for l in &given.loops[..from] {
            analyzer.bind(&l.var, l.min.clone(), l.extent.clone());
        }
        let (mut iter_vars, mut iter_values) = (Vec::new(), Vec::new());
        let (mut axes, mut loops) = (VarMap::new(), VarMap::new());
        let mut shortened: Vec<(Ref<Var>, PrimExpr)> = Vec::new();
        for ((iter, value), inside) in block.iter_vars.iter().zip(&realize.iter_values).zip(&self.inside) {
            let var = Var::new(iter.var.name.clone(), iter.var.ty.clone());
            let extent = inside.extent(&mut analyzer);
            axes.insert(iter.var.clone(), PrimExpr::from(&var) + &inside.min);
            let min = prim::int_of(var.dtype(), 0);
            iter_vars.push(Ref::new(IterVar { var, min, extent: extent.clone(), kind: IterKind::Spatial }));
            let own =
                value.as_var().filter(|var| given.loops[from..].iter().any(|l| l.var == **var && l.min.is_int(0)));
            match own {
                Some(own) => {
                    loops.insert(own.clone(), PrimExpr::from(own) + &inside.min);
                    shortened.push((own.clone(), extent));
                    iter_values.push(value.clone());
                }
                None => iter_values.push(analyzer.simplify_as_tvm(&(value - &inside.min))),
            }
        }
        // An axis of one value stays in sight.
        let wide: Vec<Ref<IterVar>> = iter_vars.iter().filter(|iter| !iter.extent.is_int(1)).cloned().collect();
        for iter in &wide {
            analyzer.bind(&iter.var, iter.min.clone(), iter.extent.clone());
        }
        let extent_of = |l: &For| {
            let new = shortened.iter().find(|(var, _)| *var == l.var);
            new.map_or_else(|| l.extent.clone(), |(_, extent)| extent.clone())
        };
        for l in &given.loops[from..] {
            analyzer.bind(&l.var, l.min.clone(), extent_of(l));
        }
        let conditions = conjuncts(&substitute(&self.condition, &loops));
        let predicate = conditions
            .iter()
            .fold(prim::boolean(true), |all, condition| prim::and(all, analyzer.simplify_as_tvm(condition)));
        let mut simple = |e: &PrimExpr| analyzer.simplify_as_tvm(&substitute(e, &axes));
        let indices: Vec<PrimExpr> = self.store.indices.iter().map(&mut simple).collect();
        let body = Stmt::store(&self.store.buffer, indices, substitute(&self.value, &axes));
        let body = simpler_accesses(&body, &wide);
        let copier = with_regions(SBlock { iter_vars, init: None, body, ..copy_block(block) });
        let innermost: Stmt = Ref::new(SBlockRealize { iter_values, predicate, block: copier.clone() }).into();
        let nest = given.loops[from..]
            .iter()
            .rev()
            .fold(innermost, |body, l| Ref::new(For { extent: extent_of(l), body, ..copy_loop(l) }).into());
        (nest, copier)
    }
}

/// The least or the greatest value of an axis at which a condition holds.
enum Limit {
    Least(PrimExpr),
    Most(PrimExpr),
}

/// A comparison of a multiple or a quotient as one of what is multiplied or divided, its other side a number: `v * 2 < 35`
/// is `v < 18`, and `v // 2 < 9` too.
fn without_factor(bound: &PrimExpr) -> Option<PrimExpr> {
    let PrimExpr::Binary(n) = bound else { return None };
    let (op, scaled, limit) = match (&n.a, n.b.as_int(), n.a.as_int()) {
        (scaled, Some(limit), _) => (n.op, scaled, limit),
        (_, _, Some(limit)) => {
            let flipped = match n.op {
                BinaryOp::Lt => BinaryOp::Gt,
                BinaryOp::Le => BinaryOp::Ge,
                BinaryOp::Gt => BinaryOp::Lt,
                BinaryOp::Ge => BinaryOp::Le,
                _ => return None,
            };
            (flipped, &n.b, limit)
        }
        _ => return None,
    };
    let PrimExpr::Binary(factor) = scaled else { return None };
    let by = factor.b.as_int().filter(|by| *by > 0)?;
    let above = |limit: i64| limit.checked_add(by - 1).map(|v| v.div_euclid(by));
    // The least value that is no longer below, or the least that is: for `<`, `<=`, `>` and `>=` in this order.
    let (op, limit) = match (factor.op, op) {
        (BinaryOp::Mul, BinaryOp::Lt) => (BinaryOp::Lt, above(limit)?),
        (BinaryOp::Mul, BinaryOp::Le) => (BinaryOp::Le, limit.div_euclid(by)),
        (BinaryOp::Mul, BinaryOp::Gt) => (BinaryOp::Gt, limit.div_euclid(by)),
        (BinaryOp::Mul, BinaryOp::Ge) => (BinaryOp::Ge, above(limit)?),
        (BinaryOp::FloorDiv, BinaryOp::Lt) => (BinaryOp::Lt, limit.checked_mul(by)?),
        (BinaryOp::FloorDiv, BinaryOp::Le) => (BinaryOp::Lt, limit.checked_add(1)?.checked_mul(by)?),
        (BinaryOp::FloorDiv, BinaryOp::Gt) => (BinaryOp::Ge, limit.checked_add(1)?.checked_mul(by)?),
        (BinaryOp::FloorDiv, BinaryOp::Ge) => (BinaryOp::Ge, limit.checked_mul(by)?),
        _ => return None,
    };
    Some(prim::binary(op, factor.a.clone(), prim::int_of(factor.a.dtype(), limit)))
}

/// A comparison as a limit of one axis, and which.
fn limit_of(bound: &PrimExpr, block: &SBlock, analyzer: &mut Analyzer) -> Option<(usize, Limit)> {
    if let Some(simpler) = without_factor(bound) {
        return limit_of(&simpler, block, analyzer);
    }
    let PrimExpr::Binary(n) = bound else { return None };
    let is_free = |e: &PrimExpr| !free_vars(e).iter().any(|v| block.iter_vars.iter().any(|iter| iter.var == *v));
    let difference = &n.a - &n.b;
    for (at, iter) in block.iter_vars.iter().enumerate() {
        // The difference is `axis + rest` or `rest - axis`.
        let above = analyzer.simplify_as_tvm(&(&difference - &iter.var));
        let below = analyzer.simplify_as_tvm(&(&difference + &iter.var));
        let (rises, rest) = match (is_free(&above), is_free(&below)) {
            (true, _) => (true, prim::int_of(above.dtype(), 0) - above),
            (_, true) => (false, below),
            _ => continue,
        };
        let one = prim::int_of(rest.dtype(), 1);
        let limit = match (n.op, rises) {
            (BinaryOp::Lt, true) | (BinaryOp::Gt, false) => Limit::Most(rest - one),
            (BinaryOp::Le, true) | (BinaryOp::Ge, false) => Limit::Most(rest),
            (BinaryOp::Gt, true) | (BinaryOp::Lt, false) => Limit::Least(rest + one),
            (BinaryOp::Ge, true) | (BinaryOp::Le, false) => Limit::Least(rest),
            _ => return None,
        };
        return Some((at, limit));
    }
    None
}

impl Schedule {
    /// Whether [`Schedule::decompose_padding`] is legal for a block and a loop. No step: nothing of it is in the trace.
    pub fn can_decompose_padding(&self, block: &Ref<SBlockRV>, loop_: &Ref<LoopRV>) -> bool {
        self.clone().decompose_padding(block, loop_).is_ok()
    }

    /// Takes a block that pads apart in one that fills all with the padding, in front of a loop, and one that copies what is
    /// inside. The first is returned; the given block is the second from now on.
    pub fn decompose_padding(
        &mut self,
        block: &Ref<SBlockRV>,
        loop_: &Ref<LoopRV>,
    ) -> Result<Ref<SBlockRV>, StepError> {
        self.step_block(&KIND, vec![operand(block), loop_operand(loop_)], vec![])
    }
}
