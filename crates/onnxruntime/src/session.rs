//! Sessions: a model, compiled, that takes values by name and gives values.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{c_char, c_int, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use prost::bytes::Bytes;
use relaxide::ffi::{Any, Array, signal};
use relaxide::onnx::signature::{Extent, ValueSignature};
use relaxide::vm::SHAPE_GUARD_ERROR;

use crate::border::{array, array_mut, check_place, put, text};
use crate::cache::{ModelSource, Place};
use crate::content::Content;
use crate::env::{Log, OrtEnv, set_threads};
use crate::handle::{Handle, HandleKind, at, put_new, release};
use crate::memory::{OrtAllocator, OrtMemoryInfo, allocate_text, host};
use crate::metadata::{Metadata, OrtModelMetadata};
use crate::model::{self, Head, Program, ShapeOptions};
use crate::options::{OrtSessionOptions, SessionOptions};
use crate::profile::Profile;
use crate::run_options::RunControl;
use crate::status::{Code, OrtStatus, Result, Status, guard, invalid};
use crate::type_info::{OrtTypeInfo, TypeInfo};

/// A session.
pub struct Session {
    head: Head,
    /// Kept where the model may have to be compiled once more.
    source: Option<ModelSource>,
    /// Sessions of the same model in which some weights are inputs, by the names of these.
    opened: Mutex<BTreeMap<Vec<String>, Arc<Session>>>,
    dims: BTreeMap<String, i64>,
    log: Arc<Log>,
    program: RwLock<Loaded>,
    /// Programs for some lengths of the inputs alone, by these; nothing where there is none.
    exact: Mutex<BTreeMap<Lengths, Option<Arc<Program>>>>,
    /// The profile under way.
    profile: Mutex<Option<Arc<Profile>>>,
}

/// The lengths of all inputs.
type Lengths = Vec<Vec<i64>>;

/// For how many lengths a session compiles its model anew, beside the program for any length.
const MOST_EXACT: usize = 8;

/// What runs now.
struct Loaded {
    program: Arc<Program>,
    is_loose: bool,
}

/// A session for C.
pub type OrtSession = Handle<Session>;

impl HandleKind for Session {
    const NAME: &str = "OrtSession";
}

impl Session {
    /// Makes a session.
    pub fn new(place: Place, options: &SessionOptions, log: &Arc<Log>) -> Result<Session> {
        let profile = options.profile.as_deref().map(|prefix| Arc::new(Profile::new(prefix)));
        let source = ModelSource { place, given: options.given.clone() };
        let log = Arc::clone(options.log.as_ref().unwrap_or(log));
        set_threads(options.intra_op)?;
        let shape_options = ShapeOptions { dims: options.dims.clone(), ..ShapeOptions::default() };
        let session = Session::compile(source, shape_options, log, &options.cancelled)?;
        if let Some(profile) = &profile {
            profile.session("session_initialization", 0.0);
        }
        Ok(Session { profile: Mutex::new(profile), ..session })
    }

    fn compile(
        source: ModelSource,
        shape_options: ShapeOptions,
        log: Arc<Log>,
        cancelled: &Arc<AtomicBool>,
    ) -> Result<Session> {
        let model = model::open(&source)?;
        let head = model::head(&model);
        let program = model::program(&source, &model, &head, &shape_options, &log, cancelled)?;
        let is_kept = is_open(&head.signature.inputs) || !head.signature.overridable.is_empty();
        let program = RwLock::new(Loaded { program: Arc::new(program), is_loose: false });
        Ok(Session {
            head,
            source: is_kept.then_some(source),
            opened: Mutex::default(),
            dims: shape_options.dims,
            log,
            program,
            exact: Mutex::default(),
            profile: Mutex::default(),
        })
    }

