//! From expressions to canonical form.

use relaxide_ffi::{DataType, Ref};

use super::atom::{Atom, AtomId, Head, Value};
use super::bounds::Bounds;
use super::sum::{Sum, is_index, without};
use super::{Analyzer, Quotients};
use crate::prim::{self, Binary, PrimCall};
use crate::{BinaryOp, PrimExpr, Var};

impl Analyzer {
    /// The canonical form of an expression.
    pub(super) fn convert(&mut self, e: &PrimExpr) -> Value {
        if let Some(known) = self.answers.forms.get(e) {
            return known.clone();
        }
        let value = self.convert_new(e);
        self.answers.forms.insert(e.clone(), value.clone());
        value
    }

    /// The canonical form of an index expression; `None` for any other.
    pub(super) fn convert_index(&mut self, e: &PrimExpr) -> Option<Sum> {
        match self.convert(e) {
            Value::Index(sum) => Some(sum),
            Value::Other(_) => None,
        }
    }

    pub(super) fn var_sum(&mut self, var: &Ref<Var>) -> Sum {
        Sum::atom(var.dtype(), self.atoms.intern(Atom::Var(var.clone()), var.dtype()))
    }

    fn convert_new(&mut self, e: &PrimExpr) -> Value {
        let dtype = e.dtype();
        match e {
            PrimExpr::Int(n) if is_index(dtype) => Value::Index(Sum::constant(dtype, n.value)),
            PrimExpr::Int(n) => self.node(Head::Int(dtype, n.value), Vec::new(), dtype),
            PrimExpr::Float(n) => self.node(Head::Float(dtype, n.value.to_bits()), Vec::new(), dtype),
            PrimExpr::Str(n) => self.node(Head::Str(n.value.clone()), Vec::new(), dtype),
            PrimExpr::Var(var) => self.convert_var(var),
            PrimExpr::Cast(n) => self.convert_cast(dtype, &n.value),
            PrimExpr::Binary(n) => self.convert_binary(n, dtype),
            PrimExpr::Not(n) => {
                let a = self.convert(&n.a);
                self.negate(&a)
            }
            PrimExpr::Select(n) => {
                let parts = [&n.condition, &n.true_value, &n.false_value];
                self.convert_choice(parts, |_| Head::Select, dtype)
            }
            PrimExpr::Let(n) => {
                let args = vec![self.convert(&n.value), self.convert(&n.body)];
                self.node(Head::Let(n.var.clone()), args, dtype)
            }
            PrimExpr::Ramp(n) => {
                let args = vec![self.convert(&n.base), self.convert(&n.stride)];
                self.node(Head::Ramp(n.lanes), args, dtype)
            }
            PrimExpr::Broadcast(n) => {
                let args = vec![self.convert(&n.value)];
                self.node(Head::Broadcast(n.lanes), args, dtype)
            }
            PrimExpr::Load(n) => {
                let mut args: Vec<Value> = n.indices.iter().map(|i| self.convert(i)).collect();
                args.extend(n.predicate.as_ref().map(|p| self.convert(p)));
                self.node(Head::Load(n.buffer.clone(), n.predicate.is_some()), args, dtype)
            }
            PrimExpr::Call(n) => self.convert_call(n, dtype),
        }
    }

    /// An expression that is kept as it is around its operands.
    pub(super) fn node(&mut self, head: Head, args: Vec<Value>, dtype: DataType) -> Value {
        self.atoms.value(Atom::Node(head, args), dtype)
    }

    fn convert_var(&mut self, var: &Ref<Var>) -> Value {
        let dtype = var.dtype();
        if !is_index(dtype) {
            return self.atoms.value(Atom::Var(var.clone()), dtype);
        }
        if let Some(value) = self.values.get(var) {
            return Value::Index(value.clone());
        }
        match self.ranges.get(var) {
            Some(range) if range.min.is_some() && range.min == range.max => {
                Value::Index(Sum::constant(dtype, range.min.unwrap_or_default()))
            }
            _ => Value::Index(self.var_sum(var)),
        }
    }

