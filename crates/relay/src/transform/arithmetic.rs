//! Rules that replace a call by a cheaper one that means the same: `SimplifyExpr`, `SimplifyInference`, `FastMath`,
//! `CanonicalizeCast`, `DynamicToStatic`.
//!
//! Each rule looks at one call with its parts rebuilt; types come from the program before the pass, which a rule's result
//! does not change.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::Attrs;

use super::table::TransformError;
use crate::rewrite::rewrite;
use crate::*;

/// A module with every function's body rebuilt by a rule that knows the types of what was there.
pub(super) fn with_types(
    module: &Module,
    mut rule: impl FnMut(&Expr, &Expr, &Types) -> Option<Expr>,
) -> Result<Module, TransformError> {
    let types = infer(&prelude::with_prelude(module).map_err(TransformError::Value)?).map_err(TransformError::Types)?;
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let body = rewrite(&function.body, &mut |new, old| rule(new, old, &types));
        if !body.ptr_eq(&function.body) {
            *function = function.with_body(body);
        }
    }
    Ok(out)
}

/// A call of an operator with its defaults filled in.
pub(super) fn call(name: &str, args: impl Into<Vec<Expr>>, attrs: Attrs) -> Option<Expr> {
    let attrs = op::lookup(name)?.complete_attrs(&attrs).ok()?;
    Some(Expr::call_with(Expr::op(name), args, attrs))
}

fn plain(name: &str, args: impl Into<Vec<Expr>>) -> Option<Expr> {
    call(name, args, Attrs::new())
}

/// Whether an expression is a constant all of whose elements are a number.
fn is_all(expr: &Expr, value: f64) -> bool {
    let Expr::Constant(c) = expr else { return false };
    let number = |n: scalar::Number| match n {
        scalar::Number::Float(v) => v == value,
        scalar::Number::Int(v) => v as f64 == value,
        scalar::Number::Bool(_) => false,
    };
    c.data.numel() > 0 && scalar::numbers(&c.data).is_some_and(|list| list.into_iter().all(number))
}

/// Whether a call with this operand in the place of the result would have the result's type.
fn keeps_type(types: &Types, operand: &Expr, result: &Expr) -> bool {
    match (types.of(operand), types.of(result)) {
        (Some(Type::Tensor(a)), Some(Type::Tensor(b))) => a.shape == b.shape && a.dtype == b.dtype && a.is_static(),
        _ => false,
    }
}

/// SimplifyExpr: adding 0, multiplying by 1, changes of shape that follow each other or change nothing, transposes and casts
/// that take each other away, `x * rsqrt`-like divisions.
pub fn simplify_expr(module: &Module) -> Result<Module, TransformError> {
    with_types(module, |new, old, types| {
        let (call_, name) = new.as_op_call()?;
        let (before, _) = old.as_op_call()?;
        match name {
            "add" | "subtract" if is_all(&call_.args[1], 0.0) && keeps_type(types, &before.args[0], old) => {
                Some(call_.args[0].clone())
            }
            "add" if is_all(&call_.args[0], 0.0) && keeps_type(types, &before.args[1], old) => {
                Some(call_.args[1].clone())
            }
            "multiply" | "divide" if is_all(&call_.args[1], 1.0) && keeps_type(types, &before.args[0], old) => {
                Some(call_.args[0].clone())
            }
            "multiply" if is_all(&call_.args[0], 1.0) && keeps_type(types, &before.args[1], old) => {
                Some(call_.args[1].clone())
            }
            "reshape" | "nn.batch_flatten" => simplify_reshape(call_, before, old, types),
            "transpose" => simplify_transpose(call_),
            "cast" if keeps_type(types, &before.args[0], old) => Some(call_.args[0].clone()),
            "concatenate" | "copy" => match (name, &call_.args[0]) {
                ("concatenate", Expr::Tuple(t)) if t.fields.len() == 1 => Some(t.fields[0].clone()),
                ("copy", x) => Some(x.clone()),
                _ => None,
            },
            "divide" => {
                let (inner, "sqrt") = call_.args[1].as_op_call()? else { return None };
                plain("multiply", [call_.args[0].clone(), plain("rsqrt", [inner.args[0].clone()])?])
            }
            _ => None,
        }
    })
}

