//! Which allocations share a storage.
//!
//! Two allocations may share one if their lives do not overlap and they are in one place. There are two ways to choose; the
//! second is taken where least memory is asked for and it needs fewer bytes in all:
//!
//! - **In order**, as TVM's pass does it: an allocation takes the free storage that fits best, within a factor of 16 of its
//!   size; where none is large enough, the largest grows.
//! - **By size**: the largest allocation first, each in the smallest storage that nothing overlapping is in. Storages never
//!   grow. (Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020, section 4.3.)

use std::collections::HashMap;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{PrimExpr, free_vars};

use crate::shape::prove_equal;

/// The largest factor by which a storage may exceed what is asked of it in the first way.
const MAX_WASTE: i64 = 16;

/// The device, the memory scope, and the element type where only tensors of one type share.
pub(super) type Place = (Option<i64>, String, Option<DataType>);

/// An allocation.
#[derive(Clone)]
pub(super) struct Wanted {
    /// The binding that allocates.
    pub first: usize,
    /// The last binding that uses it.
    pub last: usize,
    /// Its size, constant or symbolic.
    pub bytes: PrimExpr,
    /// Where it may be.
    pub place: Place,
}

/// Storages, and who uses which.
pub(super) struct Assignment {
    /// The size of each.
    pub storages: Vec<PrimExpr>,
    /// The storage of each allocation, by its binding.
    pub storage_of: HashMap<usize, usize>,
}

/// Gives every allocation a storage. They come in the order of their bindings.
pub(super) fn assign(wanted: &[Wanted], least: bool) -> Assignment {
    let wanted = &alike(wanted);
    let in_order = in_order(wanted);
    if !least {
        return in_order;
    }
    let by_size = by_size(wanted);
    if constant_bytes(&by_size) < constant_bytes(&in_order) { by_size } else { in_order }
}

/// The same, where symbolic sizes that are equal are one expression. Only those of the same variables are compared: proofs are dear, and
/// allocations many.
fn alike(wanted: &[Wanted]) -> Vec<Wanted> {
    let mut known: HashMap<Vec<usize>, Vec<PrimExpr>> = HashMap::new();
    let mut alike = wanted.to_vec();
    for want in alike.iter_mut().filter(|want| want.bytes.as_int().is_none()) {
        let mut vars: Vec<usize> = free_vars(&want.bytes).iter().map(|var| Ref::as_ptr(var).addr()).collect();
        vars.sort_unstable();
        vars.dedup();
        let sizes = known.entry(vars).or_default();
        match sizes.iter().find(|size| prove_equal(size, &want.bytes)) {
            Some(size) => want.bytes = size.clone(),
            None => sizes.push(want.bytes.clone()),
        }
    }
    alike
}

/// The sum of the sizes that are constant; the others are the same either way.
fn constant_bytes(assignment: &Assignment) -> i128 {
    assignment.storages.iter().filter_map(PrimExpr::as_int).map(i128::from).sum()
}

/// A storage: its size, where it is, and the binding behind which it is free again.
struct Storage<'a> {
    bytes: PrimExpr,
    place: &'a Place,
    free_behind: usize,
}

fn in_order(wanted: &[Wanted]) -> Assignment {
    let mut storages: Vec<Storage> = Vec::new();
    let mut storage_of = HashMap::new();
    for want in wanted {
        let free = |storage: &Storage| storage.free_behind < want.first && *storage.place == want.place;
        let chosen = match best_fit(&storages, &want.bytes, free) {
            Some(found) => {
                let storage = &mut storages[found];
                if let (Some(have), Some(bytes)) = (storage.bytes.as_int(), want.bytes.as_int())
                    && bytes > have
                {
                    storage.bytes = want.bytes.clone();
                }
                storage.free_behind = want.last;
                found
            }
            None => {
                storages.push(Storage { bytes: want.bytes.clone(), place: &want.place, free_behind: want.last });
                storages.len() - 1
            }
        };
        storage_of.insert(want.first, chosen);
    }
    Assignment { storages: storages.into_iter().map(|storage| storage.bytes).collect(), storage_of }
}

/// The free storage that suits best: of those that are large enough the smallest, else the largest, which then grows.
fn best_fit(storages: &[Storage], bytes: &PrimExpr, free: impl Fn(&Storage) -> bool) -> Option<usize> {
    let candidates = storages.iter().enumerate().filter(|(_, storage)| free(storage));
    let Some(want) = bytes.as_int() else {
        return candidates.into_iter().find(|(_, storage)| storage.bytes == *bytes).map(|(i, _)| i);
    };
    let sized: Vec<(usize, i64)> = candidates
        .filter_map(|(i, storage)| Some((i, storage.bytes.as_int()?)))
        .filter(|(_, have)| *have <= want.saturating_mul(MAX_WASTE) && want <= have.saturating_mul(MAX_WASTE))
        .collect();
    let large = sized.iter().filter(|(_, have)| *have >= want).min_by_key(|(_, have)| *have);
    large.or_else(|| sized.iter().max_by_key(|(_, have)| *have)).map(|(i, _)| *i)
}

