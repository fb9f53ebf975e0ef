//! Models and programs from files, and compiled models from either.

use std::io::Read;
use std::path::Path;

use relaxide::ffi::{Module, Tensor};
use relaxide::ir::pass::PassContext;
use relaxide::relax::transform::WeightNotes;
use relaxide::{CompileOptions, DimRange, DimSpec, Executable, IRModule, OnnxOptions};

use crate::args::{MachineArg, ModelArgs, Precision, ProgramArgs};
use crate::error::CliError;
use crate::inputs::npy;
use crate::progress::Bar;

/// What a file is, by its ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A compiled model.
    Compiled,
    /// An ONNX model.
    Onnx,
    /// A program that PyTorch exported.
    Torch,
    /// A TVMScript program.
    Script,
    /// A program in Relay's text, or a graph of one in JSON.
    Relay,
}

impl FileKind {
    /// What a file is.
    pub fn of(path: &Path) -> Result<FileKind, CliError> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("so") => Ok(FileKind::Compiled),
            Some("onnx") => Ok(FileKind::Onnx),
            Some("pt2") => Ok(FileKind::Torch),
            Some("py" | "relax") => Ok(FileKind::Script),
            Some("rly" | "relay" | "json") => Ok(FileKind::Relay),
            // Whatever it is called.
            _ if is_library(path) => Ok(FileKind::Compiled),
            _ => Err(CliError::usage(
                format!("{} is not a kind of file that is known here", path.display()),
                "give an ONNX model (.onnx), a program that PyTorch exported (.pt2), a TVMScript program (.py, .relax), a program \
                 in Relay (.relay, .rly, .json) or a compiled model (.so)",
            )),
        }
    }
}

/// Whether a file begins as shared libraries do.
fn is_library(path: &Path) -> bool {
    let mut magic = [0; 4];
    std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)).is_ok_and(|()| magic == *b"\x7fELF")
}

/// Fails if a file is not there, or is none.
pub fn check_file(path: &Path) -> Result<(), CliError> {
    let found = std::fs::metadata(path).map_err(CliError::file(path))?;
    if found.is_dir() {
        return Err(CliError::usage(format!("{} is a folder", path.display()), "give the model's file"));
    }
    Ok(())
}

/// Reads a program of any kind that can be compiled.
pub fn load(path: &Path, shapes: &[(String, Vec<DimSpec>)]) -> Result<IRModule, CliError> {
    let kind = FileKind::of(path)?;
    check_file(path)?;
    match kind {
        FileKind::Onnx => {
            let options = OnnxOptions { shapes: shapes.to_vec(), ..OnnxOptions::default() };
            Ok(relaxide::import_onnx_file(path, &options)?)
        }
        FileKind::Torch if !shapes.is_empty() => Err(CliError::usage(
            format!("{} has the shapes that it was exported with", path.display()),
            "export the model again, with `dynamic_shapes` where lengths shall be open",
        )),
        FileKind::Torch => Ok(relaxide::import_torch_file(path, &relaxide::torch::ImportOptions::default())?),
        FileKind::Script => {
            refuse_shapes(path, shapes)?;
            let text = std::fs::read_to_string(path).map_err(CliError::file(path))?;
            Ok(relaxide::parse_script(&text, &path.display().to_string())?)
        }
        FileKind::Relay => {
            refuse_shapes(path, shapes)?;
            in_relax(&relaxide::read_relay(path)?)
        }
        FileKind::Compiled => Err(CliError::usage(
            format!("{} is compiled already", path.display()),
            "give the .onnx, .pt2, .py, .relax, .relay or .json file that it was compiled from",
        )),
    }
}

/// Fails if shapes are given for a program that says them.
fn refuse_shapes(path: &Path, shapes: &[(String, Vec<DimSpec>)]) -> Result<(), CliError> {
    if shapes.is_empty() {
        return Ok(());
    }
    Err(CliError::usage(
        format!("{} is a program, whose shapes stand in its text", path.display()),
        "give the lengths of its symbolic dimensions with --dim, or change the text",
    ))
}

/// A program before it is compiled, for one of the machines.
pub enum Program {
    /// In Relax, for its machine.
    Relax(Box<IRModule>),
    /// In Relay, for the Relay VM.
    Relay(Box<relaxide::relay::Module>),
}

/// Reads a program of any kind that can be compiled, for the machine that is asked for.
pub fn load_for_machine(
    path: &Path,
    shapes: &[(String, Vec<DimSpec>)],
    args: &ProgramArgs,
) -> Result<Program, CliError> {
    let params = args.params.as_deref().map(read_params).transpose()?.unwrap_or_default();
    if FileKind::of(path)? != FileKind::Relay {
        if args.machine == Some(MachineArg::Relay) {
            return Err(CliError::usage(
                format!("--machine relay runs programs in Relay, and {} is none", path.display()),
                "leave --machine out",
            ));
        }
        let module = load(path, shapes)?;
        return Ok(Program::Relax(Box::new(relaxide::bind_params(module, &params)?)));
    }
    refuse_shapes(path, shapes)?;
    check_file(path)?;
    let module = relaxide::bind_relay_params(&relaxide::read_relay(path)?, &params)?;
    match args.machine.unwrap_or_default() {
        MachineArg::Relay => Ok(Program::Relay(Box::new(module))),
        MachineArg::Relax => Ok(Program::Relax(Box::new(in_relax(&module)?))),
    }
}

