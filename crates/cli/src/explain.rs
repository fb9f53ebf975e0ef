//! `relaxide explain`.

use clap::Args;
use relaxide::ir::Code;
use serde_json::json;

use crate::answer::{self, Form};
use crate::error::CliError;

/// Arguments of `relaxide explain`.
#[derive(Args)]
#[command(after_help = "Examples:\n  relaxide explain E0122\n  relaxide explain        (all codes)")]
pub struct ExplainArgs {
    /// The code, as in `error[E0122]`; without one, all are listed.
    code: Option<String>,
}

/// Says what an error code means.
pub fn run(args: &ExplainArgs, form: Form) -> Result<(), CliError> {
    let codes = match &args.code {
        None => Code::ALL,
        Some(text) => {
            let code = Code::ALL.iter().position(|code| Some(*code) == Code::parse(text));
            let known = "codes look like E0122; `relaxide explain` lists them";
            let at = code.ok_or_else(|| CliError::usage(format!("there is no error code {text:?}"), known))?;
            &Code::ALL[at..=at]
        }
    };
    if form == Form::Json {
        let code = |code: &Code| json!({ "code": code.as_str(), "meaning": code.explain() });
        return answer::json("explain", json!({ "codes": codes.iter().map(code).collect::<Vec<_>>() }));
    }
    codes.iter().try_for_each(|code| answer::line(&format!("{}: {}", code.as_str(), code.explain())))
}
