//! Steps that move, copy and divide what blocks touch: the kernel computes the same before and behind each.

use relaxide_ffi::Tensor;
use relaxide_ir::DataType;
use relaxide_ir::prim::{self, PrimExpr};

use super::tests::{product, text};
use super::*;
use crate::interp::{self, Arg};
use crate::te;
use crate::testing::{Random, random_tensor};

const F32: DataType = DataType::float(32);

/// The results of the kernel `main` on arguments that follow from a seed; all tensors behind it.
fn results(sch: &Schedule) -> Vec<Vec<f32>> {
    let func = sch.func("main").unwrap();
    crate::verify::verify(&func).unwrap_or_else(|e| panic!("{e}\n{func}"));
    let mut random = Random::new(7);
    let tensors: Vec<Tensor> = func
        .buffers
        .iter()
        .flatten()
        .map(|b| {
            let shape: Vec<i64> = b.shape.iter().map(|d| d.as_int().unwrap()).collect();
            random_tensor(&mut random, &shape, b.dtype).unwrap()
        })
        .collect();
    let args: Vec<Arg> = tensors.iter().cloned().map(Arg::Tensor).collect();
    interp::run(&func, &args).unwrap_or_else(|e| panic!("{e}\n{func}"));
    let lowered = crate::lower::lower(&func).unwrap_or_else(|e| panic!("{e}\n{func}"));
    drop(lowered);
    tensors.iter().map(|t| t.to_vec::<f32>().unwrap()).collect()
}

/// Carries steps out; the kernel computes what it did, and the trace does the same again.
pub(super) fn same_results(mut sch: Schedule, steps: impl FnOnce(&mut Schedule)) -> String {
    let (start, before) = (sch.clone(), results(&sch));
    steps(&mut sch);
    assert_eq!(results(&sch), before, "{}", text(&sch));
    let mut again = Schedule::new(start.module().clone());
    sch.trace().apply_to(&mut again, false).unwrap();
    assert_eq!(text(&again), text(&sch));
    text(&sch)
}

/// `C = B[i] + B[i + 2]` of `B = A * 2`, over 16 x 6.
pub(super) fn stencil() -> Schedule {
    let a = te::placeholder("A", [18, 6], F32);
    let b = te::compute("B", [18, 6], |i| a.at(i) * prim::float_of(F32, 2.0));
    let c = te::compute("C", [16, 6], |i| b.at(i) + b.at(&[&i[0] + 2, i[1].clone()]));
    Schedule::of_func(te::create_prim_func(&[a, c]).unwrap())
}

pub(super) fn factors(list: &[i64]) -> Vec<Option<PrimExpr>> {
    list.iter().map(|f| (*f > 0).then(|| PrimExpr::from(*f))).collect()
}

#[test]
fn reductions_are_decomposed() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let i = sch.split(&loops[0], &factors(&[0, 5])).unwrap();
        let k = sch.split(&loops[2], &factors(&[0, 4])).unwrap();
        let init = sch.decompose_reduction(&c, &i[1]).unwrap();
        assert_eq!(sch.block(&init).unwrap().name, "C_init");
        assert_eq!(sch.block(&c).unwrap().name, "C_update");
        assert_eq!(sch.get_loops(&init).unwrap().len(), 3);
        let _ = k;
    });
    insta::assert_snapshot!(found);
}

#[test]
fn elements_are_not_set_in_the_middle_of_a_reduction() {
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    sch.reorder(&[loops[2].clone(), loops[0].clone(), loops[1].clone()]).unwrap();
    let error = sch.decompose_reduction(&c, &loops[0]).unwrap_err();
    assert!(error.to_string().contains("takes part in the reduction"), "{error}");
    let d = sch.get_sblock("D", None).unwrap();
    let of_d = sch.get_loops(&d).unwrap();
    let error = sch.decompose_reduction(&d, &of_d[0]).unwrap_err();
    assert!(error.to_string().contains("is no reduction: it has no init"), "{error}");
    let error = sch.decompose_reduction(&c, &of_d[0]).unwrap_err();
    assert!(error.to_string().contains("is not around block `C`"), "{error}");
}

