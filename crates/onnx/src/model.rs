//! Reading a model file.
//!
//! The file is mapped, not read: decoded tensors are windows onto the map, so weights exist once, in the page cache, until
//! the importer turns each into a constant; what has become one is given back to the system ([`Model::give_back`]).

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use memmap2::{Mmap, UncheckedAdvice};
use prost::Message;
use prost::bytes::Bytes;

use crate::budget::{self, Budget};
use crate::error::ModelError;
use crate::external::Beside;
use crate::given::GivenWeights;
use crate::proto::{FunctionProto, GraphProto, ModelProto};

/// A decoded model.
#[derive(Debug, Clone)]
pub struct Model {
    /// The graph.
    pub graph: GraphProto,
    /// Everything else of the file; its own `graph` is empty.
    pub frame: ModelProto,
    /// Where files with external data are looked for.
    pub beside: Option<Beside>,
    /// Weights that are not those of the file.
    pub given: GivenWeights,
    /// The file's bytes, where they were mapped here.
    map: Option<Arc<Mmap>>,
}

/// What windows onto a mapped file keep.
struct Mapped(Arc<Mmap>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Model {
    /// Opens a model file. External data is looked for beside it.
    pub fn open(path: impl AsRef<Path>) -> Result<Model, ModelError> {
        let path = path.as_ref();
        let map = map(path)?.map(Arc::new);
        let bytes = map.clone().map_or_else(Bytes::new, |map| Bytes::from_owner(Mapped(map)));
        let mut model = Model::from_bytes(bytes)?;
        model.map = map;
        model.beside = Some(Beside::model(path));
        Ok(model)
    }

    /// Decodes a model. Its tensors stay windows onto `bytes`.
    pub fn from_bytes(bytes: impl Into<Bytes>) -> Result<Model, ModelError> {
        Model::from_bytes_within(bytes, Budget::default())
    }

    /// Decodes a model against a given budget.
    pub fn from_bytes_within(bytes: impl Into<Bytes>, budget: Budget) -> Result<Model, ModelError> {
        let bytes = bytes.into();
        if bytes.is_empty() {
            return Err(ModelError::Empty { reason: "it has no bytes" });
        }
        if bytes.get(4..8) == Some(b"ORTM") {
            return Err(ModelError::OrtFormat);
        }
        budget::check(&bytes, budget)?;
        let mut frame = ModelProto::decode(bytes).map_err(|e| ModelError::Decode { reason: e.to_string() })?;
        let graph = frame.graph.take().ok_or(ModelError::Empty { reason: "it has no graph" })?;
        Ok(Model { graph, frame, beside: None, given: GivenWeights::default(), map: None })
    }

    /// Gives the memory back that what was read of the file takes: it is in the way once the weights have been copied. What is
    /// read again comes from the file again.
    pub fn give_back(&self) {
        let Some(map) = &self.map else { return };
        // SAFETY: the map is of a file and nobody has written to it, so that its bytes are the same when they are read again.
        // A system that does not follow the advice keeps them, which is as well.
        let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
    }

    /// The version of the model itself, where the file says one.
    pub fn version(&self) -> Option<i64> {
        Some(self.frame.model_version).filter(|version| *version != 0)
    }

    /// The version of an operator set that the model asks for; 1 where an old file does not say.
    pub fn opset(&self, domain: &str) -> Option<i64> {
        let found = self.frame.opset_import.iter().find(|set| canonical_domain(&set.domain) == domain);
        match found {
            Some(set) => Some(set.version),
            None if domain.is_empty() && self.frame.opset_import.is_empty() => Some(1),
            None => None,
        }
    }

    /// The function of the file that an operator's name stands for.
    pub fn function(&self, domain: &str, name: &str, overload: &str) -> Option<&FunctionProto> {
        let named =
            |f: &&FunctionProto| f.name == name && canonical_domain(&f.domain) == domain && f.overload == overload;
        self.frame.functions.iter().find(named)
    }

    /// A note of the file by key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.frame.metadata_props.iter().find(|entry| entry.key == key).map(|entry| entry.value.as_str())
    }
}

/// The standard operator set has two names.
pub(crate) fn canonical_domain(domain: &str) -> &str {
    if domain == "ai.onnx" { "" } else { domain }
}

/// Maps a file into memory; one that has no bytes cannot be.
fn map(path: &Path) -> Result<Option<Mmap>, ModelError> {
    let io = |e: std::io::Error| ModelError::Io { path: path.to_path_buf(), kind: e.kind(), reason: e.to_string() };
    let file = File::open(path).map_err(io)?;
    if file.metadata().map_err(io)?.len() == 0 {
        return Ok(None);
    }
    // SAFETY: the map is read-only; a process that truncates the file meanwhile can make reads fail with a signal, as for
    // any mapped file, but cannot make them unsound for the types here, which are bytes.
    Ok(Some(unsafe { Mmap::map(&file) }.map_err(io)?))
}
