//! Steps that copy by maps and at loops, partition, roll, pad layouts and sample places: results stay, and refusals say why.

use relaxide_ffi::Ref;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{DataType, Var};

use super::region_tests::{factors, same_results, stencil};
use super::tests::product;
use super::*;
use crate::{IndexMap, te};

const F32: DataType = DataType::float(32);

fn map(rank: usize, to: impl FnOnce(&[PrimExpr]) -> Vec<PrimExpr>) -> Ref<IndexMap> {
    let vars: Vec<Ref<Var>> = (0..rank).map(|d| Var::dim(format!("i{d}"))).collect();
    let from: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
    Ref::new(IndexMap { initial_indices: vars, final_indices: to(&from), inverse_index_map: None })
}

/// `D = A @ B + bias`, of 6 x 4.
fn linear(clip: bool) -> Schedule {
    let (a, b) = (te::placeholder("A", [6, 8], F32), te::placeholder("B", [8, 4], F32));
    let bias = te::placeholder("bias", [4], F32);
    let k = te::reduce_axis(8);
    let term = |i: &[PrimExpr]| a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]);
    let c = te::compute("C", [6, 4], |i| te::sum(term(i), [&k]));
    let d = te::compute("D", [6, 4], |i| {
        let sum = c.at(i) + bias.at(&[i[1].clone()]);
        if clip { prim::max(sum, prim::float_of(F32, 0.0)) } else { sum }
    });
    Schedule::of_func(te::create_prim_func(&[a.clone(), b.clone(), bias.clone(), d]).unwrap())
}

fn refused(found: Result<impl Sized, StepError>, reason: &str) {
    let Err(error) = found else { panic!("not refused: {reason}") };
    assert!(error.to_string().contains(reason), "{error}");
}

#[test]
fn copies_by_maps_and_at_loops_keep_results() {
    same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        sch.reindex_cache_read(&c, 0, "local", &map(3, |i| vec![i[2].clone(), i[0].clone()])).unwrap();
        let split = map(3, |i| vec![prim::floordiv(&i[1], 4), i[0].clone(), prim::floormod(&i[1], 4)]);
        sch.reindex_cache_write(&c, 0, "global", &split).unwrap();
    });
    same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let i = sch.split(&loops[0], &factors(&[0, 4])).unwrap();
        sch.read_at(&i[0], &c, 0, "local").unwrap();
        sch.write_at(&i[0], &c, 0, "local").unwrap();
    });
}

#[test]
fn copies_that_would_be_wrong_are_refused() {
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    let one = map(3, |i| vec![i[0].clone()]);
    refused(sch.reindex_cache_read(&c, 0, "local", &one), "occurs where the block accesses it, but not in the map");
    let folded = map(3, |i| vec![prim::floordiv(&i[0] + &i[2], 2)]);
    refused(sch.reindex_cache_read(&c, 0, "local", &folded), "may put different elements of buffer `A` in one place");
    let parts = sch.split(&loops[0], &factors(&[0, 5])).unwrap();
    refused(sch.write_at(&parts[0], &c, 0, "local"), "it is executed under a condition");
    let d = sch.get_sblock("D", None).unwrap();
    refused(sch.read_at(&parts[0], &d, 0, "local"), "is not around block `D`");
    refused(sch.cache_inplace(&c, 0, "local"), "reads buffer `A`, but does not write it");
}

#[test]
fn a_buffer_rolls_along_with_its_loop() {
    let found = same_results(stencil(), |sch| {
        let (b, c) = (sch.get_sblock("B", None).unwrap(), sch.get_sblock("C", None).unwrap());
        let loops = sch.get_loops(&c).unwrap();
        sch.compute_at(&b, &loops[0], UnitLoops::Dropped, -1).unwrap();
        sch.rolling_buffer(&b, 0).unwrap();
        refused(sch.parallel(&loops[0]), "is neither a complete block nor a reduction block");
    });
    insta::assert_snapshot!(found);
}

#[test]
fn a_buffer_does_not_roll_where_iterations_run_at_once_or_boxes_do_not_overlap() {
    let mut sch = stencil();
    let (b, c) = (sch.get_sblock("B", None).unwrap(), sch.get_sblock("C", None).unwrap());
    refused(sch.rolling_buffer(&b, 0), "no loop is around block `B` and all that read buffer `B`");
    refused(sch.rolling_buffer(&c, 0), "is an output block");
    let loops = sch.get_loops(&c).unwrap();
    let mut apart = sch.clone();
    sch.parallel(&loops[0]).unwrap();
    sch.compute_at(&b, &loops[0], UnitLoops::Dropped, -1).unwrap();
    refused(sch.rolling_buffer(&b, 0), "run at the same time");
    apart.reorder(&[loops[1].clone(), loops[0].clone()]).unwrap();
    apart.compute_at(&b, &loops[1], UnitLoops::Dropped, -1).unwrap();
    refused(apart.rolling_buffer(&b, 0), "in successive iterations do not overlap");
}

