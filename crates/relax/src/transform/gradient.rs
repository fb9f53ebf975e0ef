//! Gradient: a function that computes the derivatives of another one's result by its parameters.
//!
//! ```text
//! def main(x, w):                    def main_adjoint(x, w):
//!     lv = R.matmul(x, w)                lv = R.matmul(x, w)
//!     gv = R.sum(lv)                     gv = R.sum(lv)
//!     return gv                          gv_adjoint = R.ones((), "float32")
//!                              →         lv_adjoint = R.broadcast_to(gv_adjoint, …)
//!                                        x_adjoint = R.matmul(lv_adjoint, R.permute_dims(w))
//!                                        w_adjoint = R.matmul(R.permute_dims(x), lv_adjoint)
//!                                        return (gv, (x_adjoint, w_adjoint))
//! ```
//!
//! Reverse-mode differentiation: the bindings are walked backwards; a variable's *adjoint* is the derivative of the target
//! by it, and each operator's row says what it adds to the adjoints of its arguments. The new function is called
//! `<name>_adjoint` and returns what the old one does and a tuple of the derivatives.
//!
//! **Needs** a body of one dataflow block whose result is a scalar floating-point tensor, or a tuple with one at
//! `target_index`. A program in which operators are composed of others for inference goes through
//! `DecomposeOpsForTraining` first.
//!
//! **Refuses** control flow, a target that is no scalar tensor, a parameter that is no floating-point tensor where its
//! derivative is wanted, and an operator on the way that has no derivative.
//!
//! What is marked as a stage ([`checkpoints`](super::checkpoints)) is computed again where derivatives need it; the marks vanish.
//!
//! A program may say derivatives itself ([`GradientOptions::custom`]), of operators that have one or none, and of `call_tir_with_grad`,
//! which becomes a plain `call_tir` in the new function.
//!
//! **Differs from TVM** in the order of bindings: a part of a derivative stands in front of where it is used, and parts
//! that nothing needs are not made.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::pass::{ParamDefault, ParamKind, Pass, PassError, PassInfo, PassParam, PassResult};
use relaxide_ir::{AttrValue, Attrs, IRModule, Type};

use super::checkpoints::Checkpoints;
use super::dead_code::remove_unused;
use super::fresh::fresh_copy;
use super::fuse_by_pattern::strings;
use crate::op::{CallCx, GradCx};
use crate::rewrite::in_function;
use crate::*;

const NAME: &str = "Gradient";

pub(super) const PASS: PassInfo =
    PassInfo::new(NAME, "Adds a function that computes derivatives of another one's result.", |module, _, args| {
        gradient(
            module,
            &GradientOptions {
                func_name: args.str("func_name").unwrap_or_default().to_string(),
                require_grads: args.get("require_grads").map(|v| strings(Some(v))),
                target_index: args.int("target_index").unwrap_or(0),
                custom: HashMap::new(),
            },
        )
    })
    .params(&[
        PassParam::required("func_name", ParamKind::Str, "The function."),
        PassParam::optional(
            "require_grads",
            ParamKind::Strs,
            "The parameters by which it is derived; all, where nothing is said.",
        ),
        PassParam::new("target_index", ParamKind::Int, ParamDefault::Int(0), "Which of several results is derived."),
    ]);

/// A derivative that the program says: the gradient of each argument of a call, given its result and that one's gradient; `None` where
/// none flows into an argument.
pub type CustomGradient =
    dyn Fn(&mut BlockBuilder, &AnyVar, &Ref<Call>, &Expr) -> Result<Vec<Option<Expr>>, PassError> + Send + Sync;

/// Options of the pass.
#[derive(Clone, Default)]
pub struct GradientOptions {
    /// The function.
    pub func_name: String,
    /// The parameters by which it is derived; all, where nothing is said.
    pub require_grads: Option<Vec<String>>,
    /// Which of several results is derived.
    pub target_index: i64,
    /// Derivatives of the program's own, by the operators' names, with or without the prefix `relax.`.
    pub custom: HashMap<String, Arc<CustomGradient>>,
}

/// The pass with options.
pub fn gradient_with(options: GradientOptions) -> Pass {
    Pass::new(NAME, move |module, _| gradient(module, &options))
}

