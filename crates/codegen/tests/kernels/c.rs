//! Kernels in C: how they read, and that they work where no runtime is.

use std::process::Command;

use relaxide_codegen::compile_to_c;
use relaxide_ir::{Code, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::{ForKind, PrimFunc, Stmt, lower};

use super::{F32, I32, buffer};
use crate::harness::{Kernels, Packed, Tensor, has_c_compiler, kernel};

/// `B[j] = sum of A[j, k] over k`, scaled, with a local accumulator, in parallel.
fn row_sums() -> PrimFunc {
    let n = Var::dim("n");
    let a = relaxide_ir::Buffer::new("A", F32, [PrimExpr::from(&n), PrimExpr::from(16)]);
    let b = relaxide_ir::Buffer::new("B", F32, [PrimExpr::from(&n)]);
    let total = relaxide_ir::Buffer::scoped("total", F32, [1], "local");
    let (j, k, scale) = (Var::dim("j"), Var::dim("k"), Var::prim("scale", F32));
    let at = |index: &Ref<Var>| PrimExpr::from(index);
    let sum = prim::load(&total, [PrimExpr::from(0)]) + prim::load(&a, [at(&j), at(&k)]);
    let body = Stmt::seq([
        Stmt::alloc(&total),
        Stmt::store(&total, [PrimExpr::from(0)], prim::constant(F32, 0.0)),
        Stmt::serial(k.clone(), 16, Stmt::store(&total, [PrimExpr::from(0)], sum)),
        Stmt::store(&b, [at(&j)], prim::math("exp", prim::load(&total, [PrimExpr::from(0)])) * at(&scale)),
    ]);
    let body = Stmt::for_loop(ForKind::Parallel, j, &n, body);
    kernel("row_sums", &[a, b], &[scale], body)
}

/// `B[i] = A[i] * A[i] + i`, whose data wraps around, over vectors of four.
fn squares() -> PrimFunc {
    let (a, b) = (buffer("A", I32, &[8]), buffer("B", I32, &[8]));
    let i = Var::dim("i");
    let index = prim::ramp(PrimExpr::from(&i) * 4, 1, 4);
    let value = prim::load(&a, [index.clone()]) * prim::load(&a, [index.clone()]);
    let value = value + prim::cast(I32.with_lanes(4), index.clone());
    let body = Stmt::serial(i, 2, Stmt::store(&b, [index], value));
    kernel("squares", &[a, b], &[], body)
}

fn source(funcs: &[PrimFunc]) -> String {
    let funcs: Vec<Ref<PrimFunc>> = funcs.iter().cloned().map(Ref::new).collect();
    compile_to_c(&funcs, &Target::c()).unwrap().text(&[], "")
}

/// The functions of the kernels themselves, without what all files have.
fn own_functions(text: &str) -> String {
    let own = text.split_once("\nint RX_NAME(").map_or(text, |(_, own)| own);
    let own = own.split_once("\n#if !defined(RELAXIDE_SHARED_LIBRARY)").map_or(own, |(own, _)| own);
    own.split_once("\n\n").map_or(own, |(_, own)| own).to_string()
}

#[test]
fn kernels_in_c_are_for_people_to_read() {
    let funcs = [lower::lower(&row_sums()).unwrap(), squares()];
    insta::assert_snapshot!(own_functions(&source(&funcs)));
}

#[test]
fn kernels_in_c_work_without_a_runtime() {
    if !has_c_compiler() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("kernels.c"), source(&[lower::lower(&row_sums()).unwrap(), squares()])).unwrap();
    let board = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/harness/board.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-DRELAXIDE_NO_RUNTIME"]);
    cc.args(["-DRELAXIDE_ON_ERROR=board_error", "-include"]).arg(board.replace("board.c", "board.h"));
    cc.arg(at("kernels.c")).args([board, "-lm", "-o"]).arg(at("board"));
    let built = cc.output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(at("board")).output().unwrap();
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(printed.starts_with("2 2\n0 2 6 12 -2147479011 30 42 56\n"), "{printed}");
    assert!(printed.contains("TypeError: Expected 3 arguments when calling:\n  `row_sums(A: Tensor(["), "{printed}");
}

