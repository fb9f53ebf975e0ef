//! Libraries that are linked into the program, here the test itself: what their constructors would enter, it enters.

use std::ffi::{c_int, c_void};

use relaxide_ffi::abi::RawAny;
use relaxide_ffi::{Any, AnyView, Bytes, Function, Module, ModuleImpl, env, get_global, register_global};
use relaxide_runtime::library::blob::{self, ModuleNode};
use relaxide_runtime::{register, system_library};

extern "C" fn answer(_: *mut c_void, _: *const RawAny, _: c_int, result: *mut RawAny) -> c_int {
    // SAFETY: the caller passes a place for the result, which holds nothing.
    unsafe { result.write(Any::from(42_i64).into_raw()) };
    0
}

struct Note(Vec<u8>);

impl ModuleImpl for Note {
    fn kind(&self) -> &str {
        "test_note"
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let length = self.0.len() as i64;
        (name == "length").then(|| Function::typed(move || Ok::<_, relaxide_ffi::Error>(length)))
    }
}

fn call(module: &Module, name: &str) -> i64 {
    module.get_function(name, true).unwrap().call(&[]).unwrap().to().unwrap()
}

#[test]
fn functions_are_found_by_prefix_and_without() {
    env::register_system_symbol("__tvm_ffi_first_answer", answer as *mut c_void);
    let module = system_library("first_").unwrap();
    assert_eq!(module.kind(), "library");
    assert_eq!(call(&module, "answer"), 42);
    assert_eq!(call(&module, "first_answer"), 42);
    assert_eq!(call(&system_library("").unwrap(), "first_answer"), 42);
    assert!(system_library("second_").unwrap().get_function("answer", true).is_none());
    assert!(system_library("first_").unwrap() == module, "the same module each time");
}

#[test]
fn the_module_tree_is_rebuilt_when_it_appears() {
    let loader =
        Function::typed(|bytes: Bytes| Ok::<_, relaxide_ffi::Error>(Module::new(Note(bytes.as_slice().to_vec()))));
    register_global("ffi.Module.load_from_bytes.test_note", loader).unwrap();
    env::register_system_symbol("__tvm_ffi_tree_answer", answer as *mut c_void);
    assert_eq!(system_library("tree_").unwrap().kind(), "library");

    let note = ModuleNode { kind: "test_note".to_owned(), payload: Some(b"words".to_vec().into()), imports: vec![1] };
    let code = ModuleNode { kind: blob::LIBRARY_KIND.to_owned(), payload: None, imports: vec![] };
    let bytes = Box::leak(blob::encode(vec![note, code]).into_bytes().into_boxed_slice());
    env::register_system_symbol("tree___tvm_ffi__library_bin", bytes.as_mut_ptr().cast());
    register();
    let load = get_global("ffi.SystemLib").unwrap();
    let prefix = Any::from("tree_");
    let module: Module = load.call(&[AnyView::from(&prefix)]).unwrap().to().unwrap();
    assert_eq!(module.kind(), "test_note");
    assert_eq!((call(&module, "length"), call(&module, "answer")), (5, 42));
}
