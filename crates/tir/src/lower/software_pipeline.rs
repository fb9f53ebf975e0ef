//! Statements of different iterations of a loop side by side.
//!
//! ```text
//! for i in range(16, annotations={                          with T.sblock():
//!         "software_pipeline_stage": [0, 1],                    B = T.sblock_alloc_buffer((2, 4))
//!         "software_pipeline_order": [0, 1]}):       ->         with T.sblock(): B[0, …] = A[0, …]
//!     with T.sblock():                                          with T.sblock():
//!         B = T.sblock_alloc_buffer((4,))                           for i in range(15):
//!         with T.sblock(): B[…] = A[i, …]                               with T.sblock(): B[(i + 1) % 2, …] = A[i + 1, …]
//!         with T.sblock(): C[i, …] = B[…]                               with T.sblock(): C[i, …] = B[i % 2, …]
//!                                                               with T.sblock(): C[15, …] = B[1, …]
//! ```
//!
//! A statement of stage `s` is executed `s` iterations later than it stands there; at one time, statements stand in the order that is given.
//! Scratch of the loop that a later stage reads has a version for each iteration that is under way. In front of the loop are the times at
//! which the last stages have nothing to do yet, and behind it those at which the first have nothing to do any more: each of the three
//! parts is a block, and so is each statement, under the condition that it has an iteration at that time. A loop of fewer iterations
//! than stages has no time at which all stages have something to do; what the first part has done is not done again behind it.
//!
//! A pipeline within a pipeline counts as the parts that it has become, where the annotations count those.
//!
//! Needs: a loop whose statements are as many as its annotations say. Leaves out asynchronous stages, which are refused. Source: TVM's
//! `InjectSoftwarePipeline`.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::attrs::AttrValue;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimVisitor, add, boolean, floormod, free_vars, int_of, max, sub};
use relaxide_ir::{Attrs, Buffer, Var};

use super::loops::{rewrite_loops, statements};
use super::versions::{Uses, Version, of_iteration, with_versions};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::regions::{regions_of, regions_of_block, shared_memory};
use crate::functor::StmtVisitor;
use crate::stmt::*;

const STAGE: &str = "software_pipeline_stage";
const ORDER: &str = "software_pipeline_order";
const ASYNC: &str = "software_pipeline_async_stages";
/// The mark of a block whose scratch is to have two versions at least; its value is the place among the block's writes.
const DOUBLE: &str = "double_buffer_scope";

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.InjectSoftwarePipeline",
    "Statements of different iterations of a loop stand side by side, as its annotations say.",
    inject_software_pipelines
);

fn inject_software_pipelines(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    rewrite_loops(func, |n| n.annotations.get(STAGE).is_some().then(|| Pipeline::of(n).map(|pipeline| pipeline.emit())))
}

fn refused(n: &For, what: impl std::fmt::Display) -> LowerError {
    LowerError::Refused(format!("the software pipeline of the loop over `{}`: {what}", n.var.name))
}

/// A loop that says how its statements overlap.
struct Pipeline<'a> {
    of: &'a For,
    /// Statements with their stages, in the order of one time.
    statements: Vec<(Stmt, i64)>,
    /// Scratch, and how many versions it has.
    scratch: Vec<(Ref<Buffer>, i64)>,
    last_stage: i64,
}

