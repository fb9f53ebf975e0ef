//! What front ends set for the whole process: allocators of objects and of tensors; and integers and backtraces in C.

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicUsize, Ordering};

use relaxide_ffi::abi::{ByteArray, RawAny, type_index};
use relaxide_ffi::capi::*;
use relaxide_ffi::{
    Any, BigInt, CustomAllocator, DLManagedTensorVersioned, DLTensor, DataType, Device, FromAny, ObjectRef, Tensor,
    error_slot,
};

fn bytes(words: &[i64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

#[test]
fn integers_of_any_size_pass_and_small_ones_stay_plain() {
    let cases: [(&[i64], &str); 6] = [
        (&[], "0"),
        (&[-1, -1, -1], "-1"),
        (&[7, 0], "7"),
        (&[i64::MIN, 0], "9223372036854775808"),
        (&[i64::MIN, -1], "-9223372036854775808"),
        (&[0, 1, 0], "18446744073709551616"),
    ];
    for (words, text) in cases {
        let mut raw = RawAny::NONE;
        let input = bytes(words);
        // SAFETY: readable bytes, a place for the value; the value is then owned here.
        let value = unsafe {
            assert_eq!(TVMFFIBigIntFromByteArray(&ByteArray::new(&input), &mut raw), 0);
            Any::from_raw(raw)
        };
        let printed = match value.as_int() {
            Some(plain) => plain.to_string(),
            None => value.to::<BigInt>().unwrap().to_string(),
        };
        assert_eq!(printed, text);
        // SAFETY: the value is alive.
        let content = unsafe { TVMFFIBigIntGetContentByteArray(&raw const raw).as_slice() };
        let expected = match value.to::<BigInt>() {
            Ok(integer) => bytes(integer.words()),
            Err(_) => bytes(&[value.as_int().unwrap()]),
        };
        assert_eq!(content, expected);
    }
    let mut raw = RawAny::NONE;
    // SAFETY: as above.
    unsafe { assert_eq!(TVMFFIBigIntFromByteArray(&ByteArray::new(b"123"), &mut raw), -1) };
    assert_eq!(error_slot::take().unwrap().message(), "an integer has whole 64-bit words, but 3 bytes came");
}

#[test]
fn a_backtrace_names_the_caller() {
    // SAFETY: C strings; the array is valid until the next call.
    let text = unsafe { (*TVMFFIBacktrace(c"a.cc".as_ptr(), 12, c"f".as_ptr(), 0)).as_slice() };
    assert_eq!(text, b"  File \"a.cc\", line 12, in f\n");
}

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);
static FREED: AtomicUsize = AtomicUsize::new(0);

/// An allocator that keeps 64 bytes of its own in front, as front ends do to remember their wrappers.
unsafe extern "C" fn allocate(size: usize, _align: usize, _type: i32, context: *mut c_void) -> *mut c_void {
    unsafe extern "C" fn free(body: *mut c_void) {
        FREED.fetch_add(1, Ordering::SeqCst);
        // SAFETY: `allocate` made the body that far behind what `malloc` returned.
        unsafe { libc::free(body.byte_sub(64)) }
    }
    // SAFETY: the context is the counter; the memory has room for what is written.
    unsafe {
        (*context.cast::<AtomicUsize>()).fetch_add(1, Ordering::SeqCst);
        let body = libc::malloc(size + 64).byte_add(64);
        body.byte_sub(8).cast::<unsafe extern "C" fn(*mut c_void)>().write(free);
        body
    }
}

#[test]
fn objects_come_from_the_front_ends_allocator_and_return_to_it() {
    static CUSTOM: CustomAllocator =
        CustomAllocator { allocate: Some(allocate), context: (&raw const ALLOCATED).cast_mut().cast() };
    let before = Any::from("a string that is too long to be inline");
    // SAFETY: the allocators keep the interface's rules and live for ever.
    unsafe {
        let builtin = TVMFFIGetCustomAllocator();
        assert!(!builtin.is_null() && (*builtin).allocate.is_some());
        assert_eq!(TVMFFISetCustomAllocator((&raw const CUSTOM).cast_mut()), 0);
        assert!(std::ptr::eq(TVMFFIGetCustomAllocator(), &CUSTOM));
        let during = Any::from("another string that is too long");
        let array = Any::from(vec![1i64, 2, 3]);
        assert_eq!(TVMFFISetCustomAllocator(null_mut()), 0);
        assert!(std::ptr::eq(TVMFFIGetCustomAllocator(), builtin));
        let allocated = ALLOCATED.load(Ordering::SeqCst);
        assert!(allocated >= 2);
        drop((before, during, array));
        assert!(FREED.load(Ordering::SeqCst) >= 2);
        let none = CustomAllocator { allocate: None, context: null_mut() };
        assert_eq!(TVMFFISetCustomAllocator((&raw const none).cast_mut()), -1);
        error_slot::take();
    }
}

type SetError = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char);

