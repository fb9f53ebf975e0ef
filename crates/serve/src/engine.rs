//! Engines: threads that take batches, run them, and hand out the answers.
//!
//! A batch that fails is run again request by request, so that one request's fault is not another's. A batch whose worker ended is run
//! again by the worker that takes its place; one that ends workers again and again is given up, and its requests are run apart from each
//! other.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use crate::repository::{Loaded, Place, Repository};
use crate::scheduler::{Job, Next, Scheduler};
use crate::statistics::Phases;
use crate::{Error, Fault, Tensor};

/// How many workers a batch may end before it is given up.
const ATTEMPTS: u32 = 4;

/// Why a run gave nothing.
pub(crate) enum Failure {
    /// It failed.
    Error(Error),
    /// What ran it ended meanwhile; another may run it.
    Ended(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Error(error)
    }
}

/// What runs batches.
pub(crate) trait Runner: Send {
    /// Is told which models there are now, before any is run and after changes.
    fn prepare(&mut self, models: &[Arc<Loaded>]);

    /// Runs a model on its inputs.
    fn run(&mut self, model: &Arc<Loaded>, inputs: &[Tensor], deadline: Instant) -> Result<Vec<Tensor>, Failure>;
}

/// Runs models in this process.
pub(crate) struct Here;

impl Runner for Here {
    fn prepare(&mut self, _models: &[Arc<Loaded>]) {}

    fn run(&mut self, model: &Arc<Loaded>, inputs: &[Tensor], _deadline: Instant) -> Result<Vec<Tensor>, Failure> {
        match &model.place {
            Place::Here(machine) => Ok(machine.run(inputs)?),
            Place::Files(_) => Err(Error::new(Fault::Internal, "the model is not loaded in this process").into()),
        }
    }
}

/// Starts an engine. `ready` counts those that have prepared themselves.
pub(crate) fn start(
    mut runner: Box<dyn Runner>,
    scheduler: Arc<Scheduler>,
    repository: Arc<Repository>,
    ready: Arc<AtomicUsize>,
) -> std::io::Result<JoinHandle<()>> {
    std::thread::Builder::new().name("engine".into()).spawn(move || {
        runner.prepare(&repository.all());
        ready.fetch_add(1, Ordering::Release);
        let mut seen = 0;
        loop {
            match scheduler.take(&mut seen) {
                Next::Batch(jobs) => run(&mut *runner, jobs),
                Next::Changed => runner.prepare(&repository.all()),
                Next::End => return,
            }
        }
    })
}

/// Runs requests and answers each.
fn run(runner: &mut dyn Runner, mut jobs: Vec<Job>) {
    let now = Instant::now();
    // Who asked has been told, or is gone.
    jobs.retain(|job| !job.answer.is_closed() && job.deadline > now);
    let Some(first) = jobs.first() else { return };
    let metrics = Arc::clone(&first.model.metrics);
    for job in &jobs {
        let waited = now.saturating_duration_since(job.arrived);
        metrics.waited.time(waited);
        metrics.statistics.left_queue(waited);
    }
    metrics.batch.record(jobs.len() as f64);
    let found = call(runner, &jobs);
    metrics.ran.time(now.elapsed());
    match found {
        Ok(results) => {
            for (job, result) in jobs.into_iter().zip(results) {
                // Who asked may have gone meanwhile.
                let _ = job.answer.send(Ok(result));
            }
        }
        Err(error) if jobs.len() == 1 => {
            for job in jobs {
                let _ = job.answer.send(Err(error.clone()));
            }
        }
        Err(_) => {
            for job in jobs {
                let found = call(runner, std::slice::from_ref(&job));
                let _ = job.answer.send(found.and_then(|mut results| {
                    results.pop().ok_or_else(|| Error::new(Fault::Internal, "a call gave no result"))
                }));
            }
        }
    }
}

/// Calls the model once for all requests, and parts the results.
fn call(runner: &mut dyn Runner, jobs: &[Job]) -> Result<Vec<Vec<Tensor>>, Error> {
    let nothing = || Error::new(Fault::Internal, "a batch has no requests");
    let first = jobs.first().ok_or_else(nothing)?;
    let deadline = jobs.iter().map(|job| job.deadline).max().ok_or_else(nothing)?;
    let begin = Instant::now();
    let inputs = (0..first.inputs.len()).map(|i| {
        let parts: Vec<&Tensor> = jobs.iter().filter_map(|job| job.inputs.get(i)).collect();
        Tensor::join(&parts)
    });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    let input = begin.elapsed();
    let outputs = attempt(runner, &first.model, &inputs, deadline)?;
    let run = begin.elapsed() - input;
    let rows: Vec<usize> = jobs.iter().map(Job::rows).collect();
    let results = if jobs.len() == 1 { vec![outputs] } else { part(&outputs, &rows)? };
    let phases = Phases { input, run, output: begin.elapsed() - input - run };
    let (model, total) = (&first.model, rows.iter().sum());
    // Where nothing is joined, what is first in a shape says nothing.
    let counted = if model.batch_rows > 1 { total } else { jobs.len() };
    model.metrics.statistics.run(jobs.len(), counted, model.batch_rows, phases);
    Ok(results)
}

/// The outputs of each request, by its rows.
fn part(outputs: &[Tensor], rows: &[usize]) -> Result<Vec<Vec<Tensor>>, Error> {
    let mut results: Vec<Vec<Tensor>> = rows.iter().map(|_| Vec::with_capacity(outputs.len())).collect();
    for output in outputs {
        for (result, part) in results.iter_mut().zip(output.split(rows)?) {
            result.push(part);
        }
    }
    Ok(results)
}

fn attempt(
    runner: &mut dyn Runner,
    model: &Arc<Loaded>,
    inputs: &[Tensor],
    deadline: Instant,
) -> Result<Vec<Tensor>, Error> {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        let ran = catch_unwind(AssertUnwindSafe(|| runner.run(model, inputs, deadline)));
        match ran {
            Ok(Ok(outputs)) => return Ok(outputs),
            Ok(Err(Failure::Error(error))) => return Err(error),
            Ok(Err(Failure::Ended(why))) => last = why,
            Err(_) => return Err(Error::new(Fault::Internal, "running the model panicked: please report it")),
        }
        if Instant::now() >= deadline {
            return Err(Error::new(Fault::Timeout, format!("the time ran out: {last}")));
        }
    }
    Err(Error::new(Fault::Internal, format!("{ATTEMPTS} workers ended one after another while they ran this: {last}")))
}
