//! Runs legalized programs kernel by kernel in the reference interpreter.

use std::collections::HashMap;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{IRModule, Type, Var};
use relaxide_relax::op::core::CallTir;
use relaxide_relax::{AnyVar, Binding, Expr, Function};
use relaxide_tir::PrimFunc;
use relaxide_tir::interp::{self, Arg};

/// What a variable holds.
#[derive(Clone)]
enum Value {
    Tensor(Tensor),
    Tuple(Vec<Value>),
    Other,
}

impl Value {
    fn tensors(self) -> Vec<Tensor> {
        match self {
            Value::Tensor(t) => vec![t],
            Value::Tuple(fields) => fields.into_iter().flat_map(Value::tensors).collect(),
            Value::Other => Vec::new(),
        }
    }
}

/// Runs `main` of a legalized module, kernel by kernel.
pub struct Machine<'a> {
    module: &'a IRModule,
    values: HashMap<AnyVar, Value>,
    dims: HashMap<Ref<Var>, i64>,
}

impl Machine<'_> {
    /// The tensors that `main` returns.
    pub fn run(module: &IRModule, inputs: &[Tensor]) -> Result<Vec<Tensor>, String> {
        let main = module.get_as::<Function>("main").ok_or("there is no main")?;
        let mut machine = Machine { module, values: HashMap::new(), dims: HashMap::new() };
        for (param, input) in main.params.iter().zip(inputs) {
            let Type::Tensor(ty) = &param.ty else { return Err("a parameter is no tensor".into()) };
            for (dim, size) in ty.shape.iter().flatten().zip(input.shape()) {
                if let Some(var) = dim.as_var() {
                    machine.dims.insert(var.clone(), *size);
                }
            }
            machine.values.insert(AnyVar::Var(param.clone()), Value::Tensor(input.clone()));
        }
        for binding in main.body.blocks.iter().flat_map(|b| &b.bindings) {
            let Binding::Var(bound) = binding else { return Err("a match_cast is left".into()) };
            let value = machine.value(&bound.value)?;
            machine.values.insert(bound.var.clone(), value);
        }
        Ok(machine.value(&main.body.body)?.tensors())
    }

    fn value(&self, e: &Expr) -> Result<Value, String> {
        if let Some(call) = CallTir::of(e) {
            return self.kernel(&call);
        }
        Ok(match e {
            Expr::Constant(c) => Value::Tensor(c.value.clone()),
            Expr::Tuple(t) => Value::Tuple(t.fields.iter().map(|f| self.value(f)).collect::<Result<_, _>>()?),
            Expr::TupleGetItem(item) => match self.value(&item.tuple)? {
                Value::Tuple(fields) => fields[item.index as usize].clone(),
                _ => return Err("a field of what is no tuple".into()),
            },
            Expr::Call(call) => return Err(format!("{:?} is not legalized", call.op_name())),
            _ => e.as_var().and_then(|v| self.values.get(&v).cloned()).unwrap_or(Value::Other),
        })
    }

    fn dim(&self, e: &PrimExpr) -> Result<i64, String> {
        let value = interp::eval(e, &self.dims).map_err(|e| e.to_string())?;
        value.as_int().ok_or_else(|| "a dimension is no integer".into())
    }

    fn kernel(&self, call: &CallTir) -> Result<Value, String> {
        let kernel = self.module.get_as::<PrimFunc>(&call.func.name).ok_or("there is no such kernel")?;
        let mut args = Vec::new();
        for arg in &call.args {
            args.push(match (arg, self.value(arg)?) {
                (_, Value::Tensor(t)) => Arg::Tensor(t),
                (Expr::Prim(p), _) => Arg::Int(self.dim(&p.value)?),
                _ => return Err("an argument is neither tensor nor scalar".into()),
            });
        }
        let mut outputs = Vec::new();
        for ty in &call.outputs {
            let Type::Tensor(ty) = ty else { return Err("an output is no tensor".into()) };
            let dims = ty.shape.iter().flatten().map(|d| self.dim(d)).collect::<Result<Vec<_>, _>>()?;
            let output = Tensor::zeros(&dims, ty.dtype).map_err(|e| e.to_string())?;
            args.push(Arg::Tensor(output.clone()));
            outputs.push(Value::Tensor(output));
        }
        interp::run(&kernel, &args).map_err(|e| e.to_string())?;
        Ok(match <[Value; 1]>::try_from(outputs) {
            Ok([one]) => one,
            Err(many) => Value::Tuple(many),
        })
    }
}
