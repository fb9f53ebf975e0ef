//! Kernels for other machines, run in a process that is told what to call.
//!
//! For AArch64 it is a program under QEMU, which opens the library with the real dynamic loader; that needs `qemu-user-static`,
//! `gcc-aarch64-linux-gnu` and `libc6-dev-arm64-cross`, which `scripts/setup test-tools` installs. For WebAssembly it is
//! `node`, after the linker that comes with Rust has linked the object.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock};

use super::{Packed, Tensor};

/// AArch64 as kernels are compiled for it here.
pub const TARGET: &str = "llvm -mtriple=aarch64-linux-gnu";

/// AArch64 with scalable vectors.
pub const SCALABLE: &str = "llvm -mtriple=aarch64-linux-gnu -mattr=+sve";

/// WebAssembly, with vectors.
pub const WASM: &str =
    "llvm -mtriple=wasm32-unknown-unknown -mattr=+simd128,+nontrapping-fptoint,+sign-ext,+bulk-memory";

const EMULATORS: [&str; 2] = ["qemu-aarch64-static", "qemu-aarch64"];
const COMPILER: &str = "aarch64-linux-gnu-gcc";
/// Where Debian puts the C library of the machine.
const SYSTEM: &str = "/usr/aarch64-linux-gnu";

/// Says why nothing can be run, or `None`.
pub fn unavailable() -> Option<String> {
    driver().as_ref().err().cloned()
}

/// Says why WebAssembly cannot be run, or `None`.
pub fn wasm_unavailable() -> Option<String> {
    if Command::new("node").arg("--version").output().is_err() {
        return Some("node is missing".into());
    }
    wasm_linker().err()
}

/// The linker of WebAssembly among Rust's own tools.
fn wasm_linker() -> Result<PathBuf, String> {
    let rustc = Path::new(env!("CARGO")).with_file_name("rustc");
    let output = Command::new(rustc).args(["--print", "target-libdir"]).output().map_err(|error| error.to_string())?;
    let libraries = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    let linker = libraries.with_file_name("bin").join("rust-lld");
    if linker.exists() { Ok(linker) } else { Err(format!("{} is missing", linker.display())) }
}

struct Driver {
    emulator: &'static str,
    program: PathBuf,
    _folder: tempfile::TempDir,
}

/// The program that executes calls, compiled at the first use.
fn driver() -> &'static Result<Driver, String> {
    static DRIVER: OnceLock<Result<Driver, String>> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let runs = |program: &&str| Command::new(program).arg("--version").output().is_ok();
        let emulator = EMULATORS.into_iter().find(|program| runs(program)).ok_or("QEMU for AArch64 is missing")?;
        if !runs(&COMPILER) {
            return Err(format!("{COMPILER} is missing"));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let program = folder.path().join("driver");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness/emulated.c");
        let mut command = Command::new(COMPILER);
        command.args(["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(source).arg("-ldl");
        let output = command.output().map_err(|error| error.to_string())?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Ok(Driver { emulator, program, _folder: folder })
    })
}

/// Links an object for AArch64 with a program in C, statically, and runs that; what it prints.
pub fn run_linked(object: &[u8], program: &str) -> String {
    let driver = driver().as_ref().unwrap_or_else(|reason| panic!("{reason}"));
    let folder = tempfile::tempdir().unwrap();
    let [model, linked] = ["model.o", "program"].map(|name| folder.path().join(name));
    std::fs::write(&model, object).unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness").join(program);
    let mut command = Command::new(COMPILER);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-static", "-o"]).arg(&linked).args([&source, &model]);
    for command in [&mut command, Command::new(driver.emulator).arg(&linked)] {
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        if !output.stdout.is_empty() {
            return String::from_utf8_lossy(&output.stdout).into_owned();
        }
    }
    String::new()
}

/// A running process with a library of kernels.
pub struct Process {
    child: Child,
    /// What is written to, and what is read from; one call at a time. Gone when the process shall end.
    pipes: Mutex<Option<(ChildStdin, ChildStdout)>>,
}

/// What came of a call.
pub struct Answer {
    pub result: Result<Packed, (String, String)>,
    pub open_workspaces: i32,
}

