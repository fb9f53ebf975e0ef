//! Expressions, evaluated one lane at a time.
//!
//! The value of a vector in lane `i` is the value of a scalar expression: of `base + i * stride` for a ramp, of the operand
//! for a broadcast, of the element at the index's lane for a load. So everything, lazy choice included, is defined on
//! scalars.

use relaxide_ffi::{Any, AnyView, DataType, Ref, Tensor};
use relaxide_ir::PrimExpr;
use relaxide_ir::prim::{Binary, BufferLoad, PrimCall, Ramp};

use super::memory::View;
use super::scalar::{self, Scalar, ScalarOrLanes};
use super::{Interp, InterpError, Result, math};
use crate::analysis::wide::in_64_bits;
use crate::intrin::Intrinsic;
use crate::lower::PROFILER_CALLS;
use crate::shuffle::{ShuffledLane, shuffled_lanes};
use crate::tensor_argument::TensorArgument;

impl Interp {
    /// The value of an expression, all lanes of it.
    pub(super) fn eval(&mut self, e: &PrimExpr) -> Result<ScalarOrLanes> {
        match usize::from(e.dtype().lanes.max(1)) {
            1 => Ok(ScalarOrLanes::One(self.eval_at(e, 0)?)),
            lanes => Ok(ScalarOrLanes::Many(self.eval_lanes(e, lanes)?.0)),
        }
    }

    /// The value of an integer expression.
    pub(super) fn eval_int(&mut self, e: &PrimExpr) -> Result<i64> {
        self.eval_int_at(e, 0)
    }

    fn eval_int_at(&mut self, e: &PrimExpr, lane: usize) -> Result<i64> {
        let value = self.eval_at(e, lane)?;
        Interp::integer(value, e)
    }

    /// The value of an expression that is an integer.
    pub(super) fn integer(value: Scalar, e: &PrimExpr) -> Result<i64> {
        value.as_int().ok_or_else(|| InterpError::Malformed(format!("`{e}` is not an integer")))
    }

    /// Whether a condition holds.
    pub(super) fn eval_bool(&mut self, e: &PrimExpr, lane: usize) -> Result<bool> {
        Ok(self.eval_at(e, lane)?.is_true())
    }

    /// The value of an expression in one lane.
    pub(super) fn eval_at(&mut self, e: &PrimExpr, lane: usize) -> Result<Scalar> {
        Ok(self.eval_typed(e, lane)?.0)
    }

    /// The same with the type of its elements: to look for that of each operand anew would take as long as to evaluate it.
    pub(super) fn eval_typed(&mut self, e: &PrimExpr, lane: usize) -> Result<(Scalar, DataType)> {
        Ok(match e {
            PrimExpr::Int(n) => (Scalar::Int(n.value).wrapped(n.dtype), n.dtype.element()),
            PrimExpr::Float(n) => (Scalar::Float(n.value).wrapped(n.dtype), n.dtype.element()),
            PrimExpr::Str(n) => return Err(InterpError::Malformed(format!("the string {:?} as a number", n.value))),
            PrimExpr::Var(var) => match self.vars.get(var) {
                Some(value) => (value.lane(lane)?, var.dtype().element()),
                None => return Err(InterpError::Malformed(format!("variable `{}` has no value", var.name))),
            },
            PrimExpr::Cast(n) => {
                let (value, from) = self.eval_typed(&n.value, lane)?;
                (value.convert(from, n.dtype), n.dtype.element())
            }
            PrimExpr::Binary(n) => {
                let ((a, dtype), (b, other)) = (self.eval_typed(&n.a, lane)?, self.eval_typed(&n.b, lane)?);
                let result = Interp::type_of_binary(n, dtype, other)?;
                (scalar::binary(n.op, dtype, a, b, || e.to_string())?, result)
            }
            PrimExpr::Not(n) => {
                let (value, dtype) = self.eval_typed(&n.a, lane)?;
                (Scalar::Int(i64::from(!value.is_true())), dtype)
            }
            PrimExpr::Select(n) => {
                let condition = self.eval_bool(&n.condition, lane)?;
                let (yes, no) = (self.eval_typed(&n.true_value, lane)?, self.eval_at(&n.false_value, lane)?);
                (if condition { yes.0 } else { no }, yes.1)
            }
            PrimExpr::Let(n) => {
                let value = self.eval(&n.value)?;
                self.set(&n.var, value);
                self.eval_typed(&n.body, lane)?
            }
            PrimExpr::Ramp(n) => {
                let (base, stride, dtype) = self.ramp(n)?;
                (Interp::at_step(base, stride, lane, dtype), dtype)
            }
            PrimExpr::Broadcast(n) => {
                let lane = if lane == 0 { 0 } else { lane % usize::from(n.value.dtype().lanes.max(1)) };
                self.eval_typed(&n.value, lane)?
            }
            PrimExpr::Load(n) => (self.load_lane(n, lane)?, n.buffer.dtype.element()),
            PrimExpr::Call(n) => (self.call_lane(n, lane)?, n.dtype.element()),
        })
    }

