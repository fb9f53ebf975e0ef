//! What the machine can do with the threads that kernels get: multiply-adds in registers, copies of memory.

use std::hint::black_box;
use std::thread;

use super::{fastest, harness, rows};

/// Rates that no kernel exceeds.
pub struct Roof {
    /// Multiply-adds a second, in units of 10⁹.
    pub multiply_adds: f64,
    /// Seconds that a copy of 64 MB takes.
    pub copy: f64,
}

impl Roof {
    /// Measures it, all threads at once.
    pub fn measure(threads: usize) -> Roof {
        let rates = on_all(threads, || {
            let kernels = harness::Kernels::compile(&[harness::microkernel::peak(4096)]);
            let mut registers = [harness::Tensor::f32(&[0.5], &[1]), harness::Tensor::f32(&[0.5; 96], &[96])];
            96.0 * 4096.0 / fastest(|| kernels.run("peak", &mut registers)) / 1e9
        });
        let times = on_all(threads, || {
            let from = vec![1f32; rows::ELEMENTS / threads];
            let mut to = vec![0f32; rows::ELEMENTS / threads];
            fastest(|| black_box(&mut to).copy_from_slice(black_box(&from)))
        });
        Roof { multiply_adds: rates.iter().sum(), copy: times.into_iter().fold(0.0, f64::max) }
    }
}

fn on_all(threads: usize, measure: impl Fn() -> f64 + Sync) -> Vec<f64> {
    thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(&measure)).collect();
        running.into_iter().map(|thread| thread.join().expect("a roof")).collect()
    })
}
