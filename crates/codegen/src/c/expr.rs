//! Expressions, for one lane at a time.
//!
//! A vector's value in lane `i` is the value of a scalar expression: of `base + i * stride` for a ramp, of the operand for a
//! broadcast, of the element at the index's lane for a load. So vectors are loops over lanes around scalar code, and the C
//! compiler makes vectors of these again as the processor has them.
//!
//! An expression becomes text in the place where its value is used, except for what needs statements: calls that can fail,
//! values under a name, choices of which only one side may be evaluated and that hold such things. Those stand in front of the
//! statement.

use relaxide_ir::{
    BinaryOp, PrimExpr,
    prim::{Let, Ramp},
};

use super::{
    body::{Body, Known, MemoKey},
    code::{self, Code, Level},
    types::value_type,
};
use crate::{
    error::CodegenError,
    shared::{Overflow, ScalarKind, Ty},
};
use relaxide_ir::prim::is_data;

impl Body<'_, '_> {
    /// The value of an expression, in the lane at hand if it is a vector.
    pub fn eval(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        if let PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Var(_) | PrimExpr::Str(_) = e {
            return self.eval_leaf(e);
        }
        if !self.in_order && !self.shared.contains(e) {
            return self.eval_node(e);
        }
        let lane = self.lane.as_ref().filter(|_| e.dtype().lanes > 1).map(|lane| lane.text.clone());
        let key: MemoKey = (e.clone(), self.overflow, lane);
        if let Some(name) = self.known(&key) {
            return Ok(Code::atom(name));
        }
        let value = self.eval_node(e)?;
        // Names and literals need no other name, and a call of nothing's type has no value.
        let plain = value.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let Some(ty) = Ty::of(e.dtype()).filter(|_| !plain) else { return Ok(value) };
        let name = self.define("value", value_type(ty.kind), &value);
        self.remember(key, name.clone());
        Ok(Code::atom(name))
    }

    fn eval_leaf(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        match e {
            PrimExpr::Int(n) => Ok(code::integer(self.kernel.ty(n.dtype)?, n.value)),
            PrimExpr::Float(n) => Ok(code::float(self.kernel.ty(n.dtype)?, n.value)),
            PrimExpr::Str(n) => Ok(Code::new(format!("(void *){}", code::string(&n.value)), Level::Unary)),
            PrimExpr::Var(var) => {
                let known = self.known_var(var)?;
                match (&self.lane, known.is_vector) {
                    (_, false) if known.ty.ends_with('*') && known.ty != "void *" => {
                        Ok(Code::cast("void *", &known.code))
                    }
                    (_, false) => Ok(known.code),
                    (Some(lane), true) => Ok(Code::element(&known.code.text, lane)),
                    (None, true) => Err(self.kernel.malformed(format!("vector `{}` as one value", var.name))),
                }
            }
            _ => Err(self.kernel.malformed("an expression that is no leaf was taken for one")),
        }
    }

    /// What stands for a variable.
    pub fn known_var(&self, var: &relaxide_ir::Ref<relaxide_ir::Var>) -> Result<Known, CodegenError> {
        let known = self.vars.get(var).cloned();
        known.ok_or_else(|| self.kernel.malformed(format!("variable `{}` has no value here", var.name)))
    }

