//! Operators that look for elements: buckets, what is not zero, what is unique, draws from a distribution.
//!
//! How many elements `nonzero` and `unique` give is known when the program runs only; the VM executes them.

use relaxide_ffi::DataType;
use relaxide_ir::Type;
use relaxide_ir::prim::{self, PrimExpr, cast, constant};
use relaxide_tir::{Stmt, te};

use super::loops::{Cell, axes, nest};
use super::manipulate::{input, result_dims};
use super::*;
use crate::shape::prove_equal;

const X: ArgDef = ArgDef::tensor("x", "The input.");

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef::compute(
        "bucketize",
        &[X_INPUT, ArgDef::tensor("boundaries", "The bounds between buckets, in ascending order.")],
        &[
            AttrDef::bool("out_int32", false, "Whether the result is int32, not int64."),
            AttrDef::bool("right", false, "Whether a bound belongs to the bucket behind it."),
        ],
        bucketize_type,
        bucketize,
        "For each element how many bounds lie below it (with `right`: not above it): the number of its bucket.",
    ),
    OpDef {
        lower: Lowering::Builtin("relax.run.nonzero"),
        ..OpDef::compute(
            "nonzero",
            &[X],
            &[],
            |cx| {
                cx.tensor(0)?;
                Ok(Type::tensor_ndim(2, DataType::int(64)))
            },
            no_kernel,
            "The indices of elements that are not zero: a column for each, a row for each dimension. A 0-d tensor counts as one \
             of one dimension.",
        )
    },
    OpDef {
        lower: Lowering::Builtin("relax.run.unique"),
        ..OpDef::compute(
            "unique",
            &[
                X,
                ArgDef::scalar(
                    "sorted",
                    "Whether they are in ascending order, else in that of their first occurrence.",
                )
                .or(ArgDefault::Bool(true)),
                ArgDef::scalar("return_index", "Whether the index of each first occurrence is given.")
                    .or(ArgDefault::Bool(false)),
                ArgDef::scalar("return_inverse", "Whether for each element the index of its like is given.")
                    .or(ArgDefault::Bool(false)),
                ArgDef::scalar("return_counts", "Whether the number of occurrences is given.")
                    .or(ArgDefault::Bool(false)),
                ArgDef::scalar("axis", "The dimension whose slices are compared; of the flattened tensor if absent.")
                    .optional(),
            ],
            &[],
            unique_type,
            no_kernel,
            "Each element, or slice, once. With one of the further results a tuple of them, the elements first.",
        )
    },
    OpDef::compute(
        "multinomial_from_uniform",
        &[
            ArgDef::tensor("prob", "Probabilities: a row for each distribution."),
            ArgDef::tensor("uniform_sample", "Numbers between 0 and 1, one for each draw: (n, 1)."),
            ArgDef::tensor("sample_indices", "Which distribution each draw is of: (n, 1)."),
        ],
        &[AttrDef::new("dtype", AttrKind::DType, AttrDefault::Str("int64"), "Dtype of the result.")],
        multinomial_type,
        multinomial,
        "For each draw the first index at which the running sum of its distribution exceeds its number.",
    ),
];

const X_INPUT: ArgDef = ArgDef::tensor("input_tensor", "The elements that are put into buckets.");

fn no_kernel(cx: &CallCx, _: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    cx.unsupported("is executed by the VM")
}

fn bucket_dtype(cx: &CallCx) -> Result<DataType, OpError> {
    Ok(DataType::int(if cx.bool("out_int32")? { 32 } else { 64 }))
}

fn bucketize_type(cx: &CallCx) -> Result<Type, OpError> {
    let (x, boundaries) = (cx.tensor(0)?, cx.tensor(1)?);
    if let Some(n) = boundaries.ndim.filter(|n| *n != 1) {
        return cx.invalid(format!("`boundaries` has {n} dimensions, not 1"));
    }
    Ok(TensorInfo { dtype: bucket_dtype(cx)?, ..x }.ty())
}

