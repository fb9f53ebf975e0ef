//! Scalar expressions: dimensions, indices, and the values that kernels compute.
//!
//! One enum serves symbolic shapes, index arithmetic and kernel bodies. Vectors are scalars with lanes: a [`Ramp`] or a
//! [`Broadcast`] makes one and every operator maps over it, so `dtype().lanes` of both sides must agree.
//!
//! Integer division comes in two kinds, as in C and as in mathematics: [`BinaryOp::Div`]/[`BinaryOp::Mod`] truncate,
//! [`BinaryOp::FloorDiv`]/[`BinaryOp::FloorMod`] round down. Shapes and indices use the latter.

mod build;
mod data;
mod display;
mod functor;

use std::ops;

use relaxide_ffi::{DataType, Object, ObjectEnum, Ref};

pub use build::*;
pub use data::is_data;
pub use functor::{PrimMutator, PrimVisitor, VarMap, any, count_parts, free_vars, substitute};

use crate::{Buffer, Var};

/// The call that stands for how much longer the machine's scalable vectors are than their shortest.
pub const VSCALE: &str = "tirx.vscale";

/// A scalar (or vector) expression.
#[derive(ObjectEnum, Debug)]
pub enum PrimExpr {
    /// Integer literal, also of bool type.
    Int(Ref<IntImm>),
    /// Floating-point literal.
    Float(Ref<FloatImm>),
    /// String literal, as an argument of a call.
    Str(Ref<StringImm>),
    /// Variable.
    Var(Ref<Var>),
    /// Conversion to another element type.
    Cast(Ref<Cast>),
    /// Arithmetic, comparison or logic of two operands.
    Binary(Ref<Binary>),
    /// Logical negation.
    Not(Ref<Not>),
    /// Choice by a condition; both sides may be evaluated.
    Select(Ref<Select>),
    /// A value under a name.
    Let(Ref<Let>),
    /// The vector `base, base + stride, …`.
    Ramp(Ref<Ramp>),
    /// One value in every lane.
    Broadcast(Ref<Broadcast>),
    /// An element of a buffer.
    Load(Ref<BufferLoad>),
    /// An intrinsic or a function call.
    Call(Ref<PrimCall>),
}

/// Integer literal.
#[derive(Object, Debug)]
#[object(key = "ir.IntImm")]
pub struct IntImm {
    /// Element type: an integer or bool.
    pub dtype: DataType,
    /// The value; unsigned 64-bit values above `i64::MAX` wrap.
    pub value: i64,
}

/// Floating-point literal.
#[derive(Object, Debug)]
#[object(key = "ir.FloatImm")]
pub struct FloatImm {
    /// Element type.
    pub dtype: DataType,
    /// The value.
    pub value: f64,
}

/// String literal.
#[derive(Object, Debug)]
#[object(key = "ir.StringImm")]
pub struct StringImm {
    /// The text.
    pub value: String,
}

/// Conversion to another element type.
#[derive(Object, Debug)]
#[object(key = "prim.Cast")]
pub struct Cast {
    /// Target type.
    pub dtype: DataType,
    /// What is converted.
    pub value: PrimExpr,
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `a + b`
    Add,
    /// `a - b`
    Sub,
    /// `a * b`
    Mul,
    /// `a / b`, truncating on integers.
    Div,
    /// Remainder of the truncating division.
    Mod,
    /// `a // b`, rounding down.
    FloorDiv,
    /// `a % b`, with the sign of `b`.
    FloorMod,
    /// Smaller of two.
    Min,
    /// Larger of two.
    Max,
    /// `a == b`
    Eq,
    /// `a != b`
    Ne,
    /// `a < b`
    Lt,
    /// `a <= b`
    Le,
    /// `a > b`
    Gt,
    /// `a >= b`
    Ge,
    /// Logical and.
    And,
    /// Logical or.
    Or,
}

impl BinaryOp {
    /// All operators.
    pub const ALL: [BinaryOp; 17] = {
        use BinaryOp::*;
        [Add, Sub, Mul, Div, Mod, FloorDiv, FloorMod, Min, Max, Eq, Ne, Lt, Le, Gt, Ge, And, Or]
    };

    /// Whether the result is bool.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge)
    }

    /// Whether operands and result are bool.
    pub fn is_logical(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or)
    }
}

/// Arithmetic, comparison or logic of two operands of one type.
#[derive(Object, Debug)]
#[object(key = "prim.Binary")]
pub struct Binary {
    /// Which.
    pub op: BinaryOp,
    /// Left operand.
    pub a: PrimExpr,
    /// Right operand.
    pub b: PrimExpr,
}

/// Logical negation.
#[derive(Object, Debug)]
#[object(key = "prim.Not")]
pub struct Not {
    /// A bool.
    pub a: PrimExpr,
}

