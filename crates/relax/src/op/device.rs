//! Where values lie: copies to a device, hints, parameters of another dtype.

use relaxide_ffi::Ref;
use relaxide_ir::{AttrValue, TensorType, Type, VDevice};

use super::*;
use crate::BlockBuilder;

const DATA: &[ArgDef] = &[ArgDef::any("data", "The tensor.")];

/// The rows.
pub static TABLE: &[OpDef] = &[
    OpDef {
        name: "to_vdevice",
        doc: "A copy of a tensor on a device.",
        args: DATA,
        attrs: &[AttrDef::required("dst_vdevice", AttrKind::Any, "The device.")],
        infer: to_vdevice_type,
        ..OpDef::BASE
    },
    OpDef::decomposed(
        "hint_on_device",
        DATA,
        &[
            AttrDef::required("device_type", AttrKind::Int, "The kind of device, as DLPack numbers them."),
            AttrDef::int("index", 0, "Which of them."),
            AttrDef::str("memory_scope", "global", "The memory scope."),
        ],
        |cx| Ok(cx.tensor(0)?.ty()),
        |cx, _| cx.arg(0).cloned(),
        "Says that a tensor is to lie on a device; the pass RealizeVDevice moves it there.",
    ),
    OpDef::decomposed(
        "wrap_param",
        &[ArgDef::tensor("data", "The parameter.")],
        &[AttrDef::new(
            "dtype",
            AttrKind::DType,
            AttrDefault::Str("float32"),
            "The dtype that the program computes with.",
        )],
        |cx| {
            let data = cx.tensor(0)?;
            Ok(TensorInfo { dtype: cx.dtype("dtype").unwrap_or(data.dtype), ..data }.ty())
        },
        wrap_param,
        "A parameter that is kept in another dtype than the program computes with.",
    ),
];

/// The device that a call of `to_vdevice` names.
pub fn destination(cx: &CallCx) -> Result<Ref<VDevice>, OpError> {
    let device = match cx.attrs.get("dst_vdevice") {
        Some(AttrValue::Object(object)) => object.clone().downcast::<VDevice>().ok(),
        _ => None,
    };
    device.map_or_else(|| cx.invalid("`dst_vdevice` must be a device of the module"), Ok)
}

/// The arguments of the run time's copy for a call of `to_vdevice`: the tensor, the device's type and index, the scope.
pub fn copy_args(cx: &CallCx, data: &Expr) -> Result<Vec<Expr>, OpError> {
    let device = destination(cx)?;
    let Some(number) = device.device_type() else {
        return cx.unsupported("a copy to a device without a target".to_string());
    };
    Ok(vec![data.clone(), Expr::prim(i64::from(number)), Expr::prim(device.id), Expr::string(device.scope.clone())])
}

fn to_vdevice_type(cx: &CallCx) -> Result<Type, OpError> {
    let ty = cx.tensor_ty(0)?;
    Ok(Ref::new(TensorType {
        shape: ty.shape.clone(),
        dtype: ty.dtype,
        ndim: ty.ndim,
        vdevice: Some(destination(cx)?),
    })
    .into())
}

fn wrap_param(cx: &CallCx, _: &mut BlockBuilder) -> Result<Expr, OpError> {
    let dtype = cx.dtype("dtype").unwrap_or(cx.tensor(0)?.dtype);
    call("astype", [cx.arg(0)?.clone()], relaxide_ir::Attrs::new().with("dtype", dtype))
}

/// The type of a call with the device of its arguments, for operators whose result lies where they do. Where arguments lie
/// on different devices, element-wise operators are refused and the others' results lie nowhere in particular.
pub fn placed(cx: &CallCx, ty: Type) -> Result<Type, OpError> {
    match device_of(cx.args) {
        Ok(Some(device)) => Ok(on(&ty, &device)),
        Err(Apart(first, other)) if cx.def.pattern == OpPattern::Broadcast => cx.invalid(format!(
            "its arguments lie on different devices, {} and {}; move one with to_vdevice",
            name(&first),
            name(&other)
        )),
        _ => Ok(ty),
    }
}

/// The type of what a kernel computes from arguments: it lies on their device, where they say one.
pub fn beside(args: &[Expr], ty: Type) -> Type {
    match device_of(args) {
        Ok(Some(device)) => on(&ty, &device),
        _ => ty,
    }
}

/// Two devices that differ, where arguments should lie on one.
struct Apart(Ref<VDevice>, Ref<VDevice>);

/// The device that arguments say they lie on, if any says one; two that differ are an error.
fn device_of(args: &[Expr]) -> Result<Option<Ref<VDevice>>, Apart> {
    let mut devices = Vec::new();
    args.iter().for_each(|arg| collect(&arg.ty(), &mut devices));
    let Some(first) = devices.first() else { return Ok(None) };
    match devices.iter().find(|device| !device.is_same(first)) {
        None => Ok(Some(first.clone())),
        Some(other) => Err(Apart(first.clone(), other.clone())),
    }
}

fn name(device: &VDevice) -> String {
    device.to_string()
}

fn collect(ty: &Type, devices: &mut Vec<Ref<VDevice>>) {
    match ty {
        Type::Tensor(t) => devices.extend(t.vdevice.clone()),
        Type::Tuple(t) => t.fields.iter().for_each(|f| collect(f, devices)),
        _ => {}
    }
}

/// A type whose tensors lie on a device.
pub fn on(ty: &Type, device: &Ref<VDevice>) -> Type {
    match ty {
        Type::Tensor(t) if t.vdevice.is_none() => {
            Ref::new(TensorType { shape: t.shape.clone(), dtype: t.dtype, ndim: t.ndim, vdevice: Some(device.clone()) })
                .into()
        }
        Type::Tuple(t) => Type::tuple(t.fields.iter().map(|f| on(f, device)).collect::<Vec<_>>()),
        other => other.clone(),
    }
}
