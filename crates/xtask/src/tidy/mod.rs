//! `cargo xtask tidy`: the rules of the house that no compiler checks.
//!
//! Each rule is a file that looks at the committed files and says what is wrong, with the place and what to do. A test
//! runs all of them, so the rules hold on every change.

mod harness;
mod intrinsics;
mod layers;
mod lengths;
mod operators;
mod sources;
mod targets;
mod terms;
mod text;
mod types;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A broken rule at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file, from the root of the repository.
    pub file: String,
    /// The line, where there is one.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// A committed text file.
pub(crate) struct File {
    /// From the root of the repository, with `/` between.
    pub path: String,
    pub text: String,
}

impl File {
    fn problem(&self, line: usize, message: impl Into<String>) -> Problem {
        Problem { file: self.path.clone(), line: Some(line), message: message.into() }
    }

    fn whole(&self, message: impl Into<String>) -> Problem {
        Problem { file: self.path.clone(), line: None, message: message.into() }
    }
}

/// All problems of the repository at `root`.
pub fn check(root: &Path) -> Vec<Problem> {
    let files = match committed(root) {
        Ok(files) => files,
        Err(message) => return vec![Problem { file: ".".into(), line: None, message }],
    };
    let mut problems = Vec::new();
    problems.extend(harness::check(&files));
    problems.extend(intrinsics::check(&files));
    problems.extend(layers::check(&files));
    problems.extend(lengths::check(&files));
    problems.extend(sources::check(&files));
    problems.extend(text::check(&files));
    problems.extend(terms::check(&files));
    problems.extend(targets::check(&files));
    problems.extend(operators::check(&files));
    problems.extend(types::check(&files));
    problems
}

/// The lines of a source that are code, without comments and unit tests, with their numbers.
pub(crate) fn code(file: &File) -> impl Iterator<Item = (usize, &str)> {
    let shipped = file.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = shipped.lines().enumerate().map(|(at, line)| (at + 1, line.split(" // ").next().unwrap_or_default()));
    lines.filter(|(_, line)| !line.trim_start().starts_with("//"))
}

/// The text files that git knows; a folder without git is walked.
fn committed(root: &Path) -> Result<Vec<File>, String> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root).output();
    let paths: Vec<PathBuf> = match listed {
        Ok(output) if output.status.success() => {
            let names = String::from_utf8_lossy(&output.stdout).into_owned();
            names.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect()
        }
        _ => walk(root).map_err(|e| format!("cannot list the files: {e}"))?,
    };
    let text = |path: PathBuf| {
        // Binary files and files that are deleted but not yet committed have no text.
        let text = std::fs::read_to_string(root.join(&path)).ok()?;
        Some(File { path: path.to_string_lossy().replace('\\', "/"), text })
    };
    Ok(paths.into_iter().filter_map(text).collect())
}

fn walk(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() {
                if !name.starts_with('.') && !matches!(name.as_str(), "target" | "build" | "node_modules") {
                    folders.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(root) {
                files.push(inside.to_path_buf());
            }
        }
    }
    Ok(files)
}
