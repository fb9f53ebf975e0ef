//! What FuseOpsByPattern is told: a pattern, its name, and who may refuse a match.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;
use relaxide_ir::Attrs;
use relaxide_ir::pass::PassError;

use crate::dpl::{Matches, Pattern, VarValues};
use crate::*;

/// Decides whether a match is taken.
pub type Checker = dyn Fn(&PatternCheck<'_>) -> Result<bool, PassError> + Send + Sync;

/// Makes attributes of a function from what its annotated parts stand for.
pub type AttrsGetter = dyn Fn(&IndexMap<String, Expr>) -> Result<Attrs, PassError> + Send + Sync;

/// A pattern for [`fuse_ops_by_pattern`](super::fuse_ops_by_pattern).
#[derive(Clone)]
pub struct FusionPattern {
    /// Its name: the backend, a point, and what is fused.
    pub name: String,
    /// What is matched.
    pub pattern: Pattern,
    /// Parts of the pattern by names, for `check` and `attrs`.
    pub annotations: Vec<(String, Pattern)>,
    /// Who may refuse a match.
    pub check: Option<Arc<Checker>>,
    /// Who makes attributes of the function.
    pub attrs: Option<Arc<AttrsGetter>>,
}

impl FusionPattern {
    /// A pattern that takes every match.
    pub fn new(name: impl Into<String>, pattern: Pattern) -> FusionPattern {
        FusionPattern { name: name.into(), pattern, annotations: Vec::new(), check: None, attrs: None }
    }

    /// What the annotated parts stand for.
    pub(super) fn annotated(&self, found: &Matches) -> IndexMap<String, Expr> {
        let parts = self.annotations.iter();
        parts.filter_map(|(name, part)| Some((name.clone(), found.value(part)?.clone()))).collect()
    }
}

impl fmt::Debug for FusionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.pattern)
    }
}

/// What a check sees of a match.
pub struct PatternCheck<'a> {
    /// The expression that matched the whole pattern.
    pub matched: Expr,
    /// What the annotated parts stand for.
    pub annotated: IndexMap<String, Expr>,
    /// The variables that the match takes, with their values.
    pub bindings: IndexMap<AnyVar, Expr>,
    /// The variables whose values use each variable of the function.
    pub users: &'a HashMap<AnyVar, Vec<AnyVar>>,
    /// The values of the variables of the function.
    pub values: &'a VarValues,
}
