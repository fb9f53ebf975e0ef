//! Which kernels become one.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{Type, Var};
use relaxide_relax::transform::parse_passes;
use relaxide_relax::*;
use relaxide_tir::{PrimFunc, te};

use super::build::*;
use super::evaluate::Value;

/// The block `y = hard_swish(x @ w * s + t) + r`, as exporters write it.
fn product_with_epilogue() -> (relaxide_ir::IRModule, Vec<Value>) {
    let (x, w) = (param("x", [3, 4]), param("w", [4, 5]));
    let (s, t, r) = (param("s", [5]), param("t", [5]), param("r", [3, 5]));
    let params = [&x, &w, &s, &t, &r];
    let module = program(&params, |b| {
        let y = matmul(b, &x.clone().into(), &w.clone().into())?;
        let y = mul(b, &y, &s.clone().into())?;
        let y = add(b, &y, &t.clone().into())?;
        let up = map(b, "add_three", &[&y], |v| &v[0] + 3)?;
        let cut = map(b, "clip", &[&up], |v| prim::min(prim::max(&v[0], 0), 6))?;
        let y = mul(b, &y, &cut)?;
        let y = map(b, "sixth", &[&y], |v| prim::div(&v[0], 6))?;
        add(b, &y, &r.clone().into())
    });
    let args = vec![numbers(&[3, 4], 1), numbers(&[4, 5], 2), numbers(&[5], 3), numbers(&[5], 4), numbers(&[3, 5], 5)];
    (module, args)
}

#[test]
fn a_product_takes_bias_scale_activation_and_residual() {
    let (module, args) = product_with_epilogue();
    let kernels = check(&module, &args);
    assert_eq!(kernels, ["fused_matmul_mul_add_add_three_clip_mul1_sixth_add1"]);
}

#[test]
fn kernels_that_were_merged_are_gone() {
    let (module, _) = product_with_epilogue();
    let after = fused(&module);
    assert_eq!(after.functions_of::<PrimFunc>().count(), 1);
    assert_eq!(after.functions_of::<Function>().count(), 1);
}

#[test]
fn a_value_that_is_returned_ends_a_group() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        let y = b.emit_output(y)?;
        let z = map(b, "exp", &[&y], |v| prim::math("exp", v[0].clone()))?;
        let z = map(b, "neg", &[&z], |v| prim::float_of(F32, 0.0) - &v[0])?;
        Ok(Expr::tuple([y, z]))
    });
    assert_eq!(check(&module, &[numbers(&[4], 1)]), ["relu", "fused_exp_neg"]);
}

#[test]
fn a_value_with_two_outlets_stays_outside() {
    let x = param("x", [4, 4]);
    let module = program(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        let p = matmul(b, &y, &x.clone().into())?;
        add(b, &y, &p)
    });
    assert_eq!(check(&module, &[numbers(&[4, 4], 1)]), ["relu", "fused_matmul_add"]);
}

#[test]
fn two_products_do_not_share_a_kernel() {
    let (x, w) = (param("x", [4, 4]), param("w", [4, 4]));
    let module = program(&[&x, &w], |b| {
        let p = matmul(b, &x.clone().into(), &w.clone().into())?;
        let q = matmul(b, &w.clone().into(), &x.clone().into())?;
        let sum = add(b, &p, &q)?;
        relu(b, &sum)
    });
    let kernels = check(&module, &[numbers(&[4, 4], 1), numbers(&[4, 4], 2)]);
    assert_eq!(kernels, ["matmul", "fused_matmul_add_relu"]);
}

#[test]
fn a_product_leaves_rearranging_to_the_next_kernel() {
    let (x, w) = (param("x", [3, 4]), param("w", [4, 5]));
    let module = program(&[&x, &w], |b| {
        let y = matmul(b, &x.clone().into(), &w.clone().into())?;
        let y = relu(b, &y)?;
        let y = transpose(b, &y)?;
        relu(b, &y)
    });
    let kernels = check(&module, &[numbers(&[3, 4], 1), numbers(&[4, 5], 2)]);
    assert_eq!(kernels, ["fused_matmul_relu", "fused_transpose_relu1"]);
}

