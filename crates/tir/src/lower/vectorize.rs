//! Vectorized loops become vector expressions.
//!
//! ```text
//! for v in T.vectorized(8):                       A[ramp(i * 8, 1, 8)] =
//!     A[i * 8 + v] = B[v] * s            ->           B[ramp(0, 1, 8)] * broadcast(s, 8)
//! ```
//!
//! The loop variable becomes a ramp; every expression that depends on it becomes a vector, everything else stays scalar. A
//! condition that depends on it becomes a predicate of the loads and stores below it, so that no lane touches what its
//! iteration would not. Back ends here take any predicate, so a build asks for all of them ([`ANY_MASK`]). A pass that is run by
//! itself makes those that TVM's makes, `index < limit` around accesses to a place of each lane's own, and those only where the
//! option `tirx.enable_buffer_level_predication` says so or, where nothing is said, the target has SVE; a statement with another
//! condition becomes a serial loop over the lanes, and the rest of the body stays vectors.
//!
//! An extent of `T.vscale() * 4` gives scalable vectors. A loop becomes serial instead, with nothing lost but speed, where its
//! extent is symbolic in another way or very large, or where its body
//! has what no vector can do: scratch of its own, a store to one place from every lane, an inner loop or a choice of
//! statements by lane, a call that is not element-wise, a division that might trap in a lane that is off.
//!
//! Needs flat accesses. The loop's mark is a promise that its iterations do not depend on each other.

use std::collections::HashMap;

use relaxide_ffi::Ref;
use relaxide_ir::pass::{ParamDefault, ParamKind, PassInfo, PassParam};
use relaxide_ir::prim::{self, Binary, BufferLoad, PrimCall, PrimExpr, PrimMutator};
use relaxide_ir::{BinaryOp, Var};

use super::{LowerError, kernel_pass_with, ramp};
use crate::PrimFunc;
use crate::functor::{StmtMutator, fresh_copy, substitute_stmt, undefined_vars};
use crate::intrin::Intrinsic;
use crate::stmt::*;

/// Most lanes that a loop may become, or the multiplier of scalable ones.
const MAX_LANES: i64 = 128;

/// The parameter that asks for vectors.
pub(super) const ENABLE: &str = "enable_vectorize";

/// The parameter that makes a mask of every condition.
pub(super) const ANY_MASK: &str = "any_mask";

/// The option of a context that asks for none.
const DISABLE_OPTION: &str = "tirx.disable_vectorize";

/// The option of a context that asks for accesses with predicates.
const PREDICATION_OPTION: &str = "tirx.enable_buffer_level_predication";

pub(super) const PASS: PassInfo = kernel_pass_with!(
    "tirx.transform.VectorizeLoop",
    "Turns vectorized loops into vector expressions, or into serial loops where that is impossible.",
    |func, context, args| {
        let is_disabled = context.config.bool(DISABLE_OPTION) == Some(true) || args.bool(ENABLE) == Some(false);
        if is_disabled {
            return skip_vectorize(func);
        }
        if args.bool(ANY_MASK) == Some(true) {
            return vectorize_loops(func);
        }
        let has_sve = || {
            let own = func.target().ok().flatten();
            own.as_ref().unwrap_or(&context.target).mattr().split(',').any(|feature| feature == "+sve")
        };
        let asked = context.config.bool(PREDICATION_OPTION).unwrap_or_else(has_sve);
        Ok(run(func, Some(if asked { Masks::Limits } else { Masks::None })))
    }
)
.params(&[
    PassParam::new(
        ENABLE,
        ParamKind::Bool,
        ParamDefault::Bool(true),
        "Whether there are vectors at all; else all such loops are serial.",
    ),
    PassParam::new(
        ANY_MASK,
        ParamKind::Bool,
        ParamDefault::Bool(false),
        "Whether every condition that depends on the lane becomes a mask; else those that the context asks for.",
    ),
]);

/// A kernel without vectorized loops.
pub(super) fn vectorize_loops(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(run(func, Some(Masks::Any)))
}

/// A kernel whose vectorized loops are serial.
pub(super) fn skip_vectorize(func: &PrimFunc) -> Result<PrimFunc, LowerError> {
    Ok(run(func, None))
}

