//! Builders of scalar expressions, which fold literals and bring integer literals to the other operand's type.
//!
//! Folding here is what needs no proof: two literals, and the neutral elements. Everything else is `arith`'s.

use relaxide_ffi::{DataType, Ref};

use super::*;

/// A 64-bit integer literal.
pub fn int(value: i64) -> PrimExpr {
    int_of(DataType::int(64), value)
}

/// An integer literal of a given type.
pub fn int_of(dtype: DataType, value: i64) -> PrimExpr {
    splat(Ref::new(IntImm { dtype: dtype.element(), value }).into(), dtype)
}

/// A floating-point literal of a given type.
pub fn float_of(dtype: DataType, value: f64) -> PrimExpr {
    splat(Ref::new(FloatImm { dtype: dtype.element(), value }).into(), dtype)
}

/// A literal of any numeric type; a fraction given for an integer type is truncated.
pub fn constant(dtype: DataType, value: f64) -> PrimExpr {
    if dtype.is_float() { float_of(dtype, value) } else { int_of(dtype, value as i64) }
}

/// The least finite value of a numeric type.
pub fn lowest_finite(dtype: DataType) -> PrimExpr {
    match dtype.is_float() {
        true => float_of(dtype, -greatest_finite(dtype)),
        false => lowest(dtype),
    }
}

/// The greatest finite value of a numeric type.
pub fn highest_finite(dtype: DataType) -> PrimExpr {
    match dtype.is_float() {
        true => float_of(dtype, greatest_finite(dtype)),
        false => highest(dtype),
    }
}

/// The greatest finite number of a type of floats; infinity for those of less than 16 bits.
fn greatest_finite(dtype: DataType) -> f64 {
    match dtype.bits {
        64 => f64::MAX,
        32 => f64::from(f32::MAX),
        16 if dtype.code == DataType::BFLOAT => f64::from(f32::from_bits(0x7f7f_0000)),
        16 => 65504.0,
        _ => f64::INFINITY,
    }
}

/// The least value of a numeric type: minus infinity for floats.
pub fn lowest(dtype: DataType) -> PrimExpr {
    if dtype.is_float() { float_of(dtype, f64::NEG_INFINITY) } else { int_of(dtype, int_limits(dtype).0) }
}

/// The greatest value of a numeric type: infinity for floats.
pub fn highest(dtype: DataType) -> PrimExpr {
    if dtype.is_float() { float_of(dtype, f64::INFINITY) } else { int_of(dtype, int_limits(dtype).1) }
}

/// The least and the greatest value of a type of integers or bools. Of 64 bits without a sign the greatest has all of them set.
pub fn int_limits(dtype: DataType) -> (i64, i64) {
    let unused = 64u32.saturating_sub(u32::from(dtype.bits)).min(63);
    if dtype.is_int() {
        (i64::MIN >> unused, i64::MAX >> unused)
    } else if dtype.is_bool() {
        (0, 1)
    } else {
        (0, (u64::MAX >> unused) as i64)
    }
}

/// A bool literal.
pub fn boolean(value: bool) -> PrimExpr {
    int_of(DataType::bool(), i64::from(value))
}

/// A string literal.
pub fn string(value: impl Into<String>) -> PrimExpr {
    Ref::new(StringImm { value: value.into() }).into()
}

fn splat(value: PrimExpr, dtype: DataType) -> PrimExpr {
    if dtype.lanes > 1 { broadcast(value, dtype.lane_count()) } else { value }
}

/// By how much the machine's scalable vectors are longer than their shortest.
pub fn vscale() -> PrimExpr {
    call(DataType::int(32), VSCALE, vec![])
}