#[test]
fn dimensions_of_size_one_are_no_obstacle() {
    let x = param("x", [3, 4, 5]);
    let module = program(&[&x], |b| {
        let y = b.emit_te("strided_slice", vec![x.clone().into()], |t| {
            vec![te::compute("S", [1, 4, 5], |i| t[0].at(&[&i[0] + 2, i[1].clone(), i[2].clone()]))]
        })?;
        let y = b.emit_te("squeeze", vec![y], |t| {
            vec![te::compute("Q", [4, 5], |i| t[0].at(&[0.into(), i[0].clone(), i[1].clone()]))]
        })?;
        relu(b, &y)
    });
    assert_eq!(check(&module, &[numbers(&[3, 4, 5], 1)]), ["fused_strided_slice_squeeze_relu"]);
}

#[test]
fn a_product_that_puts_its_results_elsewhere_takes_what_follows() {
    let (x, w) = (param("x", [3, 4]), param("w", [4, 5]));
    let module = program(&[&x, &w], |b| {
        let y = b.emit_te("spread", vec![x.clone().into(), w.clone().into()], |t| {
            let k = te::reduce_axis(4);
            let c = te::compute("C", [3, 5], |i| {
                te::sum(t[0].at(&[i[0].clone(), k.var()]) * t[1].at(&[k.var(), i[1].clone()]), [&k])
            });
            let at = |i: &[PrimExpr]| [prim::floormod(i[0].clone(), 3), prim::floordiv(i[0].clone(), 3)];
            vec![te::compute("S", [15], |i| c.at(&at(i)))]
        })?;
        relu(b, &y)
    });
    assert_eq!(check(&module, &[numbers(&[3, 4], 1), numbers(&[4, 5], 2)]), ["fused_spread_relu"]);
}

#[test]
fn a_layer_norm_of_many_operators_is_one_kernel() {
    let n = Var::dim("n");
    let x = param("x", [PrimExpr::from(&n), 8.into()]);
    let (g, h) = (param("g", [8]), param("h", [8]));
    let module = program(&[&x, &g, &h], |b| {
        let x: Expr = x.clone().into();
        let scale = |v: &[PrimExpr]| &v[0] * prim::float_of(F32, 0.125);
        let s = reduce_rows(b, "sum", &x)?;
        let m = map(b, "mean", &[&s], scale)?;
        let d = map(b, "sub", &[&x, &m], |v| &v[0] - &v[1])?;
        let q = map(b, "square", &[&d], |v| &v[0] * &v[0])?;
        let s = reduce_rows(b, "sum", &q)?;
        let var = map(b, "var", &[&s], scale)?;
        let e = map(b, "add_eps", &[&var], |v| &v[0] + prim::float_of(F32, 1e-5))?;
        let r = map(b, "sqrt", &[&e], |v| prim::math("sqrt", v[0].clone()))?;
        let y = map(b, "div", &[&d, &r], |v| prim::div(&v[0], &v[1]))?;
        let y = mul(b, &y, &g.clone().into())?;
        add(b, &y, &h.clone().into())
    });
    let kernels = check(&module, &[numbers(&[3, 8], 1), numbers(&[8], 2), numbers(&[8], 3)]);
    assert_eq!(kernels.len(), 1, "{kernels:?}");
}

#[test]
fn a_softmax_of_many_operators_is_one_kernel_behind_a_product() {
    let (x, w) = (param("x", [3, 4]), param("w", [4, 5]));
    let module = program(&[&x, &w], |b| {
        let y = matmul(b, &x.clone().into(), &w.clone().into())?;
        let y = map(b, "scale", &[&y], |v| &v[0] * prim::float_of(F32, 0.5))?;
        let top = reduce_rows(b, "max", &y)?;
        let d = map(b, "sub", &[&y, &top], |v| &v[0] - &v[1])?;
        let e = map(b, "exp", &[&d], |v| prim::math("exp", v[0].clone()))?;
        let s = reduce_rows(b, "sum", &e)?;
        map(b, "div", &[&e, &s], |v| prim::div(&v[0], &v[1]))
    });
    let kernels = check(&module, &[numbers(&[3, 4], 1), numbers(&[4, 5], 2)]);
    assert_eq!(kernels, ["fused_matmul_scale", "fused_max_sub_exp_sum_div"]);
}

