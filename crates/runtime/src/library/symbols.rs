//! The functions that compiled libraries need from the process, and how they get them.
//!
//! A library gets most functions through *context slots*: exported pointers that the loader fills. A few are left
//! undefined in the file, as any function of another shared library would be, and the dynamic linker resolves each at
//! its first call, in the global scope; a library that was written in C leaves all that it calls undefined. A Rust
//! program exports nothing to that scope by itself, and a Python extension module is loaded outside of it. So there are
//! three ways, tried in this order:
//!
//! 1. [`ensure_symbols_global`]: if the names are not visible, the image that this code lives in is opened once more
//!    with `RTLD_GLOBAL`, which makes the names of a shared library visible. For a program it helps only if it was linked
//!    with exported symbols.
//! 2. After loading, the slots of the library's procedure linkage table that belong to these names are filled
//!    ([`bind`](super::bind)), which needs no global scope, and makes the library report errors to this runtime even if
//!    another one with the same names is in the process.
//! 3. A library that insists on resolving everything while it is loaded (`-z now`) cannot wait for the second way; for
//!    it the error of the first one is reported.

use std::borrow::Cow;
use std::ffi::{CString, c_void};
use std::sync::{Mutex, Once, PoisonError};

use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Error, ErrorKind, capi, env};

use crate::backend;

/// In front of the name of a function, the name of its context slot.
const SLOT_PREFIX: &str = "__";

/// The functions that libraries have context slots for, by the name of the slot. What this crate provides is entered
/// into the process's table at the first call.
pub(super) fn context_symbols() -> Vec<(String, *mut c_void)> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let own: [(&str, *mut c_void); 5] = [
            ("TVMBackendAllocWorkspace", backend::TVMBackendAllocWorkspace as *mut c_void),
            ("TVMBackendFreeWorkspace", backend::TVMBackendFreeWorkspace as *mut c_void),
            ("TVMBackendParallelLaunch", backend::TVMBackendParallelLaunch as *mut c_void),
            ("RelaxideParallelFor", backend::RelaxideParallelFor as *mut c_void),
            ("TVMBackendParallelBarrier", backend::TVMBackendParallelBarrier as *mut c_void),
        ];
        own.iter().for_each(|(name, symbol)| env::register_context_symbol(&format!("{SLOT_PREFIX}{name}"), *symbol));
    });
    env::context_symbols()
}

/// The functions that compiled models leave undefined.
fn direct_imports() -> [(&'static str, *mut c_void); 4] {
    [
        ("TVMFFIErrorSetRaisedFromCStrParts", capi::TVMFFIErrorSetRaisedFromCStrParts as *mut c_void),
        ("TVMBackendAnyListSetPackedArg", backend::TVMBackendAnyListSetPackedArg as *mut c_void),
        ("TVMBackendAnyListResetItem", backend::TVMBackendAnyListResetItem as *mut c_void),
        ("TVMBackendAnyListMoveFromPackedReturn", backend::TVMBackendAnyListMoveFromPackedReturn as *mut c_void),
    ]
}

/// Every function that a library may import, by its name.
pub(super) fn importable() -> Vec<(Cow<'static, str>, *mut c_void)> {
    let slots = context_symbols().into_iter();
    let slots =
        slots.filter_map(|(name, symbol)| Some((Cow::Owned(name.strip_prefix(SLOT_PREFIX)?.to_owned()), symbol)));
    let functions = direct_imports().into_iter().chain(capi::functions());
    slots.chain(functions.map(|(name, symbol)| (Cow::Borrowed(name), symbol))).collect()
}

/// Whether everything was found visible.
static VISIBLE: Mutex<bool> = Mutex::new(false);

/// Holds the lock across a fork.
pub(super) fn hold() -> Option<Held> {
    fork::hold(&VISIBLE)
}

/// Makes the functions that libraries import visible in the global scope, as far as that can be done from here.
pub fn ensure_symbols_global() -> Result<(), Error> {
    // A panic in here would leave `false` behind, which is right.
    let mut done = VISIBLE.lock().unwrap_or_else(PoisonError::into_inner);
    if *done || all_visible() {
        *done = true;
        return Ok(());
    }
    reopen_own_image();
    if all_visible() {
        *done = true;
        return Ok(());
    }
    let message = "the functions that compiled models import (such as TVMFFIErrorSetRaisedFromCStrParts) are not \
                   visible to the dynamic linker: export the program's symbols, in its build script \
                   `println!(\"cargo:rustc-link-arg-bins=-Wl,--export-dynamic-symbol=TVM*\")`";
    Err(Error::new(ErrorKind::RuntimeError, message))
}

fn all_visible() -> bool {
    direct_imports().iter().all(|(name, _)| {
        CString::new(*name).is_ok_and(|name| {
            // SAFETY: the name is a C string; looking a name up in the global scope has no effect.
            !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
        })
    })
}

/// Opens the image that this function is part of once more, globally. The handle is kept for ever, and with it the image.
fn reopen_own_image() {
    let mut info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    let here = reopen_own_image as *const c_void;
    // SAFETY: `here` is an address of this image and `info` is writable; the name that comes back is a C string that
    // lives as long as the image; opening what is loaded already runs no code.
    unsafe {
        if libc::dladdr(here, &raw mut info) != 0 && !info.dli_fname.is_null() {
            libc::dlopen(info.dli_fname, libc::RTLD_LAZY | libc::RTLD_GLOBAL | libc::RTLD_NOLOAD);
        }
    }
}
