//! What kernels come of graphs of computes.

use std::slice::from_ref;

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Var};

use super::*;
use crate::stmt::*;

const F32: DataType = DataType::float(32);

/// The blocks of a kernel below its root, in order.
fn blocks(stmt: &Stmt) -> Vec<Ref<SBlock>> {
    match stmt {
        Stmt::For(n) => blocks(&n.body),
        Stmt::Seq(n) => n.seq.iter().flat_map(blocks).collect(),
        Stmt::Block(n) if n.block.name == "root" => blocks(&n.block.body),
        Stmt::Block(n) => vec![n.block.clone()],
        _ => Vec::new(),
    }
}

fn names(blocks: &[Ref<SBlock>]) -> Vec<&str> {
    blocks.iter().map(|b| b.name.as_str()).collect()
}

fn root(stmt: &Stmt) -> Ref<SBlock> {
    match stmt {
        Stmt::Block(n) => n.block.clone(),
        other => panic!("not a block: {other:?}"),
    }
}

#[test]
fn stages_stand_in_order_of_need_and_what_lies_between_is_allocated() {
    let n = Var::dim("n");
    let a = placeholder("A", [PrimExpr::from(&n), 64.into()], F32);
    let k = reduce_axis(64);
    let row = compute("B", [&n], |i| sum(a.at(&[i[0].clone(), k.var()]), [&k]));
    let out = compute("B", [&n], |i| row.at(i) + a.at(&[i[0].clone(), 0.into()]) * a.at(&[i[0].clone(), 1.into()]));
    let func = create_prim_func(&[a, out]).unwrap();

    assert_eq!(func.params.len(), 2);
    assert_eq!(names(&blocks(&func.body)), ["B", "B_1"]);
    let allocated = root(&func.body).alloc_buffers.clone();
    assert_eq!(allocated.len(), 1);
    let last = &blocks(&func.body)[1];
    let read: Vec<(&str, Option<i64>)> =
        last.reads.iter().map(|r| (r.buffer.name.as_str(), r.region.last().unwrap().extent.as_int())).collect();
    assert_eq!(read, [("B_1", Some(1)), ("A", Some(2))]);
}

#[test]
fn a_reduction_has_reduction_axes_an_initial_value_and_reads_only_its_operands() {
    let a = placeholder("A", [4, 8], F32);
    let k = reduce_axis(8);
    let b = compute("B", [4], |i| max(a.at(&[i[0].clone(), k.var()]), [&k]));
    let func = create_prim_func(&[a, b]).unwrap();
    let block = &blocks(&func.body)[0];
    assert_eq!(block.iter_vars.iter().map(|v| v.kind).collect::<Vec<_>>(), [IterKind::Spatial, IterKind::Reduce]);
    assert_eq!(block.reads.len(), 1);
    let Some(Stmt::Store(init)) = &block.init else { panic!("no initial store") };
    let PrimExpr::Float(value) = &init.value else { panic!("no literal") };
    assert_eq!(value.value, f64::NEG_INFINITY);
}

#[test]
fn results_of_one_reduction_do_not_see_each_other_change() {
    let a = placeholder("A", [4, 8], F32);
    let k = reduce_axis(8);
    let argmax = compute_multi("amax", [4], |i| {
        let value = a.at(&[i[0].clone(), k.var()]);
        combine([prim::int(-1), prim::lowest(F32)], [k.var(), value], [&k], |acc, new| {
            let keep = prim::ge(&acc[1], &new[1]);
            vec![prim::select(keep.clone(), &acc[0], &new[0]), prim::select(keep, &acc[1], &new[1])]
        })
    });
    let func = create_prim_func(&[a, argmax[0].clone()]).unwrap();
    let block = &blocks(&func.body)[0];
    assert_eq!(block.writes.len(), 2);
    let Stmt::Seq(body) = &block.body else { panic!("one statement only") };
    let kinds: Vec<bool> = body.seq.iter().map(|s| matches!(s, Stmt::Bind(_))).collect();
    assert_eq!(kinds, [true, true, false, false]);
    assert_eq!(root(&func.body).alloc_buffers.len(), 1);
}

