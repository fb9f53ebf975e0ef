//! Where compiled code outlives the process: the folder that `RELAXIDE_CACHE` names, and entries in it.
//!
//! An entry is a file with its whole key inside, so that two keys never share one, and a checksum of what it keeps: one that was damaged
//! counts as missing. Files are written beside their place and renamed. The compiler's cache of objects lies in the same folder, in a form of
//! its own.
//!
//! ```text
//! RLXBIN01 | length of the key | key | checksum of the rest | what is kept
//! ```
//!
//! Entries become code: whoever may write to the folder may do what the programs may that use it.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh64::xxh64;

use crate::file::write_whole;

/// The variable that names the folder; `1` stands for the user's own.
pub const VARIABLE: &str = "RELAXIDE_CACHE";

/// At the beginning of each entry.
const MAGIC: &[u8; 8] = b"RLXBIN01";

/// The folder that the variable asks for: the one that it names, or for `1` `relaxide` under `XDG_CACHE_HOME` or `~/.cache`. None if it is
/// not set, empty or `0`.
pub fn folder() -> Option<PathBuf> {
    let path = |variable: &str| env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    asked_for(path(VARIABLE)?, || {
        path("XDG_CACHE_HOME").filter(|folder| folder.is_absolute()).or_else(|| Some(path("HOME")?.join(".cache")))
    })
}

fn asked_for(value: PathBuf, home: impl FnOnce() -> Option<PathBuf>) -> Option<PathBuf> {
    match value.to_str() {
        Some("0") => None,
        Some("1") => Some(home()?.join("relaxide")),
        _ => Some(value),
    }
}

/// Parts as one key that no other parts make.
pub fn key(parts: &[&[u8]]) -> Vec<u8> {
    let mut key = Vec::new();
    for part in parts {
        key.extend((part.len() as u64).to_le_bytes());
        key.extend(*part);
    }
    key
}

fn path(folder: &Path, key: &[u8]) -> PathBuf {
    folder.join(format!("{:016x}.bin", xxh64(key, 0)))
}

/// What is kept under a key, if it is there and whole.
pub fn find(folder: &Path, key: &[u8]) -> Option<Vec<u8>> {
    let bytes = fs::read(path(folder, key)).ok()?;
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    let (length, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(8)?;
    let (found, rest) = rest.split_at_checked(usize::try_from(number(length)?).ok()?)?;
    let (checksum, kept) = rest.split_at_checked(8)?;
    (found == key && number(checksum)? == xxh64(kept, 0)).then(|| kept.to_vec())
}

/// Keeps something under its key.
pub fn keep(folder: &Path, key: &[u8], kept: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    write_whole(&path(folder, key), 0o644, |out| {
        out.write_all(MAGIC)?;
        out.write_all(&(key.len() as u64).to_le_bytes())?;
        out.write_all(key)?;
        out.write_all(&xxh64(kept, 0).to_le_bytes())?;
        out.write_all(kept)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_a_folder_or_the_users_own() {
        let asked = |value: &str| asked_for(value.into(), || Some("/users/a/.cache".into()));
        assert_eq!(asked("0"), None);
        assert_eq!(asked("1"), Some("/users/a/.cache/relaxide".into()));
        assert_eq!(asked("/tmp/kernels"), Some("/tmp/kernels".into()));
        assert_eq!(asked_for("1".into(), || None), None);
    }

    // WASI has no folder for temporary files.
    #[cfg(unix)]
    #[test]
    fn damaged_entries_and_those_of_other_keys_count_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let (place, key) = (folder.path().join("deep/er"), key(&[b"device", b"source"]));
        assert_eq!(find(&place, &key), None);
        keep(&place, &key, b"binary").unwrap();
        assert_eq!(find(&place, &key).as_deref(), Some(&b"binary"[..]));
        let whole = fs::read(path(&place, &key)).unwrap();
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(path(&place, &key), bytes).unwrap();
            assert_eq!(find(&place, &key), None, "byte {at}");
            fs::write(path(&place, &key), &whole[..at]).unwrap();
            assert_eq!(find(&place, &key), None, "{at} bytes");
        }
        assert_ne!(super::key(&[b"ab", b"c"]), super::key(&[b"a", b"bc"]));
    }
}
