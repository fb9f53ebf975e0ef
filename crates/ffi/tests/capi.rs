//! The C functions, called as compiled libraries and front ends call them.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_ffi::abi::{ByteArray, RawAny, type_index};
use relaxide_ffi::capi::*;
use relaxide_ffi::{
    Any, DataType, Error, FromAny, Function, Handle, Module, ModuleImpl, Object, ObjectRef, Ref, Tensor,
    describe_global, env, error_slot, register_global,
};

fn array(text: &str) -> ByteArray {
    ByteArray::new(text.as_bytes())
}

/// Takes over a handle that a C function gave away.
fn take<T: FromAny>(handle: *mut c_void) -> T {
    // SAFETY: the caller got the handle from a C function that gives it away.
    let object = unsafe { ObjectRef::from_header(std::ptr::NonNull::new(handle.cast()).unwrap()) };
    T::from_any((&object).into()).unwrap()
}

fn raised_message() -> String {
    error_slot::take().expect("an error was raised").to_string()
}

#[test]
fn an_error_in_parts_is_joined() {
    let parts = [c"Mismatched ", c"argument #1", c""].map(CStr::as_ptr);
    let parts: Vec<*const c_char> = [parts[0], null(), parts[1], parts[2]].into();
    // SAFETY: parts are null or C strings.
    unsafe { TVMFFIErrorSetRaisedFromCStrParts(c"TypeError".as_ptr(), parts.as_ptr(), 4) };
    assert_eq!(raised_message(), "TypeError: Mismatched argument #1");
    // SAFETY: as above.
    unsafe { TVMFFIErrorSetRaisedFromCStr(c"ValueError".as_ptr(), c"plain".as_ptr()) };
    assert_eq!(raised_message(), "ValueError: plain");
}

#[test]
fn a_raised_error_is_borrowed_and_moved_out() {
    let mut handle = null_mut();
    // SAFETY: readable arrays, a place for the handle.
    unsafe {
        let code = TVMFFIErrorCreate(&array("KeyError"), &array("gone"), &array("line 1\n"), &mut handle);
        assert_eq!(code, 0);
    }
    let error: Error = take(handle);
    assert_eq!((error.kind(), error.message(), error.backtrace().as_str()), ("KeyError", "gone", "line 1\n"));
    // SAFETY: the handle is that of a live error.
    unsafe { TVMFFIErrorSetRaised(handle) };
    assert_eq!(error.as_object().header().strong_count(), 2);
    let mut moved = null_mut();
    // SAFETY: a place for the handle.
    unsafe { TVMFFIErrorMoveFromRaised(&mut moved) };
    assert_eq!(moved, handle);
    drop(take::<Error>(moved));
    // SAFETY: as above.
    unsafe { TVMFFIErrorMoveFromRaised(&mut moved) };
    assert!(moved.is_null());
    assert_eq!(error.as_object().header().strong_count(), 1);
}

#[test]
fn a_backtrace_is_replaced_or_added_to_through_the_cell() {
    type Update = unsafe extern "C" fn(*mut c_void, *const ByteArray, i32);
    let error = Error::with_backtrace("E", "m", "a\n", None, None);
    let handle: *mut c_void = error.as_object().as_ptr().cast();
    // SAFETY: the cell holds the updating function 48 bytes behind the header, and the backtrace 32 bytes behind it.
    unsafe {
        let update = *handle.byte_add(24 + 48).cast::<Update>();
        update(handle, &array("b\n"), 1);
        assert_eq!(error.backtrace(), "a\nb\n");
        assert_eq!((*handle.byte_add(24 + 32).cast::<ByteArray>()).as_slice(), b"a\nb\n");
        update(handle, &array("c\n"), 0);
    }
    assert_eq!(error.backtrace(), "c\n");
}

