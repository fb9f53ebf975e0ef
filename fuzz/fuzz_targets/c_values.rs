//! Bytes as values of the C interface: every conversion, and every global function of the interface that changes nothing in
//! the process, must end in a value or an error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use relaxide_ffi::abi::{Payload, RawAny, type_index};
use relaxide_ffi::{
    Any, AnyView, Array, Bytes, DLManagedTensorVersioned, DLPackVersion, DLTensor, DataType, Device, Dict, Error,
    FromAny, Function, List, Map, Module, Requirements, Shape, Tensor, get_global, global_names,
};

/// Functions that follow an address that they are given, open files, or change tables of the process.
const LEFT_OUT: [&str; 7] = [
    "ffi.FunctionFromExternC",
    "ffi.FunctionRemoveGlobal",
    "ffi.ModuleGlobalsAdd",
    "ffi.ModuleLoadFromFile",
    "ffi.ModuleWriteToFile",
    "ffi._PyClassRegisterTypeAttrColumns",
    "ffi._RegisterFFIInit",
];

fuzz_target!(|data: &[u8]| {
    let mut bytes = Source(data);
    let which = usize::from(bytes.byte());
    let values: Vec<Any> = (0..1 + bytes.byte() % 4).map(|_| value(&mut bytes, 4)).collect();
    values.iter().for_each(convert);
    borrow_tensor(&mut bytes);
    let names: Vec<String> = global_names();
    let usable: Vec<&String> = names.iter().filter(|name| !LEFT_OUT.contains(&name.as_str())).collect();
    if let Some(function) = usable.get(which % usable.len().max(1)).and_then(|name| get_global(name)) {
        let views: Vec<AnyView<'_>> = values.iter().map(Any::as_view).collect();
        if let Ok(result) = function.call(&views) {
            convert(&result);
        }
    }
});

/// The rest of the input; zeros when it is used up.
struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn word(&mut self) -> i64 {
        let mut word = [0; 8];
        let taken = self.take(8);
        word[..taken.len()].copy_from_slice(taken);
        i64::from_le_bytes(word)
    }

    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn some(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte() % 24);
        self.take(count)
    }
}

fn dtype(bytes: &mut Source<'_>) -> DataType {
    DataType { code: bytes.byte(), bits: bytes.byte(), lanes: u16::from(bytes.byte()) << 8 | u16::from(bytes.byte()) }
}

fn value(bytes: &mut Source<'_>, depth: u32) -> Any {
    let count = bytes.byte() % 4;
    let nested = |bytes: &mut Source<'_>| if depth == 0 { Any::none() } else { value(bytes, depth - 1) };
    match bytes.byte() % 16 {
        0 => bytes.word().into(),
        1 => (bytes.byte() % 2 == 0).into(),
        2 => f64::from_bits(bytes.word() as u64).into(),
        3 => String::from_utf8_lossy(bytes.some()).as_ref().into(),
        4 => Bytes::new(bytes.some()).into(),
        5 => dtype(bytes).into(),
        6 => Device::new(i32::from(bytes.byte()), i32::from(bytes.byte())).into(),
        7 => Shape::new(&(0..count).map(|_| bytes.word()).collect::<Vec<i64>>()).into(),
        8 => (0..count).map(|_| nested(bytes)).collect::<Array>().into(),
        9 => (0..count).map(|_| nested(bytes)).collect::<List>().into(),
        10 => (0..count).map(|_| (nested(bytes), nested(bytes))).collect::<Map>().into(),
        11 => (0..count).map(|_| (nested(bytes), nested(bytes))).collect::<Dict>().into(),
        12 => {
            Tensor::from_slice(&[1.0_f32; 3][..usize::from(count)], &[i64::from(count)]).map_or(Any::none(), Any::from)
        }
        13 => Function::new(|args| Ok(args.first().map_or(Any::none(), AnyView::to_owned))).into(),
        14 => small(bytes),
        _ => plain(bytes),
    }
}

