//! Ten thousand damaged executables of real TVM, taken as far as they go: read, listed, verified, linked with their kernels
//! and run under limits.
//!
//! Each ends in an error that says something or in a run within its limits, and none takes memory out of proportion to the
//! file. What ends by itself runs again without limits, in the form that the interpreter prepares, and must end alike. The changes come from a generator with a fixed seed: bytes, bits and numbers in each section, absurd lengths,
//! words moved, spans cut out or put in, and truncations. Programs in native code are not among them: native code trusts
//! the constants that it was compiled for, as `SECURITY.md` says.

#[path = "support/heap.rs"]
mod heap;
mod support;

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use heap::taken_by;
use relaxide_ffi::{Any, AnyView, Array, DataType, Error, Module, Tensor};
use relaxide_vm::{Executable, FuncKind, Limits, load_module, verify};
use support::{artifact, try_machine};

/// As many as this unless `RELAXIDE_MUTATIONS` says otherwise. The number is the seed, too.
const MUTATIONS: usize = 10_000;
const LIBRARIES: [&str; 5] = ["add", "closure", "control", "dynamic", "parallel"];
const LIMITS: Limits =
    Limits { instructions: Some(2000), memory: Some(1 << 20), time: Some(Duration::from_secs(2)), depth: Some(100) };
/// What a run may take besides its tensors.
const RUN_BYTES: usize = 4 << 20;

/// Numbers that look like lengths, indices and offsets that nobody has.
const ABSURD: [i64; 12] =
    [0, -1, 1, i64::MAX, i64::MIN, 1 << 32, 1 << 61, (1 << 55) - 1, 1 << 54, 1 << 20, 255, i64::MAX / 8];

struct Random(fastrand::Rng);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }
}

/// A library of TVM: its executable's bytes, where their sections are, its kernels, and arguments for its functions.
struct Source {
    bytes: Vec<u8>,
    sections: Vec<Range<usize>>,
    kernels: Vec<Module>,
    inputs: Vec<Any>,
}

impl Source {
    fn read(name: &str) -> Self {
        let bytes = std::fs::read(artifact(&format!("{name}.vmexec"))).unwrap();
        let facts: serde_json::Value =
            serde_json::from_slice(&std::fs::read(artifact(&format!("{name}.json"))).unwrap()).unwrap();
        let input = |value: &serde_json::Value| {
            let shape: Vec<i64> = serde_json::from_value(value["shape"].clone()).unwrap();
            let dtype: DataType = value["dtype"].as_str().unwrap().parse().unwrap();
            Any::from(Tensor::zeros(&shape, dtype).unwrap())
        };
        let run = facts["runs"].as_array().unwrap().last().unwrap();
        let module = load_module(artifact(&format!("{name}.so"))).unwrap();
        Self {
            sections: sections(&bytes),
            kernels: module.imports(),
            inputs: run["inputs"].as_array().unwrap().iter().map(input).collect(),
            bytes,
        }
    }
}

