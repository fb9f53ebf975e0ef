//! Whether the scope ids of a kernel agree on how many units there are.
//!
//! Counts multiply: a block has as many threads as it has warps, times the threads of a warp. What a kernel says of two follows for the
//! third, and what it says of all three must agree. Extents that are left open, and those that are no numbers, are taken as they are.

use std::collections::HashMap;

use relaxide_ffi::Ref;

use super::{LayoutError, ScopeBinding, ScopeIdDef};
use crate::arith::Analyzer;

/// `whole = outer * inner`.
struct Product {
    whole: ScopeBinding,
    outer: ScopeBinding,
    inner: ScopeBinding,
}

const fn product(whole: ScopeBinding, outer: ScopeBinding, inner: ScopeBinding) -> Product {
    Product { whole, outer, inner }
}

const PRODUCTS: [Product; 5] = [
    product(ScopeBinding::KernelCta, ScopeBinding::KernelCluster, ScopeBinding::ClusterCta),
    product(ScopeBinding::CtaThread, ScopeBinding::CtaWarp, ScopeBinding::WarpThread),
    product(ScopeBinding::CtaWarp, ScopeBinding::CtaWarpgroup, ScopeBinding::WarpgroupWarp),
    product(ScopeBinding::WarpgroupThread, ScopeBinding::WarpgroupWarp, ScopeBinding::WarpThread),
    product(ScopeBinding::CtaThread, ScopeBinding::CtaWarpgroup, ScopeBinding::WarpgroupThread),
];

/// Numbers of units by what they count.
#[derive(Default)]
struct Counts(HashMap<ScopeBinding, i64>);

impl Counts {
    fn get(&self, of: ScopeBinding) -> Option<i64> {
        self.0.get(&of).copied()
    }

    /// Takes a number down: whether it is new. It is an error where another is known.
    fn enter(&mut self, of: ScopeBinding, count: i64) -> Result<bool, LayoutError> {
        match self.0.insert(of, count) {
            Some(known) if known != count => {
                Err(LayoutError::Inconsistent { parent: of.parent(), cur: of.cur(), known, count })
            }
            Some(_) => Ok(false),
            None => Ok(true),
        }
    }

    /// What follows from one product: whether it is new.
    fn follow(&mut self, product: &Product) -> Result<bool, LayoutError> {
        let Product { whole, outer, inner } = product;
        let part_of = |whole: i64, of: ScopeBinding, part: i64| match whole.checked_rem(part) {
            Some(0) => Ok(whole / part),
            _ => Err(LayoutError::Unequal { parent: of.parent(), cur: of.cur(), whole, part }),
        };
        match (self.get(*whole), self.get(*outer), self.get(*inner)) {
            (_, Some(a), Some(b)) => self.enter(*whole, a.saturating_mul(b)),
            (Some(all), Some(a), None) => self.enter(*inner, part_of(all, *whole, a)?),
            (Some(all), None, Some(b)) => self.enter(*outer, part_of(all, *whole, b)?),
            _ => Ok(false),
        }
    }
}

/// Checks the definitions of a kernel's scope ids against each other.
pub fn check_scope_ids(defs: &[Ref<ScopeIdDef>]) -> Result<(), LayoutError> {
    let (mut counts, mut analyzer) = (Counts::default(), Analyzer::new());
    for def in defs {
        if let (Some(extents), Some(preferred)) = (&def.extents, &def.preferred_extents)
            && extents.len() != preferred.len()
        {
            let message = format!(
                "preferred_extents must have the same size as extents: {} and {}",
                preferred.len(),
                extents.len()
            );
            return Err(LayoutError::ScopeId(message));
        }
        if let Some(count) = def.count().and_then(|count| analyzer.simplify(&count).as_int()) {
            counts.enter(def.scope, count)?;
        }
    }
    loop {
        let mut more = false;
        for product in &PRODUCTS {
            more |= counts.follow(product)?;
        }
        if !more {
            return Ok(());
        }
    }
}
