//! What keeps a model from being imported is reported at once, with the place and what to try.

use crate::model::{Build, float, tensor};
use relaxide_onnx::ImportOptions;
use relaxide_onnx::options::InputDim;
use relaxide_onnx::proto::{ElementType, StringStringEntryProto, TensorProto};

fn error(build: Build, outputs: &[&str]) -> String {
    build.import(outputs).err().map(|e| e.to_string()).unwrap_or_default()
}

#[test]
fn every_problem_is_reported_and_those_that_follow_from_one_are_not() {
    let build = Build::new(13)
        .input("x", float(&["n", "4"]))
        .node("ImageDecoder", &["x"], &["a"], &[])
        .node("Relu", &["a"], &["b"], &[])
        .node("StringConcat", &["b"], &["c"], &[])
        .node("Relu", &["missing"], &["d"], &[])
        .node("Gelu", &["x"], &["e"], &[]);
    assert_eq!(
        error(build, &["c", "e"]),
        "the ONNX model cannot be imported: 4 problems
  ImageDecoder (node `make_a`, opset 13): the operator is not supported
    help: simplify the model (`onnxsim`), or export it without this operator
  StringConcat (node `make_c`, opset 13): it is supported from opset 20 on
    help: convert the model: `onnx.version_converter.convert_version(model, 20)`
  Relu (node `make_d`, opset 13): nothing before it makes its input `missing`
  Gelu (node `make_e`, opset 13): it is supported from opset 20 on
    help: convert the model: `onnx.version_converter.convert_version(model, 20)`
"
    );
}

#[test]
fn shapes_of_unknown_length_say_so() {
    let build = Build::new(13).input("x", float(&["n"])).input("s", tensor(ElementType::Int64, &["m"])).node(
        "Reshape",
        &["x", "s"],
        &["y"],
        &[],
    );
    let text = error(build, &["y"]);
    assert!(text.contains("the length of an argument that is computed from data is not known"), "{text}");
    assert!(text.contains("help: "), "{text}");
}

#[test]
fn dimensions_that_cannot_fit_are_named() {
    let build = Build::new(13).input("x", float(&["n", "4"])).input("y", float(&["n", "5"])).node(
        "Add",
        &["x", "y"],
        &["z"],
        &[],
    );
    let text = error(build, &["z"]);
    assert!(text.contains("a dimension is 5 where 4 is needed"), "{text}");
}

#[test]
fn inputs_that_are_not_tensors_of_known_rank_are_refused() {
    let mut unranked = float(&[]);
    if let Some(relaxide_onnx::proto::TypeKind::Tensor(tensor)) = &mut unranked.value {
        tensor.shape = None;
    }
    let text = error(Build::new(13).input("x", unranked).node("Relu", &["x"], &["y"], &[]), &["y"]);
    assert!(text.contains("input `x`: the file does not say how many dimensions it has"), "{text}");
    let text = error(Build::new(13).input("s", tensor(ElementType::Complex64, &["n"])), &["s"]);
    assert!(text.contains("input `s`: element type complex64 is not supported"), "{text}");
}

#[test]
fn options_about_inputs_that_do_not_exist_are_refused() {
    let options = ImportOptions {
        shapes: [("z".to_string(), vec![InputDim::Fixed(1)])].into_iter().collect(),
        ..Default::default()
    };
    let build = Build::new(13).input("x", float(&["n"])).node("Relu", &["x"], &["y"], &[]);
    let text = build.import_with(&["y"], &options).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(text.contains("input `z`: a shape or type is given for it, but the model has: x"), "{text}");
}

#[test]
fn tensors_whose_data_does_not_fit_their_dimensions_are_refused() {
    let short = TensorProto {
        dims: vec![3],
        data_type: ElementType::Float as i32,
        raw_data: vec![0u8; 8].into(),
        name: "w".into(),
        ..Default::default()
    };
    let huge = TensorProto { dims: vec![i64::MAX, 4], name: "v".into(), ..short.clone() };
    let negative = TensorProto { dims: vec![-1], name: "u".into(), ..short.clone() };
    let build = Build::new(13).input("x", float(&["3"])).initializer(short).initializer(huge).initializer(negative);
    let text = error(build, &["x"]);
    assert!(text.contains("initializer `w`: 8 bytes of data where the dimensions need 12"), "{text}");
    assert!(text.contains("initializer `v`: impossible dimensions"), "{text}");
    assert!(text.contains("initializer `u`: impossible dimensions [-1]"), "{text}");
}

#[test]
fn external_data_is_read_from_below_the_model_only() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("model")).unwrap();
    std::fs::write(directory.path().join("model/weights.bin"), [0u8; 32]).unwrap();
    std::fs::write(directory.path().join("secret.bin"), [0u8; 32]).unwrap();
    let external = |location: &str, offset: &str| {
        let entry = |key: &str, value: &str| StringStringEntryProto { key: key.into(), value: value.into() };
        TensorProto {
            dims: vec![2],
            data_type: ElementType::Float as i32,
            data_location: 1,
            external_data: vec![entry("location", location), entry("offset", offset), entry("length", "8")],
            name: "w".into(),
            ..Default::default()
        }
    };
    let import = |tensor: TensorProto| {
        let build = Build::new(13).input("x", float(&["2"])).initializer(tensor).node("Add", &["x", "w"], &["y"], &[]);
        let path = directory.path().join("model/m.onnx");
        std::fs::write(&path, build.bytes(&["y"])).unwrap();
        let model = relaxide_onnx::Model::open(path).unwrap();
        relaxide_onnx::import(&model, &ImportOptions::default()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    assert_eq!(import(external("weights.bin", "16")), "");
    for (location, offset, reason) in [
        ("../secret.bin", "0", "the path must lie below the model's folder"),
        ("/etc/hostname", "0", "the path must lie below the model's folder"),
        ("weights.bin", "25", "the file is shorter than the model says"),
        ("weights.bin", "18446744073709551615", "the file is shorter than the model says"),
        ("absent.bin", "0", "cannot read"),
    ] {
        let text = import(external(location, offset));
        assert!(text.contains(reason), "{location} at {offset}: {text}");
    }
}
