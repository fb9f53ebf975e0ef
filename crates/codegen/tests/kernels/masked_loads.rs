//! Choices over vectors of several registers: some registers are wholly in, some wholly out, some divided, and a number decides besides.
//!
//! A lane that is out gives zero. What LLVM reads there in spite of the mask shows, since the buffer goes on with other numbers.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use relaxide_ir::{Buffer, DataType, PrimExpr, Target, Var, prim};
use relaxide_tir::{PrimFunc, Stmt};

use crate::harness::{Kernels, Packed, Tensor, kernel};

/// Kernels that are compiled together.
const KERNELS: usize = 40;
/// Elements of the buffer that is read.
const ELEMENTS: i64 = 200;
/// What the number is compared with.
const LIMIT: i64 = 21;

#[derive(Clone, Debug)]
struct Case {
    dtype: DataType,
    lanes: i64,
    /// The lanes that are in.
    inside: std::ops::Range<i64>,
    stride: i64,
    /// Whether a number that the kernel is given decides besides.
    asks: bool,
    /// Whether integers are widened to 32 bits behind the load.
    widens: bool,
}

impl Case {
    fn any() -> impl Strategy<Value = Case> {
        let dtypes = [
            DataType::float(32),
            DataType::float(64),
            DataType::int(32),
            DataType::int(64),
            DataType::int(16),
            DataType::uint(8),
        ];
        // Whole registers, a few lanes more or less, and all sorts.
        let lanes = prop_oneof![3 => (0..4u32).prop_map(|n| 8i64 << n), 1 => 2..9i64, 1 => 9..70i64];
        let parts = (0..dtypes.len(), lanes, 0..=64i64, 0..=64i64, 0..4usize, any::<[bool; 3]>());
        parts.prop_map(move |(dtype, lanes, a, b, stride, [asks, is_even, widens])| {
            let step = if is_even { 4 } else { 1 };
            let bound = |at: i64| at * lanes / 64 / step * step;
            let inside = bound(a.min(b))..bound(a.max(b));
            let widens = widens && dtypes[dtype].bits < 32;
            Case { dtype: dtypes[dtype], lanes, inside, stride: [1, 1, -1, 2][stride], asks, widens }
        })
    }

    /// The element that a lane reads.
    fn element(&self, lane: i64) -> i64 {
        if self.stride < 0 { ELEMENTS - 1 - lane } else { self.stride * lane }
    }

    /// The type of what is stored.
    fn stored(&self) -> DataType {
        if self.widens { DataType::int(32) } else { self.dtype }
    }

    /// `B[lanes] = if inside { A[..] } else { 0 }`
    fn kernel(&self, name: &str) -> PrimFunc {
        let read = Buffer::new("A", self.dtype, [ELEMENTS]);
        let written = Buffer::new("B", self.stored(), [self.lanes]);
        let number = Var::prim("r", DataType::int(64));
        let count = self.lanes;
        let all = |value: i64| prim::broadcast(value, count);
        let lanes = prim::ramp(0, 1, count);
        let mut inside =
            prim::and(prim::ge(lanes.clone(), all(self.inside.start)), prim::lt(lanes.clone(), all(self.inside.end)));
        if self.asks {
            let below = prim::lt(PrimExpr::from(&number), LIMIT);
            inside = prim::and(prim::broadcast(below, count), inside);
        }
        let value = prim::load(&read, [prim::ramp(self.element(0), self.stride, count)]);
        let nothing = prim::broadcast(prim::constant(self.dtype, 0.0), count);
        let chosen = prim::if_then_else(inside, value, nothing);
        let body = Stmt::store(&written, [lanes], prim::cast(self.stored().with_lanes(count as u16), chosen));
        kernel(name, &[read, written], &[number], body)
    }

    fn check(&self, kernels: &Kernels, name: &str, number: i64) {
        let bytes = usize::from(self.dtype.bits / 8);
        // Every byte of an element is the same, and none is zero.
        let mut read = Tensor::zeros(self.dtype, &[ELEMENTS]);
        let pattern = |element: i64| (element % 250 + 1) as u8;
        let filled: Vec<u8> = (0..ELEMENTS).flat_map(|e| vec![pattern(e); bytes]).collect();
        for (word, eight) in read.data.iter_mut().zip(filled.chunks(8)) {
            *word = u64::from_le_bytes(eight.try_into().unwrap());
        }
        let mut tensors = [read, Tensor::zeros(self.stored(), &[self.lanes])];
        let called = kernels.call(name, &mut tensors, &[Packed::int(number)]);
        called.unwrap_or_else(|(kind, message)| panic!("{kind}: {message} ({self:?})"));
        let counts = |lane: &i64| self.inside.contains(lane) && (!self.asks || number < LIMIT);
        let wanted = |lane: i64| if counts(&lane) { pattern(self.element(lane)) } else { 0 };
        let element = |lane: i64| match (self.widens, vec![wanted(lane); bytes]) {
            (false, bytes) => bytes,
            (true, bytes) => match bytes[..] {
                [byte] => i32::from(byte).to_le_bytes().to_vec(),
                _ => i32::from(i16::from_le_bytes([bytes[0], bytes[1]])).to_le_bytes().to_vec(),
            },
        };
        let expected: Vec<u8> = (0..self.lanes).flat_map(element).collect();
        assert_eq!(tensors[1].bytes(), expected, "{self:?} with {number}");
    }
}

/// Processors whose code this one can run.
fn targets() -> Vec<Target> {
    let mut targets = vec![Target::default()];
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        targets.extend(
            ["llvm -mcpu=x86-64", "llvm -mcpu=sandybridge", "llvm -mcpu=x86-64-v3"].map(|t| t.parse().unwrap()),
        );
    }
    targets
}

#[test]
fn what_a_choice_leaves_out_of_a_long_vector_is_not_read() {
    let mut runner = TestRunner::default();
    let cases: Vec<Case> = (0..KERNELS).map(|_| Case::any().new_tree(&mut runner).unwrap().current()).collect();
    let name = |at: usize| format!("choice{at}");
    let funcs: Vec<PrimFunc> = cases.iter().enumerate().map(|(at, case)| case.kernel(&name(at))).collect();
    for target in targets() {
        let kernels = Kernels::compile_for(&funcs, &target);
        for (at, case) in cases.iter().enumerate() {
            for number in [LIMIT - 1, LIMIT] {
                case.check(&kernels, &name(at), number);
            }
        }
    }
}
