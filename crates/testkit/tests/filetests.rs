//! Runs every test in `tests/filetests`. With `RELAXIDE_BLESS=1`, rewrites their expectations.

#[path = "filetests/coverage.rs"]
mod coverage;

use std::path::Path;
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use relaxide_testkit::filetest::{FileTest, discover};

fn main() -> ExitCode {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/filetests");
    let bless = std::env::var_os("RELAXIDE_BLESS").is_some_and(|v| v == "1");
    let paths = match discover(&root) {
        Ok(paths) => paths,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let trials = paths.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap_or(&path).display().to_string();
        Trial::test(name, move || {
            let test = FileTest::load(&path).map_err(Failed::from)?;
            test.check(bless).map_err(Failed::from)
        })
    });
    let mut trials: Vec<Trial> = trials.collect();
    let all = root.clone();
    trials.push(Trial::test("each_rule_and_each_pass_over_kernels_has_a_file", move || coverage::check(&all)));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