/// Tensors by name, from a file of a kind that its ending says.
fn read_params(path: &Path) -> Result<Vec<(String, Tensor)>, CliError> {
    check_file(path)?;
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("npz") => npy::read_archive(path),
        Some("gguf" | "safetensors") => Ok(relaxide::read_tensors(path)?),
        _ => Ok(relaxide::read_relay_params(path)?),
    }
}

/// A program in Relay as one of Relax.
fn in_relax(module: &relaxide::relay::Module) -> Result<IRModule, CliError> {
    Ok(relaxide::relay_to_relax(module, |file| std::fs::read_to_string(file).ok())?)
}

impl Program {
    /// The program with dimensions bounded and in the precision that is asked for.
    pub fn prepare(self, precision: Precision, dims: &[DimRange]) -> Result<Program, CliError> {
        self.prepare_noting(precision, dims, &WeightNotes::default())
    }

    /// The same, with notes of what became of the weights.
    pub fn prepare_noting(
        self,
        precision: Precision,
        dims: &[DimRange],
        notes: &WeightNotes,
    ) -> Result<Program, CliError> {
        let module = match self {
            Program::Relax(module) => return Ok(Program::Relax(Box::new(prepare(*module, precision, dims, notes)?))),
            Program::Relay(module) => module,
        };
        let refused = |option: &str, instead: &str| {
            let message = format!("{option} is for Relax's machine, and --machine relay asks for the Relay VM");
            Err(CliError::usage(message, format!("leave {option} out, {instead}, or take --machine relax")))
        };
        match (precision, dims) {
            (_, [_, ..]) => refused("--dim", "write the length into the program"),
            (Precision::Float32, []) => Ok(Program::Relay(module)),
            (_, []) => refused("--precision", "run the pass ToMixedPrecision on the program in Python"),
        }
    }

    /// The compiled program.
    pub fn compile(&self, options: &mut CompileOptions<'_>) -> Result<Executable, CliError> {
        Ok(match self {
            Program::Relax(module) => relaxide::compile(module, options)?,
            Program::Relay(module) => relaxide::compile_relay(module, options)?,
        })
    }
}

/// The program with dimensions bounded and in the precision that is asked for.
fn prepare(
    module: IRModule,
    precision: Precision,
    dims: &[DimRange],
    notes: &WeightNotes,
) -> Result<IRModule, CliError> {
    let module = relaxide::bound_dims(&module, "main", dims)?;
    match precision.pass(notes).map_err(relaxide::Error::from)? {
        None => Ok(module),
        Some(pass) => Ok(pass.run(module, &PassContext::default()).map_err(relaxide::Error::from)?),
    }
}

/// Opens a compiled model, or compiles one in memory.
pub fn open(args: &ModelArgs, bar: &mut Bar) -> Result<Module, CliError> {
    if FileKind::of(&args.file)? == FileKind::Compiled {
        args.program.refuse_for_compiled(&args.file)?;
        let module = load_compiled(&args.file)?;
        if let Some(weights) = &args.weights {
            relaxide::load_weights(&module, weights)?;
        }
        return Ok(module);
    }
    if args.weights.is_some() {
        return Err(CliError::usage(
            format!("{} is not compiled, and has its weights where it says", args.file.display()),
            "leave --weights out, or give the compiled file (.so)",
        ));
    }
    bar.begin("import");
    let program = load_for_machine(&args.file, &[], &args.program)?.prepare(args.program.precision(), &[])?;
    compile_in_memory(&program, &args.program, bar)
}

/// Opens a compiled model.
pub fn load_compiled(path: &Path) -> Result<Module, CliError> {
    relaxide::load_module(path).map_err(|error| unreadable(path, error))
}

/// Compiles a program into this process.
pub fn compile_in_memory(program: &Program, args: &ProgramArgs, bar: &mut Bar) -> Result<Module, CliError> {
    let target = args.target()?;
    if !relaxide::backend_profile(&target)?.is_loadable {
        let message = format!("what the target `{}` makes cannot be run here", target.kind);
        return Err(CliError::usage(message, "leave --target out"));
    }
    let mut options = CompileOptions { target, progress: Some(bar), ..CompileOptions::default() };
    let module = program.compile(&mut options)?.jit()?;
    bar.finish();
    Ok(module)
}

/// The error of a library that cannot be loaded; one that is not there is said to be that.
fn unreadable(path: &Path, error: relaxide::ffi::Error) -> CliError {
    match std::fs::metadata(path) {
        Err(source) => CliError::File { path: path.to_path_buf(), source },
        Ok(_) => error.into(),
    }
}
