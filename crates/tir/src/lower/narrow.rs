//! Counters and indices of fewer bits, where these are known to do.
//!
//! ```text
//! for i in range(T.int64(16)):               for i in range(16):
//!     A[i] = B[i + T.int64(1)]      ->           A[i] = B[i + 1]
//! ```
//!
//! Code for narrow integers is smaller, and vectors of them have more lanes. A counter or a bound name becomes narrow if its own
//! values and those of every integer expression that it stands in are known to fit. Otherwise it keeps its bits, and narrow ones
//! beside it are converted. What depends on memory has no known bounds and keeps its type; so do parameters and what is stored.
//!
//! Runs behind the flattening of buffers, whose flat indices are what may not fit. A kernel with blocks is left alone.

use std::collections::{HashMap, HashSet};

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::Var;
use relaxide_ir::arith::Analyzer;
use relaxide_ir::pass::{ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{self, BufferLoad, PrimExpr, PrimMutator, PrimVisitor, VarMap};

use super::{LowerError, blocks, kernel_pass_with};
use crate::PrimFunc;
use crate::functor::{StmtMutator, StmtVisitor};
use crate::stmt::*;

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "tirx.transform.NarrowDataType",
    "Counters and indices have fewer bits where these are known to do.",
    |func, _, args| narrow(func, args.int("target_bits").unwrap_or(32))
)
.params(&[PassParam::required(
    "target_bits",
    ParamKind::Int,
    "How many bits are enough: 16 or 32, or 64 to change nothing.",
)]);

/// The operator whose result is one of its arguments.
const CHOICE: &str = "tirx.if_then_else";

/// A kernel that counts in as many bits where they do.
fn narrow(func: &PrimFunc, target_bits: i64) -> Result<PrimFunc, LowerError> {
    let dtype = match target_bits {
        16 => DataType::int(16),
        32 => DataType::int(32),
        64 => return Ok(func.clone()),
        other => {
            let given = other.to_string();
            return Err(LowerError::Option { option: "target_bits", given, known: "16, 32 and 64" });
        }
    };
    if blocks::has_blocks(func) {
        return Ok(func.clone());
    }
    let mut analyzer = Analyzer::new();
    analyzer.mark_dims(func.buffers.iter().flatten().flat_map(|b| &b.shape));
    Ok(func.with_body(narrowed(&func.body, &[], dtype, &mut analyzer).0))
}

/// What is known of the values of integers.
pub(super) trait Values {
    /// Whether an integer fits into a type.
    fn fits(&mut self, e: &PrimExpr, dtype: DataType) -> bool;

    /// Gives a counter its values.
    fn count(&mut self, var: &Ref<Var>, min: &PrimExpr, extent: &PrimExpr);

    /// Gives a name its value.
    fn bind(&mut self, var: &Ref<Var>, value: &PrimExpr);
}

impl Values for Analyzer {
    fn fits(&mut self, e: &PrimExpr, dtype: DataType) -> bool {
        let bounds = self.bounds(e);
        let fits = |value: Option<i64>| value.is_some_and(|value| prim::holds(dtype, value));
        fits(bounds.min) && fits(bounds.max)
    }

    fn count(&mut self, var: &Ref<Var>, min: &PrimExpr, extent: &PrimExpr) {
        Analyzer::bind(self, var, min.clone(), extent.clone());
    }

    fn bind(&mut self, var: &Ref<Var>, value: &PrimExpr) {
        Analyzer::bind(self, var, value.clone(), prim::int_of(value.dtype(), 1));
    }
}

/// Variables, and which are in their place.
pub(super) type Renamed = Vec<(Ref<Var>, Ref<Var>)>;

/// A statement that counts in a type where it does, and which of the names that are defined around it (`given`) it has in that type: under
/// new ones, which the caller defines.
pub(super) fn narrowed(body: &Stmt, given: &[Ref<Var>], dtype: DataType, values: &mut dyn Values) -> (Stmt, Renamed) {
    let mut needs = Needs { dtype, values, wide: false, fits: HashMap::new(), visited: HashSet::new() };
    given.iter().for_each(|var| needs.define(var));
    needs.visit_stmt(body);
    let narrow = needs.fits.into_iter().filter(|(_, fits)| *fits);
    let vars = narrow.map(|(var, _)| (var.clone(), Var::prim(var.name.clone(), dtype))).collect();
    let mut rewrite = Narrow { vars, map: VarMap::new() };
    rewrite.map = rewrite.vars.iter().map(|(old, new)| (old.clone(), PrimExpr::from(new))).collect();
    let body = rewrite.mutate_stmt(body);
    let given = given.iter().filter_map(|var| Some((var.clone(), rewrite.vars.get(var)?.clone())));
    (body, given.collect())
}

/// Finds out which variables may be narrow.
struct Needs<'a> {
    dtype: DataType,
    values: &'a mut dyn Values,
    /// Whether an expression around does not fit.
    wide: bool,
    /// Counters and bound names, with whether they may be narrow.
    fits: HashMap<Ref<Var>, bool>,
    /// What was visited, with whether an expression around it did not fit.
    visited: HashSet<(PrimExpr, bool)>,
}

impl Needs<'_> {
    fn holds(&mut self, e: &PrimExpr) -> bool {
        self.values.fits(e, self.dtype)
    }

    fn define(&mut self, var: &Ref<Var>) {
        let wider = var.dtype().is_int() && var.dtype().lanes == 1 && var.dtype().bits > self.dtype.bits;
        if wider {
            let fits = self.holds(&PrimExpr::from(var));
            self.fits.insert(var.clone(), fits);
        }
    }

    fn under(&mut self, wide: bool, visit: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.wide, wide);
        visit(self);
        self.wide = outer;
    }
}

