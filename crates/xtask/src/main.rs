//! The project's own chores: `cargo xtask bless`, `cargo xtask licences`, `cargo xtask operators`, `cargo xtask tidy`.

#![forbid(unsafe_code)]

use std::fmt::Display;
use std::process::{Command, ExitCode};

use xtask::{licences, root, tidy};

const USAGE: &str = "\
usage: cargo xtask CHORE

  bless [FILTER]  rewrite the expectations of file tests (tests/filetests)
  licences        check that every crate has a licence that deny.toml allows
  operators       write docs/operators.md from the registry
  tidy            check what the compiler does not: layers, unsafe code, file lengths, paths in files
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["bless", filter @ ..] => bless("relaxide-testkit", "filetests", filter),
        ["operators"] => bless("relaxide-relax", "all", &["documentation::"]),
        ["licences"] => report(&licences::check(&root())),
        ["tidy"] => report(&tidy::check(&root())),
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Runs a test that writes what it expects.
fn bless(package: &str, test: &str, filter: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", package, "--test", test, "--"])
        .args(filter)
        .env("RELAXIDE_BLESS", "1")
        .current_dir(root())
        .status();
    match status {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("cannot run cargo: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn report(problems: &[impl Display]) -> ExitCode {
    problems.iter().for_each(|problem| eprintln!("{problem}"));
    match problems.len() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!("{count} problems");
            ExitCode::FAILURE
        }
    }
}
