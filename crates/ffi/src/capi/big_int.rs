//! Integers of any size from and to C.

use std::ffi::c_int;

use super::{bytes, place, view};
use crate::abi::{ByteArray, RawAny, type_index};
use crate::big_int::BigIntObj;
use crate::{Any, BigInt, Error, ErrorKind, error_slot};

/// Makes an integer of its words, the least significant first: a plain one if it fits 64 bits. No words are zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIBigIntFromByteArray(input: *const ByteArray, out: *mut RawAny) -> c_int {
    error_slot::guard(|| {
        // SAFETY: the interface's contract.
        let (out, input) = unsafe { (place(out)?, bytes(input)?) };
        let (words, rest) = input.as_chunks::<8>();
        if !rest.is_empty() {
            let message = format!("an integer has whole 64-bit words, but {} bytes came", input.len());
            return Err(Error::new(ErrorKind::ValueError, message));
        }
        let words: Vec<i64> = words.iter().map(|word| i64::from_ne_bytes(*word)).collect();
        // SAFETY: the interface's contract.
        unsafe { out.write(Any::into_raw(BigInt::from_words(&words))) };
        Ok(())
    })
}

/// The words of an integer, which the value keeps; nothing if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn TVMFFIBigIntGetContentByteArray(value: *const RawAny) -> ByteArray {
    // SAFETY: the interface's contract.
    let Some(raw) = (unsafe { value.as_ref() }) else { return ByteArray::new(b"") };
    match raw.type_index {
        // SAFETY: the payload is eight plain bytes inside of the value.
        type_index::INT => unsafe {
            ByteArray::new(std::slice::from_raw_parts((&raw const raw.payload).cast::<u8>(), 8))
        },
        // SAFETY: the interface's contract.
        _ => match unsafe { view(*raw) } {
            Ok(value) => value.downcast_ref::<BigIntObj>().map_or(ByteArray::new(b""), |it| ByteArray::new(it.bytes())),
            Err(_) => ByteArray::new(b""),
        },
    }
}
