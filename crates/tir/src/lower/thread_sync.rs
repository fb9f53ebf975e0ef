//! Barriers where threads read what others have written to memory that they share.
//!
//! A kernel that was scheduled manually says what its threads share and not when they wait for each other. Before a statement that reads a
//! shared buffer that was written since the last barrier, or writes one that was read, stands a barrier:
//!
//! ```text
//! s[t] = A[t]                      s[t] = A[t]
//! B[t] = s[n - 1 - t]      ->      sync
//!                                  B[t] = s[n - 1 - t]
//! ```
//!
//! Which elements they are is not looked at: a barrier too many costs little. A loop is gone through twice, since its end comes before its
//! beginning. A statement that not all threads execute alike is taken as one, and the barrier stands before it; one in which a barrier
//! would have to stand is refused, unless the first thread alone executes it. Kernels of rules have their barriers, and get none. Source: TVM's `ThreadSync`.

use std::collections::HashSet;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{BinaryOp, PrimExpr, PrimVisitor};
use relaxide_ir::{Buffer, Var};

use super::shared_memory::{SHARED, is_shared};
use super::{LowerError, kernel_pass_with};
use crate::PrimFunc;
use crate::barriers::{self, Varying};
use crate::functor::StmtVisitor;
use crate::stmt::*;
use crate::verify::{VerifyError, headline};

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "s_tir.transform.ThreadSync",
    "Threads wait for what others write to memory that they share.",
    |func, _, args| match args.str("storage_scope").unwrap_or_default() {
        SHARED | "shared.dyn" => Ok(order_threads(func)?),
        other =>
            Err(LowerError::Option { option: "storage_scope", given: other.to_string(), known: "shared, shared.dyn" }),
    }
)
.params(&[PassParam::required(
    "storage_scope",
    ParamKind::Str,
    "The memory: `shared` or `shared.dyn`; what is about one is about both.",
)]);

/// A kernel in which threads wait for what others write.
pub(super) fn order_threads(func: &PrimFunc) -> Result<PrimFunc, VerifyError> {
    if Used::of(&func.body).is_nothing() {
        return Ok(func.clone());
    }
    let mut order = Order::default();
    let ordered = func.with_body(order.stmt(&func.body));
    if let Some(place) = order.inside {
        let what = "threads that go different ways write and read memory that they share".to_string();
        return Err(VerifyError::Barrier { what, place });
    }
    barriers::check(&ordered)?;
    Ok(ordered)
}

/// Shared buffers that something reads and writes, by their pointers.
#[derive(Clone, Debug, Default)]
struct Used {
    read: HashSet<Ref<Var>>,
    written: HashSet<Ref<Var>>,
}

impl PrimVisitor for Used {
    fn visit_buffer_use(&mut self, buffer: &Ref<Buffer>) {
        if is_shared(buffer) {
            self.read.insert(buffer.data.clone());
        }
    }
}

impl StmtVisitor for Used {
    fn visit_buffer_store(&mut self, buffer: &Ref<Buffer>) {
        if is_shared(buffer) {
            self.written.insert(buffer.data.clone());
        }
    }
}

impl Used {
    fn of(stmt: &Stmt) -> Used {
        let mut used = Used::default();
        used.visit_stmt(stmt);
        used
    }

    fn is_nothing(&self) -> bool {
        self.read.is_empty() && self.written.is_empty()
    }

    fn add(&mut self, other: &Used) {
        self.read.extend(other.read.iter().cloned());
        self.written.extend(other.written.iter().cloned());
    }

    /// Whether what comes next has to wait for this.
    fn comes_before(&self, next: &Used) -> bool {
        !self.written.is_disjoint(&next.read) || !self.read.is_disjoint(&next.written)
    }
}

#[derive(Default)]
struct Order {
    varying: Varying,
    /// The axes of the threads around.
    threads: Vec<Ref<Var>>,
    /// What was used since the last barrier.
    open: Used,
    /// A statement that not all threads execute alike, and that would need a barrier inside.
    inside: Option<String>,
}

