//! File tests: a program in TVMScript, what is done to it, and the text that comes out.
//!
//! ```text
//! # test: pass LegalizeOps, FuseOps
//! @I.ir_module
//! class Module:
//!     …
//! # ----
//! @I.ir_module
//! class Module:
//!     …
//! ```
//!
//! The header's `# key: value` lines say what is done; everything behind the separator is the expectation, which
//! `cargo xtask bless` rewrites. What a test can be:
//!
//! | header | what is done | what comes out |
//! | --- | --- | --- |
//! | `# test: roundtrip` | parse, print, parse again | the same text (there is no separator) |
//! | `# test: print` | parse and print | the text |
//! | `# test: error` | parse, which must fail | the diagnostic |
//! | `# test: verify` | check that it is well-formed | the problems |
//! | `# test: pass A, B(x=1)` | passes by name, Relax's and TIR's | the module |
//! | `# test: refuse A, B(x=1)` | the same, which must fail | the reason |
//! | `# test: rewrite` | rules (modules, `# ====` behind each) on the module behind them | the module |
//! | `# test: refuse-rewrite` | the same, which must fail | the reason |
//! | `# test: schedule` | schedule rules on every kernel | the notes and the kernels |
//! | `# test: lower` | all lowering passes on every kernel | the kernels |
//! | `# test: llvm`, `# test: c` | schedule rules, lowering, that back end | the kernels in its language |
//! | `# test: code` | the same for targets of several kinds | the kernels in the language of each |
//! | `# test: bytecode` | compile to the VM's instructions | their text |
//! | any of these with `# config: key=value` | an option of the passes' context | |
//! | `schedule`, `lower`, `llvm`, `c` and `code`, with several `# target: T` | | a part for each |
//! | `llvm`, `c` and `code` with `# functions: A B` | | these functions of the text |
//! | those five with `# passes: A, B` | these passes first | their kernels |
//! | `# test: run` with `# call: f(…)` lines | compile and call | the results |

mod modes;
mod values;

use std::path::{Path, PathBuf};

/// What stands between the input and the expectation.
const SEPARATOR: &str = "# ----";

/// A test, read from its file.
pub struct FileTest {
    /// The file.
    pub path: PathBuf,
    /// `key: value` lines of the header, in order.
    header: Vec<(String, String)>,
    /// The text of the file up to the expectation, separator excluded.
    input: String,
    expected: Option<String>,
}

impl FileTest {
    /// Reads a test.
    pub fn load(path: &Path) -> Result<FileTest, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let (input, expected) = match text.split_once(&format!("{SEPARATOR}\n")) {
            Some((input, expected)) => (input.to_string(), Some(expected.to_string())),
            None => (text, None),
        };
        let header = input
            .lines()
            .take_while(|line| line.starts_with('#'))
            .filter_map(|line| line.strip_prefix("# ")?.split_once(':'))
            .map(|(key, value)| (key.trim().to_string(), value.trim().to_string()))
            .collect();
        Ok(FileTest { path: path.to_path_buf(), header, input, expected })
    }

    /// The value of a header line.
    fn option(&self, key: &str) -> Option<&str> {
        self.options(key).next()
    }

    /// The values of all header lines of that key.
    fn options(&self, key: &str) -> impl Iterator<Item = &str> {
        self.header.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The file's name, by which diagnostics in expectations know it.
    fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Does what the header says; the error says how the result differs from the expectation. With `bless`, the
    /// expectation is rewritten instead.
    pub fn check(&self, bless: bool) -> Result<(), String> {
        let mode = self.option("test").ok_or("the header has no `# test:` line")?;
        let Some(actual) = modes::run(self, mode)? else { return Ok(()) };
        let actual = format!("{}\n", actual.trim_matches('\n'));
        if self.expected.as_ref() == Some(&actual) {
            return Ok(());
        }
        if bless {
            let text = format!("{}{SEPARATOR}\n{actual}", self.input);
            return std::fs::write(&self.path, text).map_err(|e| format!("{}: {e}", self.path.display()));
        }
        Err(format!(
            "the result differs (rewrite with `cargo xtask bless`):\n{}",
            difference(self.expected.as_deref().unwrap_or_default(), &actual)
        ))
    }
}

/// All tests below a folder, in order.
pub fn discover(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "relax") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Lines that are only in one of two texts, with `-` and `+`, and one line of context at each end.
pub fn difference(expected: &str, actual: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    let head = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let rest = a.len().min(b.len()) - head;
    let tail = a.iter().rev().zip(b.iter().rev()).take(rest).take_while(|(x, y)| x == y).count();
    let mut out = String::new();
    let mut line = |mark: char, text: &str| out.push_str(&format!("{mark} {text}\n"));
    if head > 0 {
        line(' ', a[head - 1]);
    }
    a[head..a.len() - tail].iter().for_each(|text| line('-', text));
    b[head..b.len() - tail].iter().for_each(|text| line('+', text));
    if tail > 0 {
        line(' ', a[a.len() - tail]);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_shows_what_changed_and_where() {
        assert_eq!(difference("a\nb\nc\n", "a\nx\ny\nc\n"), "  a\n- b\n+ x\n+ y\n  c\n");
        assert_eq!(difference("a\n", "a\nb\n"), "  a\n+ b\n");
    }
}
