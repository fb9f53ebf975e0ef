//! Saving a tree of modules and loading files that are none.

use relaxide_ffi::{Bytes, Error, Function, Module, ModuleImpl, ModuleProperties, register_global};
use relaxide_runtime::library::blob::{self, ModuleNode};
use relaxide_runtime::{load_module, save_module_tree};

/// A module that is its bytes.
struct Plain(&'static str, Vec<u8>);

impl ModuleImpl for Plain {
    fn kind(&self) -> &str {
        self.0
    }

    fn get_function(&self, _name: &str) -> Option<Function> {
        None
    }

    fn save_to_bytes(&self) -> Result<Vec<u8>, Error> {
        Ok(self.1.clone())
    }
}

/// A module that is compiled code.
struct Compiled;

impl ModuleImpl for Compiled {
    fn kind(&self) -> &str {
        "llvm"
    }

    fn get_function(&self, _name: &str) -> Option<Function> {
        None
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::COMPILATION_EXPORTABLE
    }
}

fn plain(kind: &'static str, bytes: &[u8]) -> Module {
    Module::new(Plain(kind, bytes.to_vec()))
}

fn nodes_of(module: &Module) -> Vec<ModuleNode<Vec<u8>>> {
    let blob = save_module_tree(module).unwrap().bytes.into_bytes();
    let nodes = blob::decode(&blob[8..]).unwrap();
    nodes.into_iter().map(|of| node(&of.kind, of.payload, &of.imports)).collect()
}

fn node(kind: &str, payload: Option<&[u8]>, imports: &[usize]) -> ModuleNode<Vec<u8>> {
    ModuleNode { kind: kind.to_owned(), payload: payload.map(<[u8]>::to_vec), imports: imports.to_vec() }
}

#[test]
fn a_model_with_kernels_is_saved_as_tvm_saves_it() {
    let root = plain("relax.VMExecutable", b"code");
    root.import(Module::new(Compiled)).unwrap();
    assert_eq!(nodes_of(&root), [node("relax.VMExecutable", Some(b"code"), &[1]), node("_lib", None, &[])]);
    assert_eq!(save_module_tree(&root).unwrap().compiled.len(), 1);
}

#[test]
fn all_compiled_code_becomes_one_library_and_shared_modules_are_saved_once() {
    let (root, shared) = (plain("root", b"r"), plain("shared", b"s"));
    let (first, second) = (Module::new(Compiled), Module::new(Compiled));
    root.import(first.clone()).unwrap();
    root.import(second.clone()).unwrap();
    first.import(second.clone()).unwrap();
    first.import(shared.clone()).unwrap();
    second.import(shared.clone()).unwrap();
    root.import(shared).unwrap();
    let expected = [node("root", Some(b"r"), &[1, 2]), node("_lib", None, &[2]), node("shared", Some(b"s"), &[])];
    assert_eq!(nodes_of(&root), expected);
    assert_eq!(save_module_tree(&root).unwrap().compiled, [first, second]);
}

#[test]
fn compiled_code_alone_needs_no_blob() {
    let saved = save_module_tree(&Module::new(Compiled)).unwrap();
    assert!(saved.bytes.is_empty() && saved.compiled.len() == 1);
}

#[test]
fn a_module_that_cannot_be_saved_is_named() {
    struct Stubborn;
    impl ModuleImpl for Stubborn {
        fn kind(&self) -> &str {
            "stubborn"
        }

        fn get_function(&self, _name: &str) -> Option<Function> {
            None
        }
    }
    let error = save_module_tree(&Module::new(Stubborn)).unwrap_err();
    assert!(error.message().contains("cannot save stubborn"), "{error}");
}

#[test]
fn files_that_are_no_modules_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.so");
    std::fs::write(&broken, b"not a library").unwrap();
    let error = load_module(&broken).unwrap_err();
    assert!(error.message().contains("broken.so"), "{error}");
    let error = load_module(folder.path().join("absent.so")).unwrap_err();
    assert!(error.message().contains("absent.so") && !error.message().contains("export-dynamic"), "{error}");
    let error = load_module(folder.path().join("model.txt")).unwrap_err();
    assert!(error.message().contains("ffi.Module.load_from_file.txt"), "{error}");
}

#[test]
fn other_kinds_of_file_are_loaded_by_their_registered_loader() {
    let loader = Function::typed(|path: String, format: String| {
        assert_eq!(format, "testkind");
        Ok::<_, Error>(Module::new(Plain("loaded", path.into_bytes())))
    });
    register_global("ffi.Module.load_from_file.testkind", loader).unwrap();
    let module = load_module("somewhere/model.testkind").unwrap();
    assert_eq!(module.kind(), "loaded");
    assert_eq!(Bytes::new(&module.body().save_to_bytes().unwrap()).as_slice(), b"somewhere/model.testkind");
}
