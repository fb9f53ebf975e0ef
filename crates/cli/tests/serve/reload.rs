//! Models whose files change: later requests get the new one, and no request is lost.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::json;

use crate::models;
use crate::server::{Server, signal};

/// Puts another model in the place of one, whole.
fn replace(server: &Server, name: &str, text: &str) {
    let beside = server.folder.path().join("beside.so");
    models::compile(text, &beside, &[]);
    std::fs::rename(beside, server.file(name)).unwrap();
}

fn answers(server: &Server, factor: f64) -> bool {
    server.infer("scale", &[1, 3], &[1.0; 3]).numbers() == [factor; 3]
}

#[test]
fn a_file_that_changes_is_loaded_while_requests_run() {
    for options in [&["--watch", "0.05"][..], &["--watch", "0.05", "--workers", "2"]] {
        let server = Server::start(&[("scale", models::scale(2))], options);
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut last = 2.0;
                    while !is_done.load(Ordering::Relaxed) {
                        let answer = server.infer("scale", &[1, 3], &[1.0; 3]);
                        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                        let numbers = answer.numbers();
                        // Never back to the one before.
                        assert!(
                            [2.0, 3.0, 5.0].contains(&numbers[0]) && numbers[0] >= last,
                            "{numbers:?} after {last}"
                        );
                        last = numbers[0];
                    }
                });
            }
            for factor in [3, 5] {
                replace(&server, "scale", &models::scale(factor));
                server.wait_until(|server| answers(server, f64::from(factor)));
            }
            is_done.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn loads_are_asked_for_and_a_bad_file_changes_nothing() {
    let server = Server::start(&[("scale", models::scale(2))], &["--watch", "0"]);
    replace(&server, "scale", &models::scale(7));
    assert!(answers(&server, 2.0));
    assert_eq!(server.post("/v2/repository/models/scale/load", &json!({})).status, 200);
    assert!(answers(&server, 7.0));
    replace(&server, "scale", &models::scale(8));
    server.signal("HUP");
    server.wait_until(|server| answers(server, 8.0));
    let bad = server.folder.path().join("bad.so");
    std::fs::write(&bad, "no library").unwrap();
    std::fs::rename(bad, server.file("scale")).unwrap();
    let answer = server.post("/v2/repository/models/scale/load", &json!({}));
    assert!(answer.status == 400 || answer.status == 500, "{}", answer.status);
    assert!(answer.error().contains("model \"scale\""), "{}", answer.error());
    assert!(answers(&server, 8.0));
}

#[test]
fn a_worker_that_takes_anothers_place_loads_what_it_had() {
    let server = Server::start(&[("scale", models::scale(2))], &["--watch", "0", "--workers", "1"]);
    assert!(answers(&server, 2.0));
    replace(&server, "scale", &models::scale(9));
    signal(server.workers()[0], "KILL");
    assert!(answers(&server, 2.0), "the file that was loaded is served until it is loaded anew");
    server.signal("HUP");
    server.wait_until(|server| answers(server, 9.0));
}
