//! Workers that are killed: every request that was taken in is answered.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::batches::metric;
use crate::models;
use crate::server::{Server, signal};

#[test]
fn a_killed_worker_loses_no_request() {
    let options = ["--workers", "2", "--max-batch", "512", "--watch", "0"];
    let server = Server::start(&[("slow", models::slow()), ("scale", models::scale(2))], &options);
    let is_done = AtomicBool::new(false);
    let killed = thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut killed = 0;
            // A batch is given up after four.
            while killed < 3 && !is_done.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(120));
                if let Some(worker) = server.workers().first() {
                    signal(*worker, "KILL");
                    killed += 1;
                }
            }
            killed
        });
        let asked: Vec<_> = (0..6)
            .map(|k| {
                let server = &server;
                scope.spawn(move || {
                    for i in 0..8 {
                        let data: Vec<f64> = (0..256).map(|j| f64::from(k * 1000 + i * 10 + j)).collect();
                        let answer = server.infer("slow", &[256, 1], &data);
                        assert_eq!(answer.status, 200, "{}", String::from_utf8_lossy(&answer.body));
                        assert_eq!(answer.numbers(), data);
                        assert_eq!(server.infer("scale", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
                    }
                })
            })
            .collect();
        let ended: Vec<_> = asked.into_iter().map(thread::ScopedJoinHandle::join).collect();
        is_done.store(true, Ordering::Relaxed);
        let killed = killer.join().unwrap();
        ended.into_iter().for_each(|ended| ended.unwrap());
        killed
    });
    assert!(killed > 0);
    // The last may not have been missed yet.
    assert!(metric(&server, "relaxide_worker_restarts_total") >= 1.0);
}

#[test]
fn workers_end_with_their_server() {
    let mut server = Server::start(&[("scale", models::scale(2))], &["--workers", "2"]);
    let workers = server.workers();
    assert_eq!(workers.len(), 2);
    server.signal("KILL");
    assert_eq!(server.wait(), None);
    let is_gone = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        status.is_empty() || status.contains(") Z ")
    };
    server.wait_until(|_| workers.iter().all(is_gone));
}

#[test]
fn a_worker_that_takes_too_long_is_ended() {
    let server = Server::start(&[("slow", models::slow())], &["--workers", "1", "--timeout", "60"]);
    let mut call = crate::server::floats(&[256, 1], &[1.0; 256]);
    call["parameters"] = serde_json::json!({ "timeout": 3000 });
    assert_eq!(server.post("/v2/models/slow/infer", &call).status, 504);
    assert_eq!(server.infer("slow", &[2, 1], &[1.0, 2.0]).numbers(), [1.0, 2.0]);
}

#[test]
fn weights_beside_the_library_come_along() {
    for workers in ["0", "1"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("slow.so");
        models::compile(&models::slow(), &path, &["--weights", "safetensors"]);
        assert!(folder.path().join("slow.safetensors").exists());
        let server = Server::of_files(folder, &[path], &["--workers", workers]);
        assert_eq!(server.infer("slow", &[2, 1], &[1.0, 2.0]).numbers(), [1.0, 2.0]);
    }
}
