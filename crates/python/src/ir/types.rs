//! Constructors of types.

use relaxide::ffi::{Any, DataType, Error, ErrorKind, Object, Ref};
use relaxide::ir::types::{AnyType, MissingType, PrimType, StringType};
use relaxide::ir::{
    DummyGlobalInfo, FuncType, PointerType, ShapeType, Target, TargetError, TensorType, TupleType, Type, VDevice,
};

use super::{Args, Row};

pub(super) const TABLE: &[Row] = &[
    ("ir.PrimType", |args| Ok(Type::prim(args.get(0)?).into())),
    ("ir.StringType", |_| Ok(Type::string().into())),
    ("ir.MissingType", |_| Ok(Type::missing().into())),
    ("ir.PointerType", |args| Ok(Ref::new(PointerType { element: args.ty(0)?, scope: args.get(1)? }).into())),
    ("ir.TupleType", |args| Ok(Type::tuple(args.types(0)?).into())),
    ("relax.AnyType", |_| Ok(Type::any().into())),
    ("relax.ShapeType", shape_type),
    ("relax.TensorType", tensor_type),
    ("relax.FuncType", |args| Ok(Type::func(args.types(0)?, args.ty(1)?, args.get(2)?).into())),
    ("relax.FuncTypeOpaqueFunc", |args| Ok(Type::packed_func(args.ty(0)?, args.get(1)?).into())),
    ("relax.FuncTypeDerivedFunc", |args| Ok(Type::derived_func(args.get::<String>(0)?, args.get(1)?).into())),
    ("relax.VDevice", |args| {
        let text: String = args.get(0)?;
        // No text is no target: the device stands for none in particular.
        let target: Option<Target> = match text.is_empty() {
            true => None,
            false => {
                Some(text.parse().map_err(|error: TargetError| Error::new(ErrorKind::ValueError, error.to_string()))?)
            }
        };
        Ok(Ref::new(VDevice { target: target.map(Ref::new), id: args.get(1)?, scope: args.get(2)? }).into())
    }),
    ("relax.DummyGlobalInfo", |_| Ok(Ref::new(DummyGlobalInfo {}).into())),
    // A device's target as text, which Python makes its own object of.
    ("relax.VDeviceTarget", |args| {
        let device: Ref<VDevice> = args.get(0)?;
        Ok(device.target.as_ref().map(|target| target.to_string()).unwrap_or_default().into())
    }),
];

/// Makes the types of these nodes known by their keys.
pub(super) fn enter() {
    PrimType::type_index();
    StringType::type_index();
    MissingType::type_index();
    PointerType::type_index();
    TupleType::type_index();
    AnyType::type_index();
    ShapeType::type_index();
    TensorType::type_index();
    FuncType::type_index();
    VDevice::type_index();
    DummyGlobalInfo::type_index();
}

fn rank(given: i64, dims: Option<usize>) -> Result<i64, Error> {
    match dims {
        Some(dims) if given >= 0 && given != dims as i64 => {
            Err(Error::new(ErrorKind::ValueError, format!("ndim is {given}, but the shape has {dims} dimensions")))
        }
        Some(dims) => Ok(dims as i64),
        None => Ok(given.max(-1)),
    }
}

fn shape_type(args: &Args<'_>) -> Result<Any, Error> {
    let values = args.prims(0)?;
    let ndim = rank(args.get(1)?, values.as_ref().map(Vec::len))?;
    Ok(Ref::new(ShapeType { values, ndim }).into())
}

fn tensor_type(args: &Args<'_>) -> Result<Any, Error> {
    let shape = args.prims(0)?;
    let dtype = args.optional::<DataType>(1)?.unwrap_or(DataType::void());
    let ndim = rank(args.get(3)?, shape.as_ref().map(Vec::len))?;
    Ok(Ref::new(TensorType { shape, dtype, ndim, vdevice: args.optional(2)? }).into())
}
