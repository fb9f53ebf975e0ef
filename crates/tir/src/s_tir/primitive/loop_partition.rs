//! `loop_partition`: the iterations of a loop are executed by several loops, one behind the other.
//!
//! ```text
//! for i, j in T.grid(16, 32):                 with T.sblock("B_i_common"):
//!     with T.sblock("B"): …                       with T.sblock("B_i0_partition"):
//!                          -- 2, None ->              for i0, j in T.grid(2, 32):
//!                                                         with T.sblock("B_i0"): …
//!                                                 with T.sblock("B_i1_partition"):
//!                                                     for i1 in range(2, 16):
//!                                                         for j in range(32):
//!                                                             with T.sblock("B_i1"): …
//! ```
//!
//! The factors are numbers of iterations; one may be `None`, and takes what is left. Where none is, the iterations behind the
//! last factor get a loop of their own. The loop is of known extent, neither annotated nor bound to threads, and holds one
//! block. Each part is a block of its own with copies of the loops inside, so that it can be scheduled apart; a reduction is
//! set where its axes have their first values, which is in one of the parts.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap};

use super::split::factor_operand;
use crate::analysis::regions::with_regions;
use crate::functor::{fresh_copy, substitute_stmt};
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::state::{Tree, copy_block, replace, with_block};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "LoopPartition",
    method: "loop_partition",
    is_pure: false,
    params: &[Param::Input("loop"), Param::Inputs("factors"), Param::Attr("preserve_unit_iters")],
    results: Results::List,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.loop_ref(&call.loop_(0)?)?;
    let loop_ = place.for_loop()?;
    let given: Vec<Option<PrimExpr>> =
        call.inputs.get(1..).unwrap_or_default().iter().map(|f| sch.factor(f)).collect::<Result<_, _>>()?;
    place.scope()?;
    let children = place.tree.child_blocks(place.node);
    let name = match children.as_slice() {
        [only] => place.tree.as_block(*only).map(|n| n.block.name.clone()).unwrap_or_default(),
        several => {
            let reason = format!("loop `{}` has {} blocks inside, not one", loop_.var.name, several.len());
            return Err(ScheduleError::at_loop(&loop_, reason)
                .with_help("partition loops before blocks are computed at them, or blockize what is inside"));
        }
    };
    let bounds = bounds(&loop_, &given)?;
    let (mut parts, mut vars) = (Vec::new(), Vec::new());
    for (number, range) in bounds.windows(2).enumerate() {
        let [from, to] = range else { continue };
        let var = Var::new(format!("{}{number}", loop_.var.name), loop_.var.ty.clone());
        let body = fresh_copy(&loop_.body);
        let body = substitute_stmt(&body, &VarMap::from([(loop_.var.clone(), PrimExpr::from(&var))]));
        let body = named(&body, &format!("{name}_{}", var.name));
        let dtype = var.dtype();
        let (min, extent) = (prim::int_of(dtype, *from), prim::int_of(dtype, to - from));
        let of_part = For::new(ForKind::Serial, var.clone(), min, extent, body);
        parts.push(around(format!("{name}_{}_partition", var.name), Ref::new(of_part).into()));
        vars.push(Value::Loop(place.func.clone(), var));
    }
    let whole = around(format!("{name}_{}_common", loop_.var.name), Stmt::seq(parts));
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), whole)]);
    sch.commit(&place.func, body, &[])?;
    Ok(vars)
}

/// Where the parts begin, and where the last one ends.
fn bounds(loop_: &For, given: &[Option<PrimExpr>]) -> Result<Vec<i64>, ScheduleError> {
    let refuse = |reason: String| ScheduleError::at_loop(loop_, reason);
    if !loop_.annotations.is_empty() || loop_.kind == ForKind::ThreadBinding {
        let reason = format!("loop `{}` is annotated or bound to a thread", loop_.var.name);
        return Err(refuse(reason).with_help("annotate and bind the loops that it becomes"));
    }
    let (Some(first), Some(count)) = (loop_.min.as_int(), loop_.extent.as_int()) else {
        let reason = format!(
            "the iterations of loop `{}`, {} from {} on, are not known",
            loop_.var.name, loop_.extent, loop_.min
        );
        return Err(refuse(reason).with_help("split by a constant factor first, and partition the loop inside"));
    };
    if given.is_empty() || given.iter().filter(|f| f.is_none()).count() > 1 {
        return Err(refuse("loop_partition needs at least one factor, of which one may be None".into()));
    }
    let mut sum = 0i64;
    for factor in given.iter().flatten() {
        match factor.as_int().filter(|f| *f > 0) {
            Some(f) => sum = sum.saturating_add(f),
            None => return Err(refuse(format!("a factor is {factor}, but factors are positive numbers"))),
        }
    }
    if sum >= count {
        let reason = format!("the factors come to {sum} iterations, and loop `{}` has {count}", loop_.var.name);
        return Err(refuse(reason).with_help("leave iterations over for the open factor, or for the last loop"));
    }
    let open = given.iter().all(Option::is_some).then_some(None);
    let mut found = vec![first];
    for factor in given.iter().map(Option::as_ref).chain(open) {
        let length = factor.and_then(PrimExpr::as_int).unwrap_or(count - sum);
        found.push(found.last().copied().unwrap_or(first).saturating_add(length));
    }
    Ok(found)
}

/// The block inside by another name.
fn named(body: &Stmt, name: &str) -> Stmt {
    let tree = Tree::of(body);
    let outermost = tree.blocks().filter(|(id, _)| tree.scope_of(*id).is_none());
    let changes: Vec<(Stmt, Stmt)> = outermost
        .map(|(_, n)| {
            let block = Ref::new(SBlock { name: name.to_string(), ..copy_block(&n.block) });
            (n.clone().into(), with_block(n, block).into())
        })
        .collect();
    replace(body, &changes)
}

/// A block without axes around a statement.
fn around(name: String, body: Stmt) -> Stmt {
    let block = with_regions(SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name,
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body,
    });
    Ref::new(SBlockRealize { iter_values: Vec::new(), predicate: prim::boolean(true), block }).into()
}

impl Schedule {
    /// Carries the iterations of a loop out by several loops, one behind the other, of these numbers of iterations.
    pub fn loop_partition(
        &mut self,
        loop_: &Ref<LoopRV>,
        factors: &[Option<PrimExpr>],
    ) -> Result<Vec<Ref<LoopRV>>, StepError> {
        let factors = factors.iter().map(|f| f.clone().map_or(AttrValue::None, factor_operand));
        let inputs = [loop_operand(loop_)].into_iter().chain(factors).collect();
        self.step_loops(&KIND, inputs, vec![true.into()])
    }
}