fn simplify_reshape(call_: &Ref<Call>, before: &Ref<Call>, old: &Expr, types: &Types) -> Option<Expr> {
    if keeps_type(types, &before.args[0], old) {
        return Some(call_.args[0].clone());
    }
    // The last of several says the shape.
    let (inner, "reshape" | "nn.batch_flatten") = call_.args[0].as_op_call()? else { return None };
    let Some(Type::Tensor(ty)) = types.of(old) else { return None };
    if !ty.is_static() {
        return None;
    }
    call("reshape", [inner.args[0].clone()], Attrs::new().with("newshape", ty.shape.clone()))
}

fn simplify_transpose(call_: &Ref<Call>) -> Option<Expr> {
    let (inner, "transpose") = call_.args[0].as_op_call()? else { return None };
    let (outer, inner_axes) = (call_.attrs.ints("axes")?, inner.attrs.ints("axes")?);
    let count = inner_axes.len() as i64;
    let place = |axis: i64| usize::try_from(if axis < 0 { axis + count } else { axis }).ok();
    let axes: Option<Vec<i64>> = outer.iter().map(|axis| inner_axes.get(place(*axis)?).copied()).collect();
    let axes: Vec<i64> = axes?.into_iter().map(|axis| if axis < 0 { axis + count } else { axis }).collect();
    if axes.iter().enumerate().all(|(i, axis)| *axis == i as i64) {
        return Some(inner.args[0].clone());
    }
    call("transpose", [inner.args[0].clone()], Attrs::new().with("axes", axes))
}

/// FastMath: exp, tanh, erf and softmax become their approximations, which are the same kernels here.
pub fn fast_math(module: &Module) -> Result<Module, TransformError> {
    with_types(module, |new, _, _| {
        let (call_, name) = new.as_op_call()?;
        let fast = match name {
            "exp" => "fast_exp",
            "tanh" => "fast_tanh",
            "erf" => "fast_erf",
            "nn.softmax" => "nn.fast_softmax",
            _ => return None,
        };
        call(fast, call_.args.clone(), call_.attrs.clone())
    })
}

/// CanonicalizeCast: a cast up that several read is made for each of them, so that each can be fused with its reader.
pub fn canonicalize_cast(module: &Module) -> Result<Module, TransformError> {
    with_types(module, |new, old, types| {
        let (call_, _) = new.as_op_call()?;
        let (before, _) = old.as_op_call()?;
        let mut changed = false;
        let mut args = Vec::new();
        for (arg, was) in call_.args.iter().zip(&before.args) {
            let copied = match (arg.as_op_call(), was.as_op_call()) {
                (Some((cast, "cast")), Some((inner, "cast"))) => {
                    let bits = |e: &Expr| match types.of(e) {
                        Some(Type::Tensor(t)) => Some(t.dtype.bits),
                        _ => None,
                    };
                    (bits(was)? > bits(&inner.args[0])?)
                        .then(|| Expr::call_with(cast.op.clone(), cast.args.clone(), cast.attrs.clone()))
                }
                _ => None,
            };
            changed |= copied.is_some();
            args.push(copied.unwrap_or_else(|| arg.clone()));
        }
        changed.then(|| {
            let (op, attrs, type_args, span) =
                (call_.op.clone(), call_.attrs.clone(), call_.type_args.clone(), call_.span.clone());
            Ref::new(Call { op, args, attrs, type_args, span }).into()
        })
    })
}

