//! A compiled model, loaded into this process.

use std::path::Path;

use relaxide_ffi::{Any, AnyView, Array, Device, Function, Module, Shape};
use relaxide_runtime::memory::AllocatorKind;
use relaxide_vm::{Executable, TextTensor, VirtualMachine};

use crate::{Datatype, Error, Fault, Signature, Tensor};

/// The function that is served.
pub const FUNCTION: &str = "main";

/// How deep tuples of results are looked into.
const MAX_DEPTH: usize = 16;

/// Kinds of modules with kernels for devices other than the processor.
const ELSEWHERE: &[&str] = &["opencl", "cuda", "rocm", "vulkan", "metal", "webgpu"];

/// A model that runs here. It may be called from several threads.
pub struct Machine {
    function: Function,
}

/// A model's file, read.
pub struct Opened {
    module: Module,
    /// What the model takes and returns.
    pub signature: Signature,
    /// The plain name of the file of its weights, where they are in one of their own.
    pub weights: Option<String>,
}

impl Opened {
    /// Opens a file.
    pub fn read(path: &Path) -> Result<Opened, Error> {
        let module = relaxide_vm::load_module(path)?;
        let executable = Executable::of_module(&module).ok_or_else(|| {
            let message = format!("the file holds a module of kind {:?}, no program of Relax's machine; programs of Relay are compiled for it by `relaxide compile --machine relax`", module.kind());
            Error::invalid(message)
        })?;
        if let Some(kind) = elsewhere(&module) {
            let message = format!("its kernels are for {kind}; served are models that are compiled for the processor");
            return Err(Error::new(Fault::Unsupported, message));
        }
        let signature = Signature::of_trailer(executable.trailer(), FUNCTION)?;
        let weights = executable.weights_apart()?.map(|weights| weights.file);
        Ok(Opened { module, signature, weights })
    }

    /// The machine, with weights of that file where they are apart.
    pub fn start(&self, weights: Option<&Path>) -> Result<Machine, Error> {
        if let Some(weights) = weights {
            relaxide_vm::load_weights(&self.module, weights)?;
        }
        let machine = VirtualMachine::new(&self.module, &[(Device::cpu(0), AllocatorKind::Pooled)])?;
        let function = machine.function(FUNCTION);
        let function = function.ok_or_else(|| Error::invalid(format!("there is no function {FUNCTION:?}")))?;
        Ok(Machine { function })
    }
}

/// The first kind among a module and its imports that is no code for the processor.
fn elsewhere(module: &Module) -> Option<&'static str> {
    let own = ELSEWHERE.iter().find(|kind| **kind == module.kind()).copied();
    own.or_else(|| module.imports().iter().find_map(elsewhere))
}

impl Machine {
    /// Calls the model with its inputs in order.
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>, Error> {
        let args = inputs.iter().map(to_value).collect::<Result<Vec<_>, _>>()?;
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let result = self.function.call(&views)?;
        let mut outputs = Vec::new();
        flatten(&result, 0, &mut outputs)?;
        Ok(outputs)
    }
}

fn to_value(tensor: &Tensor) -> Result<Any, Error> {
    Ok(match tensor.datatype().dtype() {
        Some(dtype) => relaxide_ffi::Tensor::from_bytes(tensor.data(), tensor.shape(), dtype)?.into(),
        None => TextTensor::new(tensor.shape(), Array::from_vec(tensor.texts().map(Any::from).collect()))?.into(),
    })
}

fn flatten(value: &Any, depth: usize, outputs: &mut Vec<Tensor>) -> Result<(), Error> {
    let name = || format!("output_{}", outputs.len());
    if let Some(tensor) = value.as_tensor() {
        let datatype = Datatype::of_dtype(tensor.dtype()).ok_or_else(|| {
            let message = format!("{} has elements of {}, which the protocol has no name for", name(), tensor.dtype());
            Error::new(Fault::Unsupported, message)
        })?;
        let data = bytes::Bytes::copy_from_slice(tensor.as_bytes()?);
        let tensor = Tensor::new(&name(), datatype, tensor.shape().to_vec(), data);
        outputs.push(tensor.map_err(|error| Error::new(Fault::Internal, error.message))?);
        return Ok(());
    }
    if let Some(texts) = value.downcast_ref::<TextTensor>() {
        let tensor = Tensor::of_texts(&name(), texts.shape.as_slice().to_vec(), texts.iter());
        outputs.push(tensor?);
        return Ok(());
    }
    if let Ok(items) = value.to::<Array>()
        && depth < MAX_DEPTH
    {
        return items.iter().try_for_each(|item| flatten(item, depth + 1, outputs));
    }
    if let Ok(shape) = value.to::<Shape>() {
        let data: Vec<u8> = shape.iter().flat_map(|length| length.to_le_bytes()).collect();
        let tensor = Tensor::new(&name(), Datatype::Int64, vec![shape.len() as i64], data.into());
        outputs.push(tensor?);
        return Ok(());
    }
    let message = format!("{} is a value of kind {}, which the protocol has no form for", name(), value.type_key());
    Err(Error::new(Fault::Unsupported, message))
}
