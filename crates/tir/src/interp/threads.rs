//! The threads of a block, up to each barrier in turn.
//!
//! A statement with a barrier in it is executed by all threads together, part by part; one without by each thread to its end, one
//! thread after the other. Each thread has variables and memory of its own; memory of the scope `shared` is one for the block.
//!
//! ```text
//! s[t] = A[t]                 thread 0, 1, 2 …
//! sync                        all of them are here
//! B[t] = s[n - 1 - t]         thread 0, 1, 2 …
//! ```
//!
//! A loop or choice around a barrier is taken by all threads in the same way, or it is an error. Between two barriers no thread may
//! write an element of memory that another one uses, be it the block's or the device's: [`InterpError::Race`].

use relaxide_ir::prim::{PrimExpr, PrimVisitor};
use relaxide_ir::{Buffer, Ref, Var};

use super::exec::Flow;
use super::memory::{Pointer, View};
use super::scalar::{Scalar, ScalarOrLanes};
use super::{ByNode, Interp, InterpError, Result};
use crate::functor::StmtVisitor;
use crate::stmt::*;
use crate::warp::warp_call;

/// Most threads of a block.
const MOST_THREADS: i64 = 1024;

/// Whether the iterations of a loop are threads of a block.
pub(super) fn is_thread(n: &For) -> bool {
    n.kind == ForKind::ThreadBinding && n.thread_tag.starts_with("threadIdx.")
}

/// Whether threads have to execute a statement together: it has a barrier, memory that they share, or something that warps do.
pub(super) fn waits(stmt: &Stmt) -> bool {
    struct Waits(bool);
    impl PrimVisitor for Waits {
        fn visit_prim(&mut self, _: &PrimExpr) {}
    }
    impl StmtVisitor for Waits {
        fn visit_stmt(&mut self, stmt: &Stmt) {
            self.0 |= match stmt {
                Stmt::Evaluate(n) => is_barrier(&n.value),
                Stmt::Alloc(n) => n.buffer.scope.starts_with("shared"),
                _ => warp_call(stmt).is_some(),
            };
            if !self.0 {
                self.walk_stmt(stmt);
            }
        }
    }
    let mut waits = Waits(false);
    waits.visit_stmt(stmt);
    waits.0
}

/// What a thread has for itself.
#[derive(Clone)]
pub(super) struct Thread {
    number: u32,
    vars: ByNode<Var, ScalarOrLanes>,
    pointers: ByNode<Var, Pointer>,
    views: ByNode<Buffer, std::rc::Rc<View>>,
}

impl Interp {
    /// Executes a loop over threads that wait for each other.
    pub(super) fn exec_team(&mut self, n: &For) -> Result<()> {
        let (mark, outside) = (self.memory.mark(), self.memory.running);
        let before = Thread {
            number: 0,
            vars: self.vars.clone(),
            pointers: self.memory.by_pointer.clone(),
            views: self.views.clone(),
        };
        let mut phase = outside.map_or(self.memory.phases, |(phase, _)| phase);
        let done = self.team_loop(n, vec![before.clone()], &mut phase);
        self.memory.phases = self.memory.phases.max(phase + 1);
        (self.vars, self.memory.by_pointer, self.views) = (before.vars, before.pointers, before.views);
        self.memory.running = outside;
        self.memory.release(mark);
        done
    }

    /// Something of one thread.
    pub(super) fn with_thread<T>(
        &mut self,
        thread: &mut Thread,
        phase: u64,
        f: impl FnOnce(&mut Interp) -> Result<T>,
    ) -> Result<T> {
        let swap = |this: &mut Interp, thread: &mut Thread| {
            std::mem::swap(&mut this.vars, &mut thread.vars);
            std::mem::swap(&mut this.memory.by_pointer, &mut thread.pointers);
            std::mem::swap(&mut this.views, &mut thread.views);
        };
        swap(self, thread);
        self.memory.running = Some((phase, thread.number));
        let result = f(self);
        swap(self, thread);
        result
    }

    /// A value that all threads have.
    fn alike(&mut self, threads: &mut [Thread], phase: u64, e: &PrimExpr) -> Result<i64> {
        let mut common = None;
        for thread in threads {
            let value = self.with_thread(thread, phase, |this| this.eval_at(e, 0))?;
            let value = value.as_int().ok_or_else(|| InterpError::Malformed(format!("`{e}` is not an integer")))?;
            if common.is_some_and(|common| common != value) {
                let message = format!("threads of a block differ in `{e}`, on which a barrier depends");
                return Err(InterpError::Malformed(message));
            }
            common = Some(value);
        }
        Ok(common.unwrap_or(0))
    }

