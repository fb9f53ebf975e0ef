//! [`Scratch`]: where sessions' folders are made, and are removed even if nobody was left to do it.
//!
//! A process that serves has one folder, and each of its sessions has one inside. The process holds a lock on the file `lock` in its folder
//! for as long as it lives; the system lets go of it however the process ends. So a folder whose lock can be taken is that of a process
//! that was killed, and whoever serves next at the same place removes it.
//!
//! The file has another name until it is locked: nobody ever finds a `lock` that its owner has not taken yet.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use relaxide_ffi::{Error, ErrorKind};
use rustix::fs::OFlags;
use tempfile::TempDir;

const PREFIX: &str = "relaxide-rpc-";
const LOCK: &str = "lock";
const UNLOCKED: &str = "lock.new";

/// The folder of a process that serves.
pub struct Scratch {
    /// Goes before the lock does.
    folder: TempDir,
    _lock: File,
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    Error::new(ErrorKind::OSError, format!("cannot {what} {}: {error}", path.display()))
}

impl Scratch {
    /// Makes the folder in another one; nothing: where the system has temporary files. Removes what processes left there that were
    /// killed.
    pub fn make(base: Option<&Path>) -> Result<Scratch, Error> {
        let temporary = std::env::temp_dir();
        let base = base.unwrap_or(&temporary);
        remove_stale(base);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(base);
        let folder = folder.map_err(|error| failed("make a folder for sessions in", base, &error))?;
        let unlocked = folder.path().join(UNLOCKED);
        let lock = File::create_new(&unlocked).map_err(|error| failed("make", &unlocked, &error))?;
        lock.lock().map_err(|error| failed("lock", &unlocked, &error))?;
        let locked = folder.path().join(LOCK);
        std::fs::rename(&unlocked, &locked).map_err(|error| failed("make", &locked, &error))?;
        Ok(Scratch { folder, _lock: lock })
    }

    /// A folder for a session, which is removed with what is returned.
    pub fn session(&self) -> Result<TempDir, Error> {
        let made = tempfile::Builder::new().prefix("session-").tempdir_in(self.folder.path());
        made.map_err(|error| failed("make a session's folder in", self.folder.path(), &error))
    }
}

/// Removes the folders of processes that are gone. What cannot be looked at or removed is left: it may be somebody else's.
fn remove_stale(base: &Path) {
    let Ok(entries) = std::fs::read_dir(base) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == rustix::process::geteuid().as_raw());
        if is_ours && let Some(lock) = take_lock(&entry.path().join(LOCK)) {
            let _ = std::fs::remove_dir_all(entry.path());
            drop(lock);
        }
    }
}

/// The lock of a process that is gone; nothing if it lives, or if there is none.
fn take_lock(path: &Path) -> Option<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let lock = OpenOptions::new().read(true).custom_flags(i32::try_from(flags).ok()?).open(path).ok()?;
    lock.try_lock().ok().map(|()| lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_dead_are_removed_and_those_of_the_living_stay() {
        let base = tempfile::tempdir().unwrap();
        let living = Scratch::make(Some(base.path())).unwrap();
        let session = living.session().unwrap();
        // What a killed process leaves: a folder with files, whose lock nobody holds.
        let dead = base.path().join("relaxide-rpc-dead");
        std::fs::create_dir_all(dead.join("session-x")).unwrap();
        std::fs::write(dead.join("session-x/model.so"), "x").unwrap();
        std::fs::write(dead.join(LOCK), "").unwrap();
        // What is no folder of a server: no lock, another name, a link.
        let (unlocked, foreign) = (base.path().join("relaxide-rpc-young"), base.path().join("other"));
        std::fs::create_dir(&unlocked).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        std::fs::write(foreign.join(LOCK), "").unwrap();
        std::os::unix::fs::symlink(&foreign, base.path().join("relaxide-rpc-link")).unwrap();

        let next = Scratch::make(Some(base.path())).unwrap();
        assert!(!dead.exists());
        assert!(session.path().exists() && unlocked.exists() && foreign.join(LOCK).exists());
        drop((living, session, next));
        let left: Vec<_> = std::fs::read_dir(base.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }

    #[test]
    fn a_place_that_is_not_there_is_named() {
        let missing = Path::new("/nonexistent/place");
        let error = Scratch::make(Some(missing)).err().unwrap();
        assert!(error.message().contains("/nonexistent/place"), "{error}");
    }
}
