//! Bytes as a C caller: plain values with any bits, text, numbers and tensors by description are made through the C
//! functions, converted to every type, and given to the global functions of the interface.
//!
//! What is left out is what no callee can check: addresses that lead nowhere, and functions that take addresses.
#![no_main]

use std::ptr::null_mut;

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::abi::{ByteArray, RawAny, type_index};
use relaxide_ffi::capi::*;
use relaxide_ffi::{
    Any, AnyView, Array, BigInt, Bytes, DLManagedTensor, DLTensor, DataType, Device, Dict, Error, FromAny, Function,
    List, Map, Module, ObjectRef, Shape, Str, Tensor, get_global, error_slot,
};

const FUNCTIONS: &[&str] = &[
    "ffi.Array",
    "ffi.ArrayGetItem",
    "ffi.ArraySize",
    "ffi.ArrayContains",
    "ffi.List",
    "ffi.ListGetItem",
    "ffi.ListSetItem",
    "ffi.ListSize",
    "ffi.ListContains",
    "ffi.ListAppend",
    "ffi.ListInsert",
    "ffi.ListPop",
    "ffi.ListErase",
    "ffi.ListEraseRange",
    "ffi.ListReplaceSlice",
    "ffi.ListReverse",
    "ffi.ListClear",
    "ffi.Map",
    "ffi.MapSize",
    "ffi.MapGetItem",
    "ffi.MapCount",
    "ffi.MapForwardIterFunctor",
    "ffi.MapGetItemOrMissing",
    "ffi.Dict",
    "ffi.DictSize",
    "ffi.DictGetItem",
    "ffi.DictSetItem",
    "ffi.DictCount",
    "ffi.DictErase",
    "ffi.DictClear",
    "ffi.Shape",
    "ffi.String",
    "ffi.Bytes",
    "ffi.json.Parse",
    "ffi.json.Stringify",
    "ffi.ToJSONGraph",
    "ffi.FromJSONGraph",
    "ffi.DeepCopy",
    "ffi.ReprPrint",
    "ffi.RecursiveHash",
    "ffi.RecursiveEq",
    "ffi.RecursiveLt",
    "ffi.StructuralKey",
    "ffi.StructuralKeyEqual",
    "ffi.StructuralEqual",
    "ffi.StructuralHash",
    "ffi.GetFirstStructuralMismatch",
    "ffi.VisitInterrupt",
    "ffi.ContainerFindFirstNonCPUDevice",
    "ffi.GetGlobalFuncMetadata",
];

/// The caller's script.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<i64> {
        let (word, rest) = self.0.split_first_chunk::<8>()?;
        self.0 = rest;
        Some(i64::from_le_bytes(*word))
    }

    /// Small numbers and those at the edges more often than others.
    fn number(&mut self) -> Option<i64> {
        const EDGES: [i64; 8] = [0, -1, 1, i64::MAX, i64::MIN, 1 << 31, 1 << 32, 1 << 62];
        match self.byte()? {
            byte @ 0..=7 => Some(EDGES[usize::from(byte)]),
            8 => self.word(),
            byte => Some(i64::from(byte) - 16),
        }
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(self.byte()?).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Some(bytes)
    }
}

/// Takes the error of a C function that failed: there must be one.
fn outcome(code: i32) -> bool {
    if code != 0 {
        let error = error_slot::take().expect("a failure leaves an error");
        assert!(!error.kind().is_empty());
    }
    code == 0
}

fn plain(script: &mut Script<'_>) -> Option<Any> {
    let index = i32::from(script.byte()? % 64);
    let is_address = (type_index::DL_TENSOR_PTR..=type_index::OBJECT_RVALUE_REF).contains(&index);
    let mut raw = RawAny::from_word(if is_address { type_index::INT } else { index }, script.number()?);
    if matches!(index, type_index::SMALL_STR | type_index::SMALL_BYTES) {
        raw.small_len = script.number()? as u32;
    }
    // SAFETY: plain values own nothing.
    Some(unsafe { Any::from_raw(raw) })
}

fn made_by_c(script: &mut Script<'_>, how: u8) -> Option<Any> {
    let bytes = script.bytes()?;
    let array = ByteArray::new(bytes);
    let mut out = RawAny::NONE;
    // SAFETY: the array is readable and the place is writable.
    let made = unsafe {
        outcome(match how {
            0 => TVMFFIStringFromByteArray(&array, &mut out),
            1 => TVMFFIBytesFromByteArray(&array, &mut out),
            2 => TVMFFIBigIntFromByteArray(&array, &mut out),
            _ => {
                let mut dtype = DataType::void();
                if outcome(TVMFFIDataTypeFromString(&array, &mut dtype)) {
                    outcome(TVMFFIDataTypeToString(&dtype, &mut out));
                }
                0
            }
        })
    };
    // SAFETY: a C function that succeeds leaves an owned value; else the place still holds None.
    let value = unsafe { Any::from_raw(out) };
    if made && how == 2 {
        // SAFETY: the value is alive.
        let words = unsafe { TVMFFIBigIntGetContentByteArray(&raw const out).as_slice() };
        assert!(!words.is_empty() && words.len() % 8 == 0);
    }
    Some(value)
}

