//! Steps on a matrix product with a following addition.

use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{DataType, Var};

use super::*;
use crate::te;

const F32: DataType = DataType::float(32);

/// `D = A @ B + 1`, over 16 x 12 x 8.
pub(super) fn product() -> Schedule {
    let a = te::placeholder("A", [16, 8], F32);
    let b = te::placeholder("B", [8, 12], F32);
    let k = te::reduce_axis(8);
    let product = |i: &[PrimExpr]| te::sum(a.at(&[i[0].clone(), k.var()]) * b.at(&[k.var(), i[1].clone()]), [&k]);
    let c = te::compute("C", [16, 12], product);
    let d = te::compute("D", [16, 12], |i| prim::add(c.at(i), prim::float_of(F32, 1.0)));
    Schedule::of_func(te::create_prim_func(&[a, b, d]).unwrap())
}

/// The kernel as text.
pub(super) fn text(sch: &Schedule) -> String {
    sch.func("main").unwrap().to_string()
}

fn factors(list: &[i64]) -> Vec<Option<PrimExpr>> {
    list.iter().map(|f| (*f > 0).then(|| PrimExpr::from(*f))).collect()
}

#[test]
fn loops_are_split_reordered_and_fused() {
    let mut sch = product();
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    let i = sch.split(&loops[0], &factors(&[0, 4])).unwrap();
    let j = sch.split(&loops[1], &factors(&[0, 5])).unwrap();
    sch.reorder(&[i[0].clone(), j[0].clone(), loops[2].clone(), i[1].clone(), j[1].clone()]).unwrap();
    sch.fuse(&[i[0].clone(), j[0].clone()]).unwrap();
    insta::assert_snapshot!(text(&sch));
    insta::assert_snapshot!(sch.trace());
    let mut again = product();
    sch.trace().apply_to(&mut again, false).unwrap();
    assert_eq!(text(&again), text(&sch));
}

fn names(sch: &Schedule, blocks: &[Ref<SBlockRV>]) -> Vec<String> {
    blocks.iter().map(|b| sch.block(b).unwrap().name.clone()).collect()
}

/// The message of a refusal.
fn refusal<T: std::fmt::Debug>(step: Result<T, StepError>) -> String {
    step.unwrap_err().error.to_string()
}

#[test]
fn neighbours_are_found() {
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    let root = sch.get_sblock("root", None).unwrap();
    let consumers = sch.get_consumers(&c).unwrap();
    let producers = sch.get_producers(&d).unwrap();
    let outputs = sch.get_output_blocks(&root).unwrap();
    let children = sch.get_child_blocks(&Rv::Block(root)).unwrap();
    assert_eq!(names(&sch, &consumers), ["D"]);
    assert_eq!(names(&sch, &producers), ["C"]);
    assert_eq!(names(&sch, &outputs), ["D"]);
    assert_eq!(names(&sch, &children), ["C", "D"]);
    assert!(sch.get_sblock("pooling", None).unwrap_err().to_string().contains("there are root, C, D"));
}

