//! The file of a session or a run that was asked for a profile: events as ONNX Runtime writes them, for `chrome://tracing` and its tools.
//!
//! Kernels are those of the compiled program, several operators of the model in one; what the virtual machine does between them is no
//! event.

use std::ffi::c_char;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use relaxide::vm::ProfileReport;

use crate::border::put;
use crate::handle::at;
use crate::memory::{OrtAllocator, allocate_text};
use crate::session::OrtSession;
use crate::status::{Code, OrtStatus, Result, Status, guard};

/// Events of a session, from when it was begun.
pub struct Profile {
    prefix: String,
    begin: Instant,
    begun: SystemTime,
    events: Mutex<Vec<String>>,
}

impl Profile {
    /// Begins one whose file begins so.
    pub fn new(prefix: &str) -> Profile {
        let (begin, begun) = (Instant::now(), SystemTime::now());
        Profile { prefix: prefix.into(), begin, begun, events: Mutex::default() }
    }

    /// Microseconds since it began.
    pub fn now(&self) -> f64 {
        self.begin.elapsed().as_secs_f64() * 1e6
    }

    /// The session did something, which ends now.
    pub fn session(&self, name: &str, since: f64) {
        self.add([event("Session", name, since, self.now() - since, "")]);
    }

    /// The kernels of a run, which began so many microseconds after the profile.
    pub fn kernels(&self, report: &ProfileReport, since: f64) {
        let micros = |time: std::time::Duration| time.as_secs_f64() * 1e6;
        let first = report.calls().map(|call| micros(call.start)).fold(f64::INFINITY, f64::min);
        let kernels = report.calls().filter(|call| call.name != "main" && !call.name.starts_with("vm."));
        let events = kernels.enumerate().map(|(index, call)| {
            let name = plain(call.name);
            let args = format!(
                "\"op_name\" : \"{name}\",\"provider\" : \"CPUExecutionProvider\",\"node_index\" : \"{index}\""
            );
            let name = format!("{name}_kernel_time");
            event("Node", &name, since + micros(call.start) - first, micros(call.time), &args)
        });
        self.add(events.collect::<Vec<_>>());
    }

    /// Writes the file and says where it is.
    pub fn write(&self) -> Result<String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let path = format!("{}_{}_{:03}.json", self.prefix, now.as_secs(), now.subsec_millis());
        let events = self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).join(",\n");
        std::fs::write(&path, format!("[\n{events}\n]\n"))
            .map_err(|error| Status::new(Code::Fail, format!("cannot write the profile {path}: {error}")))?;
        Ok(path)
    }

    fn add(&self, events: impl IntoIterator<Item = String>) {
        self.events.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(events);
    }
}

/// A name as it stands in JSON: names of functions have no characters that need more.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '"' | '\\') && !c.is_control()).collect()
}

fn event(cat: &str, name: &str, ts: f64, dur: f64, args: &str) -> String {
    let (process, mut out) = (std::process::id(), String::new());
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "{{\"cat\" : \"{cat}\",\"pid\" :{process},\"tid\" :{process},\"dur\" :{dur:.0},\"ts\" :{ts:.0},\"ph\" : \"X\",\
         \"name\" :\"{name}\",\"args\" : {{{args}}}}}"
    );
    out
}

/// `SessionEndProfiling`: an empty name where nothing is profiled.
pub unsafe extern "C" fn end(
    session: *mut OrtSession,
    allocator: *mut OrtAllocator,
    out: *mut *mut c_char,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let profile = at(session, "session")?.take_profile();
        let path = profile.map_or_else(|| Ok(String::new()), |profile| profile.write())?;
        put(out, allocate_text(allocator, &path)?)
    })
}

/// `SessionGetProfilingStartTimeNs`: nanoseconds of the system's clock; 0 where nothing is profiled.
pub unsafe extern "C" fn start_time(session: *const OrtSession, out: *mut u64) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let begun = at(session, "session")?.profile().map(|profile| profile.begun);
        let since = begun.and_then(|begun| begun.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        put(out, u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
    })
}
