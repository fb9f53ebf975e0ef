//! What the machine can do with the threads that kernels get: multiply-adds in registers, copies of memory.
//!
//! Both are measured in turns with the kernel that is held to them, for about as long as it takes: on a machine that others use
//! too, a hundred microseconds find a quiet moment that a hundred milliseconds never have.

use std::thread;
use std::time::Instant;

use relaxide_ir::Target;
use relaxide_tir::schedule::Machine;

use super::harness::microkernel::{CHAINS, peak};
use super::{F32, harness, rows};

/// Steps of one call of the arithmetic, some ten microseconds.
const STEPS: i64 = 4096;

/// Work that no kernel does faster, each thread its own.
pub struct Roof {
    lanes: i64,
    threads: Vec<Thread>,
}

struct Thread {
    arithmetic: harness::Kernels,
    registers: [harness::Tensor; 2],
    from: Vec<f32>,
    to: Vec<f32>,
}

impl Roof {
    /// For kernels of this target; vectors are as wide as its registers.
    pub fn new(threads: usize, target: &Target) -> Roof {
        let lanes = Machine::of(target).lanes(F32);
        let share = rows::ELEMENTS / threads;
        let thread = || Thread {
            arithmetic: harness::Kernels::compile_for(&[peak(STEPS, lanes)], target),
            registers: [
                harness::Tensor::f32(&[0.5], &[1]),
                harness::Tensor::f32(&vec![0.5; (CHAINS * lanes) as usize], &[CHAINS * lanes]),
            ],
            from: vec![1.0; share],
            to: vec![0.0; share],
        };
        Roof { lanes, threads: (0..threads).map(|_| thread()).collect() }
    }

    /// Multiply-adds a second, over about so many seconds.
    pub fn multiply_adds(&mut self, seconds: f64) -> f64 {
        let work = (CHAINS * self.lanes * STEPS) as f64;
        let rates = self.each(|thread| {
            let (begin, mut calls) = (Instant::now(), 0.0);
            loop {
                thread.arithmetic.run("peak", &mut thread.registers);
                calls += 1.0;
                let elapsed = begin.elapsed().as_secs_f64();
                if elapsed >= seconds {
                    break calls * work / elapsed;
                }
            }
        });
        rates.iter().sum()
    }

    /// Seconds that a copy of 64 MB takes.
    pub fn copy(&mut self) -> f64 {
        let times = self.each(|thread| {
            let begin = Instant::now();
            std::hint::black_box(&mut thread.to).copy_from_slice(std::hint::black_box(&thread.from));
            begin.elapsed().as_secs_f64()
        });
        times.into_iter().fold(0.0, f64::max)
    }

    /// What all threads measure at once.
    fn each(&mut self, measure: impl Fn(&mut Thread) -> f64 + Sync) -> Vec<f64> {
        if let [only] = &mut self.threads[..] {
            return vec![measure(only)];
        }
        thread::scope(|scope| {
            let running: Vec<_> = self.threads.iter_mut().map(|thread| scope.spawn(|| measure(thread))).collect();
            running.into_iter().map(|thread| thread.join().expect("a roof")).collect()
        })
    }
}
