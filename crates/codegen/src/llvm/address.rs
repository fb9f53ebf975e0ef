//! Addresses of elements, as sums of terms.
//!
//! An index such as `(b * n + (m + 3)) * 64 + k` is multiplied out, and its terms are added to the buffer's address from the
//! outermost loop's to the innermost's, constants last:
//!
//! ```text
//! outside:          p = data + (b * n) * 64
//! for m:            q = p + m * 64                # one for all rows of a tile
//!     for k:        load q + k + 192              # which is one operand of a load
//! ```
//!
//! So neighbours share all of their address but a constant, and loops add what they count; LLVM finds the same by passes that
//! take a third of the time for a kernel (`docs/performance/compile-time.md`). Loops without vectors are left to LLVM's vectorizer, which
//! wants addresses in one piece; devices have none.

use relaxide_ir::prim::is_data;
use relaxide_ir::{BinaryOp, PrimExpr};

use super::{
    kernel::Body,
    memory::AddressBounds,
    value::{Overflow, ScalarKind, Ty, Val},
};
use crate::error::CodegenError;

/// Terms that a product of two sums may be multiplied out to.
const MOST_TERMS: usize = 8;

/// A product: of these values and of a constant.
#[derive(Clone, Debug)]
struct Term {
    /// The outermost first.
    factors: Vec<Val>,
    scale: i64,
    /// Whether a constant step of the index stands behind it, as in the rows of a tile: `3 * n`.
    step: bool,
}

/// An index.
#[derive(Clone, Debug, Default)]
struct Sum {
    terms: Vec<Term>,
    constant: i64,
}

impl Sum {
    fn of(value: Val, scale: i64) -> Sum {
        Sum { terms: vec![Term { factors: vec![value], scale, step: false }], constant: 0 }
    }

    /// How many terms there are, the constant among them.
    fn len(&self) -> usize {
        self.terms.len() + usize::from(self.constant != 0)
    }

    fn scaled(mut self, by: i64) -> Option<Sum> {
        self.constant = self.constant.checked_mul(by)?;
        for term in &mut self.terms {
            term.scale = term.scale.checked_mul(by)?;
        }
        Some(self)
    }

    fn plus(mut self, other: Sum) -> Option<Sum> {
        self.constant = self.constant.checked_add(other.constant)?;
        for term in other.terms {
            let same = |known: &&mut Term| {
                known.step == term.step
                    && known.factors.iter().map(|f| &f.text).eq(term.factors.iter().map(|f| &f.text))
            };
            match self.terms.iter_mut().find(same) {
                Some(known) => known.scale = known.scale.checked_add(term.scale)?,
                None => self.terms.push(term),
            }
        }
        self.terms.retain(|term| term.scale != 0);
        Some(self)
    }

    /// Multiplied out, if that stays short.
    fn times(&self, other: &Sum) -> Option<Sum> {
        if self.len() * other.len() > MOST_TERMS {
            return None;
        }
        let mut product = Sum::default();
        for a in self.with_constant() {
            for b in other.with_constant() {
                let mut factors: Vec<Val> = a.factors.iter().chain(&b.factors).cloned().collect();
                factors.sort_by(|x, y| (x.depth, &x.text).cmp(&(y.depth, &y.text)));
                let scale = a.scale.checked_mul(b.scale)?;
                let step = a.factors.is_empty() || b.factors.is_empty() || a.step || b.step;
                let part = match factors.is_empty() {
                    true => Sum { terms: Vec::new(), constant: scale },
                    false => Sum { terms: vec![Term { factors, scale, step }], constant: 0 },
                };
                product = product.plus(part)?;
            }
        }
        Some(product)
    }

    /// The terms and, as one without factors, the constant.
    fn with_constant(&self) -> Vec<Term> {
        let constant = Term { factors: Vec::new(), scale: self.constant, step: false };
        self.terms.iter().cloned().chain((self.constant != 0).then_some(constant)).collect()
    }
}

