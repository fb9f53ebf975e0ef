//! The protocol over HTTP.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;

use crate::models;
use crate::server::{Server, ask, floats};

#[test]
fn models_say_what_they_are_and_compute() {
    let server = Server::start(&[("scale", models::scale(2)), ("pair", models::pair())], &[]);
    assert_eq!(server.get("/v2").json()["name"], "relaxide");
    assert_eq!(server.get("/v2/health/live").status, 200);
    assert_eq!(server.get("/v2/models/pair/ready").status, 200);
    let found = server.get("/v2/models/pair/versions/1").json();
    assert_eq!(found["inputs"][1], json!({ "name": "k", "datatype": "INT64", "shape": [-1, 2] }));
    assert_eq!(found["outputs"][0], json!({ "name": "output_0", "datatype": "FP32", "shape": [-1, 2] }));

    let answer = server.infer("scale", &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.5]);
    assert_eq!(answer.numbers(), [2.0, 4.0, 6.0, 8.0, 10.0, 13.0]);
    assert_eq!(answer.json()["outputs"][0]["shape"], json!([2, 3]));

    let call = json!({
        "id": "7",
        "inputs": [
            { "name": "k", "datatype": "INT64", "shape": [1, 2], "data": [[3, -4]] },
            { "name": "x", "datatype": "FP32", "shape": [1, 2], "data": [0.5, 0.25] },
        ],
        "outputs": [{ "name": "output_1" }],
    });
    let found = server.post("/v2/models/pair/infer", &call).json();
    let wanted = json!({ "name": "output_1", "datatype": "INT64", "shape": [1, 2], "data": [6, -8] });
    assert_eq!(found, json!({ "model_name": "pair", "model_version": "1", "id": "7", "outputs": [wanted] }));
    assert_eq!(server.post("/v2/repository/index", &json!({})).json()[0]["name"], "pair");
}

#[test]
fn tensors_are_binary_where_that_is_asked_for() {
    let server = Server::start(&[("scale", models::scale(3))], &[]);
    let head = json!({
        "inputs": [{ "name": "x", "datatype": "FP32", "shape": [1, 3], "parameters": { "binary_data_size": 12 } }],
        "parameters": { "binary_data_output": true },
    })
    .to_string();
    let data: Vec<u8> = [1f32, -2.0, f32::INFINITY].iter().flat_map(|x| x.to_le_bytes()).collect();
    let body = [head.as_bytes(), &data].concat();
    let headers = [("Inference-Header-Content-Length", head.len().to_string())];
    let ask = |headers: &[(&str, String)]| ask(&server.http, "POST", "/v2/models/scale/infer", headers, &body).unwrap();
    let answer = ask(&headers);
    let length = answer.head.split("inference-header-content-length: ").nth(1).unwrap();
    let length: usize = length.lines().next().unwrap().parse().unwrap();
    let wanted: Vec<u8> = [3f32, -6.0, f32::INFINITY].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(answer.body[length..], wanted);
    let found: serde_json::Value = serde_json::from_slice(&answer.body[..length]).unwrap();
    assert_eq!(found["outputs"][0]["parameters"]["binary_data_size"], 12);
    // Lengths that do not add up are errors, not memory.
    for length in ["0", "5", "99999999999999999999", "-1", "x"] {
        assert_eq!(ask(&[("Inference-Header-Content-Length", length.to_string())]).status, 400, "{length}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let server = Server::start(&[("scale", models::scale(2))], &[]);
    for (answer, status, wanted) in [
        (server.get("/v2/models/other"), 404, "there is no model \"other\"; served are: scale"),
        (server.get("/v2/models/scale/versions/9"), 404, "has no version \"9\""),
        (server.get("/v3"), 404, "begin at /v2"),
        (server.get("/v2/models/scale/infer"), 405, "is asked by POST"),
        (server.infer("scale", &[1, 4], &[1.0; 4]), 400, "the model takes [-1, 3]"),
        (server.infer("scale", &[1, 3], &[1.0; 4]), 400, "takes 12 bytes, but 16"),
        (server.infer("scale", &[-1, 3], &[]), 400, "negative"),
        (server.infer("other", &[1, 3], &[1.0; 3]), 404, "no model"),
        (server.post("/v2/models/scale/infer", &json!({ "inputs": [] })), 400, "input \"x\" is missing"),
        (server.post("/v2/models/scale/infer", &json!([])), 400, "cannot be read"),
        (server.post("/v2/repository/models/other/load", &json!({})), 404, "no model"),
    ] {
        assert_eq!(answer.status, status, "{wanted}");
        assert!(answer.error().contains(wanted), "{}", answer.error());
    }
    let compressed = [("Content-Encoding", "gzip".to_string())];
    let answer = ask(&server.http, "POST", "/v2/models/scale/infer", &compressed, b"x").unwrap();
    assert_eq!(answer.status, 415);
}

#[test]
fn what_is_no_http_harms_nobody() {
    let server = Server::start(&[("scale", models::scale(2))], &[]);
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
    let hostile: [&[u8]; 6] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"POST /v2/models/scale/infer HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"POST /v2/models/scale/infer HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"POST /v2/models/scale/infer HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nab",
        long.as_bytes(),
    ];
    for bytes in hostile {
        for address in [&server.http, &server.grpc] {
            let mut stream = TcpStream::connect(address).unwrap();
            // The server may hang up before all is written.
            let _ = stream.write_all(bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut answer = Vec::new();
            let _ = stream.read_to_end(&mut answer);
            let text = String::from_utf8_lossy(&answer);
            assert!(!text.contains("200 OK"), "{text}");
        }
    }
    assert_eq!(server.infer("scale", &[1, 3], &[1.0; 3]).numbers(), [2.0; 3]);
}

#[test]
fn a_connection_serves_one_request_after_another() {
    let server = Server::start(&[("scale", models::scale(2))], &[]);
    let mut stream = TcpStream::connect(&server.http).unwrap();
    let body = floats(&[1, 3], &[1.0, 2.0, 3.0]).to_string();
    let request =
        format!("POST /v2/models/scale/infer HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    // Two at once, and a last one that ends it.
    stream.write_all(request.repeat(2).as_bytes()).unwrap();
    stream.write_all(request.replace("Host: a", "Host: a\r\nConnection: close").as_bytes()).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("\"data\":[2,4,6]").count(), 3, "{answers}");
}
