//! One variable for each thread axis of a kernel.
//!
//! ```text
//! for b in T.thread_binding(8, "blockIdx.x"):           for blockIdx_x in T.thread_binding(8, "blockIdx.x"):
//!     for i in T.thread_binding(64, "threadIdx.x"):         for threadIdx_x in T.thread_binding(64, "threadIdx.x"):
//!         A[b, i] = …                             ->            A[blockIdx_x, threadIdx_x] = …
//!     for j in T.thread_binding(64, "threadIdx.x"):             B[blockIdx_x, threadIdx_x] = …
//!         B[b, j] = …
//! ```
//!
//! The loops of all axes stand around the launch, in the order in which they were met. A launch begins at the outermost loop that is bound to
//! threads. Loops over one axis must have one length; a loop's annotations stay, on a loop of one iteration where it is gone.
//! Source: TVM's `UnifyThreadBinding`.

use relaxide_ffi::Ref;
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::PassInfo;
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, VarMap};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::StmtMutator;
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass!(
    "s_tir.transform.UnifyThreadBinding",
    "Loops over one thread axis become one loop around the launch.",
    unify_threads
);

/// A kernel with one loop for each thread axis of a launch.
fn unify_threads(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let mut unify = Unify::default();
    let body = unify.mutate_stmt(&func.body);
    match unify.error {
        Some(error) => Err(error),
        None => Ok(func.with_body(body)),
    }
}

#[derive(Default)]
struct Unify {
    /// The axes of the launch so far.
    axes: Vec<Ref<For>>,
    /// How many loops around are bound to blocks, and to threads where no block is.
    depth: usize,
    renamed: VarMap,
    error: Option<LowerError>,
}

impl PrimMutator for Unify {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.renamed.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Unify {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) if n.kind == ForKind::ThreadBinding => self.bound(n),
            _ => self.remake_stmt(stmt),
        }
    }
}

impl Unify {
    fn bound(&mut self, n: &Ref<For>) -> Stmt {
        let launches = self.depth == 0;
        let outer = self.depth;
        if launches || n.thread_tag.starts_with("blockIdx.") || n.thread_tag.starts_with("clusterIdx") {
            self.depth += 1;
        }
        if launches {
            self.axes.clear();
        }
        let axis = self.axis(n);
        self.renamed.insert(n.var.clone(), prim::cast(n.var.dtype(), PrimExpr::from(&axis)));
        let body = self.mutate_stmt(&n.body);
        self.depth = outer;
        let made = match launches {
            true => std::mem::take(&mut self.axes).iter().rev().fold(body, |body, axis| Stmt::loop_around(axis, body)),
            false => body,
        };
        if n.annotations.0.is_empty() {
            return made;
        }
        let annotations = n.annotations.clone();
        match made {
            Stmt::For(made) => Ref::new(For { annotations, ..For::clone(&made) }).into(),
            body => {
                let dtype = n.var.dtype();
                let (min, extent) = (prim::int_of(dtype, 0), prim::int_of(dtype, 1));
                let once = For::new(ForKind::Serial, Var::prim("var", dtype), min, extent, body);
                Ref::new(For { annotations, ..once }).into()
            }
        }
    }

    /// The variable of a loop's axis.
    fn axis(&mut self, n: &Ref<For>) -> Ref<Var> {
        let Some(known) = self.axes.iter().find(|axis| axis.thread_tag == n.thread_tag) else {
            let var = Var::prim(n.thread_tag.replace('.', "_"), n.extent.dtype());
            let plain = For { var: var.clone(), annotations: Default::default(), ..For::clone(n) };
            self.axes.push(Ref::new(plain));
            return var;
        };
        let mut analyzer = Analyzer::new();
        if !analyzer.can_prove_equal(&known.extent, &n.extent) || !analyzer.can_prove_equal(&known.min, &n.min) {
            let message = format!(
                "all loops that are bound to `{}` have one length, and here are loops of {} and {}",
                n.thread_tag, known.extent, n.extent
            );
            self.error.get_or_insert(LowerError::Refused(message));
        }
        known.var.clone()
    }
}
