//! Calls: intrinsics that are not mathematical functions, and functions of other libraries.

use relaxide_ir::{BinaryOp, PrimExpr, prim::PrimCall};
use relaxide_tir::expand::expand;
use relaxide_tir::intrin::Intrinsic;
use relaxide_tir::shuffle::{ShuffledLane, shuffled_lanes};

use super::{
    function::join,
    kernel::Body,
    module::global_name,
    value::{Overflow, ScalarKind, Ty, Val},
};
use crate::{error::CodegenError, packed_call::PackedCall};

const INT_POWER: &str = "define internal i64 @{name}(i64 %base, i64 %exponent) nounwind {
entry:
  br label %next
next:
  %result = phi i64 [ 1, %entry ], [ %product, %more ]
  %square = phi i64 [ %base, %entry ], [ %squared, %more ]
  %left = phi i64 [ %exponent, %entry ], [ %halved, %more ]
  %end = icmp eq i64 %left, 0
  br i1 %end, label %done, label %more
more:
  %bit = and i64 %left, 1
  %odd = icmp ne i64 %bit, 0
  %factor = select i1 %odd, i64 %square, i64 1
  %product = mul i64 %result, %factor
  %squared = mul i64 %square, %square
  %halved = lshr i64 %left, 1
  br label %next
done:
  ret i64 %result
}";

/// Families of LLVM's functions that are each of one type, which is no part of their names.
const OF_ONE_TYPE: &[&str] = &["llvm.x86.", "llvm.hexagon."];

/// The functions of LLVM whose names say the type of the result in front of that of the operand.
const RESULT_IN_NAME: [&str; 6] =
    ["llvm.fptosi.sat", "llvm.fptoui.sat", "llvm.llrint", "llvm.llround", "llvm.lrint", "llvm.lround"];

impl Body<'_, '_> {
    pub fn eval_call(&mut self, n: &PrimCall) -> Result<Val, CodegenError> {
        let intrinsic = Intrinsic::of_call(&n.op).ok_or_else(|| self.unsupported_call(n))?;
        if let Some(call) = PackedCall::of(intrinsic, &n.args) {
            return self.packed_call(&call, self.result_type(n)?);
        }
        if let (Intrinsic::DotBytes, [a, b, c]) = (intrinsic, n.args.as_slice())
            && let Some(value) = self.dot_bytes([a, b, c])?
        {
            return Ok(value);
        }
        if let (Intrinsic::DotPairs, [a, b, c]) = (intrinsic, n.args.as_slice())
            && let Some(value) = self.dot_pairs([a, b, c])?
        {
            return Ok(value);
        }
        if let Some(meaning) = expand(n) {
            return self.eval(&meaning);
        }
        if let Some(lanes) = shuffled_lanes(n) {
            return self.shuffle(&lanes);
        }
        match (intrinsic, n.args.as_slice()) {
            (Intrinsic::CallLlvmIntrin | Intrinsic::CallLlvmPureIntrin, [PrimExpr::Str(function), args @ ..]) => {
                self.call_llvm(&function.value, args, n)
            }
            (Intrinsic::IfThenElse, [condition, yes, no]) => self.choose_lazily(condition, yes, no),
            (Intrinsic::CheckedIndex, [index, extent, PrimExpr::Str(what), shown, on @ ..]) => {
                self.checked_index(index, shown, extent, &what.value, on.first())
            }
            (Intrinsic::Likely, [condition]) => self.eval(condition),
            (Intrinsic::OptimizationBarrier, [value]) => {
                let value = self.eval(value)?;
                Ok(if self.kernel.device.is_some() { self.kept_in_place(&value) } else { value })
            }
            (Intrinsic::AddressOf, [PrimExpr::Load(load)]) => self.address_of(&load.buffer, &load.indices),
            (Intrinsic::Prefetch | Intrinsic::PrefetchWrite, [PrimExpr::Load(load)]) => {
                let address = self.address_of(&load.buffer, &load.indices)?;
                // For reading, into the second-level cache: what is needed before it stays in the first.
                let (write, level) = if intrinsic == Intrinsic::Prefetch { (0, 2) } else { (1, 3) };
                let [write, locality, data] = [write, level, 1].map(|value| Val::int(Ty::I32, value));
                self.f.effect_call("llvm.prefetch.p0", &[&address, &write, &locality, &data], &[1, 2, 3]);
                Ok(Val::int(Ty::I32, 0))
            }
            (Intrinsic::HandleAddByteOffset, [pointer, offset]) => {
                let (pointer, offset) = (self.eval(pointer)?, self.index(offset)?);
                Ok(self.f.emit(Ty::PTR, format_args!("getelementptr inbounds i8, {pointer}, {offset}")))
            }
            (Intrinsic::AccessPtr, [element, pointer, offset, ..]) => {
                let element = self.kernel.ty(element.dtype())?.in_memory();
                let (pointer, offset) = (self.eval(pointer)?, self.index(offset)?);
                Ok(self.f.emit(Ty::PTR, format_args!("getelementptr inbounds {element}, {pointer}, {offset}")))
            }
            (Intrinsic::CallExtern | Intrinsic::CallPureExtern, [PrimExpr::Str(function), args @ ..]) => {
                self.call_foreign(&function.value, args, n)
            }
            (Intrinsic::StorageSync, [PrimExpr::Str(scope), ..]) => self.barrier(&scope.value),
            (Intrinsic::IsAligned, [pointer, bytes]) => self.is_aligned(pointer, bytes, n),
            (Intrinsic::AtMultiple, [index, _]) => self.eval(index),
            (Intrinsic::Ret, [value]) => self.return_value(value),
            _ => self.eval_operator(intrinsic, n),
        }
    }

