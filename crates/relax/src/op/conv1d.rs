//! Convolutions over one dimension, which are those over two with a height of one.

use relaxide_ir::prim::PrimExpr;
use relaxide_ir::{Attrs, Type};

use super::*;
use crate::{BlockBuilder, BuildError};

/// The rows.
pub static TABLE: &[OpDef] = &[OpDef {
    name: "nn.conv1d",
    doc: "Sums of products of a window that slides over a sequence. ONNX: Conv; ATen: convolution.",
    args: &[
        ArgDef::tensor("data", "The sequence, NCW."),
        ArgDef::tensor("weight", "For each output channel, a window."),
    ],
    attrs: &[
        AttrDef::ints_of("strides", 1, &[1], "Step of the window."),
        AttrDef::ints_of("padding", 2, &[0, 0], "Zeros in front and behind; one number serves both."),
        AttrDef::ints_of("dilation", 1, &[1], "Distance of neighbours in the window."),
        AttrDef::int("groups", 1, "Into how many parts channels are divided, each convolved on its own."),
        AttrDef::str("data_layout", "NCW", "Order of the sequence's axes."),
        AttrDef::str("kernel_layout", "OIW", "Order of the weight's axes."),
        AttrDef::new(
            "out_layout",
            AttrKind::Str,
            AttrDefault::None,
            "Order of the result's axes; the sequence's if absent.",
        ),
        AttrDef::dtype("out_dtype", "Element type of the result and of the sums."),
    ],
    infer,
    lower: Lowering::Decompose(open),
    pattern: OpPattern::OutFusable,
    ..OpDef::BASE
}];

/// The attributes of the convolution over two dimensions.
fn attrs_2d(cx: &CallCx) -> Result<Attrs, OpError> {
    cx.layout("data_layout", &["NCW"])?;
    cx.layout("kernel_layout", &["OIW"])?;
    if cx.attrs.get("out_layout").is_some() {
        cx.layout("out_layout", &["NCW"])?;
    }
    let (strides, padding, dilation) = (cx.ints("strides")?, cx.ints("padding")?, cx.ints("dilation")?);
    let (&[stride], &[front, behind], &[dilation]) = (&strides[..], &padding[..], &dilation[..]) else {
        return cx.invalid("needs one stride, two paddings and one dilation");
    };
    let attrs = Attrs::new()
        .with("strides", vec![1, stride])
        .with("padding", vec![0, front, 0, behind])
        .with("dilation", vec![1, dilation])
        .with("groups", cx.int("groups")?);
    Ok(match cx.dtype("out_dtype") {
        Some(dtype) => attrs.with("out_dtype", dtype),
        None => attrs,
    })
}

/// The type with a dimension of size one put in as the third.
fn with_height(ty: &Type) -> Type {
    let Type::Tensor(t) = ty else { return ty.clone() };
    let dims = t.shape.clone().map(|mut dims| {
        dims.insert(2.min(dims.len()), PrimExpr::from(1));
        dims
    });
    tensor_type(dims, usize::try_from(t.ndim).ok().map(|n| n + 1), t.dtype)
}

fn infer(cx: &CallCx) -> Result<Type, OpError> {
    for i in 0..2 {
        if let Some(n) = cx.tensor(i)?.ndim.filter(|n| *n != 3) {
            return cx.invalid(format!("argument {i} has {n} dimensions, not 3"));
        }
    }
    let stand_in = |i: usize| Ok::<Expr, OpError>(relaxide_ir::Var::new("arg", with_height(&cx.ty(i)?)).into());
    let Type::Tensor(image) = call("nn.conv2d", [stand_in(0)?, stand_in(1)?], attrs_2d(cx)?)?.ty() else {
        return cx.invalid("gives no tensor");
    };
    let dims = image.shape.clone().map(|mut dims| {
        dims.remove(2);
        dims
    });
    Ok(tensor_type(dims, Some(3), image.dtype))
}

fn open(cx: &CallCx, b: &mut BlockBuilder) -> Result<Expr, OpError> {
    let plain = |e: BuildError| match e {
        BuildError::Op(e) => e,
        other => OpError::invalid(cx.name(), other.to_string()),
    };
    let height = || Attrs::new().with("axis", vec![2i64]);
    let mut raise = |i: usize| -> Result<Expr, OpError> {
        if let Expr::Constant(c) = cx.arg(i)?
            && let [o, n, w] = *c.value.shape()
            && let Ok(raised) = c.value.reshape(&[o, n, 1, w])
        {
            return Ok(Expr::constant(raised));
        }
        b.op("expand_dims", [cx.arg(i)?.clone()], height()).map_err(plain)
    };
    let (data, weight) = (raise(0)?, raise(1)?);
    let image = b.op("nn.conv2d", [data, weight], attrs_2d(cx)?).map_err(plain)?;
    call("squeeze", [image], height())
}
