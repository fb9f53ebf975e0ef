//! Parts of the importer by themselves: the order of nodes, budgets of files, names of dimensions, signatures, the table of rules.

use relaxide_onnx::proto::*;
use relaxide_onnx::testing::*;
use relaxide_onnx::{Model, ModelError};

mod matmul {
    use super::*;
    use relaxide_ffi::Tensor;

    #[test]
    fn constants_are_transposed_by_element() {
        let bytes = Tensor::from_slice(&[1_u8, 2, 3, 4, 5, 6], &[2, 3]).unwrap();
        assert_eq!(transposed_constant(&bytes).unwrap().to_vec::<u8>().unwrap(), [1, 4, 2, 5, 3, 6]);
        let words = Tensor::from_slice(&[0x0201_u16, 0x0403, 5, 6], &[2, 2]).unwrap();
        assert_eq!(transposed_constant(&words).unwrap().to_vec::<u16>().unwrap(), [0x0201, 5, 0x0403, 6]);
    }
}

mod rules {
    use super::*;

    #[test]
    fn rows_are_sorted_by_name_and_version_and_unique() {
        let sets = ["", "ai.onnx.ml", "ai.onnx.preview", "com.microsoft"].map(|domain| rules_of(domain).unwrap());
        for pair in sets.iter().flat_map(|rows| rows.windows(2)) {
            assert!(pair[0].name < pair[1].name, "{} comes before {}", pair[0].name, pair[1].name);
        }
        for row in TABLE {
            assert!(!row.versions.is_empty(), "{} has no rule", row.name);
            assert!(row.versions.windows(2).all(|w| w[0].0 < w[1].0), "{}: versions are out of order", row.name);
            assert!(row.versions.iter().all(|(since, _)| *since <= MAX_OPSET), "{}", row.name);
        }
    }

    #[test]
    fn the_rule_of_a_version_is_the_newest_that_is_not_newer() {
        assert!(rule("", "Softmax", 12).is_ok());
        let refused =
            |domain: &str, op: &str, opset| rule(domain, op, opset).err().map(|e| e.to_string()).unwrap_or_default();
        assert_eq!(refused("", "Trilu", 6), "it is supported from opset 14 on");
        assert_eq!(refused("", "NoSuchOp", 13), "the operator is not supported");
        assert_eq!(refused("com.example", "Gelu", 1), "operators of the set `com.example` are not supported");
        assert!(rule("com.microsoft", "Gelu", 1).is_ok());
        assert!(refused("", "Add", MAX_OPSET + 1).contains("newer than"));
    }
}

mod order {
    use super::*;

    fn node(input: &str, output: &str) -> NodeProto {
        NodeProto { input: vec![input.into()], output: vec![output.into()], ..NodeProto::default() }
    }

    #[test]
    fn what_a_node_uses_comes_before_it() {
        let nodes = [node("b", "c"), node("a", "b"), node("c", "d")];
        let order: Vec<String> = sorted(&nodes).unwrap().iter().map(|n| n.output[0].clone()).collect();
        assert_eq!(order, ["b", "c", "d"]);
        assert!(sorted(&[node("a", "b"), node("b", "c")]).is_none());
    }

    #[test]
    fn nodes_in_a_circle_stay() {
        assert!(sorted(&[node("b", "a"), node("a", "b")]).is_none());
    }
}

mod model {
    use super::*;
    use prost::Message;

    #[test]
    fn what_was_given_back_can_be_read_again() {
        let weights: Vec<u8> = (0..1 << 20).map(|i: u32| (i % 251) as u8).collect();
        let tensor = TensorProto { raw_data: weights.clone().into(), ..TensorProto::default() };
        let graph = GraphProto { initializer: vec![tensor], ..GraphProto::default() };
        let proto = ModelProto { graph: Some(graph), ..ModelProto::default() };
        let path = std::env::temp_dir().join(format!("relaxide-give-back-{}.onnx", std::process::id()));
        std::fs::write(&path, proto.encode_to_vec()).unwrap();
        let model = Model::open(&path).unwrap();
        let read = |model: &Model| model.graph.initializer[0].raw_data == weights;
        assert!(read(&model));
        model.give_back();
        assert!(read(&model));
        std::fs::remove_file(&path).unwrap();
        model.give_back();
        assert!(read(&model));
    }
}

mod dim_name {
    use super::*;
    use relaxide_ir::Var;
    use relaxide_ir::prim::PrimExpr;

    fn read(name: &str) -> Option<String> {
        let (n, m) = (Var::dim("n"), Var::dim("m"));
        let mut of = |word: &str| match word {
            "n" => Some(PrimExpr::from(&n)),
            "m" => Some(PrimExpr::from(&m)),
            _ => None,
        };
        expression(name, &mut of).map(|e| e.to_string())
    }

