//! Where nodes come to stand in a text.
//!
//! Texts of expressions are put together from those of their parts, so that no place is known before the end. While nodes are
//! watched, the text of each is put between two marks, which are letters of Unicode's private use; they are taken out of the
//! whole text again, and what stood between them is the node's span.

use std::collections::HashMap;

use relaxide_ffi::ObjectRef;
use relaxide_ir::IRModule;
use relaxide_relax::Function;
use relaxide_tir::PrimFunc;

use super::{PrintOptions, Printer};

/// The beginning of the first watched node; those of others follow it.
const FIRST: u32 = 0xF0000;
/// How many nodes can be watched at once: as many as this plane has letters.
const MOST: u32 = 0xFFFD;
const END: char = '\u{E000}';

/// Spans of a node, in letters.
pub type Spans = Vec<(usize, usize)>;

/// A module, a function or a kernel as text, and where in it the nodes stand; of the node itself, all but the imports above.
/// Nothing for other nodes.
pub fn print_with_spans(root: &ObjectRef, nodes: &[ObjectRef], options: PrintOptions) -> Option<(String, Vec<Spans>)> {
    let module = root.downcast_ref::<IRModule>();
    let mut printer = Printer::new(module.map(|module| &**module));
    printer.watched = nodes.iter().take(MOST as usize).cloned().zip(0..).collect();
    if let Some(module) = module {
        printer.module(module);
    } else if let Some(func) = root.downcast_ref::<PrimFunc>() {
        printer.prim_func(func.global_symbol().unwrap_or("main"), func);
    } else if let Some(func) = root.downcast_ref::<Function>() {
        printer.function(func.attrs.str("global_symbol").unwrap_or("main"), func);
    } else {
        return None;
    }
    printer.watch_since(0, root);
    Some(taken_out(&printer.finish(options), nodes.len()))
}

/// Whether a letter is a mark.
pub(super) fn is_mark(letter: char) -> bool {
    letter == END || (FIRST..FIRST + MOST).contains(&u32::from(letter))
}

/// A text without its marks, and what stood between them.
fn taken_out(marked: &str, count: usize) -> (String, Vec<Spans>) {
    let (mut text, mut spans, mut open) = (String::with_capacity(marked.len()), vec![Spans::new(); count], Vec::new());
    let mut place = 0;
    for letter in marked.chars() {
        if letter == END {
            if let Some((index, begin)) = open.pop()
                && let Some(list) = spans.get_mut(index as usize)
            {
                list.push((begin, place));
            }
        } else if is_mark(letter) {
            open.push((u32::from(letter) - FIRST, place));
        } else {
            text.push(letter);
            place += 1;
        }
    }
    (text, spans)
}

impl Printer<'_> {
    fn mark_of(&self, node: &ObjectRef) -> Option<char> {
        self.watched.get(node).and_then(|index| char::from_u32(FIRST + index))
    }

    /// The text of a node, between marks where the node is watched.
    pub(super) fn watch(&self, node: impl FnOnce() -> ObjectRef, text: String) -> String {
        if self.watched.is_empty() {
            return text;
        }
        match self.mark_of(&node()) {
            Some(mark) => format!("{mark}{text}{END}"),
            None => text,
        }
    }

    /// Puts what was written behind a place between marks, where the node is watched.
    pub(super) fn watch_since(&mut self, place: usize, node: &ObjectRef) {
        if let Some(mark) = self.mark_of(node) {
            self.insert(place, mark.encode_utf8(&mut [0; 4]));
            self.out.push(END);
        }
    }
}

/// Nodes by what marks them.
pub(super) type Watched = HashMap<ObjectRef, u32>;

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Ref};
    use relaxide_ir::{Buffer, PrimExpr, Var, prim};
    use relaxide_tir::Stmt;

    use super::*;

    #[test]
    fn a_text_is_the_same_with_and_without_spans() {
        let f32 = DataType::float(32);
        let a = Buffer::new("A", f32, [8i64]);
        let i = Var::dim("i");
        let store = Stmt::store(&a, [&i], prim::load(&a, [&i]));
        let func = Ref::new(PrimFunc::over_buffers(&[a], &[], Stmt::serial(i.clone(), 8, store.clone())));
        let root = ObjectRef::from(func.clone());
        let watched = [ObjectRef::from(store), ObjectRef::from(PrimExpr::from(&i)), root.clone()];
        let (text, spans) = print_with_spans(&root, &watched, PrintOptions::default()).unwrap();
        assert_eq!(text, super::super::print_prim_func(&func));
        let of = |index: usize| spans[index].iter().map(|(b, e)| &text[*b..*e]).collect::<Vec<_>>();
        assert_eq!(of(0).iter().map(|line| line.trim()).collect::<Vec<_>>(), ["A[i] = A[i]"]);
        assert_eq!(of(1), ["i", "i"]);
        assert!(of(2)[0].starts_with("@T.prim_func") && of(2)[0].ends_with("A[i] = A[i]\n"));
    }
}
