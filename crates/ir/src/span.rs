//! Where in a source text a node comes from.

use relaxide_ffi::{Object, Ref};

/// A range of a source file; lines and columns count from 1.
#[derive(Object, Debug)]
#[object(key = "ir.Span")]
pub struct Span {
    /// The file, or whatever names the source.
    pub source: String,
    /// First line.
    pub line: i64,
    /// Last line.
    pub end_line: i64,
    /// First column.
    pub column: i64,
    /// Column behind the last character.
    pub end_column: i64,
    /// What there is to say of each dimension that is checked there, empty where there is nothing. Numbers in braces are dimensions
    /// of what is checked: `sizes add up to {2}`. It is not part of a program's text.
    pub notes: Vec<String>,
}

impl Span {
    /// The node of a model that an importer makes something of: `words` say which. It has no line.
    pub fn of_node(words: impl Into<String>) -> Ref<Span> {
        Span::with_notes(words, Vec::new())
    }

    /// A node of a model, and what there is to say of what is checked for it.
    pub fn with_notes(words: impl Into<String>, notes: Vec<String>) -> Ref<Span> {
        Ref::new(Span { source: words.into(), line: 0, end_line: 0, column: 0, end_column: 0, notes })
    }

    /// Whether it is a node of a model and not a place of a text.
    pub fn is_node(&self) -> bool {
        self.line == 0
    }

    /// All the nodes that something is made of, as one; none where nothing is known of any.
    pub fn of_nodes<'a>(spans: impl IntoIterator<Item = &'a Ref<Span>>) -> MaybeSpan {
        let mut words: Vec<&str> = Vec::new();
        for span in spans.into_iter().filter(|span| span.is_node()) {
            for one in span.source.split(JOINT) {
                if !words.contains(&one) && words.len() < MOST_NODES {
                    words.push(one);
                }
            }
        }
        (!words.is_empty()).then(|| Span::of_node(words.join(JOINT)))
    }
}

/// What stands between nodes that something is made of.
const JOINT: &str = ", ";

/// Of more nodes than these the rest is not told.
const MOST_NODES: usize = 8;

/// A span that may be absent: nodes built by passes have none.
pub type MaybeSpan = Option<Ref<Span>>;