impl<'a> Pipeline<'a> {
    fn of(n: &'a For) -> Result<Pipeline<'a>, LowerError> {
        if !matches!(n.kind, ForKind::Serial | ForKind::Unrolled) || n.body.has_early_exit() {
            return Err(refused(n, "iterations are to be one after the other, without `break` and `continue`"));
        }
        if n.annotations.get(ASYNC).is_some() {
            return Err(refused(n, format!("there are no asynchronous stages (`{ASYNC}`)")));
        }
        let (stages, order) = (n.annotations.ints(STAGE).unwrap_or_default(), n.annotations.ints(ORDER));
        let order = order.ok_or_else(|| refused(n, format!("`{ORDER}` is missing, the places of its statements")))?;
        let (mut scratch, mut list) = body(n)?;
        if list.len() < stages.len() {
            list = list.into_iter().flat_map(|stmt| parts_of_pipeline(stmt, &mut scratch)).collect();
        }
        let list: Vec<Stmt> = list.into_iter().filter(|stmt| keep(stmt, &mut scratch)).collect();
        if stages.len() != list.len() || order.len() != list.len() {
            let (stages, order, count) = (stages.len(), order.len(), list.len());
            return Err(refused(n, format!("{stages} stages and {order} places for {count} statements")));
        }
        let mut places = order.clone();
        places.sort_unstable();
        if places.iter().enumerate().any(|(at, place)| at as i64 != *place) || stages.iter().any(|stage| *stage < 0) {
            return Err(refused(
                n,
                format!("stages {stages:?} are to be 0 or more, and places {order:?} each number once"),
            ));
        }
        if list.iter().any(|stmt| matches!(stmt, Stmt::Bind(_) | Stmt::Decl(_))) {
            return Err(refused(
                n,
                "a name that the loop defines is known to statements of one iteration only; put its value there",
            ));
        }
        let shared = shared_memory(&n.body);
        if let Some(buffer) = scratch.iter().find(|buffer| shared.contains(&buffer.data)) {
            return Err(refused(n, format!("`{}` is known by a pointer, so it has no versions", buffer.name)));
        }
        let uses: Vec<Uses> = list.iter().map(Uses::of).collect();
        let twice = asked_twice(&list);
        let scratch = scratch.into_iter().map(|buffer| {
            let versions = versions(n, &buffer, &list, &uses, &stages, &order)?;
            let versions = if twice.contains(&buffer) { versions.max(2) } else { versions };
            Ok((buffer, versions))
        });
        let scratch = scratch.collect::<Result<Vec<_>, LowerError>>()?;
        let mut ordered: Vec<(i64, (Stmt, i64))> =
            order.into_iter().zip(list.into_iter().map(as_block).zip(stages.clone())).collect();
        ordered.sort_by_key(|(place, _)| *place);
        let statements = ordered.into_iter().map(|(_, statement)| statement).collect();
        let last_stage = stages.into_iter().max().unwrap_or(0);
        Ok(Pipeline { of: n, statements, scratch, last_stage })
    }

    fn emit(&self) -> Stmt {
        let n = self.of;
        let number = |value: i64| int_of(n.var.dtype(), value);
        let buffers: Vec<Ref<Buffer>> = self
            .scratch
            .iter()
            .map(|(buffer, count)| if *count == 1 { buffer.clone() } else { with_versions(buffer, *count) })
            .collect();
        let (begin, end, last) = (n.min.clone(), add(&n.min, &n.extent), number(self.last_stage));
        let full = add(&n.min, &last);
        let is_long = self.last_stage <= 1 || Analyzer::new().can_prove(&prim::le(&last, &n.extent));
        // Of a loop that may be too short, the times that the first part has seen are left out of the last one.
        let (drain, not_before) = match n.extent.as_int() {
            _ if is_long => (end.clone(), None),
            Some(_) => (max(end.clone(), full.clone()), None),
            None => (end.clone(), Some(full.clone())),
        };
        let behind = add(&drain, &last);
        let parts = [
            Part { times: (begin, full.clone()), kind: ForKind::Unrolled, not_before: None },
            Part { times: (full, end), kind: n.kind, not_before: None },
            Part { times: (drain, behind), kind: ForKind::Unrolled, not_before },
        ];
        let parts = Stmt::seq(parts.iter().map(|part| self.part(part, &buffers)));
        block(buffers, parts)
    }

    /// One of the three parts, as a block.
    fn part(&self, part: &Part, buffers: &[Ref<Buffer>]) -> Stmt {
        let n = self.of;
        let (start, stop) = &part.times;
        let mut analyzer = Analyzer::new();
        let extent = analyzer.simplify(&sub(stop, start));
        let zero = int_of(n.var.dtype(), 0);
        if analyzer.can_prove(&prim::le(&extent, &zero)) {
            return block(Vec::new(), Stmt::nop());
        }
        let is_once = analyzer.can_prove_equal(&extent, &int_of(n.var.dtype(), 1));
        let counter = Var::new(n.var.name.clone(), n.var.ty.clone());
        // The time is the counter, which goes through the loop's own values, and how much later the part begins.
        let (counted, later) = match is_once {
            true => (start.clone(), zero),
            false => (PrimExpr::from(&counter), sub(start, &n.min)),
        };
        if !is_once {
            analyzer.bind(&counter, n.min.clone(), extent.clone());
        }
        let end = add(&n.min, &n.extent);
        let mut list = Vec::new();
        for (stmt, stage) in &self.statements {
            let iteration = add(sub(&counted, int_of(n.var.dtype(), *stage)), &later);
            let mut inside = prim::and(prim::le(&n.min, &iteration), prim::lt(&iteration, &end));
            if let Some(time) = &part.not_before {
                inside = prim::and(inside, prim::le(time, add(&counted, &later)));
            }
            if analyzer.can_prove(&prim::not(inside.clone())) {
                continue;
            }
            let inside = if analyzer.can_prove(&inside) { boolean(true) } else { inside };
            list.push(under(inside, &self.of_iteration(stmt, &iteration, buffers)));
        }
        let body = Stmt::seq(list);
        if is_once {
            return as_block(body);
        }
        let mut annotations = n.annotations.clone();
        [STAGE, ORDER].iter().for_each(|name| drop(annotations.0.shift_remove(*name)));
        let kind = part.kind;
        block(Vec::new(), Ref::new(For { var: counter, extent, annotations, body, kind, ..For::clone(n) }).into())
    }

    fn of_iteration(&self, stmt: &Stmt, iteration: &PrimExpr, buffers: &[Ref<Buffer>]) -> Stmt {
        let counted = sub(iteration, &self.of.min);
        let several = self.scratch.iter().zip(buffers).filter(|((_, count), _)| *count > 1);
        let version = |((old, count), new): (&(Ref<Buffer>, i64), &Ref<Buffer>)| {
            let at = floormod(&counted, int_of(self.of.var.dtype(), *count));
            let version = if self.last_stage == 1 { Version::at(new, at) } else { Version::among_all(new, at) };
            (old.clone(), version)
        };
        of_iteration(stmt, &self.of.var, iteration, &several.map(version).collect::<HashMap<_, _>>())
    }
}

/// Times at which some stages have something to do: those in front of the loop, in it, or behind it.
struct Part {
    /// The first one, and the one behind the last.
    times: (PrimExpr, PrimExpr),
    kind: ForKind,
    /// Times before this one are another part's.
    not_before: Option<PrimExpr>,
}

/// A block without axes, with the regions that its body touches. What is one already stays.
fn as_block(stmt: Stmt) -> Stmt {
    match &stmt {
        Stmt::Block(n) if n.iter_values.is_empty() && n.predicate.is_int(1) => stmt,
        _ => block(Vec::new(), stmt),
    }
}

fn block(alloc_buffers: Vec<Ref<Buffer>>, body: Stmt) -> Stmt {
    let mut block = SBlock {
        iter_vars: Vec::new(),
        reads: Vec::new(),
        writes: Vec::new(),
        name: String::new(),
        alloc_buffers,
        match_buffers: Vec::new(),
        annotations: Attrs::new(),
        init: None,
        body,
    };
    let touched = regions_of_block(&block);
    (block.reads, block.writes) = (touched.reads, touched.writes);
    Ref::new(SBlockRealize { iter_values: Vec::new(), predicate: boolean(true), block: Ref::new(block) }).into()
}

/// A block under a condition.
fn under(condition: PrimExpr, stmt: &Stmt) -> Stmt {
    match stmt {
        Stmt::Block(n) => Ref::new(SBlockRealize { predicate: condition, ..SBlockRealize::clone(n) }).into(),
        _ => Stmt::when(condition, stmt.clone()),
    }
}

/// Scratch of which blocks ask for two versions.
fn asked_twice(list: &[Stmt]) -> Vec<Ref<Buffer>> {
    struct Asked(Vec<Ref<Buffer>>);
    impl PrimVisitor for Asked {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Asked {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            if let Stmt::Block(n) = stmt
                && let Some(mark) = n.block.annotations.0.get(DOUBLE)
            {
                let at = match mark {
                    AttrValue::Int(at) => Some(*at),
                    AttrValue::Prim(e) => e.as_int(),
                    _ => None,
                };
                let region = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| n.block.writes.get(at));
                self.0.extend(region.map(|region| region.buffer.clone()));
            }
            self.walk_stmt(stmt);
        }
    }
    let mut asked = Asked(Vec::new());
    list.iter().for_each(|stmt| asked.visit_stmt(stmt));
    asked.0
}