/// DynamicToStatic: a dynamic operator whose sizes are constants becomes the static one.
pub fn dynamic_to_static(module: &Module) -> Result<Module, TransformError> {
    let shapes = with_types(module, |new, old, types| {
        let (call_, "shape_of" | "vm.shape_of") = new.as_op_call()? else { return None };
        let (before, _) = old.as_op_call()?;
        let ty = types.of(before.args.first()?)?;
        let ty = ty.as_tensor().filter(|ty| ty.is_static())?;
        let count = [ty.shape.len() as i64];
        let small = || ty.shape.iter().map(|d| i32::try_from(*d).ok()).collect::<Option<Vec<i32>>>();
        let shape = match call_.attrs.dtype("dtype").filter(|d| *d == DataType::int(64)) {
            Some(_) => Tensor::from_slice(&ty.shape, &count),
            None => Tensor::from_slice(&small()?, &count),
        };
        shape.ok().map(Expr::constant)
    })?;
    let folded = super::fold_constant(&shapes).map_err(TransformError::Value)?;
    with_types(&folded, |new, _, _| {
        let (call_, name) = new.as_op_call()?;
        let ints = |i: usize| match call_.args.get(i)? {
            Expr::Constant(c) => scalar::ints(&c.data),
            _ => None,
        };
        let first = call_.args.first().cloned()?;
        let keep = call_.attrs.clone();
        match name {
            "dyn.reshape" => call("reshape", [first], keep.with("newshape", ints(1)?)),
            "dyn.broadcast_to" => call("broadcast_to", [first], keep.with("shape", ints(1)?)),
            "dyn.full" => call("full", [first], keep.with("shape", ints(1)?)),
            "dyn.zeros" => call("zeros", [], keep.with("shape", ints(0)?)),
            "dyn.ones" => call("ones", [], keep.with("shape", ints(0)?)),
            "dyn.tile" => call("tile", [first], keep.with("reps", ints(1)?)),
            "dyn.topk" => call("topk", [first], keep.with("k", *ints(1)?.first()?)),
            "dyn.squeeze" => call("squeeze", [first], Attrs::new().with("axis", ints(1)?)),
            "dyn.expand_dims" => call("expand_dims", [first], Attrs::new().with("axis", *ints(1)?.first()?)),
            "dyn.one_hot" => call("one_hot", call_.args[..3].to_vec(), keep.with("depth", *ints(3)?.first()?)),
            "dyn.nn.pad" => call("nn.pad", [first, call_.args[2].clone()], keep.with("pad_width", ints(1)?)),
            "dyn.image.resize2d" => {
                let roi = vec![0.0f64; 4];
                call("image.resize2d", [first], keep.with("size", ints(1)?).with("roi", roi))
            }
            "dyn.strided_slice" => {
                let bounds = keep.with("begin", ints(1)?).with("end", ints(2)?).with("strides", ints(3)?);
                call("strided_slice", [first], bounds)
            }
            "dyn.sparse_to_dense" => {
                call("sparse_to_dense", call_.args[..3].to_vec(), Attrs::new().with("output_shape", ints(3)?))
            }
            _ => None,
        }
    })
}

/// SimplifyInference: what only training needs is left out, and normalizations become arithmetic.
pub fn simplify_inference(module: &Module) -> Result<Module, TransformError> {
    with_types(module, |new, old, types| match new {
        Expr::TupleGetItem(get) if get.index == 0 => {
            let Expr::TupleGetItem(was) = old else { return None };
            match get.tuple.as_op_call()? {
                (call_, "nn.dropout") => Some(call_.args[0].clone()),
                (call_, "nn.batch_norm") => {
                    let (before, _) = was.tuple.as_op_call()?;
                    batch_norm(call_, &types.of(&before.args[0])?)
                }
                _ => None,
            }
        }
        _ => None,
    })
}

/// `x * s + (beta - mean * s)` with `s = gamma / sqrt(variance + epsilon)`.
fn batch_norm(call_: &Ref<Call>, data: &Type) -> Option<Expr> {
    let ty = data.as_tensor()?;
    let [x, gamma, beta, mean, variance] = call_.args.as_slice() else { return None };
    let epsilon = Expr::constant(scalar::float(call_.attrs.float("epsilon")?, ty.dtype).ok()?);
    let one: Expr = Expr::constant(scalar::float(1.0, ty.dtype).ok()?);
    let moved = plain("add", [variance.clone(), epsilon])?;
    let mut scale = plain("divide", [one, plain("sqrt", [moved])?])?;
    if call_.attrs.bool("scale").unwrap_or(true) {
        scale = plain("multiply", [scale, gamma.clone()])?;
    }
    let mut shift = plain("multiply", [plain("negative", [mean.clone()])?, scale.clone()])?;
    if call_.attrs.bool("center").unwrap_or(true) {
        shift = plain("add", [shift, beta.clone()])?;
    }
    let ndim = ty.shape.len() as i64;
    let axis = call_.attrs.int("axis")?;
    let behind = ndim - 1 - if axis < 0 { axis + ndim } else { axis };
    let along = |vector: Expr| match behind {
        0 => Some(vector),
        _ => call("expand_dims", [vector], Attrs::new().with("axis", 1).with("num_newaxis", behind)),
    };
    plain("add", [plain("multiply", [x.clone(), along(scale)?])?, along(shift)?])
}

/// The elements of a constant of single-precision numbers.
pub(super) fn floats(expr: &Expr) -> Option<Vec<f32>> {
    match expr {
        Expr::Constant(c) if c.data.dtype() == DataType::float(32) => c.data.to_vec::<f32>().ok(),
        _ => None,
    }
}

/// A constant of single-precision numbers.
pub(super) fn float_constant(values: &[f32], shape: &[i64]) -> Option<Expr> {
    Tensor::from_slice(values, shape).ok().map(Expr::constant)
}

