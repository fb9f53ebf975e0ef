//! What the C functions do with null: an error that says what is missing, or nothing; never a crash.

use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut};

use relaxide_ffi::abi::{ByteArray, RawAny, type_index};
use relaxide_ffi::capi::*;
use relaxide_ffi::{Any, DataType, Function, Module, ModuleImpl, Tensor, error_slot};

fn array(text: &str) -> ByteArray {
    ByteArray::new(text.as_bytes())
}

unsafe extern "C" fn call(_: *mut c_void, _: *const RawAny, _: c_int, _: *mut RawAny) -> c_int {
    0
}

struct Empty;

impl ModuleImpl for Empty {
    fn kind(&self) -> &str {
        "empty"
    }

    fn get_function(&self, _name: &str) -> Option<Function> {
        None
    }
}

/// The address of the object of a value that stays alive.
fn handle(value: &Any) -> *mut c_void {
    value.as_object().unwrap().as_ptr().cast()
}

#[test]
fn null_arguments_are_errors_that_say_so() {
    let name = array("test.nulls.name");
    let mut object = null_mut();
    let mut value = RawAny::NONE;
    let (function, module) = (Any::from(Function::typed(|| Ok::<_, relaxide_ffi::Error>(1i64))), Module::new(Empty));
    let module = Any::from(module);
    let tensor = Any::from(Tensor::from_slice(&[1f32], &[1]).unwrap());
    let (function, module, tensor) = (handle(&function), handle(&module), handle(&tensor));
    let float = DataType::float(32);
    let absent = ByteArray { data: null(), size: 3 };
    // SAFETY: every address is null or good; handles are of live objects.
    let codes = unsafe {
        [
            ("inc ref", TVMFFIObjectIncRef(null_mut())),
            ("opaque", TVMFFIObjectCreateOpaque(null_mut(), type_index::OPAQUE_PY_OBJECT, None, null_mut())),
            ("key to index: key", TVMFFITypeKeyToIndex(null(), &mut 0)),
            ("key to index: out", TVMFFITypeKeyToIndex(&array("ffi.Tensor"), null_mut())),
            ("create function: call", TVMFFIFunctionCreate(null_mut(), None, None, &mut object)),
            ("create function: out", TVMFFIFunctionCreate(null_mut(), Some(call), None, null_mut())),
            ("get global: name", TVMFFIFunctionGetGlobal(null(), &mut object)),
            ("get global: data", TVMFFIFunctionGetGlobal(&absent, &mut object)),
            ("get global: out", TVMFFIFunctionGetGlobal(&name, null_mut())),
            ("set global: name", TVMFFIFunctionSetGlobal(null(), function, 0)),
            ("set global: function", TVMFFIFunctionSetGlobal(&name, null_mut(), 0)),
            ("set global: method", TVMFFIFunctionSetGlobalFromMethodInfo(null(), 0)),
            ("to owned: view", TVMFFIAnyViewToOwnedAny(null(), &mut value)),
            ("to owned: object", TVMFFIAnyViewToOwnedAny(&RawAny::from_word(type_index::ARRAY, 0), &mut value)),
            ("to owned: text", TVMFFIAnyViewToOwnedAny(&RawAny::from_word(type_index::RAW_STR, 0), &mut value)),
            ("to owned: out", TVMFFIAnyViewToOwnedAny(&value, null_mut())),
            ("call: function", TVMFFIFunctionCall(null_mut(), null(), 0, &mut value)),
            ("call: arguments", TVMFFIFunctionCall(function, null(), 1, &mut value)),
            ("call: result", TVMFFIFunctionCall(function, null(), 0, null_mut())),
            ("error: kind", TVMFFIErrorCreate(null(), &name, &name, &mut object)),
            ("error: out", TVMFFIErrorCreate(&name, &name, &name, null_mut())),
            ("from dlpack", TVMFFITensorFromDLPack(null_mut(), 0, 0, &mut object)),
            ("from versioned", TVMFFITensorFromDLPackVersioned(null_mut(), 0, 0, &mut object)),
            ("to dlpack: tensor", TVMFFITensorToDLPack(null_mut(), &mut null_mut())),
            ("to dlpack: out", TVMFFITensorToDLPack(tensor, null_mut())),
            ("to versioned: tensor", TVMFFITensorToDLPackVersioned(null_mut(), &mut null_mut())),
            ("to versioned: out", TVMFFITensorToDLPackVersioned(tensor, null_mut())),
            ("view: source", TVMFFITensorCreateUnsafeView(null_mut(), null(), &mut object)),
            ("view: prototype", TVMFFITensorCreateUnsafeView(tensor, null(), &mut object)),
            ("string: input", TVMFFIStringFromByteArray(null(), &mut value)),
            ("string: data", TVMFFIStringFromByteArray(&absent, &mut value)),
            ("string: out", TVMFFIStringFromByteArray(&name, null_mut())),
            ("bytes: input", TVMFFIBytesFromByteArray(null(), &mut value)),
            ("bytes: out", TVMFFIBytesFromByteArray(&name, null_mut())),
            ("integer: input", TVMFFIBigIntFromByteArray(null(), &mut value)),
            ("integer: out", TVMFFIBigIntFromByteArray(&array(""), null_mut())),
            ("dtype: text", TVMFFIDataTypeFromString(null(), &mut DataType::float(32))),
            ("dtype: out", TVMFFIDataTypeFromString(&array("int8"), null_mut())),
            ("dtype text: dtype", TVMFFIDataTypeToString(null(), &mut value)),
            ("dtype text: out", TVMFFIDataTypeToString(&float, null_mut())),
            ("field", TVMFFITypeRegisterField(type_index::OBJECT, null())),
            ("method", TVMFFITypeRegisterMethod(type_index::OBJECT, null())),
            ("metadata", TVMFFITypeRegisterMetadata(type_index::OBJECT, null())),
            ("attribute: name", TVMFFITypeRegisterAttr(type_index::OBJECT, null(), &value)),
            ("attribute: object", {
                TVMFFITypeRegisterAttr(type_index::OBJECT, &name, &RawAny::from_word(type_index::FUNCTION, 0))
            }),
            ("attribute: value", TVMFFITypeRegisterAttr(type_index::OBJECT, &name, null())),
            ("init once: handle", TVMFFIHandleInitOnce(null_mut(), None)),
            ("init once: init", TVMFFIHandleInitOnce(&mut null_mut(), None)),
            ("deinit once", TVMFFIHandleDeinitOnce(null_mut(), None)),
            ("allocate: prototype", TVMFFIEnvTensorAlloc(null_mut(), &mut object)),
            ("allocate: out", TVMFFIEnvTensorAlloc(null_mut(), null_mut())),
            ("register", TVMFFIEnvRegisterCAPI(null(), null_mut())),
            ("imports: library", TVMFFIEnvModLookupFromImports(null_mut(), c"f".as_ptr(), &mut object)),
            ("imports: name", TVMFFIEnvModLookupFromImports(module, null(), &mut object)),
            ("imports: out", TVMFFIEnvModLookupFromImports(module, c"f".as_ptr(), null_mut())),
            ("context symbol", TVMFFIEnvModRegisterContextSymbol(null(), null_mut())),
            ("system symbol", TVMFFIEnvModRegisterSystemLibSymbol(null(), null_mut())),
        ]
    };
    let accepted: Vec<_> = codes.iter().filter(|(_, code)| *code != -1).collect();
    assert!(accepted.is_empty(), "no error from {accepted:?}");
    let message = error_slot::take().unwrap().to_string();
    assert!(message.starts_with("ValueError: ") && message.ends_with(" is null"), "{message}");
    // SAFETY: as above.
    unsafe {
        TVMFFIFunctionGetGlobal(&name, null_mut());
        assert_eq!(error_slot::take().unwrap().message(), "the place for the result is null");
        TVMFFIDataTypeToString(null(), &mut value);
        assert_eq!(error_slot::take().unwrap().message(), "the element type is null");
        TVMFFIStringFromByteArray(&absent, &mut value);
        assert_eq!(error_slot::take().unwrap().message(), "the address of 3 bytes is null");
    }
}

#[test]
fn what_cannot_fail_does_nothing_with_null() {
    // SAFETY: every address is null or a good one.
    unsafe {
        TVMFFIGetVersion(null_mut());
        TVMFFIErrorMoveFromRaised(null_mut());
        assert_eq!(TVMFFIObjectDecRef(null_mut()), 0);
        assert_eq!(TVMFFITypeGetOrAllocIndex(null(), -1, 1, 0, 0, -1), -2);
        assert!(TVMFFIGetTypeAttrColumn(null()).is_null());
        assert!(TVMFFIGetTypeInfo(-1).is_null());
        assert_eq!(TVMFFIBigIntGetContentByteArray(null()).size, 0);
        assert_eq!(TVMFFIBigIntGetContentByteArray(&RawAny::from_word(type_index::BIG_INT, 0)).size, 0);
        assert_eq!((*TVMFFIBacktrace(null(), 0, null(), 0)).size, 0);
        TVMFFIErrorSetRaisedFromCStr(null(), null());
        assert_eq!(error_slot::take().unwrap().to_string(), ": ");
        TVMFFIErrorSetRaised(null_mut());
        assert!(error_slot::take().unwrap().message().contains("null"));
    }
}
