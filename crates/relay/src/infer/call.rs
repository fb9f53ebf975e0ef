//! Calls: of functions, constructors and operators.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::{Span, Var as RxVar};
use relaxide_relax as rx;

use super::Inference;
use super::unify::raw_text;
use crate::convert::{NotOfTensors, from_relax, to_relax};
use crate::op::{self, LowerCx, LowerError, Mapping, NewDims, OpDef};
use crate::*;

/// A relation that waits for types.
pub(super) enum PendingRelation {
    /// A call of an operator.
    Op { call: Ref<Call>, def: &'static OpDef, args: Vec<Type>, result: Type },
    /// A field of a tuple.
    Field { get: Ref<TupleGetItem>, tuple: Type, result: Type },
}

impl PendingRelation {
    pub fn span(&self) -> Option<&Ref<Span>> {
        match self {
            PendingRelation::Op { call, .. } => call.span.as_ref(),
            PendingRelation::Field { get, .. } => get.span.as_ref(),
        }
    }
}

impl Inference<'_> {
    /// Tries what waits until nothing changes.
    pub(super) fn solve(&mut self) {
        loop {
            let (before, waiting) = (self.waiting.len(), std::mem::take(&mut self.waiting));
            for relation in waiting {
                self.try_relation(relation);
            }
            if self.waiting.len() == before || self.waiting.is_empty() {
                return;
            }
        }
    }

    fn try_relation(&mut self, relation: PendingRelation) {
        match relation {
            PendingRelation::Op { call, def, args, result } => {
                let args: Vec<Type> = args.iter().map(|ty| self.solver.resolve(ty)).collect();
                if args.iter().any(Type::is_open) {
                    self.waiting.push(PendingRelation::Op { call, def, args, result });
                    return;
                }
                if let Some(ty) = self.op_type(&call, def, &args) {
                    self.unify(&result, &ty, call.span.as_ref());
                }
            }
            PendingRelation::Field { get, tuple, result } => match self.solver.resolve(&tuple) {
                Type::Incomplete(_) => self.waiting.push(PendingRelation::Field { get, tuple, result }),
                Type::Tuple(ty) => match usize::try_from(get.index).ok().and_then(|i| ty.fields.get(i)) {
                    Some(field) => {
                        self.unify(&result, field, get.span.as_ref());
                    }
                    None => {
                        let message = format!("a tuple of {} fields has no field {}", ty.fields.len(), get.index);
                        self.error(message, get.span.as_ref());
                    }
                },
                other => {
                    let message =
                        format!("TupleGetItem expect input type to be TupleType  get {} instead", raw_text(&other));
                    self.error(message, get.span.as_ref());
                }
            },
        }
    }

    pub(super) fn call(&mut self, call: &Ref<Call>) -> Type {
        if let Expr::Op(op) = &call.op {
            return self.op_call(call, &op.name);
        }
        if let Some(named) = self.operator_call(call) {
            return self.call(&named);
        }
        let callee = self.expr(&call.op);
        let args: Vec<Type> = call.args.iter().map(|e| self.expr(e)).collect();
        let span = call.span.as_ref();
        let callee = match (self.solver.resolve(&callee), call.type_args.as_slice()) {
            (Type::Func(f), given) if !given.is_empty() && given.len() == f.type_params.len() => {
                let args = f.args.iter().map(|ty| ty.substitute(&f.type_params, given)).collect::<Vec<_>>();
                Type::func(args, f.ret.substitute(&f.type_params, given))
            }
            (ty, _) => self.instantiate(&ty),
        };
        match &callee {
            Type::Func(f) => {
                if f.args.len() != args.len() {
                    let many = if args.len() > f.args.len() { "too many" } else { "too few" };
                    let (expected, found) = (f.args.len(), args.len());
                    self.error(
                        format!("the function is provided {many} arguments expected {expected}, found {found}"),
                        span,
                    );
                    return f.ret.clone();
                }
                for (wanted, given) in f.args.iter().zip(&args) {
                    self.unify(wanted, given, span);
                }
                f.ret.clone()
            }
            Type::Incomplete(_) => {
                let ret = Type::fresh();
                self.unify(&callee, &Type::func(args, ret.clone()), span);
                ret
            }
            other => {
                let message = format!("only expressions with function types can be called, found {}", raw_text(other));
                self.error(message, span);
                Type::fresh()
            }
        }
    }

