//! Sums of products of bytes (`dot_bytes`): by the processor's instructions for them, or by pairs of 16 bits.
//!
//! ```text
//! VNNI       vpdpbusd  c + u · s, four bytes a lane, one factor without a sign and one with
//! NEON       udot, sdot, usdot (with `i8mm`)
//! elsewhere  bytes 0 and 2, and 1 and 3, as 16 bits: pmaddwd, i32x4.dot_i16x8_s, or products of 32 bits
//! ```
//!
//! Signs that an instruction does not take are made by an offset: `s · t = (s + 128) · t - 128 · sum(t)`, where adding 128 to a byte
//! is turning its highest bit. What is taken away depends on one factor alone, so that a tile computes it once a row or a column. Nothing
//! saturates: pairs of 16 bits hold bytes of either sign, and two of their products fit 32 bits.
//!
//! Products of pairs of bfloat16 (`dot_pairs`) are `vdpbf16ps` with AVX-512 BF16, and products of float32 elsewhere. The instruction takes
//! numbers below the least normal one as zero.
//!
//! Scalars, and vectors of lanes that the instructions do not have, are left to plain arithmetic ([`expand`](relaxide_tir::expand)).

use relaxide_ir::PrimExpr;

use super::{
    kernel::Body,
    value::{ScalarKind, Ty, Val},
};
use crate::{
    error::CodegenError,
    target::{Architecture, NativeTarget},
};

/// What adds 128 to each byte of a word, and the word of which each byte is 128.
const OFFSET: i64 = 0x8080_8080;
/// A word of four ones.
const ONES: i64 = 0x0101_0101;

/// What the processor has for products of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DotUnits {
    /// Lanes of 32 bits of the widest `vpdpbusd`; nothing where there is none.
    vnni: u32,
    /// Lanes of the widest `pmaddwd`.
    pairs: u32,
    /// Lanes of 32 bits of the widest `vdpbf16ps`; nothing where there is none.
    bf16: u32,
    /// NEON's products of equal signs, and those of different ones.
    neon: bool,
    neon_mixed: bool,
    /// WebAssembly's vectors.
    wasm: bool,
}

/// Which factors of an instruction have a sign.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signs {
    Mixed,
    Both,
    None,
}

impl DotUnits {
    /// What a processor has.
    pub fn of(native: &NativeTarget) -> DotUnits {
        let features = native.kernel_features();
        let has = |name: &str| features.contains(name);
        match native.architecture {
            Architecture::X86_64 => DotUnits {
                vnni: match () {
                    () if has("avx512vnni") && has("avx512vl") => 16,
                    () if has("avxvnni") => 8,
                    () => 0,
                },
                // It adds to the sum without rounding what other processors round.
                bf16: if has("avx512bf16") && has("avx512vl") && !native.deterministic { 16 } else { 0 },
                pairs: match () {
                    () if has("avx512bw") => 16,
                    () if has("avx2") => 8,
                    () => 4,
                },
                ..DotUnits::default()
            },
            Architecture::Aarch64 => {
                DotUnits { neon: has("dotprod"), neon_mixed: has("dotprod") && has("i8mm"), ..DotUnits::default() }
            }
            Architecture::Wasm32 => DotUnits { wasm: has("simd128"), ..DotUnits::default() },
            Architecture::Nvptx64 => DotUnits::default(),
        }
    }
}

impl Body<'_, '_> {
    /// `dot_bytes` of vectors; none where plain arithmetic does it.
    pub fn dot_bytes(&mut self, [a, b, c]: [&PrimExpr; 3]) -> Result<Option<Val>, CodegenError> {
        let lanes = c.dtype().lane_count();
        let even = a.dtype().lane_count() == lanes && b.dtype().lane_count() == lanes && [4, 8, 16].contains(&lanes);
        if !even || self.kernel.device.is_some() {
            return Ok(None);
        }
        let (a, b, c) = (self.eval(a)?, self.eval(b)?, self.eval(c)?);
        let units = self.kernel.dots;
        let value = match lanes as u32 {
            n if n <= units.vnni => self.by_instruction(&format!("x86.avx512.vpdpbusd.{}", n * 32), true, [a, b, c]),
            4 if units.neon => self.by_neon(units, [a, b, c]),
            _ => self.by_pairs(units, [a, b, c]),
        };
        Ok(Some(value))
    }

