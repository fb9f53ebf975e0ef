//! Operators and conversions of scalars.
//!
//! Indices are promised not to overflow and are written with C's own operators, for the compiler to profit from and for people
//! to read. Everything else on signed integers goes through functions that wrap around ([`integers`]).

use relaxide_ir::BinaryOp;
use relaxide_tir::intrin::Intrinsic;

use super::{
    body::Body,
    code::{self, Code, Level},
    floats::{self, Helper},
    integers,
    types::value_type,
};
use crate::shared::{Overflow, ScalarKind, Ty};

impl Body<'_, '_> {
    /// `a op b` on operands of one type; `divisor` is the second one where it is a literal above zero.
    pub fn binary(&mut self, op: BinaryOp, kind: ScalarKind, a: &Code, b: &Code, divisor: Option<i64>) -> Code {
        if let Some(code) = comparison(op, a, b) {
            if kind.is_narrow_float() {
                let (a, b) = (self.widen(a, kind), self.widen(b, kind));
                return comparison(op, &a, &b).unwrap_or(code);
            }
            return code;
        }
        match kind {
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 => {
                let (a, b) = (self.widen(a, kind), self.widen(b, kind));
                let result = self.float_binary(op, ScalarKind::F32, &a, &b);
                if op.is_logical() { result } else { self.narrow(&result, ScalarKind::F32, kind) }
            }
            ScalarKind::F32 | ScalarKind::F64 => self.float_binary(op, kind, a, b),
            ScalarKind::Bool | ScalarKind::Ptr => bool_binary(op, a, b),
            ScalarKind::Int { .. } => self.int_binary(op, kind, a, b, divisor),
        }
    }

    fn float_binary(&mut self, op: BinaryOp, kind: ScalarKind, a: &Code, b: &Code) -> Code {
        use BinaryOp::*;
        let f = if kind == ScalarKind::F64 { "" } else { "f" };
        match op {
            Add => Code::infix(a, "+", b, Level::Add),
            Sub => Code::infix(a, "-", b, Level::Add),
            Mul => Code::infix(a, "*", b, Level::Mul),
            Div => Code::infix(a, "/", b, Level::Mul),
            Mod => Code::call(&format!("fmod{f}"), &[a, b]),
            FloorDiv => Code::call(&format!("floor{f}"), &[&Code::infix(a, "/", b, Level::Mul)]),
            FloorMod => Code::call(&floats::helper(self.source, Helper::FloorMod, kind), &[a, b]),
            Min => Code::call(&floats::helper(self.source, Helper::Min, kind), &[a, b]),
            Max => Code::call(&floats::helper(self.source, Helper::Max, kind), &[a, b]),
            _ => {
                let zero = Code::atom("0");
                let (a, b) = (Code::infix(a, "!=", &zero, Level::Compare), Code::infix(b, "!=", &zero, Level::Compare));
                bool_binary(op, &a, &b)
            }
        }
    }

    fn int_binary(&mut self, op: BinaryOp, kind: ScalarKind, a: &Code, b: &Code, divisor: Option<i64>) -> Code {
        use BinaryOp::*;
        // What fits by promise, and unsigned numbers that are not computed in `int`.
        let plain = kind.bytes() >= 4 && (!kind.is_signed() || self.overflow == Overflow::Never);
        match op {
            Add if plain => Code::infix(a, "+", b, Level::Add),
            Sub if plain => Code::infix(a, "-", b, Level::Add),
            Mul if plain => Code::infix(a, "*", b, Level::Mul),
            Div if divisor.is_some() => Code::infix(a, "/", b, Level::Mul),
            Mod if divisor.is_some() => Code::infix(a, "%", b, Level::Mul),
            And | Or => {
                let zero = Code::atom("0");
                let (a, b) = (Code::infix(a, "!=", &zero, Level::Compare), Code::infix(b, "!=", &zero, Level::Compare));
                bool_binary(op, &a, &b)
            }
            _ => match integers::function(self.source, op, kind) {
                Some(function) => Code::call(&function, &[a, b]),
                None => a.clone(),
            },
        }
    }

