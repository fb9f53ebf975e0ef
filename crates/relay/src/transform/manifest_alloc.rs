//! ManifestAlloc: memory of results is taken before the kernels that fill it.
//!
//! ```text
//! let %y = nn.relu(%x);     becomes     let %storage_0 = memory.alloc_storage(280i64, shape, 64i64, …);
//!                                       let %tensor_0 = memory.alloc_tensor(%storage_0, 0i64, shape, …);
//!                                       let %x_0 = vm.invoke_tvm_op(fn (%p0) { nn.relu(%p0) }, (%x,), (%tensor_0,));
//!                                       let %y = %tensor_0;
//! ```
//!
//! Where a dimension is not known before the program runs, `vm.shape_func` computes the shapes of the results into tensors of
//! their own first, and sizes are computed from these. A `reshape` is a view (`vm.reshape_tensor`). Calls of primitive functions
//! are kernels as calls of operators are. The function is in A-normal form afterwards.
//!
//! The interpreter carries the dialect out as it is written: kernels write into the memory that they are given. The compiler to
//! the Relay VM takes programs from before the pass: its emission takes memory for the kernels that its regions became.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::{AttrValue, Attrs};

use super::table::TransformError;
use crate::op::{self, Mapping};
use crate::*;

/// How memory is aligned.
const ALIGNMENT: i64 = 64;

/// The program with its memory taken in it.
pub fn manifest_alloc(module: &Module) -> Result<Module, TransformError> {
    let module = to_a_normal_form(&super::eta_expand(module));
    let types = infer(&module).map_err(TransformError::Types)?;
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let mut pass = Manifest { types: &types, primitives: Vec::new(), numbers: [0; 4] };
        let body = pass.scope(&function.body)?;
        *function = function.with_body(body);
    }
    Ok(out)
}

/// Bindings of a scope, and what it gives.
pub(super) struct Chain {
    pub bindings: Vec<(Ref<Var>, Expr)>,
    pub result: Expr,
}

impl Chain {
    pub fn of(expr: &Expr) -> Chain {
        let (mut bindings, mut expr) = (Vec::new(), expr);
        while let Expr::Let(l) = expr {
            bindings.push((l.var.clone(), l.value.clone()));
            expr = &l.body;
        }
        Chain { bindings, result: expr.clone() }
    }

    pub fn into_expr(self) -> Expr {
        self.bindings.into_iter().rev().fold(self.result, |body, (var, value)| Expr::bind(var, value, body))
    }
}

/// A value whose scopes, if it has some, are made anew.
pub(super) fn with_scopes<E>(value: &Expr, scope: &mut dyn FnMut(&Expr) -> Result<Expr, E>) -> Result<Expr, E> {
    Ok(match value {
        Expr::Function(f) if !f.is_primitive() => f.with_body(scope(&f.body)?).into(),
        Expr::If(i) => {
            let (cond, then, other) = (i.cond.clone(), scope(&i.then)?, scope(&i.other)?);
            Ref::new(If { cond, then, other, span: i.span.clone() }).into()
        }
        Expr::Match(m) => {
            let mut clauses = Vec::new();
            for clause in &m.clauses {
                let (pattern, body) = (clause.pattern.clone(), scope(&clause.body)?);
                clauses.push(Ref::new(Clause { pattern, body }));
            }
            Ref::new(Match { data: m.data.clone(), clauses, complete: m.complete, span: m.span.clone() }).into()
        }
        other => other.clone(),
    })
}

struct Manifest<'t> {
    types: &'t Types,
    /// Variables that are bound to primitive functions.
    primitives: Vec<Ref<Var>>,
    /// How many storages, tensors, shapes and effects there are.
    numbers: [usize; 4],
}

fn value_error(error: relaxide_ffi::Error) -> TransformError {
    TransformError::Value(error)
}

fn wide(value: i64) -> Result<Expr, TransformError> {
    Expr::int(value, DataType::int(64)).map_err(value_error)
}

fn vector(values: &[i64]) -> Result<Expr, TransformError> {
    Tensor::from_slice(values, &[values.len() as i64]).map(Expr::constant).map_err(value_error)
}

