//! `relaxide serve` and `relaxide-serve`: the command line, and what it starts.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use clap::Args;

use crate::engine::{self, Here, Runner};
use crate::padding::{Bucket, Fill, Settings};
use crate::repository::{Options, Repository, Where, is_name};
use crate::scheduler::{Limits, Scheduler};
use crate::server::{self, Connections, Protocol};
use crate::service::{Budget, Service};
use crate::worker::child;
use crate::worker::front::{Launch, Worker};
use crate::{Error, Fault};

/// What is said in the place of an address to leave a protocol out.
const OFF: &str = "off";

/// Arguments of `relaxide serve`.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  relaxide serve model.so\n  relaxide serve mlp.so ocr=text_v2.so --max-batch 32\n  \
    relaxide serve model.so --workers 2 --http 0.0.0.0:8000 --grpc off\n\n  \
    curl localhost:8000/v2/models/model\n  \
    curl localhost:8000/v2/models/model/infer -d '{\"inputs\": [{\"name\": \"x\", \"shape\": [1, 2], \"datatype\": \"FP32\", \"data\": [1, 2]}]}'\n\n\
    A model whose file changes is loaded anew (--watch); SIGHUP and POST /v2/repository/models/NAME/load do so at once. SIGTERM and \
    SIGINT end the server when all requests that it took are answered. There is no encryption and no authentication: put a proxy in \
    front of what others reach. docs/serving.md says more."
)]
pub struct ServeArgs {
    /// Compiled models (.so), each as FILE or NAME=FILE. Without NAME, a model is called by its file.
    #[arg(value_name = "[NAME=]FILE", required_unless_present_any = ["worker", "repository"])]
    pub models: Vec<String>,
    /// Where HTTP is served; `off`: not at all. Port 0 takes one that is free.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000")]
    pub http: String,
    /// Where gRPC is served; `off`: not at all.
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8001")]
    pub grpc: String,
    /// Rows of requests that are joined to one call at most. Only for models whose rows do not depend on each other! Joined are
    /// requests to models all of whose inputs and outputs begin with the same symbolic dimension.
    #[arg(long, value_name = "ROWS", default_value_t = 1, help_heading = "Batches")]
    pub max_batch: usize,
    /// How long a request waits for others to be joined with. With 0, joined are those that come while others run.
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0.0, help_heading = "Batches")]
    pub max_delay: f64,
    /// Pad a dimension of any length to the next of these lengths, so that requests are joined, and cut the results. AXIS (from 0) of
    /// INPUT says which dimension; all inputs and outputs with its name are padded and cut. Only for models that ignore what padding
    /// adds, as those with a mask do! May be given several times.
    #[arg(long, value_name = "[MODEL/]INPUT:AXIS=LENGTH,…", value_parser = Bucket::parse, help_heading = "Batches")]
    pub bucket: Vec<Bucket>,
    /// What an input is padded with; each input that has the dimension of a bucket needs one.
    #[arg(long, value_name = "[MODEL/]INPUT=VALUE", value_parser = Fill::parse, help_heading = "Batches")]
    pub pad: Vec<Fill>,
    /// So many padded requests of each load are also run as they are, which gives their answer. Where padding gives another, nothing is
    /// padded any more.
    #[arg(long, value_name = "REQUESTS", default_value_t = 8, help_heading = "Batches")]
    pub check_padding: usize,
    /// Requests of a model that wait at most; more are refused (429, RESOURCE_EXHAUSTED).
    #[arg(long, value_name = "REQUESTS", default_value_t = 1000, help_heading = "Limits")]
    pub max_queue: usize,
    /// Bytes of a request at most (with k, M or G); larger ones are refused (413).
    #[arg(long, value_name = "BYTES", default_value = "64M", value_parser = bytes, help_heading = "Limits")]
    pub max_body: usize,
    /// Bytes of all requests in memory at most; what comes beyond is refused (429).
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = bytes, help_heading = "Limits")]
    pub max_memory: usize,
    /// Connections at most; others wait to be taken in.
    #[arg(long, value_name = "COUNT", default_value_t = 1024, help_heading = "Limits")]
    pub max_connections: usize,
    /// How long a request may take (504, DEADLINE_EXCEEDED).
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, help_heading = "Limits")]
    pub timeout: f64,
    /// Run models in that many processes. One that dies is started again and given what it had not answered; one that takes longer
    /// than a request may is ended. With 0, models run in the server's process.
    #[arg(long, value_name = "COUNT", default_value_t = 0, help_heading = "Running")]
    pub workers: usize,
    /// Calls at once where there are no workers.
    #[arg(long, value_name = "COUNT", default_value_t = 1, help_heading = "Running")]
    pub engines: usize,
    /// Threads that the kernels of a call use [default: RELAXIDE_NUM_THREADS, else the cores, shared among workers].
    #[arg(short, long, help_heading = "Running")]
    pub threads: Option<usize>,
    /// Let clients load the models (.so) of a folder by their names, and unload any.
    #[arg(long, value_name = "FOLDER", help_heading = "Running")]
    pub repository: Option<PathBuf>,
    /// How often files are looked at for changes; 0: never.
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0, help_heading = "Running")]
    pub watch: f64,
    /// How long the end waits for requests that are running.
    #[arg(long, value_name = "SECONDS", default_value_t = 30.0, help_heading = "Running")]
    pub grace: f64,
    /// What a server says to the workers that it starts.
    #[arg(long, hide = true)]
    pub worker: bool,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum Failed {
    /// The command line does not make sense.
    #[error("{message}")]
    Usage {
        /// What is wrong.
        message: String,
        /// What to try.
        help: String,
    },
    /// A model or an address is at fault.
    #[error(transparent)]
    Start(#[from] Error),
}

impl Failed {
    /// The exit code.
    pub fn exit_code(&self) -> u8 {
        if matches!(self, Failed::Usage { .. }) { 2 } else { 1 }
    }

    fn usage(message: impl Into<String>, help: impl Into<String>) -> Failed {
        Failed::Usage { message: message.into(), help: help.into() }
    }
}

/// A text that is no number of bytes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no number of bytes, such as 500k, 64M or 2G")]
struct NoBytes(String);

/// A number of bytes, with k, M or G.
fn bytes(text: &str) -> Result<usize, NoBytes> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1usize << 10),
        None => match (text.strip_suffix('M'), text.strip_suffix('G')) {
            (Some(digits), _) => (digits, 1 << 20),
            (_, Some(digits)) => (digits, 1 << 30),
            _ => (text, 1),
        },
    };
    let count = digits.parse::<usize>().ok().and_then(|count| count.checked_mul(unit));
    count.filter(|count| *count > 0).ok_or_else(|| NoBytes(text.to_owned()))
}

