//! The least and the greatest value of an index over the loops around it, held against the extent once.
//!
//! ```text
//! for i in range(n), j in range(4):  A[i + 2 * j]        least 0, greatest (n - 1) + 6, if n >= 1
//! ```
//!
//! An index has such values if it is linear in each counter, with a coefficient of known sign, and if what remains has a
//! value when the kernel begins. An index that is clamped to its dimension, or wrapped around, lies inside of it if it has an element at
//! all, which is what is held. An access under a condition is left alone: it may never happen.

use relaxide_ir::prim::{self, PrimExpr, free_vars, substitute};

use super::{Counter, Hold, checked};
use crate::Stmt;
use crate::analysis::wide::in_64_bits;
use crate::schedule::affine::{linear, same, with_var};

impl Hold {
    /// Puts the check of an index in front of the kernel; whether that could be done.
    pub(super) fn check_at_entry(&mut self, index: &PrimExpr, extent: &PrimExpr, what: &str) -> bool {
        if self.conditions > 0 || index.dtype().lanes != 1 || self.is_data(index) || self.is_data(extent) {
            return false;
        }
        let index = in_64_bits(&self.expanded(index));
        let extent = in_64_bits(&self.expanded(extent));
        let (Some(least), Some(greatest)) = (self.extreme(&index, false), self.extreme(&index, true)) else {
            return false;
        };
        let Some(some) = self.some_iterations() else { return false };
        if !self.is_known(&least) || !self.is_known(&greatest) || !self.is_known(&extent) {
            return false;
        }
        let mut checks = Vec::new();
        for end in [least, greatest] {
            let inside = prim::and(prim::ge(end.clone(), 0), prim::lt(end.clone(), extent.clone()));
            if !self.analyzer.can_prove(&inside) {
                checks.push(Stmt::evaluate(checked(end, &extent, what.to_string(), None)));
            }
        }
        self.push_check(some, checks);
        true
    }

    /// Puts the check that a dimension has an element in front of the kernel, where the index then lies inside: clamped, wrapped around. Whether
    /// that could be done.
    pub(super) fn check_length_at_entry(&mut self, index: &PrimExpr, extent: &PrimExpr, what: &str) -> bool {
        if self.conditions > 0 || index.dtype().lanes != 1 || extent.as_int().is_some() || self.is_data(extent) {
            return false;
        }
        let length = in_64_bits(&self.expanded(extent));
        let Some(some) = self.some_iterations().filter(|_| self.is_known(&length)) else { return false };
        let mark = self.analyzer.assume(&prim::ge(extent.clone(), prim::int_of(extent.dtype(), 1)));
        let is_inside = self.is_inside(index, extent);
        self.analyzer.forget(mark);
        if is_inside {
            self.push_check(some, vec![Stmt::evaluate(checked(prim::int(0), &length, what.to_string(), None))]);
        }
        is_inside
    }

    /// Puts checks in front of the kernel, once each.
    fn push_check(&mut self, condition: PrimExpr, checks: Vec<Stmt>) {
        let check = Stmt::when(condition, Stmt::seq(checks));
        if !self
            .entry
            .iter()
            .any(|known| relaxide_ffi::structural_equal(known, &check, relaxide_ffi::FreeVars::Same).is_ok())
        {
            self.entry.push(check);
        }
    }

    /// An index with each counter at its first or last value.
    fn extreme(&mut self, index: &PrimExpr, greatest: bool) -> Option<PrimExpr> {
        let mut value = index.clone();
        for counter in (0..self.counters.len()).rev() {
            let Counter { var, min, extent } = &self.counters[counter];
            let (slope, _) = linear(&value, var)?;
            let (min, extent, var) = (self.expanded(min), self.expanded(extent), var.clone());
            let last = &min + &extent - prim::int_of(extent.dtype(), 1);
            let rises = self.sign(&slope)?;
            let at = if rises == greatest { last } else { min };
            value = with_var(&value, &var, prim::cast(var.dtype(), at));
        }
        Some(value)
    }

    /// Whether a coefficient is never negative; `None` where it may be either.
    fn sign(&mut self, slope: &PrimExpr) -> Option<bool> {
        if let Some(slope) = slope.as_int() {
            return Some(slope >= 0);
        }
        let zero = prim::int_of(slope.dtype(), 0);
        if self.analyzer.can_prove(&prim::ge(slope.clone(), zero.clone())) {
            return Some(true);
        }
        self.analyzer.can_prove(&prim::le(slope.clone(), zero)).then_some(false)
    }

    /// The condition that all loops around have an iteration.
    fn some_iterations(&self) -> Option<PrimExpr> {
        let mut all = prim::boolean(true);
        let mut seen: Vec<PrimExpr> = Vec::new();
        for counter in &self.counters {
            let extent = self.expanded(&counter.extent);
            if !self.is_known(&extent) {
                return None;
            }
            if extent.as_int().is_none_or(|n| n < 1) && !seen.iter().any(|s| same(s, &extent)) {
                all = prim::and(all, prim::ge(extent.clone(), prim::int_of(extent.dtype(), 1)));
                seen.push(extent);
            }
        }
        Some(all)
    }

    /// An expression over counters and what is known: names stand for their values.
    fn expanded(&self, e: &PrimExpr) -> PrimExpr {
        const NESTED: usize = 8;
        let mut e = e.clone();
        for _ in 0..NESTED {
            if !free_vars(&e).iter().any(|v| self.values.contains_key(v)) {
                break;
            }
            e = substitute(&e, &self.values);
        }
        e
    }

    fn is_known(&self, e: &PrimExpr) -> bool {
        free_vars(e).iter().all(|v| self.known.contains(v))
    }
}