    /// `dot_pairs` of vectors; none where plain arithmetic does it.
    pub fn dot_pairs(&mut self, [a, b, c]: [&PrimExpr; 3]) -> Result<Option<Val>, CodegenError> {
        let lanes = c.dtype().lane_count();
        let even = a.dtype().lane_count() == lanes && b.dtype().lane_count() == lanes && [4, 8, 16].contains(&lanes);
        if !even || lanes as u32 > self.kernel.dots.bf16 || self.kernel.device.is_some() {
            return Ok(None);
        }
        let (a, b, c) = (self.eval(a)?, self.eval(b)?, self.eval(c)?);
        // Text only: no other code has values of this type.
        let pairs = format!("<{} x bfloat>", 2 * lanes);
        let [a, b] = [a, b].map(|word| self.f.emit(word.ty, format!("bitcast {word} to {pairs}")).text);
        let (name, ty) = (format!("llvm.x86.avx512bf16.dpbf16ps.{}", lanes * 32), c.ty);
        self.f.module.declare(&name, &ty.to_string(), &format!("{ty}, {pairs}, {pairs}"));
        Ok(Some(self.f.emit(ty, format!("call {ty} @{name}({c}, {pairs} {a}, {pairs} {b})"))))
    }

    /// By an instruction whose first factor has no sign and whose second has one.
    fn by_instruction(&mut self, name: &str, mixed: bool, [a, b, c]: [Val; 3]) -> Val {
        let (signs, a, b) = ordered(a, b);
        match signs {
            Signs::Mixed if mixed => self.instruction(name, [&a, &b, &c]),
            // With a sign for both: a - 128 has one.
            Signs::Mixed => {
                let moved = self.other_sign(&a);
                let sum = self.instruction(name, [&moved, &b, &c]);
                let rest = self.sum_of_bytes(name, &b, ONES);
                let rest = self.f.op("shl", &rest, &Val::int(c.ty, 7));
                self.f.op("add", &sum, &rest)
            }
            Signs::Both => {
                let moved = self.other_sign(&a);
                let sum = self.instruction(name, [&moved, &b, &c]);
                let rest = self.sum_of_bytes(name, &b, OFFSET);
                self.f.op("sub", &sum, &rest)
            }
            Signs::None => {
                let moved = self.other_sign(&b);
                let sum = self.instruction(name, [&a, &moved, &c]);
                let ones = Val::int(c.ty, ONES);
                let rest = self.instruction(name, [&a, &ones, &Val::zero(c.ty)]);
                let rest = self.f.op("shl", &rest, &Val::int(c.ty, 7));
                self.f.op("add", &sum, &rest)
            }
        }
    }

    fn by_neon(&mut self, units: DotUnits, [a, b, c]: [Val; 3]) -> Val {
        const SIGNED: &str = "aarch64.neon.sdot.v4i32.v16i8";
        const PLAIN: &str = "aarch64.neon.udot.v4i32.v16i8";
        const MIXED: &str = "aarch64.neon.usdot.v4i32.v16i8";
        let (signs, a, b) = ordered(a, b);
        match signs {
            Signs::Both => self.instruction(SIGNED, [&a, &b, &c]),
            Signs::None => self.instruction(PLAIN, [&a, &b, &c]),
            Signs::Mixed if units.neon_mixed => self.instruction(MIXED, [&a, &b, &c]),
            Signs::Mixed => self.by_instruction(SIGNED, false, [a, b, c]),
        }
    }

