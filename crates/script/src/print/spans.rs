//! Where nodes come to stand in a text.
//!
//! Texts of expressions are put together from those of their parts, so that no place is known before the end. While nodes are
//! located, the text of each is put between two marks; they are taken out of the whole text again, and what stood between them is
//! the node's span. Marks are made of letters that the text itself does not have, which is why it is printed once without them.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::ObjectRef;
use relaxide_ir::IRModule;
use relaxide_relax::Function;
use relaxide_tir::PrimFunc;

use super::{PrintOptions, Printer};

/// Spans of a node, in letters.
pub type Spans = Vec<(usize, usize)>;

/// Why a text has no spans. A limit: the program's strings have every letter that could be a mark.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the text has all letters that could mark its parts, so that none can be found in it")]
pub struct NoLetterLeft;

/// A module, a function or a kernel as text, and where in it each of the nodes stands; of the node itself, all but the imports above.
/// Nothing for other nodes.
pub fn print_with_spans(
    root: &ObjectRef,
    nodes: &[ObjectRef],
    options: PrintOptions,
) -> Result<Option<(String, Vec<Spans>)>, NoLetterLeft> {
    let Some(text) = printed(root, options, None) else { return Ok(None) };
    let located = Located { marks: Marks::absent_from(&text)?, nodes: numbered(nodes) };
    let (marks, numbers) = (located.marks, located.nodes.clone());
    let marked = printed(root, options, Some(located)).unwrap_or_default();
    let (without, spans) = marks.taken_out(&marked, numbers.len());
    debug_assert_eq!(without, text);
    Ok(Some((text, nodes.iter().map(|node| spans[numbers[node]].clone()).collect())))
}

/// Each node once, with its number.
fn numbered(nodes: &[ObjectRef]) -> HashMap<ObjectRef, usize> {
    let mut numbers = HashMap::new();
    for node in nodes {
        let next = numbers.len();
        numbers.entry(node.clone()).or_insert(next);
    }
    numbers
}

fn printed(root: &ObjectRef, options: PrintOptions, located: Option<Located>) -> Option<String> {
    let module = root.downcast_ref::<IRModule>();
    let mut printer = Printer::new(module.map(|module| &**module));
    printer.located = located;
    if let Some(module) = module {
        printer.module(module);
    } else if let Some(func) = root.downcast_ref::<PrimFunc>() {
        printer.prim_func(func.global_symbol().unwrap_or("main"), func);
    } else if let Some(func) = root.downcast_ref::<Function>() {
        printer.function(func.attrs.str("global_symbol").unwrap_or("main"), func);
    } else {
        return None;
    }
    printer.watch_since(0, || root.clone());
    Some(printer.finish(options))
}

/// Nodes whose places in the text are asked for, with their numbers.
pub(super) struct Located {
    marks: Marks,
    nodes: HashMap<ObjectRef, usize>,
}

/// The letters of marks. A node's number stands between two of `begin`, in front of its text, and `end` behind it.
#[derive(Clone, Copy)]
struct Marks {
    begin: char,
    end: char,
}

impl Marks {
    /// The first two letters, from those for private use on, that a text does not have.
    fn absent_from(text: &str) -> Result<Marks, NoLetterLeft> {
        let present: HashSet<char> = text.chars().collect();
        let mut absent = ('\u{E000}'..=char::MAX).filter(|letter| !present.contains(letter));
        let (begin, end) = absent.next().zip(absent.next()).ok_or(NoLetterLeft)?;
        Ok(Marks { begin, end })
    }

    fn opening(self, number: usize) -> String {
        format!("{0}{number}{0}", self.begin)
    }

    /// A text without its marks, and what stood between those of each of `count` nodes.
    fn taken_out(self, marked: &str, count: usize) -> (String, Vec<Spans>) {
        let (mut text, mut spans, mut open) =
            (String::with_capacity(marked.len()), vec![Spans::new(); count], Vec::new());
        let (mut letters, mut place) = (marked.chars(), 0);
        while let Some(letter) = letters.next() {
            if letter == self.begin {
                let number: String = letters.by_ref().take_while(|letter| *letter != self.begin).collect();
                open.push((number.parse::<usize>().ok(), place));
            } else if letter == self.end {
                if let Some((Some(number), begin)) = open.pop()
                    && let Some(list) = spans.get_mut(number)
                {
                    list.push((begin, place));
                }
            } else {
                text.push(letter);
                place += 1;
            }
        }
        (text, spans)
    }
}

