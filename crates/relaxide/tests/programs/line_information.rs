//! Line information: from native code back to the TVMScript that it was compiled from.

use std::path::Path;
use std::process::Command;

use relaxide::{CompileOptions, Executable, debug_text_path};

use super::linked_models::{has_gdb, run};

const ROWS: &str = r#"
@I.ir_module
class Module:
    @T.prim_func
    def rows(x: T.Buffer((64, 16), "float32"), y: T.Buffer((64,), "float32")):
        for i in T.parallel(64):
            total = T.alloc_local((1,), "float32")
            total[0] = T.float32(0)
            for j in range(16):
                total[0] = total[0] + x[i, j] * x[i, j]
            y[i] = T.sqrt(total[0])

    @R.function
    def main(x: R.Tensor((64, 16), "float32")):
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.rows, (x,), out_ty=R.Tensor((64,), "float32"))
            R.output(gv)
        return gv
"#;

fn compile(text: Option<&Path>, target: &str) -> Executable {
    let module = relaxide::parse_script(ROWS, "program").unwrap();
    let debug_info = text.map(Path::to_owned);
    let target = target.parse().unwrap();
    relaxide::compile(&module, &mut CompileOptions { debug_info, target, ..CompileOptions::default() }).unwrap()
}

/// The lines of the text that instructions are said to come from.
fn lines_of(library: &Path) -> Vec<usize> {
    let listing = run(Command::new("readelf").args(["--wide", "--debug-dump=decodedline"]).arg(library));
    let line = |row: &str| {
        let mut words = row.split_whitespace();
        words.next().filter(|name| name.ends_with(".py"))?;
        let line = words.next()?.parse().ok()?;
        words.next().filter(|address| address.starts_with("0x"))?;
        Some(line)
    };
    let mut lines: Vec<usize> = listing.lines().filter_map(line).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[test]
fn instructions_lead_back_to_the_lines_of_the_kernels() {
    let folder = tempfile::tempdir().unwrap();
    for (target, names) in
        [("llvm", &["model.so", "model.o", "model.a"][..]), ("llvm -mtriple=aarch64-linux-gnu", &["arm.so", "arm.o"])]
    {
        let text_file = folder.path().join("model.so.py");
        let executable = compile(Some(&text_file), target);
        let text = std::fs::read_to_string(&text_file).unwrap();
        relaxide::parse_script(&text, "kernels").expect("the text is a program");
        for name in names {
            let library = folder.path().join(name);
            executable.export(&library, Some("model_")).unwrap();
            let lines = lines_of(&library);
            for wanted in ["for i in", "for j in", "+ x", "T.sqrt", "def rows("] {
                let line = text.lines().position(|line| line.contains(wanted)).expect(wanted) + 1;
                assert!(lines.contains(&line), "{name}: {wanted} in line {line} of {lines:?}\n{text}");
            }
            assert!(lines.iter().all(|line| *line <= text.lines().count()), "{name}: {lines:?}");
        }
    }
}

#[test]
fn debuggers_know_kernels_and_show_their_text() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("model.so");
    let text_file = debug_text_path(&library);
    compile(Some(&text_file), "llvm").export_library(&library).unwrap();
    let text = std::fs::read_to_string(&text_file).unwrap();
    let place = |wanted: &str| text.lines().position(|line| line.contains(wanted)).expect(wanted) + 1;
    let definition = place("def rows(");
    let symbols = run(Command::new("nm").arg(&library));
    let body = symbols.lines().find(|line| line.ends_with(" rows.body")).expect(&symbols);
    let address = body.split_whitespace().next().unwrap();
    let found = run(Command::new("addr2line").args(["-f", "-e"]).arg(&library).arg(address));
    assert_eq!(found, format!("rows\n{}:{definition}\n", text_file.display()));
    if !has_gdb() {
        return;
    }
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-ex", "info line rows", "-ex", "list rows", "-ex", "break rows"]);
    gdb.args(["-ex", &format!("info line model.so.py:{}", place("T.sqrt"))]);
    let answer = run(gdb.arg(&library));
    assert!(answer.contains(&format!("Line {definition} of \"model.so.py\" starts at address")), "{answer}");
    assert!(answer.contains(&format!("{definition}\t    def rows(")), "{answer}");
    let stops = answer.lines().find(|line| line.starts_with("Breakpoint 1 at ")).expect(&answer);
    assert!(stops.contains("model.so.py, line "), "{answer}");
    assert!(answer.contains("starts at address") && answer.contains("rows.parallel"), "{answer}");
}

#[test]
fn without_the_option_there_is_no_trace_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("model.so");
    compile(None, "llvm").export_library(&library).unwrap();
    let sections = run(Command::new("readelf").args(["--sections", "--wide"]).arg(&library));
    assert!(!sections.contains(".debug_"), "{sections}");
    assert!(!debug_text_path(&library).exists());
}
