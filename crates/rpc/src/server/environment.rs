//! [`Environment`]: the functions that each session has of its own.
//!
//! They are found by name before the process's global functions, so sessions in one process do not share a folder.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use relaxide_ffi::{Any, AnyView, Bytes, Error, ErrorKind, FromAny, Function, Module, get_global};
use relaxide_runtime::device::view_at;

use super::folder::Folder;
use super::policy::Policy;

/// The names of a session's own functions, and they.
pub struct Environment {
    functions: HashMap<&'static str, Function>,
}

impl Environment {
    /// That of a session whose files are in a folder.
    pub fn new(folder: &Path, policy: &Policy) -> Result<Environment, Error> {
        super::register();
        let folder = Arc::new(Folder::open(folder)?);
        let mut functions = HashMap::new();
        for (name, body) in TABLE {
            let (folder, body) = (Arc::clone(&folder), *body);
            functions.insert(*name, Function::new(move |args| body(&folder, &ServerArgs { name, views: args })));
        }
        let checked = policy.clone();
        functions.insert("runtime.RPCTimeEvaluator", Function::new(move |args| time_evaluator(&checked, args)));
        Ok(Environment { functions })
    }

    /// The function of a name.
    pub fn function(&self, name: &str) -> Option<Function> {
        self.functions.get(name).cloned()
    }
}

type ServerFunction = fn(&Arc<Folder>, &ServerArgs<'_, '_>) -> Result<Any, Error>;

const TABLE: &[(&str, ServerFunction)] = &[
    ("tvm.rpc.server.upload", |folder, args| {
        let name: String = args.get(0, "name")?;
        let bytes = args.views.get(1).and_then(AnyView::as_bytes);
        let bytes =
            bytes.ok_or_else(|| Error::new(ErrorKind::TypeError, "tvm.rpc.server.upload takes a name and bytes"))?;
        folder.write(&name, bytes).map(Any::from)
    }),
    ("tvm.rpc.server.download", |folder, args| {
        folder.read(&args.get::<String>(0, "name")?).map(|bytes| Bytes::new(&bytes).into())
    }),
    ("tvm.rpc.server.remove", |folder, args| folder.remove(&args.get::<String>(0, "name")?).map(Any::from)),
    ("tvm.rpc.server.listdir", |folder, args| {
        let name: String = args.get(0, "name")?;
        let names = folder.list(&name)?;
        Ok(names
            .iter()
            .map(|file| format!("{},", folder.path().join(&name).join(file).display()))
            .collect::<String>()
            .into())
    }),
    ("tvm.rpc.server.workpath", |folder, args| {
        let name: String = args.get(0, "name")?;
        let path = if name.is_empty() { folder.path().to_path_buf() } else { folder.place(&name)? };
        Ok(path.to_string_lossy().into_owned().into())
    }),
    ("tvm.rpc.server.load_module", |folder, args| load(folder, &args.get::<String>(0, "name")?).map(Any::from)),
    ("tvm.rpc.server.download_linked_module", |folder, args| {
        let name: String = args.get(0, "name")?;
        folder.read(&linked(folder, &name)?).map(|bytes| Bytes::new(&bytes).into())
    }),
    ("tvm.rpc.server.ModuleGetFunction", |_folder, args| {
        let module: Module = args.get(0, "module")?;
        let query_imports = args.views.get(2).map_or(Ok(true), |view| view.to())?;
        Ok(module.get_function(&args.get::<String>(1, "name")?, query_imports).into())
    }),
    ("tvm.rpc.server.ImportModule", |_folder, args| {
        args.get::<Module>(0, "module")?.import(args.get(1, "imported module")?).map(Any::from)
    }),
    ("tvm.rpc.server.target", |_folder, _args| Ok(this_target().into())),
    ("cache_flush_cpu_non_first_arg", |_folder, args| flush(args.views.get(1..).unwrap_or_default()).map(Any::from)),
];

/// The arguments of a call.
struct ServerArgs<'a, 'v> {
    name: &'static str,
    views: &'a [AnyView<'v>],
}

impl ServerArgs<'_, '_> {
    fn get<T: FromAny>(&self, index: usize, name: &str) -> Result<T, Error> {
        let function = self.name;
        let missing = || Error::new(ErrorKind::TypeError, format!("{function}: argument {index} ({name}) is missing"));
        let value: Result<T, Error> = self.views.get(index).ok_or_else(missing)?.to();
        value.map_err(|error| error.context(format_args!("{function}: argument {index} ({name})")))
    }
}

