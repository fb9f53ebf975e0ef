//! A square of vectors transposed in registers.
//!
//! ```text
//! a0 a1 a2 a3        a0 b0 a1 b1   (a and b in turn, lower)       a0 b0 c0 d0
//! b0 b1 b2 b3   ->   a2 b2 a3 b3   (upper)                   ->   a1 b1 c1 d1
//! c0 c1 c2 c3        c0 d0 c1 d1                                  a2 b2 c2 d2
//! d0 d1 d2 d3        c2 d2 c3 d3                                  a3 b3 c3 d3
//! ```
//!
//! Larger squares are squares of such: each is transposed, then those across the diagonal change places, pair by pair at each distance.
//! A vector takes as many instructions as its number of lanes has bits, each of which picks lanes of two vectors.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::prim::{PrimExpr, call, int};

use crate::Stmt;

/// Lanes from which a square in registers is fewer instructions than its elements.
pub const LEAST_SIDE: i64 = 4;

/// Lanes of the squares that are transposed by taking vectors in turn.
const SMALL: usize = 4;

/// The columns of a square of vectors, which have as many lanes as there are, a power of two; and the statements that name them.
pub fn columns(rows: Vec<PrimExpr>) -> (Vec<Stmt>, Vec<PrimExpr>) {
    let mut square = Square { size: rows.len(), binds: Vec::new() };
    let mut vectors: Vec<PrimExpr> = rows.into_iter().map(|row| square.named(row)).collect();
    let small = square.size.min(SMALL);
    if small == SMALL {
        for first in (0..square.size).step_by(SMALL) {
            square.transpose_small(&mut vectors[first..first + SMALL]);
        }
    }
    let mut distance = if small == SMALL { SMALL } else { 1 };
    while distance < square.size {
        for i in (0..square.size).filter(|i| i & distance == 0) {
            let (a, b) = (vectors[i].clone(), vectors[i | distance].clone());
            vectors[i] =
                square.pick(&a, &b, |lane| if lane & distance == 0 { (0, lane) } else { (1, lane ^ distance) });
            vectors[i | distance] =
                square.pick(&a, &b, |lane| if lane & distance == 0 { (0, lane | distance) } else { (1, lane) });
        }
        distance *= 2;
    }
    (square.binds, vectors)
}

struct Square {
    /// Vectors, and lanes of each.
    size: usize,
    binds: Vec<Stmt>,
}

impl Square {
    /// Four vectors: of each four lanes of them, the columns.
    fn transpose_small(&mut self, vectors: &mut [PrimExpr]) {
        let [a, b, c, d] = vectors else { return };
        let low = |lane: usize| (lane % 2, lane / SMALL * SMALL + lane % SMALL / 2);
        let high = |lane: usize| (lane % 2, lane / SMALL * SMALL + 2 + lane % SMALL / 2);
        let (upper, lower) =
            ([self.pick(a, b, low), self.pick(a, b, high)], [self.pick(c, d, low), self.pick(c, d, high)]);
        let first = |lane: usize| (lane % SMALL / 2, lane / SMALL * SMALL + lane % 2);
        let second = |lane: usize| (lane % SMALL / 2, lane / SMALL * SMALL + 2 + lane % 2);
        let [from_low, from_high] = [0, 1].map(|half| (&upper[half], &lower[half]));
        *a = self.pick(from_low.0, from_low.1, first);
        *b = self.pick(from_low.0, from_low.1, second);
        *c = self.pick(from_high.0, from_high.1, first);
        *d = self.pick(from_high.0, from_high.1, second);
    }

    /// A vector whose lanes are those of two others: which one, and its lane.
    fn pick(&mut self, a: &PrimExpr, b: &PrimExpr, of: impl Fn(usize) -> (usize, usize)) -> PrimExpr {
        let lanes = (0..self.size).map(|lane| {
            let (vector, lane) = of(lane);
            int((vector * self.size + lane) as i64)
        });
        let args = [int(2), a.clone(), b.clone()].into_iter().chain(lanes).collect();
        self.named(call(a.dtype(), "tirx.shuffle", args))
    }

    fn named(&mut self, value: PrimExpr) -> PrimExpr {
        let var: Ref<Var> = Var::prim("v", value.dtype());
        self.binds.push(Stmt::bind(var.clone(), value));
        PrimExpr::from(&var)
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::prim::ramp;

    use super::*;
    use crate::shuffle::shuffled_lanes;

    /// Follows each lane back to the row and the lane that it came from.
    fn origins(size: usize) -> Vec<Vec<i64>> {
        let rows = (0..size).map(|row| ramp(int((row * size) as i64), int(1), size as i64)).collect();
        let (binds, columns) = columns(rows);
        let mut known: std::collections::HashMap<Ref<Var>, Vec<i64>> = std::collections::HashMap::new();
        for (at, bind) in binds.iter().enumerate() {
            let Stmt::Bind(bind) = bind else { panic!("{bind:?}") };
            let lanes = match &bind.value {
                PrimExpr::Call(call) => shuffled_lanes(call)
                    .unwrap()
                    .iter()
                    .map(|lane| match lane.vector {
                        PrimExpr::Var(var) => known[var][lane.lane],
                        other => panic!("{other:?}"),
                    })
                    .collect(),
                _ => (0..size).map(|lane| (at * size + lane) as i64).collect(),
            };
            known.insert(bind.var.clone(), lanes);
        }
        let of = |e: &PrimExpr| match e {
            PrimExpr::Var(var) => known[var].clone(),
            other => panic!("{other:?}"),
        };
        columns.iter().map(of).collect()
    }

    #[test]
    fn columns_have_a_lane_of_each_row() {
        for size in [1, 2, 4, 8, 16, 32] {
            for (column, lanes) in origins(size).into_iter().enumerate() {
                let expected: Vec<i64> = (0..size).map(|row| (row * size + column) as i64).collect();
                assert_eq!(lanes, expected, "column {column} of {size}");
            }
        }
    }
}
