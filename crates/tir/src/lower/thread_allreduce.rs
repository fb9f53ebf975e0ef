//! What all threads of a group combine becomes exchanges between them.
//!
//! `tvm_thread_allreduce(n, values…, where, results…, axes…)` combines `n` values of each thread of a block with those of the threads that
//! differ from it along `axes` only, its *group*. All of them get the results. How values are combined says the attribute around it.
//!
//! ```text
//! with T.attr(T.comm_reducer(lambda x, y: x + y, [0]), "reduce_scope", 0):
//!     T.tvm_thread_allreduce(1, A[tx], True, r[0], tx)
//! ```
//!
//! Three forms, `R` being the threads of a group and `W` those of a warp:
//!
//! | groups | what they do |
//! | --- | --- |
//! | lie side by side, `R` divides `W` | a thread takes the value of the one `R / 2` places further, then `R / 4` …; all take the first one's result |
//! | lie side by side, `W` divides `R`, no more than `W` warps | so does each warp; what the warps have goes through shared memory to the first, which does it again |
//! | all others, devices without exchanges | through shared memory: half of the threads combine theirs with the other half's, then a quarter … |
//!
//! Where the results are memory of the kernel, they live where the values do: in a thread's own `red_buf`, or in the group's element of the
//! shared `red_result`. Accesses to them go there. Everywhere else they are stored.
//!
//! The threads of a block come to the call together. Cost: 5 exchanges for a warp of 32, 10 and two barriers for 1,024 threads.
//! Source: TVM's `LowerThreadAllreduce`.

mod exchange;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, BufferLoad, PrimCall, PrimExpr, PrimMutator, PrimVisitor};
use relaxide_ir::{DataType, Target, Var};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;
use exchange::Exchange;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.LowerThreadAllreduce",
    "What the threads of a group combine becomes exchanges between them.",
    lower_thread_allreduce
);

const ALL_REDUCE: &str = "tirx.tvm_thread_allreduce";

/// The element type of numbers of threads.
const INDEX: DataType = DataType::int(32);

fn lower_thread_allreduce(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let target = func.target().map_err(|why| LowerError::Refused(why.to_string()))?;
    let mut plans = Plans {
        machine: Machine::of(target.as_ref()),
        threads: Vec::new(),
        reducer: None,
        allocated: Vec::new(),
        found: HashMap::new(),
        moved: HashMap::new(),
        error: None,
    };
    plans.visit_stmt(&func.body);
    match plans.error {
        Some(error) => Err(error),
        None if plans.found.is_empty() => Ok(func.clone()),
        None => Ok(func.with_body(Replace { found: plans.found, moved: plans.moved }.mutate_stmt(&func.body))),
    }
}

/// What the threads of a device can do.
#[derive(Clone, Copy, Debug, Default)]
struct Machine {
    /// Threads that take values from each other.
    warp: Option<i64>,
    /// Whether they say which of them take part.
    masks: bool,
    /// Whether compilers must be told that other threads change shared memory.
    volatile: bool,
}

impl Machine {
    fn of(target: Option<&Target>) -> Machine {
        let Some(target) = target else { return Machine::default() };
        let warp = target.int("thread_warp_size").filter(|threads| *threads > 1);
        match target.kind.name() {
            "cuda" | "rocm" => Machine { warp, masks: true, volatile: false },
            "metal" => Machine { warp, ..Machine::default() },
            "webgpu" if target.int("supports_subgroups") == Some(1) => {
                Machine { warp: warp.or(Some(32)), masks: false, volatile: true }
            }
            _ => Machine::default(),
        }
    }
}

/// An axis of the threads of a block.
#[derive(Clone, Debug)]
struct Thread {
    var: Ref<Var>,
    /// Its place in the order of threads: `x` counts fastest.
    place: usize,
    extent: i64,
}

/// Threads as numbers from zero, the first axis fastest, and how many there are.
fn number_of(threads: &[Thread]) -> (PrimExpr, i64) {
    let zero = (prim::int_of(INDEX, 0), 1);
    let (number, count) = threads.iter().fold(zero, |(number, count), thread| {
        let part = prim::cast(INDEX, &thread.var) * prim::int_of(INDEX, count);
        (number + part, count * thread.extent)
    });
    (Analyzer::new().simplify(&number), count)
}

/// What becomes of each call, and where results live from then on.
struct Plans {
    machine: Machine,
    threads: Vec<Thread>,
    reducer: Option<Ref<CommReducer>>,
    /// The pointers of memory that the kernel allocates.
    allocated: Vec<Ref<Var>>,
    found: HashMap<Ref<PrimCall>, Stmt>,
    /// By the pointer of a result, the buffer and the element that take its place.
    moved: HashMap<Ref<Var>, (Ref<AllocBuffer>, PrimExpr)>,
    error: Option<LowerError>,
}

impl PrimVisitor for Plans {}