#[test]
fn functions_are_made_named_found_and_called() {
    unsafe extern "C" fn count(_: *mut c_void, _: *const RawAny, n: c_int, out: *mut RawAny) -> c_int {
        // SAFETY: the caller gives a place for the result.
        unsafe { out.write(RawAny::from_word(type_index::INT, n.into())) };
        0
    }
    let (mut made, mut found, mut result) = (null_mut(), null_mut(), RawAny::NONE);
    let args = [RawAny::NONE, RawAny::NONE];
    // SAFETY: the callback needs no resource; handles are live; places are given.
    unsafe {
        assert_eq!(TVMFFIFunctionCreate(null_mut(), Some(count), None, &mut made), 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&array("test.capi.count"), made, 0), 0);
        assert_eq!(TVMFFIFunctionSetGlobal(&array("test.capi.count"), made, 0), -1);
        assert!(raised_message().starts_with("RuntimeError"));
        assert_eq!(TVMFFIFunctionSetGlobal(&array("test.capi.count"), made, 1), 0);
        assert_eq!(TVMFFIFunctionGetGlobal(&array("test.capi.count"), &mut found), 0);
        assert_eq!(found, made);
        assert_eq!(TVMFFIFunctionCall(found, args.as_ptr(), 2, &mut result), 0);
        assert_eq!(result.word(), 2);
        assert_eq!(TVMFFIObjectDecRef(found), 0);
        assert_eq!(TVMFFIFunctionGetGlobal(&array("test.capi.none"), &mut found), 0);
        assert!(found.is_null());
        assert_eq!(TVMFFIFunctionCall(null_mut(), null(), 0, &mut result), -1);
        assert!(raised_message().contains("null"));
    }
    drop(take::<Function>(made));
}

#[test]
fn a_function_is_named_with_its_documentation() {
    let function = Function::typed(|| Ok::<_, Error>(()));
    let raw = Any::from(&function).as_view().raw();
    let info = CMethodInfo {
        name: array("test.capi.documented"),
        doc: array("does nothing"),
        metadata: array("{}"),
        flags: 0,
        method: raw,
    };
    // SAFETY: a readable description of a live function.
    unsafe {
        assert_eq!(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0), 0);
        assert_eq!(TVMFFIFunctionSetGlobalFromMethodInfo(&info, 0), -1);
        assert!(raised_message().contains("test.capi.documented"));
        let broken = CMethodInfo { method: RawAny::NONE, ..info };
        assert_eq!(TVMFFIFunctionSetGlobalFromMethodInfo(&broken, 1), -1);
        assert!(raised_message().starts_with("TypeError"));
    }
    let entry = describe_global("test.capi.documented").unwrap();
    assert_eq!((entry.doc.as_str(), entry.metadata.as_str()), ("does nothing", "{}"));
    assert_eq!(entry.function, function);
}

#[test]
fn streams_belong_to_threads_and_devices() {
    let mut old = 8 as *mut c_void;
    // SAFETY: streams are only passed on; a place for the old one.
    unsafe {
        assert_eq!(TVMFFIEnvSetStream(2, 0, 64 as *mut c_void, &mut old), 0);
        assert!(old.is_null());
        assert_eq!(TVMFFIEnvSetStream(2, 0, 128 as *mut c_void, &mut old), 0);
    }
    assert_eq!(old as usize, 64);
    assert_eq!(TVMFFIEnvGetStream(2, 0) as usize, 128);
    assert!(TVMFFIEnvGetStream(2, 1).is_null());
    std::thread::spawn(|| assert!(TVMFFIEnvGetStream(2, 0).is_null())).join().unwrap();
}

