//! `relaxide completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Cli;
use crate::error::CliError;

/// Arguments of `relaxide completions`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  relaxide completions bash > ~/.local/share/bash-completion/completions/relaxide\n  \
    relaxide completions zsh > ~/.zfunc/_relaxide\n  \
    relaxide completions fish > ~/.config/fish/completions/relaxide.fish"
)]
pub struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "relaxide", &mut script);
    crate::answer::line(String::from_utf8_lossy(&script).trim_end())
}
