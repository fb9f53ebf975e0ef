//! The sample programs of the reference: they compile, run, and give what it gave.

use std::path::PathBuf;

use relaxide::ffi::{Any, AnyView, Tensor};
use relaxide::relay_vm::Adt;
use serde_json::Value;

use crate::programs::machine;

const NAMES: [&str; 8] = ["closure", "const", "dense", "dynshape", "if_dyn", "list_sum", "loop", "tuple_match"];

fn sample(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/relay").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn tensor(value: &Value) -> Tensor {
    let shape: Vec<i64> = value["shape"].as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect();
    let data: Vec<f64> = value["data"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
    match value["dtype"].as_str().unwrap() {
        "float32" => Tensor::from_slice(&data.iter().map(|v| *v as f32).collect::<Vec<_>>(), &shape).unwrap(),
        "int32" => Tensor::from_slice(&data.iter().map(|v| *v as i32).collect::<Vec<_>>(), &shape).unwrap(),
        "int64" => Tensor::from_slice(&data.iter().map(|v| *v as i64).collect::<Vec<_>>(), &shape).unwrap(),
        other => panic!("{other} does not occur in the samples"),
    }
}

fn compare(name: &str, found: &Any, expected: &Value) {
    if let Some(fields) = expected.get("fields") {
        let adt = found.downcast_ref::<Adt>().unwrap_or_else(|| panic!("{name}: data are expected"));
        assert_eq!(i64::from(adt.tag), expected["tag"].as_i64().unwrap(), "{name}");
        for (found, expected) in adt.fields.iter().zip(fields.as_array().unwrap()) {
            compare(name, found, expected);
        }
        return;
    }
    let (found, expected) = (found.as_tensor().unwrap(), tensor(expected));
    assert_eq!((found.shape(), found.dtype()), (expected.shape(), expected.dtype()), "{name}");
    let numbers = |t: &Tensor| -> Vec<f64> {
        relaxide::relay::scalar::numbers(t)
            .unwrap()
            .into_iter()
            .map(|n| match n {
                relaxide::relay::scalar::Number::Float(v) => v,
                relaxide::relay::scalar::Number::Int(v) => v as f64,
                relaxide::relay::scalar::Number::Bool(v) => f64::from(u8::from(v)),
            })
            .collect()
    };
    for (a, b) in numbers(found).iter().zip(numbers(&expected)) {
        assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{name}: {a} is not {b}");
    }
}

#[test]
fn the_programs_give_what_the_reference_gave() {
    for name in NAMES {
        let vm = machine(&sample(&format!("{name}.src.relay")));
        let cases: Value = serde_json::from_str(&sample(&format!("{name}.results.json"))).unwrap();
        for case in cases.as_array().unwrap() {
            let inputs: Vec<Tensor> = case["inputs"].as_array().unwrap().iter().map(tensor).collect();
            let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
            let result = vm.invoke("main", &views).unwrap_or_else(|e| panic!("{name}: {e}"));
            compare(name, &result, &case["output"]);
        }
    }
}
