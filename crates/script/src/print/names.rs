//! Names of variables in a text: unique where two would clash, and free again where a scope ends.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::ObjectRef;

/// Words that Python or TVMScript itself uses.
const RESERVED: &[&str] = &[
    "False", "I", "Module", "None", "R", "T", "True", "TypeVar", "and", "as", "assert", "async", "await", "break",
    "class", "cls", "continue", "def", "del", "elif", "else", "except", "finally", "float", "for", "from", "global",
    "if", "import", "in", "is", "lambda", "metadata", "nonlocal", "not", "or", "pass", "raise", "range", "return",
    "try", "tvm", "while", "with", "yield",
];

/// Names of nodes by identity, in nested scopes.
#[derive(Default)]
pub(crate) struct Names {
    frames: Vec<Frame>,
}

#[derive(Default)]
struct Frame {
    used: HashSet<String>,
    bound: HashMap<ObjectRef, String>,
}

impl Names {
    /// Names in one scope.
    pub fn new() -> Names {
        Names { frames: vec![Frame::default()] }
    }

    /// Opens a scope.
    pub fn push(&mut self) {
        self.frames.push(Frame::default());
    }

    /// Closes the innermost scope; its names are free again.
    pub fn pop(&mut self) {
        self.frames.pop();
    }

    /// The name of a node, where it has one.
    pub fn get(&self, node: &ObjectRef) -> Option<&str> {
        self.frames.iter().rev().find_map(|f| f.bound.get(node)).map(String::as_str)
    }

    /// Gives a node a name of its own: `hint`, or `hint_1`, `hint_2` …
    pub fn define(&mut self, node: ObjectRef, hint: &str) -> String {
        let name = self.reserve(hint);
        self.alias(node, name.clone());
        name
    }

    /// Lets a node be written as `text`, without taking a name.
    pub fn alias(&mut self, node: ObjectRef, text: String) {
        if let Some(frame) = self.frames.last_mut() {
            frame.bound.insert(node, text);
        }
    }

    /// Takes a name that nobody else gets in this scope.
    pub fn reserve(&mut self, hint: &str) -> String {
        let base = identifier(hint);
        let name = if self.is_free(&base) {
            base
        } else {
            (1..).map(|i| format!("{base}_{i}")).find(|name| self.is_free(name)).unwrap_or(base)
        };
        if let Some(frame) = self.frames.last_mut() {
            frame.used.insert(name.clone());
        }
        name
    }

    fn is_free(&self, name: &str) -> bool {
        RESERVED.binary_search(&name).is_err() && self.frames.iter().all(|f| !f.used.contains(name))
    }
}

/// The name of what no scope names.
pub(crate) fn standing_alone(hint: &str) -> String {
    Names::new().reserve(hint)
}

/// The nearest Python identifier: `conv.1/out` becomes `conv_1_out`.
pub(crate) fn identifier(hint: &str) -> String {
    let mut name: String = hint.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'v');
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_scopes_give_them_back() {
        let mut names = Names::new();
        assert_eq!(names.reserve("x"), "x");
        assert_eq!(names.reserve("x"), "x_1");
        names.push();
        assert_eq!(names.reserve("x"), "x_2");
        names.pop();
        assert_eq!(names.reserve("x"), "x_2");
        assert_eq!(names.reserve("lambda"), "lambda_1");
        assert_eq!(names.reserve("1.a/b"), "v1_a_b");
    }

    #[test]
    fn the_reserved_words_are_sorted_as_the_search_needs() {
        assert!(RESERVED.windows(2).all(|w| w[0] < w[1]));
    }
}