    /// The type of an operator's result on operands of two types.
    pub(super) fn type_of_binary(n: &Ref<Binary>, a: DataType, b: DataType) -> Result<DataType> {
        if a != b {
            let e = PrimExpr::Binary(n.clone());
            return Err(InterpError::Malformed(format!("`{e}` is of {} and {}", n.a.dtype(), n.b.dtype())));
        }
        Ok(if n.op.is_comparison() { DataType::bool() } else { a })
    }

    /// The base and the stride of a ramp, and their type.
    pub(super) fn ramp(&mut self, n: &Ramp) -> Result<(i64, i64, DataType)> {
        let ((base, dtype), stride) = (self.eval_typed(&n.base, 0)?, self.eval_int(&n.stride)?);
        Ok((Interp::integer(base, &n.base)?, stride, dtype))
    }

    /// A lane of a ramp.
    pub(super) fn at_step(base: i64, stride: i64, lane: usize, dtype: DataType) -> Scalar {
        Scalar::Int(base.wrapping_add(stride.wrapping_mul(lane as i64))).wrapped(dtype)
    }

    /// The indices of an access in one lane. Those of a buffer with more elements than 32 bits count are computed in 64.
    pub(super) fn indices_at(&mut self, view: &View, indices: &[PrimExpr], lane: usize) -> Result<Vec<i64>> {
        let is_large = view.is_large();
        let mut found = self.spare.pop().unwrap_or_default();
        found.clear();
        for e in indices {
            let lane = if lane > 0 && e.dtype().lanes > 1 { lane } else { 0 };
            found.push(if is_large { self.eval_int_at(&in_64_bits(e), lane)? } else { self.eval_int_at(e, lane)? });
        }
        Ok(found)
    }

    fn load_lane(&mut self, n: &BufferLoad, lane: usize) -> Result<Scalar> {
        // Of a buffer whose elements are vectors themselves, some lanes belong to one element.
        let within = usize::from(n.buffer.dtype.lanes.max(1));
        let (outer, inner) = (lane / within, lane % within);
        if let Some(predicate) = &n.predicate
            && !self.eval_bool(predicate, outer)?
        {
            let zero = if n.buffer.dtype.is_float() { Scalar::Float(0.0) } else { Scalar::Int(0) };
            return Ok(zero.wrapped(n.buffer.dtype));
        }
        let view = self.view_of(&n.buffer)?;
        let indices = self.indices_at(&view, &n.indices, outer)?;
        let value = self.memory.load(&view, &indices, inner);
        self.spare.push(indices);
        value
    }

