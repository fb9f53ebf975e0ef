//! Answers of HTTP: JSON, JSON with tensors in binary form behind it, and errors.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};

use super::elements::{self, push_json_text};
use crate::repository::{Listed, Loaded};
use crate::service::{MODEL_VERSION, PLATFORM};
use crate::statistics::{Computed, Counts, Total};
use crate::{Error, Port, Tensor};

/// Says how much of a body is JSON.
pub(crate) const HEADER_LENGTH: HeaderName = HeaderName::from_static("inference-header-content-length");

/// An answer.
pub(crate) type Answer = Response<Full<Bytes>>;

/// An answer of a status and a type.
pub(crate) fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// JSON.
pub(crate) fn json(value: &Value) -> Answer {
    answer(StatusCode::OK, "application/json", value.to_string())
}

/// An error, as `{"error": …}`.
pub(crate) fn error(error: &Error) -> Answer {
    let status = StatusCode::from_u16(error.fault.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer(status, "application/json", json!({ "error": error.message }).to_string())
}

/// What a model takes and returns.
pub(crate) fn metadata(model: &Loaded) -> Answer {
    let port = |port: &Port| json!({ "name": port.name, "datatype": port.datatype.map_or("", |d| d.name()), "shape": port.shape() });
    let ports = |ports: &[Port]| ports.iter().map(port).collect::<Vec<Value>>();
    json(&json!({
        "name": model.name, "versions": [MODEL_VERSION], "platform": PLATFORM,
        "inputs": ports(&model.signature.inputs), "outputs": ports(model.signature.outputs.as_deref().unwrap_or_default()),
    }))
}

/// A model of an index.
pub(crate) fn listed(model: &Listed) -> Value {
    json!({ "name": model.name, "version": MODEL_VERSION, "state": model.state(), "reason": model.reason })
}

/// What is counted of models.
pub(crate) fn statistics(models: &[(String, Counts)]) -> Answer {
    let total = |total: &Total| json!({ "count": total.count, "ns": total.nanos });
    let none = Total::default();
    let of_model = |(name, counts): &(String, Counts)| {
        let batch = |(rows, computed): (&usize, &Computed)| {
            json!({
                "batch_size": rows, "compute_input": total(&computed.input), "compute_infer": total(&computed.run),
                "compute_output": total(&computed.output),
            })
        };
        json!({
            "name": name, "version": MODEL_VERSION, "last_inference": counts.last,
            "inference_count": counts.inferences, "execution_count": counts.executions,
            "inference_stats": {
                "success": total(&counts.success), "fail": total(&counts.failure), "queue": total(&counts.queue),
                "compute_input": total(&counts.computed.input), "compute_infer": total(&counts.computed.run),
                "compute_output": total(&counts.computed.output), "cache_hit": total(&none), "cache_miss": total(&none),
            },
            "response_stats": {},
            "batch_stats": counts.batches.iter().map(batch).collect::<Vec<_>>(),
            "memory_usage": [],
        })
    };
    json(&json!({ "model_stats": models.iter().map(of_model).collect::<Vec<_>>() }))
}

/// The outputs of a call, each in the form that it says.
pub(crate) fn outputs(model: &str, id: &str, outputs: &[(String, Tensor, bool)]) -> Answer {
    let mut body = Vec::with_capacity(256);
    body.extend_from_slice(b"{\"model_name\":");
    push_json_text(&mut body, model);
    body.extend_from_slice(b",\"model_version\":\"");
    body.extend_from_slice(MODEL_VERSION.as_bytes());
    body.push(b'"');
    if !id.is_empty() {
        body.extend_from_slice(b",\"id\":");
        push_json_text(&mut body, id);
    }
    body.extend_from_slice(b",\"outputs\":[");
    for (i, (name, tensor, is_binary)) in outputs.iter().enumerate() {
        if i > 0 {
            body.push(b',');
        }
        body.extend_from_slice(b"{\"name\":");
        push_json_text(&mut body, name);
        let head = format!(",\"datatype\":\"{}\",\"shape\":{:?}", tensor.datatype().name(), tensor.shape());
        body.extend_from_slice(head.as_bytes());
        if *is_binary {
            let parameters = format!(",\"parameters\":{{\"binary_data_size\":{}}}", tensor.data().len());
            body.extend_from_slice(parameters.as_bytes());
        } else {
            body.extend_from_slice(b",\"data\":");
            elements::write(tensor, &mut body);
        }
        body.push(b'}');
    }
    body.extend_from_slice(b"]}");
    if !outputs.iter().any(|(_, _, is_binary)| *is_binary) {
        return answer(StatusCode::OK, "application/json", body);
    }
    let length = body.len();
    for (_, tensor, _) in outputs.iter().filter(|(_, _, is_binary)| *is_binary) {
        body.extend_from_slice(tensor.data());
    }
    let mut answer = answer(StatusCode::OK, "application/octet-stream", body);
    answer.headers_mut().insert(HEADER_LENGTH, length.into());
    answer
}
