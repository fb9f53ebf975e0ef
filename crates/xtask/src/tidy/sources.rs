//! Rust files: names, module docs, unsafe code, suppressions.

use super::{File, Problem};

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &["utils", "util", "helpers", "helper", "common", "misc", "manager", "stuff"];

/// Crates and single files that may contain unsafe code, each with the reason.
const UNSAFE: &[(&str, &str)] = &[
    ("ffi", "the C ABI and intrusive counting"),
    ("ffi-derive", "writes ffi's implementations"),
    ("runtime", "memory, devices and loaded libraries"),
    ("onnx/src/external.rs", "maps files of weights into memory"),
    ("onnx/src/model.rs", "maps model files into memory"),
    ("torch/src/archive.rs", "maps model files into memory"),
    ("codegen", "LLVM and the call into what it compiled"),
    ("capi", "the C ABI"),
    ("onnxruntime", "the C ABI of ONNX Runtime"),
    ("testkit", "a device for tests with launches over its memory, and an allocator whose pages fault"),
    ("python", "the C ABI of Python's side"),
    ("vm/tests/support/heap.rs", "counts what malloc hands out"),
];

/// Checks every Rust file.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let rust = files.iter().filter(|file| file.path.ends_with(".rs"));
    rust.flat_map(|file| {
        [name(file), docs(file), unsafe_code(file), refuses_unsafe(file), suppressions(file), errors(file)]
            .into_iter()
            .flatten()
    })
    .collect()
}

/// Whether a file is compiled into a crate, and not a test, a benchmark or an example.
fn is_of_crate(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.contains("/src/")
}

/// Errors are enumerations: who gets one can tell what it is. Tests may have texts.
fn errors(file: &File) -> Vec<Problem> {
    let is_code = is_of_crate(file)
        && !["/testing/", "/tests", "_tests.rs", "crates/testkit/", "crates/xtask/"]
            .iter()
            .any(|part| file.path.contains(part));
    if !is_code {
        return Vec::new();
    }
    let code = file.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default().lines().enumerate();
    let of_text = |line: &str| line.contains("Result<") && line.contains(", String>");
    code.filter(|(_, line)| of_text(line))
        .map(|(at, _)| file.problem(at + 1, "an error is a text: name what can go wrong"))
        .collect()
}

fn name(file: &File) -> Vec<Problem> {
    let parts = file.path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
    parts
        .filter(|part| EMPTY_NAMES.contains(part))
        .map(|part| file.whole(format!("`{part}` says nothing about what is inside: name the concept")))
        .collect()
}

fn docs(file: &File) -> Vec<Problem> {
    if file.text.starts_with("//!") || file.text.is_empty() {
        return Vec::new();
    }
    vec![file.problem(1, "the file does not begin with a module doc (`//!`) that says what it is")]
}

fn unsafe_code(file: &File) -> Vec<Problem> {
    let Some(path) = file.path.strip_prefix("crates/") else { return Vec::new() };
    let name = path.split('/').next().unwrap_or_default();
    if UNSAFE.iter().any(|(allowed, _)| *allowed == name || *allowed == path) || file.path.starts_with("crates/xtask/")
    {
        return Vec::new();
    }
    let opens = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        ["{", "fn ", "impl", "extern", "trait"].iter().any(|what| code.contains(&format!("unsafe {what}")))
    };
    let lines = file.text.lines().enumerate().filter(|(_, line)| opens(line));
    lines
        .map(|(i, _)| {
            file.problem(
                i + 1,
                format!("the crate `{name}` has no unsafe code: say why it needs some (xtask, sources.rs)"),
            )
        })
        .collect()
}

/// A crate without unsafe code has the compiler say so.
fn refuses_unsafe(file: &File) -> Vec<Problem> {
    let root = file.path.strip_prefix("crates/").and_then(|path| {
        path.strip_suffix("/src/lib.rs").or_else(|| path.strip_suffix("/src/main.rs").filter(|name| *name == "cli"))
    });
    let Some(name) = root else { return Vec::new() };
    let refuses = ["forbid", "deny"].iter().any(|level| file.text.contains(&format!("\n#![{level}(unsafe_code)]")));
    if refuses || UNSAFE.iter().any(|(allowed, _)| *allowed == name) {
        return Vec::new();
    }
    vec![file.whole("a crate without unsafe code begins with `#![forbid(unsafe_code)]`")]
}

/// A suppressed lint says why, behind `reason =` or in a comment on or above the line.
fn suppressions(file: &File) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut above = "";
    for (i, line) in file.text.lines().enumerate() {
        let code = line.trim_start();
        let suppresses = ["allow(", "expect("]
            .iter()
            .any(|what| code.starts_with(&format!("#[{what}")) || code.starts_with(&format!("#![{what}")));
        let explained = line.contains("reason") || line.contains("//") || above.trim_start().starts_with("// ");
        let continues = suppresses && !code.contains(']');
        if suppresses && !explained && !continues {
            problems.push(file.problem(i + 1, "a suppressed lint needs its reason: `reason = \"…\"`"));
        }
        above = line;
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> usize {
        check(&[File { path: path.into(), text: text.into() }]).len()
    }

    #[test]
    fn tidy_files_pass() {
        assert_eq!(problems("crates/ir/src/a.rs", "//! A.\n\n#[expect(dead_code, reason = \"x\")]\nfn a() {}\n"), 0);
        assert_eq!(problems("crates/ffi/src/a.rs", "//! A.\nunsafe fn a() {}\n"), 0);
    }

    #[test]
    fn each_rule_is_enforced() {
        assert_eq!(problems("crates/ir/src/utils.rs", "//! A.\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "//! A.\nunsafe fn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "//! A.\n#[allow(dead_code)]\nfn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/lib.rs", "//! A.\nmod a;\n"), 1);
        assert_eq!(problems("crates/ir/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\nmod a;\n"), 0);
    }
}
