//! Whether the threads of a block may take accesses.
//!
//! A processor runs a loop over threads as a loop, one after the other. That gives the same as threads side by side as long as a thread
//! finds in the memory that they share what it has written itself:
//!
//! ```text
//! for t: { s[t] = A[t];  B[t] = s[7 - t] }              the others' elements are not there yet
//! for t: { for u: s[u] = A[u];  B[t] = s[7 - t] }       each thread writes all of them first
//! ```
//!
//! Which elements a thread reads is not looked at: one that writes by its own number, or not always, must not read.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::prim::PrimVisitor;
use relaxide_ir::{Buffer, Var};

use super::shared_memory::is_shared;
use crate::PrimFunc;
use crate::barriers::Varying;
use crate::functor::StmtVisitor;
use crate::stmt::*;

/// Memory that threads share and cannot fill one after another, if a kernel has such.
pub fn not_serial(func: &PrimFunc) -> Option<Ref<Buffer>> {
    let mut accesses = SharedAccesses::default();
    accesses.visit_stmt(&func.body);
    let both = |(thread, buffer): &(Ref<Var>, Ref<Buffer>)| {
        accesses.read.contains(&(thread.clone(), buffer.data.clone())).then(|| buffer.clone())
    };
    accesses.written_in_part.iter().find_map(both)
}

/// The threads around a statement.
struct Thread {
    var: Ref<Var>,
    /// What is another number for another thread.
    varying: Varying,
    /// How many conditions are around that not all threads meet.
    conditions: usize,
}

#[derive(Default)]
struct SharedAccesses {
    around: Vec<Thread>,
    /// The loop over threads, and what a thread of it writes some elements of.
    written_in_part: Vec<(Ref<Var>, Ref<Buffer>)>,
    /// And the pointers of what it reads.
    read: HashSet<(Ref<Var>, Ref<Var>)>,
}

impl PrimVisitor for SharedAccesses {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        if is_shared(buffer) {
            self.read.extend(self.around.iter().map(|thread| (thread.var.clone(), buffer.data.clone())));
        }
    }
}

impl StmtVisitor for SharedAccesses {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                for thread in &mut self.around {
                    if thread.varying.varies(&n.min) || thread.varying.varies(&n.extent) {
                        thread.varying.add(&n.var);
                    }
                }
                if !n.thread_tag.starts_with("threadIdx.") {
                    return self.walk_stmt(stmt);
                }
                let mut varying = Varying::default();
                varying.add(&n.var);
                self.around.push(Thread { var: n.var.clone(), varying, conditions: 0 });
                self.walk_stmt(stmt);
                self.around.pop();
            }
            Stmt::If(n) => {
                let asks: Vec<usize> =
                    self.around.iter().map(|thread| usize::from(thread.varying.varies(&n.condition))).collect();
                self.around.iter_mut().zip(&asks).for_each(|(thread, asks)| thread.conditions += asks);
                self.walk_stmt(stmt);
                self.around.iter_mut().zip(&asks).for_each(|(thread, asks)| thread.conditions -= asks);
            }
            Stmt::Bind(n) => {
                for thread in &mut self.around {
                    if thread.varying.varies(&n.value) {
                        thread.varying.add(&n.var);
                    }
                }
                self.walk_stmt(stmt);
            }
            Stmt::Store(n) if is_shared(&n.buffer) => {
                for thread in &self.around {
                    if thread.conditions > 0 || n.indices.iter().any(|index| thread.varying.varies(index)) {
                        self.written_in_part.push((thread.var.clone(), n.buffer.clone()));
                    }
                }
                self.walk_stmt(stmt);
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::DataType;
    use relaxide_ir::prim::{self, PrimExpr, int};

    use super::*;
    use crate::schedule;

    /// Eight threads, of which each reads what another's number is first; `fill` writes the memory that they share.
    fn kernel(fill: impl FnOnce(&Ref<Buffer>, &Ref<Buffer>, &PrimExpr) -> Stmt) -> PrimFunc {
        let f32 = DataType::float(32);
        let (a, b) = (Buffer::new("A", f32, [8]), Buffer::new("B", f32, [8]));
        let s = Buffer::scoped("s", f32, [8], "shared");
        let [t, block] = ["t", "block"].map(Var::dim);
        let own = PrimExpr::from(&t);
        let filled = fill(&s, &a, &own);
        let read = Stmt::store(&b, [own.clone()], prim::load(&s, [int(7) - own.clone()]));
        let body = schedule::launch(&block, int(1), &t, 8, Stmt::seq([Stmt::alloc(&s), filled, read]));
        PrimFunc::over_buffers(&[a, b], &[], body)
    }

    fn copied(s: &Ref<Buffer>, a: &Ref<Buffer>, at: &PrimExpr) -> Stmt {
        Stmt::store(s, [at.clone()], prim::load(a, [at.clone()]))
    }

    #[test]
    fn a_thread_that_reads_must_have_written_all() {
        let own = kernel(copied);
        assert_eq!(not_serial(&own).unwrap().name, "s");
        let renamed = kernel(|s, a, t| {
            let also = Var::dim("also");
            Stmt::seq([Stmt::bind(also.clone(), int(7) - t.clone()), copied(s, a, &PrimExpr::from(&also))])
        });
        assert!(not_serial(&renamed).is_some());
        let one = kernel(|s, a, t| Stmt::when(prim::eq(t, 5), Stmt::each("u", 8, |u| copied(s, a, u))));
        assert!(not_serial(&one).is_some());
        let all = kernel(|s, a, _| Stmt::each("u", 8, |u| copied(s, a, u)));
        assert!(not_serial(&all).is_none());
    }
}
