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

/// The key of constants in the root map.
pub(crate) const CONSTANTS: &str = "ir.GenericConst";

/// The graph that holds these constants.
pub(crate) fn write<'a>(tensors: impl Iterator<Item = &'a Tensor>) -> String {
    let mut nodes = vec![json!({"type": "ffi.String", "data": CONSTANTS}), json!({"type": "None"})];
    let mut add = |node: Value| {
        nodes.push(node);
        nodes.len() - 1
    };
    let mut constants = Vec::new();
    for tensor in tensors {
        let int64 = add(json!({"type": "ir.PrimType", "data": {"span": 1, "dtype": "int64"}}));
        let mut dims = Vec::new();
        for dim in tensor.shape() {
            let value = add(json!({"type": "int", "data": dim}));
            dims.push(add(json!({"type": "ir.IntImm", "data": {"span": 1, "ty": int64, "value": value}})));
        }
        let values = add(json!({"type": "ffi.Array", "data": dims}));
        let ndim = add(json!({"type": "int", "data": tensor.ndim()}));
        let shape_type = add(json!({"type": "relax.ShapeType", "data": {"span": 1, "values": values, "ndim": ndim}}));
        let shape =
            add(json!({"type": "relax.expr.ShapeExpr", "data": {"span": 1, "ty": shape_type, "values": values}}));
        let dtype = add(json!({"type": "ir.PrimType", "data": {"span": 1, "dtype": tensor.dtype().to_string()}}));
        let ty = add(json!({
            "type": "relax.TensorType",
            "data": {"span": 1, "shape": shape, "dtype": dtype, "vdevice": 1, "ndim": ndim},
        }));
        let value = add(json!({"type": "ffi.Tensor", "data": STANDARD.encode(tensor_blob(tensor))}));
        constants.push(add(json!({"type": CONSTANTS, "data": {"span": 1, "ty": ty, "value": value}})));
    }
    let list = add(json!({"type": "ffi.Array", "data": constants}));
    let root = add(json!({"type": "ffi.Map", "data": [0, list]}));
    let graph = json!({"root_index": root, "nodes": nodes, "metadata": {"tvm_version": "0.27.0"}});
    serde_json::to_string(&graph).unwrap_or_default()
}

/// The constants of a graph, in order; the error says what is wrong with it.
pub(crate) fn read(text: &str) -> Result<Vec<Tensor>, String> {
    let graph: Value = serde_json::from_str(text).map_err(|e| format!("the metadata is not JSON: {e}"))?;
    let nodes = graph.get("nodes").and_then(Value::as_array).ok_or("the metadata has no list of nodes")?;
    let node = |index: Option<&Value>| index.and_then(Value::as_u64).and_then(|i| nodes.get(usize::try_from(i).ok()?));
    let data = |index: Option<&Value>, kind: &str| {
        node(index)
            .filter(|n| n.get("type").and_then(Value::as_str) == Some(kind))
            .and_then(|n| n.get("data"))
            .ok_or_else(|| format!("the metadata lacks a node of type {kind}"))
    };
    let root = data(graph.get("root_index"), "ffi.Map")?.as_array().ok_or("the metadata's root is not a map")?;
    let mut constants = Vec::new();
    for pair in root.chunks_exact(2) {
        if data(pair.first(), "ffi.String")?.as_str() != Some(CONSTANTS) {
            continue;
        }
        for constant in data(pair.get(1), "ffi.Array")?.as_array().into_iter().flatten() {
            let value = data(Some(constant), CONSTANTS)?.get("value");
            let blob = data(value, "ffi.Tensor")?.as_str().ok_or("a tensor in the metadata is not text")?;
            let bytes = STANDARD.decode(blob).map_err(|e| format!("a tensor in the metadata is not base64: {e}"))?;
            constants.push(read_tensor(&bytes).ok_or("a tensor in the metadata is damaged")?);
        }
    }
    Ok(constants)
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
    if size != bytes.len() || numel.checked_mul(dtype.bytes())? != size {
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
        let read = read(&write([&a, &b].into_iter())).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0].to_vec::<f32>().unwrap(), [1.0, 2.0, 3.0]);
        assert_eq!((read[1].shape(), read[1].to_vec::<i64>().unwrap()), (&[2i64, 2][..], vec![1, 2, 3, 4]));
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
