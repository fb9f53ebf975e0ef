//! Neighbours that are gathered: where a statement reads `A[s + v]` and `A[s + v + 1]` in each lane of `v`, both are one load of twice the
//! width.
//!
//! ```text
//! A[s + v], A[s + v + 1]   of n lanes
//!   ->  p = A + s
//!       n loads of two elements from p + v[lane] on
//!       2 shuffles: elements with even numbers, and with odd ones
//! ```
//!
//! Interpolation reads so. An instruction that gathers loads lane by lane as well, and takes longer about it: on a Zen 4 1.2 cycles a lane
//! and element beside 0.45. `v` is often the same for many planes, of which each adds its own `s`: its lanes are taken apart outside of their
//! loop. Lanes that a mask leaves out read what the first one reads that counts.

use relaxide_ffi::{FreeVars, structural_equal};
use relaxide_ir::prim::{BinaryOp, BufferLoad, PrimExpr, PrimVisitor, add, cast, int};
use relaxide_ir::{DataType, Ref, Var};
use relaxide_tir::intrin::Intrinsic;

use super::{
    kernel::Body,
    memory::AddressBounds,
    value::{Overflow, Ty, Val},
};
use crate::{error::CodegenError, flat_index::flat_index};

/// Statements with more gathering loads than these have none of their neighbours paired: each is held against all others.
const MOST_LOADS: usize = 64;
/// A pair's bits at most: those of a general register.
const WIDEST: u32 = 64;

/// Two loads, the second of the elements behind those of the first.
#[derive(Clone, Debug)]
pub(crate) struct Pair {
    low: Ref<BufferLoad>,
    high: Ref<BufferLoad>,
    /// What is the same for all lanes of the first one's index, and what is not.
    index: SplitIndex,
}

/// A vector index as a sum.
#[derive(Clone, Debug, Default)]
struct SplitIndex {
    /// Terms that are the same in all lanes.
    scalars: Vec<PrimExpr>,
    /// The others.
    vectors: Vec<PrimExpr>,
    constant: i64,
}

impl SplitIndex {
    fn of(index: &PrimExpr) -> SplitIndex {
        let mut split = SplitIndex::default();
        split.add(index, 1);
        split
    }

    /// Adds `sign` times a term. Indices are sums that do not overflow, in whatever type.
    fn add(&mut self, term: &PrimExpr, sign: i64) {
        match term {
            PrimExpr::Broadcast(n) => self.add_scalar(&n.value, sign),
            PrimExpr::Binary(n) if n.op == BinaryOp::Add && sign == 1 => {
                self.add(&n.a, sign);
                self.add(&n.b, sign);
            }
            PrimExpr::Binary(n) if n.op == BinaryOp::Sub && is_literal(&n.b) && sign == 1 => {
                self.add(&n.a, sign);
                self.add(&n.b, -sign);
            }
            PrimExpr::Call(n) if Intrinsic::of_call(&n.op) == Some(Intrinsic::CheckedIndex) && sign == 1 => {
                self.add(&n.args[0], sign)
            }
            _ => self.vectors.push(term.clone()),
        }
    }

    fn add_scalar(&mut self, term: &PrimExpr, sign: i64) {
        match (term, term.as_int()) {
            (_, Some(n)) => self.constant += sign * n,
            (PrimExpr::Binary(n), _) if n.op == BinaryOp::Add => {
                self.add_scalar(&n.a, sign);
                self.add_scalar(&n.b, sign);
            }
            _ => self.scalars.push(cast(DataType::int(64), term.clone())),
        }
    }

    /// Whether another index is the next one in every lane.
    fn is_before(&self, other: &SplitIndex) -> bool {
        self.constant.checked_add(1) == Some(other.constant)
            && are_same(&self.vectors, &other.vectors)
            && are_same(&self.scalars, &other.scalars)
    }
}

fn is_same(a: &PrimExpr, b: &PrimExpr) -> bool {
    a == b || structural_equal(a, b, FreeVars::Same).is_ok()
}

