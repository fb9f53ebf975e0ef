//! Threads: machines share an executable, its constants, its kernels and their pool; a machine may be shared too.
//!
//! A machine that several threads use at once is not locked for the length of a call: each call has a stack of its own,
//! and everything else is constant. What is set on a machine (inputs, saved functions, limits, an instrument) is one for
//! all, and the last to set it wins.

use std::sync::Barrier;

use crate::support::{artifact, machine};
use relaxide_ffi::{Any, AnyView, Array, DataType, Module, Tensor};
use relaxide_vm::{VirtualMachine, load_module};
use serde_json::Value;

const THREADS: usize = 8;
const CALLS: usize = 40;
const LIBRARIES: [&str; 6] = ["add", "closure", "control", "dynamic", "dynamic_compiled", "parallel"];

/// The calls that real TVM has recorded for a library: arguments and the bytes of the results.
struct Recorded {
    inputs: Vec<Any>,
    outputs: Vec<Vec<u8>>,
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn recorded(name: &str) -> Vec<Recorded> {
    let facts: Value = serde_json::from_slice(&std::fs::read(artifact(&format!("{name}.json"))).unwrap()).unwrap();
    let input = |value: &Value| {
        let shape: Vec<i64> = serde_json::from_value(value["shape"].clone()).unwrap();
        let dtype: DataType = value["dtype"].as_str().unwrap().parse().unwrap();
        Any::from(Tensor::from_bytes(&unhex(value["data"].as_str().unwrap()), &shape, dtype).unwrap())
    };
    let list = |value: &Value, key: &str| value[key].as_array().unwrap().clone();
    let outputs = |run: &Value| {
        // A result that is a shape is not a tensor's bytes; other tests compare it.
        let tensors = list(run, "outputs").into_iter().filter(|output| output["data"].is_string());
        tensors.map(|output| unhex(output["data"].as_str().unwrap())).collect()
    };
    let runs = list(&facts, "runs");
    runs.iter()
        .map(|run| Recorded { inputs: list(run, "inputs").iter().map(input).collect(), outputs: outputs(run) })
        .collect()
}

fn assert_runs(vm: &VirtualMachine, recorded: &[Recorded], name: &str) {
    for Recorded { inputs, outputs } in recorded {
        let views: Vec<AnyView<'_>> = inputs.iter().map(Any::as_view).collect();
        let result = vm.invoke("main", &views).unwrap();
        let results = result.to::<Array>().map_or_else(|_| vec![result.clone()], |array| array.to_vec());
        let found: Vec<Vec<u8>> =
            results.iter().filter_map(|value| value.to::<Tensor>().ok()).map(|t| t.to_bytes().unwrap()).collect();
        assert_eq!(&found, outputs, "{name}");
    }
}

/// Runs `body` on eight threads that begin together.
fn together(body: impl Fn(usize) + Sync) {
    let barrier = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (barrier, body) = (&barrier, &body);
            scope.spawn(move || {
                barrier.wait();
                body(thread);
            });
        }
    });
}

fn library(name: &str) -> Module {
    load_module(artifact(&format!("{name}.so"))).unwrap()
}

#[test]
fn machines_of_one_executable_agree_on_eight_threads() {
    for name in LIBRARIES {
        let (module, recorded) = (library(name), recorded(name));
        together(|_| {
            let vm = machine(&module);
            (0..CALLS).for_each(|_| assert_runs(&vm, &recorded, name));
        });
    }
}

#[test]
fn one_machine_gives_eight_threads_equal_results() {
    for name in LIBRARIES {
        let (vm, recorded) = (machine(&library(name)), recorded(name));
        together(|_| (0..CALLS).for_each(|_| assert_runs(&vm, &recorded, name)));
    }
}

#[test]
fn a_library_that_is_opened_twice_serves_whoever_keeps_it() {
    for name in LIBRARIES {
        let (first, second, recorded) = (library(name), library(name), recorded(name));
        drop(first);
        // What the library's code calls by name is found through a module that is still there.
        assert_runs(&machine(&second), &recorded, name);
        together(|_| assert_runs(&machine(&library(name)), &recorded, name));
    }
}

#[test]
fn saved_functions_and_inputs_of_their_own_names_do_not_mix() {
    let vm = machine(&library("add"));
    together(|thread| {
        let x = Tensor::from_slice(&[thread as f32; 12], &[3, 4]).unwrap();
        let saved = format!("saved {thread}");
        for _ in 0..CALLS {
            vm.save_function("main", &saved, &[AnyView::from(&x)], relaxide_vm::Returns::Result).unwrap();
            let sum: Tensor = vm.invoke(&saved, &[]).unwrap().to().unwrap();
            assert_eq!(sum.to_vec::<f32>().unwrap(), [2.0 * thread as f32; 12]);
        }
    });
}

#[test]
fn machines_come_and_go_while_others_run() {
    let (module, recorded) = (library("dynamic"), recorded("dynamic"));
    let shared = machine(&module);
    together(|thread| {
        for _ in 0..CALLS {
            if thread % 2 == 0 {
                assert_runs(&machine(&module), &recorded, "dynamic");
            } else {
                assert_runs(&shared, &recorded, "dynamic");
            }
        }
    });
}