#[test]
fn a_pending_signal_is_an_error_once_the_interpreter_is_lent() {
    static LOCKED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn check() -> c_int {
        -(LOCKED.load(Ordering::SeqCst) as c_int)
    }
    unsafe extern "C" fn ensure() -> c_int {
        LOCKED.fetch_add(1, Ordering::SeqCst);
        7
    }
    unsafe extern "C" fn release(state: c_int) {
        assert_eq!((state, LOCKED.fetch_sub(1, Ordering::SeqCst)), (7, 1));
    }
    assert_eq!(TVMFFIEnvCheckSignals(), 0);
    // SAFETY: the functions have the types that their names promise.
    unsafe {
        assert_eq!(TVMFFIEnvRegisterCAPI(c"PyErr_CheckSignals".as_ptr(), check as *mut c_void), 0);
        assert_eq!(TVMFFIEnvRegisterCAPI(c"PyGILState_Ensure".as_ptr(), ensure as *mut c_void), 0);
        assert_eq!(TVMFFIEnvRegisterCAPI(c"PyGILState_Release".as_ptr(), release as *mut c_void), 0);
        assert_eq!(TVMFFIEnvCheckSignals(), -1);
        assert_eq!(raised_message(), "EnvErrorAlreadySet: interrupted");
        assert_eq!(TVMFFIEnvRegisterCAPI(c"PyErr_CheckSignals".as_ptr(), null_mut()), 0);
        assert_eq!(TVMFFIEnvCheckSignals(), 0);
        assert_eq!(TVMFFIEnvRegisterCAPI(c"Other".as_ptr(), null_mut()), -1);
        error_slot::take();
    }
    assert_eq!(LOCKED.load(Ordering::SeqCst), 0);
}

#[test]
fn values_of_the_caller_become_owned() {
    let text = c"a rather long text";
    let view = RawAny::from_ptr(type_index::RAW_STR, text.as_ptr().cast_mut().cast());
    let bytes = array("12345678");
    let bytes_view = RawAny::from_ptr(type_index::BYTE_ARRAY_PTR, (&raw const bytes).cast_mut().cast());
    let mut out = RawAny::NONE;
    // SAFETY: views of live text and bytes; a live object whose place may be emptied.
    unsafe {
        assert_eq!(TVMFFIAnyViewToOwnedAny(&view, &mut out), 0);
        assert_eq!(Any::from_raw(out).as_str(), Some("a rather long text"));
        assert_eq!(TVMFFIAnyViewToOwnedAny(&bytes_view, &mut out), 0);
        assert_eq!(Any::from_raw(out).as_bytes(), Some(&b"12345678"[..]));
        let mut slot = relaxide_ffi::Array::empty().as_object().clone().into_raw().as_ptr();
        let moved = RawAny::from_ptr(type_index::OBJECT_RVALUE_REF, (&raw mut slot).cast());
        assert_eq!(TVMFFIAnyViewToOwnedAny(&moved, &mut out), 0);
        assert!(slot.is_null());
        assert_eq!(Any::from_raw(out).type_index(), type_index::ARRAY);
    }
}

#[test]
fn text_is_small_or_not_as_everywhere() {
    let mut out = RawAny::NONE;
    // SAFETY: readable arrays, places for results.
    unsafe {
        assert_eq!(TVMFFIStringFromByteArray(&array("1234567"), &mut out), 0);
        assert_eq!((out.type_index, out.small_len), (type_index::SMALL_STR, 7));
        assert_eq!(TVMFFIStringFromByteArray(&array("12345678"), &mut out), 0);
        let long = Any::from_raw(out);
        let cell = *long.as_object().unwrap().as_ptr().byte_add(24).cast::<ByteArray>();
        assert_eq!(CStr::from_ptr(cell.data).to_bytes(), b"12345678");
        assert_eq!(TVMFFIStringFromByteArray(&ByteArray::new(b"\xff"), &mut out), -1);
        assert!(raised_message().contains("UTF-8"));
        let mut dtype = DataType::void();
        assert_eq!(TVMFFIDataTypeFromString(&array("float16x8"), &mut dtype), 0);
        assert_eq!(dtype, DataType::float(16).with_lanes(8));
        assert_eq!(TVMFFIDataTypeToString(&dtype, &mut out), 0);
        assert_eq!(Any::from_raw(out).as_str(), Some("float16x8"));
        assert_eq!(TVMFFIDataTypeToString(&DataType::void(), &mut out), 0);
        assert_eq!(Any::from_raw(out).as_str(), Some(""));
        assert_eq!(TVMFFIDataTypeToString(&DataType::new(DataType::COMPLEX, 64), &mut out), -1);
        assert_eq!(TVMFFIDataTypeFromString(&array("what"), &mut dtype), -1);
        assert_eq!(raised_message(), "ValueError: unknown dtype `what`");
    }
}

