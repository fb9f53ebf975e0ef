//! Scalar expressions, with parentheses only where Python needs them.

use relaxide_ffi::{DataType, Ref};
use relaxide_ir::prim::{Binary, FloatImm, IntImm, PrimCall, lanes_expr};
use relaxide_ir::{BinaryOp, Buffer, PrimExpr};
use relaxide_tir::kernel_call::CALL_KERNEL;

use super::Printer;
use super::names::identifier;
use super::tir::BufferForm;
use crate::device_intrinsics::DeviceIntrinsic;
use crate::intrinsics::{self, BITWISE, ResultType};
use crate::number::{float_text, is_literal, quoted, special_text};

/// Binding strengths, as Python's grammar orders them.
mod strength {
    pub const ANY: u8 = 0;
    pub const OR: u8 = 1;
    pub const AND: u8 = 2;
    pub const NOT: u8 = 3;
    pub const COMPARE: u8 = 4;
    pub const SUM: u8 = 9;
    pub const PRODUCT: u8 = 10;
    pub const UNARY: u8 = 11;
}

/// How an operator is written.
enum OperatorForm {
    /// Between its operands, with a strength.
    Infix(&'static str, u8),
    /// As a call.
    Named(&'static str),
}

fn form(op: BinaryOp, float: bool) -> OperatorForm {
    use BinaryOp::*;
    use OperatorForm::*;
    match op {
        Add => Infix("+", strength::SUM),
        Sub => Infix("-", strength::SUM),
        Mul => Infix("*", strength::PRODUCT),
        Div if float => Infix("/", strength::PRODUCT),
        Div => Named("T.Div"),
        Mod => Named("T.truncmod"),
        FloorDiv => Infix("//", strength::PRODUCT),
        FloorMod => Infix("%", strength::PRODUCT),
        Min => Named("T.min"),
        Max => Named("T.max"),
        Eq => Infix("==", strength::COMPARE),
        Ne => Infix("!=", strength::COMPARE),
        Lt => Infix("<", strength::COMPARE),
        Le => Infix("<=", strength::COMPARE),
        Gt => Infix(">", strength::COMPARE),
        Ge => Infix(">=", strength::COMPARE),
        And => Infix("and", strength::AND),
        Or => Infix("or", strength::OR),
    }
}

/// The call that stands for an operator where Python would compute the literals itself.
fn call_form(op: BinaryOp) -> &'static str {
    use BinaryOp::*;
    match op {
        Add => "T.Add",
        Sub => "T.Sub",
        Mul => "T.Mul",
        Div => "T.Div",
        Mod => "T.truncmod",
        FloorDiv => "T.FloorDiv",
        FloorMod => "T.FloorMod",
        Min => "T.min",
        Max => "T.max",
        Eq => "T.EQ",
        Ne => "T.NE",
        Lt => "T.LT",
        Le => "T.LE",
        Gt => "T.GT",
        Ge => "T.GE",
        And => "T.And",
        Or => "T.Or",
    }
}

impl Printer<'_> {
    pub(super) fn prim(&mut self, e: &PrimExpr) -> String {
        self.prim_at(e, strength::ANY)
    }

    /// Several, with commas between them.
    pub(super) fn prims(&mut self, list: &[PrimExpr]) -> String {
        list.iter().map(|e| self.prim(e)).collect::<Vec<_>>().join(", ")
    }

    fn prim_at(&mut self, e: &PrimExpr, outer: u8) -> String {
        let text = self.prim_text(e, outer);
        self.watch(|| e.clone().into(), text)
    }

    fn prim_text(&mut self, e: &PrimExpr, outer: u8) -> String {
        match e {
            PrimExpr::Int(imm) => self.int(imm),
            PrimExpr::Float(imm) => self.float(imm),
            PrimExpr::Str(imm) => quoted(&imm.value),
            PrimExpr::Var(var) => self.var(var),
            PrimExpr::Binary(b) => self.binary(b, outer),
            PrimExpr::Not(n) => {
                let text = format!("not {}", self.prim_at(&n.a, strength::NOT));
                parenthesised(text, strength::NOT < outer)
            }
            PrimExpr::Cast(c) => self.named("Cast", &[quoted(&c.dtype.to_string())], std::slice::from_ref(&c.value)),
            PrimExpr::Select(s) => {
                self.named("Select", &[], &[s.condition.clone(), s.true_value.clone(), s.false_value.clone()])
            }
            PrimExpr::Let(l) => {
                let value = self.prim(&l.value);
                self.names.push();
                let name = self.names.define(l.var.clone().into(), &l.var.name);
                let body = self.prim(&l.body);
                self.names.pop();
                self.uses_tir = true;
                format!("T.Let({body}, where={{{name}: {value}}})")
            }
            PrimExpr::Ramp(r) => {
                self.uses_tir = true;
                format!("T.Ramp({}, {}, {})", self.prim(&r.base), self.prim(&r.stride), self.prim(&lanes_expr(r.lanes)))
            }
            PrimExpr::Broadcast(b) => {
                self.uses_tir = true;
                format!("T.Broadcast({}, {})", self.prim(&b.value), self.prim(&lanes_expr(b.lanes)))
            }
            PrimExpr::Load(l) => match &l.predicate {
                None => self.element(&l.buffer, &l.indices),
                Some(predicate) => {
                    self.uses_tir = true;
                    let (dtype, buffer) = (quoted(&e.dtype().to_string()), self.buffer(&l.buffer));
                    let (indices, predicate) = (self.prims(&l.indices), self.prim(predicate));
                    format!("T.masked_load({dtype}, {buffer}, {indices}, {predicate})")
                }
            },
            PrimExpr::Call(c) => self.prim_call(c, outer),
        }
    }

