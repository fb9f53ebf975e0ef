//! Running a session: now, or in a thread of its own.

use std::ffi::{c_char, c_void};

use crate::border::{array, array_mut, texts};
use crate::content::Content;
use crate::handle::{at, give};
use crate::run_options::{OrtRunOptions, RunControl};
use crate::session::{OrtSession, Session};
use crate::status::{Code, OrtStatus, Result, Status, guard, invalid};
use crate::value::OrtValue;

/// What is told when a run in a thread of its own ends.
type Callback = unsafe extern "C" fn(*mut c_void, *mut *mut OrtValue, usize, *mut OrtStatus);

/// What a run is about: names and values, apart from the caller's arrays.
struct Job {
    feed: Vec<(String, Content)>,
    wanted: Vec<usize>,
    /// Values that are to be filled; none where they are to be made.
    places: Vec<Option<Content>>,
    control: RunControl,
}

impl Job {
    fn run(&self, session: &Session) -> Result<Vec<Content>> {
        let feed: Vec<(&str, Content)> = self.feed.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let results = session.run(&feed, &self.wanted, &self.control)?;
        results.into_iter().zip(&self.places).map(|(result, place)| placed(result, place.as_ref())).collect()
    }
}

/// What the caller has of a result: its own value with what came out, or a new one.
pub fn placed(result: Content, place: Option<&Content>) -> Result<Content> {
    match place {
        Some(place) => place.fill(&result).map(|()| place.clone()),
        None => Ok(result),
    }
}

/// # Safety
/// Each address is null or that of as many live elements as the numbers say.
#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
unsafe fn job(
    session: &Session,
    options: *const OrtRunOptions,
    input_names: *const *const c_char,
    inputs: *const *const OrtValue,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    outputs: *const *mut OrtValue,
) -> Result<Job> {
    if output_count == 0 {
        return Err(invalid("at least one output should be requested"));
    }
    // SAFETY: the caller's promise.
    unsafe {
        let names = texts(input_names, input_count, "input_names")?;
        let values = array(inputs, input_count, "inputs")?;
        let feed = names.iter().zip(values).map(|(name, value)| Ok(((*name).to_string(), at(*value, name)?.clone())));
        let wanted = texts(output_names, output_count, "output_names")?;
        let place = |value: &*mut OrtValue| match value.is_null() {
            true => Ok(None),
            false => at(*value, "outputs").cloned().map(Some),
        };
        Ok(Job {
            feed: feed.collect::<Result<_>>()?,
            wanted: wanted.into_iter().map(|name| session.output(name)).collect::<Result<_>>()?,
            places: array(outputs, output_count, "outputs")?.iter().map(place).collect::<Result<_>>()?,
            control: RunControl::of(options)?,
        })
    }
}

/// Writes results where no value was given for them.
fn write(results: Vec<Content>, outputs: &mut [*mut OrtValue]) {
    for (result, place) in results.into_iter().zip(outputs) {
        if place.is_null() {
            *place = give(result);
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub unsafe extern "C" fn run(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    input_names: *const *const c_char,
    inputs: *const *const OrtValue,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    outputs: *mut *mut OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let session = at(session, "session")?;
        let job = job(session, options, input_names, inputs, input_count, output_names, output_count, outputs)?;
        write(job.run(session)?, array_mut(outputs, output_count, "outputs")?);
        Ok(())
    })
}

/// What the thread needs of the caller's.
struct Later {
    session: *const OrtSession,
    outputs: *mut *mut OrtValue,
    count: usize,
    callback: Callback,
    user_data: *mut c_void,
}

// SAFETY: the interface says that the session and the outputs live until the callback was called, and that it is called from another
// thread.
unsafe impl Send for Later {}

impl Later {
    fn finish(self, job: &Job) {
        // SAFETY: the interface's contract.
        let status = guard(|| unsafe {
            let results = job.run(at(self.session, "session")?)?;
            write(results, array_mut(self.outputs, self.count, "outputs")?);
            Ok(())
        });
        let (outputs, count) = if status.is_null() { (self.outputs, self.count) } else { (std::ptr::null_mut(), 0) };
        // SAFETY: as above.
        unsafe { (self.callback)(self.user_data, outputs, count, status) };
    }
}

#[allow(clippy::too_many_arguments, reason = "the interface's signature")]
pub unsafe extern "C" fn run_async(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    input_names: *const *const c_char,
    inputs: *const *const OrtValue,
    input_count: usize,
    output_names: *const *const c_char,
    output_count: usize,
    outputs: *mut *mut OrtValue,
    callback: Option<Callback>,
    user_data: *mut c_void,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let callback = callback.ok_or_else(|| invalid("the callback is null"))?;
        let live = at(session, "session")?;
        let job = job(live, options, input_names, inputs, input_count, output_names, output_count, outputs)?;
        let later = Later { session, outputs, count: output_count, callback, user_data };
        let thread = std::thread::Builder::new().name("relaxide-run".into());
        let started = thread.spawn(move || later.finish(&job));
        started.map(drop).map_err(|error| Status::new(Code::Fail, format!("no thread could be started: {error}")))
    })
}
