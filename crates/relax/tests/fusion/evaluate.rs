//! A reference evaluator: functions of a module over tensors, kernels by the TIR interpreter.

use std::collections::HashMap;

use relaxide_ffi::{Ref, Tensor};
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{IRModule, Type, Var};
use relaxide_relax::*;
use relaxide_tir::PrimFunc;
use relaxide_tir::interp::{self, Arg, Scalar};

/// A value of a program.
#[derive(Clone, Debug)]
pub enum Value {
    Tensor(Tensor),
    Tuple(Vec<Value>),
    Shape(Vec<i64>),
    Int(i64),
}

impl Value {
    pub fn tensor(&self) -> &Tensor {
        match self {
            Value::Tensor(t) => t,
            other => panic!("not a tensor: {other:?}"),
        }
    }

    /// All elements of all tensors.
    pub fn floats(&self) -> Vec<f32> {
        match self {
            Value::Tensor(t) => t.to_vec::<f32>().unwrap(),
            Value::Tuple(fields) => fields.iter().flat_map(Value::floats).collect(),
            other => panic!("not a tensor: {other:?}"),
        }
    }
}

struct Frame<'a> {
    module: &'a IRModule,
    values: HashMap<AnyVar, Value>,
    dims: HashMap<Ref<Var>, i64>,
}

/// The result of a function.
pub fn call(module: &IRModule, name: &str, args: &[Value]) -> Value {
    let func = module.get_as::<Function>(name).unwrap_or_else(|| panic!("no function {name}"));
    assert_eq!(func.params.len(), args.len(), "arguments of {name}");
    let mut frame = Frame { module, values: HashMap::new(), dims: HashMap::new() };
    for (param, arg) in func.params.iter().zip(args) {
        frame.bind_dims(&param.ty, arg);
        frame.values.insert(AnyVar::Var(param.clone()), arg.clone());
    }
    frame.seq(&func.body)
}

impl Frame<'_> {
    fn bind_dims(&mut self, ty: &Type, value: &Value) {
        let (dims, sizes) = match (ty, value) {
            (Type::Tensor(ty), Value::Tensor(t)) => (ty.shape.clone().unwrap_or_default(), t.shape().to_vec()),
            (Type::Shape(ty), Value::Shape(s)) => (ty.values.clone().unwrap_or_default(), s.clone()),
            (Type::Tuple(ty), Value::Tuple(fields)) => {
                ty.fields.iter().zip(fields).for_each(|(ty, v)| self.bind_dims(ty, v));
                return;
            }
            _ => return,
        };
        for (dim, size) in dims.iter().zip(sizes) {
            if let Some(var) = dim.as_var() {
                self.dims.insert(var.clone(), size);
            }
        }
    }

    fn seq(&mut self, seq: &SeqExpr) -> Value {
        for binding in seq.blocks.iter().flat_map(|b| &b.bindings) {
            let value = self.eval(binding.value());
            if let Binding::MatchCast(cast) = binding {
                self.bind_dims(&cast.ty, &value);
            }
            self.values.insert(binding.var().clone(), value);
        }
        self.eval(&seq.body)
    }

    fn int(&self, e: &PrimExpr) -> i64 {
        match interp::eval(e, &self.dims).unwrap() {
            Scalar::Int(v) => v,
            other => panic!("not an integer: {other:?}"),
        }
    }

    fn eval(&mut self, e: &Expr) -> Value {
        match e {
            Expr::Constant(c) => Value::Tensor(c.value.clone()),
            Expr::Prim(p) => Value::Int(self.int(&p.value)),
            Expr::Shape(s) => Value::Shape(s.values.iter().map(|d| self.int(d)).collect()),
            Expr::Tuple(t) => Value::Tuple(t.fields.iter().map(|f| self.eval(f)).collect()),
            Expr::TupleGetItem(t) => match self.eval(&t.tuple) {
                Value::Tuple(fields) => fields[t.index as usize].clone(),
                other => panic!("not a tuple: {other:?}"),
            },
            Expr::Call(call) => self.call(call),
            other => {
                let var = other.as_var().unwrap_or_else(|| panic!("cannot evaluate {other:?}"));
                self.values.get(&var).unwrap_or_else(|| panic!("`{}` is not bound", var.name())).clone()
            }
        }
    }

    fn call(&mut self, e: &Call) -> Value {
        match (e.op_name(), &e.op) {
            (Some("call_tir" | "call_tir_inplace"), _) => self.kernel(e),
            (Some("reshape"), _) => {
                let x = self.eval(&e.args[0]);
                let dims = self.dims_of(&e.ty);
                Value::Tensor(Tensor::from_bytes(&x.tensor().to_bytes().unwrap(), &dims, x.tensor().dtype()).unwrap())
            }
            (None, Expr::Global(g)) => {
                let args: Vec<Value> = e.args.iter().map(|a| self.eval(a)).collect();
                call(self.module, &g.name, &args)
            }
            other => panic!("cannot call {other:?}"),
        }
    }

    fn dims_of(&self, ty: &Type) -> Vec<i64> {
        ty.as_tensor().and_then(|t| t.shape.as_ref()).unwrap().iter().map(|d| self.int(d)).collect()
    }

    fn kernel(&mut self, e: &Call) -> Value {
        let (Expr::Global(g), Expr::Tuple(args)) = (&e.args[0], &e.args[1]) else { panic!("not a call of a kernel") };
        let kernel = self.module.get_as::<PrimFunc>(&g.name).unwrap_or_else(|| panic!("no kernel {}", g.name));
        let mut passed: Vec<Arg> = Vec::new();
        for arg in &args.fields {
            passed.push(match self.eval(arg) {
                Value::Tensor(t) => Arg::Tensor(t),
                Value::Int(v) => Arg::Int(v),
                other => panic!("a kernel takes no {other:?}"),
            });
        }
        let inplace = e.attrs.ints("inplace_indices").unwrap_or_default();
        let mut outputs = Vec::new();
        for (i, ty) in op::core::output_types(&e.ty).iter().enumerate() {
            match inplace.get(i) {
                Some(at) if *at >= 0 => {
                    let Arg::Tensor(t) = &passed[*at as usize] else { panic!("not a tensor") };
                    let copy = Tensor::from_bytes(&t.to_bytes().unwrap(), t.shape(), t.dtype()).unwrap();
                    passed[*at as usize] = Arg::Tensor(copy.clone());
                    outputs.push(Value::Tensor(copy));
                }
                _ => {
                    let t = Tensor::zeros(&self.dims_of(ty), ty.as_tensor().unwrap().dtype).unwrap();
                    passed.push(Arg::Tensor(t.clone()));
                    outputs.push(Value::Tensor(t));
                }
            }
        }
        interp::run(&kernel, &passed).unwrap_or_else(|e| panic!("{}: {e}", g.name));
        match &e.ty {
            Type::Tuple(_) => Value::Tuple(outputs),
            _ => outputs.remove(0),
        }
    }
}
