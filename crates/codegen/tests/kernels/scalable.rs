//! Vectors whose length is known only when the kernel runs: on a machine that has them, under emulation; and where they are
//! as long as their shortest.

use relaxide_ir::{BinaryOp, Buffer, PrimExpr, Var, prim};
use relaxide_tir::lower::{LowerOptions, lower, lower_with};
use relaxide_tir::{BufferStore, ForKind, PrimFunc, Stmt};

use super::{F32, I32, I64, numbers};
use crate::harness::{Kernels, Tensor, emulated, has_c_compiler, kernel};
use relaxide_ir::Ref;

/// Sixteen bytes, at least.
fn step() -> PrimExpr {
    prim::lanes_expr(-4)
}

/// `body` for every index below `n`, by vectors, with a condition for what is left of the last.
fn by_vectors(n: &PrimExpr, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
    let (outer, inner) = (Var::dim("outer"), Var::dim("inner"));
    let step = prim::cast(I64, step());
    let at = PrimExpr::from(&outer) * &step + PrimExpr::from(&inner);
    let vectors = prim::floordiv(n.clone() + &step - 1, step.clone());
    let guarded = Stmt::when(prim::binary(BinaryOp::Lt, at.clone(), n.clone()), body(&at));
    Stmt::serial(outer, vectors, Stmt::for_loop(ForKind::Vectorized, inner, step, guarded))
}

/// Kernels for every machine that can be had here.
fn everywhere(func: &PrimFunc) -> Vec<(&'static str, Kernels)> {
    let funcs = [lower(func).unwrap()];
    let mut all = vec![("host", Kernels::compile(&funcs))];
    if has_c_compiler() {
        all.push(("c", Kernels::compile_c(&funcs)));
    }
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => all.push(("scalable", Kernels::compile_for(&funcs, &emulated::SCALABLE.parse().unwrap()))),
    }
    all
}

#[test]
fn a_row_of_any_length_is_covered() {
    let n = Var::dim("n");
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, F32, [PrimExpr::from(&n)]));
    let body =
        by_vectors(&PrimExpr::from(&n), |i| Stmt::store(&b, [i], prim::load(&a, [i]) * prim::float_of(F32, 2.0)));
    for (place, kernels) in everywhere(&kernel("double", &[a, b], &[], body)) {
        for length in [0i64, 1, 3, 4, 7, 8, 9, 100] {
            let values = numbers(length as usize);
            let mut tensors = [Tensor::f32(&values, &[length]), Tensor::zeros(F32, &[length])];
            kernels.run("double", &mut tensors);
            let doubled: Vec<f32> = values.iter().map(|value| value * 2.0).collect();
            assert_eq!(tensors[1].values::<f32>(), doubled, "{length} on {place}");
        }
    }
}

#[test]
fn a_kernel_for_such_a_machine_has_such_vectors() {
    let n = Var::dim("n");
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, F32, [PrimExpr::from(&n)]));
    let body = by_vectors(&PrimExpr::from(&n), |i| Stmt::store(&b, [i], prim::load(&a, [i])));
    let func = Ref::new(lower(&kernel("copy", &[a, b], &[], body)).unwrap());
    let text =
        |target: &str| relaxide_codegen::llvm_text(std::slice::from_ref(&func), &target.parse().unwrap()).unwrap();
    for target in [emulated::SCALABLE, "llvm -mtriple=aarch64-linux-gnu -mcpu=neoverse-v1"] {
        assert!(text(target).contains("llvm.masked.load.nxv4f32.p0"), "{target}");
    }
    for target in ["llvm -mtriple=x86_64-linux-gnu", emulated::TARGET] {
        let text = text(target);
        assert!(text.contains("llvm.masked.load.v4f32.p0") && !text.contains("vscale"), "{target}");
    }
}

#[test]
fn scratch_may_be_as_long_as_a_vector() {
    let [a, b] = ["A", "B"].map(|name| Buffer::new(name, F32, [4]));
    let scratch = Buffer::new("scratch", F32, [prim::cast(I64, step())]);
    let (i, j) = (Var::dim("i"), Var::dim("j"));
    let one = |var: &Ref<Var>, from: &Ref<Buffer>, to: &Ref<Buffer>| {
        Stmt::serial(var.clone(), prim::int(4), Stmt::store(to, [var], prim::load(from, [var])))
    };
    let body = Stmt::seq([Stmt::alloc(&scratch), one(&i, &a, &scratch), one(&j, &scratch, &b)]);
    for (place, kernels) in everywhere(&kernel("through", &[a, b], &[], body)) {
        let mut tensors = [Tensor::f32(&[1.0, 2.0, 3.0, 4.0], &[4]), Tensor::zeros(F32, &[4])];
        kernels.run("through", &mut tensors);
        assert_eq!(tensors[1].values::<f32>(), [1.0, 2.0, 3.0, 4.0], "{place}");
    }
}

