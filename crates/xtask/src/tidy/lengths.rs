//! Files that are read in one go, and functions that are seen on one screen.

use super::{File, Problem};

/// Lines of a file at most.
const FILE: usize = 600;
/// Lines of a function at most.
const FUNCTION: usize = 80;

/// What is longer because it is a table: a row for each case, which is read by itself. A file, or a file and a function.
const TABLES: &[(&str, &str)] = &[
    ("crates/ffi/tests/capi_nulls.rs", "null_arguments_are_errors_that_say_so"),
    ("crates/relay/src/op/nodes.rs", ""),
    ("crates/relay-vm/src/machine/program.rs", "decode_one"),
    ("crates/relay-vm/src/machine/run.rs", "execute"),
    ("crates/vm/src/machine/interpreter.rs", "until_stop"),
    ("bench/growth.py", "families"),
    ("tests/exporters/torch_files.py", "networks"),
];

/// Files of code: their endings. Functions are counted in the first two languages.
const CODE: &[&str] =
    &[".rs", ".py", ".pyi", ".c", ".cc", ".h", ".hpp", ".java", ".js", ".mjs", ".sh", ".html", ".css"];

/// Checks the sources of the crates, the examples and the package.
pub(super) fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in files.iter().filter(|file| CODE.iter().any(|ending| file.path.ends_with(ending))) {
        let is_table = |name: &str| TABLES.contains(&(file.path.as_str(), name));
        let lines = file.text.lines().count();
        if lines > FILE && !is_table("") {
            problems.push(
                file.whole(format!("{lines} lines, of which {FILE} are the most: divide it by what it is about")),
            );
        }
        let long: Vec<_> =
            functions(&file.path, &file.text).into_iter().filter(|found| found.lines > FUNCTION).collect();
        let stale = TABLES.iter().filter(|(path, name)| {
            *path == file.path
                && if name.is_empty() { lines <= FILE } else { long.iter().all(|found| found.name != *name) }
        });
        problems.extend(stale.map(|(_, name)| {
            file.whole(format!("{name:?} is no longer long: remove it from the list of tables (xtask, lengths.rs)"))
        }));
        problems.extend(long.iter().filter(|found| !is_table(found.name)).map(|found| {
            file.problem(
                found.at,
                format!("`{}` has {} lines, of which {FUNCTION} are the most", found.name, found.lines),
            )
        }));
    }
    problems
}

struct Found<'a> {
    name: &'a str,
    at: usize,
    lines: usize,
}

/// The functions of a source that is formatted: in Rust each ends where a brace stands as far in as it begins, in Python in front of what stands so.
fn functions<'a>(path: &str, text: &'a str) -> Vec<Found<'a>> {
    let lines: Vec<&str> = text.lines().collect();
    let is_rust = path.ends_with(".rs");
    let found = lines.iter().enumerate().filter_map(|(at, line)| {
        let name = if is_rust {
            rust_name(line)?
        } else {
            line.trim_start().strip_prefix("async ").unwrap_or(line).trim_start().strip_prefix("def ")?
        };
        let name = name.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
        let behind = lines[at + 1..].iter().position(|next| ends(line, next, is_rust)).unwrap_or(lines.len() - at - 1);
        let blank = lines[at + 1..at + 1 + behind].iter().rev().take_while(|line| line.is_empty()).count();
        Some(Found { name, at: at + 1, lines: if is_rust { behind + 2 } else { behind - blank + 1 } })
    });
    found.collect()
}

/// The name and what follows it, in the line that begins a function with a body in further lines.
fn rust_name(line: &str) -> Option<&str> {
    let (before, name) = line.split_once("fn ")?;
    let is_head = before.split_whitespace().all(|word| {
        word.starts_with("pub") || ["const", "unsafe", "async", "extern", "\"C\"", "super)", "crate)"].contains(&word)
    });
    (is_head && !line.ends_with('}') && !line.ends_with(';')).then_some(name)
}

/// Whether a line is the last of the function that begins with another, or in Python the first behind it.
fn ends(head: &str, line: &str, is_rust: bool) -> bool {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let text = line.trim_start();
    match is_rust {
        true => indent(line) == indent(head) && (text.starts_with('}') || text.starts_with(')') && text.ends_with(';')),
        false => !text.is_empty() && indent(line) <= indent(head) && !text.starts_with(')'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<(String, usize)> {
        functions(path, text).into_iter().map(|found| (found.name.to_string(), found.lines)).collect()
    }

    #[test]
    fn functions_are_counted_from_their_first_line_to_their_last() {
        let rust = "impl A {\n    pub(super) fn f(\n        a: i64,\n    ) -> i64 {\n        a\n    }\n}\n\nfn g() {}\n\nfn h() {\n}\n";
        assert_eq!(lines("a.rs", rust), [("f".into(), 5), ("h".into(), 2)]);
        let python =
            "class A:\n    def f(\n        self,\n    ):\n        return 1\n\n    x = 2\n\n\ndef g():\n    return 3\n";
        assert_eq!(lines("a.py", python), [("f".into(), 4), ("g".into(), 2)]);
    }

    #[test]
    fn what_is_long_is_found() {
        let body = "    f();\n".repeat(FUNCTION);
        let file = |text: String| File { path: "a.rs".into(), text };
        assert_eq!(check(&[file(format!("fn g() {{\n{body}}}\n"))]).len(), 1);
        assert_eq!(check(&[file(format!("fn g() {{\n{}}}\n", "    f();\n".repeat(FUNCTION - 2)))]).len(), 0);
        assert_eq!(check(&[file("// a\n".repeat(FILE + 1))]).len(), 1);
        let table = |text: String| check(&[File { path: TABLES[1].0.into(), text }]).len();
        assert_eq!([table("// a\n".repeat(FILE + 1)), table("// a\n".into())], [0, 1]);
        let header = File { path: "a.hpp".into(), text: "int a;\n".repeat(FILE + 1) };
        assert_eq!(check(&[header]).len(), 1);
    }
}