#[test]
fn tensors_pass_through_dlpack() {
    let tensor = Tensor::from_slice(&[1f32, 2.0, 3.0], &[3]).unwrap();
    let handle: *mut c_void = tensor.as_object().as_ptr().cast();
    let (mut exported, mut versioned, mut back) = (null_mut(), null_mut(), null_mut());
    // SAFETY: live handles; what is exported is taken over again.
    unsafe {
        assert_eq!(TVMFFITensorToDLPack(handle, &mut exported), 0);
        assert_eq!(TVMFFITensorFromDLPack(exported, 64, 1, &mut back), 0);
        assert_eq!(take::<Tensor>(back).to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(TVMFFITensorToDLPackVersioned(handle, &mut versioned), 0);
        assert_eq!(TVMFFITensorFromDLPackVersioned(versioned, 1 << 30, 0, &mut back), -1);
        assert!(raised_message().contains("not aligned"));
        assert_eq!(TVMFFITensorFromDLPackVersioned(versioned, 0, 0, &mut back), 0);
        let mut prototype = *tensor.dl_tensor();
        let mut shape = [2];
        prototype.shape = shape.as_mut_ptr();
        prototype.byte_offset = 4;
        prototype.strides = null_mut();
        let mut view = null_mut();
        assert_eq!(TVMFFITensorCreateUnsafeView(back, &prototype, &mut view), 0);
        drop(take::<Tensor>(back));
        assert_eq!(take::<Tensor>(view).to_vec::<f32>().unwrap(), [2.0, 3.0]);
        assert_eq!(TVMFFITensorToDLPack(null_mut(), &mut exported), -1);
        assert!(raised_message().contains("null"));
    }
    assert_eq!(tensor.as_object().header().strong_count(), 1);
}

#[test]
fn a_handle_is_initialized_once_and_again_after_a_failure() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn init(result: *mut *mut c_void) -> c_int {
        if CALLS.fetch_add(1, Ordering::SeqCst) == 0 {
            error_slot::set(Error::new("RuntimeError", "not yet"));
            return -1;
        }
        // SAFETY: the caller gives a place.
        unsafe { result.write(&raw const CALLS as *mut c_void) };
        0
    }
    unsafe extern "C" fn deinit(handle: *mut c_void) -> c_int {
        if handle == &raw const CALLS as *mut c_void { 0 } else { -1 }
    }
    let mut slot: *mut c_void = null_mut();
    let address = (&raw mut slot) as usize;
    // SAFETY: the slot outlives all calls.
    unsafe {
        assert_eq!(TVMFFIHandleInitOnce(address as *mut _, Some(init)), -1);
        assert_eq!(raised_message(), "RuntimeError: not yet");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| assert_eq!(TVMFFIHandleInitOnce(address as *mut _, Some(init)), 0));
            }
        });
        assert_eq!(CALLS.load(Ordering::SeqCst), 2);
        assert_eq!(TVMFFIHandleDeinitOnce(address as *mut _, Some(deinit)), 0);
    }
    assert!(slot.is_null());
}

#[test]
fn an_initializer_may_initialize_another_handle() {
    static mut INNER: *mut c_void = null_mut();
    unsafe extern "C" fn inner(result: *mut *mut c_void) -> c_int {
        // SAFETY: the caller gives a place.
        unsafe { result.write(16 as *mut c_void) };
        0
    }
    unsafe extern "C" fn outer(result: *mut *mut c_void) -> c_int {
        // SAFETY: the inner slot is static; the caller gives a place.
        unsafe {
            let code = TVMFFIHandleInitOnce(&raw mut INNER, Some(inner));
            result.write(INNER);
            code
        }
    }
    let mut slot = null_mut();
    // SAFETY: the slot outlives the call.
    assert_eq!(unsafe { TVMFFIHandleInitOnce(&mut slot, Some(outer)) }, 0);
    assert_eq!(slot as usize, 16);
}

struct Library;

impl ModuleImpl for Library {
    fn kind(&self) -> &str {
        "library"
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }
}

