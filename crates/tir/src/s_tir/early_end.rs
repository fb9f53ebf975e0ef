//! Nests that end early are left as they are.
//!
//! Steps change the order in which iterations come, or how often a computation is done; all of them rest on every iteration
//! being executed. Where a `break` or `continue` stands between the loops of a nest, or the kernel may `return`, that is
//! not so, and none is taken. What a block does inside of itself is its own: a loop in it may end early. A `break` in a block
//! that leaves a loop around it is one of the nest.
//!
//! ```text
//! for i, j in T.grid(n, m):            for i in range(n):
//!     if i + j > limit:                    with T.sblock("search"):
//!         break                                ...
//!     with T.sblock("B"): ...                  for j in range(m):
//!                                                  if A[vi, j] < 0: break
//! no step on i and j                   i can be split
//! ```

use relaxide_ir::attrs::AttrValue;

use super::instruction::InstructionKind;
use super::rv::Rv;
use super::state::StmtRef;
use super::{Schedule, ScheduleError, primitive};
use crate::PrimFunc;
use crate::early_exit::{EarlyExit, EarlyExits};
use crate::stmt::*;

/// Refuses a step on a nest that ends early.
pub(super) fn refuse(sch: &Schedule, kind: &InstructionKind, inputs: &[AttrValue]) -> Result<(), ScheduleError> {
    let says_only =
        [&primitive::annotate::ANNOTATE, &primitive::annotate::UNANNOTATE, &primitive::enter_postproc::KIND];
    let exits = sch.module().functions_of::<PrimFunc>().any(|(_, func)| func.body.has_early_exit());
    if !exits || kind.is_pure || says_only.iter().any(|other| other.name == kind.name) {
        return Ok(());
    }
    for rv in inputs.iter().flat_map(variables) {
        let place = match &rv {
            Rv::Block(block) => sch.block_ref(block),
            Rv::Loop(loop_) => sch.loop_ref(loop_),
            Rv::Number(_) | Rv::Open => continue,
        };
        // What is no longer there is for the step to say.
        if let Ok(place) = place {
            check(sch, &place)?;
        }
    }
    Ok(())
}

fn variables(operand: &AttrValue) -> Vec<Rv> {
    match operand {
        AttrValue::List(list) => list.iter().flat_map(variables).collect(),
        one => Rv::of(one).into_iter().collect(),
    }
}

fn check(sch: &Schedule, place: &StmtRef) -> Result<(), ScheduleError> {
    let outermost = place.tree.loops_above(place.node).first().copied().unwrap_or(place.node);
    let exit = between_blocks(&place.tree.node(outermost).stmt).or_else(|| {
        let body = &sch.func(&place.func).ok()?.body;
        EarlyExits::of(body).of_kernel.then_some("return")
    });
    let Some(exit) = exit else { return Ok(()) };
    let reason = format!("there is a `{exit}` in the nest, so not all of its iterations are executed");
    let found = match place.stmt() {
        Stmt::For(n) => ScheduleError::at_loop(n, reason),
        Stmt::Block(n) => ScheduleError::at_block(&n.block, reason),
        _ => ScheduleError::Operand(reason),
    };
    Err(found.with_help("put the loop that ends early inside of a block"))
}

/// An early exit in a nest that leaves a loop of it, be it out of a block.
fn between_blocks(stmt: &Stmt) -> Option<&'static str> {
    match stmt {
        Stmt::Block(n) => n.block.init.iter().chain([&n.block.body]).find_map(leaves),
        Stmt::For(n) => between_blocks(&n.body),
        Stmt::While(n) => between_blocks(&n.body),
        Stmt::Seq(n) => n.seq.iter().find_map(between_blocks),
        Stmt::If(n) => between_blocks(&n.then_case).or_else(|| n.else_case.as_ref().and_then(between_blocks)),
        Stmt::Attr(n) => between_blocks(&n.body),
        other => other.early_exit().map(|exit: EarlyExit<'_>| exit.word()),
    }
}