/// Serves until it is told to end. `words` are those between this program and its options, by which it starts its workers.
pub fn run(words: &[OsString], args: &ServeArgs) -> Result<(), Failed> {
    if args.worker {
        return Ok(child::run()?);
    }
    take_descriptors();
    let models = args.models.iter().map(|text| name_and_path(text)).collect::<Result<Vec<_>, _>>()?;
    let seconds = |name: &str, value: f64| {
        Duration::try_from_secs_f64(value)
            .map_err(|_| Failed::usage(format!("--{name} {value} is no time"), "give a number of seconds"))
    };
    let (timeout, grace, watch) =
        (seconds("timeout", args.timeout)?, seconds("grace", args.grace)?, seconds("watch", args.watch)?);
    let delay = seconds("max-delay", args.max_delay / 1e3)?;
    for (name, value) in [
        ("max-batch", args.max_batch),
        ("max-queue", args.max_queue),
        ("max-connections", args.max_connections),
        ("engines", args.engines),
        ("threads", args.threads.unwrap_or(1)),
    ] {
        if value == 0 {
            return Err(Failed::usage(format!("--{name} 0 would serve nothing"), "give 1 or more"));
        }
    }
    let place = if args.workers == 0 { Where::Here } else { Where::Workers };
    if let Some(threads) = args.threads {
        relaxide_runtime::set_num_threads(threads);
    }
    let padding = Settings { buckets: args.bucket.clone(), fills: args.pad.clone(), checks: args.check_padding };
    let options = Options { place, max_batch: args.max_batch, padding, folder: args.repository.clone() };
    let service = Arc::new(Service {
        repository: Arc::new(Repository::open(&models, options)?),
        scheduler: Arc::new(Scheduler::new(Limits { queue: args.max_queue, delay })),
        budget: Budget::new(args.max_memory),
        max_body: args.max_body,
        timeout,
        ready: Arc::new(AtomicUsize::new(0)),
        engines: if args.workers == 0 { args.engines } else { args.workers },
        is_ending: AtomicBool::new(false),
        restarts: Arc::new(AtomicU64::new(0)),
        loading: Mutex::new(()),
    });
    let mut listeners = Vec::new();
    for (protocol, address) in [(Protocol::Http, &args.http), (Protocol::Grpc, &args.grpc)] {
        if address != OFF {
            listeners.push((protocol, server::listen(address)?));
        }
    }
    if listeners.is_empty() {
        return Err(Failed::usage("neither HTTP nor gRPC is served", "leave one `off` out"));
    }
    let engines = engines(&service, words, args)?;
    announce(&service, &listeners)?;
    let how = Connections { most: args.max_connections, grace, watch: Some(watch).filter(|time| !time.is_zero()) };
    let served = server::run(&service, listeners, how);
    service.scheduler.end();
    if served.is_ok() {
        // One that panicked has said so.
        engines.into_iter().for_each(|engine| drop(engine.join()));
    }
    Ok(served?)
}

