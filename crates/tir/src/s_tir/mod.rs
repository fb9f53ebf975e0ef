//! Schedule primitives: a kernel in block form changed step by step, each step checked.
//!
//! A rule ([`crate::schedule`]) looks at what a kernel computes and builds the loops that suit the target. A [`Schedule`]
//! goes the other way: whoever writes it names blocks and loops and says what happens to them, and every step is refused
//! that would change what the kernel computes. The steps are TVM's, by TVM's names, and so are the traces.
//!
//! ```text
//! let block = sch.get_sblock("C", None)?;                     for i, j, k in T.grid(128, 128, 128):
//! let [i, j, k] = sch.get_loops(&block)?;                         with T.sblock("C"): ...
//! let [jo, ji] = sch.split(&j, &[None, Some(8)], true)?;   ->
//! sch.reorder(&[jo, k, ji])?;                                 for i, j_0, k in T.grid(128, 16, 128):
//! sch.vectorize(&ji)?;                                            for j_1 in T.vectorized(8):
//!                                                                     with T.sblock("C"): ...
//! ```
//!
//! **Model.** Nodes are immutable; a step builds a new function and [commits](Schedule::commit) it. What a step is about is
//! named by *random variables*: a [`LoopRV`] stands for a loop, an [`SBlockRV`] for a block, a variable of an expression
//! for a number that was sampled. A loop is known by its counter: a loop whose counter is still there is the same loop,
//! wherever it stands now. A block is known by its node, and the commit of a step says which node took its place.
//!
//! **Steps** are rows of one table ([`instruction::KINDS`]). All of them, called from Rust, from Python or from a trace,
//! pass through [`Schedule::step`], which looks up the random variables, applies the row, makes random variables of the
//! results and writes the trace. A step that is refused leaves the schedule as it was.

mod early_end;
pub mod error;
mod factor;
pub mod instruction;
mod map_json;
pub mod primitive;
pub mod random;
pub mod rv;
pub mod scope;
pub mod state;
mod step;
mod storage_scope;
pub mod tensor_intrin;
mod text;
pub mod trace;

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{IRModule, Var};

pub use error::{ScheduleError, StepError};
pub use instruction::Instruction;
pub use rv::{LoopRV, Mark, Rv, SBlockRV, Value};
pub use state::{StmtRef, Tree};
pub use tensor_intrin::TensorIntrin;
pub use trace::Trace;

/// What becomes of loops over one element around a block that is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitLoops {
    /// They go with it.
    Kept,
    /// Their variables become the one value that they have.
    Dropped,
}

use crate::{PrimFunc, SBlock, Stmt};

/// A module that is being scheduled, and what its random variables stand for.
#[derive(Clone)]
pub struct Schedule {
    module: IRModule,
    blocks: HashMap<Ref<SBlockRV>, (String, Option<Ref<SBlock>>)>,
    loops: HashMap<Ref<LoopRV>, (String, Ref<Var>)>,
    marks: HashMap<Ref<LoopRV>, Mark>,
    numbers: HashMap<Ref<Var>, i64>,
    trace: Trace,
    random: random::Random,
    working_on: Option<String>,
    checked: bool,
}

/// What takes the place of a loop or a block; see [`Schedule::replace`].
#[derive(Clone, Debug)]
pub enum Replacement {
    /// A block, executed as the one was whose place it takes.
    Block(Ref<SBlock>),
    /// A loop, or a block with what it is executed for.
    Stmt(Stmt),
}

impl Schedule {
    /// A schedule of a module, whose loops count by one ([`unit_steps`](crate::lower::unit_steps)), that has done nothing yet. It works on `main`, or on the only kernel.
    pub fn new(module: IRModule) -> Schedule {
        let kernels: Vec<String> = module.functions_of::<PrimFunc>().map(|(name, _)| name.to_string()).collect();
        let working_on = match kernels.as_slice() {
            [only] => Some(only.clone()),
            all => all.iter().find(|name| *name == "main").cloned(),
        };
        Schedule {
            module,
            blocks: HashMap::new(),
            loops: HashMap::new(),
            marks: HashMap::new(),
            numbers: HashMap::new(),
            trace: Trace::default(),
            random: random::Random::new(1),
            working_on,
            checked: true,
        }
    }