#[test]
fn producers_are_computed_at_their_consumers() {
    let found = same_results(stencil(), |sch| {
        let (b, c) = (sch.get_sblock("B", None).unwrap(), sch.get_sblock("C", None).unwrap());
        let loops = sch.get_loops(&c).unwrap();
        let i = sch.split(&loops[0], &factors(&[0, 5])).unwrap();
        sch.compute_at(&b, &i[0], UnitLoops::Dropped, -1).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn consumers_are_computed_at_their_producers() {
    let found = same_results(product(), |sch| {
        let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
        let loops = sch.get_loops(&c).unwrap();
        let i = sch.split(&loops[0], &factors(&[0, 4])).unwrap();
        let j = sch.split(&loops[1], &factors(&[0, 6])).unwrap();
        sch.reorder(&[i[0].clone(), j[0].clone(), loops[2].clone(), i[1].clone(), j[1].clone()]).unwrap();
        sch.reverse_compute_at(&d, &j[0], UnitLoops::Dropped, -1).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn blocks_do_not_move_where_they_would_be_wrong() {
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    let (of_c, of_d) = (sch.get_loops(&c).unwrap(), sch.get_loops(&d).unwrap());
    let refusals = [
        (sch.reverse_compute_at(&d, &of_c[2], UnitLoops::Dropped, -1), "still adds to what `D` reads"),
        (sch.compute_at(&d, &of_c[0], UnitLoops::Dropped, -1), "is an output block"),
        (sch.compute_at(&c, &of_c[0], UnitLoops::Dropped, -1), "is already an ancestor of block `C`"),
        (sch.reverse_compute_at(&c, &of_d[0], UnitLoops::Dropped, -1), "has no producers"),
        (sch.compute_at(&c, &of_d[1], UnitLoops::Dropped, 7), "index 7 is not in 0 ..= 0"),
    ];
    for (found, reason) in refusals {
        let error = found.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn buffers_are_copied_for_reading_and_writing() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let k = sch.split(&loops[2], &factors(&[0, 4])).unwrap();
        sch.reorder(&[loops[0].clone(), k[0].clone(), loops[1].clone(), k[1].clone()]).unwrap();
        let w = sch.cache_write(&c, 0, "local", &[]).unwrap();
        sch.reverse_compute_at(&w, &loops[0], UnitLoops::Dropped, -1).unwrap();
        let a = sch.cache_read(&c, 0, "local", &[]).unwrap();
        sch.compute_at(&a, &k[0], UnitLoops::Dropped, -1).unwrap();
        let d = sch.get_sblock("D", None).unwrap();
        let r = sch.cache_read(&d, 0, "shared", std::slice::from_ref(&d)).unwrap();
        assert_eq!(sch.block(&r).unwrap().name, "C_shared");
        sch.decompose_reduction(&c, &k[0]).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn copies_are_refused_where_there_is_nothing_to_copy() {
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let error = sch.cache_read(&c, 5, "local", &[]).unwrap_err().to_string();
    assert!(error.contains("index 5 is none of them") && error.contains("in order, it reads A, B"), "{error}");
    let loops = sch.get_loops(&c).unwrap();
    sch.decompose_reduction(&c, &loops[2]).unwrap();
    let error = sch.cache_write(&c, 0, "local", &[]).unwrap_err().to_string();
    assert!(error.contains("is written by several blocks: `C_init`, `C_update`"), "{error}");
}

#[test]
fn boxes_become_blocks() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let i = sch.split(&loops[0], &factors(&[0, 4])).unwrap();
        let k = sch.split(&loops[2], &factors(&[0, 2])).unwrap();
        sch.reorder(&[i[0].clone(), loops[1].clone(), k[0].clone(), i[1].clone(), k[1].clone()]).unwrap();
        let outer = sch.blockize(&i[1]).unwrap();
        assert_eq!(sch.block(&outer).unwrap().name, "C_o");
        assert_eq!(sch.get_loops(&outer).unwrap().len(), 3);
        assert_eq!(sch.get_loops(&c).unwrap().len(), 2);
        let d = sch.get_sblock("D", None).unwrap();
        let of_d = sch.get_loops(&d).unwrap();
        sch.blockize(&of_d[0]).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn what_does_not_divide_is_not_blockized() {
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    let i = sch.split(&loops[0], &factors(&[0, 5])).unwrap();
    let error = sch.blockize(&i[1]).unwrap_err().to_string();
    assert!(error.contains("the condition `ax0_0 * 5 + ax0_1 < 16`"), "{error}");
    let d = sch.get_sblock("D", None).unwrap();
    let of_d = sch.get_loops(&d).unwrap();
    let j = sch.split(&of_d[1], &factors(&[0, 4])).unwrap();
    sch.reorder(&[j[1].clone(), j[0].clone()]).unwrap();
    let error = sch.blockize(&j[0]).unwrap_err().to_string();
    assert!(error.contains("are not the lighter part"), "{error}");
}

#[test]
fn reductions_are_factored() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let k = sch.split(&loops[2], &factors(&[0, 2])).unwrap();
        let parts = sch.rfactor(&k[0], 1).unwrap();
        assert_eq!(sch.block(&parts).unwrap().name, "C_rf");
        assert_eq!(sch.block(&c).unwrap().name, "C");
        let of_whole = sch.get_loops(&c).unwrap();
        sch.compute_at(&parts, &of_whole[0], UnitLoops::Dropped, -1).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn only_loops_of_reductions_are_factored() {
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    let error = sch.rfactor(&loops[0], 0).unwrap_err().to_string();
    assert!(error.contains("runs along axis `v_ax0`, which is spatial"), "{error}");
    let error = sch.rfactor(&loops[2], 4).unwrap_err().to_string();
    assert!(error.contains("factor_axis 4 is not in -3 ..= 2"), "{error}");
    let d = sch.get_sblock("D", None).unwrap();
    let of_d = sch.get_loops(&d).unwrap();
    let error = sch.rfactor(&of_d[0], 0).unwrap_err().to_string();
    assert!(error.contains("is no reduction"), "{error}");
}

#[test]
fn parts_of_a_reduction_that_nothing_sets_are_refused() {
    // Eight terms in fives: the last part has three, and every part has its first.
    let uneven = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let k = sch.split(&loops[2], &factors(&[0, 5])).unwrap();
        sch.rfactor(&k[0], 0).unwrap();
    });
    assert!(uneven.contains("C_rf"), "{uneven}");
    // In five parts of two: nothing is left for the last.
    let mut sch = product();
    let c = sch.get_sblock("C", None).unwrap();
    let loops = sch.get_loops(&c).unwrap();
    let k = sch.split(&loops[2], &factors(&[5, 0])).unwrap();
    let error = sch.rfactor(&k[0], 0).unwrap_err().to_string();
    assert!(error.contains("its part would not be set"), "{error}");
}

#[test]
fn parts_of_a_reduction_keep_the_predicate_over_spatial_loops() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        sch.split(&loops[0], &factors(&[0, 5])).unwrap();
        sch.rfactor(&loops[2], 0).unwrap();
    });
    assert_eq!(found.matches("where").count(), 2, "{found}");
}

/// `C` reads two elements of the three of `B`.
fn partial(index: impl Fn(&PrimExpr) -> PrimExpr) -> Schedule {
    let a = te::placeholder("A", [3], F32);
    let b = te::compute("B", [3], |i| a.at(i) * prim::float_of(F32, 2.0));
    let c = te::compute("C", [2], |i| b.at(&[index(&i[0])]));
    Schedule::of_func(te::create_prim_func(&[a, c]).unwrap())
}

#[test]
fn a_consumer_that_reads_a_part_is_inlined_under_a_predicate() {
    // Behind a remainder that is none.
    let found = same_results(partial(|i| prim::floormod(i, 3)), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        sch.reverse_compute_inline(&c).unwrap();
    });
    assert_eq!(found.matches("where").count(), 1, "{found}");
    let mut sch = partial(|i| i * 2);
    let c = sch.get_sblock("C", None).unwrap();
    let error = sch.reverse_compute_inline(&c).unwrap_err().to_string();
    assert!(error.contains("do not follow from where it loads `B`"), "{error}");
}

#[test]
fn a_result_of_one_element_is_copied_in_the_order_of_its_axes() {
    let (a, k) = (te::placeholder("A", [1, 8], F32), te::reduce_axis(8));
    let c = te::compute("C", [1, 1], |i| te::sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let found = same_results(Schedule::of_func(te::create_prim_func(&[a, c]).unwrap()), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        sch.reindex(&c, "write", 0).unwrap();
    });
    assert!(found.contains("alloc C_reindex: float32[1, 1]"), "{found}");
}

/// A map of indices, of its old ones.
fn index_map(rank: usize, f: impl Fn(&[PrimExpr]) -> Vec<PrimExpr>) -> Ref<crate::IndexMap> {
    let vars: Vec<Ref<Var>> = (0..rank).map(|d| Var::dim(format!("i{d}"))).collect();
    let exprs: Vec<PrimExpr> = vars.iter().map(PrimExpr::from).collect();
    Ref::new(crate::IndexMap { initial_indices: vars, final_indices: f(&exprs), inverse_index_map: None })
}

#[test]
fn buffers_are_laid_out_anew() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let tiles = index_map(2, |i| {
            let part = |e: &PrimExpr| (prim::floordiv(e, 4), prim::floormod(e, 4));
            let ((a, b), (c, d)) = (part(&i[0]), part(&i[1]));
            vec![a, c, b, d]
        });
        sch.transform_layout(&c, "write", 0, &tiles, false).unwrap();
        sch.set_scope(&c, 0, "local").unwrap();
        sch.storage_align(&c, 0, -1, 8, 1).unwrap();
        let d = sch.get_sblock("D", None).unwrap();
        let split = index_map(2, |i| vec![prim::floordiv(&i[0], 8), i[1].clone(), prim::floormod(&i[0], 8)]);
        sch.transform_block_layout(&d, &split).unwrap();
    });
    insta::assert_snapshot!(found);
}

