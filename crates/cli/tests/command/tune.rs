//! `relaxide tune`.

use crate::workplace::{Workplace, is_made};

#[test]
fn a_search_writes_a_file_that_compile_reads() {
    let place = Workplace::with_models();
    let answer = place.json("tune model.onnx -o tuned.json --dim batch=2 --trials 5 --seed 3 --threads 1");
    assert_eq!(answer["trials"], 5);
    assert!(is_made(&place.path("tuned.json")));
    let kernels = answer["kernels"].as_array().unwrap();
    assert!(kernels.len() > 1 && kernels.iter().all(|kernel| kernel["wrong"] == 0), "{answer}");
    // It goes on where the file ends, until its time is over.
    let more = place.ok("tune model.onnx -o tuned.json --dim batch=2 --trials 3 --seconds 60");
    assert!(more.out.contains("3 trials; ") && more.err.contains("--schedule tuned.json"), "{}{}", more.out, more.err);
    let head = |file: &str| -> Vec<f64> {
        let answer = place.json(&format!("run {file} --dim batch=2"));
        serde_json::from_value(answer["outputs"][0]["head"].clone()).unwrap()
    };
    place.ok("compile model.onnx -q -o tuned.so --schedule tuned.json");
    place.ok("compile model.onnx -q -o guessed.so");
    assert!(head("tuned.so").iter().zip(head("guessed.so")).all(|(a, b)| (a - b).abs() < 1e-4));
}

#[test]
fn what_cannot_be_tuned_is_refused() {
    let place = Workplace::with_models();
    place.ok("compile model.relax -q -o model.so");
    for (args, said) in [
        ("tune model.so -o tuned.json", "model.so is compiled"),
        ("tune model.relax -o tuned.json --dim n=1 --seconds=-1", "no length of time"),
        ("tune model.relax -o model.relax", "model.relax"),
        ("tune model.relax -o tuned.json --dim n=1 --target c", "cannot be run here"),
    ] {
        let refused = place.run(args);
        assert!(refused.code == 2 && refused.err.contains(said), "{args}: {} {}", refused.code, refused.err);
    }
    place.write("tuned.json", "[]");
    let wrong = place.run("tune model.relax -o tuned.json --dim n=1");
    assert!(wrong.code > 0 && wrong.err.contains("expected to be an object"), "{}", wrong.err);
}
