//! Operators that make tensors.

use relaxide_ffi::DataType;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::dtype;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};
use crate::value::Scalar;

pub const TABLE: Table = &[
    ("aten.full", |cx| filled_with(cx, "fill_value")),
    ("aten.full_like", |cx| filled_with(cx, "fill_value")),
    ("aten.new_full", |cx| filled_with(cx, "fill_value")),
    ("aten.zeros", |cx| filled(cx, 0.0)),
    ("aten.zeros_like", |cx| filled(cx, 0.0)),
    ("aten.new_zeros", |cx| filled(cx, 0.0)),
    ("aten.ones", |cx| filled(cx, 1.0)),
    ("aten.ones_like", |cx| filled(cx, 1.0)),
    ("aten.new_ones", |cx| filled(cx, 1.0)),
    // What an empty tensor holds is nobody's business; zeros are as good as anything.
    ("aten.empty", |cx| filled(cx, 0.0)),
    ("aten.empty_like", |cx| filled(cx, 0.0)),
    ("aten.empty_permuted", |cx| filled(cx, 0.0)),
    ("aten.empty_strided", |cx| filled(cx, 0.0)),
    ("aten.new_empty", |cx| filled(cx, 0.0)),
    ("aten.new_empty_strided", |cx| filled(cx, 0.0)),
    ("aten.scalar_tensor", scalar_tensor),
    ("aten.arange", arange),
    ("aten.linspace", linspace),
    ("aten.eye", eye),
    ("aten.tril", |cx| triangle(cx, "tril")),
    ("aten.triu", |cx| triangle(cx, "triu")),
    ("aten.one_hot", one_hot),
    ("aten.rand", |_| random()),
    ("aten.randn", |_| random()),
    ("aten.randint", |_| random()),
    ("aten.rand_like", |_| random()),
    ("aten.randn_like", |_| random()),
    ("aten.bernoulli", |_| random()),
    ("aten.multinomial", |_| random()),
    ("aten.normal", |_| random()),
    ("aten.uniform", |_| random()),
];

fn random() -> Outputs {
    Err(NodeError::unsupported("a compiled program draws no random numbers; give them as an input"))
}

/// One value in the declared type.
fn splat(cx: &mut Cx<'_>, value: Expr) -> Outputs {
    let declared = cx.result()?.clone();
    if declared.dims.is_empty() {
        return one(value);
    }
    let attrs = Attrs::new().with("dtype", declared.dtype);
    one(cx.op("full", [Expr::shape(declared.dims), value], attrs)?)
}

fn filled(cx: &mut Cx<'_>, value: f64) -> Outputs {
    let value = cx.number(value, cx.result()?.dtype)?;
    splat(cx, value)
}

fn filled_with(cx: &mut Cx<'_>, name: &str) -> Outputs {
    let value = cx.scalar(name)?.ok_or_else(|| NodeError::invalid(format!("`{name}` is missing")))?;
    let value = cx.operand(value, cx.result()?.dtype)?;
    splat(cx, value)
}

fn scalar_tensor(cx: &mut Cx<'_>) -> Outputs {
    let value = cx.scalar("s")?.ok_or_else(|| NodeError::invalid("`s` is missing"))?;
    one(cx.operand(value, cx.result()?.dtype)?)
}

fn arange(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    let bound = |cx: &Cx<'_>, name: &str, default: i64| -> Result<Scalar> {
        Ok(cx.scalar(name)?.unwrap_or(Scalar::Int(prim::int(default))))
    };
    let (start, step) = (bound(cx, "start", 0)?, bound(cx, "step", 1)?);
    let length = declared.dims.first().cloned().ok_or_else(|| NodeError::invalid("a range has one axis"))?;
    let number = |scalar: &Scalar| match scalar {
        Scalar::Int(value) => Ok(prim::cast(declared.dtype, value.clone())),
        Scalar::Float(value) => Ok(prim::constant(declared.dtype, *value)),
        _ => Err(NodeError::unsupported("a bound that the program computes")),
    };
    if let (Scalar::Int(from), Scalar::Int(by), false) = (&start, &step, dtype::is_float(declared.dtype)) {
        // The end is where so many steps lead.
        let end = from + by * &length;
        let args = [from.clone(), relaxide_ir::arith::dims::simplify(&end), by.clone()].map(Expr::prim);
        return one(cx.op("arange", args, Attrs::new().with("dtype", declared.dtype))?);
    }
    let (from, by) = (number(&start)?, number(&step)?);
    one(cx.te("arange", Vec::new(), |_| {
        vec![te::compute("range", [length], |at| from.clone() + prim::cast(declared.dtype, at[0].clone()) * by.clone())]
    })?)
}

fn linspace(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    let (start, end) = (cx.float_or("start", 0.0)?, cx.float_or("end", 0.0)?);
    let steps = declared.dims.first().and_then(PrimExpr::as_int);
    let steps = steps.ok_or_else(|| NodeError::unsupported("a number of steps that is not known at export"))?;
    cx.count(&[steps])?;
    let step = if steps > 1 { (end - start) / (steps - 1) as f64 } else { 0.0 };
    // From both ends, so that the last value is the end.
    let value = |i: i64| {
        if i < steps / 2 { start + step * i as f64 } else { end - step * (steps - 1 - i) as f64 }
    };
    let values: Vec<f64> = if steps == 1 { vec![start] } else { (0..steps).map(value).collect() };
    one(cx.constant(&values, &[steps], declared.dtype)?)
}

fn eye(cx: &mut Cx<'_>) -> Outputs {
    let declared = cx.result()?.clone();
    one(cx.te("eye", Vec::new(), |_| {
        vec![te::compute("eye", &declared.dims, |at| {
            let (yes, no) = (prim::constant(declared.dtype, 1.0), prim::constant(declared.dtype, 0.0));
            prim::select(prim::eq(&at[0], &at[1]), yes, no)
        })]
    })?)
}

fn triangle(cx: &mut Cx<'_>, op: &str) -> Outputs {
    let x = cx.tensor("self")?;
    let k = cx.dim("diagonal")?.unwrap_or_else(|| prim::int(0));
    one(cx.call(op, [x, Expr::prim(k)])?)
}

fn one_hot(cx: &mut Cx<'_>) -> Outputs {
    let (x, declared) = (cx.tensor("self")?, cx.result()?.clone());
    let wide = cx.cast(x, DataType::int(64))?;
    one(cx.te("one_hot", vec![wide], |inputs| {
        vec![te::compute("one_hot", &declared.dims, |at| {
            let last = at.len() - 1;
            let hit = prim::eq(inputs[0].at(&at[..last]), &at[last]);
            prim::select(hit, prim::constant(declared.dtype, 1.0), prim::constant(declared.dtype, 0.0))
        })]
    })?)
}
