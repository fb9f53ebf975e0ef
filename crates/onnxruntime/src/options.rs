//! What a session is told: [`SessionOptions`].
//!
//! Threads, fixed dimensions and entries are kept and used. Levels of optimization, modes of execution and options of memory are
//! accepted and change nothing: every model is compiled in one way. What cannot be done is refused.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::border::{check_place, put, text};
use crate::env::{Log, LoggingFunction};
use crate::handle::{Handle, HandleKind, at, at_mut, put_new, release};
use crate::pairs::{OrtKeyValuePairs, Pairs};
use crate::status::{OrtStatus, Result, guard, invalid, not_here};
use crate::weights::GivenBesideModel;

/// The options of a session.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// Threads of kernels; zero leaves it as it is.
    pub intra_op: c_int,
    /// Lengths of named dimensions.
    pub dims: BTreeMap<String, i64>,
    /// Weights and files beside the model, and dimensions that are fixed by what they stand for.
    pub given: GivenBesideModel,
    /// How the file of a profile begins, where there is to be one.
    pub profile: Option<String>,
    /// Entries by key.
    pub entries: BTreeMap<String, String>,
    /// Where the session's warnings go, if not where the environment's go.
    pub log: Option<Arc<Log>>,
    /// Set by whoever wants the session not to be made any more.
    pub cancelled: Arc<AtomicBool>,
    mode: c_int,
    has_memory_pattern: bool,
}

/// The same for C.
pub type OrtSessionOptions = Handle<SessionOptions>;

impl HandleKind for SessionOptions {
    const NAME: &str = "OrtSessionOptions";
}

impl Default for SessionOptions {
    fn default() -> SessionOptions {
        SessionOptions {
            intra_op: 0,
            dims: BTreeMap::new(),
            given: GivenBesideModel::default(),
            profile: None,
            entries: BTreeMap::new(),
            log: None,
            cancelled: Arc::default(),
            mode: 0,
            has_memory_pattern: true,
        }
    }
}

/// Changes options.
///
/// # Safety
/// As for [`at_mut`].
pub unsafe fn change(
    options: *mut OrtSessionOptions,
    body: impl FnOnce(&mut SessionOptions) -> Result<()>,
) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| body(unsafe { at_mut(options, "session options")? }))
}

pub unsafe extern "C" fn create(out: *mut *mut OrtSessionOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, SessionOptions::default()) })
}

pub unsafe extern "C" fn clone_options(
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSessionOptions,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, at(options, "session options")?.clone()) })
}

pub unsafe extern "C" fn release_options(options: *mut OrtSessionOptions) {
    // SAFETY: the interface's contract.
    unsafe { release(options) }
}

/// Options that change nothing: what they say, sessions do or need not do.
pub unsafe extern "C" fn accept(options: *mut OrtSessionOptions, _value: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { change(options, |_| Ok(())) }
}

/// `SetSessionLogId`: nothing is logged under it.
pub unsafe extern "C" fn accept_text(options: *mut OrtSessionOptions, value: *const c_char) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { change(options, |_| text(value, "logid").map(drop)) }
}

pub unsafe extern "C" fn set_optimization_level(options: *mut OrtSessionOptions, level: c_int) -> *mut OrtStatus {
    let check = |_: &mut SessionOptions| match level {
        0..=3 | 99 => Ok(()),
        _ => Err(invalid(format!("{level} is no level of optimization: 0, 1, 2, 3 or 99 is expected"))),
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, check) }
}

pub unsafe extern "C" fn set_execution_mode(options: *mut OrtSessionOptions, mode: c_int) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        if mode != 0 && mode != 1 {
            return Err(invalid(format!(
                "{mode} is no mode of execution: 0 (in order) or 1 (in parallel) is expected"
            )));
        }
        options.mode = mode;
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn execution_mode(options: *const OrtSessionOptions, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, at(options, "session options")?.mode) })
}

/// # Safety
/// As for [`at_mut`].
unsafe fn set_memory_pattern(options: *mut OrtSessionOptions, is_on: bool) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        options.has_memory_pattern = is_on;
        Ok(())
    };
    // SAFETY: the caller's promise.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn enable_memory_pattern(options: *mut OrtSessionOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { set_memory_pattern(options, true) }
}

pub unsafe extern "C" fn disable_memory_pattern(options: *mut OrtSessionOptions) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { set_memory_pattern(options, false) }
}

pub unsafe extern "C" fn memory_pattern(options: *const OrtSessionOptions, out: *mut c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put(out, c_int::from(at(options, "session options")?.has_memory_pattern)) })
}

pub unsafe extern "C" fn set_intra_op_threads(options: *mut OrtSessionOptions, count: c_int) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        if count < 0 {
            return Err(invalid(format!("{count} threads can run nothing; give 1 or more, or 0 for as many as fit")));
        }
        options.intra_op = count;
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

/// The length that a dimension is fixed to.
pub fn length_of(dimension: &str, length: i64) -> Result<i64> {
    if length < 0 {
        return Err(invalid(format!("dimension {dimension:?} cannot be {length}: it must not be negative")));
    }
    Ok(length)
}

pub unsafe extern "C" fn fix_dimension(
    options: *mut OrtSessionOptions,
    name: *const c_char,
    length: i64,
) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        let name = unsafe { text(name, "dim_name")? };
        options.dims.insert(name.into(), length_of(name, length)?);
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