impl Printer<'_> {
    /// The text of a node, between marks where the node is located.
    pub(super) fn watch(&self, node: impl FnOnce() -> ObjectRef, text: String) -> String {
        match self.marks_of(node) {
            Some((opening, end)) => format!("{opening}{text}{end}"),
            None => text,
        }
    }

    /// Puts what was written behind a place between marks, where the node is located.
    pub(super) fn watch_since(&mut self, place: usize, node: impl FnOnce() -> ObjectRef) {
        if let Some((opening, end)) = self.marks_of(node) {
            self.insert(place, &opening);
            self.out.push(end);
        }
    }

    /// Whether a text begins so, behind marks.
    pub(super) fn begins_with(&self, text: &str, beginning: &str) -> bool {
        let Some(Located { marks, .. }) = &self.located else { return text.starts_with(beginning) };
        let mut rest = text;
        while let Some((_, behind)) = rest.strip_prefix(marks.begin).and_then(|rest| rest.split_once(marks.begin)) {
            rest = behind;
        }
        rest.starts_with(beginning)
    }

    fn marks_of(&self, node: impl FnOnce() -> ObjectRef) -> Option<(String, char)> {
        let Located { marks, nodes } = self.located.as_ref()?;
        nodes.get(&node()).map(|number| (marks.opening(*number), marks.end))
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Ref};
    use relaxide_ir::{Buffer, PrimExpr, Var, prim};
    use relaxide_tir::Stmt;

    use super::*;

    fn with_spans(root: &ObjectRef, nodes: &[ObjectRef]) -> (String, Vec<Spans>) {
        print_with_spans(root, nodes, PrintOptions::default()).unwrap().unwrap()
    }

    /// What stands in the spans of a node.
    fn shown(text: &str, spans: &Spans) -> Vec<String> {
        let part = |(begin, end): &(usize, usize)| text.chars().skip(*begin).take(end - begin).collect();
        spans.iter().map(part).collect()
    }

    #[test]
    fn strings_of_a_program_may_have_any_letter() {
        // Letters for private use, those behind them, and what a mark looks like.
        let said = "\u{E000}0\u{E000}a\u{E001}\u{F0000}b\u{F0001}\u{F8FF}\u{FFFFD}\u{10FFFF}";
        let message = prim::string(said);
        let call = prim::call(DataType::int(32), "tirx.call_packed", vec![message.clone()]);
        let stmt = Stmt::Evaluate(Ref::new(relaxide_tir::Evaluate { value: call.clone() }));
        let func = Ref::new(PrimFunc::over_buffers(&[], &[], stmt));
        let root = ObjectRef::from(func.clone());
        let (text, spans) = with_spans(&root, &[message.into(), call.into(), root.clone()]);
        assert_eq!(text, super::super::print_prim_func(&func));
        assert_eq!(shown(&text, &spans[0]), [format!("\"{said}\"")]);
        assert!(
            shown(&text, &spans[1])[0].starts_with("T.")
                && shown(&text, &spans[1])[0].ends_with(&format!("\"{said}\")"))
        );
        assert!(shown(&text, &spans[2])[0].starts_with("@T.prim_func"));
    }

    #[test]
    fn every_node_of_many_has_its_spans() {
        let a = Buffer::new("A", DataType::int(32), [1i64]);
        let values: Vec<PrimExpr> = (0..70_000).map(|value| prim::int_of(DataType::int(32), value)).collect();
        let stores = values.iter().map(|value| Stmt::store(&a, [prim::int(0)], value.clone()));
        let func =
            Ref::new(PrimFunc::over_buffers(std::slice::from_ref(&a), &[], Stmt::seq(stores.collect::<Vec<_>>())));
        // The first is asked for twice.
        let nodes: Vec<ObjectRef> = values.iter().chain(&values[..1]).map(|value| value.clone().into()).collect();
        let (text, spans) = with_spans(&func.into(), &nodes);
        // The text has letters of one byte only.
        for (number, list) in (0..70_000).chain([0]).zip(&spans) {
            assert_eq!(list.iter().map(|(b, e)| &text[*b..*e]).collect::<Vec<_>>(), [number.to_string()]);
        }
    }

    #[test]
    fn a_text_of_all_letters_has_no_marks() {
        let all: String = ('\u{E000}'..char::MAX).collect();
        assert_eq!(Marks::absent_from(&all).err(), Some(NoLetterLeft));
        assert_eq!(Marks::absent_from(&all[3..]).map(|marks| (marks.begin, marks.end)), Ok(('\u{E000}', char::MAX)));
    }

    #[test]
    fn a_text_is_the_same_with_and_without_spans() {
        let f32 = DataType::float(32);
        let a = Buffer::new("A", f32, [8i64]);
        let i = Var::dim("i");
        let store = Stmt::store(&a, [&i], prim::load(&a, [&i]));
        let func = Ref::new(PrimFunc::over_buffers(&[a], &[], Stmt::serial(i.clone(), 8, store.clone())));
        let root = ObjectRef::from(func.clone());
        let located = [ObjectRef::from(store), ObjectRef::from(PrimExpr::from(&i)), root.clone()];
        let (text, spans) = with_spans(&root, &located);
        assert_eq!(text, super::super::print_prim_func(&func));
        let of = |index: usize| spans[index].iter().map(|(b, e)| &text[*b..*e]).collect::<Vec<_>>();
        assert_eq!(of(0).iter().map(|line| line.trim()).collect::<Vec<_>>(), ["A[i] = A[i]"]);
        assert_eq!(of(1), ["i", "i"]);
        assert!(of(2)[0].starts_with("@T.prim_func") && of(2)[0].ends_with("A[i] = A[i]\n"));
    }
}
