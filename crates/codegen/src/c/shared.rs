//! Which nodes of a statement occur more than once, and are worth a name.
//!
//! Expressions are graphs. Written out as text, a node that is used twice on each of many levels would be written exponentially
//! often.

use std::collections::{HashMap, HashSet};

use relaxide_ir::{PrimExpr, prim::PrimVisitor};
use relaxide_tir::intrin::Intrinsic;

/// Smaller nodes than this are written again.
const WORTH_A_NAME: u64 = 6;

/// The nodes of some expressions that get a name.
pub(crate) fn shared<'e>(expressions: impl IntoIterator<Item = &'e PrimExpr>) -> HashSet<PrimExpr> {
    let mut sizes = Sizes::default();
    expressions.into_iter().for_each(|e| sizes.visit_prim(e));
    sizes.repeated
}

/// Whether evaluating it may change memory.
pub(crate) fn has_effects<'e>(expressions: impl IntoIterator<Item = &'e PrimExpr>) -> bool {
    let mut effects = Effects::default();
    expressions.into_iter().for_each(|e| effects.visit_prim(e));
    effects.found
}

#[derive(Default)]
struct Sizes {
    sizes: HashMap<PrimExpr, u64>,
    repeated: HashSet<PrimExpr>,
    /// The size of what was visited inside of the node at hand.
    inside: u64,
}

impl PrimVisitor for Sizes {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if matches!(e, PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_)) {
            self.inside = self.inside.saturating_add(1);
            return;
        }
        let size = match self.sizes.get(e) {
            Some(size) => {
                if *size > WORTH_A_NAME {
                    self.repeated.insert(e.clone());
                }
                *size
            }
            None => {
                let outer = std::mem::take(&mut self.inside);
                self.walk_prim(e);
                let size = self.inside.saturating_add(1);
                self.inside = outer;
                self.sizes.insert(e.clone(), size);
                size
            }
        };
        self.inside = self.inside.saturating_add(size);
    }
}

#[derive(Default)]
struct Effects {
    found: bool,
    visited: HashSet<PrimExpr>,
}

impl PrimVisitor for Effects {
    fn visit_prim(&mut self, e: &PrimExpr) {
        if let PrimExpr::Call(n) = e {
            self.found |= Intrinsic::of_call(&n.op).is_some_and(Intrinsic::calls_functions);
        }
        let leaf = matches!(e, PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_));
        if !leaf && !self.found && self.visited.insert(e.clone()) {
            self.walk_prim(e);
        }
    }
}
