//! Texts by key: `OrtKeyValuePairs`.
//!
//! These functions have no status to answer with: what they cannot do, they leave.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

use crate::border::{c_string, text};
use crate::handle::{Handle, HandleKind, at, at_mut, give, release};
use crate::status::quietly;

/// Texts by key, with lists of their addresses.
#[derive(Debug, Default)]
pub struct Pairs {
    entries: BTreeMap<CString, CString>,
    keys: Vec<*const c_char>,
    values: Vec<*const c_char>,
}

/// Texts by key for C.
pub type OrtKeyValuePairs = Handle<Pairs>;

impl HandleKind for Pairs {
    const NAME: &str = "OrtKeyValuePairs";
}

impl Pairs {
    /// Pairs of texts.
    pub fn of<'a>(entries: impl IntoIterator<Item = (&'a str, &'a str)>) -> Pairs {
        let entries = entries.into_iter().map(|(key, value)| (c_string(key), c_string(value)));
        let mut pairs = Pairs { entries: entries.collect(), ..Pairs::default() };
        pairs.list();
        pairs
    }

    fn list(&mut self) {
        self.keys = self.entries.keys().map(|key| key.as_ptr()).collect();
        self.values = self.entries.values().map(|value| value.as_ptr()).collect();
    }
}

pub unsafe extern "C" fn create(out: *mut *mut OrtKeyValuePairs) {
    if !out.is_null() {
        // SAFETY: the interface's contract.
        quietly((), || unsafe { out.write(give(Pairs::default())) });
    }
}

pub unsafe extern "C" fn add(pairs: *mut OrtKeyValuePairs, key: *const c_char, value: *const c_char) {
    // SAFETY: the interface's contract.
    quietly((), || unsafe {
        if let (Ok(pairs), Ok(key), Ok(value)) = (at_mut(pairs, "pairs"), text(key, "key"), text(value, "value"))
            && !key.is_empty()
        {
            pairs.entries.insert(c_string(key), c_string(value));
            pairs.list();
        }
    });
}

pub unsafe extern "C" fn get(pairs: *const OrtKeyValuePairs, key: *const c_char) -> *const c_char {
    // SAFETY: the interface's contract.
    let found = unsafe {
        let key = if key.is_null() { c"" } else { CStr::from_ptr(key) };
        at(pairs, "pairs").ok().and_then(|pairs| pairs.entries.get(key))
    };
    found.map_or(std::ptr::null(), |value| value.as_ptr())
}

pub unsafe extern "C" fn get_all(
    pairs: *const OrtKeyValuePairs,
    keys: *mut *const *const c_char,
    values: *mut *const *const c_char,
    count: *mut usize,
) {
    if keys.is_null() || values.is_null() || count.is_null() {
        return;
    }
    // SAFETY: the interface's contract.
    unsafe {
        let lists = at(pairs, "pairs").map_or((&[][..], &[][..]), |pairs| (&pairs.keys[..], &pairs.values[..]));
        keys.write(lists.0.as_ptr());
        values.write(lists.1.as_ptr());
        count.write(lists.0.len());
    }
}

pub unsafe extern "C" fn remove(pairs: *mut OrtKeyValuePairs, key: *const c_char) {
    // SAFETY: the interface's contract.
    quietly((), || unsafe {
        if let (Ok(pairs), Ok(key)) = (at_mut(pairs, "pairs"), text(key, "key")) {
            pairs.entries.remove(c_string(key).as_c_str());
            pairs.list();
        }
    });
}

pub unsafe extern "C" fn release_pairs(pairs: *mut OrtKeyValuePairs) {
    // SAFETY: the interface's contract.
    unsafe { release(pairs) }
}
