//! Neighbours that are gathered together: the elements are those that two loads read, and nothing else is touched.
//!
//! Each kernel is `B[lane] = 2 * A[row + place] + A[row + place + 1]` over a table of places, in all lanes or in those that a number decides. Places of
//! lanes that are left out lie far outside of the buffer, and would end the process.

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use relaxide_ir::prim::BufferLoad;
use relaxide_ir::{Buffer, DataType, PrimExpr, Ref, Target, Var, prim};
use relaxide_tir::{BufferStore, PrimFunc, Stmt};

use crate::harness::{Kernels, Packed, Tensor, kernel};

/// Kernels that are compiled together.
const KERNELS: usize = 24;
/// Elements of a row, and rows.
const ROW: i64 = 37;
const ROWS: i64 = 3;

#[derive(Clone, Debug)]
struct Case {
    dtype: DataType,
    lanes: i64,
    /// Whether the second of the pair is asked for first.
    is_swapped: bool,
    is_masked: bool,
    places: Vec<i32>,
}

impl Case {
    fn any() -> impl Strategy<Value = Case> {
        let dtypes = [
            DataType::float(32),
            DataType::float(32),
            DataType::int(32),
            DataType::int(16),
            DataType::int(8),
            DataType::int(64),
        ];
        let lanes = prop_oneof![(1..5u32).prop_map(|n| 1i64 << n), 2..20i64];
        let parts = (0..dtypes.len(), lanes, any::<[bool; 2]>(), proptest::collection::vec(0..ROW as i32 - 1, 20));
        parts.prop_map(move |(dtype, lanes, [is_swapped, is_masked], places)| Case {
            dtype: dtypes[dtype],
            lanes,
            is_swapped,
            is_masked,
            places: places[..lanes as usize].to_vec(),
        })
    }

    fn kernel(&self, name: &str) -> PrimFunc {
        let (count, wide) = (self.lanes, DataType::int(64));
        let read = Buffer::new("A", self.dtype, [ROW * ROWS]);
        let table = Buffer::new("places", DataType::int(32), [count]);
        let written = Buffer::new("B", self.dtype, [ROWS * count]);
        let (number, row) = (Var::prim("r", wide), Var::dim("row"));
        let all = |e: PrimExpr| prim::broadcast(e, count);
        let lanes = prim::ramp(0, 1, count);
        let mask = self.is_masked.then(|| prim::lt(lanes, all(PrimExpr::from(&number))));
        let at = |step: i64| {
            let place = prim::load(&table, [prim::ramp(0, 1, count)]);
            let place = prim::cast(wide.with_lanes(count as u16), place) + all(prim::int(step));
            let indices = vec![all(PrimExpr::from(&row) * ROW) + place];
            PrimExpr::Load(Ref::new(BufferLoad { buffer: read.clone(), indices, predicate: mask.clone() }))
        };
        let two = all(prim::constant(self.dtype, 2.0));
        let value = if self.is_swapped { at(1) + at(0) * two } else { at(0) * two + at(1) };
        let indices = vec![prim::ramp(PrimExpr::from(&row) * count, 1, count)];
        let store = BufferStore { buffer: written.clone(), value, indices, predicate: mask };
        let body = Stmt::serial(row, ROWS, Ref::new(store).into());
        kernel(name, &[read, table, written], &[number], body)
    }

    /// A number of the element's type that a buffer of such elements begins or goes on with.
    fn bytes_of(&self, value: i64) -> Vec<u8> {
        match self.dtype.is_float() {
            true => (value as f32).to_le_bytes().to_vec(),
            false => value.to_le_bytes()[..usize::from(self.dtype.bits / 8)].to_vec(),
        }
    }

    fn check(&self, kernels: &Kernels, name: &str, count: i64) {
        let tensor = |dtype: DataType, length: i64, bytes: Vec<u8>| {
            let mut tensor = Tensor::zeros(dtype, &[length]);
            let padded: Vec<u8> = bytes.iter().copied().chain([0; 8]).collect();
            for (word, eight) in tensor.data.iter_mut().zip(padded.chunks_exact(8)) {
                *word = u64::from_le_bytes(eight.try_into().unwrap());
            }
            tensor
        };
        let element = |at: i64| at % 41;
        let counts = |lane: i64| !self.is_masked || lane < count;
        let place = |lane: i64| if counts(lane) { self.places[lane as usize] } else { i32::MAX - lane as i32 };
        let read = (0..ROW * ROWS).flat_map(|at| self.bytes_of(element(at))).collect();
        let table = (0..self.lanes).flat_map(|lane| place(lane).to_le_bytes()).collect();
        let mut tensors = [
            tensor(self.dtype, ROW * ROWS, read),
            tensor(DataType::int(32), self.lanes, table),
            Tensor::zeros(self.dtype, &[ROWS * self.lanes]),
        ];
        let called = kernels.call(name, &mut tensors, &[Packed::int(count)]);
        called.unwrap_or_else(|(kind, message)| panic!("{kind}: {message} ({self:?})"));
        let wanted = |row: i64, lane: i64| {
            let first = row * ROW + i64::from(place(lane));
            if counts(lane) { 2 * element(first) + element(first + 1) } else { 0 }
        };
        let expected: Vec<u8> =
            (0..ROWS).flat_map(|row| (0..self.lanes).flat_map(move |lane| self.bytes_of(wanted(row, lane)))).collect();
        assert_eq!(tensors[2].bytes(), expected, "{self:?} with {count}");
    }
}

/// Processors whose code this one can run.
fn targets() -> Vec<Target> {
    let mut targets = vec![Target::default()];
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        targets.extend(["llvm -mcpu=x86-64", "llvm -mcpu=x86-64-v3"].map(|t| t.parse().unwrap()));
    }
    targets
}

#[test]
fn neighbours_are_read_together_and_nothing_in_lanes_that_are_left_out() {
    let mut runner = TestRunner::default();
    let cases: Vec<Case> = (0..KERNELS).map(|_| Case::any().new_tree(&mut runner).unwrap().current()).collect();
    let name = |at: usize| format!("pairs{at}");
    let funcs: Vec<PrimFunc> = cases.iter().enumerate().map(|(at, case)| case.kernel(&name(at))).collect();
    for target in targets() {
        let kernels = Kernels::compile_for(&funcs, &target);
        for (at, case) in cases.iter().enumerate() {
            for count in [case.lanes, case.lanes / 2, 1, 0] {
                case.check(&kernels, &name(at), count);
            }
        }
    }
}
