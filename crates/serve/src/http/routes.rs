//! The places of the protocol.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::CONTENT_ENCODING;
use hyper::{Method, Request, StatusCode};
use serde_json::json;

use super::request;
use super::response::{self, Answer, HEADER_LENGTH, answer};
use crate::repository::Loaded;
use crate::server::body;
use crate::service::{EXTENSIONS, NAME, Service, VERSION};
use crate::{Error, Fault};

/// Bodies larger than this are read by a thread of their own, so that others are answered meanwhile.
const LARGE: usize = 256 << 10;

/// What is asked for.
enum Place<'a> {
    Server,
    Live,
    Ready,
    Metrics,
    Index,
    Load(&'a str),
    Unload(&'a str),
    /// Of a model, or of all.
    Statistics(Option<&'a str>, Option<&'a str>),
    Model(&'a str, Option<&'a str>),
    ModelReady(&'a str, Option<&'a str>),
    Infer(&'a str, Option<&'a str>),
}

impl<'a> Place<'a> {
    fn of_path(path: &'a str) -> Option<Place<'a>> {
        let parts: Vec<&str> = path.strip_prefix('/')?.trim_end_matches('/').split('/').collect();
        Some(match parts[..] {
            ["metrics"] => Place::Metrics,
            ["v2"] => Place::Server,
            ["v2", "health", "live"] => Place::Live,
            ["v2", "health", "ready"] => Place::Ready,
            ["v2", "repository", "index"] => Place::Index,
            ["v2", "repository", "models", name, "load"] => Place::Load(name),
            ["v2", "repository", "models", name, "unload"] => Place::Unload(name),
            ["v2", "models", "stats"] => Place::Statistics(None, None),
            ["v2", "models", name, "stats"] => Place::Statistics(Some(name), None),
            ["v2", "models", name, "versions", version, "stats"] => Place::Statistics(Some(name), Some(version)),
            ["v2", "models", name] => Place::Model(name, None),
            ["v2", "models", name, "ready"] => Place::ModelReady(name, None),
            ["v2", "models", name, "infer"] => Place::Infer(name, None),
            ["v2", "models", name, "versions", version] => Place::Model(name, Some(version)),
            ["v2", "models", name, "versions", version, "ready"] => Place::ModelReady(name, Some(version)),
            ["v2", "models", name, "versions", version, "infer"] => Place::Infer(name, Some(version)),
            _ => return None,
        })
    }

    fn method(&self) -> Method {
        let is_post = matches!(self, Place::Index | Place::Load(_) | Place::Unload(_) | Place::Infer(..));
        if is_post { Method::POST } else { Method::GET }
    }
}

/// Answers a request.
pub(crate) async fn serve(service: Arc<Service>, request: Request<Incoming>) -> Result<Answer, Infallible> {
    Ok(route(service, request).await.unwrap_or_else(|error| response::error(&error)))
}

async fn route(service: Arc<Service>, request: Request<Incoming>) -> Result<Answer, Error> {
    let arrived = Instant::now();
    let path = request.uri().path().to_owned();
    let place = Place::of_path(&path).ok_or_else(|| {
        let short: String = path.chars().take(100).collect();
        Error::new(Fault::NotFound, format!("there is nothing at {short}; the places of the protocol begin at /v2"))
    })?;
    let is_head = *request.method() == Method::HEAD && place.method() == Method::GET;
    if *request.method() != place.method() && !is_head {
        return Err(Error::new(Fault::Method, format!("{path} is asked by {}", place.method())));
    }
    let state =
        |is_so: bool| answer(if is_so { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }, "text/plain", "");
    match place {
        Place::Server => Ok(response::json(&json!({ "name": NAME, "version": VERSION, "extensions": EXTENSIONS }))),
        Place::Live => Ok(state(true)),
        Place::Ready => Ok(state(service.is_ready())),
        Place::Metrics => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            Ok(answer(StatusCode::OK, kind, service.metrics()))
        }
        Place::Index => {
            let (body, _permit) = body::read(&service, request.into_body(), arrived + service.timeout).await?;
            let models = service.repository.index(request::wants_ready(&body)?)?;
            Ok(response::json(&models.iter().map(response::listed).collect()))
        }
        Place::Statistics(name, version) => Ok(response::statistics(&service.statistics(name, version)?)),
        Place::Load(name) => {
            let name = name.to_owned();
            let (body, _permit) = body::read(&service, request.into_body(), arrived + service.timeout).await?;
            request::check_load(&body)?;
            let loaded = tokio::task::spawn_blocking(move || service.load(&name)).await;
            loaded.map_err(|_| Error::new(Fault::Internal, "loading the model panicked: please report it"))??;
            Ok(answer(StatusCode::OK, "application/json", "{}"))
        }
        Place::Unload(name) => {
            service.unload(name)?;
            Ok(answer(StatusCode::OK, "application/json", "{}"))
        }
        Place::Model(name, version) => Ok(response::metadata(&*service.model(name, version)?)),
        Place::ModelReady(name, version) => {
            service.model(name, version)?;
            Ok(state(service.is_ready()))
        }
        Place::Infer(name, version) => {
            let model = service.model(name, version)?;
            let result = infer(&service, &model, request, arrived).await;
            service.count(&model, arrived, &result);
            result
        }
    }
}

async fn infer(
    service: &Arc<Service>,
    model: &Arc<Loaded>,
    request: Request<Incoming>,
    arrived: Instant,
) -> Result<Answer, Error> {
    if let Some(encoding) = request.headers().get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity") {
        let message = format!("a body in the encoding {encoding:?} is not read: send it as it is");
        return Err(Error::new(Fault::Unsupported, message));
    }
    let header = request.headers().get(HEADER_LENGTH).map(|value| value.to_str().unwrap_or("not a text").to_owned());
    let (body, mut permit) = body::read(service, request.into_body(), arrived + service.timeout).await?;
    // An element of eight bytes may be a digit and a comma.
    permit.grow(4 * request::json_length(&body, header.as_deref())?)?;
    let read = move || request::read(&body, header.as_deref());
    let call = if permit.bytes() > LARGE {
        let read = tokio::task::spawn_blocking(read).await;
        read.map_err(|_| Error::new(Fault::Internal, "reading the request panicked: please report it"))??
    } else {
        read()?
    };
    let id = call.id.clone();
    let outputs = service.infer(model, call, arrived, &mut permit).await?;
    Ok(response::outputs(&model.name, &id, &outputs))
}
