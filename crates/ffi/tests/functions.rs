//! Calls in both directions, errors across the border, modules and the global table.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_ffi::abi::RawAny;
use relaxide_ffi::{
    Any, AnyView, Error, ErrorKind, Function, Handle, Module, ModuleImpl, Tensor, error_slot, get_global,
    register_global, remove_global,
};

fn call_from_c(function: &Function, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let (safe_call, handle) = function.safe_call();
    let mut result = RawAny::NONE;
    // SAFETY: entry point and handle belong together and the function is alive.
    let code = unsafe { safe_call(handle, args.as_ptr().cast(), args.len() as c_int, &raw mut result) };
    match code {
        // SAFETY: a successful call leaves an owned value.
        0 => Ok(unsafe { Any::from_raw(result) }),
        _ => Err(error_slot::take().expect("a failed call raises")),
    }
}

#[test]
fn a_closure_is_the_same_function_from_rust_and_from_c() {
    let join = Function::typed(|a: String, b: i64| Ok::<_, Error>(format!("{a}-{b}")));
    let text = Any::from("a rather long text");
    let args = [text.as_view(), 5i64.into()];
    assert_eq!(join.call(&args).unwrap().as_str(), Some("a rather long text-5"));
    assert_eq!(call_from_c(&join, &args).unwrap().as_str(), Some("a rather long text-5"));
}

#[test]
fn wrong_arguments_are_type_errors_that_name_the_argument() {
    let f = Function::typed(|_: i64, _: Tensor| Ok::<_, Error>(()));
    let error = f.call(&[1i64.into()]).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: expected 2 arguments but got 1");
    let error = call_from_c(&f, &[1i64.into(), 2i64.into()]).unwrap_err();
    assert_eq!(error.to_string(), "TypeError: argument #1: expected `ffi.Tensor` but got `int`");
}

#[test]
fn errors_cross_the_border_as_the_same_object() {
    let original = Error::new("CustomError", "something odd");
    let inner = original.clone();
    let f = Function::new(move |_| Err(inner.clone()));
    assert!(f.call(&[]).unwrap_err().ptr_eq(&original));
    let error = call_from_c(&f, &[]).unwrap_err();
    assert!(error.ptr_eq(&original));
    assert_eq!((error.kind(), error.message()), ("CustomError", "something odd"));
    assert!(error_slot::take().is_none(), "taking an error clears the slot");
}

#[test]
fn a_panic_becomes_an_internal_error() {
    let f = Function::typed(|divisor: i64| {
        let _ = [1, 2, 3][usize::try_from(divisor).unwrap()];
        Ok::<_, Error>(())
    });
    for error in [f.call(&[7i64.into()]).unwrap_err(), call_from_c(&f, &[(-1i64).into()]).unwrap_err()] {
        assert!(error.is(ErrorKind::InternalError), "{error}");
        assert!(error.message().starts_with("panicked: "), "{error}");
    }
}

#[test]
fn arguments_are_borrowed_and_results_owned() {
    let identity = Function::new(|args| Ok(args[0].to_owned()));
    let tensor = Tensor::zeros(&[2], relaxide_ffi::DataType::float(32)).unwrap();
    let count = || tensor.as_object().header().strong_count();
    let result = identity.call(&[(&tensor).into()]).unwrap();
    assert_eq!(count(), 2);
    drop(result);
    assert_eq!(count(), 1);
    drop(call_from_c(&identity, &[(&tensor).into()]).unwrap());
    assert_eq!(count(), 1);
}

