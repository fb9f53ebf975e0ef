//! Programs in C and C++ against the library, shared and static, with models that TVM exported.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use relaxide_ffi::{Any, AnyView, Device, Module, Tensor};
use relaxide_rpc::Session;
use relaxide_rpc::session::connect::{Target, connect_tvm};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A model that TVM exported.
fn model(name: &str) -> PathBuf {
    source("../vm/tests/artifacts").join(name)
}

/// The folder that the tests' profile has.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    test.ancestors().nth(2).expect("tests lie in target/PROFILE/deps").to_owned()
}

/// Builds the library into a folder, and returns its own: Cargo builds no C libraries for tests by itself.
fn build(features: &[&str]) -> PathBuf {
    let folder = profile_folder();
    let profile = match folder.file_name().and_then(|name| name.to_str()) {
        Some("debug") | None => "dev",
        Some(profile) => profile,
    };
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "--package", "relaxide-capi", "--profile", profile]).args(features);
    let target = folder.parent().expect("a profile lies in the target folder");
    run(build.arg("--target-dir").arg(target).current_dir(source("../..")));
    folder
}

/// The library, and the one that has remote calls inside.
struct Libraries {
    plain: PathBuf,
    with_rpc: PathBuf,
}

/// Both libraries have one name and are built in one folder, so that what they are made of is compiled once; the one with remote
/// calls is moved out of the way of the other.
fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        let built = build(&["--features", "rpc"]);
        let with_rpc = built.join("with-rpc");
        std::fs::create_dir_all(&with_rpc).expect("the target folder can be written to");
        for name in ["librelaxide_runtime.so", "librelaxide_runtime.a"] {
            std::fs::copy(built.join(name), with_rpc.join(name)).expect("the library was built");
        }
        Libraries { plain: build(&[]), with_rpc }
    })
}

/// The folder with the library.
fn library_folder() -> &'static Path {
    &libraries().plain
}

/// The folder with the library that has remote calls inside.
fn library_with_rpc() -> &'static Path {
    &libraries().with_rpc
}

/// Compiles a program and returns where it is.
fn compile(compiler: &str, flags: &[&str], program: &str, link: &[&str], folder: &Path) -> PathBuf {
    let out = folder.join("program");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-Werror"]).args(flags).arg(source("tests/c").join(program));
    command.arg("-I").arg(source("include")).arg("-o").arg(&out).args(link);
    run(&mut command);
    out
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}

/// A copy of a model with another magic number in its executable.
fn broken_model(folder: &Path) -> PathBuf {
    let mut bytes = std::fs::read(model("add.so")).expect("the artifact is there");
    let magic = 0xD225_DE2F_4214_151E_u64.to_le_bytes();
    let at = bytes.windows(8).position(|window| window == magic).expect("the file holds an executable");
    bytes[at] ^= 0xff;
    let path = folder.join("broken.so");
    std::fs::write(&path, bytes).expect("the folder is writable");
    path
}

fn shared() -> [String; 2] {
    shared_in(library_folder())
}

fn shared_in(folder: &Path) -> [String; 2] {
    let library = folder.join("librelaxide_runtime.so");
    [library.display().to_string(), format!("-Wl,-rpath,{}", folder.display())]
}

#[test]
fn a_c_program_uses_the_whole_interface() {
    let folder = tempfile::tempdir().unwrap();
    let link = shared();
    let program = compile("cc", &["-std=c99"], "model.c", &[&link[0], &link[1]], folder.path());
    let mut command = Command::new(program);
    command.args([model("add.so"), model("dynamic.so"), broken_model(folder.path())]);
    assert_eq!(run(&mut command), "passed\n");
}

#[test]
fn a_c_program_links_the_library_statically() {
    let folder = tempfile::tempdir().unwrap();
    let library = library_folder().join("librelaxide_runtime.a").display().to_string();
    let link = [library.as_str(), "-rdynamic", "-lpthread", "-ldl", "-lm"];
    let program = compile("cc", &["-std=c99"], "model.c", &link, folder.path());
    let mut command = Command::new(program);
    command.args([model("add.so"), model("dynamic.so"), broken_model(folder.path())]);
    assert_eq!(run(&mut command), "passed\n");
}

#[test]
fn a_model_is_linked_into_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let library = library_folder().join("librelaxide_runtime.a").display().to_string();
    let object = model("linked.o").display().to_string();
    let link = [object.as_str(), library.as_str(), "-lpthread", "-ldl", "-lm"];
    let program = compile("cc", &["-std=c99"], "hello.c", &link, folder.path());
    assert_eq!(run(&mut Command::new(program)), "0 2 4 6 8 10 12 14 16 18 20 22\n");

    let link = [library.as_str(), "-lpthread", "-ldl", "-lm"];
    let without = compile("cc", &["-std=c99"], "hello.c", &link, folder.path());
    let output = Command::new(without).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("no model is linked into this program with the prefix"),
        "{said}"
    );
}

#[test]
fn a_cpp_program_uses_the_cover() {
    let folder = tempfile::tempdir().unwrap();
    let link = shared();
    let program = compile("c++", &["-std=c++11"], "model.cpp", &[&link[0], &link[1]], folder.path());
    assert_eq!(run(Command::new(program).args([model("add.so"), model("dynamic.so")])), "passed\n");
}