    fn call_lane(&mut self, n: &Ref<PrimCall>, lane: usize) -> Result<Scalar> {
        let unknown = || InterpError::Unsupported(format!("intrinsic `{}`", n.op));
        if PROFILER_CALLS.contains(&n.op.as_str()) {
            return Ok(Scalar::Int(0));
        }
        let intrinsic = Intrinsic::of_call(&n.op).ok_or_else(unknown)?;
        if !intrinsic.arity().accepts(n.args.len()) {
            return Err(InterpError::Malformed(format!("`{}` with {} arguments", n.op, n.args.len())));
        }
        if let Some(meaning) = crate::expand::expand_as(intrinsic, n) {
            return self.eval_at(&meaning, lane);
        }
        match intrinsic {
            Intrinsic::VectorLow | Intrinsic::VectorHigh | Intrinsic::VectorCombine | Intrinsic::Shuffle => {
                let found = shuffled_lanes(n).and_then(|all| all.get(lane).copied());
                let Some(ShuffledLane { vector, lane }) = found else {
                    let call = PrimExpr::Call(n.clone());
                    return Err(InterpError::Malformed(format!("`{call}` has lanes that are not there")));
                };
                self.eval_at(vector, lane)
            }
            Intrinsic::IsNullptr => Err(InterpError::Unsupported("number of a handle".to_string())),
            Intrinsic::IfThenElse => {
                let side = if self.eval_bool(&n.args[0], lane)? { &n.args[1] } else { &n.args[2] };
                self.eval_at(side, lane)
            }
            Intrinsic::CheckedIndex => self.checked_index(n, lane),
            // Those of whole blocks are executed where their statements are.
            Intrinsic::StorageSync => {
                Err(InterpError::Malformed("a barrier that not all threads of a block come to".into()))
            }
            Intrinsic::WarpMultiplyAdd | Intrinsic::WarpLoadMatrix | Intrinsic::WarpShuffleDown => {
                let message = format!("`{}` that is not all that a store of threads writes", n.op);
                Err(InterpError::Malformed(message))
            }
            // Memory has no addresses here.
            Intrinsic::IsAligned => Ok(Scalar::Int(1)),
            Intrinsic::AtMultiple | Intrinsic::OptimizationBarrier => self.eval_at(&n.args[0], lane),
            Intrinsic::Prefetch | Intrinsic::PrefetchWrite => Ok(Scalar::Int(0)),
            Intrinsic::VScale => Ok(Scalar::Int(1)),
            Intrinsic::VectorReduceAdd
            | Intrinsic::VectorReduceMul
            | Intrinsic::VectorReduceMin
            | Intrinsic::VectorReduceMax => self.reduce_lanes(intrinsic, n),
            Intrinsic::CallPacked => self.call_packed(n),
            Intrinsic::TvmStackMakeArray | Intrinsic::TvmStackMakeShape => {
                Err(InterpError::Malformed(format!("`{}` outside of a packed call", n.op)))
            }
            Intrinsic::AddressOf
            | Intrinsic::AccessPtr
            | Intrinsic::HandleAddByteOffset
            | Intrinsic::TypeAnnotation => Err(InterpError::Unsupported(format!("number of the handle `{}`", n.op))),
            Intrinsic::CallLlvmIntrin | Intrinsic::CallLlvmPureIntrin => {
                Err(InterpError::Unsupported("calls of LLVM's functions".to_string()))
            }
            Intrinsic::CallExtern | Intrinsic::CallPureExtern => {
                Err(InterpError::Unsupported("access to C symbols".to_string()))
            }
            Intrinsic::CallKernel => Err(InterpError::Unsupported("calls of other kernels".to_string())),
            Intrinsic::CallCpacked
            | Intrinsic::AnylistGetitem
            | Intrinsic::AnylistSetitemCallPacked
            | Intrinsic::AnylistSetitemCallCpacked
            | Intrinsic::AnylistResetitem => Err(InterpError::Unsupported("lists of values".to_string())),
            Intrinsic::Ret | Intrinsic::BreakLoop | Intrinsic::ContinueLoop => {
                Err(InterpError::Malformed(format!("`{}` inside of an expression", n.op)))
            }
            _ => {
                let args = n.args.iter().map(|a| self.eval_at(a, lane)).collect::<Result<Vec<_>>>()?;
                let of = n.args.first().map_or(n.dtype, PrimExpr::dtype);
                math::apply(intrinsic, &args, of.element(), n.dtype.element())
            }
        }
    }