fn run(func: &PrimFunc, masks: Option<Masks>) -> PrimFunc {
    func.with_body(VectorizeLoops { masks }.mutate_stmt(&func.body))
}

/// Which conditions that depend on the lane become masks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Masks {
    /// All.
    Any,
    /// `index < limit`, around accesses to a place of each lane's own.
    Limits,
    /// None.
    None,
}

impl Masks {
    /// Whether a condition becomes a mask.
    fn take(self, condition: &PrimExpr) -> bool {
        match (self, condition) {
            (Masks::Any, _) => true,
            (Masks::Limits, PrimExpr::Binary(n)) => {
                n.op == BinaryOp::Lt && matches!(n.a, PrimExpr::Ramp(_)) && matches!(n.b, PrimExpr::Broadcast(_))
            }
            _ => false,
        }
    }
}

struct VectorizeLoops {
    /// The masks of the vectors that loops become where they can; without any, loops are serial.
    masks: Option<Masks>,
}

impl PrimMutator for VectorizeLoops {}

impl StmtMutator for VectorizeLoops {
    fn mutate_stmt(&mut self, stmt: &Stmt) -> Stmt {
        let Stmt::For(n) = stmt else { return self.remake_stmt(stmt) };
        if n.kind != ForKind::Vectorized {
            return self.remake_stmt(stmt);
        }
        // Inner vectorized loops first: what they leave are vectors, which an outer one cannot widen, or serial loops.
        let body = self.mutate_stmt(&n.body);
        let lanes = prim::lanes_of(&n.extent).filter(|lanes| (2..=MAX_LANES).contains(&lanes.abs()));
        if let (Some(lanes), Some(masks)) = (lanes, self.masks) {
            let counter = prim::ramp(n.min.clone(), prim::int_of(n.var.dtype(), 1), lanes);
            let vars = HashMap::from([(n.var.clone(), counter)]);
            let mut vectors = Vectorize { lanes, of: n, vars, mask: None, masks, refused: false };
            if let Some(vector) = vectors.stmt(&body) {
                return vector;
            }
        }
        Ref::new(For { kind: ForKind::Serial, body, ..For::clone(n) }).into()
    }
}

/// One loop on its way to vectors. A method returns `None` where the loop has to stay a loop.
struct Vectorize<'l> {
    lanes: i64,
    of: &'l For,
    /// Variables that differ between lanes, and their vectors.
    vars: HashMap<Ref<Var>, PrimExpr>,
    /// The lanes that are on, where not all are.
    mask: Option<PrimExpr>,
    /// Which conditions become masks.
    masks: Masks,
    /// Whether a condition was met that becomes none.
    refused: bool,
}