#[test]
fn a_callback_gets_its_resource_and_is_released_once() {
    unsafe extern "C" fn add(resource: *mut c_void, args: *const RawAny, n: c_int, out: *mut RawAny) -> c_int {
        // SAFETY: the test passes a counter as the resource and lends `n` integers.
        unsafe {
            (*resource.cast::<AtomicUsize>()).fetch_add(1, Ordering::Relaxed);
            let sum = (0..n as usize).map(|i| (*args.add(i)).word()).sum();
            out.write(RawAny::from_word(relaxide_ffi::abi::type_index::INT, sum));
        }
        0
    }
    unsafe extern "C" fn release(resource: *mut c_void) {
        // SAFETY: the test gave the counter away as one strong count of an `Arc`.
        unsafe { drop(Arc::from_raw(resource.cast::<AtomicUsize>())) };
    }
    let calls = Arc::new(AtomicUsize::new(0));
    let resource = Arc::into_raw(calls.clone()).cast_mut().cast();
    // SAFETY: the callback follows the convention; the resource may be shared and is released by `release`.
    let f = unsafe { Function::from_callback(resource, add, Some(release)) };
    assert_eq!(f.call(&[1i64.into(), 2i64.into()]).unwrap().as_int(), Some(3));
    assert_eq!(call_from_c(&f, &[4i64.into()]).unwrap().as_int(), Some(4));
    assert_eq!((calls.load(Ordering::Relaxed), Arc::strong_count(&calls)), (2, 2));
    drop(f);
    assert_eq!(Arc::strong_count(&calls), 1);
}

#[test]
fn a_symbol_is_called_without_a_handle_and_keeps_its_library() {
    unsafe extern "C" fn symbol(handle: *mut c_void, _: *const RawAny, n: c_int, _: *mut RawAny) -> c_int {
        if handle.is_null() && n == 0 { 0 } else { -7 }
    }
    let library = Arc::new(());
    // SAFETY: the symbol follows the convention and never goes away.
    let f = unsafe { Function::from_symbol(symbol, library.clone()) };
    assert!(f.call(&[]).unwrap().is_none());
    let error = f.call(&[1i64.into()]).unwrap_err();
    assert_eq!(error.message(), "a function failed with code -7 and did not say why");
    assert_eq!(Arc::strong_count(&library), 2);
    drop(f);
    assert_eq!(Arc::strong_count(&library), 1);
}

#[test]
fn the_global_table_refuses_a_second_function_of_a_name() {
    let f = || Function::typed(|| Ok::<_, Error>(1i64));
    register_global("test.global", f()).unwrap();
    assert!(register_global("test.global", f()).unwrap_err().message().contains("test.global"));
    assert_eq!(get_global("test.global").unwrap().call(&[]).unwrap().as_int(), Some(1));
    assert!(remove_global("test.global").is_some());
    assert!(get_global("test.global").is_none());
}

struct Constant(&'static str, i64);

impl ModuleImpl for Constant {
    fn kind(&self) -> &str {
        "constant"
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let value = self.1;
        (name == self.0).then(|| Function::typed(move || Ok::<_, Error>(value)))
    }
}

#[test]
fn modules_are_searched_in_the_order_of_imports() {
    let root = Module::new(Constant("root", 0));
    let first = Module::new(Constant("f", 1));
    first.import(Module::new(Constant("g", 2))).unwrap();
    root.import(first).unwrap();
    root.import(Module::new(Constant("g", 3))).unwrap();
    let call = |name: &str| root.get_function(name, true).map(|f| f.call(&[]).unwrap().as_int().unwrap());
    assert_eq!((call("root"), call("f"), call("g"), call("h")), (Some(0), Some(1), Some(2), None));
    assert!(root.get_function("g", false).is_none());
    assert_eq!(root.downcast::<Constant>().unwrap().1, 0);
    assert_eq!(
        root.body().save_to_bytes().unwrap_err().message(),
        "a module of kind `constant` cannot be saved to bytes"
    );
}

#[test]
fn modules_do_not_import_each_other_in_circles() {
    let (a, b) = (Module::new(Constant("a", 0)), Module::new(Constant("b", 0)));
    a.import(b.clone()).unwrap();
    assert!(b.import(a.clone()).is_err());
    assert!(a.import(a.clone()).is_err());
}

#[test]
fn what_compiled_code_looks_up_is_kept_by_its_module() {
    let library = Module::new(Constant("f", 0));
    assert_eq!(
        library.lookup_from_imports("test.late").unwrap_err().message(),
        "Cannot find function test.late in the imported modules or global registry."
    );
    register_global("test.late", Function::typed(|| Ok::<_, Error>(9i64))).unwrap();
    let found = library.lookup_from_imports("test.late").unwrap();
    remove_global("test.late");
    assert!(library.lookup_from_imports("test.late").unwrap().ptr_eq(&found));
}
