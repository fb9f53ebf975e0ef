//! The `relaxide` command.

mod args;
mod bench;
mod compile;
mod error;
mod explain;
mod inputs;
mod inspect;
mod npy;
mod opt;
mod run;
mod style;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let result = match &cli.command {
        Command::Compile(args) => compile::run(args),
        Command::Run(args) => run::run(args),
        Command::Bench(args) => bench::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Opt(args) => opt::run(args),
        Command::Explain(args) => explain::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(error.exit_code())
        }
    }
}

fn report(error: &CliError) {
    let text = error.diagnostic().to_string();
    // The word and the code come first; whoever looks sees them in colour.
    let (head, rest) = text.split_once(": ").unwrap_or((&text, ""));
    eprintln!("{}: {rest}", style::error(head));
}