#[test]
fn layouts_that_lose_elements_or_leave_gaps_are_refused() {
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    let gaps = index_map(2, |i| vec![i[0].clone(), prim::floordiv(&i[1], 5), prim::floormod(&i[1], 5)]);
    let lost = index_map(2, |i| vec![i[0].clone()]);
    let mixed = index_map(3, |i| vec![i[0].clone(), &i[1] * 8 + &i[2]]);
    let loops = sch.get_loops(&d).unwrap();
    sch.split(&loops[0], &factors(&[0, 4])).unwrap();
    let refusals = [
        (sch.transform_layout(&c, "write", 0, &gaps, false), "leaves places of buffer `C` without an element"),
        (sch.transform_layout(&c, "write", 0, &lost, false), "no inverse of the map is found"),
        (sch.transform_layout(&c, "write", 1, &lost, false), "index 1 is none of them"),
        (sch.transform_block_layout(&c, &mixed), "of axes of several kinds"),
        (sch.transform_block_layout(&d, &lost), "do more than run through its axes"),
        (sch.set_scope(&d, 0, "local"), "buffer `D` is a parameter of the kernel"),
        (sch.storage_align(&c, 0, 2, 8, 0), "axis 2 is none of them"),
        (sch.storage_align(&c, 0, 0, 0, 0), "the factor is 0"),
        (sch.unsafe_set_dtype(&c, 0, "nothing"), "the type is not known"),
    ];
    for (found, reason) in refusals {
        let error = found.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_buffer_of_another_type_is_converted_at_its_accesses() {
    let found = same_results(stencil(), |sch| {
        let b = sch.get_sblock("B", None).unwrap();
        sch.unsafe_set_dtype(&b, 0, "float64").unwrap();
    });
    assert!(found.contains("alloc B: float64[18, 6]"), "{found}");
}

#[test]
fn operands_are_copied_in_the_order_of_the_axes() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        let copy = sch.reindex(&c, "read", 1).unwrap();
        assert_eq!(sch.block(&copy).unwrap().name, "B_reindex_reindex");
        let copy = sch.reindex(&c, "write", 0).unwrap();
        assert_eq!(sch.block(&copy).unwrap().name, "C_reindex");
    });
    insta::assert_snapshot!(found);
    let mut sch = stencil();
    let c = sch.get_sblock("C", None).unwrap();
    let error = sch.reindex(&c, "read", 0).unwrap_err().to_string();
    assert!(error.contains("accesses buffer `B` at different indices"), "{error}");
}

