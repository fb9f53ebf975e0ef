//! What is too much is refused, and what was taken in is answered before the end.

use std::thread;

use serde_json::json;

use crate::batches::metric;
use crate::models;
use crate::server::{Server, ask, floats};

/// A request to the slow model.
fn slow(server: &Server) -> crate::server::Answer {
    let data: Vec<f64> = (0..256).map(f64::from).collect();
    server.infer("slow", &[256, 1], &data)
}

#[test]
fn a_full_queue_refuses_and_the_rest_is_answered() {
    let server = Server::start(&[("slow", models::slow())], &["--max-queue", "4"]);
    let statuses: Vec<u16> = thread::scope(|scope| {
        let asked: Vec<_> = (0..40).map(|_| scope.spawn(|| slow(&server).status)).collect();
        asked.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let count = |status| statuses.iter().filter(|found| **found == status).count();
    assert_eq!(count(200) + count(429), 40, "{statuses:?}");
    assert!(count(429) > 0 && count(200) >= 4, "{statuses:?}");
    let refused = metric(&server, "relaxide_failures_total{model=\"slow\",fault=\"overload\"}");
    assert_eq!(refused as usize, count(429));
}

#[test]
fn bodies_and_times_have_limits() {
    let programs = [("slow", models::slow()), ("scale", models::scale(2))];
    let server = Server::start(&programs, &["--max-body", "64k", "--max-memory", "100k", "--timeout", "20"]);
    let answer = server.infer("scale", &[10_000, 3], &[1.5; 30_000]);
    assert_eq!((answer.status, answer.error().contains("65536")), (413, true));
    // Its length is not said ahead.
    let chunked = [("Transfer-Encoding", "chunked".to_string())];
    let mut body = Vec::new();
    for _ in 0..100 {
        body.extend_from_slice(b"400\r\n");
        body.extend_from_slice(&[b'a'; 1024]);
        body.extend_from_slice(b"\r\n");
    }
    let path = "/v2/models/scale/infer";
    if let Ok(answer) = raw(&server.http, path, &chunked, &body) {
        assert_eq!(answer, 413);
    }
    let mut call = floats(&[256, 1], &[1.0; 256]);
    call["parameters"] = json!({ "timeout": 1000 });
    let answer = server.post("/v2/models/slow/infer", &call);
    assert_eq!((answer.status, answer.error().contains("within 1 ms")), (504, true), "{}", answer.error());
    assert_eq!(server.infer("scale", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
}

/// The status of a request whose head says no length.
fn raw(address: &str, path: &str, headers: &[(&str, String)], body: &[u8]) -> std::io::Result<u16> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address)?;
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    stream.write_all(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{headers}\r\n").as_bytes())?;
    stream.write_all(body)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).ok_or_else(|| std::io::Error::other(answer))
}

#[test]
fn the_end_answers_what_was_taken_in() {
    for options in [&[][..], &["--workers", "1"]] {
        let mut server = Server::start(&[("slow", models::slow())], options);
        let address = server.http.clone();
        let ask_slow = |address: String| {
            let data: Vec<f64> = (0..256).map(f64::from).collect();
            let body = floats(&[256, 1], &data).to_string();
            // A connection that the server has not seen when it ends is refused.
            let answer = ask(&address, "POST", "/v2/models/slow/infer", &[], body.as_bytes()).ok()?;
            assert_eq!((answer.status, answer.numbers()), (200, data));
            Some(())
        };
        let asked: Vec<_> = (0..8)
            .map(|_| {
                let address = address.clone();
                thread::spawn(move || ask_slow(address))
            })
            .collect();
        let waiting = || metric(&server, "relaxide_queue{model=\"slow\"}") as usize;
        let answered = || metric(&server, "relaxide_requests_total{model=\"slow\"}") as usize;
        let mut taken = 0;
        while taken < 3 {
            // In this order none counts twice.
            taken = answered() + waiting();
        }
        server.signal("TERM");
        let answered = asked.into_iter().filter_map(|thread| thread.join().unwrap()).count();
        assert!(answered >= taken, "{taken} were taken in, {answered} answered");
        assert_eq!(server.wait(), Some(0));
        assert!(std::net::TcpStream::connect(&address).is_err());
    }
}