    fn int(&mut self, imm: &IntImm) -> String {
        if imm.dtype == self.bare_int {
            return imm.value.to_string();
        }
        self.uses_tir = true;
        if imm.dtype == DataType::bool() {
            return if imm.value != 0 { "T.bool(True)" } else { "T.bool(False)" }.into();
        }
        if imm.dtype == DataType::uint(64) {
            return format!("T.uint64({})", imm.value as u64);
        }
        format!("T.{}({})", imm.dtype, imm.value)
    }

    fn float(&mut self, imm: &FloatImm) -> String {
        self.uses_tir = true;
        match is_literal(imm.value) {
            true => format!("T.{}({})", imm.dtype, float_text(imm.value)),
            false => format!("T.{}({})", imm.dtype, quoted(special_text(imm.value))),
        }
    }

    fn binary(&mut self, b: &Binary, outer: u8) -> String {
        let dtype = b.a.dtype();
        // Two literals would be computed where they are read; a literal beside `and` would be taken as a bool.
        let computed = matches!((&b.a, &b.b), (PrimExpr::Int(_), PrimExpr::Int(_)));
        let truth = b.op.is_logical() && [&b.a, &b.b].into_iter().any(|e| matches!(e, PrimExpr::Int(_)));
        if computed || truth {
            return self.call_text(call_form(b.op), &[b.a.clone(), b.b.clone()]);
        }
        match form(b.op, dtype.is_float()) {
            OperatorForm::Named(name) => self.call_text(name, &[b.a.clone(), b.b.clone()]),
            OperatorForm::Infix(symbol, level) => {
                // Comparisons chain in Python, so neither side may be one without parentheses.
                let left = if level == strength::COMPARE { level + 1 } else { level };
                let text = format!("{} {symbol} {}", self.prim_at(&b.a, left), self.prim_at(&b.b, level + 1));
                parenthesised(text, level < outer)
            }
        }
    }

    fn prim_call(&mut self, c: &PrimCall, outer: u8) -> String {
        if let Some((symbol, level, _)) = BITWISE.iter().find(|(_, _, name)| *name == c.op)
            && let [a, b] = c.args.as_slice()
            && c.dtype == a.dtype()
            && [a, b].into_iter().any(|e| !matches!(e, PrimExpr::Int(_)))
        {
            let text = format!("{} {symbol} {}", self.prim_at(a, *level), self.prim_at(b, level + 1));
            return parenthesised(text, *level < outer);
        }
        if c.op == "tirx.bitwise_not"
            && let [a] = c.args.as_slice()
            && c.dtype == a.dtype()
            && !matches!(a, PrimExpr::Int(_))
        {
            let text = format!("~{}", self.prim_at(a, strength::UNARY));
            return parenthesised(text, strength::UNARY < outer);
        }
        if c.op == "tirx.shuffle"
            && let [count, rest @ ..] = c.args.as_slice()
            && let Some((vectors, numbers)) =
                count.as_int().and_then(|n| rest.split_at_checked(usize::try_from(n).ok()?))
        {
            self.uses_tir = true;
            return format!("T.Shuffle([{}], [{}])", self.prims(vectors), self.prims(numbers));
        }
        if let (CALL_KERNEL, [PrimExpr::Str(kernel), args @ ..]) = (c.op.as_str(), c.args.as_slice()) {
            let module = if self.context.is_some() { "Module." } else { "" };
            return format!("{module}{}({})", identifier(&kernel.value), self.prims(args));
        }
        if let Some(known) = DeviceIntrinsic::of_op(&c.op) {
            let of_args = known.result_type(&c.args);
            match known.is_typed_by_text() && !known.path.starts_with("ptx_legacy.") {
                true => return self.named(known.path, &[quoted(&c.dtype.to_string())], &c.args),
                false if of_args.is_none_or(|dtype| dtype == c.dtype) => return self.named(known.path, &[], &c.args),
                false => {}
            }
        }
        let name = c.op.strip_prefix("tirx.").unwrap_or(&c.op);
        match intrinsics::rule(name) {
            Some(ResultType::Written) if c.op.starts_with("tirx.") => {
                self.named(name, &[quoted(&c.dtype.to_string())], &c.args)
            }
            Some(ResultType::WrittenLast) if c.op.starts_with("tirx.") => {
                let args: Vec<String> = c.args.iter().map(|arg| self.prim(arg)).collect();
                self.named(name, &[args, vec![quoted(&c.dtype.to_string())]].concat(), &[])
            }
            Some(rule) if c.op.starts_with("tirx.") && intrinsics::infer(rule, &c.args) == Some(c.dtype) => {
                self.named(name, &[], &c.args)
            }
            _ => self.named("call_intrin", &[quoted(&c.dtype.to_string()), quoted(&c.op)], &c.args),
        }
    }