#[test]
fn contractions_are_padded() {
    let found = same_results(product(), |sch| {
        let c = sch.get_sblock("C", None).unwrap();
        sch.pad_einsum(&c, &[16, 8, 3]).unwrap();
    });
    insta::assert_snapshot!(found);
    let mut sch = product();
    let (c, d) = (sch.get_sblock("C", None).unwrap(), sch.get_sblock("D", None).unwrap());
    let error = sch.pad_einsum(&c, &[16, 8]).unwrap_err().to_string();
    assert!(error.contains("a positive number for each of the 3 axes"), "{error}");
    sch.pad_einsum(&d, &[16, 8]).unwrap();
    let a = te::placeholder("A", [6, 5], F32);
    let k = te::reduce_axis(5);
    let term = |i: &[PrimExpr]| prim::math("exp", a.at(&[i[0].clone(), k.var()]));
    let sums = te::compute("S", [6], |i| te::sum(term(i), [&k]));
    let mut sch = Schedule::of_func(te::create_prim_func(&[a.clone(), sums]).unwrap());
    let s = sch.get_sblock("S", None).unwrap();
    let error = sch.pad_einsum(&s, &[4, 4]).unwrap_err().to_string();
    assert!(error.contains("does not add what is zero where its elements along `v_k` are"), "{error}");
    sch.pad_einsum(&s, &[4, 1]).unwrap();
}

