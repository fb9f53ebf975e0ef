//! Whole turns of 2π taken off numbers that are so large that a float has hardly a fraction of them, without a math library.
//!
//! A float is `m 2^e` with a whole `m` below 2^24, and a table has `2^e` without whole turns, in two doubles. Their product is below
//! 2^27, so that one more reduction leaves the angle to 2^-50.

use std::fmt::Write as _;

use super::{FunctionText, Val};

/// The table: powers of two without whole turns, by exponents from 0.
const TABLE: &str = "relaxide.range_table";

/// The function that takes whole turns off a float. Infinity and NaN give NaN.
const REDUCED: &str = "relaxide.reduce_range";

/// The powers that floats have beyond their 24 bits.
const POWERS: usize = 105;

/// Eight bits before the point, and 248 behind it.
type Fixed = [u64; 4];

/// 2π.
const TURN: Fixed = [0x0648_7ED5_110B_4611, 0xA626_3314_5C06_E0E6, 0x8948_1270_4453_3E63, 0xA010_5DF5_31D8_9CD9];

fn doubled(x: Fixed) -> Fixed {
    let below = |at: usize| x.get(at + 1).map_or(0, |limb| limb >> 63);
    std::array::from_fn(|at| x[at] << 1 | below(at))
}

/// `a - b`, of which `b` is no more.
fn difference(a: Fixed, b: Fixed) -> Fixed {
    let (mut result, mut borrow) = ([0; 4], false);
    for at in (0..4).rev() {
        let (limb, first) = a[at].overflowing_sub(b[at]);
        let (limb, second) = limb.overflowing_sub(u64::from(borrow));
        result[at] = limb;
        borrow = first || second;
    }
    result
}

/// The number as a sum of two doubles.
fn in_doubles(mut x: Fixed) -> [f64; 2] {
    // The first limb is 8 bits and 56 bits of fraction.
    let mut scale = 2f64.powi(-56);
    let mut parts = [0.0; 2];
    for part in &mut parts {
        while x != [0; 4] && x[0] >> 63 == 0 {
            x = doubled(x);
            scale /= 2.0;
        }
        let taken = x[0] & !0x7FF;
        *part = taken as f64 * scale;
        x[0] &= 0x7FF;
    }
    parts
}

/// `2^e` without whole turns of 2π, for each `e` of a float.
fn powers() -> Vec<[f64; 2]> {
    let mut power: Fixed = [1 << 56, 0, 0, 0];
    let mut found = Vec::with_capacity(POWERS);
    for _ in 0..POWERS {
        found.push(in_doubles(power));
        power = doubled(power);
        if power >= TURN {
            power = difference(power, TURN);
        }
    }
    found
}

impl FunctionText<'_> {
    /// The numbers without whole turns of 2π.
    pub(super) fn reduce_huge(&mut self, x: &Val) -> Val {
        self.module.define(TABLE, table);
        self.module.declare("llvm.fma.f64", "double", "double, double, double");
        self.module.declare("llvm.nearbyint.f64", "double", "double");
        self.module.define(REDUCED, || {
            let [turn, rest] = in_doubles(TURN);
            REDUCED_TEMPLATE
                .replace("{name}", REDUCED)
                .replace("{table}", TABLE)
                .replace("{count}", &POWERS.to_string())
                .replace("{last}", &(POWERS - 1).to_string())
                .replace("{of_turn}", &hex(1.0 / turn))
                .replace("{turn}", &hex(turn))
                .replace("{rest}", &hex(rest))
        });
        let element = x.ty.element();
        self.by_lane(&[x], element, |f, parts| f.emit(element, format_args!("call float @{REDUCED}({})", parts[0])))
    }
}

/// A double as LLVM reads it to the last bit.
fn hex(value: f64) -> String {
    format!("0x{:016X}", value.to_bits())
}

fn table() -> String {
    let mut rows = String::new();
    for [high, low] in powers() {
        let separator = if rows.is_empty() { "" } else { ", " };
        let _ = write!(rows, "{separator}[2 x double] [double {}, double {}]", hex(high), hex(low));
    }
    format!("@{TABLE} = internal unnamed_addr constant [{POWERS} x [2 x double]] [{rows}], align 8")
}

const REDUCED_TEMPLATE: &str = r"define internal float @{name}(float %x) nounwind {
  %bits = bitcast float %x to i32
  %field = lshr i32 %bits, 23
  %biased = and i32 %field, 255
  %power = sub i32 %biased, 150
  %has_fraction = icmp slt i32 %power, 0
  %from_zero = select i1 %has_fraction, i32 0, i32 %power
  %no_number = icmp sgt i32 %from_zero, {last}
  %at = select i1 %no_number, i32 0, i32 %from_zero
  %digits = and i32 %bits, -2139095041
  %whole_bits = or i32 %digits, 1258291200
  %whole = bitcast i32 %whole_bits to float
  %factor = select i1 %has_fraction, float %x, float %whole
  %m = fpext float %factor to double
  %wide_at = zext i32 %at to i64
  %high_at = getelementptr inbounds [{count} x [2 x double]], ptr @{table}, i64 0, i64 %wide_at, i64 0
  %low_at = getelementptr inbounds [{count} x [2 x double]], ptr @{table}, i64 0, i64 %wide_at, i64 1
  %high = load double, ptr %high_at, align 8
  %low = load double, ptr %low_at, align 8
  %product = fmul double %m, %high
  %opposite = fneg double %product
  %lost = call double @llvm.fma.f64(double %m, double %high, double %opposite)
  %small = call double @llvm.fma.f64(double %m, double %low, double %lost)
  %turns = fmul double %product, {of_turn}
  %count = call double @llvm.nearbyint.f64(double %turns)
  %taken = fneg double %count
  %nearly = call double @llvm.fma.f64(double %taken, double {turn}, double %product)
  %nearer = call double @llvm.fma.f64(double %taken, double {rest}, double %nearly)
  %angle = fadd double %nearer, %small
  %result = fptrunc double %angle to float
  %said = select i1 %no_number, float 0x7FF8000000000000, float %result
  ret float %said
}";

#[cfg(test)]
mod tests {
    use super::*;

    /// The function above, in Rust, with the table of powers.
    fn reduced(x: f32, powers: &[[f64; 2]]) -> f64 {
        let power = (x.to_bits() >> 23 & 255) as i32 - 150;
        let whole = f32::from_bits(x.to_bits() & 0x807F_FFFF | 0x4B00_0000);
        let m = f64::from(if power < 0 { x } else { whole });
        let [high, low] = powers[power.max(0) as usize];
        let product = m * high;
        let small = m.mul_add(low, m.mul_add(high, -product));
        let [turn, rest] = in_doubles(TURN);
        let count = (product / turn).round_ties_even();
        (-count).mul_add(rest, (-count).mul_add(turn, product)) + small
    }

    #[test]
    fn the_angle_of_any_float_is_that_of_the_float() {
        let powers = powers();
        let mut bits = 0x4974_2400_u32;
        while bits < 0x7F80_0000 {
            for x in [f32::from_bits(bits), -f32::from_bits(bits)] {
                let angle = reduced(x, &powers);
                assert!(angle.abs() < 3.2, "{x} {angle}");
                // The library's sine of a double takes all bits of π that there need be.
                assert!((angle.sin() - f64::from(x).sin()).abs() < 1e-14, "{x}: {angle}");
                assert!((angle.cos() - f64::from(x).cos()).abs() < 1e-14, "{x}: {angle}");
            }
            bits += 65_537;
        }
    }
}
