//! What the compiler computes itself.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::pass::PassContext;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax::*;
use relaxide_tir::te;

use super::build::*;

fn constant(dims: &[i64], seed: u32) -> Expr {
    Expr::constant(numbers(dims, seed).tensor().clone())
}

fn folded(module: &relaxide_ir::IRModule) -> relaxide_ir::IRModule {
    after(module, &["FoldConstant"])
}

#[test]
fn a_transposed_weight_is_transposed_once() {
    let x = param("x", [2, 4]);
    let module = program(&[&x], |b| {
        let w = transpose(b, &constant(&[3, 4], 7))?;
        matmul(b, &x.clone().into(), &w)
    });
    let result = folded(&module);
    assert_eq!(calls(&result), ["matmul"]);
    assert!(result.get("transpose").is_none());
    same_results(&module, &result, &[numbers(&[2, 4], 1)]);
}

#[test]
fn chains_reductions_choices_and_intrinsics_fold_to_what_the_interpreter_says() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| {
        let w = constant(&[4, 6], 3);
        let top = reduce_rows(b, "max", &w)?;
        let d = map(b, "sub", &[&w, &top], |v| &v[0] - &v[1])?;
        let e = map(b, "exp", &[&d], |v| prim::math("exp", v[0].clone()))?;
        let s = reduce_rows(b, "sum", &e)?;
        let y = map(b, "div", &[&e, &s], |v| prim::div(&v[0], &v[1]))?;
        let y = b.emit_te("shifted", vec![y], |t| {
            vec![te::compute("S", [4], |i| {
                let at = [i[0].clone(), prim::floormod(&i[0] * 5 - 1, 6)];
                prim::if_then_else(prim::ge(&i[0], 1), t[0].at(&at), prim::float_of(F32, 0.5))
            })]
        })?;
        let half = DataType::float(16);
        let y = map(b, "half", &[&y], |v| prim::cast(F32, prim::cast(half, v[0].clone())))?;
        mul(b, &x.clone().into(), &y)
    });
    let result = folded(&module);
    assert_eq!(calls(&result), ["mul"]);
    same_results(&module, &result, &[numbers(&[4], 1)]);
}

#[test]
fn what_depends_on_a_parameter_stays() {
    let x = param("x", [4]);
    let module = program(&[&x], |b| {
        let y = relu(b, &x.clone().into())?;
        add(b, &y, &constant(&[4], 2))
    });
    assert_eq!(calls(&folded(&module)), ["relu", "add"]);
}

#[test]
fn what_fails_is_left_to_the_program() {
    let module = program(&[], |b| {
        let zero = Expr::constant(Tensor::from_slice(&[0i32, 1], &[2]).unwrap());
        let y = map(b, "reciprocal", &[&zero], |v| {
            prim::binary(relaxide_ir::BinaryOp::FloorDiv, prim::int_of(v[0].dtype(), 1), v[0].clone())
        })?;
        b.emit_output(y)
    });
    assert_eq!(calls(&folded(&module)), ["reciprocal"]);
}

#[test]
fn what_is_too_much_work_and_what_is_not_seen_through_stays() {
    let module = program(&[], |b| {
        let y = relu(b, &constant(&[64], 1))?;
        let y = b.emit_output(y)?;
        let z = b.call_te("scan", vec![constant(&[4], 1)], |t| {
            te::extern_stage("scan", t, [("S".to_string(), vec![PrimExpr::from(4)], F32)], |ins, outs| {
                let is_negative = prim::lt(prim::load(&ins[0], [0]), prim::constant(F32, 0.0));
                let body = relaxide_tir::Stmt::store(&outs[0], [0], prim::load(&ins[0], [0]));
                Ref::new(relaxide_tir::While { condition: is_negative, body }).into()
            })
        })?;
        let z = b.emit_output(z)?;
        Ok(Expr::tuple([y, z]))
    });
    let mut context = PassContext::default();
    context.config.set("relax.FoldConstant.max_work", 100).expect("the option exists");
    let pass = relaxide_relax::transform::pass("FoldConstant").expect("it is there");
    let result = pass.run(module.clone(), &context).expect("it succeeds");
    assert_eq!(calls(&result), ["relu", "scan"]);
    assert_eq!(calls(&folded(&module)), ["scan"]);
}

#[test]
fn a_weight_of_a_megabyte_is_within_the_budget() {
    let x = param("x", [1, 512]);
    let module = program(&[&x], |b| {
        let w = transpose(b, &constant(&[512, 512], 7))?;
        b.emit_output(w)
    });
    let result = folded(&module);
    assert!(calls(&result).is_empty());
    let transposed = super::evaluate::call(&result, "main", &[numbers(&[1, 512], 1)]).floats();
    let weight = numbers(&[512, 512], 7).floats();
    assert_eq!(transposed[512 * 3 + 9], weight[512 * 9 + 3]);
}
