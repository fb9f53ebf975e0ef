//! Kernels that copy elements in order, as views.

use relaxide_ir::Var;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_tir::te;

use super::build::*;

/// `x` of shape (n, 8), its rows cut into four, scaled.
fn split_rows(copy: fn(&te::Tensor, &[PrimExpr]) -> PrimExpr) -> relaxide_ir::IRModule {
    let n = PrimExpr::from(&Var::dim("n"));
    let x = param("x", [n.clone(), 8.into()]);
    program(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        let y = b.emit_te("split", vec![y], |t| {
            vec![te::compute("S", [n.clone(), 2.into(), 4.into()], |i| copy(&t[0], i))]
        })?;
        relu(b, &y)
    })
}

#[test]
fn a_kernel_that_copies_in_order_becomes_a_view() {
    let module = split_rows(|t, i| t.at(&[i[0].clone(), &i[1] * 4 + &i[2]]));
    let after = after(&module, &["RewriteDataflowReshape"]);
    assert_eq!(calls(&after), ["relu", "reshape", "relu1"]);
    same_results(&module, &after, &[numbers(&[3, 8], 1)]);
}

#[test]
fn a_kernel_that_rearranges_stays() {
    let module = split_rows(|t, i| t.at(&[i[0].clone(), &i[2] * 2 + &i[1]]));
    let after = after(&module, &["RewriteDataflowReshape"]);
    assert_eq!(calls(&after), ["relu", "split", "relu1"]);
}

#[test]
fn fusion_leaves_views_alone() {
    let module = split_rows(|t, i| t.at(&[i[0].clone(), &i[1] * 4 + &i[2]]));
    let after = after(&fused(&module), &["RewriteDataflowReshape"]);
    assert_eq!(calls(&after), ["relu", "reshape", "relu1"]);
    same_results(&module, &after, &[numbers(&[2, 8], 1)]);
}

#[test]
fn a_result_stays_a_copy() {
    let x = param("x", [4, 2]);
    let module = program(&[&x], |b| {
        let y = b.emit_te("flat", vec![x.clone().into()], |t| {
            let at = |i: &[PrimExpr]| [prim::floordiv(i[0].clone(), 2), prim::floormod(i[0].clone(), 2)];
            vec![te::compute("F", [8], |i| t[0].at(&at(i)))]
        })?;
        b.emit_output(y)
    });
    let result = after(&module, &["CanonicalizeBindings", "RewriteDataflowReshape"]);
    assert_eq!(calls(&result), ["flat"]);
    same_results(&module, &result, &[numbers(&[4, 2], 1)]);
}
