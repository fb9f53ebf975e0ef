//! Objects of kernels that outlive the process, so that what was compiled once is not compiled again.
//!
//! An object's key is a checksum of everything that it follows from: LLVM's text of the kernels, the processor and its
//! features, the passes, and the versions of the compiler and of LLVM. So nothing in the cache is ever out of date, and there
//! is nothing to invalidate; a folder that has become large can be deleted at any time, also while it is used.
//!
//! Entries are files, written beside their place and renamed: whoever reads sees a whole one or none. Each begins with the
//! checksum of the rest; one that does not fit, after a crash of the machine say, counts as missing and is replaced.
//!
//! The cache is off unless asked for ([`Cache::of_environment`]). Its files become code: whoever may write to the folder may do
//! what the programs may that are compiled with it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use inkwell::support::get_llvm_version;
use sha2::{Digest, Sha256};

use crate::{
    export::{ExportError, write_file},
    target::NativeTarget,
};

pub use relaxide_runtime::cache::VARIABLE as CACHE_VARIABLE;

/// At the beginning of each entry.
const MAGIC: &[u8; 8] = b"RLXOBJ01";

/// Length of a checksum.
const CHECKSUM: usize = 32;

/// A folder of compiled objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// What a compilation took from the cache, and gave to it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheUse {
    /// How many objects were there.
    pub found: usize,
    /// How many were compiled and kept.
    pub kept: usize,
    /// Why an object could not be kept, if one could not.
    pub problem: Option<String>,
}

/// What an object is found under.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(String);

impl Key {
    /// The key of the object that LLVM makes of a text.
    pub fn of(text: &str, target: &NativeTarget, passes: &str) -> Self {
        let (major, minor, patch) = get_llvm_version();
        let mut checksum = Sha256::new();
        let versions = format!("{} LLVM {major}.{minor}.{patch}", env!("CARGO_PKG_VERSION"));
        let level = target.opt_level.to_string();
        for part in [versions.as_str(), &target.triple, &target.cpu, &target.features, &level, passes, text] {
            checksum.update((part.len() as u64).to_le_bytes());
            checksum.update(part);
        }
        Self(checksum.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

impl Cache {
    /// A cache in a folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The cache that the variable `RELAXIDE_CACHE` asks for: in the folder that it names, or for `1` in `relaxide` under
    /// `XDG_CACHE_HOME` or `~/.cache`. None if it is not set, empty or `0`.
    pub fn of_environment() -> Option<Self> {
        relaxide_runtime::cache::folder().map(Self::at)
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(format!("{}.o", key.0))
    }

    /// The object under a key, if it is there and whole.
    pub(crate) fn find(&self, key: &Key) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(key)).ok()?;
        let (checksum, object) = bytes.strip_prefix(MAGIC)?.split_at_checked(CHECKSUM)?;
        (Sha256::digest(object).as_slice() == checksum).then(|| object.to_vec())
    }

    /// Keeps an object under its key.
    pub(crate) fn keep(&self, key: &Key, object: &[u8]) -> Result<(), ExportError> {
        fs::create_dir_all(&self.folder)?;
        write_file(&self.path(key), 0o644, |out| {
            out.write_all(MAGIC)?;
            out.write_all(&Sha256::digest(object))?;
            Ok(out.write_all(object)?)
        })
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::Target;

    use super::*;

    fn target(text: &str) -> NativeTarget {
        NativeTarget::resolve(&text.parse::<Target>().unwrap()).unwrap()
    }

    #[test]
    fn keys_follow_from_all_that_code_follows_from() {
        let x86 = target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell");
        let key = Key::of("text", &x86, "passes").0;
        assert_eq!(key, Key::of("text", &x86, "passes").0);
        let others = [
            Key::of("text ", &x86, "passes").0,
            Key::of("text", &x86, "other").0,
            Key::of("text", &target("llvm -mtriple=x86_64-linux-gnu -mcpu=znver3"), "passes").0,
            Key::of("text", &target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -mattr=-fma"), "passes").0,
            Key::of("text", &target("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell -opt-level=1"), "passes").0,
        ];
        assert!(others.iter().all(|other| *other != key));
    }

    #[test]
    fn damaged_entries_count_as_missing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("deep/er"));
        let key = Key::of("text", &target("llvm"), "");
        assert_eq!(cache.find(&key), None);
        cache.keep(&key, b"object").unwrap();
        assert_eq!(cache.find(&key).as_deref(), Some(&b"object"[..]));
        let whole = fs::read(cache.path(&key)).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        for damaged in
            [Vec::new(), whole[..20].to_vec(), whole[..whole.len() - 1].to_vec(), flipped(0), flipped(9), flipped(41)]
        {
            fs::write(cache.path(&key), damaged).unwrap();
            assert_eq!(cache.find(&key), None);
        }
        cache.keep(&key, b"object").unwrap();
        assert!(cache.find(&key).is_some());
        // Nothing is left beside the entry.
        assert_eq!(fs::read_dir(cache.folder()).unwrap().count(), 1);
    }
}
