//! How near the microkernel comes to what the processor can do: `cargo bench -p relaxide-codegen`.

#[path = "../tests/harness/mod.rs"]
mod harness;

use std::time::Instant;

use harness::{
    Kernels, Tensor,
    microkernel::{COLUMNS, LANES, ROWS, microkernel, peak},
};

const DEPTH: i64 = 256;
const CALLS: usize = 20_000;

fn main() {
    let kernels = Kernels::compile(&[microkernel(DEPTH), peak(DEPTH, LANES)]);
    let ones = |count: i64| Tensor::f32(&vec![0.5; count as usize], &[count]);
    let mut panel = [ones(DEPTH * ROWS), ones(DEPTH * COLUMNS), ones(ROWS * COLUMNS)];
    let mut registers = [ones(1), ones(ROWS * COLUMNS)];
    let (mut best_kernel, mut best_peak) = (0f64, 0f64);
    for _ in 0..10 {
        best_kernel = best_kernel.max(rate(|| kernels.run("microkernel", &mut panel)));
        best_peak = best_peak.max(rate(|| kernels.run("peak", &mut registers)));
    }
    println!(
        "microkernel {best_kernel:.1} GFLOP/s, peak {best_peak:.1} GFLOP/s, {:.0} %",
        100.0 * best_kernel / best_peak
    );
}

/// Billions of floating-point operations a second.
fn rate(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..CALLS {
        call();
    }
    let operations = (2 * ROWS * COLUMNS * DEPTH) as f64 * CALLS as f64;
    operations / start.elapsed().as_secs_f64() / 1e9
}