    /// The session in which these weights are inputs.
    fn with_open(&self, names: Vec<String>) -> Result<Arc<Session>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match (opened.get(&names), &self.source) {
            (Some(session), _) => Arc::clone(session),
            (None, Some(source)) => {
                let mut source = source.clone();
                source.given.opened.clone_from(&names);
                let shape_options = ShapeOptions { dims: self.dims.clone(), ..ShapeOptions::default() };
                let session =
                    Arc::new(Session::compile(source, shape_options, Arc::clone(&self.log), &Arc::default())?);
                opened.insert(names, Arc::clone(&session));
                session
            }
            (None, None) => return Err(Status::new(Code::Fail, "the model is not kept")),
        };
        *session.profile.lock().unwrap_or_else(PoisonError::into_inner) = self.profile();
        Ok(session)
    }

    /// Names of what is given that are those of weights.
    fn given_weights(&self, feed: &[(&str, Content)]) -> Vec<String> {
        let names: BTreeSet<&str> = feed.iter().map(|(name, _)| *name).filter(|name| self.has_weight(name)).collect();
        names.into_iter().map(String::from).collect()
    }

    /// The profile under way.
    pub fn profile(&self) -> Option<Arc<Profile>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The same, which ends with that.
    pub fn take_profile(&self) -> Option<Arc<Profile>> {
        self.profile.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The inputs, in order.
    pub fn inputs(&self) -> &[ValueSignature] {
        &self.head.signature.inputs
    }

    /// The outputs, in order.
    pub fn outputs(&self) -> &[ValueSignature] {
        &self.head.signature.outputs
    }

    /// Which output has a name.
    pub fn output(&self, name: &str) -> Result<usize> {
        let found = self.outputs().iter().position(|output| output.name == name);
        found.ok_or_else(|| invalid(format!("Invalid output name: {name}; the model has {}", listed(self.outputs()))))
    }

    /// Refuses the name of an input that the model does not have.
    fn check_input(&self, name: &str) -> Result<()> {
        match self.has_input(name) {
            true => Ok(()),
            false => Err(invalid(self.no_input(name))),
        }
    }

    /// Whether there is an input of a name.
    pub fn has_input(&self, name: &str) -> bool {
        self.inputs().iter().any(|input| input.name == name)
    }

    /// Whether there is a weight of a name that the file lists among its inputs, so that it may be given.
    pub fn has_weight(&self, name: &str) -> bool {
        let is_opened = self.source.as_ref().is_some_and(|source| source.given.opened.iter().any(|own| own == name));
        !is_opened && self.head.signature.overridable.iter().any(|weight| weight.name == name)
    }

    /// What is said of the name of an input that is not there.
    pub fn no_input(&self, name: &str) -> String {
        format!("Invalid input name: {name}; the model has {}", listed(self.inputs()))
    }

    /// Computes outputs, given by their numbers, of values by the names of inputs.
    pub fn run(&self, feed: &[(&str, Content)], wanted: &[usize], control: &RunControl) -> Result<Vec<Content>> {
        if control.stop.load(Ordering::Relaxed) {
            return Err(ended());
        }
        let weights = self.given_weights(feed);
        if !weights.is_empty() {
            return self.with_open(weights)?.run(feed, wanted, control);
        }
        feed.iter().try_for_each(|(name, _)| self.check_input(name))?;
        let mut given = Vec::new();
        for input in self.inputs() {
            // Of two values of one name the last one counts.
            let found = feed.iter().rev().find(|(name, _)| *name == input.name);
            given.push(found.ok_or_else(|| invalid(format!("Missing Input: {}", input.name)))?.1.clone());
        }
        let args = given.iter().map(Content::argument).collect::<Result<Vec<_>>>()?;
        let result = self.compute(&given, &args, control)?;
        drop(args);
        let results = match self.outputs() {
            [_] => vec![result],
            _ => parts(result)?,
        };
        if results.len() != self.outputs().len() {
            let (got, expected) = (results.len(), self.outputs().len());
            return Err(Status::new(Code::RuntimeException, format!("the program gave {got} values, not {expected}")));
        }
        let output = |i: &usize| Content::of_result(&results[*i], &self.outputs()[*i].type_name, &given);
        wanted.iter().map(output).collect()
    }

    /// What the program gives, instrumented where a profile is asked for.
    fn compute(&self, given: &[Content], args: &[Any], control: &RunControl) -> Result<Any> {
        let of_run = control.profile.as_deref().map(|prefix| Arc::new(Profile::new(prefix)));
        let profiles: Vec<Arc<Profile>> = self.profile().into_iter().chain(of_run.clone()).collect();
        let begun: Vec<f64> = profiles.iter().map(|profile| profile.now()).collect();
        let lengths = self.lengths(given);
        let known = lengths.as_ref().and_then(|lengths| self.exact().get(lengths).cloned().flatten());
        let program = known.map_or_else(|| self.program_for(given), Ok)?;
        let compute = |program: &Program| {
            signal::stoppable(&control.stop, || match profiles.is_empty() {
                true => program.run(args).map(|result| (result, None)),
                false => program.profile(args),
            })
        };
        let failed = |error: relaxide::ffi::Error| match error.kind() {
            signal::CANCELLED => ended(),
            _ => Status::from(error),
        };
        let computed = match compute(&program) {
            Err(error) if error.kind() == SHAPE_GUARD_ERROR => match lengths.and_then(|own| self.specialize(own)) {
                Some(exact) => compute(&exact),
                None => Err(error),
            },
            computed => computed,
        };
        let (result, report) = computed.map_err(failed)?;
        for (profile, since) in profiles.iter().zip(begun) {
            profile.session("model_run", since);
            if let Some(report) = &report {
                profile.kernels(report, since);
            }
        }
        if let Some(profile) = of_run {
            profile.write()?;
        }
        Ok(result)
    }

    /// The program for values of such shapes.
    fn program_for(&self, given: &[Content]) -> Result<Arc<Program>> {
        let (mut named, mut fits) = (Vec::new(), true);
        for (input, value) in self.inputs().iter().zip(given) {
            fits &= self.fits(input, value, &mut named)?;
        }
        let loaded = self.program.read().unwrap_or_else(PoisonError::into_inner);
        if fits || loaded.is_loose {
            return Ok(Arc::clone(&loaded.program));
        }
        drop(loaded);
        self.loosen()
    }

    /// Compiles the model once more, without taking dimensions of equal names to be equal.
    fn loosen(&self) -> Result<Arc<Program>> {
        let mut loaded = self.program.write().unwrap_or_else(PoisonError::into_inner);
        if let (false, Some(source)) = (loaded.is_loose, &self.source) {
            let shape_options = ShapeOptions { dims: self.dims.clone(), is_loose: true, ..ShapeOptions::default() };
            let model = model::open(source)?;
            let program = model::program(source, &model, &self.head, &shape_options, &self.log, &Arc::default())?;
            *loaded = Loaded { program: Arc::new(program), is_loose: true };
        }
        Ok(Arc::clone(&loaded.program))
    }

    fn exact(&self) -> MutexGuard<'_, BTreeMap<Lengths, Option<Arc<Program>>>> {
        self.exact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lengths of all inputs, where all are tensors and the model leaves some open.
    fn lengths(&self, given: &[Content]) -> Option<Lengths> {
        self.source.as_ref()?;
        given.iter().map(|value| value.shape().map(<[i64]>::to_vec)).collect()
    }

    /// A program for these lengths alone, where none was made before.
    ///
    /// A program for any length has a number of axes for each value, which some models let depend on lengths (`Squeeze` without
    /// axes, of a batch of one), and refuses the others when it runs.
    fn specialize(&self, lengths: Lengths) -> Option<Arc<Program>> {
        let source = self.source.as_ref()?;
        let mut exact = self.exact();
        if exact.contains_key(&lengths) || exact.len() == MOST_EXACT {
            return None;
        }
        let shape_options = ShapeOptions { lengths: Some(lengths.clone()), ..ShapeOptions::default() };
        let made = model::open(source)
            .and_then(|model| model::program(source, &model, &self.head, &shape_options, &self.log, &Arc::default()));
        // Where there is none, what the program for any length said is what is wrong.
        let made = made.ok().map(Arc::new);
        exact.insert(lengths, made.clone());
        made
    }

    /// Refuses a value of another type, rank or length; false where a name stands for two lengths.
    fn fits<'a>(&'a self, input: &'a ValueSignature, value: &Content, named: &mut Vec<(&'a str, i64)>) -> Result<bool> {
        if !input.type_name.starts_with("tensor(") {
            return Ok(true);
        }
        let (name, given) = (&input.name, value.type_name());
        if given != input.type_name {
            let expected = &input.type_name;
            return Err(invalid(format!("Unexpected input data type of {name}: got {given}, expected {expected}")));
        }
        let shape = value.shape().unwrap_or_default();
        input.fits(shape, &self.dims, named).map_err(|misfit| invalid(misfit.to_string()))
    }

    fn type_info(&self, value: &ValueSignature) -> TypeInfo {
        let fixed = |name: &str| self.dims.get(name).copied();
        self.head.types.get(&value.name).map_or(TypeInfo::Unknown, |proto| TypeInfo::of_proto(proto, &fixed))
    }
}