    /// A value of one kind as another.
    pub fn convert(&mut self, value: Code, from: ScalarKind, to: ScalarKind) -> Code {
        if from == to {
            return value;
        }
        match (from, to) {
            (ScalarKind::F32 | ScalarKind::F64, ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16) => {
                self.narrow(&value, from, to)
            }
            (_, ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16) => {
                let wide = self.convert(value, from, ScalarKind::F32);
                self.narrow(&wide, ScalarKind::F32, to)
            }
            (ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16, _) => {
                let wide = self.widen(&value, from);
                self.convert(wide, ScalarKind::F32, to)
            }
            (_, ScalarKind::Bool) => {
                let zero = if from == ScalarKind::Ptr { "NULL" } else { "0" };
                Code::infix(&value, "!=", &Code::atom(zero), Level::Compare)
            }
            (ScalarKind::F32 | ScalarKind::F64, ScalarKind::Int { .. }) => {
                Code::call(&floats::to_integer(self.source, from, to), &[&value])
            }
            (ScalarKind::Ptr, ScalarKind::Int { .. }) => Code::cast(value_type(to), &Code::cast("uintptr_t", &value)),
            (ScalarKind::Int { .. }, ScalarKind::Ptr) => Code::cast("void *", &Code::cast("uintptr_t", &value)),
            // Pointers and floats have no conversion, which was said before.
            _ => Code::cast(value_type(to), &value),
        }
    }

    /// A float of sixteen bits or fewer in single precision; any other value unchanged.
    pub fn widen(&mut self, value: &Code, kind: ScalarKind) -> Code {
        if !kind.is_narrow_float() {
            return value.clone();
        }
        Code::call(&floats::widen(self.source, kind), &[value])
    }

    /// A float rounded to sixteen bits or fewer; what is asked to be another kind is left unchanged.
    pub fn narrow(&mut self, value: &Code, from: ScalarKind, to: ScalarKind) -> Code {
        if !to.is_narrow_float() {
            return value.clone();
        }
        Code::call(&floats::narrow(self.source, from, to), &[value])
    }

    /// The same bits as another type of the same size.
    pub fn same_bits(&mut self, value: &Code, from: ScalarKind, to: ScalarKind) -> Code {
        let (old, new) = (value_type(from), value_type(to));
        if old == new {
            return value.clone();
        }
        let whole =
            |kind| matches!(kind, ScalarKind::Int { .. } | ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16);
        if whole(from) && whole(to) {
            return Code::cast(new, value);
        }
        Code::call(&floats::bits_of(self.source, from, to), &[value])
    }

    /// The least or greatest value of a type.
    pub fn limit(&self, intrinsic: Intrinsic, ty: Ty) -> Option<Code> {
        let is_least = match intrinsic {
            Intrinsic::MinValue => true,
            Intrinsic::MaxValue => false,
            _ => return None,
        };
        let number = match ty.kind {
            ScalarKind::Int { bits, signed: true } if is_least => -1i64 << (bits - 1),
            ScalarKind::Int { bits, signed: true } => (1i64 << (bits - 1)).wrapping_sub(1),
            ScalarKind::Int { .. } | ScalarKind::Bool if is_least => 0,
            ScalarKind::Int { .. } => -1,
            ScalarKind::Bool => 1,
            ScalarKind::Ptr => return None,
            _ => return Some(code::float(ty, if is_least { f64::NEG_INFINITY } else { f64::INFINITY })),
        };
        Some(code::integer(ty, number))
    }
}

fn comparison(op: BinaryOp, a: &Code, b: &Code) -> Option<Code> {
    use BinaryOp::*;
    let symbol = match op {
        Eq => "==",
        Ne => "!=",
        Lt => "<",
        Le => "<=",
        Gt => ">",
        Ge => ">=",
        _ => return None,
    };
    Some(Code::infix(a, symbol, b, Level::Compare))
}

fn bool_binary(op: BinaryOp, a: &Code, b: &Code) -> Code {
    use BinaryOp::*;
    match op {
        And | Min | Mul => Code::infix(a, "&&", b, Level::And),
        Or | Max | Add => Code::infix(a, "||", b, Level::Or),
        Sub => Code::infix(a, "!=", b, Level::Compare),
        Mod | FloorMod => Code::atom("false"),
        _ => a.clone(),
    }
}