/// A short string or bytes as a caller may have made them, text or not.
fn small(bytes: &mut Source<'_>) -> Any {
    let kind = if bytes.byte() % 2 == 0 { type_index::SMALL_STR } else { type_index::SMALL_BYTES };
    let small_len = u32::from(bytes.byte() % 8);
    let mut content = [0; 8];
    let taken = bytes.take(small_len as usize);
    content[..taken.len()].copy_from_slice(taken);
    let raw = RawAny { type_index: kind, small_len, payload: Payload { bytes: content } };
    // SAFETY: the length is at most seven, and the kind owns nothing.
    unsafe { AnyView::from_raw(raw) }.to_owned()
}

/// Any bits under a kind that is no address.
fn plain(bytes: &mut Source<'_>) -> Any {
    let kinds = [type_index::NONE, type_index::INT, type_index::BOOL, type_index::FLOAT, type_index::DATA_TYPE];
    let others = [type_index::DEVICE, type_index::OPAQUE_PTR, type_index::UNCHANGED];
    let kinds = [kinds.as_slice(), others.as_slice()].concat();
    let kind = kinds[usize::from(bytes.byte()) % kinds.len()];
    // SAFETY: kinds that own nothing and are never followed.
    unsafe { AnyView::from_raw(RawAny::from_word(kind, bytes.word())) }.to_owned()
}

fn convert(value: &Any) {
    fn to<T: FromAny>(value: &Any) {
        let _: Result<T, Error> = value.to();
    }
    to::<i64>(value);
    to::<i32>(value);
    to::<u8>(value);
    to::<bool>(value);
    to::<f64>(value);
    to::<String>(value);
    to::<Bytes>(value);
    to::<DataType>(value);
    to::<Device>(value);
    to::<Shape>(value);
    to::<Tensor>(value);
    to::<Array>(value);
    to::<List>(value);
    to::<Map>(value);
    to::<Dict>(value);
    to::<Function>(value);
    to::<Module>(value);
    to::<Option<i64>>(value);
    to::<Vec<i64>>(value);
    let _ = format!("{value:?}");
}

/// A tensor as another library lends it: its description may be anything, its data are there.
fn borrow_tensor(bytes: &mut Source<'_>) {
    unsafe extern "C" fn release(managed: *mut DLManagedTensorVersioned) {
        // SAFETY: the tensor was made by `Box::into_raw` below, and is released once.
        drop(unsafe { Box::from_raw(managed) });
    }
    let ndim = bytes.byte() % 4;
    let mut shape: Vec<i64> = (0..ndim).map(|_| bytes.word() % 4).collect();
    let mut strides: Vec<i64> = (0..ndim).map(|_| bytes.word() % 3).collect();
    let mut data = [0_u64; 64];
    let has_strides = bytes.byte() % 2 == 0;
    let managed = Box::into_raw(Box::new(DLManagedTensorVersioned {
        version: DLPackVersion { major: u32::from(bytes.byte() % 3), minor: u32::from(bytes.byte()) },
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(release),
        flags: u64::from(bytes.byte()),
        dl_tensor: DLTensor {
            data: data[32..].as_mut_ptr().cast(),
            device: Device::cpu(0),
            ndim: i32::from(ndim),
            dtype: DataType::float(8 << (bytes.byte() % 4)),
            shape: shape.as_mut_ptr(),
            strides: if has_strides { strides.as_mut_ptr() } else { std::ptr::null_mut() },
            byte_offset: u64::from(bytes.byte() % 8),
        },
    }));
    // SAFETY: the description is readable until the deleter is called. The data are there: in each of three directions at most
    // two steps of two elements of eight bytes, forward or back from the middle.
    match unsafe { Tensor::from_dlpack_versioned(managed, Requirements::default()) } {
        Ok(tensor) => {
            let _ = tensor.is_contiguous();
            let _ = tensor.to_bytes();
            let _ = tensor.reshape(&[bytes.word()]);
        }
        // SAFETY: whoever refuses a tensor leaves it to its owner.
        Err(_) => unsafe { release(managed) },
    }
}
