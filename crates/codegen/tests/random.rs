//! Compiled random kernels against the reference interpreter. A case that fails is made simpler and printed as TVMScript.
//!
//! `RELAXIDE_DEEP=1` runs many more cases, `RELAXIDE_SEED=n` begins with another seed.

mod c;
mod programs;
mod rules;
mod schedules;

use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::harness::{Kernels, Packed, Tensor};
use relaxide_tir::PrimFunc;
use relaxide_tir::interp::Scalar;
use relaxide_tir::testing::{Failure, Random, Sample, attempt, report, seeds};

/// How many kernels share one library.
const TOGETHER: usize = 20;

/// A kernel on its way to a library, and how its results are checked.
struct Case {
    lowered: PrimFunc,
    check: Box<Check>,
}

type Check = dyn Fn(&Kernels) -> Result<(), String>;

impl Case {
    /// A kernel that computes what the sample's does, up to the order of additions.
    fn of_sample(name: &str, sample: Sample, lowered: PrimFunc, story: String) -> Result<Case, String> {
        let expected = sample.interpret(&sample.func).map_err(|e| e.to_string())?;
        let name = name.to_string();
        let check = move |kernels: &Kernels| {
            let found = execute(kernels, &name, &sample).map_err(|error| format!("{error:?}\n{story}"))?;
            match sample.difference(&found, &expected) {
                Some((output, at)) => {
                    let (found, expected) = (found[output].get(at), expected[output].get(at));
                    Err(format!("{found:?} for {expected:?} at {at} of output {output}\n{story}"))
                }
                None => Ok(()),
            }
        };
        Ok(Case { lowered, check: Box::new(check) })
    }
}

/// Makes a case under a name for its kernel.
type Make = fn(&str, &mut Random) -> Result<Case, String>;

/// How many cases to run: more where time is no matter.
fn count(quick: u64, deep: u64) -> u64 {
    if std::env::var_os("RELAXIDE_DEEP").is_some() { deep } else { quick }
}

/// The outputs of a compiled kernel, or the kind and text of its error.
fn execute(kernels: &Kernels, name: &str, sample: &Sample) -> Result<Vec<Vec<Scalar>>, (String, String)> {
    let inputs = sample.inputs.iter().map(|t| Tensor::of(t.dtype(), &t.to_bytes().unwrap(), t.shape()));
    let outputs = sample.outputs.iter().map(|(shape, dtype)| Tensor::zeros(*dtype, shape));
    let mut tensors: Vec<Tensor> = inputs.chain(outputs).collect();
    let scalars: Vec<Packed> = sample.scalars.iter().map(|v| Packed::int(*v)).collect();
    kernels.call(name, &mut tensors, &scalars)?;
    let elements = |tensor: &Tensor| {
        let bytes = tensor.bytes();
        bytes.chunks(tensor.dtype.bytes()).filter_map(|b| Scalar::from_bytes(tensor.dtype, b)).collect()
    };
    Ok(tensors[sample.inputs.len()..].iter().map(elements).collect())
}

/// The same kernel under a name.
fn named(func: &PrimFunc, name: &str) -> PrimFunc {
    PrimFunc { attrs: func.attrs.clone().with("global_symbol", name), ..func.clone() }
}

/// Checks many cases, some in each library, on as many threads as the machine has. The first that fails is made simpler, in
/// libraries of its own.
fn check_cases(count: u64, make: Make) {
    check_compiled(count, TOGETHER, make, Kernels::compile);
}

/// The same for kernels that are compiled in some way.
fn check_compiled(count: u64, together: usize, make: Make, compile: Compile) {
    let seeds: Vec<u64> = seeds(count).collect();
    let libraries: Vec<&[u64]> = seeds.chunks(together).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(seeds) = libraries.get(next.fetch_add(1, Ordering::Relaxed)) {
            check_library(seeds, make, compile);
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(libraries.len());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        for worker in workers {
            if let Err(panic) = worker.join() {
                next.store(libraries.len(), Ordering::Relaxed);
                std::panic::resume_unwind(panic);
            }
        }
    });
}

/// How kernels become a library.
type Compile = fn(&[PrimFunc]) -> Kernels;

/// Checks the cases of some seeds, all in one library.
fn check_library(seeds: &[u64], make: Make, compile: Compile) {
    let one = |random: &mut Random| {
        let case = make("kernel", random)?;
        (case.check)(&compile(std::slice::from_ref(&case.lowered)))
    };
    let mut made = Vec::new();
    for &seed in seeds {
        let (random, case) = (Random::new(seed), Cell::new(None));
        let keep = |random: &mut Random| make(&format!("kernel{seed}"), random).map(|made| case.set(Some(made)));
        let result: Result<(), Failure> = attempt(random.clone(), &keep);
        made.push((seed, random, result.ok().and_then(|()| case.take())));
    }
    let lowered: Vec<PrimFunc> = made.iter().filter_map(|(.., case)| Some(case.as_ref()?.lowered.clone())).collect();
    let kernels = compile(&lowered);
    for (seed, random, case) in made {
        if case.is_some_and(|case| (case.check)(&kernels).is_ok()) {
            continue;
        }
        match attempt(random, &one) {
            Err(failure) => report(seed, failure, &one),
            Ok(()) => panic!("seed {seed} fails among others only"),
        }
    }
}
