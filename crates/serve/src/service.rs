//! What both protocols ask for: a call of a model, and what models there are.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use crate::padding::{Buckets, Padded};
use crate::repository::{Loaded, Repository};
use crate::scheduler::{Job, Scheduler};
use crate::statistics::Counts;
use crate::{Error, Fault, Tensor, metrics};

/// The name of the server in its metadata.
pub(crate) const NAME: &str = "relaxide";

/// The version of the server.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What it has beyond the protocol.
pub(crate) const EXTENSIONS: &[&str] = &["binary_tensor_data", "model_repository", "statistics"];

/// The version of each model: the latest is the only one.
pub(crate) const MODEL_VERSION: &str = "1";

/// What models are called by whoever asks for their platform.
pub(crate) const PLATFORM: &str = "relaxide";

/// A call of a model, as either protocol asks for it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// What the client calls it.
    pub id: String,
    /// The inputs by name.
    pub inputs: Vec<(String, Tensor)>,
    /// The outputs that are asked for, and whether in binary form; all where there are none.
    pub outputs: Vec<(String, Option<bool>)>,
    /// Whether outputs are in binary form where nothing else is said.
    pub is_binary: bool,
    /// How long it may take.
    pub timeout: Option<Duration>,
}

/// The error of a request with state: models here have none between requests.
pub(crate) fn no_sequences() -> Error {
    Error::invalid("requests of a sequence are not served: models keep no state between requests")
}

/// The error of a request whose tensors are elsewhere.
pub(crate) fn no_shared_memory() -> Error {
    Error::invalid("tensors in shared memory are not served: send them with the request")
}

/// The error of a load that brings what is to be loaded, or says how.
pub(crate) fn no_overrides() -> Error {
    let message = "a model is loaded from its file as it is: `config` and `files` are not taken";
    Error::new(Fault::Unsupported, message)
}

/// Bytes of requests that may be in memory at once.
pub(crate) struct Budget {
    left: AtomicUsize,
}

/// Some of them, until it is dropped.
pub(crate) struct Permit {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Arc<Budget> {
        Arc::new(Budget { left: AtomicUsize::new(bytes) })
    }

    /// None of the bytes yet.
    pub(crate) fn permit(self: &Arc<Self>) -> Permit {
        Permit { budget: Arc::clone(self), bytes: 0 }
    }
}

impl Permit {
    /// How many there are.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// So many bytes more, if there are any.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), Error> {
        let left = &self.budget.left;
        let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map_err(|_| Error::new(Fault::Overload, "requests in memory are at their limit: try again later"))?;
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// When a request came, until when it is answered, and how long that is.
#[derive(Clone, Copy)]
struct When {
    arrived: Instant,
    deadline: Instant,
    time: Duration,
}

/// What is asked and answers.
pub(crate) struct Service {
    pub repository: Arc<Repository>,
    pub scheduler: Arc<Scheduler>,
    pub budget: Arc<Budget>,
    /// The largest body of a request.
    pub max_body: usize,
    /// How long a request may take.
    pub timeout: Duration,
    /// Engines that are ready, and how many there are.
    pub ready: Arc<AtomicUsize>,
    pub engines: usize,
    pub is_ending: AtomicBool,
    pub restarts: Arc<AtomicU64>,
    /// Held while a model is loaded: one at a time.
    pub loading: Mutex<()>,
}

impl Service {
    /// Whether requests are served.
    pub(crate) fn is_ready(&self) -> bool {
        !self.is_ending.load(Ordering::Relaxed) && self.ready.load(Ordering::Acquire) == self.engines
    }

    /// A model of a name and version; no version, or an empty one, means the latest.
    pub(crate) fn model(&self, name: &str, version: Option<&str>) -> Result<Arc<Loaded>, Error> {
        let model = self.repository.get(name)?;
        match version.filter(|version| !version.is_empty() && *version != MODEL_VERSION) {
            Some(other) => {
                let message = format!("model {name:?} has no version {other:?}; its only one is {MODEL_VERSION:?}");
                Err(Error::new(Fault::NotFound, message))
            }
            None => Ok(model),
        }
    }

    /// Counts a request for inference and how it ended.
    pub(crate) fn count<T>(&self, model: &Loaded, arrived: Instant, result: &Result<T, Error>) {
        let time = arrived.elapsed();
        model.metrics.requests.fetch_add(1, Ordering::Relaxed);
        model.metrics.total.time(time);
        model.metrics.statistics.request(time, result.is_ok());
        if let Err(error) = result {
            model.metrics.failed(error.fault);
        }
    }

    /// Calls a model. What is returned are the outputs that were asked for, with their names and whether they are to be binary.
    pub(crate) async fn infer(
        &self,
        model: &Arc<Loaded>,
        call: Call,
        arrived: Instant,
        permit: &mut Permit,
    ) -> Result<Vec<(String, Tensor, bool)>, Error> {
        let inputs = in_order(model, call.inputs)?;
        model.signature.check(&inputs)?;
        check_outputs(model, &call.outputs)?;
        let time = call.timeout.map_or(self.timeout, |timeout| timeout.min(self.timeout));
        let when = When { arrived, deadline: arrived + time, time };
        let padded = model.buckets.as_ref().map(|buckets| buckets.pad(&inputs)).transpose()?.flatten();
        let outputs = match (&model.buckets, padded) {
            (Some(buckets), Some(padded)) => {
                permit.grow(padded.bytes())?;
                self.run_padded(model, buckets, inputs, padded, when).await?
            }
            _ => self.run(model, inputs, when).await?,
        };
        select(model, outputs, &call.outputs, call.is_binary)
    }

