//! Diagnostics: what is wrong with a text, where, and what to write instead.
//!
//! Every problem has a stable code. The rendering shows file, line and column, the line itself with a caret under the
//! place, and a `help:` line where there is something to try:
//!
//! ```text
//! error[E0110]: no name `xx` is in scope
//!  --> model.py:5:22
//!   |
//! 5 |         lv = R.add(x, xx)
//!   |                       ^^
//!   = help: did you mean `x`?
//! ```

use std::fmt;

/// What kind of problem it is; the number is stable and `explain` says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The text is not Python.
    Syntax,
    /// The text is nested or sized beyond a limit.
    Limit,
    /// Python that has no meaning in TVMScript.
    Unsupported,
    /// A name that is not in scope.
    UnknownName,
    /// A name behind `R.`, `T.` or `I.` that does not exist.
    UnknownMember,
    /// Arguments that are missing, too many or of the wrong kind.
    Arguments,
    /// A type where another was expected.
    Type,
    /// An operator refuses its operands.
    Operator,
    /// A structure that the language forbids, such as a return in a dataflow block.
    Structure,
    /// The metadata section is missing or cannot be read.
    Metadata,
    /// Python code around the program failed while the program was read.
    Outside,
}

impl Code {
    /// The stable code, as `E0101`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Syntax => "E0101",
            Code::Limit => "E0102",
            Code::Unsupported => "E0103",
            Code::UnknownName => "E0110",
            Code::UnknownMember => "E0111",
            Code::Arguments => "E0120",
            Code::Type => "E0121",
            Code::Operator => "E0122",
            Code::Structure => "E0130",
            Code::Metadata => "E0140",
            Code::Outside => "E0150",
        }
    }

    /// All codes.
    pub const ALL: &[Code] = &[
        Code::Syntax,
        Code::Limit,
        Code::Unsupported,
        Code::UnknownName,
        Code::UnknownMember,
        Code::Arguments,
        Code::Type,
        Code::Operator,
        Code::Structure,
        Code::Metadata,
        Code::Outside,
    ];

    /// What the code means and what to do about it, for `relaxide explain`.
    pub fn explain(self) -> &'static str {
        match self {
            Code::Syntax => {
                "The text is not valid Python. TVMScript is Python syntax: check brackets, colons and indentation."
            }
            Code::Limit => {
                "The text is nested too deeply or too long. The limits keep a hostile text from exhausting the stack; \
                 split large expressions into bindings."
            }
            Code::Unsupported => {
                "The construct is Python, but TVMScript gives it no meaning (or Relaxide does not support it yet). \
                 The text is read, never run: calls of Python functions, comprehensions and imports of other modules \
                 have no effect here."
            }
            Code::UnknownName => {
                "A name is used that no parameter, binding, loop or declaration introduced. Dataflow variables end with \
                 their block unless R.output names them."
            }
            Code::UnknownMember => "No operator, type or statement of that name exists behind R., T. or I.",
            Code::Arguments => {
                "A call has arguments that are missing, unknown, too many, or not of the kind that is expected."
            }
            Code::Type => "A value or an annotation is of another type than the place needs.",
            Code::Operator => "The operator's own rules (shapes, dtypes, attributes) refuse the call.",
            Code::Structure => {
                "Statements are arranged in a way that the language forbids: control flow in a dataflow block, a function \
                 without return, a branch that ends without a binding …"
            }
            Code::Metadata => {
                "The text mentions metadata[...], but its metadata section is absent or damaged. Print with metadata \
                 (show_meta) to get a text that stands alone."
            }
            Code::Outside => {
                "The program uses Python code of its surroundings (a helper function, a captured value), and that code \
                 raised an exception while the program was read. The message is the exception's."
            }
        }
    }
}

/// One problem at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What kind of problem.
    pub code: Code,
    /// One sentence.
    pub message: String,
    /// The file, or whatever names the text.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// How many characters the caret spans.
    pub width: usize,
    /// The line itself.
    pub source_line: String,
    /// What to try.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A problem at `start..end` (byte offsets) of `source`.
    pub(crate) fn at(
        code: Code,
        message: impl Into<String>,
        file: &str,
        lines: &Lines<'_>,
        start: usize,
        end: usize,
    ) -> Diagnostic {
        let (source, place) = (lines.source, lines.place(start));
        let rest = source.get(place.start..).unwrap_or_default();
        let line_end = place.start + rest.find(['\n', '\r']).unwrap_or(rest.len());
        let end_in_line = end.clamp(place.start, line_end.max(place.start));
        let width = source.get(place.start..end_in_line).map_or(1, |s| s.chars().count()).max(1);
        Diagnostic {
            code,
            message: message.into(),
            file: file.to_string(),
            line: place.line,
            column: place.column,
            width,
            source_line: source.get(place.line_start..line_end).unwrap_or("").to_string(),
            help: None,
        }
    }

    /// The same problem with something to try.
    pub fn with_help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }
}

/// Where the lines of a text begin, so that places are found without counting from the start.
pub(crate) struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Lines<'s> {
    /// The lines of a text.
    pub fn of(source: &'s str) -> Lines<'s> {
        let breaks = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines { source, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The place of an offset; offsets behind the end count as the end.
    pub fn place(&self, offset: usize) -> Place {
        let mut start = offset.min(self.source.len());
        while !self.source.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.starts.partition_point(|first| *first <= start);
        let line_start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.source.get(line_start..start).map_or(0, |head| head.chars().count()) + 1;
        Place { start, line, column, line_start }
    }
}

/// Where a byte offset lies.
pub(crate) struct Place {
    /// The offset, moved to a character boundary.
    pub start: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    line_start: usize,
}

impl std::error::Error for Diagnostic {}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.line.to_string();
        let margin = " ".repeat(number.len());
        // Tabs stay tabs in front of the caret, so that it lines up whatever their width.
        let lead: String =
            self.source_line.chars().take(self.column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        writeln!(f, "error[{}]: {}", self.code.as_str(), self.message)?;
        writeln!(f, "{margin}--> {}:{}:{}", self.file, self.line, self.column)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{number} | {}", self.source_line)?;
        write!(f, "{margin} | {lead}{}", "^".repeat(self.width))?;
        if let Some(help) = &self.help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        Ok(())
    }
}

/// The candidate that is closest to a misspelt name, if one is close.
pub(crate) fn closest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let limit = 1 + name.chars().count() / 4;
    candidates.map(|c| (distance(name, c), c)).filter(|(d, _)| *d <= limit).min_by_key(|(d, _)| *d).map(|(_, c)| c)
}

/// Levenshtein distance; long names count as far.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let best = (diagonal + usize::from(x != y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    row[b.len()]
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
    }

    #[test]
    fn places_behind_the_end_and_inside_characters_are_clamped() {
        let d = Diagnostic::at(Code::Syntax, "x", "a", &Lines::of("é"), 1, 100);
        assert_eq!((d.line, d.column, d.width), (1, 1, 1));
        let d = Diagnostic::at(Code::Syntax, "x", "a", &Lines::of("ab\n"), 50, 60);
        assert_eq!((d.line, d.column), (2, 1));
    }

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        assert_eq!(closest("permute_dim", ["permute_dims", "add"].into_iter()), Some("permute_dims"));
        assert_eq!(closest("zzz", ["permute_dims", "add"].into_iter()), None);
    }
}
