//! Opening a shared library.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use libloading::os::unix::{Library, RTLD_LAZY, RTLD_LOCAL};
use relaxide_ffi::fork::{self, Held};
use relaxide_ffi::{Error, ErrorKind, Module};

use super::bind;
use super::extent;
use super::module::{Code, assemble};
use crate::processor;

use super::symbols::{self, ensure_symbols_global};

/// Opens a library and rebuilds the modules in it.
pub(super) fn load(path: &Path) -> Result<Module, Error> {
    let refused = |why: &dyn std::fmt::Display| {
        Error::new(ErrorKind::RuntimeError, format!("cannot load {}: {why}", path.display()))
    };
    let visible = ensure_symbols_global();
    // Without a slash the dynamic linker would search its own places.
    let file: PathBuf = if path.components().count() == 1 { Path::new(".").join(path) } else { path.to_owned() };
    if let Err(error) = std::fs::metadata(&file)
        && error.kind() == io::ErrorKind::NotFound
    {
        return Err(Error::new("FileNotFoundError", format!("cannot load {}: there is no such file", path.display())));
    }
    // What cannot be opened is the linker's to report.
    if let Ok(Some(needed)) = extent::missing_from(&file) {
        return Err(refused(&format!("the file is truncated: it should have {needed} bytes")));
    }
    if let Some(architecture) = extent::other_architecture(&file) {
        return Err(refused(&processor::other_architecture(&architecture).message()));
    }
    let Opening { name, copy } = opening(&file).map_err(|error| refused(&error))?;
    // SAFETY: loading a library runs its initialisers; that is what the caller of `load_module` asks for.
    let opened = unsafe { Library::open(Some(OsString::from(&name)), RTLD_LAZY | RTLD_LOCAL) };
    let library = opened.map_err(|error| {
        // What the dynamic linker says is the source; the error itself only names the call.
        let said = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        let hint = visible.err().filter(|_| said.contains("undefined symbol"));
        let hint = hint.map(|error| format!("; {}", error.message())).unwrap_or_default();
        refused(&format!("{error}{said}{hint}"))
    })?;
    let handle = library.into_raw();
    // SAFETY: the handle is live, and nothing of the library runs yet.
    unsafe { bind::bind_imports(handle) };
    // SAFETY: the handle came from `into_raw` just above.
    let code = Code::Shared(unsafe { Library::from_raw(handle) }, copy);
    fill_context_slots(&code);
    let module = assemble(code).map_err(|error| error.context(format!("cannot load {}", path.display())))?;
    // A program may change its folder before the module looks for what lies beside it.
    tell_origin(&module, &std::path::absolute(&file).unwrap_or(file));
    Ok(module)
}

/// The name by which the dynamic linker is given a file, and what has to stay open for the name to mean that file.
struct Opening {
    name: PathBuf,
    copy: Option<File>,
}

/// What a file was when it was loaded: device, number, length, and time of its last change.
type Identity = (u64, u64, u64, i64, i64);

/// The files that were loaded, by their path. They may have been unloaded since.
static LOADED: Mutex<BTreeMap<PathBuf, Identity>> = Mutex::new(BTreeMap::new());

/// Holds the lock across a fork.
pub(super) fn hold() -> Option<Held> {
    fork::hold(&LOADED)
}

/// The dynamic linker knows what it has loaded by name and by the file's number, and gives that again. A new file under an
/// old name, or new content in an old file, would be the old library as long as that is in use. Such a file is loaded by
/// a name of its own, that of an open descriptor.
fn opening(path: &Path) -> io::Result<Opening> {
    let whole = std::path::absolute(path)?;
    let file = File::open(path)?;
    let found = file.metadata()?;
    let identity = (found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec());
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same_node = |known: &Identity| (known.0, known.1) == (identity.0, identity.1);
    // What was overwritten in place has its number still, wherever it was found.
    let is_overwritten =
        loaded.iter().any(|(path, known)| is_same_node(known) && *known != identity && is_loaded(path));
    let is_replaced = loaded.get(&whole).is_some_and(|known| !is_same_node(known)) && is_loaded(&whole);
    if is_overwritten {
        let copy = copy_of(file)?;
        return Ok(Opening { name: descriptor_path(&copy), copy: Some(copy) });
    }
    if is_replaced {
        return Ok(Opening { name: descriptor_path(&file), copy: Some(file) });
    }
    loaded.insert(whole.clone(), identity);
    // By its whole path: the same relative one means another file in another folder.
    Ok(Opening { name: whole, copy: None })
}

fn descriptor_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Whether a library of that path is loaded.
fn is_loaded(path: &Path) -> bool {
    // SAFETY: nothing is loaded, so no code runs; the handle is given back at once.
    unsafe { Library::open(Some(OsString::from(path)), RTLD_LAZY | libc::RTLD_NOLOAD) }.is_ok()
}

/// The bytes of a file in memory, as a file that nobody else can change.
fn copy_of(mut file: File) -> io::Result<File> {
    // SAFETY: the name is a C string; the descriptor is new and owned here. The C library's function for this call is younger (glibc
    // 2.27) than systems that the runtime is for.
    let mut copy = unsafe {
        let descriptor = libc::syscall(libc::SYS_memfd_create, c"relaxide-model".as_ptr(), libc::MFD_CLOEXEC);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        File::from_raw_fd(descriptor as i32)
    };
    io::copy(&mut file, &mut copy)?;
    Ok(copy)
}

/// Tells all modules of a library where they are from. Their imports form no cycles and are few.
fn tell_origin(module: &Module, file: &Path) {
    module.body().loaded_from(file);
    module.imports().iter().for_each(|import| tell_origin(import, file));
}

fn fill_context_slots(code: &Code) {
    for (name, symbol) in symbols::context_symbols() {
        if let Some(slot) = code.symbol(&name) {
            // SAFETY: a slot is an exported pointer that only loaders write.
            unsafe { super::module::fill(slot.cast(), symbol) };
        }
    }
}
