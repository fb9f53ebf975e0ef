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
use crate::padding::{Buckets, Settings};
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
    /// How requests are padded, where they are.
    pub buckets: Option<Buckets>,
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

struct ServedModel {
    path: PathBuf,
    metrics: Arc<Metrics>,
    /// Nothing where it has been unloaded.
    current: RwLock<Option<Arc<Loaded>>>,
    /// The file of the last load, and of the last look.
    stamps: Mutex<(Stamp, Stamp)>,
}

impl ServedModel {
    fn current(&self) -> Option<Arc<Loaded>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, loaded: Option<Arc<Loaded>>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = loaded;
    }
}

/// How models are loaded, and which.
pub(crate) struct Options {
    pub place: Where,
    /// Rows of a call at most.
    pub max_batch: usize,
    /// What is padded.
    pub padding: Settings,
    /// Where clients may have models loaded from; with it they may have them unloaded.
    pub folder: Option<PathBuf>,
}

/// A model as an index has it.
pub(crate) struct Listed {
    pub name: String,
    /// Whether it is served.
    pub is_ready: bool,
    /// Why it is not.
    pub reason: &'static str,
}

impl Listed {
    /// The state in the protocol's words.
    pub(crate) fn state(&self) -> &'static str {
        if self.is_ready { "READY" } else { "UNAVAILABLE" }
    }
}

/// All models.
pub(crate) struct Repository {
    entries: RwLock<BTreeMap<String, Arc<ServedModel>>>,
    options: Options,
}

/// Whether models may be called so: in addresses and in metrics, names stand as they are.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

impl Repository {
    /// Loads models from files, each under its name.
    pub(crate) fn open(models: &[(String, PathBuf)], options: Options) -> Result<Repository, Error> {
        let repository = Repository { entries: RwLock::default(), options };
        if let Some(folder) = &repository.options.folder {
            std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?;
        }
        for (name, path) in models {
            if !repository.add(name, path)? {
                let message =
                    format!("two models have the name {name:?}: give one of them another, as NAME={}", path.display());
                return Err(Error::invalid(message));
            }
        }
        // A model of the folder may be what a setting is about.
        if repository.options.folder.is_none() {
            let loaded = repository.all();
            let models = loaded.iter().map(|model| (model.name.as_str(), &model.signature));
            if let Some(idle) = repository.options.padding.idle(models) {
                return Err(Error::invalid(format!("{idle}: no model has such an input")));
            }
        }
        Ok(repository)
    }

    /// Loads a model that has no entry; whether it had none.
    fn add(&self, name: &str, path: &Path) -> Result<bool, Error> {
        let metrics = Arc::new(Metrics::default());
        let stamp = Stamp::at(path).map_err(|error| unreadable(path, &error))?;
        let loaded = self.load(name, path, &metrics)?;
        let (current, stamps) = (RwLock::new(Some(Arc::new(loaded))), Mutex::new((stamp, stamp)));
        let entry = ServedModel { path: path.to_owned(), metrics, current, stamps };
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = !entries.contains_key(name);
        entries.entry(name.to_owned()).or_insert_with(|| Arc::new(entry));
        Ok(is_new)
    }