/// Scratch and statements of a loop's body.
fn body(n: &For) -> Result<(Vec<Ref<Buffer>>, Vec<Stmt>), LowerError> {
    match &n.body {
        Stmt::Block(realize) => {
            let block = &realize.block;
            let is_plain = block.iter_vars.is_empty() && block.init.is_none() && block.match_buffers.is_empty();
            if !is_plain || !realize.predicate.is_int(1) {
                return Err(refused(
                    n,
                    "the block in it is to be opaque and without conditions; ConvertBlocksToOpaque makes such",
                ));
            }
            Ok((block.alloc_buffers.clone(), statements(&block.body)))
        }
        body => Ok((Vec::new(), statements(body))),
    }
}

/// Whether it is a statement of the pipeline and not scratch.
fn keep(stmt: &Stmt, scratch: &mut Vec<Ref<Buffer>>) -> bool {
    if let Stmt::Alloc(n) = stmt {
        scratch.push(n.buffer.clone());
    }
    !matches!(stmt, Stmt::Alloc(_))
}

/// The parts of a pipeline that stands within this one, whose scratch is this one's then; any other statement is left as it is.
fn parts_of_pipeline(stmt: Stmt, scratch: &mut Vec<Ref<Buffer>>) -> Vec<Stmt> {
    let Stmt::Block(n) = &stmt else { return vec![stmt] };
    let is_plain = n.iter_values.is_empty() && n.predicate.is_int(1) && n.block.match_buffers.is_empty();
    if !is_plain || !matches!(n.block.body, Stmt::Seq(_)) {
        return vec![stmt];
    }
    scratch.extend(n.block.alloc_buffers.iter().cloned());
    statements(&n.block.body)
}

