//! Small programs of kernels, and what tests ask of them.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Attrs, IRModule, Type, Var};
use relaxide_relax::transform::pass;
use relaxide_relax::*;
use relaxide_tir::{PrimFunc, te};

use super::evaluate::{Value, call};

pub const F32: DataType = DataType::float(32);

pub fn tensor(dims: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Type {
    Type::tensor(dims, F32)
}

pub fn param(name: &str, dims: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Ref<Var> {
    Var::new(name, tensor(dims))
}

/// A module of one function `main` of one dataflow block.
pub fn program(params: &[&Ref<Var>], body: impl FnOnce(&mut BlockBuilder) -> Result<Expr, BuildError>) -> IRModule {
    let mut b = BlockBuilder::new();
    let attrs = Attrs::new().with("global_symbol", "main");
    let func = b.function::<BuildError>(params.iter().copied().cloned().collect(), attrs, |b| {
        b.begin_dataflow()?;
        let result = body(b)?;
        let result = b.emit_output(result)?;
        b.end_dataflow()?;
        Ok(result)
    });
    b.module_mut().insert("main", func.expect("the function is well formed"));
    b.finish()
}

/// A module after some passes.
pub fn after(module: &IRModule, passes: &[&str]) -> IRModule {
    let context = PassContext::default();
    passes.iter().fold(module.clone(), |module, name| {
        let pass = pass(name).unwrap_or_else(|| panic!("no pass {name}"));
        pass.run(module, &context).unwrap_or_else(|e| panic!("{e}"))
    })
}

/// The module after all of fusion.
pub fn fused(module: &IRModule) -> IRModule {
    after(module, &["AnnotateTIROpPattern", "FuseOps", "FuseTIR"])
}

/// Names of the kernels that `main` calls, in order.
pub fn calls(module: &IRModule) -> Vec<String> {
    let main = module.get_as::<Function>("main").expect("there is a main");
    let bindings = main.body.blocks.iter().flat_map(|b| &b.bindings);
    bindings
        .filter_map(|b| match b.value() {
            Expr::Call(c) => match (&c.op, c.args.first()) {
                (Expr::Global(g), _) | (_, Some(Expr::Global(g))) => Some(g.name.clone()),
                _ => c.op_name().map(str::to_string),
            },
            _ => None,
        })
        .collect()
}

/// A tensor of small numbers that repeat with no simple period.
pub fn numbers(dims: &[i64], seed: u32) -> Value {
    let count: i64 = dims.iter().product();
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12_345);
    let next = |_| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..count).map(next).collect();
    Value::Tensor(Tensor::from_slice(&values, dims).unwrap())
}

/// Checks that two modules compute the same, up to rounding.
pub fn same_results(a: &IRModule, b: &IRModule, args: &[Value]) {
    let (x, y) = (call(a, "main", args).floats(), call(b, "main", args).floats());
    assert_eq!(x.len(), y.len());
    for (i, (x, y)) in x.iter().zip(&y).enumerate() {
        assert!((x - y).abs() <= 1e-5 * x.abs().max(1.0), "element {i}: {x} and {y}");
    }
}

/// Checks that fusion changes no result, and returns the kernels that are called.
pub fn check(module: &IRModule, args: &[Value]) -> Vec<String> {
    let after = fused(module);
    same_results(module, &after, args);
    for (name, kernel) in after.functions_of::<PrimFunc>() {
        assert_eq!(kernel.params.len(), kernel.buffers.len(), "{name}");
    }
    calls(&after)
}

// Kernels.

/// `f` of each element of operands of one shape, or of shapes that are broadcast from the right.
pub fn map(
    b: &mut BlockBuilder,
    name: &str,
    args: &[&Expr],
    f: impl FnOnce(&[PrimExpr]) -> PrimExpr,
) -> Result<Expr, BuildError> {
    let args: Vec<Expr> = args.iter().map(|a| (*a).clone()).collect();
    b.emit_te(name, args, |t| {
        let largest = t.iter().max_by_key(|t| (t.ndim(), t.shape().iter().filter(|d| !d.is_int(1)).count()));
        let dims = largest.map(|t| t.shape().to_vec()).unwrap_or_default();
        vec![te::compute(format!("T_{name}"), &dims, |i| {
            let values: Vec<PrimExpr> =
                t.iter().map(|t| t.at(&relaxide_relax::shape::broadcast_index(t.shape(), i, &dims))).collect();
            f(&values)
        })]
    })
}

pub fn add(b: &mut BlockBuilder, x: &Expr, y: &Expr) -> Result<Expr, BuildError> {
    map(b, "add", &[x, y], |v| &v[0] + &v[1])
}

pub fn mul(b: &mut BlockBuilder, x: &Expr, y: &Expr) -> Result<Expr, BuildError> {
    map(b, "mul", &[x, y], |v| &v[0] * &v[1])
}

pub fn relu(b: &mut BlockBuilder, x: &Expr) -> Result<Expr, BuildError> {
    map(b, "relu", &[x], |v| prim::max(&v[0], 0))
}

/// A matrix product of `x` and a matrix of `k` rows.
pub fn matmul(b: &mut BlockBuilder, x: &Expr, w: &Expr) -> Result<Expr, BuildError> {
    b.emit_te("matmul", vec![x.clone(), w.clone()], |t| {
        let k = te::reduce_axis(t[1].shape()[0].clone());
        let dims = [t[0].shape()[0].clone(), t[1].shape()[1].clone()];
        vec![te::compute("C", dims, |i| {
            te::sum(t[0].at(&[i[0].clone(), k.var()]) * t[1].at(&[k.var(), i[1].clone()]), [&k])
        })]
    })
}

/// A reduction of the last axis, which is kept with size one.
pub fn reduce_rows(b: &mut BlockBuilder, name: &str, x: &Expr) -> Result<Expr, BuildError> {
    b.emit_te(name, vec![x.clone()], |t| {
        let (last, rows) = t[0].shape().split_last().expect("at least one axis");
        let k = te::reduce_axis(last.clone());
        let dims: Vec<PrimExpr> = rows.iter().cloned().chain([1.into()]).collect();
        vec![te::compute(name, dims, |i| {
            let mut at = i.to_vec();
            *at.last_mut().expect("at least one axis") = k.var();
            if name == "max" { te::max(t[0].at(&at), [&k]) } else { te::sum(t[0].at(&at), [&k]) }
        })]
    })
}

pub fn transpose(b: &mut BlockBuilder, x: &Expr) -> Result<Expr, BuildError> {
    b.emit_te("transpose", vec![x.clone()], |t| {
        let dims = [t[0].shape()[1].clone(), t[0].shape()[0].clone()];
        vec![te::compute("T_transpose", dims, |i| t[0].at(&[i[1].clone(), i[0].clone()]))]
    })
}
