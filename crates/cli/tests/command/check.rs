//! `relaxide check` and `relaxide bench --vs`, beside ONNX Runtime. They need a Python with it, and say so where there is none.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::workplace::Workplace;

/// A Python with ONNX Runtime.
pub fn python() -> Option<PathBuf> {
    let given = std::env::var_os("RELAXIDE_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python");
    let has = |python: &PathBuf| {
        let imported = Command::new(python).args(["-c", "import onnxruntime, numpy"]).output();
        imported.is_ok_and(|output| output.status.success())
    };
    let found = given.into_iter().chain([own, "python3".into()]).find(has);
    if found.is_none() {
        eprintln!("skipped: there is no Python with onnxruntime (`make setup` makes one, RELAXIDE_PYTHON names one)");
    }
    found
}

#[test]
fn a_model_that_agrees_is_said_to() {
    let Some(python) = python() else { return };
    let place = Workplace::with_models();
    let ended = place.ok(&format!("check model.onnx --dim batch=3 --python {}", python.display()));
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].starts_with("model.onnx agrees with ONNX Runtime "), "{}", ended.out);
    assert!(lines[1].starts_with("  y [3, 5]  max abs "), "{}", ended.out);
    let answer = place.json(&format!("check model.onnx --dim batch=3 --python {}", python.display()));
    assert_eq!((&answer["agrees"], &answer["outputs"][0]["difference"]["wrong"]), (&Value::Bool(true), &0.into()));
}

#[test]
fn the_first_operator_that_differs_is_named() {
    let Some(python) = python() else { return };
    let place = Workplace::with_models();
    // In half the precision every convolution differs by more than this.
    let args = format!(
        "check model.onnx --dim batch=1 --precision float16 --rtol 1e-7 --atol 1e-9 --python {}",
        python.display()
    );
    let ended = place.run(&args);
    assert_eq!(ended.code, 4, "{}{}", ended.out, ended.err);
    assert!(ended.out.starts_with("model.onnx differs from ONNX Runtime "), "{}", ended.out);
    let found = "error[E0607]: the first operator that differs is Conv (node `Conv_of_a`): max abs ";
    assert!(ended.err.contains(found), "{}", ended.err);
    let answer = place.run(&format!("{args} --json"));
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!((&answer["first_different"]["node"], &answer["agrees"]), (&"Conv_of_a".into(), &Value::Bool(false)));
}

#[test]
fn what_differs_inside_of_loops_and_branches_is_named() {
    let Some(python) = python() else { return };
    let place = Workplace::new();
    std::fs::write(place.path("nested.onnx"), relaxide_testkit::models::nested()).unwrap();
    place.ok(&format!("check nested.onnx --python {}", python.display()));
    let args = format!("check nested.onnx --precision float16 --rtol 1e-7 --atol 1e-9 --python {}", python.display());
    let ended = place.run(&args);
    assert_eq!(ended.code, 4, "{}{}", ended.out, ended.err);
    let found = "the first operator that differs is MatMul (node `MatMul_of_then`, inside If `If_of_next`, the branch that is taken, \
                 inside Loop `Loop_of_y`, the first iteration): max abs ";
    assert!(ended.err.split_whitespace().collect::<Vec<_>>().join(" ").contains(found), "{}", ended.err);
    let answer = place.run(&format!("{args} --json"));
    let answer: Value = serde_json::from_str(&answer.out).unwrap();
    let first = &answer["first_different"];
    assert_eq!(
        (&first["node"], &first["within"][0]),
        (&"MatMul_of_then".into(), &"Loop `Loop_of_y`, the first iteration".into())
    );
    assert_eq!(first["not_compared"], Value::Null);
}

#[test]
fn a_benchmark_takes_turns_and_reports_the_ratio() {
    let Some(python) = python() else { return };
    let place = Workplace::with_models();
    let args = format!("bench model.onnx --dim batch=1 --runs 4 --vs onnxruntime --python {}", python.display());
    let answer = place.json(&args);
    let median = |times: &Value| times["median_ms"].as_f64().unwrap();
    let ratio = median(&answer["onnxruntime"]["times"]) / median(&answer["relaxide"]);
    assert!((answer["ratio"].as_f64().unwrap() - ratio).abs() < 1e-9);
    assert!(place.ok(&args).out.contains("\n  ratio        "));
}

#[test]
fn without_onnx_runtime_the_way_to_it_is_told() {
    let place = Workplace::with_models();
    let ended = place.run("check model.onnx --dim batch=1 --python no/python");
    assert_eq!(ended.code, 1);
    assert!(ended.err.starts_with("error[E0605]: no/python cannot be run: "), "{}", ended.err);
    assert!(ended.err.contains("no/python -m pip install onnxruntime"), "{}", ended.err);
    assert_eq!(place.run("check model.relax").code, 2);
    place.ok("compile model.relax -q");
    assert_eq!(place.run("bench model.so --dim n=1 --vs onnxruntime").code, 2);
}