    fn unsupported_call(&self, n: &PrimCall) -> CodegenError {
        self.kernel.unsupported(format!("intrinsic `{}`", n.op))
    }

    fn is_aligned(&mut self, pointer: &PrimExpr, bytes: &PrimExpr, n: &PrimCall) -> Result<Val, CodegenError> {
        let (pointer, bytes) = (self.eval(pointer)?, bytes.as_int().filter(|bytes| *bytes > 0));
        let bytes = bytes.ok_or_else(|| self.kernel.malformed(format!("`{}` without a number of bytes", n.op)))?;
        let address = self.f.cast("ptrtoint", &pointer, Ty::I64);
        let rest = self.f.op("and", &address, &Val::int(Ty::I64, bytes - 1));
        Ok(self.f.icmp("eq", &rest, &Val::int(Ty::I64, 0)))
    }

    fn result_type(&self, n: &PrimCall) -> Result<Option<Ty>, CodegenError> {
        if n.dtype.is_void() { Ok(None) } else { self.kernel.ty(n.dtype).map(Some) }
    }

    /// Intrinsics whose arguments are all values.
    fn eval_operator(&mut self, intrinsic: Intrinsic, n: &PrimCall) -> Result<Val, CodegenError> {
        let args = n.args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        if let Some(value) = self.f.math(intrinsic, &args) {
            return Ok(value);
        }
        match args.as_slice() {
            [] if intrinsic == Intrinsic::VScale && !self.kernel.scalable => Ok(Val::int(self.kernel.ty(n.dtype)?, 1)),
            [] if intrinsic == Intrinsic::VScale => {
                let ty = self.kernel.ty(n.dtype)?;
                Ok(self.f.intrinsic("vscale", ty, ty, &[]))
            }
            [] => self.limit(intrinsic, n).ok_or_else(|| self.unsupported_call(n)),
            [a, b, c] if intrinsic == Intrinsic::Fma && a.ty == b.ty && a.ty == c.ty => {
                let product = self.f.op("mul", a, b);
                Ok(self.f.op("add", &product, c))
            }
            [a, b] if intrinsic == Intrinsic::Pow && a.ty == b.ty && matches!(a.ty.kind, ScalarKind::Int { .. }) => {
                Ok(self.int_power(a, b))
            }
            [a, b] if a.ty == b.ty && matches!(a.ty.kind, ScalarKind::Int { .. } | ScalarKind::Bool) => {
                self.bitwise(intrinsic, a, b).ok_or_else(|| self.unsupported_call(n))
            }
            [a] => self.unary_operator(intrinsic, a, n).ok_or_else(|| self.unsupported_call(n)),
            [x, exponent] if intrinsic == Intrinsic::Ldexp => {
                let (wide, exponent) = (self.f.widen(x), self.f.convert(exponent, Ty::I32));
                let overloads = format!("llvm.ldexp.{}.{}", wide.ty.mangled(), exponent.ty.mangled());
                let value = self.f.call(&overloads, wide.ty, &[&wide, &exponent]);
                Ok(self.f.narrow(&value, x.ty))
            }
            _ => Err(self.unsupported_call(n)),
        }
    }

