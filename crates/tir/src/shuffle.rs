//! Intrinsics that put lanes of vectors together anew: which lane of the result is which lane of which argument.

use relaxide_ir::prim::{PrimCall, PrimExpr};

use crate::intrin::Intrinsic;

/// A lane of an argument.
#[derive(Clone, Copy, Debug)]
pub struct ShuffledLane<'c> {
    /// The argument.
    pub vector: &'c PrimExpr,
    /// Its lane.
    pub lane: usize,
}

/// What each lane of a call's result is; `None` where the call puts no lanes together, or names some that are not there.
pub fn shuffled_lanes(call: &PrimCall) -> Option<Vec<ShuffledLane<'_>>> {
    let lanes = |e: &PrimExpr| usize::from(e.dtype().lanes.max(1));
    if call.dtype.scalable_lanes().is_some() || call.args.iter().any(|a| a.dtype().scalable_lanes().is_some()) {
        return None;
    }
    let wanted = usize::from(call.dtype.lanes.max(1));
    let (vectors, numbers): (Vec<&PrimExpr>, Vec<usize>) = match (Intrinsic::of_call(&call.op)?, call.args.as_slice()) {
        (Intrinsic::VectorLow, [vector]) => (vec![vector], (0..lanes(vector) / 2).collect()),
        (Intrinsic::VectorHigh, [vector]) => (vec![vector], (lanes(vector) / 2..lanes(vector)).collect()),
        (Intrinsic::VectorCombine, [low, high]) => (vec![low, high], (0..lanes(low) + lanes(high)).collect()),
        (Intrinsic::Shuffle, [count, rest @ ..]) => {
            let count = usize::try_from(count.as_int()?).ok()?;
            let (vectors, numbers) = rest.split_at_checked(count)?;
            let number = |e: &PrimExpr| usize::try_from(e.as_int()?).ok();
            (vectors.iter().collect(), numbers.iter().map(number).collect::<Option<_>>()?)
        }
        _ => return None,
    };
    let all: Vec<ShuffledLane<'_>> = vectors
        .into_iter()
        .flat_map(|vector| (0..lanes(vector)).map(move |lane| ShuffledLane { vector, lane }))
        .collect();
    let alike = all.iter().all(|p| p.vector.dtype().element() == call.dtype.element());
    let taken: Vec<ShuffledLane<'_>> = numbers.into_iter().map(|at| all.get(at).copied()).collect::<Option<_>>()?;
    (alike && taken.len() == wanted).then_some(taken)
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::DataType;
    use relaxide_ir::prim;

    use super::*;

    #[test]
    fn lanes_are_counted_through_all_vectors() {
        let i32 = DataType::int(32);
        let one = || prim::int_of(i32, 1);
        let (a, b) = (prim::ramp(prim::int_of(i32, 0), one(), 4), prim::ramp(prim::int_of(i32, 10), one(), 4));
        let numbers = |list: &[i64]| list.iter().map(|n| prim::int_of(i32, *n)).collect::<Vec<_>>();
        let shuffle = |lanes, list: &[i64]| {
            let args = [prim::int_of(i32, 2), a.clone(), b.clone()].into_iter().chain(numbers(list)).collect();
            prim::call(i32.with_lanes(lanes), "tirx.shuffle", args)
        };
        let lanes = |e: &PrimExpr| match e {
            PrimExpr::Call(call) => shuffled_lanes(call).map(|all| all.iter().map(|p| p.lane).collect::<Vec<_>>()),
            _ => None,
        };
        assert_eq!(lanes(&shuffle(3, &[0, 5, 7])), Some(vec![0, 1, 3]));
        assert_eq!(lanes(&shuffle(1, &[8])), None);
        assert_eq!(lanes(&shuffle(2, &[1])), None);
        let high = prim::call(i32.with_lanes(2), "tirx.vectorhigh", vec![a.clone()]);
        assert_eq!(lanes(&high), Some(vec![2, 3]));
    }
}
