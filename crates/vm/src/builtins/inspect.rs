//! What a tensor is: rank, dtype, dimensions, strides, offset.

use relaxide_ffi::{Any, Error, ErrorKind, Tensor};

use super::{Args, Builtin};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::plain("vm.inspect.tensor_ndim", |args| number(args, |t| t.ndim() as i64)),
    Builtin::plain("vm.inspect.tensor_dtype_code", |args| number(args, |t| i64::from(t.dtype().code))),
    Builtin::plain("vm.inspect.tensor_dtype_bits", |args| number(args, |t| i64::from(t.dtype().bits))),
    Builtin::plain("vm.inspect.tensor_dtype_lanes", |args| number(args, |t| i64::from(t.dtype().lanes))),
    Builtin::plain("vm.inspect.tensor_byte_offset", |args| number(args, |t| t.dl_tensor().byte_offset as i64)),
    Builtin::plain("vm.inspect.tensor_elem_offset", |args| number(args, elements_before)),
    Builtin::plain("vm.inspect.tensor_shape_i", |args| along(args, |t, axis| t.shape()[axis])),
    Builtin::plain("vm.inspect.tensor_stride_i", |args| along(args, stride)),
];

/// `(tensor)`.
fn number(args: &Args<'_, '_>, of: fn(&Tensor) -> i64) -> Result<Any, Error> {
    args.expect_len(1, 1)?;
    Ok(of(&args.get(0, "tensor")?).into())
}

/// `(tensor, axis)`.
fn along(args: &Args<'_, '_>, of: fn(&Tensor, usize) -> i64) -> Result<Any, Error> {
    args.expect_len(2, 2)?;
    let (tensor, axis) = (args.get::<Tensor>(0, "tensor")?, args.index(1, "axis")?);
    if axis >= tensor.ndim() {
        let message = format_args!("axis {axis} is not one of the {} axes of {tensor:?}", tensor.ndim());
        return Err(args.error(ErrorKind::ValueError, message));
    }
    Ok(of(&tensor, axis).into())
}

fn elements_before(tensor: &Tensor) -> i64 {
    let bytes = tensor.dtype().bytes().max(1) as u64;
    (tensor.dl_tensor().byte_offset / bytes) as i64
}

/// The distance of neighbours; that of rows without gaps where none is said.
fn stride(tensor: &Tensor, axis: usize) -> i64 {
    match tensor.strides().get(axis) {
        Some(stride) => *stride,
        None => tensor.shape().iter().skip(axis + 1).product(),
    }
}