/// The lanes that an expression stands for: a number, or a multiple of [`vscale`] as minus its multiplier. `None` for any
/// other expression, and for numbers that no vector has.
pub fn lanes_of(e: &PrimExpr) -> Option<i64> {
    let in_range = |lanes: &i64| (1..=i64::from(i16::MAX)).contains(lanes);
    let is_vscale = |e: &PrimExpr| matches!(e, PrimExpr::Call(n) if n.op == VSCALE);
    match e {
        PrimExpr::Int(n) => Some(n.value).filter(in_range),
        PrimExpr::Cast(n) if n.dtype.is_int() => lanes_of(&n.value),
        PrimExpr::Binary(n) if n.op == BinaryOp::Mul => {
            let multiplier = if is_vscale(&n.a) { n.b.as_int() } else { n.a.as_int().filter(|_| is_vscale(&n.b)) };
            // A multiplier of one would be the type of a scalar.
            multiplier.filter(in_range).filter(|m| *m > 1).map(|m| -m)
        }
        _ => None,
    }
}

/// The expression that [`lanes_of`] reads as these lanes.
pub fn lanes_expr(lanes: i64) -> PrimExpr {
    if lanes < 0 { mul(vscale(), int_of(DataType::int(32), -lanes)) } else { int_of(DataType::int(32), lanes) }
}

/// One value in `lanes` lanes; of a scalable vector, minus its multiplier.
pub fn broadcast(value: impl Into<PrimExpr>, lanes: i64) -> PrimExpr {
    let value = value.into();
    if lanes == 1 { value } else { Ref::new(Broadcast { value, lanes }).into() }
}

/// The vector `base, base + stride, …`, with lanes as [`broadcast`] counts them.
pub fn ramp(base: impl Into<PrimExpr>, stride: impl Into<PrimExpr>, lanes: i64) -> PrimExpr {
    let (base, stride) = promote(base.into(), stride.into());
    if lanes == 1 { base } else { Ref::new(Ramp { base, stride, lanes }).into() }
}

/// Conversion to `dtype`; literals are converted at once.
pub fn cast(dtype: DataType, value: impl Into<PrimExpr>) -> PrimExpr {
    let value = value.into();
    if value.dtype() == dtype {
        return value;
    }
    match &value {
        PrimExpr::Int(imm) if dtype.is_float() => float_of(dtype, imm.value as f64),
        PrimExpr::Int(imm) if dtype.is_bool() => int_of(dtype, i64::from(imm.value != 0)),
        PrimExpr::Int(imm) if dtype.is_integer() && holds(dtype, imm.value) => int_of(dtype, imm.value),
        PrimExpr::Broadcast(b) if dtype.lane_count() == b.lanes => {
            broadcast(cast(dtype.element(), b.value.clone()), b.lanes)
        }
        _ => Ref::new(Cast { dtype, value }).into(),
    }
}

/// Whether an integer type (or bool) holds `value` as it is.
pub fn holds(dtype: DataType, value: i64) -> bool {
    if dtype.is_bool() {
        return value == 0 || value == 1;
    }
    if dtype.is_uint() {
        return value >= 0 && (dtype.bits >= 63 || value < 1i64 << dtype.bits);
    }
    dtype.bits >= 64 || (value >= -(1i64 << (dtype.bits - 1)) && value < 1i64 << (dtype.bits - 1))
}

/// Choice by a condition.
pub fn select(condition: PrimExpr, true_value: impl Into<PrimExpr>, false_value: impl Into<PrimExpr>) -> PrimExpr {
    let (true_value, false_value) = promote(true_value.into(), false_value.into());
    match condition.as_int() {
        Some(0) => false_value,
        Some(_) => true_value,
        None => Ref::new(Select { condition, true_value, false_value }).into(),
    }
}

/// A lazy choice: only the side that the condition picks is evaluated.
pub fn if_then_else(
    condition: PrimExpr,
    true_value: impl Into<PrimExpr>,
    false_value: impl Into<PrimExpr>,
) -> PrimExpr {
    let (true_value, false_value) = promote(true_value.into(), false_value.into());
    match condition.as_int() {
        Some(0) => false_value,
        Some(_) => true_value,
        None => {
            let dtype = true_value.dtype();
            call(dtype, "tirx.if_then_else", vec![condition, true_value, false_value])
        }
    }
}

