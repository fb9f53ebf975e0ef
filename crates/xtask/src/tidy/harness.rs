//! Tests run: a library or program without a harness (`test = false`) has none in its sources, where nothing would run them, one
//! without a run of its examples (`doctest = false`) has no examples, a crate that lists its tests (`autotests = false`) lists each
//! file, and files of tests in Python have different names, since pytest collects one of two only.

use std::collections::BTreeMap;

use super::{File, Problem};

pub fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = lost_unit_tests(files);
    problems.extend(lost_examples(files));
    problems.extend(lost_files(files));
    problems.extend(equal_names(files));
    problems
}

fn lost_unit_tests(files: &[File]) -> Vec<Problem> {
    let message = "its crate says `test = false`, so nothing runs this: move it to `tests/`";
    lost(files, "test = false", message, |text| text.lines().position(|line| line.trim() == "#[cfg(test)]"))
}

fn lost_examples(files: &[File]) -> Vec<Problem> {
    let message =
        "its crate says `doctest = false`, so nothing runs this: take that line out, or say what it is (```text)";
    lost(files, "doctest = false", message, first_example)
}

/// What stands in sources whose target in the manifest has a line that keeps it from being run.
fn lost(files: &[File], line: &str, message: &str, at: impl Fn(&str) -> Option<usize>) -> Vec<Problem> {
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let sources: Vec<String> = manifests.flat_map(|file| sources_with(file, line)).collect();
    let is_inside = |file: &&File| sources.iter().any(|source| file.path.starts_with(source));
    let rust = files.iter().filter(|file| file.path.ends_with(".rs")).filter(is_inside);
    rust.filter_map(|file| Some(file.problem(at(&file.text)? + 1, message))).collect()
}

/// The line of the first example that rustdoc would run: a block in a documenting comment that is of no language, or of Rust.
fn first_example(text: &str) -> Option<usize> {
    let mut is_open = false;
    text.lines().position(|line| {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            is_open = false;
            return false;
        };
        let Some(language) = comment.trim_start().strip_prefix("```") else { return false };
        is_open = !is_open;
        is_open && matches!(language.trim(), "" | "rust" | "no_run" | "should_panic" | "compile_fail")
    })
}

/// Files of tests that a crate with `autotests = false` neither lists nor takes into the program that it lists.
fn lost_files(files: &[File]) -> Vec<Problem> {
    let listing = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let listing = listing.filter(|file| file.text.lines().any(|line| line == "autotests = false"));
    listing
        .flat_map(|manifest| {
            let folder = manifest.path.replace("Cargo.toml", "tests/");
            let joined =
                files.iter().find(|file| file.path == format!("{folder}main.rs")).map_or("", |file| &file.text);
            let is_run = |name: &str| {
                let (path, module) =
                    (format!("path = \"tests/{name}\""), format!("mod {};", name.trim_end_matches(".rs")));
                manifest.text.lines().any(|line| line == path) || joined.lines().any(|line| line == module)
            };
            let is_lost = |file: &&File| {
                let name = file.path.strip_prefix(&folder).unwrap_or_default();
                name.ends_with(".rs") && !name.contains('/') && !is_run(name)
            };
            let message = "its crate says `autotests = false`, so nothing runs this: name it in `tests/main.rs`";
            files.iter().filter(is_lost).map(|file| file.whole(message)).collect::<Vec<_>>()
        })
        .collect()
}

/// Files of tests in Python that have the name of another: modules without a package are known by it alone.
fn equal_names(files: &[File]) -> Vec<Problem> {
    let mut first: BTreeMap<&str, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for file in files {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        let is_collected = file.path.starts_with("tests/") || file.path.starts_with("python/tests/");
        if !is_collected || !name.starts_with("test_") || !name.ends_with(".py") {
            continue;
        }
        match first.get(name) {
            Some(other) => problems
                .push(file.whole(format!("{other} has this name too, and pytest collects one of them: rename it"))),
            None => _ = first.insert(name, &file.path),
        }
    }
    problems
}

