//! Products of matrices.

use relaxide_ffi::DataType;
use relaxide_frontend::Scope;
use relaxide_ir::Attrs;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::Expr;
use relaxide_tir::te;

use super::Table;
use crate::error::NodeError;
use crate::rule::{Cx, Outputs, Result, one};

pub const TABLE: Table = &[
    ("aten.mm", |cx| product(cx, "self", "mat2")),
    ("aten.bmm", |cx| product(cx, "self", "mat2")),
    ("aten.matmul", |cx| product(cx, "self", "other")),
    ("aten.linalg_matmul", |cx| product(cx, "self", "other")),
    ("aten.mv", |cx| product(cx, "self", "vec")),
    ("aten.dot", |cx| product(cx, "self", "tensor")),
    ("aten.inner", inner),
    ("aten.outer", outer),
    ("aten.ger", outer),
    ("aten.addmm", |cx| added(cx, "mat1", "mat2")),
    ("aten.baddbmm", |cx| added(cx, "batch1", "batch2")),
    ("aten.addmv", |cx| added(cx, "mat", "vec")),
    ("aten.addbmm", addbmm),
    ("aten.linear", linear),
    ("aten.einsum", einsum),
    ("aten._grouped_mm", |cx| grouped(cx, "self", "mat2")),
    ("transformers.grouped_mm_fallback", |cx| grouped(cx, "input", "weight")),
    ("aten._trilinear", trilinear),
    ("aten._cdist_forward", distances),
    ("aten.cdist", distances),
];

/// A product in the type of the result.
pub fn matmul(cx: &mut Cx<'_>, a: Expr, b: Expr) -> Result<Expr> {
    let dtype = cx.result()?.dtype;
    let (a, b) = (cx.cast(a, dtype)?, cx.cast(b, dtype)?);
    cx.op("matmul", [a, b], Attrs::new().with("out_dtype", dtype))
}

fn product(cx: &mut Cx<'_>, a: &str, b: &str) -> Outputs {
    let (a, b) = (cx.tensor(a)?, cx.tensor(b)?);
    one(matmul(cx, a, b)?)
}

/// The sum over the last axes of both.
fn inner(cx: &mut Cx<'_>) -> Outputs {
    let (a, b) = (cx.tensor("self")?, cx.tensor("other")?);
    let rank = cx.rank(&b)?;
    if rank == 0 || cx.rank(&a)? == 0 {
        return one(cx.call("multiply", [a, b])?);
    }
    let (left, right) = (cx.shape(&a)?, cx.shape(&b)?);
    let rows = |dims: &[prim::PrimExpr]| dims.iter().fold(prim::int(1), |n, d| n * d);
    let depth = right[rank - 1].clone();
    let a = cx.reshape(a, &[rows(&left[..left.len() - 1]), depth.clone()])?;
    let b = cx.reshape(b, &[rows(&right[..rank - 1]), depth])?;
    let b = cx.permute(b, &[1, 0])?;
    let all = matmul(cx, a, b)?;
    let dims = cx.result()?.dims.clone();
    one(cx.reshape(all, &dims)?)
}

fn outer(cx: &mut Cx<'_>) -> Outputs {
    let (a, b) = (cx.tensor("self")?, cx.tensor("vec2")?);
    let dtype = cx.result()?.dtype;
    let (a, b) = (cx.cast(a, dtype)?, cx.cast(b, dtype)?);
    one(cx.call("outer", [a, b])?)
}

/// A tensor times a factor, which is mostly 1.
fn times(cx: &mut Cx<'_>, x: Expr, name: &str) -> Result<Expr> {
    let factor = cx.float_or(name, 1.0)?;
    if factor == 1.0 {
        return Ok(x);
    }
    let factor = cx.number(factor, cx.dtype(&x))?;
    cx.call("multiply", [x, factor])
}

/// `beta * self + alpha * (a @ b)`.
fn added(cx: &mut Cx<'_>, a: &str, b: &str) -> Outputs {
    let (bias, a, b) = (cx.tensor("self")?, cx.tensor(a)?, cx.tensor(b)?);
    let product = matmul(cx, a, b)?;
    with_bias(cx, bias, product)
}

fn with_bias(cx: &mut Cx<'_>, bias: Expr, product: Expr) -> Outputs {
    let product = times(cx, product, "alpha")?;
    // What is not counted may be NaN.
    if cx.float_or("beta", 1.0)? == 0.0 {
        return one(product);
    }
    let bias = times(cx, bias, "beta")?;
    let bias = cx.cast(bias, cx.dtype(&product))?;
    one(cx.call("add", [bias, product])?)
}

fn addbmm(cx: &mut Cx<'_>) -> Outputs {
    let (bias, a, b) = (cx.tensor("self")?, cx.tensor("batch1")?, cx.tensor("batch2")?);
    let products = matmul(cx, a, b)?;
    let total = cx.op("sum", [products], Attrs::new().with("axis", vec![0i64]))?;
    with_bias(cx, bias, total)
}

/// `input @ weight.T + bias`.
fn linear(cx: &mut Cx<'_>) -> Outputs {
    let (x, weight, bias) = (cx.tensor("input")?, cx.tensor("weight")?, cx.optional("bias")?);
    let columns = if cx.rank(&weight)? == 2 { cx.permute(weight, &[1, 0])? } else { weight };
    let product = matmul(cx, x, columns)?;
    match bias {
        Some(bias) => one(cx.call("add", [product, bias])?),
        None => one(product),
    }
}

