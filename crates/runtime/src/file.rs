//! Writes files whole or not at all.
//!
//! A file is written beside its place under a name that nobody else has, and then renamed: a failure leaves what was there
//! before, a reader never sees half of a file, and a process that has the old one mapped keeps it. Writers of one path, in
//! threads, processes or containers, do not meet; the last one's file stays.

use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// How many names are tried. Each is taken already with a chance of one in millions, so the second is one too many.
const TRIES: u32 = 16;

/// Writes a file. `mode` are the permissions of a new one, before the process's mask.
pub fn write_whole<E: From<io::Error>>(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    check_place(path)?;
    let (temporary, file) = create_beside(path, mode)?;
    let mut out = BufWriter::with_capacity(1 << 16, file);
    let flushed = |mut out: BufWriter<File>| out.flush().map_err(E::from);
    let written = write(&mut out).and_then(|()| flushed(out)).and_then(|()| Ok(fs::rename(&temporary, path)?));
    if written.is_err() {
        // The first error is the one to report; a leftover file is not worth a second.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Fails where no file can be written: the path names none, its folder does not exist, or something else is there that a
/// file would destroy (a folder, a device, a pipe, a socket).
pub fn check_place(path: &Path) -> io::Result<()> {
    let invalid = |why: String| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    if path.file_name().is_none() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        return invalid("this names no file".into());
    }
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(found) => invalid(format!("{} is there, which a file would replace", kind_text(found.file_type()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::metadata(folder(path)) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => invalid(format!("{} is no folder", folder(path).display())),
            Err(error) => Err(io::Error::new(error.kind(), format!("the folder {}: {error}", folder(path).display()))),
        },
        Err(error) => Err(error),
    }
}

/// Whether two paths lead to the same file, by whatever links.
pub fn is_same(one: &Path, other: &Path) -> bool {
    match (fs::canonicalize(one), fs::canonicalize(other)) {
        (Ok(one_path), Ok(other_path)) if one_path == other_path => true,
        (Ok(_), Ok(_)) => same_node(one, other),
        _ => false,
    }
}

#[cfg(unix)]
fn same_node(one: &Path, other: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let node = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    node(one).is_some_and(|found| node(other) == Some(found))
}

#[cfg(not(unix))]
fn same_node(_one: &Path, _other: &Path) -> bool {
    false
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn kind_text(kind: FileType) -> &'static str {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        } else if kind.is_socket() {
            return "a socket";
        } else if kind.is_block_device() || kind.is_char_device() {
            return "a device";
        }
    }
    if kind.is_dir() { "a folder" } else { "something that is no file" }
}

/// A new file beside a path.
fn create_beside(path: &Path, mode: u32) -> io::Result<(PathBuf, File)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let mut taken = io::Error::from(io::ErrorKind::AlreadyExists);
    for _ in 0..TRIES {
        let temporary = path.with_file_name(temporary_name(path));
        match options.open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => taken = error,
            Err(error) => return Err(error),
        }
    }
    Err(taken)
}

/// A name that others are unlikely to choose. Process numbers are not enough: each container has a process 1.
fn temporary_name(path: &Path) -> std::ffi::OsString {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos() as u64);
    let mixed = (time ^ count.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{mixed:016x}.part", std::process::id()));
    name
}

// WASI has no folder for temporary files, and no links.
#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn folder_of_its_own(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("relaxide-file-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn write(path: &Path, text: &str) -> io::Result<()> {
        write_whole(path, 0o644, |out| out.write_all(text.as_bytes()))
    }

    #[test]
    fn a_failure_leaves_what_was_there_and_nothing_else() {
        let folder = folder_of_its_own("failure");
        let path = folder.join("one");
        write(&path, "before").unwrap();
        let failed = write_whole(&path, 0o644, |out| {
            out.write_all(b"half")?;
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(fs::read(&path).unwrap(), b"before");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        write(&path, "after").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"after");
    }

    #[test]
    fn places_that_are_no_files_are_refused() {
        let folder = folder_of_its_own("places");
        for path in [folder.clone(), folder.join("missing").join("one"), PathBuf::from("/dev/null"), folder.join("x/")]
        {
            assert!(write(&path, "text").is_err(), "{}", path.display());
        }
        assert!(fs::metadata("/dev/null").is_ok_and(|found| !found.is_file()));
    }

    #[test]
    fn writers_of_one_path_leave_whole_files() {
        let path = folder_of_its_own("writers").join("one");
        let texts = ["a".repeat(100_000), "b".repeat(30)];
        std::thread::scope(|scope| {
            for text in &texts {
                scope.spawn(|| (0..50).for_each(|_| write(&path, text).unwrap()));
            }
            for _ in 0..200 {
                let found = fs::read_to_string(&path).unwrap_or_else(|_| texts[0].clone());
                assert!(texts.contains(&found), "{} bytes", found.len());
            }
        });
    }

    #[test]
    fn links_lead_to_the_same_file() {
        let folder = folder_of_its_own("links");
        let (one, hard, soft, other) =
            (folder.join("one"), folder.join("hard"), folder.join("soft"), folder.join("other"));
        write(&one, "text").unwrap();
        write(&other, "text").unwrap();
        fs::hard_link(&one, &hard).unwrap();
        std::os::unix::fs::symlink(&one, &soft).unwrap();
        assert!(is_same(&one, &one) && is_same(&one, &hard) && is_same(&soft, &one));
        assert!(!is_same(&one, &other) && !is_same(&one, &folder.join("none")));
    }
}