fn engines(
    service: &Arc<Service>,
    words: &[OsString],
    args: &ServeArgs,
) -> Result<Vec<std::thread::JoinHandle<()>>, Error> {
    let failed = |error: std::io::Error| Error::new(Fault::Internal, format!("cannot start: {error}"));
    let program = std::env::current_exe().map_err(failed)?;
    let words: Vec<OsString> = std::iter::once(program.into()).chain(words.iter().cloned()).collect();
    let shared = relaxide_runtime::num_threads() / args.workers.max(1);
    let threads = args.threads.unwrap_or(shared).max(1);
    let start = |_| {
        let runner: Box<dyn Runner> = match args.workers {
            0 => Box::new(Here),
            _ => Box::new(Worker::new(Launch { words: words.clone(), threads }, Arc::clone(&service.restarts))),
        };
        let (scheduler, repository) = (Arc::clone(&service.scheduler), Arc::clone(&service.repository));
        engine::start(runner, scheduler, repository, Arc::clone(&service.ready)).map_err(failed)
    };
    (0..service.engines).map(start).collect()
}

/// Says where what is served.
fn announce(service: &Service, listeners: &[(Protocol, std::net::TcpListener)]) -> Result<(), Error> {
    let mut text = String::new();
    for model in service.repository.all() {
        let joined =
            if model.batch_rows > 1 { format!(", up to {} rows in one call", model.batch_rows) } else { String::new() };
        text.push_str(&format!("serving {}{joined}\n", model.name));
    }
    for (protocol, listener) in listeners {
        let name = if *protocol == Protocol::Http { "http" } else { "grpc" };
        text.push_str(&format!("{name} on {}\n", server::address(listener)?));
    }
    let mut out = std::io::stdout();
    // Where nobody reads it, nobody is told.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    Ok(())
}

/// `NAME=FILE`, or a file that gives its name.
fn name_and_path(text: &str) -> Result<(String, PathBuf), Failed> {
    let (name, path) = match text.split_once('=') {
        Some((name, path)) if !name.contains('/') => (name.to_owned(), path),
        _ => {
            let stem = Path::new(text).file_stem().map(|stem| stem.to_string_lossy().into_owned());
            (stem.unwrap_or_default(), text)
        }
    };
    let ending = Path::new(path).extension().and_then(|ending| ending.to_str());
    if let Some(ending @ ("onnx" | "pt2" | "relax" | "py" | "relay" | "rly")) = ending {
        let message = format!("{path} is not compiled: served are compiled models (.so), not .{ending}");
        return Err(Failed::usage(message, format!("compile it: relaxide compile {path} -o {name}.so")));
    }
    if !is_name(&name) {
        let message = format!("{name:?} is no name of a model: names have letters, digits, `_`, `-` and `.`");
        return Err(Failed::usage(message, format!("give it another, as NAME={path}")));
    }
    Ok((name, PathBuf::from(path)))
}

/// Takes as many descriptors as the system lets: each connection is one.
fn take_descriptors() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum };
    // With fewer it goes on, and takes fewer connections.
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, most);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_files_or_are_given() {
        let of = |text: &str| name_and_path(text).map(|(name, path)| format!("{name} {}", path.display())).ok();
        assert_eq!(of("models/mlp.so").as_deref(), Some("mlp models/mlp.so"));
        assert_eq!(of("a=models/mlp.so").as_deref(), Some("a models/mlp.so"));
        assert_eq!(of("a=b/c=d.so").as_deref(), Some("a b/c=d.so"));
        assert_eq!(of("x.onnx"), None);
        assert_eq!(of("a b=x.so"), None);
        assert_eq!(of("x y.so"), None);
        assert_eq!(of(""), None);
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!((bytes("3"), bytes("2k"), bytes("64M")), (Ok(3), Ok(2048), Ok(64 << 20)));
        assert!(bytes("0").is_err() && bytes("x").is_err() && bytes("99999999999G").is_err());
    }
}
