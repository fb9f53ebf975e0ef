//! The code of a matrix-multiplication microkernel: its twelve accumulators live in registers.

use crate::harness::{
    Kernels, Tensor,
    microkernel::{COLUMNS, ROWS, microkernel},
};
use relaxide_codegen::assembly;
use relaxide_ir::{Ref, Target};

const DEPTH: i64 = 384;

#[test]
fn it_multiplies() {
    let a: Vec<f32> = (0..DEPTH * ROWS).map(|i| (i % 7) as f32 - 3.0).collect();
    let b: Vec<f32> = (0..DEPTH * COLUMNS).map(|i| (i % 5) as f32 - 2.0).collect();
    let mut tensors = [
        Tensor::f32(&a, &[DEPTH * ROWS]),
        Tensor::f32(&b, &[DEPTH * COLUMNS]),
        Tensor::f32(&[1.0; (ROWS * COLUMNS) as usize], &[ROWS * COLUMNS]),
    ];
    Kernels::compile(&[microkernel(DEPTH)]).run("microkernel", &mut tensors);
    let got = tensors[2].values::<f32>();
    for row in 0..ROWS as usize {
        for column in 0..COLUMNS as usize {
            let products = (0..DEPTH as usize).map(|k| a[k * ROWS as usize + row] * b[k * COLUMNS as usize + column]);
            // All numbers are small integers, so that the order of the sums does not matter.
            assert_eq!(got[row * COLUMNS as usize + column], 1.0 + products.sum::<f32>());
        }
    }
}

#[test]
fn accumulators_stay_in_registers() {
    let target: Target = "llvm -mtriple=x86_64-linux-gnu -mcpu=haswell".parse().unwrap();
    let text = assembly(&[Ref::new(microkernel(DEPTH))], &target).unwrap();
    let inner = innermost_loop(&text);
    let fused = inner.iter().filter(|line| line.contains("vfmadd")).count();
    let spills = inner.iter().filter(|line| line.contains("(%rsp") || line.contains("(%rbp")).count();
    let stores = inner.iter().filter(|line| line.starts_with("vmov") && line.trim_end().ends_with(')')).count();
    assert!(fused >= 12 && fused % 12 == 0, "{fused} fused operations in\n{}", inner.join("\n"));
    assert_eq!((spills, stores), (0, 0), "\n{}", inner.join("\n"));
    assert!(inner.len() <= fused * 2, "{} instructions around {fused} fused operations", inner.len());
}

/// The instructions of the loop that holds most of the fused operations.
fn innermost_loop(assembly: &str) -> Vec<&str> {
    let mut best: Vec<&str> = Vec::new();
    let mut block: Vec<&str> = Vec::new();
    let mut label = "";
    for line in assembly.lines().map(str::trim) {
        if let Some(name) = line.split(':').next().filter(|name| name.starts_with(".L") && line.contains(':')) {
            (label, block) = (name, Vec::new());
        } else if !line.starts_with('.') && !line.is_empty() && !line.starts_with('#') {
            block.push(line);
            let closes = line.starts_with('j') && line.split_whitespace().nth(1) == Some(label);
            let fused = |lines: &[&str]| lines.iter().filter(|line| line.contains("vfmadd")).count();
            if closes && fused(&block) > fused(&best) {
                best = block.clone();
            }
        }
    }
    best
}