/// A call of an intrinsic by its full name.
pub fn call(dtype: DataType, op: impl Into<String>, args: Vec<PrimExpr>) -> PrimExpr {
    Ref::new(PrimCall { op: op.into(), args, dtype }).into()
}

/// A unary intrinsic over the operand's own type: `math("exp", x)` is `tirx.exp(x)`.
pub fn math(name: &str, x: PrimExpr) -> PrimExpr {
    let dtype = x.dtype();
    call(dtype, format!("tirx.{name}"), vec![x])
}

/// An element of a buffer.
pub fn load(buffer: &Ref<Buffer>, indices: impl IntoIterator<Item = impl Into<PrimExpr>>) -> PrimExpr {
    let indices = indices.into_iter().map(Into::into).collect();
    Ref::new(BufferLoad { buffer: buffer.clone(), indices, predicate: None }).into()
}

/// Logical negation.
pub fn not(a: PrimExpr) -> PrimExpr {
    match a.as_int() {
        Some(v) => boolean(v == 0),
        None => Ref::new(Not { a }).into(),
    }
}

/// Brings two operands to one type where a literal or a narrower integer allows it: a scalar is broadcast to the other's
/// lanes, a literal takes the other's element type unless that is an index type that does not hold it, the narrower of two
/// integers is widened.
pub fn promote(a: PrimExpr, b: PrimExpr) -> (PrimExpr, PrimExpr) {
    let (ta, tb) = (a.dtype(), b.dtype());
    if ta == tb {
        return (a, b);
    }
    if ta.lanes == 1 && tb.lanes > 1 {
        return promote(broadcast(a, tb.lane_count()), b);
    }
    if tb.lanes == 1 && ta.lanes > 1 {
        return promote(a, broadcast(b, ta.lane_count()));
    }
    let fits = |value: i64, ty: DataType| !(ty.is_int() && ty.bits == 32) || holds(ty.element(), value);
    match (literal(&a), literal(&b)) {
        (Some(value), None) if fits(value, tb) => return (cast(tb, a), b),
        (None, Some(value)) if fits(value, ta) => return (a, cast(ta, b)),
        _ => {}
    }
    let wider = if ta.is_float() != tb.is_float() {
        if ta.is_float() { ta } else { tb }
    } else if ta.bits >= tb.bits {
        ta
    } else {
        tb
    };
    (cast(wider, a), cast(wider, b))
}

fn literal(e: &PrimExpr) -> Option<i64> {
    match e {
        PrimExpr::Int(imm) => Some(imm.value),
        PrimExpr::Broadcast(b) => literal(&b.value),
        _ => None,
    }
}

/// A floating-point literal, in each lane.
pub fn literal_float(e: &PrimExpr) -> Option<f64> {
    match e {
        PrimExpr::Float(imm) => Some(imm.value),
        PrimExpr::Broadcast(b) => literal_float(&b.value),
        _ => None,
    }
}

/// A binary operation, folded where both sides are literals or one is neutral.
pub fn binary(op: BinaryOp, a: impl Into<PrimExpr>, b: impl Into<PrimExpr>) -> PrimExpr {
    let (a, b) = promote(a.into(), b.into());
    let dtype = a.dtype();
    if let (Some(x), Some(y)) = (literal(&a), literal(&b))
        && holds(dtype.element(), x)
        && holds(dtype.element(), y)
        && let Some(value) = fold(op, x, y)
    {
        let ty = if op.is_comparison() { DataType::bool().with_lanes(dtype.lanes) } else { dtype };
        if holds(ty.element(), value) {
            return int_of(ty, value);
        }
    }
    neutral(op, &a, &b).unwrap_or_else(|| Ref::new(Binary { op, a, b }).into())
}

