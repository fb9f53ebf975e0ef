//! `relaxide serve`. The server and its options live in the crate `serve`, whose own small command has them too.

pub use relaxide_serve::command::ServeArgs;
use relaxide_serve::command::{self, Failed};

use crate::error::CliError;

/// Serves until it is told to end.
pub fn run(args: &ServeArgs) -> Result<(), CliError> {
    command::run(&["serve".into()], args).map_err(|failed| match failed {
        Failed::Usage { message, help } => CliError::Usage { message, help },
        Failed::Start(error) => CliError::Serve(error),
    })
}
