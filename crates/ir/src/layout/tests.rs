//! Layouts against direct evaluation: what operations make places every element of small shapes where the definition says.

use proptest::prelude::*;
use relaxide_ffi::{DataType, Ref};

use super::apply::Places;
use super::group::{group, group_by_many};
use super::slice::DimSlice;
use super::*;
use crate::prim::{self, BinaryOp};
use crate::{PrimExpr, Var};

fn int(value: i64) -> PrimExpr {
    prim::int_of(DataType::int(32), value)
}

fn ints(values: &[i64]) -> Vec<PrimExpr> {
    values.iter().map(|value| int(*value)).collect()
}

/// An iterator as numbers.
#[derive(Clone, Debug)]
struct Step {
    extent: i64,
    stride: i64,
    axis: &'static str,
}

fn layout_of(shard: &[Step], offsets: &[(&'static str, i64)]) -> TileLayout {
    let iters = |of: &[Step]| of.iter().map(|s| Iter::new(int(s.extent), int(s.stride), &Axis::get(s.axis))).collect();
    let offsets = offsets.iter().map(|(axis, value)| (Axis::get(axis), int(*value))).collect();
    TileLayout::new(iters(shard), Vec::new(), offsets)
}

fn steps(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Step>> {
    let axis = prop::sample::select(vec!["m", "m", "laneid", "warpid"]);
    let step = (1..5i64, 0..9i64, axis).prop_map(|(extent, stride, axis)| Step { extent, stride, axis });
    prop::collection::vec(step, lengths)
}

fn offsets() -> impl Strategy<Value = Vec<(&'static str, i64)>> {
    prop::collection::vec((prop::sample::select(vec!["m", "laneid"]), 0..9i64), 0..2)
}

/// The value of an expression whose variables have values.
fn value_of(e: &PrimExpr, vars: &[(Ref<Var>, i64)]) -> i64 {
    match e {
        PrimExpr::Int(imm) => imm.value,
        PrimExpr::Var(var) => vars.iter().find(|(known, _)| known == var).expect("a variable of the test").1,
        PrimExpr::Binary(n) => {
            let op: BinaryOp = n.op;
            prim::fold(op, value_of(&n.a, vars), value_of(&n.b, vars)).expect("an operation on small numbers")
        }
        PrimExpr::Let(n) => {
            let mut inner = vars.to_vec();
            inner.push((n.var.clone(), value_of(&n.value, vars)));
            value_of(&n.body, &inner)
        }
        PrimExpr::Call(n) => {
            let (a, b) = (value_of(&n.args[0], vars), value_of(&n.args[1], vars));
            match n.op.as_str() {
                "tirx.bitwise_and" => a & b,
                "tirx.bitwise_xor" => a ^ b,
                "tirx.shift_left" => a << b,
                "tirx.shift_right" => a >> b,
                other => panic!("{other} is not expected in an address"),
            }
        }
        other => panic!("{other} is not expected in an address"),
    }
}

/// Places that are not zero, by axis.
fn numbers(places: &Places, vars: &[(Ref<Var>, i64)]) -> Vec<(String, i64)> {
    let mut numbers: Vec<_> = places.iter().map(|(axis, e)| (axis.name.clone(), value_of(e, vars))).collect();
    numbers.retain(|(_, value)| *value != 0);
    numbers.sort();
    numbers
}

fn at(layout: &Layout, index: i64) -> Vec<(String, i64)> {
    numbers(&layout.apply_flat(&int(index)).expect("a layout with an address"), &[])
}

fn sum(a: Vec<(String, i64)>, b: Vec<(String, i64)>) -> Vec<(String, i64)> {
    let mut sum = a;
    for (axis, value) in b {
        match sum.iter_mut().find(|(known, _)| *known == axis) {
            Some((_, known)) => *known += value,
            None => sum.push((axis, value)),
        }
    }
    sum.sort();
    sum
}

fn count(shape: &[i64]) -> i64 {
    shape.iter().product()
}

/// All coordinates of a shape.
fn coordinates(shape: &[i64]) -> impl Iterator<Item = Vec<i64>> {
    (0..count(shape)).map(move |index| {
        let split = split(&int(index), &ints(shape));
        split.iter().map(|part| part.as_int().expect("a number")).collect()
    })
}

fn permuted(address: i64, layout: &ComposeLayout) -> i64 {
    let low = address & ((1 << layout.per_element) - 1);
    let q = address >> layout.per_element;
    let q = match layout.swizzle_inner {
        true => q ^ ((q & layout.outer_mask) >> layout.atom_len),
        false => q ^ ((q & layout.inner_mask) << layout.atom_len),
    };
    (q << layout.per_element) + low
}

proptest! {
    #[test]
    fn a_canonical_form_places_elements_alike(shard in steps(1..5), offsets in offsets()) {
        let layout = Layout::from(layout_of(&shard, &offsets));
        let canonical = layout.canonical(Counting::Unknown).unwrap();
        let size = count(&shard.iter().map(|s| s.extent).collect::<Vec<_>>());
        for index in 0..size {
            prop_assert_eq!(at(&layout, index), at(&canonical, index), "{} and {}", layout, canonical);
        }
        let again = canonical.canonical(Counting::Unknown).unwrap();
        prop_assert_eq!(again.to_string(), canonical.to_string());
    }

    #[test]
    fn axes_of_threads_that_become_one_name_the_same_threads(lanes in 2..33i64, warps in 2..5i64, groups in 2..4i64) {
        let shard = [
            Step { extent: groups, stride: 1, axis: "wgid" },
            Step { extent: warps, stride: 1, axis: "wid_in_wg" },
            Step { extent: lanes, stride: 1, axis: "laneid" },
        ];
        let layout = Layout::from(layout_of(&shard, &[]));
        let one = layout.canonical(Counting::Warps).unwrap();
        for index in 0..groups * warps * lanes {
            let places = at(&layout, index);
            let place = |name: &str| places.iter().find(|(axis, _)| axis == name).map_or(0, |(_, value)| *value);
            let thread = place("wgid") * 128 + place("wid_in_wg") * 32 + place("laneid");
            let expected: Vec<_> = [("tx".to_string(), thread)].into_iter().filter(|(_, value)| *value != 0).collect();
            prop_assert_eq!(at(&one, index), expected, "{}", one);
        }
    }

    #[test]
    fn groups_have_the_extents_of_the_shape(shard in steps(1..5), cut in 0..5usize) {
        let layout = layout_of(&shard, &[]);
        let (outer, inner) = shard.split_at(cut.min(shard.len()));
        let shape = [outer, inner].map(|part| count(&part.iter().map(|s| s.extent).collect::<Vec<_>>()));
        let grouped = group(&layout, &ints(&shape)).unwrap();
        for (iters, dim) in grouped.groups().zip(shape) {
            let extents: Vec<_> = iters.iter().map(|iter| iter.extent.as_int().unwrap()).collect();
            prop_assert_eq!(count(&extents), dim);
        }
        let refined = group_by_many(&layout, &[ints(&shape), vec![int(count(&shape))]]).unwrap();
        for index in 0..count(&shape) {
            let expected = at(&Layout::from(layout.clone()), index);
            prop_assert_eq!(&at(&Layout::from(grouped.layout.clone()), index), &expected);
            prop_assert_eq!(&at(&Layout::from(refined.layout.clone()), index), &expected);
        }
    }

    #[test]
    fn a_slice_is_the_region_of_the_whole(shard in steps(1..5), cut in 0..5usize, from in 0..64i64, to in 0..64i64) {
        let layout = Layout::from(layout_of(&shard, &[("m", 3)]));
        let (outer, inner) = shard.split_at(cut.min(shard.len()));
        let shape = [outer, inner].map(|part| count(&part.iter().map(|s| s.extent).collect::<Vec<_>>()));
        let region = shape.map(|dim| { let (a, b) = (from % dim, to % dim); (a.min(b), a.max(b) + 1) });
        let parts: Vec<_> = region.iter().map(|(a, b)| DimSlice { begin: int(*a), extent: int(b - a) }).collect();
        if let Some(part) = layout.slice(&ints(&shape), &parts, Counting::Unknown).unwrap() {
            let extents: Vec<_> = region.iter().map(|(a, b)| b - a).collect();
            for coord in coordinates(&extents) {
                let moved: Vec<_> = coord.iter().zip(&region).map(|(at, (begin, _))| at + begin).collect();
                let (inside, outside) = (
                    part.apply_over(&ints(&coord), &ints(&extents)).unwrap(),
                    layout.apply_over(&ints(&moved), &ints(&shape)).unwrap(),
                );
                prop_assert_eq!(numbers(&inside, &[]), numbers(&outside, &[]), "{} of {}", part, layout);
            }
        }
    }

    #[test]
    fn a_sum_adds_places_and_gives_its_addends_back(left in steps(1..3), right in steps(1..3)) {
        let extents = |of: &[Step]| of.iter().map(|s| s.extent).collect::<Vec<_>>();
        let (a, b) = (layout_of(&left, &[]), Layout::from(layout_of(&right, &[])));
        let (m, n) = (count(&extents(&left)), count(&extents(&right)));
        let whole = b.direct_sum(&a, &[int(m)], &[int(n)], Counting::Unknown).unwrap();
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let both = whole.apply_over(&ints(&[i, j]), &ints(&[m, n])).unwrap();
            let expected = sum(at(&Layout::from(a.clone()), i), at(&b, j));
            prop_assert_eq!(numbers(&both, &[]), expected, "{}", whole);
        }
        if let Some(found) = b.left_of_sum(&whole, &ints(&[m, n]), &[int(n)], Counting::Unknown).unwrap() {
            for i in 0..m {
                prop_assert_eq!(at(&Layout::from(found.clone()), i), at(&Layout::from(a.clone()), i));
            }
        }
    }

    #[test]
    fn tiles_lie_apart_by_the_span_of_the_inner_layout(outer in steps(1..3), inner in steps(1..3)) {
        let extents = |of: &[Step]| of.iter().map(|s| s.extent).collect::<Vec<_>>();
        let (m, n) = (count(&extents(&outer)), count(&extents(&inner)));
        let (a, b) = (layout_of(&outer, &[]), Layout::from(layout_of(&inner, &[])));
        let whole = b.tiled(&a, &[int(m)], &[int(n)], Counting::Unknown).unwrap();
        let canonical = b.canonical(Counting::Unknown).unwrap();
        let spans = |axis: &str| match canonical.tile_layout().shard.iter().any(|iter| iter.axis.name == axis) {
            true => canonical.span(Some(axis)).unwrap().as_int().unwrap(),
            false => 1,
        };
        for (i, j) in (0..m).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let grown = at(&Layout::from(a.clone()), i).into_iter().map(|(axis, value)| { let by = spans(&axis); (axis, value * by) });
            let both = whole.apply_over(&ints(&[i, j]), &ints(&[m, n])).unwrap();
            prop_assert_eq!(numbers(&both, &[]), sum(grown.collect(), at(&b, j)), "{}", whole);
        }
    }

    #[test]
    fn a_permutation_over_the_parts_of_an_address_is_that_of_the_address(
        strides in prop::collection::vec(prop::sample::select(vec![1i64, 2, 4, 8, 16, 24, 64, 512]), 2),
        extents in prop::collection::vec(1..9i64, 2),
        constant in 0..700i64,
        (per_element, swizzle_len, inner) in (0..4i64, 0..4i64, any::<bool>()),
    ) {
        let shard: Vec<_> = strides.iter().zip(&extents).map(|(s, e)| Step { extent: *e, stride: *s, axis: "m" }).collect();
        let tile = Ref::new(layout_of(&shard, &[("m", constant)]));
        let compose = ComposeLayout::new(per_element, swizzle_len, 3, tile, inner).unwrap();
        let layout = Layout::from(compose.clone());
        let vars: Vec<_> = ["x", "y"].into_iter().map(|name| Var::prim(name, DataType::int(32))).collect();
        let coord: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
        let over = [layout.apply(&coord).unwrap(), layout.apply_over(&coord, &ints(&extents)).unwrap()];
        for at in coordinates(&extents) {
            let address = constant + at.iter().zip(&strides).map(|(a, s)| a * s).sum::<i64>();
            let expected = permuted(address, &compose);
            let values: Vec<_> = vars.iter().cloned().zip(at.iter().copied()).collect();
            for places in &over {
                prop_assert_eq!(value_of(&places[0].1, &values), expected, "{} at {:?}", places[0].1, at);
            }
            let constants = layout.apply(&ints(&at)).unwrap();
            prop_assert_eq!(value_of(&constants[0].1, &[]), expected);
        }
    }
}

#[test]
fn what_no_shape_groups_is_refused() {
    let layout = layout_of(&[Step { extent: 4, stride: 1, axis: "m" }], &[]);
    let error = group(&layout, &ints(&[3])).unwrap_err();
    assert!(error.to_string().contains("can not be grouped by shape (3)"), "{error}");
}

#[test]
fn axes_that_leave_out_a_scope_are_refused() {
    let steps = ["wgid", "laneid"].map(|axis| Step { extent: 2, stride: 1, axis });
    let error = Layout::from(layout_of(&steps, &[])).check_scopes().unwrap_err();
    assert!(error.to_string().contains("wgid, laneid"), "{error}");
}

#[test]
fn a_swizzle_of_too_many_bits_is_refused() {
    let tile = || Ref::new(TileLayout::compact(&[int(64)]));
    for (per_element, swizzle_len, atom_len) in [(-1, 0, 0), (0, 4, 3), (0, 31, 31), (i64::MAX, 0, 0)] {
        assert!(ComposeLayout::new(per_element, swizzle_len, atom_len, tile(), true).is_err());
    }
}

fn defined(binding: ScopeBinding, extents: Option<&[i64]>) -> Ref<ScopeIdDef> {
    let count = extents.map_or(1, <[i64]>::len);
    let vars = (0..count).map(|_| Var::prim("v", DataType::int(32))).collect();
    Ref::new(ScopeIdDef::new(vars, extents.map(ints), binding, None).unwrap())
}

#[test]
fn scope_ids_agree_on_how_many_units_there_are() {
    use ScopeBinding::{ClusterCta, CtaThread, CtaWarp, KernelCluster, KernelCta, WarpThread};
    let four_warps = [defined(CtaWarp, Some(&[4])), defined(WarpThread, Some(&[32]))];
    let with = |more: Ref<ScopeIdDef>| check_scope_ids(&[&four_warps[..], &[more]].concat());
    assert!(with(defined(CtaThread, Some(&[8, 16]))).is_ok());
    assert!(with(defined(CtaThread, None)).is_ok());
    let error = with(defined(CtaThread, Some(&[64]))).unwrap_err().to_string();
    assert!(error.contains("cta->thread: 64 and 128") || error.contains("cta->thread: 128 and 64"), "{error}");
    let clusters = [defined(KernelCta, Some(&[10])), defined(ClusterCta, Some(&[4]))];
    let error = check_scope_ids(&clusters).unwrap_err().to_string();
    assert!(error.contains("10 of scope kernel->cta are no multiple of 4"), "{error}");
    let open = [defined(KernelCta, None), defined(KernelCluster, Some(&[2]))];
    assert!(check_scope_ids(&open).is_ok());
}
