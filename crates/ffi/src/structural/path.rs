//! The way into an object graph, as front ends see it: a chain of steps, each of which knows the one before.

use std::sync::LazyLock;

use super::{Mismatch, PathStep, Side};
use crate::Object;
use crate::map::same_key;
use crate::object::Ref;
use crate::{Any, Array, Error, ErrorKind, Function};

/// What a step leads to; the numbers are those of the interface.
#[derive(Clone, Copy)]
enum StepKind {
    Attr = 0,
    ArrayItem = 1,
    MapItem = 2,
    AttrMissing = 3,
    ArrayItemMissing = 4,
    MapItemMissing = 5,
}

/// One step.
#[derive(Object)]
#[object(key = "ffi.reflection.AccessStep")]
#[repr(C)]
pub(crate) struct AccessStep {
    kind: i32,
    key: Any,
}

/// A step and the path that it continues; the root has neither.
#[derive(Object)]
#[object(key = "ffi.reflection.AccessPath")]
#[repr(C)]
pub(crate) struct AccessPath {
    parent: Option<Ref<AccessPath>>,
    step: Option<Ref<AccessStep>>,
    depth: i32,
}

impl AccessStep {
    fn new(kind: StepKind, key: impl Into<Any>) -> Ref<AccessStep> {
        Ref::new(AccessStep { kind: kind as i32, key: key.into() })
    }

    fn same(&self, other: &AccessStep) -> bool {
        self.kind == other.kind && same_key(&self.key, &other.key)
    }

    /// The step as text; keys are printed by `print`.
    pub(crate) fn text(&self, print: &Function) -> Result<String, Error> {
        let printed = || print.call(&[self.key.as_view()])?.to::<String>();
        match self.kind {
            kind if kind == StepKind::Attr as i32 => Ok(format!(".{}", self.key.to::<String>()?)),
            kind if kind == StepKind::ArrayItem as i32 || kind == StepKind::MapItem as i32 => {
                Ok(format!("[{}]", printed()?))
            }
            _ => Ok(format!("[<missing:{}>]", printed()?)),
        }
    }
}

impl AccessPath {
    /// The path of no steps.
    pub(crate) fn root() -> Ref<AccessPath> {
        static ROOT: LazyLock<Ref<AccessPath>> =
            LazyLock::new(|| Ref::new(AccessPath { parent: None, step: None, depth: 0 }));
        ROOT.clone()
    }

    /// The path that goes one step on.
    pub(crate) fn extend(path: &Ref<AccessPath>, step: Ref<AccessStep>) -> Ref<AccessPath> {
        let depth = path.depth.saturating_add(1);
        Ref::new(AccessPath { parent: Some(path.clone()), step: Some(step), depth })
    }

    /// The path that goes on by a method's name and its argument.
    pub(crate) fn extend_by(path: &Ref<AccessPath>, method: &str, key: Any) -> Result<Ref<AccessPath>, Error> {
        let kind = match method {
            "_attr" => StepKind::Attr,
            "_array_item" => StepKind::ArrayItem,
            "_map_item" => StepKind::MapItem,
            "_attr_missing" => StepKind::AttrMissing,
            "_array_item_missing" => StepKind::ArrayItemMissing,
            "_map_item_missing" => StepKind::MapItemMissing,
            _ => return Err(Error::new(ErrorKind::InternalError, format!("no step is called `{method}`"))),
        };
        match kind {
            StepKind::Attr | StepKind::AttrMissing => drop(key.to::<String>()?),
            StepKind::ArrayItem | StepKind::ArrayItemMissing => drop(key.to::<i64>()?),
            StepKind::MapItem | StepKind::MapItemMissing => {}
        }
        Ok(AccessPath::extend(path, AccessStep::new(kind, key)))
    }

    /// The steps, from the root on.
    pub(crate) fn steps(&self) -> Vec<Ref<AccessStep>> {
        let mut steps = Vec::new();
        let mut path = Some(self);
        while let Some(current) = path {
            steps.extend(current.step.clone());
            path = current.parent.as_deref();
        }
        steps.reverse();
        steps
    }

    /// True if both take the same steps.
    pub(crate) fn same(&self, other: &AccessPath) -> bool {
        self.depth == other.depth && self.is_prefix_of(other)
    }

    /// True if the other path begins with the steps of this one.
    pub(crate) fn is_prefix_of(&self, other: &AccessPath) -> bool {
        let (mine, theirs) = (self.steps(), other.steps());
        mine.len() <= theirs.len() && mine.iter().zip(&theirs).all(|(a, b)| Ref::ptr_eq(a, b) || a.same(b))
    }

    /// The steps as values.
    pub(crate) fn steps_array(&self) -> Array {
        self.steps().into_iter().map(Any::from).collect()
    }

    /// The path as text.
    pub(crate) fn text(&self, print: &Function) -> Result<String, Error> {
        self.steps()
            .iter()
            .try_fold("<root>".to_string(), |text, step| Ok(text + &print.call(&[step.into()])?.to::<String>()?))
    }

    /// The ways to a difference in the first and in the second graph.
    pub(crate) fn of_mismatch(mismatch: &Mismatch) -> (Ref<AccessPath>, Ref<AccessPath>) {
        let way = |side: Side| {
            let last = mismatch.path.len();
            mismatch.path.iter().enumerate().fold(AccessPath::root(), |path, (position, step)| {
                let missing = position + 1 == last && mismatch.missing == Some(side);
                AccessPath::extend(&path, AccessPath::step_on(step, side, missing))
            })
        };
        (way(Side::First), way(Side::Second))
    }

    fn step_on(step: &PathStep, side: Side, missing: bool) -> Ref<AccessStep> {
        match step {
            PathStep::Field(name) => AccessStep::new(StepKind::Attr, &**name),
            PathStep::Index(position) if missing => AccessStep::new(StepKind::ArrayItemMissing, *position),
            PathStep::Index(position) => AccessStep::new(StepKind::ArrayItem, *position),
            PathStep::Key(first, second) => {
                let key = if side == Side::First { first } else { second };
                AccessStep::new(if missing { StepKind::MapItemMissing } else { StepKind::MapItem }, key.clone())
            }
        }
    }
}