    fn convert_cast(&mut self, dtype: DataType, inner: &PrimExpr) -> Value {
        let value = self.convert(inner);
        if self.atoms.dtype_of(&value) == dtype {
            return value;
        }
        let constant = match &value {
            Value::Index(sum) => sum.as_constant(),
            Value::Other(atom) => match self.atoms.get(*atom) {
                Atom::Node(Head::Int(from, v), _) if prim::holds(*from, *v) => Some(*v),
                _ => None,
            },
        };
        if is_index(dtype)
            && let Some(constant) = constant.filter(|c| prim::holds(dtype, *c))
        {
            return Value::Index(Sum::constant(dtype, constant));
        }
        let cast = self.node(Head::Cast(dtype), vec![value], dtype);
        let Value::Index(sum) = &cast else { return cast };
        match self.bounds_of(sum) {
            Bounds { min: Some(min), max: Some(max) } if min == max => Value::Index(Sum::constant(dtype, min)),
            _ => cast,
        }
    }

    fn convert_call(&mut self, call: &Ref<PrimCall>, dtype: DataType) -> Value {
        if let ("tirx.if_then_else", [c, t, f]) = (call.op.as_str(), call.args.as_slice()) {
            let name = call.op.clone();
            return self.convert_choice([c, t, f], |dtype| Head::Call(name, dtype), dtype);
        }
        let args = call.args.iter().map(|a| self.convert(a)).collect();
        self.node(Head::Call(call.op.clone(), dtype), args, dtype)
    }

    fn convert_choice(
        &mut self,
        [condition, yes, no]: [&PrimExpr; 3],
        head: impl FnOnce(DataType) -> Head,
        dtype: DataType,
    ) -> Value {
        let condition = self.convert(condition);
        match self.truth_of(&condition) {
            Some(true) => return self.convert(yes),
            Some(false) => return self.convert(no),
            None => {}
        }
        let head = head(dtype);
        // Both sides of a `Select` are evaluated whatever the condition is: an access there must not count on it.
        let (yes, no) = if head == Head::Select && (prim::is_data(yes) || prim::is_data(no)) {
            (self.convert(yes), self.convert(no))
        } else {
            let yes = self.under(&condition, true, |this| this.convert(yes));
            (yes, self.under(&condition, false, |this| this.convert(no)))
        };
        if yes == no { yes } else { self.node(head, vec![condition, yes, no], dtype) }
    }

    fn convert_binary(&mut self, n: &Binary, dtype: DataType) -> Value {
        use BinaryOp::*;
        if n.op.is_logical() && dtype.lanes == 1 {
            return self.convert_logical(n.op, &n.a, &n.b);
        }
        let (a, b) = match (self.convert(&n.a), self.convert(&n.b)) {
            (Value::Index(a), Value::Index(b)) if a.dtype == b.dtype => (a, b),
            (a, b) => return self.node(Head::Binary(n.op), vec![a, b], dtype),
        };
        let sum = match n.op {
            Add => a.add(&b).map(|sum| self.merge_divisions(sum)).map(|sum| self.merge_extrema(sum)),
            Sub => a.sub(&b).map(|sum| self.merge_divisions(sum)).map(|sum| self.merge_extrema(sum)),
            Mul => a.mul(&b).map(|sum| self.merge_divisions(sum)),
            FloorDiv => Some(self.floor_div(&a, &b)),
            FloorMod => Some(self.floor_mod(&a, &b)),
            Div if self.divides_like_floor(&a, &b) => Some(self.floor_div(&a, &b)),
            Mod if self.divides_like_floor(&a, &b) => Some(self.floor_mod(&a, &b)),
            Min => Some(self.minimum(&a, &b)),
            Max => Some(self.maximum(&a, &b)),
            Eq | Ne | Lt | Le => return self.compare(n.op, &a, &b),
            Gt => return self.compare(Lt, &b, &a),
            Ge => return self.compare(Le, &b, &a),
            Div | Mod => self.divided_exactly(n.op, &a, &b),
            And | Or => None,
        };
        match sum {
            Some(sum) => Value::Index(sum),
            None => self.node(Head::Binary(n.op), vec![Value::Index(a), Value::Index(b)], dtype),
        }
    }

