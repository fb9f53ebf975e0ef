//! Diagnostics: what is wrong with a program, where, and what to do about it.
//!
//! Every problem has a stable code. The rendering shows file, line and column, the line itself with a caret under the
//! place, and a `help:` line where there is something to try. What is known of the place is shown: a program that was
//! built node by node has no lines.
//!
//! ```text
//! error[E0110]: no name `xx` is in scope
//!  --> model.py:5:22
//!   |
//! 5 |         lv = R.add(x, xx)
//!   |                       ^^
//!   = help: did you mean `x`?
//! ```

mod closest;
mod code;
mod lines;

use std::fmt;

use crate::Span;

pub use closest::{closest, nearest};
pub use code::Code;
pub use lines::{Lines, Position};

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of problem.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// Where in a text, if the program came from one.
    pub snippet: Option<Box<Snippet>>,
    /// What to try.
    pub help: Option<String>,
}

/// A place in a text, with the line that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snippet {
    /// The file, or whatever names the text.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// How many characters the caret spans.
    pub width: usize,
    /// The line itself, if the text is at hand.
    pub text: Option<String>,
}

impl Diagnostic {
    /// A problem whose place in a text is not known.
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { code, message: message.into(), snippet: None, help: None }
    }

    /// A problem at `start..end` (byte offsets) of a text.
    pub fn at(
        code: Code,
        message: impl Into<String>,
        file: &str,
        lines: &Lines<'_>,
        start: usize,
        end: usize,
    ) -> Diagnostic {
        let (source, place) = (lines.source(), lines.place(start));
        let text = place.line_of(source);
        let end_in_line = end.clamp(place.start, (place.line_start + text.len()).max(place.start));
        let width = source.get(place.start..end_in_line).map_or(1, |s| s.chars().count()).max(1);
        let (file, text) = (file.to_string(), Some(text.to_string()));
        let snippet = Some(Box::new(Snippet { file, line: place.line, column: place.column, width, text }));
        Diagnostic { snippet, ..Diagnostic::new(code, message) }
    }

    /// The same problem at the place that a node came from; `source` is the text of the span's file, if it is at hand.
    pub fn with_span(mut self, span: &Span, source: Option<&str>) -> Diagnostic {
        if span.is_node() {
            self.message = format!("{} (in {})", self.message, span.source);
            return self;
        }
        let count = |n: i64| usize::try_from(n).unwrap_or(1).max(1);
        let (line, column) = (count(span.line), count(span.column));
        let width = if span.end_line == span.line { count(span.end_column).saturating_sub(column).max(1) } else { 1 };
        let text = source.and_then(|source| source.lines().nth(line - 1)).map(str::to_string);
        self.snippet = Some(Box::new(Snippet { file: span.source.clone(), line, column, width, text }));
        self
    }

    /// The same problem with something to try.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code.as_str(), self.message)?;
        let number = self.snippet.as_ref().map_or(String::new(), |snippet| snippet.line.to_string());
        let margin = " ".repeat(number.len());
        if let Some(Snippet { file, line, column, width, text }) = self.snippet.as_deref() {
            write!(f, "\n{margin}--> {file}:{line}:{column}")?;
            if let Some(text) = text {
                // Tabs stay tabs in front of the caret, so that it lines up whatever their width.
                let blank = |c| if c == '\t' { '\t' } else { ' ' };
                let lead: String = text.chars().take(column - 1).map(blank).collect();
                write!(f, "\n{margin} |\n{number} | {text}\n{margin} | {lead}{}", "^".repeat(*width))?;
            }
        }
        match &self.help {
            Some(help) => write!(f, "\n{margin} = help: {help}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diagnostic_shows_the_line_and_marks_the_place() {
        let source = "def f(x):\n    return xx\n";
        let d = Diagnostic::at(Code::UnknownName, "no name `xx` is in scope", "a.py", &Lines::of(source), 21, 23)
            .with_help("did you mean `x`?");
        let expected = "error[E0110]: no name `xx` is in scope\n --> a.py:2:12\n  |\n2 |     return xx\n  |            ^^\n  = help: did you mean `x`?";
        assert_eq!(d.to_string(), expected);
        let span = Span { source: "a.py".into(), line: 2, end_line: 2, column: 12, end_column: 14, notes: Vec::new() };
        let spanned = Diagnostic { snippet: None, ..d.clone() }.with_span(&span, Some(source));
        assert_eq!(spanned, d);
    }

    #[test]
    fn without_a_text_the_place_is_named() {
        let span = Span { source: "a.py".into(), line: 12, end_line: 13, column: 3, end_column: 1, notes: Vec::new() };
        let d = Diagnostic::new(Code::Impure, "an impure call").with_help("end the block");
        assert_eq!(d.to_string(), "error[E0205]: an impure call\n = help: end the block");
        let text = "error[E0205]: an impure call\n  --> a.py:12:3\n   = help: end the block";
        assert_eq!(d.clone().with_span(&span, None).to_string(), text);
        // A span beyond the text, as of a file that changed since.
        assert_eq!(d.with_span(&span, Some("x")).to_string(), text);
    }

    #[test]
    fn places_behind_the_end_and_inside_characters_are_clamped() {
        let place = |source, start, end| {
            let snippet = Diagnostic::at(Code::Syntax, "x", "a", &Lines::of(source), start, end).snippet.unwrap();
            (snippet.line, snippet.column, snippet.width)
        };
        assert_eq!(place("é", 1, 100), (1, 1, 1));
        assert_eq!(place("ab\n", 50, 60), (2, 1, 1));
    }
}