/// A `break` or `continue` in a statement that is of a loop around it.
fn leaves(stmt: &Stmt) -> Option<&'static str> {
    match stmt {
        Stmt::For(_) | Stmt::While(_) => None,
        Stmt::Seq(n) => n.seq.iter().find_map(leaves),
        Stmt::If(n) => leaves(&n.then_case).or_else(|| n.else_case.as_ref().and_then(leaves)),
        Stmt::Attr(n) => leaves(&n.body),
        Stmt::Block(n) => n.block.init.iter().chain([&n.block.body]).find_map(leaves),
        other => other.early_exit().filter(|exit| !matches!(exit, EarlyExit::Return(_))).map(|exit| exit.word()),
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::Ref;
    use relaxide_ir::prim::{self, PrimExpr};
    use relaxide_ir::{Buffer, DataType, Var};

    use super::*;

    /// A nest of two loops around a block, with statements before it and inside of it.
    fn nest(before: Stmt, inside: impl FnOnce(&Ref<Buffer>, &PrimExpr) -> Stmt) -> Schedule {
        let a = Buffer::new("A", DataType::float(32), [8, 8]);
        let [i, j, vi] = ["i", "j", "vi"].map(Var::dim);
        let axis = IterVar { var: vi.clone(), min: 0.into(), extent: 8.into(), kind: IterKind::Spatial };
        let body = inside(&a, &PrimExpr::from(&vi));
        let block = |name: &str, iter_vars, body| {
            Ref::new(SBlock {
                iter_vars,
                reads: vec![],
                writes: vec![],
                name: name.to_string(),
                alloc_buffers: vec![],
                match_buffers: vec![],
                annotations: Default::default(),
                init: None,
                body,
            })
        };
        let realize = |iter_values, block| -> Stmt {
            Ref::new(SBlockRealize { iter_values, predicate: prim::boolean(true), block }).into()
        };
        let inner = realize(vec![PrimExpr::from(&i)], block("B", vec![Ref::new(axis)], body));
        let loops = Stmt::serial(i, 8, Stmt::serial(j, 1, Stmt::seq([before, inner])));
        Schedule::of_func(PrimFunc::over_buffers(&[a], &[], realize(vec![], block("root", vec![], loops))))
    }

    fn store(a: &Ref<Buffer>, vi: &PrimExpr) -> Stmt {
        Stmt::store(a, [vi.clone(), 0.into()], prim::float_of(DataType::float(32), 1.0))
    }

    fn split(mut sch: Schedule) -> Result<(), String> {
        let block = sch.get_sblock("B", None).unwrap();
        let loops = sch.get_loops(&block).unwrap();
        sch.split(&loops[0], &[None, Some(2.into())]).map(drop).map_err(|e| e.error.to_string())
    }

    #[test]
    fn a_nest_that_ends_early_is_left_alone() {
        let sometimes = |exit| Stmt::when(prim::lt(Var::dim("n"), 3), exit);
        assert_eq!(split(nest(Stmt::nop(), store)), Ok(()));
        for (exit, word) in
            [(Stmt::break_loop(), "break"), (Stmt::continue_loop(), "continue"), (Stmt::ret(0), "return")]
        {
            let reason = format!("there is a `{word}` in the nest, so not all of its iterations are executed");
            assert_eq!(split(nest(sometimes(exit), store)), Err(reason));
        }
    }

    #[test]
    fn a_jump_out_of_a_block_is_one_of_the_nest() {
        let inside = |a: &Ref<Buffer>, vi: &PrimExpr| {
            let sometimes = Stmt::when(prim::lt(Var::dim("n"), 3), Stmt::break_loop());
            Stmt::seq([sometimes, store(a, vi)])
        };
        let reason = "there is a `break` in the nest, so not all of its iterations are executed".to_string();
        assert_eq!(split(nest(Stmt::nop(), inside)), Err(reason));
    }

    #[test]
    fn a_loop_inside_of_a_block_may_end_early() {
        let inside =
            |a: &Ref<Buffer>, vi: &PrimExpr| Stmt::each("k", 4, |_| Stmt::seq([store(a, vi), Stmt::break_loop()]));
        assert_eq!(split(nest(Stmt::nop(), inside)), Ok(()));
        let mut sch = nest(Stmt::break_loop(), store);
        let block = sch.get_sblock("B", None).unwrap();
        // A hint changes no order.
        sch.annotate(&Rv::Block(block), "hint", 1i64).unwrap();
    }
}
