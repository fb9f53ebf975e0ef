//! Scalar and vector expressions.

use relaxide_ir::{
    BinaryOp, PrimExpr,
    prim::{PrimVisitor, Ramp},
};

use super::{
    kernel::Body,
    value::{ScalarKind, Ty, Val, lanes_of_count},
};
use crate::error::CodegenError;

impl Body<'_, '_> {
    /// The value of an expression. A node that occurs twice in a statement is computed once.
    pub fn eval(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        if let PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_) | PrimExpr::Str(_) = e {
            return self.eval_leaf(e);
        }
        // Under a mask the same node may have another value.
        if self.mask.is_some() {
            return self.eval_node(e);
        }
        let key = (e.clone(), self.overflow);
        if let Some(&known) = self.memo_index.get(&key) {
            return Ok(self.memo[known].1.clone());
        }
        let value = self.eval_node(e)?;
        self.memo_index.insert(key.clone(), self.memo.len());
        self.memo.push((key, value.clone()));
        Ok(value)
    }

    fn eval_leaf(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        match e {
            PrimExpr::Int(n) => {
                let ty = self.kernel.ty(n.dtype)?;
                // A literal of a handle type is the null pointer.
                Ok(if ty.kind == ScalarKind::Ptr { Val::zero(ty) } else { Val::int(ty, n.value) })
            }
            PrimExpr::Float(n) => Ok(Val::float(self.kernel.ty(n.dtype)?, n.value)),
            PrimExpr::Str(n) => Ok(Val::new(Ty::PTR, self.f.module.string(&n.value))),
            PrimExpr::Var(var) => self.var(var),
            _ => Err(self.kernel.malformed("an expression that is no leaf was taken for one")),
        }
    }

    fn eval_node(&mut self, e: &PrimExpr) -> Result<Val, CodegenError> {
        match e {
            PrimExpr::Cast(n) => {
                if let Some(ints) = self.whole_numbers(n)? {
                    return Ok(ints);
                }
                let (to, value) = (self.kernel.ty(n.dtype)?, self.eval(&n.value)?);
                if to.kind.is_float() && value.ty.kind == ScalarKind::Ptr
                    || to.kind == ScalarKind::Ptr && value.ty.kind.is_float()
                {
                    return Err(self.kernel.malformed("a conversion between a handle and a float"));
                }
                let converted = self.f.convert(&value, to);
                Ok(self.f.splat_to(&converted, to.lanes))
            }
            PrimExpr::Binary(n) => {
                let (a, b) = (self.eval(&n.a)?, self.eval(&n.b)?);
                let lanes = a.ty.lanes.max(b.ty.lanes);
                let (a, b) = (self.f.splat_to(&a, lanes), self.f.splat_to(&b, lanes));
                self.same_type(&a, &b, "the operands of an operator")?;
                Ok(self.f.binary(n.op, &a, &b, self.overflow))
            }
            PrimExpr::Not(n) => {
                let value = self.eval(&n.a)?;
                let value = self.f.not_zero(&value);
                Ok(self.f.not(&value))
            }
            PrimExpr::Select(n) => {
                let condition = self.eval(&n.condition)?;
                let (yes, no) = (self.eval(&n.true_value)?, self.eval(&n.false_value)?);
                self.choose(&condition, &yes, &no)
            }
            PrimExpr::Let(n) => {
                let value = self.eval(&n.value)?;
                self.vars.insert(n.var.clone(), value);
                self.eval(&n.body)
            }
            PrimExpr::Ramp(n) => self.eval_ramp(n),
            PrimExpr::Broadcast(n) => {
                let (value, lanes) = (self.eval(&n.value)?, self.lanes(n.lanes)?);
                Ok(self.f.splat(&value, lanes))
            }
            PrimExpr::Load(n) => self.eval_load(n),
            PrimExpr::Call(n) => self.eval_call(n),
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => self.eval_leaf(e),
        }
    }

    fn eval_ramp(&mut self, n: &Ramp) -> Result<Val, CodegenError> {
        let lanes = self.lanes(n.lanes)?;
        let (base, stride) = (self.eval(&n.base)?, self.eval(&n.stride)?);
        self.same_type(&base, &stride, "base and stride of a ramp")?;
        let (base, stride) = (self.f.splat(&base, lanes), self.f.splat(&stride, lanes));
        let steps = self.steps(base.ty);
        let offsets = self.f.binary(BinaryOp::Mul, &stride, &steps, self.overflow);
        Ok(self.f.binary(BinaryOp::Add, &base, &offsets, self.overflow))
    }

    /// Each lane's number.
    fn steps(&mut self, ty: Ty) -> Val {
        if ty.is_scalable() {
            let name = if cfg!(feature = "llvm19") { "experimental.stepvector" } else { "stepvector" };
            return self.f.intrinsic(name, ty, ty, &[]);
        }
        let element = ty.element();
        let steps: Vec<String> = (0..ty.lanes).map(|lane| Val::int(element, i64::from(lane)).to_string()).collect();
        Val::new(ty, format!("<{}>", steps.join(", ")))
    }

    pub fn lanes(&self, lanes: i64) -> Result<u32, CodegenError> {
        lanes_of_count(lanes).ok_or_else(|| self.kernel.malformed(format!("a vector of {lanes} lanes")))
    }

    pub fn same_type(&self, a: &Val, b: &Val, what: &str) -> Result<(), CodegenError> {
        let same = a.ty == b.ty || (a.ty.to_string() == b.ty.to_string() && !a.ty.kind.is_narrow_float());
        if same { Ok(()) } else { Err(self.kernel.malformed(format!("{what} have types {} and {}", a.ty, b.ty))) }
    }

    /// A choice between two values that both exist.
    pub fn choose(&mut self, condition: &Val, yes: &Val, no: &Val) -> Result<Val, CodegenError> {
        let lanes = yes.ty.lanes.max(no.ty.lanes).max(condition.ty.lanes);
        let (yes, no) = (self.f.splat_to(yes, lanes), self.f.splat_to(no, lanes));
        self.same_type(&yes, &no, "the sides of a choice")?;
        let condition = self.f.not_zero(condition);
        Ok(self.f.select(&condition, &yes, &no))
    }

    /// A choice of which only one side may be evaluated.
    pub fn choose_lazily(&mut self, condition: &PrimExpr, yes: &PrimExpr, no: &PrimExpr) -> Result<Val, CodegenError> {
        let condition = self.index_typed(condition)?;
        let condition = self.f.not_zero(&condition);
        if condition.ty.is_vector() {
            return self.choose_by_lane(&condition, yes, no);
        }
        if is_harmless(yes) && is_harmless(no) {
            let (yes, no) = (self.eval(yes)?, self.eval(no)?);
            return self.choose(&condition, &yes, &no);
        }
        let (then, otherwise, done) = (self.f.label(), self.f.label(), self.f.label());
        let mark = self.memo.len();
        self.f.branch_if(&condition, then, otherwise);
        let mut sides = Vec::with_capacity(2);
        for (label, side) in [(then, yes), (otherwise, no)] {
            self.f.start(label);
            let value = self.eval(side)?;
            self.forget_since(mark);
            sides.push((value, self.f.current()));
            self.f.branch(done);
        }
        self.same_type(&sides[0].0, &sides[1].0, "the sides of a choice")?;
        self.f.start(done);
        Ok(self.f.phi(sides[0].0.ty, &sides))
    }

    /// A lane-wise choice: both sides are evaluated, each reading memory only in its own lanes.
    fn choose_by_lane(&mut self, condition: &Val, yes: &PrimExpr, no: &PrimExpr) -> Result<Val, CodegenError> {
        let outer = self.mask.clone();
        let opposite = self.f.not(condition);
        let mut sides = Vec::with_capacity(2);
        for (side, lanes) in [(yes, condition), (no, &opposite)] {
            self.mask = Some(match &outer {
                Some(outer) if outer.ty == lanes.ty => self.f.op("and", outer, lanes),
                _ => lanes.clone(),
            });
            let value = self.eval(side);
            self.mask = outer.clone();
            sides.push(value?);
        }
        self.choose(condition, &sides[0], &sides[1])
    }
}

impl super::function::FunctionText<'_> {
    /// A scalar in `lanes` lanes; vectors stay as they are.
    pub fn splat_to(&mut self, value: &Val, lanes: u32) -> Val {
        if value.ty.is_vector() { value.clone() } else { self.splat(value, lanes) }
    }
}

/// Whether evaluating it can neither fail nor cost much: no memory, no calls, few operators.
fn is_harmless(e: &PrimExpr) -> bool {
    struct Harm {
        found: bool,
        budget: u32,
    }
    impl PrimVisitor for Harm {
        fn visit_prim(&mut self, e: &PrimExpr) {
            self.budget = self.budget.saturating_sub(1);
            if self.budget == 0 || matches!(e, PrimExpr::Load(_) | PrimExpr::Call(_)) {
                self.found = true;
            }
            if !self.found {
                self.walk_prim(e);
            }
        }
    }
    let mut harm = Harm { found: false, budget: 32 };
    harm.visit_prim(e);
    !harm.found
}