    /// The least or greatest value of a type.
    fn limit(&self, intrinsic: Intrinsic, n: &PrimCall) -> Option<Val> {
        let ty = Ty::of(n.dtype)?;
        let (least, greatest) = match ty.kind {
            ScalarKind::Int { bits, signed: true } => (-1i64 << (bits - 1), (1i64 << (bits - 1)).wrapping_sub(1)),
            ScalarKind::Int { .. } => (0, -1),
            ScalarKind::Bool => (0, 1),
            ScalarKind::Ptr => return None,
            _ => {
                let sign = if intrinsic == Intrinsic::MinValue { -1.0 } else { 1.0 };
                return matches!(intrinsic, Intrinsic::MinValue | Intrinsic::MaxValue)
                    .then(|| Val::float(ty, sign * f64::INFINITY));
            }
        };
        match intrinsic {
            Intrinsic::MinValue => Some(Val::int(ty, least)),
            Intrinsic::MaxValue => Some(Val::int(ty, greatest)),
            _ => None,
        }
    }

    /// A wrapping power by squaring, lane by lane; a negative exponent counts as its bits.
    fn int_power(&mut self, base: &Val, exponent: &Val) -> Val {
        const POWER: &str = "relaxide.power";
        self.f.module.define(POWER, || INT_POWER.replace("{name}", POWER));
        let element = base.ty.element();
        self.f.by_lane(&[base, exponent], element, |f, parts| {
            let (base, exponent) = (f.convert(&parts[0], Ty::I64), f.convert(&parts[1], Ty::I64));
            let power = f.emit(Ty::I64, format_args!("call i64 @{POWER}({base}, {exponent})"));
            f.convert(&power, element)
        })
    }

    fn bitwise(&mut self, intrinsic: Intrinsic, a: &Val, b: &Val) -> Option<Val> {
        let instruction = match intrinsic {
            Intrinsic::BitwiseAnd => "and",
            Intrinsic::BitwiseOr => "or",
            Intrinsic::BitwiseXor => "xor",
            Intrinsic::ShiftLeft => "shl",
            Intrinsic::ShiftRight if a.ty.kind.is_signed() => "ashr",
            Intrinsic::ShiftRight => "lshr",
            _ => return None,
        };
        let ScalarKind::Int { bits, .. } = a.ty.kind else { return Some(self.f.op(instruction, a, b)) };
        if !matches!(intrinsic, Intrinsic::ShiftLeft | Intrinsic::ShiftRight)
            || b.as_int_literal().is_some_and(|by| (0..i64::from(bits)).contains(&by))
        {
            return Some(self.f.op(instruction, a, b));
        }
        // Shifts by more than the width count modulo the width, as processors do it.
        let by = self.f.op("and", b, &Val::int(b.ty, i64::from(bits) - 1));
        Some(self.f.op(instruction, a, &by))
    }

    fn unary_operator(&mut self, intrinsic: Intrinsic, a: &Val, n: &PrimCall) -> Option<Val> {
        let result = Ty::of(n.dtype)?;
        match (intrinsic, a.ty.kind) {
            (Intrinsic::BitwiseNot, ScalarKind::Int { .. } | ScalarKind::Bool) => Some(self.f.not(a)),
            (Intrinsic::Popcount, ScalarKind::Int { .. }) => {
                let count = self.f.intrinsic("ctpop", a.ty, a.ty, &[a]);
                Some(self.f.convert(&count, result))
            }
            (Intrinsic::Clz, ScalarKind::Int { .. }) => {
                let name = format!("llvm.ctlz.{}", a.ty.mangled());
                let count = self.f.call_with_immediates(&name, a.ty, &[a, &Val::int(Ty::BOOL, 0)], &[1]);
                Some(self.f.convert(&count, result))
            }
            (Intrinsic::Fabs, ScalarKind::Int { signed: true, .. }) => {
                let name = format!("llvm.abs.{}", a.ty.mangled());
                Some(self.f.call_with_immediates(&name, a.ty, &[a, &Val::int(Ty::BOOL, 0)], &[1]))
            }
            (_, ScalarKind::Int { .. }) if intrinsic.keeps_integers() => Some(a.clone()),
            (Intrinsic::IsNullptr, ScalarKind::Ptr) => Some(self.f.icmp("eq", a, &Val::zero(Ty::PTR))),
            (Intrinsic::IsNan | Intrinsic::IsInf, ScalarKind::Int { .. } | ScalarKind::Bool) => {
                Some(Val::int(result, 0))
            }
            (Intrinsic::IsFinite, ScalarKind::Int { .. } | ScalarKind::Bool) => Some(Val::int(result, 1)),
            (Intrinsic::Reinterpret, _) => self.reinterpret(a, result),
            _ => self.reduce_lanes(intrinsic, a),
        }
    }