/// Whether a part of a statement has to wait for another part of it.
fn waits_inside(stmt: &Stmt, open: &mut Used) -> bool {
    match stmt {
        Stmt::Seq(n) => n.seq.iter().any(|stmt| waits_inside(stmt, open)),
        Stmt::Attr(n) => waits_inside(&n.body, open),
        // The end of a loop comes before its beginning.
        Stmt::For(n) => waits_inside(&n.body, open) || waits_inside(&n.body, open),
        Stmt::While(n) => waits_inside(&n.body, open) || waits_inside(&n.body, open),
        Stmt::If(n) => {
            waits_inside(&n.then_case, open) || n.else_case.as_ref().is_some_and(|other| waits_inside(other, open))
        }
        _ => {
            let used = Used::of(stmt);
            let waits = open.comes_before(&used);
            open.add(&used);
            waits
        }
    }
}

impl Order {
    fn stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::Evaluate(n) if is_barrier(&n.value) => {
                self.open = Used::default();
                stmt.clone()
            }
            Stmt::Seq(n) => Stmt::seq(n.seq.iter().map(|stmt| self.stmt(stmt))),
            Stmt::Attr(n) => {
                let (key, value) = (n.key.clone(), n.value.clone());
                Ref::new(AttrStmt { node: n.node.clone(), key, value, body: self.stmt(&n.body) }).into()
            }
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => {
                let outside = self.threads.len();
                if !n.thread_tag.starts_with("blockIdx.") {
                    self.varying.add(&n.var);
                    self.threads.push(n.var.clone());
                }
                let body = self.stmt(&n.body);
                self.threads.truncate(outside);
                Stmt::loop_around(n, body)
            }
            Stmt::For(n) if !self.varying.varies(&n.min) && !self.varying.varies(&n.extent) => {
                let once = self.stmt(&n.body);
                Stmt::loop_around(n, self.stmt(&once))
            }
            Stmt::While(n) if !self.varying.varies(&n.condition) => {
                let once = self.stmt(&n.body);
                Ref::new(While { condition: n.condition.clone(), body: self.stmt(&once) }).into()
            }
            Stmt::If(n) if !self.varying.varies(&n.condition) => {
                let before = self.open.clone();
                let then_case = self.stmt(&n.then_case);
                let after = std::mem::replace(&mut self.open, before);
                let else_case = n.else_case.as_ref().map(|other| self.stmt(other));
                self.open.add(&after);
                Ref::new(IfThenElse { condition: n.condition.clone(), then_case, else_case }).into()
            }
            _ => self.one(stmt),
        }
    }

    /// Whether the first thread alone carries a statement out, which waits for nobody.
    fn is_of_one_thread(&self, stmt: &Stmt) -> bool {
        let (Stmt::If(n), [thread]) = (stmt, self.threads.as_slice()) else { return false };
        let PrimExpr::Binary(asked) = &n.condition else { return false };
        let is_first = asked.op == BinaryOp::Lt && asked.b.is_int(1) || asked.op == BinaryOp::Eq && asked.b.is_int(0);
        is_first && asked.a.as_var() == Some(thread) && n.else_case.is_none()
    }

    /// A statement that is taken as one.
    fn one(&mut self, stmt: &Stmt) -> Stmt {
        if let Stmt::Bind(n) = stmt
            && self.varying.varies(&n.value)
        {
            self.varying.add(&n.var);
        }
        if !self.is_of_one_thread(stmt) && waits_inside(stmt, &mut Used::default()) {
            self.inside.get_or_insert_with(|| headline(stmt));
        }
        let used = Used::of(stmt);
        if !self.open.comes_before(&used) {
            self.open.add(&used);
            return stmt.clone();
        }
        self.open = used;
        Stmt::seq([Stmt::barrier(), stmt.clone()])
    }
}

#[cfg(test)]
mod tests {
    use relaxide_ir::DataType;
    use relaxide_ir::prim::{self, int};

    use super::super::{LowerOptions, lower_with, split_device};
    use super::*;
    use crate::interp::{self, InterpError};
    use crate::schedule;
    use crate::testing::{KINDS, teamwork};

