//! What the machine can do: arithmetic in registers, and copies between memory.
//!
//! Both are measured by kernels that this compiler makes, on as many threads as models run on: sums of products over registers
//! that wait for nobody, and a copy of memory that no cache holds. The best of a few runs counts, since others only disturb. It takes a
//! few hundred milliseconds, most of them for compiling.

use std::time::Instant;

use relaxide_ffi::{DataType, Tensor};
use relaxide_tir::schedule::Machine;

use crate::{CompileOptions, Error, Target, VirtualMachine, compile, num_threads, parse_script};

/// What the machine can do with the threads that models run on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Roof {
    /// Operations on float32 a second.
    pub operations: f64,
    /// Bytes a second, read and written together.
    pub bytes: f64,
}

/// Steps of the arithmetic kernel, and elements of the copy for each thread.
const STEPS: usize = 1 << 19;
const COPIED: usize = 1 << 22;

/// How often each is run. All threads have to have a processor for themselves once, which on a busy machine they rarely have.
const RUNS: usize = 20;

impl Roof {
    /// Measures the machine.
    pub fn measure() -> Result<Roof, Error> {
        let (threads, target) = (num_threads(), Target::default());
        // A sum of products takes about four cycles, and two begin in each: eight registers keep both busy.
        let lanes = 8 * Machine::of(&target).lanes(DataType::float(32)).max(1) as usize;
        let text = PROGRAM
            .replace("{threads}", &threads.to_string())
            .replace("{lanes}", &lanes.to_string())
            .replace("{small}", &(threads * lanes).to_string())
            .replace("{steps}", &STEPS.to_string())
            .replace("{pieces}", &(COPIED / lanes).to_string())
            .replace("{piece}", &(COPIED / lanes * lanes).to_string())
            .replace("{large}", &(COPIED / lanes * lanes * threads).to_string());
        let module =
            compile(&parse_script(&text, "the measurement of the machine")?, &mut CompileOptions::default())?.jit()?;
        let machine = VirtualMachine::of(&module)?;
        let best = |function: &str, elements: usize| -> Result<f64, Error> {
            let x = Tensor::zeros(&[elements as i64], DataType::float(32))?;
            let mut best = f64::INFINITY;
            for _ in 0..RUNS {
                let start = Instant::now();
                machine.invoke(function, &[(&x).into()])?;
                best = best.min(start.elapsed().as_secs_f64());
            }
            Ok(best)
        };
        let work = (2 * STEPS * lanes * threads) as f64;
        let copied = COPIED / lanes * lanes * threads;
        Ok(Roof {
            operations: work / best("arithmetic", threads * lanes)?,
            bytes: (8 * copied) as f64 / best("memory", copied)?,
        })
    }
}

const PROGRAM: &str = r#"
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def products(x: T.Buffer(({small},), "float32"), y: T.Buffer(({small},), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for p in T.parallel({threads}):
            sums = T.alloc_buffer(({lanes},), "float32", scope="local")
            for i in T.vectorized({lanes}):
                sums[i] = x[p * {lanes} + i]
            for k in range({steps}):
                for i in T.vectorized({lanes}):
                    sums[i] = sums[i] * T.float32(0.9999) + T.float32(0.0001)
            for i in T.vectorized({lanes}):
                y[p * {lanes} + i] = sums[i]

    @T.prim_func(private=True)
    def copy(x: T.Buffer(({large},), "float32"), y: T.Buffer(({large},), "float32")):
        T.func_attr({"tirx.is_scheduled": True, "tirx.noalias": True})
        for p in T.parallel({threads}):
            for k in range({pieces}):
                for i in T.vectorized({lanes}):
                    y[p * {piece} + k * {lanes} + i] = x[p * {piece} + k * {lanes} + i]

    @R.function
    def arithmetic(x: R.Tensor(({small},), "float32")):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.products, (x,), out_sinfo=R.Tensor(({small},), "float32"))
            R.output(gv)
        return gv

    @R.function
    def memory(x: R.Tensor(({large},), "float32")):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor(({large},), "float32"))
            R.output(gv)
        return gv
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_does_more_than_a_hundred_million_things_a_second() {
        let roof = Roof::measure().unwrap();
        assert!(roof.operations > 1e8 && roof.operations < 1e15, "{roof:?}");
        assert!(roof.bytes > 1e8 && roof.bytes < 1e14, "{roof:?}");
    }
}
