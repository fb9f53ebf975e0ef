//! The `relaxide` command.
//!
//! A file a command, each with its arguments, what it does, and what it answers. What commands share: reading programs and compiled
//! models ([`program`]), inputs ([`inputs`]), answers ([`answer`]), errors with their exit codes ([`error`]). Whatever is of use
//! outside of the command line lives in the library.

#![forbid(unsafe_code)]

mod answer;
mod args;
mod bench;
mod check;
mod compile;
mod completions;
mod devices;
mod error;
mod explain;
mod inputs;
mod inspect;
mod onnxruntime;
mod opt;
mod outputs;
mod passes;
mod processor;
mod profile;
mod program;
mod progress;
mod remote;
mod rpc;
mod run;
mod serve;
mod style;
mod tune;

use std::process::ExitCode;

use clap::Parser;

use crate::answer::Form;
use crate::args::{Cli, Command};
use crate::error::CliError;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return misused(&error),
    };
    let form = cli.form();
    let result = match &cli.command {
        Command::Compile(args) => compile::run(args, form),
        Command::Run(args) => run::run(args, form),
        Command::Bench(args) => bench::run(args, form),
        Command::Profile(args) => profile::run(args, form),
        Command::Tune(args) => tune::run(args, form),
        Command::MeasureKernels => tune::measure(),
        Command::Check(args) => check::run(args, form),
        Command::Inspect(args) => inspect::run(args, form),
        Command::Opt(args) => opt::run(args, form),
        Command::Devices(args) => devices::run(args, form),
        Command::Rpc(args) => return rpc::run(args),
        Command::Serve(args) => serve::run(args),
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

/// Shows help where it is asked for, or says what is wrong with the command line, in the form that it asks for.
fn misused(error: &clap::Error) -> ExitCode {
    let asks_for_json = std::env::args_os().skip(1).take_while(|arg| arg != "--").any(|arg| arg == "--json");
    if !error.use_stderr() || !asks_for_json {
        error.exit();
    }
    let text = error.render().to_string();
    let (message, help) = text.trim_end().split_once("\n\n").unwrap_or((&text, ""));
    let message = message.strip_prefix("error: ").unwrap_or(message).trim();
    let error = CliError::usage(message, help.trim());
    answer::failed(&error, Form::Json);
    ExitCode::from(error.exit_code())
}