    #[test]
    fn sums_and_quotients_of_names_are_read() {
        assert_eq!(read("n + m").as_deref(), Some("n + m"));
        assert_eq!(read("((n - 1)//2) + 1").as_deref(), Some("(n - 1) // 2 + 1"));
        assert!(read("floor(2*n/3)").is_some() && read("Max(1, n)").is_some());
    }

    #[test]
    fn other_texts_are_names() {
        for name in ["n", "batch size", "n + k", "n /", "n // m", "n ** 2", &"(".repeat(100), &"n+".repeat(1000)] {
            assert_eq!(read(name), None, "{name}");
        }
    }
}

mod budget {
    use super::*;

    #[test]
    fn lengths_beyond_the_parent_are_refused_with_their_offset() {
        // Field 7 (the graph) of 5 bytes, of which one is there.
        let error = check(&[0x3a, 5, 0], Budget::default()).unwrap_err();
        assert_eq!(error, ModelError::Frame { offset: 2, reason: "a field is longer than what holds it" });
    }

    #[test]
    fn nesting_and_counts_are_limited() {
        // graph { node { attribute { g { node { attribute { g … } } } } } }
        let mut bytes: Vec<u8> = Vec::new();
        for _ in 0..30 {
            for tag in [6u8, 5, 1] {
                let mut outer = vec![tag << 3 | 2];
                prost::encoding::encode_varint(bytes.len() as u64, &mut outer);
                outer.extend(&bytes);
                bytes = outer;
            }
        }
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut file);
        file.extend(&bytes);
        assert_eq!(
            check(&file, Budget::default()).unwrap_err(),
            ModelError::Limit { what: "nested messages", limit: 64 }
        );

        // graph { node { attribute { ints: 1 … } } }: numbers of a list are no fields of their own.
        let mut inner: Vec<u8> = [0x40, 1].repeat(100);
        for tag in [5u8, 1, 7] {
            let mut outer = vec![tag << 3 | 2];
            prost::encoding::encode_varint(inner.len() as u64, &mut outer);
            outer.extend(&inner);
            inner = outer;
        }
        assert!(check(&inner, Budget { fields: 50, ..Budget::default() }).is_ok());

        let nodes: Vec<u8> = [0x0a, 0].repeat(100);
        let mut file = vec![0x3a];
        prost::encoding::encode_varint(nodes.len() as u64, &mut file);
        file.extend(nodes);
        let budget = Budget { fields: 50, ..Budget::default() };
        assert_eq!(check(&file, budget).unwrap_err(), ModelError::Limit { what: "fields", limit: 50 });
    }
}

mod signature {
    use super::*;
    use prost::Message;
    use relaxide_onnx::signature::Extent;

    fn tensor_type(element: ElementType, dims: &[Option<DimensionValue>]) -> TypeProto {
        let dim = dims.iter().map(|value| Dimension { value: value.clone(), ..Dimension::default() }).collect();
        let shape = Some(TensorShapeProto { dim });
        TypeProto { value: Some(TypeKind::Tensor(TensorTypeProto { elem_type: element as i32, shape })) }
    }

    fn info(name: &str, r#type: TypeProto) -> ValueInfoProto {
        ValueInfoProto { name: name.into(), r#type: Some(r#type) }
    }

    #[test]
    fn a_signature_has_names_types_and_files() {
        let number = |n| Some(DimensionValue::Value(n));
        let named = |name: &str| Some(DimensionValue::Param(name.into()));
        let scores = MapTypeProto {
            key_type: ElementType::Int64 as i32,
            value_type: Some(Box::new(tensor_type(ElementType::Float, &[]))),
        };
        let list =
            ElementTypeProto { elem_type: Some(Box::new(TypeProto { value: Some(TypeKind::Map(Box::new(scores))) })) };
        let location = StringStringEntryProto { key: "location".into(), value: "w.bin".into() };
        let weight =
            TensorProto { name: "w".into(), data_location: 1, external_data: vec![location], ..TensorProto::default() };
        let graph = GraphProto {
            initializer: vec![weight.clone(), TensorProto { name: "v".into(), ..weight }],
            input: vec![
                info("x", tensor_type(ElementType::Float16, &[named("n"), number(3), None, number(-1)])),
                info("w", tensor_type(ElementType::Float, &[number(4)])),
            ],
            output: vec![info("y", TypeProto { value: Some(TypeKind::Sequence(Box::new(list))) })],
            ..GraphProto::default()
        };
        let model = ModelProto { graph: Some(graph), ..ModelProto::default() };
        let signature = Model::from_bytes(model.encode_to_vec()).unwrap().signature();
        let [x] = &signature.inputs[..] else { panic!("{signature:?}") };
        assert_eq!(x.type_name, "tensor(float16)");
        assert_eq!(x.shape, [Extent::Named("n".into()), Extent::Known(3), Extent::Unknown, Extent::Unknown]);
        assert_eq!(signature.overridable[0].name, "w");
        assert_eq!(signature.outputs[0].type_name, "seq(map(int64,tensor(float)))");
        assert_eq!(signature.external_files, ["w.bin"]);
    }
}