/// `C += A @ B` of `n × n` parts of matrices, in a root block that says what it touches, its loops in the given order.
fn accumulate(n: i64, order: [usize; 3]) -> PrimFunc {
    use crate::stmt::*;
    let part = |name: &str| {
        let compact = relaxide_ir::Buffer::new(name, F32, [n, n]);
        Ref::new(relaxide_ir::Buffer {
            name: name.into(),
            data: compact.data.clone(),
            dtype: F32,
            shape: compact.shape.clone(),
            strides: vec![PrimExpr::from(&Var::dim("s")), prim::int(1)],
            elem_offset: PrimExpr::from(&Var::dim("offset")),
            scope: "global".into(),
            alignment: 4,
            offset_factor: 1,
            layout: relaxide_ir::layout::Placement::Strided,
            producer: None,
        })
    };
    let [a, b, c] = ["A", "B", "C"].map(part);
    let loops = ["i", "j", "k"].map(Var::dim);
    let axes = ["vi", "vj", "vk"].map(Var::dim);
    let at = |x: usize, y: usize| [PrimExpr::from(&axes[x]), PrimExpr::from(&axes[y])];
    let value = prim::load(&c, at(0, 1)) + prim::load(&a, at(0, 2)) * prim::load(&b, at(2, 1));
    let bare = |iter_vars, name: &str, body| SBlock {
        iter_vars,
        reads: Vec::new(),
        writes: Vec::new(),
        name: name.into(),
        alloc_buffers: Vec::new(),
        match_buffers: Vec::new(),
        annotations: relaxide_ir::Attrs::new(),
        init: None,
        body,
    };
    let kinds = [IterKind::Spatial, IterKind::Spatial, IterKind::Reduce];
    let iter = |(var, kind): (&Ref<Var>, IterKind)| {
        Ref::new(IterVar { var: var.clone(), min: prim::int(0), extent: prim::int(n), kind })
    };
    let put = |iter_values, block: SBlock| -> Stmt {
        let block = crate::analysis::regions::with_regions(block);
        Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block }).into()
    };
    let block = bare(axes.iter().zip(kinds).map(iter).collect(), "update", Stmt::store(&c, at(0, 1), value));
    let innermost = put(loops.iter().map(PrimExpr::from).collect(), block);
    let nest = order.iter().rev().fold(innermost, |body, at| Stmt::serial(loops[*at].clone(), n, body));
    PrimFunc::over_buffers(&[a, b, c], &[], put(Vec::new(), bare(Vec::new(), "root", nest)))
}

#[test]
fn blocks_are_executed_by_intrinsics() {
    let intrin =
        TensorIntrin { desc: Ref::new(accumulate(4, [0, 1, 2])), implementation: Ref::new(accumulate(4, [2, 0, 1])) };
    TensorIntrin::register("test.accumulate_4", intrin.clone(), true).unwrap();
    assert!(TensorIntrin::register("test.accumulate_4", intrin, false).is_err());
    let tile = |sch: &mut Schedule, by: i64| {
        let c = sch.get_sblock("C", None).unwrap();
        let loops = sch.get_loops(&c).unwrap();
        let [i, j, k] = [0, 1, 2].map(|at| sch.split(&loops[at], &factors(&[0, by])).unwrap());
        let order = [&i[0], &j[0], &k[0], &i[1], &j[1], &k[1]].map(Clone::clone);
        sch.reorder(&order).unwrap();
        sch.decompose_reduction(&c, &k[0]).unwrap();
        i[1].clone()
    };
    let found = same_results(product(), |sch| {
        let inner = tile(sch, 4);
        sch.tensorize_loop(&inner, "test.accumulate_4").unwrap();
    });
    insta::assert_snapshot!(found);
    let mut sch = product();
    let inner = tile(&mut sch, 2);
    let before = text(&sch);
    let error = sch.tensorize_loop(&inner, "test.accumulate_4").unwrap_err().to_string();
    assert!(error.contains("is not what `test.accumulate_4` describes"), "{error}");
    assert_eq!(text(&sch), before);
    let error = sch.tensorize_loop(&inner, "test.unknown").unwrap_err().to_string();
    assert!(error.contains("there is no intrinsic `test.unknown`"), "{error}");
}
