//! `relaxide inspect`.

use crate::workplace::Workplace;

#[test]
fn every_view_of_every_kind_of_file() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q");
    let starts = [
        (
            "model.so",
            "signature",
            "main(image: float32[batch, 3, 8, 8]) -> R.Tensor((batch, 5), dtype=\"float32\")\n    returns y\n    batch of any",
        ),
        ("model.so", "text", "@main:"),
        ("model.so", "python", "ib = "),
        ("model.so", "stats", "Relax VM executable statistics:"),
        ("model.so", "graph", "<svg xmlns="),
        ("model.onnx", "signature", "main(image: float32[batch, 3, 8, 8])"),
        ("model.onnx", "script", "# from typing import TypeVar"),
        ("model.onnx", "stats", "functions  1\nkernels    0\nconstants  "),
        ("model.onnx", "graph", "<svg xmlns="),
        ("model.relax", "script", "# from t"),
    ];
    for (file, view, start) in starts {
        let ended = place.ok(&format!("inspect {file} --show {view}"));
        assert!(ended.out.starts_with(start), "{file} {view}: {}", ended.out.chars().take(200).collect::<String>());
    }
    for (file, view) in [("model.so", "script"), ("model.onnx", "text"), ("model.relax", "python")] {
        assert_eq!(place.run(&format!("inspect {file} --show {view}")).code, 2, "{file} {view}");
    }
}

#[test]
fn graphs_show_operators_of_programs_and_kernels_of_compiled_models() {
    let place = Workplace::with_models();
    place.ok("compile model.onnx -q");
    place.ok("inspect model.onnx --show graph -o graph.svg");
    let program = std::fs::read_to_string(place.path("graph.svg")).unwrap();
    for label in ["image", "nn.conv2d", "nn.relu", "matmul", "output"] {
        assert!(program.contains(&format!(">{label}<")), "{label}");
    }
    assert!(program.contains("@media(prefers-color-scheme:dark)") && program.contains("class=\"node plain input\""));
    let compiled = place.ok("inspect model.so --show graph").out;
    assert!(compiled.contains(">fused_conv2d_relu<") && compiled.contains(">output<"), "{compiled}");
    let nodes = compiled.matches("class=\"node ").count();
    assert_eq!(compiled.matches("class=\"edge\"").count(), nodes - 1, "a chain");
    let missing = place.run("inspect model.so --show graph --function nobody");
    assert!(missing.code == 2 && missing.err.contains("the file has: main"), "{}", missing.err);
}

#[test]
fn json_has_dimensions_and_counts() {
    let place = Workplace::with_models();
    let signature = place.json("inspect model.relax");
    assert_eq!(signature["functions"][0]["name"], "main");
    assert_eq!(signature["functions"][0]["dims"], serde_json::json!([{ "name": "n", "min": 0, "max": null }]));
    let stats = place.json("inspect model.onnx --show stats");
    assert_eq!(stats["stats"]["calls"]["matmul"], 1);
    assert_eq!(stats["stats"]["constants"], 2);
}

#[test]
fn the_machine_of_a_target_is_shown() {
    let place = Workplace::new();
    let text = place.ok("inspect --machine --target x86-64-v3").out;
    assert!(text.contains("vectors  32 bytes, 16 registers, multiply-add in one instruction"), "{text}");
    let several = place.json("inspect --machine --target x86-64-v2,znver5");
    let of = |at: usize, what: &str| several["machines"][at][what].as_i64();
    assert_eq!((of(0, "vector_bytes"), of(1, "vector_bytes")), (Some(16), Some(64)));
    assert_eq!((of(0, "l2_bytes"), of(1, "l2_bytes")), (Some(512 << 10), Some(1 << 20)));
    let host = place.json("inspect --machine");
    let cores = std::thread::available_parallelism().unwrap().get() as u64;
    assert_eq!(host["machines"][0]["cores"], cores);
    assert_eq!(place.json("inspect --machine --target cuda")["machines"][0]["device"]["access_bytes"], 16);
    // Of machines of other sorts nothing of this one is shown.
    let other = place.ok("inspect --machine --target qcom/hexagon-v68").out;
    assert!(other.contains("vectors  not known") && other.contains("threads  4, which the target says"), "{other}");
    let other = place.json("inspect --machine --target ext_dev");
    assert!(other["machines"][0]["target"] == "ext_dev" && other["machines"][0]["cores"].is_null(), "{other}");
    let neither = place.run("inspect");
    assert!(neither.code == 2 && neither.err.contains("<FILE>"), "{}", neither.err);
    let both = place.run("inspect --machine model.so");
    assert!(both.code == 2 && both.err.contains("--machine"), "{}", both.err);
}
