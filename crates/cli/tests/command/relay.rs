//! Programs in Relay: either machine compiles and runs them.

use relaxide::ffi::Tensor;
use relaxide::relay_vm::params::save_params;

use crate::workplace::Workplace;

const LAYER: &str = r#"#[version = "0.0.5"]
def @main(%x: Tensor[(?, 3), float32], %w: Tensor[(2, 3), float32]) -> Tensor[(?, 2), float32] {
  nn.relu(nn.dense(%x, %w, units=2))
}
"#;

const LIST: &str = r#"#[version = "0.0.5"]
def @main(%n: int32) -> (int32, List[int32]) {
  let %total = ref(0);
  let %u = ref_write(%total, @sum(Cons(%n, Cons(2, Nil))));
  (ref_read(%total), Cons(%n, Nil))
}
"#;

/// A program whose values go from the host to a GPU, with the devices in its metadata.
const DEVICES: &str = r##"#[version = "0.0.5"]
def @main(%x: Tensor[(2), float32]) {
  exp(on_device(exp(%x), virtual_device=meta[VirtualDevice][0], constrain_result=False))
}

#[metadata]
{"root": 1, "nodes": [{"type_key": ""}, {"type_key": "Map", "keys": ["VirtualDevice"], "data": [2]},
 {"type_key": "Array", "data": [3]}, {"type_key": "VirtualDevice", "attrs": {"device_type_int": "2", "memory_scope": "4",
 "target": "0", "virtual_device_id": "0"}}, {"type_key": "runtime.String"}], "b64ndarrays": [],
 "attrs": {"tvm_version": "0.16.0"}}
"##;

fn with_programs() -> Workplace {
    let place = Workplace::new();
    place.write("layer.relay", LAYER);
    place.write("list.relay", LIST);
    let weight = Tensor::from_slice(&[1f32, 2.0, 3.0, -1.0, 0.0, 1.0], &[2, 3]).unwrap();
    std::fs::write(place.path("layer.params"), save_params([("w", &weight)]).unwrap()).unwrap();
    place
}

#[test]
fn either_machine_compiles_a_program_and_runs_it() {
    let place = with_programs();
    for machine in ["", " --machine relax", " --machine relay"] {
        place.ok(&format!("compile layer.relay -q -o layer.so --params layer.params{machine}"));
        let signature = place.ok("inspect layer.so").out;
        assert!(signature.starts_with("main(x: float32[n, 3]) -> "), "{machine}: {signature}");
        assert!(signature.contains("n of any length") && signature.contains("compiled by Relaxide"), "{signature}");
        let run = place.json("run layer.so --input x=1,1,1,2,0,2 --shape x=2,3");
        assert_eq!(run["outputs"][0]["shape"], serde_json::json!([2, 2]), "{machine}: {run}");
        assert_eq!(run["outputs"][0]["head"], serde_json::json!([6.0, 0.0, 8.0, 0.0]), "{machine}: {run}");
        assert!(place.json("bench layer.so --dim n=2 --runs 2")["relaxide"]["median_ms"].as_f64().unwrap() > 0.0);
        assert!(place.ok("profile layer.so --dim n=2 --runs 2 --no-roof").out.contains("matmul"), "{machine}");
        place.ok("inspect layer.so --show stats");
        let wrong = place.run("run layer.so --input x=1,1,1,2 --shape x=1,4");
        assert!(wrong.err.contains("input x has length 4, not 3, on axis 1"), "{machine}: {}", wrong.err);
    }
    assert!(place.ok("inspect layer.so --show text").out.contains("invoke_packed"));
    assert!(place.ok("inspect layer.relay").out.starts_with("main(x: float32[n, 3], w: float32[2, 3]) -> "));
    assert!(place.ok("inspect layer.relay --show script").out.contains("R.nn.relu"));
    // Without a file between.
    for machine in ["relax", "relay"] {
        let run = place.json(&format!("run layer.relay --machine {machine} --params layer.params --dim n=3"));
        assert_eq!(run["outputs"][0]["shape"], serde_json::json!([3, 2]));
    }
}

#[test]
fn data_and_references_run_in_both_and_constructors_have_their_names() {
    let place = with_programs();
    let run = place.ok("run list.relay --machine relay --input n=5").out;
    assert_eq!(
        run.lines().filter(|line| line.starts_with("output")).collect::<Vec<_>>(),
        ["output 0: int32[]", "output 1: Cons", "output 1.0: int32[]", "output 1.1: Nil"]
    );
    let run = place.json("run list.relay --input n=5");
    assert_eq!(
        (&run["outputs"][0]["head"], &run["outputs"][2]["head"]),
        (&serde_json::json!([7.0]), &serde_json::json!([5.0]))
    );
}

#[test]
fn graphs_that_the_reference_saved_are_programs_too() {
    let place = Workplace::new();
    for name in ["list_sum", "dense"] {
        let saved = format!("{}/../../tests/relay/{name}.mod.json", env!("CARGO_MANIFEST_DIR"));
        std::fs::copy(saved, place.path("saved.json")).unwrap();
        let signature = place.ok("inspect saved.json").out;
        assert!(signature.contains("main("), "{signature}");
        for machine in ["relax", "relay"] {
            place.ok(&format!("compile saved.json -q -o saved.so --machine {machine}"));
            place.ok("run saved.so");
        }
    }
    place.write("graph.json", r#"{"nodes": [], "arg_nodes": [], "heads": [], "node_row_ptr": [0], "attrs": {}}"#);
    let text = place.run("compile graph.json").err;
    assert!(text.contains("graph of the graph executor") && text.contains("graph_executor.create"), "{text}");
    place.write("other.json", "{}");
    assert!(place.run("compile other.json").err.contains("other.json: the saved graph cannot be read"));
}

#[test]
fn what_a_machine_does_not_have_is_told_with_the_option_that_has_it() {
    let place = with_programs();
    for option in
        ["--exec-mode compiled", "--pipeline default-build", "--weights safetensors", "--dim n=2", "--prefix a_"]
    {
        let ended = place.run(&format!("compile layer.relay --machine relay {option}"));
        assert_eq!(ended.code, 2, "{option}: {}", ended.err);
        assert!(ended.err.contains("--machine relax"), "{option}: {}", ended.err);
    }
    let object = place.run("compile layer.relay --machine relay -o layer.o");
    assert!(object.err.contains("is written as a shared library (.so)"), "{}", object.err);
    let unknown = place.run("compile layer.relay --params list.relay");
    assert_eq!(unknown.code, 1, "{}", unknown.err);
    place.write("model.relax", relaxide_testkit::models::PROGRAM);
    let other = place.run("compile model.relax --machine relay");
    assert!(other.code == 2 && other.err.contains("runs programs in Relay"), "{}", other.err);
    place.ok("compile layer.relay -q --machine relay");
    let given = place.run("run layer.so --machine relay");
    assert!(given.code == 2 && given.err.contains("leave --machine out"), "{}", given.err);
    let shape = place.run("compile layer.relay --shape x=1,3");
    assert!(shape.code == 2 && shape.err.contains("whose shapes stand in its text"), "{}", shape.err);
}

#[test]
fn a_program_over_devices_needs_the_relay_vm() {
    let place = Workplace::new();
    place.write("devices.relay", DEVICES);
    let ended = place.run("compile devices.relay");
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(ended.err.contains("several devices") && ended.err.contains("--machine relay"), "{}", ended.err);
}
