//! Weights that lie in files beside the model.
//!
//! A part of such a file is mapped by itself, and where it begins at a multiple of what kernels expect, the constant is the mapped
//! memory: a model whose weights are larger than memory can be imported, and who writes them elsewhere copies from file to file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use memmap2::{MmapMut, MmapOptions};
use prost::bytes::Bytes;
use relaxide_ffi::{DataType, Device, Error, Tensor};

/// Kernels expect tensors to begin at a multiple of this.
const ALIGNMENT: usize = 64;

/// Where files of weights beside a model are looked for.
///
/// What a model names must lie in its folder, also behind links: a model that somebody else wrote may name what it likes, and an
/// archive that it came in may hold links. The caches of model hubs keep the model itself behind a link; there, the folder that
/// the link leads to is the model's as well.
#[derive(Clone, Debug)]
pub struct Beside {
    folder: PathBuf,
    /// The folders that a file may lie in, without links.
    within: Vec<PathBuf>,
}

/// Where the bytes of weights are that a model does not hold itself.
#[derive(Clone, Copy)]
pub(crate) struct Source<'m> {
    /// Files.
    pub beside: Option<&'m Beside>,
    /// Contents of files that are in memory, by the names that the model uses.
    pub files: &'m BTreeMap<String, Bytes>,
}

/// Why a file beside a model is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotBeside {
    #[error("the path must lie below the model's folder")]
    Path,
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    #[error("a link leads out of the model's folder")]
    Link,
    #[error("it is no file")]
    NoFile,
}

impl Beside {
    /// The folder of a model's file.
    pub fn model(path: &Path) -> Beside {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            _ => PathBuf::from("."),
        };
        let file = path.canonicalize().ok();
        let true_folder = file.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let within = folder.canonicalize().ok().into_iter().chain(true_folder).collect();
        Beside { folder, within }
    }

    /// The file that a location means, or why it may not be read.
    pub(crate) fn file(&self, location: &str) -> Result<PathBuf, NotBeside> {
        let is_inside = Path::new(location).components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !is_inside {
            return Err(NotBeside::Path);
        }
        let file = self.folder.join(location);
        let resolved = file.canonicalize()?;
        if !self.within.iter().any(|folder| resolved.starts_with(folder)) {
            return Err(NotBeside::Link);
        }
        // Whoever opens a pipe waits for its writer.
        if !resolved.metadata()?.is_file() {
            return Err(NotBeside::NoFile);
        }
        Ok(resolved)
    }
}

/// A part of a file.
pub(crate) enum FilePart {
    /// Mapped into memory.
    Mapped(MmapMut),
    /// In memory already.
    Bytes(Bytes),
}

/// What a tensor keeps.
struct Keep {
    _map: MmapMut,
}

impl FilePart {
    /// Maps `length` bytes from `start` on. `None` if the file is shorter.
    pub(crate) fn map(path: &Path, start: usize, length: usize) -> io::Result<Option<FilePart>> {
        let file = File::open(path)?;
        let size = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if start.checked_add(length).is_none_or(|end| end > size) {
            return Ok(None);
        }
        if length == 0 {
            return Ok(Some(FilePart::Bytes(Bytes::new())));
        }
        // SAFETY: the map is private to this process, also where it is written to. A process that truncates the file
        // meanwhile can make reads fail with a signal, as for any mapped file.
        let map = unsafe { MmapOptions::new().offset(start as u64).len(length).map_copy(&file) }?;
        Ok(Some(FilePart::Mapped(map)))
    }

    /// `length` bytes of a file in memory from `start` on. `None` if it is shorter.
    pub(crate) fn of_bytes(bytes: &Bytes, start: usize, length: usize) -> Option<FilePart> {
        let end = start.checked_add(length).filter(|end| *end <= bytes.len())?;
        Some(FilePart::Bytes(bytes.slice(start..end)))
    }

    /// How many bytes there are.
    pub(crate) fn len(&self) -> usize {
        match self {
            FilePart::Mapped(map) => map.len(),
            FilePart::Bytes(bytes) => bytes.len(),
        }
    }

    /// The bytes.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self {
            FilePart::Mapped(map) => Bytes::from_owner(map),
            FilePart::Bytes(bytes) => bytes,
        }
    }

    /// A tensor of the bytes, which the caller has counted: over the map where it is aligned, a copy elsewhere.
    pub(crate) fn into_tensor(self, shape: &[i64], dtype: DataType) -> Result<Tensor, Error> {
        let count = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?));
        let fits = |map: &MmapMut| count.and_then(|count| dtype.bytes_of(count)) == Some(map.len());
        let map = match self {
            FilePart::Mapped(map) if map.as_ptr().addr().is_multiple_of(ALIGNMENT) && fits(&map) => map,
            // Sizes that do not fit are refused there.
            FilePart::Mapped(map) => return Tensor::from_bytes(&map, shape, dtype),
            FilePart::Bytes(bytes) => return Tensor::from_bytes(&bytes, shape, dtype),
        };
        let data = map.as_ptr().cast_mut().cast();
        // SAFETY: the map is private memory of as many bytes as the shape and the type take, and the tensor keeps it.
        unsafe { Tensor::from_parts(data, shape, dtype, Device::cpu(0), 0, Keep { _map: map }) }
    }
}
