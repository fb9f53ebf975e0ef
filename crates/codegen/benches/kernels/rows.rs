//! Kernels that memory bounds: one pass over rows, or a few over each row.
//!
//! All take tensors of 64 MB, much more than the caches hold, and are held to the time that copying such a tensor takes.

use relaxide_ir::prim::{self, PrimExpr, VarMap, math};
use relaxide_tir::te;

use super::{Case, F32, dim};

/// Elements of a tensor of 64 MB.
pub const ELEMENTS: usize = 16 << 20;

fn case(name: &str, row: i64, inputs: usize, make: impl FnOnce(&[te::Tensor], &[PrimExpr]) -> te::Tensor) -> Case {
    let mut dims = VarMap::new();
    let rows = ELEMENTS as i64 / row;
    let shape = [dim(&mut dims, "m", rows), dim(&mut dims, "n", row)];
    let mut args: Vec<te::Tensor> = (0..inputs).map(|i| te::placeholder(format!("X{i}"), shape.clone(), F32)).collect();
    let out = make(&args, &shape);
    args.push(out);
    let name = format!("{name}_{rows}x{row}");
    Case { name, args, dims, work: (inputs + 1) as f64 / 2.0, of_copy: true }
}

fn map(name: &str, f: impl Fn(PrimExpr) -> PrimExpr) -> Case {
    case(name, 1024, 1, |x, shape| te::compute("out", shape, |i| f(x[0].at(i))))
}

fn gelu(x: PrimExpr) -> PrimExpr {
    let c = |value| prim::constant(F32, value);
    &x * c(0.5) * (c(1.0) + math("erf", &x * c(std::f64::consts::FRAC_1_SQRT_2)))
}

fn softplus(x: PrimExpr) -> PrimExpr {
    let zero = || prim::constant(F32, 0.0);
    prim::max(x.clone(), zero()) + math("log1p", math("exp", zero() - math("fabs", x)))
}

fn row_sum(name: &str, shape: &[PrimExpr], value: impl Fn(&[PrimExpr]) -> PrimExpr) -> te::Tensor {
    let k = te::reduce_axis(shape[1].clone());
    te::compute(name, [shape[0].clone()], |i| te::sum(value(&[i[0].clone(), k.var()]), [&k]))
}

fn softmax(row: i64) -> Case {
    case("softmax", row, 1, softmax_of)
}

/// With rows whose length is known.
fn softmax_known(row: i64) -> Case {
    let shape = [prim::int(ELEMENTS as i64 / row), prim::int(row)];
    let x = te::placeholder("X0", shape.clone(), F32);
    let out = softmax_of(std::slice::from_ref(&x), &shape);
    let name = format!("softmax_known_{}x{row}", ELEMENTS as i64 / row);
    Case { name, args: vec![x, out], dims: VarMap::new(), work: 1.0, of_copy: true }
}

fn softmax_of(x: &[te::Tensor], shape: &[PrimExpr]) -> te::Tensor {
    let k = te::reduce_axis(shape[1].clone());
    let highest = te::compute("highest", [shape[0].clone()], |i| te::max(x[0].at(&[i[0].clone(), k.var()]), [&k]));
    let exps = te::compute("exps", shape, |i| math("exp", x[0].at(i) - highest.at(&i[..1])));
    let total = row_sum("total", shape, |i| exps.at(i));
    te::compute("out", shape, |i| prim::div(exps.at(i), total.at(&i[..1])))
}

fn layer_norm(row: i64) -> Case {
    case("layer_norm", row, 1, |x, shape| {
        let count = prim::cast(F32, shape[1].clone());
        let mean = |total: &te::Tensor| te::compute("mean", [shape[0].clone()], |i| prim::div(total.at(i), &count));
        let average = mean(&row_sum("total", shape, |i| x[0].at(i)));
        let variance = mean(&row_sum("squares", shape, |i| {
            let distance = x[0].at(i) - average.at(&i[..1]);
            &distance * &distance
        }));
        te::compute("out", shape, |i| {
            let spread = math("sqrt", variance.at(&i[..1]) + prim::constant(F32, 1e-5));
            prim::div(x[0].at(i) - average.at(&i[..1]), spread)
        })
    })
}

/// The kernels.
pub fn cases() -> Vec<Case> {
    vec![
        map("relu", super::relu),
        map("hard_swish", super::hard_swish),
        map("sigmoid", |x| math("sigmoid", x)),
        map("exp", |x| math("exp", x)),
        map("tanh", |x| math("tanh", x)),
        map("log", |x| math("log", x + prim::constant(F32, 1.0))),
        map("log1p", |x| math("log1p", x)),
        map("erf", |x| math("erf", x)),
        map("gelu", gelu),
        map("sin", |x| math("sin", x)),
        map("cos", |x| math("cos", x)),
        map("tan", |x| math("tan", x)),
        map("asin", |x| math("asin", x)),
        map("acos", |x| math("acos", x)),
        map("sinh", |x| math("sinh", x)),
        map("cosh", |x| math("cosh", x)),
        map("asinh", |x| math("asinh", x)),
        map("acosh", |x| math("acosh", x + prim::constant(F32, 2.0))),
        map("atanh", |x| math("atanh", x)),
        map("softplus", softplus),
        map("power", |x| prim::call(F32, "tirx.pow", vec![math("fabs", x), prim::constant(F32, 2.5)])),
        case("add", 1024, 2, |x, shape| te::compute("out", shape, |i| x[0].at(i) + x[1].at(i))),
        softmax(1024),
        softmax(77),
        softmax(1000),
        softmax(8192),
        softmax_known(77),
        softmax_known(128),
        softmax_known(384),
        layer_norm(768),
        layer_norm(4096),
    ]
}
