//! Models as objects and archives: linked into a C program, and read by the tools that developers use.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use relaxide::{CompileOptions, ExecMode, Executable, Target};

/// A matrix product with a symbolic dimension, in parallel, and weights.
const SCALE: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            lv = R.add(R.multiply(x, R.const([1.0, 2.0, 3.0, 4.0], "float32")), R.exp(R.subtract(y, y)))
            gv = R.matmul(lv, R.const([[1.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]], "float32"))
            R.output(gv)
        return gv
"#;

const HALVES: &str = r#"
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            lv = R.multiply(x, R.const(0.5, "float32"))
            lv1 = R.negative(x)
            gv = (lv, lv1)
            R.output(gv)
        return gv
"#;

fn compile(program: &str) -> Executable {
    compile_as(program, ExecMode::Bytecode)
}

fn compile_as(program: &str, exec_mode: ExecMode) -> Executable {
    compile_for(program, exec_mode, Target::default())
}

fn compile_for(program: &str, exec_mode: ExecMode, target: Target) -> Executable {
    let module = relaxide::parse_script(program, "program").unwrap();
    relaxide::compile(&module, &mut CompileOptions { exec_mode, target, ..CompileOptions::default() }).unwrap()
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    // A tool that finds something wrong says so there, and succeeds.
    assert!(!stderr.to_lowercase().contains("warning") && !stderr.to_lowercase().contains("error"), "{stderr}");
    stdout.into_owned()
}

/// The folder with `librelaxide_runtime.a`: cargo builds no C library for tests by itself.
fn runtime_folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let test = std::env::current_exe().unwrap();
        let folder = test.ancestors().nth(2).unwrap();
        let profile = match folder.file_name().and_then(|name| name.to_str()) {
            Some("debug") | None => "dev",
            Some(profile) => profile,
        };
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "relaxide-capi", "--profile", profile, "--target-dir"]);
        // What cargo has to say about other crates is not looked at.
        let output = build.arg(folder.parent().unwrap()).current_dir(source("../..")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        folder.to_owned()
    })
}

/// Links the program with its two models, in the folder, and holds what it prints against what it has to.
fn check_linked(folder: &Path, standard: &str, models: [&str; 2]) {
    let program = folder.join("program");
    let mut cc = Command::new("cc");
    cc.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic"]).arg(source("tests/programs/linked.c"));
    cc.arg("-I").arg(source("../capi/include")).arg("-I").arg(folder);
    // Nothing but the call in the header makes the linker take a model out of an archive.
    cc.args(models.map(|model| folder.join(model))).arg(runtime_folder().join("librelaxide_runtime.a"));
    run(cc.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program));
    let printed = run(&mut Command::new(program));
    let expected = "1 4 7 13 5 16 19 29 9 28 31 45\n\
                    0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5 5.5\n\
                    -0 -1 -2 -3 -4 -5 -6 -7 -8 -9 -10 -11\n\
                    ValueError\n";
    assert_eq!(printed, expected);
}

/// The kernels of each of two models for three processors, of which a program takes those that it is told, or the best.
#[cfg(target_arch = "x86_64")]
#[test]
fn linked_models_for_several_processors_choose_when_the_program_runs() {
    let folder = tempfile::tempdir().unwrap();
    let for_all = |program: &str, exec_mode: ExecMode| {
        let module = relaxide::parse_script(program, "program").unwrap();
        let mut targets = relaxide::codegen::parse_targets("x86-64-v3,x86-64,x86-64-v2").unwrap();
        let (also, target) = (targets.split_off(1), targets.remove(0));
        relaxide::compile(&module, &mut CompileOptions { exec_mode, target, also, ..CompileOptions::default() })
            .unwrap()
    };
    for_all(SCALE, ExecMode::Bytecode).export_library(&folder.path().join("libscale.a")).unwrap();
    for_all(HALVES, ExecMode::Compiled).export_library(&folder.path().join("halves.o")).unwrap();
    check_linked(folder.path(), "-std=c11", ["halves.o", "libscale.a"]);
    let program = || Command::new(folder.path().join("program"));
    let expected = run(&mut program());
    for name in ["x86-64", "x86-64-v2", "x86-64-v3"] {
        if name == "x86-64-v3" && !std::arch::is_x86_feature_detected!("avx2") {
            continue;
        }
        assert_eq!(run(program().env("RELAXIDE_PROCESSOR", name)), expected, "{name}");
    }
    assert!(!program().env("RELAXIDE_PROCESSOR", "i486").output().unwrap().status.success());
}

