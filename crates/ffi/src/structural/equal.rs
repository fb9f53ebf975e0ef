//! Comparing two graphs side by side, and saying where they first differ.

use std::collections::{HashMap, HashSet};
use std::fmt;

use crate::abi::type_index;
use crate::object::{NodeKind, Object, ObjectHeader, ObjectRef, Ref};
use crate::type_info::type_info;
use crate::{Any, Handle};

/// One step of the way from the root to a difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathStep {
    /// Into a field.
    Field(&'static str),
    /// To an element of a sequence.
    Index(usize),
    /// To the value of a key.
    Key(String),
}

/// Where two graphs first differ, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The way from the roots to the difference.
    pub path: Vec<PathStep>,
    /// What differs there.
    pub reason: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("at <root>")?;
        for step in &self.path {
            match step {
                PathStep::Field(name) => write!(f, ".{name}")?,
                PathStep::Index(position) => write!(f, "[{position}]")?,
                PathStep::Key(key) => write!(f, "[{key:?}]")?,
            }
        }
        write!(f, ": {}", self.reason)
    }
}

impl std::error::Error for Mismatch {}

/// A comparison in progress. The first difference ends it: what is asked afterwards has no meaning.
#[derive(Debug, Default)]
pub struct StructuralEqual {
    path: Vec<PathStep>,
    reason: Option<String>,
    defining: bool,
    /// Matched objects, by the first side's address. They are kept alive so that addresses stay theirs.
    forward: HashMap<*const ObjectHeader, (ObjectRef, ObjectRef)>,
    backward: HashSet<*const ObjectHeader>,
    /// True once a variable was matched with another one, after which one object may differ from itself.
    renamed: bool,
    /// Pairs of shared nodes that were found equal.
    seen: HashSet<(*const ObjectHeader, *const ObjectHeader, bool)>,
}

impl StructuralEqual {
    /// A comparison outside of any defining position.
    pub fn new() -> StructuralEqual {
        StructuralEqual::default()
    }

    /// Compares the values of a field.
    #[inline]
    pub fn field(&mut self, name: &'static str, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Field(name), compare)
    }

    /// Compares elements at a position.
    #[inline]
    pub fn index(&mut self, position: usize, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Index(position), compare)
    }

    /// Compares the values of a key.
    pub fn key(&mut self, key: &str, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Key(key.to_string()), compare)
    }

    /// Compares something in which free variables are defined.
    pub fn def_region(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        let outer = std::mem::replace(&mut self.defining, true);
        let equal = compare(self);
        self.defining = outer;
        equal
    }

    /// Records a difference here, unless one was recorded before; always false.
    #[cold]
    pub fn fail(&mut self, reason: impl fmt::Display) -> bool {
        self.reason.get_or_insert_with(|| reason.to_string());
        false
    }

    /// Compares two nodes of one Rust type.
    pub fn nodes<T: Object>(&mut self, a: &Ref<T>, b: &Ref<T>) -> bool {
        match T::KIND {
            NodeKind::Unique => Ref::ptr_eq(a, b) || self.fail(format_args!("not the same {}", T::TYPE_KEY)),
            NodeKind::Var => self.variables(a, b),
            NodeKind::Tree => self.trees(a, b),
        }
    }

    /// Compares two objects of any type.
    pub fn objects(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        if a.type_index() != b.type_index() {
            return self.differ_in_type(a, b);
        }
        match type_info(a.type_index()).and_then(|info| info.rust()) {
            Some(rust) => (rust.equal)(a, b, self),
            None => a == b || self.fail(format_args!("not the same {}", a.type_key())),
        }
    }

    /// Compares two values of any type. Text is text, short or long.
    pub fn values(&mut self, a: &Any, b: &Any) -> bool {
        if let (Some(x), Some(y)) = (a.as_str(), b.as_str()) {
            return x == y || self.fail(format_args!("{x:?} differs from {y:?}"));
        }
        if let (Some(x), Some(y)) = (a.as_bytes(), b.as_bytes()) {
            return x == y || self.fail("the bytes differ");
        }
        if let (Some(x), Some(y)) = (a.as_object(), b.as_object()) {
            return self.objects(x, y);
        }
        if a.type_index() != b.type_index() {
            return self.fail(format_args!("a {} against a {}", a.type_key(), b.type_key()));
        }
        let same = match a.type_index() {
            type_index::FLOAT => {
                let bits = |value: &Any| value.as_view().as_float().map(crate::field::float_bits);
                bits(a) == bits(b)
            }
            _ => a.as_view().raw().word() == b.as_view().raw().word(),
        };
        same || self.fail(format_args!("{a:?} differs from {b:?}"))
    }

    /// Compares two sequences of values.
    pub fn sequences(&mut self, a: &[Any], b: &[Any]) -> bool {
        if a.len() != b.len() {
            return self.fail(format_args!("{} elements against {}", a.len(), b.len()));
        }
        let mut pairs = a.iter().zip(b).enumerate();
        pairs.all(|(position, (a, b))| self.index(position, |eq| eq.values(a, b)))
    }

    /// Records that two objects are of different types; always false.
    #[cold]
    pub fn differ_in_type(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        self.fail(format_args!("a {} against a {}", a.type_key(), b.type_key()))
    }

    /// The value that a value was matched with, if it is an object that was.
    pub(crate) fn counterpart(&self, value: &Any) -> Option<Any> {
        let object = value.as_object()?;
        self.forward.get(&object.as_ptr().cast_const()).map(|(_, b)| b.into())
    }

    /// The first difference.
    pub fn into_mismatch(self) -> Mismatch {
        Mismatch { path: self.path, reason: self.reason.unwrap_or_else(|| "the values differ".to_string()) }
    }

    /// Goes one step down. After a difference the path stays as it is, so that it leads there.
    fn step(&mut self, step: PathStep, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.path.push(step);
        let equal = compare(self);
        if equal {
            self.path.pop();
        }
        equal
    }

    fn trees<T: Object>(&mut self, a: &Ref<T>, b: &Ref<T>) -> bool {
        if Ref::ptr_eq(a, b) && !self.renamed && !self.defining {
            return true;
        }
        let shared = Ref::strong_count(a) > 1 && Ref::strong_count(b) > 1;
        let pair = (Ref::as_ptr(a).cast_const(), Ref::as_ptr(b).cast_const(), self.defining);
        if shared && self.seen.contains(&pair) {
            return true;
        }
        if !a.fields_equal(b, self) {
            return self.fail("the values differ");
        }
        if shared {
            self.seen.insert(pair);
        }
        true
    }

    fn variables<T: Object>(&mut self, a: &Ref<T>, b: &Ref<T>) -> bool {
        let (from, to) = (Ref::as_ptr(a).cast_const(), Ref::as_ptr(b).cast_const());
        if let Some((_, matched)) = self.forward.get(&from) {
            return matched == b.as_object() || self.fail("the variable stands for another one here");
        }
        if self.backward.contains(&to) {
            return self.fail("the variable stands for another one here");
        }
        if !self.defining {
            return from == to || self.fail("not the same free variable");
        }
        if !a.fields_equal(b, self) {
            return self.fail("the variables differ");
        }
        self.renamed |= from != to;
        self.forward.insert(from, (a.as_object().clone(), b.as_object().clone()));
        self.backward.insert(to);
        true
    }
}
