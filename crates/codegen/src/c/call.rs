//! Calls: intrinsics, and functions of other libraries.

use relaxide_ir::{BinaryOp, PrimExpr, prim::PrimCall};
use relaxide_tir::expand::expand;
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::lower::Fault;
use relaxide_tir::shuffle::{ShuffledLane, shuffled_lanes};

use super::{
    body::Body,
    code::{self, Code, Level, string},
    integers, runtime,
    types::{declare, memory_type, value_type},
};
use crate::{
    error::CodegenError,
    packed_call::PackedCall,
    shared::{ScalarKind, Ty},
};

impl Body<'_, '_> {
    pub fn eval_call(&mut self, n: &PrimCall) -> Result<Code, CodegenError> {
        let intrinsic = Intrinsic::of_call(&n.op).ok_or_else(|| self.unsupported_call(n))?;
        if let Some(call) = PackedCall::of(intrinsic, &n.args) {
            self.kernel.only_on_hosts("a call of a function")?;
            return self.packed_call(&call, self.result_type(n)?);
        }
        if let Some(meaning) = expand(n) {
            return self.eval(&meaning);
        }
        if let Some(lanes) = shuffled_lanes(n) {
            return self.shuffle(&lanes, n);
        }
        match (intrinsic, n.args.as_slice()) {
            (Intrinsic::CallLlvmIntrin | Intrinsic::CallLlvmPureIntrin, [PrimExpr::Str(function), ..]) => {
                Err(self.kernel.unsupported(format!("a call of LLVM's `{}`", function.value)))
            }
            (Intrinsic::IfThenElse, [condition, yes, no]) => self.choose_lazily(condition, yes, no),
            (Intrinsic::CheckedIndex, [index, extent, PrimExpr::Str(what), shown, on @ ..]) => {
                self.checked_index(index, shown, extent, &what.value, on.first())
            }
            (Intrinsic::Likely | Intrinsic::OptimizationBarrier, [value]) => self.eval(value),
            (Intrinsic::AddressOf, [PrimExpr::Load(load)]) => self.address_of(&load.buffer, &load.indices),
            // A hint, for which C has no word.
            (Intrinsic::Prefetch | Intrinsic::PrefetchWrite, [PrimExpr::Load(_)]) => Ok(Code::atom("0")),
            // In sizes of buffers; everywhere else lowering has said so.
            (Intrinsic::VScale, []) => Ok(Code::atom("1")),
            (Intrinsic::HandleAddByteOffset, [pointer, offset]) => self.pointer("char", pointer, offset),
            (Intrinsic::AccessPtr, [element, pointer, offset, ..]) => {
                let element = self.kernel.ty(element.dtype())?.kind;
                self.pointer(memory_type(element), pointer, offset)
            }
            (Intrinsic::CallExtern | Intrinsic::CallPureExtern, [PrimExpr::Str(function), args @ ..]) => {
                self.call_foreign(&function.value, args, n)
            }
            (Intrinsic::StorageSync, [PrimExpr::Str(scope), ..]) => self.barrier(&scope.value),
            (Intrinsic::AtMultiple, [index, _]) => self.eval(index),
            (Intrinsic::Ret, _) => Err(self.kernel.unsupported("a return inside of an expression")),
            _ => self.eval_operator(intrinsic, n),
        }
    }

    fn unsupported_call(&self, n: &PrimCall) -> CodegenError {
        self.kernel.unsupported(format!("intrinsic `{}`", n.op))
    }

    /// The threads of a block wait for each other, and see what all of them have written.
    fn barrier(&mut self, scope: &str) -> Result<Code, CodegenError> {
        if self.kernel.device.is_none() || !relaxide_tir::lower::is_shared_scope(scope) {
            return Err(self.kernel.unsupported(format!("a barrier of the scope `{scope}`")));
        }
        self.line("barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);");
        Ok(Code::atom("0"))
    }

    fn result_type(&self, n: &PrimCall) -> Result<Option<Ty>, CodegenError> {
        if n.dtype.is_void() { Ok(None) } else { self.kernel.ty(n.dtype).map(Some) }
    }

    /// A pointer and so many elements.
    fn pointer(&mut self, element: &str, pointer: &PrimExpr, offset: &PrimExpr) -> Result<Code, CodegenError> {
        self.kernel.only_on_hosts("an address")?;
        let (pointer, offset) = (self.eval(pointer)?, self.wide_index(offset)?);
        let typed = Code::cast(&declare(element, "*"), &pointer);
        Ok(Code::cast("void *", &Code::infix(&typed, "+", &offset, Level::Add)))
    }