impl Body<'_, '_> {
    /// The address of the element of a buffer at `base` that `index` names; of the first one of a vector.
    pub fn element_address(
        &mut self,
        base: &Val,
        element: Ty,
        index: &PrimExpr,
        bounds: AddressBounds,
    ) -> Result<Val, CodegenError> {
        // A device has no vectorizer, and constants that stay apart are what its neighbouring loads are known by.
        let scalar_loop = self.f.innermost_loop().is_some_and(|(_, vectors, _)| !vectors);
        let vectors = !scalar_loop || self.kernel.device.is_some();
        let dtype = index.dtype();
        if vectors && self.mask.is_none() && dtype.is_int() && dtype.bits == 64 && dtype.lanes == 1 && !is_data(index) {
            let outer = std::mem::replace(&mut self.overflow, Overflow::Never);
            let sum = self.sum(index);
            self.overflow = outer;
            if let Some(sum) = sum?.scaled(i64::from(element.lanes)) {
                return Ok(self.add_terms(base, element, sum));
            }
        }
        let index = self.index(index)?;
        Ok(self.element_pointer(base, element, &index, bounds))
    }

    /// An index as a sum.
    fn sum(&mut self, e: &PrimExpr) -> Result<Sum, CodegenError> {
        let parts = match e {
            PrimExpr::Int(n) => return Ok(Sum { terms: Vec::new(), constant: n.value }),
            PrimExpr::Binary(n) if matches!(n.op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul) => {
                let (a, b) = (self.sum(&n.a)?, self.sum(&n.b)?);
                match n.op {
                    BinaryOp::Add => a.plus(b),
                    BinaryOp::Sub => b.scaled(-1).and_then(|b| a.plus(b)),
                    _ if b.terms.is_empty() => a.scaled(b.constant),
                    _ if a.terms.is_empty() => b.scaled(a.constant),
                    _ => a.times(&b),
                }
            }
            _ => None,
        };
        match parts {
            Some(parts) => Ok(parts),
            None => {
                let value = self.eval(e)?;
                Ok(match (value.as_int_literal(), value.ty.kind) {
                    (Some(constant), ScalarKind::Int { .. }) => Sum { terms: Vec::new(), constant },
                    _ => Sum::of(value, 1),
                })
            }
        }
    }

    /// The address `base + sum`.
    fn add_terms(&mut self, base: &Val, element: Ty, sum: Sum) -> Val {
        let depth = |term: &Term| term.factors.iter().map(|factor| factor.depth).max().unwrap_or_default();
        let (mut steps, mut terms): (Vec<Term>, Vec<Term>) = sum.terms.into_iter().partition(|term| term.step);
        terms.sort_by_key(depth);
        steps.sort_by_key(depth);
        // Steps come last but for what the loop counts that is innermost: the same in each of its iterations.
        let behind = match self.f.innermost_loop() {
            Some((around, _, false)) => terms.iter().position(|term| depth(term) >= around).unwrap_or(terms.len()),
            _ => terms.len(),
        };
        terms.splice(behind..behind, steps);
        let memory = element.element().in_memory();
        let mut pointer = base.clone();
        let mut rest = terms.as_slice();
        while let Some(first) = rest.first() {
            let alike = rest.iter().take_while(|term| depth(term) == depth(first) && term.step == first.step).count();
            let mut offset: Option<Val> = None;
            for term in &rest[..alike] {
                let value = self.term(term);
                offset = Some(match offset {
                    Some(sum) => self.f.binary(BinaryOp::Add, &sum, &value, Overflow::Never),
                    None => value,
                });
            }
            if let Some(offset) = offset {
                pointer = self.advance(&pointer, memory, &offset);
            }
            rest = &rest[alike..];
        }
        if sum.constant == 0 { pointer } else { self.advance(&pointer, memory, &Val::int(Ty::I64, sum.constant)) }
    }

    /// A term's value: its constant times the outermost factor, so that inner loops multiply once.
    fn term(&mut self, term: &Term) -> Val {
        let scale = Val::int(Ty::I64, term.scale);
        let mut factors = term.factors.iter();
        let mut value = match factors.next() {
            Some(first) if term.scale == 1 => first.clone(),
            Some(first) => self.f.binary(BinaryOp::Mul, first, &scale, Overflow::Never),
            None => scale,
        };
        for factor in factors {
            value = self.f.binary(BinaryOp::Mul, &value, factor, Overflow::Never);
        }
        value
    }

    /// An address that may lie outside of the buffer, on the way to one that does not.
    fn advance(&mut self, pointer: &Val, memory: Ty, by: &Val) -> Val {
        let instruction = format!("getelementptr {memory}, {pointer}, {by}");
        self.f.pure(Ty::PTR, &[pointer, by], instruction)
    }
}
