//! Types: what an expression evaluates to, as far as the compiler knows.
//!
//! Dimensions are [`PrimExpr`]s over symbolic variables, so `Tensor((n, n * 2), "float32")` is a type. Knowledge comes in
//! steps: a tensor may have a known rank without known dimensions, and an unknown dtype is [`DataType::void()`].

use relaxide_ffi::{DataType, Object, ObjectEnum, Ref};

use crate::{PrimExpr, VDevice};

/// What an expression evaluates to.
#[derive(ObjectEnum, Debug)]
pub enum Type {
    /// A scalar.
    Prim(Ref<PrimType>),
    /// A pointer to elements; only TIR has it.
    Pointer(Ref<PointerType>),
    /// A tensor.
    Tensor(Ref<TensorType>),
    /// A tuple of dimensions.
    Shape(Ref<ShapeType>),
    /// A tuple.
    Tuple(Ref<TupleType>),
    /// A function of known or unknown signature.
    Func(Ref<FuncType>),
    /// A string.
    String(Ref<StringType>),
    /// Any value at all.
    Any(Ref<AnyType>),
    /// Not inferred yet.
    Missing(Ref<MissingType>),
}

/// The type of a scalar.
#[derive(Object, Debug)]
#[object(key = "ir.PrimType")]
pub struct PrimType {
    /// Element type.
    pub dtype: DataType,
}

/// The type of a pointer to elements in a memory scope.
#[derive(Object, Debug)]
#[object(key = "ir.PointerType")]
pub struct PointerType {
    /// What it points to.
    pub element: Type,
    /// The memory it points into: `"global"`, `"shared"`, `"local"` …
    pub scope: String,
}

/// The type of a tensor.
#[derive(Object, Debug)]
#[object(key = "relax.TensorType")]
pub struct TensorType {
    /// The dimensions, where all are known (perhaps symbolically).
    pub shape: Option<Vec<PrimExpr>>,
    /// Element type; void where unknown.
    pub dtype: DataType,
    /// Rank; -1 where unknown.
    pub ndim: i64,
    /// The device it lives on, where that was said.
    pub vdevice: Option<Ref<VDevice>>,
}

/// The type of a tuple of dimensions.
#[derive(Object, Debug)]
#[object(key = "relax.ShapeType")]
pub struct ShapeType {
    /// The dimensions, where known.
    pub values: Option<Vec<PrimExpr>>,
    /// How many; -1 where unknown.
    pub ndim: i64,
}

/// The type of a tuple.
#[derive(Object, Debug)]
#[object(key = "ir.TupleType")]
pub struct TupleType {
    /// The fields' types, in order.
    pub fields: Vec<Type>,
}

/// The type of a function.
#[derive(Object, Debug)]
#[object(key = "relax.FuncType")]
pub struct FuncType {
    /// Parameters; none for an opaque packed function. Symbolic variables in them are bound by the function.
    #[field(def)]
    pub params: Option<Vec<Type>>,
    /// Result.
    pub ret: Type,
    /// Whether calls have no visible effect.
    pub pure: bool,
    /// The registered function that tells the type of a call, where it follows from the arguments of that call.
    pub derive: Option<String>,
}

/// The type of strings.
#[derive(Object, Debug)]
#[object(key = "ir.StringType")]
pub struct StringType {}

/// The type of any value.
#[derive(Object, Debug)]
#[object(key = "relax.AnyType")]
pub struct AnyType {}

/// The type of an expression that inference has not visited.
#[derive(Object, Debug)]
#[object(key = "ir.MissingType")]
pub struct MissingType {}

impl Type {
    /// A scalar type.
    pub fn prim(dtype: DataType) -> Type {
        Ref::new(PrimType { dtype }).into()
    }

    /// A pointer to `dtype` elements.
    pub fn pointer(dtype: DataType, scope: impl Into<String>) -> Type {
        Ref::new(PointerType { element: Type::prim(dtype), scope: scope.into() }).into()
    }

    /// A tensor of known dimensions.
    pub fn tensor(shape: impl IntoIterator<Item = impl Into<PrimExpr>>, dtype: DataType) -> Type {
        let shape: Vec<PrimExpr> = shape.into_iter().map(Into::into).collect();
        let ndim = shape.len() as i64;
        Ref::new(TensorType { shape: Some(shape), dtype, ndim, vdevice: None }).into()
    }

    /// A tensor of known rank (or -1) and unknown dimensions.
    pub fn tensor_ndim(ndim: i64, dtype: DataType) -> Type {
        Ref::new(TensorType { shape: None, dtype, ndim, vdevice: None }).into()
    }

    /// A shape of known dimensions.
    pub fn shape(values: impl IntoIterator<Item = impl Into<PrimExpr>>) -> Type {
        let values: Vec<PrimExpr> = values.into_iter().map(Into::into).collect();
        let ndim = values.len() as i64;
        Ref::new(ShapeType { values: Some(values), ndim }).into()
    }

    /// A shape of known rank (or -1).
    pub fn shape_ndim(ndim: i64) -> Type {
        Ref::new(ShapeType { values: None, ndim }).into()
    }

    /// A tuple.
    pub fn tuple(fields: impl Into<Vec<Type>>) -> Type {
        Ref::new(TupleType { fields: fields.into() }).into()
    }

    /// A function of known signature.
    pub fn func(params: impl Into<Vec<Type>>, ret: Type, pure: bool) -> Type {
        Ref::new(FuncType { params: Some(params.into()), ret, pure, derive: None }).into()
    }

    /// A packed function: anything in, `ret` out.
    pub fn packed_func(ret: Type, pure: bool) -> Type {
        Ref::new(FuncType { params: None, ret, pure, derive: None }).into()
    }

    /// A packed function the type of whose calls a registered function tells.
    pub fn derived_func(rule: impl Into<String>, pure: bool) -> Type {
        Ref::new(FuncType { params: None, ret: Type::any(), pure, derive: Some(rule.into()) }).into()
    }

    /// Any value.
    pub fn any() -> Type {
        Ref::new(AnyType {}).into()
    }

    /// A string.
    pub fn string() -> Type {
        Ref::new(StringType {}).into()
    }

    /// Not inferred yet.
    pub fn missing() -> Type {
        Ref::new(MissingType {}).into()
    }

    /// The empty tuple, which functions without a result return.
    pub fn void() -> Type {
        Type::tuple(Vec::new())
    }

    /// The tensor type, if this is one.
    pub fn as_tensor(&self) -> Option<&Ref<TensorType>> {
        match self {
            Type::Tensor(ty) => Some(ty),
            _ => None,
        }
    }

    /// Whether inference has not visited it.
    pub fn is_missing(&self) -> bool {
        matches!(self, Type::Missing(_))
    }
}
