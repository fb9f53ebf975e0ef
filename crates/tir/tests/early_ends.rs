//! Loops and kernels that end early: which ones there may be, and that lowering leaves their meaning.

use relaxide_ffi::{DataType, Ref, Tensor};
use relaxide_ir::prim::{self, PrimExpr, eq, floormod, gt, lt};
use relaxide_ir::{Attrs, Buffer, Var};
use relaxide_tir::testing::{ProgramOptions, Random, program, seeds};
use relaxide_tir::verify::verify;
use relaxide_tir::{For, ForKind, PrimFunc, SBlock, SBlockRealize, Stmt, While, interp, lower};

const I64: DataType = DataType::int(64);

fn loop_of(kind: ForKind, body: impl FnOnce(&PrimExpr) -> Stmt) -> Stmt {
    let var = Var::dim("i");
    let body = body(&PrimExpr::from(&var));
    let tag = if kind == ForKind::ThreadBinding { "threadIdx.x" } else { "" };
    let (min, extent) = (prim::int(0), prim::int(8));
    Ref::new(For { thread_tag: tag.to_string(), ..For::new(kind, var, min, extent, body) }).into()
}

fn complaint(body: Stmt) -> Option<String> {
    verify(&PrimFunc::over_buffers(&[], &[], body)).err().map(|e| e.to_string())
}

#[test]
fn only_loops_in_order_end_early() {
    let sometimes = |exit: Stmt| move |i: &PrimExpr| Stmt::when(gt(i.clone(), 3), exit);
    let no_order = |exit, kind| {
        Some(format!(
            "`{exit}` in the {kind} loop over `i`, whose iterations have no order: only serial and `while` loops end early"
        ))
    };
    for kind in [ForKind::Serial, ForKind::Unrolled] {
        assert_eq!(complaint(loop_of(kind, sometimes(Stmt::break_loop()))), None);
        assert_eq!(complaint(loop_of(kind, sometimes(Stmt::ret(1)))), None);
    }
    let unordered = [
        (ForKind::Parallel, "parallel"),
        (ForKind::Vectorized, "vectorized"),
        (ForKind::ThreadBinding, "thread-bound"),
    ];
    for (kind, name) in unordered {
        assert_eq!(complaint(loop_of(kind, sometimes(Stmt::continue_loop()))), no_order("continue", name));
        let inner = |_: &PrimExpr| loop_of(ForKind::Serial, sometimes(Stmt::ret(1)));
        assert_eq!(complaint(loop_of(kind, inner)), no_order("return", name));
        // A loop inside of it is its own.
        let inner = |_: &PrimExpr| loop_of(ForKind::Serial, sometimes(Stmt::break_loop()));
        assert_eq!(complaint(loop_of(kind, inner)), None);
    }
    assert_eq!(complaint(Stmt::break_loop()), Some("`break` outside of a loop".to_string()));
    let endless = While { condition: prim::boolean(true), body: Stmt::break_loop() };
    assert_eq!(complaint(Ref::new(endless).into()), None);
}

#[test]
fn a_block_is_left_for_a_loop_around_it() {
    let block = |body| -> Stmt {
        let block = Ref::new(SBlock {
            iter_vars: vec![],
            reads: vec![],
            writes: vec![],
            name: "B".to_string(),
            alloc_buffers: vec![],
            match_buffers: vec![],
            annotations: Attrs::new(),
            init: None,
            body,
        });
        Ref::new(SBlockRealize { iter_values: vec![], predicate: prim::boolean(true), block }).into()
    };
    assert_eq!(complaint(loop_of(ForKind::Serial, |_| block(Stmt::break_loop()))), None);
    let parallel = complaint(loop_of(ForKind::Parallel, |_| block(Stmt::break_loop())));
    assert!(parallel.is_some_and(|text| text.starts_with("`break` in the parallel loop over `i`")));
    assert_eq!(complaint(block(loop_of(ForKind::Serial, |_| Stmt::break_loop()))), None);
    assert_eq!(complaint(block(Stmt::break_loop())), Some("`break` outside of a loop".to_string()));
    assert_eq!(complaint(block(Stmt::ret(0))), None);
}

/// What a kernel over eight numbers leaves in them, and what it returns.
fn run(func: &PrimFunc) -> (Vec<i64>, Option<interp::Scalar>) {
    let tensor = Tensor::zeros(&[8], I64).unwrap();
    let result = interp::run(func, &[(&tensor).into()]).unwrap_or_else(|e| panic!("{e}\n{func}"));
    let bytes = tensor.to_bytes().unwrap();
    (bytes.chunks(8).map(|b| i64::from_le_bytes(b.try_into().unwrap())).collect(), result)
}

#[test]
fn loops_are_left_where_they_say_it() {
    let a = Buffer::new("A", I64, [8]);
    let store = |i: &PrimExpr, value: i64| Stmt::store(&a, [i.clone()], prim::int(value));
    let odd = |i: &PrimExpr| eq(floormod(i.clone(), 2), 1);
    let body = |kind, tail: Stmt| {
        let body = |i: &PrimExpr| {
            Stmt::seq([
                Stmt::when(odd(i), Stmt::continue_loop()),
                Stmt::when(gt(i.clone(), 5), Stmt::break_loop()),
                store(i, 7),
            ])
        };
        PrimFunc::over_buffers(std::slice::from_ref(&a), &[], Stmt::seq([loop_of(kind, body), tail]))
    };
    let expected = vec![7, 0, 7, 0, 7, 0, 0, 9];
    for kind in [ForKind::Serial, ForKind::Unrolled] {
        let func = body(kind, Stmt::seq([store(&prim::int(7), 9), Stmt::ret(3)]));
        let lowered = lower::lower(&func).unwrap();
        assert_eq!(run(&func), (expected.clone(), Some(interp::Scalar::Int(3))));
        assert_eq!(run(&lowered), run(&func));
        // Written out, the copies behind one that is left would still be there.
        assert!(lowered.to_string().contains("for i in serial(8)"), "{lowered}");
    }
}

#[test]
fn what_stands_behind_a_jump_goes() {
    let a = Buffer::new("A", I64, [8]);
    let store = |i: &PrimExpr, value: i64| Stmt::store(&a, [i.clone()], prim::int(value));
    let body = loop_of(ForKind::Serial, |i| {
        let either = Stmt::if_else(lt(i.clone(), 2), Stmt::break_loop(), Stmt::continue_loop());
        Stmt::seq([store(i, 1), either, store(i, 2)])
    });
    let lowered = lower::lower(&PrimFunc::over_buffers(std::slice::from_ref(&a), &[], body)).unwrap();
    assert!(!lowered.to_string().contains("= 2"), "{lowered}");
    assert_eq!(run(&lowered).0, [1, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn programs_with_early_ends_are_drawn() {
    let mut exits = 0;
    for seed in seeds(300) {
        let program = program(&mut Random::new(seed), ProgramOptions::default());
        verify(&program.sample.func).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", program.sample.func));
        exits += usize::from(program.sample.func.body.has_early_exit());
    }
    assert!(exits > 50, "{exits} of 300");
}
