//! Linking kernels for WebAssembly with a runtime: what is wrong is an error. `tests/wasm` runs what comes of it.

use relaxide_codegen::export::{ExportError, WebAssemblyModule};

use super::*;

/// A module with a table, a memory and one function, which does nothing.
fn small_runtime() -> Vec<u8> {
    let mut bytes = b"\0asm\x01\0\0\0".to_vec();
    let mut section = |id: u8, content: &[u8]| {
        bytes.extend([id, content.len() as u8]);
        bytes.extend(content);
    };
    section(1, &[1, 0x60, 0, 0]);
    section(3, &[1, 0]);
    section(4, &[1, 0x70, 0, 1]);
    section(5, &[1, 0, 1]);
    section(7, &[&[2, 6][..], b"memory", &[2, 0, 14], b"relaxide_start", &[0, 0]].concat());
    section(10, &[1, 2, 0, 0x0b]);
    bytes
}

fn kernels() -> Vec<u8> {
    let compiled = relaxide_codegen::compile(&[Ref::new(add(ForKind::Parallel))], &"wasm".parse().unwrap()).unwrap();
    compiled.objects.into_iter().next().unwrap()
}

#[test]
fn what_the_runtime_lacks_is_named() {
    let (runtime, kernels) = (small_runtime(), kernels());
    let mut module = WebAssemblyModule::new(&runtime).unwrap();
    module.object("kernels.o", &kernels).unwrap();
    let error = module.link().unwrap_err();
    assert!(matches!(&error, ExportError::NotInRuntime { object, .. } if object == "kernels.o"), "{error}");
    let mut module = WebAssemblyModule::new(&runtime).unwrap();
    module.begin_with("relaxide_optional_builtins");
    assert!(module.link().unwrap_err().to_string().contains("relaxide_optional_builtins"));
}

#[test]
fn a_module_without_kernels_is_the_runtime_with_a_start() {
    let runtime = small_runtime();
    let mut module = WebAssemblyModule::new(&runtime).unwrap();
    let linked = module.begin_with("relaxide_start").offer("relaxide_").link().unwrap().into_bytes();
    assert!(linked.starts_with(&runtime[..8]) && linked.windows(14).any(|name| name == b"relaxide_start"));
    // Calls it, and ends.
    assert!(linked.windows(5).any(|body| body == [4, 0, 0x10, 0, 0x0b]));
}

#[test]
fn damaged_files_are_errors() {
    let (runtime, kernels) = (small_runtime(), kernels());
    for end in 0..runtime.len() {
        assert!(WebAssemblyModule::new(&runtime[..end]).is_err(), "{end}");
    }
    // What says that it is an object stands behind code and data.
    let linking = kernels.windows(7).position(|name| name == b"linking").unwrap();
    for end in 0..linking {
        let mut module = WebAssemblyModule::new(&runtime).unwrap();
        assert!(module.object("kernels.o", &kernels[..end]).is_err(), "{end}");
    }
    let mut changed = kernels.clone();
    for at in 8..kernels.len() {
        changed[at] ^= 0xff;
        let mut module = WebAssemblyModule::new(&runtime).unwrap();
        let _ = module.object("kernels.o", &changed).map(|_| ()).and_then(|()| module.link().map(|_| ()));
        changed[at] ^= 0xff;
    }
}
