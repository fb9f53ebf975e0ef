//! Stores in the lanes of a mask of what is narrowed just before: no element outside of the mask is written, however few lanes it has, and whether
//! they are known when the kernel is compiled or counted when it runs.

use relaxide_ir::prim::{broadcast, cast, constant, load, lt, ramp};
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Target, Var};
use relaxide_tir::PrimFunc;
use relaxide_tir::stmt::BufferStore;

use crate::harness::{Kernels, Packed, Tensor, kernel};

/// Lanes of a vector: those of registers, fewer, and more.
const LANES: [i64; 7] = [2, 4, 8, 16, 17, 32, 64];
/// Elements of the buffer that is written: the vector begins behind the first.
const ELEMENTS: i64 = 72;
/// What stands in the bytes that are not written.
const BEFORE: u8 = 0xa5;

struct Case {
    from: DataType,
    to: DataType,
    lanes: i64,
    /// How many lanes the mask has; none where a number of the kernel says it.
    count: Option<i64>,
}

fn cases() -> Vec<Case> {
    let ints = |bits| DataType::int(bits);
    let narrowed = [
        (ints(32), ints(8)),
        (ints(32), ints(16)),
        (ints(64), ints(8)),
        (ints(64), ints(32)),
        (ints(16), DataType::uint(8)),
        (DataType::float(32), DataType::uint(8)),
        (DataType::float(32), ints(16)),
        (DataType::float(32), DataType::float(16)),
        (ints(32), DataType::bool()),
        (ints(32), ints(32)),
        (DataType::float(64), DataType::float(32)),
    ];
    let counts = |lanes: i64| [Some(1), Some(2), Some(lanes - 1), Some(lanes), None];
    let of = |(from, to): (DataType, DataType)| {
        LANES.into_iter().flat_map(move |lanes| counts(lanes).map(|count| Case { from, to, lanes, count }))
    };
    narrowed.into_iter().flat_map(of).collect()
}

impl Case {
    /// `B[1 + lane] = narrow(A[lane])` in the first lanes.
    fn kernel(&self, name: &str) -> PrimFunc {
        let (read, written) = (Buffer::new("A", self.from, [64i64]), Buffer::new("B", self.to, [ELEMENTS]));
        let number = Var::prim("n", DataType::int(64));
        let end = self.count.map_or_else(|| PrimExpr::from(&number), PrimExpr::from);
        let lanes = |first: i64| ramp(first, 1, self.lanes);
        let mask = lt(lanes(0), broadcast(end, self.lanes));
        // A sum in front keeps the conversion from being one of memory.
        let wide = load(&read, [lanes(0)]) + broadcast(constant(self.from, 1.0), self.lanes);
        let value = cast(self.to.with_lanes(self.lanes as u16), wide);
        let store = BufferStore { buffer: written.clone(), value, indices: vec![lanes(1)], predicate: Some(mask) };
        kernel(name, &[read, written], &[number], Ref::new(store).into())
    }

    fn check(&self, kernels: &Kernels, name: &str, count: i64) {
        let bytes = usize::from(self.to.bits.max(8) / 8);
        let mut tensors = [Tensor::zeros(self.from, &[64]), Tensor::zeros(self.to, &[ELEMENTS])];
        tensors[1].data.iter_mut().for_each(|word| *word = u64::from_le_bytes([BEFORE; 8]));
        let called = kernels.call(name, &mut tensors, &[Packed::int(count)]);
        called.unwrap_or_else(|(kind, message)| panic!("{kind}: {message}"));
        let one: &[u8] = match (self.to.is_float(), bytes) {
            (true, 2) => &0x3c00u16.to_le_bytes(),
            (true, _) => &1f32.to_le_bytes(),
            (false, bytes) => &1u64.to_le_bytes()[..bytes],
        };
        let element = |at: i64| if (1..=count).contains(&at) { one.to_vec() } else { vec![BEFORE; bytes] };
        let expected: Vec<u8> = (0..ELEMENTS).flat_map(element).collect();
        let what = || format!("{} to {} in {count} of {} lanes", self.from, self.to, self.lanes);
        assert_eq!(tensors[1].bytes(), expected, "{}", what());
    }
}

#[test]
fn nothing_outside_of_a_mask_is_written() {
    let cases = cases();
    let name = |at: usize| format!("stored{at}");
    let funcs: Vec<PrimFunc> = cases.iter().enumerate().map(|(at, case)| case.kernel(&name(at))).collect();
    let mut targets = vec![Target::default()];
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        targets.push("llvm -mcpu=x86-64-v3".parse().unwrap());
    }
    for target in targets {
        let kernels = Kernels::compile_for(&funcs, &target);
        for (at, case) in cases.iter().enumerate() {
            let counts = match case.count {
                Some(count) => vec![count],
                None => vec![0, 1, 3.min(case.lanes), case.lanes],
            };
            counts.into_iter().for_each(|count| case.check(&kernels, &name(at), count));
        }
    }
}