    /// The same bits as another type, also with other lanes.
    fn reinterpret(&mut self, a: &Val, to: Ty) -> Option<Val> {
        let size = |ty: Ty| (ty.is_scalable(), ty.least_lanes() * ty.kind.bits());
        let plain = |ty: Ty| !matches!(ty.kind, ScalarKind::Bool | ScalarKind::Ptr);
        // A float of less than a byte has one in registers.
        let byte =
            |ty: Ty| !ty.is_vector() && matches!(ty.kind, ScalarKind::Small(_) | ScalarKind::Int { bits: 8, .. });
        if !(size(a.ty) == size(to) || byte(a.ty) && byte(to)) || !plain(a.ty) || !plain(to) {
            return None;
        }
        if a.ty.to_string() == to.to_string() {
            return Some(Val { ty: to, ..a.clone() });
        }
        if a.ty.kind.shares_bytes() || to.kind.shares_bytes() {
            return (a.ty.lanes == to.lanes).then(|| self.small_bits(a, to));
        }
        Some(self.f.cast("bitcast", a, to))
    }

    /// The bits of integers of less than a byte, which have a type of their width, as floats, which have a byte, or the other
    /// way round.
    fn small_bits(&mut self, a: &Val, to: Ty) -> Val {
        let to_bytes = matches!(to.kind, ScalarKind::Small(_));
        self.f.cast(if to_bytes { "zext" } else { "trunc" }, a, to)
    }

    /// One number from all lanes, by a tree: `vector_reduce_add`, `_mul`, `_min`, `_max`.
    fn reduce_lanes(&mut self, intrinsic: Intrinsic, a: &Val) -> Option<Val> {
        let (op, name) = match intrinsic {
            Intrinsic::VectorReduceAdd => (BinaryOp::Add, "add"),
            Intrinsic::VectorReduceMul => (BinaryOp::Mul, "mul"),
            Intrinsic::VectorReduceMin => (BinaryOp::Min, "min"),
            Intrinsic::VectorReduceMax => (BinaryOp::Max, "max"),
            _ => return None,
        };
        let element = a.ty.element();
        if !a.ty.is_vector() {
            return Some(a.clone());
        }
        match a.ty.kind {
            ScalarKind::F32 | ScalarKind::F64 => {
                Some(if a.ty.is_scalable() { self.f.fold_scalable(op, a) } else { self.fold_lanes(op, a.clone()) })
            }
            // No processor multiplies the lanes of scalable vectors with each other.
            ScalarKind::Int { .. } if a.ty.is_scalable() && op == BinaryOp::Mul => Some(self.f.fold_scalable(op, a)),
            ScalarKind::Int { signed, .. } => {
                let sign = match op {
                    BinaryOp::Min | BinaryOp::Max if signed => "s",
                    BinaryOp::Min | BinaryOp::Max => "u",
                    _ => "",
                };
                Some(self.f.intrinsic(&format!("vector.reduce.{sign}{name}"), a.ty, element, &[a]))
            }
            ScalarKind::Small(_) | ScalarKind::F16 | ScalarKind::BF16 => {
                let wide = self.f.widen(a);
                let sum = self.reduce_lanes(intrinsic, &wide)?;
                Some(self.f.narrow(&sum, element))
            }
            ScalarKind::Bool | ScalarKind::Ptr => None,
        }
    }

