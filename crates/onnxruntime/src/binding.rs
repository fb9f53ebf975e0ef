//! IO binding: inputs and outputs that are bound once and run many times.

use std::ffi::c_char;

use crate::border::{check_place, put, text};
use crate::content::Content;
use crate::handle::{Handle, HandleKind, at, at_mut, give, put_new, release};
use crate::memory::{OrtAllocator, OrtMemoryInfo, allocate_array, check_host};
use crate::run::placed;
use crate::run_options::{OrtRunOptions, RunControl};
use crate::session::OrtSession;
use crate::status::{Code, OrtStatus, Result, Status, guard, invalid, quietly};
use crate::value::OrtValue;

/// What is bound.
pub struct Binding {
    session: *const OrtSession,
    inputs: Vec<(String, Content)>,
    outputs: Vec<Output>,
}

/// An output: into which value it goes, if the caller gave one, and what came out of the last run.
struct Output {
    name: String,
    place: Option<Content>,
    result: Option<Content>,
}

/// What is bound, for C.
pub type OrtIoBinding = Handle<Binding>;

impl HandleKind for Binding {
    const NAME: &str = "OrtIoBinding";
}

pub unsafe extern "C" fn create(session: *mut OrtSession, out: *mut *mut OrtIoBinding) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        at(session, "session")?;
        put_new(out, Binding { session, inputs: Vec::new(), outputs: Vec::new() })
    })
}

pub unsafe extern "C" fn release_binding(binding: *mut OrtIoBinding) {
    // SAFETY: the interface's contract.
    unsafe { release(binding) }
}

pub unsafe extern "C" fn bind_input(
    binding: *mut OrtIoBinding,
    name: *const c_char,
    value: *const OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. The session outlives its bindings.
    guard(|| unsafe {
        let (binding, name, value) = (at_mut(binding, "binding")?, text(name, "name")?, at(value, "value")?);
        let session = at(binding.session, "session")?;
        if !session.has_input(name) && !session.has_weight(name) {
            return Err(Status::new(Code::Fail, session.no_input(name)));
        }
        binding.inputs.retain(|(bound, _)| bound != name);
        binding.inputs.push((name.into(), value.clone()));
        Ok(())
    })
}

impl Binding {
    /// Binds an output; it keeps its place among the others where it is bound anew.
    fn bind(&mut self, name: &str, place: Option<Content>) {
        let result = place.clone();
        match self.outputs.iter_mut().find(|output| output.name == name) {
            Some(output) => (output.place, output.result) = (place, result),
            None => self.outputs.push(Output { name: name.into(), place, result }),
        }
    }
}

pub unsafe extern "C" fn bind_output(
    binding: *mut OrtIoBinding,
    name: *const c_char,
    value: *const OrtValue,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (binding, name, value) = (at_mut(binding, "binding")?, text(name, "name")?, at(value, "value")?);
        at(binding.session, "session")?.output(name)?;
        binding.bind(name, Some(value.clone()));
        Ok(())
    })
}

pub unsafe extern "C" fn bind_output_to_device(
    binding: *mut OrtIoBinding,
    name: *const c_char,
    info: *const OrtMemoryInfo,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let (binding, name) = (at_mut(binding, "binding")?, text(name, "name")?);
        check_host(info)?;
        at(binding.session, "session")?.output(name)?;
        binding.bind(name, None);
        Ok(())
    })
}

pub unsafe extern "C" fn clear_inputs(binding: *mut OrtIoBinding) {
    // SAFETY: the interface's contract.
    quietly((), || unsafe { at_mut(binding, "binding").map_or((), |binding| binding.inputs.clear()) });
}

pub unsafe extern "C" fn clear_outputs(binding: *mut OrtIoBinding) {
    // SAFETY: the interface's contract.
    quietly((), || unsafe { at_mut(binding, "binding").map_or((), |binding| binding.outputs.clear()) });
}

pub unsafe extern "C" fn run(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    binding: *const OrtIoBinding,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. The binding is changed by its results, and is in nobody else's use meanwhile.
    guard(|| unsafe {
        let (session, control) = (at(session, "session")?, RunControl::of(options)?);
        let binding = at_mut(binding.cast_mut(), "binding")?;
        let wanted = binding.outputs.iter().map(|output| session.output(&output.name)).collect::<Result<Vec<_>>>()?;
        let feed: Vec<(&str, Content)> =
            binding.inputs.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        if wanted.is_empty() {
            return Err(invalid("no output is bound: use BindOutput or BindOutputToDevice"));
        }
        let results = session.run(&feed, &wanted, &control)?;
        for (output, result) in binding.outputs.iter_mut().zip(results) {
            output.result = Some(placed(result, output.place.as_ref())?);
        }
        Ok(())
    })
}

pub unsafe extern "C" fn output_names(
    binding: *const OrtIoBinding,
    allocator: *mut OrtAllocator,
    buffer: *mut *mut c_char,
    lengths: *mut *mut usize,
    count: *mut usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract. The names stand one after the other, without ends.
    guard(|| unsafe {
        let outputs = &at(binding, "binding")?.outputs;
        check_place(buffer)?;
        check_place(lengths)?;
        put(count, outputs.len())?;
        if outputs.is_empty() {
            put(buffer, std::ptr::null_mut())?;
            return put(lengths, std::ptr::null_mut());
        }
        let names: String = outputs.iter().map(|output| output.name.as_str()).collect();
        let sizes: Vec<usize> = outputs.iter().map(|output| output.name.len()).collect();
        put(buffer, allocate_array(allocator, names.as_bytes())?.cast())?;
        put(lengths, allocate_array(allocator, &sizes)?)
    })
}

pub unsafe extern "C" fn output_values(
    binding: *const OrtIoBinding,
    allocator: *mut OrtAllocator,
    values: *mut *mut *mut OrtValue,
    count: *mut usize,
) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe {
        let outputs = &at(binding, "binding")?.outputs;
        check_place(values)?;
        put(count, outputs.len())?;
        if outputs.is_empty() {
            return put(values, std::ptr::null_mut());
        }
        let list = allocate_array(allocator, &vec![std::ptr::null_mut::<OrtValue>(); outputs.len()])?;
        for (i, output) in outputs.iter().enumerate() {
            list.add(i).write(give(output.result.clone().unwrap_or(Content::Nothing)));
        }
        put(values, list)
    })
}

/// `SynchronizeBoundInputs`, `SynchronizeBoundOutputs`: nothing is on its way on the processor.
pub unsafe extern "C" fn synchronize(binding: *mut OrtIoBinding) -> *mut OrtStatus {
    // SAFETY: the interface's contract.
    guard(|| unsafe { at(binding, "binding").map(drop) })
}
