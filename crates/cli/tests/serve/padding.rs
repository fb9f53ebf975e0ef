//! Requests of other lengths are padded and joined, and give what they give alone.

use std::process::{Command, Stdio};
use std::thread;

use serde_json::{Value, json};

use crate::batches::metric;
use crate::models;
use crate::server::Server;

const MASKED: &[&str] = &["--bucket", "masked/x:1=4,8", "--pad", "masked/x=7", "--pad", "mask=0"];

fn masked(length: usize) -> Value {
    let x: Vec<f64> = (1..=length).map(|i| i as f64).collect();
    let input =
        |name: &str, data: Vec<f64>| json!({ "name": name, "datatype": "FP32", "shape": [1, length], "data": data });
    json!({ "inputs": [input("x", x), input("mask", vec![1.0; length])] })
}

fn check(server: &Server, length: usize) {
    let answer = server.post("/v2/models/masked/infer", &masked(length));
    assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
    let outputs = &answer.json()["outputs"];
    assert_eq!(outputs[0]["shape"], json!([1, length]));
    assert_eq!(answer.numbers(), (1..=length).map(|i| 2.0 * i as f64).collect::<Vec<_>>());
    assert_eq!(outputs[1]["data"][0].as_f64(), Some((length * (length + 1) / 2) as f64));
}

#[test]
fn requests_of_other_lengths_are_joined_and_cut() {
    for more in [&["--check-padding", "0"][..], &["--check-padding", "0", "--workers", "1"], &["--check-padding", "3"]]
    {
        let options = [MASKED, &["--max-batch", "16", "--max-delay", "100"], more].concat();
        let server = Server::start(&[("masked", models::masked()), ("scale", models::scale(2))], &options);
        thread::scope(|scope| {
            for i in 0..24 {
                let server = &server;
                scope.spawn(move || check(server, 1 + i % 4));
            }
        });
        check(&server, 8);
        check(&server, 13);
        assert_eq!(metric(&server, "relaxide_padded_total{model=\"masked\"}"), 18.0);
        assert_eq!(metric(&server, "relaxide_padding_differed_total{model=\"masked\"}"), 0.0);
        let batches = metric(&server, "relaxide_batch_requests_count{model=\"masked\"}");
        assert!(batches < 26.0, "{batches} batches");
        // Another model is not padded.
        assert_eq!(server.infer("scale", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
    }
}

#[test]
fn a_model_that_padding_changes_is_padded_no_more() {
    let options = ["--bucket", "x:1=4,8", "--pad", "x=0"];
    let server = Server::start(&[("mean", models::mean())], &options);
    for _ in 0..3 {
        assert_eq!(server.infer("mean", &[1, 3], &[1.0, 2.0, 3.0]).numbers(), [2.0]);
    }
    assert_eq!(metric(&server, "relaxide_padded_total{model=\"mean\"}"), 1.0);
    assert_eq!(metric(&server, "relaxide_padding_differed_total{model=\"mean\"}"), 1.0);
}

#[test]
fn settings_that_do_not_fit_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("masked.so");
    models::compile(&models::masked(), &library, &[]);
    let refused = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relaxide"));
        command.arg("serve").arg(&library).args(["--http", "127.0.0.1:0", "--grpc", "off"]).args(options);
        let done = command.stdin(Stdio::null()).output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    for (options, code, wanted) in [
        (&["--bucket", "x:1=4"][..], 1, "give --pad x=VALUE"),
        (&["--bucket", "y:1=4"], 1, "--bucket y: no model has such an input"),
        (&["--bucket", "x:1=4", "--pad", "x=a"], 1, "has the element `a`, which is no FP32"),
        (&["--bucket", "x:1=4", "--pad", "x=0", "--pad", "mask=0", "--pad", "z=0"], 1, "--pad z: no model"),
        (&["--bucket", "x=4"], 2, "is no bucket, such as input_ids:1=16,32,64"),
    ] {
        let (found, message) = refused(options);
        assert!(found == Some(code) && message.contains(wanted), "{found:?} {message}");
    }
}