/// Adds the function `<name>_adjoint`.
fn gradient(module: IRModule, options: &GradientOptions) -> PassResult {
    let name = options.func_name.as_str();
    let Some(func) = module.get_as::<Function>(name) else {
        return Err(PassError::arguments(NAME, format!("the module has no Relax function {name:?}")));
    };
    let func = fresh_copy(&func);
    let mut failed = None;
    let mut b = BlockBuilder::with_module(module);
    let made = adjoint(&mut b, &func, options, &mut failed);
    let made = made.map_err(|e| failed.unwrap_or_else(|| in_function(NAME, name, e)))?;
    let mut module = b.finish();
    let name = module.fresh_name(&format!("{name}_adjoint"));
    let mut attrs = made.attrs.clone();
    if attrs.0.contains_key("global_symbol") {
        attrs = attrs.with("global_symbol", name.as_str());
    }
    module.insert(name, Ref::new(Function { attrs, ..Function::clone(&made) }));
    Ok(module)
}

fn refuse<T>(message: impl Into<String>) -> Result<T, BuildError> {
    Err(BuildError::Program(message.into()))
}

fn adjoint(
    b: &mut BlockBuilder,
    func: &Ref<Function>,
    options: &GradientOptions,
    failed: &mut Option<PassError>,
) -> Result<Ref<Function>, BuildError> {
    let [block] = func.body.blocks.as_slice() else { return refuse("the body must be one dataflow block") };
    if !block.dataflow {
        return refuse("the body must be one dataflow block; ConvertToDataflow makes it one where nothing has effects");
    }
    let wanted = wanted(func, block, options.require_grads.as_deref())?;
    func.params.iter().for_each(|p| b.reserve(&p.name));
    functor::bound_names(&func.body).iter().for_each(|n| b.reserve(n));
    b.begin_scope();
    b.begin_dataflow()?;
    let (bindings, mut checkpoints) = Checkpoints::of(&block.bindings);
    let result = checkpoints.unmarked(&func.body.body);
    for binding in &bindings {
        b.push_binding(without_gradient(binding)?)?;
    }
    let custom = options.custom.iter().map(|(name, rule)| (name.trim_start_matches("relax."), &**rule)).collect();
    let target = target(&result, options.target_index)?;
    let wanted: Vec<Expr> = wanted.into_iter().map(|var| checkpoints.unmarked(&var.into())).collect();
    let mut reverse = Reverse { b, adjoints: HashMap::new(), checkpoints, custom, failed };
    reverse.start(&target)?;
    for binding in bindings.iter().rev() {
        reverse.binding(binding)?;
    }
    let mut outputs = Vec::with_capacity(wanted.len());
    for value in wanted {
        let Some(var) = value.as_var() else { return refuse("there is no derivative by what is marked of a constant") };
        outputs.push(reverse.output(&var)?);
    }
    b.end_dataflow()?;
    let body = b.end_scope(Expr::tuple([result, Expr::tuple(outputs)]))?;
    let new = Ref::new(Function { ret_ty: body.body.ty(), body, ..Function::clone(func) });
    Ok(remove_unused(&new))
}

/// A binding in which a kernel's call says nothing of its gradient.
fn without_gradient(binding: &Binding) -> Result<Binding, BuildError> {
    let (Binding::Var(bound), Some((call, "call_tir_with_grad"))) = (binding, binding.value().as_op_call()) else {
        return Ok(binding.clone());
    };
    let value = op::call_typed("call_tir", call.args.clone(), Attrs::new(), call.ty_args.clone())?;
    Ok(Binding::Var(Ref::new(VarBinding { var: bound.var.clone(), value })))
}

