//! Quarter turns taken off angles of any size: 2/π to as many bits as count.
//!
//! A double is `m 2^e`. Of the bits of 2/π those that make whole turns with `m 2^e` are left out, and of the others 192 are taken, so that
//! the product's fraction is right to 2^-128: the closest that a double comes to a quarter turn is 2^-62.

use std::fmt::Write as _;

use super::{FunctionText, Val, angles::HALF_PI};

/// The table of the bits of 2/π, with a word of zeros in front of them.
const TABLE: &str = "relaxide.quarter_turns";

/// The function that gives a part of what is left of an angle of a million and more: 0 and 1 are two doubles of the rest, 2 is the number
/// of quarter turns. Infinity and NaN give NaN for the rest.
const REST: &str = "relaxide.without_quarter_turns";

const WORDS: [u64; 21] = [
    0,
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_6BAB,
    0xF0CF_BC20_9AF4_361D,
];

impl FunctionText<'_> {
    /// A part of the rest of an angle that is a million and more, by its number.
    pub(super) fn reduce_range_of_part(&mut self, x: &Val, part: i64) -> Val {
        self.module.define(TABLE, table);
        self.module.declare("llvm.fma.f64", "double", "double, double, double");
        self.module.declare("llvm.fshl.i64", "i64", "i64, i64, i64");
        self.module.declare("llvm.ctlz.i64", "i64", "i64, i1");
        self.module.define(REST, || {
            let hex = |value: f64| format!("0x{:016X}", value.to_bits());
            REST_TEMPLATE
                .replace("{name}", REST)
                .replace("{table}", TABLE)
                .replace("{count}", &WORDS.len().to_string())
                .replace("{half_pi}", &hex(HALF_PI[0]))
                .replace("{half_pi_low}", &hex(HALF_PI[1]))
                .replace("{of_rest}", &hex(2f64.powi(-53)))
        });
        let element = x.ty.element();
        self.by_lane(&[x], element, |f, parts| {
            f.emit(element, format_args!("call double @{REST}({}, i32 {part})", parts[0]))
        })
    }
}

fn table() -> String {
    let mut words = String::new();
    for word in WORDS {
        let separator = if words.is_empty() { "" } else { ", " };
        let _ = write!(words, "{separator}i64 {}", word as i64);
    }
    format!("@{TABLE} = internal unnamed_addr constant [{} x i64] [{words}], align 8", WORDS.len())
}

const REST_TEMPLATE: &str = r"define internal double @{name}(double %x, i32 %part) nounwind {
  %bits = bitcast double %x to i64
  %field = lshr i64 %bits, 52
  %biased = and i64 %field, 2047
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %from = sub i64 %biased, 1013
  %no_number = icmp ugt i64 %from, 1033
  %start = select i1 %no_number, i64 0, i64 %from
  %word = lshr i64 %start, 6
  %shift = and i64 %start, 63
  %at0 = getelementptr inbounds [{count} x i64], ptr @{table}, i64 0, i64 %word
  %at1 = getelementptr inbounds i64, ptr %at0, i64 1
  %at2 = getelementptr inbounds i64, ptr %at0, i64 2
  %at3 = getelementptr inbounds i64, ptr %at0, i64 3
  %w0 = load i64, ptr %at0, align 8
  %w1 = load i64, ptr %at1, align 8
  %w2 = load i64, ptr %at2, align 8
  %w3 = load i64, ptr %at3, align 8
  %a = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %b = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %c = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  %wide_m = zext i64 %m to i128
  %wide_b = zext i64 %b to i128
  %wide_c = zext i64 %c to i128
  %product_c = mul i128 %wide_m, %wide_c
  %carried_c = lshr i128 %product_c, 64
  %product_b = mul i128 %wide_m, %wide_b
  %sum_b = add i128 %product_b, %carried_c
  %low = trunc i128 %sum_b to i64
  %carried_b = lshr i128 %sum_b, 64
  %carry = trunc i128 %carried_b to i64
  %product_a = mul i64 %m, %a
  %high = add i64 %product_a, %carry
  %rounded = add i64 %high, 2305843009213693952
  %turns = lshr i64 %rounded, 62
  %of_quarter = call i64 @llvm.fshl.i64(i64 %high, i64 %low, i64 2)
  %rest_of_quarter = shl i64 %low, 2
  %is_less = icmp slt i64 %of_quarter, 0
  %wide_high = zext i64 %of_quarter to i128
  %wide_low = zext i64 %rest_of_quarter to i128
  %moved = shl i128 %wide_high, 64
  %whole = or i128 %moved, %wide_low
  %opposite = sub i128 0, %whole
  %size = select i1 %is_less, i128 %opposite, i128 %whole
  %size_moved = lshr i128 %size, 64
  %size_high = trunc i128 %size_moved to i64
  %zeros = call i64 @llvm.ctlz.i64(i64 %size_high, i1 false)
  %wide_zeros = zext i64 %zeros to i128
  %normal = shl i128 %size, %wide_zeros
  %normal_moved = lshr i128 %normal, 64
  %top = trunc i128 %normal_moved to i64
  %bottom = trunc i128 %normal to i64
  %head_bits = and i64 %top, -2048
  %head_whole = uitofp i64 %head_bits to double
  %tail_high = shl i64 %top, 53
  %tail_low = lshr i64 %bottom, 11
  %tail_bits = or i64 %tail_high, %tail_low
  %tail_whole = uitofp i64 %tail_bits to double
  %exponent = sub i64 959, %zeros
  %scale_bits = shl i64 %exponent, 52
  %scale = bitcast i64 %scale_bits to double
  %head = fmul double %head_whole, %scale
  %tail_scale = fmul double %scale, {of_rest}
  %tail = fmul double %tail_whole, %tail_scale
  %angle = fmul double %head, {half_pi}
  %negated = fneg double %angle
  %lost = call double @llvm.fma.f64(double %head, double {half_pi}, double %negated)
  %more = call double @llvm.fma.f64(double %head, double {half_pi_low}, double %lost)
  %small = call double @llvm.fma.f64(double %tail, double {half_pi}, double %more)
  %is_negative = icmp slt i64 %bits, 0
  %is_negated = xor i1 %is_less, %is_negative
  %size_asked = icmp eq i32 %part, 0
  %asked = select i1 %size_asked, double %angle, double %small
  %asked_negated = fneg double %asked
  %signed = select i1 %is_negated, double %asked_negated, double %asked
  %said = select i1 %no_number, double 0x7FF8000000000000, double %signed
  %backwards = sub i64 0, %turns
  %all_turns = select i1 %is_negative, i64 %backwards, i64 %turns
  %few_turns = and i64 %all_turns, 3
  %count = uitofp i64 %few_turns to double
  %count_asked = icmp eq i32 %part, 2
  %result = select i1 %count_asked, double %count, double %said
  ret double %result
}";