    /// A schedule of one kernel, by the name `main`.
    pub fn of_func(func: PrimFunc) -> Schedule {
        let mut module = IRModule::new();
        module.insert("main", Ref::new(func));
        Schedule::new(module)
    }

    /// The module as it is now.
    pub fn module(&self) -> &IRModule {
        &self.module
    }

    /// What was done so far.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// The function that blocks are looked for in by default.
    pub fn func_working_on(&self) -> Option<&str> {
        self.working_on.as_deref()
    }

    /// Looks for blocks in this function from now on.
    pub fn work_on(&mut self, func_name: &str) -> Result<(), ScheduleError> {
        self.func(func_name)?;
        self.working_on = Some(func_name.to_string());
        Ok(())
    }

    /// Whether steps whose legality is expensive or impossible to prove are checked nevertheless.
    pub fn set_checked(&mut self, checked: bool) {
        self.checked = checked;
    }

    /// Whether steps are checked; see [`Schedule::set_checked`].
    pub fn is_checked(&self) -> bool {
        self.checked
    }

    /// Draws random decisions from another seed.
    pub fn seed(&mut self, seed: i64) {
        self.random = random::Random::new(seed);
    }

    /// A seed for another schedule.
    pub fn fork_seed(&mut self) -> i64 {
        self.random.fork()
    }

    /// The kernel of a name.
    pub fn func(&self, name: &str) -> Result<Ref<PrimFunc>, ScheduleError> {
        self.module.get_as::<PrimFunc>(name).ok_or_else(|| ScheduleError::NoFunction { name: name.to_string() })
    }

    /// The block that a random variable stands for.
    pub fn block(&self, rv: &Ref<SBlockRV>) -> Result<Ref<SBlock>, ScheduleError> {
        let (_, block) = self.blocks.get(rv).ok_or(ScheduleError::UnknownVariable { what: "block" })?;
        block.clone().ok_or(ScheduleError::Expired { what: "block" })
    }

    /// The loop that a random variable stands for.
    pub fn loop_(&self, rv: &Ref<LoopRV>) -> Result<Ref<crate::For>, ScheduleError> {
        self.loop_ref(rv)?.for_loop()
    }

    /// What a random variable of a sampled place stands for, where that is no loop.
    pub fn mark(&self, rv: &Ref<LoopRV>) -> Option<Mark> {
        self.marks.get(rv).copied()
    }

    /// The value of an expression over sampled numbers, where it is constant.
    pub fn number(&self, e: &PrimExpr) -> Option<i64> {
        self.evaluate(e).as_int()
    }

    /// An expression with sampled numbers in the place of their variables.
    pub fn evaluate(&self, e: &PrimExpr) -> PrimExpr {
        let known = self.numbers.iter().map(|(v, n)| (v.clone(), relaxide_ir::prim::int_of(v.dtype(), *n))).collect();
        relaxide_ir::arith::Analyzer::new().simplify(&relaxide_ir::prim::substitute(e, &known))
    }

    /// Forgets a random variable.
    pub fn remove_rv(&mut self, rv: &Rv) -> Result<(), ScheduleError> {
        let (found, what) = match rv {
            Rv::Block(b) => (self.blocks.remove(b).is_some(), "block"),
            Rv::Loop(l) => (self.loops.remove(l).is_some() || self.marks.remove(l).is_some(), "loop"),
            Rv::Number(v) => (self.numbers.remove(v).is_some(), "number"),
            Rv::Open => (false, "number"),
        };
        if found { Ok(()) } else { Err(ScheduleError::UnknownVariable { what }) }
    }

