//! Bodies of requests, read as far as they may go.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Incoming};

use crate::service::{Permit, Service};
use crate::{Error, Fault};

/// Reads a body. The permit stands for its bytes in memory, and is kept until the request is answered.
pub(crate) async fn read(service: &Arc<Service>, body: Incoming, deadline: Instant) -> Result<(Bytes, Permit), Error> {
    let late = |_| Error::new(Fault::Timeout, "the body of the request did not come in time");
    tokio::time::timeout_at(deadline.into(), collect(service, body)).await.map_err(late)?
}

async fn collect(service: &Arc<Service>, mut body: Incoming) -> Result<(Bytes, Permit), Error> {
    let most = service.max_body;
    let large = || Error::new(Fault::TooLarge, format!("the body has more than {most} bytes (--max-body)"));
    let mut permit = service.budget.permit();
    if body.size_hint().lower() > most as u64 {
        return Err(large());
    }
    let (mut first, mut whole) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame = frame.map_err(|error| Error::invalid(format!("the body cannot be read: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        permit.grow(data.len())?;
        if permit.bytes() > most {
            return Err(large());
        }
        // Small requests come in one piece, which is not copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
        } else {
            if whole.is_empty() {
                whole.extend_from_slice(&std::mem::take(&mut first));
            }
            whole.extend_from_slice(&data);
        }
    }
    Ok((if whole.is_empty() { first } else { whole.freeze() }, permit))
}