#[test]
fn compiled_code_borrows_what_its_module_keeps() {
    register_global("test.capi.callee", Function::typed(|| Ok::<_, Error>(1i64))).unwrap();
    let library = Module::new(Library);
    let mut found = null_mut();
    let handle: *mut c_void = library.as_object().as_ptr().cast();
    // SAFETY: a live module, C strings, a place.
    unsafe {
        assert_eq!(TVMFFIEnvModLookupFromImports(handle, c"test.capi.callee".as_ptr(), &mut found), 0);
        let mut result = RawAny::NONE;
        assert_eq!(TVMFFIFunctionCall(found, null(), 0, &mut result), 0);
        assert_eq!(result.word(), 1);
        assert_eq!(TVMFFIEnvModLookupFromImports(handle, c"test.capi.none".as_ptr(), &mut found), -1);
        assert!(raised_message().contains("Cannot find function test.capi.none"));
        assert_eq!(TVMFFIEnvModLookupFromImports(null_mut(), c"f".as_ptr(), &mut found), -1);
        assert!(error_slot::take().is_some());
        assert_eq!(TVMFFIEnvModRegisterContextSymbol(c"__Test".as_ptr(), 8 as *mut c_void), 0);
        assert_eq!(TVMFFIEnvModRegisterSystemLibSymbol(c"test_symbol".as_ptr(), 24 as *mut c_void), 0);
    }
    let names: Vec<String> = env::context_symbols().into_iter().map(|(name, _)| name).collect();
    assert_eq!(
        names[..4],
        [
            "__TVMFFIFunctionCall",
            "__TVMFFIEnvModLookupFromImports",
            "__TVMFFIHandleInitOnce",
            "__TVMFFIErrorSetRaisedFromCStr"
        ]
    );
    assert!(names.contains(&"__Test".to_string()));
    assert_eq!(env::system_symbol("test_symbol"), Some(24 as *mut c_void));
}

#[derive(Object)]
#[object(key = "test.capi.Node")]
struct Node {
    size: i64,
    name: String,
}

#[test]
fn c_reads_the_fields_of_a_rust_type() {
    let node = Ref::new(Node { size: 7, name: "seven".into() });
    let mut index = 0;
    // SAFETY: readable arrays and places; the description's getters take the addresses of the fields.
    unsafe {
        assert_eq!(TVMFFITypeKeyToIndex(&array("test.capi.Node"), &mut index), 0);
        assert_eq!(index, Node::type_index());
        let info = &*TVMFFIGetTypeInfo(index);
        assert_eq!((info.type_depth, info.num_fields), (1, 2));
        assert_eq!((**info.ancestors).type_index, type_index::OBJECT);
        let fields = std::slice::from_raw_parts(info.fields, 2);
        let read = |field: &CFieldInfo| {
            let mut out = RawAny::NONE;
            let address = Ref::as_ptr(&node).cast::<c_void>().byte_offset(field.offset as isize);
            assert_eq!(field.getter.unwrap()(address, &mut out), 0);
            (String::from_utf8(field.name.as_slice().to_vec()).unwrap(), Any::from_raw(out))
        };
        let (name, value) = read(&fields[0]);
        assert_eq!((name.as_str(), value.as_int()), ("size", Some(7)));
        let (name, value) = read(&fields[1]);
        assert_eq!((name.as_str(), value.as_str()), ("name", Some("seven")));
        assert_eq!(TVMFFITypeKeyToIndex(&array("test.capi.none"), &mut index), -1);
        assert!(raised_message().contains("test.capi.none"));
        assert!(TVMFFIGetTypeInfo(i32::MAX).is_null());
    }
}

#[test]
fn types_that_c_registers_keep_their_children_together() {
    let declare = |key: &str, depth, slots, overflow, parent| {
        // SAFETY: a readable array.
        unsafe { TVMFFITypeGetOrAllocIndex(&array(key), -1, depth, slots, overflow, parent) }
    };
    let parent = declare("test.capi.Parent", 1, 2, 0, -1);
    assert!(parent >= type_index::DYNAMIC_BEGIN);
    assert_eq!(declare("test.capi.Parent", 1, 2, 0, -1), parent);
    assert_eq!(declare("test.capi.A", 2, 0, 0, parent), parent + 1);
    assert_eq!(declare("test.capi.B", 2, 0, 0, parent), parent + 2);
    assert_eq!(declare("test.capi.C", 2, 0, 0, parent), -2, "no slot is left and none may be elsewhere");
    assert_eq!(declare("test.capi.D", 5, 0, 0, parent), -2, "the depth contradicts the parent");
    assert_eq!(declare("test.capi.unknown", 0, 0, 0, -2), -2);
    assert_eq!(declare("ffi.Tensor", 0, 0, 0, -2), type_index::TENSOR);
}