impl PrimVisitor for Needs<'_> {
    fn visit_prim(&mut self, e: &PrimExpr) {
        match e {
            PrimExpr::Var(var) => {
                if self.wide
                    && let Some(fits) = self.fits.get_mut(var)
                {
                    *fits = false;
                }
            }
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => {}
            _ if !self.visited.insert((e.clone(), self.wide)) => {}
            // An index is an expression of its own, and so is what a condition compares.
            PrimExpr::Load(_) => self.under(false, |this| this.walk_prim(e)),
            // Arguments keep their types.
            PrimExpr::Call(n) if n.op != CHOICE => self.under(false, |this| this.walk_prim(e)),
            PrimExpr::Let(n) => {
                let wide = self.wide || (e.dtype().is_int() && !self.holds(e));
                self.under(false, |this| this.visit_prim(&n.value));
                self.values.bind(&n.var, &n.value);
                self.define(&n.var);
                self.under(wide, |this| this.visit_prim(&n.body));
            }
            PrimExpr::Binary(n) if n.op.is_comparison() || n.op.is_logical() => {
                self.under(false, |this| this.walk_prim(e));
            }
            _ if e.dtype().is_int() => {
                let wide = self.wide || !self.holds(e);
                self.under(wide, |this| this.walk_prim(e));
            }
            _ => self.under(false, |this| this.walk_prim(e)),
        }
    }
}

impl StmtVisitor for Needs<'_> {
    fn visit_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(n) => {
                self.visit_prim(&n.min);
                self.visit_prim(&n.extent);
                self.values.count(&n.var, &n.min, &n.extent);
                self.define(&n.var);
                // The number of iterations is as wide as the counter.
                if !self.holds(&n.extent) || !self.holds(&n.min) {
                    self.fits.entry(n.var.clone()).and_modify(|fits| *fits = false);
                }
                self.visit_stmt(&n.body);
            }
            Stmt::Bind(n) => {
                self.visit_prim(&n.value);
                self.values.bind(&n.var, &n.value);
                self.define(&n.var);
            }
            _ => self.walk_stmt(stmt),
        }
    }
}

/// Puts narrow variables in the place of others.
struct Narrow {
    vars: HashMap<Ref<Var>, Ref<Var>>,
    map: VarMap,
}

impl Narrow {
    /// An expression whose type somebody relies on.
    fn kept(&mut self, e: &PrimExpr) -> PrimExpr {
        prim::cast(e.dtype(), self.mutate_prim(e))
    }
}

impl PrimMutator for Narrow {
    fn mutate_prim(&mut self, e: &PrimExpr) -> PrimExpr {
        match e {
            PrimExpr::Var(var) => self.map.get(var).cloned().unwrap_or_else(|| e.clone()),
            PrimExpr::Load(n) => {
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                if indices == n.indices && predicate == n.predicate {
                    return e.clone();
                }
                Ref::new(BufferLoad { buffer: n.buffer.clone(), indices, predicate }).into()
            }
            PrimExpr::Cast(n) => {
                let value = self.mutate_prim(&n.value);
                if value == n.value { e.clone() } else { prim::cast(n.dtype, value) }
            }
            PrimExpr::Call(n) if n.op == CHOICE && n.args.len() == 3 => {
                let args = self.mutate_prims(&n.args);
                if args == n.args {
                    return e.clone();
                }
                let [condition, yes, no] = [0, 1, 2].map(|i| args[i].clone());
                prim::if_then_else(condition, yes, no)
            }
            PrimExpr::Call(n) => {
                let args: Vec<PrimExpr> = n.args.iter().map(|arg| self.kept(arg)).collect();
                if args == n.args { e.clone() } else { prim::call(n.dtype, n.op.clone(), args) }
            }
            PrimExpr::Let(n) => {
                let var = self.vars.get(&n.var).unwrap_or(&n.var).clone();
                let value = prim::cast(var.dtype(), self.mutate_prim(&n.value));
                Ref::new(prim::Let { var, value, body: self.mutate_prim(&n.body) }).into()
            }
            // The wider of two operands decides; a literal follows.
            _ => self.remake_prim(e),
        }
    }
}

impl StmtMutator for Narrow {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        match stmt {
            Stmt::For(n) => {
                let var = self.vars.get(&n.var).unwrap_or(&n.var).clone();
                let min = prim::cast(var.dtype(), self.mutate_prim(&n.min));
                let extent = prim::cast(var.dtype(), self.mutate_prim(&n.extent));
                let body = self.mutate_stmt(&n.body);
                Ref::new(For { var, min, extent, body, ..(**n).clone() }).into()
            }
            Stmt::Bind(n) => {
                let var = self.vars.get(&n.var).unwrap_or(&n.var).clone();
                let value = prim::cast(var.dtype(), self.mutate_prim(&n.value));
                Stmt::bind(var, value)
            }
            Stmt::Store(n) => {
                let value = self.kept(&n.value);
                let indices = self.mutate_prims(&n.indices);
                let predicate = n.predicate.as_ref().map(|p| self.mutate_prim(p));
                Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices, predicate }).into()
            }
            Stmt::Evaluate(n) => Stmt::evaluate(self.kept(&n.value)),
            _ => self.remake_stmt(stmt),
        }
    }
}
