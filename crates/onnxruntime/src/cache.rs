//! Compiled models that outlive the process, so that a session that was made once starts in milliseconds.
//!
//! An entry is a library, under a checksum of all that it follows from: the model's bytes, the files beside it, the options, the
//! processor and this library. A model in a file is known again by the file's place, size and times; only where these are new is it
//! read.
//!
//! Folder, limits and variables are those of the Python package `relaxide.onnxruntime`. What is in the folder is loaded as code, so it
//! belongs to its user alone: a folder that others own or may write to is not used, which a warning says.

use std::ffi::c_void;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use prost::bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::env::Log;
use crate::weights::GivenBesideModel;

/// A file that was written within so long may be written again without its times telling.
const SETTLED: Duration = Duration::from_secs(2);
/// How many bytes are kept where `RELAXIDE_CACHE_LIMIT` does not say.
const LIMIT: u64 = 4 << 30;

/// Where a model comes from, and what is given beside it.
#[derive(Clone, Debug)]
pub struct ModelSource {
    /// Where.
    pub place: Place,
    /// What is given beside it.
    pub given: GivenBesideModel,
}

/// Where a model comes from.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file.
    File(PathBuf),
    /// Bytes, and the folder with the files that belong to them, if the caller names one.
    Memory(Bytes, Option<PathBuf>),
}

impl ModelSource {
    /// The folder with the files that belong to it.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path.parent().unwrap_or(Path::new(""))),
            Place::Memory(_, folder) => folder.as_deref(),
        }
    }
}

/// A place in the cache.
pub struct CachedModel {
    folder: PathBuf,
    library: PathBuf,
}

/// The place of a model under options; none without a cache.
pub fn entry(source: &ModelSource, options: &str, log: &Log) -> Option<CachedModel> {
    let folder = folder(log)?;
    let content = match &source.place {
        Place::Memory(bytes, _) => hex(&Sha256::digest(bytes)),
        // The import says what is wrong with a file that cannot be read.
        Place::File(path) => digest_of_file(&folder, path).ok()?,
    };
    let given = source.given.described().ok()?;
    let key = [&content, options, package(), &processor(), &given].join("\0");
    let library = folder.join(format!("{}.so", digest(&key)));
    Some(CachedModel { folder, library })
}

impl CachedModel {
    /// The library, if it is there.
    pub fn find(&self) -> Option<&Path> {
        // Its time says when it was last used.
        let file = File::options().append(true).open(&self.library).ok()?;
        let _ = file.set_modified(SystemTime::now());
        Some(&self.library)
    }

    /// Keeps what `export` writes. An entry that cannot be kept is a warning: the model runs without.
    pub fn keep<E: std::error::Error>(&self, export: impl FnOnce(&Path) -> Result<(), E>, log: &Log) {
        let fresh = self.folder.join(format!("{}.new.so", unique()));
        let failed = |error: &dyn std::error::Error| {
            let _ = fs::remove_file(&fresh);
            log.warn(&format!("the compiled model cannot be kept in {}: {error}", self.folder.display()));
        };
        match export(&fresh) {
            Ok(()) => fs::rename(&fresh, &self.library).unwrap_or_else(|error| failed(&error)),
            Err(error) => failed(&error),
        }
        make_room(&self.folder);
    }

    /// Forgets it: it does not load.
    pub fn forget(&self) {
        let _ = fs::remove_file(&self.library);
    }
}

/// What tells whether a file is the same as before.
pub fn identity(path: &Path) -> io::Result<String> {
    let path = path.canonicalize()?;
    let status = fs::metadata(&path)?;
    let nanoseconds = |seconds: i64, rest: i64| i128::from(seconds) * 1_000_000_000 + i128::from(rest);
    let (written, changed) =
        (nanoseconds(status.mtime(), status.mtime_nsec()), nanoseconds(status.ctime(), status.ctime_nsec()));
    Ok(format!("{} {} {} {} {written} {changed}", path.display(), status.dev(), status.ino(), status.size()))
}

