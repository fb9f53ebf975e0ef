//! From program to executable.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use relaxide_codegen::{
    Artifact, Cache, CacheUse, CodegenError, CompileSettings, CompiledLib, DebugInfo, DeviceCode, Emitted, Share,
    StaticLibrary, backend, check_target, emit, host_of,
};
use relaxide_ffi::{self as ffi, Function, Module, ModuleImpl, ModuleProperties, Ref};
use relaxide_ir::pass::{Pass, PassContext, PassError, Refusal};
use relaxide_ir::{AttrValue, Code, IRModule, Target};
pub use relaxide_relax::ExecMode;
use relaxide_relax::transform;
use relaxide_tir::PrimFunc;
use relaxide_tir::lower::Launch;
use relaxide_tir::schedule::{KernelNote, Overrides};

use super::{run_kernel, signature};
use crate::Error;
use crate::compiler::cost::KernelCost;
use crate::compiler::export::{library_with, linked_objects};
use crate::compiler::front::Params;
use crate::compiler::kernels::TargetedKernel;
use crate::compiler::processors::{CompiledKernels, Processors};

/// Which passes a compilation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Pipeline {
    /// With constant folding and fusion.
    #[default]
    Default,
    /// The passes of TVM's default build: no folding, no fusion.
    DefaultBuild,
    /// Legalization and fusion only; what comes out is no executable but a program.
    Zero,
}

impl Pipeline {
    const ALL: [Pipeline; 3] = [Pipeline::Default, Pipeline::DefaultBuild, Pipeline::Zero];

    /// The name by which the pipeline is known.
    pub fn name(self) -> &'static str {
        match self {
            Pipeline::Default => "default",
            Pipeline::DefaultBuild => "default_build",
            Pipeline::Zero => "zero",
        }
    }
}

impl FromStr for Pipeline {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let found = Pipeline::ALL.into_iter().find(|p| p.name() == name);
        found.ok_or_else(|| Error::Unknown {
            what: "pipeline",
            name: name.to_string(),
            known: Pipeline::ALL.iter().map(|p| p.name().to_string()).collect(),
        })
    }
}

/// The attribute of a module that says what is in front of its names where it is linked into a program.
const SYSTEM_LIB_PREFIX: &str = "system_lib_prefix";

/// The kind of the module of kernels.
pub(crate) const KERNELS: &str = "llvm";

/// Is told how far a compilation is.
pub trait Progress {
    /// Stage `name` has done `done` of `total` steps.
    fn stage(&mut self, name: &str, done: usize, total: usize);
}

/// Options of a compilation.
#[derive(Default)]
pub struct CompileOptions<'a> {
    /// What to compile for.
    pub target: Target,
    /// Processors besides the target's for which the library has kernels as well: the best that fits is chosen where it is loaded.
    /// All targets are of one machine. [`parse_targets`](relaxide_codegen::parse_targets) reads a list.
    pub also: Vec<Target>,
    /// Which passes to run.
    pub pipeline: Pipeline,
    /// What Relax functions become.
    pub exec_mode: ExecMode,
    /// Passes that are left out, by name.
    pub disabled_passes: Vec<String>,
    /// Values bound to parameters of `main` by name.
    pub params: Params,
    /// A pass that is run in the place of the pipeline's.
    pub passes: Option<Pass>,
    /// Level, options and instruments of the passes; the target and the disabled passes are those above.
    pub context: PassContext,
    /// Where compiled kernels are kept for other compilations; none: where `RELAXIDE_CACHE` says, if it does.
    pub cache: Option<Cache>,
    /// Whether accesses of kernels outside of their buffers become errors; so they do as well where the context has the option
    /// `tirx.instrument_bound_checkers`. Such kernels are several times slower.
    pub check_bounds: bool,
    /// Where the kernels are printed to, as they are compiled; native code then says which line of that file each instruction
    /// comes from. The context's option `relaxide.debug_info` is the same. Beside a library, [`debug_text_path`] is the place.
    pub debug_info: Option<PathBuf>,
    /// Decisions for kernels in the place of the schedule rules' guesses. The context's option `relaxide.schedule` names a file
    /// of such, which is read where none are given here.
    pub schedule: Option<Overrides>,
    /// Who is told how far it is.
    pub progress: Option<&'a mut dyn Progress>,
}

impl CompileOptions<'_> {
    pub(crate) fn tell(&mut self, stage: &str, done: usize, total: usize) {
        if let Some(progress) = &mut self.progress {
            progress.stage(stage, done, total);
        }
    }
}

/// A compiled program in memory.
pub struct Executable {
    pub(crate) module: Module,
    pub(crate) kernels: Artifact,
    notes: Vec<KernelNote>,
    /// In front of its names where it is linked into a program, if the program says so.
    pub(crate) prefix: Option<String>,
}