impl StmtVisitor for Plans {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => {
                let outside = self.threads.len();
                if let Some(error) = self.enter(n) {
                    self.error = Some(error);
                }
                self.walk_stmt(stmt);
                self.threads.truncate(outside);
            }
            Stmt::Attr(n) if n.key == "reduce_scope" => {
                let outer = std::mem::replace(&mut self.reducer, n.reducer());
                self.walk_stmt(stmt);
                self.reducer = outer;
            }
            Stmt::Alloc(n) => self.allocated.push(n.buffer.data.clone()),
            Stmt::Evaluate(n) => {
                if let PrimExpr::Call(call) = &n.value
                    && call.op == ALL_REDUCE
                    && let Err(error) = self.plan(call)
                {
                    self.error = Some(error);
                }
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

impl Plans {
    /// Enters a loop over threads of a block.
    fn enter(&mut self, n: &For) -> Option<LowerError> {
        let place = ["x", "y", "z"].iter().position(|axis| n.thread_tag == format!("threadIdx.{axis}"))?;
        let Some(extent) = n.extent.as_int() else {
            return Some(LowerError::Refused(format!("how many threads `{}` has is not known", n.thread_tag)));
        };
        self.threads.push(Thread { var: n.var.clone(), place, extent });
        None
    }

    fn plan(&mut self, call: &Ref<PrimCall>) -> Result<(), LowerError> {
        let refuse = |what: &str| LowerError::Refused(format!("tvm_thread_allreduce: {what}"));
        let reducer =
            self.reducer.clone().ok_or_else(|| refuse("no attribute `reduce_scope` says how values are combined"))?;
        let count = call.args.first().and_then(PrimExpr::as_int).and_then(|n| usize::try_from(n).ok());
        let count = count.filter(|n| *n == reducer.result.len() && call.args.len() > 2 * n + 1);
        let count = count.ok_or_else(|| refuse("its values are not as many as its reducer combines"))?;
        let (values, condition) = (&call.args[1..=count], &call.args[count + 1]);
        let (results, axes) = call.args[count + 2..].split_at(count);
        let results: Vec<Ref<BufferLoad>> = results.iter().filter_map(as_load).collect();
        if results.len() != count {
            return Err(refuse("its results are not elements of buffers"));
        }
        let mut threads = self.threads.clone();
        threads.sort_by_key(|thread| thread.place);
        let (own, others): (Vec<Thread>, Vec<Thread>) =
            threads.into_iter().partition(|thread| axes.iter().any(|axis| axis.as_var() == Some(&thread.var)));
        let side_by_side = own.iter().all(|one| others.iter().all(|o| o.extent == 1 || o.place > one.place));
        let ((member, members), (group, groups)) = (number_of(&own), number_of(&others));
        let exchange =
            Exchange { machine: self.machine, reducer: &reducer, values, condition, member, members, group, groups };
        let (mut stmts, buffers, at) = exchange.build(side_by_side);
        for (load, buffer) in results.iter().zip(buffers) {
            let data = &load.buffer.data;
            let is_one = load.buffer.num_elements().is_int(1) && !self.moved.contains_key(data);
            if is_one && self.allocated.contains(data) {
                self.moved.insert(data.clone(), (buffer, at.clone()));
                continue;
            }
            stmts.insert(0, Stmt::Alloc(buffer.clone()));
            let value = prim::load(&buffer.buffer, [at.clone()]);
            stmts.push(Stmt::store(&load.buffer, load.indices.iter().cloned(), value));
        }
        self.found.insert(call.clone(), Stmt::seq(stmts));
        Ok(())
    }
}

fn as_load(e: &PrimExpr) -> Option<Ref<BufferLoad>> {
    if let PrimExpr::Load(load) = e { Some(load.clone()) } else { None }
}

/// Puts the exchanges and the new places of results into a kernel.
struct Replace {
    found: HashMap<Ref<PrimCall>, Stmt>,
    moved: HashMap<Ref<Var>, (Ref<AllocBuffer>, PrimExpr)>,
}

impl PrimMutator for Replace {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Load(n) => match self.moved.get(&n.buffer.data) {
                Some((new, at)) => prim::load(&new.buffer, [at.clone()]),
                None => self.remake_prim(e),
            },
            PrimExpr::Var(var) => match self.moved.get(var) {
                Some((new, _)) => PrimExpr::from(&new.buffer.data),
                None => e.clone(),
            },
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Replace {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Alloc(n) => match self.moved.get(&n.buffer.data) {
                Some((new, _)) => Stmt::Alloc(new.clone()),
                None => self.remake_stmt(stmt),
            },
            // Another view of a result.
            Stmt::Decl(n) if self.moved.contains_key(&n.buffer.data) => Stmt::nop(),
            Stmt::Attr(n) if n.key == "reduce_scope" && n.reducer().is_some() => self.mutate_stmt(&n.body),
            Stmt::Store(n) => match self.moved.get(&n.buffer.data).cloned() {
                Some((new, at)) => Stmt::store(&new.buffer, [at], self.mutate_prim(&n.value)),
                None => self.remake_stmt(stmt),
            },
            Stmt::Evaluate(n) => match &n.value {
                PrimExpr::Call(call) if self.found.contains_key(call) => {
                    let made = self.found[call].clone();
                    self.remake_stmt(&made)
                }
                _ => self.remake_stmt(stmt),
            },
            _ => self.remake_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests;