    /// Intrinsics whose arguments are all values.
    fn eval_operator(&mut self, intrinsic: Intrinsic, n: &PrimCall) -> Result<Code, CodegenError> {
        let result = Ty::of(n.dtype).ok_or_else(|| self.unsupported_call(n))?;
        let types = n.args.iter().map(|arg| self.kernel.ty(arg.dtype())).collect::<Result<Vec<_>, _>>()?;
        let Some(first) = types.first().copied() else {
            return self.limit(intrinsic, result).ok_or_else(|| self.unsupported_call(n));
        };
        if let (Some(op), [vector]) = (reduction(intrinsic), n.args.as_slice()) {
            return self.reduce_lanes(op, vector, first);
        }
        if let (Intrinsic::Reinterpret, [value]) = (intrinsic, n.args.as_slice()) {
            return self
                .reinterpret(value, first, result)
                .and_then(|code| code.ok_or_else(|| self.unsupported_call(n)));
        }
        let args = n.args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        if let (Intrinsic::Ldexp, [x, exponent]) = (intrinsic, args.as_slice()) {
            let exponent = self.convert(exponent.clone(), types[1].kind, Ty::I32.kind);
            let (function, kind) =
                if first.kind == ScalarKind::F64 { ("ldexp", ScalarKind::F64) } else { ("ldexpf", ScalarKind::F32) };
            let wide = self.widen(x, first.kind);
            return Ok(self.narrow(&Code::call(function, &[&wide, &exponent]), kind, first.kind));
        }
        if types.iter().any(|ty| ty.kind != first.kind) {
            return Err(self.unsupported_call(n));
        }
        if let Some(value) = self.math(intrinsic, first.kind, &args) {
            return Ok(value);
        }
        let value = match args.as_slice() {
            [a, b, c] if intrinsic == Intrinsic::Fma && matches!(first.kind, ScalarKind::Int { .. }) => {
                let product = self.binary(BinaryOp::Mul, first.kind, a, b, None);
                Some(self.binary(BinaryOp::Add, first.kind, &product, c, None))
            }
            [a, b] => self.two_integers(intrinsic, first.kind, a, b),
            [a] => self.one_value(intrinsic, first.kind, a, result.kind),
            _ => None,
        };
        value.ok_or_else(|| self.unsupported_call(n))
    }

    fn two_integers(&mut self, intrinsic: Intrinsic, kind: ScalarKind, a: &Code, b: &Code) -> Option<Code> {
        let symbol = match intrinsic {
            Intrinsic::BitwiseAnd => "&",
            Intrinsic::BitwiseOr => "|",
            Intrinsic::BitwiseXor => "^",
            _ => "",
        };
        match kind {
            ScalarKind::Bool => Some(match intrinsic {
                Intrinsic::BitwiseAnd => Code::infix(a, "&&", b, Level::And),
                Intrinsic::BitwiseOr => Code::infix(a, "||", b, Level::Or),
                Intrinsic::BitwiseXor => Code::infix(a, "!=", b, Level::Compare),
                _ => return None,
            }),
            // The operands' own bits: a result fits its type again.
            ScalarKind::Int { .. } if !symbol.is_empty() => Some(Code::infix(a, symbol, b, Level::Odd)),
            ScalarKind::Int { .. } => {
                let binary = matches!(intrinsic, Intrinsic::ShiftLeft | Intrinsic::ShiftRight | Intrinsic::Pow);
                let function = binary.then(|| integers::of_intrinsic(self.source, intrinsic, kind))??;
                Some(Code::call(&function, &[a, b]))
            }
            _ => None,
        }
    }

    fn one_value(&mut self, intrinsic: Intrinsic, kind: ScalarKind, a: &Code, result: ScalarKind) -> Option<Code> {
        match (intrinsic, kind) {
            (Intrinsic::BitwiseNot, ScalarKind::Bool) => Some(Code::not(a)),
            (Intrinsic::BitwiseNot, ScalarKind::Int { .. }) => {
                let function = integers::of_intrinsic(self.source, intrinsic, kind)?;
                Some(Code::call(&function, &[a]))
            }
            (Intrinsic::Popcount | Intrinsic::Clz, ScalarKind::Int { .. }) => {
                let function = integers::of_intrinsic(self.source, intrinsic, kind)?;
                Some(self.convert(Code::call(&function, &[a]), kind, result))
            }
            (Intrinsic::Fabs, ScalarKind::Int { signed: true, .. }) => {
                let function = integers::of_intrinsic(self.source, intrinsic, kind)?;
                Some(Code::call(&function, &[a]))
            }
            (_, ScalarKind::Int { .. }) if intrinsic.keeps_integers() => Some(a.clone()),
            (Intrinsic::IsNullptr, ScalarKind::Ptr) => Some(Code::infix(a, "==", &Code::atom("NULL"), Level::Compare)),
            (Intrinsic::IsNan | Intrinsic::IsInf, ScalarKind::Int { .. } | ScalarKind::Bool) => {
                Some(Code::atom("false"))
            }
            (Intrinsic::IsFinite, ScalarKind::Int { .. } | ScalarKind::Bool) => Some(Code::atom("true")),
            _ => None,
        }
    }

