//! Loads of elements that are a small constant apart: the vectors of neighbours under them, and shuffles.
//!
//! ```text
//! lanes 0 .. n of  A[first + s * lane]
//!   ->  s vectors of n neighbours from first on, of which the last ends with the last lane's element
//!       s - 1 shuffles of two vectors, each of which adds the lanes of one more
//! ```
//!
//! They read nothing in front of the first element and nothing behind the last. Lane by lane there would be `n` loads and about as many
//! insertions.

use super::{
    kernel::Body,
    memory::MemoryAccess,
    value::{Ty, Val},
};

/// Where the lanes of a strided load lie in the vectors under them.
struct Neighbours {
    lanes: i64,
    stride: i64,
}

impl Neighbours {
    /// The element, counted from the first, that a vector begins with.
    fn start(&self, vector: i64) -> i64 {
        if vector + 1 < self.stride { vector * self.lanes } else { (self.lanes - 1) * self.stride + 1 - self.lanes }
    }

    /// The first vector that has a lane's element, and its place there.
    fn place(&self, lane: i64) -> (i64, i64) {
        let element = lane * self.stride;
        let vector = (element / self.lanes).min(self.stride - 1);
        (vector, element - self.start(vector))
    }

    /// For each place of a vector the lane whose element it is.
    fn lanes_of(&self, vector: i64) -> Vec<Option<i64>> {
        let mut all = vec![None; self.lanes as usize];
        for lane in 0..self.lanes {
            if let (of, place) = self.place(lane)
                && of == vector
            {
                all[place as usize] = Some(lane);
            }
        }
        all
    }
}

impl Body<'_, '_> {
    /// Every `stride`th element from a pointer on.
    pub(super) fn load_strided(&mut self, first: &Val, stride: i64, access: &MemoryAccess) -> Val {
        let under = Neighbours { lanes: i64::from(access.memory.lanes), stride };
        let vector = |body: &mut Self, at| {
            let pointer = body.neighbours(first, &under, at, access);
            body.load_at(&pointer, access.memory, access)
        };
        self.merged(&under, access.memory, vector)
    }

    /// The same in the lanes of a mask, with masked loads of the elements that are chosen and none between them.
    pub(super) fn masked_load_strided(&mut self, first: &Val, stride: i64, access: &MemoryAccess, mask: &Val) -> Val {
        let under = Neighbours { lanes: i64::from(access.memory.lanes), stride };
        let nobody = Val::zero(mask.ty);
        let vector = |body: &mut Self, at| {
            let pointer = body.neighbours(first, &under, at, access);
            let wanted = under.lanes_of(at).into_iter().map(|lane| lane.unwrap_or(under.lanes));
            let mask = body.shuffled(mask, &nobody, wanted);
            body.masked_load_at(&pointer, access.memory, &mask)
        };
        self.merged(&under, access.memory, vector)
    }

    /// Where a vector begins.
    fn neighbours(&mut self, first: &Val, under: &Neighbours, vector: i64, access: &MemoryAccess) -> Val {
        let start = Val::int(Ty::I64, under.start(vector));
        self.element_pointer(first, access.memory.element(), &start, access.bounds)
    }

    /// The lanes of all vectors.
    fn merged(&mut self, under: &Neighbours, memory: Ty, mut vector: impl FnMut(&mut Self, i64) -> Val) -> Val {
        let mut all = vector(self, 0);
        for next in 1..under.stride {
            let more = vector(self, next);
            let chosen = (0..under.lanes).map(|lane| match under.place(lane) {
                (of, place) if of == next => under.lanes + place,
                // After the first shuffle, lanes that have been found are where they belong.
                (0, place) if next == 1 => place,
                _ => lane,
            });
            debug_assert_eq!(all.ty, memory);
            all = self.shuffled(&all, &more, chosen);
        }
        all
    }

    /// Elements of two vectors by number, those of the second counted on.
    fn shuffled(&mut self, a: &Val, b: &Val, lanes: impl Iterator<Item = i64>) -> Val {
        let numbers = lanes.map(|at| format!("i32 {at}")).collect::<Vec<_>>();
        let (lanes, numbers) = (numbers.len(), numbers.join(", "));
        self.f.emit(a.ty, format_args!("shufflevector {a}, {b}, <{lanes} x i32> <{numbers}>"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_every_lane_once_and_reach_from_the_first_element_to_the_last() {
        for stride in 2..=8 {
            for lanes in [4, 8, 16, 64].into_iter().filter(|n| *n >= stride) {
                let under = Neighbours { lanes, stride };
                assert_eq!(under.start(0), 0);
                assert_eq!(under.start(stride - 1) + lanes, (lanes - 1) * stride + 1);
                let mut seen: Vec<i64> = (0..stride).flat_map(|v| under.lanes_of(v)).flatten().collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..lanes).collect::<Vec<_>>(), "{lanes} lanes, every {stride}th element");
                for lane in 0..lanes {
                    let (vector, place) = under.place(lane);
                    assert!((0..lanes).contains(&place));
                    assert_eq!(under.start(vector) + place, lane * stride);
                }
            }
        }
    }
}