#[test]
fn reductions_along_different_rows_stay_apart() {
    let x = param("x", [4, 6]);
    let module = program(&[&x], |b| {
        let s = reduce_rows(b, "sum", &x.clone().into())?;
        let t = transpose(b, &s)?;
        reduce_rows(b, "sum", &t)
    });
    let kernels = check(&module, &[numbers(&[4, 6], 1)]);
    assert_eq!(kernels, ["fused_sum_transpose", "sum1"]);
}

#[test]
fn symbolic_dimensions_that_no_tensor_binds_are_passed() {
    let n = Var::dim("n");
    let x = param("x", [PrimExpr::from(&n) * 2]);
    let module = program(&[&x, &Var::new("s", Type::shape([&n]))], |b| {
        let y = relu(b, &x.clone().into())?;
        map(b, "exp", &[&y], |v| prim::math("exp", v[0].clone()))
    });
    let grouped = after(&module, &["AnnotateTIROpPattern", "FuseOps"]);
    let outlined = grouped.functions_of::<Function>().find(|(name, _)| name.starts_with("fused")).expect("a group").1;
    assert!(matches!(outlined.params.last().map(|p| &p.ty), Some(Type::Shape(_))));
    let args = [numbers(&[6], 1), Value::Shape(vec![3])];
    same_results(&module, &grouped, &args);
    assert_eq!(check(&module, &args), ["fused_relu_exp"]);
}

#[test]
fn constants_are_arguments_and_scalars_literals_where_they_are_kept() {
    let x = param("x", [2, 3]);
    let module = program(&[&x], |b| {
        let three = Expr::constant(relaxide_ffi::Tensor::from_slice(&[3.0f32], &[]).unwrap());
        let row = Expr::constant(relaxide_ffi::Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap());
        let y = add(b, &x.clone().into(), &three)?;
        mul(b, &y, &row)
    });
    let params = |module: &relaxide_ir::IRModule| {
        let (_, kernel) = module.functions_of::<PrimFunc>().next().expect("a kernel");
        kernel.params.len()
    };
    assert_eq!(params(&fused(&module)), 4);
    let passes = parse_passes("AnnotateTIROpPattern, FuseOps(keep_scalars=True), FuseTIR").expect("they are there");
    let context = relaxide_ir::pass::PassContext::default();
    let kept = passes.iter().fold(module.clone(), |module, pass| pass.run(module, &context).expect("it succeeds"));
    assert_eq!(params(&kept), 3);
    assert_eq!(check(&module, &[numbers(&[2, 3], 1)]), ["fused_add_mul"]);
}

#[test]
fn equal_groups_are_one_kernel() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| {
        let layer = |b: &mut BlockBuilder, x: &Expr| {
            let y = relu(b, x)?;
            map(b, "exp", &[&y], |v| prim::math("exp", v[0].clone()))
        };
        let y = layer(b, &x.clone().into())?;
        let y = b.emit_output(y)?;
        let z = layer(b, &y)?;
        Ok(Expr::tuple([y, z]))
    });
    assert_eq!(check(&module, &[numbers(&[4], 1)]), ["fused_relu_exp", "fused_relu_exp"]);
}

#[test]
fn groups_end_at_the_depth_limit() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| (0..4).try_fold(x.clone().into(), |y: Expr, _| relu(b, &y)));
    let annotated = after(&module, &["AnnotateTIROpPattern"]);
    let mut context = relaxide_ir::pass::PassContext::default();
    context.config.set("relax.FuseOps.max_depth", 2).expect("the option exists");
    let pass = relaxide_relax::transform::pass("FuseOps").expect("it is there");
    let grouped = pass.run(annotated, &context).expect("it succeeds");
    let largest = grouped
        .functions_of::<Function>()
        .filter(|(name, _)| name.starts_with("fused"))
        .map(|(_, f)| f.body.blocks[0].bindings.len())
        .max();
    assert_eq!(largest, Some(2));
    same_results(&module, &grouped, &[numbers(&[4], 1)]);
}

#[test]
fn kernels_without_a_pattern_stay_alone() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        relu(b, &y)
    });
    assert_eq!(calls(&after(&module, &["FuseOps", "FuseTIR"])), ["relu", "relu"]);
}