#[test]
fn scalars_that_no_shape_binds_become_parameters() {
    let (n, m, fill) = (Var::dim("n"), Var::dim("m"), Var::prim("fill", F32));
    let a = placeholder("A", [&n], F32);
    let b = compute("B", [&m], |i| a.at(&[prim::floormod(i[0].clone(), &n)]) + &fill);
    let c = compute("C", [PrimExpr::from(&m) * 2], |i| b.at(&[prim::floordiv(i[0].clone(), 2)]));
    let func = create_prim_func(&[a, c]).unwrap();
    assert_eq!(func.params[2..], [m, fill]);
}

#[test]
fn statements_of_an_opaque_stage_are_put_onto_the_kernels_buffers() {
    let a = placeholder("A", [8], F32);
    let twice = compute("twice", [8], |i| a.at(i) * 2);
    let out = extern_stage("scan", &[twice], [("S".to_string(), vec![8.into()], F32)], |ins, outs| {
        let i = Var::dim("i");
        let before = prim::load(&outs[0], [prim::max(PrimExpr::from(&i) - 1, 0)]);
        Stmt::serial(i.clone(), 8, Stmt::store(&outs[0], [&i], before + prim::load(&ins[0], [&i])))
    });
    let func = create_prim_func(&[a, out[0].clone()]).unwrap();
    let all = blocks(&func.body);
    assert_eq!(names(&all), ["twice", "scan"]);
    let twice = &root(&func.body).alloc_buffers[0];
    assert_eq!(all[1].reads[0].buffer, *twice);
    assert_eq!(all[1].writes[0].buffer, *func.buffers[1].as_ref().unwrap());
}

#[test]
fn mistakes_in_a_description_are_named() {
    let a = placeholder("A", [4], F32);
    let b = placeholder("B", [4], F32);
    let c = compute("C", [4], |i| a.at(i) + b.at(i));
    assert_eq!(create_prim_func(&[a.clone(), c.clone()]).unwrap_err(), TeError::UnknownTensor("B".into()));
    let d = compute("D", [4], |i| a.at(&[i[0].clone(), 0.into()]));
    let rank = TeError::WrongRank { name: "A".into(), ndim: 1, indices: 2 };
    assert_eq!(create_prim_func(&[a.clone(), d]).unwrap_err(), rank);
    assert_eq!(create_prim_func(&[a.clone(), b, c.clone(), c]).unwrap_err(), TeError::DuplicateArgument("C".into()));
    let k = reduce_axis(4);
    let uneven = compute("E", [] as [i64; 0], |_| combine([], [a.at(&[k.var()])], [&k], |acc, _| acc.to_vec()));
    let found = create_prim_func(&[a, uneven]).unwrap_err();
    assert!(matches!(found, TeError::UnevenReduction { identity: 0, .. }), "{found}");
}

#[test]
fn a_scan_copies_its_start_and_goes_on_from_there() {
    let x = placeholder("X", [6, 4], F32);
    let state = placeholder("state", [6, 4], F32);
    let init = compute("init", [1, 4], |i| x.at(&[0.into(), i[1].clone()]));
    let update = compute("update", [6, 4], |i| state.at(&[i[0].clone() - 1, i[1].clone()]) + x.at(i));
    let sums = scan("sums", from_ref(&init), from_ref(&update), from_ref(&state)).unwrap();
    let func = create_prim_func(&[x.clone(), sums[0].clone()]).unwrap();
    let all = blocks(&func.body);
    assert_eq!(names(&all), ["init", "sums"]);
    let Stmt::Seq(parts) = &all[1].body else { panic!("one statement only") };
    let Stmt::For(steps) = &parts.seq[1] else { panic!("no loop over time") };
    assert!(steps.extent.is_int(5));
    // What reads the state in another stage would have to be computed at every step.
    let between = compute("between", [6, 4], |i| state.at(i) * 2);
    let far = compute("far", [6, 4], |i| between.at(&[i[0].clone() - 1, i[1].clone()]));
    let sums = scan("sums", &[init], &[far], &[state]).unwrap();
    assert_eq!(create_prim_func(&[x, sums[0].clone()]).unwrap_err(), TeError::UnknownTensor("state".into()));
    assert!(matches!(scan("sums", &[], &[update], &[]).unwrap_err(), TeError::Scan { .. }));
}

