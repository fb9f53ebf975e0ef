//! Requests that are joined give what they give alone.

use std::thread;

use crate::models;
use crate::server::Server;

/// A counter of the metrics.
pub fn metric(server: &Server, name: &str) -> f64 {
    let text = String::from_utf8(server.get("/metrics").body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
}

/// Asks many times at once, with as many rows as `rows` says, and checks each.
fn ask_at_once(server: &Server, count: usize, rows: impl Fn(usize) -> usize + Sync) {
    thread::scope(|scope| {
        for i in 0..count {
            let rows = rows(i);
            scope.spawn(move || {
                let data: Vec<f64> = (0..rows * 3).map(|k| (i * 100 + k) as f64).collect();
                let answer = server.infer("scale", &[rows as i64, 3], &data);
                assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                assert_eq!(answer.numbers(), data.iter().map(|x| x * 2.0).collect::<Vec<_>>());
            });
        }
    });
}

#[test]
fn requests_are_joined_and_parted() {
    let server = Server::start(&[("scale", models::scale(2))], &["--max-batch", "16", "--max-delay", "200"]);
    ask_at_once(&server, 24, |i| 1 + i % 3);
    assert_eq!(metric(&server, "relaxide_batch_requests_sum{model=\"scale\"}"), 24.0);
    let batches = metric(&server, "relaxide_batch_requests_count{model=\"scale\"}");
    assert!(batches < 24.0, "{batches} batches of 24 requests");
    // More rows than a batch takes are a call of their own, and none at all too.
    ask_at_once(&server, 2, |i| i * 40);
}

#[test]
fn a_request_that_fails_fails_alone() {
    let gather = "@I.ir_module\nclass Module:\n    @R.function\n    def main(x: R.Tensor((\"n\",), \"int64\"), w: R.Tensor((4,), \"float32\")):\n        \
        with R.dataflow():\n            gv = R.take(w, x, axis=0)\n            R.output(gv)\n        return gv\n";
    // The table is no input with the dimension, so that nothing is joined; as a constant it is none.
    let joined = gather
        .replace(", w: R.Tensor((4,), \"float32\")", "")
        .replace("R.take(w,", "R.take(R.ones((4,), \"float32\"),");
    let server = Server::start(&[("gather", joined)], &["--max-batch", "8", "--max-delay", "200"]);
    thread::scope(|scope| {
        for index in [0, 1, 9, 3] {
            let server = &server;
            scope.spawn(move || {
                let input = serde_json::json!({ "name": "x", "datatype": "INT64", "shape": [1], "data": [index] });
                let answer = server.post("/v2/models/gather/infer", &serde_json::json!({ "inputs": [input] }));
                assert_eq!(
                    answer.status,
                    if index < 4 { 200 } else { 400 },
                    "{}",
                    String::from_utf8_lossy(&answer.body)
                );
            });
        }
    });
}

#[test]
fn what_depends_on_other_rows_by_its_types_is_not_joined() {
    let server = Server::start(&[("total", models::total())], &["--max-batch", "16", "--max-delay", "200"]);
    thread::scope(|scope| {
        for i in 0..6 {
            let server = &server;
            scope.spawn(move || {
                let value = f64::from(i);
                assert_eq!(server.infer("total", &[2, 3], &[value; 6]).numbers(), [value * 2.0; 3]);
            });
        }
    });
    assert_eq!(metric(&server, "relaxide_batch_requests_count{model=\"total\"}"), 6.0);
}