#[test]
fn only_independent_iterations_run_at_the_same_time() {
    let mut sch = product();
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    assert!(refusal(sch.parallel(&loops[2])).contains("axis `v_k` of block `C`"));
    assert!(refusal(sch.vectorize(&loops[2])).contains("is not spatial"));
    sch.parallel(&loops[0]).unwrap();
    let j = sch.split(&loops[1], &factors(&[0, 5])).unwrap();
    sch.reorder(&[loops[2].clone(), j[1].clone()]).unwrap();
    sch.vectorize(&j[1]).unwrap();
    sch.unroll(&j[0]).unwrap();
    assert!(refusal(sch.bind(&loops[2], "threadIdx.w")).contains("no thread axis"));
    let text = text(&sch);
    for line in ["for ax0 in parallel(16)", "for ax1_0 in unrolled(3)", "for ax1_1 in vectorized(5)"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    assert!(
        refusal(sch.loop_(&loops[1]).map(drop).map_err(|e| StepError::new("get", e, &sch))).contains("no longer there")
    );
}

#[test]
fn a_loop_of_axes_that_are_set_and_combined_is_not_taken_apart_and_reordered() {
    let n = PrimExpr::from(&Var::dim("n"));
    let a = te::placeholder("A", [n.clone(), n.clone()], F32);
    let k = te::reduce_axis(&n);
    let c = te::compute("C", [n], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let mut sch = Schedule::of_func(te::create_prim_func(&[a, c]).unwrap());
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    let fused = sch.fuse(&loops).unwrap();
    let parts = sch.split(&fused, &factors(&[0, 3])).unwrap();
    let refused = refusal(sch.reorder(&[parts[1].clone(), parts[0].clone()]));
    assert!(refused.contains("an element would be added to before it is set"), "{refused}");
}

#[test]
fn loops_that_do_not_stand_so_are_not_fused_or_reordered() {
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    let (c, d) = (sch.get_loops(&c).unwrap(), sch.get_loops(&d).unwrap());
    assert!(refusal(sch.fuse(&[c[0].clone(), c[2].clone()])).contains("not directly around"));
    assert!(refusal(sch.fuse(&[c[1].clone(), c[0].clone()])).contains("not directly around"));
    assert!(refusal(sch.reorder(&[c[0].clone(), d[0].clone()])).contains("not on one line"));
    assert!(refusal(sch.reorder(&[c[0].clone(), c[0].clone()])).contains("named twice"));
    assert!(refusal(sch.split(&c[0], &factors(&[0, 0]))).contains("only one factor"));
    assert!(refusal(sch.split(&c[0], &factors(&[2, 4]))).contains("less than the extent"));
    sch.annotate(&Rv::Loop(c[0].clone()), "hint", 1i64).unwrap();
    assert!(refusal(sch.split(&c[0], &factors(&[0, 4]))).contains("annotated"));
    sch.unannotate(&Rv::Loop(c[0].clone()), "hint").unwrap();
    sch.split(&c[0], &factors(&[0, 4])).unwrap();
}

#[test]
fn factors_that_may_not_cover_a_loop_are_refused() {
    let (n, m) = (PrimExpr::from(&Var::dim("n")), PrimExpr::from(&Var::dim("m")));
    let a = te::placeholder("A", [n.clone(), &m * 128], F32);
    let b = te::compute("B", [n.clone(), &m * 128], |i| a.at(i));
    let mut sch = Schedule::of_func(te::create_prim_func(&[a, b]).unwrap());
    let block = sch.get_sblock("B", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    let refused = refusal(sch.split(&loops[0], &factors(&[4, 5])));
    assert!(refused.contains("the factors' product 20 is not known to cover the extent n"), "{refused}");
    let quarters = [Some(prim::floordiv(&n, 4)), Some(prim::int(4))];
    assert!(refusal(sch.split(&loops[0], &quarters)).contains("not known to cover"));
    sch.split(&loops[0], &[Some(prim::floordiv(&n + 3, 4)), Some(prim::int(4))]).unwrap();
    sch.split(&loops[1], &[Some(m.clone()), Some(prim::int(128))]).unwrap();
}

#[test]
fn blocks_are_inlined_forwards_and_backwards() {
    let a = te::placeholder("A", [8, 16], F32);
    let two = |e: PrimExpr| prim::mul(e, prim::float_of(F32, 2.0));
    let b = te::compute("B", [8, 16], |i| two(a.at(i)));
    let c = te::compute("C", [8, 16], |i| prim::add(b.at(i), prim::float_of(F32, 1.0)));
    let flat = |i: &[PrimExpr]| c.at(&[prim::floordiv(&i[0], 16), prim::floormod(&i[0], 16)]);
    let d = te::compute("D", [128], |i| two(flat(i)));
    let mut sch = Schedule::of_func(te::create_prim_func(&[a, d]).unwrap());
    let [b, c, d] = ["B", "C", "D"].map(|name| sch.get_sblock(name, None).unwrap());
    assert!(refusal(sch.compute_inline(&d)).contains("output block"));
    sch.compute_inline(&b).unwrap();
    sch.reverse_compute_inline(&d).unwrap();
    insta::assert_snapshot!(text(&sch));
    assert!(sch.block(&d).is_err() && sch.block(&b).is_err() && sch.block(&c).is_ok());
}

#[test]
fn a_sum_is_not_finished_by_its_consumer() {
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    assert!(refusal(sch.reverse_compute_inline(&d)).contains("`C` is not complete"));
    assert!(refusal(sch.compute_inline(&c)).contains("not all of its axes are spatial"));
}

#[test]
fn decisions_stay_in_the_trace() {
    let mut sch = product();
    sch.seed(7);
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    let tile = sch.sample_perfect_tile(&loops[0], 3, 4, None).unwrap();
    let sizes: Vec<i64> = tile.iter().map(|v| sch.number(&PrimExpr::from(v)).unwrap()).collect();
    assert_eq!(sizes.iter().product::<i64>(), 16);
    sch.split(&loops[0], &tile.iter().map(|v| Some(PrimExpr::from(v))).collect::<Vec<_>>()).unwrap();
    let unroll = sch.sample_categorical(&[16, 64], &[0.5, 0.5], None).unwrap();
    let parts = sch.sample_partitioned_tile(&loops[1], 3, 1, 2, None).unwrap();
    let sizes: Vec<i64> = parts.iter().map(|v| sch.number(&PrimExpr::from(v)).unwrap()).collect();
    assert_eq!((sizes.iter().product::<i64>(), sizes[1] * sizes[2] % 2), (12, 0));
    sch.annotate(&Rv::Block(block), "unroll", PrimExpr::from(&unroll[0])).unwrap();
    sch.enter_postproc().unwrap();
    for (trace, seed) in [(sch.trace().clone(), 1), (sch.trace().simplified(true), 2)] {
        let mut again = product();
        again.seed(seed);
        trace.apply_to(&mut again, false).unwrap();
        assert_eq!(text(&again), text(&sch));
    }
    let mut again = product();
    Trace::apply_json(&sch.trace().as_json(false), &mut again).unwrap();
    assert_eq!(again.trace().to_string(), sch.trace().to_string());
    let other = sch.trace().with_decision(2, vec![1i64, 3, 5].into());
    let mut changed = product();
    other.apply_to(&mut changed, false).unwrap();
    assert!(changed.trace().to_string().contains("decision=[1, 1, 16]"), "{}", changed.trace());
}

#[test]
fn axes_change_order_and_unit_loops_are_added() {
    let mut sch = product();
    let block = sch.get_sblock("D", None).unwrap();
    sch.reorder_block_iter_var(&block, &[1, 0]).unwrap();
    assert!(refusal(sch.reorder_block_iter_var(&block, &[1, 1])).contains("no order"));
    sch.add_unit_loop(&Rv::Block(block.clone())).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    assert_eq!(loops.len(), 3);
    let names: Vec<String> = sch.block(&block).unwrap().iter_vars.iter().map(|i| i.var.name.clone()).collect();
    assert_eq!(names, ["v_ax1", "v_ax0"]);
}

#[test]
fn a_refusal_shows_the_place() {
    let mut sch = product();
    let block = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&block).unwrap();
    insta::assert_snapshot!(sch.parallel(&loops[2]).unwrap_err());
}
