//! The `relaxide` command.
//!
//! A file a command, each with its arguments, what it does, and what it answers. What commands share: reading programs and compiled
//! models ([`program`]), inputs ([`inputs`]), answers ([`answer`]), errors with their exit codes ([`error`]). Whatever is of use
//! outside of the command line lives in the library.

mod answer;
mod args;
mod bench;
mod check;
mod compile;
mod completions;
mod error;
mod explain;
mod inputs;
mod inspect;
mod onnxruntime;
mod opt;
mod outputs;
mod profile;
mod program;
mod progress;
mod remote;
mod rpc;
mod run;
mod style;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let form = cli.form();
    let result = match &cli.command {
        Command::Compile(args) => compile::run(args, form),
        Command::Run(args) => run::run(args, form),
        Command::Bench(args) => bench::run(args, form),
        Command::Profile(args) => profile::run(args, form),
        Command::Check(args) => check::run(args, form),
        Command::Inspect(args) => inspect::run(args, form),
        Command::Opt(args) => opt::run(args, form),
        Command::Rpc(args) => return rpc::run(args),
        Command::Explain(args) => explain::run(args, form),
        Command::Completions(args) => completions::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            answer::failed(&error, form);
            ExitCode::from(error.exit_code())
        }
    }
}