    /// Whether truncating and flooring division agree: neither operand is negative.
    fn divides_like_floor(&self, a: &Sum, b: &Sum) -> bool {
        let data = self.atoms.sum_is_data(a) || self.atoms.sum_is_data(b);
        let at_least = |sum: &Sum, low: i64| self.bounds_of(sum).min.is_some_and(|min| min >= low);
        !data && at_least(a, 0) && at_least(b, 1)
    }

    /// Division towards zero that leaves nothing: every part of `a` is a multiple of the constant `b`.
    fn divided_exactly(&self, op: BinaryOp, a: &Sum, b: &Sum) -> Option<Sum> {
        let c = b.as_constant().filter(|c| *c > 0 && !self.atoms.sum_is_data(a))?;
        let is_exact = a.constant % c == 0 && a.terms.iter().all(|(_, k)| k % c == 0);
        is_exact.then(|| if op == BinaryOp::Div { a.divided_by(c) } else { Sum::constant(a.dtype, 0) })
    }

    /// Uses `x % c == x - x // c * c` wherever that makes the sum shorter, so that the parts of a split index find each
    /// other again: `x // 8 * 8 + x % 8` is `x`. Of two sums that are as long the one with fewer divisions is the shorter where TVM's forms are asked for;
    /// elsewhere parts of an index stay, which kernels' accesses are recognised by.
    pub(super) fn merge_divisions(&mut self, mut sum: Sum) -> Sum {
        'again: loop {
            for (product, coefficient) in sum.terms.clone() {
                for atom in &product {
                    let Some(expanded) = self.expanded_division(*atom) else { continue };
                    let Some(rest) = without(&product, &[*atom]) else { continue };
                    let shorter = || {
                        let term = Sum::term(sum.dtype, product.clone(), coefficient);
                        sum.sub(&term)?.add(&expanded.times_product(&rest, coefficient)?)
                    };
                    if let Some(shorter) = shorter().filter(|s| self.length(s) < self.length(&sum)) {
                        sum = shorter;
                        continue 'again;
                    }
                }
            }
            return sum;
        }
    }

    /// How many terms a sum has, and how many divisions, if these count.
    fn length(&self, sum: &Sum) -> (usize, usize) {
        if self.quotients != Quotients::Outside {
            return (sum.terms.len(), 0);
        }
        let divides = |atom: &&AtomId| match self.atoms.get(**atom) {
            Atom::FloorDiv(..) | Atom::FloorMod(..) => true,
            Atom::Node(Head::Binary(op), _) => matches!(op, BinaryOp::Div | BinaryOp::Mod),
            _ => false,
        };
        let divisions = sum.terms.iter().flat_map(|(product, _)| product).filter(divides).count();
        (sum.terms.len(), divisions)
    }

    /// A remainder as what was divided without its multiples, and a quotient of remainders as one of what they are remainders of.
    fn expanded_division(&mut self, atom: AtomId) -> Option<Sum> {
        match self.atoms.get(atom).clone() {
            Atom::FloorMod(x, c) => {
                let quotient = self.floor_div(&x, &c);
                x.sub(&quotient.mul(&c)?)
            }
            Atom::FloorDiv(x, c) => {
                let c = c.as_constant().filter(|c| *c > 0)?;
                self.quotient_of_expanded(&x, c)
            }
            Atom::Node(Head::Binary(BinaryOp::Mod), args) => {
                let [Value::Index(x), Value::Index(c)] = args.as_slice() else { return None };
                c.as_constant().filter(|c| *c > 0)?;
                let quotient = match self.node(Head::Binary(BinaryOp::Div), args.clone(), x.dtype) {
                    Value::Index(quotient) => quotient,
                    Value::Other(_) => return None,
                };
                x.sub(&quotient.mul(c)?)
            }
            _ => None,
        }
    }
}
