//! Files that are cut off, changed or made of noise are refused with an error; none of them panics.

use proptest::prelude::*;
use prost::Message;
use relaxide_onnx::Model;
use relaxide_onnx::proto::*;

/// A small model with a bit of everything that is decoded.
fn sample() -> Vec<u8> {
    let dim = |value| Dimension { value: Some(value), ..Dimension::default() };
    let shape = TensorShapeProto { dim: vec![dim(DimensionValue::Param("n".into())), dim(DimensionValue::Value(3))] };
    let tensor = TensorTypeProto { elem_type: 1, shape: Some(shape) };
    let ty = Some(TypeProto { value: Some(TypeKind::Tensor(tensor)) });
    let info = |name: &str| ValueInfoProto { name: name.into(), r#type: ty.clone() };
    let attribute = AttributeProto {
        name: "axes".into(),
        ints: vec![-1, 1 << 40],
        r#type: AttributeKind::Ints as i32,
        ..Default::default()
    };
    let node = NodeProto {
        input: vec!["x".into(), "w".into()],
        output: vec!["y".into()],
        op_type: "Add".into(),
        attribute: vec![attribute],
        ..Default::default()
    };
    let weight = TensorProto {
        dims: vec![3],
        data_type: 1,
        name: "w".into(),
        raw_data: vec![0u8; 12].into(),
        ..Default::default()
    };
    let graph = GraphProto {
        node: vec![node],
        initializer: vec![weight],
        input: vec![info("x")],
        output: vec![info("y")],
        ..Default::default()
    };
    let opset = OperatorSetIdProto { domain: String::new(), version: 17 };
    ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![opset], ..Default::default() }.encode_to_vec()
}

#[test]
fn a_sound_file_decodes() {
    let model = Model::from_bytes(sample()).unwrap();
    assert_eq!(model.opset(""), Some(17));
    assert_eq!(model.graph.node[0].op_type, "Add");
    assert_eq!(model.graph.initializer[0].raw_data.len(), 12);
}

#[test]
fn every_cut_is_refused_or_reads_as_a_smaller_model() {
    let bytes = sample();
    for end in 0..bytes.len() {
        let cut = bytes[..end].to_vec();
        if let Ok(model) = Model::from_bytes(cut) {
            assert!(model.graph.node.len() <= 1, "cut at {end}");
        }
    }
    assert!(Model::from_bytes(Vec::new()).is_err());
    assert!(Model::from_bytes(b"not an onnx file at all".to_vec()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_bytes_never_panic(changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8)) {
        let mut bytes = sample();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let _ = Model::from_bytes(bytes);
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Model::from_bytes(bytes);
    }
}
