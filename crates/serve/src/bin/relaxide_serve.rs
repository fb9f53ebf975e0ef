//! `relaxide-serve`: the server alone, for machines without a compiler.

use std::process::ExitCode;

use clap::Parser;
use relaxide_serve::command::{self, ServeArgs};

/// Serve compiled models over HTTP and gRPC.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    args: ServeArgs,
}

fn main() -> ExitCode {
    match command::run(&[], &Cli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