/// How many versions a buffer has: one for each iteration that is under way from its first writer to its last user. One less will do
/// where no writer stands in front of a user of a later stage, at one time: the user then has the version of the iteration that is
/// behind it before another one is written over it.
fn versions(
    n: &For,
    buffer: &Ref<Buffer>,
    list: &[Stmt],
    uses: &[Uses],
    stages: &[i64],
    order: &[i64],
) -> Result<i64, LowerError> {
    let writers: Vec<usize> = (0..uses.len()).filter(|at| uses[*at].written.contains(buffer)).collect();
    let is_user = |at: &usize| uses[*at].written.contains(buffer) || uses[*at].read.contains(buffer);
    let users: Vec<usize> = (0..uses.len()).filter(is_user).collect();
    let (mut first, mut last) = (i64::MAX, 0);
    for user in &users {
        let user = *user;
        for writer in writers.iter().filter(|writer| **writer < user) {
            let is_late =
                stages[*writer] > stages[user] || stages[*writer] == stages[user] && order[*writer] > order[user];
            if is_late {
                let what = format!("statement {user} uses `{}` before statement {writer} has written it", buffer.name);
                return Err(refused(n, what));
            }
        }
        (first, last) = (first.min(stages[user]), last.max(stages[user]));
    }
    let under_way = (last - first.min(last)) + 1;
    let mut pairs = writers.iter().flat_map(|writer| users.iter().map(move |user| (*writer, *user)));
    let meets = |(writer, user): (usize, usize)| {
        order[writer] < order[user]
            && stages[writer] < stages[user]
            && may_meet(&n.var, buffer, &list[writer], &list[user])
    };
    Ok(if under_way > 1 && !pairs.any(meets) { under_way - 1 } else { under_way })
}