    /// A loop over threads: each of those that are there becomes as many.
    fn team_loop(&mut self, n: &For, mut threads: Vec<Thread>, phase: &mut u64) -> Result<()> {
        let (min, extent) = (self.alike(&mut threads, *phase, &n.min)?, self.alike(&mut threads, *phase, &n.extent)?);
        if extent.checked_mul(threads.len() as i64).is_none_or(|count| count > MOST_THREADS) {
            return Err(InterpError::Unsupported(format!(
                "blocks of more than {MOST_THREADS} threads that wait for each other"
            )));
        }
        let mut team = Vec::new();
        for thread in &threads {
            for i in 0..extent {
                let mut thread = Thread { number: team.len() as u32, ..thread.clone() };
                let value = Scalar::Int(min.wrapping_add(i)).wrapped(n.var.dtype());
                thread.vars.insert(n.var.clone(), ScalarOrLanes::One(value));
                team.push(thread);
            }
        }
        self.team(&n.body, &mut team, phase)
    }

    /// A statement of all threads.
    fn team(&mut self, stmt: &Stmt, threads: &mut [Thread], phase: &mut u64) -> Result<()> {
        if !waits(stmt) {
            for thread in threads {
                match self.with_thread(thread, *phase, |this| this.exec(stmt))? {
                    Flow::Next => {}
                    _ => return Err(InterpError::Malformed("an early exit out of a loop with a barrier".into())),
                }
            }
            return Ok(());
        }
        match stmt {
            Stmt::Seq(n) => n.seq.iter().try_for_each(|stmt| self.team(stmt, threads, phase)),
            Stmt::For(n) if is_thread(n) => self.team_loop(n, threads.to_vec(), phase),
            Stmt::For(n) => {
                let (min, extent) = (self.alike(threads, *phase, &n.min)?, self.alike(threads, *phase, &n.extent)?);
                for i in 0..extent {
                    let value = ScalarOrLanes::One(Scalar::Int(min.wrapping_add(i)).wrapped(n.var.dtype()));
                    threads.iter_mut().for_each(|thread| drop(thread.vars.insert(n.var.clone(), value.clone())));
                    self.team(&n.body, threads, phase)?;
                }
                Ok(())
            }
            Stmt::While(n) => {
                while self.alike(threads, *phase, &n.condition)? != 0 {
                    self.team(&n.body, threads, phase)?;
                }
                Ok(())
            }
            Stmt::If(n) => match (self.alike(threads, *phase, &n.condition)?, &n.else_case) {
                (0, Some(other)) => self.team(other, threads, phase),
                (0, None) => Ok(()),
                _ => self.team(&n.then_case, threads, phase),
            },
            Stmt::Attr(n) => self.team(&n.body, threads, phase),
            Stmt::Alloc(n) => self.share(&n.buffer, threads, *phase),
            Stmt::Evaluate(_) => {
                *phase += 1;
                Ok(())
            }
            Stmt::Store(_) => match warp_call(stmt) {
                Some((call, intrinsic)) => self.team_warp(stmt, call, intrinsic, threads, *phase),
                None => Err(InterpError::Unsupported(format!("barriers inside of `{stmt}`"))),
            },
            other => Err(InterpError::Unsupported(format!("barriers inside of `{other}`"))),
        }
    }

    /// Memory that all threads share.
    fn share(&mut self, buffer: &Ref<Buffer>, threads: &mut [Thread], phase: u64) -> Result<()> {
        let Some((first, rest)) = threads.split_first_mut() else { return Ok(()) };
        let pointer = self.with_thread(first, phase, |this| {
            this.allocate(buffer)?;
            Ok(this.memory.pointer(&buffer.data))
        })?;
        for thread in rest {
            thread.views.remove(buffer);
            thread.pointers.extend(pointer.map(|at| (buffer.data.clone(), at)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ffi::{DataType, Tensor};
    use relaxide_ir::prim::{self, int, sub};

    use super::super::run;
    use super::*;
    use crate::PrimFunc;

    /// Eight threads reverse the memory of a device, with or without a barrier between what they read and what they write.
    fn reversed(waits: bool) -> Result<Vec<f32>> {
        let f32 = DataType::float(32);
        let (a, own) = (Buffer::new("A", f32, [8]), Buffer::scoped("own", f32, [1], "local"));
        let [block, thread] = ["block", "thread"].map(Var::dim);
        let at = PrimExpr::from(&thread);
        let between = if waits { Stmt::barrier() } else { Stmt::nop() };
        let body = Stmt::seq([
            Stmt::alloc(&own),
            Stmt::store(&own, [int(0)], prim::load(&a, [sub(int(7), at.clone())])),
            between,
            Stmt::store(&a, [at], prim::load(&own, [int(0)])),
            Stmt::barrier(),
        ]);
        let func = PrimFunc::over_buffers(&[a], &[], crate::schedule::launch(&block, int(1), &thread, 8, body));
        let a = Tensor::from_slice(&[0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[8])?;
        run(&func, &[(&a).into()])?;
        Ok(a.to_vec()?)
    }

    #[test]
    fn threads_that_use_an_element_of_the_device_without_a_barrier_are_found() {
        assert_eq!(reversed(true).unwrap(), [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        let error = reversed(false).unwrap_err();
        assert!(matches!(&error, InterpError::Race { buffer, .. } if buffer == "A"), "{error}");
    }
}
