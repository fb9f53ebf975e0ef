//! Constructors of scalar expressions, where Python's numbers take the type of what they meet.

use relaxide::ffi::{Any, AnyView, Array, DataType, Error, ErrorKind, Object, Ref};
use relaxide::ir::prim::{
    self, Binary, Broadcast, BufferLoad, Cast, FloatImm, IntImm, Let, Not, PrimCall, PrimExpr, Ramp,
};
use relaxide::ir::prim::{Select, StringImm};
use relaxide::ir::{BinaryOp, Buffer, Var};

use super::args::prim_expr;
use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("ir.IntImm", |args| literal(args, false)),
    ("ir.FloatImm", |args| literal(args, true)),
    ("ir.StringImm", |args| Ok(prim::string(args.get::<String>(0)?).into())),
    ("prim.const", |args| Ok(constant(args.values.first().copied().unwrap_or_default(), args.get(1)?)?.into())),
    ("prim.binary", binary),
    ("prim.Not", |args| Ok(prim::not(args.prim(0)?).into())),
    ("prim.Cast", |args| Ok(prim::cast(args.get(0)?, args.prim(1)?).into())),
    ("prim.Select", |args| {
        let (a, b) = pair(args, 1, 2)?;
        Ok(prim::select(args.prim(0)?, a, b).into())
    }),
    ("prim.if_then_else", |args| {
        let (a, b) = pair(args, 1, 2)?;
        Ok(prim::if_then_else(args.prim(0)?, a, b).into())
    }),
    ("prim.call", |args| {
        let values: Array = args.get(2)?;
        let values = values.iter().map(|value| prim_expr(value.as_view())).collect::<Result<Vec<_>, _>>()?;
        Ok(prim::call(args.get(0)?, args.get::<String>(1)?, values).into())
    }),
    ("prim.dtype", |args| Ok(args.prim(0)?.dtype().into())),
    ("prim.simplify", |args| Ok(relaxide::ir::arith::Analyzer::new().simplify(&args.prim(0)?).into())),
];

/// Makes the types of these nodes known by their keys.
pub(super) fn enter() {
    IntImm::type_index();
    FloatImm::type_index();
    StringImm::type_index();
    Cast::type_index();
    Binary::type_index();
    Not::type_index();
    Select::type_index();
    Let::type_index();
    Ramp::type_index();
    Broadcast::type_index();
    BufferLoad::type_index();
    PrimCall::type_index();
    Buffer::type_index();
    Var::type_index();
}

fn literal(args: &Args<'_>, is_float: bool) -> Result<Any, Error> {
    let dtype: DataType = args.get(0)?;
    if dtype.is_float() != is_float || dtype.lanes != 1 {
        let kind = if is_float { "floating-point" } else { "integer" };
        return Err(Error::new(ErrorKind::TypeError, format!("{dtype} is not the type of one {kind} number")));
    }
    Ok(match is_float {
        true => Ref::new(FloatImm { dtype, value: args.get(1)? }).into(),
        false => Ref::new(IntImm { dtype, value: args.get(1)? }).into(),
    })
}

/// A number as a literal of a type.
fn constant(value: AnyView<'_>, dtype: DataType) -> Result<PrimExpr, Error> {
    if let Some(value) = value.as_int() {
        return Ok(if dtype.is_float() { prim::float_of(dtype, value as f64) } else { prim::int_of(dtype, value) });
    }
    match value.to::<f64>() {
        Ok(value) => Ok(prim::constant(dtype, value)),
        Err(_) => prim_expr(value).map(|value| prim::cast(dtype, value)),
    }
}

fn is_number(value: AnyView<'_>) -> bool {
    use relaxide::ffi::abi::type_index as index;
    matches!(value.type_index(), index::INT | index::FLOAT | index::BOOL)
}

/// Two operands of one type. A number takes the other side's type where that can hold it.
fn pair(args: &Args<'_>, left: usize, right: usize) -> Result<(PrimExpr, PrimExpr), Error> {
    let at = |at: usize| args.values.get(at).copied().unwrap_or_default();
    let (x, y) = (at(left), at(right));
    let beside = |number: AnyView<'_>, other: &PrimExpr| {
        let dtype = other.dtype();
        let fits = match number.as_int() {
            Some(value) => dtype.is_float() || prim::holds(dtype.element(), value),
            None => dtype.is_float(),
        };
        if fits { constant(number, dtype) } else { prim_expr(number) }
    };
    let (x, y) = match (is_number(x), is_number(y)) {
        (true, false) => {
            let y = args.prim(right)?;
            (beside(x, &y)?, y)
        }
        (false, true) => {
            let x = args.prim(left)?;
            let y = beside(y, &x)?;
            (x, y)
        }
        _ => (args.prim(left)?, args.prim(right)?),
    };
    Ok(prim::promote(x, y))
}

/// `(operator, a, b)`; the operator is a name such as `Add`.
fn binary(args: &Args<'_>) -> Result<Any, Error> {
    let op: BinaryOp = args.get(0)?;
    let (a, b) = pair(args, 1, 2)?;
    if a.dtype() != b.dtype() {
        let message = format!("{} and {} are no operands of one operation", a.dtype(), b.dtype());
        return Err(Error::new(ErrorKind::TypeError, message));
    }
    Ok(prim::binary(op, a, b).into())
}
