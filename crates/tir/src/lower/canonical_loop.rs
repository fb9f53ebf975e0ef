//! Loops count from zero.
//!
//! ```text
//! for i in range(3, n):          for i in range(n - 3):
//!     A[i] = B[i]          ->        A[i + 3] = B[i + 3]
//! ```
//!
//! Passes behind it need not ask where a loop begins. A loop with a step becomes that over its iterations:
//!
//! ```text
//! for i in range(1, n, 5):       for i in range((n + 3) // 5):
//!     A[i] = B[i]          ->        A[i * 5 + 1] = B[i * 5 + 1]
//! ```
//!
//! Of the two, [`unit_steps`] does the second alone. It stands in front of every pass over kernels, of Relax's passes that read kernels, of schedules and
//! of the interpreter, so that none of them needs to know of steps: what only keeps, prints, reads and compares kernels sees
//! them. A step has to be a positive number that is known, since the sign says where the loop ends.

use relaxide_ffi::Ref;
use relaxide_ir::pass::{PassError, PassInfo, PassResult};
use relaxide_ir::prim::{self, PrimExpr, PrimMutator, PrimVisitor, VarMap};
use relaxide_ir::{BaseFunc, IRModule};

use super::{LowerError, kernel_pass};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo =
    kernel_pass!("s_tir.transform.CanonicalizeLoop", "Loops count from zero by one.", canonicalize_loops);

/// A kernel whose loops count from zero by one.
pub(super) fn canonicalize_loops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    let stepped = unit_steps(func)?;
    let func = stepped.as_ref().unwrap_or(func);
    Ok(func.with_body(FromZero { counters: VarMap::new(), only_stepped: false }.mutate_stmt(&func.body)))
}

/// The kernel with loops that count by one; nothing where all do.
pub fn unit_steps(func: &PrimFunc) -> Result<Option<PrimFunc>, LowerError> {
    let mut found = Steps::default();
    found.visit_stmt(&func.body);
    if let Some(refused) = found.refused {
        return Err(refused);
    }
    let body = || FromZero { counters: VarMap::new(), only_stepped: true }.mutate_stmt(&func.body);
    Ok(found.any.then(|| func.with_body(body())))
}

/// The module with kernels whose loops count by one, as the pass of that name needs it.
pub fn module_of_unit_steps(mut module: IRModule, pass: &'static str) -> PassResult {
    let mut changed = Vec::new();
    for (symbol, kernel) in module.functions_of::<PrimFunc>() {
        match unit_steps(&kernel) {
            Ok(None) => {}
            Ok(Some(made)) => changed.push((symbol.to_string(), BaseFunc::from(Ref::new(made)))),
            Err(why) => {
                let refusal = relaxide_ir::pass::Refusal::from(why);
                return Err(PassError::new(pass, refusal.within(&format!("kernel `{symbol}`"))));
            }
        }
    }
    module.functions.extend(changed);
    Ok(module)
}

/// What steps the loops of a kernel have.
#[derive(Default)]
struct Steps {
    any: bool,
    refused: Option<LowerError>,
}

impl PrimVisitor for Steps {
    /// No statement stands in an expression.
    fn visit_prim(&mut self, _: &PrimExpr) {}
}

impl StmtVisitor for Steps {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        if let Stmt::For(n) = stmt
            && let Some(step) = &n.step
        {
            self.any = true;
            if step.as_int().is_none_or(|step| step <= 0) {
                let message = format!(
                    "the step of the loop over `{}`, {step}, may not be positive: a loop counts by a positive number that is \
                     known; count its iterations, and compute the index from their number",
                    n.var.name
                );
                self.refused.get_or_insert(LowerError::Refused(message));
            }
        }
        self.walk_stmt(stmt);
    }
}

/// Counters with what stands in their place.
struct FromZero {
    counters: VarMap,
    /// Whether loops that count by one stay as they are.
    only_stepped: bool,
}

impl PrimMutator for FromZero {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.counters.get(var).cloned().unwrap_or_else(|| e.clone()),
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for FromZero {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        if n.step.is_none() && (self.only_stepped || n.min.is_int(0)) {
            return self.remake_stmt(stmt);
        }
        let dtype = n.var.dtype();
        let (first, mut extent) = (prim::cast(dtype, self.mutate_prim(&n.min)), self.mutate_prim(&n.extent));
        let mut counter = PrimExpr::from(&n.var);
        if let Some(step) = n.step.as_ref().and_then(PrimExpr::as_int) {
            counter = prim::mul(counter, prim::int_of(dtype, step));
            let rounded_up = prim::add(&extent, prim::int_of(extent.dtype(), step - 1));
            extent = prim::floordiv(rounded_up, prim::int_of(extent.dtype(), step));
        }
        self.counters.insert(n.var.clone(), prim::add(counter, first));
        let body = self.mutate_stmt(&n.body);
        let min = prim::int_of(dtype, 0);
        Ref::new(For { min, extent, body, step: None, ..(**n).clone() }).into()
    }
}
