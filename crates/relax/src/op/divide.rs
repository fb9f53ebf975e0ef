//! Calls over very many tensors, as several calls.
//!
//! A kernel takes each tensor as an argument and unpacks it: its shape is checked, its fields are loaded. Code generation is
//! quadratic in the number of such loads, so the kernel of a `concat` of a thousand tensors takes minutes to compile. Beyond
//! [`MOST_TENSORS`] such a call is divided into groups, and what the groups give is joined.
//!
//! ```text
//! y = R.concat((x0, …, x799))      →      g0 = R.concat((x0, …, x63)) … g12 = R.concat((x768, …, x799))
//!                                         y = R.concat((g0, …, g12))
//! ```
//!
//! Elements are copied twice, which costs less than so many arguments do.
//!
//! Where lengths along the axis are not fixed, tensor `i` begins at a sum of `i` of them, so the text of a kernel is quadratic in their
//! number already; such calls are divided sooner ([`MOST_OPEN`]). Lengths that are long expressions are given names first, so that sums
//! of them are short:
//!
//! ```text
//! y = R.concat((x0, …, x15))           →      m0 = R.match_cast(x0, R.Tensor((len0,)))  # x0 has (n + 3) // 2 elements
//!                                             …
//!                                             y = R.match_cast(R.concat((m0, …, m15)), the type as it was)
//! ```

use relaxide_ir::arith::dims::weight;
use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{AttrValue, Attrs, Type, Var};

use super::device::on;
use super::{CallCx, OpError, call, infer};
use crate::{BlockBuilder, BuildError, Call, Expr};

/// How many tensors a kernel takes and gives.
const MOST_TENSORS: usize = 128;
/// How many of them go to one group.
const GROUP: usize = 64;

/// The same of tensors that are joined along an axis where their lengths are not fixed.
pub const MOST_OPEN: usize = 24;
const OPEN_GROUP: usize = 12;

/// How many terms the beginnings of joined tensors may have together: those of [`MOST_OPEN`] names.
const MOST_TERMS: usize = MOST_OPEN * (MOST_OPEN + 1) / 2;

/// The length of a part along the axis of a call, where it is not fixed.
fn open_length<'a>(part: &'a Type, attrs: &Attrs) -> Option<&'a PrimExpr> {
    let shape = part.as_tensor()?.shape.as_ref()?;
    along(shape, attrs).filter(|dim| dim.as_int().is_none())
}

/// Whether several tensors are joined along an axis where their lengths are not fixed.
fn is_open(joined: &Type, attrs: &Attrs) -> bool {
    let Type::Tuple(parts) = joined else { return false };
    parts.fields.iter().filter_map(|part| open_length(part, attrs)).nth(1).is_some()
}

/// Whether the beginnings of joined tensors are too long to be written: each is the sum of the lengths in front of it.
fn is_long(joined: &Type, attrs: &Attrs) -> bool {
    let Type::Tuple(parts) = joined else { return false };
    let lengths = parts.fields.iter().rev().map(|part| open_length(part, attrs).map_or(0, weight));
    lengths.enumerate().map(|(behind, length)| (behind + 1) * length).sum::<usize>() > MOST_TERMS
}

/// The dimension along the axis of a call.
fn along<'a>(shape: &'a [PrimExpr], attrs: &Attrs) -> Option<&'a PrimExpr> {
    shape.get(axis_of(shape.len(), attrs)?)
}

/// The axis of a call, of so many.
fn axis_of(ndim: usize, attrs: &Attrs) -> Option<usize> {
    let axis = attrs.int("axis").unwrap_or(0);
    usize::try_from(if axis < 0 { axis + ndim as i64 } else { axis }).ok()
}

/// Whether a call has more tensors than a kernel should, and can be divided: what is split into parts whose lengths are not
/// known cannot.
pub fn is_wide(call: &Call) -> bool {
    fn leaves(ty: &Type) -> usize {
        match ty {
            Type::Tuple(tuple) => tuple.fields.iter().map(leaves).sum(),
            Type::Tensor(_) => 1,
            _ => 0,
        }
    }
    let tensors = call.args.iter().map(|arg| leaves(&arg.ty())).sum::<usize>() + leaves(&call.ty);
    let all = call.args.first().filter(|_| call.op_name() == Some("concat")).map(Expr::ty);
    if all.as_ref().is_some_and(|all| is_long(all, &call.attrs)) {
        return true;
    }
    let most = if all.is_some_and(|all| is_open(&all, &call.attrs)) { MOST_OPEN } else { MOST_TENSORS };
    tensors > most && (!matches!(call.ty, Type::Tuple(_)) || lengths(&call.ty, &call.attrs).is_some())
}

