//! Models: loading, looking inside, calling.

use std::ffi::{c_char, c_int};
use std::path::Path;

use relaxide_ffi::abi::type_index;
use relaxide_ffi::{Any, AnyView, Array, DataType, Device, Error, ErrorKind, Module, Tensor};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::{Executable, VirtualMachine};

use crate::border::{array, at, guard, invalid, put, release, text};
use crate::signature::{self, Function, Param};
use crate::tensor::{self, RelaxideTensor};
use crate::value::RelaxideValue;

/// A virtual machine, ready to run.
pub struct RelaxideModel {
    machine: VirtualMachine,
    functions: Vec<Function>,
}

/// A function of a model.
#[repr(C)]
pub struct RelaxideFunctionInfo {
    /// Its name.
    pub name: *const c_char,
    /// How many parameters it has.
    pub num_params: usize,
}

/// A parameter of a function.
#[repr(C)]
pub struct RelaxideParamInfo {
    /// Its name.
    pub name: *const c_char,
    /// Its type as TVMScript, empty if it is not known.
    pub annotation: *const c_char,
    /// The element type of a tensor; all zeros (`handle` of no bits) if it is not known.
    pub dtype: DataType,
    /// The number of dimensions of a tensor, or -1 if it is not known.
    pub ndim: i32,
    /// The dimensions; -1 for those that each call may choose. Null if their number is not known.
    pub dims: *const i64,
}

impl RelaxideModel {
    fn load(path: &str, weights: Option<&str>) -> Result<RelaxideModel, Error> {
        let module = relaxide_vm::load_module(Path::new(path))?;
        take_weights(&module, weights)?;
        RelaxideModel::of_module(&module)
    }

    fn linked(prefix: &str, weights: Option<&str>) -> Result<RelaxideModel, Error> {
        let module = relaxide_vm::system_library(prefix)?;
        if Executable::of_module(&module).is_none() {
            let message = format!(
                "no model is linked into this program with the prefix {prefix:?}: link all object files of a model that \
                 was compiled with this system_lib_prefix (a static archive between --whole-archive and \
                 --no-whole-archive)"
            );
            return Err(invalid(message));
        }
        take_weights(&module, weights)?;
        RelaxideModel::of_module(&module)
    }

    fn of_module(module: &Module) -> Result<RelaxideModel, Error> {
        let machine = VirtualMachine::new(module, &[(Device::cpu(0), AllocatorKind::Pooled)])?;
        let functions = Executable::of_module(module).map(|executable| signature::functions(&executable));
        Ok(RelaxideModel { machine, functions: functions.unwrap_or_default() })
    }

    fn function(&self, name: &str) -> Result<&Function, Error> {
        let found = self.functions.iter().find(|function| function.name.to_str() == Ok(name));
        found.ok_or_else(|| invalid(format!("Unknown function: {name}")))
    }
}

/// Takes weights from a file that the caller names.
fn take_weights(module: &Module, weights: Option<&str>) -> Result<(), Error> {
    weights.map_or(Ok(()), |file| relaxide_vm::load_weights(module, Path::new(file)))
}

/// Loads a model from a shared library and makes it ready to run on the CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_load(path: *const c_char, model: *mut *mut RelaxideModel) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { hand_over(model, || RelaxideModel::load(text(path, "path")?, None)) }
}

/// Makes a model and puts it where the caller wants it.
unsafe fn hand_over(
    model: *mut *mut RelaxideModel,
    make: impl FnOnce() -> Result<RelaxideModel, relaxide_ffi::Error>,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(model, "model")?;
            put(model, Box::into_raw(Box::new(make()?)), "model")
        }
    })
}

/// Makes a model that was linked into the program ready to run on the CPU. `prefix` is the `system_lib_prefix` that it was
/// compiled with.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_linked(prefix: *const c_char, model: *mut *mut RelaxideModel) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { hand_over(model, || RelaxideModel::linked(text(prefix, "prefix")?, None)) }
}

/// Loads a model whose weights are in the file `weights`, in the place of the one beside it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_load_with_weights(
    path: *const c_char,
    weights: *const c_char,
    model: *mut *mut RelaxideModel,
) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { hand_over(model, || RelaxideModel::load(text(path, "path")?, Some(text(weights, "weights")?))) }
}

/// Makes a linked model ready whose weights are in the file `weights`, in the place of the one beside the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_linked_with_weights(
    prefix: *const c_char,
    weights: *const c_char,
    model: *mut *mut RelaxideModel,
) -> c_int {
    // SAFETY: the interface's contract.
    unsafe { hand_over(model, || RelaxideModel::linked(text(prefix, "prefix")?, Some(text(weights, "weights")?))) }
}

/// Frees a model; null is allowed. Results that it made stay valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_free(model: *mut RelaxideModel) {
    if !model.is_null() {
        // SAFETY: the handle came from a load and is given up.
        release(|| drop(unsafe { Box::from_raw(model) }));
    }
}