    fn eval_node(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        match e {
            PrimExpr::Cast(n) => {
                let (to, from) = (self.kernel.ty(n.dtype)?, self.kernel.ty(n.value.dtype())?);
                if to.kind.is_float() && from.kind == ScalarKind::Ptr
                    || to.kind == ScalarKind::Ptr && from.kind.is_float()
                {
                    return Err(self.kernel.malformed("a conversion between a handle and a float"));
                }
                let value = self.eval(&n.value)?;
                Ok(self.convert(value, from.kind, to.kind))
            }
            PrimExpr::Binary(n) => {
                let (a_ty, b_ty) = (self.kernel.ty(n.a.dtype())?, self.kernel.ty(n.b.dtype())?);
                self.same_kind(a_ty, b_ty, "the operands of an operator")?;
                let natural = self.overflow == Overflow::Never && self.is_natural(&n.a);
                let (mut a, b) = (self.eval(&n.a)?, self.eval(&n.b)?);
                if let (Some(number), Some(_), 8) = (n.a.as_int(), n.b.as_int(), a_ty.kind.bytes()) {
                    // Two small literals would be computed in `int`.
                    a = Code::cast(value_type(a_ty.kind), &code::integer(a_ty, number));
                }
                let divisor = n.b.as_int().filter(|divisor| *divisor > 0);
                if let (true, Some(_), BinaryOp::FloorDiv | BinaryOp::FloorMod) = (natural, divisor, n.op) {
                    let op = if n.op == BinaryOp::FloorDiv { BinaryOp::Div } else { BinaryOp::Mod };
                    return Ok(self.binary(op, a_ty.kind, &a, &b, divisor));
                }
                Ok(self.binary(n.op, a_ty.kind, &a, &b, divisor))
            }
            PrimExpr::Not(n) => {
                let condition = self.condition(&n.a)?;
                Ok(Code::not(&condition))
            }
            PrimExpr::Select(n) => {
                let (yes, no) = (self.kernel.ty(n.true_value.dtype())?, self.kernel.ty(n.false_value.dtype())?);
                self.same_kind(yes, no, "the sides of a choice")?;
                let condition = self.condition(&n.condition)?;
                let (yes, no) = (self.eval(&n.true_value)?, self.eval(&n.false_value)?);
                Ok(Code::choice(&condition, &yes, &no))
            }
            PrimExpr::Let(n) => self.eval_let(n),
            PrimExpr::Ramp(n) => self.eval_ramp(n),
            PrimExpr::Broadcast(n) => {
                let (lane, inner) = (self.lane.clone(), u32::from(n.value.dtype().lanes));
                if inner > 1 {
                    let count = code::integer(Ty::I32, i64::from(inner));
                    self.lane = lane.as_ref().map(|lane| Code::infix(lane, "%", &count, Level::Mul));
                }
                let value = self.eval(&n.value);
                self.lane = lane;
                value
            }
            PrimExpr::Load(n) => self.eval_load(n),
            PrimExpr::Call(n) => self.eval_call(n),
            PrimExpr::Int(_) | PrimExpr::Float(_) | PrimExpr::Str(_) | PrimExpr::Var(_) => self.eval_leaf(e),
        }
    }

    /// Whether a value is not zero.
    pub fn condition(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        let kind = self.kernel.ty(e.dtype())?.kind;
        let value = self.eval(e)?;
        Ok(self.convert(value, kind, ScalarKind::Bool))
    }

    fn eval_let(&mut self, n: &Let) -> Result<Code, CodegenError> {
        let known = self.bound(&n.var.name, &n.value)?;
        self.vars.insert(n.var.clone(), known);
        self.eval(&n.body)
    }

    /// Gives a value a name; a vector becomes an array.
    pub fn bound(&mut self, name: &str, value: &PrimExpr) -> Result<Known, CodegenError> {
        let ty = self.kernel.ty(value.dtype())?;
        let c_type = value_type(ty.kind);
        if !ty.is_vector() {
            let is_natural = self.overflow == Overflow::Never && self.is_natural(value);
            let value = self.eval(value)?;
            let name = self.define(name, c_type, &value);
            return Ok(Known { is_natural, ..Known::scalar(name, c_type) });
        }
        let array = self.vector(name, value)?;
        Ok(Known { is_vector: true, ..Known::scalar(array, c_type) })
    }

    /// An array of all lanes of a value.
    pub fn vector(&mut self, name: &str, value: &PrimExpr) -> Result<String, CodegenError> {
        let ty = self.kernel.ty(value.dtype())?;
        let array = self.fresh(name);
        let element = super::types::declare(value_type(ty.kind), &array);
        self.line(format_args!("{element}[{}];", ty.lanes));
        self.for_lanes(ty.lanes, |this, lane| {
            let value = this.eval(value)?;
            this.line(format_args!("{array}[{lane}] = {};", value.text));
            Ok(())
        })?;
        Ok(array)
    }

    /// A loop over the lanes of a vector.
    pub fn for_lanes(
        &mut self,
        lanes: u32,
        inside: impl FnOnce(&mut Self, &str) -> Result<(), CodegenError>,
    ) -> Result<(), CodegenError> {
        let (outer, names) = (self.lane.clone(), self.mark_names());
        let lane = self.fresh("lane");
        self.lane = Some(Code::atom(&lane));
        let head = format!("for (int {lane} = 0; {lane} < {lanes}; ++{lane})");
        let done = self.block(head, |this| inside(this, &lane));
        self.release_names(names);
        self.lane = outer;
        done
    }