/// The variable that is derived.
fn target(result: &Expr, index: i64) -> Result<AnyVar, BuildError> {
    let target = match result {
        Expr::Tuple(tuple) => match usize::try_from(index).ok().and_then(|i| tuple.fields.get(i)) {
            Some(field) => field.as_var(),
            None => return refuse(format!("the function has no result {index}: it has {}", tuple.fields.len())),
        },
        _ if index != 0 => return refuse(format!("the function has one result, and no result {index}")),
        _ => result.as_var(),
    };
    let Some(target) = target else { return refuse("the result that is derived must be a variable") };
    match target.ty() {
        Type::Tensor(t) if t.ndim == 0 && t.dtype.code == DataType::FLOAT => Ok(target),
        ty => refuse(format!(
            "only a scalar floating-point tensor is derived; `{}` is {}",
            target.name(),
            display::type_text(ty)
        )),
    }
}

/// The parameters, and the variables of the block, by which the target is derived.
fn wanted(func: &Function, block: &BindingBlock, wanted: Option<&[String]>) -> Result<Vec<AnyVar>, BuildError> {
    let mut known = func.params.iter().map(|p| AnyVar::Var(p.clone())).collect::<Vec<_>>();
    let params: Vec<AnyVar> = match wanted {
        None => known,
        Some(names) => {
            known.extend(block.bindings.iter().map(|binding| binding.var().clone()));
            let find = |name: &String| match known.iter().find(|var| var.name() == name) {
                Some(var) => Ok(var.clone()),
                None => refuse(format!("there is no parameter and no variable `{name}`")),
            };
            names.iter().map(find).collect::<Result<_, _>>()?
        }
    };
    let is_float = |ty: &Type| matches!(ty, Type::Tensor(t) if t.dtype.code == DataType::FLOAT && t.shape.is_some());
    fn holds(ty: &Type, is_float: &dyn Fn(&Type) -> bool) -> bool {
        match ty {
            Type::Tuple(t) => t.fields.iter().all(|f| holds(f, is_float)),
            ty => is_float(ty),
        }
    }
    match params.iter().find(|p| !holds(p.ty(), &is_float)) {
        Some(param) => refuse(format!(
            "`{}` is {}: only floating-point tensors of known shape have derivatives; name the others in \
             require_grads",
            param.name(),
            display::type_text(param.ty())
        )),
        None => Ok(params),
    }
}

/// A part of a derivative: a value, or a field of another part. It is bound when it is read first, and then once.
struct DerivativePart {
    bound: RefCell<Option<Expr>>,
    value: DerivativeValue,
}

enum DerivativeValue {
    Whole(Expr),
    Field(Rc<DerivativePart>, usize),
}

impl DerivativePart {
    fn of(value: Expr) -> Rc<DerivativePart> {
        Rc::new(DerivativePart { bound: RefCell::new(None), value: DerivativeValue::Whole(value) })
    }

    fn field(self: &Rc<DerivativePart>, i: usize) -> Rc<DerivativePart> {
        match &self.value {
            DerivativeValue::Whole(Expr::Tuple(tuple)) if i < tuple.fields.len() => {
                DerivativePart::of(tuple.fields[i].clone())
            }
            _ => Rc::new(DerivativePart { bound: RefCell::new(None), value: DerivativeValue::Field(self.clone(), i) }),
        }
    }

    /// What it is.
    fn value(&self, b: &mut BlockBuilder) -> Result<Expr, BuildError> {
        if let Some(bound) = &*self.bound.borrow() {
            return Ok(bound.clone());
        }
        match &self.value {
            DerivativeValue::Whole(value) => Ok(value.clone()),
            DerivativeValue::Field(of, i) => Ok(Expr::field(of.operand(b)?, *i)),
        }
    }

    /// The same as an operand.
    fn operand(&self, b: &mut BlockBuilder) -> Result<Expr, BuildError> {
        let value = self.value(b)?;
        let bound = b.normalize_arg(value)?;
        *self.bound.borrow_mut() = Some(bound.clone());
        Ok(bound)
    }
}

struct Reverse<'a> {
    b: &'a mut BlockBuilder,
    /// The derivative of the target by each variable, so far: an operand.
    adjoints: HashMap<AnyVar, Expr>,
    /// What derivatives compute again.
    checkpoints: Checkpoints,
    /// Derivatives of the program's own, by the operators' names.
    custom: HashMap<&'a str, &'a CustomGradient>,
    /// What one of those refused.
    failed: &'a mut Option<PassError>,
}