/// A server that a program is, and its port.
fn serving(program: &Path) -> (Child, u16) {
    // Cargo's path of libraries has the runtime without remote calls, and goes before the program's own.
    let mut server = Command::new(program);
    server.env_remove("LD_LIBRARY_PATH").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = server.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().parse().unwrap_or_else(|_| panic!("{line:?}: {:?}", server.wait()));
    relaxide_rpc::register();
    (server, port)
}

fn board(key: &str, port: u16) -> Target {
    let patience = Some(Duration::from_secs(20));
    Target { host: "127.0.0.1".into(), port, key: key.into(), patience, ..Target::default() }
}

/// What a model on a server makes of a tensor that is sent there.
fn doubled(session: &Session, executable: &Module) -> Vec<f32> {
    let call = |module: &Module, name: &str, args: &[AnyView<'_>]| {
        module.get_function(name, true).unwrap().call(args).unwrap()
    };
    let machine: Module = call(executable, "vm_load_executable", &[]).to().unwrap();
    call(&machine, "vm_initialization", &[1_i64, 0, 2].map(AnyView::from));
    let here = Tensor::from_slice(&(0..12).map(|x| x as f32).collect::<Vec<_>>(), &[3, 4]).unwrap();
    let there = session.tensor(&here, session.device(Device::cpu(0)).unwrap()).unwrap();
    let sum: Tensor = call(&machine, "main", &[(&there).into()]).to().unwrap();
    relaxide_runtime::device::copy_tensor(&sum, Device::cpu(0)).unwrap().to_vec().unwrap()
}

fn expected() -> Vec<f32> {
    (0..12).map(|x| 2.0 * x as f32).collect()
}

/// A board that has no libraries at all: one static file is the server and the model.
#[test]
fn a_static_program_serves_the_model_inside_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = library_with_rpc().join("librelaxide_runtime.a").display().to_string();
    let object = model("linked.o").display().to_string();
    let link = [object.as_str(), library.as_str(), "-lpthread", "-ldl", "-lm"];
    let program = compile("cc", &["-std=c99", "-static"], "serve.c", &link, folder.path());
    let needs = Command::new("readelf").arg("-d").arg(&program).output().unwrap();
    assert!(!String::from_utf8_lossy(&needs.stdout).contains("NEEDED"), "it needs no library");
    let (mut server, port) = serving(&program);
    let session = connect_tvm(&board("board", port), &[]).unwrap();
    let prefix = Any::from("hello_");
    let linked: Module = session.function("ffi.SystemLib").unwrap().call(&[prefix.as_view()]).unwrap().to().unwrap();
    assert_eq!(doubled(&session, &linked), expected());
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_c_program_serves_remote_calls() {
    let folder = tempfile::tempdir().unwrap();
    let link = shared_in(library_with_rpc());
    let program = compile("cc", &["-std=c99"], "serve.c", &[&link[0], &link[1]], folder.path());
    let (mut server, port) = serving(&program);
    let target = |key: &str| board(key, port);
    assert!(connect_tvm(&target("another"), &[]).unwrap_err().message().contains("another"));
    let session = connect_tvm(&target("board"), &[]).unwrap();
    // A model that TVM exported is sent, loaded and run there.
    session.upload_file(&model("add.so")).unwrap();
    let executable = session.load_module("add.so").unwrap();
    assert_eq!(doubled(&session, &executable), expected());

    // The program stops the server while the session is open; it does not hang, and the client hears of it.
    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
    assert!(session.upload("late", b"x").is_err());
}

/// The names of the two C ABIs and of what compiled code asks of this runtime, and no others, are the library's.
#[test]
fn the_library_exports_its_interfaces_and_nothing_else() {
    let listed = run(Command::new("nm").args(["-D", "--defined-only"]).arg(&shared()[0]));
    let names: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().last()).collect();
    let foreign: Vec<&&str> =
        names.iter().filter(|name| !["TVM", "Relaxide", "relaxide_"].iter().any(|own| name.starts_with(own))).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let header = std::fs::read_to_string(source("include/relaxide.h")).unwrap();
    // Remote calls are in a library that was built with them.
    let (before, rest) = header.split_once("/* ---- Remote calls").expect("the header has a section of remote calls");
    let (_, after) = rest.split_once("/* ---- ").expect("another section follows");
    let header = format!("{before}{after}");
    let declared =
        header.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.starts_with("relaxide_"));
    let functions: std::collections::BTreeSet<&str> = declared.collect();
    assert!(functions.len() > 30 && functions.iter().all(|name| names.contains(name)), "{functions:?}");
    let extra: Vec<&&str> = names.iter().filter(|n| n.starts_with("relaxide_") && !functions.contains(**n)).collect();
    assert!(extra.is_empty(), "not in the header: {extra:?}");
    for needed in ["TVMFFIFunctionCall", "TVMFFIErrorSetRaisedFromCStrParts", "TVMBackendParallelLaunch"] {
        assert!(names.contains(&needed), "{needed}");
    }
}
