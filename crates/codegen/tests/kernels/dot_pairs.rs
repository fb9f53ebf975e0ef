//! Products of pairs of bfloat16: every number of lanes, by the instruction for them and without it.

use relaxide_codegen::assembly;
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Target, prim};
use relaxide_tir::{PrimFunc, Stmt};

use super::harness::{Kernels, Tensor, has_c_compiler, kernel};

const U32: DataType = DataType::uint(32);
const F32: DataType = DataType::float(32);
const WORDS: i64 = 48;
const LANES: [i64; 5] = [1, 2, 4, 8, 16];

/// `C[i] = dot_pairs(A[i], B[i], C[i])`, so many lanes at once.
fn products(lanes: i64) -> PrimFunc {
    let [a, b, c] = [("A", U32), ("B", U32), ("C", F32)].map(|(name, dtype)| Buffer::new(name, dtype, [WORDS]));
    let i = relaxide_ir::Var::dim("i");
    let start = PrimExpr::from(&i) * lanes;
    let index = if lanes == 1 { start } else { prim::ramp(start, 1, lanes) };
    let at = |buffer: &Ref<Buffer>| prim::load(buffer, [index.clone()]);
    let sum = prim::call(F32.with_lanes(lanes as u16), "tirx.dot_pairs", vec![at(&a), at(&b), at(&c)]);
    let name = format!("dot{lanes}");
    kernel(
        &name,
        &[a.clone(), b.clone(), c.clone()],
        &[],
        Stmt::serial(i, WORDS / lanes, Stmt::store(&c, [index], sum)),
    )
}

fn funcs() -> Vec<PrimFunc> {
    LANES.map(products).into()
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
    check(&Kernels::compile(&funcs()), "on the host");
    #[cfg(target_arch = "x86_64")]
    {
        let processors = [
            ("x86-64-v2", std::is_x86_feature_detected!("sse4.2")),
            ("x86-64-v3", std::is_x86_feature_detected!("avx2")),
            ("x86-64-v4", std::is_x86_feature_detected!("avx512bw")),
            ("x86-64-v4 -mattr=+avx512bf16", std::is_x86_feature_detected!("avx512bf16")),
        ];
        for (name, _) in processors.into_iter().filter(|(_, runs)| *runs) {
            let target: Target = format!("llvm -mcpu={name}").parse().unwrap();
            check(&Kernels::compile_for(&funcs(), &target), name);
        }
    }
    if has_c_compiler() {
        check(&Kernels::compile_c(&funcs()), "in C");
    } else {
        eprintln!("skipped: there is no compiler of C");
    }
}

#[test]
fn processors_use_their_instruction() {
    let text = |target: &str| assembly(&[Ref::new(products(16))], &target.parse().unwrap()).unwrap();
    assert!(text("llvm -mtriple=x86_64-linux-gnu -mcpu=cooperlake").contains("vdpbf16ps"));
    assert!(text("llvm -mtriple=x86_64-linux-gnu -mcpu=znver4").contains("vdpbf16ps"));
    assert!(!text("llvm -mtriple=x86_64-linux-gnu -mcpu=x86-64-v4").contains("vdpbf16ps"));
}
