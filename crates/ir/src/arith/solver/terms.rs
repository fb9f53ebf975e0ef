//! Conditions as formulas over polynomials.
//!
//! Integers are those of mathematics: arithmetic does not overflow. What is no sum or product becomes an atom, of which its
//! definition is known: `q = a // b` with `0 <= a - b * q < b`, the smaller of two by cases, and so on. What has no definition
//! here (loads, calls, bits) is equal to itself and lies within its type.

use std::collections::HashMap;

use relaxide_ffi::{DataType, FreeVars, Ref, structural_equal};

use super::poly::{Atom, Poly};
use crate::prim::{self, Binary, PrimExpr};
use crate::{BinaryOp, Var};

/// A condition without negations.
#[derive(Clone, Debug)]
pub(super) enum Formula {
    Known(bool),
    /// It is not negative.
    AtLeastZero(Poly),
    Zero(Poly),
    All(Vec<Formula>),
    Any(Vec<Formula>),
}

impl Formula {
    /// `larger >= smaller + by`.
    fn at_least(larger: &Poly, smaller: &Poly, by: i128) -> Option<Formula> {
        Some(Formula::of_sign(larger.plus(smaller, -1)?.plus(&Poly::constant(by), -1)?))
    }

    fn of_sign(poly: Poly) -> Formula {
        poly.as_constant().map_or(Formula::AtLeastZero(poly), |value| Formula::Known(value >= 0))
    }

    fn equal(a: &Poly, b: &Poly) -> Option<Formula> {
        let difference = a.plus(b, -1)?;
        Some(difference.as_constant().map_or(Formula::Zero(difference), |value| Formula::Known(value == 0)))
    }

    fn different(a: &Poly, b: &Poly) -> Option<Formula> {
        Some(Formula::Any(vec![Formula::at_least(a, b, 1)?, Formula::at_least(b, a, 1)?]))
    }
}

/// A quotient that has an atom.
struct Quotient {
    dividend: Poly,
    divisor: Poly,
    /// Whether it is rounded down; towards zero if not.
    rounds_down: bool,
    atom: Atom,
}

/// The atoms of conditions, and what is known of them.
#[derive(Default)]
pub(super) struct Terms {
    pub facts: Vec<Formula>,
    /// Variables by their atoms.
    pub vars: HashMap<Ref<Var>, Atom>,
    count: Atom,
    quotients: Vec<Quotient>,
    nodes: Vec<(PrimExpr, Atom)>,
}

impl Terms {
    fn fresh(&mut self, dtype: DataType) -> Option<Atom> {
        let atom = self.count;
        self.count += 1;
        let bits = u32::from(dtype.bits);
        let bounds = match () {
            () if dtype.is_bool() => Some((0, 1)),
            () if bits == 0 || bits > 64 => None,
            () if dtype.is_int() => Some((-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)),
            () if dtype.is_uint() => Some((0, (1i128 << bits) - 1)),
            () => None,
        };
        if let Some((low, high)) = bounds {
            let one = Poly::atom(atom);
            self.facts.push(Formula::at_least(&one, &Poly::constant(low), 0)?);
            self.facts.push(Formula::at_least(&Poly::constant(high), &one, 0)?);
        }
        Some(atom)
    }

    /// The atom of what has no definition here.
    fn opaque(&mut self, e: &PrimExpr) -> Option<Poly> {
        if let PrimExpr::Var(var) = e {
            if let Some(known) = self.vars.get(var) {
                return Some(Poly::atom(*known));
            }
            let atom = self.fresh(var.dtype())?;
            self.vars.insert(var.clone(), atom);
            return Some(Poly::atom(atom));
        }
        let known = self.nodes.iter().find(|(other, _)| structural_equal(other, e, FreeVars::Same).is_ok());
        if let Some((_, atom)) = known {
            return Some(Poly::atom(*atom));
        }
        let atom = self.fresh(e.dtype())?;
        self.nodes.push((e.clone(), atom));
        Some(Poly::atom(atom))
    }

