//! What a run is told: [`RunOptions`].

use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::border::{c_string, put, text};
use crate::handle::{Handle, HandleKind, at, at_mut, put_new, release};
use crate::options::check_entry;
use crate::status::{OrtStatus, Result, guard};

/// The options of a run.
#[derive(Debug)]
pub struct RunOptions {
    /// Set by another thread to end runs.
    terminate: Arc<AtomicBool>,
    /// How the file of a profile of each run begins, where there is to be one.
    profile: Option<String>,
    verbosity: c_int,
    severity: c_int,
    tag: CString,
    entries: BTreeMap<CString, CString>,
}

/// What a run follows of its options.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Ends it where it is set.
    pub stop: Arc<AtomicBool>,
    /// How the file of its profile begins, where there is to be one.
    pub profile: Option<String>,
}

impl RunControl {
    /// What options say, which may be left out.
    ///
    /// # Safety
    /// As for [`at`].
    pub unsafe fn of(options: *const OrtRunOptions) -> Result<RunControl> {
        if options.is_null() {
            return Ok(RunControl::default());
        }
        // SAFETY: the caller's promise.
        let options = unsafe { at(options, "run options")? };
        Ok(RunControl { stop: Arc::clone(&options.terminate), profile: options.profile.clone() })
    }
}

/// The same for C.
pub type OrtRunOptions = Handle<RunOptions>;

impl HandleKind for RunOptions {
    const NAME: &str = "OrtRunOptions";
}

pub unsafe extern "C" fn create(out: *mut *mut OrtRunOptions) -> *mut OrtStatus {
    let options = RunOptions {
        terminate: Arc::default(),
        profile: None,
        verbosity: 0,
        severity: -1,
        tag: CString::default(),
        entries: BTreeMap::new(),
    };
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, options) })
}

pub unsafe extern "C" fn release_options(options: *mut OrtRunOptions) {
    // SAFETY: the interface's contract.
    unsafe { release(options) }
}

/// # Safety
/// As for [`at_mut`].
unsafe fn change(options: *mut OrtRunOptions, body: impl FnOnce(&mut RunOptions) -> Result<()>) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| body(unsafe { at_mut(options, "run options")? }))
}

pub unsafe extern "C" fn set_verbosity(options: *mut OrtRunOptions, level: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            options.verbosity = level;
            Ok(())
        })
    }
}

pub unsafe extern "C" fn set_severity(options: *mut OrtRunOptions, level: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            options.severity = level;
            Ok(())
        })
    }
}

pub unsafe extern "C" fn set_tag(options: *mut OrtRunOptions, tag: *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            options.tag = c_string(text(tag, "run_tag")?);
            Ok(())
        })
    }
}

pub unsafe extern "C" fn enable_profiling(options: *mut OrtRunOptions, prefix: *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            options.profile = Some(text(prefix, "profile_file_prefix")?.into());
            Ok(())
        })
    }
}

pub unsafe extern "C" fn disable_profiling(options: *mut OrtRunOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            options.profile = None;
            Ok(())
        })
    }
}

pub unsafe extern "C" fn verbosity(options: *const OrtRunOptions, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(options, "run options")?.verbosity) })
}

pub unsafe extern "C" fn severity(options: *const OrtRunOptions, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(options, "run options")?.severity) })
}

pub unsafe extern "C" fn tag(options: *const OrtRunOptions, out: *mut *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(options, "run options")?.tag.as_ptr()) })
}

/// # Safety
/// As for [`at`].
unsafe fn set_terminate(options: *const OrtRunOptions, to: bool) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the caller's promise. A run in another thread reads the options meanwhile, so they are not borrowed for writing.
        unsafe { at(options, "run options")? }.terminate.store(to, Ordering::Relaxed);
        Ok(())
    })
}

pub unsafe extern "C" fn terminate(options: *mut OrtRunOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { set_terminate(options, true) }
}

pub unsafe extern "C" fn unset_terminate(options: *mut OrtRunOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { set_terminate(options, false) }
}

pub unsafe extern "C" fn add_config(
    options: *mut OrtRunOptions,
    key: *const c_char,
    value: *const c_char,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe {
        change(options, |options| {
            let (key, value) = (text(key, "config_key")?, text(value, "config_value")?);
            check_entry(key, value)?;
            options.entries.insert(c_string(key), c_string(value));
            Ok(())
        })
    }
}

pub unsafe extern "C" fn get_config(options: *const OrtRunOptions, key: *const c_char) -> *const c_char {
    // SAFETY: the interface's contract.
    let found = unsafe {
        match (at(options, "run options"), text(key, "config_key")) {
            (Ok(options), Ok(key)) => options.entries.get(c_string(key).as_c_str()),
            _ => None,
        }
    };
    found.map_or(std::ptr::null(), |value| value.as_ptr())
}
