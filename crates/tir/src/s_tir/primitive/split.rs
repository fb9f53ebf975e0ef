//! `split`: one loop becomes several, one inside the other.
//!
//! ```text
//! for i in range(100):            for i_0, i_1 in T.grid(13, 8):
//!     B[i] = …             ->         if i_0 * 8 + i_1 < 100:
//!                                         B[i_0 * 8 + i_1] = …
//! ```
//!
//! One factor may be `None`: it becomes what is needed to cover the loop; else the factors must be known to cover it. Where the factors' product is not known to be the
//! extent exactly, the blocks inside get a condition, which is left out on request (`disable_predication`), for schedules
//! that know better. The loop must begin at zero and carry no annotation and no thread, which would get lost.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::prim::{self, PrimExpr, VarMap};

use crate::functor::substitute_stmt;
use crate::s_tir::instruction::{InstructionKind, Param, Results};
use crate::s_tir::primitive::rebind::{guard, simplify_bindings};
use crate::s_tir::state::{NodeId, Tree, replace};
use crate::s_tir::step::{Call, loop_operand};
use crate::s_tir::{LoopRV, Schedule, ScheduleError, StepError, Value};
use crate::stmt::*;

pub(in crate::s_tir) static KIND: InstructionKind = InstructionKind {
    name: "Split",
    method: "split",
    is_pure: false,
    params: &[
        Param::Input("loop"),
        Param::Inputs("factors"),
        Param::Attr("preserve_unit_iters"),
        Param::Attr("disable_predication"),
    ],
    results: Results::List,
    apply,
};

fn apply(sch: &mut Schedule, call: &mut Call<'_>) -> Result<Vec<Value>, ScheduleError> {
    let place = sch.loop_ref(&call.loop_(0)?)?;
    let loop_ = place.for_loop()?;
    let (keep_unit, unguarded) = (call.flag(0)?, call.flag(1)?);
    check_plain(&loop_)?;
    let given: Vec<Option<PrimExpr>> =
        call.inputs.get(1..).unwrap_or_default().iter().map(|f| sch.factor(f)).collect::<Result<_, _>>()?;
    let mut analyzer = analyzer_at(&place.tree, place.node);
    let dtype = counter_type(&loop_, &given);
    let factors = complete(&loop_, &given, dtype, &mut analyzer)?;
    let vars: Vec<Ref<Var>> = (0..factors.len()).map(|i| Var::prim(format!("{}_{i}", loop_.var.name), dtype)).collect();
    let zero = prim::int_of(dtype, 0);
    let value = vars.iter().zip(&factors).fold(zero, |value, (var, factor)| {
        analyzer.bind(var, prim::int_of(var.dtype(), 0), factor.clone());
        prim::add(prim::mul(value, factor.clone()), var)
    });
    let body = substitute_stmt(
        &loop_.body,
        &VarMap::from([(loop_.var.clone(), prim::cast(loop_.var.dtype(), value.clone()))]),
    );
    let condition = prim::lt(value, loop_.extent.clone());
    let body = if unguarded || analyzer.can_prove(&condition) { body } else { guard(&body, &condition) };
    let nest = vars
        .iter()
        .zip(&factors)
        .rev()
        .fold(body, |body, (var, factor)| Stmt::serial(var.clone(), factor.clone(), body));
    let nest = simplify_bindings(&nest, &place.tree, place.node, keep_unit);
    let body = replace(&sch.func(&place.func)?.body, &[(place.stmt().clone(), nest)]);
    sch.commit(&place.func, body, &[])?;
    Ok(vars.into_iter().map(|var| Value::Loop(place.func.clone(), var)).collect())
}

/// The ranges of all loops around a node.
pub(super) fn analyzer_at(tree: &Tree, node: NodeId) -> Analyzer {
    let mut analyzer = Analyzer::new();
    for id in tree.all_loops_above(node) {
        if let Some(n) = tree.as_loop(id) {
            analyzer.bind(&n.var, n.min.clone(), n.extent.clone());
            analyzer.mark_dims([&n.extent]);
        }
    }
    analyzer
}

