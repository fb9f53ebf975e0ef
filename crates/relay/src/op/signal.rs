//! Fourier transforms, as sums: for the short windows that models have.

use relaxide_ffi::DataType;
use relaxide_ir::prim::{self, PrimExpr};
use relaxide_relax as rx;
use relaxide_tir::te;

use super::cx::{LowerCx, LowerError, Lowered, fail};

const FLOAT: DataType = DataType::float(32);

/// 2 π a b / n, from integers whose product stays small.
fn angle(a: PrimExpr, b: PrimExpr, n: i64) -> PrimExpr {
    let turn = prim::floormod(a * b, prim::int(n));
    prim::cast(FLOAT, turn) * prim::constant(FLOAT, 2.0 * std::f64::consts::PI / n as f64)
}

/// The transform along the last dimension; real and imaginary parts are tensors of their own.
pub(super) fn dft(cx: &mut LowerCx<'_>) -> Lowered {
    let (re, im) = (cx.arg(0)?, cx.arg(1)?);
    let shape = cx.shape(&re)?;
    let count = shape.last().and_then(PrimExpr::as_int).filter(|n| *n > 0);
    let count = count.ok_or_else(|| LowerError("dft: the length of the last dimension must be known".into()))?;
    let inverse = cx.bool("inverse");
    let sign = if inverse { 1.0 } else { -1.0 };
    let scale = if inverse { 1.0 / count as f64 } else { 1.0 };
    let mut part = |real: bool| {
        let axis = te::reduce_axis(count);
        let out = shape.clone();
        cx.builder.emit_te("dft", vec![re.clone(), im.clone()], |inputs| {
            let (re, im) = (inputs[0].clone(), inputs[1].clone());
            vec![te::compute("T_dft", out, |at: &[PrimExpr]| {
                let Some((k, outer)) = at.split_last() else {
                    return te::sum(prim::constant(FLOAT, 0.0), [axis.clone()]);
                };
                let mut index = outer.to_vec();
                index.push(axis.var());
                let turn = angle(k.clone(), axis.var(), count);
                let (cos, sin) =
                    (prim::math("cos", turn.clone()), prim::math("sin", turn) * prim::constant(FLOAT, sign));
                let (a, b) = (re.at(&index), im.at(&index));
                let value = if real { a * cos - b * sin } else { a * sin + b * cos };
                te::sum(value * prim::constant(FLOAT, scale), [axis.clone()])
            })]
        })
    };
    let parts = [part(true)?, part(false)?];
    Ok(rx::Expr::tuple(parts))
}

/// Transforms of windows that move along signals: frequencies, windows, and the two parts.
pub(super) fn stft(cx: &mut LowerCx<'_>) -> Lowered {
    let (x, window) = (cx.arg(0)?, cx.arg(1)?);
    let (count, hop, length) = (cx.int("n_fft")?, cx.int("hop_length")?, cx.int("win_length")?);
    if count <= 0 || hop <= 0 {
        return fail("stft: n_fft and hop_length must be positive");
    }
    if length != count {
        return fail("stft with a window shorter than n_fft cannot be compiled yet: pad the window with zeros");
    }
    let shape = cx.shape(&x)?;
    let [batch, samples] = shape.as_slice() else { return fail("stft takes signals as a matrix") };
    let frames = prim::floordiv(samples.clone() - count, prim::int(hop)) + 1;
    let frequencies = if cx.bool("onesided") { count / 2 + 1 } else { count };
    let scale = if cx.bool("normalized") { 1.0 / (count as f64).sqrt() } else { 1.0 };
    let axis = te::reduce_axis(count);
    let out = [batch.clone(), prim::int(frequencies), frames, prim::int(2)];
    Ok(cx.builder.emit_te("stft", vec![x, window], |inputs| {
        let (x, window) = (inputs[0].clone(), inputs[1].clone());
        vec![te::compute("T_stft", out, |at: &[PrimExpr]| {
            let n = axis.var();
            let sample = prim::cast(FLOAT, x.at(&[at[0].clone(), at[2].clone() * hop + n.clone()]));
            let sample = sample * prim::cast(FLOAT, window.at(std::slice::from_ref(&n)));
            let turn = angle(at[1].clone(), n, count);
            let real = prim::eq(&at[3], prim::int(0));
            let minus = prim::constant(FLOAT, -1.0) * prim::math("sin", turn.clone());
            let factor = prim::select(real, prim::math("cos", turn), minus);
            te::sum(sample * factor * prim::constant(FLOAT, scale), [axis.clone()])
        })]
    })?)
}