fn ended() -> Status {
    Status::new(Code::Fail, "Exiting due to terminate flag being set to true.")
}

fn parts(result: Any) -> Result<Vec<Any>> {
    Ok(result.to::<Array>()?.to_vec())
}

fn listed(values: &[ValueSignature]) -> String {
    let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
    if names.is_empty() { "none".into() } else { names.join(", ") }
}

/// Whether a length of an input is left open.
fn is_open(inputs: &[ValueSignature]) -> bool {
    inputs.iter().flat_map(|input| &input.shape).any(|extent| !matches!(extent, Extent::Known(_)))
}

/// # Safety
/// The handles are live or null.
unsafe fn make(
    env: *const OrtEnv,
    place: Place,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> Result<()> {
    check_place(out)?;
    // SAFETY: the caller's promise. Options may be left out.
    unsafe {
        let env = at(env, "env")?;
        let session = match options.is_null() {
            true => Session::new(place, &SessionOptions::default(), &env.log)?,
            false => Session::new(place, at(options, "session options")?, &env.log)?,
        };
        put_new(out, session)
    }
}

pub unsafe extern "C" fn create(
    env: *const OrtEnv,
    path: *const c_char,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { make(env, Place::File(PathBuf::from(text(path, "model_path")?)), options, out) })
}

