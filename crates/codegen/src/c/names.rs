//! Names: those of a kernel, made into identifiers of C that mean nothing else.

use std::collections::HashSet;

/// What stands in front of names that mean something in every file: its own, and macros of the headers that it includes.
const RESERVED: [&str; 7] = ["rx_", "RX_", "RELAXIDE_", "TVM", "FP_", "INT", "UINT"];

/// Words of C (and of C++), macros of the headers that files include, and macros that compilers of C predefine.
const TAKEN: &str = " alignas alignof and asm auto bool break case catch char class compl const constexpr continue default \
    delete do double else enum explicit export extern false float for friend goto if inline int linux long mutable namespace \
    new not nullptr operator or private protected public register restrict return short signed sizeof static static_assert \
    struct switch template this thread_local throw true try typedef typename typeof union unix unsigned using virtual void \
    volatile while xor NULL NAN INFINITY HUGE_VAL HUGE_VALF EOF errno offsetof isnan isinf isfinite signbit memcpy \
    i386 arm mips sparc self shared args count result task group environment signature main ";

/// The names in use, innermost block last.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: HashSet<String>,
    order: Vec<String>,
}

impl Names {
    /// A name that nothing else has, as much like the wanted one as possible.
    pub fn fresh(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mut name = base.clone();
        let mut number = 0;
        while is_taken(&name) || self.used.contains(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        self.used.insert(name.clone());
        self.order.push(name.clone());
        name
    }

    /// Where a block begins.
    pub fn mark(&self) -> usize {
        self.order.len()
    }

    /// Ends a block: its names are free again.
    pub fn release(&mut self, mark: usize) {
        for name in self.order.drain(mark.min(self.order.len())..) {
            self.used.remove(&name);
        }
    }
}

/// A text as an identifier.
pub(crate) fn identifier(text: &str) -> String {
    let name: String = text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // What begins with an underscore belongs to the compiler, and a digit begins no name; some beginnings are our own.
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if letter && !RESERVED.iter().any(|beginning| name.starts_with(beginning)) { name } else { format!("v{name}") }
}

/// The words of a text of C, those in literals left out.
pub(crate) fn words(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    let (mut word, mut in_literal, mut escaped) = (String::new(), false, false);
    for c in text.chars() {
        if in_literal {
            in_literal = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if c.is_ascii_alphanumeric() || c == '_' {
            word.push(c);
        } else {
            in_literal = c == '"';
            if !word.is_empty() {
                words.insert(std::mem::take(&mut word));
            }
        }
    }
    words
}

/// Whether it means something already: words, and types of `stdint.h` and `stddef.h`.
fn is_taken(name: &str) -> bool {
    let integer = name.trim_start_matches('u');
    TAKEN.contains(&format!(" {name} "))
        || (name.ends_with("_t")
            && (integer.starts_with("int") || name.starts_with("size") || name.starts_with("ptrdiff")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_literals_are_not_mentioned() {
        let words = words("x += A0[i] * 2; rx_refuse(\"B of \\\"C\\\" and D\", n1);\n");
        let mut words: Vec<_> = words.iter().map(String::as_str).collect();
        words.sort_unstable();
        assert_eq!(words, ["2", "A0", "i", "n1", "rx_refuse", "x"]);
    }

    #[test]
    fn names_are_kept_where_they_can_be() {
        let mut names = Names::default();
        assert_eq!(names.fresh("A"), "A");
        assert_eq!(names.fresh("A"), "A_1");
        assert_eq!(names.fresh("ax0.outer"), "ax0_outer");
        assert_eq!(names.fresh("float"), "float_1");
        assert_eq!(names.fresh("int8_t"), "int8_t_1");
        assert_eq!(names.fresh("_x"), "v_x");
        assert_eq!(names.fresh("rx_add_i32"), "vrx_add_i32");
        let mark = names.mark();
        assert_eq!(names.fresh("i"), "i");
        names.release(mark);
        assert_eq!(names.fresh("i"), "i");
    }
}
