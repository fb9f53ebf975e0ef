//! A call as the command line describes it: the function, and its inputs from files, as text, or at random.

pub mod element;
pub mod npy;
mod picture;
mod source;
mod words;

use std::collections::HashMap;

use relaxide::ffi::{Any, AnyView, DataType, Module, Tensor};
use relaxide::ir::diagnostic::closest;
use relaxide::vm::TextTensor;
use relaxide::{DimRange, DimSpec, FunctionSignature, ParamSignature, Signature, VirtualMachine};

use crate::args::{InputArgs, ModelArgs};
use crate::error::CliError;
use crate::program;
use crate::progress::Bar;
use crate::remote::{Far, Sent, Server};
use element::{Random, Range};
use source::Source;

/// Where a function runs.
pub enum Machine {
    /// In this process.
    Here(VirtualMachine),
    /// On a server.
    There(Far),
}

/// What becomes of inputs of which nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// They are random.
    Random,
    /// They are an error: who gives some inputs means to give all.
    Refused,
}

/// A virtual machine with a function and its arguments.
pub struct Call {
    /// The machine.
    pub machine: Machine,
    /// The function.
    pub signature: FunctionSignature,
    /// The arguments.
    pub arguments: Vec<Any>,
    /// The constructors of data types by their tags, of a program of the Relay VM.
    pub constructors: Vec<(i64, String)>,
}

impl Call {
    /// Makes the arguments for a function of a module.
    pub fn prepare(module: &Module, args: &InputArgs, missing: Missing) -> Result<Call, CliError> {
        if let Some(threads) = args.threads {
            relaxide::set_num_threads(threads)?;
        }
        let whole = relaxide::signature_of_file(module)?;
        let signature = function_of(&whole, &args.function)?;
        let arguments = arguments(&signature, args, missing)?;
        relaxide::check_inputs(&signature, &arguments)?;
        let machine = Machine::Here(VirtualMachine::of(module)?);
        Ok(Call { machine, signature, arguments, constructors: whole.constructors })
    }

    /// Opens a model where it is to run, compiled if it is not, and makes the arguments.
    pub fn open(model: &ModelArgs, args: &InputArgs, missing: Missing, bar: &mut Bar) -> Result<Call, CliError> {
        match &args.on {
            None => Call::prepare(&program::open(model, bar)?, args, missing),
            Some(on) => {
                let server = Server::connect(on)?;
                let sent = server.send(model, bar)?;
                Call::there(server, &sent, args, missing)
            }
        }
    }

    /// Makes the arguments for a program that was sent to a server.
    pub fn there(server: Server, sent: &Sent, args: &InputArgs, missing: Missing) -> Result<Call, CliError> {
        if args.threads.is_some() {
            return Err(CliError::usage(
                "--threads is about this machine, and the model runs on another",
                "start the server with RELAXIDE_NUM_THREADS=N",
            ));
        }
        let signature = function_of(&sent.signature, &args.function)?;
        let arguments = arguments(&signature, args, missing)?;
        relaxide::check_inputs(&signature, &arguments)?;
        let far = Far::begin(server, sent, &signature.name, &arguments)?;
        Ok(Call { machine: Machine::There(far), signature, arguments, constructors: Vec::new() })
    }