fn call(name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Expr {
    Expr::call_with(Expr::op(name), args, attrs)
}

impl Manifest<'_> {
    fn fresh(&mut self, kind: usize) -> Ref<Var> {
        let name = ["storage", "tensor", "out_shape", "x"][kind];
        self.numbers[kind] += 1;
        Var::new(format!("{name}_{}", self.numbers[kind] - 1), None)
    }

    fn scope(&mut self, expr: &Expr) -> Result<Expr, TransformError> {
        let Chain { bindings, result } = Chain::of(expr);
        let mut out = Chain { bindings: Vec::new(), result };
        for (var, value) in bindings {
            self.binding(var, value, &mut out.bindings)?;
        }
        Ok(out.into_expr())
    }

    fn binding(&mut self, var: Ref<Var>, value: Expr, out: &mut Vec<(Ref<Var>, Expr)>) -> Result<(), TransformError> {
        if let Expr::Function(f) = &value
            && f.is_primitive()
        {
            self.primitives.push(var.clone());
        }
        let value = with_scopes(&value, &mut |scope| self.scope(scope))?;
        let Expr::Call(kernel) = &value else {
            out.push((var, value));
            return Ok(());
        };
        let Some(function) = self.kernel(kernel) else {
            out.push((var, value));
            return Ok(());
        };
        let ty = self.types.of_var(&var).unwrap_or_else(|| Type::tuple([]));
        let mut tensors = Vec::new();
        if !leaves(&ty, &mut tensors) {
            out.push((var, value));
            return Ok(());
        }
        if let (Some((call_, "reshape")), [one]) = (value.as_op_call(), tensors.as_slice())
            && one.is_static()
        {
            let attrs = Attrs::new().with("newshape", one.shape.clone());
            out.push((var, call("vm.reshape_tensor", [call_.args[0].clone(), vector(&one.shape)?], attrs)));
            return Ok(());
        }
        let inputs = Expr::tuple(kernel.args.clone());
        let shapes = if tensors.iter().all(|t| t.is_static()) {
            tensors.iter().map(|t| vector(&t.shape)).collect::<Result<Vec<_>, _>>()?
        } else {
            self.shapes(&function, &inputs, &tensors, out)?
        };
        let mut outputs = Vec::new();
        for (tensor, shape) in tensors.iter().zip(shapes) {
            outputs.push(self.allocate(tensor, shape, out)?);
        }
        let operands = [function, self.bound(inputs, out), self.bound(Expr::tuple(outputs.clone()), out)];
        let effect = self.fresh(3);
        out.push((effect, call("vm.invoke_tvm_op", operands, Attrs::new())));
        let mut outputs = outputs.into_iter();
        let result = self.assembled(&ty, &mut outputs, out);
        out.push((var, result));
        Ok(())
    }

    /// A name for a value.
    fn bound(&mut self, value: Expr, out: &mut Vec<(Ref<Var>, Expr)>) -> Expr {
        let var = self.fresh(3);
        out.push((var.clone(), value));
        var.into()
    }

    /// The kernel of a call as a function.
    fn kernel(&mut self, call_: &Ref<Call>) -> Option<Expr> {
        match &call_.op {
            Expr::Op(node) if !matches!(op::lookup(&node.name)?.mapping, Mapping::Machine) => {
                let typed: Vec<Ref<Var>> = call_
                    .args
                    .iter()
                    .enumerate()
                    .map(|(i, arg)| Var::new(format!("p{i}"), self.types.of(arg)))
                    .collect();
                // Constants stay what they are: an operator may have to know them.
                let operand = |(arg, param): (&Expr, &Ref<Var>)| match arg {
                    Expr::Constant(_) => arg.clone(),
                    _ => param.into(),
                };
                let operands: Vec<Expr> = call_.args.iter().zip(&typed).map(operand).collect();
                let body = Expr::call_with(call_.op.clone(), operands, call_.attrs.clone());
                let attrs = Attrs::new().with("Primitive", 1i64);
                let function =
                    Function { type_params: Vec::new(), params: typed, body, ret_type: None, attrs, span: None };
                Some(Ref::new(function).into())
            }
            Expr::Function(f) if f.is_primitive() => Some(call_.op.clone()),
            Expr::Var(var) if self.primitives.iter().any(|p| Ref::ptr_eq(p, var)) => Some(call_.op.clone()),
            _ => None,
        }
    }

    fn storage(
        &mut self,
        size: Expr,
        shape: Expr,
        dtype: DataType,
        out: &mut Vec<(Ref<Var>, Expr)>,
    ) -> Result<Ref<Var>, TransformError> {
        let attrs = Attrs::new().with("dtype", dtype).with("virtual_device", VirtualDevice::cpu().to_attr());
        let var = self.fresh(0);
        out.push((var.clone(), call("memory.alloc_storage", [size, shape, wide(ALIGNMENT)?], attrs)));
        Ok(var)
    }

    fn allocate(
        &mut self,
        ty: &TensorType,
        shape: Expr,
        out: &mut Vec<(Ref<Var>, Expr)>,
    ) -> Result<Expr, TransformError> {
        let bytes = ty.dtype.bytes() as i64;
        let size = if ty.is_static() {
            wide(ty.shape.iter().product::<i64>().max(0) * bytes)?
        } else {
            let attrs = |name: &str, attrs: Attrs| op::lookup(name).and_then(|def| def.complete_attrs(&attrs).ok());
            let reduced = call("prod", [shape.clone()], attrs("prod", Attrs::new()).unwrap_or_default());
            let count = self.bound(reduced, out);
            self.bound(call("multiply", [count, wide(bytes)?], Attrs::new()), out)
        };
        let storage = self.storage(size, shape.clone(), ty.dtype, out)?;
        let attrs = Attrs::new()
            .with("dtype", ty.dtype)
            .with("const_shape", AttrValue::None)
            .with("assert_shape", ty.shape.clone());
        let var = self.fresh(1);
        out.push((var.clone(), call("memory.alloc_tensor", [storage.into(), wide(0)?, shape], attrs)));
        Ok(var.into())
    }

    /// The shapes of results that only the run shows, as tensors.
    fn shapes(
        &mut self,
        function: &Expr,
        inputs: &Expr,
        tensors: &[Ref<TensorType>],
        out: &mut Vec<(Ref<Var>, Expr)>,
    ) -> Result<Vec<Expr>, TransformError> {
        let mut shapes = Vec::new();
        for tensor in tensors {
            let ty = Type::tensor([tensor.shape.len() as i64], DataType::int(64));
            let Type::Tensor(ty) = ty else { continue };
            let dims = vector(&ty.shape)?;
            shapes.push(self.allocate(&ty, dims, out)?);
        }
        let operands =
            [function.clone(), self.bound(inputs.clone(), out), self.bound(Expr::tuple(shapes.clone()), out)];
        let effect = self.fresh(3);
        out.push((effect, call("vm.shape_func", operands, Attrs::new())));
        Ok(shapes)
    }

    /// The value of a type from tensors in order.
    fn assembled(
        &mut self,
        ty: &Type,
        tensors: &mut impl Iterator<Item = Expr>,
        out: &mut Vec<(Ref<Var>, Expr)>,
    ) -> Expr {
        match ty {
            Type::Tuple(t) => {
                let mut fields = Vec::new();
                for ty in &t.fields {
                    let field = self.assembled(ty, tensors, out);
                    fields.push(if field.is_leaf() { field } else { self.bound(field, out) });
                }
                Expr::tuple(fields)
            }
            _ => tensors.next().unwrap_or_else(|| Expr::tuple([])),
        }
    }
}

/// The tensors of a type; whether it is made of nothing else.
fn leaves(ty: &Type, out: &mut Vec<Ref<TensorType>>) -> bool {
    match ty {
        Type::Tensor(t) => {
            out.push(t.clone());
            true
        }
        Type::Tuple(t) => t.fields.iter().all(|ty| leaves(ty, out)),
        _ => false,
    }
}