/// The value of an operation on two integers; `None` where it overflows or divides by zero.
pub fn fold(op: BinaryOp, x: i64, y: i64) -> Option<i64> {
    use BinaryOp::*;
    Some(match op {
        Add => x.checked_add(y)?,
        Sub => x.checked_sub(y)?,
        Mul => x.checked_mul(y)?,
        Div => x.checked_div(y)?,
        Mod => x.checked_rem(y)?,
        FloorDiv => floor_div_i64(x, y)?,
        FloorMod => {
            let rest = x.checked_rem(y)?;
            if rest != 0 && (rest < 0) != (y < 0) { rest + y } else { rest }
        }
        Min => x.min(y),
        Max => x.max(y),
        Eq => i64::from(x == y),
        Ne => i64::from(x != y),
        Lt => i64::from(x < y),
        Le => i64::from(x <= y),
        Gt => i64::from(x > y),
        Ge => i64::from(x >= y),
        And => i64::from(x != 0 && y != 0),
        Or => i64::from(x != 0 || y != 0),
    })
}

fn floor_div_i64(x: i64, y: i64) -> Option<i64> {
    let q = x.checked_div(y)?;
    Some(if x.checked_rem(y)? != 0 && (x < 0) != (y < 0) { q - 1 } else { q })
}

/// `x + 0`, `x * 1` and their like, for integers, and those of them that hold for every float too.
fn neutral(op: BinaryOp, a: &PrimExpr, b: &PrimExpr) -> Option<PrimExpr> {
    use BinaryOp::*;
    match (op, literal(a), literal(b)) {
        (Add, Some(0), _) => Some(b.clone()),
        (Add | Sub, _, Some(0)) => Some(a.clone()),
        (Mul, Some(1), _) => Some(b.clone()),
        (Mul | Div | FloorDiv, _, Some(1)) => Some(a.clone()),
        (Mul, Some(0), _) => Some(a.clone()),
        (Mul, _, Some(0)) => Some(b.clone()),
        (Mod | FloorMod, _, Some(1)) => Some(int_of(a.dtype(), 0)),
        (And, Some(0), _) | (Or, _, Some(0)) => Some(a.clone()),
        (And, _, Some(0)) | (Or, Some(0), _) => Some(b.clone()),
        (And, Some(_), _) | (Or, _, Some(_)) => Some(b.clone()),
        (And, _, Some(_)) | (Or, Some(_), _) => Some(a.clone()),
        _ => match (op, literal_float(a), literal_float(b)) {
            (Mul, Some(1.0), _) => Some(b.clone()),
            (Mul | Div, _, Some(1.0)) => Some(a.clone()),
            _ => None,
        },
    }
}

macro_rules! builders {
    ($($(#[$doc:meta])* $name:ident => $op:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(a: impl Into<PrimExpr>, b: impl Into<PrimExpr>) -> PrimExpr {
            binary(BinaryOp::$op, a, b)
        }
    )*};
}
builders! {
    /// `a + b`
    add => Add;
    /// `a - b`
    sub => Sub;
    /// `a * b`
    mul => Mul;
    /// `a / b`, truncating on integers.
    div => Div;
    /// Remainder of the truncating division.
    truncmod => Mod;
    /// `a // b`, rounding down.
    floordiv => FloorDiv;
    /// `a % b`, with the sign of `b`.
    floormod => FloorMod;
    /// Smaller of two.
    min => Min;
    /// Larger of two.
    max => Max;
    /// `a == b`
    eq => Eq;
    /// `a != b`
    ne => Ne;
    /// `a < b`
    lt => Lt;
    /// `a <= b`
    le => Le;
    /// `a > b`
    gt => Gt;
    /// `a >= b`
    ge => Ge;
    /// Logical and.
    and => And;
    /// Logical or.
    or => Or;
}