/// The lengths of the parts that a tensor is split into.
fn lengths(parts: &Type, attrs: &Attrs) -> Option<Vec<i64>> {
    let Type::Tuple(parts) = parts else { return None };
    let length = |part: &Type| along(part.as_tensor()?.shape.as_ref()?, attrs)?.as_int();
    parts.fields.iter().map(length).collect()
}

/// Joins groups of tensors along an axis, and then the groups. `stack` makes the axis, so its groups are concatenated.
pub fn joined(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let mut emit = |value: Expr| b.emit(value).map_err(|error| OpError::of_build(cx.def.name, error));
    let Some(Expr::Tuple(tuple)) = cx.args.first() else {
        let all = cx.arg(0)?.clone();
        let Type::Tuple(ty) = all.ty() else { return cx.invalid("its argument is no tuple") };
        let fields = (0..ty.fields.len()).map(|index| emit(Expr::field(all.clone(), index)));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        return call(cx.def.name, [Expr::tuple(fields)], cx.attrs.clone());
    };
    let joined = cx.arg(0)?.ty();
    let is_named = |part: &Expr| open_length(&part.ty(), cx.attrs).is_none_or(|dim| dim.as_var().is_some());
    if cx.def.name == "concat" && is_long(&joined, cx.attrs) && !tuple.fields.iter().all(is_named) {
        return with_names(cx, b, &tuple.fields).map_err(|error| OpError::of_build(cx.def.name, error));
    }
    let mut emit = |value: Expr| b.emit(value).map_err(|error| OpError::of_build(cx.def.name, error));
    let is_open = cx.def.name == "concat" && is_open(&joined, cx.attrs);
    let size = if is_open { OPEN_GROUP } else { GROUP };
    let mut groups = Vec::with_capacity(tuple.fields.len().div_ceil(size));
    for group in tuple.fields.chunks(size) {
        let group = call(cx.def.name, [Expr::tuple(group.to_vec())], cx.attrs.clone())?;
        groups.push(emit(group)?);
    }
    call("concat", [Expr::tuple(groups)], cx.attrs.clone())
}

/// Joins tensors under types that name their lengths along the axis, and says of the result what it is by their own.
fn with_names(cx: &CallCx, b: &mut BlockBuilder, parts: &[Expr]) -> Result<Expr, BuildError> {
    let named = parts.iter().map(|part| {
        let ty = part.ty();
        let Some(tensor) = ty.as_tensor().filter(|_| open_length(&ty, cx.attrs).is_some()) else {
            return Ok(part.clone());
        };
        let mut shape = tensor.shape.clone().unwrap_or_default();
        if let Some(dim) = axis_of(shape.len(), cx.attrs).and_then(|axis| shape.get_mut(axis)) {
            *dim = PrimExpr::from(&Var::dim("length"));
        }
        let ty = Type::tensor(shape, tensor.dtype);
        let ty = tensor.vdevice.as_ref().map_or(ty.clone(), |device| on(&ty, device));
        b.match_cast(part.clone(), ty)
    });
    let named = named.collect::<Result<Vec<_>, _>>()?;
    let whole = call("concat", [Expr::tuple(named)], cx.attrs.clone())?;
    b.match_cast(whole, infer(cx)?)
}

/// Splits a tensor into pieces that hold several parts each, and then the pieces.
pub fn split(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let mut emit = |value: Expr| b.emit(value).map_err(|error| OpError::of_build(cx.def.name, error));
    let Some(lengths) = lengths(&(cx.def.infer)(cx)?, cx.attrs) else {
        return cx.invalid("is into more parts than a kernel has outputs, and their lengths are not known");
    };
    let ends = |lengths: &[i64]| -> Vec<AttrValue> {
        let sums = lengths.iter().scan(0, |sum, length| {
            *sum += length;
            Some(*sum)
        });
        sums.take(lengths.len().saturating_sub(1)).map(AttrValue::Int).collect()
    };
    let split_at = |x: Expr, lengths: &[i64]| {
        call("split", [x], cx.attrs.clone().with("indices_or_sections", AttrValue::List(ends(lengths))))
    };
    let groups: Vec<&[i64]> = lengths.chunks(GROUP).collect();
    let sizes: Vec<i64> = groups.iter().map(|group| group.iter().sum()).collect();
    let pieces = emit(split_at(cx.arg(0)?.clone(), &sizes)?)?;
    let mut fields = Vec::with_capacity(lengths.len());
    for (index, group) in groups.iter().enumerate() {
        let piece = emit(Expr::field(pieces.clone(), index))?;
        if group.len() == 1 {
            fields.push(piece);
            continue;
        }
        let parts = emit(split_at(piece, group)?)?;
        for part in 0..group.len() {
            fields.push(emit(Expr::field(parts.clone(), part))?);
        }
    }
    Ok(Expr::tuple(fields))
}