    /// The same bits as another type, also with other lanes; `None` where the types do not fit.
    fn reinterpret(&mut self, value: &PrimExpr, from: Ty, to: Ty) -> Result<Option<Code>, CodegenError> {
        let size = |ty: Ty| u64::from(ty.lanes) * ty.kind.bytes();
        let plain = |ty: Ty| !matches!(ty.kind, ScalarKind::Bool | ScalarKind::Ptr);
        let byte = |ty: Ty| ty.lanes == 1 && matches!(ty.kind, ScalarKind::Small(_) | ScalarKind::Int { bits: 8, .. });
        if !(size(from) == size(to) || byte(from) && byte(to)) || !plain(from) || !plain(to) {
            return Ok(None);
        }
        if from.lanes == to.lanes {
            let value = self.eval(value)?;
            return Ok(Some(self.same_bits(&value, from.kind, to.kind)));
        }
        let lane = self.lane.clone().unwrap_or_else(|| Code::atom("0"));
        let vector = self.vector("vector", value)?;
        let name = self.fresh("same_bits");
        self.line(format_args!("{}[{}];", declare(value_type(to.kind), &name), to.lanes));
        self.line(format_args!("memcpy({name}, {vector}, sizeof {name});"));
        Ok(Some(Code::element(&name, &lane)))
    }

    /// One number from all lanes: `vector_reduce_add`, `_mul`, `_min`, `_max`.
    fn reduce_lanes(&mut self, op: BinaryOp, vector: &PrimExpr, ty: Ty) -> Result<Code, CodegenError> {
        if !ty.is_vector() {
            return self.eval(vector);
        }
        if matches!(ty.kind, ScalarKind::Bool | ScalarKind::Ptr) {
            return Err(self.kernel.unsupported(format!("a reduction of {ty}")));
        }
        let array = self.vector("vector", vector)?;
        let (name, lane) = (self.fresh("total"), self.fresh("lane"));
        self.line(format_args!("{} = {array}[0];", declare(value_type(ty.kind), &name)));
        let total = self.binary(op, ty.kind, &Code::atom(&name), &Code::element(&array, &Code::atom(&lane)), None);
        self.block(format_args!("for (int {lane} = 1; {lane} < {}; ++{lane})", ty.lanes), |this| {
            this.line(format_args!("{name} = {};", total.text));
            Ok(())
        })?;
        Ok(Code::atom(name))
    }

    /// The lane at hand of a vector of lanes of others.
    fn shuffle(&mut self, lanes: &[ShuffledLane<'_>], n: &PrimCall) -> Result<Code, CodegenError> {
        let mut arrays: Vec<(&PrimExpr, String)> = Vec::new();
        let outer = self.lane.take();
        for lane in lanes {
            if !arrays.iter().any(|(e, _)| *e == lane.vector) {
                let array = self.vector("vector", lane.vector)?;
                arrays.push((lane.vector, array));
            }
        }
        self.lane = outer;
        let of = |lane: &ShuffledLane<'_>| {
            let array = arrays.iter().find(|(e, _)| *e == lane.vector).map_or("", |(_, array)| array);
            format!("{array}[{}]", lane.lane)
        };
        let ty = self.kernel.ty(n.dtype)?;
        let values = lanes.iter().map(of).collect::<Vec<_>>().join(", ");
        let name = self.fresh("taken");
        self.line(format_args!("{}[{}] = {{{values}}};", declare(value_type(ty.kind), &name), lanes.len()));
        let lane = self.lane.clone().unwrap_or_else(|| Code::atom("0"));
        Ok(Code::element(&name, &lane))
    }

    /// A call of a function that another library, or the program, offers.
    fn call_foreign(&mut self, function: &str, args: &[PrimExpr], n: &PrimCall) -> Result<Code, CodegenError> {
        self.kernel.only_on_hosts("a call of a function")?;
        if super::names::identifier(function) != function {
            return Err(self.kernel.unsupported(format!("a call of `{function}`, which is no name in C,")));
        }
        let mut params = Vec::with_capacity(args.len());
        for arg in args {
            let ty = self.kernel.ty(arg.dtype())?;
            if ty.is_vector() || ty.kind.is_narrow_float() {
                return Err(self.kernel.unsupported(format!("a vector or half-precision argument of `{function}`")));
            }
            params.push(value_type(ty.kind));
        }
        let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        let result = self.result_type(n)?;
        let params = if params.is_empty() { "void".to_string() } else { params.join(", ") };
        let head = declare(result.map_or("void", |ty| value_type(ty.kind)), function);
        if !self.source.foreign(function, format!("{head}({params});")) {
            return Err(self.kernel.unsupported(format!("a call of `{function}` with other types than before")));
        }
        let call = Code::call(function, &values.iter().collect::<Vec<_>>());
        if result.is_none() {
            self.line(format_args!("{};", call.text));
            return Ok(Code::atom("0"));
        }
        Ok(call)
    }