/// Running sums of all rows first, which threads share; then a search by halving for each draw.
fn multinomial_by_sums(inputs: &[te::Tensor], dims: &[PrimExpr], dtype: DataType) -> te::Tensor {
    let prob = &inputs[0];
    let sums = scan::running(prob, 1, prob.dtype(), false, 0.0, |a, b| a + b);
    let size = &prob.shape()[1];
    let steps = size.as_int().map_or(63, |n| i64::from(64 - n.max(0).leading_zeros()));
    let outs = [
        ("T_multinomial".to_string(), dims.to_vec(), dtype),
        ("state".to_string(), vec![PrimExpr::from(2)], DataType::int(64)),
    ];
    let sources = [sums, inputs[1].clone(), inputs[2].clone()];
    let mut outs = te::extern_stage("multinomial", &sources, outs, |source, target| {
        let (low, high) = (Cell::new(&target[1], 0), Cell::new(&target[1], 1));
        Stmt::each("i", dims[0].clone(), |i| {
            let of_draw = |j: usize| prim::load(&source[j], [i.clone(), PrimExpr::from(0)]);
            let middle = prim::floordiv(low.get() + high.get(), 2);
            let sum = prim::load(&source[0], [cast(DataType::int(64), of_draw(2)), middle.clone()]);
            let beyond = prim::gt(sum, cast(prob.dtype(), of_draw(1)));
            let halve = Stmt::if_else(beyond, high.set(middle.clone()), low.set(middle + 1));
            let search = Stmt::each("step", steps, |_| Stmt::when(prim::lt(low.get(), high.get()), halve));
            let store = Stmt::store(&target[0], [i.clone(), PrimExpr::from(0)], cast(dtype, low.get()));
            Stmt::seq([low.set(0), high.set(size - 1), search, store])
        })
    });
    outs.swap_remove(0)
}

/// A binary search for each element.
fn bucketize(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let (x, boundaries) = (input(cx, inputs, 0)?, input(cx, inputs, 1)?);
    let (dtype, right) = (bucket_dtype(cx)?, cx.bool("right")?);
    let size = boundaries.shape().first().cloned().unwrap_or_else(|| PrimExpr::from(0));
    let steps = size.as_int().map_or(63, |n| i64::from(64 - n.max(0).leading_zeros()));
    let outs = [
        ("T_bucketize".to_string(), x.shape().to_vec(), dtype),
        ("state".to_string(), vec![PrimExpr::from(2)], DataType::int(64)),
    ];
    let mut outs = te::extern_stage("bucketize", &[x.clone(), boundaries.clone()], outs, |source, target| {
        let (low, high) = (Cell::new(&target[1], 0), Cell::new(&target[1], 1));
        let (vars, at) = axes(x.shape(), "i");
        let middle = prim::floordiv(low.get() + high.get(), 2);
        let element = prim::load(&source[0], at.clone());
        let (wide, bound) = prim::promote(element, prim::load(&source[1], [middle.clone()]));
        let below = if right { prim::le(bound, wide) } else { prim::lt(bound, wide) };
        let halve = Stmt::if_else(below, low.set(&middle + 1), high.set(middle));
        let search = Stmt::each("step", steps, |_| Stmt::when(prim::lt(low.get(), high.get()), halve));
        let store = Stmt::store(&target[0], at, cast(dtype, low.get()));
        nest(&vars, x.shape(), Stmt::seq([low.set(0), high.set(&size), search, store]))
    });
    Ok(vec![outs.swap_remove(0)])
}

fn unique_type(cx: &CallCx) -> Result<Type, OpError> {
    let x = cx.tensor(0)?;
    let flag = |i: usize| match cx.scalar(i)?.as_int() {
        Some(v) => Ok(v != 0),
        None => cx.unsupported("its flags must be constants"),
    };
    flag(1)?;
    let extras = (2..=4).map(flag).collect::<Result<Vec<_>, _>>()?.into_iter().filter(|given| *given).count();
    let values = match (cx.has(5), x.ndim) {
        (_, Some(0)) => Type::tensor([1], x.dtype),
        (false, _) => Type::tensor_ndim(1, x.dtype),
        (true, ndim) => {
            let Some(axis) = cx.scalar(5)?.as_int() else { return cx.unsupported("its axis must be a constant") };
            if let Some(ndim) = ndim {
                cx.axis_of(axis, ndim)?;
            }
            tensor_type(None, ndim, x.dtype)
        }
    };
    if extras == 0 {
        return Ok(values);
    }
    let indices = || match x.ndim {
        Some(0) => Type::tensor([1], DataType::int(64)),
        _ => Type::tensor_ndim(1, DataType::int(64)),
    };
    Ok(Type::tuple(std::iter::once(values).chain((0..extras).map(|_| indices())).collect::<Vec<_>>()))
}