/// Where the sources of those targets of a manifest begin that have a line: of the library, or of a program.
fn sources_with(manifest: &File, line: &str) -> Vec<String> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let sections = manifest.text.split("\n[").filter(|section| section.lines().any(|found| found == line));
    sections.filter_map(source_of).map(|path| format!("{folder}{path}")).collect()
}

/// Where the sources of the target begin that a section of a manifest describes, if it is the library or a program.
fn source_of(section: &str) -> Option<&str> {
    let (name, lines) = section.split_once('\n')?;
    let path = lines.lines().find_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'));
    match name {
        "lib]" => Some("src/"),
        "[bin]]" => path.map(|path| path.trim_end_matches("main.rs")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_nothing_runs_are_found() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let manifest = |test: &str| format!("[package]\nname = \"a\"\n\n[lib]\n{test}\n\n[dependencies]\n");
        let source = file("crates/a/src/x.rs", "fn f() {}\n\n#[cfg(test)]\nmod tests {}\n");
        let found = check(&[file("crates/a/Cargo.toml", &manifest("test = false")), source]);
        assert_eq!(found.iter().map(|problem| problem.line).collect::<Vec<_>>(), [Some(3)]);
        let source = file("crates/a/src/x.rs", "#[cfg(test)]\nmod tests {}\n");
        assert_eq!(check(&[file("crates/a/Cargo.toml", &manifest("name = \"b\"")), source]), []);
    }

    fn file(path: &str, text: &str) -> File {
        File { path: path.into(), text: text.into() }
    }

    #[test]
    fn tests_of_programs_that_nothing_runs_are_found() {
        let manifest = "[package]\nname = \"a\"\n\n[[bin]]\nname = \"a\"\npath = \"src/bin/a.rs\"\ntest = false\n";
        let tests = "#[cfg(test)]\nmod tests {}\n";
        let found = check(&[
            file("crates/a/Cargo.toml", manifest),
            file("crates/a/src/bin/a.rs", tests),
            file("crates/a/src/lib.rs", tests),
        ]);
        assert_eq!(found.iter().map(|problem| &*problem.file).collect::<Vec<_>>(), ["crates/a/src/bin/a.rs"]);
    }

    #[test]
    fn examples_that_nothing_runs_are_found() {
        let manifest = file("crates/a/Cargo.toml", "[package]\nname = \"a\"\n\n[lib]\ndoctest = false\n");
        let picture = "/// ```text\n/// a -> b\n/// ```\nfn f() {}\n";
        let found = check(&[
            manifest,
            file("crates/a/src/x.rs", &format!("{picture}\n    /// ```\n    /// f()\n    /// ```\n")),
        ]);
        assert_eq!(found.iter().map(|problem| problem.line).collect::<Vec<_>>(), [Some(6)]);
    }

    #[test]
    fn files_that_no_program_of_tests_takes_in_are_found() {
        let manifest = "[package]\nname = \"a\"\nautotests = false\n\n[[test]]\nname = \"c\"\npath = \"tests/c.rs\"\n";
        let paths = ["tests/b.rs", "tests/c.rs", "tests/d.rs", "tests/b/inner.rs"];
        let mut files: Vec<_> = paths.iter().map(|path| file(&format!("crates/a/{path}"), "")).collect();
        files.push(file("crates/a/Cargo.toml", manifest));
        files.push(file("crates/a/tests/main.rs", "mod b;\n"));
        // `main.rs` is listed as a path, or nothing runs it either.
        let found = check(&files);
        assert_eq!(
            found.iter().map(|problem| &*problem.file).collect::<Vec<_>>(),
            ["crates/a/tests/d.rs", "crates/a/tests/main.rs"]
        );
    }

    #[test]
    fn tests_of_one_name_are_found() {
        let file = |path: &str| File { path: path.into(), text: String::new() };
        let found = check(&[file("tests/a/test_x.py"), file("python/tests/test_x.py"), file("bench/test_x.py")]);
        assert_eq!(found.iter().map(|problem| &*problem.file).collect::<Vec<_>>(), ["python/tests/test_x.py"]);
        assert_eq!(check(&[file("tests/a/test_x.py"), file("tests/b/test_y.py"), file("tests/b/x.py")]), []);
    }
}