    /// The arguments, borrowed for a call.
    pub fn views(&self) -> Vec<AnyView<'_>> {
        self.arguments.iter().map(Any::as_view).collect()
    }

    /// The arguments under other names, in order; all have to be tensors.
    pub fn named_inputs(&self, names: &[String]) -> Result<Vec<(String, Tensor)>, CliError> {
        let one = |(name, argument): (&String, &Any)| Ok((name.clone(), argument.to::<Tensor>()?));
        names.iter().zip(&self.arguments).map(one).collect()
    }

    /// Calls the function.
    pub fn invoke(&self) -> Result<Any, CliError> {
        match &self.machine {
            Machine::Here(machine) => Ok(machine.invoke(&self.signature.name, &self.views())?),
            Machine::There(far) => Ok(far.invoke()?),
        }
    }

    /// The shapes of the arguments, in words.
    pub fn shapes_text(&self) -> String {
        let one = |(param, argument): (&ParamSignature, &Any)| match argument.to::<Tensor>() {
            Ok(tensor) => format!("{} {}{:?}", param.name, tensor.dtype(), tensor.shape()),
            Err(_) => param.name.clone(),
        };
        self.signature.params.iter().zip(&self.arguments).map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The signature of a function, or an error that names those that there are.
fn function_of(signature: &Signature, name: &str) -> Result<FunctionSignature, CliError> {
    let names: Vec<String> = signature.functions.iter().map(|f| f.name.clone()).collect();
    signature.functions.iter().find(|f| f.name == name).cloned().ok_or_else(|| {
        CliError::usage(format!("the model has no function {name:?}"), suggest(name, "its functions are", &names))
    })
}

/// The nearest of the known names, and all of them.
fn suggest(name: &str, what: &str, known: &[String]) -> String {
    let all = format!("{what}: {}", known.join(", "));
    // Every letter is close to every other.
    let long = known.iter().map(String::as_str).filter(|known| known.len() > 1);
    match closest(name, long) {
        Some(near) => format!("did you mean {near:?}? {all}"),
        None => all,
    }
}

/// Splits `NAME=D,D,…`.
pub fn parse_shape(text: &str) -> Result<(String, Vec<DimSpec>), CliError> {
    let help = "write it as NAME=D,D,…, for example --shape x=1,3,224,224 or --shape x=batch,3,224,224";
    let (name, dims) =
        text.split_once('=').ok_or_else(|| CliError::usage(format!("--shape {text} has no '='"), help))?;
    let dims = dims.split(',').filter(|d| !d.trim().is_empty()).map(|d| d.trim().parse::<DimSpec>());
    let dims =
        dims.collect::<Result<Vec<_>, _>>().map_err(|why| CliError::usage(format!("--shape {text}: {why}"), help))?;
    Ok((name.to_string(), dims))
}

/// The ranges that `--dim` gives; later ones of a name stand for earlier ones.
pub fn parse_dims(texts: &[String]) -> Result<Vec<DimRange>, CliError> {
    let help = "write it as NAME=LENGTH or NAME=MIN..MAX, for example --dim batch=8 or --dim batch=1..64";
    let mut ranges: Vec<DimRange> = Vec::new();
    for text in texts {
        let range: DimRange = text.parse().map_err(|why| CliError::usage(format!("--dim {text}: {why}"), help))?;
        ranges.retain(|known| known.name != range.name);
        ranges.push(range);
    }
    Ok(ranges)
}

/// Lengths for the symbolic dimensions of a function with which it can be tried: a batch of one, and elsewhere a length that
/// survives a few halvings, within what the function allows.
pub fn sample_dims(signature: &FunctionSignature) -> Vec<(String, i64)> {
    let mut dims: Vec<(String, i64)> = Vec::new();
    for (axis, dim) in signature.params.iter().flat_map(|param| param.dims.iter().enumerate()) {
        let DimSpec::Name(name) = dim else { continue };
        if dims.iter().any(|(known, _)| known == name) || name.contains(|c: char| !c.is_alphanumeric() && c != '_') {
            continue;
        }
        let length = if axis == 0 { 1 } else { 64 };
        let range = signature.ranges.iter().find(|range| range.name == *name);
        let length = range.map_or(length, |range| length.clamp(range.min, range.max.unwrap_or(i64::MAX)));
        dims.push((name.clone(), length));
    }
    dims
}

/// Fails if nothing is said of an input.
fn refuse_missing(
    signature: &FunctionSignature,
    sources: &HashMap<String, Source>,
    shapes: &HashMap<String, Vec<DimSpec>>,
) -> Result<(), CliError> {
    let is_missing = |param: &&ParamSignature| !sources.contains_key(&param.name) && !shapes.contains_key(&param.name);
    let missing: Vec<&str> = signature.params.iter().filter(is_missing).map(|param| param.name.as_str()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let (noun, verb) = if missing.len() == 1 { ("input", "is") } else { ("inputs", "are") };
    let options: Vec<String> = missing.iter().map(|name| format!("--input {name}=FILE")).collect();
    Err(CliError::usage(
        format!("{noun} {} of function {} {verb} not given", missing.join(", "), signature.name),
        format!("give {}, or --fill random for random data", options.join(" ")),
    ))
}

fn arguments(signature: &FunctionSignature, args: &InputArgs, missing: Missing) -> Result<Vec<Any>, CliError> {
    let sources = source::of_args(signature, &args.inputs)?;
    let mut shapes: HashMap<String, Vec<DimSpec>> = HashMap::new();
    for text in &args.shapes {
        let (name, dims) = parse_shape(text)?;
        shapes.insert(input(signature, &name)?, dims);
    }
    if missing == Missing::Refused {
        refuse_missing(signature, &sources, &shapes)?;
    }
    let mut lengths = lengths(signature, args, &shapes)?;
    let reader = source::SourceReader { mean: args.mean.clone(), std: args.std.clone() };
    // What files say about dimensions holds for the inputs that are made up.
    let mut given: Vec<Option<Any>> = Vec::new();
    for param in &signature.params {
        let source = sources.get(&param.name);
        let shape = shapes.get(&param.name).unwrap_or(&param.dims);
        // Random data is made when all lengths are known.
        let source = source.filter(|source| !matches!(source, Source::Random(_)));
        given.push(source.map(|source| reader.read(source, param, shape, &lengths)).transpose()?);
    }
    let known: Vec<Option<Vec<i64>>> = given.iter().map(|value| value.as_ref().and_then(shape_of)).collect();
    lengths.extend(relaxide::dims_of(signature, &known)?);
    let mut random = Random::new(args.seed);
    let make = |(param, value): (&ParamSignature, Option<Any>)| {
        if let Some(value) = value {
            return Ok(value);
        }
        let range = match sources.get(&param.name) {
            Some(Source::Random(range)) => Some(*range),
            _ => None,
        };
        random_tensor(param, shapes.get(&param.name).unwrap_or(&param.dims), &lengths, range, &mut random)
    };
    signature.params.iter().zip(given).map(make).collect()
}

/// The lengths of symbolic dimensions that `--dim` gives, and those that follow from `--shape`.
fn lengths(
    signature: &FunctionSignature,
    args: &InputArgs,
    shapes: &HashMap<String, Vec<DimSpec>>,
) -> Result<HashMap<String, i64>, CliError> {
    let names: Vec<String> = sample_dims(signature).into_iter().map(|(name, _)| name).collect();
    let mut lengths = HashMap::new();
    for range in parse_dims(&args.dims)? {
        if range.max != Some(range.min) {
            let message = format!("--dim {}: a call needs one length, not a range", range.name);
            return Err(CliError::usage(message, "write --dim NAME=LENGTH"));
        }
        let Some(name) = relaxide::known_name(&range.name, names.iter().map(String::as_str)) else {
            let message = format!("function {} has no symbolic dimension {:?}", signature.name, range.name);
            let help = if names.is_empty() {
                "its dimensions are all numbers".to_string()
            } else {
                suggest(&range.name, "its symbolic dimensions are", &names)
            };
            return Err(CliError::usage(message, help));
        };
        lengths.insert(name.to_string(), range.min);
    }
    for param in &signature.params {
        let Some(given) = shapes.get(&param.name) else { continue };
        for (dim, value) in param.dims.iter().zip(given) {
            if let (DimSpec::Name(name), DimSpec::Int(value)) = (dim, value) {
                lengths.entry(name.clone()).or_insert(*value);
            }
        }
    }
    Ok(lengths)
}

/// The name that an input has in the program; it may be given as the ONNX file writes it.
fn input(signature: &FunctionSignature, name: &str) -> Result<String, CliError> {
    if let Some(known) = known_input(signature, name) {
        return Ok(known);
    }
    let names: Vec<String> = signature.params.iter().map(|p| p.name.clone()).collect();
    let message = format!("function {} has no input {name:?}", signature.name);
    Err(CliError::usage(message, suggest(name, "its inputs are", &names)))
}

fn known_input(signature: &FunctionSignature, name: &str) -> Option<String> {
    relaxide::known_name(name, signature.params.iter().map(|p| p.name.as_str())).map(str::to_string)
}

/// A dimension's length, if it is known.
fn length(dim: &DimSpec, lengths: &HashMap<String, i64>) -> Option<i64> {
    match dim {
        DimSpec::Int(value) => Some(*value),
        DimSpec::Name(name) => lengths.get(name).copied(),
    }
}

/// The shape of a tensor, of numbers or of texts.
fn shape_of(value: &Any) -> Option<Vec<i64>> {
    match value.downcast_ref::<TextTensor>() {
        Some(texts) => Some(texts.shape.to_vec()),
        None => value.to::<Tensor>().ok().map(|tensor| tensor.shape().to_vec()),
    }
}

fn random_tensor(
    param: &ParamSignature,
    dims: &[DimSpec],
    lengths: &HashMap<String, i64>,
    range: Option<Range>,
    random: &mut Random,
) -> Result<Any, CliError> {
    if param.ty.starts_with("R.Tensor") || param.ty == "R.Any" || param.is_texts() {
        let shape: Option<Vec<i64>> = dims.iter().map(|dim| length(dim, lengths)).collect();
        let unknown_shape = dims.is_empty() && !param.is_texts() && !param.ty.starts_with("R.Tensor(()");
        if let Some(shape) = shape.filter(|_| !unknown_shape) {
            if param.is_texts() {
                return words::letters(&shape, |below| random.below(below));
            }
            let dtype = param.dtype.unwrap_or(DataType::float(32));
            let range = range.unwrap_or_else(|| Range::of(dtype, param.below));
            return Ok(Any::from(random.tensor(dtype, &shape, range)?));
        }
        let open: Vec<String> =
            dims.iter().filter(|dim| length(dim, lengths).is_none()).map(ToString::to_string).collect();
        let text = dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        if open.is_empty() {
            let message = format!("input {} has no shape that is known", param.name);
            return Err(CliError::usage(
                message,
                format!("say --shape {}=…, or --input {}=FILE", param.name, param.name),
            ));
        }
        let dims: Vec<String> = open.iter().map(|name| format!("--dim {name}=…")).collect();
        return Err(CliError::usage(
            format!("input {} has the shape ({text}), of which {} is open", param.name, open.join(", ")),
            format!("say {}, or --input {}=FILE", dims.join(" "), param.name),
        ));
    }
    Err(CliError::usage(
        format!("input {} is of the type {}, and there is no random value of that", param.name, param.ty),
        format!("give integers as --input {}=1,2,3, or call the function from Python", param.name),
    ))
}