/// What programs for this machine are compiled for.
fn this_target() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("llvm -mtriple={}-linux-gnu{} -num-cores={cores}", std::env::consts::ARCH, processor())
}

/// The newest level of its instruction set that the processor has, where there are levels.
#[cfg(target_arch = "x86_64")]
fn processor() -> &'static str {
    let has_v3 =
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("bmi2");
    let has_v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (has_v3, has_v4) {
        (true, true) => " -mcpu=x86-64-v4",
        (true, false) => " -mcpu=x86-64-v3",
        _ => " -mcpu=x86-64",
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor() -> &'static str {
    ""
}

fn load(folder: &Folder, name: &str) -> Result<Module, Error> {
    let library = linked(folder, name)?;
    relaxide_vm::load_module(folder.existing(&library)?)
}

/// The name of a shared library: the file itself, or what its objects were linked to.
fn linked(folder: &Folder, name: &str) -> Result<String, Error> {
    let path = folder.existing(name)?;
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending {
        "so" | "dylib" => return Ok(name.to_owned()),
        "o" | "tar" => {}
        _ => {
            let message =
                format!("{name} cannot be loaded: give a shared library (.so), an object (.o) or a .tar of these");
            return Err(Error::new(ErrorKind::RuntimeError, message));
        }
    }
    let (output, out_name) = (path.with_extension(format!("{ending}.so")), format!("{name}.so"));
    let scratch = tempfile::tempdir_in(folder.path())?;
    let objects = match ending {
        "o" => vec![path.clone()],
        _ => {
            finish(Command::new("tar").arg("-xf").arg(&path).arg("-C").arg(scratch.path()), name)?;
            let mut found: Vec<_> =
                std::fs::read_dir(scratch.path())?.filter_map(|entry| Some(entry.ok()?.path())).collect();
            // A library that is packed as it is needs no linker.
            let is_library = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "so");
            if let ([library], 1) = (found.as_slice(), found.iter().filter(|path| is_library(path)).count()) {
                std::fs::rename(library, folder.place(&out_name)?)?;
                return Ok(out_name);
            }
            found.retain(|path| matches!(path.extension().and_then(|e| e.to_str()), Some("o" | "a" | "c" | "cc")));
            found.sort();
            found
        }
    };
    finish(Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&output).args(objects), name)?;
    let place = folder.place(&out_name)?;
    if output != place {
        std::fs::rename(&output, place)?;
    }
    Ok(out_name)
}

fn finish(command: &mut Command, name: &str) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| {
        let message =
            format!("{name} must be linked on the server, and {program} cannot be run there: {error}; send a .so");
        Error::new(ErrorKind::RuntimeError, message)
    })?;
    match output.status.success() {
        true => Ok(()),
        false => {
            let said: String = String::from_utf8_lossy(&output.stderr).chars().take(2000).collect();
            Err(Error::new(ErrorKind::RuntimeError, format!("{name}: {program} failed: {said}")))
        }
    }
}

/// Has the data of tensors leave the processor's caches: reading as much else as caches hold does that without an instruction that
/// only some processors have.
fn flush(args: &[AnyView<'_>]) -> Result<(), Error> {
    const LINE: usize = 64;
    let mut sum = 0_u64;
    for arg in args {
        let Some(tensor) = arg.as_tensor() else { continue };
        let bytes = view_at(tensor, &[tensor.byte_size() as i64], relaxide_ffi::DataType::uint(8), 0)?;
        sum += bytes.as_bytes()?.iter().step_by(LINE).map(|byte| u64::from(*byte)).sum::<u64>();
    }
    let cold = vec![1_u8; 64 << 20];
    sum += cold.iter().step_by(LINE).map(|byte| u64::from(*byte)).sum::<u64>();
    std::hint::black_box(sum);
    Ok(())
}

/// The evaluator asks for functions by name itself, so their names are checked as if the session had asked.
fn time_evaluator(policy: &Policy, args: &[AnyView<'_>]) -> Result<Any, Error> {
    let named = |index: usize| args.get(index).and_then(AnyView::as_str).unwrap_or_default();
    if args.first().is_some_and(AnyView::is_none) {
        policy.admits_function(named(1))?;
    }
    if !named(11).is_empty() {
        policy.admits_function(named(11))?;
    }
    let make = get_global("runtime.RPCTimeEvaluator");
    make.ok_or_else(|| Error::new(ErrorKind::RuntimeError, "this server has no time evaluator"))?.call(args)
}
