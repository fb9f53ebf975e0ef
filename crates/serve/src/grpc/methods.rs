//! The methods of the service.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use prost::Message;

use super::convert;
use super::frame::{frame, timeout, unframe};
use super::messages::{
    Index, IndexEntry, IndexRequest, LoadRequest, ModelMetadata, ModelName, Nothing, ServerMetadata, TensorMetadata,
    Truth,
};
use crate::repository::Listed;
use crate::server::body;
use crate::service::{EXTENSIONS, MODEL_VERSION, NAME, PLATFORM, Service, VERSION, no_overrides};
use crate::{Error, Fault, Port};

const SERVICE: &str = "/inference.GRPCInferenceService/";
const KIND: &str = "application/grpc";
const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// Messages of this and fewer bytes are told to clients whole.
const MAX_TEXT: usize = 2000;

/// A message and the status behind it; or nothing, where the status stands in the head.
pub(crate) struct Answer {
    message: Option<Bytes>,
    status: Option<HeaderMap>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(message) = self.message.take() {
            return Poll::Ready(Some(Ok(Frame::data(message))));
        }
        Poll::Ready(self.status.take().map(|status| Ok(Frame::trailers(status))))
    }

    fn is_end_stream(&self) -> bool {
        self.message.is_none() && self.status.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

/// Answers a call.
pub(crate) async fn serve(service: Arc<Service>, request: Request<Incoming>) -> Result<Response<Answer>, Infallible> {
    let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(KIND.as_bytes()));
    if !is_grpc || request.method() != Method::POST {
        let mut response = Response::new(Answer { message: None, status: None });
        *response.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Ok(response);
    }
    let mut status = HeaderMap::new();
    let answer = match call(service, request).await {
        Ok(message) => {
            status.insert(STATUS, HeaderValue::from_static("0"));
            let mut response = Response::new(Answer { message: Some(message), status: Some(status) });
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
            response
        }
        Err(error) => {
            let mut response = Response::new(Answer { message: None, status: None });
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(KIND));
            headers.insert(STATUS, error.fault.grpc_status().into());
            if let Ok(text) = HeaderValue::from_str(&escaped(&error.message)) {
                headers.insert(MESSAGE, text);
            }
            response
        }
    };
    Ok(answer)
}

/// A text as a header has it: everything but plain ASCII as %XX.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes().take(MAX_TEXT) {
        match byte {
            b' '..=b'~' if byte != b'%' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

async fn call(service: Arc<Service>, request: Request<Incoming>) -> Result<Bytes, Error> {
    let arrived = Instant::now();
    let (head, body) = request.into_parts();
    let unknown = || {
        let short: String = head.uri.path().chars().take(100).collect();
        Error::new(Fault::Unsupported, format!("there is no method {short}; those of {SERVICE} are served"))
    };
    let method = head.uri.path().strip_prefix(SERVICE).ok_or_else(unknown)?;
    let limit = head.headers.get(TIMEOUT).and_then(|text| timeout(text.to_str().ok()?));
    let limit = limit.map_or(service.timeout, |limit| limit.min(service.timeout));
    let (body, mut permit) = body::read(&service, body, arrived + limit).await?;
    let message = unframe(&body)?;
    match method {
        "ServerLive" => decode::<Nothing>(message).and_then(|_| frame(&Truth { is_so: true })),
        "ServerReady" => decode::<Nothing>(message).and_then(|_| frame(&Truth { is_so: service.is_ready() })),
        "ServerMetadata" => {
            decode::<Nothing>(message)?;
            let extensions = EXTENSIONS.iter().map(ToString::to_string).collect();
            frame(&ServerMetadata { name: NAME.into(), version: VERSION.into(), extensions })
        }
        "ModelReady" => {
            let model: ModelName = decode(message)?;
            service.model(&model.name, Some(&model.version))?;
            frame(&Truth { is_so: service.is_ready() })
        }
        "ModelMetadata" => metadata(&service, &decode(message)?),
        "RepositoryIndex" => {
            let models = service.repository.index(decode::<IndexRequest>(message)?.is_ready)?;
            let entry = |model: Listed| IndexEntry {
                state: model.state().into(),
                name: model.name,
                version: MODEL_VERSION.into(),
                reason: model.reason.into(),
            };
            frame(&Index { models: models.into_iter().map(entry).collect() })
        }
        "RepositoryModelLoad" => {
            let request: LoadRequest = decode(message)?;
            if !request.parameters.is_empty() {
                return Err(no_overrides());
            }
            let loaded = tokio::task::spawn_blocking(move || service.load(&request.model_name)).await;
            loaded.map_err(|_| Error::new(Fault::Internal, "loading the model panicked: please report it"))??;
            frame(&Nothing {})
        }
        "RepositoryModelUnload" => {
            service.unload(&decode::<LoadRequest>(message)?.model_name)?;
            frame(&Nothing {})
        }
        "ModelStatistics" => {
            let ModelName { name, version } = decode(message)?;
            frame(&convert::statistics(service.statistics(Some(&name), Some(&version))?))
        }
        "ModelInfer" => {
            permit.grow(convert::weight(&message)?)?;
            let (name, version, mut call) = convert::read(message)?;
            let model = service.model(&name, Some(&version))?;
            call.timeout = Some(call.timeout.map_or(limit, |timeout| timeout.min(limit)));
            let id = call.id.clone();
            let result = service.infer(&model, call, arrived, &mut permit).await;
            service.count(&model, arrived, &result);
            let response = frame(&convert::response(&model.name, id, result?));
            drop(permit);
            response
        }
        _ => Err(unknown()),
    }
}

fn decode<T: Message + Default>(message: Bytes) -> Result<T, Error> {
    T::decode(message).map_err(|error| Error::invalid(format!("the message cannot be read: {error}")))
}

fn metadata(service: &Service, wanted: &ModelName) -> Result<Bytes, Error> {
    let model = service.model(&wanted.name, Some(&wanted.version))?;
    let port = |port: &Port| TensorMetadata {
        name: port.name.clone(),
        datatype: port.datatype.map_or("", |datatype| datatype.name()).into(),
        shape: port.shape(),
    };
    frame(&ModelMetadata {
        name: model.name.clone(),
        versions: vec![MODEL_VERSION.into()],
        platform: PLATFORM.into(),
        inputs: model.signature.inputs.iter().map(port).collect(),
        outputs: model.signature.outputs.iter().flatten().map(port).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_errors_are_headers() {
        assert_eq!(escaped("100% of é\n"), "100%25 of %C3%A9%0A");
        assert!(HeaderValue::from_str(&escaped(&"\u{0}\u{7f}é".repeat(1000))).is_ok());
    }
}