impl Vectorize<'_> {
    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        let made = self.vector_stmt(stmt);
        if made.is_none() && self.mask.is_none() && self.refused && matches!(stmt, Stmt::If(_) | Stmt::Store(_)) {
            self.refused = false;
            return self.lane_by_lane(stmt);
        }
        made
    }

    /// A statement as a serial loop over the lanes; `None` where it needs what vectors before it hold.
    fn lane_by_lane(&self, stmt: &Stmt) -> Option<Stmt> {
        let needed = undefined_vars(stmt);
        if self.vars.keys().any(|var| *var != self.of.var && needed.contains(var)) {
            return None;
        }
        let lane = Var::prim(format!("{}_s", self.of.var.name), self.of.var.dtype());
        let at = prim::add(&self.of.min, PrimExpr::from(&lane));
        let body = substitute_stmt(&fresh_copy(stmt), &HashMap::from([(self.of.var.clone(), at)]));
        Some(Stmt::serial(lane, self.of.extent.clone(), body))
    }

    fn vector_stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        match stmt {
            Stmt::Store(n) => self.store(n),
            Stmt::Seq(n) => Some(Stmt::seq(n.seq.iter().map(|s| self.stmt(s)).collect::<Option<Vec<_>>>()?)),
            Stmt::For(n) => {
                let (min, extent) = (self.scalar(&n.min)?, self.scalar(&n.extent)?);
                if n.kind != ForKind::Serial && n.kind != ForKind::Unrolled {
                    return None;
                }
                let body = self.stmt(&n.body)?;
                Some(Ref::new(For { min, extent, body, ..For::clone(n) }).into())
            }
            Stmt::If(n) => self.condition(n),
            Stmt::Bind(n) => {
                let value = self.expr(&n.value)?;
                if !self.is_vector(&value) {
                    return Some(Stmt::bind(n.var.clone(), value));
                }
                let var = Var::prim(n.var.name.clone(), value.dtype());
                self.vars.insert(n.var.clone(), PrimExpr::from(&var));
                Some(Stmt::bind(var, value))
            }
            Stmt::Attr(n) => {
                let (value, body) = (self.scalar(&n.value)?, self.stmt(&n.body)?);
                Some(Ref::new(AttrStmt { node: n.node.clone(), key: n.key.clone(), value, body }).into())
            }
            Stmt::While(_) | Stmt::Alloc(_) | Stmt::Evaluate(_) | Stmt::Assert(_) | Stmt::Block(_) => None,
            // Lanes cannot go on at different places.
            Stmt::Break(_) | Stmt::Continue(_) | Stmt::Return(_) => None,
            Stmt::ScopeIds(_) | Stmt::Tile(_) => None,
            Stmt::Decl(n) => n.is_view().then(|| stmt.clone()),
        }
    }

    fn store(&mut self, n: &BufferStore) -> Option<Stmt> {
        let [index] = n.indices.as_slice() else { return None };
        let index = self.expr(index)?;
        if !self.is_vector(&index) || n.buffer.dtype.lanes != 1 {
            return None;
        }
        let value = self.widened(&n.value)?;
        let own = match &n.predicate {
            Some(p) => Some(self.widened(p)?),
            None => None,
        };
        let predicate = both(self.mask.clone(), own);
        Some(Ref::new(BufferStore { buffer: n.buffer.clone(), value, indices: vec![index], predicate }).into())
    }

    fn condition(&mut self, n: &IfThenElse) -> Option<Stmt> {
        let condition = self.expr(&n.condition)?;
        if !self.is_vector(&condition) {
            let then_case = self.stmt(&n.then_case)?;
            return match &n.else_case {
                Some(other) => Some(Stmt::if_else(condition, then_case, self.stmt(other)?)),
                None => Some(Stmt::when(condition, then_case)),
            };
        }
        if !self.takes(&condition) || self.masks != Masks::Any && n.else_case.is_some() {
            self.refused = true;
            return None;
        }
        // What a branch stores may change what the condition was computed from, so its value is kept.
        let kept = Var::prim("lanes_on", condition.dtype());
        let on = PrimExpr::from(&kept);
        let mut seq = vec![Stmt::bind(kept, condition)];
        seq.push(self.under(on.clone(), |this| this.stmt(&n.then_case))?);
        if let Some(other) = &n.else_case {
            seq.push(self.under(prim::not(on), |this| this.stmt(other))?);
        }
        Some(Stmt::seq(seq))
    }

    fn under<T>(&mut self, condition: PrimExpr, f: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let outer = self.mask.clone();
        self.mask = both(outer.clone(), Some(condition));
        let result = f(self);
        self.mask = outer;
        result
    }

    /// Whether a condition becomes a mask. Where only some do, a mask inside of a mask does not.
    fn takes(&self, condition: &PrimExpr) -> bool {
        self.masks.take(condition) && (self.masks == Masks::Any || self.mask.is_none())
    }

    fn is_vector(&self, e: &PrimExpr) -> bool {
        e.dtype().lanes != 1
    }

    /// An expression that must not depend on the lane.
    fn scalar(&mut self, e: &PrimExpr) -> Option<PrimExpr> {
        self.expr(e).filter(|e| !self.is_vector(e))
    }

    /// An expression as a vector, whether it depends on the lane or not.
    fn widened(&mut self, e: &PrimExpr) -> Option<PrimExpr> {
        let e = self.expr(e)?;
        Some(self.widen(e))
    }

    fn widen(&self, e: PrimExpr) -> PrimExpr {
        if self.is_vector(&e) { e } else { prim::broadcast(e, self.lanes) }
    }

    /// An expression with a vector for every variable that differs between lanes; a scalar if none occurs.
    fn expr(&mut self, e: &PrimExpr) -> Option<PrimExpr> {
        if e.dtype().lanes != 1 {
            return None;
        }
        match e {
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) => Some(e.clone()),
            PrimExpr::Var(var) => Some(self.vars.get(var).unwrap_or(e).clone()),
            PrimExpr::Cast(n) => {
                let value = self.expr(&n.value)?;
                Some(ramp::cast(n.dtype.with_lanes(value.dtype().lanes), value))
            }
            PrimExpr::Binary(n) => self.binary(n),
            PrimExpr::Not(n) => self.expr(&n.a).map(prim::not),
            PrimExpr::Select(n) => {
                let (c, a, b) = (self.expr(&n.condition)?, self.expr(&n.true_value)?, self.expr(&n.false_value)?);
                self.choice(c, a, b)
            }
            PrimExpr::Let(n) => {
                let value = self.expr(&n.value)?;
                self.vars.insert(n.var.clone(), value);
                self.expr(&n.body)
            }
            PrimExpr::Load(n) => self.load(n),
            PrimExpr::Call(n) => self.call(n),
            PrimExpr::Ramp(_) | PrimExpr::Broadcast(_) => None,
        }
    }

    fn choice(&mut self, condition: PrimExpr, a: PrimExpr, b: PrimExpr) -> Option<PrimExpr> {
        if ![&condition, &a, &b].into_iter().any(|e| self.is_vector(e)) {
            return Some(prim::select(condition, a, b));
        }
        Some(prim::select(self.widen(condition), self.widen(a), self.widen(b)))
    }

    fn binary(&mut self, n: &Binary) -> Option<PrimExpr> {
        let (a, b) = (self.expr(&n.a)?, self.expr(&n.b)?);
        if !self.is_vector(&a) && !self.is_vector(&b) {
            return Some(prim::binary(n.op, a, b));
        }
        let divides = matches!(n.op, BinaryOp::Div | BinaryOp::Mod | BinaryOp::FloorDiv | BinaryOp::FloorMod);
        let safe = !divides || b.dtype().is_float() || b.as_int().is_some_and(|c| c != 0 && c != -1);
        if !safe && self.mask.is_some() {
            return None;
        }
        match n.op {
            BinaryOp::Add if a.dtype().is_integer() => Some(ramp::add(&a, &b)),
            BinaryOp::Sub if a.dtype().is_integer() => Some(ramp::sub(&a, &b)),
            BinaryOp::Mul if a.dtype().is_integer() => Some(ramp::mul(&a, &b)),
            // As written: which lanes a literal decides is left to what reads the vectors.
            op @ (BinaryOp::And | BinaryOp::Or) => {
                Some(Ref::new(Binary { op, a: self.widen(a), b: self.widen(b) }).into())
            }
            op => Some(prim::binary(op, self.widen(a), self.widen(b))),
        }
    }

    fn load(&mut self, n: &BufferLoad) -> Option<PrimExpr> {
        let [index] = n.indices.as_slice() else { return None };
        let index = self.expr(index)?;
        let own = match &n.predicate {
            Some(p) => Some(self.expr(p)?),
            None => None,
        };
        // A load from one place for all lanes is a load of one lane; under a mask some lane might want it and some not.
        if !self.is_vector(&index) && self.mask.is_none() && own.as_ref().is_none_or(|p| !self.is_vector(p)) {
            let (buffer, predicate) = (n.buffer.clone(), own);
            return Some(Ref::new(BufferLoad { buffer, indices: vec![index], predicate }).into());
        }
        if self.masks != Masks::Any && !self.is_vector(&index) {
            self.refused = true;
            return None;
        }
        let predicate = both(self.mask.clone(), own.map(|p| self.widen(p)));
        let (buffer, indices) = (n.buffer.clone(), vec![self.widen(index)]);
        (buffer.dtype.lanes == 1).then(|| Ref::new(BufferLoad { buffer, indices, predicate }).into())
    }

    /// An index that is held against its extent: once for all lanes where it is the same in all and all are on.
    fn checked_index(&mut self, n: &PrimCall) -> Option<PrimExpr> {
        let [index, extent, what, shown] = n.args.as_slice() else { return None };
        let (index, extent, shown) = (self.expr(index)?, self.scalar(extent)?, self.expr(shown)?);
        if !self.is_vector(&index) && self.mask.is_none() {
            return Some(prim::call(n.dtype, n.op.clone(), vec![index, extent, what.clone(), shown]));
        }
        let mut args = vec![self.widen(index), extent, what.clone(), self.widen(shown)];
        args.extend(self.mask.clone());
        Some(prim::call(n.dtype.with_lanes(self.lanes as u16), n.op.clone(), args))
    }

    /// An operation of LLVM's that every machine has, on all lanes at once; a whole number beside its operands is one for all.
    fn llvm_call(&mut self, n: &PrimCall) -> Option<PrimExpr> {
        let [PrimExpr::Str(name), args @ ..] = n.args.as_slice() else { return None };
        let is_of_one_machine = |part: &str| matches!(part, "x86" | "aarch64" | "arm" | "nvvm" | "amdgcn" | "riscv");
        // A name that says its type is that of one lane.
        let is_type = |part: &str| part.strip_prefix(['f', 'i']).is_some_and(|bits| bits.parse::<u32>().is_ok());
        if !name.value.starts_with("llvm.") || name.value.split('.').any(|p| is_of_one_machine(p) || is_type(p)) {
            return None;
        }
        let args = args.iter().map(|a| self.expr(a)).collect::<Option<Vec<_>>>()?;
        let is_vector = args.iter().any(|a| self.is_vector(a));
        let lanes = if is_vector { self.lanes as u16 } else { 1 };
        let whole = |a: &PrimExpr| !is_vector || matches!(a, PrimExpr::Int(_));
        let args = args.into_iter().map(|a| if whole(&a) { a } else { self.widen(a) });
        let args = std::iter::once(n.args[0].clone()).chain(args).collect();
        Some(prim::call(n.dtype.with_lanes(lanes), n.op.clone(), args))
    }

    fn call(&mut self, n: &PrimCall) -> Option<PrimExpr> {
        let intrinsic = Intrinsic::of_call(&n.op)?;
        if intrinsic == Intrinsic::CallLlvmPureIntrin {
            return self.llvm_call(n);
        }
        if let (Intrinsic::IfThenElse, [condition, yes, no]) = (intrinsic, n.args.as_slice()) {
            let condition = self.expr(condition)?;
            if !self.is_vector(&condition) {
                // Both sides must have the lanes of the whole, whichever is taken.
                let (yes, no) = (self.expr(yes)?, self.expr(no)?);
                let (yes, no) = match self.is_vector(&yes) || self.is_vector(&no) {
                    true => (self.widen(yes), self.widen(no)),
                    false => (yes, no),
                };
                return Some(prim::if_then_else(condition, yes, no));
            }
            if self.masks != Masks::Any {
                self.refused = true;
                return None;
            }
            let yes = self.under(condition.clone(), |this| this.widened(yes))?;
            let no = self.under(prim::not(condition.clone()), |this| this.widened(no))?;
            return Some(prim::select(condition, yes, no));
        }
        if intrinsic == Intrinsic::CheckedIndex {
            return self.checked_index(n);
        }
        if !intrinsic.is_elementwise() {
            return None;
        }
        let args = n.args.iter().map(|a| self.expr(a)).collect::<Option<Vec<_>>>()?;
        if !args.iter().any(|a| self.is_vector(a)) {
            return Some(prim::call(n.dtype, n.op.clone(), args));
        }
        let args = args.into_iter().map(|a| self.widen(a)).collect();
        Some(prim::call(n.dtype.with_lanes(self.lanes as u16), n.op.clone(), args))
    }
}

/// Lanes that are on by both masks.
fn both(a: Option<PrimExpr>, b: Option<PrimExpr>) -> Option<PrimExpr> {
    match (a, b) {
        (Some(a), Some(b)) => Some(prim::and(a, b)),
        (a, b) => a.or(b),
    }
}