#[test]
fn tensors_come_from_the_threads_allocator() {
    unsafe extern "C" fn make(
        like: *mut DLTensor,
        out: *mut *mut DLManagedTensorVersioned,
        context: *mut c_void,
        set_error: SetError,
    ) -> c_int {
        // SAFETY: the caller's description is readable, and its places are writable.
        unsafe {
            if (*like).device.device_type != Device::CPU {
                set_error(context, c"NotImplementedError".as_ptr(), c"only the host".as_ptr());
                return -1;
            }
            let shape = std::slice::from_raw_parts((*like).shape, (*like).ndim as usize);
            let count = shape.iter().product::<i64>() as usize;
            out.write(Tensor::from_slice(&vec![2f32; count], shape).unwrap().to_dlpack_versioned().as_ptr());
        }
        0
    }
    let mut shape = [2i64, 3];
    let mut like = DLTensor {
        data: null_mut(),
        device: Device::cpu(0),
        ndim: 2,
        dtype: DataType::float(32),
        shape: shape.as_mut_ptr(),
        strides: null_mut(),
        byte_offset: 0,
    };
    let mut out = null_mut();
    // SAFETY: good addresses.
    unsafe {
        assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_none());
        assert_eq!(TVMFFIEnvTensorAlloc(&mut like, &mut out), -1);
        assert!(error_slot::take().unwrap().message().starts_with("no allocator of tensors is set"));
        let mut old = Some(make as _);
        assert_eq!(TVMFFIEnvSetDLPackManagedTensorAllocator(Some(make), 0, &mut old), 0);
        assert!(old.is_none());
        assert_eq!(TVMFFIEnvTensorAlloc(&mut like, &mut out), 0);
        let tensor = ObjectRef::from_header(std::ptr::NonNull::new(out.cast()).unwrap());
        let tensor = Tensor::from_any((&tensor).into()).unwrap();
        assert_eq!((tensor.shape(), tensor.to_vec::<f32>().unwrap()), (&[2i64, 3][..], vec![2f32; 6]));
        like.device = Device::new(2, 0);
        assert_eq!(TVMFFIEnvTensorAlloc(&mut like, &mut out), -1);
        assert_eq!(error_slot::take().unwrap().to_string(), "NotImplementedError: only the host");
        std::thread::spawn(|| assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_none())).join().unwrap();
        TVMFFIEnvSetDLPackManagedTensorAllocator(Some(make), 1, null_mut());
        std::thread::spawn(|| assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_some())).join().unwrap();
        TVMFFIEnvSetDLPackManagedTensorAllocator(None, 1, null_mut());
        assert!(TVMFFIEnvGetDLPackManagedTensorAllocator().is_none());
    }
}

#[test]
fn only_opaque_objects_are_made_opaque() {
    let mut out = null_mut();
    for index in [type_index::OBJECT, type_index::TENSOR, type_index::OPAQUE_PY_OBJECT + 1, 1 << 20, -1] {
        // SAFETY: a place for the handle.
        unsafe { assert_eq!(TVMFFIObjectCreateOpaque(null_mut(), index, None, &mut out), -1) };
        let message = error_slot::take().unwrap().message().to_string();
        assert_eq!(message, format!("type index {index} is not that of an opaque object"));
    }
}
