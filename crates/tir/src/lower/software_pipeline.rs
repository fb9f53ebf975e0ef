//! Statements of different iterations of a loop side by side.
//!
//! ```text
//! for i in range(16, annotations={                          B = T.alloc_buffer((2, 4))
//!         "software_pipeline_stage": [0, 1],                B[0, …] = A[0, …]
//!         "software_pipeline_order": [0, 1]}):       ->     for i in range(1, 16):
//!     B = T.alloc_buffer((4,))                                  B[i % 2, …] = A[i, …]
//!     B[…] = A[i, …]                                            C[i - 1, …] = B[(i - 1) % 2, …]
//!     C[i, …] = B[…]                                        C[15, …] = B[1, …]
//! ```
//!
//! A statement of stage `s` is executed `s` iterations later than it stands there; at one time, statements stand in the order that is given.
//! Scratch of the loop that a later stage reads has a version for each iteration that is under way. In front of the loop are the times at
//! which the last stages have nothing to do yet, and behind it those at which the first have nothing to do any more.
//!
//! Needs: a loop whose statements are as many as its annotations say, in the block form with or without a block around them. Leaves out
//! asynchronous stages, which are refused. Source: TVM's `InjectSoftwarePipeline`.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{PrimExpr, add, floormod, int_of, lt, max, sub};
use relaxide_ir::{Buffer, Var};

use super::loops::{rewrite_loops, statements};
use super::versions::{Uses, of_iteration, with_versions};
use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::analysis::regions::shared_memory;
use crate::stmt::*;

const STAGE: &str = "software_pipeline_stage";
const ORDER: &str = "software_pipeline_order";
const ASYNC: &str = "software_pipeline_async_stages";

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.InjectSoftwarePipeline",
    "Statements of different iterations of a loop stand side by side, as its annotations say.",
    inject_software_pipelines
);

fn inject_software_pipelines(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    rewrite_loops(func, |n| {
        n.annotations.get(STAGE).is_some().then(|| Pipeline::of(n).and_then(|pipeline| pipeline.emit()))
    })
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
        let (mut scratch, list) = body(n)?;
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
        let scratch = scratch.into_iter().map(|buffer| {
            let versions = versions(n, &buffer, &uses, &stages, &order)?;
            Ok((buffer, versions))
        });
        let scratch = scratch.collect::<Result<Vec<_>, LowerError>>()?;
        let mut ordered: Vec<(i64, (Stmt, i64))> =
            order.into_iter().zip(list.into_iter().zip(stages.clone())).collect();
        ordered.sort_by_key(|(place, _)| *place);
        let statements = ordered.into_iter().map(|(_, statement)| statement).collect();
        let last_stage = stages.into_iter().max().unwrap_or(0);
        Ok(Pipeline { of: n, statements, scratch, last_stage })
    }

    fn emit(&self) -> Result<Stmt, LowerError> {
        let (n, dtype) = (self.of, self.of.var.dtype());
        let number = |value: i64| int_of(dtype, value);
        let buffers: Vec<Ref<Buffer>> = self
            .scratch
            .iter()
            .map(|(buffer, count)| if *count == 1 { buffer.clone() } else { with_versions(buffer, *count) })
            .collect();
        let mut list: Vec<Stmt> = buffers.iter().map(Stmt::alloc).collect();
        // Statements of one time, which is counted from zero; `asks` says whether a statement's iteration may lie behind the last.
        let at_time = |time: &PrimExpr, takes: &dyn Fn(i64) -> bool, asks: bool| {
            let statements = self.statements.iter().filter(|(_, stage)| takes(*stage)).map(|(stmt, stage)| {
                let iteration = sub(time, number(*stage));
                let versions = self.scratch.iter().zip(&buffers).filter(|((_, count), _)| *count > 1);
                let versions = versions
                    .map(|((old, count), new)| (old.clone(), (new.clone(), floormod(&iteration, number(*count)))));
                let stmt = of_iteration(stmt, &n.var, &add(&n.min, &iteration), &versions.collect::<HashMap<_, _>>());
                if asks { Stmt::when(lt(iteration, n.extent.clone()), stmt) } else { stmt }
            });
            Stmt::seq(statements)
        };
        let is_long = n.extent.as_int().is_some_and(|extent| extent >= self.last_stage);
        list.extend((0..self.last_stage).map(|time| at_time(&number(time), &|stage| stage <= time, !is_long)));
        let full = if is_long { n.extent.clone() } else { max(n.extent.clone(), number(self.last_stage)) };
        let counter = Var::new(n.var.name.clone(), n.var.ty.clone());
        let body = at_time(&PrimExpr::from(&counter), &|_| true, false);
        let (min, extent) = (number(self.last_stage), sub(&full, number(self.last_stage)));
        let mut annotations = n.annotations.clone();
        [STAGE, ORDER].iter().for_each(|name| drop(annotations.0.shift_remove(*name)));
        list.push(Ref::new(For { var: counter, min, extent, annotations, body, ..For::clone(n) }).into());
        let behind = |time: i64| at_time(&add(&full, number(time)), &|stage| stage > time, !is_long);
        list.extend((0..self.last_stage).map(behind));
        Ok(Stmt::seq(list))
    }
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

/// How many iterations are under way from a buffer's first writer to its last user.
fn versions(n: &For, buffer: &Ref<Buffer>, uses: &[Uses], stages: &[i64], order: &[i64]) -> Result<i64, LowerError> {
    let writers: Vec<usize> = (0..uses.len()).filter(|at| uses[*at].written.contains(buffer)).collect();
    let users = (0..uses.len()).filter(|at| uses[*at].written.contains(buffer) || uses[*at].read.contains(buffer));
    let (mut first, mut last) = (i64::MAX, 0);
    for user in users {
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
    Ok((last - first.min(last)) + 1)
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