/// What has no instruction of scalable vectors goes lane by lane, through memory.
#[test]
fn functions_and_sums_reach_every_lane() {
    const LENGTH: i64 = 48;
    let [x, y] = ["X", "Y"].map(|name| Buffer::new(name, F32, [LENGTH]));
    let [powers, all] = [("P", LENGTH), ("S", 4)].map(|(name, length)| Buffer::new(name, I32, [length]));
    let sums = Buffer::new("F", F32, [4]);
    let outer = Var::dim("outer");
    let step64 = prim::cast(I64, step());
    let lanes = prim::ramp(PrimExpr::from(&outer) * &step64, 1, -4);
    let wide = |e: PrimExpr| prim::broadcast(e, -4);
    let value = prim::load(&x, [&lanes]);
    let store = |buffer: &Ref<Buffer>, value: PrimExpr| {
        let (buffer, indices) = (buffer.clone(), vec![lanes.clone()]);
        Stmt::from(Ref::new(BufferStore { buffer, value, indices, predicate: None }))
    };
    let whole = prim::cast(I32.with_lanes(value.dtype().lanes), lanes.clone());
    let power = prim::call(whole.dtype(), "tirx.pow", vec![whole.clone(), wide(prim::int_of(I32, 3))]);
    let functions =
        prim::math("exp", value.clone()) + prim::math("sin", value.clone() * wide(prim::float_of(F32, 1e6)));
    let mut body = vec![store(&y, functions), store(&powers, power)];
    for (at, name) in ["add", "mul", "min", "max"].into_iter().enumerate() {
        let op = [BinaryOp::Add, BinaryOp::Mul, BinaryOp::Min, BinaryOp::Max][at];
        let reduce = |dtype, e: PrimExpr| prim::call(dtype, format!("tirx.vector_reduce_{name}"), vec![e]);
        let place = prim::int(at as i64);
        let (whole, exact) = (reduce(I32, whole.clone() + wide(prim::int_of(I32, 1))), reduce(F32, value.clone()));
        for (buffer, part) in [(&all, whole), (&sums, exact)] {
            body.push(Stmt::store(buffer, [&place], prim::binary(op, prim::load(buffer, [&place]), part)));
        }
    }
    let vectors = prim::floordiv(prim::int(LENGTH), step64.clone());
    let func = kernel("lanes", &[x, y, powers, all, sums], &[], Stmt::serial(outer, vectors, Stmt::seq(body)));
    let values: Vec<f32> = (0..LENGTH).map(|i| 0.75 + (i % 5) as f32 / 8.0).collect();
    for (place, kernels) in everywhere(&func) {
        let mut tensors = [
            Tensor::f32(&values, &[LENGTH]),
            Tensor::zeros(F32, &[LENGTH]),
            Tensor::zeros(I32, &[LENGTH]),
            Tensor::of(I32, &[0, 1, i32::MAX, i32::MIN], &[4]),
            Tensor::f32(&[0.0, 1.0, 9.0, -9.0], &[4]),
        ];
        kernels.run("lanes", &mut tensors);
        for (value, got) in values.iter().zip(tensors[1].values::<f32>()) {
            let wanted = f64::from(*value).exp() + f64::from(value * 1e6).sin();
            assert!((wanted - f64::from(got)).abs() < 1e-5, "{got} instead of {wanted} on {place}");
        }
        let cubes: Vec<i32> = (0..LENGTH as i32).map(|i| i.pow(3)).collect();
        assert_eq!(tensors[2].values::<i32>(), cubes, "{place}");
        let numbers = 1..=LENGTH as i32;
        let product = numbers.clone().fold(1, i32::wrapping_mul);
        assert_eq!(tensors[3].values::<i32>(), [numbers.sum(), product, 1, LENGTH as i32], "{place}");
        let (sum, product) = (values.iter().sum::<f32>(), values.iter().product::<f32>());
        let got = tensors[4].values::<f32>();
        assert!((got[0] - sum).abs() < 1e-4 && (got[1] / product - 1.0).abs() < 1e-5, "{got:?} on {place}");
        assert_eq!(got[2..], [0.75, 1.25], "{place}");
    }
}

#[test]
fn an_index_outside_is_found_in_every_lane() {
    const EXPECTED: &str = "index 5 of buffer `A` along dimension 0 is outside of the extent 5";
    let (n, m) = (Var::dim("n"), Var::dim("m"));
    let [a, b] = [("A", &n), ("B", &m)].map(|(name, n)| Buffer::new(name, F32, [PrimExpr::from(n)]));
    let vector = prim::ramp(prim::int(0), 1, -8);
    let (value, indices) = (prim::load(&a, [&vector]), vec![vector.clone()]);
    let store = Stmt::from(Ref::new(BufferStore { buffer: b.clone(), value, indices, predicate: None }));
    let func = kernel("copy", &[a, b], &[], store);
    let checked = [lower_with(&func, LowerOptions { check_bounds: true, ..LowerOptions::default() }).unwrap()];
    let mut machines = vec!["llvm"];
    machines.extend(emulated::unavailable().is_none().then_some(emulated::SCALABLE));
    for target in machines {
        let kernels = Kernels::compile_for(&checked, &target.parse().unwrap());
        kernels.run("copy", &mut [Tensor::zeros(F32, &[16]), Tensor::zeros(F32, &[16])]);
        let mut small = [Tensor::zeros(F32, &[5]), Tensor::zeros(F32, &[16])];
        let (kind, message) = kernels.call("copy", &mut small, &[]).unwrap_err();
        assert!(kind == "IndexError" && message.contains(EXPECTED), "{kind}: {message} on {target}");
    }
}
