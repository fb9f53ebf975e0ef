//! `relaxide explain`.

use relaxide::ir::Code;

use crate::args::ExplainArgs;
use crate::error::CliError;

/// Says what an error code means.
pub fn run(args: &ExplainArgs) -> Result<(), CliError> {
    let codes = match &args.code {
        None => Code::ALL,
        Some(text) => {
            let code = Code::ALL.iter().position(|code| Some(*code) == Code::parse(text));
            let known = "codes look like E0122; `relaxide explain` lists them";
            let at = code.ok_or_else(|| CliError::usage(format!("there is no error code {text:?}"), known))?;
            &Code::ALL[at..=at]
        }
    };
    codes.iter().for_each(|code| println!("{}: {}", code.as_str(), code.explain()));
    Ok(())
}