    fn op_call(&mut self, call: &Ref<Call>, name: &str) -> Type {
        let args: Vec<Type> = call.args.iter().map(|e| self.expr(e)).collect();
        let Some(def) = op::lookup(name) else {
            self.error(format!("operator `{name}` not found, perhaps you forgot to register it?"), call.span.as_ref());
            return Type::fresh();
        };
        let wanted = def.args.len();
        let optional = matches!(name, "nn.pad" | "strided_set" | "nn.nll_loss" | "vision.get_valid_counts");
        if wanted > 0
            && args.len() != wanted
            && !(optional && args.len() < wanted)
            && !matches!(def.mapping, Mapping::Machine)
        {
            let many = if args.len() > wanted { "too many" } else { "too few" };
            let found = args.len();
            let message = format!("the function is provided {many} arguments expected {wanted}, found {found}");
            self.error(message, call.span.as_ref());
            return Type::fresh();
        }
        let args: Vec<Type> = args.iter().map(|ty| self.solver.resolve(ty)).collect();
        if args.iter().any(Type::is_open) {
            let result = Type::fresh();
            self.waiting.push(PendingRelation::Op { call: call.clone(), def, args, result: result.clone() });
            return result;
        }
        self.op_type(call, def, &args).unwrap_or_else(Type::fresh)
    }

    /// The type of an operator's call: what its definition computes on arguments of these types.
    fn op_type(&mut self, call: &Ref<Call>, def: &'static OpDef, args: &[Type]) -> Option<Type> {
        let result = match def.mapping {
            Mapping::Machine => machine_type(def.name, call, args),
            _ => op_result_type(call, def, args),
        };
        match result {
            Ok(ty) => Some(ty),
            Err(message) => {
                self.error(message, call.span.as_ref());
                None
            }
        }
    }
}

/// Why an operator's call has no type.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error(transparent)]
    Build(#[from] rx::builder::BuildError),
    #[error(transparent)]
    Lower(#[from] LowerError),
    #[error(transparent)]
    NotOfTensors(#[from] NotOfTensors),
    #[error("{0}: the rank of the result is not known before the program runs")]
    NoRank(&'static str),
    #[error("{0} takes an argument")]
    NoArgument(&'static str),
    #[error("memory.alloc_tensor needs assert_shape")]
    NoShape,
    #[error("{name} takes a {wanted}, not {found}")]
    Argument { name: &'static str, wanted: &'static str, found: Type },
}

/// The type of a call, by way of Relax.
pub(crate) fn op_result_type(call: &Call, def: &'static OpDef, args: &[Type]) -> Result<Type, CallError> {
    let mut builder = rx::BlockBuilder::new();
    builder.begin_scope();
    builder.begin_dataflow()?;
    let mut operands = Vec::new();
    for (expr, ty) in call.args.iter().zip(args) {
        operands.push(operand(expr, ty)?);
    }
    let lowered =
        LowerCx { builder: &mut builder, def, args: operands, attrs: &call.attrs, dims: NewDims::Type }.lower();
    from_relax(&lowered?.ty()).ok_or(CallError::NoRank(def.name))
}

/// An argument for Relax: its value if it is a constant, else a variable of its type.
fn operand(expr: &Expr, ty: &Type) -> Result<rx::Expr, NotOfTensors> {
    match (expr, ty) {
        (Expr::Constant(c), _) => Ok(rx::Expr::constant(c.data.clone())),
        (Expr::Tuple(t), Type::Tuple(types)) => {
            let fields =
                t.fields.iter().zip(&types.fields).map(|(e, ty)| operand(e, ty)).collect::<Result<Vec<_>, _>>()?;
            Ok(rx::Expr::tuple(fields))
        }
        _ => Ok(RxVar::new("x", to_relax(ty)?).into()),
    }
}

/// The types of what the machine does itself.
fn machine_type(name: &'static str, call: &Call, args: &[Type]) -> Result<Type, CallError> {
    let first = || args.first().cloned().ok_or(CallError::NoArgument(name));
    match name {
        "on_device" | "device_copy" | "debug" => first(),
        "memory.alloc_storage" => Ok(Type::data("Storage", [])),
        "memory.alloc_tensor" => {
            let dtype = call.attrs.dtype("dtype").unwrap_or(DataType::float(32));
            let shape = call.attrs.ints("assert_shape").ok_or(CallError::NoShape)?;
            Ok(Type::tensor(shape, dtype))
        }
        "vm.reshape_tensor" => match first()? {
            Type::Tensor(t) => Ok(Type::tensor(call.attrs.ints("newshape").unwrap_or_default(), t.dtype)),
            found => Err(CallError::Argument { name, wanted: "tensor", found }),
        },
        "call_lowered" => match first()? {
            Type::Func(f) => Ok(f.ret.clone()),
            found => Err(CallError::Argument { name, wanted: "function", found }),
        },
        _ => Ok(Type::tuple([])),
    }
}
