//! Sines, cosines and tangents of doubles.
//!
//! An angle becomes a number of quarter turns and a rest of an eighth at most, in two doubles: by three parts of π/2 up to [`FAR`], beyond it by
//! the bits of 2/π that count ([`super::whole_turns`]). Of the rest the functions are their series.

use super::{FunctionText, Ty, Val};

/// π/2 in three parts.
pub(super) const HALF_PI: [f64; 3] =
    [std::f64::consts::FRAC_PI_2, 6.123_233_995_736_766e-17, -1.497_384_904_859_17e-33];
/// Up to here the product of quarter turns and the first part of π/2 is as exact as the angle.
const FAR: f64 = 1e6;

/// `1/n!` for every second `n` down to `last`, with changing signs, the sign of `last` given.
fn alternating(first: u32, last: u32, sign: f64) -> Vec<f64> {
    let inverse = |n: u32| 1.0 / (1..=n).map(f64::from).product::<f64>();
    let of = |n: u32| if ((n - last) / 2).is_multiple_of(2) { sign * inverse(n) } else { -sign * inverse(n) };
    (last..=first).rev().step_by(2).map(of).collect()
}

/// An angle without quarter turns.
struct Rest {
    /// How many quarter turns were taken off, in the last two bits.
    quarters: Val,
    head: Val,
    tail: Val,
}

impl FunctionText<'_> {
    pub(super) fn sin_double(&mut self, x: &Val) -> Val {
        let rest = self.rest_of_angle(x);
        self.sine_of_quadrant(&rest, 0)
    }

    pub(super) fn cos_double(&mut self, x: &Val) -> Val {
        let rest = self.rest_of_angle(x);
        self.sine_of_quadrant(&rest, 1)
    }

    pub(super) fn tan_double(&mut self, x: &Val) -> Val {
        let rest = self.rest_of_angle(x);
        let (sine, cosine) = (self.sine_of_quadrant(&rest, 0), self.sine_of_quadrant(&rest, 1));
        self.op("fdiv", &sine, &cosine)
    }

    /// The sine of an angle and `more` quarter turns.
    fn sine_of_quadrant(&mut self, rest: &Rest, more: i64) -> Val {
        let (sine, cosine) = (self.sine_of_rest(rest), self.cosine_of_rest(rest));
        let ints = rest.quarters.ty;
        let quarters = self.op("add", &rest.quarters, &Val::int(ints, more));
        let odd = self.op("and", &quarters, &Val::int(ints, 1));
        let odd = self.icmp("ne", &odd, &Val::int(ints, 0));
        let value = self.select(&odd, &cosine, &sine);
        let behind = self.op("and", &quarters, &Val::int(ints, 2));
        let behind = self.icmp("ne", &behind, &Val::int(ints, 0));
        let opposite = self.op("fsub", &Val::float(value.ty, -0.0), &value);
        self.select(&behind, &opposite, &value)
    }

    /// `r + (r³ p(r²) + t (1 - r²/2))`; zero keeps its sign.
    fn sine_of_rest(&mut self, rest: &Rest) -> Val {
        let (r, ty) = (&rest.head, rest.head.ty);
        let z = self.op("fmul", r, r);
        let series = self.polynomial(&z, &alternating(17, 3, -1.0));
        let cube = self.op("fmul", &z, r);
        let near_one = self.fma(&z, &Val::float(ty, -0.5), &Val::float(ty, 1.0));
        let small = self.op("fmul", &rest.tail, &near_one);
        let small = self.fma(&cube, &series, &small);
        let sum = self.op("fadd", r, &small);
        self.zero_with_sign(&sum, r)
    }

    /// `1 - r²/2 + …`, where what the first difference loses is added to the small terms.
    fn cosine_of_rest(&mut self, rest: &Rest) -> Val {
        let (r, one) = (&rest.head, Val::float(rest.head.ty, 1.0));
        let z = self.op("fmul", r, r);
        let half = self.op("fmul", &z, &Val::float(r.ty, 0.5));
        let near = self.op("fsub", &one, &half);
        let lost = self.op("fsub", &one, &near);
        let lost = self.op("fsub", &lost, &half);
        let series = self.polynomial(&z, &alternating(18, 4, 1.0));
        let square = self.op("fmul", &z, &z);
        let carried = self.op("fmul", r, &rest.tail);
        let small = self.op("fsub", &lost, &carried);
        let small = self.fma(&square, &series, &small);
        self.op("fadd", &near, &small)
    }

    fn rest_of_angle(&mut self, x: &Val) -> Rest {
        let magnitude = self.fabs(x);
        let far = self.fcmp("oge", &magnitude, &Val::float(x.ty, FAR));
        let near = self.near_rest(x);
        let part = |this: &mut Self, number: i64, near: &Val| {
            this.if_any(&far, |this| this.part_of_far_angle(x, number, &far, near), |_| near.clone())
        };
        let (head, tail) = (part(self, 0, &near.head), part(self, 1, &near.tail));
        let ints = near.quarters.ty;
        let counted = self.cast("sitofp", &near.quarters, x.ty);
        let quarters = part(self, 2, &counted);
        Rest { quarters: self.cast("fptosi", &quarters, ints), head, tail }
    }

    /// A part of the rest of those that are far, by its number, and what is near of the others.
    fn part_of_far_angle(&mut self, x: &Val, number: i64, far: &Val, near: &Val) -> Val {
        let of_far = self.reduce_range_of_part(x, number);
        self.select(far, &of_far, near)
    }

    /// Of an angle that is not far; anything of others.
    fn near_rest(&mut self, x: &Val) -> Rest {
        let bounded = self.clamp(x, -FAR, FAR);
        let (n, bits) = self.nearest_bits(&bounded, std::f64::consts::FRAC_2_PI, 0);
        let first = self.fma(&n, &Val::float(x.ty, -HALF_PI[0]), &bounded);
        let second = Val::float(x.ty, HALF_PI[1]);
        let product = self.op("fmul", &n, &second);
        let opposite = self.op("fsub", &Val::float(x.ty, -0.0), &product);
        let lost = self.fma(&n, &second, &opposite);
        let (head, error) = self.exact_sum(&first, &opposite);
        let tail = self.op("fsub", &error, &lost);
        let tail = self.fma(&n, &Val::float(x.ty, -HALF_PI[2]), &tail);
        let quarters = self.op("and", &bits, &Val::int(x.ty.with_kind(Ty::I64), 3));
        Rest { quarters, head: self.zero_with_sign(&head, x), tail }
    }

    /// A sum, but `x` where that is zero: the sum has lost its sign.
    fn zero_with_sign(&mut self, sum: &Val, x: &Val) -> Val {
        let nothing = self.fcmp("oeq", x, &Val::float(x.ty, 0.0));
        self.select(&nothing, x, sum)
    }
}