    fn load(&self, name: &str, path: &Path, metrics: &Arc<Metrics>) -> Result<Loaded, Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let about =
            |error: Error| Error::new(error.fault, format!("model {name:?} ({}): {}", path.display(), error.message));
        let opened = Opened::read(path).map_err(about)?;
        let place = match self.options.place {
            Where::Here => Place::Here(opened.start(None).map_err(about)?),
            Where::Workers => {
                let files = Files::open(path, opened.weights.as_deref());
                Place::Files(files.map_err(|error| about(unreadable(path, &error)))?)
            }
        };
        let signature = opened.signature;
        let most = signature.batch_dim().map(|dim| signature.most(dim).and_then(|most| usize::try_from(most).ok()));
        let max_batch = self.options.max_batch;
        let batch_rows = most.map_or(1, |most| most.map_or(max_batch, |most| most.min(max_batch)));
        let buckets = self.options.padding.plan(name, &signature).map_err(about)?;
        metrics.loads.fetch_add(1, Ordering::Relaxed);
        let id = COUNT.fetch_add(1, Ordering::Relaxed);
        Ok(Loaded { id, name: name.to_string(), signature, batch_rows, buckets, metrics: Arc::clone(metrics), place })
    }

    fn entries(&self) -> Vec<(String, Arc<ServedModel>)> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.iter().map(|(name, entry)| (name.clone(), Arc::clone(entry))).collect()
    }

    fn find(&self, name: &str) -> Option<Arc<ServedModel>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn unknown(&self, name: &str) -> Error {
        let known: Vec<String> = self.all().iter().map(|model| model.name.clone()).collect();
        Error::new(Fault::NotFound, format!("there is no model {name:?}; served are: {}", known.join(", ")))
    }

    /// A model as requests that come now get it.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Loaded>, Error> {
        self.find(name).and_then(|entry| entry.current()).ok_or_else(|| self.unknown(name))
    }

    /// All models as requests that come now get them.
    pub(crate) fn all(&self) -> Vec<Arc<Loaded>> {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        entries.values().filter_map(|entry| entry.current()).collect()
    }

    /// What is counted, by model.
    pub(crate) fn metrics(&self) -> Vec<(String, Arc<Metrics>)> {
        self.entries().into_iter().map(|(name, entry)| (name, Arc::clone(&entry.metrics))).collect()
    }

    /// All models that are served or may be; with `is_ready` only those that are.
    pub(crate) fn index(&self, is_ready: bool) -> Result<Vec<Listed>, Error> {
        let mut found = BTreeMap::new();
        if let Some(folder) = self.options.folder.as_ref().filter(|_| !is_ready) {
            for file in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))?.flatten() {
                let path = file.path();
                let name = path.file_stem().and_then(|stem| stem.to_str()).filter(|name| is_name(name));
                if let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "so")) {
                    found.insert(name.to_owned(), (false, "not loaded"));
                }
            }
        }
        for (name, entry) in self.entries() {
            match entry.current() {
                Some(_) => found.insert(name, (true, "")),
                None if is_ready => None,
                None => found.insert(name, (false, "unloaded")),
            };
        }
        Ok(found.into_iter().map(|(name, (is_ready, reason))| Listed { name, is_ready, reason }).collect())
    }

    /// Loads a model anew, beside the old one, which stays where that fails; or for the first time, from the folder.
    pub(crate) fn reload(&self, name: &str) -> Result<(), Error> {
        let Some(entry) = self.find(name) else {
            let path = self.options.folder.as_ref().filter(|_| is_name(name));
            let path = path.map(|folder| folder.join(format!("{name}.so"))).filter(|path| path.is_file());
            return self.add(name, &path.ok_or_else(|| self.unknown(name))?).map(|_| ());
        };
        let stamp = Stamp::at(&entry.path).map_err(|error| unreadable(&entry.path, &error))?;
        let loaded = self.load(name, &entry.path, &entry.metrics);
        // What cannot be loaded is not tried again until it changes.
        *entry.stamps.lock().unwrap_or_else(PoisonError::into_inner) = (stamp, stamp);
        entry.set(Some(Arc::new(loaded?)));
        Ok(())
    }

    /// Serves a model no more. Requests that it has are answered.
    pub(crate) fn unload(&self, name: &str) -> Result<(), Error> {
        if self.options.folder.is_none() {
            let message = "models are unloaded only where the server was started with --repository FOLDER";
            return Err(Error::new(Fault::Unsupported, message));
        }
        let entry = self.find(name).filter(|entry| entry.current().is_some()).ok_or_else(|| self.unknown(name))?;
        entry.set(None);
        Ok(())
    }

    /// The models whose files are other than at their last load, and as they were at the last look: whoever writes them is done.
    pub(crate) fn changed(&self) -> Vec<String> {
        let is_changed = |entry: &ServedModel| {
            let Ok(now) = Stamp::at(&entry.path) else { return false };
            let mut stamps = entry.stamps.lock().unwrap_or_else(PoisonError::into_inner);
            let (loaded, seen) = *stamps;
            stamps.1 = now;
            now != loaded && now == seen && entry.current().is_some()
        };
        self.entries().into_iter().filter(|(_, entry)| is_changed(entry)).map(|(name, _)| name).collect()
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Error {
    Error::invalid(format!("{} cannot be read: {error}", path.display()))
}