/// Compiles a program.
pub fn compile(module: &IRModule, options: &mut CompileOptions<'_>) -> Result<Executable, Error> {
    if options.pipeline == Pipeline::Zero {
        return Err(Error::Unknown {
            what: "pipeline that ends in an executable, such as",
            name: Pipeline::Zero.name().into(),
            known: vec![Pipeline::Default.name().into(), Pipeline::DefaultBuild.name().into()],
        });
    }
    // Whatever is wrong with the target is said before anything is done for it.
    check_target(&options.target)?;
    let processors = Processors::of(options)?;
    let mut signature = signature::Signature::of_module(module, &options.target);
    processors.enter(options, &mut signature)?;
    let prefix = module.attrs.str(SYSTEM_LIB_PREFIX).map(str::to_string);
    let module = transform::bind_params(module.clone(), "main", &options.params)?;
    let lowered = run_pipeline(module, options)?;
    let (mut executable, kernels) = relaxide_relax::vm_codegen(&lowered, options.exec_mode)?;
    signature.kernels =
        kernels.functions_of::<PrimFunc>().map(|(name, kernel)| KernelCost::of(name, &kernel)).collect();
    signature.origins = executable.origins();
    executable.set_trailer(signature.to_trailer());
    let CompiledKernels { functions, notes, translated, devices } = processors.make(&kernels, options)?;
    let module = executable.into_module();
    for external in external_modules(&lowered)? {
        module.import(external)?;
    }
    module.import(kernels_module(functions, devices, &translated, options)?)?;
    Ok(Executable { module, kernels: translated, notes, prefix })
}

/// The kernels of a program as the passes make them, before schedule rules.
pub(crate) fn kernels_of(module: &IRModule, options: &mut CompileOptions<'_>) -> Result<IRModule, Error> {
    let module = transform::bind_params(module.clone(), "main", &options.params)?;
    let lowered = run_pipeline(module, options)?;
    Ok(relaxide_relax::vm_codegen(&lowered, options.exec_mode)?.1)
}

/// Native code, or C, of a module of kernels, for the executable of a program that calls them.
pub(crate) fn with_kernels(
    module: Module,
    kernels: &IRModule,
    options: &mut CompileOptions<'_>,
) -> Result<Executable, Error> {
    check_target(&options.target)?;
    let CompiledKernels { functions, notes, translated, devices } = Processors::of(options)?.make(kernels, options)?;
    module.import(kernels_module(functions, devices, &translated, options)?)?;
    Ok(Executable { module, kernels: translated, notes, prefix: None })
}

/// What stands for the kernels in the module tree, with the modules of devices below it, where native code looks for their functions.
/// Functions that are run as they are stand there themselves.
fn kernels_module(
    functions: Vec<TargetedKernel>,
    devices: Vec<DeviceCode>,
    translated: &Artifact,
    options: &CompileOptions<'_>,
) -> Result<Module, Error> {
    if let Artifact::Functions(module) = translated {
        return Ok(module.clone());
    }
    let functions = functions.into_iter().map(|(kernel, _)| kernel).collect();
    let kernels = Module::new(Kernels { functions, target: options.target.clone() });
    for DeviceCode { kind, bytes } in devices {
        relaxide_runtime::register();
        let name = format!("ffi.Module.load_from_bytes.{kind}");
        let missing =
            || ffi::Error::new(ffi::ErrorKind::RuntimeError, format!("this build has no modules of the kind {kind}"));
        let loader = ffi::get_global(&name).ok_or_else(missing)?;
        let module: Module = ffi::AnyView::with_bytes(&bytes, |bytes| loader.call(&[bytes]))?.to()?;
        kernels.import(module)?;
    }
    Ok(kernels)
}

/// Native code, or C, of kernels, and the functions of devices.
pub(crate) fn translate(
    functions: &[TargetedKernel],
    options: &mut CompileOptions<'_>,
    share: Share<'_>,
) -> Result<Emitted, Error> {
    options.tell("native code", 0, 1);
    let target = host_of(&options.target);
    let debug =
        options.debug_info.clone().or_else(|| options.context.config.text(DEBUG_INFO_OPTION).map(PathBuf::from));
    let backend = backend(&target)?;
    let cache = options.cache.clone().or_else(Cache::of_environment);
    let debug = match debug {
        Some(_) if !backend.profile().has_lines => return Err(CodegenError::LinesInC.into()),
        debug => {
            let kernels: Vec<_> = functions.iter().map(|(kernel, _)| kernel.clone()).collect();
            debug.map(|file| print_kernels(&debug_text_of(file, share), &kernels)).transpose()?
        }
    };
    let settings = CompileSettings { cache: cache.as_ref(), debug: debug.as_ref(), share };
    let tell = &mut |done, total| options.tell("native code", done, total);
    Ok(emit(functions, &target, settings, tell)?)
}