    /// Eight threads that reverse a row `iterations` times, by shared memory.
    fn reversed(iterations: i64) -> PrimFunc {
        let f32 = DataType::float(32);
        let (a, b) = (Buffer::new("A", f32, [8]), Buffer::new("B", f32, [8]));
        let s = Buffer::scoped("s", f32, [8], "shared");
        let [t, block] = ["t", "block"].map(Var::dim);
        let own = PrimExpr::from(&t);
        let body = Stmt::seq([
            Stmt::alloc(&s),
            Stmt::store(&b, [own.clone()], prim::load(&a, [own.clone()])),
            Stmt::each("i", iterations, |_| {
                Stmt::seq([
                    Stmt::store(&s, [own.clone()], prim::load(&b, [own.clone()])),
                    Stmt::store(&b, [own.clone()], prim::load(&s, [int(7) - own.clone()])),
                ])
            }),
        ]);
        let body = schedule::launch(&block, int(1), &t, 8, body);
        PrimFunc::over_buffers(&[a, b], &[], body)
    }

    fn run(func: &PrimFunc) -> Result<Vec<f32>, InterpError> {
        let values: Vec<f32> = (0..8).map(|i| i as f32).collect();
        let a = relaxide_ffi::Tensor::from_slice(&values, &[8]).unwrap();
        let b = relaxide_ffi::Tensor::from_slice(&[0.0_f32; 8], &[8]).unwrap();
        interp::run(func, &[(&a).into(), (&b).into()])?;
        Ok(b.to_vec().unwrap())
    }

    #[test]
    fn threads_wait_for_what_others_write_and_read() {
        let plain = reversed(3);
        assert!(matches!(run(&plain), Err(InterpError::Unwritten { .. } | InterpError::Race { .. })));
        let ordered = order_threads(&plain).unwrap();
        assert_eq!(ordered.to_string().matches("tvm_storage_sync").count(), 2, "{ordered}");
        assert_eq!(run(&ordered).unwrap(), [7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
        assert_eq!(order_threads(&ordered).unwrap().to_string(), ordered.to_string());
        let split = split_device(&plain, relaxide_ffi::Device::CUDA).unwrap();
        assert!(split.launches[0].func.to_string().contains("tvm_storage_sync"));
        assert_eq!((split.launches[0].threads, split.launches[0].shared_bytes), (Some(8), 32));
    }

    #[test]
    fn what_would_need_a_barrier_in_a_branch_is_refused() {
        let f32 = DataType::float(32);
        let (a, s) = (Buffer::new("A", f32, [8]), Buffer::scoped("s", f32, [8], "shared"));
        let [t, block] = ["t", "block"].map(Var::dim);
        let own = PrimExpr::from(&t);
        let both = Stmt::seq([
            Stmt::store(&s, [own.clone()], prim::load(&a, [own.clone()])),
            Stmt::store(&a, [own.clone()], prim::load(&s, [int(3) - own.clone()])),
        ]);
        let of_first = |threads: i64| {
            let body = Stmt::seq([Stmt::alloc(&s), Stmt::when(prim::lt(own.clone(), threads), both.clone())]);
            let launch = schedule::launch(&block, int(1), &t, 8, body);
            split_device(&PrimFunc::over_buffers(std::slice::from_ref(&a), &[], launch), relaxide_ffi::Device::CUDA)
        };
        of_first(1).unwrap();
        let error = of_first(4).unwrap_err().to_string();
        assert!(error.contains("threads that go different ways write and read") && error.contains("if"), "{error}");
    }

    #[test]
    fn kernels_of_rules_have_their_barriers() {
        for seed in 0..KINDS {
            let func = teamwork(seed).unwrap().sample.func;
            let scheduled = schedule::apply(&func, &"cuda -arch=sm_80".parse().unwrap()).unwrap().func;
            let lowered = lower_with(&scheduled, LowerOptions { keep_loops: true, ..Default::default() }).unwrap();
            let ordered = order_threads(&lowered).unwrap();
            assert_eq!(ordered.to_string(), lowered.to_string(), "seed {seed}");
        }
    }
}
