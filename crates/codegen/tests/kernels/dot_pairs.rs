//! Products of pairs of bfloat16: every number of lanes, by the instruction for them and without it.

use relaxide_codegen::assembly;
use relaxide_ir::{DataType, Ref};
use relaxide_tir::PrimFunc;

use super::words::{WORDS, on_this_machine, products};
use crate::harness::{Kernels, Tensor};

const U32: DataType = DataType::uint(32);
const F32: DataType = DataType::float(32);
const LANES: [i64; 5] = [1, 2, 4, 8, 16];

/// A kernel with so many lanes.
fn paired(lanes: i64) -> PrimFunc {
    products(&format!("dot{lanes}"), "tirx.dot_pairs", [U32, U32, F32], lanes)
}

fn funcs() -> Vec<PrimFunc> {
    LANES.map(paired).into()
}

/// Small whole numbers and quarters, so that sums are exact in any order.
fn number(seed: i64) -> f32 {
    ((seed * 37 + 11) % 61 - 30) as f32 * 0.25
}

fn word(seed: i64) -> u32 {
    number(2 * seed).to_bits() >> 16 | number(2 * seed + 1).to_bits()
}

fn check(compiled: &Kernels, what: &str) {
    for lanes in LANES {
        let [a, b] = [1000, 5000].map(|seed| (0..WORDS).map(|i| word(seed + i)).collect::<Vec<u32>>());
        let before: Vec<f32> = (0..WORDS).map(|i| number(9000 + i)).collect();
        let mut tensors =
            [Tensor::of(U32, &a, &[WORDS]), Tensor::of(U32, &b, &[WORDS]), Tensor::of(F32, &before, &[WORDS])];
        compiled.run(&format!("dot{lanes}"), &mut tensors);
        let product = |at: i64| number(2000 + at) * number(10000 + at);
        let sum = |i: i64| before[i as usize] + product(2 * i) + product(2 * i + 1);
        let wanted: Vec<f32> = (0..WORDS).map(sum).collect();
        assert_eq!(tensors[2].values::<f32>(), wanted, "{lanes} lanes {what}");
    }
}

#[test]
fn products_of_pairs_are_exact_where_sums_are() {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("avx512bf16");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    on_this_machine(&funcs(), ("x86-64-v4 -mattr=+avx512bf16", has), check);
}

#[test]
fn processors_use_their_instruction() {
    let text = |target: &str| assembly(&[Ref::new(paired(16))], &target.parse().unwrap()).unwrap();
    assert!(text("llvm -mtriple=x86_64-linux-gnu -mcpu=cooperlake").contains("vdpbf16ps"));
    assert!(text("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4").contains("vdpbf16ps"));
    assert!(!text("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4").contains("vdpbf16ps"));
}
