//! Products of bytes: every pair of signs and every number of lanes, by every instruction that there is, with the numbers that saturate
//! where sums of two products do.

use relaxide_codegen::assembly;
use relaxide_ir::{DataType, Ref, Target};
use relaxide_tir::PrimFunc;

use super::words::{WORDS, on_this_machine, products};
use crate::harness::{Kernels, Tensor, emulated};

const U32: DataType = DataType::uint(32);
const I32: DataType = DataType::int(32);
const SIGNS: [[DataType; 2]; 4] = [[U32, I32], [I32, U32], [U32, U32], [I32, I32]];

/// A kernel for a pair of signs.
fn signed(name: &str, [left, right]: [DataType; 2], lanes: i64) -> PrimFunc {
    products(name, "tirx.dot_bytes", [left, right, I32], lanes)
}

fn kernels() -> Vec<(PrimFunc, [DataType; 2])> {
    let named = |(n, (signs, lanes))| (signed(&format!("dot{n}"), signs, lanes), signs);
    SIGNS.into_iter().flat_map(|signs| [1, 2, 4, 8, 16].map(|lanes| (signs, lanes))).enumerate().map(named).collect()
}

/// Bytes, the extremes among them.
fn bytes(seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let byte = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        match state % 5 {
            0 => 0x80,
            1 => 0xff,
            2 => 0x7f,
            _ => (state >> 32) as u8,
        }
    };
    (0..4 * WORDS).map(byte).collect()
}

fn number(byte: u8, dtype: DataType) -> i32 {
    if dtype == I32 { i32::from(byte as i8) } else { i32::from(byte) }
}

fn check(compiled: &Kernels, what: &str) {
    for (n, (_, [left, right])) in kernels().into_iter().enumerate() {
        let (a, b) = (bytes(n as u64 + 1), bytes(n as u64 + 100));
        let words = |of: &[u8]| -> Vec<u32> {
            of.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
        };
        let before: Vec<i32> = (0..WORDS as i32).map(|i| if i == 0 { i32::MAX } else { 1000 - i }).collect();
        let mut tensors = [
            Tensor::of(left, &words(&a), &[WORDS]),
            Tensor::of(right, &words(&b), &[WORDS]),
            Tensor::of(I32, &before, &[WORDS]),
        ];
        compiled.run(&format!("dot{n}"), &mut tensors);
        let product = |at: usize| number(a[at], left) * number(b[at], right);
        let sum = |word: usize| (0..4).fold(before[word], |sum, byte| sum.wrapping_add(product(4 * word + byte)));
        let wanted: Vec<i32> = (0..WORDS as usize).map(sum).collect();
        assert_eq!(tensors[2].values::<i32>(), wanted, "kernel {n} {what}");
    }
}

fn funcs() -> Vec<PrimFunc> {
    kernels().into_iter().map(|(func, _)| func).collect()
}

#[test]
fn products_of_bytes_are_exact() {
    #[cfg(target_arch = "x86_64")]
    let has = std::arch::is_x86_feature_detected!("avxvnni");
    #[cfg(not(target_arch = "x86_64"))]
    let has = false;
    on_this_machine(&funcs(), ("x86-64-v3 -mattr=+avxvnni", has), check);
}

#[test]
fn so_they_are_on_emulated_machines() {
    match emulated::unavailable() {
        Some(reason) => eprintln!("skipped: {reason}"),
        None => {
            for features in ["", " -mattr=+dotprod", " -mattr=+dotprod,+i8mm"] {
                let target: Target = format!("{}{features}", emulated::TARGET).parse().unwrap();
                check(&Kernels::compile_for(&funcs(), &target), &target.to_string());
            }
        }
    }
    match emulated::wasm_unavailable() {
        Some(reason) => eprintln!("skipped: {reason}"),
        None => check(&Kernels::compile_for(&funcs(), &emulated::WASM.parse().unwrap()), "in WebAssembly"),
    }
}

#[test]
fn processors_use_what_they_have_for_them() {
    let text = |target: &str, signs: usize, lanes: i64| {
        assembly(&[Ref::new(signed("dot", SIGNS[signs], lanes))], &target.parse().unwrap()).unwrap()
    };
    let has = |target: &str, signs: usize, lanes: i64, instruction: &str| {
        let text = text(target, signs, lanes);
        assert!(text.contains(instruction), "{target} without {instruction}:\n{text}");
    };
    let x86 = "llvm -mtriple=x86_64-linux-gnu";
    for signs in 0..SIGNS.len() {
        has(&format!("{x86} -mcpu=icelake-server"), signs, 16, "vpdpbusd");
        has(&format!("{x86} -mcpu=x86-64-v3 -mattr=+avxvnni"), signs, 8, "vpdpbusd");
        has(&format!("{x86} -mcpu=x86-64-v4"), signs, 16, "vpmaddwd");
        has(&format!("{x86} -mcpu=x86-64-v3"), signs, 8, "vpmaddwd");
        has(&format!("{x86} -mcpu=x86-64-v2"), signs, 4, "pmaddwd");
    }
    let arm = "llvm -mtriple=aarch64-linux-gnu";
    has(&format!("{arm} -mattr=+dotprod,+i8mm"), 0, 4, "usdot");
    has(&format!("{arm} -mattr=+dotprod"), 0, 4, "sdot");
    has(&format!("{arm} -mattr=+dotprod"), 2, 4, "udot");
    has(&format!("{arm} -mattr=+dotprod"), 3, 4, "sdot");
    has(arm, 0, 4, "smull");
    has("wasm", 0, 4, "i32x4.dot_i16x8_s");
}