fn einsum(cx: &mut Cx<'_>) -> Outputs {
    let equation = cx.text_or("equation", "")?.to_string();
    let dtype = cx.result()?.dtype;
    let mut parts = Vec::new();
    for part in cx.tensors("tensors")? {
        parts.push(cx.cast(part, dtype)?);
    }
    let subscripts: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    one(cx.op("einsum", [Expr::tuple(parts)], Attrs::new().with("subscripts", subscripts))?)
}

/// Three tensors, each with new axes, multiplied and summed over axes.
fn trilinear(cx: &mut Cx<'_>) -> Outputs {
    let mut product: Option<Expr> = None;
    for at in 1..=3 {
        let mut x = cx.tensor(&format!("i{at}"))?;
        let mut axes = cx.ints(&format!("expand{at}"))?.unwrap_or_default();
        axes.sort_unstable();
        for axis in axes {
            x = cx.op("expand_dims", [x], Attrs::new().with("axis", vec![axis]))?;
        }
        product = Some(match product {
            Some(product) => cx.call("multiply", [product, x])?,
            None => x,
        });
    }
    let product = product.ok_or_else(|| NodeError::invalid("nothing is multiplied"))?;
    let axes = cx.ints("sumdim")?.unwrap_or_default();
    if axes.is_empty() {
        return one(product);
    }
    one(cx.op("sum", [product], Attrs::new().with("axis", axes).with("keepdims", false))?)
}

/// The distance of each row of one tensor to each of another.
fn distances(cx: &mut Cx<'_>) -> Outputs {
    let (a, b) = (cx.tensor("x1")?, cx.tensor("x2")?);
    let power = cx.float_or("p", 2.0)?;
    let rank = cx.rank(&a)? as i64;
    let a = cx.op("expand_dims", [a], Attrs::new().with("axis", vec![rank - 1]))?;
    let rows = cx.rank(&b)? as i64;
    let b = cx.op("expand_dims", [b], Attrs::new().with("axis", vec![rows - 2]))?;
    let span = cx.call("subtract", [a, b])?;
    let last = || Attrs::new().with("axis", vec![-1i64]).with("keepdims", false);
    let size = cx.call("abs", [span.clone()])?;
    if power.is_infinite() {
        return one(cx.op("max", [size], last())?);
    }
    if power == 1.0 {
        return one(cx.op("sum", [size], last())?);
    }
    if power == 2.0 {
        let square = cx.call("multiply", [span.clone(), span])?;
        let total = cx.op("sum", [square], last())?;
        return one(cx.call("sqrt", [total])?);
    }
    if power <= 0.0 {
        return Err(NodeError::unsupported(format!("distances with p = {power}")));
    }
    let dtype = cx.dtype(&size);
    let (up, down) = (cx.number(power, dtype)?, cx.number(1.0 / power, dtype)?);
    let raised = cx.call("power", [size, up])?;
    let total = cx.op("sum", [raised], last())?;
    one(cx.call("power", [total, down])?)
}

/// Rows that are multiplied with one of several matrices: the first so many with the first, and so on; `offs` says where each matrix's
/// rows end. Rows behind the last are zero.
fn grouped(cx: &mut Cx<'_>, rows: &str, matrices: &str) -> Outputs {
    let (x, w) = (cx.tensor(rows)?, cx.tensor(matrices)?);
    let (Some(ends), None) = (cx.optional("offs")?, cx.optional("bias")?) else {
        return Err(NodeError::unsupported("products of groups of equal size, or with a bias"));
    };
    let (left, right) = (cx.shape(&x)?, cx.shape(&w)?);
    let ([count, depth], [matrices, rows, columns]) = (left.as_slice(), right.as_slice()) else {
        let (a, b) = (left.len(), right.len());
        return Err(NodeError::unsupported(format!("operands of {a} and {b} axes; 2 and 3 are supported")));
    };
    let x = Scope::new(cx.builder).agree(x, &[count.clone(), rows.clone()])?;
    let ends = Scope::new(cx.builder).agree(ends, std::slice::from_ref(matrices))?;
    let int = DataType::int(64);
    let group = cx.te("group", vec![ends], |inputs| {
        let e = te::reduce_axis(matrices.clone());
        vec![te::compute("group", vec![count.clone()], |at: &[PrimExpr]| {
            let ended = prim::le(prim::cast(int, inputs[0].at(&[e.var()])), at[0].clone());
            te::sum(prim::select(ended, prim::int(1), prim::int(0)), [&e])
        })]
    })?;
    let wide = DataType::float(32);
    let product = cx.te("grouped_matmul", vec![x, w, group.clone()], |inputs| {
        let k = te::reduce_axis(depth.clone());
        vec![te::compute("grouped_matmul", vec![count.clone(), columns.clone()], |at: &[PrimExpr]| {
            let own = prim::min(inputs[2].at(&at[..1]), matrices - 1);
            let weight = inputs[1].at(&[own, k.var(), at[1].clone()]);
            te::sum(prim::cast(wide, inputs[0].at(&[at[0].clone(), k.var()])) * prim::cast(wide, weight), [&k])
        })]
    })?;
    let dtype = cx.result()?.dtype;
    one(cx.te("behind_groups", vec![product, group], |inputs| {
        vec![te::compute("behind_groups", vec![count.clone(), columns.clone()], |at: &[PrimExpr]| {
            let inside = prim::lt(inputs[1].at(&at[..1]), matrices.clone());
            let value = prim::cast(dtype, inputs[0].at(at));
            prim::select(inside, value, prim::constant(dtype, 0.0))
        })]
    })?)
}
