//! Why passes give up.

use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::span::MaybeSpan;

/// Why a pass gave up. It names the pass; the message names the function and the construct.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{pass}: {}", refusal.message)]
pub struct PassError {
    /// The pass.
    pub pass: String,
    /// What it refused.
    pub refusal: Box<Refusal>,
    /// What it came from, such as an exception of a pass that is written in Python.
    #[source]
    pub cause: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// What is wrong with a program, in the words of what looked at it.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// What kind of problem.
    pub code: Code,
    /// What is wrong, and where.
    pub message: String,
    /// What to try.
    pub help: Option<String>,
    /// The line of the user's that the node comes from, if it does.
    pub span: MaybeSpan,
}

impl Refusal {
    /// A problem of a kind.
    pub fn new(code: Code, message: impl Into<String>) -> Refusal {
        Refusal { code, message: message.into(), help: None, span: None }
    }

    /// The same with something to try.
    pub fn help(self, help: impl Into<String>) -> Refusal {
        Refusal { help: Some(help.into()), ..self }
    }

    /// The same at a place, unless it has one already.
    pub fn at(self, span: MaybeSpan) -> Refusal {
        Refusal { span: self.span.or(span), ..self }
    }

    /// The same with words in front of its message.
    pub fn within(self, place: &str) -> Refusal {
        Refusal { message: format!("{place}: {}", self.message), ..self }
    }

    /// As it is shown; `source` gives the text of a file by its name.
    pub fn diagnostic(&self, source: impl FnOnce(&str) -> Option<String>) -> Diagnostic {
        let diagnostic = Diagnostic::new(self.code, self.message.clone());
        let diagnostic = match &self.help {
            Some(help) => diagnostic.with_help(help.clone()),
            None => diagnostic,
        };
        match &self.span {
            Some(span) => diagnostic.with_span(span, source(&span.source).as_deref()),
            None => diagnostic,
        }
    }
}

impl From<String> for Refusal {
    fn from(message: String) -> Refusal {
        Refusal::new(Code::Precondition, message)
    }
}

impl From<&str> for Refusal {
    fn from(message: &str) -> Refusal {
        Refusal::from(message.to_string())
    }
}

impl PassError {
    /// An error of a pass: a text is a precondition that is not met.
    pub fn new(pass: impl Into<String>, refusal: impl Into<Refusal>) -> Self {
        PassError { pass: pass.into(), refusal: Box::new(refusal.into()), cause: None }
    }

    /// Parameters or options that do not fit.
    pub fn arguments(pass: impl Into<String>, message: impl Into<String>) -> Self {
        PassError::new(pass, Refusal::new(Code::PassArguments, message))
    }

    /// The error of a pass that another error is the reason of.
    pub fn caused(pass: impl Into<String>, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        let text = cause.to_string();
        PassError { cause: Some(Arc::new(cause)), ..PassError::new(pass, text) }
    }

    /// As it is shown; `source` gives the text of a file by its name.
    pub fn diagnostic(&self, source: impl FnOnce(&str) -> Option<String>) -> Diagnostic {
        let diagnostic = self.refusal.diagnostic(source);
        Diagnostic { message: self.to_string(), ..diagnostic }
    }
}
