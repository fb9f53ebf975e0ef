//! Loops and kernels are put between the calls that a profiler of the device reads.
//!
//! ```text
//! for i in range(8):                      T.start_profile_intrinsic(0)
//!     for j in range(8):                  for i in range(8):
//!         A[i, j] = 1            ->           T.start_profile_intrinsic(2)
//!     for j in range(8):                      …
//!         …                                   T.end_profile_intrinsic(2)
//!                                         T.end_profile_intrinsic(0)
//! ```
//!
//! A kernel and each of its loops, outer ones first, has a number; numbers go on from kernel to kernel, and from one run of the
//! pass to the next unless `s_tir.reset_start_id` is set. Which loops are profiled the pass context says: those that stand beside
//! another loop in a loop, or, without `s_tir.instr_siblings`, those that at most `s_tir.lwp_max_depth` loops are around; in both
//! cases no loop with fewer than `s_tir.lwp_min_height` loops below it (one, if nothing is said). What a parallel loop repeats is
//! not profiled, except where nothing is around that loop. `s_tir.lwp_disable_func_prof` leaves the kernels out.

use std::sync::atomic::{AtomicI64, Ordering};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::BaseFunc;
use relaxide_ir::pass::{PassConfig, PassInfo};
use relaxide_ir::prim::{self, PrimExpr, PrimMutator};

use super::module_of_unit_steps;
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = PassInfo::new(
    "s_tir.transform.InstrumentProfileIntrinsics",
    "Loops and kernels stand between calls that a device's profiler reads.",
    |module, context, _| {
        let mut module = module_of_unit_steps(module, "s_tir.transform.InstrumentProfileIntrinsics")?;
        let options = Options::of(&context.config);
        let first =
            if context.config.bool("s_tir.reset_start_id") == Some(true) { 0 } else { NEXT.load(Ordering::Relaxed) };
        let mut number = first;
        for func in module.functions.values_mut() {
            let Some(kernel) = func.downcast::<PrimFunc>() else { continue };
            *func = BaseFunc::from(Ref::new(instrumented(&kernel, options, &mut number)));
        }
        NEXT.store(number, Ordering::Relaxed);
        Ok(module)
    },
);

/// The calls in front of what is profiled and behind it. They change nothing that a kernel computes.
pub const PROFILER_CALLS: [&str; 2] = ["tirx.start_profile_intrinsic", "tirx.end_profile_intrinsic"];

/// The first number that has not been given.
static NEXT: AtomicI64 = AtomicI64::new(0);

/// Which loops are profiled.
#[derive(Clone, Copy)]
struct Options {
    kernels: bool,
    siblings: bool,
    max_depth: usize,
    min_height: usize,
}

impl Options {
    fn of(config: &PassConfig) -> Options {
        let count = |name, usual| config.int(name).map_or(usual, |n| usize::try_from(n).unwrap_or(0));
        Options {
            kernels: config.bool("s_tir.lwp_disable_func_prof") != Some(true),
            siblings: config.bool("s_tir.instr_siblings") != Some(false),
            max_depth: count("s_tir.lwp_max_depth", 0),
            min_height: count("s_tir.lwp_min_height", 1),
        }
    }
}

fn instrumented(func: &PrimFunc, options: Options, number: &mut i64) -> PrimFunc {
    let own = take(number);
    let mut profile = Profile { options, number, depth: 0, beside: false, parallel: false };
    let body = profile.mutate_stmt(&func.body);
    func.with_body(if options.kernels { between(own, body) } else { body })
}

fn take(number: &mut i64) -> i64 {
    *number += 1;
    *number - 1
}

/// A statement between the calls of a number.
fn between(number: i64, stmt: Stmt) -> Stmt {
    let call =
        |op: &str| Stmt::evaluate(prim::call(DataType::void(), op, vec![prim::int_of(DataType::int(32), number)]));
    Stmt::seq([call(PROFILER_CALLS[0]), stmt, call(PROFILER_CALLS[1])])
}

struct Profile<'a> {
    options: Options,
    number: &'a mut i64,
    /// How many loops are around.
    depth: usize,
    /// Whether the statement stands beside another loop in a loop.
    beside: bool,
    /// Whether a parallel loop is around that is in a loop itself.
    parallel: bool,
}

impl PrimMutator for Profile<'_> {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        e.clone()
    }
}

impl StmtMutator for Profile<'_> {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => {
                let number = take(self.number);
                let chosen = if self.options.siblings { self.beside } else { self.depth <= self.options.max_depth };
                let chosen = chosen && !self.parallel && Height::of(&n.body) >= self.options.min_height;
                let outer = (self.depth, self.beside, self.parallel);
                self.parallel |= n.kind == ForKind::Parallel && self.depth > 0;
                (self.depth, self.beside) = (self.depth + 1, false);
                let body = self.mutate_stmt(&n.body);
                (self.depth, self.beside, self.parallel) = outer;
                let made = Stmt::loop_around(n, body);
                if chosen { between(number, made) } else { made }
            }
            Stmt::Seq(n) => {
                let outer = self.beside;
                let loops = n.seq.iter().filter(|s| matches!(s, Stmt::For(_))).count();
                self.beside = loops > 1 && self.depth > 0;
                let made = self.remake_stmt(stmt);
                self.beside = outer;
                made
            }
            _ => {
                let outer = std::mem::replace(&mut self.beside, false);
                let made = self.remake_stmt(stmt);
                self.beside = outer;
                made
            }
        }
    }
}

/// How many loops lie in each other at most.
#[derive(Default)]
struct Height {
    depth: usize,
    most: usize,
}

impl Height {
    fn of(stmt: &Stmt) -> usize {
        let mut height = Height::default();
        height.visit_stmt(stmt);
        height.most
    }
}

impl prim::PrimVisitor for Height {
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Height {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        let is_loop = matches!(stmt, Stmt::For(_));
        self.depth += usize::from(is_loop);
        self.most = self.most.max(self.depth);
        self.walk_stmt(stmt);
        self.depth -= usize::from(is_loop);
    }
}
