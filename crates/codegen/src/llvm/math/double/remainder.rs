//! Remainders and next numbers, in either precision, where there is no math library to call.
//!
//! The mantissas are divided as integers, eleven bits of the quotient at a time, so that a remainder is exact however large the quotient is.

use super::{FunctionText, Ty, Val};

/// The function that gives the remainder of doubles.
const REMAINDER: &str = "relaxide.remainder";

impl FunctionText<'_> {
    /// What is left of `x` without whole `y`, with the sign of `x`. Floats are exact as doubles, and so is what is left of them.
    pub(in crate::llvm::math) fn remainder(&mut self, x: &Val, y: &Val) -> Val {
        self.module.define(REMAINDER, || REMAINDER_TEMPLATE.replace("{name}", REMAINDER));
        let element = x.ty.element();
        self.by_lane(&[x, y], element, |f, parts| {
            let (x, y) = (f.convert(&parts[0], Ty::F64), f.convert(&parts[1], Ty::F64));
            let left = f.emit(Ty::F64, format_args!("call double @{REMAINDER}({x}, {y})"));
            f.convert(&left, element)
        })
    }

    /// The number beside `x` on the way to `y`.
    pub(in crate::llvm::math) fn next_number(&mut self, x: &Val, y: &Val) -> Val {
        let (ty, is_double) = (x.ty, x.ty.element() == Ty::F64);
        let ints = ty.with_kind(if is_double { Ty::I64 } else { Ty::I32 });
        let zero = Val::float(ty, 0.0);
        let (up, below) = (self.fcmp("olt", x, y), self.fcmp("olt", x, &zero));
        let grows = self.op("xor", &up, &below);
        let step = self.select(&grows, &Val::int(ints, 1), &Val::int(ints, -1));
        let bits = self.bitcast(x, ints);
        let bits = self.op("add", &bits, &step);
        let next = self.bitcast(&bits, ty);
        let least = Val::float(ty, if is_double { f64::from_bits(1) } else { f64::from(f32::from_bits(1)) });
        let least = self.copysign(&least, y);
        let nothing = self.fcmp("oeq", x, &zero);
        let next = self.select(&nothing, &least, &next);
        let there = self.fcmp("oeq", x, y);
        let next = self.select(&there, y, &next);
        let unordered = self.fcmp("uno", x, y);
        self.select(&unordered, &Val::float(ty, f64::NAN), &next)
    }
}

const REMAINDER_TEMPLATE: &str = r"define internal double @{name}(double %x, double %y) nounwind {
  %x_bits = bitcast double %x to i64
  %y_bits = bitcast double %y to i64
  %a = and i64 %x_bits, 9223372036854775807
  %b = and i64 %y_bits, 9223372036854775807
  %by_zero = icmp eq i64 %b, 0
  %no_number = icmp uge i64 %a, 9218868437227405312
  %unknown = icmp ugt i64 %b, 9218868437227405312
  %either = or i1 %by_zero, %no_number
  %none = or i1 %either, %unknown
  br i1 %none, label %nothing, label %something
nothing:
  ret double 0x7FF8000000000000
something:
  %is_less = icmp ult i64 %a, %b
  br i1 %is_less, label %whole, label %divided
whole:
  ret double %x
divided:
  %a_field = lshr i64 %a, 52
  %b_field = lshr i64 %b, 52
  %a_fraction = and i64 %a, 4503599627370495
  %b_fraction = and i64 %b, 4503599627370495
  %a_normal = icmp ne i64 %a_field, 0
  %b_normal = icmp ne i64 %b_field, 0
  %a_one = select i1 %a_normal, i64 4503599627370496, i64 0
  %b_one = select i1 %b_normal, i64 4503599627370496, i64 0
  %m = or i64 %a_fraction, %a_one
  %n = or i64 %b_fraction, %b_one
  %a_power = select i1 %a_normal, i64 %a_field, i64 1
  %b_power = select i1 %b_normal, i64 %b_field, i64 1
  %first = urem i64 %m, %n
  br label %next
next:
  %left = phi i64 [ %first, %divided ], [ %less, %more ]
  %power = phi i64 [ %a_power, %divided ], [ %lower, %more ]
  %bits = sub i64 %power, %b_power
  %done = icmp eq i64 %bits, 0
  br i1 %done, label %end, label %more
more:
  %is_many = icmp ugt i64 %bits, 11
  %taken = select i1 %is_many, i64 11, i64 %bits
  %longer = shl i64 %left, %taken
  %less = urem i64 %longer, %n
  %lower = sub i64 %power, %taken
  br label %next
end:
  %unbiased = sub i64 %b_power, 1075
  %half = ashr i64 %unbiased, 1
  %rest = sub i64 %unbiased, %half
  %half_biased = add i64 %half, 1023
  %half_bits = shl i64 %half_biased, 52
  %half_scale = bitcast i64 %half_bits to double
  %rest_biased = add i64 %rest, 1023
  %rest_bits = shl i64 %rest_biased, 52
  %rest_scale = bitcast i64 %rest_bits to double
  %whole_left = uitofp i64 %left to double
  %scaled = fmul double %whole_left, %half_scale
  %size = fmul double %scaled, %rest_scale
  %size_bits = bitcast double %size to i64
  %sign = and i64 %x_bits, -9223372036854775808
  %signed = or i64 %size_bits, %sign
  %result = bitcast i64 %signed to double
  ret double %result
}";