    /// `T.name(leading…, args…)`.
    fn named(&mut self, name: &str, leading: &[String], args: &[PrimExpr]) -> String {
        self.uses_tir = true;
        let mut all: Vec<String> = leading.to_vec();
        for arg in args {
            all.push(self.prim(arg));
        }
        format!("T.{name}({})", all.join(", "))
    }

    fn call_text(&mut self, name: &str, args: &[PrimExpr]) -> String {
        self.uses_tir = true;
        format!("{name}({})", self.prims(args))
    }

    /// `buffer[indices]` as it is read.
    fn element(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> String {
        let texts = indices.iter().map(|i| self.prim(i)).collect();
        self.place(buffer, indices, texts)
    }

    /// `buffer[indices]` as it is written: consecutive lanes are a slice.
    pub(super) fn target(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr]) -> String {
        let texts = indices.iter().map(|i| self.slice(i)).collect();
        self.place(buffer, indices, texts)
    }

    fn place(&mut self, buffer: &Ref<Buffer>, indices: &[PrimExpr], texts: Vec<String>) -> String {
        let name = self.buffer(buffer);
        match indices {
            [i] if i.is_int(0) && self.scalars.contains(buffer) => name,
            [] => format!("{name}[()]"),
            _ => format!("{name}[{}]", texts.join(", ")),
        }
    }

    fn slice(&mut self, index: &PrimExpr) -> String {
        match index {
            PrimExpr::Ramp(r) if r.stride.is_int(1) && r.lanes > 0 => {
                let dtype = r.base.dtype();
                let end = relaxide_ir::prim::add(&r.base, relaxide_ir::prim::int_of(dtype, r.lanes));
                format!("{}:{}", self.prim(&r.base), self.prim(&end))
            }
            PrimExpr::Ramp(r)
                if r.lanes > 0 && r.stride.as_int().is_some_and(|stride| (2..1 << 20).contains(&stride)) =>
            {
                let (dtype, stride) = (r.base.dtype(), r.stride.as_int().unwrap_or(1));
                let end = relaxide_ir::prim::add(&r.base, relaxide_ir::prim::int_of(dtype, r.lanes * stride));
                format!("{}:{}:{stride}", self.prim(&r.base), self.prim(&end))
            }
            _ => self.prim(index),
        }
    }

    /// The name of a buffer.
    pub(super) fn buffer(&mut self, buffer: &Ref<Buffer>) -> String {
        match self.names.get(&buffer.clone().into()) {
            Some(name) => name.to_string(),
            None => self.undeclared_buffer(buffer),
        }
    }

    /// A buffer that no statement introduced is a view of another's memory, and is declared where it is first used.
    fn undeclared_buffer(&mut self, buffer: &Ref<Buffer>) -> String {
        let data = self.names.get(&buffer.data.clone().into()).map(str::to_string);
        let name = self.define_buffer(buffer);
        if data.is_some() {
            let ty = self.buffer_type_over(buffer, BufferForm::Allocation, data);
            self.line(format!("{name} = T.decl_buffer({ty})"));
        }
        name
    }

    /// Gives a buffer its name, and its data pointer the name behind it.
    pub(super) fn define_buffer(&mut self, buffer: &Ref<Buffer>) -> String {
        let name = self.names.define(buffer.clone().into(), &buffer.name);
        if self.names.get(&buffer.data.clone().into()).is_none() {
            self.names.alias(buffer.data.clone().into(), format!("{name}.data"));
            self.owners.insert(buffer.data.clone(), buffer.clone());
        }
        if self.offset_is_its_own(buffer)
            && let PrimExpr::Var(offset) = &buffer.elem_offset
        {
            self.names.alias(offset.clone().into(), format!("{name}.elem_offset"));
        }
        name
    }
}

fn parenthesised(text: String, needed: bool) -> String {
    if needed { format!("({text})") } else { text }
}