/// Allocations of symbolic size come behind the others; they share with equals only.
fn by_size(wanted: &[Wanted]) -> Assignment {
    let mut order: Vec<&Wanted> = wanted.iter().collect();
    order.sort_by_key(|want| std::cmp::Reverse(want.bytes.as_int()));
    let mut storages: Vec<Vec<&Wanted>> = Vec::new();
    for want in order {
        let overlaps = |other: &&Wanted| other.first <= want.last && want.first <= other.last;
        let fits = |storage: &Vec<&Wanted>| {
            let Some(largest) = storage.first().filter(|largest| largest.place == want.place) else { return false };
            let size = match (largest.bytes.as_int(), want.bytes.as_int()) {
                (Some(_), Some(_)) => true,
                (None, None) => largest.bytes == want.bytes,
                _ => false,
            };
            size && !storage.iter().any(overlaps)
        };
        // Storages are in descending order of size, so the last that fits is the smallest.
        match storages.iter_mut().rev().find(|storage| fits(storage)) {
            Some(storage) => storage.push(want),
            None => storages.push(vec![want]),
        }
    }
    let users = storages.iter().enumerate().flat_map(|(i, users)| users.iter().map(move |want| (want.first, i)));
    let storage_of = users.collect();
    let sizes = storages.iter().filter_map(|users| users.first()).map(|largest| largest.bytes.clone()).collect();
    Assignment { storages: sizes, storage_of }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use relaxide_ir::Var;

    fn wanted(first: usize, last: usize, bytes: impl Into<PrimExpr>) -> Wanted {
        Wanted { first, last, bytes: bytes.into(), place: (Some(0), "global".into(), None) }
    }

    fn best(sizes: &[i64], want: i64) -> Option<usize> {
        let place = (Some(0), "global".to_string(), None);
        let storage = |bytes: &i64| Storage { bytes: PrimExpr::from(*bytes), place: &place, free_behind: 0 };
        best_fit(&sizes.iter().map(storage).collect::<Vec<_>>(), &PrimExpr::from(want), |_| true)
    }

    #[test]
    fn a_fitting_storage_is_preferred_to_one_that_must_grow() {
        assert_eq!(best(&[64, 128, 100], 96), Some(2));
        assert_eq!(best(&[64, 128, 100], 200), Some(1));
        assert_eq!(best(&[64, 128, 100], 10_000), None);
    }

    #[test]
    fn symbolic_sizes_share_only_where_they_are_equal() {
        let n = PrimExpr::from(Var::prim("n", DataType::int(64)));
        let all = alike(&[wanted(0, 1, n.clone() * 4), wanted(2, 3, n.clone() * 8), wanted(4, 5, n * 4)]);
        for plan in [in_order(&all), by_size(&all)] {
            assert_eq!(plan.storages.len(), 2);
            assert_eq!(plan.storage_of[&0], plan.storage_of[&4]);
        }
    }

    #[test]
    fn the_way_that_needs_less_is_taken() {
        // In order, the small one takes the storage of the first large one from the second.
        let all = [wanted(0, 1, 100), wanted(2, 4, 10), wanted(3, 5, 100)];
        assert_eq!((constant_bytes(&in_order(&all)), constant_bytes(&assign(&all, true))), (200, 110));
    }

    proptest! {
        #[test]
        fn what_overlaps_does_not_share(lives in prop::collection::vec((0usize..40, 0usize..10, 1i64..1000, 0i64..2), 1..40)) {
            let mut all: Vec<Wanted> = lives
                .iter()
                .enumerate()
                .map(|(i, (_, length, bytes, device))| Wanted {
                    place: (Some(*device), "global".into(), None),
                    ..wanted(i, i + length, *bytes)
                })
                .collect();
            all.sort_by_key(|want| want.first);
            for plan in [in_order(&all), by_size(&all)] {
                for (i, a) in all.iter().enumerate() {
                    let storage = plan.storage_of[&a.first];
                    prop_assert!(plan.storages[storage].as_int() >= a.bytes.as_int());
                    for b in &all[i + 1..] {
                        let apart = a.last < b.first || b.last < a.first;
                        prop_assert!(plan.storage_of[&b.first] != storage || (apart && a.place == b.place));
                    }
                }
            }
        }
    }
}
