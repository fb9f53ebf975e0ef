//! The `.pt2` archive: a zip file with the program as JSON and each weight as the bytes of its elements.
//!
//! ```text
//! NAME/archive_format                             "pt2"
//! NAME/models/model.json                          the program
//! NAME/data/weights/model_weights_config.json     for each weight: its file, element type, dimensions
//! NAME/data/weights/weight_0 …                    elements, one after the other
//! NAME/data/constants/…                           the same for constants of the user's code
//! ```
//!
//! The file is mapped and weights are copied out of it once. Sizes are checked against what is there before anything is
//! allocated, so that a hostile file cannot ask for memory that it does not bring.

use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

use relaxide_ffi::Tensor;
use serde::Deserialize;

use crate::dtype;
use crate::error::ArchiveError;
use crate::program::{ExportedProgram, SCHEMA_VERSION, SymInt, TensorMeta};

/// Weights and constants by their names in the user's module.
pub type Weights = HashMap<String, Tensor>;

/// How large a description (JSON) may be: far more than a graph of a hundred thousand nodes takes.
const MAX_DESCRIPTION: u64 = 1 << 30;

/// An exported program with its weights.
pub struct Archive {
    /// The program.
    pub program: ExportedProgram,
    /// Its weights and constants.
    pub weights: Weights,
}

/// What a folder of weights says of each of them.
#[derive(Debug, Deserialize)]
struct Config {
    config: HashMap<String, WeightEntry>,
}

#[derive(Debug, Deserialize)]
struct WeightEntry {
    path_name: String,
    #[serde(default)]
    use_pickle: bool,
    tensor_meta: Option<TensorMeta>,
}

type Zip<'b> = zip::ZipArchive<Cursor<&'b [u8]>>;

impl Archive {
    /// Reads an archive.
    pub fn open(path: &Path) -> Result<Archive, ArchiveError> {
        let refuse = |source| ArchiveError::Io { path: path.display().to_string(), source };
        let file = std::fs::File::open(path).map_err(refuse)?;
        if !file.metadata().map_err(refuse)?.is_file() {
            return Err(refuse(std::io::Error::other("it is no regular file")));
        }
        // SAFETY: the mapping is private and is read only while this function runs; a file that somebody cuts off meanwhile
        // ends the process with a signal, as it does for every program that maps files.
        let bytes = unsafe { memmap2::Mmap::map(&file) }.map_err(refuse)?;
        Archive::from_bytes(&bytes)
    }

    /// Reads an archive from memory.
    pub fn from_bytes(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let mut zip = Zip::new(Cursor::new(bytes)).map_err(|e| ArchiveError::Zip(e.to_string()))?;
        let folder = folder_of(&zip)?;
        let programs: Vec<String> = zip
            .file_names()
            .flatten()
            .filter_map(|name| {
                Some(name.strip_prefix(&format!("{folder}/models/"))?.strip_suffix(".json")?.to_string())
            })
            .collect();
        let [name] = programs.as_slice() else {
            return Err(ArchiveError::Kind(format!("the archive holds {} programs; one is expected", programs.len())));
        };
        let text = read(&mut zip, &format!("{folder}/models/{name}.json"), MAX_DESCRIPTION)?;
        let program = parse(&text)?;
        let mut weights = Weights::new();
        for kind in ["weights", "constants"] {
            let config = format!("{folder}/data/{kind}/{name}_{kind}_config.json");
            if zip.index_for_name(&config).is_none() {
                continue;
            }
            let text = read(&mut zip, &config, MAX_DESCRIPTION)?;
            let config: Config = serde_json::from_slice(&text).map_err(|e| ArchiveError::Program(e.to_string()))?;
            for (name, entry) in config.config {
                let Some(tensor) = weight(&mut zip, &format!("{folder}/data/{kind}"), &name, &entry)? else { continue };
                weights.insert(name, tensor);
            }
        }
        Ok(Archive { program, weights })
    }
}

/// Reads the description of a program.
pub fn parse(text: &[u8]) -> Result<ExportedProgram, ArchiveError> {
    let program: ExportedProgram = serde_json::from_slice(text).map_err(|e| ArchiveError::Program(e.to_string()))?;
    let version = &program.schema_version;
    if version.major != SCHEMA_VERSION {
        let (found, by) = (version.major, &program.torch_version);
        let reason =
            format!("it is written in schema version {found} by PyTorch {by}; version {SCHEMA_VERSION} is read");
        return Err(ArchiveError::Program(reason));
    }
    Ok(program)
}

