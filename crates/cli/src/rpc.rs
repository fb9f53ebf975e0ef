//! `relaxide rpc`: servers, trackers and proxies. What each does and which options it has lives in the crate `rpc`, whose own small
//! command has them too.

use std::process::ExitCode;

use clap::Args;

/// Arguments of `relaxide rpc`.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub struct RpcArgs {
    /// A command (serve, track, proxy, query, keygen, pipe) and its options; `relaxide rpc --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub words: Vec<String>,
}

/// Runs a command.
pub fn run(args: &RpcArgs) -> ExitCode {
    let this = std::env::current_exe().map_or_else(|_| "relaxide".into(), std::path::PathBuf::into_os_string);
    let code = relaxide::rpc::command::run(&[this, "rpc".into()], &args.words);
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