/// Refuses a loop that carries what a new loop would lose, or that does not begin at zero.
pub(super) fn check_plain(loop_: &For) -> Result<(), ScheduleError> {
    if !loop_.annotations.is_empty() || loop_.kind == ForKind::ThreadBinding {
        let reason = format!("loop `{}` is annotated or bound to a thread", loop_.var.name);
        return Err(ScheduleError::at_loop(loop_, reason).with_help("annotate and bind loops behind split and fuse"));
    }
    if !loop_.min.is_int(0) {
        let reason = format!("loop `{}` begins at {}, not at 0", loop_.var.name, loop_.min);
        return Err(ScheduleError::at_loop(loop_, reason));
    }
    Ok(())
}

/// The loop's own type, or one that holds the factors' product where both are numbers.
fn counter_type(loop_: &For, given: &[Option<PrimExpr>]) -> DataType {
    let own = loop_.var.dtype();
    let product = given.iter().flatten().try_fold(1i64, |product, f| product.checked_mul(f.as_int()?));
    // An open factor makes it up to one multiple more than the extent.
    let padded = product.zip(loop_.extent.as_int()).and_then(|(product, extent)| product.checked_add(extent));
    if padded.is_some_and(|padded| !prim::holds(own, padded)) { DataType::int(64) } else { own }
}

/// The factors, the one that was left open filled in.
fn complete(
    loop_: &For,
    given: &[Option<PrimExpr>],
    dtype: DataType,
    analyzer: &mut Analyzer,
) -> Result<Vec<PrimExpr>, ScheduleError> {
    if given.is_empty() {
        return Err(ScheduleError::Operand("split needs at least one factor".into()));
    }
    if given.iter().filter(|f| f.is_none()).count() > 1 {
        return Err(ScheduleError::at_loop(loop_, "only one factor may be None")
            .with_help("say all factors but one; the open one covers what is left"));
    }
    let known: Vec<PrimExpr> = given.iter().flatten().map(|f| prim::cast(dtype, f.clone())).collect();
    if let Some(bad) = known.iter().find(|f| f.as_int().is_some_and(|v| v <= 0) || !f.dtype().is_integer()) {
        return Err(ScheduleError::at_loop(loop_, format!("a factor is {bad}, but factors are positive")));
    }
    analyzer.mark_dims([&loop_.extent]);
    analyzer.mark_dims(&known);
    let product = known.iter().fold(prim::int_of(dtype, 1), |p, f| prim::mul(p, f.clone()));
    if known.len() == given.len() {
        if analyzer.can_prove(&prim::ge(product.clone(), loop_.extent.clone())) {
            return Ok(known);
        }
        let is_less = analyzer.can_prove(&prim::lt(product.clone(), loop_.extent.clone()));
        let relation = if is_less { "less than" } else { "not known to cover" };
        let reason = format!("the factors' product {product} is {relation} the extent {}", loop_.extent);
        return Err(ScheduleError::at_loop(loop_, reason).with_help("leave one factor None"));
    }
    let above = prim::add(prim::cast(dtype, loop_.extent.clone()), prim::sub(product.clone(), prim::int_of(dtype, 1)));
    let open = prim::floordiv(above, product.clone());
    let open = analyzer.simplify_as_tvm(&open);
    Ok(given.iter().map(|f| f.as_ref().map_or_else(|| open.clone(), |f| prim::cast(dtype, f.clone()))).collect())
}

impl Schedule {
    /// Splits a loop by factors, outermost first; one may be open. Loops of extent one that the factors make stay.
    pub fn split(&mut self, loop_: &Ref<LoopRV>, factors: &[Option<PrimExpr>]) -> Result<Vec<Ref<LoopRV>>, StepError> {
        let factors = factors.iter().map(|f| f.clone().map_or(AttrValue::None, factor_operand));
        let inputs = [loop_operand(loop_)].into_iter().chain(factors).collect();
        self.step_loops(&KIND, inputs, vec![true.into(), false.into()])
    }
}

/// A factor as an operand: a literal is a number, as traces write it.
pub(super) fn factor_operand(factor: PrimExpr) -> AttrValue {
    factor.as_int().map_or(AttrValue::Prim(factor), AttrValue::Int)
}