#[test]
fn kernels_in_c_wrap_around_as_native_code_does() {
    if !has_c_compiler() {
        return;
    }
    let kernels = Kernels::compile_c(&[squares(), lower::lower(&row_sums()).unwrap()]);
    let values = [0, 1, 2, 3, 46341, i32::MAX, i32::MIN, -1];
    let mut tensors = [Tensor::of(I32, &values, &[8]), Tensor::zeros(I32, &[8])];
    kernels.run("squares", &mut tensors);
    let expected: Vec<i32> = (0..8).map(|i| values[i].wrapping_mul(values[i]).wrapping_add(i as i32)).collect();
    assert_eq!(tensors[1].values::<i32>(), expected);
    let mut rows = [Tensor::f32(&[0.0; 48], &[3, 16]), Tensor::zeros(F32, &[3])];
    kernels.call("row_sums", &mut rows, &[Packed::float(2.5)]).unwrap();
    assert_eq!(rows[1].values::<f32>(), [2.5; 3]);
    let error = kernels.call("squares", &mut [Tensor::zeros(I32, &[8]), Tensor::zeros(I32, &[7])], &[]).unwrap_err();
    let native = Kernels::compile(&[squares()]);
    let same = native.call("squares", &mut [Tensor::zeros(I32, &[8]), Tensor::zeros(I32, &[7])], &[]).unwrap_err();
    assert_eq!(error, same);
}

/// A choice whose side holds another, both with statements of their own, under one name; and a parameter that cancels out.
#[test]
fn choices_in_c_nest() {
    if !has_c_compiler() {
        return;
    }
    let (a, b, unused) = (buffer("A", I32, &[4]), buffer("B", I32, &[4]), buffer("U", I32, &[4]));
    let i = Var::dim("i");
    let at = |of| prim::load(of, [PrimExpr::from(&i)]);
    let number = |n| prim::constant(I32, f64::from(n));
    let named = |value: PrimExpr| {
        let var = Var::prim("x", I32);
        let body = PrimExpr::from(&var) * PrimExpr::from(&var);
        PrimExpr::from(Ref::new(prim::Let { var, value, body }))
    };
    let inner = prim::if_then_else(prim::gt(at(&a), number(1)), named(at(&a) + 1), number(7));
    let value = prim::if_then_else(prim::gt(at(&a), number(0)), inner * number(3), named(at(&a) - 1));
    let value = value + at(&unused) * number(0);
    let body = Stmt::serial(i.clone(), 4, Stmt::store(&b, [PrimExpr::from(&i)], value));
    let kernels = Kernels::compile_c(&[kernel("choose", &[a, unused, b], &[], body)]);
    let input = Tensor::of(I32, &[-2, 1, 2, 5], &[4]);
    let mut tensors = [input, Tensor::zeros(I32, &[4]), Tensor::zeros(I32, &[4])];
    kernels.run("choose", &mut tensors);
    assert_eq!(tensors[2].values::<i32>(), [9, 21, 27, 108]);
}

#[test]
fn what_c_has_not_is_refused() {
    let small = "float6_e3m2fn".parse::<DataType>().unwrap();
    let (a, b) = (buffer("A", small, &[4]), buffer("B", small, &[4]));
    let copy = Stmt::store(&b, [PrimExpr::from(0)], prim::load(&a, [PrimExpr::from(0)]));
    let refusal = compile_to_c(&[Ref::new(kernel("copy", &[a, b], &[], copy))], &Target::c()).unwrap_err();
    assert_eq!(refusal.code(), Code::ElementType, "{refusal}");
    let target = Target::c().with("mcpu", "riscv64");
    assert_eq!(compile_to_c(&[], &target).unwrap_err().code(), Code::Target);
}
