//! A back end from outside: kernels as readable pseudo-code, run by the reference interpreter.
//!
//! A back end is a kind of target, a [`Backend`] for it, and the module that its kernels become. This one lives in a crate of its
//! own and changes nothing in Relaxide; [`register`] makes `--target pseudo` known to the process. What it shows:
//!
//! * [`target::register_kind`]: the name, the device that data lives on, the options that the target's text may have;
//! * [`Backend`]: how kernels are lowered for it ([`Profile`]), what they become ([`Artifact::Functions`]), and their text;
//! * [`ModuleImpl`]: functions by name, and bytes that a library carries and [`LOADER`] reads again.
//!
//! A kernel is interpreted a statement at a time, a thousand times slower than native code.

use std::sync::{Arc, OnceLock};

use relaxide::codegen::{self, Artifact, Backend, CodegenError, CompileSettings, Profile};
use relaxide::ffi::{
    self, Any, AnyView, DataType, Device, ErrorKind, Function, Module, ModuleImpl, ModuleProperties, Ref, Tensor,
};
use relaxide::ir::target::{self, KindInfo, TargetKind};
use relaxide::ir::{IRModule, Target};
use relaxide::tir::interp::{self, Arg};
use relaxide::tir::stmt::{ForKind, Stmt};
use relaxide::tir::{PrimFunc, functor::StmtVisitor};

/// The name of the kind of target, and of the modules.
const NAME: &str = "pseudo";

/// The function that reads modules of the kind from a library.
const LOADER: &str = "ffi.Module.load_from_bytes.pseudo";

/// Makes the target known to this process; once is enough, and more does no harm.
pub fn register() -> Result<TargetKind, String> {
    static KIND: OnceLock<Result<TargetKind, String>> = OnceLock::new();
    KIND.get_or_init(|| {
        let info = KindInfo { name: NAME, device_type: Device::CPU, keys: &["cpu"], is_portable: true, options: &[] };
        let kind = target::register_kind(info).map_err(|error| error.to_string())?;
        codegen::register_backend(Box::leak(Box::new(Pseudo(kind)))).map_err(|error| error.to_string())?;
        let load = Function::new(|args| load(args).map(Any::from));
        ffi::register_global(LOADER, load).map_err(|error| error.to_string())?;
        Ok(kind)
    })
    .clone()
}

/// The back end.
struct Pseudo(TargetKind);

impl Backend for Pseudo {
    fn kind(&self) -> TargetKind {
        self.0
    }

    fn profile(&self) -> Profile {
        // Loops stay loops, so that there is something to read; the module runs where it was made.
        Profile { keep_loops: true, is_loadable: true, has_lines: false, is_device: false }
    }

    fn check(&self, _target: &Target) -> Result<(), CodegenError> {
        // The table of options says already which there are.
        Ok(())
    }

    fn emit(
        &self,
        kernels: &[Ref<PrimFunc>],
        _target: &Target,
        _settings: CompileSettings<'_>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Artifact, CodegenError> {
        progress(kernels.len(), kernels.len());
        Ok(Artifact::Functions(Module::new(Kernels(kernels.to_vec()))))
    }

    fn text(&self, kernels: &[Ref<PrimFunc>], _target: &Target, form: &str) -> Option<Result<String, CodegenError>> {
        matches!(form, "" | NAME).then(|| Ok(pseudo_code(kernels)))
    }
}

/// Kernels, as functions of a process.
struct Kernels(Vec<Ref<PrimFunc>>);

impl ModuleImpl for Kernels {
    fn kind(&self) -> &str {
        NAME
    }

    fn get_function(&self, name: &str) -> Option<Function> {
        let kernel = self.0.iter().find(|kernel| kernel.global_symbol() == Some(name))?.clone();
        let kernel = Arc::new(kernel);
        Some(Function::new(move |args| interpret(&kernel, args)))
    }