/// Whether a statement may touch elements of a buffer that another writes, in any two iterations.
fn may_meet(counter: &Ref<Var>, buffer: &Ref<Buffer>, writer: &Stmt, user: &Stmt) -> bool {
    let of = |regions: Vec<Ref<BufferRegion>>| regions.into_iter().find(|region| region.buffer == *buffer);
    let Some(written) = of(regions_of(writer).writes) else { return true };
    let touched = regions_of(user);
    let mut analyzer = Analyzer::new();
    let mut apart = |a: &Range, b: &Range| {
        let ends = [&a.min, &a.extent, &b.min, &b.extent];
        let is_fixed = !ends.iter().any(|end| free_vars(end).contains(counter));
        is_fixed
            && (analyzer.can_prove(&prim::le(add(&a.min, &a.extent), b.min.clone()))
                || analyzer.can_prove(&prim::le(add(&b.min, &b.extent), a.min.clone())))
    };
    let mut meets = |region: Ref<BufferRegion>| !written.region.iter().zip(&region.region).any(|(a, b)| apart(a, b));
    of(touched.reads).is_some_and(&mut meets) || of(touched.writes).is_some_and(&mut meets)
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Tensor};
    use relaxide_ir::Attrs;
    use relaxide_ir::attrs::AttrValue;
    use relaxide_ir::prim::{constant, int, load};

    use super::*;
    use crate::testing::Sample;

    const F32: DataType = DataType::float(32);

    fn list(numbers: &[i64]) -> AttrValue {
        AttrValue::List(numbers.iter().map(|number| AttrValue::Int(*number)).collect())
    }

    /// Three statements of a loop over as many iterations as a scalar says; `C[i] = (2 A[i] + 1) 2 A[i]`.
    fn sample(iterations: i64, stages: &[i64], order: &[i64]) -> Sample {
        sample_of(iterations, stages, order, false)
    }

    /// The same, perhaps with a block around the statements, which has the scratch.
    fn sample_of(iterations: i64, stages: &[i64], order: &[i64], in_block: bool) -> Sample {
        let (a, c) = (Buffer::new("A", F32, [8]), Buffer::new("C", F32, [8]));
        let [b, d] = ["B", "D"].map(|name| Buffer::scoped(name, F32, [int(1)], "local"));
        let [i, n] = ["i", "n"].map(Var::dim);
        let at = || [PrimExpr::from(&i)];
        let own = |buffer: &Ref<Buffer>| load(buffer, [int(0)]);
        let statements = [
            Stmt::store(&b, [int(0)], load(&a, at()) * constant(F32, 2.0)),
            Stmt::store(&d, [int(0)], own(&b) + constant(F32, 1.0)),
            Stmt::store(&c, at(), own(&d) * own(&b)),
        ];
        let body = match in_block {
            false => Stmt::seq([Stmt::alloc(&b), Stmt::alloc(&d)].into_iter().chain(statements)),
            true => block("", vec![b, d], Stmt::seq(statements.map(|stmt| block("statement", vec![], stmt)))),
        };
        let annotations = Attrs::new().with(STAGE, list(stages)).with(ORDER, list(order));
        let plain = For::new(ForKind::Serial, i, int(0), PrimExpr::from(&n), body);
        let loop_: Stmt = Ref::new(For { annotations, ..plain }).into();
        let zeros = Stmt::each("j", 8, |j| Stmt::store(&c, [j.clone()], constant(F32, 0.0)));
        let func = PrimFunc::over_buffers(&[a, c], &[n], Stmt::seq([zeros, loop_]));
        let inputs = vec![Tensor::from_slice(&[1.0_f32, 2.0, -3.0, 0.5, 4.0, 7.0, 8.0, 9.0], &[8]).unwrap()];
        Sample { func, inputs, outputs: vec![(vec![8], F32)], scalars: vec![iterations] }
    }

    /// An opaque block.
    fn block(name: &str, alloc_buffers: Vec<Ref<Buffer>>, body: Stmt) -> Stmt {
        let block = SBlock {
            iter_vars: vec![],
            reads: vec![],
            writes: vec![],
            name: name.into(),
            alloc_buffers,
            match_buffers: vec![],
            annotations: Attrs::new(),
            init: None,
            body,
        };
        let predicate = int_of(DataType::bool(), 1);
        Ref::new(SBlockRealize { iter_values: vec![], predicate, block: Ref::new(block) }).into()
    }

    #[test]
    fn blocks_are_lowered_behind_it() {
        for iterations in 0..4 {
            let sample = sample_of(iterations, &[0, 1, 1], &[0, 1, 2], true);
            let made = inject_software_pipelines(&sample.func).unwrap();
            let lowered = crate::lower::lower(&made).unwrap_or_else(|error| panic!("{error}\n{made}"));
            let (found, expected) = (sample.interpret(&lowered).unwrap(), sample.interpret(&sample.func).unwrap());
            assert_eq!(found, expected, "{iterations} iterations\n{made}\n{lowered}");
        }
    }

    #[test]
    fn any_number_of_iterations_overlaps() {
        let pipelines: [(&[i64], &[i64]); 5] = [
            (&[0, 0, 0], &[0, 1, 2]),
            (&[0, 1, 1], &[0, 1, 2]),
            (&[0, 1, 2], &[0, 1, 2]),
            (&[0, 0, 1], &[1, 2, 0]),
            (&[0, 2, 3], &[2, 0, 1]),
        ];
        for (stages, order) in pipelines {
            for iterations in 0..6 {
                let sample = sample(iterations, stages, order);
                let made = inject_software_pipelines(&sample.func).unwrap();
                let (found, expected) = (sample.interpret(&made).unwrap(), sample.interpret(&sample.func).unwrap());
                assert_eq!(found, expected, "{iterations} iterations, {stages:?}, {order:?}\n{made}");
            }
        }
    }

    #[test]
    fn what_is_no_pipeline_is_refused() {
        let refused: [(&[i64], &[i64], &str); 4] = [
            (&[0, 1], &[0, 1], "2 stages and 2 places for 3 statements"),
            (&[0, 0, 0], &[0, 0, 1], "each number once"),
            (&[1, 0, 1], &[0, 1, 2], "before statement 0 has written it"),
            (&[0, 0, 0], &[1, 0, 2], "before statement 0 has written it"),
        ];
        for (stages, order, why) in refused {
            let error = inject_software_pipelines(&sample(4, stages, order).func).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