/// Choice by a condition; both sides may be evaluated, so neither may fail.
#[derive(Object, Debug)]
#[object(key = "prim.Select")]
pub struct Select {
    /// A bool.
    pub condition: PrimExpr,
    /// Value where it holds.
    pub true_value: PrimExpr,
    /// Value where it does not.
    pub false_value: PrimExpr,
}

/// A value under a name.
#[derive(Object, Debug)]
#[object(key = "prim.Let")]
pub struct Let {
    /// The name.
    #[field(def)]
    pub var: Ref<Var>,
    /// Its value.
    pub value: PrimExpr,
    /// Where it is used.
    pub body: PrimExpr,
}

/// The vector `base, base + stride, …`.
#[derive(Object, Debug)]
#[object(key = "prim.Ramp")]
pub struct Ramp {
    /// First lane.
    pub base: PrimExpr,
    /// Difference of neighbours.
    pub stride: PrimExpr,
    /// How many lanes; of a scalable vector, minus its multiplier.
    pub lanes: i64,
}

/// One value in every lane.
#[derive(Object, Debug)]
#[object(key = "prim.Broadcast")]
pub struct Broadcast {
    /// The scalar.
    pub value: PrimExpr,
    /// How many lanes; of a scalable vector, minus its multiplier.
    pub lanes: i64,
}

/// An element of a buffer, or a vector of elements where the last index is a vector.
#[derive(Object, Debug)]
#[object(key = "tirx.BufferLoad")]
pub struct BufferLoad {
    /// From where.
    pub buffer: Ref<Buffer>,
    /// One index a dimension (or one flat index after flattening).
    pub indices: Vec<PrimExpr>,
    /// Lanes that are read, where not all are; the others are zero.
    pub predicate: Option<PrimExpr>,
}

/// An intrinsic (`"tirx.exp"`) or another function, by name.
#[derive(Object, Debug)]
#[object(key = "prim.Call")]
pub struct PrimCall {
    /// The intrinsic's name, `tirx.` prefix included.
    pub op: String,
    /// Arguments.
    pub args: Vec<PrimExpr>,
    /// Type of the result.
    pub dtype: DataType,
}

impl PrimExpr {
    /// The element type, lanes included.
    pub fn dtype(&self) -> DataType {
        match self {
            PrimExpr::Int(e) => e.dtype,
            PrimExpr::Float(e) => e.dtype,
            PrimExpr::Str(_) => DataType::handle(),
            PrimExpr::Var(e) => e.dtype(),
            PrimExpr::Cast(e) => e.dtype,
            // Operands have one type. A long sum is deep on the left: its last term says the type without a walk down.
            PrimExpr::Binary(e) if e.op.is_comparison() => DataType::bool().with_lanes(e.b.dtype().lanes),
            PrimExpr::Binary(e) => e.b.dtype(),
            PrimExpr::Not(e) => e.a.dtype(),
            PrimExpr::Select(e) => e.true_value.dtype(),
            PrimExpr::Let(e) => e.body.dtype(),
            PrimExpr::Ramp(e) => e.base.dtype().with_lanes(e.lanes as u16),
            PrimExpr::Broadcast(e) => e.value.dtype().with_lanes(e.lanes as u16),
            PrimExpr::Load(e) => {
                let lanes = e.indices.last().map_or(1, |i| i.dtype().lanes);
                e.buffer.dtype.with_lanes(e.buffer.dtype.lanes.wrapping_mul(lanes))
            }
            PrimExpr::Call(e) => e.dtype,
        }
    }

    /// The value of an integer literal.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            PrimExpr::Int(e) => Some(e.value),
            _ => None,
        }
    }

    /// The variable, if it is one.
    pub fn as_var(&self) -> Option<&Ref<Var>> {
        match self {
            PrimExpr::Var(var) => Some(var),
            _ => None,
        }
    }

    /// Whether it is the integer literal `value`.
    pub fn is_int(&self, value: i64) -> bool {
        self.as_int() == Some(value)
    }
}

impl From<i64> for PrimExpr {
    fn from(value: i64) -> Self {
        int(value)
    }
}

impl From<i32> for PrimExpr {
    fn from(value: i32) -> Self {
        int(i64::from(value))
    }
}

impl From<&PrimExpr> for PrimExpr {
    fn from(value: &PrimExpr) -> Self {
        value.clone()
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $build:ident) => {
        impl<T: Into<PrimExpr>> ops::$trait<T> for PrimExpr {
            type Output = PrimExpr;
            fn $method(self, other: T) -> PrimExpr {
                $build(self, other)
            }
        }
        impl<T: Into<PrimExpr>> ops::$trait<T> for &PrimExpr {
            type Output = PrimExpr;
            fn $method(self, other: T) -> PrimExpr {
                $build(self, other)
            }
        }
    };
}
operator!(Add, add, add);
operator!(Sub, sub, sub);
operator!(Mul, mul, mul);
