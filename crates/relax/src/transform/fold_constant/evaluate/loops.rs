//! Loops that are no stages, as those of scatters: each statement over numbered variables.
//!
//! ```text
//! for j in range(n):  T[I[j]] = U[j]          # where a store goes depends on what is read
//! ```
//!
//! **Leaves alone** loops whose extent the arguments do not say, or that have a condition of their own, memory that lives inside of a loop,
//! calls for their effect, and what is asked of threads.

use relaxide_tir::interp::{InterpError, Scalar};
use relaxide_tir::{ForKind, SBlockRealize, Stmt};

use super::{Array, Numbered, Numbering, position};

/// A statement.
pub(super) enum Step {
    Loop { slot: usize, first: i64, count: i64, body: Box<Step> },
    Several(Vec<Step>),
    Choice { condition: Numbered, then: Box<Step>, other: Option<Box<Step>> },
    Store { buffer: usize, at: Vec<Numbered>, value: Numbered },
    Name { slot: usize, value: Numbered },
}

/// Loops, ready to be executed.
pub(super) struct Loops {
    body: Step,
    slots: usize,
    pub(super) work: i64,
}

impl Loops {
    /// Reads a statement; `None` where it is not made of such loops.
    pub(super) fn of(reader: &mut Numbering, stmt: &Stmt) -> Option<Loops> {
        reader.slots.clear();
        let (body, work) = reader.step(stmt)?;
        Some(Loops { body, slots: reader.slots.len(), work })
    }

    pub(super) fn run(&self, arrays: &[Array], memory: &mut [Vec<u8>]) -> Result<(), InterpError> {
        self.body.run(arrays, &mut vec![Scalar::Int(0); self.slots], memory)
    }
}

impl Numbering {
    /// A statement, and about how many operations it takes.
    fn step(&mut self, stmt: &Stmt) -> Option<(Step, i64)> {
        match stmt {
            Stmt::For(n) if !matches!(n.kind, ForKind::ThreadBinding) => {
                let (first, count) = (self.int(&n.min)?, self.int(&n.extent)?.max(0));
                let slot = self.name(&n.var);
                let (body, work) = self.step(&n.body)?;
                Some((Step::Loop { slot, first, count, body: Box::new(body) }, count.checked_mul(work)?))
            }
            Stmt::Seq(n) => {
                let steps = n.seq.iter().map(|s| self.step(s)).collect::<Option<Vec<_>>>()?;
                let work = steps.iter().try_fold(1i64, |all, (_, work)| all.checked_add(*work))?;
                Some((Step::Several(steps.into_iter().map(|(step, _)| step).collect()), work))
            }
            Stmt::If(n) => {
                let (condition, cost) = self.counted(|reader| reader.node(&n.condition))?;
                let (then, work) = self.step(&n.then_case)?;
                let other = match &n.else_case {
                    Some(other) => Some(self.step(other)?),
                    None => None,
                };
                let most = other.as_ref().map_or(work, |(_, other)| work.max(*other));
                let other = other.map(|(step, _)| Box::new(step));
                Some((Step::Choice { condition, then: Box::new(then), other }, most.checked_add(cost)?))
            }
            Stmt::Store(n) if n.predicate.is_none() && n.indices.len() == n.buffer.ndim() => {
                let buffer = *self.buffers.get(&n.buffer)?;
                let ((at, value), cost) = self.counted(|reader| {
                    let at = n.indices.iter().map(|i| reader.node(i)).collect::<Option<Vec<_>>>()?;
                    Some((at, reader.node(&n.value)?))
                })?;
                Some((Step::Store { buffer, at, value }, cost))
            }
            Stmt::Bind(n) => {
                let (value, cost) = self.counted(|reader| reader.node(&n.value))?;
                Some((Step::Name { slot: self.name(&n.var), value }, cost))
            }
            Stmt::Block(n) => self.block(n),
            _ => None,
        }
    }

    /// A block that is no more than names for the values of its axes.
    fn block(&mut self, realize: &SBlockRealize) -> Option<(Step, i64)> {
        let block = &realize.block;
        if block.init.is_some() || !block.alloc_buffers.is_empty() || !block.match_buffers.is_empty() {
            return None;
        }
        let (mut steps, mut total) = (Vec::new(), 1i64);
        let values = realize.iter_values.iter().map(|value| self.counted(|reader| reader.node(value)));
        for (axis, value) in block.iter_vars.iter().zip(values.collect::<Option<Vec<_>>>()?) {
            total = total.checked_add(value.1)?;
            steps.push(Step::Name { slot: self.name(&axis.var), value: value.0 });
        }
        let (body, work) = self.step(&block.body)?;
        total = total.checked_add(work)?;
        if !realize.predicate.is_int(1) {
            let (condition, cost) = self.counted(|reader| reader.node(&realize.predicate))?;
            total = total.checked_add(cost)?;
            steps.push(Step::Choice { condition, then: Box::new(body), other: None });
        } else {
            steps.push(body);
        }
        Some((Step::Several(steps), total))
    }

    /// What is read, and about how many operations it takes.
    fn counted<T>(&mut self, read: impl FnOnce(&mut Numbering) -> Option<T>) -> Option<(T, i64)> {
        self.nodes = 0;
        let read = read(self)?;
        Some((read, self.nodes + 4))
    }
}

impl Step {
    fn run(&self, arrays: &[Array], slots: &mut [Scalar], memory: &mut [Vec<u8>]) -> Result<(), InterpError> {
        match self {
            Step::Loop { slot, first, count, body } => {
                for i in 0..*count {
                    slots[*slot] = Scalar::Int(first.wrapping_add(i));
                    body.run(arrays, slots, memory)?;
                }
            }
            Step::Several(steps) => {
                for step in steps {
                    step.run(arrays, slots, memory)?;
                }
            }
            Step::Choice { condition, then, other } => {
                if condition.eval(arrays, slots, memory)?.is_true() {
                    then.run(arrays, slots, memory)?;
                } else if let Some(other) = other {
                    other.run(arrays, slots, memory)?;
                }
            }
            Step::Store { buffer, at, value } => {
                let value = value.eval(arrays, slots, memory)?;
                let at = position(&arrays[*buffer].dims, at, arrays, slots, memory)?;
                arrays[*buffer].store(&mut memory[*buffer], at, value)?;
            }
            Step::Name { slot, value } => slots[*slot] = value.eval(arrays, slots, memory)?,
        }
        Ok(())
    }
}