#[test]
fn two_models_in_c_are_compiled_into_one_program_or_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let (scale, halves) =
        (compile_for(SCALE, ExecMode::Bytecode, Target::c()), compile_for(HALVES, ExecMode::Compiled, Target::c()));
    scale.export_library(&at("libscale.c")).unwrap();
    halves.export_library(&at("halves.c")).unwrap();
    check_linked(folder.path(), "-std=c11", ["halves.c", "libscale.c"]);
    // The same file as a library that is loaded.
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-DRELAXIDE_SHARED_LIBRARY", "-Wall", "-Wextra", "-o"]).arg(at("libscale.so"));
    run(cc.arg(at("libscale.c")).arg("-lm"));
    let machine = relaxide::VirtualMachine::of(&relaxide::load_module(&at("libscale.so")).unwrap()).unwrap();
    let input = relaxide::ffi::Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], &[1, 4]).unwrap();
    let output = machine.invoke("main", &[(&input).into(), (&input).into()]).unwrap();
    let output = output.to::<relaxide::ffi::Tensor>().unwrap();
    assert_eq!(output.to_vec::<f32>().unwrap(), [1.0, 4.0, 7.0, 13.0]);
    let refusal = halves.export_library(&at("model.so")).unwrap_err().to_string();
    assert!(refusal.contains("model.so") && refusal.contains("-DRELAXIDE_SHARED_LIBRARY"), "{refusal}");
    let refusal = compile(HALVES).export_library(&at("model.c")).unwrap_err().to_string();
    assert!(refusal.contains("C is what the target `c` makes"), "{refusal}");
}

#[test]
fn two_models_are_linked_into_one_program() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    compile(SCALE).export_library(&at("libscale.a")).unwrap();
    // Native functions call builtins of the virtual machine by name, which they look up through their module.
    compile_as(HALVES, ExecMode::Compiled).export_library(&at("halves.o")).unwrap();
    check_linked(folder.path(), "-std=c99", ["halves.o", "libscale.a"]);
    // What is linked in stays the program's own, also in a shared library.
    let library = at("library.so");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-o"]).arg(&library).arg("-Wl,--whole-archive").arg(at("libscale.a"));
    run(cc.arg("-Wl,--no-whole-archive"));
    let exported = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&library));
    assert!(!exported.contains("tvm_ffi") && !exported.contains("relaxide"), "{exported}");
}

/// A machine may lack it where packages cannot be installed.
pub fn has_gdb() -> bool {
    let there = Command::new("gdb").arg("--version").output().is_ok();
    if !there {
        eprintln!("skipped: gdb is missing; `make setup` installs it");
    }
    there
}

/// `readelf`, `nm` and `gdb` read what is written, and find named kernels and unwind tables.
#[test]
fn tools_read_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let executable = compile(SCALE);
    for name in ["model.so", "model.o", "model.a"] {
        let path = folder.path().join(name);
        executable.export(&path, Some("model_")).unwrap();
        let all = run(Command::new("readelf").args(["--all", "--wide", "--debug-dump=frames"]).arg(&path));
        assert!(all.contains(".eh_frame"), "{name}");
        // Each function has an entry that says where it is and how to leave it.
        assert!(all.matches(" FDE ").count() >= 4, "{name}: {}", all.matches(" FDE ").count());
        let symbols = run(Command::new("nm").arg(&path));
        let kernel = symbols.lines().filter_map(|line| line.split_once(" T ")).map(|(_, symbol)| symbol);
        let entries: Vec<&str> = kernel.filter(|symbol| symbol.starts_with("__tvm_ffi_")).collect();
        assert!(!entries.is_empty(), "{name}: {symbols}");
        let prefixed = entries.iter().all(|entry| entry.starts_with("__tvm_ffi_model_"));
        assert_eq!(prefixed, name != "model.so", "{entries:?}");
        assert!(symbols.lines().any(|line| line.contains(" t ") && line.ends_with(".body")), "{name}: {symbols}");
        if name != "model.a" && has_gdb() {
            let mut gdb = Command::new("gdb");
            gdb.args(["-batch", "-nx", "-ex", &format!("disassemble '{}'", entries[0])]).arg(&path);
            let listing = run(&mut gdb);
            assert!(listing.contains("Dump of assembler code for function") && listing.contains("ret"), "{listing}");
        }
    }
}

#[test]
fn equal_programs_make_equal_archives() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first.a", "second.a"].map(|name| {
        let path = folder.path().join(name);
        compile(HALVES).export(&path, Some("halves_")).unwrap();
        std::fs::read(path).unwrap()
    });
    assert!(first == second);
    assert_eq!(run(Command::new("ar").arg("t").arg(folder.path().join("first.a"))), "halves.o\n");
}

#[test]
fn a_prefix_that_is_no_name_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = compile(HALVES).export(&folder.path().join("x.o"), Some("a-b")).unwrap_err();
    assert!(error.to_string().contains("\"a-b\""), "{error}");
}
