//! Rust files: length, names, module docs, unsafe code, suppressions.

use super::{File, Problem};

/// Lines of a file of a crate, beyond which it is more than one concept, and of a file of tests.
const MAX_LINES: usize = 600;
const MAX_TEST_LINES: usize = 800;

/// Longer files, each with the reason.
const LONG: &[(&str, &str)] = &[("crates/relay/src/op/nodes.rs", "a table")];

/// Lines of a function, beyond which it does more than one thing.
const MAX_FUNCTION_LINES: usize = 80;

/// Longer functions, each with the reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[
    ("crates/relay-vm/src/machine/program.rs", "decode_one", "a table of instructions"),
    ("crates/relay-vm/src/machine/run.rs", "execute", "a table of instructions"),
    ("crates/vm/src/machine/interpreter.rs", "until_stop", "a table of instructions"),
];

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
        [
            length(file),
            functions(file),
            name(file),
            docs(file),
            unsafe_code(file),
            refuses_unsafe(file),
            suppressions(file),
            errors(file),
        ]
        .into_iter()
        .flatten()
    })
    .collect()
}

fn length(file: &File) -> Vec<Problem> {
    let lines = file.text.lines().count();
    let limit = if is_of_crate(file) { MAX_LINES } else { MAX_TEST_LINES };
    match LONG.iter().any(|(path, _)| *path == file.path) {
        false if lines > limit => vec![file.whole(format!(
            "{lines} lines are more than one concept (the limit is {limit}): split the file, or list it with a reason"
        ))],
        true if lines <= limit => vec![file.whole("is no longer long: remove it from the list of long files")],
        _ => Vec::new(),
    }
}

/// Whether a file is compiled into a crate, and not a test, a benchmark or an example.
fn is_of_crate(file: &File) -> bool {
    file.path.starts_with("crates/") && file.path.contains("/src/")
}

/// Functions end where the formatter puts their closing brace: at the indentation of their first line.
fn functions(file: &File) -> Vec<Problem> {
    if !is_of_crate(file) {
        return Vec::new();
    }
    let lines: Vec<&str> = file.text.lines().collect();
    let mut problems = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| line.strip_prefix(indent) == Some("}");
        let is_declared =
            |line: &&str| line.starts_with(indent) && line.ends_with(';') && line[indent.len()..].starts_with(')');
        let body = &lines[at..];
        let count = 1 + body.iter().position(|line| is_end(line) || is_declared(line)).unwrap_or(0);
        let is_listed = LONG_FUNCTIONS.iter().any(|(path, function, _)| *path == file.path && *function == name);
        // A function on one line, or without a body, has no such end of its own.
        let is_short = line.ends_with('}') || line.ends_with(';');
        if count > MAX_FUNCTION_LINES && !is_short && !is_listed {
            problems.push(file.problem(
                at + 1,
                format!("`{name}` has {count} lines, which is more than one step (the limit is {MAX_FUNCTION_LINES}): split it"),
            ));
        }
    }
    problems
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

/// The name of the function that a line begins.
fn function_name(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (head, rest) = code.split_once("fn ")?;
    let is_head = head.split_whitespace().all(|word| {
        matches!(word, "const" | "unsafe" | "async" | "extern")
            || word.starts_with("pub")
            || word.starts_with('"')
            || word.ends_with(')')
    });
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    (is_head && !name.is_empty()).then_some(name)
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
        assert_eq!(problems("crates/ir/src/a.rs", &format!("//! A.\n{}", "\n".repeat(900))), 1);
        assert_eq!(problems("crates/ir/tests/a.rs", &format!("//! A.\n{}", "\n".repeat(700))), 0);
        let function = |lines: usize| {
            format!("//! A.\nimpl A {{\n    fn a(\n    ) {{\n{}    }}\n}}\n", "        b();\n".repeat(lines))
        };
        assert_eq!(problems("crates/ir/src/a.rs", &function(77)), 0);
        assert_eq!(problems("crates/ir/src/a.rs", &function(78)), 1);
        assert_eq!(problems("crates/ir/src/utils.rs", "//! A.\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "fn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "//! A.\nunsafe fn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/a.rs", "//! A.\n#[allow(dead_code)]\nfn a() {}\n"), 1);
        assert_eq!(problems("crates/ir/src/lib.rs", "//! A.\nmod a;\n"), 1);
        assert_eq!(problems("crates/ir/src/lib.rs", "//! A.\n#![forbid(unsafe_code)]\nmod a;\n"), 0);
    }
}