#[test]
fn members_and_attributes_are_registered_once() {
    unsafe extern "C" fn get(_: *mut c_void, out: *mut RawAny) -> c_int {
        // SAFETY: the caller gives a place.
        unsafe { out.write(RawAny::NONE) };
        0
    }
    let nothing = array("");
    let field = CFieldInfo {
        name: array("f"),
        doc: nothing,
        metadata: nothing,
        flags: 0,
        size: 8,
        alignment: 8,
        offset: 24,
        getter: Some(get),
        setter: null_mut(),
        default: RawAny::NONE,
        static_type_index: -1,
    };
    let metadata = CTypeMetadata { doc: array("doc"), creator: None, total_size: 32, structural_kind: 1 };
    let method = CMethodInfo { name: array("m"), doc: nothing, metadata: nothing, flags: 4, method: RawAny::NONE };
    let value = RawAny::from_word(type_index::INT, 5);
    // SAFETY: readable descriptions that no object belies, for there are none.
    unsafe {
        let index = TVMFFITypeGetOrAllocIndex(&array("test.capi.Members"), -1, 1, 0, 0, -1);
        assert_eq!(TVMFFITypeRegisterField(index, &field), 0);
        assert_eq!(TVMFFITypeRegisterField(index, &field), -1);
        assert_eq!(raised_message(), "RuntimeError: Duplicate field name \"f\" in type \"test.capi.Members\"");
        assert_eq!(TVMFFITypeRegisterMethod(index, &method), 0);
        assert_eq!(TVMFFITypeRegisterMetadata(index, &metadata), 0);
        assert_eq!(TVMFFITypeRegisterMetadata(index, &metadata), -1);
        let info = &*TVMFFIGetTypeInfo(index);
        assert_eq!((info.num_fields, info.num_methods), (1, 1));
        assert_eq!((*info.metadata).doc.as_slice(), b"doc");
        assert!(TVMFFIGetTypeAttrColumn(&array("__test__")).is_null());
        assert_eq!(TVMFFITypeRegisterAttr(index, &array("__test__"), &value), 0);
        assert_eq!(TVMFFITypeRegisterAttr(index, &array("__test__"), &value), -1);
        let column = &*TVMFFIGetTypeAttrColumn(&array("__test__"));
        assert_eq!((*column.data.add(index as usize)).word(), 5);
        assert_eq!(TVMFFITypeRegisterField(i32::MAX, &field), -1);
        error_slot::take();
    }
}

#[test]
fn opaque_objects_are_released_once() {
    static RELEASED: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn release(handle: *mut c_void) {
        RELEASED.fetch_add(handle as usize, Ordering::SeqCst);
    }
    let mut out = null_mut();
    // SAFETY: the handle is only passed back.
    unsafe {
        let index = type_index::OPAQUE_PY_OBJECT;
        assert_eq!(TVMFFIObjectCreateOpaque(3 as *mut c_void, index, Some(release), &mut out), 0);
        assert_eq!(TVMFFIObjectIncRef(out), 0);
        assert_eq!(TVMFFIObjectDecRef(out), 0);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 0);
        assert_eq!(TVMFFIObjectDecRef(out), 0);
        assert_eq!(RELEASED.load(Ordering::SeqCst), 3);
        assert_eq!(TVMFFIObjectCreateOpaque(null_mut(), type_index::TENSOR, None, &mut out), -1);
        error_slot::take();
        let mut version = Version { major: 9, minor: 9, patch: 9 };
        TVMFFIGetVersion(&mut version);
        assert_eq!(version, VERSION);
    }
}
