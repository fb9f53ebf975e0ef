//! Operators on bits: numbers of few bits, whose products the reference forms bit by bit.
//!
//! What comes out is arithmetic of integers. Bipolar weights count as what they are; in unipolar weights a bit that is not set
//! counts negative, so a weight `w` of `b` bits is `2w - (2^b - 1)`. So the ordinary products do the work.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_ir::{AttrValue, Attrs};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, attrs, fail};

fn wide() -> DataType {
    DataType::int(32)
}

/// The weight as numbers that are multiplied.
fn weight(cx: &mut LowerCx<'_>, at: usize) -> Lowered {
    let weight = cx.arg(at)?;
    let weight = cx.cast(weight, wide())?;
    if !cx.bool("unipolar") {
        return Ok(weight);
    }
    let bits = cx.int("weight_bits")?;
    if !(1..=16).contains(&bits) {
        return fail(format!("{}: weight_bits is {bits}, and 1 to 16 are possible", cx.def.name));
    }
    let (two, top) = (cx.constant(2.0, wide())?, cx.constant(((1i64 << bits) - 1) as f64, wide())?);
    let doubled = cx.op("multiply", [weight, two])?;
    cx.op("subtract", [doubled, top])
}

fn result(cx: &mut LowerCx<'_>, made: rx::Expr) -> Lowered {
    let dtype = cx.dtype_attr("out_dtype", DataType::int(16));
    cx.cast(made, dtype)
}

pub(super) fn dense(cx: &mut LowerCx<'_>) -> Lowered {
    let data = cx.arg(0)?;
    if cx.ndim(&data)? != 2 || cx.ndim(&cx.arg(1)?)? != 2 {
        return fail("nn.bitserial_dense takes two matrices; weights that were packed before are not taken");
    }
    let (data, weight) = (cx.cast(data, wide())?, weight(cx, 1)?);
    let made = cx.relay("nn.dense", vec![data, weight], Attrs::new().with("units", AttrValue::None))?;
    result(cx, made)
}

pub(super) fn conv2d(cx: &mut LowerCx<'_>) -> Lowered {
    let data = cx.arg(0)?;
    if cx.ndim(&data)? != 4 || cx.ndim(&cx.arg(1)?)? != 4 {
        return fail(
            "nn.bitserial_conv2d takes tensors of four dimensions; weights that were packed before are not taken",
        );
    }
    let (data, weight) = (cx.cast(data, wide())?, weight(cx, 1)?);
    let pairs = attrs([
        ("strides", cx.ints("strides")?.into()),
        ("padding", cx.ints("padding")?.into()),
        ("kernel_size", cx.ints("kernel_size")?.into()),
        ("data_layout", cx.str("data_layout").into()),
        ("kernel_layout", cx.str("kernel_layout").into()),
    ]);
    let made = cx.relay("nn.conv2d", vec![data, weight], pairs)?;
    result(cx, made)
}

/// Each bit of numbers along a dimension, packed into words: a dimension for the bits, and one of the dimension's length over the
/// word's.
pub(super) fn bitpack(cx: &mut LowerCx<'_>) -> Lowered {
    let x = cx.arg(0)?;
    let (shape, bits) = (cx.shape(&x)?, cx.int("bits")?);
    let dtype = cx.dtype_attr("pack_type", DataType::uint(32));
    let lanes = i64::from(dtype.bits);
    // The highest bit of 64 has no place among the constants of kernels.
    if !(1..=16).contains(&bits) || !matches!(lanes, 8 | 16 | 32) {
        return fail(format!(
            "nn.bitpack: {bits} bits in words of {dtype}: 1 to 16 bits and words of 8, 16 or 32 are possible"
        ));
    }
    let axis = cx.axis(cx.int("pack_axis")?, shape.len())?;
    let place = cx.int("bit_axis")?;
    let place = if place < 0 { place + shape.len() as i64 + 1 } else { place };
    let place = usize::try_from(place).ok().filter(|i| *i <= shape.len());
    let place = place.ok_or_else(|| LowerError("nn.bitpack: bit_axis is no dimension of the result".into()))?;
    let Some(length) = shape[axis].as_int().filter(|n| n % lanes == 0) else {
        return fail(format!("nn.bitpack: a multiple of {lanes} is packed, not {}", shape[axis]));
    };
    let mut out = shape;
    out[axis] = prim::int(length / lanes);
    out.insert(place, prim::int(bits));
    let of = cx.dtype(&x)?;
    Ok(cx.builder.emit_te("bitpack", vec![x], |inputs| {
        let x = inputs[0].clone();
        vec![te::compute("T_bitpack", out, |at: &[PrimExpr]| {
            let mut index = at.to_vec();
            let bit = index.remove(place);
            let word = index[axis].clone();
            let mut packed = prim::int_of(dtype, 0);
            for lane in 0..lanes {
                index[axis] = word.clone() * lanes + lane;
                let value = x.at(&index);
                let of_bit = |b: i64| {
                    prim::floormod(prim::floordiv(value.clone(), prim::int_of(of, 1 << b)), prim::int_of(of, 2))
                };
                let one =
                    (1..bits).fold(of_bit(0), |other, b| prim::select(prim::eq(&bit, prim::int(b)), of_bit(b), other));
                // The first element is the highest bit.
                packed = packed + prim::cast(dtype, one) * prim::int_of(dtype, 1i64 << (lanes - 1 - lane));
            }
            packed
        })]
    })?)
}
