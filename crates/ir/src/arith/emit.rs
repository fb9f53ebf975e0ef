//! From canonical form back to expressions.

use std::cmp::Reverse;

use relaxide_ffi::{DataType, Ref};

use super::atom::{Atom, AtomId, Head, Value};
use super::sum::{Product, Sum};
use super::{Analyzer, Quotients};
use crate::PrimExpr;
use crate::prim::{self, BufferLoad, Let};

/// What has been added so far.
struct Running(Option<PrimExpr>);

impl Running {
    fn add(&mut self, term: PrimExpr) {
        self.0 = Some(match self.0.take() {
            Some(sum) => prim::add(sum, term),
            None => term,
        });
    }

    fn sub(&mut self, dtype: DataType, term: PrimExpr) {
        let from = self.0.take().unwrap_or_else(|| prim::int_of(dtype, 0));
        self.0 = Some(prim::sub(from, term));
    }
}

impl Analyzer {
    /// The expression of a value.
    pub(super) fn emit(&self, value: &Value) -> PrimExpr {
        match value {
            Value::Index(sum) => self.emit_sum(sum),
            Value::Other(atom) => self.emit_atom(*atom),
        }
    }

    /// What is added comes first, the constant among it, then what is subtracted: `n * 2 + m + 1 - k`, `n - k - 1`. Larger coefficients
    /// come first. Where TVM's forms are asked for, one negative term alone is `x * -2`.
    fn emit_sum(&self, sum: &Sum) -> PrimExpr {
        let dtype = sum.dtype;
        if let ([(product, coefficient)], 0, Quotients::Outside) = (sum.terms.as_slice(), sum.constant, self.quotients)
        {
            return self.emit_term(dtype, product, *coefficient);
        }
        let mut result = Running(None);
        let mut terms: Vec<&(Product, i64)> = sum.terms.iter().collect();
        match self.quotients {
            Quotients::Inside => terms.sort_by_key(|(_, k)| Reverse(*k)),
            Quotients::Outside => terms.sort_by_key(|(product, k)| (Reverse(*k), Reverse(self.divisor_of(product)))),
        }
        for (product, coefficient) in terms.iter().filter(|(_, k)| *k > 0) {
            result.add(self.emit_term(dtype, product, *coefficient));
        }
        // What has no negative of its own type is added as it is.
        let magnitude = sum.constant.checked_neg().filter(|m| sum.constant < 0 && prim::holds(dtype, *m));
        if sum.constant != 0 && magnitude.is_none() {
            result.add(prim::int_of(dtype, sum.constant));
        }
        for (product, coefficient) in terms.iter().filter(|(_, k)| *k < 0) {
            match coefficient.checked_neg() {
                Some(magnitude) => result.sub(dtype, self.emit_term(dtype, product, magnitude)),
                None => result.add(self.emit_term(dtype, product, *coefficient)),
            }
        }
        if let Some(magnitude) = magnitude {
            result.sub(dtype, prim::int_of(dtype, magnitude));
        }
        result.0.unwrap_or_else(|| prim::int_of(dtype, 0))
    }

    fn emit_term(&self, dtype: DataType, product: &[AtomId], coefficient: i64) -> PrimExpr {
        let mut factors = product.iter().map(|atom| self.emit_atom(*atom));
        let first = factors.next().unwrap_or_else(|| prim::int_of(dtype, 1));
        prim::mul(factors.fold(first, prim::mul), prim::int_of(dtype, coefficient))
    }

    fn emit_atom(&self, id: AtomId) -> PrimExpr {
        match self.atoms.get(id) {
            Atom::Var(var) => PrimExpr::Var(var.clone()),
            Atom::FloorDiv(a, b) => prim::floordiv(self.emit_sum(a), self.emit_sum(b)),
            Atom::FloorMod(a, b) => match self.quotient_outside(a, b) {
                Some(quotient) => quotient,
                None => prim::floormod(self.emit_sum(a), self.emit_sum(b)),
            },
            Atom::Min(a, b) => prim::min(self.emit_sum(a), self.emit_sum(b)),
            Atom::Max(a, b) => prim::max(self.emit_sum(a), self.emit_sum(b)),
            Atom::Compare(op, a, b) => prim::binary(*op, self.emit_sum(a), self.emit_sum(b)),
            Atom::Node(head, args) => self.emit_node(head, args.iter().map(|a| self.emit(a)).collect()),
        }
    }

    /// `x // c % d` as `x % (c * d) // c`, where that is asked for.
    fn quotient_outside(&self, a: &Sum, b: &Sum) -> Option<PrimExpr> {
        let ([(product, 1)], 0, Quotients::Outside) = (a.terms.as_slice(), a.constant, self.quotients) else {
            return None;
        };
        let [atom] = product.as_slice() else { return None };
        let Atom::FloorDiv(x, c) = self.atoms.get(*atom) else { return None };
        let (c, d) = (c.as_constant().filter(|c| *c > 0)?, b.as_constant().filter(|d| *d > 0)?);
        let whole = c.checked_mul(d).filter(|whole| prim::holds(a.dtype, *whole))?;
        let rest = prim::floormod(self.emit_sum(x), prim::int_of(a.dtype, whole));
        Some(prim::floordiv(rest, prim::int_of(a.dtype, c)))
    }

    /// What a term is divided by: of `x // 4`, and of `x // 4 % 3`, it is 4.
    fn divisor_of(&self, product: &[AtomId]) -> i64 {
        let [atom] = product else { return 1 };
        match self.atoms.get(*atom) {
            Atom::FloorDiv(_, c) => c.as_constant().unwrap_or(1),
            Atom::FloorMod(a, _) => match a.terms.as_slice() {
                [(product, 1)] => self.divisor_of(product),
                _ => 1,
            },
            _ => 1,
        }
    }

    fn emit_node(&self, head: &Head, mut args: Vec<PrimExpr>) -> PrimExpr {
        match (head, args.as_slice()) {
            (Head::Int(dtype, value), _) => prim::int_of(*dtype, *value),
            (Head::Float(dtype, bits), _) => prim::float_of(*dtype, f64::from_bits(*bits)),
            (Head::Str(text), _) => prim::string(text.clone()),
            (Head::Binary(op), [a, b]) => prim::binary(*op, a, b),
            (Head::Not, [a]) => prim::not(a.clone()),
            (Head::Select, [c, t, f]) => prim::select(c.clone(), t, f),
            (Head::Cast(dtype), [a]) => prim::cast(*dtype, a),
            (Head::Let(var), [value, body]) => {
                Ref::new(Let { var: var.clone(), value: value.clone(), body: body.clone() }).into()
            }
            (Head::Ramp(lanes), [base, stride]) => prim::ramp(base, stride, *lanes),
            (Head::Broadcast(lanes), [value]) => prim::broadcast(value, *lanes),
            (Head::Load(buffer, has_predicate), _) => {
                let predicate = if *has_predicate { args.pop() } else { None };
                Ref::new(BufferLoad { buffer: buffer.clone(), indices: args, predicate }).into()
            }
            (Head::Call(op, dtype), _) => prim::call(*dtype, op.clone(), args),
            // Heads are made together with their operands, so no other number of operands exists.
            (Head::Binary(_) | Head::Not | Head::Select | Head::Cast(_), _)
            | (Head::Let(_) | Head::Ramp(_) | Head::Broadcast(_), _) => unreachable!("a head with foreign operands"),
        }
    }
}
