//! Operators of scalar expressions.
//!
//! Floating-point operators carry one fast-math flag, `contract`: a product and a sum may become one fused operation, unless
//! the kernel forbids it ([`SEPARATE_ROUNDING`](relaxide_tir::SEPARATE_ROUNDING)). Nothing else is assumed; in particular NaN and infinity are numbers like others. Integers wrap, except in index
//! arithmetic, where TIR promises that nothing overflows and loops profit from it. Division by zero gives zero where
//! hardware would stop the process: what a user's data holds must not decide whether the program lives.

use std::ops::Range;

use relaxide_ir::BinaryOp;

use super::{
    function::{FunctionText, join},
    value::{Overflow, ScalarKind, Ty, Val},
};

impl FunctionText<'_> {
    /// `a op b` on operands of one type.
    pub fn binary(&mut self, op: BinaryOp, a: &Val, b: &Val, overflow: Overflow) -> Val {
        match a.ty.kind {
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 => {
                let (wide_a, wide_b) = (self.widen(a), self.widen(b));
                let result = self.float_binary(op, &wide_a, &wide_b);
                if op.is_comparison() { result } else { self.narrow(&result, a.ty) }
            }
            ScalarKind::F32 | ScalarKind::F64 => self.float_binary(op, a, b),
            ScalarKind::Int { signed, .. } => self.int_binary(op, a, b, signed, overflow),
            ScalarKind::Ptr => self.compare_int(op, a, b, false),
            ScalarKind::Bool => match op {
                BinaryOp::And | BinaryOp::Min | BinaryOp::Mul => self.op("and", a, b),
                BinaryOp::Or | BinaryOp::Max | BinaryOp::Add => self.op("or", a, b),
                BinaryOp::Sub => self.op("xor", a, b),
                BinaryOp::Div | BinaryOp::FloorDiv => a.clone(),
                BinaryOp::Mod | BinaryOp::FloorMod => Val::zero(a.ty),
                _ => self.compare_int(op, a, b, false),
            },
        }
    }

    /// One instruction on two operands of one type.
    pub fn op(&mut self, name: &str, a: &Val, b: &Val) -> Val {
        if !is_index_like(a.ty) {
            return self.emit(a.ty, format_args!("{name} {a}, {}", b.text));
        }
        let instruction = format!("{name} {a}, {}", b.text);
        // A division by zero stops the process.
        match name {
            "sdiv" | "udiv" | "srem" | "urem" => self.pure_here(a.ty, instruction),
            _ => self.pure(a.ty, &[a, b], instruction),
        }
    }

    pub fn fadd(&mut self, a: &Val, b: &Val) -> Val {
        self.op(if self.contract { "fadd contract" } else { "fadd" }, a, b)
    }

    pub fn fsub(&mut self, a: &Val, b: &Val) -> Val {
        self.op(if self.contract { "fsub contract" } else { "fsub" }, a, b)
    }

    pub fn fmul(&mut self, a: &Val, b: &Val) -> Val {
        self.op(if self.contract { "fmul contract" } else { "fmul" }, a, b)
    }

    pub fn fdiv(&mut self, a: &Val, b: &Val) -> Val {
        self.op(if self.contract { "fdiv contract" } else { "fdiv" }, a, b)
    }

    pub fn fneg(&mut self, a: &Val) -> Val {
        self.emit(a.ty, format_args!("fneg {a}"))
    }

    /// `a * b + c`, fused where the processor can.
    pub fn fmuladd(&mut self, a: &Val, b: &Val, c: &Val) -> Val {
        self.intrinsic("fmuladd", a.ty, a.ty, &[a, b, c])
    }

    /// A comparison of floating-point numbers: `oge`, `une`, `uno` …
    pub fn fcmp(&mut self, predicate: &str, a: &Val, b: &Val) -> Val {
        self.emit(a.ty.with_kind(Ty::BOOL), format_args!("fcmp {predicate} {a}, {}", b.text))
    }

    /// A comparison of integers: `eq`, `slt`, `uge` …
    pub fn icmp(&mut self, predicate: &str, a: &Val, b: &Val) -> Val {
        let ty = a.ty.with_kind(Ty::BOOL);
        let instruction = format!("icmp {predicate} {a}, {}", b.text);
        if is_index_like(a.ty) { self.pure(ty, &[a, b], instruction) } else { self.emit(ty, instruction) }
    }

    pub fn select(&mut self, condition: &Val, yes: &Val, no: &Val) -> Val {
        let instruction = format!("select {condition}, {yes}, {no}");
        if is_index_like(yes.ty) {
            self.pure(yes.ty, &[condition, yes, no], instruction)
        } else {
            self.emit(yes.ty, instruction)
        }
    }

    pub fn not(&mut self, a: &Val) -> Val {
        let ones = if a.ty.kind == ScalarKind::Bool { Val::int(a.ty, 1) } else { Val::int(a.ty, -1) };
        self.op("xor", a, &ones)
    }

    /// One value in every lane.
    pub fn splat(&mut self, value: &Val, lanes: u32) -> Val {
        let ty = value.ty.with_lanes(lanes);
        if lanes == 1 {
            return value.clone();
        }
        if !value.text.starts_with('%') {
            return Val::new(ty, format!("splat ({value})"));
        }
        let first = self.emit(ty, format_args!("insertelement {ty} poison, {value}, i64 0"));
        let places = Ty::I32.with_lanes(lanes);
        self.emit(ty, format_args!("shufflevector {first}, {ty} poison, {places} zeroinitializer"))
    }

    /// One lane of a vector; a scalar has itself.
    pub fn lane(&mut self, vector: &Val, lane: u32) -> Val {
        if !vector.ty.is_vector() {
            return vector.clone();
        }
        self.emit(vector.ty.element(), format_args!("extractelement {vector}, i64 {lane}"))
    }

    /// Neighbouring lanes of a vector.
    pub fn some_lanes(&mut self, vector: &Val, lanes: Range<u32>) -> Val {
        if let [lane] = lanes.clone().collect::<Vec<_>>()[..] {
            return self.lane(vector, lane);
        }
        let (ty, count) = (vector.ty.with_lanes(lanes.len() as u32), lanes.len());
        let numbers = lanes.map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", ");
        self.emit(ty, format_args!("shufflevector {vector}, {} poison, <{count} x i32> <{numbers}>", vector.ty))
    }

    /// Lanes of two vectors of one type, which are counted through both.
    pub fn shuffle(&mut self, first: &Val, second: &Val, lanes: &[u32]) -> Val {
        let numbers = lanes.iter().map(|lane| format!("i32 {lane}")).collect::<Vec<_>>().join(", ");
        let (ty, count) = (first.ty.with_lanes(lanes.len() as u32), lanes.len());
        self.emit(ty, format_args!("shufflevector {first}, {second}, <{count} x i32> <{numbers}>"))
    }

    /// A vector of given lanes; one lane is itself.
    pub fn gather_lanes(&mut self, lanes: &[Val]) -> Val {
        let Some(first) = lanes.first() else { return Val::zero(Ty::I32) };
        if lanes.len() == 1 {
            return first.clone();
        }
        let ty = first.ty.with_lanes(lanes.len() as u32);
        let mut vector = Val::new(ty, "poison");
        for (index, lane) in lanes.iter().enumerate() {
            vector = self.emit(ty, format_args!("insertelement {vector}, {lane}, i64 {index}"));
        }
        vector
    }

    fn float_binary(&mut self, op: BinaryOp, a: &Val, b: &Val) -> Val {
        use BinaryOp::*;
        match op {
            Add => self.fadd(a, b),
            Sub => self.fsub(a, b),
            Mul => self.fmul(a, b),
            Div => self.fdiv(a, b),
            Mod => self.op("frem", a, b),
            FloorDiv => {
                let quotient = self.op("fdiv", a, b);
                self.intrinsic("floor", a.ty, a.ty, &[&quotient])
            }
            // Without `contract`: a fused product would show the division's rounding error.
            FloorMod => {
                let quotient = self.op("fdiv", a, b);
                let floor = self.intrinsic("floor", a.ty, a.ty, &[&quotient]);
                let product = self.op("fmul", b, &floor);
                self.op("fsub", a, &product)
            }
            Min => self.extremum("olt", "minimum", a, b),
            Max => self.extremum("ogt", "maximum", a, b),
            Eq => self.fcmp("oeq", a, b),
            Ne => self.fcmp("une", a, b),
            Lt => self.fcmp("olt", a, b),
            Le => self.fcmp("ole", a, b),
            Gt => self.fcmp("ogt", a, b),
            Ge => self.fcmp("oge", a, b),
            And | Or => {
                let zero = Val::zero(a.ty);
                let (a, b) = (self.fcmp("une", a, &zero), self.fcmp("une", b, &zero));
                self.op(if op == And { "and" } else { "or" }, &a, &b)
            }
        }
    }

    /// The one of two that is beyond the other, NaN if either is. Which of two zeros, is nobody's business.
    ///
    /// Beside a literal that is one comparison with the literal in front: the instruction `minps` or `maxps` of x86, which gives
    /// its second operand if either is NaN. Of two values LLVM makes three instructions there, one elsewhere.
    fn extremum(&mut self, beyond: &str, name: &str, a: &Val, b: &Val) -> Val {
        let (value, literal) = if b.is_number() { (a, b) } else { (b, a) };
        if literal.is_number() {
            let further = self.fcmp(beyond, literal, value);
            return self.select(&further, literal, value);
        }
        let function = format!("llvm.{name}.{}", a.ty.mangled());
        self.module.declare(&function, &a.ty.to_string(), &join([a.ty, a.ty]));
        self.emit(a.ty, format_args!("call nsz {} @{function}({a}, {b})", a.ty))
    }

    fn int_binary(&mut self, op: BinaryOp, a: &Val, b: &Val, signed: bool, overflow: Overflow) -> Val {
        use BinaryOp::*;
        // Smaller integers are never indices.
        let exact = signed && overflow == Overflow::Never && a.ty.kind.bytes() >= 4;
        match op {
            Add => self.op(if exact { "add nsw" } else { "add" }, a, b),
            Sub => self.op(if exact { "sub nsw" } else { "sub" }, a, b),
            Mul => self.op(if exact { "mul nsw" } else { "mul" }, a, b),
            Div => self.divide(a, b, signed).0,
            Mod => self.divide(a, b, signed).1,
            FloorDiv => self.floor_divide(a, b, signed).0,
            FloorMod => self.floor_divide(a, b, signed).1,
            Min => self.pure_intrinsic(if signed { "smin" } else { "umin" }, a, b),
            Max => self.pure_intrinsic(if signed { "smax" } else { "umax" }, a, b),
            And => self.op("and", a, b),
            Or => self.op("or", a, b),
            Eq | Ne | Lt | Le | Gt | Ge => self.compare_int(op, a, b, signed),
        }
    }

    /// An intrinsic of two integers that has no effect.
    fn pure_intrinsic(&mut self, name: &str, a: &Val, b: &Val) -> Val {
        if !is_index_like(a.ty) {
            return self.intrinsic(name, a.ty, a.ty, &[a, b]);
        }
        let name = format!("llvm.{name}.{}", a.ty.mangled());
        self.module.declare(&name, &a.ty.to_string(), &join([a.ty, a.ty]));
        self.pure(a.ty, &[a, b], format!("call {} @{name}({a}, {b})", a.ty))
    }

    fn compare_int(&mut self, op: BinaryOp, a: &Val, b: &Val, signed: bool) -> Val {
        use BinaryOp::*;
        let predicate = match (op, signed) {
            (Ne, _) => "ne",
            (Lt, true) => "slt",
            (Le, true) => "sle",
            (Gt, true) => "sgt",
            (Ge, true) => "sge",
            (Lt, false) => "ult",
            (Le, false) => "ule",
            (Gt, false) => "ugt",
            (Ge, false) => "uge",
            _ => "eq",
        };
        self.icmp(predicate, a, b)
    }

    /// Quotient and remainder of the truncating division.
    fn divide(&mut self, a: &Val, b: &Val, signed: bool) -> (Val, Val) {
        let (div, rem) = if signed { ("sdiv", "srem") } else { ("udiv", "urem") };
        if b.as_int_literal().is_some_and(|divisor| divisor != 0 && divisor != -1) {
            return (self.op(div, a, b), self.op(rem, a, b));
        }
        // Divisors at which hardware stops: zero, and minus one below the smallest number.
        let (zero, one, minus_one) = (Val::zero(a.ty), Val::int(a.ty, 1), Val::int(a.ty, -1));
        let by_zero = self.icmp("eq", b, &zero);
        let mut unsafe_divisor = by_zero.clone();
        if signed {
            let by_minus_one = self.icmp("eq", b, &minus_one);
            unsafe_divisor = self.op("or", &by_zero, &by_minus_one);
        }
        let divisor = self.select(&unsafe_divisor, &one, b);
        let (mut quotient, remainder) = (self.op(div, a, &divisor), self.op(rem, a, &divisor));
        if signed {
            let negated = self.op("sub", &zero, a);
            quotient = self.select(&unsafe_divisor, &negated, &quotient);
        }
        (self.select(&by_zero, &zero, &quotient), remainder)
    }

    /// Quotient and remainder of the division that rounds down.
    fn floor_divide(&mut self, a: &Val, b: &Val, signed: bool) -> (Val, Val) {
        if !signed {
            return self.divide(a, b, false);
        }
        if let Some(divisor) = b.as_int_literal().filter(|divisor| *divisor > 0 && divisor.count_ones() == 1) {
            let shift = Val::int(a.ty, i64::from(divisor.trailing_zeros()));
            let mask = Val::int(a.ty, divisor - 1);
            return (self.op("ashr", a, &shift), self.op("and", a, &mask));
        }
        let (quotient, remainder) = self.divide(a, b, true);
        let (zero, minus_one) = (Val::zero(a.ty), Val::int(a.ty, -1));
        let inexact = self.icmp("ne", &remainder, &zero);
        let signs = self.op("xor", &remainder, b);
        let opposite = self.icmp("slt", &signs, &zero);
        let correct = self.op("and", &inexact, &opposite);
        let (lower, higher) = (self.op("add", &quotient, &minus_one), self.op("add", &remainder, b));
        (self.select(&correct, &lower, &quotient), self.select(&correct, &higher, &remainder))
    }
}

/// What indices are made of: their computations are shared and leave loops.
fn is_index_like(ty: Ty) -> bool {
    !ty.is_vector() && matches!(ty.kind, ScalarKind::Int { .. } | ScalarKind::Bool)
}