/// The greatest lengths of keys and values.
const MAX_KEY: usize = 1024;
const MAX_VALUE: usize = 4096;

/// Refuses an entry, of a session or of a run, whose texts are too long.
pub fn check_entry(key: &str, value: &str) -> Result<()> {
    if key.is_empty() || key.len() > MAX_KEY {
        return Err(invalid(format!("the key of an entry has 1 to {MAX_KEY} bytes, not {}", key.len())));
    }
    if value.len() > MAX_VALUE {
        let message = format!("the value of the entry {key:?} has {} bytes, and may have {MAX_VALUE}", value.len());
        return Err(invalid(message));
    }
    Ok(())
}

pub unsafe extern "C" fn add_config(
    options: *mut OrtSessionOptions,
    key: *const c_char,
    value: *const c_char,
) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        let (key, value) = unsafe { (text(key, "config_key")?, text(value, "config_value")?) };
        check_entry(key, value)?;
        options.entries.insert(key.into(), value.into());
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn has_config(
    options: *const OrtSessionOptions,
    key: *const c_char,
    out: *mut c_int,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let key = text(key, "config_key")?;
        put(out, c_int::from(at(options, "session options")?.entries.contains_key(key)))
    })
}

pub unsafe extern "C" fn get_config(
    options: *const OrtSessionOptions,
    key: *const c_char,
    out: *mut c_char,
    size: *mut usize,
) -> *mut OrtStatus {
    guard(|| {
        check_place(size)?;
        // SAFETY: the interface's contract.
        let (options, key) = unsafe { (at(options, "session options")?, text(key, "config_key")?) };
        let value = options.entries.get(key).ok_or_else(|| {
            let known: Vec<&str> = options.entries.keys().map(String::as_str).collect();
            invalid(format!("there is no entry {key:?}; there are: {}", known.join(", ")))
        })?;
        // SAFETY: as above; the buffer has as many bytes as the size says.
        unsafe { copy_out(value, out, size) }
    })
}

/// Copies a text to the caller's buffer; without one, or if it is too small, says how long it has to be.
///
/// # Safety
/// `size` can be read and written, and `out` is null or has that many bytes.
unsafe fn copy_out(text: &str, out: *mut c_char, size: *mut usize) -> Result<()> {
    let needed = text.len() + 1;
    // SAFETY: the caller's promise.
    unsafe {
        let given = size.replace(needed);
        if out.is_null() {
            return Ok(());
        }
        if given < needed {
            return Err(invalid(format!("the buffer has {given} bytes, and the text {needed} with its end")));
        }
        out.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

pub unsafe extern "C" fn config_entries(
    options: *const OrtSessionOptions,
    out: *mut *mut OrtKeyValuePairs,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let entries = &at(options, "session options")?.entries;
        put_new(out, Pairs::of(entries.iter().map(|(key, value)| (key.as_str(), value.as_str()))))
    })
}

pub unsafe extern "C" fn set_logging_function(
    options: *mut OrtSessionOptions,
    function: Option<LoggingFunction>,
    param: *mut c_void,
) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        options.log = function.map(|function| Arc::new(Log::to_function(function, param)));
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn set_load_cancelled(options: *mut OrtSessionOptions, is_cancelled: bool) -> *mut OrtStatus {
    guard(|| {
        // SAFETY: the interface's contract. Another thread may be making the session, so nothing is borrowed for writing.
        unsafe { at(options, "session options")? }.cancelled.store(is_cancelled, Ordering::Relaxed);
        Ok(())
    })
}

pub unsafe extern "C" fn enable_profiling(options: *mut OrtSessionOptions, prefix: *const c_char) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        options.profile = Some(unsafe { text(prefix, "profile_file_prefix")? }.into());
        Ok(())
    };
    // SAFETY: as above.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn disable_profiling(options: *mut OrtSessionOptions) -> *mut OrtStatus {
    let set = |options: &mut SessionOptions| {
        options.profile = None;
        Ok(())
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, set) }
}

pub unsafe extern "C" fn set_optimized_path(_options: *mut OrtSessionOptions, _path: *const c_char) -> *mut OrtStatus {
    let message = "SetOptimizedModelFilePath: optimized models are not written; `relaxide compile MODEL -o model.so` \
                   writes a library";
    guard(|| Err(not_here(message)))
}

/// The one provider.
pub const PROVIDER: &str = "CPUExecutionProvider";

/// `SessionOptionsAppendExecutionProvider`: the processor's is always there.
pub unsafe extern "C" fn append_provider(
    options: *mut OrtSessionOptions,
    name: *const c_char,
    _keys: *const *const c_char,
    _values: *const *const c_char,
    _count: usize,
) -> *mut OrtStatus {
    let check = |_: &mut SessionOptions| {
        // SAFETY: the interface's contract.
        match unsafe { text(name, "provider_name")? } {
            "CPU" | PROVIDER => Ok(()),
            other => Err(invalid(format!("there is no provider {other:?}: {PROVIDER_HELP}"))),
        }
    };
    // SAFETY: the interface's contract.
    unsafe { change(options, check) }
}

/// What to do instead of asking for another provider.
pub const PROVIDER_HELP: &str = "sessions run on the processor; leave the provider out";

/// Whatever is said of which provider to prefer, there is one.
pub unsafe extern "C" fn set_selection_policy(options: *mut OrtSessionOptions, _policy: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { change(options, |_| Ok(())) }
}
