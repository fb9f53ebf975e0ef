//! Tensors in TVM's JSON object graph, as the metadata section of a text holds them.
//!
//! The graph is a list of nodes that refer to each other by index; the root maps `"ir.GenericConst"` to the list of
//! constants. A tensor's data is TVM's tensor blob (magic, device, shape, dtype, bytes) in base64. Only what constants need
//! is written; of a graph that TVM wrote, only the tensors are read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use relaxide_ffi::{DataType, Tensor};
use serde_json::{Value, json};

/// First word of a tensor blob.
const TENSOR_MAGIC: u64 = 0xdd5e_40f0_96b4_a13f;

/// The key of Relax constants in the root map.
pub(crate) const CONSTANTS: &str = "ir.GenericConst";
/// The key of plain tensors, which attributes hold.
pub(crate) const TENSORS: &str = "ffi.Tensor";

/// What a section holds.
#[derive(Debug, Default)]
pub(crate) struct Section {
    /// Values of Relax constants.
    pub constants: Vec<Tensor>,
    /// Plain tensors.
    pub tensors: Vec<Tensor>,
}

/// A graph under construction: a list of nodes. The first two are given, since all graphs need them.
struct MetaGraph(Vec<Value>);

impl MetaGraph {
    fn add(&mut self, node: Value) -> usize {
        self.0.push(node);
        self.0.len() - 1
    }

    fn tensor(&mut self, tensor: &Tensor) -> usize {
        self.add(json!({"type": TENSORS, "data": STANDARD.encode(tensor_blob(tensor))}))
    }

    /// A Relax constant: its type and its value.
    fn constant(&mut self, tensor: &Tensor) -> usize {
        let int64 = self.add(json!({"type": "ir.PrimType", "data": {"span": 1, "dtype": "int64"}}));
        let mut dims = Vec::new();
        for dim in tensor.shape() {
            let value = self.add(json!({"type": "int", "data": dim}));
            dims.push(self.add(json!({"type": "ir.IntImm", "data": {"span": 1, "ty": int64, "value": value}})));
        }
        let values = self.add(json!({"type": "ffi.Array", "data": dims}));
        let ndim = tensor.ndim();
        let shape_type =
            self.add(json!({"type": "relax.ShapeType", "data": {"span": 1, "values": values, "ndim": ndim}}));
        let shape =
            self.add(json!({"type": "relax.expr.ShapeExpr", "data": {"span": 1, "ty": shape_type, "values": values}}));
        let dtype = self.add(json!({"type": "ir.PrimType", "data": {"span": 1, "dtype": tensor.dtype().to_string()}}));
        let ty = self.add(json!({
            "type": "relax.TensorType",
            "data": {"span": 1, "shape": shape, "dtype": dtype, "vdevice": 1, "ndim": ndim},
        }));
        let value = self.tensor(tensor);
        self.add(json!({"type": CONSTANTS, "data": {"span": 1, "ty": ty, "value": value}}))
    }
}

/// The graph of a section.
pub(crate) fn write(section: &Section) -> String {
    let mut graph = MetaGraph(vec![json!({"type": "ffi.String", "data": CONSTANTS}), json!({"type": "None"})]);
    let mut root = Vec::new();
    if !section.constants.is_empty() {
        let constants: Vec<_> = section.constants.iter().map(|t| graph.constant(t)).collect();
        root.extend([0, graph.add(json!({"type": "ffi.Array", "data": constants}))]);
    }
    if !section.tensors.is_empty() {
        let key = graph.add(json!({"type": "ffi.String", "data": TENSORS}));
        let tensors: Vec<_> = section.tensors.iter().map(|t| graph.tensor(t)).collect();
        root.extend([key, graph.add(json!({"type": "ffi.Array", "data": tensors}))]);
    }
    let root = graph.add(json!({"type": "ffi.Map", "data": root}));
    let text = json!({"root_index": root, "nodes": graph.0, "metadata": {"tvm_version": "0.27.0"}});
    serde_json::to_string(&text).unwrap_or_default()
}

/// What is wrong with tensors as text.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The section is no JSON.
    #[error("the metadata is not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The section is no list of nodes.
    #[error("the metadata has no list of nodes")]
    NoNodes,
    /// A node refers to one that there is not, or to one of another type.
    #[error("the metadata lacks a node of type {0}")]
    NoNode(&'static str),
    /// A node's contents are of another kind.
    #[error("{what} in the metadata is not {wanted}")]
    Kind {
        /// The node.
        what: &'static str,
        /// What it is to be.
        wanted: &'static str,
    },
    /// A tensor is no base64.
    #[error("the tensor is not base64: {0}")]
    Base64(base64::DecodeError),
    /// A tensor's bytes are not those of its header.
    #[error("the tensor is damaged")]
    Damaged,
}