    /// The bytes of each lane times those of a word, added up.
    fn sum_of_bytes(&mut self, name: &str, of: &Val, word: i64) -> Val {
        self.instruction(name, [&Val::int(of.ty, word), of, &Val::zero(of.ty)])
    }

    /// Words whose bytes are 128 more, modulo 256.
    fn other_sign(&mut self, words: &Val) -> Val {
        self.f.op("xor", words, &Val::int(words.ty, OFFSET))
    }

    fn instruction(&mut self, name: &str, [a, b, c]: [&Val; 3]) -> Val {
        let bytes = Ty { kind: ScalarKind::Int { bits: 8, signed: true }, lanes: 4 * c.ty.lanes };
        let (a, b) = (self.f.cast("bitcast", a, bytes), self.f.cast("bitcast", b, bytes));
        self.f.call(&format!("llvm.{name}"), c.ty, &[c, &a, &b])
    }

    /// By products of 16 bits: of the even bytes, and of the odd ones.
    fn by_pairs(&mut self, units: DotUnits, [a, b, c]: [Val; 3]) -> Val {
        let ([even_a, odd_a], [even_b, odd_b]) = (self.halves(&a), self.halves(&b));
        let even = self.sum_of_pairs(units, &even_a, &even_b, c.ty);
        let odd = self.sum_of_pairs(units, &odd_a, &odd_b, c.ty);
        let sum = self.f.op("add", &c, &even);
        self.f.op("add", &sum, &odd)
    }

    /// The even bytes of words as 16 bits, and the odd ones.
    fn halves(&mut self, words: &Val) -> [Val; 2] {
        let pairs = Ty { kind: ScalarKind::Int { bits: 16, signed: true }, lanes: 2 * words.ty.lanes };
        let eight = Val::int(pairs, 8);
        let signed = words.ty.kind.is_signed();
        let words = self.f.cast("bitcast", words, pairs);
        let down = if signed { "ashr" } else { "lshr" };
        let even = match signed {
            true => {
                let up = self.f.op("shl", &words, &eight);
                self.f.op("ashr", &up, &eight)
            }
            false => self.f.op("and", &words, &Val::int(pairs, 255)),
        };
        [even, self.f.op(down, &words, &eight)]
    }

    /// Products of 16 bits, each two neighbours added.
    fn sum_of_pairs(&mut self, units: DotUnits, a: &Val, b: &Val, sum: Ty) -> Val {
        match sum.lanes {
            16 if units.pairs >= 16 => return self.f.call("llvm.x86.avx512.pmaddw.d.512", sum, &[a, b]),
            8 if units.pairs >= 8 => return self.f.call("llvm.x86.avx2.pmadd.wd", sum, &[a, b]),
            4 if units.pairs >= 4 => return self.f.call("llvm.x86.sse2.pmadd.wd", sum, &[a, b]),
            4 if units.wasm => return self.f.call("llvm.wasm.dot", sum, &[a, b]),
            _ => {}
        }
        let wide = sum.with_lanes(2 * sum.lanes);
        let (a, b) = (self.f.cast("sext", a, wide), self.f.cast("sext", b, wide));
        let products = self.f.op("mul", &a, &b);
        let every_second = |from: u32| {
            let lanes = (0..sum.lanes).map(|lane| format!("i32 {}", 2 * lane + from)).collect::<Vec<_>>().join(", ");
            format!("shufflevector {products}, {wide} poison, <{} x i32> <{lanes}>", sum.lanes)
        };
        let even = self.f.emit(sum, every_second(0));
        let odd = self.f.emit(sum, every_second(1));
        self.f.op("add", &even, &odd)
    }
}

/// Which of two factors have a sign; of two that differ the one without comes first.
fn ordered(a: Val, b: Val) -> (Signs, Val, Val) {
    match (a.ty.kind.is_signed(), b.ty.kind.is_signed()) {
        (true, true) => (Signs::Both, a, b),
        (false, false) => (Signs::None, a, b),
        (false, true) => (Signs::Mixed, a, b),
        (true, false) => (Signs::Mixed, b, a),
    }
}