/// The entry that names the folder with the files that belong to a model in memory.
const FOLDER: &str = "session.model_external_initializers_file_folder_path";

pub unsafe extern "C" fn create_from_array(
    env: *const OrtEnv,
    data: *const c_void,
    length: usize,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let bytes = Bytes::copy_from_slice(array(data.cast::<u8>(), length, "model_data")?);
        let folder = match options.is_null() {
            true => None,
            false => at(options, "session options")?.entries.get(FOLDER).map(PathBuf::from),
        };
        make(env, Place::Memory(bytes, folder), options, out)
    })
}

pub unsafe extern "C" fn create_with_container(
    env: *const OrtEnv,
    path: *const c_char,
    options: *const OrtSessionOptions,
    _container: *mut c_void,
    out: *mut *mut OrtSession,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. Weights are laid out when a model is compiled, so there is nothing to share.
    unsafe { create(env, path, options, out) }
}

pub unsafe extern "C" fn create_from_array_with_container(
    env: *const OrtEnv,
    data: *const c_void,
    length: usize,
    options: *const OrtSessionOptions,
    _container: *mut c_void,
    out: *mut *mut OrtSession,
) -> *mut OrtStatus {
    // SAFETY: as above.
    unsafe { create_from_array(env, data, length, options, out) }
}

