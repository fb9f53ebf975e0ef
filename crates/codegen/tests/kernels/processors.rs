//! Kernels for several processors in one library.

use relaxide_ir::{PrimExpr, Ref, prim};
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::lower;

use super::{F32, buffer};
use crate::harness::{Kernels, Tensor, elementwise, emulated};

/// `B[i] = A[i] * factor`.
fn scaled(name: &str, factor: f32) -> PrimFunc {
    let [a, b] = ["A", "B"].map(|name| buffer(name, F32, &[64]));
    lower(&elementwise(name, &[a.clone(), b], |i: &PrimExpr| {
        prim::load(&a, [i.clone()]) * prim::float_of(F32, f64::from(factor))
    }))
    .unwrap()
}

/// The kernels of each have names of their own, and what is wrong with a call is said with the plain one.
fn check(targets: &str, suffixes: &[&str]) {
    let kernels = Kernels::compile_for_all(&[scaled("twice", 2.0), scaled("thrice", 3.0)], targets);
    for suffix in suffixes {
        for (name, factor) in [("twice", 2.0), ("thrice", 3.0)] {
            let values: Vec<f32> = (0..64).map(|i| i as f32).collect();
            let mut tensors = [Tensor::f32(&values, &[64]), Tensor::zeros(F32, &[64])];
            kernels.run(&format!("{name}{suffix}"), &mut tensors);
            let expected: Vec<f32> = values.iter().map(|value| value * factor).collect();
            assert_eq!(tensors[1].values::<f32>(), expected, "{name}{suffix}");
            let (_, message) = kernels.call(&format!("{name}{suffix}"), &mut [], &[]).unwrap_err();
            assert!(message.contains(&format!("`{name}(")), "{message}");
        }
    }
}

#[cfg(target_arch = "x86_64")]
#[test]
fn x86_kernels_of_a_library_are_called_by_their_processors_names() {
    check("x86-64,x86-64-v2", &["", ".x86-64-v2"]);
    // One kernel goes by the name `main` for each.
    let one = Kernels::compile_for_all(&[scaled("twice", 2.0)], "x86-64-v2,x86-64");
    for name in ["main", "main.x86-64-v2"] {
        let mut tensors = [Tensor::f32(&[1.5; 64], &[64]), Tensor::zeros(F32, &[64])];
        one.run(name, &mut tensors);
        assert_eq!(tensors[1].values::<f32>(), [3.0; 64]);
    }
}

#[test]
fn aarch64_kernels_with_and_without_dot_products_are_in_one_library() {
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}; `scripts/setup test-tools` installs what is needed"),
        None => check("neoverse-n1,cortex-a72", &["", ".neoverse-n1"]),
    }
}

#[test]
fn a_linked_model_enters_the_kernels_of_all_and_their_table() {
    let funcs: Vec<Ref<PrimFunc>> = vec![Ref::new(scaled("twice", 2.0))];
    let compiled = crate::harness::compile_all(&funcs, "llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64,x86-64-v3");
    let object = compiled.linked_object(&[], "mine_").unwrap();
    let has = |text: &str| object.windows(text.len()).any(|found| found == text.as_bytes());
    for name in ["__tvm_ffi_mine_twice\0", "__tvm_ffi_mine_twice.x86-64-v3\0", "mine___relaxide_processors\0"] {
        assert!(has(name), "{name:?}");
    }
    assert!(has("x86-64 x86_64 x86-64 \nx86-64-v3 x86_64 x86-64-v3 avx,avx2,"));
}
