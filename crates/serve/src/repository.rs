//! The models that are served, by name, and their loading anew.
//!
//! A load makes a [`Loaded`], which requests hold on to from the moment that they are checked against its signature until they are
//! answered. A new load takes the place of the old one for requests that come after; the old one goes when its last request does.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use crate::metrics::Metrics;
use crate::{Error, Fault, Machine, Opened, Signature};

/// Where the machines of models are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Where {
    /// In this process.
    Here,
    /// In workers, which open the files by themselves.
    Workers,
}

/// A model as one load found it.
pub(crate) struct Loaded {
    /// Its number among all loads.
    pub id: u64,
    /// The name of the model.
    pub name: String,
    /// What it takes and returns.
    pub signature: Signature,
    /// How many rows at most are joined to one call; 1 where calls are not joined.
    pub batch_rows: usize,
    /// What is counted of the model.
    pub metrics: Arc<Metrics>,
    /// What runs it.
    pub place: Place,
}

/// What runs a load.
pub(crate) enum Place {
    /// A machine in this process.
    Here(Machine),
    /// Workers, from these files.
    Files(Files),
}

/// The files of a load, held open: a file that replaces one of them is another.
pub(crate) struct Files {
    library: File,
    stamp: Stamp,
    weights: Option<File>,
}

impl Files {
    fn open(path: &Path, weights: Option<&str>) -> io::Result<Files> {
        let library = File::open(path)?;
        let stamp = Stamp::of(&library.metadata()?);
        // A model names no file outside of its folder.
        let weights = weights.map(|name| File::open(path.with_file_name(name))).transpose()?;
        Ok(Files { library, stamp, weights })
    }

    /// The paths of library and weights by which another process of this user opens the same files.
    pub(crate) fn paths(&self) -> Result<(PathBuf, Option<PathBuf>), Error> {
        let now = self.library.metadata().map(|found| Stamp::of(&found));
        if now.ok() != Some(self.stamp) {
            let message =
                "the model's file was overwritten while requests for its old content waited: replace it by renaming";
            return Err(Error::new(Fault::Unavailable, message));
        }
        let path = |file: &File| PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()));
        Ok((path(&self.library), self.weights.as_ref().map(path)))
    }
}

/// By what a file is told from what was there before: its number, its length and the time of its last change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp(u64, u64, u64, i64, i64);

impl Stamp {
    fn of(found: &std::fs::Metadata) -> Stamp {
        Stamp(found.dev(), found.ino(), found.len(), found.mtime(), found.mtime_nsec())
    }

    fn at(path: &Path) -> io::Result<Stamp> {
        std::fs::metadata(path).map(|found| Stamp::of(&found))
    }
}

struct Entry {
    path: PathBuf,
    metrics: Arc<Metrics>,
    current: RwLock<Arc<Loaded>>,
    /// The file of the last load, and of the last look.
    stamps: Mutex<(Stamp, Stamp)>,
}

/// All models.
pub(crate) struct Repository {
    entries: BTreeMap<String, Entry>,
    place: Where,
    max_batch: usize,
}

impl Repository {
    /// Loads models from files, each under its name.
    pub(crate) fn open(models: &[(String, PathBuf)], place: Where, max_batch: usize) -> Result<Repository, Error> {
        let mut repository = Repository { entries: BTreeMap::new(), place, max_batch };
        for (name, path) in models {
            let metrics = Arc::new(Metrics::default());
            let stamp = Stamp::at(path).map_err(|error| unreadable(path, &error))?;
            let loaded = repository.load(name, path, &metrics)?;
            let entry = Entry {
                path: path.clone(),
                metrics,
                current: RwLock::new(Arc::new(loaded)),
                stamps: Mutex::new((stamp, stamp)),
            };
            if repository.entries.insert(name.clone(), entry).is_some() {
                let message =
                    format!("two models have the name {name:?}: give one of them another, as NAME={}", path.display());
                return Err(Error::invalid(message));
            }
        }
        Ok(repository)
    }

    fn load(&self, name: &str, path: &Path, metrics: &Arc<Metrics>) -> Result<Loaded, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let about =
            |error: Error| Error::new(error.fault, format!("model {name:?} ({}): {}", path.display(), error.message));
        let opened = Opened::read(path).map_err(about)?;
        let place = match self.place {
            Where::Here => Place::Here(opened.start(None).map_err(about)?),
            Where::Workers => {
                let files = Files::open(path, opened.weights.as_deref());
                Place::Files(files.map_err(|error| about(unreadable(path, &error)))?)
            }
        };
        let signature = opened.signature;
        let most = signature.batch_dim().map(|dim| signature.most(dim).and_then(|most| usize::try_from(most).ok()));
        let batch_rows = most.map_or(1, |most| most.map_or(self.max_batch, |most| most.min(self.max_batch)));
        metrics.loads.fetch_add(1, Ordering::Relaxed);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { id, name: name.to_string(), signature, batch_rows, metrics: Arc::clone(metrics), place })
    }

    fn entry(&self, name: &str) -> Result<&Entry, Error> {
        self.entries.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.entries.keys().map(String::as_str).collect();
            Error::new(Fault::NotFound, format!("there is no model {name:?}; served are: {}", known.join(", ")))
        })
    }

    /// A model as requests that come now get it.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Loaded>, Error> {
        let entry = self.entry(name)?;
        Ok(Arc::clone(&entry.current.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// All models as requests that come now get them.
    pub(crate) fn all(&self) -> Vec<Arc<Loaded>> {
        let current = |entry: &Entry| Arc::clone(&entry.current.read().unwrap_or_else(PoisonError::into_inner));
        self.entries.values().map(current).collect()
    }

    /// What is counted, by model.
    pub(crate) fn metrics(&self) -> Vec<(String, &Metrics)> {
        self.entries.iter().map(|(name, entry)| (name.clone(), &*entry.metrics)).collect()
    }

    /// Loads a model anew, beside the old one, which stays where that fails.
    pub(crate) fn reload(&self, name: &str) -> Result<(), Error> {
        let entry = self.entry(name)?;
        let stamp = Stamp::at(&entry.path).map_err(|error| unreadable(&entry.path, &error))?;
        let loaded = self.load(name, &entry.path, &entry.metrics);
        // What cannot be loaded is not tried again until it changes.
        *entry.stamps.lock().unwrap_or_else(PoisonError::into_inner) = (stamp, stamp);
        *entry.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded?);
        Ok(())
    }

    /// The models whose files are other than at their last load, and as they were at the last look: whoever writes them is done.
    pub(crate) fn changed(&self) -> Vec<String> {
        let is_changed = |entry: &Entry| {
            let Ok(now) = Stamp::at(&entry.path) else { return false };
            let mut stamps = entry.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            let (loaded, seen) = *stamps;
            stamps.1 = now;
            now != loaded && now == seen
        };
        self.entries.iter().filter(|(_, entry)| is_changed(entry)).map(|(name, _)| name.clone()).collect()
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::invalid(format!("{} cannot be read: {error}", path.display()))
}
