//! Comparing two graphs side by side, and saying where they first differ.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use super::{CompareOptions, Region};
use crate::abi::type_index;
use crate::borrow_cell::borrow_for;
use crate::map::same_key;
use crate::object::{NodeKind, Object, ObjectRef, Ref};
use crate::reflect::{self, flags};
use crate::stack::{Stack, used_up};
use crate::type_attr::{self, Attr};
use crate::type_info::type_info;
use crate::{Any, AnyView, Error, ErrorKind, Function, Handle};

/// One step of the way from the root to a difference.
#[derive(Clone, Debug)]
pub enum PathStep {
    /// Into a field.
    Field(Cow<'static, str>),
    /// To an element of a sequence.
    Index(usize),
    /// To the value of a key, as each side has the key.
    Key(Any, Any),
}

impl PartialEq for PathStep {
    fn eq(&self, other: &PathStep) -> bool {
        match (self, other) {
            (PathStep::Field(a), PathStep::Field(b)) => a == b,
            (PathStep::Index(a), PathStep::Index(b)) => a == b,
            (PathStep::Key(a, x), PathStep::Key(b, y)) => same_key(a, b) && same_key(x, y),
            _ => false,
        }
    }
}

/// One of the two graphs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first.
    First,
    /// The second.
    Second,
}

/// Where two graphs first differ, and how.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// The way from the roots to the difference.
    pub path: Vec<PathStep>,
    /// The side that lacks what the last step leads to, if one does.
    pub missing: Option<Side>,
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
                PathStep::Key(key, _) => write!(f, "[{key:?}]")?,
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
    missing: Option<Side>,
    reason: Option<String>,
    /// Why the comparison cannot be finished.
    error: Option<Error>,
    region: Region,
    skip_tensor_content: bool,
    /// Matched objects, by the first side's address. They are kept alive so that addresses stay theirs.
    forward: HashMap<usize, (ObjectRef, ObjectRef)>,
    backward: HashSet<usize>,
    /// True once a variable was matched with another one, after which one object may differ from itself.
    renamed: bool,
    /// Pairs of shared nodes that were found equal.
    seen: HashSet<(usize, usize, Region)>,
    stack: Stack,
}

fn address(object: &ObjectRef) -> usize {
    object.as_ptr().addr()
}

impl StructuralEqual {
    /// A comparison outside of any defining position.
    pub fn new() -> StructuralEqual {
        StructuralEqual::default()
    }

    /// A comparison of values, with the two switches that front ends have.
    pub(crate) fn with_options(options: CompareOptions) -> StructuralEqual {
        let region = if options.map_free_vars { Region::Pattern } else { Region::None };
        StructuralEqual { region, skip_tensor_content: options.skip_tensor_content, ..StructuralEqual::default() }
    }

    /// Compares the values of a field.
    #[inline]
    pub fn field(&mut self, name: &'static str, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Field(Cow::Borrowed(name)), compare)
    }