    fn properties(&self) -> ModuleProperties {
        ModuleProperties::RUNNABLE.and(ModuleProperties::BINARY_SERIALIZABLE)
    }

    /// The kernels as TVMScript, which [`load`] reads.
    fn save_to_bytes(&self) -> Result<Vec<u8>, ffi::Error> {
        let mut module = IRModule::new();
        for kernel in &self.0 {
            module.insert(kernel.global_symbol().unwrap_or_default(), kernel.clone());
        }
        Ok(relaxide::to_script(&module).into_bytes())
    }

    fn inspect_source(&self, _format: &str) -> Result<String, ffi::Error> {
        Ok(pseudo_code(&self.0))
    }
}

/// A module from its bytes.
fn load(args: &[AnyView<'_>]) -> Result<Module, ffi::Error> {
    let wrong = |what: String| ffi::Error::new(ErrorKind::ValueError, format!("no module of the kind {NAME}: {what}"));
    let bytes = args.first().ok_or_else(|| wrong("there are no bytes".into()))?.to::<ffi::Bytes>()?;
    let text = std::str::from_utf8(bytes.as_slice()).map_err(|error| wrong(error.to_string()))?;
    let module = relaxide::parse_script(text, NAME).map_err(|error| wrong(error.to_string()))?;
    let kernels = module.functions_of::<PrimFunc>().map(|(_, kernel)| kernel);
    Ok(Module::new(Kernels(kernels.collect())))
}

/// Calls a kernel: tensors are read and written in place, as native code does it.
fn interpret(kernel: &PrimFunc, args: &[AnyView<'_>]) -> Result<Any, ffi::Error> {
    let args = args.iter().zip(&kernel.params).map(|(value, param)| argument(value, param.dtype()));
    let args = args.collect::<Result<Vec<Arg>, _>>()?;
    let name = kernel.global_symbol().unwrap_or("kernel");
    let failed = |error: interp::InterpError| ffi::Error::new(ErrorKind::RuntimeError, format!("{name}: {error}"));
    interp::run(kernel, &args).map_err(failed)?;
    Ok(Any::none())
}

/// What the interpreter takes for a parameter; tensors are handles there.
fn argument(value: &AnyView<'_>, dtype: DataType) -> Result<Arg, ffi::Error> {
    if dtype.is_handle() {
        Ok(Arg::Tensor(value.to::<Tensor>()?))
    } else if dtype.is_float() {
        Ok(Arg::Float(value.to::<f64>()?))
    } else {
        Ok(Arg::Int(value.to::<i64>()?))
    }
}

/// Kernels to be read.
pub fn pseudo_code(kernels: &[Ref<PrimFunc>]) -> String {
    kernels.iter().map(|kernel| written(kernel)).collect::<Vec<_>>().join("\n")
}

fn written(kernel: &PrimFunc) -> String {
    let param = |(param, buffer): (&Ref<relaxide::ir::Var>, &Option<Ref<relaxide::ir::Buffer>>)| match buffer {
        Some(buffer) => {
            let shape: Vec<String> = buffer.shape.iter().map(ToString::to_string).collect();
            format!("{}: {}[{}]", buffer.name, buffer.dtype, shape.join(", "))
        }
        None => format!("{}: {}", param.name, param.dtype()),
    };
    let params: Vec<String> = kernel.params.iter().zip(&kernel.buffers).map(param).collect();
    let mut writer = Writer { text: String::new(), depth: 1 };
    writer.visit_stmt(&kernel.body);
    format!("kernel {}({})\n{}", kernel.global_symbol().unwrap_or("?"), params.join(", "), writer.text)
}

/// Writes statements, one a line.
struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    fn line(&mut self, line: String) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(&line);
        self.text.push('\n');
    }

    fn inside(&mut self, stmt: &Stmt) {
        self.depth += 1;
        self.visit_stmt(stmt);
        self.depth -= 1;
    }
}