#[test]
fn axes_as_long_as_others_have_blocks_of_their_own() {
    let a = placeholder("A", [8, 8], F32);
    let out = Compute::new("B", [8]).axes(&["i"]).build(|i| {
        let k = reduce_axis_named("k", i[0].clone());
        sum(a.at(&[i[0].clone(), k.var()]), [&k])
    });
    let func = create_prim_func(&[a, out]).unwrap();
    assert_eq!(func.params.len(), 2, "a length of an axis is no parameter");
    let outer = &blocks(&func.body)[0];
    let inner = &blocks(&outer.body)[0];
    assert_eq!((outer.name.as_str(), inner.name.as_str()), ("B_1", "B"));
    assert!(outer.init.is_none() && inner.init.is_some());
    let kinds: Vec<IterKind> = inner.iter_vars.iter().map(|iter| iter.kind).collect();
    assert_eq!(kinds, [IterKind::Spatial, IterKind::Reduce]);
    let input = relaxide_ffi::Tensor::from_slice(&[1.0_f32; 64], &[8, 8]).unwrap();
    let sample = crate::testing::Sample { func, inputs: vec![input], outputs: vec![(vec![8], F32)], scalars: vec![] };
    let found = sample.interpret(&sample.func).unwrap();
    let expected: Vec<_> = (0..8).map(|i| crate::interp::Scalar::Float(f64::from(i))).collect();
    assert_eq!(found, [expected]);
}

#[test]
fn an_initial_value_may_depend_on_the_place() {
    let (a, first) = (placeholder("A", [4, 8], F32), placeholder("first", [4], F32));
    let k = reduce_axis(8);
    let out = compute("B", [4], |i| {
        combine([first.at(i)], [a.at(&[i[0].clone(), k.var()])], [&k], |so_far, x| vec![&so_far[0] + &x[0]])
    });
    let func = create_prim_func(&[a, first, out]).unwrap();
    let block = &blocks(&func.body)[0];
    let read: Vec<&str> = block.reads.iter().map(|r| r.buffer.name.as_str()).collect();
    assert_eq!(read, ["first", "A"]);
    assert_eq!(func.params.len(), 3);
}

#[test]
fn tensors_in_annotations_become_the_kernels_own() {
    let (a, b) = (placeholder("A", [4], F32), placeholder("B", [4], F32));
    let between = compute("D", [4], |i| a.at(i) + b.at(i));
    let named = [&b, &between].map(|tensor| AttrValue::Object(tensor.buffer().clone().into()));
    let named = AttrValue::List(named.to_vec());
    let out = Compute::new("C", [4])
        .annotate("layout_free_placeholders", named)
        .tagged("sum")
        .build(|i| between.at(i) + b.at(i));
    assert_eq!(out.tag(), "sum");
    let func = create_prim_func(&[a, b, out]).unwrap();
    let block = &blocks(&func.body)[1];
    let AttrValue::List(kept) = &block.annotations.0["layout_free_placeholders"] else { panic!("no list") };
    let own = root(&func.body).alloc_buffers[0].clone();
    assert_eq!(kept, &[AttrValue::Object(own.into())]);
    assert_eq!(func.attrs.0["layout_free_buffers"], AttrValue::List(vec![AttrValue::Int(1)]));
}