/// The folder that all is in.
fn folder_of(zip: &Zip<'_>) -> Result<String, ArchiveError> {
    let found = zip.file_names().flatten().find_map(|name| name.strip_suffix("/archive_format").map(String::from));
    if let Some(folder) = found {
        return Ok(folder);
    }
    let old = zip.file_names().flatten().any(|name| name.ends_with("serialized_exported_program.json"));
    let checkpoint = zip.file_names().flatten().any(|name| name.ends_with("/data.pkl"));
    Err(ArchiveError::Kind(if old {
        "the archive was written by a PyTorch before 2.9; load it there and save it again with a newer one".into()
    } else if checkpoint {
        "this is a checkpoint or a TorchScript file, which holds no exported program; write one with \
         `torch.export.save(torch.export.export(model, args), \"model.pt2\")`"
            .into()
    } else {
        "the archive is none of PyTorch's exported programs (it has no `archive_format`)".into()
    }))
}

/// The bytes of a member, of which there are at most `limit`.
fn read(zip: &mut Zip<'_>, name: &str, limit: u64) -> Result<Vec<u8>, ArchiveError> {
    let member = zip.by_name(name).map_err(|e| ArchiveError::Zip(format!("`{name}`: {e}")))?;
    if member.size() > limit {
        return Err(ArchiveError::Zip(format!("`{name}` has {} bytes; at most {limit} are read", member.size())));
    }
    let mut bytes = Vec::new();
    let read = member.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|e| ArchiveError::Zip(format!("`{name}`: {e}")))?;
    if bytes.len() as u64 > limit {
        return Err(ArchiveError::Zip(format!("`{name}` has more than {limit} bytes")));
    }
    Ok(bytes)
}

/// A weight; `None` where the entry is no tensor.
fn weight(zip: &mut Zip<'_>, folder: &str, name: &str, entry: &WeightEntry) -> Result<Option<Tensor>, ArchiveError> {
    let refuse = |reason: String| ArchiveError::Weight { name: name.to_string(), reason };
    let Some(meta) = &entry.tensor_meta else { return Ok(None) };
    if entry.use_pickle {
        return Err(refuse(
            "it is kept as a Python pickle, which is not read; make it a plain tensor before exporting".into(),
        ));
    }
    let dtype = dtype::of_number(meta.dtype)
        .ok_or_else(|| refuse(format!("element type {} is not supported", dtype::name_of(meta.dtype))))?;
    let known = |dim: &SymInt| if let SymInt::Known(value) = dim { Some(*value) } else { None };
    let dims: Option<Vec<i64>> = meta.sizes.iter().map(known).collect();
    let strides: Option<Vec<i64>> = meta.strides.iter().map(known).collect();
    let offset = meta.storage_offset.as_ref().map_or(Some(0), known);
    let (Some(dims), Some(strides), Some(offset)) = (dims, strides, offset) else {
        return Err(refuse("its dimensions are no numbers".into()));
    };
    let count = dims.iter().try_fold(1u64, |n, &d| n.checked_mul(u64::try_from(d).ok()?));
    let count = count.and_then(|n| usize::try_from(n).ok());
    let needed =
        count.and_then(|n| dtype.bytes_of(n)).ok_or_else(|| refuse(format!("impossible dimensions {dims:?}")))?;
    let bytes = read(zip, &format!("{folder}/{}", entry.path_name), u64::MAX - 1)?;
    let elements = if is_compact(&dims, &strides) && offset == 0 && bytes.len() >= needed {
        bytes[..needed].to_vec()
    } else {
        gather(&bytes, &dims, &strides, offset, usize::from(dtype.bits) / 8)
            .ok_or_else(|| refuse(format!("{} bytes are there for dimensions {dims:?}", bytes.len())))?
    };
    Tensor::from_bytes(&elements, &dims, dtype).map(Some).map_err(|e| refuse(e.to_string()))
}

/// Whether elements lie one after the other.
fn is_compact(dims: &[i64], strides: &[i64]) -> bool {
    let mut expected = 1i64;
    dims.len() == strides.len()
        && dims.iter().zip(strides).rev().all(|(&dim, &stride)| {
            let fits = dim == 1 || stride == expected;
            expected = expected.saturating_mul(dim);
            fits
        })
        || dims.contains(&0)
}

/// Elements that lie apart, one after the other; `None` where one is outside of the bytes.
fn gather(bytes: &[u8], dims: &[i64], strides: &[i64], offset: i64, size: usize) -> Option<Vec<u8>> {
    if dims.len() != strides.len() || size == 0 {
        return None;
    }
    let mut places = vec![usize::try_from(offset).ok()?];
    for (&dim, &stride) in dims.iter().zip(strides) {
        let (dim, stride) = (usize::try_from(dim).ok()?, usize::try_from(stride).ok()?);
        // An axis that repeats its elements could ask for more than the file brings.
        if places.len().checked_mul(dim)? > bytes.len() / size {
            return None;
        }
        let along = |at: &usize| (0..dim).map(|i| at.checked_add(i.checked_mul(stride)?)).collect::<Vec<_>>();
        places = places.iter().flat_map(along).collect::<Option<Vec<usize>>>()?;
    }
    let mut out = Vec::with_capacity(places.len() * size);
    for place in places {
        let start = place.checked_mul(size)?;
        out.extend_from_slice(bytes.get(start..start.checked_add(size)?)?);
    }
    Some(out)
}
