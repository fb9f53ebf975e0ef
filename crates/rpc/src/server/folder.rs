//! [`Folder`]: the files of a session, and no others.
//!
//! Every name is taken apart and followed one part at a time from the open folder, without following links, so no name leads out of it:
//! not `..`, not an absolute one, not a link that the session made meanwhile. A file that is written takes its name when it is whole.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use relaxide_ffi::{Error, ErrorKind};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};

/// The longest name, in bytes.
const MAX_NAME: usize = 1024;

/// A folder that files are in.
pub struct Folder {
    path: PathBuf,
    fd: OwnedFd,
    written: AtomicU64,
}

fn refused(name: &str, why: &str) -> Error {
    let shown: String = name.chars().take(80).collect();
    Error::new(ErrorKind::ValueError, format!("{shown:?} is no name of a file of this session: {why}"))
}

impl Folder {
    /// The folder at a path, which must be there.
    pub fn open(path: &Path) -> Result<Folder, Error> {
        let fd = rustix::fs::openat(CWD, path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        let fd = fd.map_err(|error| failed("open the session's folder", &path.to_string_lossy(), error))?;
        Ok(Folder { path: path.to_path_buf(), fd, written: AtomicU64::new(0) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The parts of a name, the last apart.
    fn parts(name: &str) -> Result<(Vec<&str>, &str), Error> {
        if name.len() > MAX_NAME {
            return Err(refused(name, "it is too long"));
        }
        if name.contains('\0') {
            return Err(refused(name, "it has a NUL in it"));
        }
        if name.starts_with('/') {
            return Err(refused(name, "it is absolute; names begin in the session's folder"));
        }
        let mut parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        if parts.contains(&"..") {
            return Err(refused(name, "it leads out of the session's folder"));
        }
        let last = parts.pop().ok_or_else(|| refused(name, "it is empty"))?;
        Ok((parts, last))
    }

    /// The open folder that a name's last part is in, and that part.
    fn parent<'a>(&self, name: &'a str, make: bool) -> Result<(OwnedFd, &'a str), Error> {
        let (parts, last) = Self::parts(name)?;
        let mut folder = self.fd.try_clone()?;
        for part in parts {
            if make {
                match rustix::fs::mkdirat(&folder, part, Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(failed("make the folder of", name, error)),
                }
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
            folder = rustix::fs::openat(&folder, part, flags, Mode::empty())
                .map_err(|error| failed("open the folder of", name, error))?;
        }
        Ok((folder, last))
    }

    /// Writes a file. Until all of it is there, nothing has its name.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let (folder, last) = self.parent(name, true)?;
        let number = self.written.fetch_add(1, Ordering::Relaxed);
        let part = format!(".{number}.{}.part", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file =
            rustix::fs::openat(&folder, &*part, flags, Mode::RWXU).map_err(|error| failed("write", name, error))?;
        let written = File::from(file).write_all(bytes).map_err(|error| failed("write", name, error));
        let placed = written.and_then(|()| {
            rustix::fs::renameat(&folder, &*part, &folder, last).map_err(|error| failed("write", name, error))
        });
        if placed.is_err() {
            // What was written of it is of no use.
            let _ = rustix::fs::unlinkat(&folder, &*part, AtFlags::empty());
        }
        placed
    }

    fn file(&self, name: &str) -> Result<File, Error> {
        let (folder, last) = self.parent(name, false)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = rustix::fs::openat(&folder, last, flags, Mode::empty()).map_err(|error| {
            Error::new(ErrorKind::OSError, format!("Cannot open {name}: {}", std::io::Error::from(error)))
        })?;
        let kind = rustix::fs::fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode));
        match kind {
            Ok(FileType::RegularFile) => Ok(file.into()),
            _ => Err(refused(name, "it is no plain file")),
        }
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        self.file(name)?.read_to_end(&mut bytes).map_err(|error| failed("read", name, error))?;
        Ok(bytes)
    }

    /// The path of a file that is there, for what wants a path.
    pub fn existing(&self, name: &str) -> Result<PathBuf, Error> {
        self.file(name)?;
        self.place(name)
    }

    /// The path that a name would have.
    pub fn place(&self, name: &str) -> Result<PathBuf, Error> {
        let (parts, last) = Self::parts(name)?;
        Ok(parts.iter().fold(self.path.clone(), |path, part| path.join(part)).join(last))
    }

    /// Removes a file; one that is not there is as good as removed.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        if name.is_empty() {
            return Ok(());
        }
        let (folder, last) = match self.parent(name, false) {
            Ok(found) => found,
            Err(error) if error.is(ErrorKind::OSError) => return Ok(()),
            Err(error) => return Err(error),
        };
        match rustix::fs::unlinkat(&folder, last, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(error) => Err(failed("remove", name, error)),
        }
    }

    /// The names in a folder of the folder.
    pub fn list(&self, name: &str) -> Result<Vec<String>, Error> {
        let folder = match name.trim_matches(['/', '.']) {
            "" => self.fd.try_clone()?,
            _ => {
                let (folder, last) = self.parent(name, false)?;
                let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::RDONLY | OFlags::CLOEXEC;
                rustix::fs::openat(&folder, last, flags, Mode::empty()).map_err(|error| failed("list", name, error))?
            }
        };
        let entries = rustix::fs::Dir::read_from(&folder).map_err(|error| failed("list", name, error))?;
        let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()));
        let mut names: Vec<String> = names.filter(|name| !matches!(name.as_str(), "." | "..")).collect();
        names.sort();
        Ok(names)
    }
}

fn failed(what: &str, name: &str, error: impl Into<std::io::Error>) -> Error {
    Error::new(ErrorKind::OSError, format!("cannot {what} {name}: {}", error.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_read_listed_and_removed() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        folder.write("a.bin", b"\0\x01").unwrap();
        folder.write("./deep/er/b", b"xyz").unwrap();
        folder.write("a.bin", b"second").unwrap();
        assert_eq!(folder.read("a.bin").unwrap(), b"second");
        assert_eq!(folder.read("deep//er/b").unwrap(), b"xyz");
        assert_eq!(folder.list("").unwrap(), ["a.bin", "deep"]);
        folder.remove("a.bin").unwrap();
        folder.remove("a.bin").unwrap();
        folder.remove("").unwrap();
        assert!(folder.read("a.bin").unwrap_err().message().contains("Cannot open a.bin"));
    }

    #[test]
    fn no_name_leads_out() {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("outside"), "secret").unwrap();
        let inside = place.path().join("inside");
        std::fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink("../outside", inside.join("link")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        let folder = Folder::open(&inside).unwrap();
        let long = "x/".repeat(2000);
        for name in
            ["../outside", "a/../../outside", "/etc/hostname", "link", "up/outside", "a\0b", "..", long.as_str()]
        {
            assert!(folder.read(name).is_err(), "{name}");
            assert!(folder.existing(name).is_err(), "{name}");
            if !matches!(name, "link") {
                assert!(folder.write(name, b"").is_err(), "{name}");
            }
        }
        // Writing over a link replaces the link.
        folder.write("link", b"mine").unwrap();
        assert_eq!(std::fs::read_to_string(place.path().join("outside")).unwrap(), "secret");
        assert!(folder.remove("up/outside").is_ok());
        assert!(place.path().join("outside").exists());
    }
}
