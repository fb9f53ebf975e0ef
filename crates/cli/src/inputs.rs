//! A call as the command line describes it: the function, and its inputs from files or at random.

use std::collections::HashMap;
use std::path::Path;

use relaxide::ffi::{Any, AnyView, DataType};
use relaxide::{FunctionSignature, VirtualMachine};

use crate::args::InputArgs;
use crate::error::CliError;
use crate::npy;

/// A dimension as written: a number or a name.
pub type Dim = relaxide::DimSpec;

/// A virtual machine with a function and its arguments.
pub struct Call {
    machine: VirtualMachine,
    function: String,
    arguments: Vec<Any>,
}

impl Call {
    /// Loads a file and makes the arguments.
    pub fn prepare(file: &Path, args: &InputArgs) -> Result<Call, CliError> {
        if let Some(threads) = args.threads {
            relaxide::set_num_threads(threads)?;
        }
        let module = relaxide::load_module(file)?;
        let signature = relaxide::function_signature(&module, &args.function)?;
        let arguments = arguments(&signature, args)?;
        let machine = VirtualMachine::on_cpu(&module)?;
        Ok(Call { machine, function: args.function.clone(), arguments })
    }

    /// Calls the function.
    pub fn invoke(&self) -> Result<Any, CliError> {
        let views: Vec<AnyView<'_>> = self.arguments.iter().map(Any::as_view).collect();
        Ok(self.machine.invoke(&self.function, &views)?)
    }
}

/// Splits `NAME=D,D,…`.
pub fn parse_shape(text: &str) -> Result<(String, Vec<Dim>), CliError> {
    let help = "write it as NAME=D,D,…, for example --shape x=1,3,224,224 or --shape x=batch,3,224,224";
    let (name, dims) =
        text.split_once('=').ok_or_else(|| CliError::usage(format!("--shape {text} has no '='"), help))?;
    let dims = dims.split(',').map(|d| d.trim().parse::<Dim>());
    let dims =
        dims.collect::<Result<Vec<_>, _>>().map_err(|why| CliError::usage(format!("--shape {text}: {why}"), help))?;
    Ok((name.to_string(), dims))
}

fn arguments(signature: &FunctionSignature, args: &InputArgs) -> Result<Vec<Any>, CliError> {
    let mut files: HashMap<String, &str> = HashMap::new();
    let mut unnamed = signature.params.iter().map(|p| p.name.clone());
    for input in &args.inputs {
        let (name, path) = match input.split_once('=') {
            Some((name, path)) => (name.to_string(), path),
            None => (unnamed.next().unwrap_or_default(), input.as_str()),
        };
        known(signature, &name)?;
        files.insert(name, path);
    }
    let mut shapes = HashMap::new();
    for text in &args.shapes {
        let (name, dims) = parse_shape(text)?;
        known(signature, &name)?;
        shapes.insert(name, dims);
    }
    let mut random = Random(args.seed);
    let make = |param: &relaxide::ParamSignature| match (files.get(&param.name), shapes.get(&param.name)) {
        (Some(path), _) => Ok(Any::from(npy::read(Path::new(path))?)),
        (None, Some(dims)) => random_tensor(param, dims, &mut random),
        (None, None) => random_tensor(param, &param.dims, &mut random),
    };
    signature.params.iter().map(make).collect()
}

fn known(signature: &FunctionSignature, name: &str) -> Result<(), CliError> {
    if signature.params.iter().any(|p| p.name == name) {
        return Ok(());
    }
    let names: Vec<&str> = signature.params.iter().map(|p| p.name.as_str()).collect();
    Err(CliError::usage(
        format!("function {} has no input {name:?}", signature.name),
        format!("its inputs are: {}", names.join(", ")),
    ))
}

fn random_tensor(param: &relaxide::ParamSignature, dims: &[Dim], random: &mut Random) -> Result<Any, CliError> {
    let numbers: Option<Vec<i64>> = dims.iter().map(Dim::as_int).collect();
    let Some(shape) = numbers else {
        let dims: Vec<String> = dims.iter().map(ToString::to_string).collect();
        return Err(CliError::usage(
            format!("input {} has the shape ({}), which is not all numbers", param.name, dims.join(", ")),
            format!("say --shape {}=… with numbers, or --input {}=file.npy", param.name, param.name),
        ));
    };
    let dtype = param.dtype.unwrap_or(DataType::float(32));
    let count = shape.iter().product::<i64>().max(0) as usize;
    Ok(Any::from(npy::from_f64(dtype, &shape, (0..count).map(|_| random.next()))?))
}

/// A small generator of numbers in [0, 1): splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}
