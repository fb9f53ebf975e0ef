//! From canonical form back to expressions.

use relaxide_ffi::{DataType, Ref};

use super::Analyzer;
use super::atom::{Atom, AtomId, Head, Value};
use super::sum::Sum;
use crate::PrimExpr;
use crate::prim::{self, BufferLoad, Let};

impl Analyzer {
    /// The expression of a value.
    pub(super) fn emit(&self, value: &Value) -> PrimExpr {
        match value {
            Value::Index(sum) => self.emit_sum(sum),
            Value::Other(atom) => self.emit_atom(*atom),
        }
    }

    /// What is added comes first, then what is subtracted, then the constant: `n * 2 + m - k - 1`.
    fn emit_sum(&self, sum: &Sum) -> PrimExpr {
        let dtype = sum.dtype;
        let (positive, negative): (Vec<_>, Vec<_>) = sum.terms.iter().partition(|(_, k)| *k > 0);
        let mut result: Option<PrimExpr> = None;
        for (product, coefficient) in positive {
            let term = self.emit_term(dtype, product, *coefficient);
            result = Some(result.map_or_else(|| term.clone(), |r| prim::add(r, term.clone())));
        }
        let mut constant = sum.constant;
        for (product, coefficient) in negative {
            let Some(magnitude) = coefficient.checked_neg() else {
                let term = self.emit_term(dtype, product, *coefficient);
                result = Some(result.map_or_else(|| term.clone(), |r| prim::add(r, term.clone())));
                continue;
            };
            let term = self.emit_term(dtype, product, magnitude);
            let from = result.unwrap_or_else(|| prim::int_of(dtype, std::mem::take(&mut constant)));
            result = Some(prim::sub(from, term));
        }
        match (result, constant) {
            (None, constant) => prim::int_of(dtype, constant),
            (Some(result), 0) => result,
            (Some(result), c) if c < 0 && c != i64::MIN => prim::sub(result, prim::int_of(dtype, -c)),
            (Some(result), c) => prim::add(result, prim::int_of(dtype, c)),
        }
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
            Atom::FloorMod(a, b) => prim::floormod(self.emit_sum(a), self.emit_sum(b)),
            Atom::Min(a, b) => prim::min(self.emit_sum(a), self.emit_sum(b)),
            Atom::Max(a, b) => prim::max(self.emit_sum(a), self.emit_sum(b)),
            Atom::Compare(op, a, b) => prim::binary(*op, self.emit_sum(a), self.emit_sum(b)),
            Atom::Node(head, args) => self.emit_node(head, args.iter().map(|a| self.emit(a)).collect()),
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