/// A tensor by description. It is not kept: its data do not exist.
fn tensor(script: &mut Script<'_>) -> Option<()> {
    let mut shape = Vec::new();
    let mut strides = Vec::new();
    for _ in 0..script.byte()? % 6 {
        shape.push(script.number()?);
        strides.push(script.number()?);
    }
    let description = DLTensor {
        data: null_mut(),
        device: Device::new(i32::from(script.byte()?), i32::from(script.byte()?)),
        ndim: shape.len() as i32,
        dtype: DataType { code: script.byte()?, bits: script.byte()?, lanes: u16::from(script.byte()?) },
        shape: shape.as_mut_ptr(),
        strides: if script.byte()? & 1 == 0 { null_mut() } else { strides.as_mut_ptr() },
        byte_offset: script.number()? as u64,
    };
    let mut managed = DLManagedTensor { dl_tensor: description, manager_ctx: null_mut(), deleter: None };
    let mut handle = null_mut();
    let (alignment, contiguous) = (script.number()? as i32, i32::from(script.byte()? & 1));
    // SAFETY: shape and strides are as long as the description says; nothing reads the data.
    unsafe {
        if !outcome(TVMFFITensorFromDLPack(&mut managed, alignment, contiguous, &mut handle)) {
            return Some(());
        }
        let (mut exported, mut view) = (null_mut(), null_mut());
        if outcome(TVMFFITensorToDLPack(handle, &mut exported)) {
            if let Some(release) = (*exported).deleter {
                release(exported);
            }
        }
        if outcome(TVMFFITensorCreateUnsafeView(handle, &description, &mut view)) {
            TVMFFIObjectDecRef(view);
        }
        TVMFFIObjectDecRef(handle);
    }
    Some(())
}

fn convert(value: &Any) {
    fn to<T: FromAny>(value: &Any) {
        let _ = value.to::<T>();
    }
    to::<i64>(value);
    to::<u8>(value);
    to::<bool>(value);
    to::<f64>(value);
    to::<String>(value);
    to::<Str>(value);
    to::<Bytes>(value);
    to::<DataType>(value);
    to::<Device>(value);
    to::<Option<i64>>(value);
    to::<Vec<i64>>(value);
    to::<Vec<Vec<String>>>(value);
    to::<Shape>(value);
    to::<Array>(value);
    to::<List>(value);
    to::<Map>(value);
    to::<Dict>(value);
    to::<BigInt>(value);
    to::<Error>(value);
    to::<Function>(value);
    to::<Tensor>(value);
    to::<Module>(value);
    to::<ObjectRef>(value);
    let _ = format!("{value:?}");
    let mut copy = RawAny::NONE;
    // SAFETY: the view lives for the call; the copy is owned.
    unsafe {
        assert!(outcome(TVMFFIAnyViewToOwnedAny(&value.as_view().raw(), &mut copy)));
        drop(Any::from_raw(copy));
    }
}

fn call(script: &mut Script<'_>, values: &[Any]) -> Option<Any> {
    let name = FUNCTIONS[usize::from(script.byte()?) % FUNCTIONS.len()];
    let mut args: Vec<AnyView<'_>> = Vec::new();
    for _ in 0..script.byte()? % 5 {
        args.push(values.get(usize::from(script.byte()?) % values.len().max(1))?.as_view());
    }
    let function = Any::from(get_global(name)?);
    let mut result = RawAny::NONE;
    // SAFETY: the function and the arguments live for the call; the result is owned.
    unsafe {
        let handle = function.as_object()?.as_ptr().cast();
        outcome(TVMFFIFunctionCall(handle, args.as_ptr().cast(), args.len() as i32, &mut result));
        Some(Any::from_raw(result))
    }
}

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let mut values = vec![Any::none()];
    while let Some(command) = script.byte() {
        let value = match command % 8 {
            0 => plain(&mut script),
            how @ 1..=4 => made_by_c(&mut script, how - 1),
            5 => {
                tensor(&mut script);
                None
            }
            _ => call(&mut script, &values),
        };
        if let Some(value) = value {
            convert(&value);
            values.push(value);
        }
        if values.len() > 64 {
            values.truncate(1);
        }
    }
});