    /// Has a model run on its inputs in order.
    async fn run(&self, model: &Arc<Loaded>, inputs: Vec<Tensor>, when: When) -> Result<Vec<Tensor>, Error> {
        let When { arrived, deadline, time } = when;
        let (answer, result) = oneshot::channel();
        self.scheduler.submit(Job { model: Arc::clone(model), inputs, arrived, deadline, answer })?;
        let late = || Error::new(Fault::Timeout, format!("no result within {} ms", time.as_millis()));
        let result = tokio::time::timeout_at(deadline.into(), result).await.map_err(|_| late())?;
        result.map_err(|_| late())?
    }

    /// Has a model run on padded inputs, and on the inputs as they are too while the model has to show that it ignores padding.
    async fn run_padded(
        &self,
        model: &Arc<Loaded>,
        buckets: &Buckets,
        inputs: Vec<Tensor>,
        padded: Padded,
        when: When,
    ) -> Result<Vec<Tensor>, Error> {
        model.metrics.padded.fetch_add(1, Ordering::Relaxed);
        let own = if buckets.is_checking() { Some(self.run(model, inputs, when).await?) } else { None };
        let lengths = padded.lengths().to_vec();
        let found = self.run(model, padded.inputs, when).await;
        let found = found.and_then(|outputs| buckets.cut(outputs, &lengths));
        let Some(own) = own else { return found };
        let is_same = match &found {
            Ok(outputs) => buckets.compare(&own, outputs),
            Err(Error { fault: Fault::Invalid | Fault::Internal | Fault::Unsupported, .. }) => {
                buckets.compare(&own, &[])
            }
            // It was not run, which shows nothing.
            Err(_) => true,
        };
        if !is_same {
            model.metrics.differed.fetch_add(1, Ordering::Relaxed);
            eprintln!(
                "error: model {:?} gives something else where its inputs are padded (lengths and padded lengths: {lengths:?}): \
                 they are padded no more until it is loaded anew",
                model.name
            );
        }
        Ok(own)
    }

    /// Loads a model, which may be served already, and tells the engines.
    pub(crate) fn load(&self, name: &str) -> Result<(), Error> {
        self.change(|repository| repository.reload(name))
    }

    /// Serves a model no more.
    pub(crate) fn unload(&self, name: &str) -> Result<(), Error> {
        self.change(|repository| repository.unload(name))
    }

    fn change(&self, change: impl Fn(&Repository) -> Result<(), Error>) -> Result<(), Error> {
        let _one = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        change(&self.repository)?;
        self.scheduler.announce();
        Ok(())
    }

    /// What is counted of one model, or of all that are served.
    pub(crate) fn statistics(&self, name: Option<&str>, version: Option<&str>) -> Result<Vec<(String, Counts)>, Error> {
        let models = match name.filter(|name| !name.is_empty()) {
            Some(name) => vec![self.model(name, version)?],
            None => self.repository.all(),
        };
        Ok(models.iter().map(|model| (model.name.clone(), model.metrics.statistics.now())).collect())
    }

    /// The counters as text.
    pub(crate) fn metrics(&self) -> String {
        metrics::text(&self.repository.metrics(), self.restarts.load(Ordering::Relaxed))
    }
}

/// The inputs in the model's order.
fn in_order(model: &Loaded, mut given: Vec<(String, Tensor)>) -> Result<Vec<Tensor>, Error> {
    let ports = &model.signature.inputs;
    let names = || ports.iter().map(|port| port.name.as_str()).collect::<Vec<_>>().join(", ");
    let mut inputs = Vec::with_capacity(ports.len());
    for port in ports {
        let at = given.iter().position(|(name, _)| *name == port.name);
        let at = at
            .ok_or_else(|| Error::invalid(format!("input {:?} is missing; the model takes: {}", port.name, names())))?;
        inputs.push(given.swap_remove(at).1);
    }
    match given.first() {
        Some((name, _)) => {
            let known =
                if ports.iter().any(|port| port.name == *name) { "is given twice" } else { "is none of the model's" };
            Err(Error::invalid(format!("input {name:?} {known}; it takes: {}", names())))
        }
        None => Ok(inputs),
    }
}

fn check_outputs(model: &Loaded, wanted: &[(String, Option<bool>)]) -> Result<(), Error> {
    let Some(outputs) = &model.signature.outputs else { return Ok(()) };
    match wanted.iter().find(|(name, _)| outputs.iter().all(|port| port.name != *name)) {
        Some((name, _)) => {
            let names: Vec<&str> = outputs.iter().map(|port| port.name.as_str()).collect();
            Err(Error::invalid(format!("there is no output {name:?}; the model has: {}", names.join(", "))))
        }
        None => Ok(()),
    }
}

/// The outputs that are asked for.
fn select(
    model: &Loaded,
    outputs: Vec<Tensor>,
    wanted: &[(String, Option<bool>)],
    is_binary: bool,
) -> Result<Vec<(String, Tensor, bool)>, Error> {
    let named = outputs.into_iter().enumerate().map(|(i, tensor)| (model.signature.output_name(i), tensor, is_binary));
    let all: Vec<_> = named.collect();
    if wanted.is_empty() {
        return Ok(all);
    }
    let find = |(name, form): &(String, Option<bool>)| {
        let found = all.iter().find(|(known, ..)| known == name);
        let (_, tensor, _) = found.ok_or_else(|| Error::invalid(format!("there is no output {name:?}")))?;
        Ok((name.clone(), tensor.clone(), form.unwrap_or(is_binary)))
    };
    wanted.iter().map(find).collect()
}