/// How many functions a model has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_num_functions(model: *const RelaxideModel, count: *mut usize) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { put(count, at(model, "model")?.functions.len(), "count") }
    })
}

/// Describes a function by its position. The addresses are valid as long as the model lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_function(
    model: *const RelaxideModel,
    index: usize,
    info: *mut RelaxideFunctionInfo,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let functions = &at(model, "model")?.functions;
            let function = functions.get(index).ok_or_else(|| beyond("function", index, functions.len()))?;
            let described = RelaxideFunctionInfo { name: function.name.as_ptr(), num_params: function.params.len() };
            put(info, described, "info")
        }
    })
}

/// Describes a parameter of a function. The addresses are valid as long as the model lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_param(
    model: *const RelaxideModel,
    function: *const c_char,
    index: usize,
    info: *mut RelaxideParamInfo,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let params = &at(model, "model")?.function(text(function, "function")?)?.params;
            let param = params.get(index).ok_or_else(|| beyond("parameter", index, params.len()))?;
            put(info, describe(param), "info")
        }
    })
}

/// How many results of a function have names in the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_num_output_names(
    model: *const RelaxideModel,
    function: *const c_char,
    count: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe { put(count, at(model, "model")?.function(text(function, "function")?)?.outputs.len(), "count") }
    })
}

/// The name of a result by its position. The address is valid as long as the model lives.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_output_name(
    model: *const RelaxideModel,
    function: *const c_char,
    index: usize,
    name: *mut *const c_char,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(name, "name")?;
            let outputs = &at(model, "model")?.function(text(function, "function")?)?.outputs;
            let output = outputs.get(index).ok_or_else(|| beyond("name of an output", index, outputs.len()))?;
            put(name, output.as_ptr(), "name")
        }
    })
}

fn describe(param: &Param) -> RelaxideParamInfo {
    RelaxideParamInfo {
        name: param.name.as_ptr(),
        annotation: param.annotation.as_ptr(),
        dtype: param.dtype,
        ndim: param.dims.as_ref().map_or(-1, |dims| i32::try_from(dims.len()).unwrap_or(i32::MAX)),
        dims: param.dims.as_ref().map_or(std::ptr::null(), |dims| dims.as_ptr()),
    }
}

fn beyond(what: &str, index: usize, count: usize) -> Error {
    Error::new(ErrorKind::IndexError, format!("there is no {what} {index}: there are {count}"))
}

/// Calls a function with values; the result is the caller's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_call(
    model: *const RelaxideModel,
    function: *const c_char,
    args: *const *const RelaxideValue,
    num_args: usize,
    result: *mut *mut RelaxideValue,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            at(result, "result")?;
            let views = array(args, num_args, "args")?.iter().enumerate();
            let views = views.map(|(i, arg)| Ok(at(*arg, &format!("argument {i}"))?.view()));
            let views = views.collect::<Result<Vec<AnyView<'_>>, Error>>()?;
            let value = at(model, "model")?.machine.invoke(text(function, "function")?, &views)?;
            put(result, RelaxideValue::give(value), "result")
        }
    })
}

/// Calls a function of tensors. `num_outputs` says how many results there is room for, and is set to how many there are.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn relaxide_model_run(
    model: *const RelaxideModel,
    function: *const c_char,
    inputs: *const *const RelaxideTensor,
    num_inputs: usize,
    outputs: *mut *mut RelaxideTensor,
    num_outputs: *mut usize,
) -> c_int {
    guard(|| {
        // SAFETY: the interface's contract.
        unsafe {
            let room = *at(num_outputs, "num_outputs")?;
            array(outputs, room, "outputs")?;
            let inputs = array(inputs, num_inputs, "inputs")?.iter().enumerate();
            // A message is written only where there is something to say: a small model runs in half a microsecond.
            let named = |i, input| tensor::tensor(input, &format!("input {i}"));
            let inputs = inputs.map(|(i, input)| tensor::tensor(*input, "").or_else(|_| named(i, *input)));
            let inputs = inputs.collect::<Result<Vec<Tensor>, Error>>()?;
            let views: Vec<AnyView<'_>> = inputs.iter().map(AnyView::from).collect();
            let value = at(model, "model")?.machine.invoke(text(function, "function")?, &views)?;
            let results = tensors(&value)?;
            put(num_outputs, results.len(), "num_outputs")?;
            if results.len() > room {
                return Err(invalid(format!("{} results and room for {room}", results.len())));
            }
            for (i, result) in results.into_iter().enumerate() {
                put(outputs.add(i), tensor::give(result), "outputs")?;
            }
            Ok(())
        }
    })
}

/// The tensors of a result: one, or those of a tuple.
fn tensors(value: &Any) -> Result<Vec<Tensor>, Error> {
    match value.type_index() {
        type_index::ARRAY => value.to::<Array>()?.iter().map(|item| item.to::<Tensor>()).collect(),
        _ => Ok(vec![value.to::<Tensor>()?]),
    }
}
