//! Models on a server: `--on KEY@HOST:PORT`, or one that a tracker or a proxy leads to.
//!
//! The server says what it compiles for; the model is compiled here for that, sent as one file, loaded there and called there. Inputs go
//! over once, outputs come back when they are asked for, and times are the server's own.

use relaxide::ffi::{Any, AnyView, Array, Bytes, Device, Error, Function, Module, Tensor};
use relaxide::rpc::Session;
use relaxide::rpc::secure::dial::Credentials;
use relaxide::rpc::secure::identity::Fingerprint;
use relaxide::rpc::secure::place::Place;
use relaxide::{CompileOptions, Signature};

use crate::args::{ModelArgs, ProgramArgs};
use crate::error::CliError;
use crate::program::{self, FileKind};
use crate::progress::Bar;

/// The variable with the fingerprint of a tracker that speaks our protocol.
const TRACKER_KEY: &str = "RELAXIDE_RPC_TRACKER";
/// The file's name in the session's folder.
const FILE: &str = "model.so";
/// A session with a server.
pub struct Server {
    session: Session,
    name: String,
}

/// A model that was sent.
pub struct Sent {
    module: Module,
    /// What it has.
    pub signature: Signature,
}

impl Server {
    /// Connects to what `--on` names.
    pub fn connect(on: &str) -> Result<Server, CliError> {
        let place = Place::parse(on).map_err(|error| {
            CliError::usage(format!("--on: {}", error.message()), "see `relaxide run --help` for the forms")
        })?;
        relaxide::rpc::register();
        let tracker_key = std::env::var(TRACKER_KEY).ok().filter(|text| !text.is_empty());
        let tracker_key = tracker_key.map(|text| Fingerprint::parse(&text)).transpose()?;
        let session = place.connect(&Credentials::from_environment()?, tracker_key)?;
        Ok(Server { session, name: on.to_owned() })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What the server compiles for; nothing if it does not say.
    pub fn target(&self) -> Option<String> {
        let function = self.session.find_function("tvm.rpc.server.target").ok()??;
        function.call(&[]).ok()?.to().ok()
    }

    /// Compiles a model for the server, unless it is compiled, and sends it.
    pub fn send(&self, model: &ModelArgs, bar: &mut Bar) -> Result<Sent, CliError> {
        if model.weights.is_some() {
            return Err(CliError::usage(
                "a model is sent in one file",
                "compile it with its weights inside, without --weights",
            ));
        }
        let (bytes, signature) = match FileKind::of(&model.file)? {
            FileKind::Compiled => {
                let module = program::load_compiled(&model.file)?;
                if relaxide::relay_vm::Executable::of_module(&module).is_some() {
                    return Err(not_there());
                }
                let signature = relaxide::signature_of_file(&module)?;
                (std::fs::read(&model.file).map_err(CliError::file(&model.file))?, signature)
            }
            _ => self.compile(model, bar)?,
        };
        self.session.upload(FILE, &bytes)?;
        Ok(Sent { module: self.session.load_module(FILE)?, signature })
    }

    fn compile(&self, model: &ModelArgs, bar: &mut Bar) -> Result<(Vec<u8>, Signature), CliError> {
        // What the far side says of itself, where nothing is said here.
        let target = model.program.target.clone().or_else(|| self.target());
        let options = ProgramArgs { target, ..model.program.clone() };
        bar.begin("import");
        let program = program::load_for_machine(&model.file, &[], &options)?.prepare(options.precision(), &[])?;
        if matches!(program, program::Program::Relay(_)) {
            return Err(not_there());
        }
        let options = CompileOptions { target: options.target()?, ..CompileOptions::default() };
        let compiled = program.compile(&mut CompileOptions { progress: Some(bar), ..options })?;
        bar.finish();
        let folder = tempfile::tempdir().map_err(CliError::file("a temporary folder".as_ref()))?;
        let path = folder.path().join(FILE);
        compiled.export_library(&path)?;
        let bytes = std::fs::read(&path).map_err(CliError::file(&path))?;
        Ok((bytes, relaxide::signature_of_file(compiled.module())?))
    }
}

/// The error of a program that servers do not run.
fn not_there() -> CliError {
    CliError::usage(
        "servers run programs of Relax's machine, and this one is of the Relay VM",
        "leave --on out, or compile the program with --machine relax",
    )
}

/// A function on a server, with its inputs there.
pub struct Far {
    server: Server,
    machine: Module,
    function: String,
    /// The inputs, which profiles are given again.
    inputs: Vec<Any>,
}

/// A profile that is on the server.
pub struct FarReport<'a> {
    far: &'a Far,
    report: Any,
}