    /// The lower half of the lanes with the upper half, until one is left; lane by lane where there is no half. LLVM's reductions
    /// take the upper half of 16 lanes apart, through registers for integers.
    fn fold_lanes(&mut self, op: BinaryOp, mut vector: Val) -> Val {
        while vector.ty.lanes.is_multiple_of(2) {
            let half = vector.ty.lanes / 2;
            let low = self.f.some_lanes(&vector, 0..half);
            let high = self.f.some_lanes(&vector, half..2 * half);
            vector = self.f.binary(op, &low, &high, Overflow::Never);
        }
        let lanes = (1..vector.ty.lanes).map(|at| self.f.lane(&vector, at)).collect::<Vec<_>>();
        let first = self.f.lane(&vector, 0);
        lanes.iter().fold(first, |all, lane| self.f.binary(op, &all, lane, Overflow::Never))
    }

    /// A vector of lanes of others; one lane is itself.
    fn shuffle(&mut self, lanes: &[ShuffledLane<'_>]) -> Result<Val, CodegenError> {
        let mut vectors: Vec<(&PrimExpr, Val)> = Vec::new();
        let mut taken = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let known = vectors.iter().position(|(e, _)| *e == lane.vector);
            let at = match known {
                Some(at) => at,
                None => {
                    vectors.push((lane.vector, self.eval(lane.vector)?));
                    vectors.len() - 1
                }
            };
            taken.push((at, lane.lane as u32));
        }
        let of = |at: usize| &vectors[at].1;
        if let [(_, first), rest @ ..] = vectors.as_slice()
            && rest.len() < 2
            && first.ty.is_vector()
            && rest.iter().all(|(_, second)| second.ty == first.ty)
            && taken.len() > 1
        {
            let lanes: Vec<u32> = taken.iter().map(|(at, lane)| *at as u32 * first.ty.lanes + lane).collect();
            return Ok(self.f.shuffle(first, of(vectors.len() - 1), &lanes));
        }
        let taken: Vec<Val> = taken.into_iter().map(|(at, lane)| self.f.lane(of(at), lane)).collect();
        Ok(self.f.gather_lanes(&taken))
    }

    /// A call of one of LLVM's own functions, which are named by the type that they are for unless the name says it.
    fn call_llvm(&mut self, function: &str, args: &[PrimExpr], n: &PrimCall) -> Result<Val, CodegenError> {
        // The name stands in LLVM's text as it is.
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
        if !function.starts_with("llvm.") || !function.chars().all(is_name) {
            return Err(self
                .kernel
                .malformed(format!("`{function}` is no name of a function of LLVM: expected `llvm.…`")));
        }
        let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        let result = self.kernel.ty(n.dtype)?;
        let of = values.first().map_or(result, |value| value.ty);
        // Conversions are told apart by what they give, too.
        let suffix = match RESULT_IN_NAME.contains(&function) {
            true => format!("{}.{}", result.mangled(), of.mangled()),
            false => of.mangled(),
        };
        let is_whole = OF_ONE_TYPE.iter().any(|family| function.starts_with(family));
        let name = match is_whole || function.ends_with(&format!(".{suffix}")) {
            true => function.to_string(),
            false => format!("{function}.{suffix}"),
        };
        Ok(self.f.call(&name, result, &values.iter().collect::<Vec<_>>()))
    }

    /// A call of a function that another library, or the process, offers.
    fn call_foreign(&mut self, function: &str, args: &[PrimExpr], n: &PrimCall) -> Result<Val, CodegenError> {
        let values = args.iter().map(|arg| self.eval(arg)).collect::<Result<Vec<_>, _>>()?;
        if values.iter().any(|value| value.ty.is_vector() || value.ty.kind.is_narrow_float()) {
            return Err(self.kernel.unsupported(format!("a vector or half-precision argument of `{function}`")));
        }
        let symbol = global_name(function);
        self.f.module.foreign(function, &symbol);
        let args = join(&values);
        if n.dtype.is_void() {
            self.f.effect(format_args!("call void {symbol}({args})"));
            return Ok(Val::int(Ty::I32, 0));
        }
        let result = self.kernel.ty(n.dtype)?;
        Ok(self.f.emit(result, format_args!("call {result} {symbol}({args})")))
    }

    /// Writes the kernel's result and leaves.
    pub fn return_value(&mut self, value: &PrimExpr) -> Result<Val, CodegenError> {
        let value = self.eval(value)?;
        let Some(result) = self.result.clone() else {
            return Err(self.kernel.unsupported("a return from a parallel loop"));
        };
        let (index, payload) = self.packed(&value, false)?;
        self.store_packed(&result, index, &payload);
        self.leave(0);
        let unreachable = self.f.label();
        self.f.start(unreachable);
        Ok(value)
    }
}