#[test]
fn a_loop_is_partitioned() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let parts = sch.loop_partition(&loops[2], &factors(&[2, 0])).unwrap();
        assert_eq!(parts.len(), 2);
        refused(sch.parallel(&parts[1]), "is not spatial");
    });
    insta::assert_snapshot!(found);
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    refused(sch.loop_partition(&loops[0], &factors(&[1000])), "the factors come to 1000 iterations");
    refused(sch.loop_partition(&loops[0], &factors(&[0, 0])), "of which one may be None");
}

#[test]
fn a_sum_begins_with_its_bias_and_is_clipped_at_each_step() {
    let fuse = |sch: &mut Schedule| {
        let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
        sch.fuse_reduction_epilogue(&c, &d)
    };
    let mut sch = linear(false);
    fuse(&mut sch).unwrap();
    crate::verify::verify(&sch.func("main").unwrap()).unwrap();
    insta::assert_snapshot!(super::tests::text(&sch));
    let mut clipped = linear(true);
    fuse(&mut clipped).unwrap();
    let text = super::tests::text(&clipped);
    assert!(!text.contains("C[") && text.matches("max(").count() == 2, "{text}");
    let mut product = product();
    let (c, d) = (product.get_sblock("C", None).unwrap(), product.get_sblock("D", None).unwrap());
    refused(product.fuse_reduction_epilogue(&d, &c), "is no reduction");
}

#[test]
fn a_layout_is_padded_by_its_writer_or_behind_it() {
    let pad = |sch: &mut Schedule| {
        let b = sch.get_sblock("B", None).unwrap();
        let zero = map(3, |_| vec![prim::float_of(F32, 0.0)]);
        let to = map(2, |i| vec![prim::floordiv(&i[0], 4), i[1].clone(), prim::floormod(&i[0], 4)]);
        sch.transform_layout_padded(&b, "write", 0, &to, &zero).unwrap();
    };
    let written = same_results(stencil(), pad);
    assert!(written.contains("if_then_else"), "{written}");
    let behind = same_results(stencil(), |sch| {
        let b = sch.get_sblock("B", None).unwrap();
        let loops = sch.get_loops(&b).unwrap();
        sch.split(&loops[0], &factors(&[0, 3])).unwrap();
        pad(sch);
    });
    assert!(behind.contains("buffer_B_padding"), "{behind}");
    let mut sch = stencil();
    let b = sch.get_sblock("B", None).unwrap();
    let to = map(2, |i| vec![prim::floordiv(&i[0], 4), i[1].clone(), prim::floormod(&i[0], 4)]);
    let whole = map(3, |_| vec![prim::int(0)]);
    refused(sch.transform_layout_padded(&b, "write", 0, &to, &whole), "holds float32, but the padding is int64");
}

#[test]
fn a_place_is_sampled_and_repeated() {
    let found = same_results(stencil(), |sch| {
        let b = sch.get_sblock("B", None).unwrap();
        let place = sch.sample_compute_location(&b, Some(0)).unwrap();
        sch.compute_at(&b, &place, UnitLoops::Dropped, -1).unwrap();
        let c = sch.get_sblock("C", None).unwrap();
        let stays = sch.sample_compute_location(&c, Some(3)).unwrap();
        assert_eq!(sch.mark(&stays), Some(Mark::Root));
        sch.compute_at(&c, &stays, UnitLoops::Dropped, -1).unwrap();
        refused(sch.unroll(&stays), "the place that was sampled is no loop");
    });
    assert!(found.contains("for ax0 in serial(3)"), "{found}");
}

#[test]
fn accesses_are_declared_where_they_are_not_known_better() {
    let mut sch = stencil();
    let c = sch.get_sblock("C", None).unwrap();
    let rows = |from: i64, to: i64| map(2, |i| vec![&i[0] + from, &i[0] + to, i[1].clone(), &i[1] + 1]);
    refused(sch.annotate_buffer_access(&c, 0, "read", &rows(0, 2)), "does not hold");
    sch.annotate_buffer_access(&c, 0, "read", &rows(-1, 4)).unwrap();
    let node = sch.block(&c).unwrap();
    assert_eq!(node.reads[0].region[0].extent.as_int(), Some(5));
    refused(sch.annotate_buffer_access(&c, 3, "read", &rows(0, 3)), "index 3 is none of them");
    sch.unsafe_hide_buffer_access(&c, "read", &[0]).unwrap();
    assert!(sch.block(&c).unwrap().reads.is_empty());
}

#[test]
fn indices_are_looked_up() {
    let a = te::placeholder("A", [8], F32);
    let b = te::compute("B", [4, 4], |i| a.at(&[&i[0] + prim::floordiv(&i[1], 2)]));
    let sch = Schedule::of_func(te::create_prim_func(&[a.clone(), b]).unwrap());
    let found = same_results(sch, |sch| {
        let b = sch.get_sblock("B", None).unwrap();
        assert_eq!(sch.cache_index(&b, "global", 1).unwrap().len(), 1);
        assert_eq!(sch.cache_index(&b, "global", 1).unwrap().len(), 0);
    });
    insta::assert_snapshot!(found);
}