    /// Where the block of a random variable stands.
    pub fn block_ref(&self, rv: &Ref<SBlockRV>) -> Result<StmtRef, ScheduleError> {
        let (name, _) = self.blocks.get(rv).ok_or(ScheduleError::UnknownVariable { what: "block" })?;
        let block = self.block(rv)?;
        let tree = Tree::of(&self.func(name)?.body);
        let node = tree.find_block(&block).ok_or(ScheduleError::Expired { what: "block" })?;
        Ok(StmtRef { func: name.clone(), tree, node })
    }

    /// Where the loop of a random variable stands.
    pub fn loop_ref(&self, rv: &Ref<LoopRV>) -> Result<StmtRef, ScheduleError> {
        if self.marks.contains_key(rv) {
            return Err(ScheduleError::NoLoop);
        }
        let (name, var) = self.loops.get(rv).ok_or(ScheduleError::UnknownVariable { what: "loop" })?;
        let tree = Tree::of(&self.func(name)?.body);
        let node = tree.find_loop(var).ok_or(ScheduleError::Expired { what: "loop" })?;
        Ok(StmtRef { func: name.clone(), tree, node })
    }

    /// Puts a new body in the place of a function's.
    ///
    /// Random variables of blocks follow: `reuse` pairs a block of the old body with what took its place in the new one.
    /// Where it says nothing, a block is the one that has some of its axes' variables, or, of blocks without axes, the only
    /// one of its name. A random variable whose block has no successor has expired.
    pub fn commit(
        &mut self,
        name: &str,
        body: Stmt,
        reuse: &[(Ref<SBlock>, Ref<SBlock>)],
    ) -> Result<(), ScheduleError> {
        let old = self.func(name)?;
        self.commit_func(name, old.with_body(body), reuse)
    }

    /// Puts a statement in the place of a loop or a block, as the program says: whether results stay is not asked.
    ///
    /// A block takes the place of a block, which is executed for the same values. `reuse` is as for [`Schedule::commit`].
    pub fn replace(
        &mut self,
        old: &Stmt,
        new: Replacement,
        reuse: &[(Ref<SBlock>, Ref<SBlock>)],
    ) -> Result<(), ScheduleError> {
        let kernels: Vec<String> = self.module.functions_of::<PrimFunc>().map(|(name, _)| name.to_string()).collect();
        for name in kernels {
            let func = self.func(&name)?;
            let tree = Tree::of(&func.body);
            let found = match old {
                Stmt::For(n) => tree.find_loop(&n.var),
                Stmt::Block(n) => tree.find_block(&n.block),
                _ => None,
            };
            let Some(node) = found else { continue };
            let there = tree.node(node).stmt.clone();
            let new = match (&there, new) {
                (Stmt::Block(n), Replacement::Block(block)) => state::with_block(n, block).into(),
                (Stmt::For(_), Replacement::Stmt(stmt @ (Stmt::For(_) | Stmt::Block(_)))) => stmt,
                (Stmt::Block(_), _) => return Err(ScheduleError::Operand("a block takes the place of a block".into())),
                _ => {
                    return Err(ScheduleError::Operand("a loop or an executed block takes the place of a loop".into()));
                }
            };
            let body = state::replace(&func.body, &[(there, new)]);
            return self.commit(&name, body, reuse);
        }
        Err(ScheduleError::Expired { what: if matches!(old, Stmt::For(_)) { "loop" } else { "block" } })
    }

    /// Puts a new function in the place of one; see [`Schedule::commit`].
    pub(crate) fn commit_func(
        &mut self,
        name: &str,
        func: PrimFunc,
        reuse: &[(Ref<SBlock>, Ref<SBlock>)],
    ) -> Result<(), ScheduleError> {
        let old = self.func(name)?;
        let (before, after) = (Tree::of(&old.body), Tree::of(&func.body));
        for (of, held) in self.blocks.values_mut() {
            if of == name
                && let Some(block) = held.as_ref()
            {
                *held = state::successor(block, &before, &after, reuse);
            }
        }
        self.module.insert(name, Ref::new(func));
        Ok(())
    }
}

#[cfg(test)]
mod copies_tests;
#[cfg(test)]
mod region_tests;
#[cfg(test)]
mod tests;
