//! A function of the program read as a loop.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{BinaryOp, PrimExpr};
use relaxide_ir::{Type, Var};

use super::super::private_calls::callee;
use super::{ROWS_APPEND, external};
use crate::op::core::CallTir;
use crate::*;

/// What a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ParameterRole {
    /// The shape with the number of the iteration and the dimensions of the outside.
    At,
    /// What an iteration gives to the next.
    State,
    /// A list of rows.
    List,
    /// The same in all iterations.
    Same,
}

/// A row that each iteration adds to a list.
pub(super) struct Row {
    /// The parameter of the list.
    pub(super) list: usize,
    /// The row.
    pub(super) row: AnyVar,
}

/// A loop.
pub(super) struct Loop {
    /// The number of the iteration, then what the caller hands over.
    pub(super) dims: Vec<Ref<Var>>,
    /// How many iterations there are: one of those.
    pub(super) limit: Ref<Var>,
    pub(super) params: Vec<Ref<Var>>,
    pub(super) parts: Vec<ParameterRole>,
    /// What an iteration computes: calls of kernels and fields of what they give.
    pub(super) bindings: Vec<Ref<VarBinding>>,
    /// What the next iteration gets, for each parameter.
    pub(super) next: Vec<Expr>,
    pub(super) rows: Vec<Row>,
    /// Which parameters are the result.
    pub(super) results: Vec<usize>,
    pub(super) name: String,
}

impl Loop {
    /// Reads a function; `None` where it is none of those that can be a kernel.
    pub(super) fn of(name: &str, func: &Function) -> Option<Loop> {
        let Type::Shape(at) = &func.params.first()?.ty else { return None };
        let dims: Vec<Ref<Var>> =
            at.values.as_ref()?.iter().map(|d| d.as_var().cloned()).collect::<Option<Vec<_>>>()?;
        let bindings = plain(&func.body)?;
        let [(var, Expr::If(choice))] = bindings.as_slice() else { return None };
        if func.body.body.as_var().as_ref() != Some(var) {
            return None;
        }
        let limit = limit_of(&choice.condition, dims.first()?)?;
        if !dims[1..].contains(&limit) {
            return None;
        }
        let results = results_of(&choice.false_branch, &func.params)?;
        let mut iteration = plain(&choice.true_branch)?;
        // The last thing that happens is the call; what it gives is the result.
        let mut result = choice.true_branch.body.as_var()?;
        let again = loop {
            let (var, value) = iteration.pop()?;
            if var != result {
                return None;
            }
            match value.as_var() {
                Some(renamed) => result = renamed,
                None => break value,
            }
        };
        let (call, own) = callee(&again)?;
        let moves_on = |(i, arg): (usize, &PrimExpr)| match i {
            0 => is_next(arg, &dims[0]),
            _ => arg.as_var() == Some(&dims[i]),
        };
        match call.args.first()? {
            Expr::Shape(at) if own == name && at.values.len() == dims.len() => {
                at.values.iter().enumerate().all(moves_on).then_some(())?;
            }
            _ => return None,
        }
        let (mut rows, mut bindings) = (Vec::new(), Vec::new());
        for (var, value) in iteration {
            match &value {
                Expr::Call(call) if external(call) == Some(ROWS_APPEND) => {
                    let [list, row] = call.args.as_slice() else { return None };
                    let list = param_of(list, &func.params)?;
                    rows.push(Row { list, row: row.as_var()? });
                }
                _ if CallTir::of(&value).is_some() || matches!(value, Expr::TupleGetItem(_)) => {
                    bindings.push(Ref::new(VarBinding { var, value }));
                }
                _ => return None,
            }
        }
        let part = |(i, param): (usize, &Ref<Var>)| match () {
            () if i == 0 => Some(ParameterRole::At),
            () if rows.iter().any(|row| row.list == i) => Some(ParameterRole::List),
            () if param_of(call.args.get(i)?, std::slice::from_ref(param)).is_some() => Some(ParameterRole::Same),
            () => Some(ParameterRole::State),
        };
        let parts = func.params.iter().enumerate().map(part).collect::<Option<Vec<_>>>()?;
        let kept = |row: &Row| param_of(&call.args[row.list], &func.params) == Some(row.list);
        let once = |row: &Row| rows.iter().filter(|other| other.list == row.list).count() == 1;
        if call.args.len() != func.params.len() || !rows.iter().all(|row| kept(row) && once(row)) {
            return None;
        }
        let (params, next, name) = (func.params.clone(), call.args.clone(), name.to_string());
        Some(Loop { dims, limit, params, parts, bindings, next, rows, results, name })
    }
}

/// The bindings of a sequence, none of which is a check.
fn plain(seq: &SeqExpr) -> Option<Vec<(AnyVar, Expr)>> {
    let one = |binding: &Binding| match binding {
        Binding::Var(bound) => Some((bound.var.clone(), bound.value.clone())),
        Binding::MatchCast(_) => None,
    };
    seq.blocks.iter().flat_map(|block| &block.bindings).map(one).collect()
}

/// `m`, where a condition is `i < m`.
fn limit_of(condition: &Expr, index: &Ref<Var>) -> Option<Ref<Var>> {
    let Expr::Prim(condition) = condition else { return None };
    let PrimExpr::Binary(less) = &condition.value else { return None };
    (less.op == BinaryOp::Lt && less.a.as_var() == Some(index)).then(|| less.b.as_var().cloned()).flatten()
}

/// Whether an expression is `i + 1`.
fn is_next(e: &PrimExpr, index: &Ref<Var>) -> bool {
    match e {
        PrimExpr::Binary(sum) if sum.op == BinaryOp::Add => sum.a.as_var() == Some(index) && sum.b.is_int(1),
        _ => false,
    }
}

/// Which parameter an operand is.
fn param_of(e: &Expr, params: &[Ref<Var>]) -> Option<usize> {
    match e {
        Expr::Var(var) => params.iter().position(|param| param == var),
        _ => None,
    }
}

/// The parameters that a branch gives back.
fn results_of(seq: &SeqExpr, params: &[Ref<Var>]) -> Option<Vec<usize>> {
    let bindings = plain(seq)?;
    let tuple = match (bindings.as_slice(), &seq.body) {
        ([], Expr::Tuple(tuple)) => tuple.clone(),
        ([(var, Expr::Tuple(tuple))], body) if body.as_var().as_ref() == Some(var) => tuple.clone(),
        _ => return None,
    };
    tuple.fields.iter().map(|field| param_of(field, params)).collect()
}