fn multinomial_type(cx: &CallCx) -> Result<Type, OpError> {
    let (prob, uniform, rows) = (cx.tensor(0)?, cx.tensor(1)?, cx.tensor(2)?);
    let is_float = |t: &TensorInfo| t.dtype.is_void() || t.dtype.is_float();
    if !is_float(&prob) || !is_float(&uniform) {
        return cx.invalid("`prob` and `uniform_sample` must be tensors of floating-point numbers");
    }
    if !rows.dtype.is_void() && !rows.dtype.is_integer() {
        return cx.wrong_dtype(format!("`sample_indices` has dtype {}; it must be one of integers", rows.dtype));
    }
    for (i, info) in [&prob, &uniform, &rows].into_iter().enumerate() {
        if let Some(n) = info.ndim.filter(|n| *n != 2) {
            return cx.invalid(format!("argument {i} has {n} dimensions, not 2"));
        }
    }
    let dtype = cx.dtype("dtype").unwrap_or(DataType::int(64));
    if [&prob, &uniform, &rows].iter().any(|t| t.ndim.is_none()) {
        return Ok(tensor_type(None, None, dtype));
    }
    let (Some(a), Some(b), true) = (&uniform.dims, &rows.dims, prob.dims.is_some()) else {
        return Ok(tensor_type(None, Some(2), dtype));
    };
    if !prove_equal(&a[0], &b[0]) || [a, b].iter().any(|d| d[1].as_int().is_some_and(|v| v != 1)) {
        return cx.invalid("`uniform_sample` and `sample_indices` must have one shape, (n, 1)");
    }
    Ok(Type::tensor([a[0].clone(), PrimExpr::from(1)], dtype))
}

fn multinomial(cx: &CallCx, inputs: &[te::Tensor]) -> Result<Vec<te::Tensor>, OpError> {
    let prob = input(cx, inputs, 0)?;
    let dims = result_dims(cx)?;
    let dtype = cx.dtype("dtype").unwrap_or(DataType::int(64));
    let size = &prob.shape()[1];
    if cx.over_threads {
        return Ok(vec![multinomial_by_sums(inputs, &dims, dtype)]);
    }
    let outs = [
        ("T_multinomial".to_string(), dims.clone(), dtype),
        ("sum".to_string(), vec![PrimExpr::from(1)], prob.dtype()),
        ("found".to_string(), vec![PrimExpr::from(1)], DataType::int(64)),
    ];
    let mut outs = te::extern_stage("multinomial", inputs, outs, |source, target| {
        let (sum, found) = (Cell::new(&target[1], 0), Cell::new(&target[2], 0));
        Stmt::each("i", dims[0].clone(), |i| {
            let of_draw = |j: usize| prim::load(&source[j], [i.clone(), PrimExpr::from(0)]);
            let row = cast(DataType::int(64), of_draw(2));
            let number = cast(prob.dtype(), of_draw(1));
            let step = Stmt::each("j", size.clone(), |j| {
                let add = sum.set(sum.get() + prim::load(&source[0], [row, j.clone()]));
                let here = prim::and(prim::lt(found.get(), 0), prim::gt(sum.get(), number));
                Stmt::seq([add, Stmt::when(here, found.set(j.clone()))])
            });
            let index = prim::select(prim::lt(found.get(), 0), size - 1, found.get());
            let store = Stmt::store(&target[0], [i.clone(), PrimExpr::from(0)], cast(dtype, index));
            Stmt::seq([sum.set(constant(prob.dtype(), 0.0)), found.set(-1), step, store])
        })
    });
    Ok(vec![outs.swap_remove(0)])
}
