//! The protocol over gRPC, by a client of HTTP/2 that knows nothing of the server.

use bytes::{BufMut, Bytes, BytesMut};
use prost::Message;
use relaxide_serve::messages::*;

use crate::models;
use crate::server::Server;

/// The status of a call, and its message or what went wrong.
fn call(server: &Server, method: &str, message: &[u8]) -> (u32, Bytes) {
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(message.len() as u32);
    body.put_slice(message);
    raw(server, method, body.freeze(), &[])
}

fn raw(server: &Server, method: &str, body: Bytes, headers: &[(&str, &str)]) -> (u32, Bytes) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(&server.grpc).await.unwrap();
        let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(connection);
        let mut request = http::Request::post(format!("http://localhost/inference.GRPCInferenceService/{method}"))
            .header("content-type", "application/grpc")
            .header("te", "trailers");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (response, mut send) = client.send_request(request.body(()).unwrap(), false).unwrap();
        // The server may answer before it has read all.
        let _ = send.send_data(body, true);
        let response = response.await.unwrap();
        let (head, mut body) = response.into_parts();
        let mut data = BytesMut::new();
        while let Some(part) = body.data().await {
            let part = part.unwrap();
            let _ = body.flow_control().release_capacity(part.len());
            data.extend_from_slice(&part);
        }
        let status =
            |map: &http::HeaderMap| map.get("grpc-status").map(|status| status.to_str().unwrap().parse().unwrap());
        match status(&head.headers) {
            Some(status) => {
                let text = head.headers.get("grpc-message").map(|text| text.as_bytes().to_vec()).unwrap_or_default();
                (status, text.into())
            }
            None => {
                let trailers = body.trailers().await.unwrap().unwrap();
                (status(&trailers).unwrap(), data.freeze().slice(5..))
            }
        }
    })
}

fn ask<T: Message + Default>(server: &Server, method: &str, message: &impl Message) -> T {
    let (status, answer) = call(server, method, &message.encode_to_vec());
    assert_eq!(status, 0, "{}", String::from_utf8_lossy(&answer));
    T::decode(answer).unwrap()
}

fn input(name: &str, datatype: &str, contents: Option<Contents>) -> InferTensor {
    InferTensor { name: name.into(), datatype: datatype.into(), shape: vec![1, 2], contents, ..InferTensor::default() }
}

/// A request to `pair` with contents by type.
fn typed() -> InferRequest {
    let floats = Contents { floats: vec![0.5, 0.25], ..Contents::default() };
    let longs = Contents { longs: vec![3, -4], ..Contents::default() };
    InferRequest {
        model_name: "pair".into(),
        id: "7".into(),
        inputs: vec![input("k", "INT64", Some(longs)), input("x", "FP32", Some(floats))],
        ..InferRequest::default()
    }
}

#[test]
fn the_methods_answer() {
    let server = Server::start(&[("pair", models::pair())], &[]);
    assert!(ask::<Truth>(&server, "ServerLive", &Nothing {}).is_so);
    assert!(ask::<Truth>(&server, "ServerReady", &Nothing {}).is_so);
    assert_eq!(ask::<ServerMetadata>(&server, "ServerMetadata", &Nothing {}).name, "relaxide");
    let name = ModelName { name: "pair".into(), version: String::new() };
    assert!(ask::<Truth>(&server, "ModelReady", &name).is_so);
    let found: ModelMetadata = ask(&server, "ModelMetadata", &name);
    assert_eq!((found.inputs[1].datatype.as_str(), &found.inputs[1].shape[..]), ("INT64", &[-1, 2][..]));
    let index: Index = ask(&server, "RepositoryIndex", &IndexRequest::default());
    assert_eq!(index.models[0].name, "pair");
    let load = LoadRequest { model_name: "pair".into(), ..LoadRequest::default() };
    ask::<Nothing>(&server, "RepositoryModelLoad", &load);

    let raw_of = |floats: [f32; 2]| Bytes::from(floats.map(f32::to_le_bytes).concat());
    let longs = |longs: [i64; 2]| Bytes::from(longs.map(i64::to_le_bytes).concat());
    let raw = InferRequest {
        inputs: vec![input("k", "INT64", None), input("x", "FP32", None)],
        raw_input_contents: vec![longs([3, -4]), raw_of([0.5, 0.25])],
        ..typed()
    };
    for request in [typed(), raw] {
        let found: InferResponse = ask(&server, "ModelInfer", &request);
        assert_eq!((found.id.as_str(), found.outputs[0].name.as_str()), ("7", "output_0"));
        assert_eq!(found.raw_output_contents, [raw_of([3.5, -3.75]), longs([6, -8])]);
    }
}

#[test]
fn errors_have_a_status() {
    let server = Server::start(&[("pair", models::pair())], &["--max-body", "4k"]);
    let infer = |request: &InferRequest| call(&server, "ModelInfer", &request.encode_to_vec());
    let (status, text) = infer(&InferRequest { model_name: "other".into(), ..typed() });
    assert_eq!((status, String::from_utf8_lossy(&text).contains("there is no model")), (5, true));
    assert_eq!(infer(&InferRequest { inputs: Vec::new(), ..typed() }).0, 3);
    assert_eq!(infer(&InferRequest { raw_input_contents: vec![Bytes::new()], ..typed() }).0, 3);
    assert_eq!(infer(&InferRequest { raw_input_contents: vec![Bytes::from(vec![0; 5000]); 2], ..typed() }).0, 8);
    assert_eq!(call(&server, "ModelStreamInfer", &[]).0, 12);
    assert_eq!(call(&server, "ModelInfer", &[0xff; 40]).0, 3);
    assert_eq!(raw(&server, "ModelInfer", Bytes::from_static(&[0, 255, 255, 255, 255]), &[]).0, 3);
    assert_eq!(raw(&server, "ModelInfer", Bytes::from_static(&[1, 0, 0, 0, 0]), &[]).0, 12);
    assert_eq!(raw(&server, "ServerLive", Bytes::from_static(&[0, 0, 0]), &[]).0, 3);
    let request = typed().encode_to_vec();
    let mut body = BytesMut::from(&[0u8; 4][..]);
    body.put_u8(request.len() as u8);
    body.put_slice(&request);
    assert_eq!(raw(&server, "ModelInfer", body.clone().freeze(), &[("grpc-timeout", "1n")]).0, 4);
    assert_eq!(raw(&server, "ModelInfer", body.freeze(), &[("grpc-timeout", "10S")]).0, 0);
}