pub unsafe extern "C" fn release_session(session: *mut OrtSession) {
    // SAFETY: the interface's contract.
    unsafe { release(session) }
}

/// What a session lists.
type List = fn(&Session) -> &[ValueSignature];

fn overridable(session: &Session) -> &[ValueSignature] {
    &session.head.signature.overridable
}

/// # Safety
/// As for [`at`].
unsafe fn count(session: *const OrtSession, list: List, out: *mut usize) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe { put(out, list(at(session, "session")?).len()) })
}

fn numbered(values: &[ValueSignature], index: usize) -> Result<&ValueSignature> {
    let message = || format!("index out of range: there is no number {index}; the model has {}", listed(values));
    values.get(index).ok_or_else(|| Status::new(Code::Fail, message()))
}

/// # Safety
/// As for [`at`] and [`allocate_text`].
unsafe fn name(
    session: *const OrtSession,
    list: List,
    index: usize,
    allocator: *mut OrtAllocator,
    out: *mut *mut c_char,
) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        check_place(out)?;
        put(out, allocate_text(allocator, &numbered(list(at(session, "session")?), index)?.name)?)
    })
}

/// # Safety
/// As for [`at`].
unsafe fn type_of(session: *const OrtSession, list: List, index: usize, out: *mut *mut OrtTypeInfo) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let session = at(session, "session")?;
        put_new(out, session.type_info(numbered(list(session), index)?))
    })
}

macro_rules! listed {
    ($($list:expr => $count:ident, $name:ident, $type:ident;)*) => {$(
        pub unsafe extern "C" fn $count(session: *const OrtSession, out: *mut usize) -> *mut OrtStatus {
            // SAFETY: the interface's contract.
            unsafe { count(session, $list, out) }
        }

        pub unsafe extern "C" fn $name(
            session: *const OrtSession,
            index: usize,
            allocator: *mut OrtAllocator,
            out: *mut *mut c_char,
        ) -> *mut OrtStatus {
            // SAFETY: the interface's contract.
            unsafe { name(session, $list, index, allocator, out) }
        }

        pub unsafe extern "C" fn $type(
            session: *const OrtSession,
            index: usize,
            out: *mut *mut OrtTypeInfo,
        ) -> *mut OrtStatus {
            // SAFETY: the interface's contract.
            unsafe { type_of(session, $list, index, out) }
        }
    )*};
}

listed! {
    Session::inputs => input_count, input_name, input_type;
    Session::outputs => output_count, output_name, output_type;
    overridable => overridable_count, overridable_name, overridable_type;
}

pub unsafe extern "C" fn metadata(session: *const OrtSession, out: *mut *mut OrtModelMetadata) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { put_new(out, Metadata::of(&at(session, "session")?.head.notes)) })
}

/// # Safety
/// As for [`at`] and [`array_mut`].
unsafe fn memory_infos(
    session: *const OrtSession,
    list: List,
    out: *mut *const OrtMemoryInfo,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        let values = list(at(session, "session")?);
        if values.len() != count {
            return Err(invalid(format!(
                "there is room for {count} places of memory, and {} are to be given",
                values.len()
            )));
        }
        array_mut(out, count, "memory infos")?.fill(host());
        Ok(())
    })
}

pub unsafe extern "C" fn input_memory_infos(
    session: *const OrtSession,
    out: *mut *const OrtMemoryInfo,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { memory_infos(session, Session::inputs, out, count) }
}

pub unsafe extern "C" fn output_memory_infos(
    session: *const OrtSession,
    out: *mut *const OrtMemoryInfo,
    count: usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    unsafe { memory_infos(session, Session::outputs, out, count) }
}

/// `SessionReleaseCapturedGraph`: none is captured.
pub unsafe extern "C" fn accept(session: *mut OrtSession, _id: c_int) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { at(session, "session").map(drop) })
}