    /// Compares elements at a position.
    #[inline]
    pub fn index(&mut self, position: usize, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Index(position), compare)
    }

    /// Compares the values of a key.
    pub fn key(&mut self, key: &str, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.step(PathStep::Key(key.into(), key.into()), compare)
    }

    /// Compares something in which free variables are defined.
    pub fn def_region(&mut self, compare: impl FnOnce(&mut Self) -> bool) -> bool {
        self.in_region(Region::Pattern, compare)
    }

    fn in_region<R>(&mut self, region: Region, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = self.region;
        self.region = outer.enter(region);
        let result = body(self);
        self.region = outer;
        result
    }

    /// Records a difference here, unless one was recorded before; always false.
    #[cold]
    pub fn fail(&mut self, reason: impl fmt::Display) -> bool {
        self.reason.get_or_insert_with(|| reason.to_string());
        false
    }

    /// Records that the comparison cannot be finished; always false.
    #[cold]
    fn give_up(&mut self, error: Error) -> bool {
        self.reason.get_or_insert_with(|| error.message().to_string());
        self.error.get_or_insert(error);
        false
    }

    /// Compares two nodes of one Rust type.
    pub fn nodes<T: Object>(&mut self, a: &Ref<T>, b: &Ref<T>) -> bool {
        if self.stack.is_used_up() {
            return self.give_up(used_up());
        }
        match T::KIND {
            NodeKind::Unique => Ref::ptr_eq(a, b) || self.fail(format_args!("not the same {}", T::TYPE_KEY)),
            NodeKind::Var => self.variables(a.as_object(), b.as_object(), &mut |eq| a.fields_equal(b, eq)),
            NodeKind::Tree => {
                let shared = Ref::strong_count(a) > 1 && Ref::strong_count(b) > 1;
                self.trees(a.as_object(), b.as_object(), shared, &mut |eq| a.fields_equal(b, eq))
            }
        }
    }

    /// Compares two objects of any type.
    pub fn objects(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        if self.stack.is_used_up() {
            return self.give_up(used_up());
        }
        if a.type_index() != b.type_index() {
            return self.differ_in_type(a, b);
        }
        match type_info(a.type_index()).and_then(|info| info.rust()) {
            Some(rust) => (rust.equal)(a, b, self),
            None => self.reflected(a, b),
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
                let bits = |value: &Any| value.as_float().map(crate::field::float_bits);
                bits(a) == bits(b)
            }
            _ => a.as_view().raw().word() == b.as_view().raw().word(),
        };
        same || self.fail(format_args!("{a:?} differs from {b:?}"))
    }

    /// Compares two sequences of values: what both have first, then which has more.
    pub fn sequences(&mut self, a: &[Any], b: &[Any]) -> bool {
        let mut pairs = a.iter().zip(b).enumerate();
        if !pairs.all(|(position, (a, b))| self.index(position, |eq| eq.values(a, b))) {
            return false;
        }
        if a.len() == b.len() {
            return true;
        }
        let missing = if a.len() < b.len() { Side::First } else { Side::Second };
        self.path.push(PathStep::Index(a.len().min(b.len())));
        self.lack(missing, format_args!("{} elements against {}", a.len(), b.len()))
    }

    /// Compares the entries of two maps, in whatever order. Keys that are objects may have been matched with other
    /// objects before: variables, say.
    pub(crate) fn maps(&mut self, a: &[(Any, Any)], b: &[(Any, Any)]) -> bool {
        let second: crate::Map = b.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        for (key, value) in a {
            let counterpart = self.counterpart(key).unwrap_or_else(|| key.clone());
            match second.get(counterpart.clone()) {
                Some(other) => {
                    if !self.step(PathStep::Key(key.clone(), counterpart), |eq| eq.values(value, other)) {
                        return false;
                    }
                }
                None => {
                    self.path.push(PathStep::Key(key.clone(), counterpart));
                    return self.lack(Side::Second, "only the first has this key");
                }
            }
        }
        if a.len() == b.len() {
            return true;
        }
        let matched: Vec<Any> = a.iter().map(|(key, _)| self.counterpart(key).unwrap_or_else(|| key.clone())).collect();
        if let Some((key, _)) = b.iter().find(|(key, _)| !matched.iter().any(|other| same_key(other, key))) {
            self.path.push(PathStep::Key(key.clone(), key.clone()));
        }
        self.lack(Side::First, "only the second has this key")
    }

    #[cold]
    fn lack(&mut self, side: Side, reason: impl fmt::Display) -> bool {
        self.missing = Some(side);
        self.fail(reason)
    }

    /// Records that two objects are of different types; always false.
    #[cold]
    pub fn differ_in_type(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        self.fail(format_args!("a {} against a {}", a.type_key(), b.type_key()))
    }

    /// True if the content of tensors counts.
    pub(crate) fn compares_tensor_content(&self) -> bool {
        !self.skip_tensor_content
    }

    /// The value that a value was matched with, if it is an object that was.
    fn counterpart(&self, value: &Any) -> Option<Any> {
        let object = value.as_object()?;
        self.forward.get(&address(object)).map(|(_, b)| b.into())
    }

    /// The first difference.
    pub fn into_mismatch(self) -> Mismatch {
        let reason = self.reason.unwrap_or_else(|| "the values differ".to_string());
        Mismatch { path: self.path, missing: self.missing, reason }
    }

    /// The first difference, if the last comparison said that there is one, or why it could not be finished.
    pub(crate) fn conclude(mut self, equal: bool) -> Result<Option<Mismatch>, Error> {
        match self.error.take() {
            Some(error) => Err(error),
            None if equal => Ok(None),
            None => Ok(Some(self.into_mismatch())),
        }
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

    fn trees(
        &mut self,
        a: &ObjectRef,
        b: &ObjectRef,
        shared: bool,
        fields_equal: &mut dyn FnMut(&mut Self) -> bool,
    ) -> bool {
        let pair = (address(a), address(b), self.region);
        if pair.0 == pair.1 && !self.renamed && self.region == Region::None {
            return true;
        }
        if shared && self.seen.contains(&pair) {
            return true;
        }
        if !fields_equal(self) {
            return self.fail("the values differ");
        }
        if shared {
            self.seen.insert(pair);
        }
        true
    }

    /// Compares two variables: by their match if they have one, else by content where variables are defined, else by
    /// identity.
    fn variables(&mut self, a: &ObjectRef, b: &ObjectRef, content: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        if let Some(matched) = self.matched(a, b) {
            return matched || self.fail("the variable stands for another one here");
        }
        if self.region == Region::None && a != b {
            return self.fail("not the same free variable");
        }
        // Where only the outermost variables are defined, those that a variable holds are not.
        let outer = self.region;
        if outer == Region::Simple {
            self.region = Region::None;
        }
        let equal = content(self);
        self.region = outer;
        if !equal {
            return self.fail("the variables differ");
        }
        self.match_up(a, b);
        true
    }

    /// True if the objects were matched with each other, false if with others, and nothing if neither was.
    fn matched(&self, a: &ObjectRef, b: &ObjectRef) -> Option<bool> {
        if let Some((_, matched)) = self.forward.get(&address(a)) {
            return Some(matched == b);
        }
        self.backward.contains(&address(b)).then_some(false)
    }

    fn match_up(&mut self, a: &ObjectRef, b: &ObjectRef) {
        self.renamed |= a != b;
        self.forward.insert(address(a), (a.clone(), b.clone()));
        self.backward.insert(address(b));
    }

    /// Compares two objects of one type that only reflection knows.
    fn reflected(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        use super::kind;
        match super::structural_kind(a) {
            Err(error) => self.give_up(error),
            Ok(kind::UNIQUE) => a == b || self.fail(format_args!("not the same {}", a.type_key())),
            Ok(kind::CONST_TREE) if a == b => true,
            Ok(kind::VARIABLE) => self.variables(a, b, &mut |eq| eq.reflected_fields(a, b)),
            Ok(kind::DAG) => match self.matched(a, b) {
                Some(matched) => matched || self.fail("the node stands for another one here"),
                None => {
                    let equal = self.reflected_fields(a, b);
                    if equal {
                        self.match_up(a, b);
                    }
                    equal
                }
            },
            Ok(_) => self.reflected_fields(a, b),
        }
    }

    fn reflected_fields(&mut self, a: &ObjectRef, b: &ObjectRef) -> bool {
        let hook = type_attr::get(Attr::StructuralEqual, a.type_index());
        if let Some(hook) = hook.and_then(|hook| hook.to::<Function>().ok()) {
            return self.by_hook(&hook, a, b);
        }
        reflect::members(a.type_index()).filter(|field| field.flags & flags::IGNORED == 0).all(|field| {
            let (x, y) = match (reflect::get_field(a, field), reflect::get_field(b, field)) {
                (Ok(x), Ok(y)) => (x, y),
                (Err(error), _) | (_, Err(error)) => return self.give_up(error),
            };
            let region = Region::of_field(field.flags);
            self.field(reflect::name_of(field), |eq| eq.in_region(region, |eq| eq.values(&x, &y)))
        })
    }

    fn by_hook(&mut self, hook: &Function, a: &ObjectRef, b: &ObjectRef) -> bool {
        let result = borrow_for(self, StructuralEqual::answer, |callback| {
            hook.call(&[a.into(), b.into(), callback.into()]).and_then(|equal| equal.to::<bool>())
        });
        match result {
            Ok(true) => true,
            Ok(false) => self.fail("the values differ"),
            Err(error) => self.give_up(error),
        }
    }

    /// What a hook calls: `(first, second, kind of region, name of the field) -> bool`.
    fn answer(&mut self, args: &[AnyView<'_>]) -> Result<Any, Error> {
        let [a, b, region, name] = args else {
            return Err(Error::new(ErrorKind::TypeError, format!("expected 4 arguments but got {}", args.len())));
        };
        let (region, name) = (Region::of_index(region.to()?), name.as_str().unwrap_or("").to_string());
        let (a, b) = (a.to_owned(), b.to_owned());
        let equal = self.step(PathStep::Field(Cow::Owned(name)), |eq| eq.in_region(region, |eq| eq.values(&a, &b)));
        match self.error.take() {
            Some(error) => Err(error),
            None => Ok(equal.into()),
        }
    }
}