fn find(module: &Module, name: &str) -> Result<Function, Error> {
    let missing = || Error::new("AttributeError", format!("the model on the server has no function {name}"));
    module.get_function(name, true).ok_or_else(missing)
}

/// The seconds of a call of a function on a server, by the server's clock: of so many calls each, so many times.
pub fn times(
    session: &Session,
    module: &Module,
    name: &str,
    [calls, rounds]: [usize; 2],
    given: &[AnyView<'_>],
) -> Result<Vec<f64>, Error> {
    let make = session.function("runtime.RPCTimeEvaluator")?;
    let (name, none) = (Any::from(name), Any::from(""));
    let mut args: Vec<AnyView<'_>> = vec![module.into(), name.as_view()];
    args.extend([1, 0, calls as i64, rounds as i64, 0, 100, 0, 1, 0].map(AnyView::from));
    args.push(none.as_view());
    let evaluator: Function = make.call(&args)?.to()?;
    let seconds: Bytes = evaluator.call(given)?.to()?;
    Ok(seconds.as_slice().as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
}

impl Far {
    /// Makes a virtual machine there, and sends the inputs.
    pub fn begin(server: Server, sent: &Sent, function: &str, arguments: &[Any]) -> Result<Far, CliError> {
        let machine: Module = find(&sent.module, "vm_load_executable")?.call(&[])?.to()?;
        let pooled = [1_i64, 0, 2].map(AnyView::from);
        find(&machine, "vm_initialization")?.call(&pooled)?;
        let device = server.session.device(Device::cpu(0))?;
        let send = |argument: &Any| match argument.as_tensor() {
            Some(tensor) => server.session.tensor(tensor, device).map(Any::from),
            None => Ok(argument.clone()),
        };
        let inputs = arguments.iter().map(send).collect::<Result<Vec<_>, _>>()?;
        let far = Far { server, machine, function: function.to_owned(), inputs };
        far.call("set_input", &far.inputs)?;
        Ok(far)
    }

    /// The server, for messages.
    pub fn name(&self) -> &str {
        &self.server.name
    }

    fn call(&self, name: &str, args: &[Any]) -> Result<Any, Error> {
        let function = Any::from(&self.function);
        let views: Vec<AnyView<'_>> = std::iter::once(&function).chain(args).map(Any::as_view).collect();
        find(&self.machine, name)?.call(&views)
    }

    /// Calls the function once; its results stay there.
    pub fn run(&self) -> Result<(), Error> {
        self.call("invoke_stateful", &[]).map(drop)
    }

    /// Calls the function, and gets its results.
    pub fn invoke(&self) -> Result<Any, Error> {
        self.run()?;
        self.output(&mut Vec::new())
    }

    fn output(&self, path: &mut Vec<Any>) -> Result<Any, Error> {
        let arity: i64 = self.call("get_output_arity", path)?.to()?;
        if arity < 0 {
            let value = self.call("get_output", path)?;
            return match value.to::<Tensor>() {
                Ok(tensor) => relaxide::runtime::device::on_host(&tensor).map(Any::from),
                Err(_) => Ok(value),
            };
        }
        let mut fields = Vec::new();
        for index in 0..arity {
            path.push(index.into());
            fields.push(self.output(path)?);
            path.pop();
        }
        Ok(Array::from_vec(fields).into())
    }

    /// The seconds of so many calls, by the server's clock.
    pub fn times(&self, warmup: usize, runs: usize) -> Result<Vec<f64>, Error> {
        (0..warmup).try_for_each(|_| self.run())?;
        let function = Any::from(&self.function);
        times(&self.server.session, &self.machine, "invoke_stateful", [1, runs], &[function.as_view()])
    }

    /// A profile of one call.
    pub fn profile(&self) -> Result<FarReport<'_>, Error> {
        Ok(FarReport { far: self, report: self.call("profile_report", &self.inputs)? })
    }
}

impl FarReport<'_> {
    /// The profile in one of its forms.
    pub fn form(&self, name: &str) -> Result<String, Error> {
        let function = self.far.server.session.function(&format!("runtime.profiling.{name}"))?;
        function.call(&[self.report.as_view()])?.to()
    }
}
