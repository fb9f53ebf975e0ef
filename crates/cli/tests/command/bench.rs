//! `relaxide bench`.

use crate::workplace::Workplace;

#[test]
fn a_benchmark_reports_the_distribution_and_memory() {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q");
    let said = place.ok("bench model.so --dim n=8 --runs 20").out;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "main(x float32[8, 4], w float32[4, 8]), 20 runs, 1 threads");
    assert!(lines[1].starts_with("  relaxide     median ") && lines[1].ends_with("calls/s"), "{said}");
    assert!(lines[2].starts_with("  peak memory  of tensors "), "{said}");
    let answer = place.json("bench model.so --dim n=8 --runs 20");
    let at = |name: &str| answer["relaxide"][name].as_f64().unwrap();
    assert!(at("min_ms") <= at("median_ms") && at("median_ms") <= at("p90_ms") && at("p99_ms") <= at("max_ms"));
    assert!(answer["peak_tensor_bytes"].as_u64().unwrap() > 0 && answer["runs"] == 20);
}

#[test]
fn a_model_is_compiled_first_and_no_runs_are_refused() {
    let place = Workplace::with_models();
    assert_eq!(place.json("bench model.onnx --dim batch=1 --runs 2")["runs"], 2);
    let none = place.run("bench model.onnx --runs 0");
    assert!(none.code == 2 && none.err.contains("--runs 0 times nothing"), "{}", none.err);
}
