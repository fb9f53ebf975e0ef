//! Where the lines of a text begin.

/// Where the lines of a text begin, so that places are found without counting from the start.
pub struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

/// Where a byte offset lies.
pub struct Position {
    /// The offset, moved to a character boundary.
    pub start: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The offset of the line's first character.
    pub line_start: usize,
}

impl<'s> Lines<'s> {
    /// The lines of a text.
    pub fn of(source: &'s str) -> Lines<'s> {
        let breaks = source.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines { source, starts: std::iter::once(0).chain(breaks).collect() }
    }

    /// The text.
    pub fn source(&self) -> &'s str {
        self.source
    }

    /// The place of an offset; offsets behind the end count as the end.
    pub fn place(&self, offset: usize) -> Position {
        let mut start = offset.min(self.source.len());
        while !self.source.is_char_boundary(start) {
            start -= 1;
        }
        let line = self.starts.partition_point(|first| *first <= start);
        let line_start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.source.get(line_start..start).map_or(0, |head| head.chars().count()) + 1;
        Position { start, line, column, line_start }
    }
}

impl Position {
    /// The line that it is in, without its end.
    pub fn line_of<'s>(&self, source: &'s str) -> &'s str {
        let rest = source.get(self.line_start..).unwrap_or_default();
        rest.split(['\n', '\r']).next().unwrap_or_default()
    }
}
