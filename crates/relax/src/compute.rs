//! Operators as computes: what a call computes on tensors of the compute language, without a kernel around it.
//!
//! A program over operators and one over computes describe the same numbers; this is the way from the first to the second, for
//! those who write kernels of their own and want an operator as a part of one. An operator that is made of others is decomposed.
//! Operators without a compute (those of the language itself, VM builtins) are refused.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_tir::te;

use crate::BuildError;
use crate::constant::as_scalar;
use crate::op::{CallCx, Lowering, OpError, lookup};
use crate::shape::broadcast_index;
use crate::{AnyVar, Binding, BlockBuilder, Call, Expr, SeqExpr};
use relaxide_ir::Type;
use relaxide_ir::prim::PrimExpr;

/// The tensors that variables stand for; several where a variable is a tuple.
pub type Tensors = HashMap<AnyVar, Vec<te::Tensor>>;

/// The tensors of an expression over variables that stand for tensors.
pub fn tensors_of(expr: &Expr, known: &mut Tensors) -> Result<Vec<te::Tensor>, BuildError> {
    match expr {
        Expr::Var(var) => found(&AnyVar::Var(var.clone()), known),
        Expr::DataflowVar(var) => found(&AnyVar::Dataflow(var.clone()), known),
        Expr::Tuple(tuple) => {
            let mut all = Vec::new();
            for field in &tuple.fields {
                all.extend(tensors_of(field, known)?);
            }
            Ok(all)
        }
        Expr::TupleGetItem(item) => {
            let fields = tensors_of(&item.tuple, known)?;
            let field = usize::try_from(item.index).ok().and_then(|at| fields.get(at).cloned());
            field.map(|field| vec![field]).ok_or_else(|| refused("a tuple", "has no such field"))
        }
        Expr::Constant(constant) => match as_scalar(&constant.value) {
            Some(value) => {
                let dims: Vec<PrimExpr> = constant.value.shape().iter().map(|dim| (*dim).into()).collect();
                Ok(vec![te::compute("const", &dims, |_| value)])
            }
            None => Err(refused("a constant", "of several elements is no part of a compute; make it an input")),
        },
        Expr::Seq(seq) => sequence(seq, known),
        Expr::Call(call) => operator(call, known),
        _ => Err(refused("an argument", "is no tensor of a compute")),
    }
}

fn refused(what: &str, why: &str) -> BuildError {
    OpError::unsupported(what, why).into()
}

fn found(var: &AnyVar, known: &Tensors) -> Result<Vec<te::Tensor>, BuildError> {
    known.get(var).cloned().ok_or_else(|| refused("a variable", "stands for no tensor of the compute"))
}

/// The tensors of a sequence: its bindings in order.
fn sequence(seq: &Ref<SeqExpr>, known: &mut Tensors) -> Result<Vec<te::Tensor>, BuildError> {
    for binding in seq.blocks.iter().flat_map(|block| &block.bindings) {
        let (var, value) = match binding {
            Binding::Var(bound) => (bound.var.clone(), &bound.value),
            Binding::MatchCast(bound) => (bound.var.clone(), &bound.value),
        };
        // Shapes and numbers are no tensors; operators read them from their arguments.
        if has_tensors(&value.ty()) {
            let tensors = tensors_of(value, known)?;
            known.insert(var, tensors);
        }
    }
    tensors_of(&seq.body, known)
}

fn has_tensors(ty: &Type) -> bool {
    match ty {
        Type::Tensor(_) => true,
        Type::Tuple(tuple) => tuple.fields.iter().any(has_tensors),
        _ => false,
    }
}

/// The tensors that a call of an operator computes.
fn operator(call: &Ref<Call>, known: &mut Tensors) -> Result<Vec<te::Tensor>, BuildError> {
    let name = call.op_name().ok_or_else(|| refused("a call", "of a function is no compute"))?;
    let def = lookup(name).ok_or_else(|| OpError::Unknown(name.to_string()))?;
    let cx = CallCx::of(def, call);
    let short = def.name.rsplit('.').next().unwrap_or(def.name);
    match def.lower {
        Lowering::Compute(compute) => {
            let mut tensors = Vec::new();
            for arg in call.args.iter().filter(|arg| has_tensors(&arg.ty())) {
                tensors.extend(tensors_of(arg, known)?);
            }
            Ok(compute(&cx, &tensors)?)
        }
        Lowering::Scalar(scalar) => {
            let operands = call.args.iter().map(|arg| operands(arg, known)).collect::<Result<Vec<_>, _>>()?;
            let dims = call.ty.as_tensor().and_then(|ty| ty.shape.clone());
            let dims = dims.ok_or_else(|| refused(def.name, "has a result of unknown shape"))?;
            Ok(vec![scalar_compute(short, &cx, scalar, &operands, &dims)?])
        }
        Lowering::Decompose(open) => {
            let mut builder = BlockBuilder::new();
            builder.begin_scope();
            let body = open(&cx, &mut builder)?;
            let seq = builder.end_scope(body)?;
            sequence(&seq, known)
        }
        Lowering::Builtin(_) | Lowering::Special => Err(refused(def.name, "has no compute")),
    }
}

/// What an argument is to an element-wise compute.
fn operands(arg: &Expr, known: &mut Tensors) -> Result<Vec<Operand>, BuildError> {
    match arg {
        Expr::Prim(prim) => Ok(vec![Operand::Scalar(prim.value.clone())]),
        Expr::Constant(constant) if constant.value.ndim() == 0 => {
            Ok(as_scalar(&constant.value).map(Operand::Scalar).into_iter().collect())
        }
        _ if has_tensors(&arg.ty()) => Ok(tensors_of(arg, known)?.into_iter().map(Operand::Tensor).collect()),
        _ => Ok(Vec::new()),
    }
}

/// What an argument is to a compute.
pub(crate) enum Operand {
    /// A tensor, whose elements the compute reads.
    Tensor(te::Tensor),
    /// A number.
    Scalar(PrimExpr),
}

impl Operand {
    /// The tensor, if it is one.
    pub(crate) fn tensor(&self) -> Option<&te::Tensor> {
        match self {
            Operand::Tensor(t) => Some(t),
            Operand::Scalar(_) => None,
        }
    }
}

/// The compute of an element-wise operator over its broadcast operands.
pub(crate) fn scalar_compute(
    name: &str,
    cx: &CallCx,
    f: fn(&CallCx, &[PrimExpr]) -> Result<PrimExpr, OpError>,
    operands: &[Vec<Operand>],
    dims: &[PrimExpr],
) -> Result<te::Tensor, OpError> {
    let mut failed = None;
    let tensor = te::compute(format!("T_{name}"), dims, |axes| {
        let values: Vec<PrimExpr> = operands
            .iter()
            .flatten()
            .map(|operand| match operand {
                Operand::Scalar(value) => value.clone(),
                Operand::Tensor(t) => t.at(&broadcast_index(t.shape(), axes, dims)),
            })
            .collect();
        f(cx, &values).unwrap_or_else(|e| {
            failed = Some(e);
            PrimExpr::from(0)
        })
    });
    failed.map_or(Ok(tensor), Err)
}
