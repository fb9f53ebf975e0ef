//! Executables and libraries of real TVM: read, written back byte for byte, listed letter for letter, run bit for bit.

use crate::support::{artifact, machine};
use relaxide_ffi::{Any, AnyView, Array, DataType, Shape, Tensor};
use relaxide_vm::{Executable, load_module};
use serde_json::Value;

/// Every executable.
const EXECUTABLES: [&str; 8] =
    ["add", "closure", "control", "dynamic", "dynamic_compiled", "every_constant", "float_constant", "parallel"];
/// Those that come with a library.
const LIBRARIES: [&str; 6] = ["add", "closure", "control", "dynamic", "dynamic_compiled", "parallel"];

fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(artifact(&format!("{name}.vmexec"))).unwrap()
}

fn facts_of(name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(artifact(&format!("{name}.json"))).unwrap()).unwrap()
}

#[test]
fn every_executable_is_written_back_byte_for_byte() {
    for name in EXECUTABLES {
        let bytes = bytes_of(name);
        let executable = Executable::from_bytes(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(executable.to_bytes().unwrap(), bytes, "{name}");
    }
}

#[test]
fn the_older_form_without_memory_scopes_is_read() {
    let mut bytes = bytes_of("add");
    bytes[0] = 0x1d;
    // The count of memory scopes, which the older form lacks, follows the functions.
    let scopes_at = 0x20e;
    assert_eq!(bytes.drain(scopes_at..scopes_at + 8).collect::<Vec<_>>(), [0; 8]);
    let executable = Executable::from_bytes(&bytes).unwrap();
    assert_eq!(executable.to_bytes().unwrap(), bytes_of("add"));
}

#[test]
fn what_follows_the_sections_is_kept() {
    let mut bytes = bytes_of("add");
    bytes.extend_from_slice(b"more");
    let executable = Executable::from_bytes(&bytes).unwrap();
    assert_eq!(executable.trailer(), b"more");
    assert_eq!(executable.to_bytes().unwrap(), bytes);
}

#[test]
fn listings_and_summaries_are_tvms() {
    for name in EXECUTABLES {
        let (executable, facts) = (Executable::from_bytes(&bytes_of(name)).unwrap(), facts_of(name));
        assert_eq!(executable.as_text().unwrap(), facts["text"], "{name}");
        assert_eq!(executable.as_python().unwrap(), facts["python"], "{name}");
        // TVM has no words for a float constant.
        if let Value::String(stats) = &facts["stats"] {
            assert_eq!(executable.stats().unwrap(), *stats, "{name}");
        }
    }
}

/// Run by TVM 0.27, with its own packages imported, this script has given the bytes of the artifact.
#[test]
fn a_script_says_everything() {
    let executable = Executable::from_bytes(&bytes_of("every_constant")).unwrap();
    insta::assert_snapshot!(executable.as_script().unwrap());
    let scoped = Executable::from_bytes(&bytes_of("control")).unwrap().as_script().unwrap();
    assert!(scoped.contains("ib.set_memory_scope(12, \"\")"), "{scoped}");
    let native = Executable::from_bytes(&bytes_of("dynamic_compiled")).unwrap().as_script().unwrap_err();
    assert_eq!(native.to_string(), "function main is native code, which the Python builder cannot declare");
}

#[test]
fn libraries_run_bit_for_bit() {
    for name in LIBRARIES {
        let module = load_module(artifact(&format!("{name}.so"))).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(module.kind(), "relax.VMExecutable");
        let vm = machine(&module);
        let facts = facts_of(name);
        let runs = facts["runs"].as_array().unwrap();
        assert!(!runs.is_empty(), "{name}");
        for run in runs {
            let inputs: Vec<Any> = run["inputs"].as_array().unwrap().iter().map(|value| tensor(value).into()).collect();
            let views: Vec<AnyView<'_>> = inputs.iter().map(Any::as_view).collect();
            let result = vm.invoke(run["function"].as_str().unwrap(), &views);
            let result = result.unwrap_or_else(|error| panic!("{name}: {error}"));
            let results = result.to::<Array>().map_or_else(|_| vec![result.clone()], |array| array.to_vec());
            let expected = run["outputs"].as_array().unwrap();
            assert_eq!(results.len(), expected.len(), "{name}");
            for (found, expected) in results.iter().zip(expected) {
                assert_same(name, found, expected);
            }
        }
    }
}

#[test]
fn a_kernels_refusal_reaches_the_caller() {
    let vm = machine(&load_module(artifact("add.so")).unwrap());
    let wrong = Any::from(Tensor::zeros(&[3, 5], DataType::float(32)).unwrap());
    let error = vm.invoke("main", &[wrong.as_view()]).unwrap_err();
    assert!(error.message().contains("argument `x`"), "{error}");
    assert!(error.message().contains("dimension 1 is 5, not 4"), "{error}");
    let library = vm_library(&vm_module());
    let error = library.call(&[wrong.as_view(), wrong.as_view(), wrong.as_view()]).unwrap_err();
    assert!(error.message().contains("add("), "{error}");
    assert!(error.message().contains("expected"), "{error}");
}

fn vm_module() -> relaxide_ffi::Module {
    load_module(artifact("add.so")).unwrap()
}

fn vm_library(module: &relaxide_ffi::Module) -> relaxide_ffi::Function {
    assert!(module.get_function("add", false).is_none());
    module.get_function("add", true).unwrap()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn tensor(value: &Value) -> Tensor {
    let shape: Vec<i64> = value["shape"].as_array().unwrap().iter().map(|dim| dim.as_i64().unwrap()).collect();
    let dtype: DataType = value["dtype"].as_str().unwrap().parse().unwrap();
    Tensor::from_bytes(&unhex(value["data"].as_str().unwrap()), &shape, dtype).unwrap()
}

fn assert_same(name: &str, found: &Any, expected: &Value) {
    if let Value::Array(dims) = &expected["shape_value"] {
        let dims: Vec<i64> = dims.iter().map(|dim| dim.as_i64().unwrap()).collect();
        assert_eq!(found.to::<Shape>().unwrap().as_slice(), dims, "{name}");
        return;
    }
    let (found, expected) = (found.to::<Tensor>().unwrap(), tensor(expected));
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()), "{name}");
    assert_eq!(found.to_bytes().unwrap(), expected.to_bytes().unwrap(), "{name}");
}
