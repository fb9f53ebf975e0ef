//! Tests run: a crate whose library has no harness (`test = false`) has none in its sources, where nothing would run them, and files of
//! tests in Python have different names, since pytest collects one of two only.

use std::collections::BTreeMap;

use super::{File, Problem};

pub fn check(files: &[File]) -> Vec<Problem> {
    let mut problems = lost_unit_tests(files);
    problems.extend(equal_names(files));
    problems
}

fn lost_unit_tests(files: &[File]) -> Vec<Problem> {
    let without = files.iter().filter(|file| file.path.ends_with("/Cargo.toml") && has_no_harness(&file.text));
    let folders: Vec<String> = without.map(|file| file.path.replace("Cargo.toml", "src/")).collect();
    let lost = |file: &&File| folders.iter().any(|folder| file.path.starts_with(folder)) && file.path.ends_with(".rs");
    files
        .iter()
        .filter(lost)
        .filter_map(|file| {
            let at = file.text.lines().position(|line| line.trim() == "#[cfg(test)]")?;
            Some(
                file.problem(
                    at + 1,
                    "this crate's library has `test = false`, so nothing runs this: move it to `tests/`",
                ),
            )
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

/// Whether the section `[lib]` of a manifest says `test = false`.
fn has_no_harness(manifest: &str) -> bool {
    let section = manifest.split_once("\n[lib]\n").map_or("", |(_, rest)| rest.split("\n[").next().unwrap_or(""));
    section.lines().any(|line| line == "test = false")
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

    #[test]
    fn tests_of_one_name_are_found() {
        let file = |path: &str| File { path: path.into(), text: String::new() };
        let found = check(&[file("tests/a/test_x.py"), file("python/tests/test_x.py"), file("bench/test_x.py")]);
        assert_eq!(found.iter().map(|problem| &*problem.file).collect::<Vec<_>>(), ["python/tests/test_x.py"]);
        assert_eq!(check(&[file("tests/a/test_x.py"), file("tests/b/test_y.py"), file("tests/b/x.py")]), []);
    }
}
