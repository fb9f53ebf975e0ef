//! Weights in a file of their own, in the form of safetensors; and those of GGUF files ([`GgufFile`]).
//!
//! ```text
//! u64 length of the header │ {"name": {"dtype": "F32", "shape": [3, 4], "data_offsets": [0, 48]}, …} │ data
//! ```
//!
//! [`WeightsFile::open`] maps the file and checks its header; where there are no files, [`WeightsFile::in_memory`] takes what one would
//! hold. [`WeightsFile::tensor`] gives tensors out of it. They are the
//! mapped memory itself wherever their data begins at a multiple of [`ALIGNMENT`], so that nothing is read before it is used,
//! and processes that run the same model share its pages. Others are copied. The [writer](write) puts tensors into an order in
//! which few are.
//!
//! The file is untrusted: its [header](header) is read within bounds, and a file that is shorter or longer than its tensors is
//! refused. Pages are mapped copy-on-write: who writes to a tensor of weights changes neither the file nor what others see.
//!
//! What is not here: several files for one model, and elements of less than a byte.

mod gguf;
mod header;
mod write;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::{MmapMut, MmapOptions};
use relaxide_ffi::{DataType, Device, Error, ErrorKind, Tensor};

pub use gguf::{GgufEntry, GgufEntryError, GgufError, GgufFile, GgufKind, read_gguf_header};
pub use header::{Entry, Header, HeaderError, format_dtype, read_header};
pub use write::{Written, write_tensors};

/// Kernels expect tensors to begin at a multiple of this.
pub const ALIGNMENT: usize = 64;

/// A file of weights, mapped into memory.
#[derive(Clone, Debug)]
pub struct WeightsFile {
    path: PathBuf,
    content: Arc<Content>,
    header: Header,
}

/// Memory that holds what a file would. It is private to the process and may be written to.
pub trait Memory: Send + Sync {
    /// The bytes in it, which stay where they are.
    fn bytes(&self) -> &[u8];
}

enum Content {
    Mapped(MmapMut),
    Held(Box<dyn Memory>),
}

impl Content {
    fn bytes(&self) -> &[u8] {
        match self {
            Content::Mapped(map) => map,
            Content::Held(memory) => memory.bytes(),
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

/// What a tensor that is given out keeps.
struct Keep {
    _content: Arc<Content>,
}

impl WeightsFile {
    /// Maps a file and reads its header.
    pub fn open(path: &Path) -> Result<WeightsFile, Error> {
        let map = map(path)?.ok_or_else(|| unreadable(path, &HeaderError::Truncated { needed: 8, length: 0 }))?;
        WeightsFile::of(path, Content::Mapped(map))
    }

    /// The same for the content of a file that a host has put into memory; `name` is what errors call it.
    pub fn in_memory(name: &str, memory: Box<dyn Memory>) -> Result<WeightsFile, Error> {
        WeightsFile::of(Path::new(name), Content::Held(memory))
    }

    fn of(path: &Path, content: Content) -> Result<WeightsFile, Error> {
        let header = read_header(content.bytes()).map_err(|error| unreadable(path, &error))?;
        Ok(WeightsFile { path: path.to_owned(), content: Arc::new(content), header })
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes the file has.
    pub fn size(&self) -> u64 {
        self.content.bytes().len() as u64
    }

    /// The tensors in the file.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The checksum of the whole file, as the writer counts it. Reads all of it.
    pub fn checksum(&self) -> u64 {
        write::checksum(self.content.bytes())
    }

    /// A tensor of the file, which must have that type and shape.
    pub fn tensor(&self, name: &str, dtype: DataType, shape: &[i64]) -> Result<Tensor, Error> {
        let wrong = |why: String| {
            Error::new(ErrorKind::ValueError, format!("the weights {}: tensor {name:?} {why}", self.path.display()))
        };
        let entry = self.header.get(name).ok_or_else(|| wrong("is missing".into()))?;
        let expected =
            format_dtype(dtype).ok_or_else(|| wrong(format!("is wanted as {dtype}, which no file holds")))?;
        if entry.dtype != expected || entry.shape != shape {
            let found = format!("is {} of shape {:?}", entry.dtype, entry.shape);
            return Err(wrong(format!("{found}; the program wants {expected} of shape {shape:?}")));
        }
        // The header's ranges lie inside of the file.
        let bytes =
            self.content.bytes().get(entry.range.clone()).ok_or_else(|| wrong("lies outside of the file".into()))?;
        if !bytes.as_ptr().addr().is_multiple_of(ALIGNMENT) {
            return Tensor::from_bytes(bytes, shape, dtype);
        }
        let keep = Keep { _content: Arc::clone(&self.content) };
        // SAFETY: the header has as many bytes for the tensor as its shape and type take; they are private memory of this
        // process that may be written to, and the tensor keeps it.
        unsafe { Tensor::from_parts(bytes.as_ptr().cast_mut().cast(), shape, dtype, Device::cpu(0), 0, keep) }
    }
}

/// All tensors of a file by name, in the order of their names: of a GGUF file (`.gguf`), or of safetensors.
pub fn read_tensors(path: &Path) -> Result<Vec<(String, Tensor)>, Error> {
    let mut tensors = Vec::new();
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("gguf")) {
        let file = GgufFile::open(path)?;
        for (name, _) in file.iter() {
            tensors.push((name.to_owned(), file.tensor(name)?));
        }
    } else {
        let file = WeightsFile::open(path)?;
        for (name, entry) in file.header().iter() {
            tensors.push((name.to_owned(), file.tensor(name, entry.element(), &entry.shape)?));
        }
    }
    tensors.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(tensors)
}

/// A file's content, mapped; none where it is empty.
fn map(path: &Path) -> Result<Option<MmapMut>, Error> {
    let failed = |error: std::io::Error| {
        Error::new(ErrorKind::OSError, format!("cannot open the weights {}: {error}", path.display()))
    };
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is private, so that nobody else's memory changes when it is written to. A process that truncates
    // the file meanwhile can make reads fail with a signal, as for any mapped file.
    unsafe { MmapOptions::new().map_copy(&file) }.map(Some).map_err(failed)
}

fn unreadable(path: &Path, error: &HeaderError) -> Error {
    Error::new(ErrorKind::ValueError, format!("cannot read the weights {}: {error}", path.display()))
}