fn folder(log: &Log) -> Option<PathBuf> {
    let base = match std::env::var_os("RELAXIDE_CACHE") {
        Some(named) if named == "0" || named.is_empty() => return None,
        Some(named) if named != "1" => PathBuf::from(named),
        _ => {
            let home = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|home| home.is_absolute());
            home.or_else(|| Some(std::env::home_dir()?.join(".cache")))?.join("relaxide")
        }
    };
    let folder = base.join("onnxruntime");
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&folder).and_then(|()| fs::metadata(&folder));
    let status = match made {
        Ok(status) => status,
        Err(error) => {
            log.warn(&format!("compiled models cannot be kept in {}: {error}", folder.display()));
            return None;
        }
    };
    // SAFETY: it has no preconditions.
    let user = unsafe { libc::geteuid() };
    if status.uid() != user || status.mode() & 0o022 != 0 {
        log.warn(&format!(
            "{} is not used as a cache: others may write to it, and what is in it is run. Take their permission away, or name \
             another folder by RELAXIDE_CACHE",
            folder.display()
        ));
        return None;
    }
    Some(folder)
}

/// The checksum of a file's bytes; that of a file that has not changed since is not computed again.
fn digest_of_file(folder: &Path, path: &Path) -> io::Result<String> {
    let known_as = identity(path)?;
    let memo = folder.join(format!("{}.file", digest(&known_as)));
    if let Ok(known) = fs::read_to_string(&memo) {
        return Ok(known);
    }
    let (mut checksum, mut file, mut part) = (Sha256::new(), File::open(path)?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut part)? {
            0 => break,
            read => checksum.update(&part[..read]),
        }
    }
    let content = hex(&checksum.finalize());
    let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
    if age > SETTLED && identity(path)? == known_as {
        let fresh = memo.with_extension(format!("{}.new", unique()));
        // Where it cannot be kept, it is computed again next time.
        if fs::write(&fresh, &content).and_then(|()| fs::rename(&fresh, &memo)).is_err() {
            let _ = fs::remove_file(&fresh);
        }
    }
    Ok(content)
}

/// This library: what one compiled, another does not load.
fn package() -> &'static str {
    static PACKAGE: OnceLock<String> = OnceLock::new();
    PACKAGE.get_or_init(|| {
        let file = own_path().and_then(|path| identity(&path).ok()).unwrap_or_default();
        format!("libonnxruntime {} {file}", env!("CARGO_PKG_VERSION"))
    })
}

/// The file that this library was loaded from.
fn own_path() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the address is of this library, and the structure is written where the answer is not zero; null names are refused.
    let name = unsafe {
        if libc::dladdr(own_path as *const c_void, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        if name.is_null() {
            return None;
        }
        std::ffi::CStr::from_ptr(name)
    };
    Some(PathBuf::from(name.to_str().ok()?))
}

/// The processor, as far as code depends on it.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let kept = |line: &&str| ["model name", "flags", "Features", "CPU part"].iter().any(|head| line.starts_with(head));
    let mut lines: Vec<&str> = text.lines().filter(kept).collect();
    lines.sort_unstable();
    lines.dedup();
    format!("{} {}", std::env::consts::ARCH, digest(&lines.join("\n")))
}

fn make_room(folder: &Path) {
    let limit = std::env::var("RELAXIDE_CACHE_LIMIT").ok().and_then(|text| text.parse().ok()).unwrap_or(LIMIT);
    let found = fs::read_dir(folder).into_iter().flatten().flatten();
    let libraries = found.filter(|file| file.path().extension().is_some_and(|ending| ending == "so"));
    let mut files: Vec<(SystemTime, u64, PathBuf)> = libraries
        .filter_map(|file| {
            let status = file.metadata().ok()?;
            Some((status.modified().ok()?, status.len(), file.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    for (_, size, path) in files {
        if total <= limit {
            break;
        }
        let _ = fs::remove_file(path);
        total -= size;
    }
}

/// A name that nobody else uses meanwhile.
fn unique() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
