//! A shared library written in C against tvm-ffi's headers is loaded and called.
//!
//! The headers come with the Python package `apache-tvm-ffi`, which `make setup` installs.

use std::path::{Path, PathBuf};
use std::process::Command;

use relaxide_ffi::{Any, Error, Function, Module, Tensor, register_global};
use relaxide_runtime::library::load_module;

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The folder of the headers, if the Python environment has them.
fn headers() -> Option<PathBuf> {
    let python = std::fs::read_dir(repository(".venv/lib")).ok()?;
    let folders = python.flatten().map(|entry| entry.path().join("site-packages/tvm_ffi/include"));
    folders.into_iter().find(|folder| folder.join("tvm/ffi/c_api.h").is_file())
}

fn build(folder: &Path) -> Option<Module> {
    let headers = headers()?;
    let library = folder.join("kernels.so");
    let mut compile = Command::new("cc");
    compile.args(["-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC", "-Wl,-z,lazy", "-I"]).arg(headers);
    compile.arg(repository("tests/dropin/kernels.c")).arg("-o").arg(&library);
    let output = compile.output().expect("a C compiler is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(load_module(&library).unwrap())
}

fn call(module: &Module, name: &str, args: &[Any]) -> Result<Any, Error> {
    let function = module.get_function(name, false).expect("the library has the function");
    function.call(&args.iter().map(Any::as_view).collect::<Vec<_>>())
}

#[test]
fn a_library_written_in_c_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = build(folder.path()) else {
        assert!(!repository(".venv").exists(), "the Python environment lacks the headers of tvm-ffi");
        eprintln!("not run: there is no Python environment with tvm-ffi's headers; `make setup` makes one");
        return;
    };
    let x = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).unwrap();
    let y = Tensor::from_slice(&[0f32; 3], &[3]).unwrap();
    call(&library, "add_one", &[x.clone().into(), y.clone().into()]).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [2.0, 3.0, 4.0]);
    let short = Tensor::from_slice(&[0f32; 2], &[2]).unwrap();
    let error = call(&library, "add_one", &[x.into(), short.into()]).unwrap_err();
    assert_eq!(error.to_string(), "ValueError: the vectors differ in length");
    assert!(call(&library, "add_one", &[1i64.into(), 2i64.into()]).unwrap_err().is(relaxide_ffi::ErrorKind::TypeError));

    for name in ["Ada", "Augusta Ada King"] {
        assert_eq!(call(&library, "greet", &[name.into()]).unwrap().as_str(), Some(&*format!("hello, {name}")));
    }

    let increment = Function::typed(|value: i64| Ok::<_, Error>(value + 1));
    assert_eq!(call(&library, "apply", &[increment.into(), 41i64.into()]).unwrap().as_int(), Some(42));
    let fail = Function::new(|_| Err(Error::new("KeyError", "from Rust")));
    assert_eq!(call(&library, "apply", &[fail.into(), 1i64.into()]).unwrap_err().to_string(), "KeyError: from Rust");

    register_global("test.c_library.square", Function::typed(|value: i64| Ok::<_, Error>(value * value))).unwrap();
    let squared = call(&library, "call_global", &["test.c_library.square".into(), 3i64.into()]).unwrap();
    assert_eq!(squared.as_int(), Some(9));
    let error = call(&library, "call_global", &["test.c_library.missing".into(), 3i64.into()]).unwrap_err();
    assert_eq!(error.message(), "there is no such function");

    let counter: Function = call(&library, "counter", &[]).unwrap().to().unwrap();
    assert!(call(&library, "counter", &[]).is_err(), "there is one already");
    assert_eq!((0..3).map(|_| counter.call(&[]).unwrap().as_int().unwrap()).collect::<Vec<_>>(), [1, 2, 3]);
    drop(counter);
    assert_eq!(call(&library, "counter", &[]).unwrap().to::<Function>().unwrap().call(&[]).unwrap().as_int(), Some(1));
}