    /// Writes the kernel's result and leaves.
    pub fn return_value(&mut self, value: Option<&PrimExpr>) -> Result<(), CodegenError> {
        if !self.has_result {
            return Err(self.kernel.unsupported("a return from a parallel loop"));
        }
        if let Some(value) = value {
            let value = self.packed(value)?;
            self.line(format_args!("*result = {};", value.text));
        }
        self.leave("0");
        Ok(())
    }

    /// The index, once it has been found inside of its extent in the lane at hand; an `IndexError` otherwise.
    fn checked_index(
        &mut self,
        index: &PrimExpr,
        shown: &PrimExpr,
        extent: &PrimExpr,
        what: &str,
        on: Option<&PrimExpr>,
    ) -> Result<Code, CodegenError> {
        let (index_kind, extent_kind) = (self.kernel.ty(index.dtype())?.kind, self.kernel.ty(extent.dtype())?.kind);
        let (index, extent) = (self.eval(index)?, self.eval(extent)?);
        let (index, extent) =
            (self.convert(index, index_kind, Ty::I64.kind), self.convert(extent, extent_kind, Ty::I64.kind));
        let shown_kind = self.kernel.ty(shown.dtype())?.kind;
        let shown = self.eval(shown)?;
        let shown = self.convert(shown, shown_kind, Ty::I64.kind);
        let index = Code::atom(self.define("index", "int64_t", &index));
        let extent = Code::atom(self.define("extent", "int64_t", &extent));
        let zero = code::integer(Ty::I64, 0);
        let (below, beyond) =
            (Code::infix(&index, "<", &zero, Level::Compare), Code::infix(&index, ">=", &extent, Level::Compare));
        let mut outside = Code::infix(&below, "||", &beyond, Level::Or);
        if let Some(on) = on {
            let on = self.condition(on)?;
            outside = Code::infix(&on, "&&", &outside, Level::And);
        }
        if self.kernel.device.is_some() {
            self.block(format_args!("if ({})", outside.text), |this| {
                this.fault(&Fault::Index(what.to_string()), [&shown.text, &extent.text]);
                Ok(())
            })?;
            return Ok(index);
        }
        let before = format!("{}: index ", self.kernel.name);
        let between = format!(" of {what} is outside of the extent ");
        self.block(format_args!("if ({})", outside.text), |this| {
            this.told("IndexError", [&before, &between, ""], [&shown, &extent]);
            Ok(())
        })?;
        Ok(index)
    }

    /// Raises an error whose text has two numbers in it, and leaves.
    pub fn fail_with_numbers(
        &mut self,
        kind: &str,
        texts: [&str; 3],
        numbers: [&PrimExpr; 2],
    ) -> Result<(), CodegenError> {
        self.begin(numbers);
        let mut number = |e: &PrimExpr| {
            let own = self.kernel.ty(e.dtype())?.kind;
            let value = self.eval(e)?;
            Ok::<_, CodegenError>(self.convert(value, own, Ty::I64.kind))
        };
        let (first, second) = (number(numbers[0])?, number(numbers[1])?);
        self.told(kind, texts, [&first, &second]);
        Ok(())
    }

    fn told(&mut self, kind: &str, texts: [&str; 3], [first, second]: [&Code; 2]) {
        runtime::told(self.source);
        self.source.message(texts.iter().map(|text| text.len()).sum::<usize>() + 40);
        let [before, between, behind] = texts.map(string);
        let (kind, first, second) = (string(kind), &first.text, &second.text);
        self.line(format_args!("rx_told({kind}, {before}, {first}, {between}, {second}, {behind});"));
        self.leave("-1");
    }
}

fn reduction(intrinsic: Intrinsic) -> Option<BinaryOp> {
    match intrinsic {
        Intrinsic::VectorReduceAdd => Some(BinaryOp::Add),
        Intrinsic::VectorReduceMul => Some(BinaryOp::Mul),
        Intrinsic::VectorReduceMin => Some(BinaryOp::Min),
        Intrinsic::VectorReduceMax => Some(BinaryOp::Max),
        _ => None,
    }
}