    fn checked_index(&mut self, n: &PrimCall, lane: usize) -> Result<Scalar> {
        let (index, extent) = (self.eval_int_at(&n.args[0], lane)?, self.eval_int(&n.args[1])?);
        let counts = n.args.get(4).map_or(Ok(true), |on| self.eval_bool(on, lane))?;
        if counts && !(0..extent).contains(&index) {
            let what = n.args.get(2).map_or(String::new(), |what| what.to_string());
            let shown = n.args.get(3).map_or(Ok(index), |shown| self.eval_int_at(shown, lane))?;
            let message = format!("index {shown} of {} is outside of the extent {extent}", what.trim_matches('"'));
            return Err(InterpError::Assertion { kind: "IndexError".to_string(), message });
        }
        Ok(Scalar::Int(index))
    }

    fn reduce_lanes(&mut self, intrinsic: Intrinsic, n: &PrimCall) -> Result<Scalar> {
        use relaxide_ir::BinaryOp::*;
        let op = match intrinsic {
            Intrinsic::VectorReduceMul => Mul,
            Intrinsic::VectorReduceMin => Min,
            Intrinsic::VectorReduceMax => Max,
            _ => Add,
        };
        let (vector, dtype) = (&n.args[0], n.args[0].dtype());
        let (lanes, _) = self.eval_lanes(vector, usize::from(dtype.lanes.max(1)))?;
        let mut total = lanes[0];
        for next in &lanes[1..] {
            total = scalar::binary(op, dtype.element(), total, *next, || vector.to_string())?;
        }
        Ok(total)
    }

    /// A copy of a buffer for a call, and where its elements came from.
    fn copy_of(&mut self, buffer: &TensorArgument<'_>) -> Result<(Tensor, (usize, usize))> {
        let dims = |this: &mut Self, list: &[PrimExpr]| -> Result<Vec<i64>> {
            list.iter().map(|e| this.eval_int(e)).collect()
        };
        let (shape, strides) = (dims(self, buffer.shape)?, dims(self, buffer.strides)?);
        let mut compact = 1;
        for (dim, stride) in shape.iter().zip(&strides).rev() {
            if *dim != 1 && *stride != compact {
                return Err(InterpError::Unsupported("buffers with gaps as arguments of packed calls".to_string()));
            }
            compact *= dim;
        }
        let pointer = buffer.data.as_var().cloned();
        let pointer = pointer.ok_or_else(|| InterpError::Malformed("a tensor without a buffer's pointer".into()))?;
        let offset = self.eval_int(buffer.offset)?;
        self.memory.copy_of(&pointer, offset, &shape, buffer.dtype)
    }

    /// Calls a registered function with scalars, strings and buffers.
    fn call_packed(&mut self, n: &PrimCall) -> Result<Scalar> {
        let Some(PrimExpr::Str(name)) = n.args.first() else {
            return Err(InterpError::Malformed("a packed call without a function's name".to_string()));
        };
        let Some(function) = relaxide_ffi::get_global(&name.value) else {
            return Err(InterpError::Malformed(format!("no function `{}` is registered", name.value)));
        };
        let mut args = Vec::with_capacity(n.args.len());
        let mut copies = Vec::new();
        for arg in &n.args[1..] {
            if let Some(buffer) = TensorArgument::of(arg) {
                let (tensor, place) = self.copy_of(&buffer)?;
                args.push(Any::from(tensor.clone()));
                copies.push((tensor, place));
                continue;
            }
            args.push(match arg {
                PrimExpr::Str(text) => Any::from(text.value.as_str()),
                _ => match self.eval_at(arg, 0)? {
                    Scalar::Int(v) if arg.dtype().is_bool() => Any::from(v != 0),
                    Scalar::Int(v) => Any::from(v),
                    Scalar::Float(v) => Any::from(v),
                },
            });
        }
        let views: Vec<AnyView<'_>> = args.iter().map(Any::as_view).collect();
        let result = function.call(&views)?;
        for (tensor, (storage, start)) in copies {
            self.memory.take_back(storage, start, &tensor)?;
        }
        if n.dtype.is_float() {
            return Ok(Scalar::Float(result.to::<f64>()?).wrapped(n.dtype));
        }
        Ok(Scalar::Int(if result.is_none() { 0 } else { result.to::<i64>()? }).wrapped(n.dtype))
    }
}