    fn eval_ramp(&mut self, n: &Ramp) -> Result<Code, CodegenError> {
        self.lanes(n.lanes)?;
        let ty = self.kernel.ty(n.base.dtype())?;
        self.same_kind(ty, self.kernel.ty(n.stride.dtype())?, "base and stride of a ramp")?;
        let lane = self.lane.clone().ok_or_else(|| self.kernel.malformed("a ramp as one value"))?;
        let (base, stride) = (self.eval(&n.base)?, self.eval(&n.stride)?);
        let small = n.stride.as_int().is_none_or(|stride| i16::try_from(stride).is_ok());
        let plain = self.overflow == Overflow::Never && ty.kind.is_signed() && ty.kind.bytes() >= 4 && small;
        let lane = if plain { lane } else { Code::cast(value_type(ty.kind), &lane) };
        let offset = match n.stride.as_int() {
            Some(1) => lane,
            Some(0) => return Ok(base),
            _ => self.binary(BinaryOp::Mul, ty.kind, &stride, &lane, None),
        };
        if n.base.is_int(0) && plain {
            return Ok(offset);
        }
        Ok(self.binary(BinaryOp::Add, ty.kind, &base, &offset, None))
    }

    /// A number of lanes that a vector may have.
    pub fn lanes(&self, lanes: i64) -> Result<u32, CodegenError> {
        let count = u32::try_from(lanes).ok().filter(|count| (1..=4096).contains(count));
        count.ok_or_else(|| self.kernel.malformed(format!("a vector of {lanes} lanes")))
    }

    pub fn same_kind(&self, a: Ty, b: Ty, what: &str) -> Result<(), CodegenError> {
        if a.kind == b.kind { Ok(()) } else { Err(self.kernel.malformed(format!("{what} have types {a} and {b}"))) }
    }

    /// A choice of which only one side may be evaluated.
    pub fn choose_lazily(&mut self, condition: &PrimExpr, yes: &PrimExpr, no: &PrimExpr) -> Result<Code, CodegenError> {
        let (ty, other) = (self.kernel.ty(yes.dtype())?, self.kernel.ty(no.dtype())?);
        self.same_kind(ty, other, "the sides of a choice")?;
        let condition = self.index_condition(condition)?;
        // Before the sides, whose own names end with them: a name of theirs would hide this one.
        let choice = self.fresh("choice");
        let (yes, yes_lines) = self.apart(|this| this.eval(yes));
        let (no, no_lines) = self.apart(|this| this.eval(no));
        let (yes, no) = (yes?, no?);
        if yes_lines.is_empty() && no_lines.is_empty() {
            return Ok(Code::choice(&condition, &yes, &no));
        }
        self.line(format_args!("{};", super::types::declare(value_type(ty.kind), &choice)));
        for (head, lines, value) in
            [(format!("if ({})", condition.text), yes_lines, yes), ("else".to_string(), no_lines, no)]
        {
            self.block(head, |this| {
                this.add(&lines);
                this.line(format_args!("{choice} = {};", value.text));
                Ok(())
            })?;
        }
        Ok(Code::atom(choice))
    }

    /// Evaluates an index, extent or condition of indices with the promise that no integer overflows. What depends on memory is
    /// data, which nobody has promised anything of.
    pub fn index(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        let promise = if is_data(e) { Overflow::Wraps } else { Overflow::Never };
        let outer = std::mem::replace(&mut self.overflow, promise);
        let value = self.eval(e);
        self.overflow = outer;
        value
    }

    /// An index in 64 bits.
    pub fn wide_index(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        let kind = self.kernel.ty(e.dtype())?.kind;
        let value = self.index(e)?;
        Ok(if e.as_int().is_some() { value } else { self.convert(value, kind, Ty::I64.kind) })
    }

    /// A condition of indices.
    pub fn index_condition(&mut self, e: &PrimExpr) -> Result<Code, CodegenError> {
        let kind = self.kernel.ty(e.dtype())?.kind;
        let value = self.index(e)?;
        Ok(self.convert(value, kind, ScalarKind::Bool))
    }

    /// Whether an index is no less than zero, as far as its text tells.
    pub fn is_natural(&self, e: &PrimExpr) -> bool {
        use BinaryOp::*;
        match e {
            PrimExpr::Int(n) => n.value >= 0,
            PrimExpr::Var(var) => self.vars.get(var).is_some_and(|known| known.is_natural),
            PrimExpr::Cast(n) => {
                let (from, to) = (n.value.dtype(), n.dtype);
                from.is_int() && to.is_int() && to.bits >= from.bits && self.is_natural(&n.value)
            }
            PrimExpr::Binary(n) => match n.op {
                Add | Mul | Div | Max | Min | FloorDiv => self.is_natural(&n.a) && self.is_natural(&n.b),
                Mod | FloorMod => self.is_natural(&n.a) && n.b.as_int().is_some_and(|b| b > 0),
                _ => false,
            },
            PrimExpr::Ramp(n) => self.is_natural(&n.base) && self.is_natural(&n.stride),
            PrimExpr::Broadcast(n) => self.is_natural(&n.value),
            _ => false,
        }
    }
}