    /// An integer as a polynomial.
    fn term(&mut self, e: &PrimExpr) -> Option<Poly> {
        match e {
            PrimExpr::Int(n) => Some(Poly::constant(n.value.into())),
            PrimExpr::Binary(n) => self.binary(e, n),
            PrimExpr::Cast(n) if widens(n.value.dtype(), n.dtype) => self.term(&n.value),
            PrimExpr::Cast(n) if n.value.dtype().is_bool() && is_integer(n.dtype) => {
                let (one, zero) = (Poly::constant(1), Poly::constant(0));
                self.by_cases(e, &n.value, one, zero)
            }
            PrimExpr::Select(n) => {
                let (a, b) = (self.term(&n.true_value)?, self.term(&n.false_value)?);
                self.by_cases(e, &n.condition, a, b)
            }
            PrimExpr::Let(n) => self.term(&prim::substitute(&n.body, &unrolled(n))),
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.if_then_else", [c, a, b]) => {
                    let (a, b) = (self.term(a)?, self.term(b)?);
                    self.by_cases(e, c, a, b)
                }
                ("tirx.likely", [a]) => self.term(a),
                _ => self.opaque(e),
            },
            _ => self.opaque(e),
        }
    }

    fn binary(&mut self, e: &PrimExpr, n: &Binary) -> Option<Poly> {
        if !is_integer(n.a.dtype()) || n.op.is_comparison() {
            return self.opaque(e);
        }
        let (a, b) = (self.term(&n.a)?, self.term(&n.b)?);
        match n.op {
            BinaryOp::Add => a.plus(&b, 1),
            BinaryOp::Sub => a.plus(&b, -1),
            BinaryOp::Mul => a.times(&b),
            BinaryOp::FloorDiv => self.quotient(e, a, b, true),
            BinaryOp::Div => self.quotient(e, a, b, false),
            BinaryOp::FloorMod | BinaryOp::Mod => {
                let quotient = self.quotient(e, a.clone(), b.clone(), n.op == BinaryOp::FloorMod)?;
                a.plus(&quotient.times(&b)?, -1)
            }
            BinaryOp::Min | BinaryOp::Max => {
                let extreme = self.opaque(e)?;
                let (low, high) = if n.op == BinaryOp::Min { (&a, &b) } else { (&b, &a) };
                let first = vec![Formula::at_least(high, low, 0)?, Formula::equal(&extreme, &a)?];
                let second = vec![Formula::at_least(low, high, 0)?, Formula::equal(&extreme, &b)?];
                self.facts.push(Formula::Any(vec![Formula::All(first), Formula::All(second)]));
                Some(extreme)
            }
            _ => self.opaque(e),
        }
    }

    /// An atom for `a // b`, or for the quotient that is rounded towards zero.
    fn quotient(&mut self, e: &PrimExpr, a: Poly, b: Poly, floor: bool) -> Option<Poly> {
        let is_this = |of: &&Quotient| (&of.dividend, &of.divisor, of.rounds_down) == (&a, &b, floor);
        if let Some(known) = self.quotients.iter().find(is_this) {
            return Some(Poly::atom(known.atom));
        }
        // A quotient by zero may be anything, so that its type says nothing of it but for constants.
        let dtype = if b.as_constant().is_some() { e.dtype() } else { DataType::void() };
        let atom = self.fresh(dtype)?;
        let quotient = Poly::atom(atom);
        let rest = a.plus(&quotient.times(&b)?, -1)?;
        let (zero, minus_b) = (Poly::default(), b.negated()?);
        let positive = vec![Formula::at_least(&rest, &zero, 0)?];
        let negative = vec![Formula::at_least(&zero, &rest, 0)?];
        let below = |of: &Poly, than: &Poly| Formula::at_least(than, of, 1);
        let by_positive = Formula::at_least(&b, &zero, 1)?;
        let by_negative = Formula::at_least(&zero, &b, 1)?;
        let cases = if floor {
            vec![
                Formula::All([vec![by_positive, below(&rest, &b)?], positive].concat()),
                Formula::All([vec![by_negative, below(&b, &rest)?], negative].concat()),
            ]
        } else {
            let (up, down) = (Formula::at_least(&a, &zero, 0)?, Formula::at_least(&zero, &a, 0)?);
            let of = |sign: &Formula, a: &Formula, rest: &[Formula], bound: Formula| {
                Formula::All([vec![sign.clone(), a.clone(), bound], rest.to_vec()].concat())
            };
            vec![
                of(&by_positive, &up, &positive, below(&rest, &b)?),
                of(&by_positive, &down, &negative, below(&minus_b, &rest)?),
                of(&by_negative, &up, &positive, below(&rest, &minus_b)?),
                of(&by_negative, &down, &negative, below(&b, &rest)?),
            ]
        };
        let by_zero = Formula::equal(&b, &zero)?;
        self.facts.push(Formula::Any([cases, vec![by_zero]].concat()));
        self.quotients.push(Quotient { dividend: a, divisor: b, rounds_down: floor, atom });
        Some(quotient)
    }

    /// An atom that is one value or another.
    fn by_cases(&mut self, e: &PrimExpr, condition: &PrimExpr, a: Poly, b: Poly) -> Option<Poly> {
        let atom = self.opaque(e)?;
        let (holds, fails) = (self.condition(condition, true)?, self.condition(condition, false)?);
        let first = Formula::All(vec![holds, Formula::equal(&atom, &a)?]);
        let second = Formula::All(vec![fails, Formula::equal(&atom, &b)?]);
        self.facts.push(Formula::Any(vec![first, second]));
        Some(atom)
    }

    /// A condition, or its contrary. Nothing where numbers become too large.
    pub fn condition(&mut self, e: &PrimExpr, holds: bool) -> Option<Formula> {
        match e {
            PrimExpr::Int(n) => Some(Formula::Known((n.value != 0) == holds)),
            PrimExpr::Not(n) => self.condition(&n.a, !holds),
            PrimExpr::Binary(n) => match n.op {
                BinaryOp::And | BinaryOp::Or => {
                    let parts = vec![self.condition(&n.a, holds)?, self.condition(&n.b, holds)?];
                    Some(if (n.op == BinaryOp::And) == holds { Formula::All(parts) } else { Formula::Any(parts) })
                }
                BinaryOp::Eq | BinaryOp::Ne if n.a.dtype().is_bool() => {
                    let same = (n.op == BinaryOp::Eq) == holds;
                    let both = vec![self.condition(&n.a, true)?, self.condition(&n.b, same)?];
                    let none = vec![self.condition(&n.a, false)?, self.condition(&n.b, !same)?];
                    Some(Formula::Any(vec![Formula::All(both), Formula::All(none)]))
                }
                op if op.is_comparison() && is_integer(n.a.dtype()) => {
                    let (a, b) = (self.term(&n.a)?, self.term(&n.b)?);
                    compared(op, &a, &b, holds)
                }
                _ => self.unknown_condition(e, holds),
            },
            PrimExpr::Select(n) => self.chosen(&n.condition, &n.true_value, &n.false_value, holds),
            PrimExpr::Let(n) => self.condition(&prim::substitute(&n.body, &unrolled(n)), holds),
            PrimExpr::Call(n) => match (n.op.as_str(), n.args.as_slice()) {
                ("tirx.if_then_else", [c, a, b]) => self.chosen(c, a, b, holds),
                ("tirx.likely", [a]) => self.condition(a, holds),
                _ => self.unknown_condition(e, holds),
            },
            _ => self.unknown_condition(e, holds),
        }
    }

    fn chosen(&mut self, c: &PrimExpr, a: &PrimExpr, b: &PrimExpr, holds: bool) -> Option<Formula> {
        let first = vec![self.condition(c, true)?, self.condition(a, holds)?];
        let second = vec![self.condition(c, false)?, self.condition(b, holds)?];
        Some(Formula::Any(vec![Formula::All(first), Formula::All(second)]))
    }

    fn unknown_condition(&mut self, e: &PrimExpr, holds: bool) -> Option<Formula> {
        let atom = self.opaque(e)?;
        if holds {
            Formula::at_least(&atom, &Poly::default(), 1)
        } else {
            Formula::at_least(&Poly::default(), &atom, 0)
        }
    }
}

fn compared(op: BinaryOp, a: &Poly, b: &Poly, holds: bool) -> Option<Formula> {
    match (op, holds) {
        (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => Formula::at_least(b, a, 1),
        (BinaryOp::Le, true) | (BinaryOp::Gt, false) => Formula::at_least(b, a, 0),
        (BinaryOp::Gt, true) | (BinaryOp::Le, false) => Formula::at_least(a, b, 1),
        (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => Formula::at_least(a, b, 0),
        (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => Formula::equal(a, b),
        _ => Formula::different(a, b),
    }
}

fn unrolled(n: &prim::Let) -> prim::VarMap {
    std::iter::once((n.var.clone(), n.value.clone())).collect()
}

fn is_integer(dtype: DataType) -> bool {
    dtype.lanes == 1 && (dtype.is_int() || dtype.is_uint())
}

/// Whether a type has all values of another.
fn widens(from: DataType, to: DataType) -> bool {
    let room = |dtype: DataType| u32::from(dtype.bits) - u32::from(dtype.is_int());
    is_integer(from) && is_integer(to) && (to.is_int() || from.is_uint()) && room(from) <= room(to)
}