impl Process {
    /// A shared library for AArch64.
    pub fn start(library: &Path) -> Self {
        let driver = driver().as_ref().unwrap_or_else(|reason| panic!("{reason}"));
        let mut command = Command::new(driver.emulator);
        // Scalable vectors are twice as long as the shortest.
        command.args(["-cpu", "max,sve-default-vector-length=32", "-L", SYSTEM]).arg(&driver.program).arg(library);
        Self::spawn(command)
    }

    /// Objects of WebAssembly.
    pub fn start_wasm(objects: &[&[u8]], folder: &Path) -> Self {
        let module = folder.join("kernels.wasm");
        let mut link = Command::new(wasm_linker().unwrap_or_else(|reason| panic!("{reason}")));
        link.args(["-flavor", "wasm", "--no-entry", "--export-all", "--export-table", "--growable-table"]);
        link.args(["--allow-undefined", "-z", "stack-size=1048576", "-o"]).arg(&module);
        for (index, object) in objects.iter().enumerate() {
            let path = folder.join(format!("{index}.o"));
            std::fs::write(&path, object).unwrap();
            link.arg(path);
        }
        let output = link.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut command = Command::new("node");
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness/emulated.js")).arg(&module);
        Self::spawn(command)
    }

    fn spawn(mut command: Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let pipes = child.stdin.take().zip(child.stdout.take());
        Self { child, pipes: Mutex::new(pipes) }
    }

    /// Calls a function of the library; the tensors' contents afterwards are put back.
    pub fn call(&self, symbol: &str, tensors: &mut [Tensor], scalars: &[Packed]) -> Answer {
        let mut request = Vec::new();
        text(symbol, &mut request);
        request.extend((tensors.len() as u32).to_le_bytes());
        for tensor in &*tensors {
            describe(tensor, &mut request);
        }
        request.extend((scalars.len() as u32).to_le_bytes());
        for scalar in scalars {
            request.extend(scalar.type_index.to_le_bytes());
            request.extend(scalar.padding.to_le_bytes());
            request.extend(scalar.payload.to_le_bytes());
        }
        let mut pipes = self.pipes.lock().unwrap();
        let (input, output) = pipes.as_mut().unwrap();
        input.write_all(&request).and_then(|()| input.flush()).expect("the emulated process runs");
        let code = i32::from_le_bytes(bytes(output));
        let (kind, message) = (read_text(output), read_text(output));
        let type_index = i32::from_le_bytes(bytes(output));
        let padding = u32::from_le_bytes(bytes(output));
        let payload = u64::from_le_bytes(bytes(output));
        let open_workspaces = i32::from_le_bytes(bytes(output));
        for tensor in tensors {
            let mut contents = vec![0; tensor.data.len() * 8];
            output.read_exact(&mut contents).expect("the emulated process answers");
            for (word, bytes) in tensor.data.iter_mut().zip(contents.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
        }
        let result = if code == 0 { Ok(Packed { type_index, padding, payload }) } else { Err((kind, message)) };
        Answer { result, open_workspaces }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its input does.
        if let Ok(mut pipes) = self.pipes.lock() {
            pipes.take();
        }
        let _ = self.child.wait();
    }
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

fn describe(tensor: &Tensor, out: &mut Vec<u8>) {
    for number in [tensor.device_type, tensor.device_id, tensor.shape.len() as i32] {
        out.extend(number.to_le_bytes());
    }
    out.extend([tensor.dtype.code, tensor.dtype.bits]);
    out.extend(tensor.dtype.lanes.to_le_bytes());
    out.extend(tensor.byte_offset.to_le_bytes());
    out.extend([u8::from(tensor.strides.is_some()), u8::from(tensor.null)]);
    let numbers = tensor.shape.iter().chain(tensor.strides.iter().flatten());
    out.extend(numbers.flat_map(|number| number.to_le_bytes()));
    out.extend((tensor.data.len() as u64 * 8).to_le_bytes());
    out.extend(tensor.data.iter().flat_map(|word| word.to_le_bytes()));
}

fn bytes<const N: usize>(from: &mut ChildStdout) -> [u8; N] {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes).expect("the emulated process answers");
    bytes
}

fn read_text(from: &mut ChildStdout) -> String {
    let mut text = vec![0; u32::from_le_bytes(bytes(from)) as usize];
    from.read_exact(&mut text).expect("the emulated process answers");
    String::from_utf8_lossy(&text).into_owned()
}