/// The option of a [`PassContext`] that asks for line information.
const DEBUG_INFO_OPTION: &str = "relaxide.debug_info";

/// The file beside a compiled program that its kernels are printed to where line information is asked for: `model.so` has
/// `model.so.py`.
pub fn debug_text_path(output: &Path) -> PathBuf {
    let mut name = output.as_os_str().to_os_string();
    name.push(".py");
    PathBuf::from(name)
}

/// The file for the kernels of one processor: those of others than the first have its name in front of the ending.
fn debug_text_of(file: PathBuf, share: Share<'_>) -> PathBuf {
    let Share::Other(variant) = share else { return file };
    let ending = file.extension().map(|ending| ending.to_string_lossy().into_owned()).unwrap_or_default();
    file.with_extension(format!("{variant}.{ending}"))
}

/// Prints kernels to a file, for debuggers to show.
fn print_kernels(file: &Path, kernels: &[Ref<PrimFunc>]) -> Result<Arc<DebugInfo>, Error> {
    let failed = |source| Error::Io { context: format!("cannot print the kernels to {}", file.display()), source };
    let (text, lines) = relaxide_script::print_with_lines(kernels);
    relaxide_runtime::file::write_whole(file, 0o644, |out| out.write_all(text.as_bytes())).map_err(failed)?;
    Ok(Arc::new(DebugInfo { file: std::path::absolute(file).map_err(failed)?, lines }))
}

/// The context of a compilation's passes.
pub(crate) fn pass_context(options: &CompileOptions<'_>) -> PassContext {
    PassContext {
        target: options.target.clone(),
        also: options.also.clone(),
        runner: Some(run_kernel::runner()),
        disabled: [options.context.disabled.as_slice(), options.disabled_passes.as_slice()].concat(),
        ..options.context.clone()
    }
}

fn run_pipeline(module: IRModule, options: &mut CompileOptions<'_>) -> Result<IRModule, Error> {
    let context = pass_context(options);
    if let Some(passes) = &options.passes {
        return Ok(passes.run(module, &context)?);
    }
    let name = options.pipeline.name();
    let passes = transform::pipeline(name)
        .ok_or_else(|| PassError::new(name, Refusal::new(Code::UnknownPass, "is not a pipeline")))?
        .resolve()?;
    let total = passes.len();
    passes.iter().filter(|pass| context.enables(pass)).enumerate().try_fold(module, |module, (done, pass)| {
        options.tell("passes", done, total);
        Ok(pass.run(module, &context)?)
    })
}

/// Runs passes, each in the words of the command line: `FuseOps`, `ToMixedPrecision(out_dtype=float16)`.
pub fn run_passes(module: &IRModule, passes: &[&str]) -> Result<IRModule, Error> {
    let passes = transform::parse_passes(&passes.join(", "))?;
    Ok(Pass::sequential("passes", passes).run(module.clone(), &PassContext::default())?)
}

/// The modules that backends compiled functions to (the pass `RunCodegen`).
fn external_modules(module: &IRModule) -> Result<Vec<Module>, Error> {
    let Some(AttrValue::List(list)) = module.attrs.get(transform::EXTERNAL_MODULES_ATTR) else { return Ok(Vec::new()) };
    let modules = list.iter().map(|item| Ok(relaxide_ffi::Field::to_any(item).to::<Module>()?));
    modules.collect()
}

/// No cache is asked for C, nor for functions of other back ends.
static NOT_CACHED: CacheUse = CacheUse { found: 0, kept: 0, problem: None };

/// Stands in the module tree for the native code of the library that the tree is written into.
struct Kernels {
    functions: Vec<Ref<PrimFunc>>,
    target: Target,
}

impl ModuleImpl for Kernels {
    fn kind(&self) -> &str {
        KERNELS
    }

    fn get_function(&self, _: &str) -> Option<Function> {
        None
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::COMPILATION_EXPORTABLE
    }

    /// The kernels anew as text: for LLVM before its passes (`ll`), as assembly behind them (`asm`), or in C (`c`).
    fn inspect_source(&self, format: &str) -> Result<String, ffi::Error> {
        let failed = |error: CodegenError| ffi::Error::new(ffi::ErrorKind::RuntimeError, error.to_string());
        let backend = backend(&self.target).map_err(failed)?;
        let is_device = backend.profile().is_device;
        let own: Vec<_> =
            self.functions.iter().filter(|kernel| is_device || Launch::of(kernel).is_none()).cloned().collect();
        let text = backend.text(&own, &self.target, format);
        text.map(|text| text.map_err(failed)).unwrap_or_else(|| {
            let message = format!("kernels are shown as \"ll\", \"asm\" or \"c\", not as {format:?}");
            Err(ffi::Error::new(ffi::ErrorKind::ValueError, message))
        })
    }
}

