//! Weights in a GGUF file.
//!
//! [`GgufFile::open`] maps the file and checks its header; [`GgufFile::tensor`] gives a tensor out of it by name. Numbers keep their type;
//! what is stored in blocks of a few bits becomes float32. The file is untrusted: its [header](header) is read within bounds.
//!
//! What is not here: the model that the file describes, and types of blocks that are rare ([`GgufKind::of`] has those that are known).

mod elements;
mod header;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use memmap2::MmapMut;
use relaxide_ffi::{Error, ErrorKind, Tensor};

pub use elements::GgufKind;
pub use header::{GgufEntry, GgufEntryError, GgufError, read_gguf_header};

/// A GGUF file, mapped into memory.
#[derive(Debug)]
pub struct GgufFile {
    path: PathBuf,
    content: MmapMut,
    entries: HashMap<String, GgufEntry>,
}

impl GgufFile {
    /// Maps a file and reads its header.
    pub fn open(path: &Path) -> Result<GgufFile, Error> {
        let unreadable = |error: GgufError| {
            Error::new(ErrorKind::ValueError, format!("cannot read the weights {}: {error}", path.display()))
        };
        let content = super::map(path)?.ok_or_else(|| unreadable(GgufError::Magic))?;
        let entries = read_gguf_header(&content).map_err(unreadable)?;
        Ok(GgufFile { path: path.to_owned(), content, entries })
    }

    /// The tensors of the file by name, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &GgufEntry)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// A tensor of the file.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        let wrong = |why: &str| {
            Error::new(ErrorKind::ValueError, format!("the weights {}: tensor {name:?} {why}", self.path.display()))
        };
        let entry = self.entries.get(name).ok_or_else(|| wrong("is missing"))?;
        // The header's ranges lie inside of the file.
        let bytes = self.content.get(entry.range.clone()).ok_or_else(|| wrong("lies outside of the file"))?;
        match entry.kind.numbers(bytes) {
            Some(numbers) => Tensor::from_slice(&numbers, &entry.shape),
            None => Tensor::from_bytes(bytes, &entry.shape, entry.kind.dtype()),
        }
    }
}
