//! What a driver has compiled, kept in the cache ([`crate::cache`]) for other processes.
//!
//! A binary's key is all that it follows from: the source, the device and the version of its driver. One that the driver no longer takes is
//! built anew from source and replaced; what cannot be kept costs time only, and is told once.

use std::sync::Once;

use super::devices::Opened;
use super::driver::{PROGRAM_BINARIES, PROGRAM_BINARY_SIZES, Raw, SUCCESS};
use crate::cache;

fn key(opened: &Opened, source: &[u8]) -> Vec<u8> {
    let identity = opened.identity();
    let parts: Vec<&[u8]> = identity.iter().map(Vec::as_slice).chain([source]).collect();
    cache::key(&parts)
}

/// A program that was built from a source before.
pub(super) fn find(opened: &Opened, source: &[u8]) -> Option<Raw> {
    let binary = cache::find(&cache::folder()?, &key(opened, source))?;
    let (driver, none) = (opened.driver, std::ptr::null_mut());
    let (mut status, mut code, place, length) = (SUCCESS, SUCCESS, binary.as_ptr(), binary.len());
    // SAFETY: one device and one binary of that length are given; the driver copies it.
    let program = unsafe {
        (driver.create_from_binary)(
            opened.context,
            1,
            &raw const opened.id,
            &raw const length,
            &raw const place,
            &raw mut status,
            &raw mut code,
        )
    };
    if code != SUCCESS || program.is_null() {
        return None;
    }
    // SAFETY: the program is live and the device is that of its context.
    let built = unsafe { (driver.build_program)(program, 1, &raw const opened.id, c"".as_ptr(), none, none) };
    if status == SUCCESS && built == SUCCESS {
        return Some(program);
    }
    // SAFETY: the program is live and is not used again.
    unsafe { (driver.release_program)(program) };
    None
}

/// Keeps what a program was built to, if there is a cache.
pub(super) fn keep(opened: &Opened, source: &[u8], program: Raw) {
    let Some(folder) = cache::folder() else { return };
    let kept = match binary(opened, program) {
        Some(binary) => cache::keep(&folder, &key(opened, source), &binary).map_err(|error| error.to_string()),
        None => Err("the driver gives no binary".to_owned()),
    };
    if let Err(why) = kept {
        static SAID: Once = Once::new();
        let place = folder.display();
        SAID.call_once(|| eprintln!("relaxide: kernels of OpenCL devices are not kept in {place}: {why}"));
    }
}

fn binary(opened: &Opened, program: Raw) -> Option<Vec<u8>> {
    let mut size = 0_usize;
    let room = size_of::<usize>();
    let none = std::ptr::null_mut();
    let place = (&raw mut size).cast();
    // SAFETY: the program was built for one device, so that one number is written.
    let code = unsafe { (opened.driver.program_info)(program, PROGRAM_BINARY_SIZES, room, place, none) };
    if code != SUCCESS || size == 0 {
        return None;
    }
    let mut binary = vec![0_u8; size];
    let mut place = binary.as_mut_ptr();
    // SAFETY: one pointer is given, to as many bytes as the driver asked for.
    let code = unsafe {
        (opened.driver.program_info)(program, PROGRAM_BINARIES, size_of::<*mut u8>(), (&raw mut place).cast(), none)
    };
    (code == SUCCESS).then_some(binary)
}