impl Executable {
    /// Loads it into this process. There is nothing to load of a program whose kernels are C. Code has to be in a file for that; the program and
    /// its weights stay where they are.
    pub fn jit(&self) -> Result<Module, Error> {
        if let Artifact::Functions(_) = self.kernels {
            return Ok(self.module.clone());
        }
        let failed = |source| Error::Io { context: "cannot make a temporary library".into(), source };
        let file = tempfile::Builder::new().prefix("relaxide-").suffix(".so").tempfile().map_err(failed)?;
        let program = relaxide_vm::Executable::of_module(&self.module);
        let (Some(program), Artifact::Library(library)) = (program, &self.kernels) else {
            self.export_library(file.path())?;
            return Ok(crate::load_module(file.path())?);
        };
        let empty = relaxide_vm::Executable::default().into_module();
        self.module.imports().into_iter().try_for_each(|import| empty.import(import))?;
        let tree = relaxide_runtime::save_module_tree(&empty)?;
        let library = library_with(library, linked_objects(&tree));
        relaxide_codegen::export_library(&tree.bytes, &library, file.path())?;
        let loaded = crate::load_module(file.path())?;
        let module = (*program).clone().into_module();
        loaded.imports().into_iter().try_for_each(|import| module.import(import))?;
        Ok(module)
    }

    /// Whether it has functions of the virtual machine, and not kernels alone.
    pub fn has_functions(&self) -> bool {
        let is_kernels = |program: Arc<relaxide_vm::Executable>| program.functions().is_empty();
        !relaxide_vm::Executable::of_module(&self.module).is_some_and(is_kernels)
    }

    /// The module of the bytecode, without its kernels.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What of its kernels came out of the cache.
    pub fn cache_use(&self) -> &CacheUse {
        match &self.kernels {
            Artifact::Library(library) => &library.cached,
            Artifact::Source(_) | Artifact::Functions(_) => &NOT_CACHED,
        }
    }

    /// The kernels as text: for LLVM before its passes (`ll`), as assembly behind them (`asm`), or in C (`c`).
    pub fn inspect_source(&self, format: &str) -> Result<String, Error> {
        if let Artifact::Functions(module) = &self.kernels {
            return Ok(module.body().inspect_source(format)?);
        }
        let kernels = self.module.imports().into_iter().find(|module| module.kind() == KERNELS);
        let missing = || ffi::Error::new(ffi::ErrorKind::ValueError, "the program has no kernels");
        Ok(kernels.ok_or_else(missing)?.body().inspect_source(format)?)
    }

    /// The decisions of schedule rules for all kernels as JSON, in the form of [`Overrides`].
    pub fn schedule(&self) -> serde_json::Value {
        self.notes.iter().map(KernelNote::to_json).collect()
    }

    /// How each kernel's loop nest came about.
    pub fn notes(&self) -> &[KernelNote] {
        &self.notes
    }
}

/// Writes bytecode, and modules that are saved as bytes, as one shared library. Native code is not among them: that is
/// exported by the [`Executable`] that [`compile`] returns.
pub fn export_bytecode(module: &Module, path: &Path) -> Result<(), Error> {
    let compiled = relaxide_runtime::save_module_tree(module)?.compiled;
    if compiled.iter().any(|module| module.downcast::<StaticLibrary>().is_none()) {
        let message = "a module with native code is exported by the executable that it was compiled as";
        return Err(ffi::Error::new(ffi::ErrorKind::ValueError, message).into());
    }
    let kernels = Artifact::Library(Box::new(no_kernels()?));
    Executable { module: module.clone(), kernels, notes: Vec::new(), prefix: None }.export_library(path)
}

/// Native code without any kernel, for libraries that hold modules alone.
pub(crate) fn no_kernels() -> Result<CompiledLib, Error> {
    Ok(relaxide_codegen::compile(&[], &Target::default())?)
}

/// An executable that was built by hand, as a module.
pub fn executable_module(executable: relaxide_vm::Executable) -> Result<Module, ffi::Error> {
    relaxide_vm::register();
    Ok(executable.into_module())
}

/// The ending of the file that a program for a target is exported to where nothing is said.
pub fn default_ending(target: &Target) -> Result<&'static str, Error> {
    Ok(backend(target)?.ending(target)?)
}

/// How kernels are made for a target; an error where there is no back end of its kind.
pub fn backend_profile(target: &Target) -> Result<relaxide_codegen::Profile, Error> {
    Ok(backend(target)?.profile())
}