/// The tensors of a graph, in order; the error says what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Section, MetadataError> {
    let graph: Value = serde_json::from_str(text)?;
    let nodes = graph.get("nodes").and_then(Value::as_array).ok_or(MetadataError::NoNodes)?;
    let node = |index: Option<&Value>| index.and_then(Value::as_u64).and_then(|i| nodes.get(usize::try_from(i).ok()?));
    let data = |index: Option<&Value>, kind: &'static str| {
        node(index)
            .filter(|n| n.get("type").and_then(Value::as_str) == Some(kind))
            .and_then(|n| n.get("data"))
            .ok_or(MetadataError::NoNode(kind))
    };
    let tensor = |index: Option<&Value>| {
        let blob = data(index, TENSORS)?.as_str();
        tensor_from_text(blob.ok_or(MetadataError::Kind { what: "a tensor", wanted: "text" })?)
    };
    let root = data(graph.get("root_index"), "ffi.Map")?.as_array();
    let root = root.ok_or(MetadataError::Kind { what: "the root", wanted: "a map" })?;
    let mut section = Section::default();
    for pair in root.chunks_exact(2) {
        let key = data(pair.first(), "ffi.String")?.as_str();
        if key != Some(CONSTANTS) && key != Some(TENSORS) {
            continue;
        }
        for item in data(pair.get(1), "ffi.Array")?.as_array().into_iter().flatten() {
            match key {
                Some(CONSTANTS) => section.constants.push(tensor(data(Some(item), CONSTANTS)?.get("value"))?),
                _ => section.tensors.push(tensor(Some(item))?),
            }
        }
    }
    Ok(section)
}

/// A tensor as text: what the nodes of a JSON graph hold for it.
pub fn tensor_to_text(tensor: &Tensor) -> String {
    STANDARD.encode(tensor_blob(tensor))
}

/// The tensor of such a text.
pub fn tensor_from_text(text: &str) -> Result<Tensor, MetadataError> {
    read_tensor(&STANDARD.decode(text).map_err(MetadataError::Base64)?).ok_or(MetadataError::Damaged)
}

fn tensor_blob(tensor: &Tensor) -> Vec<u8> {
    let bytes = tensor.to_bytes().unwrap_or_default();
    let dtype = tensor.dtype();
    let mut out = Vec::with_capacity(bytes.len() + 64);
    out.extend(TENSOR_MAGIC.to_le_bytes());
    out.extend(0u64.to_le_bytes());
    // The device: the host's processor, the first one.
    out.extend(1i32.to_le_bytes());
    out.extend(0i32.to_le_bytes());
    out.extend((tensor.ndim() as i32).to_le_bytes());
    out.extend([dtype.code, dtype.bits]);
    out.extend(dtype.lanes.to_le_bytes());
    tensor.shape().iter().for_each(|dim| out.extend(dim.to_le_bytes()));
    out.extend((bytes.len() as i64).to_le_bytes());
    out.extend(bytes);
    out
}

fn read_tensor(mut bytes: &[u8]) -> Option<Tensor> {
    fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
        let (head, tail) = bytes.split_first_chunk::<N>()?;
        *bytes = tail;
        Some(*head)
    }
    if u64::from_le_bytes(take(&mut bytes)?) != TENSOR_MAGIC {
        return None;
    }
    let _reserved: [u8; 8] = take(&mut bytes)?;
    let _device: [u8; 8] = take(&mut bytes)?;
    let ndim = usize::try_from(i32::from_le_bytes(take(&mut bytes)?)).ok()?;
    let [code, bits, lanes_low, lanes_high] = take(&mut bytes)?;
    let dtype = DataType { code, bits, lanes: u16::from_le_bytes([lanes_low, lanes_high]) };
    if ndim > bytes.len() / 8 {
        return None;
    }
    let mut shape = Vec::with_capacity(ndim);
    for _ in 0..ndim {
        shape.push(i64::from_le_bytes(take(&mut bytes)?));
    }
    let size = usize::try_from(i64::from_le_bytes(take(&mut bytes)?)).ok()?;
    // The blob's own length bounds what is allocated: the shape must call for exactly these bytes.
    let numel = shape.iter().try_fold(1usize, |n, dim| n.checked_mul(usize::try_from(*dim).ok()?))?;
    if size != bytes.len() || dtype.bytes_of(numel)? != size {
        return None;
    }
    Tensor::from_bytes(bytes, &shape, dtype).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_survive_the_section() {
        let a = Tensor::from_slice(&[1.0f32, 2.0, 3.0], &[3]).unwrap();
        let b = Tensor::from_slice(&[1i64, 2, 3, 4], &[2, 2]).unwrap();
        let section = Section { constants: vec![a], tensors: vec![b] };
        let read = read(&write(&section)).unwrap();
        assert_eq!(read.constants[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!(
            (read.tensors[0].shape(), read.tensors[0].to_vec::<i64>().unwrap()),
            (&[2i64, 2][..], vec![1, 2, 3, 4])
        );
    }

    #[test]
    fn damaged_sections_are_refused() {
        for text in [
            "",
            "{}",
            r#"{"nodes": [], "root_index": 7}"#,
            r#"{"nodes": [{"type": "ffi.Map", "data": [0, 0]}], "root_index": 0}"#,
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_blob_of_the_reference_is_read() {
        let blob = "P6G0lvBAXt0AAAAAAAAAAAEAAAAAAAAAAQAAAAIgAQAIAAAAAAAAACAAAAAAAAAAAAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EA=";
        let tensor = read_tensor(&STANDARD.decode(blob).unwrap()).unwrap();
        assert_eq!(tensor.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }
}
