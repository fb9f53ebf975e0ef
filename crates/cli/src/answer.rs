//! What a command answers: text for people, or one JSON object for scripts.

use std::io::Write;

use serde_json::{Value, json};

use crate::error::CliError;
use crate::style;

/// How a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text for people.
    Text,
    /// One JSON object.
    Json,
}

/// Writes a line to standard output. Where nobody reads it any more, as behind `| head`, that is not an error.
pub fn line(text: &str) -> Result<(), CliError> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(CliError::File { path: "standard output".into(), source: error })
        }
        _ => Ok(()),
    }
}

/// Writes what a command found out, under its name and the version of its form.
pub fn json(command: &str, mut answer: Value) -> Result<(), CliError> {
    if let Some(fields) = answer.as_object_mut() {
        fields.insert("command".into(), json!(command));
        fields.insert("version".into(), json!(1));
    }
    line(&answer.to_string())
}

/// Says what went wrong.
pub fn failed(error: &CliError, form: Form) {
    let diagnostic = error.diagnostic();
    // A comparison that found a difference has answered already.
    if form == Form::Json && matches!(error, CliError::Differs { .. }) {
        return;
    }
    if form == Form::Json {
        let place = diagnostic.snippet.as_ref().map(|s| json!({ "file": s.file, "line": s.line, "column": s.column }));
        let answer = json!({ "error": {
            "code": diagnostic.code.as_str(), "message": diagnostic.message, "help": diagnostic.help, "place": place,
            "details": error.details(), "exit_code": error.exit_code(),
        } });
        // There is no other place to say it.
        let _ = line(&answer.to_string());
        return;
    }
    let text = diagnostic.to_string();
    // The word and the code come first; whoever looks sees them in colour.
    let (head, rest) = text.split_once(": ").unwrap_or((&text, ""));
    eprintln!("{}: {}", style::error(head), rest.trim_end());
}