/// Operators that are made of others before anything is computed: each part of a joined quantized tensor is brought to the scale
/// of the result by a call of its own, so that constant scales that stand in a tuple are seen as the constants that they are; the
/// rows that a sparse matrix lacks are found first.
pub(crate) fn expand_composed(module: &Module) -> Module {
    let mut out = module.clone();
    for function in out.functions.values_mut() {
        let body = rewrite(&function.body, &mut |new, _| match new.as_op_call()? {
            (call_, "qnn.concatenate") => joined_quantized(call_),
            (call_, "sparse_fill_empty_rows") => without_empty_rows(call_),
            _ => None,
        });
        if !body.ptr_eq(&function.body) {
            *function = function.with_body(body);
        }
    }
    out
}

fn joined_quantized(call_: &Ref<Call>) -> Option<Expr> {
    let [Expr::Tuple(parts), Expr::Tuple(scales), Expr::Tuple(zeros), scale, zero] = call_.args.as_slice() else {
        return None;
    };
    if parts.fields.len() != scales.fields.len() || parts.fields.len() != zeros.fields.len() {
        return None;
    }
    let moved = parts.fields.iter().zip(&scales.fields).zip(&zeros.fields).map(|((part, from), from_zero)| {
        let args = [part.clone(), from.clone(), from_zero.clone(), scale.clone(), zero.clone()];
        call("qnn.requantize", args, Attrs::new())
    });
    let moved = Expr::tuple(moved.collect::<Option<Vec<_>>>()?);
    call("concatenate", [moved], Attrs::new().with("axis", call_.attrs.int("axis")?))
}

/// Rows that have no number are found, each gets the default in its first column, and all is brought into the order of rows.
fn without_empty_rows(call_: &Ref<Call>) -> Option<Expr> {
    let [indices, values, shape, default] = call_.args.as_slice() else { return None };
    let int = DataType::int(32);
    let number = |value: i64, dtype: DataType| Expr::int(value, dtype).ok();
    let of = |name: &str, args: Vec<Expr>, attrs: Attrs| call(name, args, attrs);
    let cast = |e: Expr, dtype: DataType| of("cast", vec![e], Attrs::new().with("dtype", dtype));
    let along = |axis: i64| Attrs::new().with("axis", axis);
    let rows = of("take", vec![indices.clone(), number(0, int)?], along(1))?;
    let part = |begin: i64, end: i64| Attrs::new().with("begin", vec![begin]).with("end", vec![end]);
    let height = of("strided_slice", vec![shape.clone()], part(0, 1))?;
    let none = of("dyn.zeros", vec![height], Attrs::new().with("dtype", int))?;
    let ones = plain("ones_like", [cast(rows.clone(), int)?])?;
    let found = of("scatter_elements", vec![none, rows, ones], along(0).with("reduction", "add"))?;
    let empty = plain("equal", [found, number(0, int)?])?;
    let lacking = of("reshape", vec![plain("argwhere", [empty.clone()])?], Attrs::new().with("newshape", vec![-1i64]))?;
    let lacking = plain("cast_like", [lacking, indices.clone()])?;
    // The first column of places is the row, the others are zero.
    let columns = of("strided_slice", vec![shape.clone()], part(1, i64::from(i32::MAX)))?;
    let one = plain("ones_like", [of("strided_slice", vec![shape.clone()], part(0, 1))?])?;
    let first = Expr::tuple([one, plain("zeros_like", [columns])?]);
    let first = plain("cast_like", [of("concatenate", vec![first], along(0))?, indices.clone()])?;
    let column = of("expand_dims", vec![lacking.clone()], along(1).with("num_newaxis", 1i64))?;
    let places = plain("multiply", [column, of("expand_dims", vec![first], along(0).with("num_newaxis", 1i64))?])?;
    let nothing = plain("zeros_like", [plain("cast_like", [lacking, values.clone()])?])?;
    let defaults = plain("add", [nothing, default.clone()])?;
    let places = of("concatenate", vec![Expr::tuple([indices.clone(), places])], along(0))?;
    let all = of("concatenate", vec![Expr::tuple([values.clone(), defaults])], along(0))?;
    let rows = of("take", vec![places.clone(), number(0, int)?], along(1))?;
    let order = of("argsort", vec![rows], along(0).with("is_ascend", true).with("dtype", int))?;
    let places = of("take", vec![places, order.clone()], along(0))?;
    let all = of("take", vec![all, order], along(0))?;
    Some(Expr::tuple([places, all, plain("cast_like", [empty, indices.clone()])?]))
}