impl relaxide::ir::prim::PrimVisitor for Writer {}

impl StmtVisitor for Writer {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(seq) => seq.seq.iter().for_each(|stmt| self.visit_stmt(stmt)),
            Stmt::For(n) => {
                let how = if n.kind == ForKind::Parallel { "in parallel" } else { "in order" };
                self.line(format!("for each {} from {} of {} {how}", n.var.name, n.min, n.extent));
                self.inside(&n.body);
            }
            Stmt::If(n) => {
                self.line(format!("if {}", n.condition));
                self.inside(&n.then_case);
                if let Some(other) = &n.else_case {
                    self.line("else".into());
                    self.inside(other);
                }
            }
            Stmt::Store(n) => {
                let indices: Vec<String> = n.indices.iter().map(ToString::to_string).collect();
                self.line(format!("{}[{}] := {}", n.buffer.name, indices.join(", "), n.value));
            }
            Stmt::Attr(n) => {
                self.line(format!("with {} = {}", n.key, n.value));
                self.inside(&n.body);
            }
            // Whatever else there is reads well as Relaxide writes it.
            other => other.to_string().lines().for_each(|line| self.line(line.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide::{CompileOptions, VirtualMachine};

    use super::*;

    const PROGRAM: &str = r#"
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            R.output(z)
        return z
"#;

    fn compiled(target: &str) -> relaxide::Executable {
        let module = relaxide::parse_script(PROGRAM, "program").unwrap();
        let target = target.parse().unwrap();
        relaxide::compile(&module, &mut CompileOptions { target, ..CompileOptions::default() }).unwrap()
    }

    fn result(module: &Module) -> Vec<f32> {
        let machine = VirtualMachine::of(module).unwrap();
        let x = Tensor::from_slice(&(0..20).map(|i| i as f32 - 7.0).collect::<Vec<_>>(), &[5, 4]).unwrap();
        let w = Tensor::from_slice(&(0..12).map(|i| 0.5 * i as f32 - 2.0).collect::<Vec<_>>(), &[4, 3]).unwrap();
        let y = machine.invoke("main", &[(&x).into(), (&w).into()]).unwrap();
        y.to::<Tensor>().unwrap().to_vec::<f32>().unwrap()
    }

    #[test]
    fn a_program_runs_in_memory_and_from_a_file_as_native_code_does() {
        register().unwrap();
        register().unwrap();
        let (native, own) = (compiled("llvm"), compiled(NAME));
        let expected = result(&native.jit().unwrap());
        assert_eq!(result(&own.jit().unwrap()), expected);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program.so");
        own.export_library(&file).unwrap();
        assert_eq!(result(&relaxide::load_module(&file).unwrap()), expected);
    }

    #[test]
    fn kernels_are_shown_as_pseudo_code() {
        register().unwrap();
        let text = compiled(NAME).inspect_source("").unwrap();
        assert!(text.starts_with("kernel fused_matmul_relu(x: float32[n, 4], w: float32[4, 3], "), "{text}");
        assert!(text.contains("for each ") && text.contains(" := "), "{text}");
        assert!(pseudo_code(&[]).is_empty());
    }

    #[test]
    fn damaged_modules_are_refused() {
        for bytes in [&b"\xff\xfe"[..], b"def", b""] {
            let loaded = AnyView::with_bytes(bytes, |bytes| load(&[bytes]));
            assert!(loaded.is_err() || bytes.is_empty());
        }
        assert!(load(&[]).unwrap_err().message().contains("there are no bytes"));
    }

    #[test]
    fn the_target_is_one_as_others() {
        let kind = register().unwrap();
        assert!("pseudo -mcpu=fast".parse::<Target>().unwrap_err().to_string().contains("mcpu"));
        let twice = codegen::register_backend(Box::leak(Box::new(Pseudo(kind))));
        assert!(twice.unwrap_err().to_string().contains("pseudo"));
    }
}