/// Where the sections are: header, functions, memory scopes, constants, positions, words.
fn sections(bytes: &[u8]) -> Vec<Range<usize>> {
    let executable = Executable::from_bytes(bytes).unwrap();
    let text = |text: &str| 8 + text.len();
    let functions: usize = executable
        .functions()
        .iter()
        .map(|f| 4 + text(&f.name) + 32 + 8 + f.param_names.iter().map(|name| text(name)).sum::<usize>())
        .sum();
    let count = executable.num_instructions();
    let words: usize = (0..count).map(|index| executable.instruction(index).unwrap().words()).sum();
    let scopes = 20 + 8 + functions;
    // These programs have no memory scopes.
    let constants = scopes + 8;
    let positions = bytes.len() - (8 + 8 * words) - (8 + 8 * count);
    let ends = [0, 20, scopes, constants, positions, positions + 8 + 8 * count, bytes.len()];
    ends.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// A damaged copy.
fn mutated(source: &Source, random: &mut Random) -> Vec<u8> {
    let mut bytes = source.bytes.clone();
    let place = |random: &mut Random, room: usize| {
        let section = &source.sections[random.below(source.sections.len())];
        (section.start + random.below(section.len())).min(source.bytes.len() - room)
    };
    match random.below(8) {
        0 => {
            let at = place(random, 1);
            bytes[at] = random.0.u8(..);
        }
        1 => {
            let at = place(random, 1);
            bytes[at] ^= 1 << random.below(8);
        }
        2 => {
            let (at, number) = (place(random, 8), ABSURD[random.below(ABSURD.len())]);
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        // The same where numbers are, at the beginnings of words.
        3 => {
            let section = &source.sections[4 + random.below(2)];
            let at = section.start + random.below(section.len() / 8) * 8;
            let small = random.below(12) as i64 - 2;
            let number = if random.below(3) == 0 { ABSURD[random.below(ABSURD.len())] } else { small };
            bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
        }
        4 => {
            let words = &source.sections[5];
            let [from, to] = [0, 1].map(|_| words.start + random.below(words.len() / 8) * 8);
            bytes.copy_within(from..from + 8, to);
        }
        5 => {
            let at = place(random, 1);
            bytes.truncate(at);
        }
        6 => {
            let (at, length) = (place(random, 16), 1 + random.below(16));
            bytes.drain(at..at + length);
        }
        _ => {
            let (at, length) = (place(random, 1), 1 + random.below(16));
            let noise: Vec<u8> = (0..length).map(|_| random.0.u8(..)).collect();
            bytes.splice(at..at, noise);
        }
    }
    bytes
}

/// How far a file came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    NotRead,
    NotVerified,
    NotLinked,
    Failed,
    Ran,
}

fn assert_clear(error: &Error) {
    assert!(!error.message().is_empty(), "{error:?}");
    // The VM's own defects and panics of builtins have this kind.
    assert_ne!(error.kind(), "InternalError", "{error:?}");
}

/// Reads, lists and verifies.
fn take_in(bytes: &[u8]) -> Result<Executable, Outcome> {
    let executable = Executable::from_bytes(bytes).map_err(|error| {
        assert!(!error.to_string().is_empty());
        Outcome::NotRead
    })?;
    let _ = (executable.as_text(), executable.as_python(), executable.stats());
    let shared = std::sync::Arc::new(executable.clone());
    verify(shared).map(|_| executable).map_err(|error| {
        assert!(!error.to_string().is_empty());
        Outcome::NotVerified
    })
}

fn run(executable: Executable, source: &Source) -> Outcome {
    let functions: Vec<(String, i64)> = executable
        .functions()
        .iter()
        .filter(|function| function.kind == FuncKind::Vm)
        .map(|function| (function.name.clone(), function.num_args))
        .collect();
    let module = executable.into_module();
    source.kernels.iter().for_each(|kernels| module.import(kernels.clone()).unwrap());
    let vm = match try_machine(&module) {
        Ok(vm) => vm,
        Err(error) => {
            assert_clear(&error);
            return Outcome::NotLinked;
        }
    };
    let mut outcome = Outcome::Ran;
    for (name, num_args) in functions {
        let count = usize::try_from(num_args).unwrap_or(0).min(64);
        let args: Vec<AnyView<'_>> = source.inputs.iter().cycle().take(count).map(Any::as_view).collect();
        vm.set_limits(LIMITS);
        let (result, taken) = taken_by(|| vm.invoke(&name, &args));
        assert!(taken.bytes < RUN_BYTES, "{taken:?}");
        if let Err(error) = &result {
            assert_clear(error);
            outcome = Outcome::Failed;
        }
        vm.set_limits(Limits::default());
        if !result.as_ref().is_err_and(|error| error.message().contains(" limit of ")) {
            assert_eq!(told(&vm.invoke(&name, &args)), told(&result), "{name}");
        }
    }
    outcome
}

/// An error's text, or what a result is. Not what its tensors hold: that may be what was in the memory, if a change has
/// taken a kernel's call away.
fn told(result: &Result<Any, Error>) -> String {
    match result {
        Ok(value) => match (value.to::<Array>(), value.as_tensor()) {
            (Ok(tuple), _) => format!("{:?}", tuple.iter().map(|value| told(&Ok(value.clone()))).collect::<Vec<_>>()),
            (_, Some(tensor)) => format!("{} {:?}", tensor.dtype(), tensor.shape()),
            _ if value.as_int().is_some() => format!("{value:?}"),
            _ => value.type_key().to_owned(),
        },
        Err(error) => error.message().to_owned(),
    }
}

#[test]
fn ten_thousand_damaged_executables_end_in_an_error_or_a_run() {
    let sources = LIBRARIES.map(Source::read);
    let mutations = std::env::var("RELAXIDE_MUTATIONS").map_or(MUTATIONS, |number| number.parse().unwrap());
    let mut random = Random(fastrand::Rng::with_seed(mutations as u64));
    let mut outcomes: BTreeMap<Outcome, usize> = BTreeMap::new();
    for round in 0..mutations {
        let source = &sources[round % sources.len()];
        let bytes = mutated(source, &mut random);
        let start = Instant::now();
        let (taken_in, taken) = taken_by(|| take_in(&bytes));
        assert!(taken.bytes <= (64 << 10) + bytes.len() * 64, "{round}: {taken:?} for {} bytes", bytes.len());
        let outcome = match taken_in {
            Ok(executable) => run(executable, source),
            Err(outcome) => outcome,
        };
        *outcomes.entry(outcome).or_default() += 1;
        assert!(start.elapsed() < Duration::from_secs(10), "{round} took {:?}", start.elapsed());
    }
    // Each way a file can go was gone often enough to mean something.
    for outcome in [Outcome::NotRead, Outcome::NotVerified, Outcome::NotLinked, Outcome::Failed, Outcome::Ran] {
        assert!(outcomes.get(&outcome).is_some_and(|count| *count >= 50), "{outcome:?} in {outcomes:?}");
    }
}
