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
    ("prim.cast", |args| Ok(prim::cast(args.get(0)?, args.prim(1)?).into())),
    ("prim.select", |args| {
        let (a, b) = pair(args, 1, 2)?;
        Ok(prim::select(args.prim(0)?, a, b).into())
    }),
    ("prim.Binary", node_of_two),
    ("prim.Not", |args| Ok(Ref::new(Not { a: args.prim(0)? }).into())),
    ("prim.Cast", |args| Ok(Ref::new(Cast { dtype: args.get(0)?, value: args.prim(1)? }).into())),
    ("prim.Select", |args| {
        let (true_value, false_value) = pair(args, 1, 2)?;
        Ok(Ref::new(Select { condition: args.prim(0)?, true_value, false_value }).into())
    }),
    ("prim.Let", |args| Ok(Ref::new(Let { var: args.get(0)?, value: args.prim(1)?, body: args.prim(2)? }).into())),
    ("prim.Ramp", |args| {
        let (base, stride) = pair(args, 0, 1)?;
        Ok(Ref::new(Ramp { base, stride, lanes: lanes(args, 2)? }).into())
    }),
    ("prim.Broadcast", |args| Ok(Ref::new(Broadcast { value: args.prim(0)?, lanes: lanes(args, 1)? }).into())),
    ("tirx.BufferLoad", load),
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

/// Whether a value is a number of Python's.
pub(super) fn is_number(value: AnyView<'_>) -> bool {
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

/// `(buffer, indices, predicate)`.
fn load(args: &Args<'_>) -> Result<Any, Error> {
    let (buffer, indices): (Ref<Buffer>, _) = (args.get(0)?, args.prims(1)?.unwrap_or_default());
    if indices.len() != buffer.ndim() {
        let message = format!("{} has {} dimensions, not {}", buffer.name, buffer.ndim(), indices.len());
        return Err(Error::new(ErrorKind::ValueError, message));
    }
    let predicate = if args.absent(2) { None } else { Some(args.prim(2)?) };
    Ok(Ref::new(BufferLoad { buffer, indices, predicate }).into())
}

/// A number of lanes, as a number or as a literal.
fn lanes(args: &Args<'_>, at: usize) -> Result<i64, Error> {
    prim::lanes_of(&args.prim(at)?).ok_or_else(|| {
        let message = "a vector has between 1 and 32767 lanes, or a multiple of `T.vscale()` from two on";
        Error::new(ErrorKind::ValueError, message.to_string())
    })
}

/// `(operator, a, b)`; the operator is a name such as `Add`.
fn operands(args: &Args<'_>) -> Result<(BinaryOp, PrimExpr, PrimExpr), Error> {
    let op: BinaryOp = args.get(0)?;
    let (a, b) = pair(args, 1, 2)?;
    if a.dtype() != b.dtype() {
        let message = format!("{} and {} are no operands of one operation", a.dtype(), b.dtype());
        return Err(Error::new(ErrorKind::TypeError, message));
    }
    if matches!(a, PrimExpr::Str(_)) || matches!(b, PrimExpr::Str(_)) {
        return Err(Error::new(ErrorKind::TypeError, "text is no operand".to_string()));
    }
    Ok((op, a, b))
}

/// The node itself: two scalars are of one type as they are, and nothing is computed.
fn node_of_two(args: &Args<'_>) -> Result<Any, Error> {
    if let (Ok(a), Ok(b)) = (args.prim(1), args.prim(2))
        && !args.values.iter().skip(1).any(|value| is_number(*value))
        && a.dtype() != b.dtype()
    {
        let message = format!("mismatched types: {} and {}", a.dtype(), b.dtype());
        return Err(Error::new(ErrorKind::TypeError, message));
    }
    operands(args).map(|(op, a, b)| Ref::new(Binary { op, a, b }).into())
}

/// What an operator makes: operands are brought to one type, and literals are computed.
/// An operation as a program writes it, of two literals their result. What passes write keeps the operations of floating-point
/// numbers as they are.
fn binary(args: &Args<'_>) -> Result<Any, Error> {
    let (op, a, b) = operands(args)?;
    let made = prim::binary(op, a, b);
    let folded = match &made {
        PrimExpr::Binary(n) => match (&n.a, &n.b) {
            (PrimExpr::Float(x), PrimExpr::Float(y)) => of_floats(op, n.a.dtype(), x.value, y.value),
            _ => None,
        },
        _ => None,
    };
    Ok(folded.unwrap_or(made).into())
}

/// The result of an operation on two numbers of single or double precision, rounded as the machine rounds it; `None` where it
/// is no number.
fn of_floats(op: BinaryOp, dtype: DataType, x: f64, y: f64) -> Option<PrimExpr> {
    // Double precision has more than twice the digits of single, so that its result rounds to that of single.
    let value = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Eq => return Some(prim::boolean(x == y)),
        BinaryOp::Ne => return Some(prim::boolean(x != y)),
        BinaryOp::Lt => return Some(prim::boolean(x < y)),
        BinaryOp::Le => return Some(prim::boolean(x <= y)),
        BinaryOp::Gt => return Some(prim::boolean(x > y)),
        BinaryOp::Ge => return Some(prim::boolean(x >= y)),
        _ => return None,
    };
    let rounded = match dtype.bits {
        32 => f64::from(value as f32),
        64 => value,
        _ => return None,
    };
    rounded.is_finite().then(|| prim::float_of(dtype, rounded))
}