impl Reverse<'_> {
    fn start(&mut self, target: &AnyVar) -> Result<(), BuildError> {
        let ones = filled("ones", target.ty())?;
        let ones = self.b.emit_named(&format!("{}_adjoint", target.name()), ones)?;
        self.adjoints.insert(target.clone(), ones);
        Ok(())
    }

    fn binding(&mut self, binding: &Binding) -> Result<(), BuildError> {
        let Some(grad) = self.adjoints.get(binding.var()).cloned() else { return Ok(()) };
        match binding.value() {
            Expr::Call(call) => self.call(binding.var(), call, grad),
            Expr::TupleGetItem(item) => self.field(item, grad),
            value @ (Expr::Tuple(_) | Expr::Var(_) | Expr::DataflowVar(_)) => {
                self.add(value, &DerivativePart::of(grad))
            }
            Expr::Constant(_) | Expr::Prim(_) | Expr::Shape(_) => Ok(()),
            _ => refuse(format!("`{}` is bound to what has no derivative", binding.var().name())),
        }
    }

    fn call(&mut self, var: &AnyVar, call: &Ref<Call>, grad: Expr) -> Result<(), BuildError> {
        let at = |what: &str| format!("at `{}`: {what}", var.name());
        let Some(def) = call.op_name().and_then(op::lookup) else {
            return refuse(at("only calls of operators have derivatives; legalize and fuse afterwards"));
        };
        let custom = self.custom.get(def.name).copied();
        if def.gradient.is_none() && custom.is_none() {
            return refuse(at(&format!("operator `{}` has no derivative", def.name)));
        }
        let seen = self.checkpoints.recomputed_call(self.b, call)?;
        let output = self.checkpoints.recomputed(self.b, &var.clone().into())?;
        let grads = match (custom, def.gradient) {
            (Some(custom), _) => self.said(custom, &output.as_var().unwrap_or_else(|| var.clone()), &seen, &grad)?,
            (None, Some(rule)) => self.derived(rule, def, &output, &seen, &grad)?,
            (None, None) => Vec::new(),
        };
        for (arg, grad) in call.args.iter().zip(grads) {
            if let Some(grad) = grad {
                self.add(arg, &DerivativePart::of(grad))?;
            }
        }
        Ok(())
    }

    /// What the program says of a call.
    fn said(
        &mut self,
        rule: &CustomGradient,
        var: &AnyVar,
        call: &Ref<Call>,
        grad: &Expr,
    ) -> Result<Vec<Option<Expr>>, BuildError> {
        let given = rule(self.b, var, call, grad).map_err(|error| {
            let why = BuildError::Program(error.to_string());
            *self.failed = Some(error);
            why
        })?;
        if given.len() == call.args.len() {
            return Ok(given);
        }
        refuse(format!(
            "at `{}`: its operator's derivative gives {} gradients for {} arguments",
            var.name(),
            given.len(),
            call.args.len()
        ))
    }

    /// What the operator's own rule says of a call.
    fn derived(
        &mut self,
        rule: op::Gradient,
        def: &'static op::OpDef,
        output: &Expr,
        call: &Ref<Call>,
        grad: &Expr,
    ) -> Result<Vec<Option<Expr>>, BuildError> {
        let cx = GradCx { call: CallCx::of(def, call), output, grad };
        rule(&cx, self.b)
    }

    /// Adds to one field of the adjoint of a tuple, which is zeros elsewhere if nothing has been added yet.
    fn field(&mut self, item: &TupleGetItem, grad: Expr) -> Result<(), BuildError> {
        let (Some(tuple), Ok(index)) = (item.tuple.as_var(), usize::try_from(item.index)) else { return Ok(()) };
        let Type::Tuple(ty) = tuple.ty().clone() else { return refuse("a field is taken from what is no tuple") };
        let fields = match self.adjoints.get(&tuple).cloned() {
            Some(known) => {
                let (known, mut fields) = (DerivativePart::of(known), Vec::with_capacity(ty.fields.len()));
                for (i, ty) in ty.fields.iter().enumerate() {
                    fields.push(match i == index {
                        true => self.sum_operand(&known.field(i), &DerivativePart::of(grad.clone()), ty)?,
                        false => known.field(i).operand(self.b)?,
                    });
                }
                fields
            }
            None => {
                let mut fields = self.zeros_of_tuple(tuple.ty(), Some(index))?;
                if let Some(slot) = fields.get_mut(index) {
                    *slot = grad;
                }
                fields
            }
        };
        self.set(&tuple, Expr::tuple(fields))
    }

    /// Zeros of the fields of a tuple; the one at `open` is an empty tuple, to be filled in.
    fn zeros_of_tuple(&mut self, ty: &Type, open: Option<usize>) -> Result<Vec<Expr>, BuildError> {
        let Type::Tuple(tuple) = ty else { return refuse("a field is taken from what is no tuple") };
        let mut fields = Vec::with_capacity(tuple.fields.len());
        for (i, field) in tuple.fields.iter().enumerate() {
            fields.push(match Some(i) == open {
                true => Expr::tuple([]),
                false => {
                    let zeros = self.zeros(field)?;
                    self.b.normalize_arg(zeros)?
                }
            });
        }
        Ok(fields)
    }

    fn zeros(&mut self, ty: &Type) -> Result<Expr, BuildError> {
        match ty {
            Type::Tuple(_) => Ok(Expr::tuple(self.zeros_of_tuple(ty, None)?)),
            _ => filled("zeros", ty),
        }
    }

    /// Adds to the adjoint of an operand.
    fn add(&mut self, operand: &Expr, grad: &Rc<DerivativePart>) -> Result<(), BuildError> {
        if let Expr::Tuple(tuple) = operand {
            return tuple.fields.iter().enumerate().try_for_each(|(i, field)| self.add(field, &grad.field(i)));
        }
        let Some(var) = operand.as_var() else { return Ok(()) };
        let value = match self.adjoints.get(&var).cloned() {
            Some(before) => self.sum(&DerivativePart::of(before), grad, var.ty())?,
            None => grad.value(self.b)?,
        };
        self.set(&var, value)
    }

    /// Binds the adjoint of a variable.
    fn set(&mut self, var: &AnyVar, value: Expr) -> Result<(), BuildError> {
        let adjoint = self.b.emit_named(&format!("{}_adjoint", var.name()), value)?;
        self.adjoints.insert(var.clone(), adjoint);
        Ok(())
    }

    /// The sum of two derivatives by what has a type.
    fn sum(&mut self, a: &Rc<DerivativePart>, b: &Rc<DerivativePart>, ty: &Type) -> Result<Expr, BuildError> {
        let Type::Tuple(tuple) = ty else {
            return Ok(op::call("add", [a.operand(self.b)?, b.operand(self.b)?], Attrs::new())?);
        };
        let fields = tuple.fields.iter().enumerate();
        let fields =
            fields.map(|(i, ty)| self.sum_operand(&a.field(i), &b.field(i), ty)).collect::<Result<Vec<_>, _>>();
        Ok(Expr::tuple(fields?))
    }

    fn sum_operand(&mut self, a: &Rc<DerivativePart>, b: &Rc<DerivativePart>, ty: &Type) -> Result<Expr, BuildError> {
        let sum = self.sum(a, b, ty)?;
        self.b.normalize_arg(sum)
    }

    /// The derivative by a variable, as a result.
    fn output(&mut self, var: &AnyVar) -> Result<Expr, BuildError> {
        if !self.adjoints.contains_key(var) {
            let zeros = self.zeros(var.ty())?;
            self.set(var, zeros)?;
        }
        let value = self.adjoints[var].clone();
        self.b.emit_output_named(&format!("{}_adjoint_out", var.name()), value)
    }
}

/// A tensor of a type, of zeros or ones.
fn filled(name: &str, ty: &Type) -> Result<Expr, BuildError> {
    let Type::Tensor(tensor) = ty else { return refuse("only tensors have derivatives") };
    let Some(shape) = &tensor.shape else { return refuse("a tensor of unknown shape has no derivative") };
    let attrs = Attrs::new().with("dtype", AttrValue::DType(tensor.dtype));
    Ok(op::call(name, [Expr::shape(shape.iter().cloned())], attrs)?)
}