fn are_same(a: &[PrimExpr], b: &[PrimExpr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
}

/// Whether both or neither have a predicate, the same one.
fn have_same_predicate(a: &BufferLoad, b: &BufferLoad) -> bool {
    match (&a.predicate, &b.predicate) {
        (Some(a), Some(b)) => is_same(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// Whether two loads read the same: a tree has what is needed twice twice.
fn is_same_load(a: &BufferLoad, b: &BufferLoad) -> bool {
    std::ptr::eq(a, b) || a.buffer == b.buffer && are_same(&a.indices, &b.indices) && have_same_predicate(a, b)
}

fn is_literal(e: &PrimExpr) -> bool {
    matches!(e, PrimExpr::Broadcast(n) if n.value.as_int().is_some())
}

/// The pairs of neighbours that a value gathers.
pub(super) fn pairs_of(value: &PrimExpr) -> Vec<Pair> {
    if value.dtype().lanes == 1 || value.dtype().scalable_lanes().is_some() {
        return Vec::new();
    }
    let mut gathered = Gathered::default();
    gathered.visit_prim(value);
    let loads = gathered.loads;
    if loads.len() > MOST_LOADS {
        return Vec::new();
    }
    let (mut pairs, mut taken) = (Vec::new(), vec![false; loads.len()]);
    for (at, low) in loads.iter().enumerate() {
        let next = (0..loads.len()).find(|next| low.is_before(&loads[*next]));
        if let Some(next) = next.filter(|next| !taken[at] && !taken[*next]) {
            (taken[at], taken[next]) = (true, true);
            pairs.push(Pair { low: low.load.clone(), high: loads[next].load.clone(), index: low.index.clone() });
        }
    }
    pairs
}

/// Collects the loads that gather, each once. What a scalar choice decides on is left alone: one of a pair may be read where the other
/// must not be.
#[derive(Default)]
struct Gathered {
    loads: Vec<Gather>,
    /// Names of `let`s around the place where the walk is.
    bound: Vec<Ref<Var>>,
}

/// A load that gathers.
struct Gather {
    load: Ref<BufferLoad>,
    index: SplitIndex,
    /// Names that have values where it stands.
    bound: Vec<Ref<Var>>,
}

impl Gather {
    /// Whether another reads the next element in every lane, wherever this one is read.
    fn is_before(&self, next: &Gather) -> bool {
        let (low, high) = (&self.load, &next.load);
        high.buffer == low.buffer
            && have_same_predicate(high, low)
            && self.bound == next.bound
            && self.index.is_before(&next.index)
    }
}

impl PrimVisitor for Gathered {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Call(n) if Intrinsic::of_call(&n.op) == Some(Intrinsic::IfThenElse) => {}
            PrimExpr::Load(n) if e.dtype().lanes > 1 && self.loads.len() <= MOST_LOADS => {
                let narrow = n.buffer.dtype.lanes == 1 && !n.buffer.dtype.is_packed();
                if let Some(index) = flat_index(&n.buffer, &n.indices).ok().filter(|_| narrow)
                    && super::memory::linear(&index).is_none()
                    && !self.loads.iter().any(|known| is_same_load(&known.load, n))
                {
                    self.loads.push(Gather {
                        load: n.clone(),
                        index: SplitIndex::of(&index),
                        bound: self.bound.clone(),
                    });
                }
                self.walk_prim(e);
            }
            PrimExpr::Let(n) => {
                self.visit_prim(&n.value);
                self.bound.push(n.var.clone());
                self.visit_prim(&n.body);
                self.bound.pop();
            }
            _ if e.dtype().lanes > 1 => self.walk_prim(e),
            _ => {}
        }
    }
}

impl Body<'_, '_> {
    /// The value of a load that is one of a pair of neighbours; the other's is kept for when it is asked for.
    pub(super) fn load_of_pair(&mut self, n: &BufferLoad) -> Result<Option<Val>, CodegenError> {
        if self.pairs.is_empty() || self.mask.is_some() || self.kernel.device.is_some() {
            return Ok(None);
        }
        let of_pair = |pair: &&Pair| is_same_load(&pair.low, n) || is_same_load(&pair.high, n);
        let Some(pair) = self.pairs.iter().find(of_pair).cloned() else { return Ok(None) };
        let keys = [&pair.low, &pair.high].map(|load| (PrimExpr::Load(load.clone()), self.overflow));
        let own = usize::from(!is_same_load(&pair.low, n));
        if let Some(&known) = self.memo_index.get(&keys[own]) {
            return Ok(Some(self.memo[known].1.clone()));
        }
        let buffer = &pair.low.buffer;
        let (element, base) = (self.kernel.ty(buffer.dtype)?, self.var(&buffer.data)?);
        let memory = element.in_memory();
        if memory.kind.bits() < 8 || 2 * memory.kind.bits() > WIDEST {
            return Ok(None);
        }
        // What is checked of either index.
        let mut lanes = 1;
        for load in [&pair.low, &pair.high] {
            let flat = self.flat_index(&load.buffer, &load.indices)?;
            lanes = self.index(&flat)?.ty.lanes;
        }
        let mask = self.load_predicate(&pair.low, lanes)?;
        let mask = mask.map(|mask| self.matching_mask(&mask, lanes)).transpose()?;
        let bounds = if mask.is_some() { AddressBounds::Anywhere } else { AddressBounds::InBounds };
        let start = pair.index.scalars.iter().cloned().fold(int(pair.index.constant), |sum, term| add(term, sum));
        let first = self.element_address(&base, element, &start, bounds)?;
        let mut offsets = Val::int(Ty::I64.with_lanes(lanes), 0);
        for term in &pair.index.vectors {
            let term = self.index(term)?;
            offsets = self.f.binary(BinaryOp::Add, &offsets, &term, Overflow::Never);
        }
        let metadata = self.kernel.access_metadata(&buffer.data);
        let halves = self.load_pairs(first, offsets, memory.with_lanes(lanes), mask.as_ref(), &metadata);
        let value = element.with_lanes(lanes);
        let halves = halves.map(|half| self.as_value(&half, value));
        for (key, half) in keys.into_iter().zip(&halves) {
            if !self.memo_index.contains_key(&key) {
                self.memo_index.insert(key.clone(), self.memo.len());
                self.memo.push((key, half.clone()));
            }
        }
        Ok(Some(halves[own].clone()))
    }

    /// The elements at some distances from a pointer, and those behind them; zeros in the lanes that a mask leaves out.
    fn load_pairs(&mut self, first: Val, offsets: Val, memory: Ty, mask: Option<&Val>, metadata: &str) -> [Val; 2] {
        let (element, bits) = (memory.element(), memory.kind.bits());
        let wide = Ty::signed(2 * bits);
        let (first, offsets) = match mask {
            Some(mask) => self.of_lanes_that_count(first, offsets, wide, mask),
            None => (first, offsets),
        };
        let flag = if mask.is_some() { "" } else { " inbounds" };
        let loads: Vec<Val> = (0..memory.lanes)
            .map(|lane| {
                let offset = self.f.lane(&offsets, lane);
                let at = self.f.emit(Ty::PTR, format_args!("getelementptr{flag} {element}, {first}, {offset}"));
                let align = element.kind.alignment();
                self.f.emit(wide, format_args!("load {wide}, {at}, align {align}{metadata}"))
            })
            .collect();
        let pairs = self.f.gather_lanes(&loads);
        let both = memory.with_lanes(2 * memory.lanes);
        let both = self.f.cast("bitcast", &pairs, both);
        [0, 1].map(|odd| {
            let numbers: Vec<String> = (0..memory.lanes).map(|lane| format!("i32 {}", 2 * lane + odd)).collect();
            let (lanes, numbers) = (memory.lanes, numbers.join(", "));
            let half = self
                .f
                .emit(memory, format_args!("shufflevector {both}, {} poison, <{lanes} x i32> <{numbers}>", both.ty));
            match mask {
                Some(mask) => self.f.select(mask, &half, &Val::zero(memory)),
                None => half,
            }
        })
    }

    /// A pointer and offsets of which every lane may be read: lanes that do not count read what the first one reads that does, and where
    /// there is none, a zero of the function's own.
    fn of_lanes_that_count(&mut self, first: Val, offsets: Val, wide: Ty, mask: &Val) -> (Val, Val) {
        let lanes = mask.ty.lanes;
        let any = self.f.intrinsic("vector.reduce.or", mask.ty, Ty::BOOL, &[mask]);
        let nothing = self.f.shared_slot("no pair", "i64", 1, 8);
        self.f.effect(format_args!("store {}, {nothing}, align 8", Val::zero(Ty::I64)));
        debug_assert!(wide.kind.bits() <= WIDEST);
        let mut one = self.f.lane(&offsets, lanes - 1);
        for lane in (0..lanes - 1).rev() {
            let (counts, offset) = (self.f.lane(mask, lane), self.f.lane(&offsets, lane));
            one = self.f.select(&counts, &offset, &one);
        }
        let one = self.f.select(&any, &one, &Val::int(Ty::I64, 0));
        let one = self.f.splat(&one, lanes);
        let offsets = self.f.select(mask, &offsets, &one);
        (self.f.select(&any, &first, &nothing), offsets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use relaxide_ir::Buffer;
    use relaxide_ir::prim::{broadcast, load, ramp};

    fn gather(buffer: &Ref<Buffer>, table: &Ref<Buffer>, row: i64, step: i64) -> PrimExpr {
        let places = load(table, [ramp(int(0), int(1), 8)]);
        let places = add(cast(DataType::int(64).with_lanes(8), places), broadcast(int(step), 8));
        load(buffer, [add(broadcast(int(row), 8), places)])
    }

    fn buffers() -> (Ref<Buffer>, Ref<Buffer>) {
        let length = PrimExpr::from(&Var::dim("n"));
        (Buffer::new("A", DataType::float(32), [length]), Buffer::new("places", DataType::int(32), [int(8)]))
    }

    #[test]
    fn neighbours_of_one_row_are_pairs_and_others_are_none() {
        let (a, table) = buffers();
        let sum = |x: [i64; 2], y: [i64; 2]| add(gather(&a, &table, x[0], x[1]), gather(&a, &table, y[0], y[1]));
        for (value, count) in [
            (sum([0, 0], [0, 1]), 1),
            (sum([0, 1], [0, 0]), 1),
            (sum([5, -1], [5, 0]), 1),
            (sum([0, 0], [0, 2]), 0),
            (sum([0, 0], [0, 0]), 0),
            (add(sum([0, 0], [0, 1]), sum([64, 0], [64, 1])), 2),
            (add(sum([0, 0], [0, 1]), sum([0, 2], [0, 3])), 2),
        ] {
            assert_eq!(pairs_of(&value).len(), count, "{value}");
        }
    }
}
